/*
 * profile.c - what is remembered of the training rows: deciles, counts, whole rows; whatever the rows' order.
 */
#include "engine/data/pipeline.h"
#include "unit/rows.h"

enum
{
	N = 220
};

static void
make_rows(Rows *rows)
{
	static const char *const texts[] = {"a", "b", "c"};

	rows_open(rows, N);
	rows_column(rows, "y", AG_TYPE_BOOL, AG_ROLE_LABEL);
	rows_column(rows, "even", AG_TYPE_INT32, AG_ROLE_FEATURE);
	rows_column(rows, "text", AG_TYPE_TEXT, AG_ROLE_FEATURE);
	rows_column(rows, "few", AG_TYPE_FLOAT64, AG_ROLE_FEATURE);
	rows_column(rows, "same", AG_TYPE_INT32, AG_ROLE_FEATURE);
	for (int r = 0; r < N; r++)
	{
		*rows_at(rows, r, 0) = value_bool(r % 2);
		*rows_at(rows, r, 1) = r < 200 ? value_i32(1 + r / 2) : value_null(); /* 1..100 twice */
		*rows_at(rows, r, 2) = value_text(texts[r % 3]);
		*rows_at(rows, r, 3) = value_f64(r % 10 == 0 ? (double) NAN : r % 10 < 6 ? 1.0 : 2.5);
		*rows_at(rows, r, 4) = value_i32(7);
	}
}

static AgPipeline *
fit(const Rows *rows, uint64_t shuffle, Host *host)
{
	AgTable *table;
	AgLabel *label;
	AgPipeline *pipeline;
	int64_t n_left_out;

	AG_REQUIRE(rows_table(rows, shuffle, 100, host, &table, &n_left_out) == AG_OK);
	AG_REQUIRE(ag_label_fit(&host->ctx, table, 0, AG_PROBLEM_AUTO, NULL, &label) == AG_OK);
	AG_REQUIRE(ag_pipeline_fit(&host->ctx, table, label, "", false, NULL, &pipeline) == AG_OK);
	ag_label_free(label);
	ag_table_free(table);
	return pipeline;
}

static void
check_histograms(const AgProfile *profile)
{
	const AgHistogram *even = &profile->histograms[0], *few = &profile->histograms[2];

	AG_CHECK_EQ(even->n_cuts, 9);
	for (int k = 0; k < 9; k++)
		AG_CHECK(even->cuts[k] == 10.0 * (k + 1));
	for (int k = 0; k < 10; k++)
		AG_CHECK(even->counts[k] == 20.0);
	AG_CHECK(even->counts[AG_PROFILE_MISSING] == 20.0);
	AG_CHECK_EQ(ag_histogram_bin(even, 10.0), 0);
	AG_CHECK_EQ(ag_histogram_bin(even, 10.5), 1);
	AG_CHECK_EQ(ag_histogram_bin(even, 1e9), 9);
	AG_CHECK_EQ(ag_histogram_bin(even, (double) NAN), AG_PROFILE_MISSING);
	AG_CHECK_EQ(few->n_cuts, 1);
	AG_CHECK(few->cuts[0] == 1.0 && few->counts[0] == 110.0 && few->counts[1] == 88.0 &&
			 few->counts[AG_PROFILE_MISSING] == 22.0);
	AG_CHECK_EQ(profile->histograms[1].n_cuts, 0); /* a text */
	AG_CHECK(profile->histograms[1].counts[0] == 0.0);
	AG_CHECK_EQ(profile->histograms[3].n_cuts, 0); /* left out */
}

/* Each is one of the training rows. */
static void
check_rows(const Rows *rows, const AgPipeline *pipeline)
{
	const AgProfile *profile = &pipeline->profile;
	double features[3];
	int n_found = 0;

	AG_CHECK_EQ(pipeline->n_features, 3);
	AG_CHECK_EQ(profile->n_rows, AG_PROFILE_ROWS);
	AG_CHECK_EQ(profile->n_table_rows, N);
	for (int64_t i = 0; i < profile->n_rows; i++)
		for (int64_t r = 0; r < N; r++)
		{
			ag_pipeline_encode(pipeline, rows_at(rows, r, 1), features);
			if (memcmp(features, profile->rows + i * 3, sizeof features) == 0)
			{
				n_found++;
				break;
			}
		}
	AG_CHECK_EQ(n_found, AG_PROFILE_ROWS);
}

int
main(void)
{
	Rows rows;
	Host host;
	AgPipeline *pipeline, *again;

	make_rows(&rows);
	host_open(&host, 1);
	pipeline = fit(&rows, 0, &host);
	again = fit(&rows, 3, &host);
	check_histograms(&pipeline->profile);
	check_rows(&rows, pipeline);
	AG_CHECK(memcmp(pipeline->profile.rows, again->profile.rows,
					sizeof(double) * 3 * AG_PROFILE_ROWS) == 0);
	ag_pipeline_free(again);
	ag_pipeline_free(pipeline);
	host_close(&host);
	rows_close(&rows);
	return ag_unit_done("profile");
}
