/*
 * combine_fixed.c - combinations of categories as columns of a table.
 */
#include "engine/model/combine_fixed.h"

#include <string.h>

#include "engine/model/combine_private.h"

static AgStatus
add_combination(const AgContext *ctx, const AgCombiner *combiner, int number, AgFixedTable *fixed)
{
	const AgCombination *combination = combiner->used[number];
	AgBinParams params = {AG_MAX_BIN, 1, 0};
	/* however few they are, statistics take their place: what is unseen then is as if it were missing */
	AgBinSource source = {.n_levels = combination->n_codes > AG_MAX_BIN ? combination->n_codes
																		: AG_MAX_BIN + 1};
	int f = fixed->n_features + number;

	AG_TRY(ag_get(ctx, (size_t) fixed->bins->n_rows, sizeof(uint32_t), &fixed->codes[f]));
	ag_combination_codes(combiner, combination, fixed->codes[f]);
	source.codes = fixed->codes[f];
	return ag_bins_set_feature(ctx, fixed->bins, f, &source, &params);
}

AgStatus
ag_fixed_table_create(const AgContext *ctx, const AgCombiner *combiner,
					  const uint32_t *const *codes, AgFixedTable *fixed)
{
	const AgBins *bins = combiner->data->bins;
	int n = combiner->n_used < AG_FIXED_MOST ? combiner->n_used : AG_FIXED_MOST;

	memset(fixed, 0, sizeof *fixed);
	fixed->n_features = bins->n_features;
	AG_TRY(
		ag_get_zeroed(ctx, (size_t) (bins->n_features + n), sizeof *fixed->codes, &fixed->codes));
	AG_TRY(ag_bins_create(ctx, bins->n_rows, bins->n_features + n, &fixed->bins));
	for (int f = 0; f < bins->n_features; f++)
	{
		AG_TRY(ag_bins_copy_feature(ctx, fixed->bins, f, bins, f));
		fixed->codes[f] = codes != NULL ? (uint32_t *) codes[f] : NULL;
	}
	for (int u = 0; u < n; u++)
		AG_TRY(add_combination(ctx, combiner, u, fixed));
	return AG_OK;
}

void
ag_fixed_table_free(const AgContext *ctx, AgFixedTable *fixed)
{
	for (int f = fixed->n_features; fixed->bins != NULL && f < fixed->bins->n_features; f++)
		ag_mem_free(ctx->mem, fixed->codes[f]);
	ag_mem_free(ctx->mem, fixed->codes);
	ag_bins_free(fixed->bins);
	memset(fixed, 0, sizeof *fixed);
}

int64_t
ag_fixed_table_memory(const AgTrainData *data)
{
	return data->bins->n_rows * (data->bins->n_features + INT64_C(5) * AG_FIXED_MOST) + 65536;
}
