/*
 * table.c - the column store: nothing depends on the order, the blocks or the threads that rows came by.
 */
#include "engine/data/dictionary.h"
#include "unit/rows.h"

/* All that a finished table holds, byte for byte. */
static void
check_same(const AgTable *a, const AgTable *b)
{
	AG_REQUIRE(a->n_rows == b->n_rows && a->n_columns == b->n_columns);
	for (int c = 0; c < a->n_columns; c++)
	{
		const AgTableColumn *x = &a->columns[c], *y = &b->columns[c];
		size_t width = x->type == AG_TYPE_TEXT ? 4 : ag_type_width(x->type);

		AG_CHECK(memcmp(x->values, y->values, (size_t) a->n_rows * width) == 0);
		AG_CHECK_EQ(x->n_nulls, y->n_nulls);
		AG_CHECK((x->nulls == NULL) == (y->nulls == NULL));
		if (x->nulls != NULL && y->nulls != NULL)
			AG_CHECK(memcmp(x->nulls, y->nulls, (size_t) (a->n_rows + 7) / 8) == 0);
		AG_REQUIRE(x->dictionary.n_levels == y->dictionary.n_levels);
		for (uint32_t k = 0; k < x->dictionary.n_levels; k++)
		{
			AG_CHECK(x->dictionary.counts[k] == y->dictionary.counts[k]);
			AG_CHECK(x->dictionary.n_bytes[k] == y->dictionary.n_bytes[k] &&
					 memcmp(x->dictionary.texts[k], y->dictionary.texts[k],
							x->dictionary.n_bytes[k]) == 0);
		}
	}
}

static void
test_order(void)
{
	static const struct
	{
		uint64_t shuffle;
		int64_t block;
		int n_threads;
	} ways[] = {{0, 1, 1}, {1, 700, 2}, {2, 33, 3}, {3, 100000, 4}, {4, 8, 1}};
	Rows rows;
	Host first_host;
	AgTable *first;
	int64_t n_left_out;

	rows_make_mixed(&rows, 3001);
	host_open(&first_host, 1);
	AG_REQUIRE(rows_table(&rows, 0, 512, &first_host, &first, &n_left_out) == AG_OK);
	AG_CHECK(n_left_out > 100 && first->n_rows + n_left_out == 3001);
	AG_CHECK_EQ(first->n_left_out, n_left_out);
	AG_CHECK_EQ(first->columns[0].n_nulls, 0);
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
	{
		Host host;
		AgTable *table;
		int64_t left_out;

		host_open(&host, ways[i].n_threads);
		AG_REQUIRE(rows_table(&rows, ways[i].shuffle, ways[i].block, &host, &table, &left_out) ==
				   AG_OK);
		AG_CHECK_EQ(left_out, n_left_out);
		check_same(first, table);
		ag_table_free(table);
		host_close(&host);
	}
	ag_table_free(first);
	host_close(&first_host);
	rows_close(&rows);
}

/* A row's values as one text, to compare tables as bags of rows. */
static int
print_row(const AgTable *table, int64_t r, char *text, size_t size)
{
	int n = 0;

	for (int c = 0; c < table->n_columns; c++)
	{
		const AgTableColumn *column = &table->columns[c];

		if (ag_column_is_null(column, r))
			n += snprintf(text + n, size - (size_t) n, "|NULL");
		else if (column->type == AG_TYPE_TEXT)
		{
			uint32_t code = ((const uint32_t *) column->values)[r];

			n += snprintf(text + n, size - (size_t) n, "|'%.*s'",
						  (int) column->dictionary.n_bytes[code], column->dictionary.texts[code]);
		}
		else if (column->type == AG_TYPE_FLOAT64)
			n += snprintf(text + n, size - (size_t) n, "|%.17g",
						  ((const double *) column->values)[r]);
		else
			n +=
				snprintf(text + n, size - (size_t) n, "|%d", ((const int32_t *) column->values)[r]);
	}
	return n;
}

/* Rows stay whole: what was appended is what is there, in some order. */
static void
test_content(void)
{
	Rows rows;
	Host host;
	AgTable *table;
	int64_t n_left_out;
	bool seen[300] = {false};
	static char names[300][16];

	rows_open(&rows, 300);
	rows_column(&rows, "t", AG_TYPE_TEXT, AG_ROLE_FEATURE);
	rows_column(&rows, "f", AG_TYPE_FLOAT64, AG_ROLE_FEATURE);
	rows_column(&rows, "i", AG_TYPE_INT32, AG_ROLE_FEATURE);
	for (int r = 0; r < 300; r++)
	{
		snprintf(names[r], sizeof names[r], "n%d", r);
		*rows_at(&rows, r, 0) = r % 7 == 0 ? value_null() : value_text(r % 7 == 1 ? "" : names[r]);
		*rows_at(&rows, r, 1) = r % 5 == 0 ? value_null() : value_f64(r / 3.0);
		*rows_at(&rows, r, 2) = value_i32(r);
	}
	host_open(&host, 2);
	AG_REQUIRE(rows_table(&rows, 9, 13, &host, &table, &n_left_out) == AG_OK);
	AG_CHECK_EQ(table->n_rows, 300);
	AG_CHECK_EQ(n_left_out, 0);
	for (int64_t r = 0; r < 300; r++)
	{
		char got[200], want[200];
		int i = ((const int32_t *) table->columns[2].values)[r];
		int n = 0;

		AG_REQUIRE(i >= 0 && i < 300 && !seen[i]);
		seen[i] = true;
		print_row(table, r, got, sizeof got);
		if (i % 7 == 0)
			n = snprintf(want, sizeof want, "|NULL");
		else
			n = snprintf(want, sizeof want, "|'%s'", i % 7 == 1 ? "" : names[i]);
		if (i % 5 == 0)
			n += snprintf(want + n, sizeof want - (size_t) n, "|NULL");
		else
			n += snprintf(want + n, sizeof want - (size_t) n, "|%.17g", i / 3.0);
		snprintf(want + n, sizeof want - (size_t) n, "|%d", i);
		AG_CHECK_STR(got, want);
	}
	/* NULL slots hold 0; the empty text is a level like others. */
	for (int64_t r = 0; r < 300; r++)
		if (ag_column_is_null(&table->columns[1], r))
			AG_CHECK(((const double *) table->columns[1].values)[r] == 0.0);
	AG_CHECK_EQ(table->columns[0].n_nulls, 43);
	AG_CHECK_EQ(table->columns[0].dictionary.n_bytes[0], 0);
	AG_CHECK_EQ(table->columns[0].dictionary.counts[0], 43);
	AG_CHECK(ag_table_append(&host.ctx, table, 1, NULL, NULL, NULL) == AG_ERR_INTERNAL);
	ag_table_free(table);
	host_close(&host);
	rows_close(&rows);
}

/* Levels of rows that were left out don't stay behind; the rest is renumbered by count, then bytes. */
static void
test_left_out_levels(void)
{
	static const char *const texts[] = {"gone", "b", "a", "c", "c", "gone", "b2"};
	static const char *const want[] = {"c", "a", "b", "b2"};
	Rows rows;
	Host host;
	AgTable *table;
	int64_t n_left_out;

	rows_open(&rows, 7);
	rows_column(&rows, "y", AG_TYPE_INT32, AG_ROLE_LABEL);
	rows_column(&rows, "x", AG_TYPE_TEXT, AG_ROLE_FEATURE);
	for (int r = 0; r < 7; r++)
	{
		*rows_at(&rows, r, 0) = r == 0 || r == 5 ? value_null() : value_i32(r);
		*rows_at(&rows, r, 1) = value_text(texts[r]);
	}
	host_open(&host, 1);
	AG_REQUIRE(rows_table(&rows, 0, 100, &host, &table, &n_left_out) == AG_OK);
	AG_CHECK_EQ(n_left_out, 2);
	AG_REQUIRE(table->columns[1].dictionary.n_levels == 4);
	for (uint32_t k = 0; k < 4; k++)
	{
		const AgDictionary *d = &table->columns[1].dictionary;

		AG_CHECK(d->n_bytes[k] == strlen(want[k]) &&
				 memcmp(d->texts[k], want[k], d->n_bytes[k]) == 0);
		AG_CHECK_EQ(ag_dictionary_find(d, want[k], (uint32_t) strlen(want[k])), k);
	}
	AG_CHECK(ag_dictionary_find(&table->columns[1].dictionary, "gone", 4) == AG_NO_CODE);
	ag_table_drop_column(table, 1);
	AG_CHECK(table->columns[1].values == NULL);
	ag_table_free(table);
	host_close(&host);
	rows_close(&rows);
}

static void
test_empty(void)
{
	Rows rows;
	Host host;
	AgTable *table;
	int64_t n_left_out;

	rows_open(&rows, 3);
	rows_column(&rows, "y", AG_TYPE_TEXT, AG_ROLE_LABEL);
	rows_column(&rows, "x", AG_TYPE_FLOAT64, AG_ROLE_FEATURE);
	for (int r = 0; r < 3; r++)
		*rows_at(&rows, r, 0) = value_null();
	host_open(&host, 2);
	AG_REQUIRE(rows_table(&rows, 0, 2, &host, &table, &n_left_out) == AG_OK);
	AG_CHECK_EQ(table->n_rows, 0);
	AG_CHECK_EQ(n_left_out, 3);
	ag_table_free(table);
	rows.n_rows = 0;
	AG_REQUIRE(rows_table(&rows, 0, 2, &host, &table, &n_left_out) == AG_OK);
	AG_CHECK_EQ(table->n_rows, 0);
	AG_CHECK_EQ(n_left_out, 0);
	AG_CHECK(ag_table_finish(&host.ctx, table, &n_left_out) == AG_ERR_INTERNAL);
	ag_table_free(table);
	ag_table_free(NULL);
	host_close(&host);
	rows_close(&rows);
}

/* Many levels, long ones, and all rows equal. */
static void
test_dictionary(void)
{
	AgMem mem;
	AgDictionary d = {0}, copy;
	static char big[70000];
	uint32_t code;
	uint32_t *new_codes;

	ag_mem_init(&mem, INT64_MAX);
	AG_REQUIRE(ag_dictionary_init(&d, &mem));
	for (int round = 0; round < 2; round++)
		for (uint32_t i = 0; i < 20000; i++)
		{
			char text[64];
			int n = snprintf(text, sizeof text, "%u%.*s", i, (int) (i % 23),
							 "abcdefghijklmnopqrstuvwxyz");

			AG_REQUIRE(ag_dictionary_add(&d, &mem, text, (uint32_t) n, &code) && code == i);
			d.counts[code]++;
		}
	memset(big, 'q', sizeof big);
	AG_REQUIRE(ag_dictionary_add(&d, &mem, big, sizeof big, &code) && code == 20000);
	d.counts[code] = 5;
	AG_REQUIRE(ag_dictionary_add(&d, &mem, "\0", 1, &code) && code == 20001);
	AG_REQUIRE(ag_dictionary_add(&d, &mem, "", 0, &code) && code == 20002);
	new_codes = malloc(20003 * sizeof *new_codes);
	AG_REQUIRE(ag_dictionary_canonicalise(&d, &mem, new_codes));
	AG_CHECK_EQ(d.n_levels, 20001); /* two had no row */
	AG_CHECK_EQ(new_codes[20000], 0);
	AG_CHECK_EQ(new_codes[20001], AG_NO_CODE);
	AG_CHECK_EQ(new_codes[0], 1);
	AG_CHECK_EQ(ag_dictionary_find(&d, big, sizeof big), 0);
	AG_CHECK(ag_dictionary_find(&d, "", 0) == AG_NO_CODE);
	for (uint32_t k = 2; k < d.n_levels; k++)
	{
		uint32_t n = d.n_bytes[k - 1] < d.n_bytes[k] ? d.n_bytes[k - 1] : d.n_bytes[k];
		int order = memcmp(d.texts[k - 1], d.texts[k], n);

		AG_CHECK(order < 0 || (order == 0 && d.n_bytes[k - 1] < d.n_bytes[k]));
	}
	AG_REQUIRE(ag_dictionary_copy(&d, 100, &copy, &mem));
	AG_CHECK_EQ(copy.n_levels, 100);
	AG_CHECK_EQ(copy.counts[0], 5);
	AG_CHECK_EQ(ag_dictionary_find(&copy, "0", 1), 1);
	ag_dictionary_free(&copy, &mem);
	ag_dictionary_free(&d, &mem);
	free(new_codes);
	AG_CHECK_EQ(mem.used_bytes, 0);
}

/* Out of memory at every single allocation: an error with its text, and nothing lost. */
static void
test_out_of_memory(void)
{
	Rows rows;
	int64_t n_failed = 0;

	rows_make_mixed(&rows, 400);
	for (int64_t k = 0;; k++)
	{
		Host host;
		AgTable *table = NULL;
		int64_t n_left_out;
		AgStatus status;

		host_open(&host, 1 + (int) (k % 2));
		host.mem.fail_after = k;
		status = rows_table(&rows, 0, 100, &host, &table, &n_left_out);
		host.mem.fail_after = -1;
		ag_table_free(table);
		if (status == AG_OK)
		{
			host_close(&host);
			break;
		}
		n_failed++;
		AG_CHECK_EQ(status, AG_ERR_MEMORY);
		AG_CHECK_EQ(host.error.status, AG_ERR_MEMORY);
		AG_CHECK(strncmp(host.error.message, "out of memory", 13) == 0 &&
				 host.error.hint[0] != '\0');
		host_close(&host);
	}
	AG_CHECK(n_failed > 50);
	rows_close(&rows);
}

static void
test_budget(void)
{
	Rows rows;
	Host host;
	AgTable *table;

	rows_make_mixed(&rows, 3000);
	host_open(&host, 1);
	host.mem.limit_bytes = 200000;
	AG_CHECK_EQ(rows_append(&rows, 0, 100, &host, &table), AG_ERR_MEMORY);
	AG_CHECK(strstr(host.error.message, "rows") != NULL);
	ag_table_free(table);
	host_close(&host);
	host_open(&host, 1);
	host.cancel = true;
	AG_REQUIRE(rows_append(&rows, 0, 100, &host, &table) == AG_OK);
	{
		int64_t n_left_out;

		AG_CHECK_EQ(ag_table_finish(&host.ctx, table, &n_left_out), AG_ERR_CANCELLED);
	}
	ag_table_free(table);
	host_close(&host);
	rows_close(&rows);
}

int
main(void)
{
	test_order();
	test_content();
	test_left_out_levels();
	test_empty();
	test_dictionary();
	test_out_of_memory();
	test_budget();
	return ag_unit_done("table");
}
