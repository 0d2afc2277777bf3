/*
 * gpu.c - the CUDA module, loaded when a GPU was asked for.
 */
#include "trainer/gpu.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kernels/ag_cuda.h"

/* The module's path: beside this program. False when there is no telling where that is. */
static bool
module_path(char *path, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", path, size - 1);
	char *slash;

	if (n <= 0 || (size_t) n >= size - 1)
		return false;
	path[n] = '\0';
	slash = strrchr(path, '/');
	if (slash == NULL || (size_t) (slash + 1 - path) + sizeof AG_CUDA_MODULE > size)
		return false;
	memcpy(slash + 1, AG_CUDA_MODULE, sizeof AG_CUDA_MODULE);
	return true;
}

static void
say(AgGpuState *state, const char *reason, const char *cure)
{
	snprintf(state->reason, sizeof state->reason, "%s", reason);
	snprintf(state->cure, sizeof state->cure, "%s", cure);
}

/* The module is kept: its code may have threads, and the process ends with the fit. */
static void
probe_with(AgCudaInit init, AgGpuState *state)
{
	AgCudaTable table;
	AgCudaProbe found;

	memset(&table, 0, sizeof table);
	memset(&found, 0, sizeof found);
	if (!init(AG_CUDA_ABI, &table) || table.abi != AG_CUDA_ABI || table.probe == NULL)
	{
		say(state, "the CUDA module " AG_CUDA_MODULE " belongs to another build of ag_pg",
			"Install the module and the extension from one build.");
		return;
	}
	table.probe(&found);
	state->n_usable = found.n_usable;
	if (found.n_usable == 0)
	{
		found.reason[sizeof found.reason - 1] = '\0';
		found.cure[sizeof found.cure - 1] = '\0';
		say(state, found.reason, found.cure);
	}
}

void
ag_gpu_probe(AgGpuState *state)
{
	char path[PATH_MAX];
	void *module;
	AgCudaInit init = NULL;

	memset(state, 0, sizeof *state);
	if (!module_path(path, sizeof path))
	{
		say(state, "the folder of the program ag_trainer could not be found", "");
		return;
	}
	if (access(path, F_OK) != 0)
	{
		say(state, "the CUDA module " AG_CUDA_MODULE " is not installed",
			"Build ag_pg on a machine with the CUDA toolkit (nvcc) and install it again, or set "
			"\"num_gpus\" to 0.");
		return;
	}
	module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (module != NULL)
	{
		void *symbol = dlsym(module, AG_CUDA_INIT);

		memcpy(&init, &symbol, sizeof init);
	}
	if (init == NULL)
	{
		const char *why = dlerror();

		snprintf(state->reason, sizeof state->reason, "the CUDA module could not be loaded: %s",
				 why != NULL ? why : "no reason given");
		snprintf(state->cure, sizeof state->cure,
				 "Install ag_pg again, built for this machine, or set \"num_gpus\" to 0.");
		return;
	}
	probe_with(init, state);
}
