/*
 * net_ops_body.h - the loops of net_ops.h for one width of register. Included once a variant by net_ops.c, which defines
 *
 *   VARIANT      suffix of the functions' names
 *   TARGET       attribute that lets the compiler use the variant's instructions
 *   Lanes        sixteen floats, with load, zero, fma and store of that suffix; roots: square roots of a chunk; square:
 *                a 16 x 16 transposition
 *   TILE_ROWS    rows of the largest tile of a product (2, 4 or 8)
 *   TILE_GROUPS  its columns, in sixteens (1 or 3)
 *
 * No header guard: it is meant to be read several times.
 */
#define GLUE_(a, b) a##_##b
#define GLUE(a, b) GLUE_(a, b)
#define NAME(noun) GLUE(noun, VARIANT)
#define INLINE TARGET static inline __attribute__((always_inline))

/* A tile of n_rows x (16 n_groups) elements, all in registers: called with constants only. */
INLINE void
NAME(tile)(int n_rows, int n_groups, int n_inner, const float *a, size_t a_row, size_t a_inner,
		   const float *b, size_t b_stride, const float *init, float *c, size_t c_stride)
{
	Lanes sums[TILE_ROWS][TILE_GROUPS], row[TILE_GROUPS];

	for (int i = 0; i < n_rows; i++)
		for (int g = 0; g < n_groups; g++)
			sums[i][g] = init != NULL ? NAME(load)(init + g * AG_NET_LANES) : NAME(zero)();
	for (int k = 0; k < n_inner; k++)
	{
		for (int g = 0; g < n_groups; g++)
			row[g] = NAME(load)(b + g * AG_NET_LANES);
		for (int i = 0; i < n_rows; i++)
			for (int g = 0; g < n_groups; g++)
				sums[i][g] = NAME(fma)(a[(size_t) i * a_row], row[g], sums[i][g]);
		a += a_inner;
		b += b_stride;
	}
	for (int i = 0; i < n_rows; i++)
		for (int g = 0; g < n_groups; g++)
			NAME(store)(c + (size_t) i * c_stride + g * AG_NET_LANES, sums[i][g]);
}

/* All rows of 16 n_groups columns. */
INLINE void
NAME(strip)(int n_groups, int n_rows, int n_inner, const float *a, size_t a_row, size_t a_inner,
			const float *b, size_t b_stride, const float *init, float *c, size_t c_stride)
{
	int i = 0;

	for (; i + TILE_ROWS <= n_rows; i += TILE_ROWS)
		NAME(tile)
	(TILE_ROWS, n_groups, n_inner, a + (size_t) i * a_row, a_row, a_inner, b, b_stride, init,
	 c + (size_t) i * c_stride, c_stride);
	for (; i < n_rows; i++)
		NAME(tile)
	(1, n_groups, n_inner, a + (size_t) i * a_row, a_row, a_inner, b, b_stride, init,
	 c + (size_t) i * c_stride, c_stride);
}

TARGET static void
NAME(multiply)(int n_rows, int n_inner, int n_columns, const float *a, size_t a_row, size_t a_inner,
			   const float *b, size_t b_stride, const float *init, float *c, size_t c_stride)
{
	int groups = n_columns / AG_NET_LANES;

	while (groups > 0)
	{
		int n = groups < TILE_GROUPS ? groups : TILE_GROUPS;

#if TILE_GROUPS > 1
		if (n == 3 && groups != 4) /* four are better as two and two */
			NAME(strip)(3, n_rows, n_inner, a, a_row, a_inner, b, b_stride, init, c, c_stride);
		else if (n > 1)
		{
			n = 2;
			NAME(strip)(2, n_rows, n_inner, a, a_row, a_inner, b, b_stride, init, c, c_stride);
		}
		else
#endif
			NAME(strip)(1, n_rows, n_inner, a, a_row, a_inner, b, b_stride, init, c, c_stride);
		groups -= n;
		b += n * AG_NET_LANES;
		c += n * AG_NET_LANES;
		if (init != NULL)
			init += n * AG_NET_LANES;
	}
}

TARGET static void
NAME(add_row)(float x, const float *row, float *sums, size_t n)
{
	for (size_t j = 0; j < n; j += AG_NET_LANES)
		NAME(store)(sums + j, NAME(fma)(x, NAME(load)(row + j), NAME(load)(sums + j)));
}

/* A loop over the numbers, with or without the slope. */
#define ACTIVATE(value, derivative)                                                                \
	do                                                                                             \
	{                                                                                              \
		if (slope == NULL)                                                                         \
			for (size_t i = 0; i < n; i++)                                                         \
			{                                                                                      \
				float x = z[i];                                                                    \
				out[i] = value;                                                                    \
			}                                                                                      \
		else                                                                                       \
			for (size_t i = 0; i < n; i++)                                                         \
			{                                                                                      \
				float x = z[i];                                                                    \
				slope[i] = derivative;                                                             \
				out[i] = value;                                                                    \
			}                                                                                      \
	} while (0)

TARGET static void
NAME(activate)(AgActivation kind, size_t n, const float *z, float *out, float *slope)
{
	switch (kind)
	{
		case AG_ACT_RELU:
			ACTIVATE(ag_net_pick(x > 0.0f, x, 0.0f), ag_net_pick(x > 0.0f, 1.0f, 0.0f));
			break;
		case AG_ACT_ELU:
			ACTIVATE(ag_net_elu(x), ag_net_elu_slope(x));
			break;
		case AG_ACT_TANH:
			ACTIVATE(ag_net_tanh(x), ag_net_tanh_slope(x));
			break;
		case AG_ACT_SELU:
			ACTIVATE(ag_net_selu(x), ag_net_selu_slope(x));
			break;
		case AG_ACT_MISH:
			ACTIVATE(ag_net_mish(x), ag_net_mish_slope(x));
			break;
		case AG_ACT_NONE:
			ACTIVATE(x, 1.0f);
			break;
	}
}

TARGET static void
NAME(drop)(uint64_t key, uint64_t counter, uint32_t threshold, float factor, size_t n,
		   float *factors)
{
	uint64_t bits[DROP_CHUNK / 4];
	uint16_t parts[DROP_CHUNK];

	for (size_t begin = 0; begin < n; begin += DROP_CHUNK)
	{
		size_t size = n - begin < DROP_CHUNK ? n - begin : DROP_CHUNK;

		for (size_t i = 0; i < size / 4; i++)
			bits[i] = ag_random_u64(key, counter + begin / 4 + i);
		memcpy(parts, bits, size * sizeof parts[0]);
		for (size_t i = 0; i < size; i++)
			factors[begin + i] = parts[i] < threshold ? 0.0f : factor;
	}
}

TARGET static void
NAME(scale)(size_t n, const float *restrict y, float *restrict x)
{
	for (size_t i = 0; i < n; i++)
		x[i] *= y[i];
}

/* In parts, because a square root by itself is an instruction, but to a compiler a function with an errno. */
TARGET static void
NAME(adam)(const AgAdam *adam, size_t n, const float *restrict gradient, float *restrict weight,
		   float *restrict mean, float *restrict square)
{
	AgAdam a = *adam;
	float rest1 = 1.0f - a.beta1, rest2 = 1.0f - a.beta2;
	float roots[ADAM_CHUNK];

	for (size_t begin = 0; begin < n; begin += ADAM_CHUNK)
	{
		size_t size = n - begin < ADAM_CHUNK ? n - begin : ADAM_CHUNK;

		for (size_t i = 0; i < size; i++)
		{
			float g = gradient[i] + a.decay * weight[i];

			mean[i] = a.beta1 * mean[i] + rest1 * g;
			square[i] = a.beta2 * square[i] + rest2 * g * g;
		}
		NAME(roots)(size, square, roots);
		for (size_t i = 0; i < size; i++)
			weight[i] = weight[i] * a.shrink - a.rate * mean[i] / (roots[i] * a.root + a.eps);
		gradient += size;
		weight += size;
		mean += size;
		square += size;
	}
}

TARGET static void
NAME(transpose)(int n_rows, int n_columns, const float *from, size_t from_stride, float *to,
				size_t to_stride)
{
	for (int i = 0; i < n_rows; i += AG_NET_LANES)
		for (int j = 0; j < n_columns; j += AG_NET_LANES)
			NAME(square)
	(from + (size_t) i * from_stride + j, from_stride, to + (size_t) j * to_stride + i, to_stride);
}

TARGET static void
NAME(exponentials)(size_t n, const float *x, float *out)
{
	for (size_t i = 0; i < n; i++)
		out[i] = ag_net_exp(x[i]);
}

TARGET static void
NAME(waves)(size_t n, float w, float b, const float *restrict x, float *restrict out)
{
	for (size_t i = 0; i < n; i++)
		out[i] = ag_net_cos2pi(w * x[i] + b);
}

static const AgNetOps NAME(ops) = {
	NAME_TEXT,   NAME(multiply), NAME(add_row),   NAME(activate),     NAME(drop),
	NAME(scale), NAME(adam),     NAME(transpose), NAME(exponentials), NAME(waves)};

#undef GLUE_
#undef GLUE
#undef NAME
#undef INLINE
#undef ACTIVATE
#undef VARIANT
#undef NAME_TEXT
#undef TARGET
#undef Lanes
#undef TILE_ROWS
#undef TILE_GROUPS
