/*
 * bins_private.h - what the files of the binner share (private to the data room).
 */
#ifndef AG_BINS_PRIVATE_H
#define AG_BINS_PRIVATE_H

#include <pthread.h>

#include "engine/data/bins.h"
#include "engine/data/order.h"

/* A matrix's copies on devices: bins_device.c. */
typedef struct AgBinsCopies
{
	pthread_mutex_t lock;
	struct AgBinsCopy *first;
} AgBinsCopies;

/*
 * Chooses at most max_bins - 1 ascending cuts from n values, none of them NaN; keys is their order-preserving form
 * (ag_order_key), sorted. cuts has room for max_bins - 1. Returns the number of cuts.
 */
int ag_cuts_choose(const uint64_t *keys, int64_t n, int max_bins, int min_data_in_bin,
				   double *cuts);

/* Chooses a feature's cuts and centers by that, in place of those it has. */
AgStatus ag_bins_set_cuts(const AgContext *ctx, const uint64_t *sorted, int64_t n_keys,
						  int max_bins, int min_data_in_bin, AgBinFeature *feature);

/* Cuts as the assignment wants them: padded with +inf to 16 groups of 16, and each group's last. */
typedef struct AgCutTable
{
	_Alignas(64) double cuts[256];
	_Alignas(64) double pivots[16];
	int n_groups; /* groups that hold a cut, at least 1 */
} AgCutTable;

void ag_cut_table_init(AgCutTable *table, const double *cuts, int n_cuts);

/* Bins of n values: 0 for NaN, else 1 + the number of cuts below the value. Every variant gives the same bytes. */
typedef void (*AgBinAssign)(const AgCutTable *table, const double *values, int64_t n,
							uint8_t *bins);

/* The fastest variant that this machine runs. */
AgBinAssign ag_bin_assign_best(void);

/* All variants that this machine runs, portable first, for tests; returns how many (at most 3). */
int ag_bin_assign_variants(AgBinAssign *variants);

#endif
