/*
 * threshold.c - ag_set_decision_threshold: from which probability on a row of a binary problem is called positive.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/builtins.h"

#include "pg/catalog.h"

PG_FUNCTION_INFO_V1(ag_sql_set_decision_threshold);

Datum
ag_sql_set_decision_threshold(PG_FUNCTION_ARGS)
{
	Oid types[2] = {FLOAT8OID, UUIDOID};
	char nulls[2] = {PG_ARGISNULL(1) ? 'n' : ' ', ' '};
	double threshold = PG_ARGISNULL(1) ? 0.5 : PG_GETARG_FLOAT8(1);
	AgPredictorRow *row;
	AgModelName name;
	Datum values[2];
	pg_uuid_t id;
	char *model;

	ag_catalog_refuse_read_only("ag_set_decision_threshold");
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	model = text_to_cstring(PG_GETARG_TEXT_PP(0));
	ag_model_name_parse(model, &name);
	if (name.member != NULL)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("\"%s\" names one member of a model", name.member),
						errhint("Give the model's name, or one version of it as 'name@3'.")));
	ag_catalog_find(model, &id, NULL, &row);
	ag_rights_require(row->right, AG_RIGHT_OWNER, name.name);
	if (strcmp(row->problem_type, "binary") != 0)
		ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
						errmsg("model \"%s\" has no decision threshold", model),
						errdetail("Its problem type is %s, not binary.", row->problem_type)));
	if (!(threshold >= 0.0 && threshold <= 1.0))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("decision threshold must be between 0 and 1")));
	values[0] = Float8GetDatum(threshold);
	values[1] = UUIDPGetDatum(&id);
	ag_catalog_execute("UPDATE @.ag_predictor SET decision_threshold = $1 WHERE id = $2", 2, types,
					   values, nulls);
	ag_catalog_changed();
	PG_RETURN_FLOAT8(isnan(row->decision_threshold) ? 0.5 : row->decision_threshold);
}
