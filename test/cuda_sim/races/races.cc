/*
 * races.cc - every kernel under the thread sanitizer: no two threads touch a cell without a barrier, a collective or a launch between.
 * `races broken` runs kernels that do, and must be caught.
 */
#include <stdio.h>
#include <string.h>

#include <vector>

#include "kernels/ag_cuda.h"
#include "kernels/launch.cuh"
#include "unit/unit.h"

static const AgDeviceOps *ops;

__global__ void
neighbour_without_barrier(int *out)
{
	__shared__ int cells[64];

	cells[threadIdx.x] = (int) threadIdx.x;
	out[threadIdx.x] = cells[63 - threadIdx.x];
}

__global__ void
blocks_at_one_cell(int *out)
{
	if (threadIdx.x == blockIdx.x)
		out[0] = (int) blockIdx.x;
}

__global__ void
neighbour_with_barrier(int *out)
{
	__shared__ int cells[64];

	cells[threadIdx.x] = (int) threadIdx.x;
	__syncthreads();
	out[threadIdx.x] = cells[63 - threadIdx.x];
	atomicAdd(out + 64, 1);
}

static unsigned
draw(unsigned *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

/* A tree of one kind: gradients, growth, steps, scores. */
static void
grow(AgDeviceOrder order, AgDeviceLoss loss, bool has_draws, double path_smooth)
{
	const int n_rows = 2500, n_features = 6;
	std::vector<uint8_t> rows(n_rows * 12), columns(n_features * 2560);
	std::vector<double> target(n_rows), cuts(255), values(64, 0.25), valid(3 * n_rows);
	std::vector<int32_t> class_of(n_rows);
	std::vector<uint32_t> train, held;
	std::vector<AgDeviceNode> nodes(64);
	std::vector<AgDeviceLeaf> leaves(64);
	std::vector<int64_t> sums(128);
	std::vector<uint8_t> is_used(n_features, 1);
	AgDeviceFeature features[6] = {};
	unsigned state = 7;

	for (int c = 0; c < 255; c++)
		cuts[c] = c;
	for (int f = 0; f < n_features; f++)
	{
		features[f].n_bins = f == 5 ? 12 : 200;
		features[f].is_category = f == 5;
		features[f].cuts = cuts.data();
	}
	for (int i = 0; i < n_rows; i++)
	{
		for (int f = 0; f < n_features; f++)
			rows[i * 12 + f] = columns[f * 2560 + i] =
				(uint8_t) (draw(&state) % (unsigned) (features[f].n_bins + 1));
		target[i] = rows[i * 12] * 0.01 + rows[i * 12 + 5] % 3;
		class_of[i] = (int32_t) (rows[i * 12] / 100 + rows[i * 12 + 5] % 2) % 3;
		class_of[i] = loss == AG_DEVICE_LOGISTIC ? class_of[i] % 2 : class_of[i];
		(i % 5 == 0 ? held : train).push_back((uint32_t) i);
	}
	double base[3] = {0.0, 0.1, 0.2};
	AgDeviceBins bins = {n_rows, n_features, features, 12, rows.data(), 2560, columns.data()};
	AgDeviceBoostSpec spec = {};
	AgDeviceTreeOrder tree_order = {};
	AgDeviceTree tree = {};
	AgDevice *device;
	AgDeviceMatrix *matrix;
	AgDeviceBoost *boost;
	AgDeviceRange range;
	double size;
	char why[200];

	spec.loss = loss;
	spec.n_outputs = loss == AG_DEVICE_SOFTMAX ? 3 : 1;
	spec.unit = spec.positive = 1.0;
	spec.multiclass_hessian = 2.0;
	spec.target = target.data();
	spec.class_of = class_of.data();
	spec.train_rows = train.data();
	spec.n_train = (int64_t) train.size();
	spec.valid_rows = held.data();
	spec.n_valid = (int64_t) held.size();
	spec.base = base;
	spec.order = order;
	spec.max_leaves = 16;
	spec.max_depth = 6;
	spec.fraction_bylevel = path_smooth > 0.0 ? 0.7 : 1.0;
	spec.fraction_bynode = 1.0;
	spec.has_draws = has_draws;
	spec.draw_kind = has_draws ? 3 : 0; /* minimal variance sampling */
	spec.draw_share = 0.8;
	AG_REQUIRE(ops->open(0, INT64_C(1) << 40, &device, why, sizeof(why)) == AG_DEVICE_OK);
	AG_REQUIRE(ops->matrix_create(device, &bins, &matrix) == AG_DEVICE_OK);
	AG_REQUIRE(ops->boost_create(device, matrix, &spec, &boost) == AG_DEVICE_OK);
	AG_REQUIRE(ops->boost_gradients(device, boost, 0, &range) == AG_DEVICE_OK);
	if (has_draws)
		AG_REQUIRE(ops->boost_draw(device, boost, 5, &range, &size) == AG_DEVICE_OK);
	tree_order.from_draws = has_draws;
	tree_order.n_rows = spec.n_train;
	tree_order.per_g = 32766 / range.max_g;
	tree_order.per_h = 32766 / range.max_h;
	tree_order.rounding_key = 1;
	tree_order.growth_key = 2;
	tree_order.is_used = is_used.data();
	tree_order.rules.l2 = 1.0;
	tree_order.rules.min_rows = 5;
	tree_order.rules.is_plain = path_smooth == 0.0;
	tree_order.rules.path_smooth = path_smooth;
	tree_order.rules.max_cat_threshold = 32;
	tree_order.rules.max_cat_to_onehot = 4;
	tree_order.fixed_g = tree_order.fixed_h = 1 << 20;
	tree.nodes = nodes.data();
	tree.leaves = leaves.data();
	AG_REQUIRE(ops->boost_grow(device, boost, &tree_order, &tree) == AG_DEVICE_OK);
	AG_CHECK(tree.n_leaves > 1);
	AG_CHECK(ops->boost_step(device, boost, 0, values.data(), &range) == AG_DEVICE_OK);
	AG_CHECK(ops->boost_sums(device, boost, 1024, 1024, sums.data()) == AG_DEVICE_OK);
	AG_CHECK(ops->boost_unstep(device, boost, 0) == AG_DEVICE_OK);
	AG_CHECK(ops->boost_add(device, boost, 0, values.data()) == AG_DEVICE_OK);
	AG_CHECK(ops->boost_valid(device, boost, valid.data()) == AG_DEVICE_OK);
	ops->boost_free(device, boost);
	ops->matrix_free(device, matrix);
	ops->close(device);
}

int
main(int argc, char **argv)
{
	static int out[128];
	AgCudaTable table;

	sim::machine.devices.resize(1);
	sim::machine.devices[0].properties.totalGlobalMem = (size_t) 8 << 30;
	sim::machine.n_processors = 2;
	if (argc > 1)
	{
		if (strcmp(argv[1], "broken") == 0)
			AGK_LAUNCH(neighbour_without_barrier, 1, 64, 0, nullptr, out);
		else
			AGK_LAUNCH(blocks_at_one_cell, 8, 64, 0, nullptr, out);
		return simt::forget_threads();
	}
	AGK_LAUNCH(neighbour_with_barrier, 1, 64, 0, nullptr, out);
	AG_CHECK_EQ(out[64], 64);
	AG_REQUIRE(ag_cuda_init(AG_CUDA_ABI, &table));
	ops = table.ops;
	grow(AG_DEVICE_BEST_FIRST, AG_DEVICE_SQUARED, false, 0.0);
	grow(AG_DEVICE_BEST_FIRST, AG_DEVICE_LOGISTIC, false, 2.0);
	grow(AG_DEVICE_DEPTHWISE, AG_DEVICE_SOFTMAX, false, 0.0);
	grow(AG_DEVICE_SYMMETRIC, AG_DEVICE_LOGISTIC, true, 0.0);
	return ag_unit_done("races") + simt::forget_threads();
}
