/*
 * settings.c - see settings.h. What bounds a resource of the whole cluster is for superusers to set (PGC_SUSET).
 */
#include "postgres.h"

#include "utils/guc.h"
#include "utils/varlena.h"

#include "engine/search/options.h"
#include "pg/compat.h"
#include "pg/errors.h"
#include "pg/machine.h"
#include "pg/settings.h"

int ag_setting_num_cpus = 0;
int ag_setting_num_gpus = -1;
int ag_setting_memory_limit_mb = 0;
double ag_setting_gpu_memory_fraction = 0.9;
int ag_setting_gpu_fallback = AG_GPU_FALLBACK_WARN;
int ag_setting_max_fits = 8;
int ag_setting_max_jobs = 4;
bool ag_setting_notify = false;
bool ag_setting_log_fits = false;
bool ag_setting_sandbox = true;
int ag_setting_job_retention_min = 30 * 24 * 60;
char *ag_setting_default_presets = NULL;
int ag_setting_default_time_limit_s = 300;
int ag_setting_model_cache_kb = 256 * 1024;
int ag_setting_shared_model_cache_kb = 256 * 1024;

static const struct config_enum_entry gpu_fallbacks[] = {
	{"warn", AG_GPU_FALLBACK_WARN, false},
	{"error", AG_GPU_FALLBACK_ERROR, false},
	{"wait", AG_GPU_FALLBACK_WAIT, false},
	{NULL, 0, false},
};

/* A mistake is told when it is made, not at the next fit. */
static bool
check_default_presets(char **value, void **extra, GucSource source)
{
	List *names;
	ListCell *cell;

	if (!SplitIdentifierString(pstrdup(*value), ',', &names))
	{
		GUC_check_errdetail("It takes names of presets with commas between.");
		return false;
	}
	foreach (cell, names)
	{
		AgError err;

		ag_error_init(&err);
		if (ag_preset_check(lfirst(cell), &err) == AG_OK)
			continue;
		GUC_check_errmsg("setting \"ag_pg.default_presets\": %s",
						 ag_message_from_utf8(err.message));
		if (err.hint[0] != '\0')
			GUC_check_errhint("%s", ag_message_from_utf8(err.hint));
		return false;
	}
	return true;
}

List *
ag_settings_presets(void)
{
	List *names;

	if (!SplitIdentifierString(pstrdup(ag_setting_default_presets), ',', &names))
		return NIL;
	return names;
}

void
ag_settings_define(void)
{
	/* three fifths leave room for shared buffers, sessions and the page cache */
	int64 memory_mb = ag_machine_memory() / (1024 * 1024) * 6 / 10;

	DefineCustomIntVariable("ag_pg.num_cpus", "CPUs that all running fits may use together.",
							"0 means as many as the server may run on.", &ag_setting_num_cpus, 0, 0,
							4096, PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("ag_pg.num_gpus", "GPUs that all running fits may use together.",
							"-1 means all there are.", &ag_setting_num_gpus, -1, -1, 1024,
							PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable(
		"ag_pg.memory_limit", "Memory that all running fits may use together.",
		"The default is 60 % of what the machine, or the server's control group, has.",
		&ag_setting_memory_limit_mb, (int) Max(64, Min(memory_mb, INT_MAX)), 64, INT_MAX, PGC_SUSET,
		GUC_UNIT_MB, NULL, NULL, NULL);
	DefineCustomRealVariable(
		"ag_pg.gpu_memory_fraction", "Share of a GPU's memory that fits may use.", NULL,
		&ag_setting_gpu_memory_fraction, 0.9, 0.05, 1.0, PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomEnumVariable("ag_pg.gpu_fallback",
							 "What a fit does when a GPU it asks for can't be had.",
							 "warn: says why and fits on the CPU; error: fails; wait: waits for "
							 "one within its time limit.",
							 &ag_setting_gpu_fallback, AG_GPU_FALLBACK_WARN, gpu_fallbacks,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("ag_pg.max_fits", "Fits that may train at the same time.",
							"The others wait for their turn within their time limits.",
							&ag_setting_max_fits, 8, 1, 1024, PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("ag_pg.max_jobs", "Jobs that may run at the same time.",
							"The others stay queued. Each takes a background worker.",
							&ag_setting_max_jobs, 4, 1, 1024, PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable(
		"ag_pg.notify", "Lets ag_fit too leave a row in ag_jobs and NOTIFY ag_job its id.",
		"Both happen when its transaction commits, which then can't be prepared.",
		&ag_setting_notify, false, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("ag_pg.log_fits",
							 "Logs every fit that is stored: its rows, time and score.",
							 "Those that fail are in the log as errors anyhow.",
							 &ag_setting_log_fits, false, PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable(
		"ag_pg.sandbox", "Confines the program that trains, by the kernel's seccomp.",
		"It then can't open files, connect, execute, or touch other processes.",
		&ag_setting_sandbox, true, PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("ag_pg.job_retention", "How long jobs that have ended stay in ag_jobs.",
							"-1 means for ever.", &ag_setting_job_retention_min, 30 * 24 * 60, -1,
							INT_MAX, PGC_SUSET, GUC_UNIT_MIN, NULL, NULL, NULL);
	DefineCustomStringVariable(
		"ag_pg.default_presets", "Presets of a fit that doesn't set \"presets\" itself.",
		"Names with commas between, the later over the earlier; none means medium.",
		&ag_setting_default_presets, "", PGC_USERSET, GUC_LIST_INPUT, check_default_presets, NULL,
		NULL);
	DefineCustomIntVariable("ag_pg.default_time_limit",
							"Time limit of a fit that doesn't set \"time_limit\" itself.", NULL,
							&ag_setting_default_time_limit_s, 300, 1, INT_MAX / 1000, PGC_USERSET,
							GUC_UNIT_S, NULL, NULL, NULL);
	DefineCustomIntVariable("ag_pg.model_cache_size",
							"Memory that a session's decoded models may take.", NULL,
							&ag_setting_model_cache_kb, 256 * 1024, 0, MAX_KILOBYTES, PGC_USERSET,
							GUC_UNIT_KB, NULL, NULL, NULL);
	DefineCustomIntVariable(
		"ag_pg.shared_model_cache_size",
		"Shared memory for decoded models that all sessions use together.",
		"Before PostgreSQL 17 it needs ag_pg in shared_preload_libraries. 0 shares none.",
		&ag_setting_shared_model_cache_kb, 256 * 1024, 0, MAX_KILOBYTES, PGC_SIGHUP, GUC_UNIT_KB,
		NULL, NULL, NULL);
	ag_reserve_settings("ag_pg");
}

const char *
ag_settings_gpu_fallback_name(void)
{
	return gpu_fallbacks[ag_setting_gpu_fallback].name;
}

int
ag_settings_cpus(void)
{
	int cpus = ag_machine_cpus();

	return ag_setting_num_cpus > 0 ? Min(ag_setting_num_cpus, cpus) : cpus;
}

int64
ag_settings_memory_bytes(void)
{
	return (int64) ag_setting_memory_limit_mb * 1024 * 1024;
}
