/*
 * pipeline.c - preprocessing: what is dropped and why, one meaning of a value at fit and prediction,
 * images that come back the same or are refused.
 */
#include "engine/base/hash.h"
#include "engine/data/pipeline_private.h"
#include "unit/rows.h"

static const AgBinParams usual = {254, 3, 200000};

typedef struct Fitted
{
	AgTable *table;
	AgLabel *label;
	AgPipeline *pipeline;
} Fitted;

static void
fitted_free(Fitted *f)
{
	ag_pipeline_free(f->pipeline);
	ag_label_free(f->label);
	ag_table_free(f->table);
	memset(f, 0, sizeof *f);
}

static AgStatus
fit_rows(const Rows *rows, uint64_t shuffle, int64_t block, Host *host, Fitted *f)
{
	AgStatus status;
	int64_t n_left_out;

	memset(f, 0, sizeof *f);
	AG_GO(rows_table(rows, shuffle, block, host, &f->table, &n_left_out));
	AG_GO(ag_label_fit(&host->ctx, f->table, 0, AG_PROBLEM_AUTO, NULL, &f->label));
	host->log[0] = '\0';
	AG_GO(ag_pipeline_fit(&host->ctx, f->table, f->label, "Europe/Berlin", false, NULL,
						  &f->pipeline));

done:
	return status;
}

static const AgFeature *
find_feature(const AgPipeline *p, const char *name)
{
	for (int f = 0; f < p->n_features; f++)
		if (strcmp(p->features[f].name, name) == 0)
			return &p->features[f];
	return NULL;
}

static const AgInput *
find_input(const AgPipeline *p, const char *name)
{
	for (int i = 0; i < p->n_inputs; i++)
		if (strcmp(p->inputs[i].name, name) == 0)
			return &p->inputs[i];
	return NULL;
}

static void
test_drops(void)
{
	enum
	{
		N = 300
	};
	static char ids[N][16];
	Rows rows;
	Host host;
	Fitted f;

	rows_open(&rows, N);
	rows_column(&rows, "y", AG_TYPE_BOOL, AG_ROLE_LABEL);
	rows_column(&rows, "good", AG_TYPE_INT32, AG_ROLE_FEATURE);
	rows_column(&rows, "nothing", AG_TYPE_TEXT, AG_ROLE_FEATURE);
	rows_column(&rows, "nan", AG_TYPE_FLOAT64, AG_ROLE_FEATURE);
	rows_column(&rows, "constant", AG_TYPE_TEXT, AG_ROLE_FEATURE);
	rows_column(&rows, "flag", AG_TYPE_TEXT, AG_ROLE_FEATURE);
	rows_column(&rows, "id", AG_TYPE_TEXT, AG_ROLE_FEATURE);
	rows_column(&rows, "copy", AG_TYPE_INT32, AG_ROLE_FEATURE);
	rows_column(&rows, "weight", AG_TYPE_FLOAT64, AG_ROLE_WEIGHT);
	rows_column(&rows, "day", AG_TYPE_DATE, AG_ROLE_FEATURE);
	rows_column(&rows, "one day", AG_TYPE_DATE, AG_ROLE_FEATURE);
	rows_column(&rows, "empty or null", AG_TYPE_TEXT, AG_ROLE_FEATURE);
	rows_column(&rows, "inf", AG_TYPE_FLOAT64, AG_ROLE_FEATURE);
	for (int r = 0; r < N; r++)
	{
		snprintf(ids[r], sizeof ids[r], "id-%d", r);
		*rows_at(&rows, r, 0) = value_bool(r % 3 == 0);
		*rows_at(&rows, r, 1) = value_i32(r % 17);
		*rows_at(&rows, r, 2) = value_null();
		*rows_at(&rows, r, 3) = value_f64((double) NAN);
		*rows_at(&rows, r, 4) = value_text("same");
		*rows_at(&rows, r, 5) = r % 2 ? value_text("set") : value_null();
		*rows_at(&rows, r, 6) = value_text(ids[r]);
		*rows_at(&rows, r, 7) = value_i32(r % 17);
		*rows_at(&rows, r, 8) = value_f64(r);
		*rows_at(&rows, r, 9) = value_i32(r % 28); /* January 2000: year and month are constant */
		*rows_at(&rows, r, 10) = r % 5 ? value_i32(5) : value_null();
		*rows_at(&rows, r, 11) = r % 4 ? value_text("") : value_null();
		*rows_at(&rows, r, 12) = value_f64(r % 3 ? (double) INFINITY : -(double) INFINITY);
	}
	host_open(&host, 2);
	AG_REQUIRE(fit_rows(&rows, 5, 100, &host, &f) == AG_OK);
	AG_CHECK_EQ(f.pipeline->n_inputs, 11);
	AG_CHECK_STR(find_input(f.pipeline, "nothing")->dropped_why, "no value");
	AG_CHECK_STR(find_input(f.pipeline, "nan")->dropped_why, "no value");
	AG_CHECK_STR(find_input(f.pipeline, "constant")->dropped_why, "constant");
	AG_CHECK_STR(find_input(f.pipeline, "id")->dropped_why, "identifier-like");
	AG_CHECK_STR(find_input(f.pipeline, "copy")->dropped_why, "duplicate of \"good\"");
	AG_CHECK(find_input(f.pipeline, "weight") == NULL);
	AG_CHECK(find_input(f.pipeline, "flag")->is_used);
	AG_CHECK(find_input(f.pipeline, "empty or null")->is_used);
	AG_CHECK(find_input(f.pipeline, "one day")->is_used);
	AG_CHECK(find_input(f.pipeline, "inf")->is_used);
	AG_CHECK(find_feature(f.pipeline, "one day") != NULL);
	AG_CHECK(find_feature(f.pipeline, "one day (day)") == NULL);
	AG_CHECK(find_feature(f.pipeline, "day (day)") != NULL);
	AG_CHECK(find_feature(f.pipeline, "day (day of week)") != NULL);
	AG_CHECK(find_feature(f.pipeline, "day (month)") == NULL);
	AG_CHECK(find_feature(f.pipeline, "day (hour)") == NULL);
	AG_CHECK_EQ(find_input(f.pipeline, "flag")->n_missing, N / 2);
	AG_CHECK_EQ(find_input(f.pipeline, "nan")->n_missing, N);
	AG_CHECK_EQ(find_input(f.pipeline, "id")->n_distinct, N);
	AG_CHECK(find_input(f.pipeline, "good")->min == 0 && find_input(f.pipeline, "good")->max == 16);
	AG_CHECK_NEAR(find_input(f.pipeline, "good")->mean, 7.86, 0.2);
	AG_CHECK(isnan(find_input(f.pipeline, "day")->min) &&
			 isnan(find_input(f.pipeline, "flag")->max));
	AG_CHECK(find_input(f.pipeline, "inf")->max == (double) INFINITY);
	AG_CHECK_STR(f.pipeline->label_name, "y");
	AG_CHECK_STR(f.pipeline->time_zone, "Europe/Berlin");
	AG_CHECK_STR(host.log, "left out 2 columns without a value: \"nothing\", \"nan\"\n"
						   "left out 1 column with one value only: \"constant\"\n"
						   "left out 1 column of identifier-like text: \"id\"\n"
						   "left out 1 column repeating an earlier column: \"copy\"\n");
	fitted_free(&f);
	host_close(&host);
	rows_close(&rows);
}

static void
test_no_feature(void)
{
	Rows rows;
	Host host;
	Fitted f;

	rows_open(&rows, 40);
	rows_column(&rows, "y", AG_TYPE_BOOL, AG_ROLE_LABEL);
	rows_column(&rows, "c", AG_TYPE_INT32, AG_ROLE_FEATURE);
	for (int r = 0; r < 40; r++)
	{
		*rows_at(&rows, r, 0) = value_bool(r % 2);
		*rows_at(&rows, r, 1) = value_i32(1);
	}
	host_open(&host, 1);
	AG_CHECK_EQ(fit_rows(&rows, 0, 100, &host, &f), AG_ERR_DATA);
	AG_CHECK_STR(host.error.message, "there is no usable feature");
	AG_CHECK_STR(host.error.detail, "Columns left out: \"c\" (constant).");
	AG_CHECK(f.pipeline == NULL);
	fitted_free(&f);
	rows.schema.n_columns = 1;
	host_reset(&host);
	AG_CHECK_EQ(fit_rows(&rows, 0, 100, &host, &f), AG_ERR_DATA);
	AG_CHECK(strstr(host.error.detail, "no column beside the label") != NULL);
	fitted_free(&f);
	host_close(&host);
	rows_close(&rows);
}

/* Names that fill the error's text are cut between characters. */
static void
test_long_names(void)
{
	static char names[13][256];
	Rows rows;
	Host host;
	Fitted f;

	rows_open(&rows, 5);
	rows_column(&rows, "y", AG_TYPE_BOOL, AG_ROLE_LABEL);
	for (int c = 0; c < 13; c++)
	{
		for (int i = 0; i < 126; i++)
			memcpy(names[c] + 2 * i, "ä", 2);
		names[c][252] = (char) ('a' + c);
		rows_column(&rows, names[c], AG_TYPE_INT32, AG_ROLE_FEATURE);
	}
	for (int r = 0; r < 5; r++)
		*rows_at(&rows, r, 0) = value_bool(r % 2);
	host_open(&host, 1);
	AG_CHECK_EQ(fit_rows(&rows, 0, 100, &host, &f), AG_ERR_DATA);
	AG_CHECK(strlen(host.error.detail) > 900);
	for (size_t i = 0; host.error.detail[i] != '\0'; i++)
		if ((unsigned char) host.error.detail[i] == 0xc3)
			AG_CHECK((unsigned char) host.error.detail[i + 1] == 0xa4);
	fitted_free(&f);
	host_close(&host);
	rows_close(&rows);
}

/* More dropped columns than a line lists. */
static void
test_long_list(void)
{
	static char names[15][8];
	Rows rows;
	Host host;
	Fitted f;

	rows_open(&rows, 10);
	rows_column(&rows, "y", AG_TYPE_BOOL, AG_ROLE_LABEL);
	rows_column(&rows, "x", AG_TYPE_INT32, AG_ROLE_FEATURE);
	for (int c = 0; c < 13; c++)
	{
		snprintf(names[c], sizeof names[c], "c%02d", c % 100);
		rows_column(&rows, names[c], AG_TYPE_INT32, AG_ROLE_FEATURE);
	}
	for (int r = 0; r < 10; r++)
	{
		*rows_at(&rows, r, 0) = value_bool(r % 2);
		*rows_at(&rows, r, 1) = value_i32(r);
	}
	host_open(&host, 1);
	AG_REQUIRE(fit_rows(&rows, 0, 3, &host, &f) == AG_OK);
	AG_CHECK(strstr(host.log, "left out 13 columns with one value only: \"c00\", ") != NULL);
	AG_CHECK(strstr(host.log, "\"c09\" and 3 more\n") != NULL);
	fitted_free(&f);
	host_close(&host);
	rows_close(&rows);
}

/* Dates that calendars get wrong, against PostgreSQL's answers. */
static void
test_dates(void)
{
	static const struct
	{
		int64_t days;
		int64_t year;
		int month, day, dow;
	} cases[] = {
		{0, 2000, 1, 1, 6},
		{59, 2000, 2, 29, 2},
		{60, 2000, 3, 1, 3},
		{-1, 1999, 12, 31, 5},
		{366, 2001, 1, 1, 1},
		{-36524, 1900, 1, 1, 1},
		{-36465, 1900, 3, 1, 4},
		{-10957, 1970, 1, 1, 4},
		{-730119, 1, 1, 1, 1},
		{-730120, -1, 12, 31, 0},
		{-730485, -1, 1, 1, 6},
		{-2451545, -4714, 11, 24, 1},
		{2145031948, 5874897, 12, 31, 2},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
	{
		AgCivil civil = ag_civil_from_days(cases[i].days);

		AG_CHECK_EQ(civil.year, cases[i].year);
		AG_CHECK_EQ(civil.month, cases[i].month);
		AG_CHECK_EQ(civil.day, cases[i].day);
		AG_CHECK_EQ(civil.day_of_week, cases[i].dow);
	}
	/* Every day follows the one before, over more than 400 years around year 0 and from the last one. */
	for (int64_t start = -800000; start < 1; start += 799999)
	{
		AgCivil before = ag_civil_from_days(start);

		for (int64_t days = start + 1; days < start + 150000; days++)
		{
			AgCivil civil = ag_civil_from_days(days);
			bool same_month = civil.month == before.month && civil.year == before.year;
			bool ok = civil.day_of_week == (before.day_of_week + 1) % 7 &&
					  (same_month ? civil.day == before.day + 1
								  : civil.day == 1 && before.day >= 28 && before.day <= 31 &&
										civil.month == before.month % 12 + 1);

			if (!ok)
				AG_CHECK(ok);
			before = civil;
		}
	}
	{
		int64_t time_us;

		AG_CHECK_EQ(ag_days_of_timestamp(-1, &time_us), -1);
		AG_CHECK_EQ(time_us, AG_DAY_US - 1);
		AG_CHECK_EQ(ag_days_of_timestamp(INT64_MIN + 1, &time_us), -106751992);
		AG_CHECK(time_us >= 0 && time_us < AG_DAY_US);
	}
}

static void
test_origins(void)
{
	AG_CHECK(ag_number_of_int64(INT64_MAX, INT64_MIN) == 18446744073709551615.0);
	AG_CHECK(ag_number_of_int64(INT64_MIN, INT64_MAX) == -18446744073709551615.0);
	AG_CHECK(ag_number_of_int64(INT64_C(9007199254740993), INT64_C(9007199254740992)) == 1.0);
	AG_CHECK(ag_number_of_int64(5, 8) == -3.0);
	AG_CHECK(ag_number_of_date(INT32_MAX, 0) == (double) INFINITY);
	AG_CHECK(ag_number_of_timestamp(INT64_MIN, 7) == -(double) INFINITY);
}

/* The bins of the fit and the features of the replay agree on every training row. */
static void
test_replay(void)
{
	Rows rows;
	Host host;
	Fitted f;
	AgBins *bins;
	double features[64];

	rows_make_mixed(&rows, 2000);
	host_open(&host, 2);
	AG_REQUIRE(fit_rows(&rows, 0, 333, &host, &f) == AG_OK);
	AG_REQUIRE(f.pipeline->n_features <= 64);
	AG_CHECK(find_feature(f.pipeline, "ts (minute)") != NULL);
	AG_CHECK(find_feature(f.pipeline, "d (year)") != NULL);
	AG_CHECK(find_feature(f.pipeline, "i8")->origin >= INT64_C(9007199254740993));
	AG_CHECK(find_feature(f.pipeline, "i4")->origin == 0);
	AG_CHECK(find_feature(f.pipeline, "d")->origin == 0);
	AG_REQUIRE(ag_pipeline_bin(&host.ctx, f.pipeline, f.table, &usual, false, &bins) == AG_OK);
	for (int64_t r = 0; r < f.table->n_rows; r++)
	{
		AgValue values[ROWS_MAX_COLUMNS];
		int n = 0;

		for (int c = 1; c < f.table->n_columns; c++)
		{
			const AgTableColumn *column = &f.table->columns[c];
			AgValue *value = &values[n++];

			memset(value, 0, sizeof *value);
			value->is_null = ag_column_is_null(column, r);
			if (value->is_null)
				continue;
			if (column->type == AG_TYPE_TEXT)
			{
				uint32_t code = ((const uint32_t *) column->values)[r];

				value->v.s.text = column->dictionary.texts[code];
				value->v.s.n_bytes = column->dictionary.n_bytes[code];
			}
			else
				memcpy(&value->v,
					   (const char *) column->values + (size_t) r * ag_type_width(column->type),
					   ag_type_width(column->type));
		}
		ag_pipeline_encode(f.pipeline, values, features);
		for (int k = 0; k < f.pipeline->n_features; k++)
		{
			const AgBinFeature *feature = &bins->features[k];
			int want = bins->columns[k * bins->column_stride + r];
			int got = !feature->is_category ? ag_bin_of_number(feature, features[k])
					  : isnan(features[k])  ? 0
											: ag_bin_of_code(feature, (uint32_t) features[k]);

			if (got != want)
				AG_CHECK_EQ(got, want);
		}
	}
	ag_bins_free(bins);
	AG_REQUIRE(ag_pipeline_bin(&host.ctx, f.pipeline, f.table, &usual, true, &bins) == AG_OK);
	for (int c = 1; c < f.table->n_columns; c++)
		AG_CHECK(f.table->columns[c].values == NULL);
	ag_bins_free(bins);
	fitted_free(&f);
	host_close(&host);
	rows_close(&rows);
}

static void
test_encode(void)
{
	static char big[AG_TEXT_MAX + 50];
	Rows rows;
	Host host;
	Fitted f;
	AgValue values[ROWS_MAX_COLUMNS];
	double features[64];
	char buffer[AG_TEXT_MAX];
	uint32_t n_clipped;
	const char *clipped;
	int text = -1, flag = -1;

	memset(big, 'z', sizeof big);
	clipped = ag_text_clip(big, sizeof big, buffer, &n_clipped);
	rows_open(&rows, 30);
	rows_column(&rows, "y", AG_TYPE_BOOL, AG_ROLE_LABEL);
	rows_column(&rows, "t", AG_TYPE_TEXT, AG_ROLE_FEATURE);
	rows_column(&rows, "ts", AG_TYPE_TIMESTAMP, AG_ROLE_FEATURE);
	for (int r = 0; r < 30; r++)
	{
		*rows_at(&rows, r, 0) = value_bool(r % 2);
		*rows_at(&rows, r, 1) = value_text(r % 3 ? "" : "x");
		if (r % 10 == 9)
		{
			rows_at(&rows, r, 1)->v.s.text = clipped;
			rows_at(&rows, r, 1)->v.s.n_bytes = n_clipped;
		}
		*rows_at(&rows, r, 2) = value_i64(r * INT64_C(100000000000));
	}
	host_open(&host, 1);
	AG_REQUIRE(fit_rows(&rows, 0, 7, &host, &f) == AG_OK);
	for (int k = 0; k < f.pipeline->n_features; k++)
	{
		if (f.pipeline->features[k].kind == AG_FEATURE_CATEGORY)
			text = k;
		if (f.pipeline->features[k].kind == AG_FEATURE_HOUR)
			flag = k;
	}
	AG_REQUIRE(text >= 0 && flag >= 0);
	values[0] = value_text("");
	values[1] = value_i64(INT64_C(3600000000) * 23 + INT64_C(86400000000) * 400000);
	ag_pipeline_encode(f.pipeline, values, features);
	AG_CHECK(features[text] == 0.0 && features[flag] == 23.0);
	values[0] = value_null();
	values[1] = value_i64(INT64_MAX);
	ag_pipeline_encode(f.pipeline, values, features);
	AG_CHECK(isnan(features[text]) && isnan(features[flag]));
	values[0] = value_text("never seen");
	values[1] = value_i64(INT64_MIN + 1);
	ag_pipeline_encode(f.pipeline, values, features);
	AG_CHECK(features[text] == AG_UNSEEN && features[flag] >= 0);
	/* A text that was clipped on its way into the training is found again unclipped. */
	values[0].v.s.text = big;
	values[0].v.s.n_bytes = sizeof big;
	ag_pipeline_encode(f.pipeline, values, features);
	AG_CHECK(features[text] > 0.0);
	fitted_free(&f);
	host_close(&host);
	rows_close(&rows);
}

/* The image's bytes, and the bins', don't depend on order, blocks or threads. */
static void
test_order(void)
{
	static const struct
	{
		uint64_t shuffle;
		int64_t block;
		int n_threads;
	} ways[] = {{0, 4000, 1}, {1, 7, 2}, {2, 1000, 4}};
	Rows rows;
	uint64_t image_hash = 0, bins_hash = 0;

	rows_make_mixed(&rows, 2500);
	for (int w = 0; w < 3; w++)
	{
		Host host;
		Fitted f;
		AgWriter image;
		AgBins *bins;
		uint64_t hash;

		host_open(&host, ways[w].n_threads);
		AG_REQUIRE(fit_rows(&rows, ways[w].shuffle, ways[w].block, &host, &f) == AG_OK);
		ag_writer_init(&image, &host.mem);
		AG_REQUIRE(ag_pipeline_write(&host.ctx, f.pipeline, &image) == AG_OK);
		hash = ag_hash64(image.data, image.size, 0);
		AG_CHECK(w == 0 || hash == image_hash);
		image_hash = hash;
		AG_REQUIRE(ag_pipeline_bin(&host.ctx, f.pipeline, f.table, &usual, false, &bins) == AG_OK);
		AG_REQUIRE(ag_bins_make_rows(&host.ctx, bins) == AG_OK);
		hash = ag_hash64(bins->rows, (size_t) (bins->n_rows * bins->row_stride), 0);
		AG_CHECK(w == 0 || hash == bins_hash);
		bins_hash = hash;
		ag_bins_free(bins);
		ag_writer_free(&image);
		fitted_free(&f);
		host_close(&host);
	}
	rows_close(&rows);
}

static AgStatus
read_image(Host *host, const void *bytes, size_t n, AgPipeline **pipeline)
{
	host_reset(host);
	return ag_pipeline_read(&host->ctx, bytes, n, pipeline);
}

/* Any row through a pipeline that was let through: nothing may be read that isn't there. */
static void
replay_anything(const AgPipeline *p)
{
	AgValue *values = calloc((size_t) p->n_inputs + 1, sizeof *values);
	double *features = malloc((size_t) p->n_features * sizeof *features);

	for (int i = 0; i < p->n_inputs; i++)
	{
		values[i].v.i64 = INT64_C(123456789012);
		if (p->inputs[i].type == AG_TYPE_TEXT)
			values[i] = value_text("Ulm");
		else if (p->inputs[i].type == AG_TYPE_BOOL)
			values[i] = value_bool(true);
	}
	ag_pipeline_encode(p, values, features);
	free(values);
	free(features);
}

static void
test_image(void)
{
	Rows rows;
	Host host;
	Fitted f;
	AgWriter image, again;
	AgPipeline *p;
	uint8_t *copy;
	int n_accepted = 0;

	rows_make_mixed(&rows, 60);
	host_open(&host, 1);
	AG_REQUIRE(fit_rows(&rows, 0, 100, &host, &f) == AG_OK);
	ag_writer_init(&image, &host.mem);
	ag_writer_init(&again, &host.mem);
	AG_REQUIRE(ag_pipeline_write(&host.ctx, f.pipeline, &image) == AG_OK);
	AG_REQUIRE(read_image(&host, image.data, image.size, &p) == AG_OK);
	AG_REQUIRE(ag_pipeline_write(&host.ctx, p, &again) == AG_OK);
	AG_CHECK(again.size == image.size && memcmp(again.data, image.data, image.size) == 0);
	AG_CHECK_EQ(p->problem, f.pipeline->problem);
	AG_CHECK_STR(p->classes[1].name, "yes");
	ag_pipeline_free(p);
	/* Cut short anywhere, and one byte changed anywhere: an error each time, as the checksum sees it. */
	copy = malloc(image.size);
	for (size_t n = 0; n < image.size; n++)
	{
		uint8_t *shorter = malloc(n + 1);

		memcpy(shorter, image.data, n);
		if (read_image(&host, shorter, n, &p) != AG_ERR_CORRUPT)
			AG_CHECK(n == image.size);
		free(shorter);
	}
	for (size_t at = 0; at < image.size; at++)
	{
		memcpy(copy, image.data, image.size);
		copy[at] ^= (uint8_t) (1 << at % 8);
		if (read_image(&host, copy, image.size, &p) != AG_ERR_CORRUPT)
			AG_CHECK(at == image.size);
	}
	/* With the checksum set right a change is an error or harmless. */
	for (size_t at = 64; at < image.size; at++)
		for (int way = 0; way < 3; way++)
		{
			uint64_t hash;
			AgStatus status;

			memcpy(copy, image.data, image.size);
			copy[at] = way == 0 ? 0xff : way == 1 ? 0 : (uint8_t) (copy[at] + 1);
			hash = ag_hash64(copy + 64, image.size - 64, 1);
			memcpy(copy + 24, &hash, 8);
			status = read_image(&host, copy, image.size, &p);
			if (status == AG_OK)
			{
				n_accepted++;
				replay_anything(p);
				ag_pipeline_free(p);
			}
			else if (status != AG_ERR_CORRUPT)
				AG_CHECK_EQ(status, AG_ERR_CORRUPT);
		}
	AG_CHECK(n_accepted > 0);
	/* A newer release's image says so. */
	memcpy(copy, image.data, image.size);
	copy[8] = 9;
	AG_CHECK_EQ(read_image(&host, copy, image.size, &p), AG_ERR_CORRUPT);
	AG_CHECK(strstr(host.error.message, "version 9") != NULL && host.error.hint[0] != '\0');
	free(copy);
	ag_writer_free(&image);
	ag_writer_free(&again);
	fitted_free(&f);
	host_close(&host);
	rows_close(&rows);
}

static AgStatus
whole_way(const Rows *rows, Host *host)
{
	AgStatus status;
	Fitted f;
	AgWriter image;
	AgPipeline *again = NULL;
	AgBins *bins = NULL;

	ag_writer_init(&image, &host->mem);
	AG_GO(fit_rows(rows, 0, 100, host, &f));
	AG_GO(ag_pipeline_bin(&host->ctx, f.pipeline, f.table, &usual, true, &bins));
	AG_GO(ag_pipeline_write(&host->ctx, f.pipeline, &image));
	AG_GO(ag_pipeline_read(&host->ctx, image.data, image.size, &again));

done:
	ag_pipeline_free(again);
	ag_bins_free(bins);
	ag_writer_free(&image);
	fitted_free(&f);
	return status;
}

static void
test_out_of_memory(void)
{
	Rows rows;
	int n_failed = 0;

	rows_make_mixed(&rows, 100);
	for (int64_t k = 0;; k++)
	{
		Host host;
		AgStatus status;

		host_open(&host, 1 + (int) (k % 2));
		host.mem.fail_after = k;
		status = whole_way(&rows, &host);
		host.mem.fail_after = -1;
		host_close(&host);
		if (status == AG_OK)
			break;
		n_failed++;
		AG_CHECK_EQ(status, AG_ERR_MEMORY);
		AG_CHECK_EQ(host.error.status, AG_ERR_MEMORY);
	}
	AG_CHECK(n_failed > 150);
	{
		Host host;
		Fitted f;
		AgBins *bins;

		host_open(&host, 2);
		AG_REQUIRE(fit_rows(&rows, 0, 100, &host, &f) == AG_OK);
		host.cancel = true;
		AG_CHECK_EQ(ag_pipeline_bin(&host.ctx, f.pipeline, f.table, &usual, true, &bins),
					AG_ERR_CANCELLED);
		AG_CHECK(bins == NULL);
		fitted_free(&f);
		host_close(&host);
	}
	rows_close(&rows);
}

/* A column may bear the name that a part would get. */
static void
test_taken_name(void)
{
	Rows rows;
	Host host;
	Fitted f;

	rows_open(&rows, 50);
	rows_column(&rows, "y", AG_TYPE_BOOL, AG_ROLE_LABEL);
	rows_column(&rows, "d", AG_TYPE_DATE, AG_ROLE_FEATURE);
	rows_column(&rows, "d (day)", AG_TYPE_INT32, AG_ROLE_FEATURE);
	for (int r = 0; r < 50; r++)
	{
		*rows_at(&rows, r, 0) = value_bool(r % 2);
		*rows_at(&rows, r, 1) = value_i32(r);
		*rows_at(&rows, r, 2) = value_i32(r * r);
	}
	host_open(&host, 1);
	AG_REQUIRE(fit_rows(&rows, 0, 100, &host, &f) == AG_OK);
	AG_CHECK_EQ(find_feature(f.pipeline, "d (day)")->kind, AG_FEATURE_NUMBER);
	AG_CHECK_EQ(find_feature(f.pipeline, "d (day 2)")->kind, AG_FEATURE_DAY);
	fitted_free(&f);
	host_close(&host);
	rows_close(&rows);
}

/* Levels of quantile regression come back as they went; what can't be levels is told. */
static void
test_quantiles(void)
{
	static const struct
	{
		int n;
		double quantiles[3];
		int order[3];
	} cases[] = {
		{3, {0.1, 0.5, 0.9}, {2, 0, 1}},
		{1, {0.5}, {0}},
		/* from here on wrong */
		{0, {0.5}, {0}},
		{3, {0.1, 0.9, 0.5}, {0, 1, 2}},
		{3, {0.1, 0.1, 0.5}, {0, 1, 2}},
		{2, {0.0, 0.5}, {0, 1}},
		{2, {0.5, 1.0}, {0, 1}},
		{1, {NAN}, {0}},
		{2, {0.1, 0.5}, {0, 2}},
		{2, {0.1, 0.5}, {1, 1}},
		{1, {0.5}, {-1}},
	};
	Rows rows;
	Host host;
	Fitted f;

	rows_make_mixed(&rows, 60);
	host_open(&host, 1);
	AG_REQUIRE(fit_rows(&rows, 0, 100, &host, &f) == AG_OK);
	f.pipeline->problem = AG_PROBLEM_QUANTILE;
	f.pipeline->label_type = AG_TYPE_FLOAT64;
	f.pipeline->n_classes = 0;
	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
	{
		AgPipeline *again = NULL;
		AgWriter image;

		ag_writer_init(&image, &host.mem);
		f.pipeline->n_quantiles = cases[c].n;
		f.pipeline->quantiles = (double *) cases[c].quantiles;
		f.pipeline->quantile_order = (int *) cases[c].order;
		AG_REQUIRE(ag_pipeline_write(&host.ctx, f.pipeline, &image) == AG_OK);
		AG_CHECK_EQ(read_image(&host, image.data, image.size, &again),
					c < 2 ? AG_OK : AG_ERR_CORRUPT);
		AG_CHECK_EQ(again != NULL, c < 2);
		for (int i = 0; again != NULL && i < cases[c].n; i++)
			AG_CHECK(again->quantiles[i] == cases[c].quantiles[i] &&
					 again->quantile_order[i] == cases[c].order[i]);
		if (again != NULL)
			AG_CHECK_EQ(ag_pipeline_outputs(again), cases[c].n);
		ag_pipeline_free(again);
		ag_writer_free(&image);
	}
	fitted_free(&f);
	host_close(&host);
	rows_close(&rows);
}

int
main(void)
{
	test_drops();
	test_no_feature();
	test_long_list();
	test_long_names();
	test_dates();
	test_origins();
	test_replay();
	test_encode();
	test_order();
	test_image();
	test_out_of_memory();
	test_taken_name();
	test_quantiles();
	return ag_unit_done("pipeline");
}
