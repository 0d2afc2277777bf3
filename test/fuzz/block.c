/*
 * block.c - fuzzes blocks of rows. The first byte says how many columns of which types the schema has.
 */
#include <stdlib.h>
#include <string.h>

#include "wire/block.h"

#define MAX_COLUMNS 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t
offset_at(const void *offsets, uint32_t r)
{
	uint32_t at;

	memcpy(&at, (const uint8_t *) offsets + (size_t) r * 4, 4);
	return at;
}

/* Reads every byte that a column's view gives access to. */
static unsigned
touch(const AgBlockView *view, int c, AgType type)
{
	unsigned sum = 0;
	size_t n = view->n_rows * ag_type_width(type);

	for (uint32_t i = 0; view->nulls[c] != NULL && i < (view->n_rows + 7) / 8; i++)
		sum += view->nulls[c][i];
	for (size_t i = 0; i < n; i++)
		sum += ((const uint8_t *) view->values[c])[i];
	for (uint32_t r = 0; type == AG_TYPE_TEXT && r < view->n_rows; r++)
	{
		uint32_t begin = offset_at(view->values[c], r), end = offset_at(view->values[c], r + 1);

		if (end < begin || end - begin > AG_TEXT_MAX)
			abort();
		for (uint32_t i = begin; i < end; i++)
			sum += (uint8_t) view->texts[c][i];
	}
	return sum;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AgColumn columns[MAX_COLUMNS];
	AgSchema schema = {0, columns};
	const void *values[MAX_COLUMNS];
	const uint8_t *nulls[MAX_COLUMNS];
	const char *texts[MAX_COLUMNS];
	AgBlockView view = {0, values, nulls, texts};
	AgError err;
	volatile unsigned sum = 0;

	if (size == 0)
		return 0;
	schema.n_columns = 1 + data[0] % MAX_COLUMNS;
	for (int c = 0; c < schema.n_columns; c++)
	{
		columns[c].name = columns[c].sql_type = "c";
		columns[c].role = AG_ROLE_FEATURE;
		columns[c].type = (AgType) (1 + (c + data[0] / MAX_COLUMNS) % AG_TYPE_TEXT);
	}
	ag_error_init(&err);
	if (ag_block_read(data + 1, size - 1, &schema, &view, &err) == AG_OK)
		for (int c = 0; c < schema.n_columns; c++)
			sum += touch(&view, c, columns[c].type);
	else if (err.status != AG_ERR_PROTOCOL)
		abort();
	(void) sum;
	return 0;
}
