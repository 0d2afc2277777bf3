/*
 * vocabulary_svd.c - a truncated singular value decomposition of rows of terms.
 *
 * Subspace iteration from a random start (Halko, Martinsson, Tropp 2011, "Finding structure with randomness", section 4.5), in
 * the space of terms: Y <- orth(X'(X Y)), and at the end a Rayleigh-Ritz step that orders the directions. Random numbers
 * are counters and every sum has its order, on one thread, so that the same rows give the same bytes.
 */
#include <math.h>
#include <string.h>

#include "engine/base/rng.h"
#include "engine/data/vocabulary.h"

#define N_ITERATIONS 4
#define N_SWEEPS 12     /* of Jacobi's rotations, at most */
#define DEPENDENT 1e-10 /* part of a column's square that is its own, below which it is dropped */
#define FAINT 1e-6      /* part of the greatest eigenvalue below which a direction is noise */
#define KEY_SVD UINT64_C(0x737664)

typedef struct Space
{
	const AgTermRows *rows;
	uint32_t n_terms, n_dims;
	double *y;    /* [n_terms][n_dims] */
	double *z;    /* [n_terms][n_dims] */
	double *gram; /* [n_dims][n_dims] */
	double *turn; /* [n_dims][n_dims] */
	double *line; /* [n_dims] */
} Space;

/* line = row i times y */
static void
row_place(Space *space, int64_t i)
{
	const AgTermRows *rows = space->rows;
	uint32_t k = space->n_dims;

	memset(space->line, 0, k * sizeof *space->line);
	for (uint64_t at = rows->first[i]; at < rows->first[i + 1]; at++)
	{
		const double *y = space->y + (size_t) rows->terms[at].term * k;
		double weight = rows->terms[at].weight;

		for (uint32_t d = 0; d < k; d++)
			space->line[d] += weight * y[d];
	}
}

/* z = X'(X y) */
static void
multiply(Space *space)
{
	const AgTermRows *rows = space->rows;
	uint32_t k = space->n_dims;

	memset(space->z, 0, (size_t) space->n_terms * k * sizeof *space->z);
	for (int64_t i = 0; i < rows->n_rows; i++)
	{
		row_place(space, i);
		for (uint64_t at = rows->first[i]; at < rows->first[i + 1]; at++)
		{
			double *z = space->z + (size_t) rows->terms[at].term * k;
			double weight = rows->terms[at].weight;

			for (uint32_t d = 0; d < k; d++)
				z[d] += weight * space->line[d];
		}
	}
}

static void
add_outer(double *gram, const double *line, uint32_t k)
{
	for (uint32_t a = 0; a < k; a++)
		for (uint32_t b = 0; b < k; b++)
			gram[(size_t) a * k + b] += line[a] * line[b];
}

/*
 * y = z with orthonormal columns, by Cholesky's factor of z'z (twice is enough, and the iteration repeats it). A column that depends
 * on those before becomes zero.
 */
static void
orthonormalise(Space *space)
{
	uint32_t k = space->n_dims;
	double *g = space->gram;

	memset(g, 0, (size_t) k * k * sizeof *g);
	for (uint32_t t = 0; t < space->n_terms; t++)
		add_outer(g, space->z + (size_t) t * k, k);
	/* upper factor R in place, row by row: z'z = R'R */
	for (uint32_t j = 0; j < k; j++)
	{
		double own = g[(size_t) j * k + j], pivot = own;

		for (uint32_t i = 0; i < j; i++)
			pivot -= g[(size_t) i * k + j] * g[(size_t) i * k + j];
		pivot = pivot > own * DEPENDENT && pivot > 1e-200 ? sqrt(pivot) : 0.0;
		g[(size_t) j * k + j] = pivot;
		for (uint32_t c = j + 1; c < k; c++)
		{
			double sum = g[(size_t) j * k + c];

			for (uint32_t i = 0; i < j; i++)
				sum -= g[(size_t) i * k + j] * g[(size_t) i * k + c];
			g[(size_t) j * k + c] = pivot > 0.0 ? sum / pivot : 0.0;
		}
	}
	for (uint32_t t = 0; t < space->n_terms; t++)
	{
		const double *z = space->z + (size_t) t * k;
		double *y = space->y + (size_t) t * k;

		memcpy(y, z, k * sizeof *y);
		for (uint32_t j = 0; j < k; j++)
		{
			double pivot = g[(size_t) j * k + j];

			y[j] = pivot > 0.0 ? y[j] / pivot : 0.0;
			for (uint32_t c = j + 1; c < k; c++)
				y[c] -= y[j] * g[(size_t) j * k + c];
		}
	}
}

/* One rotation that makes g[p][q] zero; its angle is added to turn. */
static void
rotate(Space *space, uint32_t p, uint32_t q)
{
	uint32_t k = space->n_dims;
	double *g = space->gram, *v = space->turn;
	double apq = g[(size_t) p * k + q], theta, t, c, s;

	if (apq == 0.0)
		return;
	theta = (g[(size_t) q * k + q] - g[(size_t) p * k + p]) / (2.0 * apq);
	t = (theta >= 0.0 ? 1.0 : -1.0) / (fabs(theta) + sqrt(theta * theta + 1.0));
	c = 1.0 / sqrt(t * t + 1.0);
	s = t * c;
	for (uint32_t i = 0; i < k; i++)
	{
		double a = g[(size_t) i * k + p], b = g[(size_t) i * k + q];

		g[(size_t) i * k + p] = c * a - s * b;
		g[(size_t) i * k + q] = s * a + c * b;
	}
	for (uint32_t i = 0; i < k; i++)
	{
		double a = g[(size_t) p * k + i], b = g[(size_t) q * k + i];

		g[(size_t) p * k + i] = c * a - s * b;
		g[(size_t) q * k + i] = s * a + c * b;
		a = v[(size_t) i * k + p];
		b = v[(size_t) i * k + q];
		v[(size_t) i * k + p] = c * a - s * b;
		v[(size_t) i * k + q] = s * a + c * b;
	}
}

/* gram's eigenvalues onto its diagonal, the vectors into turn's columns. */
static void
diagonalise(Space *space)
{
	uint32_t k = space->n_dims;

	memset(space->turn, 0, (size_t) k * k * sizeof *space->turn);
	for (uint32_t i = 0; i < k; i++)
		space->turn[(size_t) i * k + i] = 1.0;
	for (int sweep = 0; sweep < N_SWEEPS; sweep++)
		for (uint32_t p = 0; p < k; p++)
			for (uint32_t q = p + 1; q < k; q++)
				rotate(space, p, q);
}

/* Column `from` of the turned space, with its greatest part positive, to column `to` of the vectors. */
static void
write_direction(const Space *space, uint32_t from, uint32_t to, uint32_t n_kept, float *vectors)
{
	uint32_t k = space->n_dims;
	double greatest = 0.0;

	for (uint32_t t = 0; t < space->n_terms; t++)
	{
		double sum = 0.0;

		for (uint32_t d = 0; d < k; d++)
			sum += space->y[(size_t) t * k + d] * space->turn[(size_t) d * k + from];
		if (fabs(sum) > fabs(greatest))
			greatest = sum;
		vectors[(size_t) t * n_kept + to] = (float) sum;
	}
	for (uint32_t t = 0; t < space->n_terms && greatest < 0.0; t++)
		vectors[(size_t) t * n_kept + to] = -vectors[(size_t) t * n_kept + to];
}

/* The directions in order of their eigenvalues, without those of noise. */
static uint32_t
write_space(const Space *space, float *vectors)
{
	uint32_t k = space->n_dims, order[AG_VOCABULARY_MAX_DIMS], n_kept = 0;
	double greatest = 0.0;

	for (uint32_t d = 0; d < k; d++)
	{
		double value = space->gram[(size_t) d * k + d];
		uint32_t at = d;

		for (; at > 0 && space->gram[(size_t) order[at - 1] * k + order[at - 1]] < value; at--)
			order[at] = order[at - 1];
		order[at] = d;
		greatest = value > greatest ? value : greatest;
	}
	while (n_kept < k && space->gram[(size_t) order[n_kept] * k + order[n_kept]] > FAINT * greatest)
		n_kept++;
	for (uint32_t d = 0; d < n_kept; d++)
		write_direction(space, order[d], d, n_kept, vectors);
	return n_kept;
}

AgStatus
ag_vocabulary_svd(const AgContext *ctx, const AgTermRows *rows, uint32_t n_terms, uint64_t seed,
				  uint32_t *n_dims, float *vectors)
{
	Space space = {.rows = rows, .n_terms = n_terms, .n_dims = *n_dims};
	size_t n = (size_t) n_terms * *n_dims, k = *n_dims;
	uint64_t key = ag_key(seed, KEY_SVD);
	AgStatus status = AG_OK;

	if (k == 0)
		return AG_OK;
	AG_GO(ag_get(ctx, n, sizeof(double), &space.y));
	AG_GO(ag_get(ctx, n, sizeof(double), &space.z));
	AG_GO(ag_get(ctx, k * k, sizeof(double), &space.gram));
	AG_GO(ag_get(ctx, k * k, sizeof(double), &space.turn));
	AG_GO(ag_get(ctx, k, sizeof(double), &space.line));
	for (size_t i = 0; i < n; i++)
		space.z[i] = ag_random_unit(key, i) - 0.5;
	orthonormalise(&space);
	for (int iteration = 0; iteration < N_ITERATIONS; iteration++)
	{
		AG_GO(ag_check_cancel(ctx));
		multiply(&space);
		orthonormalise(&space);
	}
	memset(space.gram, 0, k * k * sizeof(double));
	for (int64_t i = 0; i < rows->n_rows; i++)
	{
		row_place(&space, i);
		add_outer(space.gram, space.line, space.n_dims);
	}
	diagonalise(&space);
	*n_dims = write_space(&space, vectors);
done:
	ag_mem_free(ctx->mem, space.y);
	ag_mem_free(ctx->mem, space.z);
	ag_mem_free(ctx->mem, space.gram);
	ag_mem_free(ctx->mem, space.turn);
	ag_mem_free(ctx->mem, space.line);
	return status;
}
