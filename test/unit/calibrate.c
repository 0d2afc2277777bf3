/* calibrate.c - what is made of the best model's predictions at the end: a temperature, a threshold, and quantiles that are moved. */
#include "unit/unit.h"

#include "engine/base/rng.h"
#include "engine/search/fit_state.h"

#define N_ROWS 4000

/* A fit that has one model, and is done but for that. */
typedef struct Done
{
	AgFit fit;
	AgFitOptions options;
	AgFitModel model;
	AgLabel label;
	AgError err;
	double proba[N_ROWS * 2], target[N_ROWS], weight[N_ROWS];
	int32_t class_of[N_ROWS];
} Done;

static Done done;

static void
done_make(AgMem *mem, AgProblem problem, AgMetric metric, int n)
{
	Done *d = &done;

	memset(d, 0, sizeof *d);
	ag_error_init(&d->err);
	ag_arena_init(&d->fit.arena, mem);
	d->label.problem = problem;
	d->label.n_classes = problem == AG_PROBLEM_BINARY ? 2 : 0;
	d->fit.ctx.mem = mem;
	d->fit.ctx.error = &d->err;
	d->fit.ctx.deadline_ns = INT64_MAX;
	d->fit.options = &d->options;
	d->fit.label = &d->label;
	d->fit.metric = metric;
	d->fit.models = &d->model;
	d->fit.n_models = 1;
	d->fit.n_rows = n;
	d->fit.validation.n_scored = n;
	d->fit.validation.n_folds = 5;
	d->fit.validation.class_of = problem == AG_PROBLEM_BINARY ? d->class_of : NULL;
	d->fit.validation.target = problem == AG_PROBLEM_BINARY ? NULL : d->target;
	snprintf(d->model.name, sizeof d->model.name, "M");
	d->model.level = 1;
	d->model.value = 0.5;
	d->model.proba = d->proba;
	d->model.n_covered = n;
}

static void
calibrate(AgMem *mem)
{
	AG_CHECK_EQ(ag_fit_calibrate(&done.fit), AG_OK);
	ag_arena_free(&done.fit.arena);
	AG_CHECK_EQ(mem->used_bytes, 0);
}

/* --- temperature */

/* Classes come as often as a logit says; the model says so many times that logit. */
static void
confident(AgMem *mem, AgMetric metric, int n, double times)
{
	done_make(mem, AG_PROBLEM_BINARY, metric, n);
	for (int i = 0; i < n; i++)
	{
		double logit = 6.0 * (ag_random_unit(1, (uint64_t) i) - 0.5);

		done.class_of[i] = ag_random_unit(2, (uint64_t) i) < 1.0 / (1.0 + exp(-logit));
		done.proba[2 * i + 1] = 1.0 / (1.0 + exp(-times * logit));
		done.proba[2 * i] = 1.0 - done.proba[2 * i + 1];
	}
}

static void
temperatures(AgMem *mem)
{
	static const double times[] = {0.5, 2.0, 3.0};

	for (int i = 0; i < 3; i++) /* too timid and too sure of itself */
	{
		confident(mem, AG_METRIC_LOG_LOSS, N_ROWS, times[i]);
		calibrate(mem);
		AG_CHECK_NEAR(done.fit.temperature / times[i], 1.0, 0.1);
		AG_CHECK(done.fit.threshold == 0.0);
	}
	confident(mem, AG_METRIC_LOG_LOSS, N_ROWS, 1.0);
	calibrate(mem);
	AG_CHECK(done.fit.temperature == 0.0 || fabs(done.fit.temperature - 1.0) < 0.1);

	/* "auto": enough rows, and a metric that looks at probabilities and not only at their order */
	confident(mem, AG_METRIC_LOG_LOSS, 2999, 3.0);
	calibrate(mem);
	AG_CHECK(done.fit.temperature == 0.0);
	confident(mem, AG_METRIC_ROC_AUC, N_ROWS, 3.0);
	calibrate(mem);
	AG_CHECK(done.fit.temperature == 0.0);
	confident(mem, AG_METRIC_LOG_LOSS, 500, 3.0);
	done.options.calibrate = AG_CALIBRATE_ON;
	calibrate(mem);
	AG_CHECK(done.fit.temperature > 1.5);
	confident(mem, AG_METRIC_LOG_LOSS, N_ROWS, 3.0);
	done.options.calibrate = AG_CALIBRATE_OFF;
	calibrate(mem);
	AG_CHECK(done.fit.temperature == 0.0);

	/* rows of no weight have no say: here those that the model is sure of for good reason */
	confident(mem, AG_METRIC_LOG_LOSS, N_ROWS, 3.0);
	for (int i = 0; i < N_ROWS; i++)
	{
		done.weight[i] = i % 2 == 0 ? 2.0 : 0.0;
		if (i % 2 == 1)
			done.class_of[i] = done.proba[2 * i + 1] > 0.5;
	}
	done.fit.validation.weight = done.weight;
	calibrate(mem);
	AG_CHECK_NEAR(done.fit.temperature / 3.0, 1.0, 0.1);

	/* a model that some rows are missing of */
	confident(mem, AG_METRIC_LOG_LOSS, N_ROWS, 3.0);
	done.model.n_covered--;
	calibrate(mem);
	AG_CHECK(done.fit.temperature == 0.0);
}

/* --- threshold */

static void
two_values(AgMem *mem, AgMetric metric, int n, double negative, double positive)
{
	done_make(mem, AG_PROBLEM_BINARY, metric, n);
	for (int i = 0; i < n; i++)
	{
		done.class_of[i] = i % 4 == 0;
		done.proba[2 * i + 1] = done.class_of[i] ? positive : negative;
		done.proba[2 * i] = 1.0 - done.proba[2 * i + 1];
	}
}

static void
thresholds(AgMem *mem)
{
	/* all that part the two are as good: the nearest to a half */
	two_values(mem, AG_METRIC_F1, 100, 0.1, 0.3);
	calibrate(mem);
	AG_CHECK(done.fit.threshold > 0.29 && done.fit.threshold < 0.3);
	two_values(mem, AG_METRIC_F1, 100, 0.7, 0.9);
	calibrate(mem);
	AG_CHECK(done.fit.threshold >= 0.7 && done.fit.threshold < 0.71);
	two_values(mem, AG_METRIC_F1, 100, 0.2, 0.6); /* a half does */
	calibrate(mem);
	AG_CHECK(done.fit.threshold == 0.0);

	two_values(mem, AG_METRIC_F1, 49, 0.1, 0.3);
	calibrate(mem);
	AG_CHECK(done.fit.threshold == 0.0);
	two_values(mem, AG_METRIC_ACCURACY, N_ROWS, 0.1, 0.3); /* takes 10,000 rows */
	calibrate(mem);
	AG_CHECK(done.fit.threshold == 0.0);
	two_values(mem, AG_METRIC_PRECISION, N_ROWS, 0.1, 0.3);
	calibrate(mem);
	AG_CHECK(done.fit.threshold == 0.0);
	two_values(mem, AG_METRIC_ACCURACY, 49, 0.1, 0.3);
	done.options.calibrate_threshold = AG_CALIBRATE_ON;
	calibrate(mem);
	AG_CHECK(done.fit.threshold > 0.29 && done.fit.threshold < 0.3);
	two_values(mem, AG_METRIC_F1, 100, 0.1, 0.3);
	done.options.calibrate_threshold = AG_CALIBRATE_OFF;
	calibrate(mem);
	AG_CHECK(done.fit.threshold == 0.0);
}

/* --- quantiles */

/* The least distance up to which there is so much weight, with that of one more row of the mean's beyond all. */
static double
distance_at(int n, const double *distance, const double *weight, double level)
{
	double total = 0.0, best = -(double) INFINITY, most = -(double) INFINITY;
	bool found = false;

	for (int i = 0; i < n; i++)
	{
		total += weight[i];
		most = fmax(most, distance[i]);
	}
	total += total / n;
	for (int i = 0; i < n; i++)
	{
		double seen = 0.0;

		for (int k = 0; k < n; k++)
			seen += distance[k] <= distance[i] ? weight[k] : 0.0;
		if (seen >= level * total && (!found || distance[i] < best))
		{
			best = distance[i];
			found = true;
		}
	}
	return found ? best : most;
}

static void
quantiles(AgMem *mem)
{
	static const double levels[] = {0.1, 0.8};
	static const int rows[] = {5, 40, 333};

	for (int n = 0; n < 3; n++)
		for (int weighed = 0; weighed < 2; weighed++)
		{
			double low[N_ROWS], high[N_ROWS];

			done_make(mem, AG_PROBLEM_QUANTILE, AG_METRIC_PINBALL_LOSS, rows[n]);
			done.label.n_quantiles = 2;
			done.label.quantiles = levels;
			done.options.calibrate = AG_CALIBRATE_ON;
			for (int i = 0; i < rows[n]; i++)
			{
				done.target[i] = ag_random_unit(3, (uint64_t) i);
				done.proba[2 * i] = 0.3 * ag_random_unit(4, (uint64_t) i);
				done.proba[2 * i + 1] = 0.3 + 0.3 * ag_random_unit(5, (uint64_t) i);
				low[i] = -(done.target[i] - done.proba[2 * i]);
				high[i] = done.target[i] - done.proba[2 * i + 1];
				/* heavy ones are spread another way */
				done.weight[i] = weighed == 0 ? 1.0 : done.target[i] > 0.7 ? 5.0 : 0.5;
			}
			if (weighed == 1)
				done.fit.validation.weight = done.weight;
			AG_CHECK_EQ(ag_fit_calibrate(&done.fit), AG_OK);
			AG_REQUIRE(done.fit.shifts != NULL);
			AG_CHECK_NEAR(done.fit.shifts[0], -distance_at(rows[n], low, done.weight, 0.9), 1e-12);
			AG_CHECK_NEAR(done.fit.shifts[1], distance_at(rows[n], high, done.weight, 0.8), 1e-12);
			ag_arena_free(&done.fit.arena);
			AG_CHECK_EQ(mem->used_bytes, 0);
		}
	done_make(mem, AG_PROBLEM_QUANTILE, AG_METRIC_PINBALL_LOSS, 999); /* "auto" takes 1,000 */
	done.label.n_quantiles = 2;
	done.label.quantiles = levels;
	calibrate(mem);
	AG_CHECK(done.fit.shifts == NULL);
}

int
main(void)
{
	AgMem mem;

	ag_mem_init(&mem, INT64_MAX);
	temperatures(&mem);
	thresholds(&mem);
	quantiles(&mem);
	return ag_unit_done("calibrate");
}
