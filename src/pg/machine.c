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

typedef void (*FileFn)(const char *text, double *least);

/*
 * Reads `file` in our cgroup and in each one above it, up to the mount point (inside a container the path of the host may
 * not exist: then only the top is there).
 */
static void
walk_cgroups(const char *mount, const char *controller, const char *file, FileFn fn, double *least)
{
	char path[4096];
	char full[8192];
	char text[256];
	char *slash;

	if (!cgroup_path(controller, path, sizeof path))
		return;
	for (;;)
	{
		snprintf(full, sizeof full, "%s%s/%s", mount, strcmp(path, "/") == 0 ? "" : path, file);
		if (read_small_file(full, text, sizeof text))
			fn(text, least);
		slash = strrchr(path, '/');
		if (slash == NULL)
			break;
		*slash = '\0';
	}
}

static void
least_number(const char *text, double *least)
{
	double value = strtod(text, NULL); /* "max" reads as 0 */

	if (value > 0 && value < *least)
		*least = value;
}

/* cpu.max: "quota period" or "max period". */
static void
least_cpu_max(const char *text, double *least)
{
	double quota, period;

	if (sscanf(text, "%lf %lf", &quota, &period) == 2 && quota > 0 && period > 0 &&
		quota / period < *least)
		*least = quota / period;
}

int
ag_machine_cpus(void)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	double cpus = online > 0 ? (double) online : 1.0;
	double quota = -1, period = -1;
	char text[256];
	cpu_set_t mask;

	if (sched_getaffinity(0, sizeof mask, &mask) == 0 && CPU_COUNT(&mask) > 0)
		cpus = Min(cpus, (double) CPU_COUNT(&mask));
	walk_cgroups("/sys/fs/cgroup", "", "cpu.max", least_cpu_max, &cpus);
	if (read_small_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", text, sizeof text))
		quota = strtod(text, NULL);
	if (read_small_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us", text, sizeof text))
		period = strtod(text, NULL);
	if (quota > 0 && period > 0 && quota / period < cpus)
		cpus = quota / period;
	return cpus <= 1.0 ? 1 : (int) (cpus + 0.999);
}

int64
ag_machine_memory(void)
{
	double pages = (double) sysconf(_SC_PHYS_PAGES);
	double bytes = pages * (double) sysconf(_SC_PAGESIZE);

	if (bytes <= 0)
		bytes = 1024.0 * 1024.0 * 1024.0;
	walk_cgroups("/sys/fs/cgroup", "", "memory.max", least_number, &bytes);
	walk_cgroups("/sys/fs/cgroup/memory", "memory", "memory.limit_in_bytes", least_number, &bytes);
	return (int64) bytes;
}
