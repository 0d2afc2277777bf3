/*
 * split_scan.h - scoring all cuts of a numeric feature.
 */
#ifndef AG_SPLIT_SCAN_H
#define AG_SPLIT_SCAN_H

#include "engine/model/split.h"

/* What a scan over a feature's cuts found. */
typedef struct AgScan
{
	double score; /* of the best cut that is surely allowed; -inf: none */
	double maybe; /* the best score among cuts whose rows must be counted first; -inf: none */
	int bin;
	bool missing_left;
	int64_t left_g, left_h;
} AgScan;

/*
 * Cuts first..last, each with missing rows on the right and, where there are any, on the left. The
 * cut behind the last bin is missing against the rest.
 */
void ag_scan_cuts(const AgSplitRules *rules, const AgSplitNode *node, const AgSplitSums *sums,
				  int n_bins, bool has_missing, int first, int last, AgScan *scan);

/*
 * The same for all cuts of a narrow histogram's cells[n_bins + 1] under plain rules, eight at a time. Of sums only the
 * rows are read, when they are counted. What scores below floor may be passed over: where the best of all does, *scan
 * may hold anything below floor.
 */
void ag_scan_packed(const AgSplitRules *rules, const AgSplitNode *node, const int64_t *cells,
					const AgSplitSums *sums, int n_bins, double floor, AgScan *scan);

#endif
