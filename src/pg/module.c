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

/* Of two builds in one process the second would find the first one's settings there: a session has one for its life. */
static void
refuse_second_build(void)
{
	static const char here = 0;
	void **loaded = find_rendezvous_variable("ag_pg");

	if (*loaded != NULL && *loaded != &here)
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("the library ag_pg was replaced after this session loaded it"),
						errhint("Connect again.")));
	*loaded = unconstify(char *, &here);
}

void
_PG_init(void)
{
	refuse_second_build();
	ag_settings_define();
	ag_stats_init();
	ag_plan_note_init();
	ag_share_init();
	if (process_shared_preload_libraries_in_progress)
		ag_job_launcher_register();
}
