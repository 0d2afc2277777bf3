/*
 * machine.c - see machine.h. cgroup v2 (one tree) and v1 (a tree a controller); what can't be read counts as no limit.
 */
#include "postgres.h"

#include <sched.h>
#include <unistd.h>

#include "pg/machine.h"

/* The first bytes of a small file, NUL-terminated. */
static bool
read_small_file(const char *path, char *buffer, size_t size)
{
	FILE *file = fopen(path, "r");
	size_t n;

	if (file == NULL)
		return false;
	n = fread(buffer, 1, size - 1, file);
	fclose(file);
	buffer[n] = '\0';
	return n > 0;
}

/*
 * The path of our cgroup for a controller ("" in v2) from /proc/self/cgroup, whose lines are
 * "id:controllers:path".
 */
static bool
cgroup_path(const char *controller, char *path, size_t size)
{
	char text[8192];
	char *line, *rest;

	if (!read_small_file("/proc/self/cgroup", text, sizeof text))
		return false;
	for (line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
	{
		char *controllers = strchr(line, ':');
		char *at = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
		size_t n = strlen(controller);
		bool found = false;

		if (at == NULL)
			continue;
		controllers++;
		*at++ = '\0';
		if (n == 0)
			found = controllers[0] == '\0';
		for (char *one = controllers; n > 0 && one != NULL && !found;)
		{
			found = strncmp(one, controller, n) == 0 && (one[n] == ',' || one[n] == '\0');
			one = strchr(one, ',');
			if (one != NULL)
				one++;
		}
		if (found)
		{
			strlcpy(path, at, size);
			return true;
		}
	}
	return false;
}

/* Lowers *least by what a cgroup's files say. */
typedef void (*LimitFn)(const char *folder, double *least);

/*
 * Our cgroup and each one above it, up to the mount point (inside a container the path as the host sees it may not exist: then
 * only the top is there).
 */
static void
walk_cgroups(const char *mount, const char *controller, LimitFn limit, double *least)
{
	char path[4096];
	char folder[8192];
	char *slash;

	if (!cgroup_path(controller, path, sizeof path))
		return;
	for (;;)
	{
		snprintf(folder, sizeof folder, "%s%s", mount, strcmp(path, "/") == 0 ? "" : path);
		limit(folder, least);
		slash = strrchr(path, '/');
		if (slash == NULL)
			break;
		*slash = '\0';
	}
}

/* The number in a file of a folder; "max" reads as 0, a file that isn't there as -1. */
static double
number_in(const char *folder, const char *file)
{
	char path[8400];
	char text[256];

	snprintf(path, sizeof path, "%s/%s", folder, file);
	return read_small_file(path, text, sizeof text) ? strtod(text, NULL) : -1;
}

static void
lower(double *least, double value)
{
	if (value > 0 && value < *least)
		*least = value;
}

static void
memory_limit(const char *folder, double *least)
{
	lower(least, number_in(folder, "memory.max"));
	lower(least, number_in(folder, "memory.limit_in_bytes"));
}

/* v2: cpu.max is "quota period" or "max period". v1: two files, no quota is -1. */
static void
cpu_limit(const char *folder, double *least)
{
	char path[8400];
	char text[256];
	double quota = number_in(folder, "cpu.cfs_quota_us");
	double period = number_in(folder, "cpu.cfs_period_us");

	if (quota > 0 && period > 0)
		lower(least, quota / period);
	snprintf(path, sizeof path, "%s/cpu.max", folder);
	if (read_small_file(path, text, sizeof text) && sscanf(text, "%lf %lf", &quota, &period) == 2 &&
		quota > 0 && period > 0)
		lower(least, quota / period);
}

int
ag_machine_cpus(void)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	double cpus = online > 0 ? (double) online : 1.0;
	cpu_set_t mask;

	if (sched_getaffinity(0, sizeof mask, &mask) == 0 && CPU_COUNT(&mask) > 0)
		lower(&cpus, (double) CPU_COUNT(&mask));
	walk_cgroups("/sys/fs/cgroup", "", cpu_limit, &cpus);
	walk_cgroups("/sys/fs/cgroup/cpu", "cpu", cpu_limit, &cpus);
	return cpus <= 1.0 ? 1 : (int) (cpus + 0.999);
}

int64
ag_machine_memory(void)
{
	double bytes = (double) sysconf(_SC_PHYS_PAGES) * (double) sysconf(_SC_PAGESIZE);

	if (bytes <= 0)
		bytes = 1024.0 * 1024.0 * 1024.0;
	walk_cgroups("/sys/fs/cgroup", "", memory_limit, &bytes);
	walk_cgroups("/sys/fs/cgroup/memory", "memory", memory_limit, &bytes);
	return (int64) bytes;
}
