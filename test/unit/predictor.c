/*
 * predictor.c - a stored predictor: one model, ensembles and ensembles of ensembles, hostile parts.
 */
#include "engine/engine.h"
#include "unit/random_trees.h"
#include "unit/rows.h"

enum
{
	N_MODELS = 3
};

/* A table, its preprocessing as part 0 and models as parts 1.. */
typedef struct Stored
{
	Host host;
	Rows rows;
	AgPipeline *pipeline;
	AgTrees *trees[N_MODELS];
	AgWriter images[N_MODELS + 1];
	AgImagePart parts[N_MODELS + 1];
} Stored;

static const double weights_a[] = {0.25, 0.75, 0.0};
static const double weights_b[] = {3.0, 1.0};
static const int inputs_a[] = {1, 2, 9};
static const int inputs_b[] = {4, 3};
static const AgMemberRef members[] = {
	{1, "GBM", "GBM", 0, NULL, NULL, 0, 0, NULL},
	{2, "GBM_2", "GBM", 0, NULL, NULL, 0, 0, NULL},
	{3, "GBM_3", "GBM", 0, NULL, NULL, 0, 0, NULL},
	{4, "WeightedEnsemble_L2", "ENS_WEIGHTED", 3, inputs_a, weights_a, 0, 0, NULL},
	{5, "WeightedEnsemble_L3", "ENS_WEIGHTED", 2, inputs_b, weights_b, 0, 0, NULL}};

static void
stored_open(Stored *s, AgType label_type)
{
	AgTable *table;
	AgLabel *label;
	int64_t n_left_out;

	host_open(&s->host, 1);
	rows_make_mixed(&s->rows, 120);
	s->rows.columns[0].type = label_type;
	for (int64_t r = 0; r < 120; r++)
		if (label_type == AG_TYPE_FLOAT64)
			*rows_at(&s->rows, r, 0) = value_f64((double) r / 7);
		else if (label_type == AG_TYPE_INT32)
			*rows_at(&s->rows, r, 0) = value_i32((int32_t) r % 4);
	AG_REQUIRE(rows_table(&s->rows, 0, 50, &s->host, &table, &n_left_out) == AG_OK);
	AG_REQUIRE(ag_label_fit(&s->host.ctx, table, 0, AG_PROBLEM_AUTO, NULL, &label) == AG_OK);
	AG_REQUIRE(ag_pipeline_fit(&s->host.ctx, table, label, "UTC", true, NULL, &s->pipeline) ==
			   AG_OK);
	for (int i = 0; i <= N_MODELS; i++)
	{
		ag_writer_init(&s->images[i], &s->host.mem);
		if (i == 0)
			AG_REQUIRE(ag_pipeline_write(&s->host.ctx, s->pipeline, &s->images[0]) == AG_OK);
		else
		{
			RandomTrees want = {(uint64_t) i,    (uint32_t) s->pipeline->n_features, 20, 1, 31,
								AG_LINK_IDENTITY};

			if (label->problem == AG_PROBLEM_BINARY)
				want.link = AG_LINK_SIGMOID;
			else if (label->problem == AG_PROBLEM_MULTICLASS)
			{
				want.link = AG_LINK_SOFTMAX;
				want.n_outputs = (uint32_t) label->n_classes;
			}
			AG_REQUIRE(random_trees(&s->host.ctx, want, &s->trees[i - 1]) == AG_OK);
			AG_REQUIRE(ag_trees_write(&s->host.ctx, s->trees[i - 1], &s->images[i]) == AG_OK);
		}
		s->parts[i].member = i;
		s->parts[i].data = s->images[i].data;
		s->parts[i].size = s->images[i].size;
		s->parts[i].layout = NULL;
	}
	ag_label_free(label);
	ag_table_free(table);
}

static void
stored_close(Stored *s)
{
	for (int i = 0; i <= N_MODELS; i++)
		ag_writer_free(&s->images[i]);
	for (int i = 0; i < N_MODELS; i++)
		ag_trees_free(s->trees[i]);
	ag_pipeline_free(s->pipeline);
	rows_close(&s->rows);
	host_close(&s->host);
}

static AgStatus
open_member(Stored *s, int member, AgPredictor **predictor)
{
	host_reset(&s->host);
	return ag_predictor_open(&s->host.ctx, s->parts, N_MODELS + 1, members, 5, member, predictor);
}

/* What a model answers for a row, by its parts. */
static void
expect(const Stored *s, int model, const AgValue *values, double *out)
{
	double features[64], scores[16];

	ag_pipeline_encode(s->pipeline, values, features);
	ag_trees_score(s->trees[model], features, scores);
	ag_trees_link(s->trees[model], scores, out);
}

/* Many rows at once give the bytes that they give one by one; with 300 there is a second, shorter lot. */
static void
check_many(Stored *s, AgPredictor *predictor)
{
	int n_features = ag_predictor_features(predictor);
	int n_outputs = ag_predictor_outputs(predictor);
	double *features = malloc((size_t) 300 * n_features * sizeof(double));
	double *out = malloc((size_t) 300 * n_outputs * sizeof(double));

	for (int r = 0; r < 300; r++)
		ag_predictor_encode(predictor, rows_at(&s->rows, r % 120, 1), features + r * n_features);
	AG_CHECK_EQ(ag_predictor_run_rows(&s->host.ctx, predictor, 300, features, out), AG_OK);
	for (int r = 0; r < 300; r++)
	{
		double want[16];

		ag_predictor_run(predictor, rows_at(&s->rows, r % 120, 1), want);
		AG_CHECK(memcmp(want, out + r * n_outputs, (size_t) n_outputs * sizeof(double)) == 0);
	}
	AG_CHECK_EQ(ag_predictor_run_rows(&s->host.ctx, predictor, 0, features, out), AG_OK);
	free(features);
	free(out);
}

/* All steps of an explanation; the status of the first that fails. */
static AgStatus
explain(Stored *s, AgPredictor *predictor, const double *features, int output,
		AgExplanation *explanation)
{
	explanation->n_steps = 1;
	memset(explanation->contributions, 0, 16 * sizeof(double));
	for (int step = 0; step < explanation->n_steps; step++)
		AG_TRY(ag_predictor_explain(&s->host.ctx, predictor, features, output, step, explanation));
	return AG_OK;
}

/* Base and contributions are the answer, whichever way they were found; the base is the mean over training rows. */
static void
check_explained(Stored *s, AgPredictor *predictor)
{
	const AgProfile *profile = &s->pipeline->profile;
	int n_outputs = ag_predictor_outputs(predictor);
	double contributions[16], features[64], out[64 * 8], base;
	AgExplanation explanation = {0, 0.0, contributions};

	AG_CHECK_EQ(ag_predictor_run_rows(&s->host.ctx, predictor, profile->n_rows, profile->rows, out),
				AG_OK);
	for (int output = 0; output < n_outputs; output++)
	{
		double answer[8], sum;

		base = 0.0;
		for (int64_t k = 0; k < profile->n_rows; k++)
			base += out[k * n_outputs + output] / (double) profile->n_rows;
		for (int r = 0; r < 3; r++)
		{
			ag_predictor_encode(predictor, rows_at(&s->rows, r * 17, 1), features);
			ag_predictor_run(predictor, rows_at(&s->rows, r * 17, 1), answer);
			AG_CHECK_EQ(explain(s, predictor, features, output, &explanation), AG_OK);
			AG_CHECK_NEAR(explanation.base, base, 1e-12);
			sum = explanation.base;
			for (int i = 0; i < s->pipeline->n_inputs; i++)
				sum += contributions[i];
			AG_CHECK_NEAR(sum, answer[output], 1e-10);
		}
	}
}

/* The training rows haven't moved from themselves; rows of one kind have. */
static void
check_drift(Stored *s, AgPredictor *predictor)
{
	int n_features = ag_predictor_features(predictor);
	double features[64];
	AgDrift *drift;

	for (int kind = 0; kind < 2; kind++)
	{
		AG_REQUIRE(ag_drift_create(&s->host.ctx, predictor, &drift) == AG_OK);
		AG_CHECK(isnan(ag_drift_result(drift, 0).psi));
		for (int r = 0; r < 120; r++)
		{
			if (kind == 0 && rows_at(&s->rows, r, 0)->is_null)
				continue; /* wasn't trained on */
			ag_predictor_encode(predictor, rows_at(&s->rows, kind == 0 ? r : 5, 1), features);
			AG_CHECK(n_features <= 64);
			ag_drift_add(drift, 1, features);
		}
		for (int i = 0; i < s->pipeline->n_inputs; i++)
		{
			AgDriftResult result = ag_drift_result(drift, i);

			if (!s->pipeline->inputs[i].is_used)
				AG_CHECK(isnan(result.psi));
			else if (kind == 0)
				AG_CHECK(fabs(result.psi) < 1e-12 && result.missing_now == result.missing_before &&
						 result.unseen == 0.0);
			else
				AG_CHECK(result.psi > 0.1);
		}
		ag_drift_free(drift);
	}
	ag_drift_free(NULL);
}

static void
test_answers(AgType label_type, AgProblem problem, int n_outputs)
{
	Stored s;
	AgPredictor *one, *ensemble, *nested;

	stored_open(&s, label_type);
	AG_REQUIRE(open_member(&s, 2, &one) == AG_OK);
	AG_REQUIRE(open_member(&s, 4, &ensemble) == AG_OK);
	AG_REQUIRE(open_member(&s, 5, &nested) == AG_OK);
	AG_CHECK_EQ(ag_predictor_problem(one), problem);
	AG_CHECK_EQ(ag_predictor_outputs(one), n_outputs);
	AG_CHECK(ag_predictor_row_ns(one) > 0.0 &&
			 ag_predictor_row_ns(ensemble) > ag_predictor_row_ns(one));
	for (int64_t r = 0; r < 120; r++)
	{
		const AgValue *values = rows_at(&s.rows, r, 1);
		double want[3][8], got[8];
		int64_t n_allocations = s.host.mem.n_allocations;
		double sum = 0;

		for (int m = 0; m < N_MODELS; m++)
			expect(&s, m, values, want[m]);
		ag_predictor_run(one, values, got);
		for (int k = 0; k < n_outputs; k++)
			AG_CHECK(got[k] == want[1][k] && isfinite(got[k]));
		ag_predictor_run(ensemble, values, got);
		for (int k = 0; k < n_outputs; k++)
		{
			AG_CHECK_NEAR(got[k], 0.25 * want[0][k] + 0.75 * want[1][k], 1e-12);
			sum += got[k];
		}
		if (n_outputs > 1)
			AG_CHECK_NEAR(sum, 1.0, 1e-12);
		ag_predictor_run(nested, values, got);
		for (int k = 0; k < n_outputs; k++)
			AG_CHECK_NEAR(
				got[k], 0.75 * (0.25 * want[0][k] + 0.75 * want[1][k]) + 0.25 * want[2][k], 1e-12);
		AG_CHECK_EQ(s.host.mem.n_allocations, n_allocations);
	}
	check_many(&s, one);
	check_many(&s, ensemble);
	check_many(&s, nested);
	check_explained(&s, one);
	check_explained(&s, nested);
	check_drift(&s, one);
	ag_predictor_close(one);
	ag_predictor_close(ensemble);
	ag_predictor_close(nested);
	ag_predictor_close(NULL);
	stored_close(&s);
}

static void
test_description(void)
{
	Stored s;
	AgPredictor *p;
	const AgInputInfo *inputs;
	const AgClass *classes;
	int n;

	stored_open(&s, AG_TYPE_TEXT);
	AG_REQUIRE(open_member(&s, 1, &p) == AG_OK);
	inputs = ag_predictor_inputs(p, &n);
	AG_CHECK_EQ(n, 11);
	AG_CHECK_STR(inputs[0].name, "b");
	AG_CHECK_STR(inputs[0].sql_type, "boolean");
	AG_CHECK_EQ(inputs[9].type, AG_TYPE_TEXT);
	AG_CHECK(inputs[0].is_used);
	classes = ag_predictor_classes(p, &n);
	AG_REQUIRE(n == 2);
	AG_CHECK_STR(classes[1].name, "yes");
	AG_CHECK_EQ(ag_predictor_label_type(p), AG_TYPE_TEXT);
	AG_CHECK_STR(ag_predictor_label_name(p), "label");
	AG_CHECK_STR(ag_predictor_time_zone(p), "UTC");
	AG_CHECK(ag_predictor_raw_text(p));
	ag_predictor_close(p);
	stored_close(&s);
}

static void
check_refused(Stored *s, const AgMemberRef *refs, int n_refs, int member, int n_parts)
{
	AgPredictor *p;

	host_reset(&s->host);
	AG_CHECK_EQ(ag_predictor_open(&s->host.ctx, s->parts, n_parts, refs, n_refs, member, &p),
				AG_ERR_CORRUPT);
	AG_CHECK(p == NULL && s->host.error.message[0] != '\0');
}

static void
test_refused(void)
{
	static const int self[] = {1};
	static const double one[] = {1.0}, nothing[] = {0.0}, bad[] = {(double) NAN},
						negative[] = {-1.0};
	AgMemberRef loop[] = {{1, "E", "ENS_WEIGHTED", 1, self, one, 0, 0, NULL}};
	int many[40];
	double ones[40];
	Stored s, other;
	AgPredictor *p;

	for (int i = 0; i < 40; i++)
	{
		many[i] = 1;
		ones[i] = 1.0;
	}
	stored_open(&s, AG_TYPE_TEXT);
	AG_CHECK_EQ(open_member(&s, 0, &p), AG_ERR_INTERNAL);
	check_refused(&s, members, 5, 77, N_MODELS + 1);
	check_refused(&s, members, 5, 3, N_MODELS); /* its part isn't there */
	check_refused(&s, members, 5, 1, 0);
	check_refused(&s, loop, 1, 1, N_MODELS + 1);
	/* Endless in width as well as in depth. */
	loop[0].n_inputs = 40;
	loop[0].inputs = many;
	loop[0].weights = ones;
	check_refused(&s, loop, 1, 1, N_MODELS + 1);
	loop[0].n_inputs = 1;
	loop[0].weights = nothing;
	check_refused(&s, loop, 1, 1, N_MODELS + 1);
	loop[0].weights = bad;
	check_refused(&s, loop, 1, 1, N_MODELS + 1);
	loop[0].weights = negative;
	check_refused(&s, loop, 1, 1, N_MODELS + 1);
	loop[0].n_inputs = 0;
	check_refused(&s, loop, 1, 1, N_MODELS + 1);
	/* Trees of another predictor: another problem, so another link. */
	stored_open(&other, AG_TYPE_INT32);
	s.parts[1] = other.parts[1];
	check_refused(&s, members, 5, 1, N_MODELS + 1);
	/* A pipeline where trees belong, and the other way round. */
	s.parts[1] = s.parts[0];
	s.parts[1].member = 1;
	check_refused(&s, members, 5, 1, N_MODELS + 1);
	s.parts[0] = s.parts[2];
	s.parts[0].member = 0;
	check_refused(&s, members, 5, 2, N_MODELS + 1);
	stored_close(&other);
	stored_close(&s);
}

static void
test_out_of_memory(void)
{
	Stored s;
	int n_failed = 0;

	stored_open(&s, AG_TYPE_TEXT);
	for (int64_t k = 0;; k++)
	{
		AgPredictor *p;
		AgStatus status;
		int64_t used = s.host.mem.used_bytes;

		s.host.mem.fail_after = k;
		status = open_member(&s, 5, &p);
		s.host.mem.fail_after = -1;
		if (status == AG_OK)
		{
			ag_predictor_close(p);
			break;
		}
		n_failed++;
		AG_CHECK_EQ(status, AG_ERR_MEMORY);
		AG_CHECK(p == NULL);
		AG_CHECK_EQ(s.host.mem.used_bytes, used);
	}
	AG_CHECK(n_failed > 10);
	stored_close(&s);
}

/* Direct explanations and sampled ones. */
static void
test_explain_out_of_memory(AgType label_type)
{
	double contributions[16], features[64];
	AgExplanation explanation = {0, 0.0, contributions};
	int n_failed = 0;
	AgPredictor *p;
	AgDrift *drift;
	Stored s;

	stored_open(&s, label_type);
	AG_REQUIRE(open_member(&s, 5, &p) == AG_OK);
	ag_predictor_encode(p, rows_at(&s.rows, 3, 1), features);
	for (int64_t k = 0;; k++)
	{
		AgStatus status;

		host_reset(&s.host);
		s.host.mem.fail_after = k;
		status = explain(&s, p, features, 0, &explanation);
		s.host.mem.fail_after = -1;
		if (status == AG_OK)
			break;
		n_failed++;
		AG_CHECK_EQ(status, AG_ERR_MEMORY);
	}
	AG_CHECK(n_failed > 3);
	for (int64_t k = 0; k < 2; k++)
	{
		s.host.mem.fail_after = k;
		AG_CHECK_EQ(ag_drift_create(&s.host.ctx, p, &drift), AG_ERR_MEMORY);
		s.host.mem.fail_after = -1;
	}
	ag_predictor_close(p);
	stored_close(&s);
}

int
main(void)
{
	test_explain_out_of_memory(AG_TYPE_TEXT);
	test_explain_out_of_memory(AG_TYPE_FLOAT64);
	test_answers(AG_TYPE_TEXT, AG_PROBLEM_BINARY, 2);
	test_answers(AG_TYPE_FLOAT64, AG_PROBLEM_REGRESSION, 1);
	test_answers(AG_TYPE_INT32, AG_PROBLEM_MULTICLASS, 4);
	test_description();
	test_refused();
	test_out_of_memory();
	return ag_unit_done("predictor");
}
