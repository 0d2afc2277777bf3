/*
 * split_lanes.h - what the scans of packed sums share: split_lanes.c and split_avx2.c alone.
 */
#ifndef AG_SPLIT_LANES_H
#define AG_SPLIT_LANES_H

#include "engine/model/split_scan.h"

/* How far below a threshold rounding may put a product that is not below it, and much more. */
#define AG_SCAN_SLACK 0x1.0p-40
/* The same in single precision, and the largest penalty that products of it don't overflow with. */
#define AG_FILTER_SLACK 0x1.0p-18
#define AG_FILTER_L2_MAX 1e9
#define AG_SCAN_CUTS 16 /* that are looked at together */

/* The best cut of each lane. */
typedef struct AgLaneBest
{
	double score[AG_LANES], maybe[AG_LANES], at[AG_LANES];
	int64_t left[AG_LANES]; /* sums of the left side, packed */
} AgLaneBest;

/* What the loop over eight cuts at a time reads. */
typedef struct AgLaneScan
{
	const int64_t *cells; /* of value bins: a cut i lies behind cells[i] */
	const double
		*rows; /* rows before each cut, filled up to whole AG_SCAN_CUTS; NULL: not counted */
	int n_cuts;
	int64_t added;     /* what the left side has beside them: missing rows */
	double added_rows; /* and how many */
	double sum_g, sum_h, l2;
	double least_h; /* of a side that may be allowed */
	double sure_h;  /* of a side that surely has enough rows */
	double least_rows, most_rows;
	double floor;
} AgLaneScan;

#if defined(__x86_64__)
/* Fills *found; false, and nothing is filled, when no cut reaches the floor. */
bool ag_scan_avx2(const AgLaneScan *scan, AgLaneBest *found);
#endif

#endif
