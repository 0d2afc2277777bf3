/*
 * diagnosis.c - see diagnosis.h.
 */
#include "postgres.h"

#include "lib/stringinfo.h"

#include "pg/diagnosis.h"

#define RESTART "restart PostgreSQL"

/* The CUDA driver's answers that have a cure of their own (cuda.h's CUresult). */
typedef struct AgDriverAnswer
{
	int code;
	const char *brief, *cure;
} AgDriverAnswer;

static const AgDriverAnswer answers[] = {
	{2, "the driver finds no memory", "See in nvidia-smi and free which processes hold it."},
	{34, "libcuda.so.1 is the toolkit's link-time copy, not the driver's library",
	 "Take the folder \"stubs\" out of LD_LIBRARY_PATH and restart PostgreSQL."},
	{46, "the GPUs are busy, or in exclusive or prohibited mode",
	 "End the processes that hold them, or run nvidia-smi -c DEFAULT as root."},
	{101, "CUDA_VISIBLE_DEVICES names a GPU that isn't there",
	 "Correct the variable in the environment of PostgreSQL's service and restart PostgreSQL."},
	{304, "the operating system refuses access to the GPU",
	 "Let the operating system user of PostgreSQL read and write /dev/nvidia*; inside a "
	 "container, start it with --gpus all."},
	{802, "the GPUs' fabric isn't ready",
	 "Start nvidia-fabricmanager, of the driver's own version."},
	{803, "the driver's library and its kernel module are of different versions",
	 "Reboot, or reload the nvidia kernel modules, after an update of the driver."},
	{804, "the driver's compatibility package doesn't serve this GPU",
	 "Take the folder \"compat\" out of LD_LIBRARY_PATH, update the driver itself, and restart "
	 "PostgreSQL."},
};

void
ag_diagnosis_add(List **list, AgVerdict verdict, const char *check, const char *brief,
				 const char *paths, const char *cure)
{
	AgDiagnosis *one = palloc(sizeof(AgDiagnosis));

	one->verdict = verdict;
	one->check = check;
	one->brief = brief;
	one->paths = paths != NULL && paths[0] != '\0' ? paths : NULL;
	one->cure = cure != NULL && cure[0] != '\0' ? cure : NULL;
	*list = lappend(*list, one);
}

const char *
ag_diagnosis_cuda(int64 version)
{
	if (version <= 0 || version > 1000000)
		return NULL;
	return psprintf("%d.%d", (int) version / 1000, (int) version % 1000 / 10);
}

const char *
ag_diagnosis_variable(const AgProbe *probe, const char *name)
{
	ListCell *cell;

	foreach (cell, probe->facts)
	{
		const AgFact *fact = lfirst(cell);

		if (strcmp(fact->key, "env") == 0 && strcmp(fact->fields[0], name) == 0)
			return fact->fields[1];
	}
	return NULL;
}

/* The oldest driver for Linux that serves a toolkit of that major version (NVIDIA's release notes). */
static const char *
least_driver(int64 runtime)
{
	switch (runtime / 1000)
	{
		case 11:
			return "450.80.02";
		case 12:
			return "525.60.13";
		case 13:
			return "580.65.06";
		default:
			return "of the toolkit's age";
	}
}

/* Some sign of a GPU or its driver: then what keeps it from being used is a fault. */
static bool
has_signs(const AgProbe *probe)
{
	return ag_fact_number(ag_probe_fact(probe, "pci"), 0, 0) > 0 ||
		   ag_probe_fact(probe, "kernel") != NULL || ag_probe_fact(probe, "node") != NULL ||
		   ag_probe_fact(probe, "wsl") != NULL || ag_probe_is(probe, "libcuda", 0, "loaded") ||
		   ag_probe_is(probe, "libcuda", 0, "unloadable") ||
		   ag_probe_is(probe, "nvml", 0, "loaded");
}

/* ---- the program ---- */

/* False: nothing more can be known. */
static bool
check_program(const AgProbe *probe, List **list)
{
	const char *build = ag_probe_text(probe, "build", 0);

	if (!probe->started)
	{
		ag_diagnosis_add(list, AG_VERDICT_FAIL, "ag_trainer", "the program ag_trainer can't be run",
						 probe->trouble, probe->cure);
		return false;
	}
	if (build != NULL && strcmp(build, AG_BUILD_ID) == 0)
		ag_diagnosis_add(list, AG_VERDICT_OK, "ag_trainer", psprintf("build %s", build), NULL,
						 NULL);
	else if (build != NULL)
		ag_diagnosis_add(list, AG_VERDICT_FAIL, "ag_trainer",
						 psprintf("the program ag_trainer is of build %s, the library of build %s",
								  build, AG_BUILD_ID),
						 NULL, "Install both from one package, then connect again.");
	else if (probe->trouble == NULL)
		ag_diagnosis_add(list, AG_VERDICT_FAIL, "ag_trainer",
						 "the program ag_trainer doesn't say of which build it is", NULL,
						 "Install library and ag_trainer from one package.");
	return true;
}

/* ---- the driver ---- */

static void
check_nodes(const AgProbe *probe, List **list)
{
	StringInfoData good, bad;
	bool refused = false;
	ListCell *cell;

	initStringInfo(&good);
	initStringInfo(&bad);
	foreach (cell, probe->facts)
	{
		const AgFact *fact = lfirst(cell);
		bool is_good = fact->fields[1][0] == '\0';

		if (strcmp(fact->key, "node") != 0)
			continue;
		if (is_good)
			appendStringInfo(&good, "%s%s", good.len > 0 ? ", " : "", fact->fields[0]);
		else
			appendStringInfo(&bad, "%s%s: %s", bad.len > 0 ? "; " : "", fact->fields[0],
							 fact->fields[1]);
		refused = refused || (!is_good && strstr(fact->fields[1], "No such file") == NULL);
	}
	if (refused)
		ag_diagnosis_add(
			list, AG_VERDICT_FAIL, "device_nodes",
			"the operating system user of PostgreSQL may not use the GPUs' device nodes", bad.data,
			"Let that user read and write /dev/nvidia* (or /dev/dxg), often by adding it to the "
			"group \"video\" or "
			"\"render\", and restart PostgreSQL; for a systemd service see its DeviceAllow.");
	else if (bad.len > 0)
		ag_diagnosis_add(
			list, AG_VERDICT_WARN, "device_nodes", "device nodes are missing", bad.data,
			"Run nvidia-modprobe -u -c=0 as root (in a container: start it with --gpus all).");
	else if (good.len > 0)
		ag_diagnosis_add(list, AG_VERDICT_OK, "device_nodes",
						 "the GPUs' device nodes can be read and written", good.data, NULL);
}

/* The loader's own words, and where it looked. */
static char *
loader_story(const AgProbe *probe)
{
	StringInfoData text;
	const char *library_path = ag_diagnosis_variable(probe, "LD_LIBRARY_PATH");
	const char *separator = "tried: ";
	ListCell *cell;

	initStringInfo(&text);
	appendStringInfo(&text, "%s; ", ag_probe_text(probe, "libcuda", 2));
	foreach (cell, probe->facts)
	{
		const AgFact *fact = lfirst(cell);

		if (strcmp(fact->key, "tried") != 0)
			continue;
		appendStringInfo(&text, "%s%s%s", separator, fact->fields[0],
						 fact->fields[1][0] == '\0' ? " (there)" : "");
		separator = ", ";
	}
	appendStringInfo(&text, "%sthe loader's cache (ldconfig -p)", separator);
	if (library_path != NULL)
		appendStringInfo(&text, "; LD_LIBRARY_PATH is \"%s\"", library_path);
	return text.data;
}

static const char *
missing_cure(const AgProbe *probe)
{
	const char *elsewhere = ag_probe_text(probe, "elsewhere", 0);

	if (elsewhere != NULL)
		return psprintf("It lies in %s, where the loader doesn't look: add that folder to a file "
						"of /etc/ld.so.conf.d, "
						"run ldconfig, and " RESTART ".",
						elsewhere);
	if (ag_probe_fact(probe, "wsl") != NULL)
		return "On WSL2 the driver is Windows' own and its library comes in /usr/lib/wsl/lib: "
			   "update the driver in "
			   "Windows, run wsl --shutdown, add /usr/lib/wsl/lib to a file of /etc/ld.so.conf.d, "
			   "run ldconfig, "
			   "and " RESTART ". Install no Linux driver inside WSL2.";
	if (ag_probe_fact(probe, "kernel") != NULL)
		return "The kernel module is loaded, its library is missing: install libcuda1 of the same "
			   "version (in a "
			   "container: start it with --gpus all), and " RESTART ".";
	if (has_signs(probe))
		return "Install the NVIDIA driver (in a container: start it with --gpus all), and " RESTART
			   ".";
	return "Fits run on the CPU. If there should be a GPU: see that lspci lists it, and install "
		   "the NVIDIA driver (in "
		   "a container: start it with --gpus all).";
}

/* False: without the library, nothing more of the driver can be known. */
static bool
check_libcuda(const AgProbe *probe, List **list)
{
	const char *path = ag_probe_text(probe, "libcuda", 1);

	if (ag_probe_is(probe, "libcuda", 0, "loaded"))
	{
		if (strstr(path, "/stubs/") != NULL ||
			ag_fact_number(ag_probe_fact(probe, "init"), 0, 0) == 34)
			ag_diagnosis_add(list, AG_VERDICT_FAIL, "libcuda", answers[1].brief, path,
							 answers[1].cure);
		else
			ag_diagnosis_add(list, AG_VERDICT_OK, "libcuda", "libcuda.so.1 can be loaded", path,
							 NULL);
		return true;
	}
	if (ag_probe_is(probe, "libcuda", 0, "missing"))
		ag_diagnosis_add(list, has_signs(probe) ? AG_VERDICT_FAIL : AG_VERDICT_WARN, "libcuda",
						 has_signs(probe)
							 ? "the NVIDIA driver's library libcuda.so.1 isn't found"
							 : "there is no NVIDIA driver (libcuda.so.1), and no sign of a GPU",
						 loader_story(probe), missing_cure(probe));
	else if (ag_probe_is(probe, "libcuda", 0, "unloadable"))
		ag_diagnosis_add(list, AG_VERDICT_FAIL, "libcuda",
						 "the NVIDIA driver's library libcuda.so.1 is there but can't be loaded",
						 loader_story(probe),
						 "Take the folder with the broken file out of LD_LIBRARY_PATH or remove "
						 "the file, or install the driver's "
						 "library again (Debian: libcuda1), and " RESTART ".");
	return false;
}

static void
check_no_device(const AgProbe *probe, List **list)
{
	const char *visible = ag_diagnosis_variable(probe, "CUDA_VISIBLE_DEVICES");

	if (visible != NULL)
		ag_diagnosis_add(
			list, AG_VERDICT_FAIL, "visible_devices",
			psprintf("CUDA_VISIBLE_DEVICES is \"%s\", which shows no GPU to PostgreSQL", visible),
			NULL,
			"The variable is the one that PostgreSQL was started with: change it in the service's "
			"environment and " RESTART ".");
	else
		ag_diagnosis_add(
			list, AG_VERDICT_FAIL, "driver", "the NVIDIA driver reports no GPU", NULL,
			"See whether nvidia-smi lists one for the operating system user of PostgreSQL (in a "
			"container: start it with --gpus all); after an update of the driver, reboot.");
}

/* False: the driver doesn't work. */
static bool
check_driver(const AgProbe *probe, List **list)
{
	const AgFact *init = ag_probe_fact(probe, "init");
	const AgFact *count = ag_probe_fact(probe, "count");
	const char *cuda = ag_diagnosis_cuda(ag_fact_number(ag_probe_fact(probe, "driver"), 0, 0));
	const char *version = ag_probe_text(probe, "nvml", 1);
	int64 code = ag_fact_number(init, 0, 0);

	if (code == 0)
		code = ag_fact_number(count, 0, 0);
	if (init == NULL || code == 34)
		return false; /* told already */
	if (code == 100 || (code == 0 && count != NULL && ag_fact_number(count, 1, 0) <= 0))
	{
		check_no_device(probe, list);
		return false;
	}
	for (int i = 0; i < lengthof(answers); i++)
		if (answers[i].code == code)
		{
			ag_diagnosis_add(list, AG_VERDICT_FAIL, "driver", answers[i].brief, NULL,
							 answers[i].cure);
			return false;
		}
	if (code != 0)
	{
		ag_diagnosis_add(
			list, AG_VERDICT_FAIL, "driver",
			psprintf("the NVIDIA driver can't be started (error %d of CUDA)", (int) code), NULL,
			"See whether nvidia-smi works for the operating system user of PostgreSQL, and "
			"what the kernel's log (dmesg) says of NVRM.");
		return false;
	}
	ag_diagnosis_add(list, AG_VERDICT_OK, "driver",
					 psprintf("NVIDIA driver %s, which serves CUDA %s",
							  version != NULL && version[0] != '\0' ? version : "(version unknown)",
							  cuda != NULL ? cuda : "(version unknown)"),
					 NULL, NULL);
	return true;
}

/* ---- the module ---- */

/* False: no kernel of ours can run. */
static bool
check_module(const AgProbe *probe, List **list)
{
	const char *state = ag_probe_text(probe, "module", 0);
	const AgFact *runtime = ag_probe_fact(probe, "runtime");
	const char *path = ag_probe_text(probe, "module", 1);
	const char *cuda = ag_diagnosis_cuda(ag_fact_number(runtime, 0, 0));

	if (state == NULL)
		return false;
	if (strcmp(state, "open") == 0)
		ag_diagnosis_add(list, AG_VERDICT_OK, "cuda_module",
						 psprintf("built with CUDA %s, has code for %s",
								  cuda != NULL ? cuda : "(unknown)",
								  runtime != NULL ? runtime->fields[1] : "(unknown)"),
						 path, NULL);
	else if (strcmp(state, "absent") == 0)
		ag_diagnosis_add(list, has_signs(probe) ? AG_VERDICT_FAIL : AG_VERDICT_WARN, "cuda_module",
						 "the CUDA module ag_pg_cuda.so is not installed", path,
						 "Build ag_pg on a machine with the CUDA toolkit (nvcc) and install it "
						 "again; without, fits run "
						 "on the CPU.");
	else if (strcmp(state, "foreign") == 0)
		ag_diagnosis_add(list, AG_VERDICT_FAIL, "cuda_module",
						 "the CUDA module ag_pg_cuda.so belongs to another build of ag_pg", path,
						 "Install the module and the extension from one build.");
	else
		ag_diagnosis_add(list, AG_VERDICT_FAIL, "cuda_module",
						 "the CUDA module ag_pg_cuda.so can't be loaded",
						 psprintf("%s: %s", path, ag_probe_text(probe, "module", 2)),
						 "Install ag_pg again, built for this machine.");
	return strcmp(state, "open") == 0;
}

/* The driver's major version rules: within one, every newer toolkit works with every older driver. */
static bool
check_versions(const AgProbe *probe, List **list)
{
	int64 driver = ag_fact_number(ag_probe_fact(probe, "driver"), 0, 0);
	int64 runtime = ag_fact_number(ag_probe_fact(probe, "runtime"), 0, 0);
	const char *version = ag_probe_text(probe, "nvml", 1);

	if (driver <= 0 || runtime <= 0)
		return true;
	if (driver / 1000 >= runtime / 1000)
	{
		ag_diagnosis_add(list, AG_VERDICT_OK, "driver_version",
						 psprintf("the driver serves CUDA %s, the module was built with CUDA %s",
								  ag_diagnosis_cuda(driver), ag_diagnosis_cuda(runtime)),
						 NULL, NULL);
		return true;
	}
	ag_diagnosis_add(
		list, AG_VERDICT_FAIL, "driver_version",
		psprintf("the NVIDIA driver%s%s serves CUDA %s, but the module was built with CUDA %s",
				 version != NULL && version[0] != '\0' ? " " : "", version != NULL ? version : "",
				 ag_diagnosis_cuda(driver), ag_diagnosis_cuda(runtime)),
		NULL,
		psprintf("Update the driver to %s or newer, or build ag_pg with a CUDA %d toolkit.",
				 least_driver(runtime), (int) (driver / 1000)));
	return false;
}

/* All but the single GPUs: nothing here may look at them, for they are explained by this. */
static List *
machine_checks(const AgProbe *probe)
{
	List *list = NIL;
	const char *reason = ag_probe_text(probe, "verdict", 0);
	bool driver_works, module_works, versions_fit;

	if (!check_program(probe, &list))
		return list;
	if (probe->trouble != NULL)
		ag_diagnosis_add(&list, AG_VERDICT_FAIL, "probe", probe->trouble, NULL, probe->cure);
	if (ag_probe_text(probe, "build", 0) == NULL)
		return list;
	check_nodes(probe, &list);
	driver_works = check_libcuda(probe, &list) && check_driver(probe, &list);
	module_works = check_module(probe, &list);
	versions_fit = check_versions(probe, &list);
	if (driver_works && module_works && versions_fit && reason != NULL && reason[0] != '\0')
		ag_diagnosis_add(&list, AG_VERDICT_FAIL, "kernels", reason, NULL,
						 ag_probe_text(probe, "verdict", 1));
	return list;
}

bool
ag_diagnosis_root(const AgProbe *probe, AgDiagnosis *root)
{
	List *list = machine_checks(probe);
	ListCell *cell;

	for (int verdict = AG_VERDICT_FAIL; verdict < AG_VERDICT_OK; verdict++)
		foreach (cell, list)
		{
			const AgDiagnosis *one = lfirst(cell);

			if ((int) one->verdict != verdict)
				continue;
			*root = *one;
			return true;
		}
	return false;
}

/* ---- the GPUs ---- */

static void
check_gpu(List **list, const AgGpu *gpu)
{
	char *check = psprintf("gpu %d", gpu->index);
	double total = (double) gpu->total_bytes / 1e9, left = (double) gpu->free_bytes / 1e9;

	if (!gpu->usable)
		ag_diagnosis_add(list, AG_VERDICT_FAIL, check,
						 psprintf("%s can't be used: %s", gpu->name, gpu->reason), NULL, gpu->cure);
	else if (gpu->free_bytes >= 0 && left < total / 10)
		ag_diagnosis_add(
			list, AG_VERDICT_WARN, check,
			psprintf("%s: only %.1f of %.1f GB of memory are free", gpu->name, left, total), NULL,
			"See in ag_gpus() or nvidia-smi which processes hold the memory.");
	else
		ag_diagnosis_add(list, AG_VERDICT_OK, check,
						 psprintf("%s, compute capability %d.%d, %.1f of %.1f GB of memory free",
								  gpu->name, gpu->major, gpu->minor, left, total),
						 NULL, NULL);
}

static void
check_modes(const AgProbe *probe, List **list)
{
	ListCell *cell;

	foreach (cell, probe->facts)
	{
		const AgFact *fact = lfirst(cell);
		int64 mode = ag_fact_number(fact, 6, 0);

		if (strcmp(fact->key, "cuda") == 0 && (mode == 2 || mode == 3 || mode == 1))
			ag_diagnosis_add(
				list, AG_VERDICT_WARN, "compute_mode",
				psprintf("GPU %s is in mode %s: %s", fact->fields[0],
						 mode == 2 ? "prohibited" : "exclusive",
						 mode == 2 ? "nobody may compute on it"
								   : "one fit at a time can use it, and nobody beside it"),
				NULL, psprintf("Run nvidia-smi -i %s -c DEFAULT as root.", fact->fields[0]));
	}
}

List *
ag_diagnosis_gpus(const AgProbe *probe)
{
	List *list = machine_checks(probe);
	const char *visible = ag_diagnosis_variable(probe, "CUDA_VISIBLE_DEVICES");
	int n_hidden = 0;
	AgDiagnosis root;
	ListCell *cell;
	bool has_root = ag_diagnosis_root(probe, &root) && root.verdict == AG_VERDICT_FAIL;

	foreach (cell, ag_probe_gpus(probe))
	{
		const AgGpu *gpu = lfirst(cell);

		/* what keeps all of them from being used is told once */
		if (gpu->index < 0)
			n_hidden++;
		else if (gpu->usable || !has_root || ag_probe_fact(probe, "run") != NULL)
			check_gpu(&list, gpu);
	}
	check_modes(probe, &list);
	if (!has_root && n_hidden > 0 && visible != NULL)
		ag_diagnosis_add(
			&list, AG_VERDICT_WARN, "visible_devices",
			psprintf("CUDA_VISIBLE_DEVICES is \"%s\" and hides %d of the machine's GPUs", visible,
					 n_hidden),
			NULL,
			"If that isn't meant: change it in the environment of PostgreSQL's service and " RESTART
			".");
	if (ag_probe_is(probe, "libcuda", 0, "loaded") && ag_probe_fact(probe, "nvml") != NULL &&
		!ag_probe_is(probe, "nvml", 0, "loaded"))
		ag_diagnosis_add(
			&list, AG_VERDICT_WARN, "nvml",
			ag_probe_is(probe, "nvml", 0, "missing")
				? "libnvidia-ml.so.1 isn't found, so the processes on the GPUs aren't known"
				: "NVML doesn't work, so the processes on the GPUs aren't known",
			NULL, "Install libnvidia-ml1 of the driver's version; fits don't need it.");
	return list;
}
