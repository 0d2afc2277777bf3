/*
 * probe.c - see probe.h. The driver's libraries are asked by hand, without the CUDA module: the module may be what is
 * missing, and its runtime tells less.
 */
#define _GNU_SOURCE
#include "trainer/probe.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trainer/gpu.h"
#include "trainer/line.h"
#include "trainer/nvml.h"

#define LIBCUDA "libcuda.so.1"

/* Where NVIDIA, its containers and WSL2 put the library, whether or not the loader is told of it. */
static const char *const usual_folders[] = {
	"/usr/lib/wsl/lib",
	"/usr/local/nvidia/lib64",
	"/usr/lib/x86_64-linux-gnu",
	"/usr/lib/aarch64-linux-gnu",
	"/usr/lib64",
	"/usr/local/cuda/compat",
};

/* ---- the machine ---- */

static void
tell_environment(void)
{
	static const char *const names[] = {"CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH"};

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (getenv(names[i]) != NULL)
			ag_line_print("env", "ss", names[i], getenv(names[i]));
}

/* The first line of a small file, without its end. */
static bool
first_line(const char *path, char *line, size_t size)
{
	FILE *file = fopen(path, "re");
	bool ok;

	if (file == NULL)
		return false;
	ok = fgets(line, (int) size, file) != NULL;
	fclose(file);
	if (ok)
		line[strcspn(line, "\n")] = '\0';
	return ok;
}

/* NVIDIA's vendor number, and a class of display (03) or processing accelerator (12). */
static int
count_pci(void)
{
	DIR *dir = opendir("/sys/bus/pci/devices");
	struct dirent *entry;
	int n = 0;

	if (dir == NULL)
		return 0;
	while ((entry = readdir(dir)) != NULL)
	{
		char path[400], vendor[32], class[32];

		snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/vendor", entry->d_name);
		if (!first_line(path, vendor, sizeof vendor) || strcmp(vendor, "0x10de") != 0)
			continue;
		snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/class", entry->d_name);
		if (first_line(path, class, sizeof class) &&
			(strncmp(class, "0x03", 4) == 0 || strncmp(class, "0x12", 4) == 0))
			n++;
	}
	closedir(dir);
	return n;
}

static void
tell_node(const char *path)
{
	ag_line_print("node", "ss", path, access(path, R_OK | W_OK) == 0 ? "" : strerror(errno));
}

/* All of /dev/nvidia0, 1, ...; the two that every use needs also where they are missing beside a loaded driver. */
static void
tell_machine(void)
{
	char line[256], path[300];
	bool has_kernel = first_line("/proc/driver/nvidia/version", line, sizeof line);
	DIR *dir = opendir("/dev");
	struct dirent *entry;

	if (access("/dev/dxg", F_OK) == 0)
	{
		ag_line_print("wsl", "");
		tell_node("/dev/dxg");
	}
	ag_line_print("pci", "i", (int64_t) count_pci());
	if (has_kernel)
		ag_line_print("kernel", "s", line);
	while (dir != NULL && (entry = readdir(dir)) != NULL)
		if (strncmp(entry->d_name, "nvidia", 6) == 0 && entry->d_name[6] >= '0' &&
			entry->d_name[6] <= '9')
		{
			snprintf(path, sizeof path, "/dev/%s", entry->d_name);
			tell_node(path);
		}
	if (dir != NULL)
		closedir(dir);
	if (has_kernel || access("/dev/nvidiactl", F_OK) == 0)
	{
		tell_node("/dev/nvidiactl");
		tell_node("/dev/nvidia-uvm");
	}
}

/* ---- the driver's library ---- */

/* One place of the library; true when a file is there. */
static bool
tell_tried(const char *folder)
{
	char path[PATH_MAX];
	bool is_there;

	if (snprintf(path, sizeof path, "%s/%s", folder, LIBCUDA) >= (int) sizeof path)
		return false;
	is_there = access(path, F_OK) == 0;
	ag_line_print("tried", "ss", path, is_there ? "" : strerror(errno));
	return is_there;
}

/* The folders that the loader goes through, but for those of its cache, which holds only what exists. */
static bool
tell_search(void)
{
	void *self = dlopen(NULL, RTLD_LAZY);
	Dl_serinfo size, *info;
	bool any = false, searched[sizeof usual_folders / sizeof usual_folders[0]] = {false};
	char path[PATH_MAX];

	if (self != NULL && dlinfo(self, RTLD_DI_SERINFOSIZE, &size) == 0 &&
		(info = calloc(1, size.dls_size)) != NULL)
	{
		info->dls_size = size.dls_size;
		info->dls_cnt = size.dls_cnt;
		if (dlinfo(self, RTLD_DI_SERINFO, info) == 0)
			for (unsigned i = 0; i < info->dls_cnt && i < 40; i++)
			{
				any = tell_tried(info->dls_serpath[i].dls_name) || any;
				for (size_t j = 0; j < sizeof searched / sizeof searched[0]; j++)
					searched[j] =
						searched[j] || strcmp(info->dls_serpath[i].dls_name, usual_folders[j]) == 0;
			}
		free(info);
	}
	for (size_t j = 0; j < sizeof searched / sizeof searched[0]; j++)
	{
		snprintf(path, sizeof path, "%s/%s", usual_folders[j], LIBCUDA);
		if (!searched[j] && access(path, F_OK) == 0)
			ag_line_print("elsewhere", "s", path);
	}
	return any;
}

/* What libcuda.so.1 exports of what is asked; the driver's interface, written down here because its header may be missing. */
typedef struct Driver
{
	int (*init)(unsigned flags);
	int (*version)(int *version);
	int (*count)(int *n);
	int (*device)(int *device, int index);
	int (*name)(char *name, int size, int device);
	int (*uuid)(unsigned char *uuid, int device);
	int (*total)(size_t *bytes, int device);
	int (*attribute)(int *value, int attribute, int device);
} Driver;

enum
{
	ATTRIBUTE_COMPUTE_MODE = 20,
	ATTRIBUTE_MAJOR = 75,
	ATTRIBUTE_MINOR = 76
};

static bool
symbol(void *library, const char *name, void *function)
{
	void *found = dlsym(library, name);

	memcpy(function, &found, sizeof found);
	return found != NULL;
}

static bool
driver_bind(Driver *driver, void *library)
{
	return symbol(library, "cuInit", &driver->init) &&
		   symbol(library, "cuDriverGetVersion", &driver->version) &&
		   symbol(library, "cuDeviceGetCount", &driver->count) &&
		   symbol(library, "cuDeviceGet", &driver->device) &&
		   symbol(library, "cuDeviceGetName", &driver->name) &&
		   (symbol(library, "cuDeviceGetUuid_v2", &driver->uuid) ||
			symbol(library, "cuDeviceGetUuid", &driver->uuid)) &&
		   symbol(library, "cuDeviceTotalMem_v2", &driver->total) &&
		   symbol(library, "cuDeviceGetAttribute", &driver->attribute);
}

/* False, and all that can be said about why, when it can't be loaded. */
static bool
open_libcuda(Driver *driver)
{
	void *library;
	struct link_map *map = NULL;
	const char *path, *error;
	char why[1024] = "no reason given";
	bool any;

	ag_line_print("step", "s", "loading " LIBCUDA);
	library = dlopen(LIBCUDA, RTLD_NOW | RTLD_LOCAL);
	if (library != NULL)
	{
		path = dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : "";
		if (driver_bind(driver, library))
		{
			ag_line_print("libcuda", "sss", "loaded", path, "");
			return true;
		}
		snprintf(why, sizeof why, "%s lacks functions that every NVIDIA driver has", path);
	}
	else if ((error = dlerror()) != NULL)
		snprintf(why, sizeof why, "%s", error);
	any = tell_search() || library != NULL || strncmp(why, LIBCUDA ":", sizeof LIBCUDA) != 0;
	ag_line_print("libcuda", "sss", any ? "unloadable" : "missing", "", why);
	return false;
}

static void
tell_device(const Driver *driver, int index)
{
	int device = 0, major = 0, minor = 0, mode = 0;
	char name[128] = "", text[48] = "";
	unsigned char b[16] = {0};
	size_t total = 0;

	if (driver->device(&device, index) != 0)
		return;
	if (driver->name(name, sizeof name, device) != 0)
		name[0] = '\0';
	name[sizeof name - 1] = '\0';
	if (driver->uuid(b, device) == 0)
		snprintf(text, sizeof text,
				 "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
				 b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
				 b[14], b[15]);
	if (driver->total(&total, device) != 0)
		total = 0;
	if (driver->attribute(&major, ATTRIBUTE_MAJOR, device) != 0 ||
		driver->attribute(&minor, ATTRIBUTE_MINOR, device) != 0)
		major = minor = 0;
	if (driver->attribute(&mode, ATTRIBUTE_COMPUTE_MODE, device) != 0)
		mode = 0;
	ag_line_print("cuda", "issiiii", (int64_t) index, text, name, (int64_t) major, (int64_t) minor,
				  (int64_t) total, (int64_t) mode);
}

static void
tell_driver(void)
{
	Driver driver;
	int version = 0, n = 0, code;

	if (!open_libcuda(&driver))
		return;
	ag_line_print("step", "s", "asking the NVIDIA driver for its version (cuDriverGetVersion)");
	if (driver.version(&version) == 0)
		ag_line_print("driver", "i", (int64_t) version);
	ag_line_print("step", "s", "starting the NVIDIA driver (cuInit)");
	code = driver.init(0);
	ag_line_print("init", "i", (int64_t) code);
	if (code != 0)
		return;
	ag_line_print("step", "s", "listing the GPUs (cuDeviceGetCount)");
	code = driver.count(&n);
	if (code != 0)
		n = 0;
	ag_line_print("count", "ii", (int64_t) code, (int64_t) n);
	for (int i = 0; i < n && i < AG_CUDA_MAX_DEVICES; i++)
		tell_device(&driver, i);
}

/* ---- the module ---- */

static void
tell_run(const AgCudaDevice *d)
{
	ag_line_print("run", "issiiiiiss", (int64_t) d->index, d->uuid, d->name,
				  (int64_t) d->capability_major, (int64_t) d->capability_minor, d->total_bytes,
				  d->free_bytes, (int64_t) d->usable, d->reason, d->cure);
}

static void
tell_module(void)
{
	static const char *const states[] = {"nowhere", "absent", "unloadable", "foreign", "open"};
	static AgCudaProbe found; /* too large for a stack */
	AgCudaTable table;
	char path[PATH_MAX], why[1024];
	AgGpuModule state;

	ag_line_print("step", "s", "loading the CUDA module");
	state = ag_gpu_module_open(&table, path, sizeof path, why, sizeof why);
	ag_line_print("module", "sss", states[state], path, why);
	if (state != AG_GPU_MODULE_OPEN)
		return;
	ag_line_print("step", "s", "running a kernel on each GPU");
	memset(&found, 0, sizeof found);
	table.probe(&found);
	ag_line_print("runtime", "is", (int64_t) found.runtime_version,
				  table.architectures != NULL ? table.architectures : "");
	if (found.n_usable == 0)
		ag_line_print("verdict", "ss", found.reason, found.cure);
	for (int i = 0; i < found.n_devices && i < AG_CUDA_MAX_DEVICES; i++)
		tell_run(&found.devices[i]);
}

bool
ag_probe_print(const char *build_id)
{
	if (!ag_line_begin())
		return false;
	ag_line_print("build", "s", build_id);
	tell_environment();
	tell_machine();
	tell_driver();
	ag_line_print("step", "s", "asking NVML which processes use the GPUs");
	ag_nvml_print();
	tell_module();
	ag_line_print("done", "");
	return ag_line_end();
}
