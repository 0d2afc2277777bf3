/*
 * quantise.h - gradients as small integers, and the row lists that trees grow on.
 *
 * A gradient and a hessian become 16 bits each, packed in one word. Rounding is stochastic (Shi et al. 2022, "Quantized training of gradient boosting
 * decision trees"): unbiased sums, with random bits that depend on (key, row) alone.
 */
#ifndef AG_QUANTISE_H
#define AG_QUANTISE_H

#include "engine/base/context.h"
#include "engine/model/objective.h"

#define AG_QUANTUM_MAX 32767 /* the largest absolute quantised gradient, and hessian */

/* Listed rows. Lists are moved about, gradients stay where their row is: reading one beside the row's bins costs nothing. */
typedef struct AgRowList
{
	uint32_t *ids;
	uint32_t *grads; /* [row], for all lists the same: gradient << 16 | hessian: int16 and uint16 */
} AgRowList;

static inline int32_t
ag_packed_g(uint32_t packed)
{
	return (int32_t) packed >> 16;
}

static inline uint32_t
ag_packed_h(uint32_t packed)
{
	return packed & 0xffffu;
}

/* What the integers of one tree mean. */
typedef struct AgQuantum
{
	double g;            /* gradient of one step, in the loss's units; 0 when all gradients are 0 */
	double h;            /* hessian of one step */
	double per_g, per_h; /* steps in a unit of either; 0: all are 0 */
	uint32_t min_h, max_h; /* the least and greatest quantised hessian of a listed row */
	int64_t sum_g, sum_h;  /* over the listed rows */
} AgQuantum;

/*
 * Fills list->ids with rows[n_rows] and list->grads at these rows with their quantised gradients. A hessian above 0 never becomes 0; where
 * hessians are known to be equal they all become 1.
 */
AgStatus ag_quantise(const AgContext *ctx, const AgGradient *gradients, bool has_equal_hessians,
					 const AgGradientRange *range, uint64_t key, const uint32_t *rows,
					 int64_t n_rows, AgRowList *list, AgQuantum *quantum);

#endif
