/*
 * families.c - ag_families: what each model family can be told.
 */
#include "postgres.h"

#include <math.h>

#include "fmgr.h"
#include "utils/builtins.h"

#include "engine/engine.h"
#include "engine/search/options.h"
#include "pg/errors.h"
#include "pg/result.h"
#include "pg/srf.h"

static const char *
param_type(const AgParamSpec *spec)
{
	switch (spec->type)
	{
		case AG_PARAM_INT:
			return "integer";
		case AG_PARAM_REAL:
			return "number";
		case AG_PARAM_BOOL:
			return "boolean";
		case AG_PARAM_CHOICE:
		case AG_PARAM_CHOICE_NUMBER:
			return "text";
		case AG_PARAM_INTS:
			return "integers";
	}
	return NULL;
}

static char *
bound_text(double bound)
{
	return isinf(bound) ? NULL : ag_result_number_text(bound);
}

static char *
param_range(const AgParamSpec *spec)
{
	char *low, *high;

	if (spec->type == AG_PARAM_BOOL)
		return NULL;
	if (spec->type == AG_PARAM_CHOICE || spec->type == AG_PARAM_CHOICE_NUMBER)
		return psprintf("one of %s", spec->choices);
	if (spec->type == AG_PARAM_INTS)
		return psprintf("up to %d, each %g to %g", AG_PARAM_MAX_INTS, spec->min, spec->max);
	low = bound_text(spec->min);
	high = bound_text(spec->max);
	if (low != NULL && high != NULL)
		return psprintf("%s to %s", low, high);
	if (low != NULL)
		return psprintf("%s or more", low);
	return high != NULL ? psprintf("%s or less", high) : NULL;
}

static char *
param_normal(const AgParamSpec *spec)
{
	size_t n_word;

	if (spec->type == AG_PARAM_BOOL)
		return pstrdup(spec->normal != 0 ? "true" : "false");
	if (spec->choices != NULL && ag_param_word(spec, spec->normal, &n_word) != NULL)
		return pnstrdup(ag_param_word(spec, spec->normal, &n_word), n_word);
	if (spec->type == AG_PARAM_INTS)
		return NULL;
	return ag_result_number_text(spec->normal);
}

/* What a family isn't fitted for, and why; NULL: nothing. */
static char *
left_out_of(const AgFamily *family)
{
	StringInfoData text;

	initStringInfo(&text);
	if (family->no_quantiles != NULL)
		appendStringInfo(&text, "problem_type quantile: %s", family->no_quantiles);
	if (!family->keeps_monotone)
		appendStringInfo(&text, "%smonotone_constraints: it does not keep monotone constraints",
						 text.len > 0 ? "; " : "");
	return text.len > 0 ? text.data : NULL;
}

static void
family_rows(AgSrf *srf, const AgFamily *family)
{
	for (int i = 0; i < *family->n_specs; i++)
	{
		const AgParamSpec *spec = &family->specs[i];
		Datum values[10];
		bool nulls[10] = {false};
		char space[128];

		ag_srf_text(values, nulls, 0, family->key);
		ag_srf_text(values, nulls, 1, spec->name);
		ag_srf_text(values, nulls, 2, spec->aliases);
		ag_srf_text(values, nulls, 3, param_type(spec));
		ag_srf_text(values, nulls, 4, param_range(spec));
		ag_srf_text(values, nulls, 5, param_normal(spec));
		values[6] = BoolGetDatum(family->on_gpu);
		ag_srf_text(values, nulls, 7, ag_message_from_utf8(spec->help));
		ag_srf_text(values, nulls, 8, left_out_of(family));
		ag_srf_text(values, nulls, 9,
					ag_search_default_text(family->id, spec, space, sizeof space));
		ag_srf_row(srf, values, nulls);
	}
}

PG_FUNCTION_INFO_V1(ag_sql_families);

Datum
ag_sql_families(PG_FUNCTION_ARGS)
{
	AgSrf srf;

	ag_srf_begin(&srf, fcinfo);
	for (int f = 0; f < AG_FAMILY_LAST; f++)
		family_rows(&srf, ag_family((AgFamilyId) f));
	return (Datum) 0;
}
