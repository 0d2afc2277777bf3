/*
 * dense_fit.c - fitting the transform of dense.h, and rows through it.
 *
 * Features are fitted side by side, each by one thread in the order of the rows, so nothing depends on the number of
 * threads. Moments are taken of all rows, quantiles of the first SAMPLE_ROWS (the table's order is random).
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "engine/base/maths.h"
#include "engine/base/threads.h"
#include "engine/data/order.h"
#include "engine/model/dense.h"

#define SAMPLE_ROWS 200000
#define CHUNK_ROWS 4096 /* read at a time while fitting */
#define MATRIX_ROWS 256 /* rows of a task of ag_dense_matrix */
#define MAX_KNOTS 257   /* of a curve */

typedef struct Scratch
{
	double *values; /* [CHUNK_ROWS] */
	uint64_t *keys; /* [2][sample] */
	uint32_t *counts;
} Scratch;

typedef struct Fit
{
	const AgContext *ctx;
	const AgDenseSource *source;
	const AgDenseParams *params;
	const uint32_t *rows;
	int64_t n_rows;
	int64_t n_sample;
	Scratch *scratch; /* one a thread */
	AgDenseFeature *features;
	AgDenseSlot *slots;      /* [n_features]: made room for, whether or not there is one */
	uint64_t *first_level;   /* [n_features] where a category's codes lie in `levels` */
	double *knot_x, *knot_z; /* [n_features][MAX_KNOTS] */
	uint32_t *levels;
} Fit;

/* Of one numeric feature's training values; from `scale` on they are scaled. */
typedef struct Summary
{
	int64_t n_missing, n_infinite, n_present;
	double min, max; /* of the finite ones */
	double scale, low, high;
	double mean, spread, skew;
	int64_t n_keys;
	uint64_t *sorted;
	double median;
} Summary;

/*
 * The standard normal quantile of p in (0, 1), to seven digits: Wichura 1988, "Algorithm AS 241: the percentage
 * points of the normal distribution" (PPND7), with our own logarithm.
 */
static double
normal_quantile(double p)
{
	double q = p - 0.5, r, z;

	if (fabs(q) <= 0.425)
	{
		r = 0.180625 - q * q;
		return q * (((59.109374720 * r + 159.29113202) * r + 50.434271938) * r + 3.3871327179) /
			   (((67.187563600 * r + 78.757757664) * r + 17.895169469) * r + 1.0);
	}
	r = sqrt(-ag_ln(q < 0.0 ? p : 1.0 - p));
	if (r <= 5.0)
	{
		r -= 1.6;
		z = (((0.17023821103 * r + 1.3067284816) * r + 2.7568153900) * r + 1.4234372777) /
			((0.12021132975 * r + 0.73700164250) * r + 1.0);
	}
	else
	{
		r -= 5.0;
		z = (((0.017337203997 * r + 0.42868294337) * r + 3.0812263860) * r + 6.6579051150) /
			((0.012258202635 * r + 0.24197894225) * r + 1.0);
	}
	return q < 0.0 ? -z : z;
}

/* Reads rows [begin, begin + n) of the training rows. */
static void
read_rows(const Fit *fit, uint32_t f, int64_t begin, int64_t n, double *values)
{
	fit->source->read(fit->source->arg, f, fit->rows + begin, n, values);
}

static int64_t
chunk_at(int64_t begin, int64_t n_rows)
{
	return n_rows - begin < CHUNK_ROWS ? n_rows - begin : CHUNK_ROWS;
}

static double
clip(const Summary *sum, double x)
{
	double v = x * sum->scale;

	return v < sum->low ? sum->low : v > sum->high ? sum->high : v;
}

/* Counts, finite range and sample of the values; from them the scale and the bounds. */
static void
survey(const Fit *fit, uint32_t f, const Scratch *scratch, Summary *sum)
{
	double span, greatest;
	int e = 0;

	sum->min = INFINITY;
	sum->max = -INFINITY;
	for (int64_t begin = 0; begin < fit->n_rows; begin += CHUNK_ROWS)
	{
		int64_t n = chunk_at(begin, fit->n_rows);

		if (ag_must_stop(fit->ctx))
			return;
		read_rows(fit, f, begin, n, scratch->values);
		for (int64_t i = 0; i < n; i++)
		{
			double x = scratch->values[i];

			if (x != x)
			{
				sum->n_missing++;
				continue;
			}
			if (begin + i < fit->n_sample)
				scratch->keys[sum->n_keys++] = ag_order_key(x);
			if (isinf(x))
				sum->n_infinite++;
			else
			{
				sum->min = x < sum->min ? x : sum->min;
				sum->max = x > sum->max ? x : sum->max;
			}
		}
	}
	sum->n_present = fit->n_rows - sum->n_missing;
	if (sum->min > sum->max) /* no finite value */
		sum->min = sum->max = 0.0;
	greatest = fmax(fabs(sum->min), fabs(sum->max));
	if (greatest > 0.0)
		(void) frexp(greatest, &e);
	e = e < -1000 ? -1000 : e > 1022 ? 1022 : e; /* keeps the scale a normal number */
	sum->scale = ag_pow2i(-e);
	span = sum->max * sum->scale - sum->min * sum->scale;
	if (span == 0.0 && sum->n_infinite > 0)
		span = 1.0;
	sum->low = sum->min * sum->scale - span;
	sum->high = sum->max * sum->scale + span;
}

/* Mean, spread and skewness (with the correction for small samples) of the clipped, scaled values. */
static void
moments(const Fit *fit, uint32_t f, const Scratch *scratch, Summary *sum)
{
	double n = (double) sum->n_present;

	for (int pass = 0; pass < 3; pass++)
	{
		double total = 0.0;

		for (int64_t begin = 0; begin < fit->n_rows; begin += CHUNK_ROWS)
		{
			int64_t n_chunk = chunk_at(begin, fit->n_rows);
			double part = 0.0;

			if (ag_must_stop(fit->ctx))
				return;
			read_rows(fit, f, begin, n_chunk, scratch->values);
			for (int64_t i = 0; i < n_chunk; i++)
			{
				double x = scratch->values[i], d;

				if (x != x)
					continue;
				d = clip(sum, x);
				if (pass > 0)
					d -= sum->mean;
				if (pass == 1)
					d *= d;
				if (pass == 2)
				{
					d /= sum->spread;
					d = d * d * d;
				}
				part += d;
			}
			total += part;
		}
		if (pass == 0)
			sum->mean = total / n;
		else if (pass == 1)
			sum->spread = sqrt(total / n);
		else
			sum->skew = n > 2.0 ? total / n * sqrt(n * (n - 1.0)) / (n - 2.0) : 0.0;
		if (pass == 1 && !(sum->spread > 0.0))
			return;
	}
}

static double
key_value(const Summary *sum, int64_t i)
{
	return clip(sum, ag_order_value(sum->sorted[i]));
}

/*
 * Knots where the logit of the rank is evenly spaced, so that tails are as finely drawn as the middle. A knot's z is
 * the normal quantile of the middle rank of the values equal to it. Returns how many there are.
 */
static uint32_t
choose_knots(const Summary *sum, double *x, double *z)
{
	int64_t n = sum->n_keys, last = -1;
	double tail = ag_ln(0.5 / (double) n) - ag_ln(1.0 - 0.5 / (double) n);
	uint32_t n_knots = 0;

	for (int k = 0; k < MAX_KNOTS; k++)
	{
		double p = ag_sigmoid(tail - 2.0 * tail * k / (MAX_KNOTS - 1));
		int64_t i = (int64_t) (p * (double) n), begin, end;

		i = i < 0 ? 0 : i >= n ? n - 1 : i;
		if (i <= last)
			continue;
		for (begin = i; begin > 0 && sum->sorted[begin - 1] == sum->sorted[i];)
			begin--;
		for (end = i + 1; end < n && sum->sorted[end] == sum->sorted[i];)
			end++;
		last = end - 1;
		x[n_knots] = key_value(sum, i);
		z[n_knots] = normal_quantile((double) (begin + end) / (2.0 * (double) n));
		if (n_knots == 0 || x[n_knots] > x[n_knots - 1]) /* scaling may have made them one */
			n_knots++;
	}
	return n_knots;
}

/* Bends the feature if that leaves more than two values, and standardises what comes out. */
static void
fit_curve(const Fit *fit, uint32_t f, const Summary *sum, AgDenseFeature *feature)
{
	double *x = fit->knot_x + (size_t) f * MAX_KNOTS, *z = fit->knot_z + (size_t) f * MAX_KNOTS;
	AgDense view = {.knot_x = fit->knot_x, .knot_z = fit->knot_z};
	double total = 0.0, mean, spread;
	uint32_t n_knots = choose_knots(sum, x, z);

	if (n_knots < 3)
		return;
	feature->kind = AG_DENSE_CURVE;
	feature->first_item = (uint64_t) f * MAX_KNOTS;
	feature->n_items = n_knots;
	feature->low = x[0];
	feature->high = x[n_knots - 1];
	for (int64_t i = 0; i < sum->n_keys; i++)
		total += ag_dense_number(&view, feature, ag_order_value(sum->sorted[i]));
	mean = total / (double) sum->n_keys;
	total = 0.0;
	for (int64_t i = 0; i < sum->n_keys; i++)
	{
		double d = ag_dense_number(&view, feature, ag_order_value(sum->sorted[i])) - mean;

		total += d * d;
	}
	spread = sqrt(total / (double) sum->n_keys);
	for (uint32_t k = 0; k < n_knots; k++)
		z[k] = spread > 0.0 ? (z[k] - mean) / spread : 0.0;
}

static void
fit_number(const Fit *fit, uint32_t f, const Scratch *scratch)
{
	AgDenseFeature *feature = &fit->features[f];
	AgDense view = {.knot_x = fit->knot_x, .knot_z = fit->knot_z};
	Summary sum = {0};

	survey(fit, f, scratch, &sum);
	feature->kind = AG_DENSE_LINE;
	feature->scale = sum.scale;
	feature->low = sum.low;
	feature->high = sum.high;
	feature->slot = AG_DENSE_NONE;
	if (sum.n_missing > 0 && sum.n_present > 0)
	{
		AgDenseSlot slot = {f, 0, 1, AG_DENSE_NONE, 0, 0};

		fit->slots[f] = slot;
		feature->slot = 0;
	}
	if (sum.n_present == 0 || sum.n_keys == 0)
		return;
	moments(fit, f, scratch, &sum);
	if (!(sum.spread > 0.0) || !isfinite(1.0 / sum.spread))
		return;
	feature->centre = sum.mean;
	feature->inverse = 1.0 / sum.spread;
	sum.sorted = ag_keys_sort(scratch->keys, scratch->keys + fit->n_sample, sum.n_keys);
	sum.median = key_value(&sum, (sum.n_keys - 1) / 2) / 2 + key_value(&sum, sum.n_keys / 2) / 2;
	if (fabs(sum.skew) > fit->params->skew_threshold)
		fit_curve(fit, f, &sum, feature);
	feature->missing = ag_dense_number(
		&view, feature, (fit->params->impute == AG_DENSE_MEAN ? sum.mean : sum.median) / sum.scale);
}

/* Levels that are common enough get a column each, in the order of their codes. */
static void
fit_category(const Fit *fit, uint32_t f, const Scratch *scratch)
{
	AgDenseFeature *feature = &fit->features[f];
	AgDenseSlot slot = {f, 0, 0, AG_DENSE_NONE, AG_DENSE_NONE, 0};
	uint32_t n_levels = fit->source->n_levels[f], n_kept = 0;
	uint32_t *levels = fit->levels + fit->first_level[f];
	int64_t n_missing = 0, n_other = 0;

	memset(scratch->counts, 0, (size_t) n_levels * sizeof *scratch->counts);
	for (int64_t begin = 0; begin < fit->n_rows; begin += CHUNK_ROWS)
	{
		int64_t n = chunk_at(begin, fit->n_rows);

		if (ag_must_stop(fit->ctx))
			return;
		read_rows(fit, f, begin, n, scratch->values);
		for (int64_t i = 0; i < n; i++)
		{
			double x = scratch->values[i];

			if (x != x)
				n_missing++;
			else if (x >= 0.0 && x < (double) n_levels)
				scratch->counts[(uint32_t) x]++;
			else
				n_other++;
		}
	}
	feature->kind = AG_DENSE_CATEGORY;
	feature->number = AG_DENSE_NONE;
	feature->first_item = fit->first_level[f];
	for (uint32_t code = 0; code < n_levels; code++)
	{
		bool keep = scratch->counts[code] > 0 &&
					scratch->counts[code] >= (uint32_t) fit->params->min_level_count &&
					n_kept < (uint32_t) fit->params->max_levels;

		levels[code] = keep ? n_kept++ : AG_DENSE_NONE;
		if (keep)
			feature->n_items = code + 1;
		else
			n_other += scratch->counts[code];
	}
	slot.width = n_kept;
	if (n_other > 0)
		slot.other = slot.width++;
	if (n_missing > 0)
		slot.missing = slot.width++;
	for (uint32_t code = 0; code < feature->n_items; code++)
		if (levels[code] == AG_DENSE_NONE)
			levels[code] = slot.other;
	fit->slots[f] = slot;
	feature->slot = slot.width > 0 ? 0 : AG_DENSE_NONE;
}

static void
fit_features(void *arg, int64_t begin, int64_t end, int thread)
{
	const Fit *fit = arg;

	for (int64_t f = begin; f < end && !ag_must_stop(fit->ctx); f++)
		if (fit->source->n_levels[f] > 0)
			fit_category(fit, (uint32_t) f, &fit->scratch[thread]);
		else
			fit_number(fit, (uint32_t) f, &fit->scratch[thread]);
}

static AgStatus
get_scratch(Fit *fit, int n_threads)
{
	const AgContext *ctx = fit->ctx;
	uint32_t n_features = fit->source->n_features, most = 0;
	uint64_t n_levels = 0;

	AG_TRY(ag_get_zeroed(ctx, (size_t) n_threads, sizeof *fit->scratch, &fit->scratch));
	AG_TRY(ag_get_zeroed(ctx, n_features, sizeof *fit->features, &fit->features));
	AG_TRY(ag_get_zeroed(ctx, n_features, sizeof *fit->slots, &fit->slots));
	AG_TRY(ag_get(ctx, n_features, sizeof *fit->first_level, &fit->first_level));
	AG_TRY(ag_get(ctx, n_features, MAX_KNOTS * sizeof(double), &fit->knot_x));
	AG_TRY(ag_get(ctx, n_features, MAX_KNOTS * sizeof(double), &fit->knot_z));
	for (uint32_t f = 0; f < n_features; f++)
	{
		fit->first_level[f] = n_levels;
		n_levels += fit->source->n_levels[f];
		if (fit->source->n_levels[f] > most)
			most = fit->source->n_levels[f];
	}
	AG_TRY(ag_get(ctx, n_levels, sizeof *fit->levels, &fit->levels));
	for (int t = 0; t < n_threads; t++)
	{
		Scratch *scratch = &fit->scratch[t];

		AG_TRY(ag_get(ctx, CHUNK_ROWS, sizeof(double), &scratch->values));
		AG_TRY(ag_get(ctx, (size_t) fit->n_sample, 2 * sizeof(uint64_t), &scratch->keys));
		AG_TRY(ag_get(ctx, most, sizeof(uint32_t), &scratch->counts));
	}
	return AG_OK;
}

static void
free_scratch(Fit *fit, int n_threads)
{
	AgMem *mem = fit->ctx->mem;

	for (int t = 0; fit->scratch != NULL && t < n_threads; t++)
	{
		ag_mem_free(mem, fit->scratch[t].values);
		ag_mem_free(mem, fit->scratch[t].keys);
		ag_mem_free(mem, fit->scratch[t].counts);
	}
	ag_mem_free(mem, fit->scratch);
	ag_mem_free(mem, fit->features);
	ag_mem_free(mem, fit->slots);
	ag_mem_free(mem, fit->first_level);
	ag_mem_free(mem, fit->knot_x);
	ag_mem_free(mem, fit->knot_z);
	ag_mem_free(mem, fit->levels);
}

/* What the result will hold. */
static AgStatus
count(const Fit *fit, AgDense *dense)
{
	uint64_t n_columns = 0;

	dense->n_features = fit->source->n_features;
	for (uint32_t f = 0; f < dense->n_features; f++)
	{
		const AgDenseFeature *feature = &fit->features[f];

		dense->n_numbers += feature->kind != AG_DENSE_CATEGORY;
		if (feature->kind == AG_DENSE_CURVE)
			dense->n_knots += feature->n_items;
		if (feature->kind == AG_DENSE_CATEGORY)
			dense->n_levels += feature->n_items;
		if (feature->slot != AG_DENSE_NONE)
		{
			dense->n_slots++;
			n_columns += fit->slots[f].width;
		}
	}
	if (n_columns > AG_DENSE_MAX_COLUMNS)
		return ag_error_set(fit->ctx->error, AG_ERR_DATA,
							"categories have %llu levels in all, and at most %u can be columns",
							(unsigned long long) n_columns, AG_DENSE_MAX_COLUMNS);
	dense->n_columns = (uint32_t) n_columns;
	return AG_OK;
}

/* Moves what was fitted, without gaps, into arrays of the result's own. */
static AgStatus
pack(const Fit *fit, AgDense *dense)
{
	AgArena *arena = &dense->arena;
	AgDenseFeature *features;
	AgDenseSlot *slots;
	double *x, *z;
	uint32_t *levels, n_numbers = 0, n_slots = 0, n_columns = 0;
	uint64_t n_knots = 0, n_levels = 0;

	AG_TRY(count(fit, dense));
	dense->features = features = ag_arena_alloc(arena, dense->n_features, sizeof *features);
	dense->slots = slots = ag_arena_alloc(arena, dense->n_slots, sizeof *slots);
	dense->knot_x = x = ag_arena_alloc(arena, dense->n_knots, sizeof *x);
	dense->knot_z = z = ag_arena_alloc(arena, dense->n_knots, sizeof *z);
	dense->levels = levels = ag_arena_alloc(arena, dense->n_levels, sizeof *levels);
	if (features == NULL || slots == NULL || x == NULL || z == NULL || levels == NULL)
		return ag_mem_error(fit->ctx->mem, dense->n_levels * sizeof *levels, fit->ctx->error);
	for (uint32_t f = 0; f < dense->n_features; f++)
	{
		AgDenseFeature *feature = &features[f];
		uint64_t from;

		*feature = fit->features[f];
		from = feature->first_item;
		if (feature->kind == AG_DENSE_CATEGORY)
		{
			feature->first_item = n_levels;
			memcpy(levels + n_levels, fit->levels + from, feature->n_items * sizeof *levels);
			n_levels += feature->n_items;
		}
		else
		{
			feature->number = n_numbers++;
			feature->first_item = n_knots;
			memcpy(x + n_knots, fit->knot_x + from, feature->n_items * sizeof *x);
			memcpy(z + n_knots, fit->knot_z + from, feature->n_items * sizeof *z);
			n_knots += feature->n_items;
		}
		if (feature->slot == AG_DENSE_NONE)
			continue;
		feature->slot = n_slots;
		slots[n_slots] = fit->slots[f];
		slots[n_slots].first = n_columns;
		n_columns += slots[n_slots++].width;
	}
	return AG_OK;
}

AgStatus
ag_dense_fit(const AgContext *ctx, const AgDenseSource *source, const uint32_t *rows,
			 int64_t n_rows, const AgDenseParams *params, AgDense **dense)
{
	Fit fit = {.ctx = ctx, .source = source, .params = params, .rows = rows, .n_rows = n_rows};
	int n_threads = ag_pool_size(ctx->pool);
	AgArena arena;
	AgStatus status;

	*dense = NULL;
	ag_arena_init(&arena, ctx->mem);
	fit.n_sample = n_rows < SAMPLE_ROWS ? n_rows : SAMPLE_ROWS;
	AG_GO(get_scratch(&fit, n_threads));
	ag_pool_run(ctx->pool, source->n_features, 1, fit_features, &fit);
	AG_GO(ag_check_stop(ctx, "numbers were made of the features"));
	*dense = ag_arena_alloc(&arena, 1, sizeof **dense);
	if (*dense == NULL)
		AG_GO(ag_mem_error(ctx->mem, sizeof **dense, ctx->error));
	(*dense)->arena = arena;
	AG_GO(pack(&fit, *dense));
done:
	free_scratch(&fit, n_threads);
	if (status != AG_OK)
	{
		if (*dense != NULL)
			ag_dense_free(*dense);
		else
			ag_arena_free(&arena);
		*dense = NULL;
	}
	return status;
}

typedef struct Filling
{
	const AgContext *ctx;
	const AgDense *dense;
	const AgDenseSource *source;
	AgDenseMatrix *matrix;
} Filling;

/* A task is MATRIX_ROWS rows, feature by feature: they stay in the cache while they are filled. */
static void
fill_rows(void *arg, int64_t begin, int64_t end, int thread)
{
	const Filling *filling = arg;
	const AgDense *dense = filling->dense;
	AgDenseMatrix *matrix = filling->matrix;
	uint32_t rows[MATRIX_ROWS];
	double values[MATRIX_ROWS];
	int64_t n = end - begin;

	(void) thread;
	if (ag_must_stop(filling->ctx))
		return;
	for (int64_t i = 0; i < n; i++)
	{
		rows[i] = (uint32_t) (begin + i);
		for (size_t j = dense->n_numbers; j < matrix->stride; j++)
			matrix->numbers[(size_t) (begin + i) * matrix->stride + j] = 0.0f;
	}
	for (uint32_t f = 0; f < dense->n_features; f++)
	{
		const AgDenseFeature *feature = &dense->features[f];

		filling->source->read(filling->source->arg, f, rows, n, values);
		if (feature->number != AG_DENSE_NONE)
		{
			float *to = matrix->numbers + (size_t) begin * matrix->stride + feature->number;

			for (int64_t i = 0; i < n; i++)
				to[(size_t) i * matrix->stride] = ag_dense_number(dense, feature, values[i]);
		}
		if (feature->slot != AG_DENSE_NONE)
		{
			uint32_t *to = matrix->slots + (size_t) begin * matrix->n_slots + feature->slot;

			for (int64_t i = 0; i < n; i++)
				to[(size_t) i * matrix->n_slots] = ag_dense_column(dense, feature, values[i]);
		}
	}
}

AgStatus
ag_dense_matrix(const AgContext *ctx, const AgDense *dense, const AgDenseSource *source,
				AgDenseMatrix **matrix)
{
	Filling filling = {ctx, dense, source, NULL};
	AgDenseMatrix *made;
	AgStatus status;

	*matrix = NULL;
	AG_TRY(ag_get_zeroed(ctx, 1, sizeof *made, &made));
	made->mem = ctx->mem;
	made->n_rows = source->n_rows;
	made->stride = ((size_t) dense->n_numbers + 15) / 16 * 16;
	made->n_slots = dense->n_slots;
	AG_GO(ag_get(ctx, (size_t) source->n_rows, made->stride * sizeof(float), &made->numbers));
	AG_GO(ag_get(ctx, (size_t) source->n_rows, made->n_slots * sizeof(uint32_t), &made->slots));
	filling.matrix = made;
	ag_pool_run(ctx->pool, source->n_rows, MATRIX_ROWS, fill_rows, &filling);
	AG_GO(ag_check_stop(ctx, "numbers were made of the features"));
done:
	if (status != AG_OK)
		ag_dense_matrix_free(made);
	else
		*matrix = made;
	return status;
}

void
ag_dense_matrix_free(AgDenseMatrix *matrix)
{
	AgMem *mem;

	if (matrix == NULL)
		return;
	mem = matrix->mem;
	ag_mem_free(mem, matrix->numbers);
	ag_mem_free(mem, matrix->slots);
	ag_mem_free(mem, matrix);
}
