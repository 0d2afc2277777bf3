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
rounded(uint64_t key, uint32_t row, AgGradient gradient, bool is_equal)
{
	uint64_t bits = ag_random_u64(key, row);
	double g = (double) gradient.g * 32766.0 + (double) (bits >> 32) / 4294967296.0;
	double h = (double) gradient.h * 32766.0 + (double) (bits & 0xffffffffu) / 4294967296.0;
	int32_t qg = (int32_t) floor(g), qh = (int32_t) floor(h);

	if (is_equal || (qh == 0 && gradient.h > 0.0f))
		qh = 1;
	return (uint32_t) qg << 16 | (uint32_t) qh;
}

static void
test_round(AgCpuLevel level)
{
	uint32_t rows[AG_LANES_BLOCK], packed[AG_LANES_BLOCK];
	AgGradient gradients[AG_LANES_BLOCK];
	double sum = 0.0, exact = 0.0;
	int n_wrong = 0;

	for (uint64_t block = 0; block < 100; block++)
	{
		bool is_equal = block % 7 == 6;
		AgPackedSums sums = {.min_h = UINT32_MAX}, slow = {.min_h = UINT32_MAX};

		for (int i = 0; i < AG_LANES_BLOCK; i++)
		{
			rows[i] = (uint32_t) (ag_random_u64(block, 1000 + (uint64_t) i) >> 33);
			gradients[i].g = (float) (ag_random_unit(block, (uint64_t) i) * 2.0 - 1.0);
			gradients[i].h =
				(float) (ag_random_unit(block, 500 + (uint64_t) i) * (i % 3 == 0 ? 1e-9 : 1.0));
		}
		gradients[0] = (AgGradient){1.0f, 1.0f};
		gradients[1] = (AgGradient){-1.0f, 0.0f};
		ag_round_block(level, AG_LANES_BLOCK, block, rows, gradients, 32766.0, 32766.0, is_equal,
					   packed, &sums);
		for (int i = 0; i < AG_LANES_BLOCK; i++)
		{
			uint32_t h = packed[i] & 0xffffu;

			n_wrong += packed[i] != rounded(block, rows[i], gradients[i], is_equal);
			slow.sum_g += (int32_t) packed[i] >> 16;
			slow.sum_h += h;
			slow.min_h = h < slow.min_h ? h : slow.min_h;
			slow.max_h = h > slow.max_h ? h : slow.max_h;
			exact += (double) gradients[i].g * 32766.0;
		}
		sum += (double) slow.sum_g;
		AG_CHECK(sums.sum_g == slow.sum_g && sums.sum_h == slow.sum_h);
		AG_CHECK(sums.min_h == slow.min_h && sums.max_h == slow.max_h);
	}
	AG_CHECK_EQ(n_wrong, 0);
	/* unbiased: 25,600 errors of at most 1 step, with a spread of about half a one */
	AG_CHECK_NEAR(sum, exact, 6 * 0.5 * 160);
}

/* Listed in any order, some twice. */
static void
check_sums(AgCpuLevel level, int n, const AgGradient *gradients, double per_g, double per_h)
{
	uint32_t ids[AG_LANES_BLOCK];
	int64_t sum_g = 3, sum_h = 4, slow_g = 3, slow_h = 4;

	for (int i = 0; i < n; i++)
	{
		ids[i] = (uint32_t) (i * 37 % AG_LANES_BLOCK);
		slow_g += (int64_t) ((double) gradients[ids[i]].g * per_g);
		slow_h += (int64_t) ((double) gradients[ids[i]].h * per_h);
	}
	ag_sum_listed(level, n, ids, gradients, per_g, per_h, &sum_g, &sum_h);
	AG_CHECK(sum_g == slow_g && sum_h == slow_h);
}

static void
test_logistic(AgCpuLevel level)
{
	double scores[AG_LANES_BLOCK];
	int32_t class_of[AG_LANES_BLOCK];
	AgGradient gradients[AG_LANES_BLOCK];
	int n_wrong = 0;

	for (uint64_t block = 0; block < 60; block++)
	{
		float max_g = 0.0f, max_h = 0.0f, slow_g = 0.0f, slow_h = 0.0f;
		int n = AG_LANES_BLOCK - (int) (block % 8);

		for (int i = 0; i < AG_LANES_BLOCK; i++)
		{
			scores[i] = (ag_random_unit(block, (uint64_t) i) - 0.5) * (block < 50 ? 8.0 : 3000.0);
			class_of[i] = (int32_t) (ag_random_u64(block, (uint64_t) i) >> 62) - 1;
		}
		ag_logistic_block(level, AG_LANES_BLOCK, scores, class_of, gradients);
		for (int i = 0; i < AG_LANES_BLOCK; i++)
		{
			double p = ag_sigmoid(scores[i]);

			n_wrong += gradients[i].g != (float) (p - (class_of[i] == 1 ? 1.0 : 0.0));
			n_wrong += gradients[i].h != (float) (p * (1.0 - p));
		}
		ag_gradient_range(level, n, gradients, &max_g, &max_h);
		for (int i = 0; i < n; i++)
		{
			slow_g = fabsf(gradients[i].g) > slow_g ? fabsf(gradients[i].g) : slow_g;
			slow_h = gradients[i].h > slow_h ? gradients[i].h : slow_h;
		}
		AG_CHECK(max_g == slow_g && max_h == slow_h);
		/* the last as few rows have them: beyond what fits a double's bits as they are */
		check_sums(level, n, gradients, 0x1.0p40, 0x1.0p42);
		check_sums(level, n, gradients, 0x1.0p40, 0x1.0p54);
		check_sums(level, n, gradients, 0x1.0p53, 0x1.0p30);
	}
	AG_CHECK_EQ(n_wrong, 0);
}

/* A step is the move, the gradients there, and their sums. */
static void
test_step(AgCpuLevel level)
{
	double scores[AG_LANES_BLOCK], moved[AG_LANES_BLOCK];
	int32_t class_of[AG_LANES_BLOCK];
	AgGradient gradients[AG_LANES_BLOCK];
	uint32_t ids[AG_LANES_BLOCK];
	int n_wrong = 0;

	for (uint64_t block = 0; block < 100; block++)
	{
		double width = block < 90 ? 20.0 : 3000.0, step = ag_random_unit(7, block) - 0.5;
		int n = 1 + (int) (block * 41 % AG_LANES_BLOCK);
		double per_g = block % 5 == 4 ? 0x1p53 : 0x1p40, per_h = block % 7 == 6 ? 0x1p54 : 0x1p41;
		int64_t sum_g = 5, sum_h = -3, expected_g = 5, expected_h = -3;

		for (int i = 0; i < AG_LANES_BLOCK; i++)
		{
			scores[i] = (ag_random_unit(block, (uint64_t) i) - 0.5) * width;
			moved[i] = scores[i] + (i < n ? step : 0.0);
			class_of[i] = (int32_t) (ag_random_u64(block, (uint64_t) i + 1000) % 2);
			ids[i] = (uint32_t) i;
		}
		ag_logistic_block(AG_CPU_PORTABLE, AG_LANES_BLOCK, moved, class_of, gradients);
		ag_sum_listed(AG_CPU_PORTABLE, n, ids, gradients, per_g, per_h, &expected_g, &expected_h);
		ag_logistic_step(level, n, step, scores, class_of, per_g, per_h, &sum_g, &sum_h);
		n_wrong +=
			sum_g != expected_g || sum_h != expected_h || memcmp(scores, moved, sizeof scores) != 0;
	}
	AG_CHECK_EQ(n_wrong, 0);
}

static void
test_places(AgCpuLevel level)
{
	double x[AG_LANES_BLOCK + AG_LANES];
	uint8_t places[AG_LANES_BLOCK];
	int n_wrong = 0;

	for (int n = 0; n <= AG_LANES_BLOCK; n++)
	{
		/* many of them alike, zeros of both signs among them */
		for (int i = 0; i < n; i++)
			x[i] = (double) ((int) (ag_random_u64((uint64_t) n, (uint64_t) i) % 40) - 20) *
				   (i % 2 ? 0.25 : -0.25);
		ag_places_block(level, n, x, places);
		for (int i = 0; i < n; i++)
		{
			int before = 0;

			for (int j = 0; j < n; j++)
				before += x[j] < x[i] || (x[j] == x[i] && j < i);
			n_wrong += places[i] != before;
		}
	}
	AG_CHECK_EQ(n_wrong, 0);
}

int
main(void)
{
	for (int level = AG_CPU_PORTABLE; level <= (int) ag_cpu_level(); level++)
	{
		test_exp((AgCpuLevel) level);
		test_round((AgCpuLevel) level);
		test_logistic((AgCpuLevel) level);
		test_step((AgCpuLevel) level);
		test_places((AgCpuLevel) level);
	}
	return ag_unit_done("lanes");
}
