/*
 * text.c - what is read off texts: words, statistics, numbers, dates; a column of them at fit and prediction, its image,
 * and that nothing depends on the order of rows or on threads.
 */
#include "engine/base/hash.h"
#include "engine/data/pipeline_private.h"
#include "unit/rows.h"

static int
count_words(const char *text)
{
	AgTextScan scan;
	uint64_t hash;
	int n = 0;

	ag_text_scan(&scan, text, (uint32_t) strlen(text));
	while (ag_text_next_word(&scan, &hash))
		n++;
	return n;
}

static uint64_t
first_word(const char *text)
{
	AgTextScan scan;
	uint64_t hash;

	ag_text_scan(&scan, text, (uint32_t) strlen(text));
	return ag_text_next_word(&scan, &hash) ? hash : 0;
}

static void
test_words(void)
{
	static const char *const same[][2] = {
		{"Hello", "hELLO"}, {"ÄRGER", "ärger"}, {"ŁÓDŹ", "łódź"},
		{"ΆΛΦΑ", "άλφα"},   {"ЁЖИК", "ёжик"},   {"Ÿ", "ÿ"},
		{"ŽENA", "žena"},   {"İ", "i"},         {"ΏΡΑ", "ώρα"},
	};
	uint64_t hashes[AG_TEXT_MAX_TERMS];

	AG_CHECK_EQ(count_words(""), 0);
	AG_CHECK_EQ(count_words(" ,.!  "), 0);
	AG_CHECK_EQ(count_words("one, two-three\tfour"), 4);
	AG_CHECK_EQ(count_words("C3PO 42"), 2);
	AG_CHECK_EQ(count_words("東京 tower"), 3);  /* each character of its own */
	AG_CHECK_EQ(count_words("a\xff\xfe b"), 2); /* no UTF-8: letters */
	AG_CHECK_EQ(count_words("caf\xc3"), 1);
	for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
		AG_CHECK(first_word(same[i][0]) == first_word(same[i][1]));
	AG_CHECK(first_word("ab") != first_word("ba"));
	AG_CHECK(first_word("straße") != first_word("strasse"));
	AG_CHECK_EQ(ag_text_terms("a b c d", 7, hashes), 4 + 3 + 2);
	AG_CHECK(hashes[0] == first_word("A"));
	AG_CHECK(hashes[2] != hashes[4]); /* "a b" and "b c" */
}

static void
test_stats(void)
{
	AgTextStats stats;

	ag_text_stats("Ab 1é!! ", 9, &stats);
	AG_CHECK_EQ(stats.n_chars, 8);
	AG_CHECK_EQ(stats.n_words, 2);
	AG_CHECK_EQ(stats.n_upper, 1);
	AG_CHECK_EQ(stats.n_lower, 2);
	AG_CHECK_EQ(stats.n_digits, 1);
	AG_CHECK_EQ(stats.n_special, 2);
	AG_CHECK_EQ(stats.n_symbols[0], 2);
	ag_text_stats("", 0, &stats);
	AG_CHECK_EQ(stats.n_chars + stats.n_words, 0);
}

static void
test_numbers(void)
{
	static const struct
	{
		const char *text;
		int n;
		double first, second;
		const char *unit; /* written as another text's first number has it; "" for none */
		bool is_first, is_plain;
	} cases[] = {
		{"23.4 kmpl", 1, 23.4, 0, "1 KMPL", true, false},
		{"1248 CC", 1, 1248, 0, "5cc", true, false},
		{"190Nm@ 2,000rpm", 2, 190, 2000, "1 nm", true, false},
		{"$37,500", 1, 37500, 0, "", true, false},
		{"-5 °C", 1, -5, 0, "", true, false},
		{"12", 1, 12, 0, "", true, true},
		{"2-3", 2, 2, 3, "", true, false}, /* a hyphen is no minus */
		{"C85", 1, 85, 0, "", false, false},
		{"99.5%", 1, 99.5, 0, "3%", true, false},
		{"1,2345", 2, 1, 2345, "", true, false},
		{"none", 0, 0, 0, "", false, false},
		{"0.1", 1, 0.1, 0, "", true, false},
		{"12345678901234567890123", 1, 123456789012345678e5, 0, "", true, true},
		{"0.000000000000000000001", 1, 0, 0, "", true, false},
		{"c9f0f895-fb98-ab91-59f5-1fd0297e236d", 0, 0, 0, "", false, false},
	};
	AgTextNumbers numbers, other;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
	{
		ag_text_numbers(cases[i].text, (uint32_t) strlen(cases[i].text), &numbers);
		ag_text_numbers(cases[i].unit, (uint32_t) strlen(cases[i].unit), &other);
		AG_CHECK_EQ(numbers.n, cases[i].n);
		AG_CHECK(numbers.values[0] == cases[i].first && numbers.values[1] == cases[i].second);
		AG_CHECK(numbers.unit == other.unit);
		AG_CHECK_EQ(numbers.is_first, cases[i].is_first);
		AG_CHECK_EQ(numbers.is_plain && numbers.n > 0, cases[i].is_plain);
	}
}

static void
test_dates(void)
{
	static const struct
	{
		const char *text;
		AgTextDate format;
		int64_t seconds; /* since 2000-01-01; -1: no date */
	} cases[] = {
		{"2000-01-01", AG_TEXT_YMD, 0},
		{"2000-03-01T00:00:01Z", AG_TEXT_YMD, 60 * 86400 + 1},
		{"2000/02/29 23:59", AG_TEXT_YMD, 59 * 86400 + 86340},
		{"2000-01-02 12:00:00.25 +02:00", AG_TEXT_YMD, 86400 + 43200},
		{"1/2/2000", AG_TEXT_MDY, 86400},
		{"1/2/00 1:05 PM", AG_TEXT_MDY, 86400 + 13 * 3600 + 300},
		{"12:00 AM", AG_TEXT_MDY, -1},
		{"2.1.2000", AG_TEXT_DMY, 86400},
		{"13/1/2000", AG_TEXT_MDY, -1},
		{"30/2/2000", AG_TEXT_DMY, -1},
		{"2001-02-29", AG_TEXT_YMD, -1},
		{"2000-01-01 25:00", AG_TEXT_YMD, -1},
		{"2000-01-01x", AG_TEXT_YMD, -1},
		{"2000-01/01", AG_TEXT_YMD, -1},
		{"", AG_TEXT_YMD, -1},
		{"0000-01-01", AG_TEXT_YMD, -1},
	};
	int64_t us;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
	{
		bool is_date =
			ag_text_date(cases[i].text, (uint32_t) strlen(cases[i].text), cases[i].format, &us);

		AG_CHECK_EQ(is_date, cases[i].seconds >= 0);
		if (is_date)
			AG_CHECK_EQ(us / 1000000, cases[i].seconds);
	}
	for (int64_t days = -730000; days < 2921000; days += 97)
	{
		AgCivil civil = ag_civil_from_days(days);

		if (ag_days_from_civil((int) civil.year, civil.month, civil.day) != days)
			AG_CHECK(days == INT64_MAX);
	}
}

/* --- columns */

#define N_ROWS 900

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
fit_rows(const Rows *rows, uint64_t shuffle, const AgFeatureParams *params, Host *host, Fitted *f)
{
	AgStatus status;
	int64_t n_left_out;

	memset(f, 0, sizeof *f);
	AG_GO(rows_table(rows, shuffle, 250, host, &f->table, &n_left_out));
	AG_GO(ag_label_fit(&host->ctx, f->table, 0, AG_PROBLEM_AUTO, NULL, &f->label));
	host->log[0] = '\0';
	AG_GO(ag_pipeline_fit(&host->ctx, f->table, f->label, "UTC", false, params, &f->pipeline));
done:
	return status;
}

/* Reviews of two subjects, numbers with units, dates as text, two timestamps, numbers that differ everywhere. */
static void
make_rows(Rows *rows, int64_t n)
{
	static const char *const wine[] = {"fruity", "oak", "tannin", "Crisp", "berry", "finish"};
	static const char *const cars[] = {"engine", "brakes", "Mileage", "gear", "diesel", "seat"};
	static char texts[4][N_ROWS][120];

	rows_open(rows, n);
	rows_column(rows, "y", AG_TYPE_BOOL, AG_ROLE_LABEL);
	rows_column(rows, "review", AG_TYPE_TEXT, AG_ROLE_FEATURE);
	rows_column(rows, "mileage", AG_TYPE_TEXT, AG_ROLE_FEATURE);
	rows_column(rows, "sold", AG_TYPE_TEXT, AG_ROLE_FEATURE);
	rows_column(rows, "from", AG_TYPE_TIMESTAMP, AG_ROLE_FEATURE);
	rows_column(rows, "to", AG_TYPE_TIMESTAMP, AG_ROLE_FEATURE);
	rows_column(rows, "weight", AG_TYPE_TEXT, AG_ROLE_FEATURE);
	rows_column(rows, "serial", AG_TYPE_TEXT, AG_ROLE_FEATURE);
	for (int64_t r = 0; r < n; r++)
	{
		const char *const *words = r % 2 ? wine : cars;
		int at = 0;

		for (int w = 0; w < 6; w++)
			at += snprintf(texts[0][r] + at, sizeof texts[0][r] - (size_t) at, "%s%s", w ? " " : "",
						   words[ag_random_below(1, (uint64_t) (r * 6 + w), 6)]);
		snprintf(texts[0][r] + at, sizeof texts[0][r] - (size_t) at, "! %d", (int) r);
		snprintf(texts[1][r], sizeof texts[1][r], "%d.%d %s", (int) (r % 30), (int) (r % 7),
				 r % 3 ? "kmpl" : "km/kg");
		snprintf(texts[2][r], sizeof texts[2][r], "%d/%d/2015 %02d:30", (int) (r % 12) + 1,
				 (int) (r % 28) + 1, (int) (r % 24));
		snprintf(texts[3][r], sizeof texts[3][r], "%d.%03d kg", (int) r, (int) (r * 7 % 1000));
		*rows_at(rows, r, 0) = value_bool(r % 2);
		*rows_at(rows, r, 1) = r % 50 == 7 ? value_null() : value_text(texts[0][r]);
		*rows_at(rows, r, 2) = r % 40 == 3 ? value_text("") : value_text(texts[1][r]);
		*rows_at(rows, r, 3) = r % 60 == 5 ? value_text("unknown") : value_text(texts[2][r]);
		*rows_at(rows, r, 4) = value_i64(r * INT64_C(3600000000));
		*rows_at(rows, r, 5) =
			r % 70 == 1 ? value_null() : value_i64(r * INT64_C(3601000000) + r % 5 * 1000000);
		*rows_at(rows, r, 6) = value_text(texts[3][r]);
		*rows_at(rows, r, 7) = value_text(texts[0][r] + at + 2); /* digits only: an identifier */
	}
}

static int
count_kind(const AgPipeline *p, const char *input, AgFeatureKind kind)
{
	int n = 0;

	for (int f = 0; f < p->n_features; f++)
		n +=
			p->features[f].kind == kind && strcmp(p->inputs[p->features[f].input].name, input) == 0;
	return n;
}

static void
check_features(const AgPipeline *p)
{
	AG_CHECK_EQ(count_kind(p, "review", AG_FEATURE_CATEGORY), 0);
	AG_CHECK_EQ(count_kind(p, "review", AG_FEATURE_TEXT_WORDS), 0); /* seven of them in each */
	AG_CHECK_EQ(count_kind(p, "review", AG_FEATURE_TEXT_CHARS), 1);
	AG_CHECK_EQ(count_kind(p, "review", AG_FEATURE_TEXT_NUMBER), 1);
	AG_CHECK(count_kind(p, "review", AG_FEATURE_TEXT_PLACE) >= 4);
	AG_CHECK_EQ(count_kind(p, "review", AG_FEATURE_TEXT_TERM), p->n_features - p->n_visible);
	AG_CHECK(p->n_features > p->n_visible);
	AG_CHECK_EQ(count_kind(p, "mileage", AG_FEATURE_CATEGORY), 1);
	AG_CHECK_EQ(count_kind(p, "mileage", AG_FEATURE_TEXT_NUMBER), 1);
	AG_CHECK_EQ(count_kind(p, "mileage", AG_FEATURE_TEXT_UNIT), 1);
	AG_CHECK_EQ(count_kind(p, "mileage", AG_FEATURE_TEXT_PLACE), 0);
	AG_CHECK_EQ(count_kind(p, "sold", AG_FEATURE_CATEGORY), 0);
	AG_CHECK_EQ(count_kind(p, "sold", AG_FEATURE_NUMBER), 1);
	AG_CHECK_EQ(count_kind(p, "sold", AG_FEATURE_MONTH), 1);
	AG_CHECK_EQ(count_kind(p, "sold", AG_FEATURE_YEAR), 1); /* of a date, or none */
	AG_CHECK_EQ(count_kind(p, "sold", AG_FEATURE_HOUR_SIN), 1);
	AG_CHECK_EQ(count_kind(p, "from", AG_FEATURE_WEEKDAY_COS), 1);
	AG_CHECK_EQ(count_kind(p, "from", AG_FEATURE_SINCE), 1); /* since "sold" */
	AG_CHECK_EQ(count_kind(p, "to", AG_FEATURE_SINCE), 2);
	AG_CHECK_EQ(count_kind(p, "weight", AG_FEATURE_TEXT_NUMBER), 1);
	AG_CHECK_EQ(count_kind(p, "weight", AG_FEATURE_CATEGORY), 0);
	AG_CHECK_STR(p->inputs[6].dropped_why, "identifier-like");
	AG_CHECK_STR(ag_pipeline_text_kind(&p->inputs[0]), "text");
	AG_CHECK_STR(ag_pipeline_text_kind(&p->inputs[1]), "category");
	AG_CHECK_STR(ag_pipeline_text_kind(&p->inputs[2]), "date");
	AG_CHECK_STR(ag_pipeline_text_kind(&p->inputs[5]), "number");
}

static bool
same(double a, double b)
{
	return a == b || (a != a && b != b);
}

/* The value of a table's row in a column, as prediction would get it. */
static AgValue
value_of(const AgTable *table, int column, int64_t row)
{
	const AgTableColumn *c = &table->columns[column];
	AgValue value = value_null();

	if (ag_column_is_null(c, row))
		return value;
	value.is_null = false;
	if (c->type == AG_TYPE_TEXT)
	{
		uint32_t code = ((const uint32_t *) c->values)[row];

		value.v.s.text = c->dictionary.texts[code];
		value.v.s.n_bytes = c->dictionary.n_bytes[code];
	}
	else
		value.v.i64 = ((const int64_t *) c->values)[row];
	return value;
}

/* Bins and features of the fit agree with what prediction makes of the same rows. */
static void
check_replay(Host *host, const Fitted *f, const AgPipeline *p)
{
	static const AgBinParams usual = {254, 3, 200000};
	int n_features = f->pipeline->n_features;
	double *features = malloc((size_t) n_features * sizeof *features);
	AgBins *bins;
	int n_wrong = 0;

	AG_REQUIRE(ag_pipeline_bin(&host->ctx, f->pipeline, f->table, &usual, false, &bins) == AG_OK);
	for (int64_t r = 0; r < f->table->n_rows; r++)
	{
		AgValue values[ROWS_MAX_COLUMNS];
		uint32_t row = (uint32_t) r;

		for (int i = 0; i < p->n_inputs; i++)
			values[i] = value_of(f->table, i + 1, r);
		ag_pipeline_encode(p, values, features);
		for (int i = 0; i < n_features; i++)
		{
			double x = features[i], fitted;

			ag_pipeline_feature(f->pipeline, f->table, i, &row, 1, &fitted);
			n_wrong += !same(fitted, x);
			if (i < f->pipeline->n_visible)
			{
				const AgBinFeature *bin = &bins->features[i];
				int expected = x != x ? 0
							   : bin->is_category
								   ? ag_bin_of_code(bin, x < 0.0 ? UINT32_MAX - 1 : (uint32_t) x)
								   : ag_bin_of_number(bin, x);

				n_wrong += bins->columns[i * bins->column_stride + r] != expected;
			}
		}
	}
	AG_CHECK_EQ(n_wrong, 0);
	ag_bins_free(bins);
	free(features);
}

static void
test_columns(void)
{
	uint64_t image_hash = 0;
	Rows rows;

	make_rows(&rows, N_ROWS);
	for (int way = 0; way < 3; way++)
	{
		AgPipeline *again;
		AgWriter image;
		Host host;
		Fitted f;

		host_open(&host, 1 + way);
		AG_REQUIRE(fit_rows(&rows, (uint64_t) way, NULL, &host, &f) == AG_OK);
		check_features(f.pipeline);
		AG_CHECK(strstr(host.log, "words are read in 1, numbers in 3, dates in 1") != NULL);
		ag_writer_init(&image, &host.mem);
		AG_REQUIRE(ag_pipeline_write(&host.ctx, f.pipeline, &image) == AG_OK);
		AG_CHECK(way == 0 || ag_hash64(image.data, image.size, 0) == image_hash);
		image_hash = ag_hash64(image.data, image.size, 0);
		AG_REQUIRE(ag_pipeline_read(&host.ctx, image.data, image.size, &again) == AG_OK);
		check_replay(&host, &f, again);
		ag_pipeline_free(again);
		ag_writer_free(&image);
		fitted_free(&f);
		host_close(&host);
	}
	rows_close(&rows);
}

/* How far apart the two subjects lie along a coordinate: 1 at most. */
static double
distance(const Fitted *f, int part)
{
	double sums[2] = {0.0, 0.0}, squares = 0.0;
	int at = 0;

	while (f->pipeline->features[at].kind != AG_FEATURE_TEXT_PLACE ||
		   f->pipeline->features[at].part != part)
		at++;
	for (int64_t r = 0; r < f->table->n_rows; r++)
	{
		uint32_t row = (uint32_t) r;
		double x;

		ag_pipeline_feature(f->pipeline, f->table, at, &row, 1, &x);
		if (x != x)
			continue;
		sums[f->label->class_of[r]] += x;
		squares += x * x;
	}
	return fabs(sums[0] - sums[1]) / sqrt(squares * N_ROWS);
}

/* One of the first two coordinates tells the subjects apart, though nothing knew them. */
static void
test_places(void)
{
	Rows rows;
	Host host;
	Fitted f;

	make_rows(&rows, N_ROWS);
	host_open(&host, 1);
	AG_REQUIRE(fit_rows(&rows, 0, NULL, &host, &f) == AG_OK);
	AG_CHECK(fmax(distance(&f, 0), distance(&f, 1)) > 0.6);
	fitted_free(&f);
	host_close(&host);
	rows_close(&rows);
}

static void
test_params(void)
{
	AgFeatureParams params;
	Rows rows;
	Host host;
	Fitted f;

	make_rows(&rows, 300);
	host_open(&host, 1);
	ag_feature_params_default(&params);
	params.max_ngrams = 5;
	AG_REQUIRE(fit_rows(&rows, 0, &params, &host, &f) == AG_OK);
	AG_CHECK_EQ(f.pipeline->inputs[0].text->vocabulary->n_terms, 5);
	fitted_free(&f);
	params.text_ngram = false;
	AG_REQUIRE(fit_rows(&rows, 0, &params, &host, &f) == AG_OK);
	AG_CHECK_EQ(count_kind(f.pipeline, "review", AG_FEATURE_TEXT_PLACE), 0);
	AG_CHECK_EQ(count_kind(f.pipeline, "review", AG_FEATURE_TEXT_CHARS), 1);
	fitted_free(&f);
	params.text_special = false; /* words, all different: nothing is left of them */
	AG_REQUIRE(fit_rows(&rows, 0, &params, &host, &f) == AG_OK);
	AG_CHECK_STR(f.pipeline->inputs[0].dropped_why, "identifier-like");
	fitted_free(&f);
	host_close(&host);
	rows_close(&rows);
}

static AgStatus
whole_way(const Rows *rows, Host *host)
{
	AgStatus status;
	AgPipeline *again = NULL;
	AgWriter image;
	Fitted f;

	ag_writer_init(&image, &host->mem);
	AG_GO(fit_rows(rows, 0, NULL, host, &f));
	AG_GO(ag_pipeline_write(&host->ctx, f.pipeline, &image));
	AG_GO(ag_pipeline_read(&host->ctx, image.data, image.size, &again));
done:
	ag_pipeline_free(again);
	ag_writer_free(&image);
	fitted_free(&f);
	return status;
}

static void
test_out_of_memory(void)
{
	int n_failed = 0;
	Rows rows;

	make_rows(&rows, 60);
	for (int64_t k = 0;; k++)
	{
		Host host;
		AgStatus status;

		host_open(&host, 1);
		host.mem.fail_after = k;
		status = whole_way(&rows, &host);
		host.mem.fail_after = -1;
		host_close(&host);
		if (status == AG_OK)
			break;
		n_failed++;
		AG_CHECK_EQ(status, AG_ERR_MEMORY);
	}
	AG_CHECK(n_failed > 100);
	rows_close(&rows);
}

/* With the checksum set right a changed byte is an error, or harmless. */
static void
test_damage(void)
{
	AgPipeline *p;
	AgWriter image;
	Rows rows;
	Host host;
	Fitted f;
	int n_accepted = 0, n_refused = 0;

	make_rows(&rows, 60);
	host_open(&host, 1);
	AG_REQUIRE(fit_rows(&rows, 0, NULL, &host, &f) == AG_OK);
	ag_writer_init(&image, &host.mem);
	AG_REQUIRE(ag_pipeline_write(&host.ctx, f.pipeline, &image) == AG_OK);
	for (size_t at = 64; at < image.size; at += 3)
		for (int way = 0; way < 2; way++)
		{
			uint8_t before = image.data[at];
			double features[512];
			AgValue values[ROWS_MAX_COLUMNS];
			uint64_t hash;
			AgStatus status;

			image.data[at] = way == 0 ? 0xff : (uint8_t) (before + 1);
			hash = ag_hash64(image.data + 64, image.size - 64, 1);
			memcpy(image.data + 24, &hash, 8);
			host_reset(&host);
			status = ag_pipeline_read(&host.ctx, image.data, image.size, &p);
			image.data[at] = before;
			if (status == AG_OK && p->n_features <= 512 && p->n_inputs <= ROWS_MAX_COLUMNS)
			{
				for (int i = 0; i < p->n_inputs; i++)
					values[i] = p->inputs[i].type == AG_TYPE_TEXT ? value_text("12/1/2015 oak 5 cc")
																  : value_i64(77);
				ag_pipeline_encode(p, values, features);
				n_accepted++;
			}
			n_refused += status == AG_ERR_CORRUPT;
			if (status != AG_OK && status != AG_ERR_CORRUPT)
				AG_CHECK_EQ(status, AG_ERR_CORRUPT);
			ag_pipeline_free(p);
		}
	AG_CHECK(n_accepted > 0 && n_refused > 0);
	ag_writer_free(&image);
	fitted_free(&f);
	host_close(&host);
	rows_close(&rows);
}

int
main(void)
{
	test_words();
	test_stats();
	test_numbers();
	test_dates();
	test_columns();
	test_places();
	test_params();
	test_out_of_memory();
	test_damage();
	return ag_unit_done("text");
}
