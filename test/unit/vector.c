/* vector.c - every variant of the inner loops against a plain telling of them, to the bit. */
#include "unit/unit.h"

#include <stdbool.h>

#include "engine/base/maths.h"
#include "engine/base/rng.h"
#include "engine/base/vector.h"
#include "engine/model/linear_maths.h"

#define N 203

static double a[N * 64], b[N * 64];
static float af[N * 64];

static void
fill(void)
{
	for (uint64_t i = 0; i < N * 64; i++)
	{
		a[i] = ag_random_unit(1, i) * 4.0 - 2.0;
		b[i] = ag_random_unit(2, i) * 1e3 - 5e2;
		af[i] = (float) a[i];
	}
}

static double
plain_dot(const double *x, const double *y, size_t n)
{
	double s[8] = {0};

	for (size_t i = 0; i < n; i++)
		s[i % 8] += x[i] * y[i];
	return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

static void
check_dots(const AgVectorOps *ops)
{
	for (size_t n = 0; n < 40; n++)
	{
		double x[40];

		for (size_t i = 0; i < n; i++)
			x[i] = (double) af[i + 1];
		AG_CHECK(ops->dot(a + 3, b + 1, n) == plain_dot(a + 3, b + 1, n));
		AG_CHECK(ops->dot_float(af + 1, b + 1, n) == plain_dot(x, b + 1, n));
	}
}

static void
check_powers(const AgVectorOps *ops, const AgVectorOps *portable)
{
	double x[64], y[64], e[64], greatest[4], sums[4];

	for (int i = 0; i < 64; i++)
		x[i] = i < 8 ? -i * 110.0 : i == 8 ? -INFINITY : -ag_random_unit(7, (uint64_t) i) * 40.0;
	memcpy(y, x, sizeof y);
	memcpy(e, x, sizeof e);
	ops->exps(y, 64);
	portable->exps(e, 64);
	AG_CHECK(memcmp(y, e, sizeof y) == 0);
	for (int i = 0; i < 64; i++)
		AG_CHECK_NEAR(y[i], x[i] < -708.0 ? 0.0 : ag_exp(x[i]), 1e-15 * y[i]);
	for (int i = 0; i < 64; i++)
		e[i] = x[i] = ag_random_unit(9, (uint64_t) i) * 900.0;
	x[0] = e[0] = -INFINITY;
	x[63] = e[63] = 901.0;
	ops->exp_rows(e, 4, 16, greatest, sums);
	AG_CHECK(greatest[3] == 901.0);
	for (int r = 0; r < 4; r++)
	{
		double lanes[8] = {0}, most = x[r * 16];

		for (int i = 0; i < 16; i++)
			most = x[r * 16 + i] > most ? x[r * 16 + i] : most;
		for (int i = 0; i < 16; i++)
			y[r * 16 + i] = x[r * 16 + i] - most;
		AG_CHECK(most == greatest[r]);
		portable->exps(y + r * 16, 16);
		for (int i = 0; i < 16; i++)
			lanes[i % 8] += y[r * 16 + i];
		AG_CHECK(sums[r] == ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
								((lanes[1] + lanes[5]) + (lanes[3] + lanes[7])));
	}
	AG_CHECK(memcmp(y, e, sizeof y) == 0);
	for (int i = 0; i < 64; i++)
		x[i] = y[i] = e[i] = i < 32 ? 1.0 + i / 31.0 : ldexp(1.0 + a[i] / 8.0, 20 * i - 600);
	ops->logs(y, 64);
	portable->logs(e, 64);
	AG_CHECK(memcmp(y, e, sizeof y) == 0);
	for (int i = 0; i < 64; i++)
		AG_CHECK_NEAR(y[i], log(x[i]), 1e-15 * fmax(1.0, fabs(y[i])));
	ops->widen(af + 3, y, 64);
	for (int i = 0; i < 64; i++)
		AG_CHECK(y[i] == (double) af[i + 3]);
}

/* What a device computes one by one, in the rooms above: the same bits. */
static void
check_twins(const AgVectorOps *ops)
{
	double x[64], y[64];
	int n_wrong = 0;

	for (uint64_t lot = 0; lot < 300; lot++)
	{
		for (uint64_t i = 0; i < 64; i++)
		{
			double size = lot % 3 == 0 ? 1.0 : lot % 3 == 1 ? 40.0 : 720.0;

			/* halves between powers of two, too, where rounding could go either way */
			x[i] = y[i] = i % 16 == 0 ? -(double) (lot * 4 + i / 16 + 1) * 0.5 * 0.69314718055994531
									  : -ag_random_unit(21, lot * 64 + i) * size;
		}
		x[5] = y[5] = lot % 2 == 0 ? -0.0 : -INFINITY;
		ops->exps(y, 64);
		for (int i = 0; i < 64; i++)
		{
			double e = ag_linear_exp(x[i]);

			n_wrong += memcmp(&e, &y[i], sizeof e) != 0;
		}
		for (uint64_t i = 0; i < 64; i++)
			x[i] = y[i] = lot % 2 == 0
							  ? 1.0 + ag_random_unit(22, lot * 64 + i)
							  : ldexp(1.0 + ag_random_unit(23, lot * 64 + i), (int) i * 20 - 600);
		ops->logs(y, 64);
		for (int i = 0; i < 64; i++)
		{
			double l = ag_linear_ln(x[i]);

			n_wrong += memcmp(&l, &y[i], sizeof l) != 0;
		}
	}
	AG_CHECK_EQ(n_wrong, 0);
}

static void
check_add_rows(const AgVectorOps *ops)
{
	const float *rows[11];
	double sums[64], expected[64];

	for (int r = 0; r < 11; r++)
		rows[r] = af + r * 70 + 1;
	for (int n_rows = 0; n_rows <= 11; n_rows++)
		for (size_t n = 0; n < 37; n++)
		{
			for (size_t i = 0; i < 64; i++)
				sums[i] = expected[i] = a[i];
			for (int r = 0; r < n_rows; r++)
				for (size_t i = 0; i < n; i++)
					expected[i] += (double) rows[r][i] * b[r];
			ops->add_rows(sums, rows, b, n_rows, n);
			AG_CHECK(memcmp(sums, expected, sizeof sums) == 0);
		}
}

static void
check_products(const AgVectorOps *ops)
{
	static double out[20 * 48], expected[20 * 48];

	for (int n_rows = 0; n_rows <= 17; n_rows += 1 + (n_rows > 5) * 3)
		for (int n_inner = 0; n_inner <= 17; n_inner += 1 + (n_inner > 5) * 3)
			for (int n_out = 8; n_out <= 40; n_out += 8)
			{
				memcpy(out, a, sizeof out);
				memcpy(expected, a, sizeof out);
				for (int r = 0; r < n_rows; r++)
					for (int k = 0; k < n_out; k++)
					{
						double sum = 0.0;

						for (int j = 0; j < n_inner; j++)
							sum += a[r * 18 + j] * b[j * 41 + k];
						expected[r * 48 + k] += sum;
					}
				ops->multiply(a, 18, b, 41, n_rows, n_inner, n_out, out, 48);
				AG_CHECK(memcmp(out, expected, sizeof out) == 0);
				memcpy(out, a, sizeof out);
				memcpy(expected, a, sizeof out);
				for (int j = 0; j < n_inner; j++)
					for (int k = 0; k < n_out; k++)
					{
						double sum = 0.0;

						for (int r = 0; r < n_rows; r++)
							sum += a[r * 18 + j] * b[r * 41 + k];
						expected[j * 48 + k] += sum;
					}
				ops->multiply_transposed(a, 18, b, 41, n_rows, n_inner, n_out, out, 48);
				AG_CHECK(memcmp(out, expected, sizeof out) == 0);
			}
}

static float
plain_distance(const AgPanel *panel, int lane, const float *query, const uint32_t *codes)
{
	float four[4] = {0}, sum;

	for (int j = 0; j < panel->n_numbers; j++)
	{
		float d = panel->numbers[j * AG_PANEL + lane] - query[j];

		four[j % 4] += d * d;
	}
	sum = (four[0] + four[1]) + (four[2] + four[3]);
	for (int s = 0; s < panel->n_codes; s++)
		sum += panel->codes[s * AG_PANEL + lane] != codes[s] ? panel->mismatch : 0.0f;
	return sum;
}

/* Masks never miss a nearer row, and seldom name another. */
static void
check_near(const AgVectorOps *ops, const AgPanel *panel, const float *const *queries,
		   const uint32_t *const *codes, long *n_named, long *n_nearer)
{
	float norms[AG_QUERIES] = {0}, within[AG_QUERIES];
	uint32_t masks[AG_QUERIES];

	for (int q = 0; q < AG_QUERIES; q++)
	{
		for (int j = 0; j < panel->n_numbers; j++)
			norms[q] += queries[q][j] * queries[q][j];
		within[q] = plain_distance(panel, 5, queries[q], codes[q]);
	}
	within[0] = INFINITY;
	ops->near(panel, queries, codes, norms, within, masks);
	AG_CHECK_EQ(masks[0], 65535);
	for (int q = 1; q < AG_QUERIES; q++)
		for (int lane = 0; lane < AG_PANEL; lane++)
		{
			bool nearer = plain_distance(panel, lane, queries[q], codes[q]) < within[q];

			AG_CHECK(!nearer || (masks[q] >> lane & 1));
			*n_nearer += nearer;
			*n_named += masks[q] >> lane & 1;
		}
}

static void
check_distances(const AgVectorOps *ops)
{
	uint32_t codes[5 * AG_PANEL], query_codes[AG_QUERIES][5];
	const float *queries[AG_QUERIES];
	const uint32_t *coded[AG_QUERIES];
	float norms[AG_PANEL], squared[AG_PANEL];
	long n_named = 0, n_nearer = 0;

	for (uint64_t i = 0; i < 5 * AG_PANEL; i++)
		codes[i] = ag_random_below(5, i, 3);
	for (int q = 0; q < AG_QUERIES; q++)
	{
		queries[q] = af + 500 + 31 * q;
		coded[q] = query_codes[q];
		for (int s = 0; s < 5; s++)
			query_codes[q][s] = (uint32_t) (q + s) % 3;
	}
	for (int n_numbers = 0; n_numbers < 20; n_numbers++)
		for (int n_codes = 0; n_codes <= 5; n_codes++)
		{
			AgPanel panel = {af, codes, norms, n_numbers, n_codes, 1.25f};

			for (int lane = 0; lane < AG_PANEL; lane++)
			{
				norms[lane] = 0.0f;
				for (int j = 0; j < n_numbers; j++)
					norms[lane] += af[j * AG_PANEL + lane] * af[j * AG_PANEL + lane];
			}
			ops->distances(&panel, queries[2], coded[2], squared);
			for (int lane = 0; lane < AG_PANEL; lane++)
				AG_CHECK(squared[lane] == plain_distance(&panel, lane, queries[2], coded[2]));
			check_near(ops, &panel, queries, coded, &n_named, &n_nearer);
		}
	AG_CHECK(n_named - n_nearer <
			 n_nearer / 3); /* row 5 itself is as near, and so are ties of codes */
}

int
main(void)
{
	const AgVectorOps *variants[3];
	int n = ag_vector_variants(variants);

	fill();
	AG_CHECK(n >= 1 && ag_vector_ops() == variants[n - 1]);
	for (int v = 0; v < n; v++)
	{
		check_dots(variants[v]);
		check_powers(variants[v], variants[0]);
		check_twins(variants[v]);
		check_add_rows(variants[v]);
		check_products(variants[v]);
		check_distances(variants[v]);
	}
	return ag_unit_done("vector");
}
