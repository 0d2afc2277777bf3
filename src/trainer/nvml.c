/*
 * nvml.c - see nvml.h. The library comes with the driver, not with the toolkit, and is loaded by hand.
 */
#include "trainer/nvml.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "trainer/line.h"

#define LIBNVML "libnvidia-ml.so.1"
#define MAX_GPUS 64
#define MAX_PROCESSES 128

/* NVML's own structs; the first member of each is all that is read of them, beside the sizes. */
typedef struct NvmlMemory
{
	unsigned long long total, free, used;
} NvmlMemory;

typedef struct NvmlProcess
{
	unsigned pid;
	unsigned long long used;
	unsigned gpu_instance, compute_instance; /* only from _v2 on: 24 bytes; before, 16 */
} NvmlProcess;

typedef struct Nvml
{
	int (*init)(void);
	int (*version)(char *text, unsigned size);
	int (*count)(unsigned *n);
	int (*handle)(unsigned index, void **device);
	int (*name)(void *device, char *text, unsigned size);
	int (*uuid)(void *device, char *text, unsigned size);
	int (*memory)(void *device, NvmlMemory *memory);
	int (*processes)(void *device, unsigned *n, void *list); /* NULL: not offered */
	size_t process_bytes;
} Nvml;

static bool
symbol(void *library, const char *name, void *function)
{
	void *found = dlsym(library, name);

	memcpy(function, &found, sizeof found);
	return found != NULL;
}

static bool
nvml_bind(Nvml *nvml, void *library)
{
	nvml->process_bytes = sizeof(NvmlProcess);
	if (!symbol(library, "nvmlDeviceGetComputeRunningProcesses_v3", &nvml->processes) &&
		!symbol(library, "nvmlDeviceGetComputeRunningProcesses_v2", &nvml->processes))
	{
		nvml->process_bytes = 16;
		(void) symbol(library, "nvmlDeviceGetComputeRunningProcesses", &nvml->processes);
	}
	return symbol(library, "nvmlInit_v2", &nvml->init) &&
		   symbol(library, "nvmlSystemGetDriverVersion", &nvml->version) &&
		   symbol(library, "nvmlDeviceGetCount_v2", &nvml->count) &&
		   symbol(library, "nvmlDeviceGetHandleByIndex_v2", &nvml->handle) &&
		   symbol(library, "nvmlDeviceGetName", &nvml->name) &&
		   symbol(library, "nvmlDeviceGetUUID", &nvml->uuid) &&
		   symbol(library, "nvmlDeviceGetMemoryInfo", &nvml->memory);
}

/* "12 345"; "-" when they can't be listed (more than fit, no right, not offered). */
static void
list_processes(const Nvml *nvml, void *device, char *text, size_t size)
{
	NvmlProcess list[MAX_PROCESSES];
	unsigned n = MAX_PROCESSES;
	size_t at = 0;

	snprintf(text, size, "-");
	memset(list, 0, sizeof list);
	if (nvml->processes == NULL || nvml->processes(device, &n, list) != 0 || n > MAX_PROCESSES)
		return;
	text[0] = '\0';
	for (unsigned i = 0; i < n && at + 12 < size; i++)
	{
		unsigned pid;

		memcpy(&pid, (const char *) list + i * nvml->process_bytes, sizeof pid);
		at += (size_t) snprintf(text + at, size - at, at == 0 ? "%u" : " %u", pid);
	}
}

static void
tell_gpu(const Nvml *nvml, unsigned index)
{
	void *device = NULL;
	char name[128] = "", uuid[128] = "", pids[1024];
	NvmlMemory memory = {0, 0, 0};
	bool has_memory;

	if (nvml->handle(index, &device) != 0)
		return;
	if (nvml->name(device, name, sizeof name) != 0)
		name[0] = '\0';
	if (nvml->uuid(device, uuid, sizeof uuid) != 0)
		uuid[0] = '\0';
	name[sizeof name - 1] = uuid[sizeof uuid - 1] = '\0';
	has_memory = nvml->memory(device, &memory) == 0;
	list_processes(nvml, device, pids, sizeof pids);
	ag_line_print("smi", "ssiis", uuid, name, has_memory ? (int64_t) memory.total : -1,
				  has_memory ? (int64_t) memory.free : -1, pids);
}

void
ag_nvml_print(void)
{
	void *library = dlopen(LIBNVML, RTLD_NOW | RTLD_LOCAL);
	Nvml nvml;
	char version[96] = "";
	unsigned n = 0;

	if (library == NULL)
	{
		ag_line_print("nvml", "ss", "missing", "");
		return;
	}
	if (!nvml_bind(&nvml, library) || nvml.init() != 0)
	{
		ag_line_print("nvml", "ss", "failed", "");
		return;
	}
	if (nvml.version(version, sizeof version) != 0)
		version[0] = '\0';
	version[sizeof version - 1] = '\0';
	ag_line_print("nvml", "ss", "loaded", version);
	if (nvml.count(&n) != 0)
		n = 0;
	for (unsigned i = 0; i < n && i < MAX_GPUS; i++)
		tell_gpu(&nvml, i);
}
