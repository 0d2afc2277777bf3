/*
 * losses.c - percentiles, the losses of numbers against finite differences, renewed leaves, and quantile regression by boosting.
 */
#include "booster.h"
#include "engine/model/metric.h"
#include "engine/model/objective.h"
#include "engine/model/percentile.h"

/* ---- percentiles ---- */

static int
by_value(const void *left, const void *right)
{
	const AgWeighed *a = left, *b = right;

	return (a->value > b->value) - (a->value < b->value);
}

/* Sorted; from one value to the next. */
static double
slow_percentile(const AgWeighed *items, int64_t n, double level)
{
	AgWeighed sorted[200];
	double total = 0.0, place, before = 0.0, value = 0.0;
	int64_t n_weighed = 0;

	for (int64_t i = 0; i < n; i++)
		if (items[i].weight > 0)
		{
			sorted[n_weighed++] = items[i];
			total += (double) items[i].weight;
		}
	qsort(sorted, (size_t) n_weighed, sizeof *sorted, by_value);
	place = fmin(level * (total + total / (double) n_weighed), total);
	for (int64_t i = 0, end; i < n_weighed; i = end)
	{
		double here = 0.0, last = value, share;

		for (end = i; end < n_weighed && sorted[end].value == sorted[i].value; end++)
			here += (double) sorted[end].weight;
		value = sorted[i].value;
		if (before + here >= place || end == n_weighed)
		{
			share = (place - before) / (total / (double) n_weighed);
			return i == 0 || share >= 1.0 ? value : last * (1.0 - share) + value * share;
		}
		before += here;
	}
	return NAN;
}

static void
percentiles(void)
{
	static const double levels[] = {0.5, 0.1, 0.25, 0.9, 0.01, 0.999, 1.0 / 3.0};
	int n_differ = 0;

	for (int t = 0; t < 3000; t++)
	{
		AgWeighed items[200];
		uint64_t key = ag_key(77, (uint64_t) t);
		int64_t n = 1 + (int64_t) ag_random_below(key, 0, t % 3 == 0 ? 199 : 20);
		int n_values = t % 2 == 0 ? 5 : 1000;
		double level = levels[t % 7], wanted;

		for (int64_t i = 0; i < n; i++)
		{
			items[i].value = (double) ag_random_below(key, 100 + (uint64_t) i, (uint32_t) n_values);
			items[i].weight =
				t % 5 == 0 ? 1 : (int64_t) ag_random_below(key, 1000 + (uint64_t) i, 4);
		}
		items[0].weight = 1;
		wanted = slow_percentile(items, n, level);
		n_differ += !(fabs(ag_percentile(items, n, level) - wanted) < 1e-9);
	}
	AG_CHECK_EQ(n_differ, 0);
	{
		AgWeighed items[3] = {{5.0, 0}, {7.0, 0}, {1.0, 0}};

		AG_CHECK(ag_percentile(items, 3, 0.5) == 0.0);
		AG_CHECK(ag_percentile(items, 0, 0.5) == 0.0);
	}
	AG_CHECK(ag_fixed_scale(0.0, 5) == 0.0);
	for (int64_t n = 1; n < INT64_C(1) << 40; n = n * 3 + 1)
		AG_CHECK(ag_fixed_scale(3.7, n) * 3.7 * (double) n < 0x1p62);
}

/* ---- gradients ---- */

static const struct Case
{
	AgLossKind kind;
	double alpha, delta, power, step;
	bool has_kinks;        /* no second derivative: the hessian is the weight */
	double hessian_factor; /* on the second derivative */
} cases[] = {
	{AG_LOSS_SQUARED, 0, 0, 0, 0, false, 1},
	{AG_LOSS_ABSOLUTE, 0, 0, 0, 0, true, 0},
	{AG_LOSS_PERCENTAGE, 0, 0, 0, 0, true, 0},
	{AG_LOSS_QUANTILE, 0.8, 0, 0, 0, true, 0},
	{AG_LOSS_HUBER, 0, 0.7, 0, 0, true, 0},
	{AG_LOSS_FAIR, 0, 1.5, 0, 0, false, 1},
	{AG_LOSS_PSEUDO_HUBER, 0, 0.6, 0, 0, false, 1},
	{AG_LOSS_POISSON, 0, 0, 0, 0.7, false, 2.0137527074704766},
	{AG_LOSS_GAMMA, 0, 0, 0, 0, false, 1},
	{AG_LOSS_TWEEDIE, 0, 0, 1.3, 0, false, 1},
};

/* In label units; unit 1. */
static double
row_loss(const struct Case *c, double target, double score)
{
	double x = score - target, size = fabs(x);

	switch (c->kind)
	{
		case AG_LOSS_ABSOLUTE:
			return size;
		case AG_LOSS_PERCENTAGE:
			return size / fmax(1.0, fabs(target));
		case AG_LOSS_QUANTILE:
			return x > 0.0 ? (1.0 - c->alpha) * x : -c->alpha * x;
		case AG_LOSS_HUBER:
			return size <= c->delta ? x * x / 2.0 : c->delta * (size - c->delta / 2.0);
		case AG_LOSS_FAIR:
			return c->delta * c->delta * (size / c->delta - log1p(size / c->delta));
		case AG_LOSS_PSEUDO_HUBER:
			return c->delta * c->delta * (sqrt(1.0 + x * x / (c->delta * c->delta)) - 1.0);
		case AG_LOSS_POISSON:
			return exp(score) - target * score;
		case AG_LOSS_GAMMA:
			return target * exp(-score) + score;
		case AG_LOSS_TWEEDIE:
			return -target * exp((1.0 - c->power) * score) / (1.0 - c->power) +
				   exp((2.0 - c->power) * score) / (2.0 - c->power);
		default:
			return x * x / 2.0;
	}
}

static void
check_row(const struct Case *c, const AgLoss *loss, uint32_t row)
{
	double step = 1e-4, unit = loss->unit, weight = loss->data->weight[row];
	double target = loss->data->target[row], score = loss->scores[row];
	double low = row_loss(c, target, score - step), high = row_loss(c, target, score + step);
	double g = weight * (high - low) / (2.0 * step);
	double h = weight * (high - 2.0 * row_loss(c, target, score) + low) / (step * step);
	double got_g = (double) loss->gradients[row].g * unit, got_h = (double) loss->gradients[row].h;

	if (c->has_kinks && fabs(score - target) < 2.0 * step)
		return;
	if (c->kind == AG_LOSS_HUBER && fabs(fabs(score - target) - c->delta) < 2.0 * step)
		return;
	AG_CHECK_NEAR(got_g, g, 1e-4 + 1e-5 * fabs(g));
	AG_CHECK_NEAR(got_h, c->has_kinks ? weight : h * c->hessian_factor, 1e-4 + 1e-4 * fabs(h));
}

static void
differences(void)
{
	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
	{
		Bench bench;
		Table table;
		AgTrainData data;
		AgLoss loss;
		AgGradientRange range;
		AgLossParams params = {.kind = cases[c].kind,
							   .alpha = cases[c].alpha,
							   .delta = cases[c].delta,
							   .power = cases[c].power,
							   .step = cases[c].step,
							   .positive = 1.0};

		bench_init(&bench, 2);
		table_init(&table, 500, 2, 0, 1, 0.0, 0, 19);
		table_bin(&table, &bench.ctx, 20);
		for (int64_t i = 0; cases[c].kind >= AG_LOSS_POISSON && i < table.n_rows; i++)
			table.target[i] = fabs(table.target[i]) + 0.01;
		data = table_data(&table, AG_PROBLEM_REGRESSION, 0);
		data.weight = table.weight;
		AG_REQUIRE(ag_loss_create(&bench.ctx, &data, &params, &loss) == AG_OK);
		AG_CHECK_EQ(loss.n_outputs, 1);
		for (int64_t i = 0; i < loss.n_rows; i++)
			loss.scores[i] += 4.0 * (ag_random_unit(1, (uint64_t) i) - 0.5);
		AG_REQUIRE(ag_loss_gradients(&bench.ctx, &loss, 0, &range) == AG_OK);
		for (int64_t i = 0; i < data.n_train; i++)
			check_row(&cases[c], &loss, data.train_rows[i]);
		ag_loss_free(&bench.ctx, &loss);
		table_end(&table);
		bench_end(&bench);
	}
}

/* No gradient is infinite or NaN, however far the scores. */
static void
extremes(void)
{
	static const double scores[] = {-1e300, -800.0, -69.5, 0.0, 69.5, 800.0, 1e300};

	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
	{
		Bench bench;
		Table table;
		AgTrainData data;
		AgLoss loss;
		AgGradientRange range;
		AgLossParams params = {.kind = cases[c].kind,
							   .alpha = 0.5,
							   .delta = 1.0,
							   .power = 1.5,
							   .step = 0.7,
							   .positive = 1.0};

		if (cases[c].kind < AG_LOSS_POISSON)
			continue;
		bench_init(&bench, 1);
		table_init(&table, 70, 1, 0, 1, 0.0, 0, 19);
		table_bin(&table, &bench.ctx, 20);
		for (int64_t i = 0; i < table.n_rows; i++)
			table.target[i] = i % 2 == 0 ? 1e30 : 1e-30;
		data = table_data(&table, AG_PROBLEM_REGRESSION, 0);
		AG_REQUIRE(ag_loss_create(&bench.ctx, &data, &params, &loss) == AG_OK);
		for (int64_t i = 0; i < table.n_rows; i++)
			loss.scores[i] = scores[i % 7];
		AG_REQUIRE(ag_loss_gradients(&bench.ctx, &loss, 0, &range) == AG_OK);
		AG_CHECK(isfinite(range.max_g) && isfinite(range.max_h));
		ag_loss_free(&bench.ctx, &loss);
		table_end(&table);
		bench_end(&bench);
	}
}

static void
domains(void)
{
	static const struct
	{
		AgLossKind kind;
		double label;
		const char *message;
	} wrong[] = {
		{AG_LOSS_POISSON, -1.0,
		 "label column \"amount\" has negative values, which Poisson deviance can't be computed "
		 "of"},
		{AG_LOSS_GAMMA, 0.0,
		 "label column \"amount\" has zero values, which gamma deviance can't be computed of"},
		{AG_LOSS_TWEEDIE, -0.5,
		 "label column \"amount\" has negative values, which Tweedie deviance can't be computed "
		 "of"},
		{AG_LOSS_POISSON, 1e31,
		 "label column \"amount\" has values beyond 1e30, which are too large for Poisson "
		 "deviance"},
	};
	Bench bench;
	Table table;

	bench_init(&bench, 1);
	table_init(&table, 50, 1, 0, 1, 0.0, 0, 19);
	table_bin(&table, &bench.ctx, 20);
	for (size_t w = 0; w < sizeof wrong / sizeof wrong[0]; w++)
	{
		AgTrainData data = table_data(&table, AG_PROBLEM_REGRESSION, 0);
		AgLossParams params = {.kind = wrong[w].kind, .positive = 1.0};
		AgLoss loss;

		for (int64_t i = 0; i < table.n_rows; i++)
			table.target[i] = 1.0 + (double) i;
		table.target[table.train[7]] = wrong[w].label;
		data.label_name = "amount";
		ag_error_init(&bench.error);
		AG_CHECK_EQ(ag_loss_create(&bench.ctx, &data, &params, &loss), AG_ERR_DATA);
		AG_CHECK_STR(bench.error.message, wrong[w].message);
		ag_loss_free(&bench.ctx, &loss);
	}
	ag_error_init(&bench.error);
	table_end(&table);
	bench_end(&bench);
}

/* ---- renewed leaves ---- */

/* One tree at rate 1: a row's prediction is the percentile of the labels in its leaf. */
static void
leaves(AgLossKind kind, bool is_weighted)
{
	Bench bench;
	Table table;
	AgTrainData data;
	AgBoostParams params = gbm_params(1);
	AgBoostResult result;
	double features[8], *scores;
	int n_differ = 0;

	bench_init(&bench, 2);
	table_init(&table, 1000, 3, 1, 5, 0.1, 0, 23);
	for (int64_t i = 0; i < table.n_rows; i++)
	{
		table.target[i] = floor(table.target[i] * 40.0) / 4.0;
		table.weight[i] = floor(table.weight[i]);
	}
	table_bin(&table, &bench.ctx, 60);
	data = table_data(&table, AG_PROBLEM_REGRESSION, 0);
	data.weight = is_weighted ? table.weight : NULL;
	params.learning_rate = 1.0;
	params.loss = kind;
	params.loss_alpha = 0.3;
	AG_REQUIRE(ag_boost_train(&bench.ctx, &data, &params, &result) == AG_OK);
	AG_CHECK(result.trees->n_leaves > 10);
	scores = malloc((size_t) table.n_train * sizeof *scores);
	for (int64_t i = 0; i < table.n_train; i++)
	{
		table_features(&table, table.train[i], features);
		ag_trees_score(result.trees, features, &scores[i]);
	}
	for (int64_t i = 0; i < table.n_train; i += 7)
	{
		static AgWeighed items[1000];
		int64_t n = 0;

		for (int64_t k = 0; k < table.n_train; k++)
			if (scores[k] == scores[i])
			{
				uint32_t row = table.train[k];
				double weight = is_weighted ? table.weight[row] : 1.0;

				if (kind == AG_LOSS_PERCENTAGE)
					weight /= fmax(1.0, fabs(table.target[row]));
				items[n++] = (AgWeighed){table.target[row], (int64_t) (weight * 0x1p40)};
			}
		n_differ += !(
			fabs(ag_percentile(items, n, kind == AG_LOSS_QUANTILE ? 0.3 : 0.5) - scores[i]) < 1e-9);
	}
	AG_CHECK_EQ(n_differ, 0);
	free(scores);
	ag_boost_result_free(&bench.ctx, &result);
	table_end(&table);
	bench_end(&bench);
}

/* ---- quantiles ---- */

static const double levels[] = {0.05, 0.25, 0.5, 0.9};
#define N_LEVELS 4

static AgTrainData
quantile_data(const Table *table)
{
	AgTrainData data = table_data(table, AG_PROBLEM_QUANTILE, 0);

	data.n_quantiles = N_LEVELS;
	data.quantiles = levels;
	data.stop_metric = AG_METRIC_PINBALL_LOSS;
	return data;
}

/* Levels ascend, cover what they say of rows that weren't seen, and are the same at any number of threads. */
static void
covers(const AgBoostParams *params, bool is_cat)
{
	AgWriter first = {0};

	for (int t = 0; t < 2; t++)
	{
		Bench bench;
		Table table;
		AgTrainData data;
		AgBoostResult result;
		AgWriter bytes;
		double below[N_LEVELS] = {0.0};
		int n_crossed = 0;

		bench_init(&bench, t == 0 ? 1 : 3);
		table_init(&table, 4000, 3, 1, 5, 0.05, 0, 31);
		for (int64_t i = 0; i < table.n_rows; i++)
			table.target[i] +=
				4.0 * ag_random_unit(5, (uint64_t) i) * ag_random_unit(6, (uint64_t) i);
		table_bin(&table, &bench.ctx, 60);
		data = quantile_data(&table);
		AG_REQUIRE((is_cat ? ag_cat_train(&bench.ctx, &data, NULL, params, &result)
						   : ag_boost_train(&bench.ctx, &data, params, &result)) == AG_OK);
		AG_CHECK_EQ(ag_trees_n_out(result.trees), N_LEVELS);
		AG_CHECK(result.trees->link == AG_LINK_QUANTILES);
		for (int64_t i = 0; i < table.n_valid; i++)
		{
			const double *out = result.valid_proba + i * N_LEVELS;
			double features[8], scores[N_LEVELS], linked[N_LEVELS];

			table_features(&table, table.valid[i], features);
			ag_trees_score(result.trees, features, scores);
			ag_trees_link(result.trees, scores, linked);
			AG_CHECK(is_cat || memcmp(linked, out, sizeof linked) == 0);
			for (int k = 0; k < N_LEVELS; k++)
			{
				below[k] += table.target[table.valid[i]] <= out[k];
				n_crossed += k > 0 && out[k] < out[k - 1];
			}
		}
		AG_CHECK_EQ(n_crossed, 0);
		for (int k = 0; k < N_LEVELS; k++)
			AG_CHECK_NEAR(below[k] / (double) table.n_valid, levels[k], 0.06);
		bytes = model_bytes(&bench.ctx, result.trees);
		if (t == 0)
		{
			first.size = bytes.size;
			first.data = malloc(bytes.size);
			memcpy(first.data, bytes.data, bytes.size);
		}
		else
			AG_CHECK(same_bytes(&first, &bytes));
		ag_writer_free(&bytes);
		ag_boost_result_free(&bench.ctx, &result);
		table_end(&table);
		bench_end(&bench);
	}
	free(first.data);
}

/* Each loss learns: better by its own metric than what is right for another one. */
static double
valid_error(AgLossKind kind, AgMetric metric)
{
	Bench bench;
	Table table;
	AgTrainData data;
	AgBoostParams params = kind == AG_LOSS_PSEUDO_HUBER ? xgb_params(200) : gbm_params(200);
	AgBoostResult result;
	double value, *target;

	bench_init(&bench, 2);
	table_init(&table, 3000, 3, 0, 1, 0.0, 0, 37);
	target = malloc((size_t) table.n_rows * sizeof *target);
	for (int64_t i = 0; i < table.n_rows; i++) /* skewed, with some far away */
		table.target[i] = exp(table.target[i] + 1.5 * ag_random_unit(8, (uint64_t) i)) +
						  (ag_random_unit(9, (uint64_t) i) < 0.05 ? 200.0 : 0.0);
	for (int64_t i = 0; i < table.n_valid; i++)
		target[i] = table.target[table.valid[i]];
	table_bin(&table, &bench.ctx, 60);
	data = table_data(&table, AG_PROBLEM_REGRESSION, 0);
	data.stop_metric = metric;
	params.loss = kind;
	params.loss_delta = kind == AG_LOSS_HUBER ? 10.0 : 1.0; /* its steps are no longer */
	AG_REQUIRE(ag_boost_train(&bench.ctx, &data, &params, &result) == AG_OK);
	AG_REQUIRE(ag_metric_regression(&bench.ctx, metric, table.n_valid, target, result.valid_proba,
									NULL, &value) == AG_OK);
	free(target);
	ag_boost_result_free(&bench.ctx, &result);
	table_end(&table);
	bench_end(&bench);
	return value;
}

static void
learn(void)
{
	double absolute = valid_error(AG_LOSS_ABSOLUTE, AG_METRIC_MAE);

	AG_CHECK(absolute < 0.85 * valid_error(AG_LOSS_SQUARED, AG_METRIC_MAE));
	AG_CHECK(absolute == valid_error(AG_LOSS_AUTO, AG_METRIC_MAE));
	AG_CHECK(valid_error(AG_LOSS_HUBER, AG_METRIC_MAE) < 1.2 * absolute);
	AG_CHECK(valid_error(AG_LOSS_FAIR, AG_METRIC_MAE) < 1.2 * absolute);
	AG_CHECK(valid_error(AG_LOSS_PSEUDO_HUBER, AG_METRIC_MAE) < 1.2 * absolute);
	AG_CHECK(valid_error(AG_LOSS_AUTO, AG_METRIC_MAPE) <
			 0.5 * valid_error(AG_LOSS_SQUARED, AG_METRIC_MAPE));
	AG_CHECK(valid_error(AG_LOSS_POISSON, AG_METRIC_RMSE) <
			 1.1 * valid_error(AG_LOSS_SQUARED, AG_METRIC_RMSE));
	AG_CHECK(valid_error(AG_LOSS_GAMMA, AG_METRIC_RMSE) <
			 1.1 * valid_error(AG_LOSS_SQUARED, AG_METRIC_RMSE));
}

static void
no_memory(void)
{
	Bench bench;
	Table table;
	AgTrainData data;
	AgBoostParams params = gbm_params(2);
	AgBoostResult result;
	AgStatus status = AG_ERR_MEMORY;
	int64_t used;

	bench_init(&bench, 1);
	table_init(&table, 200, 2, 0, 1, 0.0, 0, 41);
	table_bin(&table, &bench.ctx, 20);
	data = quantile_data(&table);
	used = atomic_load(&bench.mem.used_bytes);
	for (int after = 0; status != AG_OK && after < 300; after++)
	{
		ag_error_init(&bench.error);
		atomic_store(&bench.mem.fail_after, after);
		status = ag_boost_train(&bench.ctx, &data, &params, &result);
		AG_CHECK(status == AG_OK || status == AG_ERR_MEMORY);
		if (status != AG_OK)
			AG_CHECK_EQ(atomic_load(&bench.mem.used_bytes), used);
	}
	AG_CHECK_EQ(status, AG_OK);
	atomic_store(&bench.mem.fail_after, -1);
	ag_boost_result_free(&bench.ctx, &result);
	table_end(&table);
	bench_end(&bench);
}

/* The mean of scikit-learn 1.9.1's mean_pinball_loss of both levels, also where nothing varies; weights 1, 2, 3, 1, 2, 3, ... */
static void
pinball_recorded(Bench *bench)
{
	static const double levels[] = {0.1, 0.8};
	static const double recorded[] = {0.2760416666666667, 0.3505208333333334, 0.2796875,
									  0.37109375};
	double target[24], predictions[48], weight[24], value;
	AgTruth truth = {.n_quantiles = 2, .quantiles = levels, .target = target};

	for (int c = 0; c < 4; c++)
	{
		for (int i = 0; i < 24; i++)
		{
			target[i] = i * 7 % 11 / 4.0 - 1.0;
			predictions[2 * i] = c % 2 == 1 ? 0.25 : i * 5 % 13 / 4.0 - 2.0;
			predictions[2 * i + 1] = predictions[2 * i] + (c % 2 == 1 ? 0.0 : 1.5);
			weight[i] = 1.0 + i % 3;
		}
		truth.weight = c >= 2 ? weight : NULL;
		AG_REQUIRE(ag_metric_value(&bench->ctx, AG_METRIC_PINBALL_LOSS, &truth, 24, predictions,
								   &value) == AG_OK);
		AG_CHECK_NEAR(value, recorded[c], 1e-14);
	}
}

static void
pinball(void)
{
	static const double target[] = {1.0, 2.0, 3.0};
	static const double predictions[] = {0.0, 2.0, 3.0, 2.0, 2.0, 4.0};
	static const double two[] = {0.1, 0.8};
	static const double weight[] = {1.0, 0.0, 2.0};
	AgTruth truth = {.n_quantiles = 2, .quantiles = two, .target = target};
	Bench bench;
	double value;

	bench_init(&bench, 1);
	AG_REQUIRE(ag_metric_value(&bench.ctx, AG_METRIC_PINBALL_LOSS, &truth, 3, predictions,
							   &value) == AG_OK);
	AG_CHECK_NEAR(value, (0.1 + 0.2 + 0.9 + 0.0 + 0.1 + 0.2) / 6.0, 1e-15);
	truth.weight = weight;
	AG_REQUIRE(ag_metric_value(&bench.ctx, AG_METRIC_PINBALL_LOSS, &truth, 3, predictions,
							   &value) == AG_OK);
	AG_CHECK_NEAR(value, (0.3 + 2.0 * 0.3) / 6.0, 1e-15);
	AG_REQUIRE(ag_metric_value(&bench.ctx, AG_METRIC_PINBALL_LOSS, &truth, 0, predictions,
							   &value) == AG_OK);
	AG_CHECK(isnan(value));
	pinball_recorded(&bench);
	AG_CHECK_EQ(ag_metric_value(&bench.ctx, AG_METRIC_RMSE, &truth, 3, predictions, &value),
				AG_ERR_INTERNAL);
	ag_error_init(&bench.error);
	bench_end(&bench);
}

int
main(void)
{
	AgBoostParams gbm = gbm_params(200), xgb = xgb_params(200), cat = cat_params(200);

	cat.bootstrap = 4; /* none */
	percentiles();
	differences();
	extremes();
	domains();
	for (int w = 0; w < 2; w++)
	{
		leaves(AG_LOSS_ABSOLUTE, w == 1);
		leaves(AG_LOSS_QUANTILE, w == 1);
		leaves(AG_LOSS_PERCENTAGE, w == 1);
	}
	covers(&gbm, false);
	covers(&xgb, false);
	covers(&cat, true);
	learn();
	no_memory();
	pinball();
	return ag_unit_done("losses");
}
