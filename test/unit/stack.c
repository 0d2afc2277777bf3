/* stack.c - levels: what stackers learn from and are scored on, names, refits, forged levels, few rows, little memory. */
#include "unit/fit_again.h"

#include "engine/model/model.h"
#include "engine/model/stacked.h"

#define N_FOLDS 4
#define MAX_WIDTH 4

static const AgOptionEntry stacked[] = {
	{"/hyperparameters", AG_JSON_OBJECT, "3"},
	{"/hyperparameters/GBM", AG_JSON_OBJECT, "1"},
	{"/hyperparameters/GBM/num_boost_round", AG_JSON_NUMBER, "20"},
	{"/hyperparameters/LR", AG_JSON_OBJECT, "0"},
	{"/hyperparameters/KNN", AG_JSON_OBJECT, "0"},
	{"/num_bag_folds", AG_JSON_NUMBER, "4"},
	{"/num_stack_levels", AG_JSON_NUMBER, "1"},
	{"/refit_full", AG_JSON_NULL, ""},
	{"/ag_args_ensemble", AG_JSON_OBJECT, "1"},
	{"/ag_args_ensemble/use_child_oof", AG_JSON_BOOL, "false"}, /* KNN has folds, too */
	{"/ag_args_ensemble/save_bag_folds", AG_JSON_NULL, ""},
};
#define N_STACKED 10
#define N_ALL ((int) (sizeof stacked / sizeof stacked[0]))

static const AgImagePart *
image_of(const Result *r, int member)
{
	for (int i = 0; i < r->n_images; i++)
		if (r->images[i].member == member)
			return &r->images[i];
	return NULL;
}

/* A child of a stacker taken out of its image; *inputs: whom it looks at. */
static void
open_inner(Again *a, const Result *r, const char *name, AgModel *model, AgStacked *image)
{
	const AgImagePart *part = image_of(r, find_name(r, name) + 1);

	AG_REQUIRE(part != NULL);
	AG_REQUIRE(ag_stacked_read(&a->ctx, part->data, part->size, image) == AG_OK);
	AG_REQUIRE(ag_model_read(&a->ctx, image->model, image->n_model, model) == AG_OK);
}

/* What a row's vector is on the second level, when every input's output is known: [n_inputs][width]. */
static int
vector_make(const Again *a, int64_t row, int n_inputs, const double (*outputs)[MAX_WIDTH],
			double *vector)
{
	AgProblem problem = a->label->problem;
	int n = a->pipeline->n_features, n_out = a->label->n_classes > 0 ? a->label->n_classes : 1;
	uint32_t id = (uint32_t) row;

	for (int f = 0; f < n; f++)
		ag_pipeline_feature(a->pipeline, a->table, f, &id, 1, &vector[f]);
	for (int i = 0; i < n_inputs; i++)
		for (int k = 0; k < ag_stack_width(problem, n_out); k++)
			vector[n++] = outputs[i][ag_stack_first(problem) + k];
	return n;
}

/* Stored members answer as their models do on features and the answers of the level below. */
static void
answers_are_stacked(Again *a, const Result *r)
{
	AgPredictor *inputs[3], *child = open_member(a, r, find_name(r, "GBM_BAG_L2/S1F2"));
	AgStacked image;
	AgModel model;
	int n_out = a->label->n_classes > 0 ? a->label->n_classes : 1;
	double many[40 * MAX_WIDTH], features[40 * 8];

	open_inner(a, r, "GBM_BAG_L2/S1F2", &model, &image);
	AG_REQUIRE(image.n_inputs == 3);
	for (int i = 0; i < 3; i++)
	{
		AG_CHECK_EQ(r->levels[image.inputs[i] - 1], 1);
		AG_CHECK_EQ(r->folds[image.inputs[i] - 1], 0);
		inputs[i] = open_member(a, r, (int) image.inputs[i] - 1);
	}
	for (int64_t row = 0; row < 40; row++)
	{
		double outputs[3][MAX_WIDTH], vector[32], want[MAX_WIDTH], got[MAX_WIDTH];
		void *scratch = ag_mem_alloc(a->ctx.mem, ag_model_scratch_bytes(&model), 1);

		for (int i = 0; i < 3; i++)
			predict_row(a, inputs[i], row, outputs[i]);
		AG_CHECK_EQ(vector_make(a, row, 3, (const double(*)[MAX_WIDTH]) outputs, vector),
					(int) ag_model_n_features(&model));
		ag_model_run(&model, vector, scratch, want);
		predict_row(a, child, row, got);
		for (int k = 0; k < n_out; k++)
			AG_CHECK_NEAR(got[k], want[k], 1e-12);
		ag_mem_free(a->ctx.mem, scratch);
		vector_make(a, row, 0, NULL, features + row * a->pipeline->n_features);
		AG_CHECK(a->pipeline->n_features <= 8);
	}
	AG_CHECK_EQ(ag_predictor_run_rows(&a->ctx, child, 40, features, many), AG_OK);
	for (int64_t row = 0; row < 40; row++)
	{
		double got[MAX_WIDTH];

		predict_row(a, child, row, got);
		AG_CHECK(memcmp(got, many + row * n_out, (size_t) n_out * sizeof(double)) == 0);
	}
	for (int i = 0; i < 3; i++)
		ag_predictor_close(inputs[i]);
	ag_predictor_close(child);
	ag_model_free(&model);
}

/* What a bag of the first level says of the rows its child of that fold wasn't trained on: [n_rows][n_out]. */
static double *
first_level(Again *a, const Result *r, int bag)
{
	int n_out = a->label->n_classes > 0 ? a->label->n_classes : 1;
	double *out = calloc((size_t) (a->fit.n_rows * n_out), sizeof *out);

	for (int f = 0; f < N_FOLDS; f++)
	{
		AgPredictor *child = open_member(a, r, r->inputs[bag][f] - 1);

		for (int64_t row = 0; row < a->fit.n_rows; row++)
			if (a->fit.validation.fold_of[row] == f)
				predict_row(a, child, row, out + row * n_out);
		ag_predictor_close(child);
	}
	return out;
}

/* A stacker's score: each row by the child without it, which sees what bags below said of it out of fold. */
static void
scores_are_out_of_fold(Again *a, const Result *r, const char *bag)
{
	const AgValidation *v = &a->fit.validation;
	int n_out = a->label->n_classes > 0 ? a->label->n_classes : 1;
	double *proba = calloc((size_t) (v->n_scored * n_out), sizeof *proba), *below[3], value;
	char name[80];
	AgStacked image;
	AgModel model;

	for (int f = 0; f < N_FOLDS; f++)
	{
		void *scratch;

		snprintf(name, sizeof name, "%s/S1F%d", bag, f + 1);
		open_inner(a, r, name, &model, &image);
		scratch = ag_mem_alloc(a->ctx.mem, ag_model_scratch_bytes(&model), 1);
		for (int i = 0; f == 0 && i < 3; i++)
			below[i] = first_level(a, r, (int) image.inputs[i] - 1);
		for (int64_t i = 0; i < v->n_scored; i++)
		{
			int64_t row = v->scored_rows[i];
			double outputs[3][MAX_WIDTH], vector[32];

			if (v->fold_of[row] != f)
				continue;
			for (int b = 0; b < 3; b++)
				memcpy(outputs[b], below[b] + row * n_out, (size_t) n_out * sizeof(double));
			vector_make(a, row, 3, (const double(*)[MAX_WIDTH]) outputs, vector);
			ag_model_run(&model, vector, scratch, proba + i * n_out);
		}
		ag_mem_free(a->ctx.mem, scratch);
		ag_model_free(&model);
	}
	if (v->class_of != NULL)
		AG_CHECK_EQ(ag_metric_classes(&a->ctx, r->metric, v->n_scored, n_out, v->class_of, proba,
									  0.5, NULL, &value),
					AG_OK);
	else
		AG_CHECK_EQ(
			ag_metric_regression(&a->ctx, r->metric, v->n_scored, v->target, proba, NULL, &value),
			AG_OK);
	AG_CHECK_NEAR(ag_metric_score(r->metric, value), r->scores[find_name(r, bag)], 1e-9);
	for (int i = 0; i < 3; i++)
		free(below[i]);
	free(proba);
}

static void
levels_learn(AgMem *mem)
{
	static const int classes[] = {0, 2, 4};

	for (int i = 0; i < 3; i++)
	{
		Setting s = {.mem = mem,
					 .n_rows = 400,
					 .n_classes = classes[i],
					 .entries = stacked,
					 .n_entries = N_STACKED,
					 .n_threads = 2};
		Result r = {0};
		AgError err;
		Again a;
		int last;

		AG_REQUIRE(run(&s, &r, &err) == AG_OK);
		last = r.n_members - 1;
		/* no nearest neighbours above */
		AG_CHECK_EQ(r.n_members, 5 * (N_FOLDS + 1) + 2);
		AG_CHECK(find_name(&r, "KNN_BAG_L2") < 0);
		AG_CHECK_STR(r.names[last], "WeightedEnsemble_L3");
		AG_CHECK_STR(r.names[last - 1], "WeightedEnsemble_L2");
		AG_CHECK_EQ(r.levels[last], 3);
		AG_CHECK_EQ(r.levels[find_name(&r, "LR_BAG_L2")], 2);
		AG_CHECK_EQ(r.levels[find_name(&r, "LR_BAG_L2/S1F1")], 2);
		AG_CHECK_EQ(r.levels[find_name(&r, "LR_BAG_L1")], 1);
		AG_CHECK(strstr(r.plan, "\"num_stack_levels\": 1") != NULL);
		again(&a, &s);
		answers_are_stacked(&a, &r);
		scores_are_out_of_fold(&a, &r, "GBM_BAG_L2");
		scores_are_out_of_fold(&a, &r, "LR_BAG_L2");
		again_free(&a);
		for (int m = 1; m <= r.n_members; m++)
			AG_CHECK(error_of(mem, &r, m, classes[i]) < 0.4);
		result_free(&r);
	}
	AG_CHECK_EQ(mem->used_bytes, 0);
}

/* Three levels; the same bytes at any number of threads. */
static void
levels_repeat(AgMem *mem)
{
	AgOptionEntry entries[N_STACKED];
	Setting s = {
		.mem = mem, .n_rows = 200, .n_classes = 2, .entries = entries, .n_entries = N_STACKED};
	Result one = {0}, three = {0};
	AgError err;

	memcpy(entries, stacked, sizeof entries);
	entries[6].text = "2";
	s.n_threads = 1;
	AG_REQUIRE(run(&s, &one, &err) == AG_OK);
	s.n_threads = 3;
	AG_REQUIRE(run(&s, &three, &err) == AG_OK);
	AG_CHECK_EQ(one.n_members, 7 * (N_FOLDS + 1) + 3);
	AG_CHECK_STR(one.names[one.n_members - 1], "WeightedEnsemble_L4");
	AG_CHECK_EQ(one.levels[find_name(&one, "GBM_BAG_L3")], 3);
	AG_CHECK_EQ(one.n_images, three.n_images);
	for (int i = 0; i < one.n_images; i++)
		AG_CHECK(one.images[i].size == three.images[i].size &&
				 memcmp(one.images[i].data, three.images[i].data, one.images[i].size) == 0);
	AG_CHECK(error_of(mem, &one, find_name(&one, "GBM_BAG_L3") + 1, 2) < 0.2);
	result_free(&one);
	result_free(&three);
	AG_CHECK_EQ(mem->used_bytes, 0);
}

/* The number behind a text, wherever it comes first; -1: nowhere. */
static int
number_behind(const char *text, const char *what)
{
	const char *at = strstr(text, what);

	return at != NULL ? atoi(at + strlen(what)) : -1;
}

/* What a plan says of the trainings that levels above ask for is what there are then. */
static void
nested_are_counted(AgMem *mem)
{
	static const struct
	{
		const char *folds, *sets, *levels;
		int of_first, of_second; /* trainings that each model of that level is asked for */
	} cases[] = {
		{"4", "1", "1", 6, -1},   /* pairs of 4 */
		{"3", "2", "1", 6, -1},   /* of 3, twice */
		{"10", "1", "1", 36, -1}, /* pairs of 8 parts, and each part, which is more than a fold */
		{"5", "1", "2", 20, 10},  /* pairs and triples; above, pairs */
	};

	for (int i = 0; i < (int) (sizeof cases / sizeof cases[0]); i++)
	{
		const AgOptionEntry entries[] = {
			{"/hyperparameters", AG_JSON_OBJECT, "2"},
			{"/hyperparameters/GBM", AG_JSON_OBJECT, "1"},
			{"/hyperparameters/GBM/num_boost_round", AG_JSON_NUMBER, "2"},
			{"/hyperparameters/LR", AG_JSON_OBJECT, "0"},
			{"/num_bag_folds", AG_JSON_NUMBER, cases[i].folds},
			{"/num_bag_sets", AG_JSON_NUMBER, cases[i].sets},
			{"/num_stack_levels", AG_JSON_NUMBER, cases[i].levels},
			{"/dry_run", AG_JSON_BOOL, "true"},
		};
		Setting s = {.mem = mem, .n_rows = 120, .entries = entries, .n_entries = 8, .n_threads = 2};
		Result planned = {0}, fitted = {0};
		char key[] = "\"nested_trainings_at_most\": ", *second;
		AgError err;

		AG_REQUIRE(run(&s, &planned, &err) == AG_OK);
		s.n_entries = 7;
		AG_REQUIRE(run(&s, &fitted, &err) == AG_OK);
		AG_CHECK_EQ(number_behind(planned.plan, key), cases[i].of_first);
		second = strstr(planned.plan, "\"GBM_BAG_L2\"");
		AG_CHECK(second != NULL && number_behind(second, key) == cases[i].of_second);
		/* two models each */
		AG_CHECK_EQ(number_behind(fitted.log, "level 2 is scored on ("), 2 * cases[i].of_first);
		if (cases[i].of_second > 0)
			AG_CHECK_EQ(number_behind(fitted.log, "level 3 is scored on ("),
						2 * cases[i].of_second);
		result_free(&planned);
		result_free(&fitted);
		AG_CHECK_EQ(mem->used_bytes, 0);
	}
}

/* Refits look at refits; bags that none needs are not stored, and everything that says so can predict. */
static void
levels_refit(AgMem *mem)
{
	AgOptionEntry entries[N_ALL];
	Setting s = {.mem = mem, .n_rows = 200, .entries = entries, .n_entries = N_ALL};
	Result r = {0};
	AgError err;
	int full;

	memcpy(entries, stacked, sizeof entries);
	entries[7] = (AgOptionEntry){"/refit_full", AG_JSON_BOOL, "true"};
	entries[8] = (AgOptionEntry){"/ag_args_ensemble", AG_JSON_OBJECT, "2"};
	entries[10] = (AgOptionEntry){"/ag_args_ensemble/save_bag_folds", AG_JSON_BOOL, "false"};
	AG_REQUIRE(run(&s, &r, &err) == AG_OK);
	full = find_name(&r, "GBM_BAG_L2_FULL");
	AG_REQUIRE(full >= 0);
	AG_CHECK_EQ(r.n_inputs[full], 3);
	for (int i = 0; i < 3; i++)
		AG_CHECK(strstr(r.names[r.inputs[full][i] - 1], "_L1_FULL") != NULL);
	AG_CHECK(find_name(&r, "GBM_BAG_L1/S1F1") < 0);
	AG_CHECK(!r.can_infer[find_name(&r, "GBM_BAG_L2")]);
	AG_CHECK(strstr(r.best, "_FULL") != NULL);
	for (int m = 0; m < r.n_members; m++)
		if (r.can_infer[m])
			AG_CHECK(error_of(mem, &r, m + 1, 0) < 0.4);
	AG_CHECK(r.can_infer[find_name(&r, r.best)]);
	result_free(&r);
	AG_CHECK_EQ(mem->used_bytes, 0);
}

static AgStatus
open_forged(AgMem *mem, const Result *r, const AgMemberRef *refs, int member)
{
	AgError err;
	AgContext ctx = {.mem = mem, .deadline_ns = INT64_MAX, .error = &err};
	AgPredictor *predictor;
	AgStatus status;

	ag_error_init(&err);
	status =
		ag_predictor_open(&ctx, r->images, r->n_images, refs, r->n_members, member, &predictor);
	AG_CHECK((status == AG_OK) == (predictor != NULL));
	ag_predictor_close(predictor);
	return status;
}

/* Other inputs than the image says, a level that looks at itself, models of the wrong level. */
static void
levels_forged(AgMem *mem)
{
	Setting s = {.mem = mem, .n_rows = 120, .entries = stacked, .n_entries = N_STACKED};
	AgMemberRef refs[MAX_MEMBERS];
	int inputs[MAX_MEMBERS], child, bag, first;
	Result r = {0};
	AgError err;
	AgImagePart *parts = r.images, kept;

	AG_REQUIRE(run(&s, &r, &err) == AG_OK);
	for (int i = 0; i < r.n_members; i++)
		refs[i] = (AgMemberRef){
			i + 1, r.names[i], r.families[i], r.n_inputs[i], r.inputs[i], r.weights[i], 0, 0, NULL};
	child = find_name(&r, "GBM_BAG_L2/S1F1");
	bag = find_name(&r, "GBM_BAG_L2");
	first = find_name(&r, "GBM_BAG_L1");
	AG_CHECK_EQ(open_forged(mem, &r, refs, bag + 1), AG_OK);
	memcpy(inputs, r.inputs[child], sizeof inputs);
	refs[child].inputs = inputs;
	inputs[0] = r.inputs[child][1];
	AG_CHECK_EQ(open_forged(mem, &r, refs, bag + 1), AG_ERR_CORRUPT);
	inputs[0] = r.inputs[child][0];
	refs[child].n_inputs = 2;
	AG_CHECK_EQ(open_forged(mem, &r, refs, bag + 1), AG_ERR_CORRUPT);
	refs[child].n_inputs = 0;
	AG_CHECK_EQ(open_forged(mem, &r, refs, bag + 1), AG_ERR_CORRUPT);
	refs[child].n_inputs = 3;
	AG_CHECK_EQ(open_forged(mem, &r, refs, bag + 1), AG_OK);
	/* a bag below that combines the stacker that looks at it */
	memcpy(inputs, r.inputs[first], sizeof inputs);
	refs[child].inputs = r.inputs[child];
	refs[first].inputs = inputs;
	inputs[1] = bag + 1;
	AG_CHECK_EQ(open_forged(mem, &r, refs, bag + 1), AG_ERR_CORRUPT);
	AG_CHECK_EQ(open_forged(mem, &r, refs, first + 1), AG_ERR_CORRUPT);
	inputs[1] = child + 1;
	AG_CHECK_EQ(open_forged(mem, &r, refs, child + 1), AG_ERR_CORRUPT);
	refs[first].inputs = r.inputs[first];
	/* a stacker's image where a model of the first level belongs, and the other way round */
	for (int i = 0; i < r.n_images; i++)
		if (r.images[i].member == child + 1)
			parts = &r.images[i];
	kept = *parts;
	for (int i = 0; i < r.n_images; i++)
		if (r.images[i].member == r.inputs[first][0])
		{
			*parts = r.images[i];
			parts->member = child + 1;
		}
	AG_CHECK_EQ(open_forged(mem, &r, refs, bag + 1), AG_ERR_CORRUPT);
	*parts = kept;
	for (int i = 0; i < r.n_images; i++)
		if (r.images[i].member == r.inputs[first][0])
		{
			AgImagePart was = r.images[i];

			r.images[i].data = kept.data;
			r.images[i].size = kept.size;
			AG_CHECK_EQ(open_forged(mem, &r, refs, first + 1), AG_ERR_CORRUPT);
			r.images[i] = was;
		}
	/* without what it looks at */
	for (int i = 0; i < r.n_images; i++)
		if (r.images[i].member == r.inputs[first][2])
		{
			int member = r.images[i].member;

			r.images[i].member = 1000;
			AG_CHECK_EQ(open_forged(mem, &r, refs, bag + 1), AG_ERR_CORRUPT);
			r.images[i].member = member;
		}
	AG_CHECK_EQ(open_forged(mem, &r, refs, bag + 1), AG_OK);
	for (int64_t after = 0;; after++)
	{
		AgStatus status;

		mem->fail_after = after;
		status = open_forged(mem, &r, refs, r.n_members);
		mem->fail_after = -1;
		if (status == AG_OK)
			break;
		AG_CHECK_EQ(status, AG_ERR_MEMORY);
	}
	result_free(&r);
	AG_CHECK_EQ(mem->used_bytes, 0);
}

static void
few_rows(AgMem *mem)
{
	for (int n = 2; n <= 20; n += 3)
		for (int n_classes = 0; n_classes <= 4; n_classes += 2)
		{
			Setting s = {.mem = mem,
						 .n_rows = n,
						 .n_classes = n_classes,
						 .entries = stacked,
						 .n_entries = N_STACKED};
			Result r = {0};
			AgError err;
			AgStatus status = run(&s, &r, &err);

			if (status == AG_OK)
				for (int m = 1; m <= r.n_members; m++)
					AG_CHECK(isfinite(error_of(mem, &r, m, n_classes)));
			else
				AG_CHECK_EQ(status, AG_ERR_DATA);
			result_free(&r);
			AG_CHECK_EQ(mem->used_bytes, 0);
		}
}

static void
little_time(AgMem *mem)
{
	static const double limits[] = {1.0, 0.2, 0.05};

	for (int i = 0; i < 3; i++)
	{
		Setting s = {.mem = mem,
					 .n_rows = 1500,
					 .entries = stacked,
					 .n_entries = N_STACKED,
					 .n_threads = 2,
					 .seconds = limits[i]};
		Result r = {0};
		AgError err;
		AgStatus status = run(&s, &r, &err);

		AG_CHECK(status == AG_OK || status == AG_ERR_TIME);
		if (status == AG_OK)
			AG_CHECK(isfinite(error_of(mem, &r, r.n_members, 0)));
		result_free(&r);
		AG_CHECK_EQ(mem->used_bytes, 0);
	}
}

static void
no_memory(AgMem *mem)
{
	Setting s = {.mem = mem, .n_rows = 100, .entries = stacked, .n_entries = N_STACKED};
	Result r = {0};
	AgError err;
	int64_t n;

	mem->n_allocations = 0;
	AG_REQUIRE(run(&s, &r, &err) == AG_OK);
	result_free(&r);
	n = mem->n_allocations;
	for (int64_t after = 0; after < n; after += 1 + n / 100)
	{
		AgStatus status;

		mem->fail_after = after;
		status = run(&s, &r, &err);
		mem->fail_after = -1;
		AG_CHECK(status == AG_ERR_MEMORY || status == AG_OK);
		result_free(&r);
		AG_CHECK_EQ(mem->used_bytes, 0);
	}
}

int
main(void)
{
	AgMem mem;

	ag_mem_init(&mem, INT64_MAX);
	levels_learn(&mem);
	levels_repeat(&mem);
	nested_are_counted(&mem);
	levels_refit(&mem);
	levels_forged(&mem);
	few_rows(&mem);
	little_time(&mem);
	no_memory(&mem);
	return ag_unit_done("stack");
}
