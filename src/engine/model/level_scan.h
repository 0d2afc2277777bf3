/*
 * level_scan.h - what one leaf adds to the merit of every cut of a feature, when all leaves get the same cut.
 */
#ifndef AG_LEVEL_SCAN_H
#define AG_LEVEL_SCAN_H

#include "engine/data/bins.h"
#include "engine/model/lanes.h"
#include "engine/model/level_maths.h"

/*
 * For each side of each cut, with the sums G and H and the value v = G / (H + l2): adds G v to nums, and v^2 H to dens.
 * Cut b of a number: missing and bins 1..b to the left; cut n_bins: missing against the rest. Of a category: bin b
 * against the rest. g[n_bins + 1] and h are the leaf's sums by bin. The same bytes at every level.
 */
void ag_level_add(AgCpuLevel level, const AgBinFeature *feature, const int64_t *g, const int64_t *h,
				  double l2, double *nums, double *dens);

/*
 * The same where values are of some rows and judged on others: sums[n_bins + 1] of G and H of the body, then of the tail. Adds
 * v times the tail's G, and v^2 times the tail's H, with v of the body.
 */
void ag_level_add_tail(AgCpuLevel level, const AgBinFeature *feature, const int64_t (*sums)[4],
					   double l2, double *nums, double *dens);

#endif
