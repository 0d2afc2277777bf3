/*
 * sample.c - draws of rows and features: how many, each once, and by key alone.
 */
#include "engine/model/sample.h"
#include "unit.h"

static void
test_size(void)
{
	AG_CHECK_EQ(ag_sample_size(1.0, 10), 10);
	AG_CHECK_EQ(ag_sample_size(0.55, 10), 6);
	AG_CHECK_EQ(ag_sample_size(0.01, 10), 2);
	AG_CHECK_EQ(ag_sample_size(0.01, 1), 1);
}

static void
test_front(void)
{
	int chosen[20] = {0};

	for (uint64_t key = 0; key < 4000; key++)
	{
		int list[20], again[20], seen = 0;

		for (int i = 0; i < 20; i++)
			list[i] = again[i] = i;
		ag_sample_front(key, 5, 20, list);
		ag_sample_front(key, 5, 20, again);
		for (int i = 0; i < 20; i++)
			seen |= 1 << list[i];
		if (seen != (1 << 20) - 1 || memcmp(list, again, sizeof list) != 0)
			AG_CHECK(!"not a permutation, or not by key");
		for (int i = 0; i < 5; i++)
			chosen[list[i]]++;
	}
	for (int i = 0; i < 20; i++) /* 1000 expected, spread 27 */
		AG_CHECK_NEAR(chosen[i], 1000, 150);
}

static void
test_rows(void)
{
	uint32_t rows[5000], bag[5001], half[2501];
	int64_t n, n_half, at = 0, n_same = 0;

	for (uint32_t i = 0; i < 5000; i++)
		rows[i] = 3 * i;
	n = ag_sample_rows(9, 0.7, rows, 5000, bag);
	AG_CHECK_NEAR((double) n, 3500, 200);
	for (int64_t i = 1; i < n; i++)
		if (bag[i] <= bag[i - 1])
			AG_CHECK(!"the bag doesn't ascend");
	/* whether a row is in doesn't depend on which others are asked about */
	n_half = ag_sample_rows(9, 0.7, rows + 2500, 2500, half);
	while (at < n && bag[at] < rows[2500])
		at++;
	AG_CHECK_EQ(n - at, n_half);
	for (int64_t i = 0; i < n_half && at + i < n; i++)
		n_same += half[i] == bag[at + i];
	AG_CHECK_EQ(n_same, n_half);
}

int
main(void)
{
	test_size();
	test_front();
	test_rows();
	return ag_unit_done("sample");
}
