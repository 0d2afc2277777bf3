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

struct AgBatchReader
{
	DestReceiver pub;
	const AgOpenModel *model;
	AgRowMap *map;
	int key;        /* among the source's columns; -1: none */
	int key_column; /* in the rows, from 0 */
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
	AgSource *source;
	bool is_bound; /* to the rows' descriptor */
};

static void
receiver_startup(DestReceiver *self, int operation, TupleDesc desc)
{
	AgBatchReader *receiver = (AgBatchReader *) self;
	MemoryContext caller;

	ag_source_check(receiver->source, desc);
	if (receiver->is_bound)
		return;
	caller = MemoryContextSwitchTo(receiver->home);
	ag_row_map_bind(receiver->map, desc);
	receiver->is_bound = true;
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
hand_over(AgBatchReader *receiver)
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
keep_key(AgBatchReader *receiver, TupleTableSlot *slot)
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
	AgBatchReader *receiver = (AgBatchReader *) self;
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

AgBatchReader *
ag_batch_open(const char *data, const char *name, const AgOpenModel *model, const char *key_column,
			  AgBatchTake take, void *arg)
{
	MemoryContext caller = CurrentMemoryContext;
	AgBatchReader *reader = palloc0(sizeof(AgBatchReader));

	reader->pub.rStartup = receiver_startup;
	reader->pub.receiveSlot = receiver_receive;
	reader->pub.rShutdown = receiver_done;
	reader->pub.rDestroy = receiver_done;
	reader->pub.mydest = DestTuplestore; /* SPI takes DestNone for a utility command */
	reader->model = model;
	reader->map = ag_row_map_create(model, name, caller);
	reader->take = take;
	reader->arg = arg;
	reader->home = caller;
	reader->row = AllocSetContextCreate(caller, "ag_pg batch row", ALLOCSET_DEFAULT_SIZES);
	reader->lot = AllocSetContextCreate(caller, "ag_pg batch", ALLOCSET_DEFAULT_SIZES);
	reader->features = MemoryContextAllocHuge(
		caller, sizeof(double) * AG_BATCH_ROWS * Max(ag_predictor_features(model->predictor), 1));
	reader->keys = palloc0(sizeof(char *) * AG_BATCH_ROWS);
	reader->batch.features = reader->features;
	reader->batch.keys = key_column != NULL ? reader->keys : NULL;
	reader->key = reader->key_column = -1;
	SPI_connect();
	reader->source = ag_source_open(data);
	ag_batch_want(model, reader->source);
	if (key_column != NULL)
	{
		reader->key = ag_source_find_column(reader->source, key_column, "key");
		reader->source->columns[reader->key].wanted = true;
	}
	return reader;
}

const AgSource *
ag_batch_source(const AgBatchReader *reader)
{
	return reader->source;
}

static void
find_key(AgBatchReader *reader)
{
	if (reader->key >= 0)
		reader->key_column = reader->source->columns[reader->key].position;
}

void
ag_batch_read(AgBatchReader *reader)
{
	ag_source_select(reader->source);
	find_key(reader);
	ag_source_run(reader->source, &reader->pub);
	hand_over(reader);
}

void
ag_batch_read_blocks(AgBatchReader *reader, Oid part, BlockNumber first, BlockNumber end)
{
	find_key(reader);
	ag_source_scan_blocks(reader->source, part, first, end, &reader->pub);
	hand_over(reader);
}

int64
ag_batch_close(AgBatchReader *reader)
{
	SPI_finish();
	return reader->n_rows;
}

int64
ag_batch_run(const char *data, const char *name, const AgOpenModel *model, const char *key_column,
			 AgBatchTake take, void *arg)
{
	AgBatchReader *reader = ag_batch_open(data, name, model, key_column, take, arg);

	ag_batch_read(reader);
	return ag_batch_close(reader);
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
