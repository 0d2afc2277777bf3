/*
 * job.h - asynchronous fits: shared by the files job*.c.
 *
 * Two tables. ag_job is the record that users see (through the view ag_jobs); it belongs to the extension's owner, as all the
 * catalogue does, and what it says decides nothing but what is shown. ag_job_order holds what is to be run, and as whom: a row a
 * job that hasn't ended. Whoever could write it could run queries as anybody, so it belongs to a superuser, the extension's owner may be an ordinary
 * role, and it is never dumped: a restored database has no job to start. Nor has a copied one: an order names its home.
 *
 * A job holds a lock on its id from before it is seen to run until after it is seen to have ended. So a running job
 * whose lock is free has died, with its worker or its server.
 */
#ifndef AG_JOB_H
#define AG_JOB_H

#include "postgres.h"

#include "utils/jsonb.h"

#define AG_JOB_WORKER_FUNCTION "ag_job_worker_main"
#define AG_JOB_WORKER_TYPE "ag_pg job"
#define AG_JOB_LAUNCHER_FUNCTION "ag_job_launcher_main"
#define AG_JOB_CHANNEL "ag_job"
#define AG_JOB_LOST "the job ended with its worker: that was terminated, or the server stopped"
#define AG_JOB_COPIED                                                                              \
	"the job came with a copy of its database, and is left to where it was submitted; submit it "  \
	"again to have it run here"

/* A row of ag_job_order. Texts in the server's encoding. */
typedef struct AgJobOrder
{
	int64 id;
	Oid role; /* whom it runs as, and whom the session of the submitter belonged to */
	Oid session_role;
	char *role_name;
	char *source; /* to be opened: data with a table's schema put in */
	char *data;   /* as the user gave it */
	char *label;
	Jsonb *options;
	char *settings; /* of the submitter's session: name NEWLINE value NEWLINE ... */
} AgJobOrder;

/* ---- job.c ---- */

/*
 * Where a job of this database may run: the cluster's identity, the database's, and the timeline, for a standby that is promoted, or a backup that
 * is recovered to some time, is another one.
 */
extern char *ag_job_home(void);

/* The lock on a job's id, a session's; and whether somebody holds it. */
extern void ag_job_lock(int64 id);
extern void ag_job_unlock(int64 id);
extern bool ag_job_is_locked(int64 id);

/* The process that holds it; 0: none. */
extern int ag_job_pid(int64 id);

/* The right to be the one worker of this database that waits for a turn; a slot of ag_pg.max_jobs, -1: none is free. */
extern bool ag_job_queue_try(void);
extern void ag_job_queue_leave(void);
extern int ag_job_slot_try(void);
extern void ag_job_slot_leave(int slot);

/* Starts a worker that looks for queued jobs in that database. Never an error; false: no worker was free. */
extern bool ag_job_wake(Oid database);

/* The settings that go along with a job, as text; and put in force again. */
extern char *ag_job_settings_text(void);
extern void ag_job_settings_apply(char *text);

/* NOTIFY ag_job, 'id' when this transaction commits. */
extern void ag_job_notify(int64 id);

/* ---- job_submit.c ---- */

/* With ag_pg.notify on: a fit that a session has just stored leaves a record too, and its id is told at commit. */
struct AgFitCall;
extern void ag_job_record_fit(const struct AgFitCall *call);

/* ---- job_worker.c, job_run.c ---- */

/* Whether SIGINT cancels: from before a job's lock is taken to its end. Not: what came is forgotten. */
extern void ag_job_accept_cancel(bool accept);

/* Runs one job to its end, whatever that is. Outside a transaction; the lock on its id is held. */
extern void ag_job_run(const AgJobOrder *order);

extern PGDLLEXPORT void ag_job_worker_main(Datum arg);
extern PGDLLEXPORT void ag_job_launcher_main(Datum arg);

/* In _PG_init: with the library preloaded, a launcher looks for queued jobs in every database once the server runs. */
extern void ag_job_launcher_register(void);

#endif
