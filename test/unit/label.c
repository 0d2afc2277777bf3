/*
 * label.c - problem types, classes, targets, and labels that nothing can be learnt from.
 */
#include "engine/data/label_private.h"
#include "unit/rows.h"

typedef struct Case
{
	Host host;
	Rows rows;
	AgTable *table;
	AgLabel *label;
} Case;

static void
case_open(Case *c, AgType type, int64_t n_rows)
{
	host_open(&c->host, 2);
	rows_open(&c->rows, n_rows);
	rows_column(&c->rows, "Y", type, AG_ROLE_LABEL);
	rows_column(&c->rows, "x", AG_TYPE_INT32, AG_ROLE_FEATURE);
	for (int64_t r = 0; r < n_rows; r++)
		*rows_at(&c->rows, r, 1) = value_i32((int32_t) r);
	c->table = NULL;
	c->label = NULL;
}

static AgStatus
case_fit(Case *c, AgProblem asked, const char *positive_class)
{
	int64_t n_left_out;

	ag_label_free(c->label);
	ag_table_free(c->table);
	host_reset(&c->host);
	AG_REQUIRE(rows_table(&c->rows, 0, 50, &c->host, &c->table, &n_left_out) == AG_OK);
	return ag_label_fit(&c->host.ctx, c->table, 0, asked, positive_class, &c->label);
}

static void
case_close(Case *c)
{
	ag_label_free(c->label);
	ag_table_free(c->table);
	rows_close(&c->rows);
	host_close(&c->host);
}

/* The row of the table that came from row r. */
static int64_t
find_row(const Case *c, int32_t r)
{
	for (int64_t i = 0; i < c->table->n_rows; i++)
		if (((const int32_t *) c->table->columns[1].values)[i] == r)
			return i;
	return -1;
}

static void
test_text(void)
{
	static const char *const texts[] = {"no", "yes", "no", "no"};
	Case c;

	case_open(&c, AG_TYPE_TEXT, 5);
	for (int r = 0; r < 4; r++)
		*rows_at(&c.rows, r, 0) = value_text(texts[r]);
	*rows_at(&c.rows, 4, 0) = value_null();
	AG_REQUIRE(case_fit(&c, AG_PROBLEM_AUTO, NULL) == AG_OK);
	AG_CHECK_EQ(c.label->problem, AG_PROBLEM_BINARY);
	AG_CHECK_EQ(c.label->n_rows, 4);
	AG_CHECK_STR(c.label->classes[0].name, "no");
	AG_CHECK_STR(c.label->classes[1].name, "yes");
	AG_CHECK_EQ(c.label->classes[0].n_rows, 3);
	AG_CHECK(isnan(c.label->classes[0].number));
	for (int r = 0; r < 4; r++)
		AG_CHECK_EQ(c.label->class_of[find_row(&c, r)], r == 1);
	AG_CHECK(strstr(c.host.log, "problem type of label \"Y\" is binary") != NULL);
	AG_CHECK(strstr(c.host.log, "positive class is \"yes\"") != NULL);
	AG_REQUIRE(case_fit(&c, AG_PROBLEM_AUTO, "no") == AG_OK);
	AG_CHECK_STR(c.label->classes[1].name, "no");
	AG_CHECK_EQ(c.label->classes[1].n_rows, 3);
	for (int r = 0; r < 4; r++)
		AG_CHECK_EQ(c.label->class_of[find_row(&c, r)], r != 1);
	AG_CHECK_EQ(case_fit(&c, AG_PROBLEM_AUTO, "maybe"), AG_ERR_OPTION);
	AG_CHECK(strstr(c.host.error.hint, "\"no\"") != NULL);
	AG_CHECK_EQ(case_fit(&c, AG_PROBLEM_MULTICLASS, "no"), AG_ERR_OPTION);
	AG_CHECK_EQ(case_fit(&c, AG_PROBLEM_REGRESSION, NULL), AG_ERR_DATA);
	AG_CHECK(strstr(c.host.error.message, "\"Y\"") != NULL);
	AG_REQUIRE(case_fit(&c, AG_PROBLEM_MULTICLASS, NULL) == AG_OK);
	AG_CHECK_EQ(c.label->n_classes, 2);
	case_close(&c);
}

/* Texts that are too long for a message are cut between characters. */
static void
test_long_names(void)
{
	static char longer[2][3002];
	Case c;

	for (int i = 0; i < 1500; i++)
		memcpy(longer[0] + 2 * i, "ä", 2);
	memcpy(longer[1], longer[0], 3000);
	longer[1][2999] = '!';
	longer[1][0] = 'x';
	longer[1][1] = 'x';
	longer[1][2998] = '!';
	case_open(&c, AG_TYPE_TEXT, 40);
	for (int r = 0; r < 40; r++)
		*rows_at(&c.rows, r, 0) = value_text(longer[r % 2]);
	AG_CHECK_EQ(case_fit(&c, AG_PROBLEM_AUTO, "x"), AG_ERR_OPTION);
	AG_CHECK(strlen(c.host.error.hint) > 800);
	for (size_t i = 0; c.host.error.hint[i] != '\0'; i++)
		if ((unsigned char) c.host.error.hint[i] == 0xc3)
			AG_CHECK((unsigned char) c.host.error.hint[i + 1] == 0xa4);
	case_close(&c);
}

/* Classes are in byte order, however often they occur. */
static void
test_text_order(void)
{
	static const char *const texts[] = {"b", "b", "a", "c", "c", "c", "", "ä"};
	static const char *const want[] = {"", "a", "b", "c", "ä"};
	Case c;

	case_open(&c, AG_TYPE_TEXT, 8);
	for (int r = 0; r < 8; r++)
		*rows_at(&c.rows, r, 0) = value_text(texts[r]);
	AG_REQUIRE(case_fit(&c, AG_PROBLEM_AUTO, NULL) == AG_OK);
	AG_CHECK_EQ(c.label->problem, AG_PROBLEM_MULTICLASS);
	AG_REQUIRE(c.label->n_classes == 5);
	for (int k = 0; k < 5; k++)
		AG_CHECK_STR(c.label->classes[k].name, want[k]);
	for (int r = 0; r < 8; r++)
		AG_CHECK_STR(c.label->classes[c.label->class_of[find_row(&c, r)]].name, texts[r]);
	AG_CHECK_EQ(case_fit(&c, AG_PROBLEM_BINARY, NULL), AG_ERR_DATA);
	case_close(&c);
}

static void
test_boolean(void)
{
	Case c;

	case_open(&c, AG_TYPE_BOOL, 6);
	for (int r = 0; r < 6; r++)
		*rows_at(&c.rows, r, 0) = value_bool(r < 4);
	AG_REQUIRE(case_fit(&c, AG_PROBLEM_AUTO, NULL) == AG_OK);
	AG_CHECK_STR(c.label->classes[0].name, "false");
	AG_CHECK_STR(c.label->classes[1].name, "true");
	AG_CHECK(c.label->classes[1].number == 1.0);
	AG_REQUIRE(case_fit(&c, AG_PROBLEM_BINARY, "false") == AG_OK);
	AG_CHECK_STR(c.label->classes[1].name, "false");
	AG_REQUIRE(case_fit(&c, AG_PROBLEM_REGRESSION, NULL) == AG_OK);
	AG_CHECK_EQ(c.label->n_classes, 0);
	AG_CHECK_NEAR(c.label->mean, 4 / 6.0, 1e-15);
	AG_CHECK_EQ(case_fit(&c, AG_PROBLEM_REGRESSION, "true"), AG_ERR_OPTION);
	case_close(&c);
}

static void
test_integers(void)
{
	Case c;

	case_open(&c, AG_TYPE_INT64, 200);
	for (int r = 0; r < 200; r++)
		*rows_at(&c.rows, r, 0) = value_i64(INT64_MAX - r % 10);
	AG_REQUIRE(case_fit(&c, AG_PROBLEM_AUTO, NULL) == AG_OK);
	AG_CHECK_EQ(c.label->problem, AG_PROBLEM_MULTICLASS);
	AG_REQUIRE(c.label->n_classes == 10); /* though they are one double */
	AG_CHECK_STR(c.label->classes[9].name, "9223372036854775807");
	AG_CHECK_STR(c.label->classes[0].name, "9223372036854775798");
	AG_CHECK(strstr(c.host.log, "\"problem_type\": \"regression\"") != NULL);
	for (int r = 0; r < 200; r++)
		*rows_at(&c.rows, r, 0) = value_i64(r % 11 - 5);
	AG_REQUIRE(case_fit(&c, AG_PROBLEM_AUTO, NULL) == AG_OK);
	AG_CHECK_EQ(c.label->problem, AG_PROBLEM_REGRESSION);
	AG_CHECK(strstr(c.host.log, "\"problem_type\": \"multiclass\"") != NULL);
	AG_CHECK(c.label->min == -5.0 && c.label->max == 5.0);
	for (int r = 0; r < 200; r++)
		AG_CHECK(c.label->target[find_row(&c, r)] == r % 11 - 5);
	AG_REQUIRE(case_fit(&c, AG_PROBLEM_MULTICLASS, NULL) == AG_OK);
	AG_CHECK_EQ(c.label->n_classes, 11);
	AG_CHECK_STR(c.label->classes[0].name, "-5");
	for (int r = 0; r < 200; r++)
		*rows_at(&c.rows, r, 0) = value_i64(r % 2);
	AG_REQUIRE(case_fit(&c, AG_PROBLEM_AUTO, NULL) == AG_OK);
	AG_CHECK_EQ(c.label->problem, AG_PROBLEM_BINARY);
	AG_CHECK_STR(c.label->classes[1].name, "1");
	AG_REQUIRE(case_fit(&c, AG_PROBLEM_AUTO, "0.0") == AG_OK);
	AG_CHECK_STR(c.label->classes[1].name, "0");
	for (int r = 0; r < 200; r++)
		*rows_at(&c.rows, r, 0) = value_i64(7);
	AG_CHECK_EQ(case_fit(&c, AG_PROBLEM_AUTO, NULL), AG_ERR_DATA);
	AG_CHECK(strstr(c.host.error.message, "one distinct value") != NULL);
	case_close(&c);
}

static void
test_floats(void)
{
	Case c;

	case_open(&c, AG_TYPE_FLOAT64, 300);
	for (int r = 0; r < 300; r++)
		*rows_at(&c.rows, r, 0) = value_f64(r % 3 == 0 ? -0.0 : r % 3);
	AG_REQUIRE(case_fit(&c, AG_PROBLEM_AUTO, NULL) == AG_OK);
	AG_CHECK_EQ(c.label->problem, AG_PROBLEM_MULTICLASS);
	AG_CHECK_STR(c.label->classes[0].name, "0");
	AG_CHECK_STR(c.label->classes[2].name, "2");
	rows_at(&c.rows, 7, 0)->v.f64 = 0.5;
	AG_REQUIRE(case_fit(&c, AG_PROBLEM_AUTO, NULL) == AG_OK);
	AG_CHECK_EQ(c.label->problem, AG_PROBLEM_REGRESSION);
	rows_at(&c.rows, 7, 0)->v.f64 = (double) NAN;
	AG_CHECK_EQ(case_fit(&c, AG_PROBLEM_AUTO, NULL), AG_ERR_DATA);
	AG_CHECK_STR(c.host.error.message, "label column \"Y\" has NaN values");
	rows_at(&c.rows, 7, 0)->v.f64 = -(double) INFINITY;
	AG_CHECK_EQ(case_fit(&c, AG_PROBLEM_MULTICLASS, NULL), AG_ERR_DATA);
	AG_CHECK_STR(c.host.error.message, "label column \"Y\" has infinite values");
	for (int r = 0; r < 300; r++)
		*rows_at(&c.rows, r, 0) = value_f64(r % 2 ? 1.5e308 : -1.5e308 + r);
	AG_REQUIRE(case_fit(&c, AG_PROBLEM_REGRESSION, NULL) == AG_OK);
	AG_CHECK(isfinite(c.label->mean) && fabs(c.label->mean) < 1e294);
	AG_CHECK_NEAR(c.label->stddev / 1.5e308, 1.0, 0.01);
	for (int r = 0; r < 300; r++)
		*rows_at(&c.rows, r, 0) = value_f64(1e9 + r);
	AG_REQUIRE(case_fit(&c, AG_PROBLEM_AUTO, NULL) == AG_OK);
	AG_CHECK(c.label->mean == 1e9 + 149.5);
	AG_CHECK_NEAR(c.label->stddev, 86.7467, 1e-4);
	case_close(&c);
}

static void
test_numbers_of_names(void)
{
	static const struct
	{
		double number;
		bool is_single;
		const char *name;
	} cases[] = {{1, false, "1"},
				 {-2.5, false, "-2.5"},
				 {100, false, "100"},
				 {0.1, false, "0.1"},
				 {0.1 + 0.2, false, "0.30000000000000004"},
				 {(float) 0.1, true, "0.1"},
				 {123456789012345.0, false, "123456789012345"},
				 {1e22, false, "1e+22"},
				 {0.0001, false, "0.0001"},
				 {5e-324, false, "5e-324"},
				 {1.7976931348623157e308, false, "1.7976931348623157e+308"}};
	char text[64];

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
	{
		ag_label_number_name(cases[i].number, cases[i].is_single, text, sizeof text);
		AG_CHECK_STR(text, cases[i].name);
	}
}

static void
test_refused(void)
{
	static const AgType types[] = {AG_TYPE_DATE, AG_TYPE_TIMESTAMP, AG_TYPE_TIME, AG_TYPE_INTERVAL};
	Case c;

	for (int i = 0; i < 4; i++)
	{
		case_open(&c, types[i], 4);
		AG_CHECK_EQ(case_fit(&c, AG_PROBLEM_AUTO, NULL), AG_ERR_DATA);
		AG_CHECK(strstr(c.host.error.hint, "extract(epoch FROM \"Y\")") != NULL);
		case_close(&c);
	}
	case_open(&c, AG_TYPE_INT32, 3);
	for (int r = 0; r < 3; r++)
		*rows_at(&c.rows, r, 0) = value_null();
	AG_CHECK_EQ(case_fit(&c, AG_PROBLEM_AUTO, NULL), AG_ERR_DATA);
	AG_CHECK(strstr(c.host.error.message, "nothing but NULLs") != NULL);
	c.rows.n_rows = 0;
	AG_CHECK_EQ(case_fit(&c, AG_PROBLEM_AUTO, NULL), AG_ERR_DATA);
	AG_CHECK_STR(c.host.error.message, "the data has no rows");
	case_close(&c);
	case_open(&c, AG_TYPE_INT32, 10001);
	for (int r = 0; r < 10001; r++)
		*rows_at(&c.rows, r, 0) = value_i32(r);
	AG_CHECK_EQ(case_fit(&c, AG_PROBLEM_MULTICLASS, NULL), AG_ERR_DATA);
	AG_CHECK(strstr(c.host.error.message, "10000 classes") != NULL);
	rows_at(&c.rows, 0, 0)->v.i32 = 1;
	AG_REQUIRE(case_fit(&c, AG_PROBLEM_MULTICLASS, NULL) == AG_OK);
	AG_CHECK_EQ(c.label->n_classes, 10000);
	AG_CHECK(strstr(c.host.log, "all of the 10000 classes of label") != NULL);
	case_close(&c);
}

static void
test_out_of_memory(void)
{
	static const AgProblem problems[] = {AG_PROBLEM_AUTO, AG_PROBLEM_MULTICLASS};
	int n_failed = 0;

	for (int p = 0; p < 2; p++)
	{
		Case c;

		case_open(&c, p == 0 ? AG_TYPE_FLOAT64 : AG_TYPE_TEXT, 100);
		for (int r = 0; r < 100; r++)
			*rows_at(&c.rows, r, 0) = p == 0 ? value_f64(r) : value_text(r % 3 ? "a" : "b");
		AG_REQUIRE(case_fit(&c, problems[p], NULL) == AG_OK);
		for (int64_t k = 0;; k++)
		{
			AgStatus status;
			int64_t used;

			ag_label_free(c.label);
			c.label = NULL;
			host_reset(&c.host);
			used = c.host.mem.used_bytes;
			c.host.mem.fail_after = k;
			status = ag_label_fit(&c.host.ctx, c.table, 0, problems[p], NULL, &c.label);
			c.host.mem.fail_after = -1;
			if (status == AG_OK)
				break;
			n_failed++;
			AG_CHECK_EQ(status, AG_ERR_MEMORY);
			AG_CHECK_EQ(c.host.error.status, AG_ERR_MEMORY);
			AG_CHECK_EQ(c.host.mem.used_bytes, used);
		}
		case_close(&c);
	}
	AG_CHECK(n_failed >= 8);
}

int
main(void)
{
	test_text();
	test_text_order();
	test_long_names();
	test_boolean();
	test_integers();
	test_floats();
	test_numbers_of_names();
	test_refused();
	test_out_of_memory();
	return ag_unit_done("label");
}
