/*
 * module.c - what the server calls when it loads the library.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"

#include "pg/job.h"
#include "pg/plan_note.h"
#include "pg/settings.h"
#include "pg/share.h"
#include "pg/stats.h"

PG_MODULE_MAGIC;

void _PG_init(void);

void
_PG_init(void)
{
	ag_settings_define();
	ag_stats_init();
	ag_plan_note_init();
	ag_share_init();
	if (process_shared_preload_libraries_in_progress)
		ag_job_launcher_register();
}
