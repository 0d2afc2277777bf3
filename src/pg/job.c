/*
 * job.c - what all that deals with jobs needs: their locks, waking a worker, the settings that go along. See job.h.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "commands/async.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "storage/lock.h"
#include "utils/guc.h"

#include "pg/compat.h"
#include "pg/job.h"
#include "pg/settings.h"

/* objsubid of our locks: SQL's advisory locks have 1 or 2 there */
#define JOB_LOCK_KEY 0x4149
#define QUEUE_LOCK_KEY 0x414a
#define SLOT_LOCK_KEY 0x414b

char *
ag_job_home(void)
{
	return psprintf(UINT64_FORMAT "/%u/%u", GetSystemIdentifier(), MyDatabaseId, ag_timeline());
}

/* ---- locks ---- */

static void
job_tag(LOCKTAG *tag, int64 id)
{
	SET_LOCKTAG_ADVISORY(*tag, MyDatabaseId, (uint32) ((uint64) id >> 32), (uint32) id,
						 JOB_LOCK_KEY);
}

void
ag_job_lock(int64 id)
{
	LOCKTAG tag;

	job_tag(&tag, id);
	(void) LockAcquire(&tag, ExclusiveLock, true, false);
}

void
ag_job_unlock(int64 id)
{
	LOCKTAG tag;

	job_tag(&tag, id);
	(void) LockRelease(&tag, ExclusiveLock, true);
}

bool
ag_job_is_locked(int64 id)
{
	LOCKTAG tag;

	job_tag(&tag, id);
	if (LockAcquire(&tag, ShareLock, true, true) == LOCKACQUIRE_NOT_AVAIL)
		return true;
	(void) LockRelease(&tag, ShareLock, true);
	return false;
}

int
ag_job_pid(int64 id)
{
	LockData *locks = GetLockStatusData();
	LOCKTAG tag;

	job_tag(&tag, id);
	for (int i = 0; i < locks->nelements; i++)
	{
		const LockInstanceData *lock = &locks->locks[i];

		if (memcmp(&lock->locktag, &tag, sizeof tag) == 0 &&
			(lock->holdMask & LOCKBIT_ON(ExclusiveLock)) != 0)
			return lock->pid;
	}
	return 0;
}

bool
ag_job_queue_try(void)
{
	LOCKTAG tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, 0, 0, QUEUE_LOCK_KEY);
	return LockAcquire(&tag, ExclusiveLock, true, true) != LOCKACQUIRE_NOT_AVAIL;
}

void
ag_job_queue_leave(void)
{
	LOCKTAG tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, 0, 0, QUEUE_LOCK_KEY);
	(void) LockRelease(&tag, ExclusiveLock, true);
}

/* Of the whole cluster: database 0. */
int
ag_job_slot_try(void)
{
	LOCKTAG tag;

	for (int slot = 0; slot < ag_setting_max_jobs; slot++)
	{
		SET_LOCKTAG_ADVISORY(tag, InvalidOid, (uint32) slot, 0, SLOT_LOCK_KEY);
		if (LockAcquire(&tag, ExclusiveLock, true, true) != LOCKACQUIRE_NOT_AVAIL)
			return slot;
	}
	return -1;
}

void
ag_job_slot_leave(int slot)
{
	LOCKTAG tag;

	SET_LOCKTAG_ADVISORY(tag, InvalidOid, (uint32) slot, 0, SLOT_LOCK_KEY);
	(void) LockRelease(&tag, ExclusiveLock, true);
}

/* ---- workers ---- */

bool
ag_job_wake(Oid database)
{
	BackgroundWorker worker = {0};

	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	worker.bgw_main_arg = ObjectIdGetDatum(database);
	strlcpy(worker.bgw_library_name, "ag_pg", sizeof worker.bgw_library_name);
	strlcpy(worker.bgw_function_name, AG_JOB_WORKER_FUNCTION, sizeof worker.bgw_function_name);
	strlcpy(worker.bgw_type, AG_JOB_WORKER_TYPE, sizeof worker.bgw_type);
	snprintf(worker.bgw_name, sizeof worker.bgw_name, "ag_pg job worker for database %u", database);
	return RegisterDynamicBackgroundWorker(&worker, NULL);
}

void
ag_job_notify(int64 id)
{
	Async_Notify(AG_JOB_CHANNEL, psprintf(INT64_FORMAT, id));
}

/* ---- settings ---- */

/* What may change which rows a query gives, or what the fit makes of them. */
static const char *const kept_settings[] = {
	"search_path",
	"TimeZone",
	"DateStyle",
	"IntervalStyle",
	"row_security",
	"extra_float_digits",
	"lc_numeric",
	"lc_monetary",
	"lc_time",
	"bytea_output",
	"xmloption",
	"default_text_search_config",
	"ag_pg.gpu_fallback",
	"ag_pg.default_time_limit",
};

char *
ag_job_settings_text(void)
{
	StringInfoData text;

	initStringInfo(&text);
	for (size_t i = 0; i < lengthof(kept_settings); i++)
	{
		const char *value = GetConfigOption(kept_settings[i], true, false);

		if (value != NULL && strchr(value, '\n') == NULL)
			appendStringInfo(&text, "%s\n%s\n", kept_settings[i], value);
	}
	return text.data;
}

static bool
is_kept(const char *name)
{
	for (size_t i = 0; i < lengthof(kept_settings); i++)
		if (strcmp(name, kept_settings[i]) == 0)
			return true;
	return false;
}

void
ag_job_settings_apply(char *text)
{
	while (*text != '\0')
	{
		char *name = text;
		char *value = strchr(name, '\n');
		char *end = value != NULL ? strchr(value + 1, '\n') : NULL;

		if (end == NULL)
			elog(ERROR, "malformed settings of a job");
		*value++ = '\0';
		*end = '\0';
		if (is_kept(name))
			(void) set_config_option(name, value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SET, true,
									 0, false);
		text = end + 1;
	}
}
