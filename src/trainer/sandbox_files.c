/*
 * sandbox_files.c - the files that are left: a Landlock ruleset (Documentation/userspace-api/landlock.rst of Linux), asked of the kernel
 * itself, for libraries and headers that know it aren't everywhere.
 *
 * A kernel knows so many kinds of access as its version of the interface has; what it doesn't know must not be asked for.
 */
#define _GNU_SOURCE
#include "trainer/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Numbers of calls since Linux 5.13, the same on every architecture. */
#define CALL_CREATE_RULESET 444
#define CALL_ADD_RULE 445
#define CALL_RESTRICT_SELF 446
#define ASK_VERSION 1u
#define RULE_PATH 1
#define HIGHEST_KNOWN 6

#define READ_FILE (UINT64_C(1) << 2)
#define READ_DIR (UINT64_C(1) << 3)
#define WRITE_FILE (UINT64_C(1) << 1)
#define REMOVE (UINT64_C(3) << 4)
#define MAKE_DIR (UINT64_C(1) << 7)
#define MAKE_FILE (UINT64_C(1) << 8)
#define TRUNCATE (UINT64_C(1) << 14)
#define DEVICE_CONTROL (UINT64_C(1) << 15)
#define OF_FILES                                                                                   \
	(UINT64_C(7) | TRUNCATE | DEVICE_CONTROL) /* what a rule may grant on what is no folder */

#define READ (READ_FILE | READ_DIR)
#define DEVICE (READ_FILE | READ_DIR | WRITE_FILE | DEVICE_CONTROL)
#define CACHE (READ | WRITE_FILE | REMOVE | MAKE_DIR | MAKE_FILE | TRUNCATE)

/* As the kernel has them. */
typedef struct Ruleset
{
	uint64_t handled_files;
	uint64_t handled_network; /* since version 4 */
	uint64_t scoped; /* since version 6: signals and abstract sockets stay among ourselves */
} Ruleset;

typedef struct __attribute__((packed)) PathRule
{
	uint64_t allowed;
	int32_t folder;
} PathRule;

typedef struct Grant
{
	const char *pattern; /* of glob(3) */
	uint64_t allowed;
} Grant;

/*
 * What a driver of NVIDIA's needs, and the loader to find it. Not /proc as a whole, where other processes are; not /dev/shm, where the server's own
 * memory is; not /usr or /usr/local, where somebody's data may be. There is nothing that may be executed.
 */
static const Grant grants[] = {
	{"/dev/nvidia*", DEVICE},
	{"/dev/nvhost*", DEVICE},
	{"/dev/nvmap", DEVICE},
	{"/dev/nvgpu", DEVICE},
	{"/dev/dri", DEVICE},
	{"/dev/dxg", DEVICE}, /* WSL */
	{"/dev/null", DEVICE},
	{"/dev/zero", DEVICE},
	{"/dev/full", DEVICE},
	{"/dev/random", READ},
	{"/dev/urandom", READ},
	{"/proc/self", READ},
	{"/proc/self/task", READ | WRITE_FILE}, /* names of threads */
	{"/proc/driver", READ},
	{"/proc/devices", READ},
	{"/proc/modules", READ},
	{"/proc/cpuinfo", READ},
	{"/proc/meminfo", READ},
	{"/proc/stat", READ},
	{"/proc/version", READ},
	{"/proc/filesystems", READ},
	{"/proc/sys", READ},
	{"/sys", READ},
	{"/etc/ld.so.*", READ},
	{"/etc/nvidia*", READ},
	{"/etc/localtime", READ},
	{"/lib*", READ},
	{"/usr/lib*", READ},
	{"/usr/local/lib*", READ},
	{"/usr/local/cuda*", READ},
	{"/usr/local/nvidia*", READ},
	{"/usr/share/nvidia*", READ},
	{"/opt/cuda*", READ},
	{"/opt/nvidia*", READ},
	{"/nix/store", READ},
	{"/run/opengl-driver*", READ},
	{AG_SANDBOX_MPS, DEVICE},
};

bool
ag_sandbox_has_mps(void)
{
	struct stat folder;

	return lstat(AG_SANDBOX_MPS, &folder) == 0 && S_ISDIR(folder.st_mode) &&
		   (folder.st_uid == 0 || folder.st_uid == getuid());
}

static bool
is_within(const char *path, const char *folder)
{
	size_t n = strcmp(folder, "/") == 0 ? 0 : strlen(folder);

	return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* Is it the folder that the program runs in, which is the server's data, or one above or below? */
static bool
touches_data(const char *path)
{
	char real[PATH_MAX], data[PATH_MAX];

	if (realpath(path, real) == NULL || getcwd(data, sizeof data) == NULL)
		return false;
	return is_within(data, real) || is_within(real, data);
}

/* One that isn't there needs no rule, and one that can't be had is one file less. */
static void
grant_path(int ruleset, const char *path, uint64_t allowed)
{
	struct stat what;
	PathRule rule = {allowed, -1};

	if (*path == '\0' || touches_data(path) ||
		(strcmp(path, AG_SANDBOX_MPS) == 0 && !ag_sandbox_has_mps()))
		return;
	rule.folder = open(path, O_PATH | O_CLOEXEC);
	if (rule.folder < 0)
		return;
	if (fstat(rule.folder, &what) == 0 && !S_ISDIR(what.st_mode))
		rule.allowed &= OF_FILES;
	syscall(CALL_ADD_RULE, ruleset, RULE_PATH, &rule, 0);
	close(rule.folder);
}

static void
grant_pattern(int ruleset, const Grant *grant, uint64_t known)
{
	glob_t found;

	if (glob(grant->pattern, GLOB_NOSORT, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc; i++)
			grant_path(ruleset, found.gl_pathv[i], grant->allowed & known);
	globfree(&found);
}

/* A list of folders with colons between them. */
static void
grant_list(int ruleset, const char *list, uint64_t allowed)
{
	char path[PATH_MAX];

	for (size_t n; list != NULL; list = list[n] == ':' ? list + n + 1 : NULL)
	{
		n = strcspn(list, ":");
		if (snprintf(path, sizeof path, "%.*s", (int) n, list) < (int) sizeof path)
			grant_path(ruleset, path, allowed);
	}
}

/* Folders that only this process knows: its own, where the CUDA module is; the loader's; the driver's cache of compiled code. */
static void
grant_own(int ruleset, uint64_t known)
{
	char path[PATH_MAX];
	const char *home = getenv("HOME");
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
	char *slash;

	if (n > 0)
	{
		path[n] = '\0';
		slash = strrchr(path, '/');
		if (slash != NULL)
			*slash = '\0';
		grant_path(ruleset, path, READ);
	}
	grant_list(ruleset, getenv("LD_LIBRARY_PATH"), READ);
	if (getenv("CUDA_CACHE_PATH") != NULL)
		grant_path(ruleset, getenv("CUDA_CACHE_PATH"), CACHE & known);
	if (home != NULL && snprintf(path, sizeof path, "%s/.nv", home) < (int) sizeof path)
		grant_path(ruleset, path, CACHE & known);
}

bool
ag_sandbox_limit_files(void)
{
	/* the last bit of each version: the files' kinds of access grew with 2, 3 and 5 */
	static const int bits[HIGHEST_KNOWN + 1] = {0, 13, 14, 15, 15, 16, 16};
	Ruleset ruleset = {0, 0, 0};
	long version = syscall(CALL_CREATE_RULESET, NULL, 0, ASK_VERSION);
	int fd;
	bool done;

	if (version < 1)
		return false;
	if (version > HIGHEST_KNOWN)
		version = HIGHEST_KNOWN;
	ruleset.handled_files = (UINT64_C(1) << bits[version]) - 1;
	if (version >= 4)
		ruleset.handled_network = 3; /* neither to bind nor to connect */
	if (version >= 6)
		ruleset.scoped = 3;
	fd = (int) syscall(CALL_CREATE_RULESET, &ruleset,
					   version >= 6   ? sizeof ruleset
					   : version >= 4 ? offsetof(Ruleset, scoped)
									  : offsetof(Ruleset, handled_network),
					   0);
	if (fd < 0)
		return false;
	for (size_t i = 0; i < sizeof grants / sizeof *grants; i++)
		grant_pattern(fd, &grants[i], ruleset.handled_files);
	grant_own(fd, ruleset.handled_files);
	done = syscall(CALL_RESTRICT_SELF, fd, 0) == 0;
	close(fd);
	return done;
}
