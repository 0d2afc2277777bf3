/*
 * cache.c - see cache.h.
 *
 * A statement's models are pinned, so the cache may pass its size while one statement needs more; what is unpinned goes
 * first, least recently used first. Versions are immutable and their ids never come again: nothing has to be
 * invalidated. (Which version a name means, and whether the user may use it, is the caller's question, every statement.)
 *
 * Where the server shares models (share.h), an entry's bytes and tables lie there, and what the session has of its own is little.
 */
#include "postgres.h"

#include <math.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "lib/ilist.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "pg/cache.h"
#include "pg/catalog.h"
#include "pg/errors.h"
#include "pg/settings.h"
#include "pg/share.h"
#include "pg/stats.h"

#define MAX_MEMBERS_TOLD 20 /* in a hint */

typedef struct Entry
{
	dlist_node node; /* in `entries`, most recently used first */
	AgOpenModel model;
	int n_pins;
	AgShare share; /* where its bytes lie, or: */
	int n_images;
	void **images;
} Entry;

typedef struct Pin
{
	MemoryContextCallback callback;
	Entry *entry;
} Pin;

static AgMem cache_memory; /* without a limit of its own: evict() keeps it within the setting */
static dlist_head entries = DLIST_STATIC_INIT(entries);
static uint64 n_openings;

static void
images_free(Entry *entry)
{
	for (int i = 0; i < entry->n_images; i++)
		ag_mem_free(&cache_memory, entry->images[i]);
	ag_mem_free(&cache_memory, entry->images);
	entry->n_images = 0;
	entry->images = NULL;
}

/* Safe on an entry that is only half made. */
static void
entry_free(Entry *entry)
{
	ag_predictor_close(entry->model.predictor);
	ag_share_detach(&entry->share);
	images_free(entry);
	ag_mem_free(&cache_memory, entry->model.member);
	ag_mem_free(&cache_memory, entry);
}

/* What there is too much of, and shared models that others wait for room of. */
static void
evict(void)
{
	int64 limit = (int64) ag_setting_model_cache_kb * 1024;
	dlist_node *node = dlist_is_empty(&entries) ? NULL : dlist_tail_node(&entries);

	while (node != NULL)
	{
		Entry *entry = dlist_container(Entry, node, node);

		node = dlist_has_prev(&entries, node) ? dlist_prev_node(&entries, node) : NULL;
		if (entry->n_pins == 0 &&
			(atomic_load(&cache_memory.used_bytes) > limit || ag_share_is_retired(&entry->share)))
		{
			dlist_delete(&entry->node);
			entry_free(entry);
		}
	}
}

static void
unpin(void *arg)
{
	((Pin *) arg)->entry->n_pins--;
	evict();
}

static void
pin(Entry *entry, MemoryContext keeper)
{
	Pin *pin = MemoryContextAllocZero(keeper, sizeof(Pin));

	pin->entry = entry;
	pin->callback.func = unpin;
	pin->callback.arg = pin;
	entry->n_pins++;
	MemoryContextRegisterResetCallback(keeper, &pin->callback);
}

/* --- opening --- */

static void *
must_get(size_t n, size_t size)
{
	void *block = ag_mem_zalloc(&cache_memory, n, size);

	if (block == NULL)
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
	return block;
}

static const AgMemberRow *
find_member(const AgMemberRow *rows, int n, const char *name)
{
	StringInfoData others;
	int n_others = 0;

	for (int i = 0; i < n; i++)
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	initStringInfo(&others);
	for (int i = 0; i < n && n_others <= MAX_MEMBERS_TOLD; i++)
	{
		if (!rows[i].can_infer || rows[i].fold > 0)
			continue;
		if (n_others++ == MAX_MEMBERS_TOLD)
			appendStringInfoString(&others, ", ...");
		else
			appendStringInfo(&others, "%s\"%s\"", n_others > 1 ? ", " : "", rows[i].name);
	}
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("the model has no member \"%s\"", name),
			 n_others == 0   ? errhint("ag_leaderboard lists the members of its ensemble.")
			 : n_others == 1 ? errhint("Its only member is %s.", others.data)
							 : errhint("Its members are %s.", others.data)));
	return NULL;
}

/* Marks the member and all that it combines; rows are few, and the marks stop a cycle. */
static void
mark_needed(const AgMemberRow *rows, int n, int ordinal, bool *needed)
{
	check_stack_depth(); /* as deep as the tables' rows make it */
	for (int i = 0; i < n; i++)
	{
		if (rows[i].ordinal != ordinal || needed[i])
			continue;
		needed[i] = true;
		CHECK_FOR_INTERRUPTS();
		for (int j = 0; j < rows[i].n_inputs; j++)
			mark_needed(rows, n, rows[i].inputs[j], needed);
	}
}

/* What opening a predictor looks at beside its bytes. */
typedef struct Wanted
{
	AgMemberRef *refs;
	int n;
	int ordinal;
} Wanted;

static void
wanted_init(Wanted *wanted, const AgMemberRow *rows, int n, int ordinal)
{
	wanted->refs = palloc(sizeof(AgMemberRef) * n);
	wanted->n = n;
	wanted->ordinal = ordinal;
	for (int i = 0; i < n; i++)
		wanted->refs[i] = (AgMemberRef){.ordinal = rows[i].ordinal,
										.name = rows[i].name,
										.family = rows[i].family,
										.n_inputs = rows[i].n_inputs,
										.inputs = rows[i].inputs,
										.weights = rows[i].weights,
										.temperature = rows[i].temperature,
										.n_shifts = rows[i].n_shifts,
										.shifts = rows[i].shifts};
}

static void
open_predictor(Entry *entry, const Wanted *wanted, const AgImagePart *parts, int n_parts,
			   bool for_rows)
{
	AgError error;
	AgContext ctx = {.mem = &cache_memory,
					 .deadline_ns = INT64_MAX,
					 .error = &error,
					 .trusts_checksums = true, /* ag_catalog_image has compared the parts' */
					 .trusts_images = entry->share.segment != NULL};

	ag_error_init(&error);
	ag_error_check(ag_predictor_open(&ctx, parts, n_parts, wanted->refs, wanted->n, wanted->ordinal,
									 &entry->model.predictor),
				   &error);
	if (for_rows)
		ag_error_check(ag_predictor_prepare_rows(&ctx, entry->model.predictor), &error);
}

static void
open_shared(Entry *entry, const Wanted *wanted)
{
	int n_parts;
	AgImagePart *parts = ag_share_parts(&entry->share, &n_parts);

	open_predictor(entry, wanted, parts, n_parts, false);
}

/* The bytes of the members that are needed, read and checked; then, where that can be, others' bytes instead of these. */
static void
open_stored(Entry *entry, const AgMemberRow *rows, const bool *needed, const Wanted *wanted)
{
	AgImagePart *parts = palloc(sizeof(AgImagePart) * (wanted->n + 1));
	int n_parts = 0;

	entry->images = must_get(wanted->n + 1, sizeof(void *));
	for (int i = -1; i < wanted->n; i++) /* -1: the pipeline */
	{
		AgImagePart *part = &parts[n_parts];

		if (i >= 0 && !needed[i])
			continue;
		part->member = i < 0 ? 0 : rows[i].ordinal;
		part->layout = NULL;
		part->data = entry->images[n_parts] =
			ag_catalog_image(&entry->model.id, part->member, &cache_memory, &part->size);
		if (part->data != NULL)
			entry->n_images = ++n_parts;
	}
	open_predictor(entry, wanted, parts, n_parts, ag_share_is_on());
	if (!ag_share_publish(&entry->share, &entry->model.id, entry->model.member,
						  entry->model.predictor, parts, n_parts))
		return;
	ag_predictor_close(entry->model.predictor);
	entry->model.predictor = NULL;
	images_free(entry);
#ifdef __GLIBC__
	malloc_trim(0); /* else as much stays with the process */
#endif
	open_shared(entry, wanted);
}

static void
load(Entry *entry, const pg_uuid_t *id, const char *member)
{
	AgOpenModel *model = &entry->model;
	int n;
	AgMemberRow *rows = ag_catalog_members(id, &n);
	const AgMemberRow *row = find_member(rows, n, member);
	bool *needed = palloc0(sizeof(bool) * n);
	Wanted wanted;

	model->id = *id;
	model->opening = ++n_openings;
	model->member = must_get(strlen(member) + 1, 1);
	strcpy(model->member, member);
	if (!row->can_infer)
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("member \"%s\" of the model can't predict", member)));
	wanted_init(&wanted, rows, n, row->ordinal);
	if (ag_share_attach(&entry->share, id, member))
	{
		ag_stats_count(AG_STAT_SHARED_HITS, 1);
		open_shared(entry, &wanted);
	}
	else
	{
		ag_stats_count(AG_STAT_CACHE_MISSES, 1);
		mark_needed(rows, n, row->ordinal, needed);
		open_stored(entry, rows, needed, &wanted);
	}
	model->problem = ag_predictor_problem(model->predictor);
	model->label_type = ag_predictor_label_type(model->predictor);
	model->label = ag_predictor_label_name(model->predictor);
	model->raw_text = ag_predictor_raw_text(model->predictor);
	model->n_outputs = ag_predictor_outputs(model->predictor);
	model->threshold = 0.5;
	model->inputs = ag_predictor_inputs(model->predictor, &model->n_inputs);
	model->classes = ag_predictor_classes(model->predictor, &model->n_classes);
	model->quantiles =
		ag_predictor_quantiles(model->predictor, &model->quantile_order, &model->n_quantiles);
	for (int i = 1; i < model->n_quantiles; i++)
		if (fabs(model->quantiles[i] - 0.5) < fabs(model->quantiles[model->middle] - 0.5))
			model->middle = i;
}

static Entry *
entry_open(const pg_uuid_t *id, const char *member)
{
	Entry *entry;
	MemoryContext scratch =
		AllocSetContextCreate(CurrentMemoryContext, "ag_pg model", ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(scratch);

	if (cache_memory.limit_bytes == 0)
		ag_mem_init(&cache_memory, INT64_MAX);
	entry = must_get(1, sizeof(Entry));
	PG_TRY();
	{
		load(entry, id, member);
	}
	PG_CATCH();
	{
		entry_free(entry);
		PG_RE_THROW();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(scratch);
	return entry;
}

static Entry *
find(const pg_uuid_t *id, const char *member)
{
	dlist_iter iter;

	dlist_foreach(iter, &entries)
	{
		Entry *entry = dlist_container(Entry, node, iter.cur);

		if (memcmp(&entry->model.id, id, UUID_LEN) == 0 && strcmp(entry->model.member, member) == 0)
			return entry;
	}
	return NULL;
}

void
ag_cache_look_again(const AgOpenModel *model)
{
	Entry *entry = find(&model->id, model->member);

	if (entry != NULL && model->problem == AG_PROBLEM_BINARY)
		entry->model.threshold = ag_catalog_threshold(&model->id);
}

const AgOpenModel *
ag_cache_get(const pg_uuid_t *id, const char *member, MemoryContext keeper)
{
	Entry *entry = find(id, member);

	if (entry != NULL)
	{
		ag_stats_count(AG_STAT_CACHE_HITS, 1);
		ag_share_touch(&entry->share);
		dlist_move_head(&entries, &entry->node);
	}
	else
	{
		ag_stats_attach();
		entry = entry_open(id, member);
		dlist_push_head(&entries, &entry->node);
	}
	pin(entry, keeper);
	evict();
	ag_cache_look_again(&entry->model);
	return &entry->model;
}

bool
ag_cache_pin_again(const AgOpenModel *model, uint64 opening, MemoryContext keeper)
{
	dlist_iter iter;

	dlist_foreach(iter, &entries)
	{
		Entry *entry = dlist_container(Entry, node, iter.cur);

		if (&entry->model != model || entry->model.opening != opening)
			continue;
		ag_stats_count(AG_STAT_CACHE_HITS, 1);
		ag_share_touch(&entry->share);
		dlist_move_head(&entries, &entry->node);
		pin(entry, keeper);
		return true;
	}
	return false;
}

char *
ag_model_text(const AgOpenModel *model, const char *text, size_t n)
{
	char *result;

	if (!model->raw_text)
	{
		result = pg_any_to_server(text, (int) n, PG_UTF8);
		if (result != text)
			return result;
	}
	else
		pg_verify_mbstr(GetDatabaseEncoding(), text, (int) n, false);
	return pnstrdup(text, n);
}
