/*
 * metric.c - every metric against recorded values of other libraries, what each gives where there is
 * nothing to measure, and that threads, ties and lack of memory change nothing.
 */
#include "unit/unit.h"

#include "engine/base/rng.h"
#include "engine/base/threads.h"
#include "engine/model/metric.h"
#include "engine/model/rank.h"
#include "unit/metric_cases.h"
#include "unit/metric_odd.h"

#define MAX_ROWS 50000
#define MAX_CLASSES 7

static AgMem mem;
static AgError err;
static AgContext ctx;

static double target[MAX_ROWS], prediction[MAX_ROWS], weight_room[MAX_ROWS];
static double proba[MAX_ROWS * MAX_CLASSES];
static int32_t class_of[MAX_ROWS];

/* The inputs are made of the generator's numbers by exact arithmetic alone: metric_cases.h was recorded on the same. */
static void
make_regression(int set, int n)
{
	for (int i = 0; i < n; i++)
	{
		double t = 10.0 * ag_random_unit(1, (uint64_t) i) - 5.0;
		double p = 0.7 * t + 3.0 * ag_random_unit(2, (uint64_t) i) - 1.0;

		if (set == 1)
		{
			t = floor(4.0 * t) / 4.0;
			p = floor(4.0 * p) / 4.0;
		}
		if (set == 2)
		{
			t += 1e6;
			p += 1e6;
		}
		target[i] = t;
		prediction[i] = p;
	}
}

static void
make_binary(int set, int n)
{
	for (int i = 0; i < n; i++)
	{
		double p;

		class_of[i] = ag_random_unit(3, (uint64_t) i) < (set == 2 ? 0.05 : 0.4);
		p = 0.3 * class_of[i] + 0.7 * ag_random_unit(4, (uint64_t) i);
		if (set == 1)
			p = floor(8.0 * p) / 8.0;
		proba[2 * i] = 1.0 - p;
		proba[2 * i + 1] = p;
	}
}

static void
make_multiclass(int set, int n, int n_classes)
{
	for (int i = 0; i < n; i++)
	{
		double *p = proba + i * n_classes, sum = 0.0;

		class_of[i] = (int32_t) (ag_random_unit(5, (uint64_t) i) * n_classes);
		for (int k = 0; k < n_classes; k++)
		{
			p[k] = ag_random_unit(10 + (uint64_t) k, (uint64_t) i) + (k == class_of[i] ? 0.8 : 0.0);
			if (set == 1)
				p[k] = floor(4.0 * p[k]) / 4.0 + 0.25;
			sum += p[k];
		}
		for (int k = 0; k < n_classes; k++)
			p[k] /= sum;
	}
}

static const double *
make_weights(int kind, int n)
{
	if (kind == 0)
		return NULL;
	for (int i = 0; i < n; i++)
		weight_room[i] = kind == 1   ? 0.1 + ag_random_unit(91, (uint64_t) i)
						 : kind == 2 ? floor(4.0 * ag_random_unit(92, (uint64_t) i))
									 : 1.0 + i % 3;
	return weight_room;
}

static void
make_classes(int set, int n, int n_classes)
{
	if (n_classes == 2)
		make_binary(set, n);
	else
		make_multiclass(set, n, n_classes);
}

static double
regression(AgMetric metric, int n, const double *weight)
{
	double value = 0.0;

	AG_CHECK_EQ(ag_metric_regression(&ctx, metric, n, target, prediction, weight, &value), AG_OK);
	return value;
}

static double
classes(AgMetric metric, int n, int n_classes, const double *weight)
{
	double value = 0.0;

	AG_CHECK_EQ(ag_metric_classes(&ctx, metric, n, n_classes, class_of, proba, 0.5, weight, &value),
				AG_OK);
	return value;
}

/* Of an odd one or any other; NaN where there is nothing to measure is NaN here, too. */
static void
check_case(const struct MetricCase *c, bool is_odd)
{
	AgMetric metric = ag_metric_by_name(c->metric);
	const double *weight = make_weights(c->weights, c->n_rows);
	double value;

	if (c->kind == REGRESSION)
	{
		if (is_odd)
			make_odd_regression(c->set, c->n_rows, target, prediction);
		else
			make_regression(c->set, c->n_rows);
		value = regression(metric, c->n_rows, weight);
	}
	else
	{
		if (is_odd)
			make_odd_classes(c->set, c->n_rows, c->n_classes, class_of, proba);
		else
			make_classes(c->set, c->n_rows, c->n_classes);
		value = classes(metric, c->n_rows, c->n_classes, weight);
	}
	if (isnan(c->value) ? !AG_CHECK(isnan(value))
						: !AG_CHECK_NEAR(value, c->value, 1e-12 * fabs(c->value)))
		fprintf(stderr, "    %s of %sset %d, %d rows, %d classes, weights %d: %.17g, not %.17g\n",
				c->metric, is_odd ? "odd " : "", c->set, c->n_rows, c->n_classes, c->weights, value,
				c->value);
}

static void
recorded(void)
{
	for (size_t i = 0; i < sizeof metric_cases / sizeof metric_cases[0]; i++)
		check_case(&metric_cases[i], false);
	for (size_t i = 0; i < sizeof odd_cases / sizeof odd_cases[0]; i++)
		check_case(&odd_cases[i], true);
}

static void
names(void)
{
	AgMetric list[AG_METRIC_LAST];
	int n;

	for (int m = AG_METRIC_NONE + 1; m < AG_METRIC_LAST; m++)
	{
		const char *name = ag_metric_name((AgMetric) m);

		AG_REQUIRE(name != NULL);
		AG_CHECK_EQ(ag_metric_by_name(name), m);
		AG_CHECK(ag_metric_fits((AgMetric) m, AG_PROBLEM_BINARY) ||
				 ag_metric_fits((AgMetric) m, AG_PROBLEM_MULTICLASS) ||
				 ag_metric_fits((AgMetric) m, AG_PROBLEM_REGRESSION) ||
				 ag_metric_fits((AgMetric) m, AG_PROBLEM_QUANTILE));
	}
	AG_CHECK(ag_metric_name(AG_METRIC_NONE) == NULL);
	AG_CHECK(ag_metric_name(AG_METRIC_LAST) == NULL);
	AG_CHECK_EQ(ag_metric_by_name("rmse"), AG_METRIC_RMSE);
	AG_CHECK_EQ(ag_metric_by_name("acc"), AG_METRIC_ACCURACY);
	AG_CHECK_EQ(ag_metric_by_name("nll"), AG_METRIC_LOG_LOSS);
	AG_CHECK_EQ(ag_metric_by_name("roc_auc_ovr"), AG_METRIC_ROC_AUC_OVR_MACRO);
	AG_CHECK_EQ(ag_metric_by_name(""), AG_METRIC_NONE);
	AG_CHECK_EQ(ag_metric_by_name("RMSE"), AG_METRIC_NONE);
	AG_CHECK(!ag_metric_fits(AG_METRIC_ROC_AUC, AG_PROBLEM_MULTICLASS));
	AG_CHECK(!ag_metric_fits(AG_METRIC_RMSE, AG_PROBLEM_BINARY));
	AG_CHECK(!ag_metric_fits(AG_METRIC_NONE, AG_PROBLEM_BINARY));
	AG_CHECK_EQ(ag_metric_default(AG_PROBLEM_BINARY), AG_METRIC_ACCURACY);
	AG_CHECK_EQ(ag_metric_default(AG_PROBLEM_REGRESSION), AG_METRIC_RMSE);
	n = ag_metric_list(AG_PROBLEM_BINARY, AG_METRIC_ROC_AUC, list);
	AG_CHECK_EQ(n, 20);
	AG_CHECK_EQ(list[0], AG_METRIC_ROC_AUC);
	AG_CHECK_EQ(list[1], AG_METRIC_ACCURACY);
	AG_CHECK_EQ(list[4], AG_METRIC_LOG_LOSS);
	AG_CHECK_EQ(list[5], AG_METRIC_F1);
	AG_CHECK_EQ(list[n - 1], AG_METRIC_PAC);
	n = ag_metric_list(AG_PROBLEM_MULTICLASS, AG_METRIC_NONE, list);
	AG_CHECK_EQ(n, 20);
	AG_CHECK_EQ(ag_metric_by_name("roc_auc_ovo"), AG_METRIC_ROC_AUC_OVO_MACRO);
	AG_CHECK_EQ(ag_metric_by_name("roc_auc_ovr"), AG_METRIC_ROC_AUC_OVR_MACRO);
	AG_CHECK_EQ(ag_metric_by_name("pac_score"), AG_METRIC_PAC);
	AG_CHECK_EQ(ag_metric_by_name("nll"), AG_METRIC_LOG_LOSS);
	AG_CHECK(ag_metric_needs_probabilities(AG_METRIC_PAC));
	AG_CHECK(!ag_metric_needs_probabilities(AG_METRIC_RECALL_MACRO));
	AG_CHECK(ag_metric_is_ranking(AG_METRIC_ROC_AUC_OVO_WEIGHTED));
	AG_CHECK(!ag_metric_is_ranking(AG_METRIC_LOG_LOSS));
	AG_CHECK(ag_metric_goes_by_class(AG_METRIC_ROC_AUC_OVR_MICRO));
	AG_CHECK(!ag_metric_goes_by_class(AG_METRIC_ROC_AUC));
	n = ag_metric_list(AG_PROBLEM_REGRESSION, AG_METRIC_SMAPE, list);
	AG_CHECK_EQ(n, 9);
	AG_CHECK_EQ(list[0], AG_METRIC_SMAPE);
	AG_CHECK(ag_metric_score(AG_METRIC_RMSE, 2.5) == -2.5);
	AG_CHECK(ag_metric_score(AG_METRIC_R2, 0.5) == 0.5);
	AG_CHECK(!signbit(ag_metric_score(AG_METRIC_RMSE, 0.0)));
}

static void
degenerate_regression(void)
{
	for (int m = AG_METRIC_RMSE; m <= AG_METRIC_SPEARMANR; m++)
		AG_CHECK(isnan(regression((AgMetric) m, 0, NULL)));
	target[0] = 3.0;
	prediction[0] = 5.0;
	AG_CHECK(regression(AG_METRIC_RMSE, 1, NULL) == 2.0);
	AG_CHECK(regression(AG_METRIC_MEDAE, 1, NULL) == 2.0);
	AG_CHECK(isnan(regression(AG_METRIC_R2, 1, NULL)));
	AG_CHECK(isnan(regression(AG_METRIC_PEARSONR, 1, NULL)));
	AG_CHECK(isnan(regression(AG_METRIC_SPEARMANR, 1, NULL)));
	/* a constant target whose mean isn't exactly itself */
	for (int i = 0; i < 10; i++)
	{
		target[i] = 0.1;
		prediction[i] = 0.1;
	}
	AG_CHECK(regression(AG_METRIC_R2, 10, NULL) == 1.0);
	prediction[3] = 0.2;
	AG_CHECK(regression(AG_METRIC_R2, 10, NULL) == 0.0);
	AG_CHECK(isnan(regression(AG_METRIC_PEARSONR, 10, NULL)));
	AG_CHECK(isnan(regression(AG_METRIC_SPEARMANR, 10, NULL)));
	/* zeros: an exact zero costs nothing, a missed one what a denominator of 2^-52 makes of it */
	target[0] = prediction[0] = 0.0;
	target[1] = 0.0;
	prediction[1] = 1.0;
	AG_CHECK(regression(AG_METRIC_MAPE, 1, NULL) == 0.0);
	AG_CHECK(regression(AG_METRIC_SMAPE, 1, NULL) == 0.0);
	AG_CHECK(regression(AG_METRIC_MAPE, 2, NULL) == 0.5 * 4503599627370496.0);
	AG_CHECK(regression(AG_METRIC_SMAPE, 2, NULL) == 1.0);
	/* NaN and infinity don't crash, and NaN gives NaN */
	make_regression(0, 100);
	prediction[50] = INFINITY;
	AG_CHECK(isinf(regression(AG_METRIC_RMSE, 100, NULL)));
	AG_CHECK(isfinite(regression(AG_METRIC_MEDAE, 100, NULL)));
	AG_CHECK(isfinite(regression(AG_METRIC_SPEARMANR, 100, NULL)));
	prediction[50] = NAN;
	for (int m = AG_METRIC_RMSE; m <= AG_METRIC_SPEARMANR; m++)
		AG_CHECK(isnan(regression((AgMetric) m, 100, NULL)));
	/* no weight at all */
	make_regression(0, 10);
	memset(weight_room, 0, sizeof weight_room);
	for (int m = AG_METRIC_RMSE; m <= AG_METRIC_SPEARMANR; m++)
		AG_CHECK(isnan(regression((AgMetric) m, 10, weight_room)) || m == AG_METRIC_R2);
}

static void
degenerate_classes(void)
{
	double value;

	for (int m = AG_METRIC_ACCURACY; m < AG_METRIC_RMSE; m++)
	{
		int n_classes = ag_metric_fits((AgMetric) m, AG_PROBLEM_BINARY) ? 2 : 3;

		AG_CHECK(isnan(classes((AgMetric) m, 0, n_classes, NULL)));
	}
	/* only negatives */
	make_binary(0, 100);
	memset(class_of, 0, sizeof class_of);
	AG_CHECK(isnan(classes(AG_METRIC_ROC_AUC, 100, 2, NULL)));
	AG_CHECK(classes(AG_METRIC_AVERAGE_PRECISION, 100, 2, NULL) == 0.0);
	AG_CHECK(classes(AG_METRIC_RECALL, 100, 2, NULL) == 0.0);
	AG_CHECK(classes(AG_METRIC_F1, 100, 2, NULL) == 0.0);
	AG_CHECK(classes(AG_METRIC_MCC, 100, 2, NULL) == 0.0);
	/* nothing predicted positive */
	class_of[7] = 1;
	for (int i = 0; i < 100; i++)
	{
		proba[2 * i] = 1.0;
		proba[2 * i + 1] = 0.0;
	}
	AG_CHECK(classes(AG_METRIC_PRECISION, 100, 2, NULL) == 0.0);
	AG_CHECK(classes(AG_METRIC_ROC_AUC, 100, 2, NULL) == 0.5);
	AG_CHECK_NEAR(classes(AG_METRIC_LOG_LOSS, 100, 2, NULL), -log(1e-15) / 100.0, 1e-12);
	/* the threshold itself is negative */
	proba[14] = proba[15] = 0.5;
	AG_CHECK(classes(AG_METRIC_RECALL, 100, 2, NULL) == 0.0);
	AG_CHECK_EQ(
		ag_metric_classes(&ctx, AG_METRIC_RECALL, 100, 2, class_of, proba, 0.49, NULL, &value),
		AG_OK);
	AG_CHECK(value == 1.0);
	/* -0 and 0 tie */
	proba[1] = -0.0;
	AG_CHECK(classes(AG_METRIC_ROC_AUC, 7, 2, NULL) != 1.0);
	proba[1] = NAN;
	AG_CHECK(isnan(classes(AG_METRIC_ROC_AUC, 100, 2, NULL)));
	/* a class without rows doesn't count in the mean of the classes */
	make_multiclass(0, 300, 4);
	for (int i = 0; i < 300; i++)
		class_of[i] = class_of[i] == 3 ? 0 : class_of[i];
	AG_CHECK(isfinite(classes(AG_METRIC_ROC_AUC_OVR_MACRO, 300, 4, NULL)));
	AG_CHECK_EQ(ag_metric_classes(&ctx, AG_METRIC_RMSE, 10, 2, class_of, proba, 0.5, NULL, &value),
				AG_ERR_INTERNAL);
	AG_CHECK_STR(err.message, "metric \"root_mean_squared_error\" is not one of 2 classes");
	ag_error_init(&err);
	AG_CHECK_EQ(
		ag_metric_classes(&ctx, AG_METRIC_ROC_AUC, 10, 3, class_of, proba, 0.5, NULL, &value),
		AG_ERR_INTERNAL);
	ag_error_init(&err);
	AG_CHECK_EQ(ag_metric_regression(&ctx, AG_METRIC_NONE, 1, target, prediction, NULL, &value),
				AG_ERR_INTERNAL);
	ag_error_init(&err);
}

/* Truths and predicted classes, the probabilities certain of them. */
static double
certain(AgMetric metric, int n_classes, int n, const int *truth, const int *predicted)
{
	memset(proba, 0, (size_t) (n * n_classes) * sizeof *proba);
	for (int i = 0; i < n; i++)
	{
		class_of[i] = truth[i];
		proba[i * n_classes + predicted[i]] = 1.0;
	}
	return classes(metric, n, n_classes, NULL);
}

/* Classes that nobody has or nobody predicts, as scikit-learn counts them (zero_division=0). */
static void
missing_classes(void)
{
	static const int zeros[4] = {0, 0, 0, 0}, mixed[4] = {0, 1, 1, 0};
	static const int truth[5] = {0, 2, 2, 0, 3}, seen[5] = {0, 2, 3, 3, 3};
	static const int few[3] = {0, 0, 2}, guess[3] = {0, 2, 2}, wrong[3] = {1, 2, 2};

	AG_CHECK(isnan(certain(AG_METRIC_QUADRATIC_KAPPA, 2, 4, zeros, zeros)));
	AG_CHECK(certain(AG_METRIC_QUADRATIC_KAPPA, 2, 4, zeros, mixed) == 0.0);
	AG_CHECK_NEAR(certain(AG_METRIC_QUADRATIC_KAPPA, 4, 5, truth, seen), 0.35897435897435903,
				  1e-15);
	AG_CHECK(certain(AG_METRIC_PRECISION_MACRO, 3, 3, few, guess) == 0.75);
	AG_CHECK_NEAR(certain(AG_METRIC_RECALL_MACRO, 3, 3, few, wrong), 1.0 / 3.0, 1e-15);
	AG_CHECK_NEAR(certain(AG_METRIC_PRECISION_WEIGHTED, 3, 3, few, wrong), 1.0 / 6.0, 1e-15);
	/* one class has all rows: no pair, and no rest */
	AG_CHECK(isnan(certain(AG_METRIC_ROC_AUC_OVO_MACRO, 3, 4, zeros, mixed)));
	AG_CHECK(isnan(certain(AG_METRIC_ROC_AUC_OVR_WEIGHTED, 3, 4, zeros, mixed)));
	AG_CHECK(certain(AG_METRIC_ROC_AUC_OVO_MACRO, 3, 3, few, few) == 1.0);
	/* certain and right, certain and wrong, and the shares of the classes alone */
	AG_CHECK_NEAR(certain(AG_METRIC_PAC, 3, 3, few, few), 1.0, 1e-6);
	AG_CHECK(certain(AG_METRIC_PAC, 3, 3, few, wrong) < -0.5);
	for (int i = 0; i < 4; i++)
	{
		class_of[i] = i % 2;
		proba[2 * i] = proba[2 * i + 1] = 0.5;
	}
	AG_CHECK_NEAR(classes(AG_METRIC_PAC, 4, 2, NULL), 0.0, 1e-15);
}

/* Rows of a class that training never saw: always wrong, never a reason to fail. */
static void
unseen_classes(void)
{
	make_multiclass(0, 100, 3);
	for (int i = 0; i < 100; i++)
	{
		memset(proba + 3 * i, 0, 3 * sizeof(double));
		proba[3 * i + class_of[i]] = 1.0;
	}
	AG_CHECK(classes(AG_METRIC_ACCURACY, 100, 3, NULL) == 1.0);
	AG_CHECK(classes(AG_METRIC_MCC, 100, 3, NULL) == 1.0);
	for (int i = 0; i < 25; i++)
		class_of[i] = -1;
	AG_CHECK(classes(AG_METRIC_ACCURACY, 100, 3, NULL) == 0.75);
	AG_CHECK(classes(AG_METRIC_BALANCED_ACCURACY, 100, 3, NULL) == 0.75);
	AG_CHECK(classes(AG_METRIC_F1_MACRO, 100, 3, NULL) < 0.75);
	AG_CHECK(classes(AG_METRIC_MCC, 100, 3, NULL) < 0.75);
	AG_CHECK_NEAR(classes(AG_METRIC_LOG_LOSS, 100, 3, NULL), -0.25 * log(1e-15), 1e-12);
	for (int m = AG_METRIC_ACCURACY; m < AG_METRIC_RMSE; m++)
		if (ag_metric_fits((AgMetric) m, AG_PROBLEM_MULTICLASS))
			AG_CHECK(isfinite(classes((AgMetric) m, 100, 3, NULL)));
	make_binary(0, 100);
	class_of[3] = class_of[4] = -1;
	for (int m = AG_METRIC_ACCURACY; m < AG_METRIC_RMSE; m++)
		if (ag_metric_fits((AgMetric) m, AG_PROBLEM_BINARY))
			AG_CHECK(isfinite(classes((AgMetric) m, 100, 2, NULL)));
}

/* The definition, pair by pair. */
static void
auc_by_pairs(void)
{
	for (int set = 0; set < 2; set++)
	{
		double good = 0.0, pairs = 0.0;

		make_binary(set, 200);
		for (int i = 0; i < 200; i++)
			for (int j = 0; j < 200; j++)
				if (class_of[i] == 1 && class_of[j] == 0)
				{
					double a = proba[2 * i + 1], b = proba[2 * j + 1];

					good += a > b ? 1.0 : a == b ? 0.5 : 0.0;
					pairs += 1.0;
				}
		AG_CHECK(classes(AG_METRIC_ROC_AUC, 200, 2, NULL) == good / pairs);
	}
}

/* A row of weight w is w rows, and one of weight 0 none. */
static void
weights_repeat(void)
{
	static double by_weight[AG_METRIC_LAST];
	const int n = 400, n_classes[] = {2, 3};
	int at = 0;

	make_regression(1, n);
	make_weights(2, n);
	for (int m = AG_METRIC_RMSE; m <= AG_METRIC_SPEARMANR; m++)
		by_weight[m] = regression((AgMetric) m, n, weight_room);
	make_regression(1, n);
	memcpy(proba, target, (size_t) n * sizeof *target);
	memcpy(proba + n, prediction, (size_t) n * sizeof *prediction);
	for (int i = 0; i < n; i++)
		for (int w = 0; w < (int) weight_room[i]; w++, at++)
		{
			target[at] = proba[i];
			prediction[at] = proba[n + i];
		}
	for (int m = AG_METRIC_RMSE; m <= AG_METRIC_SPEARMANR; m++)
		AG_CHECK_NEAR(by_weight[m], regression((AgMetric) m, at, NULL), 1e-12 * fabs(by_weight[m]));
	for (int c = 0; c < 2; c++)
	{
		static double copy[400 * 3];
		static int32_t truth[400];
		int k = n_classes[c];
		AgProblem problem = k == 2 ? AG_PROBLEM_BINARY : AG_PROBLEM_MULTICLASS;

		make_classes(1, n, k);
		for (int m = AG_METRIC_ACCURACY; m < AG_METRIC_RMSE; m++)
			if (ag_metric_fits((AgMetric) m, problem))
				by_weight[m] = classes((AgMetric) m, n, k, weight_room);
		memcpy(copy, proba, (size_t) (n * k) * sizeof(double));
		memcpy(truth, class_of, sizeof truth);
		at = 0;
		for (int i = 0; i < n; i++)
			for (int w = 0; w < (int) weight_room[i]; w++, at++)
			{
				class_of[at] = truth[i];
				memcpy(proba + at * k, copy + i * k, (size_t) k * sizeof(double));
			}
		for (int m = AG_METRIC_ACCURACY; m < AG_METRIC_RMSE; m++)
			if (ag_metric_fits((AgMetric) m, problem))
				AG_CHECK_NEAR(by_weight[m], classes((AgMetric) m, at, k, NULL), 1e-13);
	}
}

/* The same bits on one thread, on three, and where a pool's sums found no memory. */
static void
threads(void)
{
	AgPool *pool;
	const int n = MAX_ROWS;

	AG_REQUIRE(ag_pool_create(&mem, 3, &pool, &err) == AG_OK);
	make_weights(1, n);
	make_regression(0, n);
	for (int m = AG_METRIC_RMSE; m <= AG_METRIC_SPEARMANR; m++)
	{
		double alone = regression((AgMetric) m, n, weight_room);

		ctx.pool = pool;
		AG_CHECK(regression((AgMetric) m, n, weight_room) == alone);
		ctx.pool = NULL;
	}
	make_multiclass(0, n, 3);
	for (int m = AG_METRIC_ACCURACY; m < AG_METRIC_RMSE; m++)
		if (ag_metric_fits((AgMetric) m, AG_PROBLEM_MULTICLASS))
		{
			double alone = classes((AgMetric) m, n, 3, weight_room);

			ctx.pool = pool;
			AG_CHECK(classes((AgMetric) m, n, 3, weight_room) == alone);
			ctx.pool = NULL;
		}
	make_regression(0, n);
	{
		double alone = regression(AG_METRIC_RMSE, n, NULL);

		ctx.pool = pool;
		atomic_store(&mem.fail_after, 0);
		AG_CHECK(regression(AG_METRIC_RMSE, n, NULL) == alone);
		atomic_store(&mem.fail_after, -1);
		ctx.pool = NULL;
	}
	ag_pool_free(pool);
}

/* Each allocation fails once: a clean error, nothing leaked, and then it works. */
static void
no_memory(void)
{
	int64_t used = atomic_load(&mem.used_bytes);

	make_regression(0, 100);
	make_classes(0, 100, 3);
	for (int m = AG_METRIC_ACCURACY; m <= AG_METRIC_SPEARMANR; m++)
	{
		bool is_regression = m >= AG_METRIC_RMSE;
		int n_classes = ag_metric_fits((AgMetric) m, AG_PROBLEM_MULTICLASS) ? 3 : 2;
		AgStatus status = AG_ERR_MEMORY;

		if (!is_regression)
			make_classes(0, 100, n_classes);
		for (int after = 0; status != AG_OK && after < 50; after++)
		{
			double value;

			ag_error_init(&err);
			atomic_store(&mem.fail_after, after);
			status = is_regression ? ag_metric_regression(&ctx, (AgMetric) m, 100, target,
														  prediction, NULL, &value)
								   : ag_metric_classes(&ctx, (AgMetric) m, 100, n_classes, class_of,
													   proba, 0.5, NULL, &value);
			AG_CHECK(status == AG_OK || status == AG_ERR_MEMORY);
			AG_CHECK_EQ(atomic_load(&mem.used_bytes), used);
		}
		AG_CHECK_EQ(status, AG_OK);
	}
	atomic_store(&mem.fail_after, -1);
	ag_error_init(&err);
}

static void
ranks(void)
{
	static const double values[] = {3.0,      -INFINITY, -0.0,    5e-324, 0.0,
									INFINITY, -1.0,      -5e-324, 3.0};
	static const int64_t rows[] = {1, 6, 7, 2, 4, 3, 0, 8, 5};
	AgRanked *ranked;
	bool has_nan;

	AG_REQUIRE(ag_rank_rows(&ctx, 9, values, 1, &ranked, &has_nan) == AG_OK);
	AG_CHECK(!has_nan);
	for (int i = 0; i < 9; i++)
		AG_CHECK_EQ(ranked[i].row, rows[i]);
	AG_CHECK_EQ(ag_rank_ties_end(ranked, 9, 3), 5);
	AG_CHECK_EQ(ag_rank_ties_end(ranked, 9, 6), 8);
	AG_CHECK_EQ(ag_rank_ties_end(ranked, 9, 8), 9);
	ag_mem_free(&mem, ranked);
	AG_REQUIRE(ag_rank_rows(&ctx, 0, values, 1, &ranked, &has_nan) == AG_OK);
	ag_mem_free(&mem, ranked);
}

int
main(void)
{
	ag_mem_init(&mem, INT64_MAX);
	ag_error_init(&err);
	ctx = (AgContext){.mem = &mem, .deadline_ns = INT64_MAX, .error = &err};
	recorded();
	names();
	degenerate_regression();
	degenerate_classes();
	missing_classes();
	unseen_classes();
	auc_by_pairs();
	weights_repeat();
	threads();
	no_memory();
	ranks();
	AG_CHECK_EQ(atomic_load(&mem.used_bytes), 0);
	return ag_unit_done("metric");
}
