/*
 * prep_text.c - what words say about labels: no training row's score sees its own label, labels of other rows are never seen, and
 * words that decide are chosen.
 */
#include <math.h>
#include <stdlib.h>

#include "engine/base/rng.h"
#include "engine/model/prep.h"
#include "unit/unit.h"

#define N_ROWS 400
#define N_TERMS 50
#define PER_ROW 6

typedef struct Data
{
	AgMem mem;
	AgError err;
	AgContext ctx;
	uint64_t first[N_ROWS + 1];
	AgTerm terms[N_ROWS * PER_ROW];
	AgTermRows rows;
	double target[N_ROWS];
	int32_t class_of[N_ROWS];
	uint32_t train_rows[N_ROWS];
	uint8_t part[N_ROWS];
	AgTrainData data;
} Data;

/* Terms 3 and 7 decide, where is_noise isn't set. */
static void
data_open(Data *d, int n_classes, bool is_noise)
{
	memset(d, 0, sizeof *d);
	ag_mem_init(&d->mem, INT64_MAX);
	ag_error_init(&d->err);
	d->ctx.mem = &d->mem;
	d->ctx.deadline_ns = INT64_MAX;
	d->ctx.error = &d->err;
	for (uint32_t r = 0; r < N_ROWS; r++)
	{
		double says = 0.0;

		d->first[r] = (uint64_t) r * PER_ROW;
		for (uint32_t k = 0; k < PER_ROW; k++)
		{
			/* ascending: one of each eight */
			uint32_t term = k * 8 + ag_random_below(1, r * PER_ROW + k, 8);

			d->terms[r * PER_ROW + k] = (AgTerm){term, 0.4f};
			says += term == 3 ? 1.0 : term == 7 ? -1.0 : 0.0;
		}
		d->target[r] = is_noise ? ag_random_unit(2, r) : says + 0.1 * ag_random_unit(2, r);
		d->class_of[r] = is_noise      ? (int32_t) ag_random_below(3, r, (uint32_t) n_classes + 1)
						 : says > 0.0  ? 1
						 : says == 0.0 ? (int32_t) ag_random_below(4, r, 2)
									   : 0;
		if (n_classes > 0)
			d->class_of[r] %= n_classes;
		if (r % 4 != 0)
			d->train_rows[d->data.n_train++] = r;
	}
	d->first[N_ROWS] = (uint64_t) N_ROWS * PER_ROW;
	d->rows = (AgTermRows){N_ROWS, d->first, d->terms};
	d->data.problem = n_classes > 2    ? AG_PROBLEM_MULTICLASS
					  : n_classes == 2 ? AG_PROBLEM_BINARY
									   : AG_PROBLEM_REGRESSION;
	d->data.n_classes = n_classes;
	d->data.target = n_classes == 0 ? d->target : NULL;
	d->data.class_of = n_classes > 0 ? d->class_of : NULL;
	d->data.train_rows = d->train_rows;
	ag_prep_deal(&d->data, N_ROWS, 9, d->part);
}

static AgTextScore *
score(Data *d)
{
	AgTextScore *made;

	AG_REQUIRE(ag_text_score_fit(&d->ctx, &d->rows, N_TERMS, &d->data, d->part, AG_PREP_PARTS,
								 &made) == AG_OK);
	AG_REQUIRE(made != NULL);
	return made;
}

static void
test_own_label(int n_classes)
{
	Data *d = malloc(sizeof *d);

	data_open(d, n_classes, true);
	for (uint32_t r = 0; r < 8; r++)
	{
		AgTextScore *before = score(d), *after;
		int n_changed = 0;
		bool own = false;

		d->target[r] += 100.0;
		d->class_of[r] = n_classes > 0 ? (d->class_of[r] + 1) % n_classes : 0;
		after = score(d);
		for (int k = 0; k < before->n_outputs; k++)
			for (uint32_t row = 0; row < N_ROWS; row++)
				if (before->values[k * N_ROWS + row] != after->values[k * N_ROWS + row])
				{
					n_changed++;
					own |= row == r || d->part[row] == d->part[r];
				}
		if (r % 4 == 0)
			AG_CHECK_EQ(n_changed, 0);
		else
			AG_CHECK(n_changed > 0 && !own);
		ag_text_score_free(before);
		ag_text_score_free(after);
	}
	AG_CHECK_EQ(d->mem.used_bytes, 0);
	free(d);
}

/* How well scores of rows go along with their labels: a correlation. */
static double
skill(const Data *d, const AgTextScore *s)
{
	double sx = 0, sy = 0, sxx = 0, syy = 0, sxy = 0, n = (double) d->data.n_train;

	for (int64_t i = 0; i < d->data.n_train; i++)
	{
		uint32_t r = d->train_rows[i];
		double x = s->values[r];
		double y = d->data.n_classes > 0 ? d->class_of[r] == 1 : d->target[r];

		sx += x;
		sy += y;
		sxx += x * x;
		syy += y * y;
		sxy += x * y;
	}
	return (sxy - sx * sy / n) / sqrt((sxx - sx * sx / n) * (syy - sy * sy / n));
}

static void
test_skill(void)
{
	for (int n_classes = 0; n_classes <= 2; n_classes += 2)
		for (int noise = 0; noise < 2; noise++)
		{
			Data *d = malloc(sizeof *d);
			uint32_t chosen[2], n;
			AgTextScore *s;

			data_open(d, n_classes, noise);
			s = score(d);
			if (noise)
				AG_CHECK(skill(d, s) < 0.12);
			else
				AG_CHECK(skill(d, s) > 0.4);
			AG_REQUIRE(ag_text_choose(&d->ctx, &d->rows, N_TERMS, &d->data, 2, chosen, &n) ==
					   AG_OK);
			AG_CHECK_EQ(n, 2);
			if (!noise)
				AG_CHECK(chosen[0] == 3 && chosen[1] == 7);
			ag_text_score_free(s);
			AG_CHECK_EQ(d->mem.used_bytes, 0);
			free(d);
		}
}

static void
read_nothing(const void *arg, uint32_t feature, const uint32_t *rows, int64_t n, double *values)
{
	for (int64_t i = 0; i < n; i++)
		values[i] = rows[i] % 10;
}

/* Scores and terms as columns: what prediction makes of a row's terms is what the fit gave rows that it wasn't fitted on. */
static void
test_columns(void)
{
	Data *d = malloc(sizeof *d);
	uint32_t n_levels[1] = {0};
	AgDenseSource source = {N_ROWS, 1, n_levels, read_nothing, NULL};
	AgPrepParams params = {.n_in = 1 + N_TERMS, .n_hidden = N_TERMS, .most_terms = 5};
	AgTextScore *s;
	AgPrep *prep;
	double *values;
	int n_wrong = 0;

	data_open(d, 2, false);
	s = score(d);
	params.terms = &d->rows;
	params.score = s;
	AG_REQUIRE(ag_prep_fit(&d->ctx, &source, &d->data, &params, &prep, &values) == AG_OK);
	AG_CHECK_EQ(prep->n_columns, 6);
	AG_CHECK_EQ(ag_prep_n_inner(prep), 7);
	for (uint32_t r = 0; r < N_ROWS; r += 4)
	{
		double features[1 + N_TERMS] = {0.0}, inner[7];

		features[0] = r % 10;
		for (uint64_t at = d->first[r]; at < d->first[r + 1]; at++)
			features[1 + d->terms[at].term] = (double) d->terms[at].weight;
		ag_prep_row(prep, features, inner);
		n_wrong += inner[0] != features[0];
		for (uint32_t c = 0; c < 6; c++)
			n_wrong += !(fabs(inner[1 + c] - values[c * N_ROWS + r]) < 1e-12);
	}
	AG_CHECK_EQ(n_wrong, 0);
	ag_prep_free(prep);
	ag_mem_free(&d->mem, values);
	ag_text_score_free(s);
	AG_CHECK_EQ(d->mem.used_bytes, 0);
	free(d);
}

int
main(void)
{
	test_own_label(0);
	test_own_label(2);
	test_own_label(3);
	test_skill();
	test_columns();
	return ag_unit_done("prep_text");
}
