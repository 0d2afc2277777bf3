/*
 * fit_again.h - the rows and folds of a fit made once more beside it, and its members on those rows.
 */
#ifndef AG_FIT_AGAIN_H
#define AG_FIT_AGAIN_H

#include "unit/fit_cases.h"

/* Room for the split of any fold. */
static inline void
split_room(AgFit *fit)
{
	AgSplit *split = &fit->validation.split;

	if (fit->validation.n_folds == 0)
		return;
	split->train_rows = ag_mem_alloc(fit->ctx.mem, (size_t) fit->n_rows, sizeof(uint32_t));
	split->valid_rows = ag_mem_alloc(fit->ctx.mem, (size_t) fit->n_rows, sizeof(uint32_t));
	AG_REQUIRE(split->train_rows != NULL && split->valid_rows != NULL);
}

/* The rows as the fit has them, and their folds. */
typedef struct Again
{
	AgContext ctx;
	AgError err;
	AgTable *table;
	AgLabel *label;
	AgPipeline *pipeline;
	AgFitOptions *options;
	AgFit fit;
} Again;

static inline void
again(Again *a, const Setting *s)
{
	int64_t n_left_out;

	memset(a, 0, sizeof *a);
	ag_error_init(&a->err);
	a->ctx.mem = s->mem;
	a->ctx.deadline_ns = INT64_MAX;
	a->ctx.error = &a->err;
	AG_REQUIRE(ag_options_parse(s->mem, s->entries, s->n_entries, &a->options, &a->err) == AG_OK);
	AG_REQUIRE(table_make(&a->ctx, s, &a->table) == AG_OK);
	AG_REQUIRE(ag_table_finish(&a->ctx, a->table, &n_left_out) == AG_OK);
	AG_REQUIRE(ag_label_fit(&a->ctx, a->table, 3, AG_PROBLEM_AUTO, NULL, &a->label) == AG_OK);
	AG_REQUIRE(ag_pipeline_fit(&a->ctx, a->table, a->label, "UTC", false, NULL, &a->pipeline) ==
			   AG_OK);
	a->fit.ctx = a->ctx;
	a->fit.options = a->options;
	a->fit.label = a->label;
	a->fit.n_rows = a->table->n_rows;
	AG_REQUIRE(ag_fit_split(&a->fit) == AG_OK);
	split_room(&a->fit);
}

static inline void
again_free(Again *a)
{
	ag_validation_free(&a->ctx, &a->fit.validation);
	ag_pipeline_free(a->pipeline);
	ag_label_free(a->label);
	ag_table_free(a->table);
	ag_options_free(a->options);
}

static inline int
find_name(const Result *r, const char *name)
{
	for (int i = 0; i < r->n_members; i++)
		if (strcmp(r->names[i], name) == 0)
			return i;
	return -1;
}

static inline AgPredictor *
open_member(Again *a, const Result *r, int member)
{
	AgMemberRef refs[MAX_MEMBERS];
	AgPredictor *predictor = NULL;

	for (int i = 0; i < r->n_members; i++)
		refs[i] = (AgMemberRef){
			i + 1, r->names[i], r->families[i], r->n_inputs[i], r->inputs[i], r->weights[i], 0,
			0,     NULL};
	AG_CHECK_EQ(ag_predictor_open(&a->ctx, r->images, r->n_images, refs, r->n_members, member + 1,
								  &predictor),
				AG_OK);
	return predictor;
}

static inline void
predict_row(const Again *a, AgPredictor *predictor, int64_t row, double *out)
{
	const AgTableColumn *columns = a->table->columns;
	AgValue values[3];

	memset(values, 0, sizeof values);
	values[0].v.f64 = ((const double *) columns[0].values)[row];
	values[1].v.b = ((const uint8_t *) columns[1].values)[row] != 0;
	values[2].v.i32 = ((const int32_t *) columns[2].values)[row];
	ag_predictor_run(predictor, values, out);
}

#endif
