/*
 * gpu.c - the CUDA module, loaded when a GPU was asked for.
 */
#include "trainer/gpu.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
say_cure(AgGpuState *state, const char *cure)
{
	snprintf(state->cure, sizeof state->cure, "%s", cure);
}

static void
say(AgGpuState *state, const char *reason, const char *cure)
{
	snprintf(state->reason, sizeof state->reason, "%s", reason);
	say_cure(state, cure);
}

AgGpuModule
ag_gpu_module_open(AgCudaTable *table, char *path, size_t path_size, char *why, size_t why_size)
{
	AgCudaInit init = NULL;
	void *module, *symbol;
	const char *error;

	memset(table, 0, sizeof *table);
	why[0] = '\0';
	if (!module_path(path, path_size))
	{
		path[0] = '\0';
		return AG_GPU_MODULE_NOWHERE;
	}
	if (access(path, F_OK) != 0)
		return AG_GPU_MODULE_ABSENT;
	module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (module != NULL)
	{
		symbol = dlsym(module, AG_CUDA_INIT);
		memcpy(&init, &symbol, sizeof init);
	}
	if (init == NULL)
	{
		error = dlerror();
		snprintf(why, why_size, "%s", error != NULL ? error : "no reason given");
		return AG_GPU_MODULE_UNLOADABLE;
	}
	if (!init(AG_CUDA_ABI, table) || table->abi != AG_CUDA_ABI || table->probe == NULL)
		return AG_GPU_MODULE_FOREIGN;
	return AG_GPU_MODULE_OPEN;
}

static void
take_device(const AgCudaDevice *from, AgGpuFound *to)
{
	to->device = from->index;
	to->total_bytes = from->total_bytes;
	to->free_bytes = from->free_bytes;
	snprintf(to->name, sizeof to->name, "%.63s", from->name);
}

/* The families that the module names, as bits; unknown words are of another release. */
static uint32_t
families_of(const AgCudaTable *table)
{
	uint32_t bits = 0;

	for (const char *word = table->families; word != NULL && *word != '\0';)
	{
		size_t n = strcspn(word, " ");

		for (int f = 0; f < AG_FAMILY_LAST; f++)
			if (strlen(ag_family((AgFamilyId) f)->key) == n &&
				strncmp(ag_family((AgFamilyId) f)->key, word, n) == 0)
				bits |= UINT32_C(1) << f;
		word += n + strspn(word + n, " ");
	}
	return bits;
}

/*
 * CUDA says that there is no driver whenever its library can't be loaded. One that is there and broken is another matter, and only
 * the loader knows.
 */
static bool
driver_is_broken(AgGpuState *state)
{
	const char *error;
	void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);

	if (library != NULL)
	{
		dlclose(library);
		return false;
	}
	error = dlerror();
	if (error == NULL || strncmp(error, "libcuda.so.1:", sizeof "libcuda.so.1:" - 1) == 0)
		return false;
	snprintf(state->reason, sizeof state->reason,
			 "the NVIDIA driver's library libcuda.so.1 is there but can't be loaded: %.400s",
			 error);
	say_cure(state, "Take the folder with the broken file out of LD_LIBRARY_PATH or remove the "
					"file, or install the driver's library again, and restart PostgreSQL; "
					"ag_doctor() tells more.");
	return true;
}

static void
probe_with(const AgCudaTable *table, AgGpuState *state)
{
	AgCudaProbe found;

	memset(&found, 0, sizeof found);
	table->probe(&found);
	for (int i = 0; i < found.n_devices && i < AG_CUDA_MAX_DEVICES; i++)
		if (found.devices[i].usable)
			take_device(&found.devices[i], &state->gpus[state->n_usable++]);
	state->families = families_of(table);
	if (state->n_usable == 0 && found.driver_version == 0 && driver_is_broken(state))
		return;
	if (state->n_usable == 0)
	{
		found.reason[sizeof found.reason - 1] = '\0';
		found.cure[sizeof found.cure - 1] = '\0';
		say(state, found.reason, found.cure);
	}
}

void
ag_gpu_probe(AgGpuState *state, AgCudaTable *table)
{
	char path[PATH_MAX];
	char why[512];

	memset(state, 0, sizeof *state);
	switch (ag_gpu_module_open(table, path, sizeof path, why, sizeof why))
	{
		case AG_GPU_MODULE_NOWHERE:
			say(state, "the folder of the program ag_trainer could not be found", "");
			return;
		case AG_GPU_MODULE_ABSENT:
			say(state, "the CUDA module " AG_CUDA_MODULE " is not installed",
				"Build ag_pg on a machine with the CUDA toolkit (nvcc) and install it again, or "
				"set "
				"\"num_gpus\" to 0; ag_doctor() tells more.");
			return;
		case AG_GPU_MODULE_UNLOADABLE:
			snprintf(state->reason, sizeof state->reason,
					 "the CUDA module could not be loaded: %.460s", why);
			snprintf(state->cure, sizeof state->cure,
					 "Install ag_pg again, built for this machine, or set \"num_gpus\" to 0; "
					 "ag_doctor() tells more.");
			return;
		case AG_GPU_MODULE_FOREIGN:
			say(state, "the CUDA module " AG_CUDA_MODULE " belongs to another build of ag_pg",
				"Install the module and the extension from one build.");
			return;
		case AG_GPU_MODULE_OPEN:
			probe_with(table, state);
			return;
	}
}
