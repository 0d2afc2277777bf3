/*
 * result.c - see result.h.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "common/shortest_dec.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"

#include "pg/result.h"

void
ag_result_type_init(AgResultType *result, Oid type, MemoryContext context)
{
	char category;
	bool is_preferred;
	Oid input;

	result->type = type;
	result->base = getBaseType(type);
	get_type_category_preferred(result->base, &category, &is_preferred);
	result->is_numeric = category == TYPCATEGORY_NUMERIC;
	getTypeInputInfo(type, &input, &result->io_param);
	fmgr_info_cxt(input, &result->input, context);
}

char *
ag_result_number_text(double value)
{
	char *text = palloc(DOUBLE_SHORTEST_DECIMAL_LEN);

	double_to_shortest_decimal_buf(value, text);
	return text;
}

static Datum
from_text(AgResultType *result, char *text)
{
	return InputFunctionCall(&result->input, text, result->io_param, -1);
}

static Datum
from_number(AgResultType *result, double value)
{
	if (result->type == FLOAT8OID)
		return Float8GetDatum(value);
	if (result->base == INT2OID || result->base == INT4OID || result->base == INT8OID)
		return from_text(result, psprintf("%.0f", rint(value)));
	return from_text(result, ag_result_number_text(value));
}

Datum
ag_result_datum(AgResultType *result, const AgOpenModel *model, const double *out)
{
	const AgClass *class;

	if (model->n_classes == 0)
		return from_number(result, out[model->middle]);
	class = &model->classes[ag_model_best_class(model, out)];
	if (result->is_numeric && !isnan(class->number) && !ag_model_is_rounded(model, class->number))
		return from_number(result, class->number);
	return from_text(result, ag_model_text(model, class->name, class->n_bytes));
}

Datum
ag_result_quantiles(const AgOpenModel *model, const double *out)
{
	Datum values[AG_MAX_QUANTILES];

	for (int i = 0; i < model->n_quantiles; i++)
		values[i] = Float8GetDatum(out[model->quantile_order[i]]);
	return PointerGetDatum(construct_array(values, model->n_quantiles, FLOAT8OID, sizeof(float8),
										   FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

JsonbValue *
ag_result_class_keys(const AgOpenModel *model)
{
	JsonbValue *keys = palloc0(sizeof(JsonbValue) * Max(model->n_classes, 1));

	for (int i = 0; i < model->n_classes; i++)
	{
		char *name = ag_model_text(model, model->classes[i].name, model->classes[i].n_bytes);

		keys[i].type = jbvString;
		keys[i].val.string.val = name;
		keys[i].val.string.len = (int) strlen(name);
	}
	return keys;
}

/* Exactly: float8's own way to numeric keeps 15 digits only. */
static Numeric
exact_numeric(double value)
{
	return DatumGetNumeric(DirectFunctionCall3(numeric_in,
											   CStringGetDatum(ag_result_number_text(value)),
											   ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1)));
}

Jsonb *
ag_result_proba(const AgOpenModel *model, JsonbValue *class_keys, const double *out)
{
	JsonbParseState *state = NULL;

	pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	for (int i = 0; i < model->n_classes; i++)
	{
		JsonbValue value = {.type = jbvNumeric};

		value.val.numeric = exact_numeric(out[i]);
		pushJsonbValue(&state, WJB_KEY, &class_keys[i]);
		pushJsonbValue(&state, WJB_VALUE, &value);
	}
	return JsonbValueToJsonb(pushJsonbValue(&state, WJB_END_OBJECT, NULL));
}
