/*
 * goss.c - gradient-based one-side sampling (Ke et al. 2017, "LightGBM", section 3).
 *
 * The rows of the largest |g| h are found by counting digits of its bits, which order as the numbers do: whole counts,
 * so any number of threads finds the same. Rows alike at the threshold, to the first 22 bits, are all in.
 */
#include "engine/model/goss.h"

#include <math.h>
#include <string.h>

#include "engine/base/rng.h"
#include "engine/base/threads.h"

#define AG_GOSS_CHUNK 16384
#define AG_GOSS_DIGITS 2048

typedef struct AgGossTask
{
	const AgContext *ctx;
	const AgLoss *loss;
	uint32_t prefix; /* the digits that are known, in place */
	uint32_t known;  /* which bits those are */
	int shift;
	_Atomic uint32_t counts[AG_GOSS_DIGITS];
} AgGossTask;

static uint32_t
merit_of(AgGradient gradient)
{
	float merit = fabsf(gradient.g) * gradient.h;
	uint32_t bits;

	memcpy(&bits, &merit, sizeof bits);
	return bits;
}

static void
count_task(void *arg, int64_t begin, int64_t end, int thread)
{
	AgGossTask *task = arg;
	const uint32_t *rows = task->loss->data->train_rows;
	uint32_t counts[AG_GOSS_DIGITS] = {0};

	(void) thread;
	if (ag_cancelled(task->ctx))
		return;
	for (int64_t i = begin; i < end; i++)
	{
		uint32_t merit = merit_of(task->loss->gradients[rows[i]]);

		if ((merit & task->known) == task->prefix)
			counts[merit >> task->shift & (AG_GOSS_DIGITS - 1)]++;
	}
	for (int d = 0; d < AG_GOSS_DIGITS; d++)
		if (counts[d] > 0)
			atomic_fetch_add_explicit(task->counts + d, counts[d], memory_order_relaxed);
}

/* The merit, its last bits cleared, of the row that comes k-th by merit, and how many have at least it. */
static AgStatus
find_threshold(const AgContext *ctx, const AgLoss *loss, int64_t k, uint32_t *threshold,
			   int64_t *n_top)
{
	static const int shifts[] = {21, 10};
	AgGossTask task = {.ctx = ctx, .loss = loss};
	int64_t above = 0; /* rows of greater digits so far */

	for (int s = 0; s < 2; s++)
	{
		int digit = AG_GOSS_DIGITS - 1;

		task.shift = shifts[s];
		for (int d = 0; d < AG_GOSS_DIGITS; d++)
			atomic_init(task.counts + d, 0);
		ag_pool_run(ctx->pool, loss->data->n_train, AG_GOSS_CHUNK, count_task, &task);
		AG_TRY(ag_check_cancel(ctx));
		while (digit > 0 && above + atomic_load(task.counts + digit) < k)
			above += atomic_load(task.counts + digit--);
		task.prefix |= (uint32_t) digit << shifts[s];
		task.known = UINT32_MAX << shifts[s];
		*n_top = above + atomic_load(task.counts + digit);
	}
	*threshold = task.prefix;
	return AG_OK;
}

bool
ag_goss_is_used(const AgBoostParams *params)
{
	return params->samples_by_gradient && params->top_rate + params->other_rate < 1.0;
}

bool
ag_goss_is_due(const AgBoostParams *params, int round)
{
	return ag_goss_is_used(params) && (double) (round - 1) * params->learning_rate >= 1.0;
}

AgStatus
ag_goss_draw(const AgContext *ctx, const AgLoss *loss, const AgBoostParams *params, uint64_t key,
			 AgGradientRange *range, uint32_t *bag, uint32_t *rest, int64_t *n_bag)
{
	const AgTrainData *data = loss->data;
	double n = (double) data->n_train, chance = 1.0;
	int64_t n_top, n_in = 0, k = (int64_t) (n * params->top_rate);
	AgGradientRange drawn = {0.0f, 0.0f};
	uint32_t threshold;

	AG_TRY(find_threshold(ctx, loss, k < 1 ? 1 : k, &threshold, &n_top));
	if (n_top < data->n_train && n * params->other_rate < n - (double) n_top)
		chance = n * params->other_rate / (n - (double) n_top);
	/* Without branches: who is drawn can't be foretold. */
	for (int64_t i = 0; i < data->n_train; i++)
	{
		uint32_t row = data->train_rows[i];
		AgGradient gradient = loss->gradients[row];
		bool is_top = merit_of(gradient) >= threshold;
		bool is_in = is_top | (ag_random_unit(key, row) < chance);
		double factor = is_top ? 1.0 : 1.0 / chance;

		gradient.g = (float) ((double) gradient.g * factor);
		gradient.h = (float) ((double) gradient.h * factor);
		loss->gradients[row] = gradient;
		bag[n_in] = row;
		rest[i - n_in] = row;
		n_in += is_in;
		drawn.max_g = is_in && fabsf(gradient.g) > drawn.max_g ? fabsf(gradient.g) : drawn.max_g;
		drawn.max_h = is_in && gradient.h > drawn.max_h ? gradient.h : drawn.max_h;
	}
	*n_bag = n_in;
	*range = drawn;
	return ag_check_cancel(ctx);
}
