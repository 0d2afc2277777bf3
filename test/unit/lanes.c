/*
 * lanes.c - every level of CPU gives the bytes of the scalar forms.
 */
#include "engine/base/maths.h"
#include "engine/base/rng.h"
#include "engine/model/lanes.h"
#include "unit.h"

static void
test_exp(AgCpuLevel level)
{
	double x[AG_LANES_BLOCK], out[AG_LANES_BLOCK];
	int n_wrong = 0;

	for (uint64_t block = 0; block < 200; block++)
	{
		/* ever wider, the last ones beyond what vectors do themselves */
		double width = block < 190 ? 0.01 * (double) (block * block) : 1600.0;
		int n = 1 + (int) (block * 37 % AG_LANES_BLOCK);

		for (int i = 0; i < AG_LANES_BLOCK; i++)
			x[i] = (ag_random_unit(block, (uint64_t) i) - 0.5) * width;
		x[0] = block % 2 ? 0.0 : -0.0;
		ag_exp_block(level, n, x, out);
		for (int i = 0; i < n; i++)
		{
			double expected = ag_exp(x[i]);

			n_wrong += memcmp(&out[i], &expected, sizeof expected) != 0;
		}
		ag_sigmoid_block(level, n, x, out);
		for (int i = 0; i < n; i++)
		{
			double expected = ag_sigmoid(x[i]);

			n_wrong += memcmp(&out[i], &expected, sizeof expected) != 0;
		}
	}
	AG_CHECK_EQ(n_wrong, 0);
}

static uint32_t
rounded(uint64_t key, uint32_t row, double g, double h)
{
	uint64_t bits = ag_random_u64(key, row);
	int32_t qg = (int32_t) floor(g * 32766.0 + (double) (bits >> 32) / 4294967296.0);
	int32_t qh = (int32_t) floor(h * 32766.0 + (double) (bits & 0xffffffffu) / 4294967296.0);

	return (uint32_t) qg << 16 | (uint32_t) (qh == 0 && h > 0.0 ? 1 : qh);
}

static void
test_round(AgCpuLevel level)
{
	uint32_t rows[AG_LANES_BLOCK], packed[AG_LANES_BLOCK];
	double g[AG_LANES_BLOCK], h[AG_LANES_BLOCK], sum = 0.0, exact = 0.0;
	int n_wrong = 0;

	for (uint64_t block = 0; block < 100; block++)
	{
		for (int i = 0; i < AG_LANES_BLOCK; i++)
		{
			rows[i] = (uint32_t) (ag_random_u64(block, 1000 + (uint64_t) i) >> 33);
			g[i] = ag_random_unit(block, (uint64_t) i) * 2.0 - 1.0;
			h[i] = ag_random_unit(block, 500 + (uint64_t) i) * (i % 3 == 0 ? 1e-9 : 1.0);
		}
		g[0] = 1.0;
		g[1] = -1.0;
		h[0] = 1.0;
		h[1] = 0.0;
		ag_round_block(level, AG_LANES_BLOCK, block, rows, g, h, 32766.0, 32766.0, packed);
		for (int i = 0; i < AG_LANES_BLOCK; i++)
		{
			n_wrong += packed[i] != rounded(block, rows[i], g[i], h[i]);
			sum += (double) ((int32_t) packed[i] >> 16);
			exact += g[i] * 32766.0;
		}
	}
	AG_CHECK_EQ(n_wrong, 0);
	/* unbiased: 25,600 errors of at most 1 step, with a spread of about half a one */
	AG_CHECK_NEAR(sum, exact, 6 * 0.5 * 160);
}

int
main(void)
{
	for (int level = AG_CPU_PORTABLE; level <= (int) ag_cpu_level(); level++)
	{
		test_exp((AgCpuLevel) level);
		test_round((AgCpuLevel) level);
	}
	return ag_unit_done("lanes");
}
