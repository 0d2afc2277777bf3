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
	call->opening = 0;
	call->map = NULL;
	call->extra = NULL;
	if (call->context != NULL)
		MemoryContextDelete(call->context);
	call->context = NULL;
	if (call->pin != NULL)
		MemoryContextDelete(call->pin);
	call->pin = NULL;
}

static void
make_pin(AgCall *call)
{
	call->pin = AllocSetContextCreate(call->user != NULL ? call->user : call->home, "ag_pg pin",
									  ALLOCSET_SMALL_SIZES);
}

void
ag_call_resume(AgCall *call, MemoryContext user)
{
	call->user = user;
	call->pin = NULL;
	call->n_rows = 0;
	if (call->model == NULL)
		return;
	make_pin(call);
	if (!ag_cache_pin_again(call->model, call->opening, call->pin))
	{
		forget_model(call);
		call->seen.valid = false;
	}
	else if (call->model->threshold != call->seen.threshold)
		call->seen.valid = false; /* as another snapshot has it */
}

static void
take_model(AgCall *call, const pg_uuid_t *id, const char *member)
{
	forget_model(call);
	call->context = AllocSetContextCreate(call->home, "ag_pg call", ALLOCSET_SMALL_SIZES);
	make_pin(call);
	call->model = ag_cache_get(id, member, call->pin);
	call->opening = call->model->opening;
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
	call->n_rows = 0;
	if (call->name != NULL)
		pfree(call->name);
	call->name = copy;
}

AgCall *
ag_call_create(MemoryContext home, MemoryContext user, const char *name, int n_bytes)
{
	AgCall *call = MemoryContextAllocZero(home, sizeof(AgCall));

	call->home = home;
	call->user = user;
	rename_call(call, name, n_bytes);
	return call;
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
		call = ag_call_create(home, NULL, name, n_bytes);
	else if (!is_called(call, name, n_bytes))
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
	now.threshold = call->seen.threshold;
	if (!call->seen.valid || memcmp(&now, &call->seen, sizeof(now)) != 0)
	{
		call->seen.valid = false; /* should the look-up fail */
		find_model(call, role);
		now.threshold = call->model->threshold;
		call->seen = now;
	}
	call->n_rows++;
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
