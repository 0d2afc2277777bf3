/*
 * vector_body.h - the loops of vector.h for one width of register. Included once a variant by vector.c, which defines
 *
 *   VARIANT    suffix of the functions' names
 *   TARGET     attribute that lets the compiler use the variant's instructions
 *   LANES      doubles in a register: 2, 4 or 8
 *   LESS(a, b) bits of the floats of register a that are less than the number b
 *   NAME_TEXT  the table's name
 *
 * All but what is guarded is meant to be read several times.
 */
#ifndef AG_VECTOR_BODY_H
#define AG_VECTOR_BODY_H

#define GLUE_(a, b) a##_##b
#define GLUE(a, b) GLUE_(a, b)
#define NAME(noun) GLUE(noun, VARIANT)
#define LOAD(type, from) (*(const type *) (const void *) (from))
#define STORE(type, to) (*(type *) (void *) (to))

#endif

#define Doubles NAME(Doubles)
#define Floats NAME(Floats)
#define Halves NAME(Halves)
#define Codes NAME(Codes)
#define Bits NAME(Bits)

/* unaligned on purpose: rows begin anywhere */
typedef double Doubles __attribute__((vector_size(8 * LANES), aligned(8), may_alias));
typedef float Floats __attribute__((vector_size(8 * LANES), aligned(4), may_alias));
typedef float Halves __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef uint32_t Codes __attribute__((vector_size(8 * LANES), aligned(4), may_alias));
typedef uint64_t Bits __attribute__((vector_size(8 * LANES), aligned(8), may_alias));

#define PARTS (8 / LANES) /* registers of eight doubles, or of a panel's sixteen floats */

/* The last i % 8 pairs, and the order in which lanes are added. */
TARGET static inline double
NAME(finish)(const Doubles *lanes, const double *rest, int n_rest)
{
	double sums[8];

	for (int p = 0; p < PARTS; p++)
		STORE(Doubles, sums + p * LANES) = lanes[p];
	for (int i = 0; i < n_rest; i++)
		sums[i] += rest[i];
	return ((sums[0] + sums[4]) + (sums[2] + sums[6])) +
		   ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

TARGET static double
NAME(dot)(const double *x, const double *y, size_t n)
{
	Doubles lanes[PARTS] = {{0}};
	double rest[8] = {0};
	size_t i = 0;

	for (; i + 8 <= n; i += 8)
		for (int p = 0; p < PARTS; p++)
			lanes[p] += LOAD(Doubles, x + i + p * LANES) * LOAD(Doubles, y + i + p * LANES);
	for (size_t j = i; j < n; j++)
		rest[j - i] = x[j] * y[j];
	return NAME(finish)(lanes, rest, (int) (n - i));
}

TARGET static double
NAME(dot_float)(const float *x, const double *y, size_t n)
{
	Doubles lanes[PARTS] = {{0}};
	double rest[8] = {0};
	size_t i = 0;

	for (; i + 8 <= n; i += 8)
		for (int p = 0; p < PARTS; p++)
			lanes[p] += __builtin_convertvector(LOAD(Halves, x + i + p * LANES), Doubles) *
						LOAD(Doubles, y + i + p * LANES);
	for (size_t j = i; j < n; j++)
		rest[j - i] = (double) x[j] * y[j];
	return NAME(finish)(lanes, rest, (int) (n - i));
}

/* a where the mask is set, else b. */
TARGET static inline __attribute__((always_inline)) Doubles
NAME(choose)(Bits mask, Doubles a, Doubles b)
{
	return (Doubles) (((Bits) a & mask) | ((Bits) b & ~mask));
}

/*
 * As ag_exp (maths.h): the power of two is found by adding a number so great that only an integer remains, whose
 * low bits are then the exponent's.
 */
TARGET static inline __attribute__((always_inline)) Doubles
NAME(exp)(Doubles x)
{
	Doubles shifted = x * 1.4426950408889634 + 0x1.8p52;
	Doubles k = shifted - 0x1.8p52;
	Doubles r = x - k * 6.93147180369123816490e-01;
	Doubles p;

	r = r - k * 1.90821492927058770002e-10;
	AG_EXP_SERIES(p, r);
	p = (Doubles) ((Bits) p + ((Bits) shifted << 52));
	return NAME(choose)((Bits) (x >= -708.0), p, (Doubles){0});
}

TARGET static void
NAME(exps)(double *x, size_t n)
{
	for (size_t i = 0; i < n; i += LANES)
		STORE(Doubles, x + i) = NAME(exp)(LOAD(Doubles, x + i));
}

/* The greatest of a row, by lanes and then by halves. */
TARGET static inline __attribute__((always_inline)) double
NAME(greatest)(const double *x, size_t n)
{
	Doubles most[PARTS];
	double m[8];

	for (int p = 0; p < PARTS; p++)
		most[p] = LOAD(Doubles, x + p * LANES);
	for (size_t i = 8; i < n; i += 8)
		for (int p = 0; p < PARTS; p++)
		{
			Doubles y = LOAD(Doubles, x + i + p * LANES);

			most[p] = NAME(choose)((Bits) (y > most[p]), y, most[p]);
		}
	for (int p = 0; p < PARTS; p++)
		STORE(Doubles, m + p * LANES) = most[p];
	for (int half = 4; half > 0; half /= 2)
		for (int l = 0; l < half; l++)
			m[l] = m[l + half] > m[l] ? m[l + half] : m[l];
	return m[0];
}

TARGET static void
NAME(exp_rows)(double *x, int n_rows, size_t n, double *greatest, double *sums)
{
	const double none[8] = {0};

	for (int r = 0; r < n_rows; r++)
		greatest[r] = NAME(greatest)(x + (size_t) r * n, n);
	for (int r = 0; r < n_rows; r++, x += n)
	{
		Doubles lanes[PARTS] = {{0}};

		for (size_t i = 0; i < n; i += 8)
			for (int p = 0; p < PARTS; p++)
			{
				Doubles y = NAME(exp)(LOAD(Doubles, x + i + p * LANES) - greatest[r]);

				STORE(Doubles, x + i + p * LANES) = y;
				lanes[p] += y;
			}
		sums[r] = NAME(finish)(lanes, none, 0);
	}
}

/* As ag_ln (maths.h); the exponent's bits become a double by the same trick backwards. */
TARGET static void
NAME(logs)(double *x, size_t n)
{
	for (size_t i = 0; i < n; i += LANES)
	{
		Bits bits = (Bits) LOAD(Doubles, x + i);
		Doubles e = (Doubles) ((bits >> 52) | UINT64_C(0x4330000000000000)) - 0x1.00000000003ffp52;
		Doubles y =
			(Doubles) ((bits & UINT64_C(0x000fffffffffffff)) | UINT64_C(0x3ff0000000000000));
		Bits halve = (Bits) (y > 1.4142135623730951);
		Doubles m = NAME(choose)(halve, y * 0.5, y), s = (m - 1.0) / (m + 1.0), z = s * s;
		Doubles p;

		e += NAME(choose)(halve, (Doubles){0} + 1.0, (Doubles){0});
		AG_LN_SERIES(p, z);
		p = s * 2.0 + s * 2.0 * z * p;
		STORE(Doubles, x + i) =
			e * 6.93147180369123816490e-01 + (p + e * 1.90821492927058770002e-10);
	}
}

TARGET static void
NAME(widen)(const float *x, double *y, size_t n)
{
	for (size_t i = 0; i < n; i += LANES)
		STORE(Doubles, y + i) = __builtin_convertvector(LOAD(Halves, x + i), Doubles);
}

TARGET static void
NAME(add_rows)(double *sums, const float *const *rows, const double *c, int n_rows, size_t n)
{
	int r = 0;

	for (; r + 4 <= n_rows; r += 4)
	{
		const float *x0 = rows[r], *x1 = rows[r + 1], *x2 = rows[r + 2], *x3 = rows[r + 3];
		size_t i = 0;

		for (; i + LANES <= n; i += LANES)
		{
			Doubles sum = LOAD(Doubles, sums + i);

			sum += __builtin_convertvector(LOAD(Halves, x0 + i), Doubles) * c[r];
			sum += __builtin_convertvector(LOAD(Halves, x1 + i), Doubles) * c[r + 1];
			sum += __builtin_convertvector(LOAD(Halves, x2 + i), Doubles) * c[r + 2];
			sum += __builtin_convertvector(LOAD(Halves, x3 + i), Doubles) * c[r + 3];
			STORE(Doubles, sums + i) = sum;
		}
		for (; i < n; i++)
			sums[i] = (((sums[i] + (double) x0[i] * c[r]) + (double) x1[i] * c[r + 1]) +
					   (double) x2[i] * c[r + 2]) +
					  (double) x3[i] * c[r + 3];
	}
	for (; r < n_rows; r++)
		for (size_t i = 0; i < n; i++)
			sums[i] += (double) rows[r][i] * c[r];
}

/*
 * The tile of both products: 4 × (WIDE registers) sums that live in registers while `summed` terms a[t][i] b[t][k] are
 * added. a steps by a_step from term to term and by a_next from one of the four to the next.
 */
#define TILE(WIDE)                                                                                 \
	do                                                                                             \
	{                                                                                              \
		Doubles s0[WIDE] = {{0}}, s1[WIDE] = {{0}}, s2[WIDE] = {{0}}, s3[WIDE] = {{0}};            \
                                                                                                   \
		for (int t = 0; t < summed; t++)                                                           \
		{                                                                                          \
			const double *at = a + (size_t) t * a_step;                                            \
			const double *bt = b + (size_t) t * b_step;                                            \
                                                                                                   \
			for (int v = 0; v < WIDE; v++)                                                         \
			{                                                                                      \
				Doubles y = LOAD(Doubles, bt + v * LANES);                                         \
                                                                                                   \
				s0[v] += y * at[0];                                                                \
				s1[v] += y * at[a_next];                                                           \
				s2[v] += y * at[2 * a_next];                                                       \
				s3[v] += y * at[3 * a_next];                                                       \
			}                                                                                      \
		}                                                                                          \
		for (int v = 0; v < WIDE; v++)                                                             \
		{                                                                                          \
			STORE(Doubles, out + v * LANES) += s0[v];                                              \
			STORE(Doubles, out + out_stride + v * LANES) += s1[v];                                 \
			STORE(Doubles, out + 2 * out_stride + v * LANES) += s2[v];                             \
			STORE(Doubles, out + 3 * out_stride + v * LANES) += s3[v];                             \
		}                                                                                          \
	} while (0)

TARGET static void
NAME(tile_two)(const double *a, size_t a_step, size_t a_next, const double *b, size_t b_step,
			   int summed, double *out, size_t out_stride)
{
	TILE(2);
}

TARGET static void
NAME(tile_one)(const double *a, size_t a_step, size_t a_next, const double *b, size_t b_step,
			   int summed, double *out, size_t out_stride)
{
	TILE(1);
}

TARGET static void
NAME(row_of_tile)(const double *a, size_t a_step, const double *b, size_t b_step, int summed,
				  double *out)
{
	Doubles sum = {0};

	for (int t = 0; t < summed; t++)
		sum += LOAD(Doubles, b + (size_t) t * b_step) * a[(size_t) t * a_step];
	STORE(Doubles, out) += sum;
}

/* Eight by one register: where outputs fill a single one, four sums would wait for each other. */
TARGET static void
NAME(tile_tall)(const double *a, size_t a_step, size_t a_next, const double *b, size_t b_step,
				int summed, double *out, size_t out_stride)
{
	Doubles s[8] = {{0}};

	for (int t = 0; t < summed; t++)
	{
		const double *at = a + (size_t) t * a_step;
		Doubles y = LOAD(Doubles, b + (size_t) t * b_step);

		for (size_t i = 0; i < 8; i++)
			s[i] += y * at[i * a_next];
	}
	for (size_t i = 0; i < 8; i++)
		STORE(Doubles, out + i * out_stride) += s[i];
}

/* out[i][k] += sum over t of a[t a_step + i a_next] b[t b_step + k]. */
TARGET static void
NAME(product)(const double *a, size_t a_step, size_t a_next, const double *b, size_t b_step,
			  int summed, int n_i, int n_out, double *out, size_t out_stride)
{
	int i = 0;

	for (; n_out == LANES && i + 8 <= n_i; i += 8)
		NAME(tile_tall)
	(a + (size_t) i * a_next, a_step, a_next, b, b_step, summed, out + (size_t) i * out_stride,
	 out_stride);
	for (; i + 4 <= n_i; i += 4)
	{
		const double *ai = a + (size_t) i * a_next;
		double *to = out + (size_t) i * out_stride;
		int k = 0;

		for (; k + 2 * LANES <= n_out; k += 2 * LANES)
			NAME(tile_two)(ai, a_step, a_next, b + k, b_step, summed, to + k, out_stride);
		for (; k < n_out; k += LANES)
			NAME(tile_one)(ai, a_step, a_next, b + k, b_step, summed, to + k, out_stride);
	}
	for (; i < n_i; i++)
		for (int k = 0; k < n_out; k += LANES)
			NAME(row_of_tile)
	(a + (size_t) i * a_next, a_step, b + k, b_step, summed, out + (size_t) i * out_stride + k);
}

TARGET static void
NAME(multiply)(const double *x, size_t x_stride, const double *w, size_t w_stride, int n_rows,
			   int n_inner, int n_out, double *out, size_t out_stride)
{
	NAME(product)(x, 1, x_stride, w, w_stride, n_inner, n_rows, n_out, out, out_stride);
}

TARGET static void
NAME(multiply_transposed)(const double *x, size_t x_stride, const double *y, size_t y_stride,
						  int n_rows, int n_inner, int n_out, double *out, size_t out_stride)
{
	NAME(product)(x, x_stride, 1, y, y_stride, n_rows, n_inner, n_out, out, out_stride);
}

/* What a code that differs adds. */
TARGET static inline __attribute__((always_inline)) Floats
NAME(mismatches)(const AgPanel *panel, int part, const uint32_t *query_codes)
{
	Floats penalty = (Floats){0} + panel->mismatch, sum = {0};

	for (int s = 0; s < panel->n_codes; s++)
	{
		Codes b = LOAD(Codes, panel->codes + (size_t) s * AG_PANEL + part * 2 * LANES);

		sum += (Floats) ((Codes) penalty & (Codes) (b != query_codes[s]));
	}
	return sum;
}

TARGET static void
NAME(distances)(const AgPanel *panel, const float *query, const uint32_t *query_codes,
				float *squared)
{
	for (int p = 0; p < PARTS; p++)
	{
		Floats four[4] = {{0}}, penalty = (Floats){0} + panel->mismatch, sum;
		const float *at = panel->numbers + p * 2 * LANES;
		int j = 0;

		for (; j + 4 <= panel->n_numbers; j += 4)
			for (int i = 0; i < 4; i++)
			{
				Floats d = LOAD(Floats, at + (size_t) (j + i) * AG_PANEL) - query[j + i];

				four[i] += d * d;
			}
		for (int i = 0; j + i < panel->n_numbers; i++)
		{
			Floats d = LOAD(Floats, at + (size_t) (j + i) * AG_PANEL) - query[j + i];

			four[i] += d * d;
		}
		sum = (four[0] + four[1]) + (four[2] + four[3]);
		for (int s = 0; s < panel->n_codes; s++)
		{
			Codes b = LOAD(Codes, panel->codes + (size_t) s * AG_PANEL + p * 2 * LANES);

			sum += (Floats) ((Codes) penalty & (Codes) (b != query_codes[s]));
		}
		STORE(Floats, squared + p * 2 * LANES) = sum;
	}
}

/*
 * n queries, with their sums in registers. What rounding can do to any of the sums is less than `slack` times their terms:
 * each of its 4 (numbers + codes) + 16 or fewer roundings is at most 2^-24 of a sum of squares or mismatches.
 */
TARGET static inline __attribute__((always_inline)) void
NAME(compare)(int n, const AgPanel *panel, const float *const *queries,
			  const uint32_t *const *query_codes, const float *query_norms, const float *within,
			  uint32_t *masks)
{
	float slack = (float) (4 * (panel->n_numbers + panel->n_codes) + 16) * 0x1p-24f;
	float worst_codes = (float) panel->n_codes * panel->mismatch;
	Floats sums[AG_QUERIES][PARTS] = {{{0}}};

	for (int j = 0; j < panel->n_numbers; j++)
		for (int p = 0; p < PARTS; p++)
		{
			Floats b = LOAD(Floats, panel->numbers + (size_t) j * AG_PANEL + p * 2 * LANES);

			for (int q = 0; q < n; q++)
				sums[q][p] += b * queries[q][j];
		}
	for (int q = 0; q < n; q++)
	{
		float own = query_norms[q] - slack * (query_norms[q] + worst_codes);

		masks[q] = 0;
		for (int p = 0; p < PARTS; p++)
		{
			Floats norms = LOAD(Floats, panel->norms + p * 2 * LANES);
			Floats least = norms - norms * slack + own - sums[q][p] * 2.0f;

			if (panel->n_codes > 0)
				least += NAME(mismatches)(panel, p, query_codes[q]);
			masks[q] |= LESS(least, within[q]) << (p * 2 * LANES);
		}
	}
}

TARGET static void
NAME(near)(const AgPanel *panel, const float *const *queries, const uint32_t *const *query_codes,
		   const float *query_norms, const float *within, uint32_t *masks)
{
	for (int q = 0; q < AG_QUERIES; q += LANES)
		NAME(compare)
	(LANES, panel, queries + q, query_codes + q, query_norms + q, within + q, masks + q);
}

static const AgVectorOps NAME(ops) = {
	NAME_TEXT,       NAME(dot),  NAME(dot_float), NAME(widen),    NAME(exps),
	NAME(exp_rows),  NAME(logs), NAME(add_rows),  NAME(multiply), NAME(multiply_transposed),
	NAME(distances), NAME(near)};

#undef TILE
#undef PARTS
#undef Doubles
#undef Floats
#undef Halves
#undef Codes
#undef Bits
#undef VARIANT
#undef TARGET
#undef LANES
#undef NAME_TEXT
#undef LESS
