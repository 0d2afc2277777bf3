/*
 * doctor.c - ag_doctor: what of the environment keeps fits, or GPUs, from working, and what to do about it.
 *
 * Rows come sorted: what fails, what warns, what is well; within each, causes before effects. So the first row is the root cause.
 */
#include "postgres.h"

#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "replication/walsender.h"
#include "storage/dsm_impl.h"
#include "storage/proc.h"
#include "utils/guc.h"

#include "pg/compat.h"
#include "pg/diagnosis.h"
#include "pg/machine.h"
#include "pg/settings.h"
#include "pg/srf.h"
#include "pg/supervisor.h"

#define SHM_FOLDER "/dev/shm"
#define MB (1024.0 * 1024.0)

/* ---- the installation ---- */

static char *
sql_version(void)
{
	char *version = NULL;
	MemoryContext caller = CurrentMemoryContext;

	SPI_connect();
	if (SPI_execute("SELECT extversion FROM pg_catalog.pg_extension "
					"WHERE extname OPERATOR(pg_catalog.=) 'ag_pg'::pg_catalog.name",
					true, 1) == SPI_OK_SELECT &&
		SPI_processed == 1)
	{
		version = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
		if (version != NULL)
			version = MemoryContextStrdup(caller, version);
	}
	SPI_finish();
	return version;
}

static void
check_versions(List **list)
{
	const char *build = AG_BUILD_ID;
	char *library = pnstrdup(build, strcspn(build, "+"));
	char *sql = sql_version();
	const char *running = GetConfigOption("server_version_num", true, false);
	int server = running != NULL ? atoi(running) : 0;
	int built_for = ag_built_for();

	if (sql != NULL && strcmp(sql, library) != 0)
		ag_diagnosis_add(
			list, AG_VERDICT_FAIL, "versions",
			psprintf("the extension in this database is %s, the library %s", sql, library), NULL,
			"Run ALTER EXTENSION ag_pg UPDATE, then connect again.");
	else if (server != 0 && server < built_for)
		ag_diagnosis_add(list, AG_VERDICT_WARN, "versions",
						 psprintf("the server is %d.%d, the library was built for %d.%d",
								  server / 10000, server % 10000, built_for / 10000,
								  built_for % 10000),
						 NULL, "Update the server, or restart it if it was updated already.");
	else
		ag_diagnosis_add(list, AG_VERDICT_OK, "versions",
						 psprintf("ag_pg %s, built for PostgreSQL %d.%d, on %d.%d", library,
								  built_for / 10000, built_for % 10000, server / 10000,
								  server % 10000),
						 NULL, NULL);
}

/* The supervisor is found by the library's bare name, so the server's own folder must be on the path. */
static void
check_library_path(List **list)
{
	const char *at = Dynamic_library_path;
	bool found = false;

	while (at != NULL && !found)
	{
		size_t n = strcspn(at, ":");

		found = (n == strlen("$libdir") && strncmp(at, "$libdir", n) == 0) ||
				(n == strlen(pkglib_path) && strncmp(at, pkglib_path, n) == 0);
		at = at[n] == ':' ? at + n + 1 : NULL;
	}
	if (found)
		ag_diagnosis_add(list, AG_VERDICT_OK, "dynamic_library_path", "contains $libdir", NULL,
						 NULL);
	else
		ag_diagnosis_add(
			list, AG_VERDICT_FAIL, "dynamic_library_path",
			"dynamic_library_path doesn't contain $libdir, where background workers find ag_pg",
			Dynamic_library_path,
			"Add $libdir to dynamic_library_path in the configuration and reload it.");
}

/* ---- budgets ---- */

/*
 * Background workers have a range of their own among the processes: behind sessions and autovacuum, before senders. Read without
 * a lock: a figure that changes while it is shown.
 */
static int
workers_running(void)
{
	int end = MaxBackends - max_wal_senders;
	int n = 0;

	for (int i = Max(0, end - max_worker_processes); i < end; i++)
		n += ProcGlobal->allProcs[i].pid != 0;
	return n;
}

static void
check_workers(List **list)
{
	int n_free = Max(0, max_worker_processes - workers_running());
	char *found = psprintf("%d of %d background workers (max_worker_processes) are free", n_free,
						   max_worker_processes);

	if (max_worker_processes == 0)
		ag_diagnosis_add(list, AG_VERDICT_FAIL, "worker_slots",
						 "max_worker_processes is 0: no fit can run", NULL,
						 "Set max_worker_processes to 8 or more and restart PostgreSQL.");
	else if (n_free == 0)
		ag_diagnosis_add(
			list, AG_VERDICT_WARN, "worker_slots", found, NULL,
			"Fits wait until one ends; if that is so for long, raise max_worker_processes and "
			"restart PostgreSQL.");
	else
		ag_diagnosis_add(list, AG_VERDICT_OK, "worker_slots", found, NULL, NULL);
	if (ag_setting_max_fits >= max_worker_processes && max_worker_processes > 0)
		ag_diagnosis_add(
			list, AG_VERDICT_OK, "max_fits",
			psprintf("ag_pg.max_fits is %d; max_worker_processes (%d) bounds fits first",
					 ag_setting_max_fits, max_worker_processes),
			NULL, NULL);
	else
		ag_diagnosis_add(list, AG_VERDICT_OK, "max_fits",
						 psprintf("ag_pg.max_fits is %d", ag_setting_max_fits), NULL, NULL);
}

static void
check_shared_memory(List **list)
{
	struct statvfs fs;
	double need = (AG_ROWS_QUEUE_BYTES + AG_RESULTS_QUEUE_BYTES) / MB + 1;
	double left;
	char *found;

	if (dynamic_shared_memory_type != DSM_IMPL_POSIX || statvfs(SHM_FOLDER, &fs) != 0)
	{
		ag_diagnosis_add(list, AG_VERDICT_OK, "shared_memory",
						 "dynamic shared memory isn't in " SHM_FOLDER, NULL, NULL);
		return;
	}
	left = (double) fs.f_bavail * (double) fs.f_frsize / MB;
	found = psprintf("%.0f MB of " SHM_FOLDER " are free; a fit takes %.0f MB", left, need);
	if (left < need * ag_setting_max_fits)
		ag_diagnosis_add(list, left < need ? AG_VERDICT_FAIL : AG_VERDICT_WARN, "shared_memory",
						 found, NULL,
						 "Make it larger (in Docker: --shm-size=1g), or lower ag_pg.max_fits.");
	else
		ag_diagnosis_add(list, AG_VERDICT_OK, "shared_memory", found, NULL, NULL);
}

static void
check_memory(List **list)
{
	double machine = (double) ag_machine_memory() / MB;
	double limit = ag_setting_memory_limit_mb;
	double buffers = (double) NBuffers * BLCKSZ / MB;
	char *found = psprintf(
		"fits may use %.0f MB (ag_pg.memory_limit) of the machine's or control group's %.0f MB; "
		"shared_buffers has %.0f MB",
		limit, machine, buffers);

	if (limit + buffers > machine)
		ag_diagnosis_add(
			list, AG_VERDICT_WARN, "memory", found, NULL,
			"Lower ag_pg.memory_limit: together they are more than there is, and the kernel may "
			"kill a fit, or the server.");
	else if (limit < 256)
		ag_diagnosis_add(list, AG_VERDICT_WARN, "memory", found, NULL,
						 "Raise ag_pg.memory_limit: only small tables can be fitted.");
	else
		ag_diagnosis_add(list, AG_VERDICT_OK, "memory", found, NULL, NULL);
}

static void
check_cpus(List **list)
{
	int machine = ag_machine_cpus();

	if (ag_setting_num_cpus > machine)
		ag_diagnosis_add(list, AG_VERDICT_WARN, "cpus",
						 psprintf("ag_pg.num_cpus is %d, and the server may run on %d CPUs only",
								  ag_setting_num_cpus, machine),
						 NULL,
						 "Lower ag_pg.num_cpus, or give the server's control group more CPUs.");
	else
		ag_diagnosis_add(list, AG_VERDICT_OK, "cpus",
						 psprintf("fits may use %d of %d CPUs", ag_settings_cpus(), machine), NULL,
						 NULL);
}

/* Asks for the version of the interface; the number of the call is the same on every architecture. */
static bool
has_landlock(void)
{
	return syscall(444, NULL, 0, 1) > 0;
}

static void
check_sandbox(List **list)
{
	if (!ag_setting_sandbox)
		ag_diagnosis_add(
			list, AG_VERDICT_WARN, "sandbox", "ag_pg.sandbox is off", NULL,
			"Turn it on, unless the trainer can't work in it: it keeps what hostile rows "
			"might make of the trainer from the server's files.");
	else if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0)
		ag_diagnosis_add(list, AG_VERDICT_WARN, "sandbox",
						 "this kernel has no seccomp: the trainer runs without a sandbox", NULL,
						 "Run the server on a kernel that has it.");
	else
		ag_diagnosis_add(list, AG_VERDICT_OK, "sandbox",
						 has_landlock()
							 ? "the trainer runs under seccomp, and with GPUs under Landlock"
							 : "the trainer runs under seccomp; this kernel has no Landlock, which "
							   "would keep a fit on GPUs from files that are none of its business",
						 NULL, NULL);
}

/* ---- rows ---- */

static void
add_toolkits(List **list)
{
	ag_diagnosis_add(list, AG_VERDICT_OK, "toolkits",
					 "CUDA 11.8: driver 450.80.02 or newer, compute capability 3.5 to 9.0\n"
					 "CUDA 12.0 to 12.7: driver 525.60.13 or newer, compute capability 5.0 to 9.0\n"
					 "CUDA 12.8, 12.9: driver 525.60.13 or newer (570 for 10.0 and up), compute "
					 "capability 5.0 to 12.0\n"
					 "CUDA 13: driver 580.65.06 or newer, compute capability 7.5 to 12.1",
					 NULL, NULL);
}

static void
doctor_row(AgSrf *srf, const AgDiagnosis *one, bool may_see)
{
	static const char *const names[] = {"fail", "warn", "ok"};
	Datum values[4];
	bool nulls[4] = {false};
	const char *found = one->brief;

	if (one->paths != NULL && may_see)
		found = psprintf("%s: %s", one->brief, one->paths);
	else if (one->paths != NULL && one->verdict != AG_VERDICT_OK)
		found = psprintf("%s (members of pg_monitor see more)", one->brief);
	ag_srf_text(values, nulls, 0, one->check);
	ag_srf_text(values, nulls, 1, names[one->verdict]);
	ag_srf_text(values, nulls, 2, found);
	ag_srf_text(values, nulls, 3, one->cure);
	ag_srf_row(srf, values, nulls);
}

PG_FUNCTION_INFO_V1(ag_sql_doctor);

Datum
ag_sql_doctor(PG_FUNCTION_ARGS)
{
	AgSrf srf;
	List *list = NIL;
	ListCell *cell;
	bool may_see = ag_may_monitor();

	ag_srf_begin(&srf, fcinfo);
	check_versions(&list);
	check_library_path(&list);
	check_workers(&list);
	check_shared_memory(&list);
	check_memory(&list);
	check_cpus(&list);
	check_sandbox(&list);
	list = list_concat(list, ag_diagnosis_gpus(ag_probe_run()));
	add_toolkits(&list);
	for (int verdict = AG_VERDICT_FAIL; verdict <= AG_VERDICT_OK; verdict++)
		foreach (cell, list)
			if (((const AgDiagnosis *) lfirst(cell))->verdict == (AgVerdict) verdict)
				doctor_row(&srf, lfirst(cell), may_see);
	return (Datum) 0;
}
