/*
 * call.c - see call.h.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "pg/call.h"
#include "pg/catalog.h"
#include "pg/compat.h"
#include "pg/stats.h"

#define MAX_NAMES 8 /* models that one place keeps at hand: ag_predict('price_' || region, t) */

/*
 * Two snapshots of one backend with the same bounds, counts and command see the same rows: xmax tells which transactions had
 * started, the count how many of them run still, and the completion count moves at every end of a (sub)transaction.
 */
static void
look(struct AgCallSeen *seen, Oid role)
{
	memset(seen, 0, sizeof(*seen));
	seen->role = role;
	if (ActiveSnapshotSet())
	{
		Snapshot snapshot = GetActiveSnapshot();

		seen->valid = true;
		seen->xmin = snapshot->xmin;
		seen->xmax = snapshot->xmax;
		seen->curcid = snapshot->curcid;
		seen->xcnt = snapshot->xcnt;
		seen->subxcnt = snapshot->subxcnt;
		seen->completion_count = ag_snapshot_completion_count(snapshot);
	}
}

static void
forget_model(AgCall *call)
{
	call->model = NULL;
	call->map = NULL;
	call->extra = NULL;
	if (call->context != NULL)
		MemoryContextDelete(call->context);
	call->context = NULL;
}

static void
take_model(AgCall *call, const pg_uuid_t *id, const char *member)
{
	forget_model(call);
	call->context = AllocSetContextCreate(call->home, "ag_pg call", ALLOCSET_SMALL_SIZES);
	call->model = ag_cache_get(id, member, call->context);
	call->map = ag_row_map_create(call->model, call->name, call->context);
	call->out = MemoryContextAlloc(call->context, sizeof(double) * Max(call->model->n_outputs, 1));
}

static void
find_model(AgCall *call, Oid role)
{
	AgPredictorRow *row;
	pg_uuid_t id;
	char *member;

	ag_catalog_find_as(role, call->name, &id, &member, &row);
	if (member == NULL)
		member = row->best_model;
	if (call->model == NULL || memcmp(&call->model->id, &id, UUID_LEN) != 0 ||
		strcmp(call->model->member, member) != 0)
		take_model(call, &id, member);
	else
		ag_cache_look_again(call->model);
}

static bool
is_called(const AgCall *call, const char *name, int n_bytes)
{
	return strlen(call->name) == (size_t) n_bytes && memcmp(call->name, name, n_bytes) == 0;
}

/* Gives the call another name; its old model goes. */
static void
rename_call(AgCall *call, const char *name, int n_bytes)
{
	char *copy = MemoryContextAlloc(call->home, n_bytes + 1);

	memcpy(copy, name, n_bytes);
	copy[n_bytes] = '\0';
	forget_model(call);
	call->seen.valid = false;
	if (call->name != NULL)
		pfree(call->name);
	call->name = copy;
}

/* The call of that name, moved to the front of the list; the one used least recently gives way when there are too many. */
static AgCall *
find_call(AgCall **first, MemoryContext home, const char *name, int n_bytes)
{
	AgCall **at = first;
	AgCall *call;
	int n = 0;

	if (*first != NULL && is_called(*first, name, n_bytes))
		return *first;
	while (*at != NULL && !is_called(*at, name, n_bytes) && ++n < MAX_NAMES)
		at = &(*at)->next;
	call = *at;
	if (call == NULL)
	{
		call = MemoryContextAllocZero(home, sizeof(AgCall));
		call->home = home;
	}
	if (call->name == NULL || !is_called(call, name, n_bytes))
		rename_call(call, name, n_bytes);
	if (*at == call)
		*at = call->next;
	call->next = *first;
	*first = call;
	return call;
}

AgCall *
ag_call_get(AgCall **first, MemoryContext home, const char *name, int n_bytes, Oid role)
{
	AgCall *call = find_call(first, home, name, n_bytes);
	struct AgCallSeen now;

	if (!OidIsValid(role))
		role = GetUserId();
	look(&now, role);
	if (!call->seen.valid || memcmp(&now, &call->seen, sizeof(now)) != 0)
	{
		call->seen.valid = false; /* should the look-up fail */
		find_model(call, role);
		call->seen = now;
	}
	return call;
}

const AgValue *
ag_call_read(AgCall *call, AgRowForm form, Datum features)
{
	switch (form)
	{
		case AG_ROW_RECORD:
			return ag_row_from_record(call->map, DatumGetHeapTupleHeader(features));
		case AG_ROW_JSONB:
			return ag_row_from_jsonb(call->map, DatumGetJsonbP(features));
		case AG_ROW_TEXT:
			return ag_row_from_text(call->map, DatumGetTextPP(features));
		case AG_ROW_COLUMNS:
			break;
	}
	return NULL;
}

void
ag_call_run(AgCall *call, AgRowForm form, Datum features)
{
	ag_predictor_run(call->model->predictor, ag_call_read(call, form, features), call->out);
	ag_stats_count(AG_STAT_PREDICTIONS, 1);
}
