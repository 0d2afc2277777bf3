/*
 * gpus.c - ag_gpus: the machine's GPUs, one a row.
 *
 * Three witnesses tell of a GPU: the driver (what CUDA shows to this server), the module (whether a kernel of ours runs on it)
 * and NVML (all GPUs of the machine, and who uses them). Their lines are joined by index and uuid.
 */
#include "postgres.h"

#include <ctype.h>

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/array.h"

#include "pg/compat.h"
#include "pg/diagnosis.h"
#include "pg/probe.h"
#include "pg/srf.h"

static AgGpu *
find_gpu(List *gpus, int index, const char *uuid)
{
	ListCell *cell;

	foreach (cell, gpus)
	{
		AgGpu *gpu = lfirst(cell);

		if (uuid == NULL ? gpu->index == index
						 : uuid[0] != '\0' && pg_strcasecmp(gpu->uuid, uuid) == 0)
			return gpu;
	}
	return NULL;
}

static AgGpu *
add_gpu(List **gpus, const char *uuid, const char *name)
{
	AgGpu *gpu = palloc0(sizeof(AgGpu));

	gpu->index = -1;
	gpu->uuid = uuid;
	gpu->name = name;
	gpu->total_bytes = gpu->free_bytes = -1;
	*gpus = lappend(*gpus, gpu);
	return gpu;
}

static int
small_number(const AgFact *fact, int field)
{
	int64 number = ag_fact_number(fact, field, 0);

	return number >= 0 && number <= 1000000 ? (int) number : 0;
}

static void
add_shown(List **gpus, const AgFact *fact)
{
	AgGpu *gpu = add_gpu(gpus, fact->fields[1], fact->fields[2]);

	gpu->index = small_number(fact, 0);
	gpu->major = small_number(fact, 3);
	gpu->minor = small_number(fact, 4);
	gpu->total_bytes = ag_fact_number(fact, 5, -1);
}

static void
add_run(List **gpus, const AgFact *fact)
{
	AgGpu *gpu = find_gpu(*gpus, small_number(fact, 0), NULL);

	if (gpu == NULL)
	{
		gpu = add_gpu(gpus, fact->fields[1], fact->fields[2]);
		gpu->index = small_number(fact, 0);
		gpu->major = small_number(fact, 3);
		gpu->minor = small_number(fact, 4);
		gpu->total_bytes = ag_fact_number(fact, 5, -1);
	}
	gpu->free_bytes = ag_fact_number(fact, 6, -1);
	gpu->usable = ag_fact_number(fact, 7, 0) == 1;
	if (!gpu->usable)
	{
		gpu->reason = fact->fields[8];
		gpu->cure = fact->fields[9];
	}
}

static void
add_seen(List **gpus, const AgFact *fact)
{
	AgGpu *gpu = find_gpu(*gpus, 0, fact->fields[0]);

	if (gpu == NULL)
	{
		gpu = add_gpu(gpus, fact->fields[0], fact->fields[1]);
		gpu->total_bytes = ag_fact_number(fact, 2, -1);
	}
	if (gpu->free_bytes < 0)
		gpu->free_bytes = ag_fact_number(fact, 3, -1);
	if (strcmp(fact->fields[4], "-") != 0)
		gpu->pids = fact->fields[4];
}

static void
explain(const AgProbe *probe, AgGpu *gpu)
{
	AgDiagnosis why;

	if (gpu->usable || gpu->reason != NULL)
		return;
	if (ag_diagnosis_root(probe, &why))
	{
		gpu->reason = why.brief;
		gpu->cure = why.cure;
	}
	else if (gpu->index < 0 && ag_probe_fact(probe, "env") != NULL &&
			 ag_diagnosis_variable(probe, "CUDA_VISIBLE_DEVICES") != NULL)
	{
		gpu->reason = "CUDA_VISIBLE_DEVICES doesn't show it to PostgreSQL";
		gpu->cure = "Change the variable in the environment of PostgreSQL's service and restart "
					"PostgreSQL.";
	}
	else if (gpu->index < 0)
		gpu->reason = "CUDA doesn't show it (it may be split into MIG instances)";
	else
		gpu->reason = "no kernel was run on it";
}

List *
ag_probe_gpus(const AgProbe *probe)
{
	List *gpus = NIL;
	ListCell *cell;

	foreach (cell, probe->facts)
	{
		const AgFact *fact = lfirst(cell);

		if (strcmp(fact->key, "cuda") == 0)
			add_shown(&gpus, fact);
	}
	foreach (cell, probe->facts)
	{
		const AgFact *fact = lfirst(cell);

		if (strcmp(fact->key, "run") == 0)
			add_run(&gpus, fact);
	}
	foreach (cell, probe->facts)
	{
		const AgFact *fact = lfirst(cell);

		if (strcmp(fact->key, "smi") == 0)
			add_seen(&gpus, fact);
	}
	foreach (cell, gpus)
		explain(probe, lfirst(cell));
	return gpus;
}

/* Whatever isn't a number is left out. */
static Datum
pid_array(const char *pids)
{
	Datum numbers[256];
	int n = 0;

	while (*pids != '\0' && n < lengthof(numbers))
	{
		char *end;
		long pid = strtol(pids, &end, 10);

		if (end == pids)
			break;
		if (pid > 0 && pid <= INT_MAX)
			numbers[n++] = Int32GetDatum((int32) pid);
		pids = end;
	}
	return PointerGetDatum(construct_array(numbers, n, INT4OID, sizeof(int32), true, TYPALIGN_INT));
}

static void
gpu_row(AgSrf *srf, const AgProbe *probe, const AgGpu *gpu, bool may_see)
{
	Datum values[11];
	bool nulls[11] = {false};
	const char *version = ag_probe_text(probe, "nvml", 1);
	const AgFact *runtime = ag_probe_fact(probe, "runtime");

	nulls[0] = gpu->index < 0;
	values[0] = Int32GetDatum(gpu->index);
	ag_srf_text(values, nulls, 1, gpu->uuid[0] != '\0' ? gpu->uuid : NULL);
	ag_srf_text(values, nulls, 2, gpu->name[0] != '\0' ? gpu->name : NULL);
	ag_srf_text(values, nulls, 3,
				gpu->major > 0 ? psprintf("%d.%d", gpu->major, gpu->minor) : NULL);
	nulls[4] = gpu->total_bytes < 0;
	values[4] = Int64GetDatum(gpu->total_bytes);
	nulls[5] = gpu->free_bytes < 0;
	values[5] = Int64GetDatum(gpu->free_bytes);
	ag_srf_text(values, nulls, 6, version != NULL && version[0] != '\0' ? version : NULL);
	ag_srf_text(values, nulls, 7,
				runtime != NULL ? ag_diagnosis_cuda(ag_fact_number(runtime, 0, 0)) : NULL);
	values[8] = BoolGetDatum(gpu->usable);
	ag_srf_text(values, nulls, 9, gpu->usable ? NULL : gpu->reason);
	nulls[10] = !may_see || gpu->pids == NULL;
	values[10] = nulls[10] ? (Datum) 0 : pid_array(gpu->pids);
	ag_srf_row(srf, values, nulls);
}

PG_FUNCTION_INFO_V1(ag_sql_gpus);

Datum
ag_sql_gpus(PG_FUNCTION_ARGS)
{
	AgSrf srf;
	AgProbe *probe;
	AgDiagnosis why;
	List *gpus;
	ListCell *cell;
	bool may_see = ag_may_monitor();

	ag_srf_begin(&srf, fcinfo);
	probe = ag_probe_run();
	gpus = ag_probe_gpus(probe);
	foreach (cell, gpus)
		gpu_row(&srf, probe, lfirst(cell), may_see);
	if (gpus == NIL && ag_diagnosis_root(probe, &why))
		ereport(NOTICE, (errmsg("no GPU was found: %s", why.brief),
						 errhint("SELECT * FROM ag_doctor() tells what to do.")));
	return (Datum) 0;
}
