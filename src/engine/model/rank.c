#include <string.h>

#include "engine/model/rank.h"

/*
 * The bits of a double as an unsigned number of the same order: negative numbers
 * count downwards, so all their bits are turned; positive ones get the top bit.
 */
static uint64_t
ordered_key(double value)
{
	uint64_t bits;

	if (value != value)
		return UINT64_MAX;
	value += 0.0; /* -0.0 becomes 0.0 */
	memcpy(&bits, &value, sizeof bits);
	return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

/*
 * Radix sort by bytes, least significant first: stable, so rows stay ascending
 * among ties, and linear. Bytes that all keys share are skipped. Returns which of
 * the two buffers holds the result.
 */
static AgRanked *
radix_sort(AgRanked *items, AgRanked *spare, int64_t n)
{
	int64_t counts[8][256];

	memset(counts, 0, sizeof counts);
	for (int64_t i = 0; i < n; i++)
		for (int b = 0; b < 8; b++)
			counts[b][items[i].key >> (8 * b) & 0xFF]++;
	for (int b = 0; b < 8; b++)
	{
		int64_t at = 0;
		AgRanked *swap;

		if (counts[b][items[0].key >> (8 * b) & 0xFF] == n)
			continue;
		for (int v = 0; v < 256; v++)
		{
			int64_t count = counts[b][v];

			counts[b][v] = at;
			at += count;
		}
		for (int64_t i = 0; i < n; i++)
			spare[counts[b][items[i].key >> (8 * b) & 0xFF]++] = items[i];
		swap = items;
		items = spare;
		spare = swap;
	}
	return items;
}

AgStatus
ag_rank_rows(const AgContext *ctx, int64_t n_rows, const double *values, int64_t stride,
			 AgRanked **ranked, bool *has_nan)
{
	AgRanked *items, *spare;
	AgStatus status;

	*ranked = NULL;
	*has_nan = false;
	AG_TRY(ag_get(ctx, (size_t) n_rows, sizeof(AgRanked), &items));
	status = ag_get(ctx, (size_t) n_rows, sizeof(AgRanked), &spare);
	if (status != AG_OK)
	{
		ag_mem_free(ctx->mem, items);
		return status;
	}
	for (int64_t i = 0; i < n_rows; i++)
	{
		items[i].key = ordered_key(values[i * stride]);
		items[i].row = i;
		*has_nan |= items[i].key == UINT64_MAX;
	}
	*ranked = n_rows > 0 ? radix_sort(items, spare, n_rows) : items;
	ag_mem_free(ctx->mem, *ranked == items ? spare : items);
	return AG_OK;
}
