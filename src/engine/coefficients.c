/*
 * coefficients.c - what linear models have learnt, in the terms of the table's columns, as JSON.
 *
 * A model's numbers are scaled columns; here a coefficient is for one unit of the column, and the intercept is the score where all numbers are 0. Columns that were bent to a normal
 * curve have no such unit: theirs is one standard deviation of the curve.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/linear.h"
#include "engine/model/prep.h"
#include "engine/model/stacked.h"
#include "engine/predictor_private.h"
#include "engine/search/json.h"

#define MOST_NUMBERS 10000 /* of a model; with many outputs it tells fewer terms */
#define MOST_LEVEL_BYTES 256

typedef enum TermKind
{
	TERM_NUMBER,
	TERM_NORMAL, /* of a bent column */
	TERM_LEVEL,
	TERM_OTHER,
	TERM_MISSING
} TermKind;

static const char *const kind_names[] = {"number", "normal", "level", "other", "missing"};

typedef struct Term
{
	TermKind kind;
	uint32_t feature; /* of the linear model */
	uint32_t level;
	uint32_t row; /* of its coefficients */
	uint32_t place;
	double size; /* the greatest of them, as the model scales them */
} Term;

typedef struct Telling
{
	const AgContext *ctx;
	const AgPredictor *predictor;
	const AgMemberRef *members;
	int n_members;
	AgWriter *out;
	/* the model at hand */
	const AgLeaf *leaf;
	const AgPrep *prep; /* NULL: none */
	const AgLinear *linear;
	Term *terms;
	size_t n_terms;
	size_t n_zero, n_left_out;
} Telling;

static double
bounded(double x)
{
	return fmin(fmax(x, -DBL_MAX), DBL_MAX); /* no NaN either */
}

/* --- which terms */

static void
term_add(Telling *t, TermKind kind, uint32_t feature, uint32_t level, uint32_t row)
{
	const double *b = t->linear->coefficients + (size_t) row * t->linear->n_outputs;
	Term term = {kind, feature, level, row, (uint32_t) t->n_terms, 0.0};

	for (uint32_t k = 0; k < t->linear->n_outputs; k++)
		term.size = fmax(term.size, fabs(b[k]));
	if (term.size > 0.0)
		t->terms[t->n_terms++] = term;
	else
		t->n_zero++;
}

static void
slot_terms(Telling *t, uint32_t f)
{
	const AgDense *dense = t->linear->dense;
	const AgDenseFeature *feature = &dense->features[f];
	const AgDenseSlot *slot = &dense->slots[feature->slot];
	uint32_t first = dense->n_numbers + slot->first;

	for (uint32_t code = 0; feature->kind == AG_DENSE_CATEGORY && code < feature->n_items; code++)
	{
		uint32_t column = dense->levels[feature->first_item + code];

		if (column != AG_DENSE_NONE && column != slot->other)
			term_add(t, TERM_LEVEL, f, code, first + column);
	}
	if (slot->other != AG_DENSE_NONE)
		term_add(t, TERM_OTHER, f, 0, first + slot->other);
	if (slot->missing != AG_DENSE_NONE)
		term_add(t, TERM_MISSING, f, 0, first + slot->missing);
}

static int
compare_sizes(const void *left, const void *right)
{
	const Term *a = left, *b = right;

	if (a->size != b->size)
		return a->size > b->size ? -1 : 1;
	return a->place < b->place ? -1 : 1;
}

static int
compare_places(const void *left, const void *right)
{
	return ((const Term *) left)->place < ((const Term *) right)->place ? -1 : 1;
}

/* All that aren't 0, in the order of the columns; of too many the greatest. */
static AgStatus
terms_find(Telling *t, size_t most)
{
	const AgDense *dense = t->linear->dense;
	size_t room = (size_t) dense->n_numbers + 2 * (size_t) dense->n_slots;

	t->n_terms = t->n_zero = t->n_left_out = 0;
	for (uint32_t f = 0; f < dense->n_features; f++) /* which may share levels where it is forged */
		if (dense->features[f].kind == AG_DENSE_CATEGORY)
			room += dense->features[f].n_items;
	AG_TRY(ag_get(t->ctx, room, sizeof *t->terms, &t->terms));
	for (uint32_t f = 0; f < dense->n_features; f++)
	{
		const AgDenseFeature *feature = &dense->features[f];

		if (feature->number != AG_DENSE_NONE)
			term_add(t, feature->kind == AG_DENSE_CURVE ? TERM_NORMAL : TERM_NUMBER, f, 0,
					 feature->number);
		if (feature->slot != AG_DENSE_NONE)
			slot_terms(t, f);
	}
	if (t->n_terms <= most)
		return AG_OK;
	qsort(t->terms, t->n_terms, sizeof *t->terms, compare_sizes);
	qsort(t->terms, most, sizeof *t->terms, compare_places);
	t->n_left_out = t->n_terms - most;
	t->n_terms = most;
	return AG_OK;
}

/* --- what a term is of */

/* The predictor's feature that one of the linear model's is; false: a column of the model's own. */
static bool
outer_feature(const Telling *t, uint32_t f, uint32_t *outer)
{
	const AgPrep *prep = t->prep;

	*outer = f;
	if (prep == NULL || f < prep->first_hidden)
		return true;
	*outer = f + prep->n_hidden;
	return *outer < prep->n_in;
}

/* The feature of the pipeline; NULL: none, another model's prediction or the model's own column. */
static const AgFeature *
plain_feature(const Telling *t, uint32_t f)
{
	const AgPipeline *pipeline = t->predictor->pipeline;
	uint32_t outer;

	if (!outer_feature(t, f, &outer) || outer >= (uint32_t) pipeline->n_features)
		return NULL;
	return &pipeline->features[outer];
}

static const char *
member_name(const Telling *t, int ordinal)
{
	for (int i = 0; i < t->n_members; i++)
		if (t->members[i].ordinal == ordinal)
			return t->members[i].name;
	return "?";
}

/* "what of it": a name with something behind it, cut where it is long. */
static void
put_name(Telling *t, const char *name, const char *what)
{
	char text[600];

	snprintf(text, sizeof text, "%.*s%s", (int) ag_utf8_clip(name, strlen(name), 400), name, what);
	ag_json_string(t->out, text, strlen(text));
}

static void
put_outer_name(Telling *t, uint32_t outer, const char *what)
{
	const AgPredictor *predictor = t->predictor;
	const AgPipeline *pipeline = predictor->pipeline;
	const AgVector *vector = &predictor->vectors[t->leaf->vector];
	uint32_t n = (uint32_t) pipeline->n_features;
	int width = ag_stack_width(pipeline->problem, predictor->n_outputs);
	int input = (int) ((outer - n) / (uint32_t) width);
	char number[64];

	if (outer < n)
		put_name(t, pipeline->features[outer].name, what);
	else if (input >= vector->n_inputs)
		put_name(t, "?", what);
	else
	{
		number[0] = '\0';
		if (width > 1)
			snprintf(number, sizeof number, " (output %u)", (outer - n) % (uint32_t) width + 1);
		put_name(t, member_name(t, vector->inputs[input]), number);
	}
}

static void
put_feature(Telling *t, uint32_t f)
{
	uint32_t outer;
	const AgPrepColumn *column;
	char what[32];

	if (outer_feature(t, f, &outer))
	{
		put_outer_name(t, outer, "");
		return;
	}
	outer -= t->prep->n_in;
	column = &t->prep->columns[outer];
	snprintf(what, sizeof what, " (own column %u)", outer + 1);
	put_outer_name(t, column->kind == AG_PREP_CENTRED ? column->b : column->a,
				   column->kind == AG_PREP_COPY ? "" : what);
}

/* A unit that is easier to read than the one that features have, and how many of those it is. */
static const char *
unit_of(const Telling *t, uint32_t f, double *factor)
{
	const AgFeature *feature = plain_feature(t, f);

	*factor = 1.0;
	if (feature != NULL && feature->kind == AG_FEATURE_SINCE)
		return "second";
	if (feature == NULL || feature->kind != AG_FEATURE_NUMBER)
		return NULL;
	switch (t->predictor->pipeline->inputs[feature->input].type)
	{
		case AG_TYPE_DATE:
			return "day";
		case AG_TYPE_TIMESTAMP:
			*factor = 86400e6;
			return "day";
		case AG_TYPE_TIME:
			*factor = 3600e6;
			return "hour";
		case AG_TYPE_INTERVAL:
			return "second";
		default:
			return NULL;
	}
}

static void
put_level(Telling *t, const Term *term)
{
	const AgFeature *feature = plain_feature(t, term->feature);
	const AgDictionary *levels = NULL;

	if (feature != NULL && feature->kind == AG_FEATURE_CATEGORY)
		levels = t->predictor->pipeline->inputs[feature->input].levels;
	ag_json_raw(t->out, ", \"level\": ");
	if (levels != NULL && term->level < levels->n_levels)
		ag_json_string(t->out, levels->texts[term->level],
					   ag_utf8_clip(levels->texts[term->level], levels->n_bytes[term->level],
									MOST_LEVEL_BYTES));
	else
		ag_json_number(t->out, term->level); /* a unit's: the how-manieth it is */
}

/* --- their numbers */

/* What one unit of the column adds to score k, and what the score has when the column is 0. */
static double
slope_of(const Telling *t, const Term *term, uint32_t k, double *at_zero)
{
	const AgLinear *linear = t->linear;
	const AgDenseFeature *feature = &linear->dense->features[term->feature];
	double b = linear->coefficients[(size_t) term->row * linear->n_outputs + k];
	double slope;

	*at_zero = 0.0;
	if (linear->link == AG_LINK_IDENTITY || linear->link == AG_LINK_QUANTILES)
		b *= linear->spread;
	if (term->kind != TERM_NUMBER)
		return bounded(b);
	slope = b * feature->inverse * feature->scale;
	*at_zero = -b * feature->inverse * feature->centre;
	return slope;
}

static double
intercept_of(const Telling *t, uint32_t k)
{
	const AgLinear *linear = t->linear;
	const AgDense *dense = linear->dense;
	double sum = linear->intercepts[k];

	if (linear->link == AG_LINK_IDENTITY || linear->link == AG_LINK_QUANTILES)
		sum = linear->centre + linear->spread * sum;
	for (uint32_t f = 0; f < dense->n_features; f++)
	{
		Term term = {TERM_NUMBER, f, 0, dense->features[f].number, 0, 0.0};
		double at_zero;

		if (dense->features[f].kind != AG_DENSE_LINE)
			continue;
		slope_of(t, &term, k, &at_zero);
		sum += at_zero;
	}
	return sum;
}

/* One number, or of several outputs an array. */
static void
put_outputs(Telling *t, const Term *term)
{
	uint32_t n = t->linear->n_outputs;

	ag_json_raw(t->out, n > 1 ? "[" : "");
	for (uint32_t k = 0; k < n; k++)
	{
		double at_zero, factor = 1.0, value;

		if (term != NULL && term->kind == TERM_NUMBER)
			unit_of(t, term->feature, &factor);
		value = term != NULL ? slope_of(t, term, k, &at_zero) * factor : intercept_of(t, k);
		ag_json_raw(t->out, k > 0 ? ", " : "");
		ag_json_number(t->out, bounded(value));
	}
	ag_json_raw(t->out, n > 1 ? "]" : "");
}

static void
put_term(Telling *t, const Term *term)
{
	const AgFeature *plain = plain_feature(t, term->feature);
	double factor;
	const char *unit = unit_of(t, term->feature, &factor);

	ag_json_raw(t->out, "{\"feature\": ");
	put_feature(t, term->feature);
	ag_json_raw(t->out, ", \"kind\": ");
	ag_json_string(t->out, kind_names[term->kind], strlen(kind_names[term->kind]));
	if (term->kind == TERM_LEVEL)
		put_level(t, term);
	if (term->kind == TERM_NUMBER && unit != NULL)
	{
		ag_json_raw(t->out, ", \"unit\": ");
		ag_json_string(t->out, unit, strlen(unit));
	}
	if (term->kind == TERM_NUMBER && plain != NULL && plain->origin != 0)
	{
		char from[64]; /* sums from 0 on would lose the digits that count */

		snprintf(from, sizeof from, ", \"from\": %lld", (long long) plain->origin);
		ag_json_raw(t->out, from);
	}
	ag_json_raw(t->out, ", \"coefficient\": ");
	put_outputs(t, term);
	ag_json_raw(t->out, "}");
}

/* What the outputs are of: the positive class, the classes, the levels; nothing of a plain number. */
static void
put_of(Telling *t)
{
	const AgPipeline *pipeline = t->predictor->pipeline;
	int first = t->linear->link == AG_LINK_SIGMOID ? 1 : 0;

	if (t->linear->link == AG_LINK_IDENTITY)
		return;
	ag_json_raw(t->out, "\"of\": [");
	for (int k = 0; t->linear->link == AG_LINK_QUANTILES && k < pipeline->n_quantiles; k++)
	{
		ag_json_raw(t->out, k > 0 ? ", " : "");
		ag_json_number(t->out, pipeline->quantiles[k]);
	}
	for (int c = first; c < pipeline->n_classes; c++)
	{
		ag_json_raw(t->out, c > first ? ", " : "");
		ag_json_string(t->out, pipeline->classes[c].name, pipeline->classes[c].n_bytes);
	}
	ag_json_raw(t->out, "], ");
}

static void
put_count(Telling *t, const char *name, size_t n)
{
	char text[64];

	snprintf(text, sizeof text, ", \"%s\": %zu", name, n);
	ag_json_raw(t->out, text);
}

static const char *
link_name(uint32_t link)
{
	return link == AG_LINK_IDENTITY  ? "identity"
		   : link == AG_LINK_SIGMOID ? "sigmoid"
		   : link == AG_LINK_SOFTMAX ? "softmax"
									 : "quantiles";
}

/* The linear model that a leaf is, with or without columns of its own; NULL: it is another kind. */
static const AgLinear *
linear_of(const AgLeaf *leaf, const AgPrep **prep)
{
	const AgModel *model = &leaf->model;

	*prep = NULL;
	if (model->kind == AG_IMAGE_PREP)
	{
		*prep = model->fitted;
		model = &(*prep)->inner;
	}
	return model->kind == AG_IMAGE_LINEAR ? model->fitted : NULL;
}

static AgStatus
put_model(Telling *t, bool named, size_t most)
{
	size_t least = MOST_NUMBERS / t->linear->n_outputs;

	most = least < most ? least : most;
	AG_TRY(terms_find(t, most > 0 ? most : 1));
	ag_json_raw(t->out, "{");
	if (named)
	{
		ag_json_raw(t->out, "\"model\": ");
		put_name(t, member_name(t, t->leaf->ordinal), "");
		ag_json_raw(t->out, ", ");
	}
	ag_json_raw(t->out, "\"link\": ");
	ag_json_string(t->out, link_name(t->linear->link), strlen(link_name(t->linear->link)));
	ag_json_raw(t->out, ", ");
	put_of(t);
	ag_json_raw(t->out, "\"intercept\": ");
	put_outputs(t, NULL);
	ag_json_raw(t->out, ", \"terms\": [");
	for (size_t i = 0; i < t->n_terms; i++)
	{
		ag_json_raw(t->out, i > 0 ? ", " : "");
		put_term(t, &t->terms[i]);
	}
	ag_json_raw(t->out, "]");
	put_count(t, "zero", t->n_zero);
	put_count(t, "left_out", t->n_left_out);
	ag_json_raw(t->out, "}");
	ag_mem_free(t->ctx->mem, t->terms);
	t->terms = NULL;
	return AG_OK;
}

AgStatus
ag_predictor_coefficients(const AgContext *ctx, const AgPredictor *predictor,
						  const AgMemberRef *members, int n_members, int most_terms, AgWriter *out)
{
	Telling t = {
		.ctx = ctx, .predictor = predictor, .members = members, .n_members = n_members, .out = out};
	const AgPrep *prep;
	size_t n = 0, told = 0;

	for (int i = 0; i < predictor->n_leaves; i++)
		n += predictor->leaves[i].weight > 0.0 && linear_of(&predictor->leaves[i], &prep) != NULL;
	if (n != 1)
		ag_json_raw(out, "[");
	for (int i = 0; i < predictor->n_leaves; i++)
	{
		t.leaf = &predictor->leaves[i];
		t.linear = linear_of(t.leaf, &t.prep);
		if (t.linear == NULL || !(t.leaf->weight > 0.0))
			continue;
		ag_json_raw(out, told++ > 0 ? ", " : "");
		AG_TRY(put_model(&t, n != 1, (size_t) most_terms / n));
	}
	if (n != 1)
		ag_json_raw(out, "]");
	return out->failed ? ag_error_set(ctx->error, AG_ERR_MEMORY, "out of memory") : AG_OK;
}
