/*
 * settings.h - the settings ag_pg.*.
 */
#ifndef AG_SETTINGS_H
#define AG_SETTINGS_H

#include "postgres.h"

#include "nodes/pg_list.h"

typedef enum AgGpuFallback
{
	AG_GPU_FALLBACK_WARN,
	AG_GPU_FALLBACK_ERROR,
	AG_GPU_FALLBACK_WAIT
} AgGpuFallback;

extern int ag_setting_num_cpus;        /* 0: all there are */
extern int ag_setting_num_gpus;        /* -1: all there are */
extern int ag_setting_memory_limit_mb; /* all fits together */
extern double ag_setting_gpu_memory_fraction;
extern int ag_setting_gpu_fallback; /* AgGpuFallback */
extern int ag_setting_max_fits;
extern int ag_setting_max_jobs;
extern bool ag_setting_notify;
extern bool ag_setting_log_fits;
extern bool ag_setting_sandbox;          /* of a fit in a session too */
extern int ag_setting_job_retention_min; /* -1: for ever */
extern char *ag_setting_default_presets; /* names with commas between; "": none */
extern int ag_setting_default_time_limit_s;
extern int ag_setting_model_cache_kb;        /* a session */
extern int ag_setting_shared_model_cache_kb; /* all sessions together; 0: nothing is shared */

/* Defines them all; once a process. */
extern void ag_settings_define(void);

/* "warn", "error" or "wait". */
extern const char *ag_settings_gpu_fallback_name(void);

/* The names in ag_pg.default_presets, char * each: NIL when there are none. */
extern List *ag_settings_presets(void);

/* CPUs that fits may use, all together: the setting, at most what the process may run on. */
extern int ag_settings_cpus(void);

/* ag_pg.memory_limit in bytes. */
extern int64 ag_settings_memory_bytes(void);

#endif
