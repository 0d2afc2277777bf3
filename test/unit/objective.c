/*
 * objective.c - gradients and hessians against finite differences of the loss they belong to.
 */
#include "booster.h"
#include "engine/base/maths.h"
#include "engine/model/objective.h"

/* The loss of one row at its scores. */
static double
row_loss(const AgLoss *loss, uint32_t row, const double *scores)
{
	const AgTrainData *data = loss->data;
	double weight = data->weight != NULL ? data->weight[row] : 1.0;
	double sum = 0.0;

	switch (data->problem)
	{
		case AG_PROBLEM_REGRESSION:
			sum = (scores[0] - data->target[row]) / loss->unit;
			return weight * sum * sum / 2.0;
		case AG_PROBLEM_BINARY:
			return weight * (log1p(exp(scores[0])) - (data->class_of[row] == 1 ? scores[0] : 0.0));
		default:
			for (int k = 0; k < loss->n_outputs; k++)
				sum += exp(scores[k]);
			return weight * (log(sum) - scores[data->class_of[row]]);
	}
}

static void
test_differences(AgProblem problem, int n_classes, bool is_weighted)
{
	Bench bench;
	Table table;
	AgTrainData data;
	AgLoss loss;
	AgGradientRange range;
	double step = 1e-3, factor = n_classes > 2 ? n_classes / (n_classes - 1.0) : 1.0;

	bench_init(&bench, 2);
	table_init(&table, 700, 2, 0, 1, 0.0, n_classes, 19);
	table_bin(&table, &bench.ctx, 20);
	data = table_data(&table, problem, n_classes);
	if (is_weighted)
		data.weight = table.weight;
	AG_REQUIRE(ag_loss_create(&bench.ctx, &data, NULL, &loss) == AG_OK);
	for (int64_t i = 0; i < loss.n_outputs * loss.n_rows; i++)
		loss.scores[i] += 4.0 * (ag_random_unit(1, (uint64_t) i) - 0.5);
	AG_REQUIRE(ag_loss_begin_round(&bench.ctx, &loss) == AG_OK);
	for (int k = 0; k < loss.n_outputs; k++)
	{
		double max_g = 0.0, max_h = 0.0;

		AG_REQUIRE(ag_loss_gradients(&bench.ctx, &loss, k, &range) == AG_OK);
		for (int64_t i = 0; i < data.n_train; i++)
		{
			uint32_t row = data.train_rows[i];
			double scores[8], low, middle, high, unit = loss.unit;

			for (int c = 0; c < loss.n_outputs; c++)
				scores[c] = loss.scores[c * loss.n_rows + row];
			middle = row_loss(&loss, row, scores);
			scores[k] += step * unit;
			high = row_loss(&loss, row, scores);
			scores[k] -= 2.0 * step * unit;
			low = row_loss(&loss, row, scores);
			AG_CHECK_NEAR(loss.gradients[row].g, (high - low) / (2.0 * step), 1e-5);
			AG_CHECK_NEAR(loss.gradients[row].h,
						  factor * (high - 2.0 * middle + low) / (step * step), 1e-4);
			max_g = fmax(max_g, fabs((double) loss.gradients[row].g));
			max_h = fmax(max_h, (double) loss.gradients[row].h);
		}
		AG_CHECK(range.max_g == (float) max_g);
		AG_CHECK(range.max_h == (float) max_h);
	}
	ag_loss_free(&bench.ctx, &loss);
	table_end(&table);
	bench_end(&bench);
}

/* First scores: the weighted mean, the logit of the weighted share, the logs of the shares. */
static void
test_base(void)
{
	Bench bench;
	Table table;
	AgTrainData data;
	AgLoss loss;
	double total = 0.0, sum = 0.0, share[3] = {0};

	bench_init(&bench, 1);
	table_init(&table, 500, 4, 0, 1, 0.0, 3, 23);
	table_bin(&table, &bench.ctx, 20);
	for (int64_t i = 0; i < table.n_train; i++)
	{
		uint32_t row = table.train[i];

		total += table.weight[row];
		sum += table.weight[row] * table.target[row];
		share[table.class_of[row]] += table.weight[row];
	}
	data = table_data(&table, AG_PROBLEM_REGRESSION, 0);
	data.weight = table.weight;
	AG_REQUIRE(ag_loss_create(&bench.ctx, &data, NULL, &loss) == AG_OK);
	AG_CHECK_NEAR(loss.base[0], sum / total, 1e-12);
	ag_loss_free(&bench.ctx, &loss);
	data.problem = AG_PROBLEM_MULTICLASS;
	data.n_classes = 3;
	AG_REQUIRE(ag_loss_create(&bench.ctx, &data, NULL, &loss) == AG_OK);
	for (int k = 0; k < 3; k++)
		AG_CHECK_NEAR(loss.base[k], log(share[k] / total), 1e-12);
	ag_loss_free(&bench.ctx, &loss);
	for (int64_t i = 0; i < table.n_rows; i++)
		table.class_of[i] = table.class_of[i] == 1;
	data.problem = AG_PROBLEM_BINARY;
	data.n_classes = 2;
	AG_REQUIRE(ag_loss_create(&bench.ctx, &data, NULL, &loss) == AG_OK);
	AG_CHECK_NEAR(loss.base[0], log(share[1] / (total - share[1])), 1e-12);
	ag_loss_free(&bench.ctx, &loss);
	data.problem = AG_PROBLEM_QUANTILE;
	AG_CHECK_EQ(ag_loss_create(&bench.ctx, &data, NULL, &loss), AG_ERR_UNSUPPORTED);
	ag_loss_free(&bench.ctx, &loss);
	table_end(&table);
	bench_end(&bench);
}

int
main(void)
{
	for (int is_weighted = 0; is_weighted < 2; is_weighted++)
	{
		test_differences(AG_PROBLEM_REGRESSION, 0, is_weighted);
		test_differences(AG_PROBLEM_BINARY, 2, is_weighted);
		test_differences(AG_PROBLEM_MULTICLASS, 5, is_weighted);
	}
	test_base();
	return ag_unit_done("objective");
}
