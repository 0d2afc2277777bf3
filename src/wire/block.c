/*
 * block.c - rows in columns, on their way from the backend to the trainer.
 *
 * The builder is on the path of every value of every row: one store a value, no allocation while a
 * block fills, but for text. Room is taken once, for as many rows as fit AG_BLOCK_BYTES, so a table of
 * 1,664 columns needs no more memory than one of three.
 */
#include "wire/block.h"

#include <limits.h>
#include <string.h>

typedef struct BlockColumn
{
	AgType type;
	uint32_t width;
	bool has_nulls;
	uint8_t *values;   /* fixed width: [max_rows] values; TEXT: [max_rows + 1] uint32 offsets */
	uint8_t *nulls;    /* (max_rows + 7) / 8 bytes, zero between blocks */
	char *text;        /* TEXT: grows */
	size_t text_bytes; /* its capacity */
} BlockColumn;

struct AgBlockBuilder
{
	AgMem *mem;
	int n_columns;
	uint32_t n_rows;
	uint32_t max_rows;
	size_t row_bytes;  /* of a row without its texts' bytes */
	size_t text_bytes; /* bytes of text in the block */
	BlockColumn *columns;
};

AgStatus
ag_block_builder_create(AgMem *mem, const AgSchema *schema, AgBlockBuilder **builder, AgError *err)
{
	AgBlockBuilder *b = ag_mem_zalloc(mem, 1, sizeof *b);
	size_t wanted = 0;

	*builder = NULL;
	if (b == NULL)
		return ag_mem_error(mem, sizeof *b, err);
	b->mem = mem;
	b->columns = ag_mem_zalloc(mem, (size_t) schema->n_columns, sizeof *b->columns);
	if (b->columns == NULL)
	{
		ag_mem_free(mem, b);
		return ag_mem_error(mem, (size_t) schema->n_columns * sizeof *b->columns, err);
	}
	b->n_columns = schema->n_columns;
	for (int c = 0; c < b->n_columns; c++)
	{
		size_t width = ag_type_width(schema->columns[c].type);

		b->columns[c].type = schema->columns[c].type;
		b->columns[c].width = (uint32_t) (width > 0 ? width : sizeof(uint32_t));
		b->row_bytes += b->columns[c].width;
	}
	b->max_rows = b->row_bytes > 0 ? (uint32_t) (AG_BLOCK_BYTES / b->row_bytes) : AG_BLOCK_ROWS;
	if (b->max_rows > AG_BLOCK_ROWS)
		b->max_rows = AG_BLOCK_ROWS;
	if (b->max_rows < 1)
		b->max_rows = 1;
	for (int c = 0; c < b->n_columns; c++)
	{
		BlockColumn *column = &b->columns[c];

		wanted = ((size_t) b->max_rows + 1) * column->width;
		column->values = ag_mem_zalloc(mem, (size_t) b->max_rows + 1, column->width);
		column->nulls = ag_mem_zalloc(mem, (b->max_rows + 7) / 8, 1);
		if (column->values == NULL || column->nulls == NULL)
		{
			ag_block_builder_free(b);
			return ag_mem_error(mem, wanted, err);
		}
	}
	*builder = b;
	return AG_OK;
}

void
ag_block_builder_free(AgBlockBuilder *builder)
{
	if (builder == NULL)
		return;
	for (int c = 0; c < builder->n_columns; c++)
	{
		ag_mem_free(builder->mem, builder->columns[c].values);
		ag_mem_free(builder->mem, builder->columns[c].nulls);
		ag_mem_free(builder->mem, builder->columns[c].text);
	}
	ag_mem_free(builder->mem, builder->columns);
	ag_mem_free(builder->mem, builder);
}

/*
 * Where a column's text of this row begins is what the row before left, so a row that failed half-way
 * leaves nothing behind.
 */
static AgStatus
text_add(AgBlockBuilder *builder, BlockColumn *column, const AgValue *value, AgError *err)
{
	uint32_t *offsets = (uint32_t *) column->values;
	uint32_t begin = offsets[builder->n_rows];
	size_t n = value->is_null ? 0 : value->v.s.n_bytes;

	if (n > AG_TEXT_MAX)
		return ag_error_set(err, AG_ERR_INTERNAL, "text of %zu bytes was not clipped", n);
	if (begin + n > column->text_bytes)
	{
		size_t wanted = column->text_bytes * 2;
		char *text;

		if (wanted < begin + n)
			wanted = begin + n;
		if (wanted < 1024)
			wanted = 1024;
		text = ag_mem_realloc(builder->mem, column->text, wanted, 1);
		if (text == NULL)
			return ag_mem_error(builder->mem, wanted, err);
		column->text = text;
		column->text_bytes = wanted;
	}
	if (n > 0)
		memcpy(column->text + begin, value->v.s.text, n);
	offsets[builder->n_rows + 1] = begin + (uint32_t) n;
	return AG_OK;
}

AgStatus
ag_block_builder_add(AgBlockBuilder *builder, const AgValue *values, AgError *err)
{
	uint32_t row = builder->n_rows;
	size_t text_bytes = 0;

	if (row >= builder->max_rows)
		return ag_error_set(err, AG_ERR_INTERNAL, "block of rows is full");
	for (int c = 0; c < builder->n_columns; c++)
	{
		BlockColumn *column = &builder->columns[c];
		const AgValue *value = &values[c];
		uint8_t bit = (uint8_t) (1u << (row & 7));

		if (value->is_null)
		{
			column->nulls[row >> 3] |= bit;
			column->has_nulls = true;
		}
		else
			column->nulls[row >> 3] &= (uint8_t) ~bit;
		switch (column->type)
		{
			case AG_TYPE_BOOL:
				column->values[row] = value->is_null ? 0 : value->v.b;
				break;
			case AG_TYPE_INT32:
			case AG_TYPE_DATE:
				((int32_t *) column->values)[row] = value->is_null ? 0 : value->v.i32;
				break;
			case AG_TYPE_INT64:
			case AG_TYPE_TIMESTAMP:
			case AG_TYPE_TIME:
				((int64_t *) column->values)[row] = value->is_null ? 0 : value->v.i64;
				break;
			case AG_TYPE_FLOAT32:
				((float *) column->values)[row] = value->is_null ? 0 : value->v.f32;
				break;
			case AG_TYPE_FLOAT64:
			case AG_TYPE_INTERVAL:
				((double *) column->values)[row] = value->is_null ? 0 : value->v.f64;
				break;
			case AG_TYPE_TEXT:
				AG_TRY(text_add(builder, column, value, err));
				text_bytes += value->is_null ? 0 : value->v.s.n_bytes;
				break;
		}
	}
	builder->text_bytes += text_bytes;
	builder->n_rows = row + 1;
	return AG_OK;
}

bool
ag_block_builder_full(const AgBlockBuilder *builder)
{
	return builder->n_rows >= builder->max_rows ||
		   builder->n_rows * builder->row_bytes + builder->text_bytes >= AG_BLOCK_BYTES;
}

uint32_t
ag_block_builder_rows(const AgBlockBuilder *builder)
{
	return builder->n_rows;
}

AgStatus
ag_block_builder_take(AgBlockBuilder *builder, AgWriter *payload, AgError *err)
{
	uint32_t n_rows = builder->n_rows;
	uint32_t null_bytes = (n_rows + 7) / 8;
	static const uint8_t zeros[3] = {0, 0, 0};

	if (n_rows == 0)
		return AG_OK;
	ag_write_u32(payload, n_rows);
	ag_write_u32(payload, (uint32_t) builder->n_columns);
	for (int c = 0; c < builder->n_columns; c++)
	{
		BlockColumn *column = &builder->columns[c];
		const uint32_t *offsets = (const uint32_t *) column->values;
		bool is_text = column->type == AG_TYPE_TEXT;
		uint32_t fixed_bytes = (n_rows + (is_text ? 1u : 0u)) * column->width;
		uint32_t text_bytes = is_text ? offsets[n_rows] : 0;

		ag_write_u8(payload, column->has_nulls);
		ag_write_bytes(payload, zeros, sizeof zeros);
		ag_write_u32(payload, fixed_bytes + text_bytes);
		if (column->has_nulls)
			ag_write_bytes(payload, column->nulls, null_bytes);
		ag_write_bytes(payload, column->values, fixed_bytes);
		if (text_bytes > 0)
			ag_write_bytes(payload, column->text, text_bytes);
		column->has_nulls = false;
		memset(column->nulls, 0, null_bytes);
	}
	builder->n_rows = 0;
	builder->text_bytes = 0;
	if (payload->failed)
		return ag_mem_error(payload->mem, payload->size, err);
	return AG_OK;
}

/* Offsets ascend from 0 to the bytes there are. */
static bool
text_offsets_valid(const uint8_t *offsets, uint32_t n_rows, uint32_t text_bytes)
{
	uint32_t before = 0, at;

	memcpy(&at, offsets, sizeof at);
	if (at != 0)
		return false;
	for (uint32_t r = 1; r <= n_rows; r++)
	{
		memcpy(&at, offsets + (size_t) r * sizeof at, sizeof at);
		if (at < before || at > text_bytes || at - before > AG_TEXT_MAX)
			return false;
		before = at;
	}
	return before == text_bytes;
}

static bool
bools_valid(const uint8_t *values, uint32_t n_rows)
{
	uint8_t bits = 0;

	for (uint32_t r = 0; r < n_rows; r++)
		bits |= values[r];
	return bits <= 1;
}

/* One column of a view; false when its bytes are no column of that type. */
static bool
column_read(AgReader *in, AgType type, uint32_t n_rows, AgBlockView *view, int c)
{
	uint8_t has_nulls = ag_read_u8(in);
	const uint8_t *zeros = ag_read_bytes(in, 3);
	uint32_t n_bytes = ag_read_u32(in);
	uint32_t offset_bytes = (n_rows + 1) * (uint32_t) sizeof(uint32_t);
	const uint8_t *bytes;

	if (in->failed || has_nulls > 1 || (zeros[0] | zeros[1] | zeros[2]) != 0)
		return false;
	view->nulls[c] = has_nulls ? ag_read_bytes(in, (n_rows + 7) / 8) : NULL;
	bytes = ag_read_bytes(in, n_bytes);
	if (in->failed || bytes == NULL)
		return false;
	view->values[c] = bytes;
	view->texts[c] = NULL;
	if (type != AG_TYPE_TEXT)
		return n_bytes == n_rows * ag_type_width(type) &&
			   (type != AG_TYPE_BOOL || bools_valid(bytes, n_rows));
	if (n_bytes < offset_bytes)
		return false;
	view->texts[c] = (const char *) bytes + offset_bytes;
	return text_offsets_valid(bytes, n_rows, n_bytes - offset_bytes);
}

AgStatus
ag_block_read(const void *payload, size_t n_bytes, const AgSchema *schema, AgBlockView *view,
			  AgError *err)
{
	AgReader in;
	uint32_t n_columns;
	bool valid;

	ag_reader_init(&in, payload, n_bytes);
	view->n_rows = ag_read_u32(&in);
	n_columns = ag_read_u32(&in);
	valid = !in.failed && view->n_rows >= 1 && view->n_rows <= AG_BLOCK_ROWS &&
			n_columns == (uint32_t) schema->n_columns;
	for (int c = 0; valid && c < schema->n_columns; c++)
		valid = column_read(&in, schema->columns[c].type, view->n_rows, view, c);
	if (!valid || !ag_reader_done(&in))
		return ag_error_set(err, AG_ERR_PROTOCOL,
							"malformed block of rows between server and trainer");
	return AG_OK;
}
