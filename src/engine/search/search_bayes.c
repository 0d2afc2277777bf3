/*
 * search_bayes.c - the next trial by what the earlier ones scored: a Gaussian process, and the expected improvement.
 *
 * Snoek, Larochelle, Adams 2012, "Practical Bayesian optimization of machine learning algorithms": Matérn 5/2 kernel, a length
 * scale a dimension. Scales and noise are the most likely ones of a small grid, and the candidates are counted, not drawn from a
 * stream: so a proposal depends on points, scores and the seed alone.
 */
#include <math.h>
#include <string.h>

#include "engine/base/maths.h"
#include "engine/base/rng.h"
#include "engine/search/search.h"

#define KEY_CANDIDATE 0x63616e64 /* what these random numbers are for */
#define N_ANYWHERE 400           /* candidates in the whole space */
#define N_NEAR 200               /* and around the best point so far */
#define SQRT5 2.23606797749978969641

typedef struct Process
{
	int n, n_dims;
	double *points;                 /* [n][n_dims] */
	double *scores;                 /* [n] with mean 0 and variance 1 */
	double *factor;                 /* [n][n] lower triangle of the Cholesky factor */
	double *weights;                /* [n] the inverse covariance times the scores */
	double *column;                 /* [n] scratch */
	double best;                    /* of scores */
	double scales[AG_SEARCH_DIMS];  /* 1 / length */
	bool is_choice[AG_SEARCH_DIMS]; /* different values are all as far from each other */
	double noise;
} Process;

/* Matérn 5/2 of the distance. */
static double
kernel(const Process *p, const double *a, const double *b)
{
	double square = 0.0, r;

	for (int d = 0; d < p->n_dims; d++)
	{
		double step = a[d] - b[d];

		if (p->is_choice[d])
			step = step != 0.0 ? 0.5 : 0.0;
		step *= p->scales[d];
		square += step * step;
	}
	r = SQRT5 * sqrt(square);
	return (1.0 + r + r * r / 3.0) * ag_exp(-r);
}

/* x in place of the right side b of factor · x = b. */
static void
solve_lower(const Process *p, double *b)
{
	for (int i = 0; i < p->n; i++)
	{
		const double *row = p->factor + (size_t) i * (size_t) p->n;
		double sum = b[i];

		for (int k = 0; k < i; k++)
			sum -= row[k] * b[k];
		b[i] = sum / row[i];
	}
}

/* Factor and weights for the scales at hand; the logarithm of the likelihood of the scores, but for a constant. */
static double
process_fit(Process *p)
{
	size_t n = (size_t) p->n;
	double log_det = 0.0, square = 0.0;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k <= i; k++)
		{
			double sum =
				kernel(p, p->points + i * (size_t) p->n_dims, p->points + k * (size_t) p->n_dims) +
				(i == k ? p->noise : 0.0);

			for (size_t j = 0; j < k; j++)
				sum -= p->factor[i * n + j] * p->factor[k * n + j];
			if (i == k)
				p->factor[i * n + i] = sqrt(sum > 1e-10 ? sum : 1e-10);
			else
				p->factor[i * n + k] = sum / p->factor[k * n + k];
		}
	memcpy(p->weights, p->scores, n * sizeof *p->weights);
	solve_lower(p, p->weights);
	for (size_t i = 0; i < n; i++)
	{
		square += p->weights[i] * p->weights[i];
		log_det += ag_ln(p->factor[i * n + i]);
	}
	for (size_t i = n; i-- > 0;)
	{
		double sum = p->weights[i];

		for (size_t k = i + 1; k < n; k++)
			sum -= p->factor[k * n + i] * p->weights[k];
		p->weights[i] = sum / p->factor[i * n + i];
	}
	return -0.5 * square - log_det;
}

/* One scale for all dimensions and the noise first, then each dimension's own. */
static void
process_choose(Process *p)
{
	static const double lengths[] = {0.15, 0.3, 0.6, 1.2, 2.4}, noises[] = {1e-4, 1e-2, 1e-1};
	static const double factors[] = {0.3, 0.6, 1.7};
	double most = -(double) INFINITY, scale = 1.0, noise = 1e-2;

	for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
		for (size_t k = 0; k < sizeof noises / sizeof noises[0]; k++)
		{
			double likely;

			for (int d = 0; d < p->n_dims; d++)
				p->scales[d] = 1.0 / lengths[i];
			p->noise = noises[k];
			likely = process_fit(p);
			if (likely > most)
			{
				most = likely;
				scale = 1.0 / lengths[i];
				noise = noises[k];
			}
		}
	p->noise = noise;
	for (int d = 0; d < p->n_dims; d++)
		p->scales[d] = scale;
	for (int d = 0; d < p->n_dims && p->n_dims > 1; d++)
	{
		double own = scale;

		for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++)
		{
			double likely;

			p->scales[d] = scale * factors[i];
			likely = process_fit(p);
			if (likely > most)
			{
				most = likely;
				own = p->scales[d];
			}
		}
		p->scales[d] = own;
	}
	process_fit(p);
}

/* The normal distribution function, to 1e-7 (Abramowitz and Stegun 1964, 26.2.17). */
static double
normal_below(double z, double density)
{
	double t = 1.0 / (1.0 + 0.2316419 * fabs(z));
	double tail = density * t *
				  (0.319381530 +
				   t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))));

	return z > 0.0 ? 1.0 - tail : tail;
}

static double
improvement(const Process *p, const double *point)
{
	double mean = 0.0, variance = 1.0, deviation, z, density;

	for (int i = 0; i < p->n; i++)
	{
		p->column[i] = kernel(p, point, p->points + (size_t) i * (size_t) p->n_dims);
		mean += p->column[i] * p->weights[i];
	}
	solve_lower(p, p->column);
	for (int i = 0; i < p->n; i++)
		variance -= p->column[i] * p->column[i];
	deviation = sqrt(variance > 1e-12 ? variance : 1e-12);
	z = (mean - p->best) / deviation;
	density = 0.39894228040143267794 * ag_exp(-0.5 * z * z);
	return (mean - p->best) * normal_below(z, density) + deviation * density;
}

static AgStatus
process_open(const AgContext *ctx, const AgSearch *search, int n_before, const double *scores,
			 Process *p)
{
	size_t n_dims = (size_t) search->n_dims, n;
	double mean = 0.0, square = 0.0;

	for (int i = 0; i < n_before; i++)
		p->n += isfinite(scores[i]);
	n = (size_t) p->n;
	p->n_dims = search->n_dims;
	AG_TRY(ag_get(ctx, n * n_dims + n * n + 3 * n, sizeof *p->points, &p->points));
	p->factor = p->points + n * n_dims;
	p->scores = p->factor + n * n;
	p->weights = p->scores + n;
	p->column = p->weights + n;
	n = 0;
	for (size_t i = 0; i < (size_t) n_before; i++)
		if (isfinite(scores[i]))
		{
			memcpy(p->points + n * n_dims, search->points + i * n_dims, n_dims * sizeof *p->points);
			p->scores[n++] = scores[i];
		}
	for (size_t i = 0; i < n; i++)
		mean += p->scores[i] / (double) n;
	for (size_t i = 0; i < n; i++)
		square += (p->scores[i] - mean) * (p->scores[i] - mean) / (double) n;
	for (size_t i = 0; i < n; i++)
	{
		p->scores[i] = square > 0.0 ? (p->scores[i] - mean) / sqrt(square) : 0.0;
		p->best = i == 0 || p->scores[i] > p->best ? p->scores[i] : p->best;
	}
	for (int d = 0; d < search->n_dims; d++)
		p->is_choice[d] = search->dims[d].kind == AG_SEARCH_CHOICE;
	return AG_OK;
}

/* The first so many anywhere; the others at small steps from the best point so far, in some of its dimensions. */
static void
candidate_at(const AgSearch *search, uint64_t key, int i, const double *best, double *point)
{
	for (int d = 0; d < search->n_dims; d++)
	{
		uint64_t at = (uint64_t) (i * AG_SEARCH_DIMS + d) * 3;
		double place = ag_random_unit(key, at);

		if (i >= N_ANYWHERE && ag_random_unit(key, at + 1) < 0.5)
			place = best[d];
		else if (i >= N_ANYWHERE && search->dims[d].kind != AG_SEARCH_CHOICE)
			place = best[d] + (place - 0.5) * 0.4 * ag_random_unit(key, at + 2);
		place = place < 0.0 ? 0.0 : place > 1.0 ? 1.0 : place;
		point[d] = ag_search_snap(&search->dims[d], place);
	}
}

int
ag_search_warmup(const AgSearch *search)
{
	int n = search->n_dims + 2;

	n = n < search->n_trials / 2 ? n : search->n_trials / 2;
	return n > 2 ? n : 2;
}

AgStatus
ag_search_propose(const AgContext *ctx, const AgSearch *search, int trial, const double *scores,
				  double *point)
{
	uint64_t key = ag_key(ag_key(search->key, KEY_CANDIDATE), (uint64_t) trial);
	double candidate[AG_SEARCH_DIMS], most = -1.0;
	const double *best;
	int at = 0;
	Process p;

	memset(&p, 0, sizeof p);
	ag_search_draw(search, trial, point); /* for the case that no candidate is a new one */
	AG_TRY(process_open(ctx, search, trial - 1, scores, &p));
	process_choose(&p);
	for (int i = 0; i < p.n; i++)
		if (p.scores[i] > p.scores[at])
			at = i;
	best = p.points + (size_t) at * (size_t) p.n_dims;
	for (int i = 0; i < N_ANYWHERE + N_NEAR; i++)
	{
		double gain;

		candidate_at(search, key, i, best, candidate);
		if (ag_search_is_taken(search, trial - 1, candidate))
			continue;
		gain = improvement(&p, candidate);
		if (gain > most)
		{
			most = gain;
			memcpy(point, candidate, (size_t) search->n_dims * sizeof *point);
		}
	}
	ag_mem_free(ctx->mem, p.points);
	return AG_OK;
}
