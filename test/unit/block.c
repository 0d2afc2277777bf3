/* block.c - blocks of rows: every type there and back, limits, damaged bytes, no memory. */
#include "unit/unit.h"

#include "wire/block.h"

static AgColumn all_types[] = {
	{"b", "boolean", AG_TYPE_BOOL, AG_ROLE_FEATURE},
	{"i", "integer", AG_TYPE_INT32, AG_ROLE_FEATURE},
	{"l", "bigint", AG_TYPE_INT64, AG_ROLE_FEATURE},
	{"f", "real", AG_TYPE_FLOAT32, AG_ROLE_FEATURE},
	{"d", "double precision", AG_TYPE_FLOAT64, AG_ROLE_LABEL},
	{"day", "date", AG_TYPE_DATE, AG_ROLE_FEATURE},
	{"ts", "timestamp", AG_TYPE_TIMESTAMP, AG_ROLE_FEATURE},
	{"t", "time", AG_TYPE_TIME, AG_ROLE_FEATURE},
	{"iv", "interval", AG_TYPE_INTERVAL, AG_ROLE_FEATURE},
	{"x", "text", AG_TYPE_TEXT, AG_ROLE_FEATURE},
};
static AgSchema schema = {10, all_types};

static void
row_make(int64_t r, AgValue *values)
{
	static const char *texts[] = {"", "a", "blue", "gr\xc3\xbcn"};

	for (int c = 0; c < schema.n_columns; c++)
	{
		memset(&values[c], 0, sizeof values[c]);
		values[c].is_null = (r * 7 + c) % 5 == 0 && c != 1;
		switch (all_types[c].type)
		{
			case AG_TYPE_BOOL:
				values[c].v.b = r & 1;
				break;
			case AG_TYPE_INT32:
			case AG_TYPE_DATE:
				values[c].v.i32 = (int32_t) (r * 1000003);
				break;
			case AG_TYPE_INT64:
			case AG_TYPE_TIMESTAMP:
			case AG_TYPE_TIME:
				values[c].v.i64 = INT64_MAX - r;
				break;
			case AG_TYPE_FLOAT32:
				values[c].v.f32 = (float) r / 3;
				break;
			case AG_TYPE_FLOAT64:
			case AG_TYPE_INTERVAL:
				values[c].v.f64 = (double) r / 7;
				break;
			case AG_TYPE_TEXT:
				values[c].v.s.text = texts[r & 3];
				values[c].v.s.n_bytes = (uint32_t) strlen(texts[r & 3]);
				break;
		}
	}
}

/* One value of a view as an AgValue. */
static AgValue
view_value(const AgBlockView *view, int c, uint32_t r)
{
	AgValue value;
	const char *bytes = view->values[c];
	uint32_t begin, end;

	memset(&value, 0, sizeof value);
	value.is_null = view->nulls[c] != NULL && (view->nulls[c][r >> 3] >> (r & 7) & 1) != 0;
	if (all_types[c].type == AG_TYPE_TEXT)
	{
		memcpy(&begin, bytes + r * 4, 4);
		memcpy(&end, bytes + r * 4 + 4, 4);
		value.v.s.text = view->texts[c] + begin;
		value.v.s.n_bytes = end - begin;
	}
	else
		memcpy(&value.v, bytes + r * ag_type_width(all_types[c].type),
			   ag_type_width(all_types[c].type));
	return value;
}

static bool
value_equal(int c, const AgValue *a, const AgValue *b)
{
	if (a->is_null || b->is_null)
		return a->is_null == b->is_null;
	if (all_types[c].type == AG_TYPE_TEXT)
		return a->v.s.n_bytes == b->v.s.n_bytes &&
			   memcmp(a->v.s.text, b->v.s.text, a->v.s.n_bytes) == 0;
	return memcmp(&a->v, &b->v, ag_type_width(all_types[c].type)) == 0;
}

static void
block_check(const AgWriter *payload, int64_t first_row, uint32_t n_rows)
{
	const void *values[10];
	const uint8_t *nulls[10];
	const char *texts[10];
	AgBlockView view = {0, values, nulls, texts};
	AgValue expected[10];
	AgError err;
	long wrong = 0;

	ag_error_init(&err);
	if (!AG_CHECK_EQ(ag_block_read(payload->data, payload->size, &schema, &view, &err), AG_OK))
		return;
	AG_CHECK_EQ(view.n_rows, n_rows);
	AG_CHECK(view.nulls[1] == NULL); /* no NULL in it: no bitmap */
	for (uint32_t r = 0; r < view.n_rows; r++)
	{
		row_make(first_row + r, expected);
		for (int c = 0; c < schema.n_columns; c++)
		{
			AgValue got = view_value(&view, c, r);

			wrong += !value_equal(c, &got, &expected[c]);
		}
	}
	AG_CHECK_EQ(wrong, 0);
}

static void
round_trip(AgMem *mem)
{
	AgBlockBuilder *builder;
	AgWriter payload;
	AgValue values[10];
	AgError err;
	int64_t row = 0, first = 0;
	int n_blocks = 0;

	ag_error_init(&err);
	ag_writer_init(&payload, mem);
	AG_REQUIRE(ag_block_builder_create(mem, &schema, &builder, &err) == AG_OK);
	AG_CHECK_EQ(ag_block_builder_take(builder, &payload, &err), AG_OK);
	AG_CHECK_EQ(payload.size, 0); /* no rows, no bytes */
	for (; row < 40000; row++)
	{
		row_make(row, values);
		AG_REQUIRE(ag_block_builder_add(builder, values, &err) == AG_OK);
		if (ag_block_builder_full(builder) || row == 39999)
		{
			AG_CHECK_EQ(ag_block_builder_rows(builder), row + 1 - first);
			AG_CHECK_EQ(ag_block_builder_take(builder, &payload, &err), AG_OK);
			block_check(&payload, first, (uint32_t) (row + 1 - first));
			payload.size = 0;
			first = row + 1;
			n_blocks++;
		}
	}
	AG_CHECK_EQ(n_blocks, 3);
	ag_block_builder_free(builder);
	ag_writer_free(&payload);
	AG_CHECK_EQ(mem->used_bytes, 0);
}

/* Wide rows and long texts: a block ends in time, and the longest row there can be is within a frame. */
static void
limits(AgMem *mem)
{
	AgColumn *columns = calloc(AG_MAX_COLUMNS, sizeof *columns);
	AgValue *values = calloc(AG_MAX_COLUMNS, sizeof *values);
	char *text = calloc(1, AG_TEXT_MAX + 1);
	AgSchema wide = {AG_MAX_COLUMNS, columns};
	AgBlockBuilder *builder;
	AgWriter payload;
	AgError err;
	const void **p = calloc(AG_MAX_COLUMNS, sizeof *p);
	const uint8_t **q = calloc(AG_MAX_COLUMNS, sizeof *q);
	const char **t = calloc(AG_MAX_COLUMNS, sizeof *t);
	AgBlockView view = {0, p, q, t};

	ag_error_init(&err);
	ag_writer_init(&payload, mem);
	for (int c = 0; c < AG_MAX_COLUMNS; c++)
	{
		columns[c].name = "c";
		columns[c].sql_type = "text";
		columns[c].type = AG_TYPE_TEXT;
		values[c].v.s.text = text;
		values[c].v.s.n_bytes = AG_TEXT_MAX;
	}
	AG_REQUIRE(ag_block_builder_create(mem, &wide, &builder, &err) == AG_OK);
	AG_CHECK(mem->used_bytes < (8 << 20));
	AG_CHECK_EQ(ag_block_builder_add(builder, values, &err), AG_OK);
	AG_CHECK(ag_block_builder_full(builder));
	AG_CHECK_EQ(ag_block_builder_take(builder, &payload, &err), AG_OK);
	AG_CHECK(payload.size < AG_FRAME_MAX);
	AG_CHECK_EQ(ag_block_read(payload.data, payload.size, &wide, &view, &err), AG_OK);
	values[3].v.s.n_bytes = AG_TEXT_MAX + 1;
	AG_CHECK_EQ(ag_block_builder_add(builder, values, &err), AG_ERR_INTERNAL);
	AG_CHECK_EQ(ag_block_builder_rows(builder), 0);
	ag_block_builder_free(builder);
	ag_writer_free(&payload);
	free(columns);
	free(values);
	free(text);
	free(p);
	free(q);
	free(t);
}

/* Cut short anywhere, or with a byte changed anywhere: an error or a view in bounds, never more. */
static void
damage(AgMem *mem)
{
	AgBlockBuilder *builder;
	AgWriter payload;
	AgValue row[10];
	AgError err;
	const void *values[10];
	const uint8_t *nulls[10];
	const char *texts[10];
	AgBlockView view = {0, values, nulls, texts};
	AgSchema narrow = {9, all_types};

	ag_error_init(&err);
	ag_writer_init(&payload, mem);
	AG_REQUIRE(ag_block_builder_create(mem, &schema, &builder, &err) == AG_OK);
	for (int r = 0; r < 11; r++)
	{
		row_make(r, row);
		AG_REQUIRE(ag_block_builder_add(builder, row, &err) == AG_OK);
	}
	AG_REQUIRE(ag_block_builder_take(builder, &payload, &err) == AG_OK);
	AG_CHECK_EQ(ag_block_read(payload.data, payload.size, &narrow, &view, &err), AG_ERR_PROTOCOL);
	for (size_t n = 0; n < payload.size; n++)
	{
		/* an exact copy, so that the sanitizer sees a read behind its end */
		uint8_t *copy = malloc(n ? n : 1);

		memcpy(copy, payload.data, n);
		ag_error_init(&err);
		AG_CHECK_EQ(ag_block_read(copy, n, &schema, &view, &err), AG_ERR_PROTOCOL);
		free(copy);
	}
	for (size_t at = 0; at < payload.size; at++)
	{
		uint8_t kept = payload.data[at];
		AgStatus status;

		payload.data[at] ^= 0xff;
		ag_error_init(&err);
		status = ag_block_read(payload.data, payload.size, &schema, &view, &err);
		AG_CHECK(status == AG_OK || status == AG_ERR_PROTOCOL);
		payload.data[at] = kept;
	}
	ag_block_builder_free(builder);
	ag_writer_free(&payload);
}

/* Every allocation may fail; a row that failed is as if it had never been. */
static void
no_memory(void)
{
	for (int64_t after = 0; after < 60; after++)
	{
		AgMem mem;
		AgBlockBuilder *builder;
		AgWriter payload;
		AgValue row[10];
		AgError err;

		ag_mem_init(&mem, INT64_MAX);
		mem.fail_after = after;
		ag_error_init(&err);
		ag_writer_init(&payload, &mem);
		if (ag_block_builder_create(&mem, &schema, &builder, &err) == AG_OK)
		{
			for (int r = 0; r < 3; r++)
			{
				row_make(r, row);
				if (ag_block_builder_add(builder, row, &err) != AG_OK)
				{
					mem.fail_after = -1;
					AG_CHECK_EQ(ag_block_builder_rows(builder), r);
					AG_CHECK_EQ(ag_block_builder_add(builder, row, &err), AG_OK);
				}
			}
			if (ag_block_builder_take(builder, &payload, &err) == AG_OK)
				block_check(&payload, 0, 3);
			ag_block_builder_free(builder);
		}
		else
			AG_CHECK_EQ(err.status, AG_ERR_MEMORY);
		ag_writer_free(&payload);
		AG_CHECK_EQ(mem.used_bytes, 0);
	}
}

int
main(void)
{
	AgMem mem;

	ag_mem_init(&mem, INT64_MAX);
	round_trip(&mem);
	limits(&mem);
	damage(&mem);
	no_memory();
	AG_CHECK_EQ(mem.used_bytes, 0);
	return ag_unit_done("block");
}
