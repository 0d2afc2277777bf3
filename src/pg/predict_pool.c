/*
 * predict_pool.c - see predict_pool.h.
 *
 * A ring of slots in shared memory, each with the features of a batch and room for the model's outputs. The session fills them in turn,
 * anyone takes the next that is filled, and the session empties them in turn. When all are full and the oldest isn't done, it predicts
 * one itself, or waits. So memory doesn't grow with the number of rows, and nobody needs a worker that doesn't come.
 */
#include "postgres.h"

#include <math.h>

#include "access/parallel.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "pg/compat.h"
#include "pg/cost.h"
#include "pg/predict_pool.h"

/* Work that the session does alone at first, in units of parallel_setup_cost: then a worker's start and opening of the model are little beside it. */
#define ALONE_SETUPS 5.0
#define READ_NS                                                                                    \
	300.0 /* to read a row and make features of it: so often one process can feed another */
#define SLOTS_A_PROCESS 4

/* What lies where in the shared memory. */
#define KEY_RING UINT64CONST(0xA600000000000011)
#define KEY_SLOTS UINT64CONST(0xA600000000000012)
#define KEY_BUFFER_USAGE UINT64CONST(0xA600000000000013)
#define KEY_WAL_USAGE UINT64CONST(0xA600000000000014)

typedef struct Ring
{
	pg_uuid_t id;
	uint32 n_slots;
	uint32 n_features;
	Size slot_bytes;
	pg_atomic_uint64 n_filled, n_taken; /* batches so far; batch i is in slot i % n_slots */
	pg_atomic_uint32 is_over;           /* no more will be filled */
	ConditionVariable work, done;
	char member[FLEXIBLE_ARRAY_MEMBER];
} Ring;

typedef struct Slot
{
	pg_atomic_uint32 is_done;
	int32 n_rows;
	double numbers
		[FLEXIBLE_ARRAY_MEMBER]; /* features [AG_BATCH_ROWS][n_features], outputs [AG_BATCH_ROWS][n_outputs] */
} Slot;

/* What the session keeps of a batch in a slot. */
typedef struct Keys
{
	MemoryContext context;
	char *texts[AG_BATCH_ROWS];
} Keys;

struct AgPredictPool
{
	const AgOpenModel *model;
	AgPredictRows *rows;
	MemoryContext home, lot;     /* lot: reset after each batch that is put */
	const AgBatchReader *reader; /* NULL: no workers are to be asked for, or no more */
	double operators;            /* of the model, for rows so far */
	/* while there are workers */
	ParallelContext *context;
	Ring *ring;
	char *slots;
	Keys *keys; /* [n_slots]; NULL: batches have none */
	uint64 n_put;
	BufferUsage *buffer_usage; /* [workers] */
	WalUsage *wal_usage;
};

AgPredictPool *
ag_predict_pool_create(const AgOpenModel *model, AgPredictRows *rows)
{
	AgPredictPool *pool = palloc0(sizeof(AgPredictPool));

	pool->model = model;
	pool->rows = rows;
	pool->home = CurrentMemoryContext;
	return pool;
}

void
ag_predict_pool_allow(AgPredictPool *pool, const AgBatchReader *reader)
{
	if (max_parallel_workers_per_gather > 0 && IsUnderPostmaster && !IsInParallelMode())
		pool->reader = reader;
}

/* --- the ring, for session and workers --- */

static Slot *
slot_of(const Ring *ring, char *slots, uint64 batch)
{
	return (Slot *) (slots + (batch % ring->n_slots) * ring->slot_bytes);
}

static double *
outputs_of(const Ring *ring, Slot *slot)
{
	return slot->numbers + (size_t) AG_BATCH_ROWS * ring->n_features;
}

static bool
take(Ring *ring, uint64 *batch)
{
	*batch = pg_atomic_read_u64(&ring->n_taken);
	while (*batch < pg_atomic_read_u64(&ring->n_filled))
		if (pg_atomic_compare_exchange_u64(&ring->n_taken, batch, *batch + 1))
			return true;
	return false;
}

static void
predict(Ring *ring, char *slots, uint64 batch, const AgOpenModel *model)
{
	Slot *slot = slot_of(ring, slots, batch);

	ag_batch_predict(model, slot->n_rows, slot->numbers, outputs_of(ring, slot));
	(void) pg_atomic_exchange_u32(&slot->is_done, 1); /* a barrier, too */
}

/* --- a worker --- */

PGDLLEXPORT void ag_predict_pool_main(dsm_segment *segment, shm_toc *toc);

/* False: there will be no more. */
static bool
wait_for_work(Ring *ring, uint64 *batch)
{
	bool is_taken;

	if (take(ring, batch))
		return true;
	ConditionVariablePrepareToSleep(&ring->work);
	while (!(is_taken = take(ring, batch)) && pg_atomic_read_u32(&ring->is_over) == 0)
		ConditionVariableSleep(&ring->work, ag_wait_event(AG_WAIT_PREDICT));
	ConditionVariableCancelSleep();
	return is_taken;
}

void
ag_predict_pool_main(dsm_segment *segment, shm_toc *toc)
{
	Ring *ring = shm_toc_lookup(toc, KEY_RING, false);
	char *slots = shm_toc_lookup(toc, KEY_SLOTS, false);
	BufferUsage *buffer_usage = shm_toc_lookup(toc, KEY_BUFFER_USAGE, false);
	WalUsage *wal_usage = shm_toc_lookup(toc, KEY_WAL_USAGE, false);
	const AgOpenModel *model;
	uint64 batch;

	InstrStartParallelQuery();
	model = ag_cache_get(&ring->id, ring->member, CurrentMemoryContext);
	while (wait_for_work(ring, &batch))
	{
		CHECK_FOR_INTERRUPTS();
		predict(ring, slots, batch, model);
		ConditionVariableSignal(&ring->done);
	}
	InstrEndParallelQuery(&buffer_usage[ParallelWorkerNumber], &wal_usage[ParallelWorkerNumber]);
}

/* --- the session: getting workers --- */

/* Values are turned into text while there are workers. */
static bool
are_texts_safe(const AgSource *source)
{
	for (int i = 0; i < source->n_columns; i++)
	{
		bool is_varlena;
		Oid output;

		if (!source->columns[i].wanted)
			continue;
		getTypeOutputInfo(getBaseType(source->columns[i].typid), &output, &is_varlena);
		if (func_parallel(output) == PROPARALLEL_UNSAFE)
			return false;
	}
	return true;
}

static int
count_wanted(const AgPredictPool *pool, const AgSource *source)
{
	double fed = ag_predictor_row_ns(pool->model->predictor) / READ_NS;
	int most = max_parallel_workers_per_gather;

	if (!ag_source_is_parallel_safe(source) || !are_texts_safe(source))
		return 0;
	if (source->table != NULL)
	{
		Relation relation = table_open(source->relid, NoLock); /* which is locked */

		if (relation->rd_rel->relkind == RELKIND_RELATION ||
			relation->rd_rel->relkind == RELKIND_MATVIEW)
			most = Min(most, RelationGetParallelWorkers(relation, most));
		table_close(relation, NoLock);
	}
	return (int) fmin(most, ceil(fed));
}

static void
make_ring(AgPredictPool *pool, bool has_keys)
{
	ParallelContext *context = pool->context;
	const AgOpenModel *model = pool->model;
	int n = context->nworkers;
	Size n_features = ag_predictor_features(model->predictor);
	Size slot_bytes =
		add_size(sizeof(Slot), mul_size(AG_BATCH_ROWS * sizeof(double),
										add_size(n_features, (Size) model->n_outputs)));
	/* within work_mem, but one a process at least */
	Size n_slots = Min(Max(work_mem * (Size) 1024 / slot_bytes, (Size) n + 1),
					   SLOTS_A_PROCESS * ((Size) n + 1));
	Size ring_bytes = offsetof(Ring, member) + strlen(model->member) + 1;

	shm_toc_estimate_chunk(&context->estimator, ring_bytes);
	shm_toc_estimate_chunk(&context->estimator, mul_size(slot_bytes, n_slots));
	shm_toc_estimate_chunk(&context->estimator, mul_size(sizeof(BufferUsage), n));
	shm_toc_estimate_chunk(&context->estimator, mul_size(sizeof(WalUsage), n));
	shm_toc_estimate_keys(&context->estimator, 4);
	InitializeParallelDSM(context);
	pool->ring = shm_toc_allocate(context->toc, ring_bytes);
	pool->ring->id = model->id;
	pool->ring->n_slots = (uint32) n_slots;
	pool->ring->n_features = (uint32) n_features;
	pool->ring->slot_bytes = slot_bytes;
	pg_atomic_init_u64(&pool->ring->n_filled, 0);
	pg_atomic_init_u64(&pool->ring->n_taken, 0);
	pg_atomic_init_u32(&pool->ring->is_over, 0);
	ConditionVariableInit(&pool->ring->work);
	ConditionVariableInit(&pool->ring->done);
	strcpy(pool->ring->member, model->member);
	shm_toc_insert(context->toc, KEY_RING, pool->ring);
	pool->slots = shm_toc_allocate(context->toc, mul_size(slot_bytes, n_slots));
	for (Size i = 0; i < n_slots; i++)
		pg_atomic_init_u32(&slot_of(pool->ring, pool->slots, i)->is_done, 0);
	shm_toc_insert(context->toc, KEY_SLOTS, pool->slots);
	pool->buffer_usage = shm_toc_allocate(context->toc, mul_size(sizeof(BufferUsage), n));
	shm_toc_insert(context->toc, KEY_BUFFER_USAGE, pool->buffer_usage);
	pool->wal_usage = shm_toc_allocate(context->toc, mul_size(sizeof(WalUsage), n));
	shm_toc_insert(context->toc, KEY_WAL_USAGE, pool->wal_usage);
	pool->keys = has_keys ? palloc0(mul_size(sizeof(Keys), n_slots)) : NULL;
	for (Size i = 0; has_keys && i < n_slots; i++)
		pool->keys[i].context =
			AllocSetContextCreate(pool->home, "ag_pg pool keys", ALLOCSET_SMALL_SIZES);
	pool->lot = AllocSetContextCreate(pool->home, "ag_pg pool", ALLOCSET_DEFAULT_SIZES);
}

static void
let_go(AgPredictPool *pool)
{
	int n = pool->context->nworkers_launched;

	(void) pg_atomic_exchange_u32(&pool->ring->is_over, 1);
	ConditionVariableBroadcast(&pool->ring->work);
	WaitForParallelWorkersToFinish(pool->context);
	for (int i = 0; i < n; i++)
		InstrAccumParallelQuery(&pool->buffer_usage[i], &pool->wal_usage[i]);
	DestroyParallelContext(pool->context);
	ExitParallelMode();
	pool->context = NULL;
}

static void
get_workers(AgPredictPool *pool, bool has_keys)
{
	const AgSource *source = ag_batch_source(pool->reader);
	MemoryContext caller;
	int n = count_wanted(pool, source);

	pool->reader = NULL; /* once is enough */
	if (n < 1)
		return;
	caller = MemoryContextSwitchTo(pool->home);
	EnterParallelMode(); /* until an error or let_go ends it */
	pool->context = CreateParallelContext("ag_pg", "ag_predict_pool_main", n);
	make_ring(pool, has_keys);
	LaunchParallelWorkers(pool->context);
	ereport(DEBUG1, (errmsg_internal("predicting rows of %s with %d workers of the %d asked for",
									 source->table != NULL ? source->qualified : "a query",
									 pool->context->nworkers_launched, n)));
	if (pool->context->nworkers_launched == 0)
		let_go(pool);
	MemoryContextSwitchTo(caller);
}

/* --- the session: batches --- */

/* False: the oldest isn't done, or there is none. */
static bool
put_oldest(AgPredictPool *pool)
{
	Slot *slot = slot_of(pool->ring, pool->slots, pool->n_put);
	Keys *keys = pool->keys != NULL ? &pool->keys[pool->n_put % pool->ring->n_slots] : NULL;
	MemoryContext caller;

	if (pool->n_put == pg_atomic_read_u64(&pool->ring->n_filled) ||
		pg_atomic_read_u32(&slot->is_done) == 0)
		return false;
	pg_read_barrier();
	caller = MemoryContextSwitchTo(pool->lot);
	ag_predict_rows_put(pool->rows, slot->n_rows, keys != NULL ? keys->texts : NULL,
						outputs_of(pool->ring, slot));
	MemoryContextSwitchTo(caller);
	MemoryContextReset(pool->lot);
	if (keys != NULL)
		MemoryContextReset(keys->context);
	pg_atomic_write_u32(&slot->is_done, 0);
	pool->n_put++;
	return true;
}

/* Until the oldest batch is put: does others' meanwhile. */
static void
work_until_put(AgPredictPool *pool)
{
	Slot *oldest = slot_of(pool->ring, pool->slots, pool->n_put);
	uint64 batch;

	while (!put_oldest(pool))
	{
		CHECK_FOR_INTERRUPTS(); /* raises a worker's error, too */
		if (take(pool->ring, &batch))
		{
			predict(pool->ring, pool->slots, batch, pool->model);
			continue;
		}
		ConditionVariablePrepareToSleep(&pool->ring->done);
		while (pg_atomic_read_u32(&oldest->is_done) == 0)
			ConditionVariableSleep(&pool->ring->done, ag_wait_event(AG_WAIT_PREDICT));
		ConditionVariableCancelSleep();
	}
}

static void
fill(AgPredictPool *pool, const AgBatch *batch)
{
	Ring *ring = pool->ring;
	uint64 n = pg_atomic_read_u64(&ring->n_filled);
	Slot *slot = slot_of(ring, pool->slots, n);

	slot->n_rows = batch->n_rows;
	memcpy(slot->numbers, batch->features, sizeof(double) * batch->n_rows * ring->n_features);
	if (pool->keys != NULL)
	{
		Keys *keys = &pool->keys[n % ring->n_slots];

		for (int i = 0; i < batch->n_rows; i++)
			keys->texts[i] =
				batch->keys[i] != NULL ? MemoryContextStrdup(keys->context, batch->keys[i]) : NULL;
	}
	(void) pg_atomic_fetch_add_u64(&ring->n_filled, 1); /* a barrier, too */
	ConditionVariableSignal(&ring->work);
}

void
ag_predict_pool_take(void *arg, const AgBatch *batch)
{
	AgPredictPool *pool = arg;

	if (pool->reader != NULL &&
		pool->operators * cpu_operator_cost >= ALONE_SETUPS * parallel_setup_cost &&
		pool->operators > 0.0)
		get_workers(pool, batch->keys != NULL);
	if (pool->context == NULL)
	{
		pool->operators += batch->n_rows * ag_cost_of_row(pool->model, AG_ROW_COLUMNS);
		ag_predict_rows_take(pool->rows, batch);
		return;
	}
	while (put_oldest(pool))
		;
	if (pg_atomic_read_u64(&pool->ring->n_filled) - pool->n_put == pool->ring->n_slots)
		work_until_put(pool);
	fill(pool, batch);
}

void
ag_predict_pool_finish(AgPredictPool *pool)
{
	if (pool->context == NULL)
		return;
	while (pool->n_put < pg_atomic_read_u64(&pool->ring->n_filled))
		work_until_put(pool);
	let_go(pool);
}
