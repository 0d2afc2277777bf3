/*
 * curve.c - counts at thresholds against counting, ties, and the ends.
 */
#include "engine/base/rng.h"
#include "engine/model/curve.h"
#include "unit/rows.h"

enum
{
	N = 500
};

static double proba[N][2];
static int32_t class_of[N];

static void
check_threshold(const AgCurve *curve, double threshold)
{
	int64_t tp = 0, fp = 0, fn = 0, tn = 0;
	AgConfusion confusion;

	for (int i = 0; i < N; i++)
	{
		bool is_positive = class_of[i] == 1, is_called = proba[i][1] > threshold;

		tp += is_positive && is_called;
		fp += !is_positive && is_called;
		fn += is_positive && !is_called;
		tn += !is_positive && !is_called;
	}
	ag_curve_at(curve, threshold, &confusion);
	AG_CHECK(confusion.tp == tp && confusion.fp == fp && confusion.fn == fn && confusion.tn == tn);
	if (tp + fp == 0)
		AG_CHECK(isnan(confusion.precision));
	else
		AG_CHECK_NEAR(confusion.precision, (double) tp / (double) (tp + fp), 1e-15);
	AG_CHECK_NEAR(confusion.recall, (double) tp / (double) (tp + fn), 1e-15);
	AG_CHECK_NEAR(confusion.specificity, (double) tn / (double) (tn + fp), 1e-15);
	AG_CHECK_NEAR(confusion.accuracy, (double) (tp + tn) / N, 1e-15);
	AG_CHECK_NEAR(confusion.f1, 2.0 * (double) tp / (double) (2 * tp + fp + fn), 1e-15);
}

static void
test_points(const AgCurve *curve)
{
	for (int64_t i = 0; i < curve->n_points; i++)
	{
		int64_t n_positive = 0, n_negative = 0;

		for (int r = 0; r < N; r++)
			if (proba[r][1] >= curve->points[i].threshold)
				*(class_of[r] == 1 ? &n_positive : &n_negative) += 1;
		AG_CHECK(i == 0 || curve->points[i].threshold < curve->points[i - 1].threshold);
		AG_CHECK(curve->points[i].n_positive == n_positive &&
				 curve->points[i].n_negative == n_negative);
	}
	AG_CHECK(curve->points[curve->n_points - 1].n_positive == curve->n_positive &&
			 curve->n_positive + curve->n_negative == N);
}

int
main(void)
{
	static const double p4[] = {0.9, 0.5, 0.5, 0.1};
	static const int32_t c4[] = {1, 1, 0, -1};
	Host host;
	AgCurve curve;
	AgConfusion confusion;

	host_open(&host, 1);
	for (int i = 0; i < N; i++)
	{
		proba[i][1] = (double) ag_random_below(3, (uint64_t) i, 101) / 100.0;
		class_of[i] = (int32_t) ag_random_below(4, (uint64_t) i, 4) - 1;
	}
	AG_REQUIRE(ag_curve_create(&host.ctx, N, &proba[0][1], 2, class_of, 1, &curve) == AG_OK);
	test_points(&curve);
	for (int t = -1; t <= 101; t++)
		check_threshold(&curve, t / 100.0);
	ag_mem_free(&host.mem, curve.points);

	AG_REQUIRE(ag_curve_create(&host.ctx, 4, p4, 1, c4, 1, &curve) == AG_OK);
	AG_CHECK_EQ(curve.n_points, 3);
	AG_CHECK(ag_curve_captured(&curve, 0) == 0.0 && ag_curve_captured(&curve, 1) == 1.0);
	AG_CHECK(ag_curve_captured(&curve, 2) == 1.5 && ag_curve_captured(&curve, 3) == 2.0);
	AG_CHECK(ag_curve_captured(&curve, 4) == 2.0 && ag_curve_captured(&curve, 9) == 2.0);
	ag_curve_at(&curve, 0.3, &confusion);
	AG_CHECK_NEAR(confusion.mcc, 1.0 / sqrt(3.0), 1e-15); /* (2*1 - 1*0) / sqrt(3*2*2*1) */
	AG_CHECK_NEAR(confusion.balanced_accuracy, 0.75, 1e-15);
	ag_mem_free(&host.mem, curve.points);

	/* one class only, no rows */
	AG_REQUIRE(ag_curve_create(&host.ctx, 1, p4, 1, c4, 0, &curve) == AG_OK);
	ag_curve_at(&curve, 0.5, &confusion);
	AG_CHECK(isnan(confusion.recall) && isnan(confusion.balanced_accuracy) &&
			 isnan(confusion.mcc) && confusion.fp == 1 && confusion.specificity == 0.0);
	ag_mem_free(&host.mem, curve.points);
	AG_REQUIRE(ag_curve_create(&host.ctx, 0, p4, 1, c4, 0, &curve) == AG_OK);
	AG_CHECK(curve.n_points == 0 && ag_curve_captured(&curve, 1) == 0.0);
	ag_mem_free(&host.mem, curve.points);
	host.mem.fail_after = 0;
	AG_CHECK_EQ(ag_curve_create(&host.ctx, 4, p4, 1, c4, 0, &curve), AG_ERR_MEMORY);
	host.mem.fail_after = -1;
	host_close(&host);
	return ag_unit_done("curve");
}
