/*
 * rank.h - rows in the order of a value, with ties that can be told exactly.
 */
#ifndef AG_RANK_H
#define AG_RANK_H

#include "engine/base/context.h"

/* A row and its value as an unsigned key: keys are ordered, and equal, as the values are. */
typedef struct AgRanked
{
	uint64_t key;
	int64_t row;
} AgRanked;

/*
 * The rows in ascending order of values[row * stride], equal ones by row. -0.0 equals 0.0. NaN has no place:
 * *has_nan says that there was one, and then it lies behind everything. *ranked[n_rows] is the caller's
 * (ag_mem_free).
 */
AgStatus ag_rank_rows(const AgContext *ctx, int64_t n_rows, const double *values, int64_t stride,
					  AgRanked **ranked, bool *has_nan);

/* The first place behind `from` whose key differs: ranked[from .. end) are ties. */
static inline int64_t
ag_rank_ties_end(const AgRanked *ranked, int64_t n_rows, int64_t from)
{
	int64_t at = from + 1;

	while (at < n_rows && ranked[at].key == ranked[from].key)
		at++;
	return at;
}

#endif
