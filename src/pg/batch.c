/*
 * batch.c - see batch.h.
 */
#include "postgres.h"

#include "executor/spi.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "pg/batch.h"
#include "pg/errors.h"
#include "pg/row.h"

typedef struct Receiver
{
	DestReceiver pub;
	const AgOpenModel *model;
	AgRowMap *map;
	int key_column; /* in the rows, from 0; -1: none */
	FmgrInfo key_output;
	AgBatchTake take;
	void *arg;
	MemoryContext home;
	MemoryContext row; /* reset after each row */
	MemoryContext lot; /* reset after each batch: keys, and what the taker makes */
	double *features;  /* of the rows that wait */
	char **keys;       /* likewise */
	AgBatch batch;
	int64 n_rows;
	const AgSource *source;
} Receiver;

static void
receiver_startup(DestReceiver *self, int operation, TupleDesc desc)
{
	Receiver *receiver = (Receiver *) self;
	MemoryContext caller = MemoryContextSwitchTo(receiver->home);

	ag_source_check(receiver->source, desc);
	ag_row_map_bind(receiver->map, desc);
	if (receiver->key_column >= 0)
	{
		Oid output;
		bool is_varlena;

		getTypeOutputInfo(TupleDescAttr(desc, receiver->key_column)->atttypid, &output,
						  &is_varlena);
		fmgr_info_cxt(output, &receiver->key_output, receiver->home);
	}
	MemoryContextSwitchTo(caller);
}

static void
hand_over(Receiver *receiver)
{
	MemoryContext caller;

	if (receiver->batch.n_rows == 0)
		return;
	caller = MemoryContextSwitchTo(receiver->lot);
	receiver->take(receiver->arg, &receiver->batch);
	MemoryContextSwitchTo(caller);
	MemoryContextReset(receiver->lot);
	receiver->batch.n_rows = 0;
}

static void
keep_key(Receiver *receiver, TupleTableSlot *slot)
{
	bool is_null;
	Datum datum = slot_getattr(slot, receiver->key_column + 1, &is_null);
	char *key = NULL;

	if (!is_null)
		key = MemoryContextStrdup(receiver->lot, OutputFunctionCall(&receiver->key_output, datum));
	receiver->keys[receiver->batch.n_rows] = key;
}

static bool
receiver_receive(TupleTableSlot *slot, DestReceiver *self)
{
	Receiver *receiver = (Receiver *) self;
	AgPredictor *predictor = receiver->model->predictor;
	MemoryContext caller = MemoryContextSwitchTo(receiver->row);

	ag_predictor_encode(predictor, ag_row_from_slot(receiver->map, slot),
						receiver->features +
							(size_t) receiver->batch.n_rows * ag_predictor_features(predictor));
	if (receiver->key_column >= 0)
		keep_key(receiver, slot);
	receiver->n_rows++;
	if (++receiver->batch.n_rows == AG_BATCH_ROWS)
		hand_over(receiver);
	MemoryContextSwitchTo(caller);
	MemoryContextReset(receiver->row);
	return true;
}

static void
receiver_done(DestReceiver *self)
{
}

void
ag_batch_want(const AgOpenModel *model, AgSource *source)
{
	for (int i = 0; i < model->n_inputs; i++)
	{
		char *name;

		if (!model->inputs[i].is_used)
			continue;
		name = ag_model_text(model, model->inputs[i].name, strlen(model->inputs[i].name));
		for (int j = 0; j < source->n_columns; j++)
			if (strcmp(source->columns[j].name, name) == 0)
				source->columns[j].wanted = true;
	}
}

int64
ag_batch_run(const char *data, const char *name, const AgOpenModel *model, const char *key_column,
			 AgBatchTake take, void *arg)
{
	MemoryContext caller = CurrentMemoryContext;
	Receiver *receiver = palloc0(sizeof(Receiver));
	AgSource *source;
	int key = -1;

	receiver->pub.rStartup = receiver_startup;
	receiver->pub.receiveSlot = receiver_receive;
	receiver->pub.rShutdown = receiver_done;
	receiver->pub.rDestroy = receiver_done;
	receiver->pub.mydest = DestTuplestore; /* SPI takes DestNone for a utility command */
	receiver->model = model;
	receiver->map = ag_row_map_create(model, name, caller);
	receiver->take = take;
	receiver->arg = arg;
	receiver->home = caller;
	receiver->row = AllocSetContextCreate(caller, "ag_pg batch row", ALLOCSET_DEFAULT_SIZES);
	receiver->lot = AllocSetContextCreate(caller, "ag_pg batch", ALLOCSET_DEFAULT_SIZES);
	receiver->features = MemoryContextAllocHuge(
		caller, sizeof(double) * AG_BATCH_ROWS * Max(ag_predictor_features(model->predictor), 1));
	receiver->keys = palloc0(sizeof(char *) * AG_BATCH_ROWS);
	receiver->batch.features = receiver->features;
	receiver->batch.keys = key_column != NULL ? receiver->keys : NULL;
	receiver->key_column = -1;
	SPI_connect();
	source = ag_source_open(data);
	ag_batch_want(model, source);
	if (key_column != NULL)
	{
		key = ag_source_find_column(source, key_column, "key");
		source->columns[key].wanted = true;
	}
	ag_source_select(source);
	receiver->source = source;
	if (key >= 0)
		receiver->key_column = source->columns[key].position;
	ag_source_run(source, &receiver->pub);
	hand_over(receiver);
	SPI_finish();
	return receiver->n_rows;
}

void
ag_batch_predict(const AgOpenModel *model, int64 n, const double *features, double *out)
{
	AgMem mem;
	AgError error;
	AgContext ctx = {.mem = &mem, .deadline_ns = INT64_MAX, .error = &error};

	ag_mem_init(&mem, INT64_MAX);
	ag_error_init(&error);
	ag_error_check(ag_predictor_run_rows(&ctx, model->predictor, n, features, out), &error);
}
