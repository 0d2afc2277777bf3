/*
 * interval.c - ag_predict_interval: bounds that the true value lies between as often as asked.
 *
 * Conformal prediction with absolute errors of rows that the models had not seen (Vovk, Gammerman, Shafer 2005; Barber et al. 2021, "Predictive inference with the
 * jackknife+", for errors out of fold): of n of them the ceil((n + 1) coverage)-th smallest to either side. Where weights count in scores, a row counts as
 * much as it weighs, and one to come as much as they do on average (Tibshirani, Barber, Candes, Ramdas 2019, "Conformal prediction under covariate shift",
 * lemma 1): the smallest that so much weight isn't above. No assumption on the model or on how errors are distributed, but that rows to come are like those
 * of the fit; and equally wide everywhere, rounded up to six binary digits.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/array.h"

#include "pg/call.h"
#include "pg/catalog.h"
#include "pg/oof.h"

typedef struct Errors
{
	int64 n;
	double total;       /* weight of the rows, and of one more */
	AgOofError *sorted; /* [n] ascending */
	double *weight;     /* [n] of the rows up to each */
} Errors;

static void
weigh(Errors *errors)
{
	double sum = 0;

	errors->weight = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(double) * errors->n);
	for (int64 i = 0; i < errors->n; i++)
		errors->weight[i] = sum += errors->sorted[i].weight;
	errors->total = sum + sum / (double) errors->n;
}

/* The smallest error that so much of the weight isn't above; infinite where it takes the row to come, of which nothing is known. */
static double
width_of(const Errors *errors, double coverage)
{
	double wanted = errors->total * coverage * (1 - 1e-12); /* sums are rounded */
	int64 low = 0, high = errors->n;

	if (!(errors->total > 0))
		return INFINITY;
	while (low < high)
	{
		int64 middle = low + (high - low) / 2;

		if (errors->weight[middle] < wanted)
			low = middle + 1;
		else
			high = middle;
	}
	return low < errors->n ? errors->sorted[low].distance : INFINITY;
}

/* Read once for each place in a plan and model. */
static const Errors *
errors_of(AgCall *call)
{
	Errors *errors = call->extra;
	AgModelName name;
	MemoryContext old;

	if (errors != NULL)
		return errors;
	if (call->model->n_classes > 0 || call->model->n_quantiles > 0)
		ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
						errmsg("model \"%s\" predicts %s, not a number", call->name,
							   call->model->n_classes > 0 ? "a class" : "quantiles"),
						errhint("Use %s.", call->model->n_classes > 0 ? "ag_predict_proba"
																	  : "ag_predict_quantiles")));
	ag_model_name_parse(call->name, &name);
	if (name.member != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"%s\" names one member of a model", call->name),
				 errdetail("Errors on rows that were not trained on are kept of the best one.")));
	old = MemoryContextSwitchTo(call->context);
	errors = palloc(sizeof(Errors));
	errors->sorted = ag_oof_errors(call->model, call->name, &errors->n);
	weigh(errors);
	MemoryContextSwitchTo(old);
	call->extra = errors;
	return errors;
}

/*
 * The next number up that has six binary digits, less than 1/31 above. Whoever may predict may ask for any coverage: the errors of single rows, to
 * their last digit, would tell him whether a row that he has in mind was among those of the fit. Wider, so the coverage still holds.
 */
static double
coarse_above(double width)
{
	int exponent;
	double digits;

	if (isinf(width))
		return width;
	digits = frexp(width, &exponent);
	return ldexp(ceil(digits * 64), exponent - 6);
}

static Datum
predict_interval(FunctionCallInfo fcinfo, AgRowForm form)
{
	text *name = PG_GETARG_TEXT_PP(0);
	AgCall *call = ag_call_get((AgCall **) &fcinfo->flinfo->fn_extra, fcinfo->flinfo->fn_mcxt,
							   VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name), InvalidOid);
	double coverage = PG_GETARG_FLOAT8(2);
	const Errors *errors = errors_of(call);
	double width, prediction;
	Datum bounds[2];

	if (!(coverage > 0 && coverage < 1))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("the coverage must be above 0 and below 1"),
						errhint("0.9 means that nine of ten intervals hold the true number.")));
	ag_call_run(call, form, PG_GETARG_DATUM(1));
	prediction = call->out[0];
	width = coarse_above(width_of(errors, coverage));
	bounds[0] = Float8GetDatum(prediction - width);
	bounds[1] = Float8GetDatum(prediction + width);
	PG_RETURN_ARRAYTYPE_P(
		construct_array(bounds, 2, FLOAT8OID, sizeof(float8), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

PG_FUNCTION_INFO_V1(ag_sql_predict_interval_record);
PG_FUNCTION_INFO_V1(ag_sql_predict_interval_jsonb);
PG_FUNCTION_INFO_V1(ag_sql_predict_interval_text);

Datum
ag_sql_predict_interval_record(PG_FUNCTION_ARGS)
{
	return predict_interval(fcinfo, AG_ROW_RECORD);
}

Datum
ag_sql_predict_interval_jsonb(PG_FUNCTION_ARGS)
{
	return predict_interval(fcinfo, AG_ROW_JSONB);
}

Datum
ag_sql_predict_interval_text(PG_FUNCTION_ARGS)
{
	return predict_interval(fcinfo, AG_ROW_TEXT);
}
