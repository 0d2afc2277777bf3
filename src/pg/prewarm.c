/*
 * prewarm.c - ag_prewarm: a model read, checked and laid out before the first prediction needs it.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"

#include "pg/batch.h"
#include "pg/catalog.h"

PG_FUNCTION_INFO_V1(ag_sql_prewarm);

Datum
ag_sql_prewarm(PG_FUNCTION_ARGS)
{
	const AgOpenModel *model;
	AgPredictorRow *row;
	pg_uuid_t id;
	char *member;
	double nothing = 0.0;

	ag_catalog_find(text_to_cstring(PG_GETARG_TEXT_PP(0)), &id, &member, &row);
	model = ag_cache_get(&id, member != NULL ? member : row->best_model, CurrentMemoryContext);
	ag_batch_predict(model, 0, &nothing, &nothing);
	PG_RETURN_VOID();
}
