/*
 * ag_cuda.h - the door to ag_pg_cuda.so: one exported function that fills one table.
 *
 * Plain C; the only header of this room that others include. What the module computes is engine/base/device.h's table. The module is loaded by ag_trainer alone (dlopen, beside
 * itself), never by a server process, so CUDA is never initialised there. An entry of the table that is NULL is an
 * operation that this build doesn't offer: the caller then does it on the CPU.
 *
 * AG_CUDA_ABI is raised whenever a struct or the meaning of an entry changes; the two sides must agree exactly.
 */
#ifndef AG_CUDA_H
#define AG_CUDA_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/device.h"

#define AG_CUDA_ABI 2
#define AG_CUDA_MODULE "ag_pg_cuda.so"
#define AG_CUDA_INIT "ag_cuda_init"
#define AG_CUDA_MAX_DEVICES 64

#ifdef __cplusplus
extern "C" {
#endif

/* One GPU, as the driver shows it to this process. Texts are UTF-8 and end with NUL. */
typedef struct AgCudaDevice
{
	int index;     /* as CUDA counts, CUDA_VISIBLE_DEVICES applied */
	char name[64]; /* "NVIDIA H200" */
	char uuid[48]; /* "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx" */
	int capability_major, capability_minor;
	int64_t total_bytes; /* of its memory */
	int64_t free_bytes;  /* -1: unknown, because the device couldn't be opened */
	bool usable;         /* a kernel of this module ran on it */
	char reason
		[256]; /* why it isn't usable; empty when it is. Style of an errdetail without its period */
	char cure[256]; /* what to do about it: full sentences; empty when there is nothing to do */
} AgCudaDevice;

/* Everything that the probe found. */
typedef struct AgCudaProbe
{
	int driver_version;  /* newest CUDA the driver can serve, as 12040 for 12.4; 0: no driver */
	int runtime_version; /* CUDA this module was built with, same form */
	int n_devices; /* entries of devices that are filled; 0 whenever reason speaks of the whole machine */
	int n_usable;
	char reason[512]; /* why no device is usable, root cause first; empty when n_usable > 0 */
	char cure[512];
	AgCudaDevice devices[AG_CUDA_MAX_DEVICES];
} AgCudaProbe;

typedef struct AgCudaTable
{
	uint32_t abi;
	/* "sm_80 sm_90 compute_90": the architectures this module carries code for. Static text. */
	const char *architectures;
	/* "GBM XGB": the model families that this module trains, as hyperparameters name them. Static text. */
	const char *families;
	/*
	 * Looks at every device, runs a tiny kernel on each, lets go of all of them again. Never fails: what is wrong is in
	 * *found. Takes up to about a second a device. Main thread only.
	 */
	void (*probe)(AgCudaProbe *found);
	/* What the module computes; NULL: nothing. Lives as long as the module. */
	const AgDeviceOps *ops;
} AgCudaTable;

/* Fills *table; false, and nothing filled, when the module speaks another ABI. */
typedef bool (*AgCudaInit)(uint32_t abi, AgCudaTable *table);
bool ag_cuda_init(uint32_t abi, AgCudaTable *table);

#ifdef __cplusplus
}
#endif

#endif
