/*
 * sparse.h - rows of which few numbers aren't zero.
 */
#ifndef AG_SPARSE_H
#define AG_SPARSE_H

#include <stdint.h>

/* A term and its weight. */
typedef struct AgTerm
{
	uint32_t term;
	float weight;
} AgTerm;

/* The terms of row i, ascending, begin at first[i]. */
typedef struct AgTermRows
{
	int64_t n_rows;
	const uint64_t *first; /* [n_rows + 1] */
	const AgTerm *terms;
} AgTermRows;

#endif
