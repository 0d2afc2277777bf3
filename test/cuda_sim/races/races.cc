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

/* Numbers and one category; three classes, or two. */
struct Rows
{
	static constexpr int n_rows = 2500, n_features = 6;
	std::vector<uint8_t> rows, columns;
	std::vector<double> target, cuts;
	std::vector<int32_t> class_of;
	std::vector<uint32_t> train, held;
	AgDeviceFeature features[n_features] = {};
	AgDeviceBins bins = {};

	explicit Rows(int n_classes)
		: rows(n_rows * 12), columns(n_features * 2560), target(n_rows), cuts(255), class_of(n_rows)
	{
		unsigned state = 7;

		for (int c = 0; c < 255; c++)
			cuts[c] = c;
		for (int f = 0; f < n_features; f++)
		{
			features[f].n_bins = f == 5 ? 12 : 200;
			features[f].is_category = f == 5;
			features[f].cuts = features[f].centers = cuts.data();
		}
		for (int i = 0; i < n_rows; i++)
		{
			for (int f = 0; f < n_features; f++)
				rows[i * 12 + f] = columns[f * 2560 + i] =
					(uint8_t) (draw(&state) % (unsigned) (features[f].n_bins + 1));
			target[i] = rows[i * 12] * 0.01 + rows[i * 12 + 5] % 3;
			class_of[i] = (int32_t) (rows[i * 12] / 100 + rows[i * 12 + 5] % 2) % 3 % n_classes;
			(i % 5 == 0 ? held : train).push_back((uint32_t) i);
		}
		bins = {n_rows, n_features, features, 12, rows.data(), 2560, columns.data(), 0};
	}
};

/* A tree of one kind: gradients, growth, steps, scores, their metric; of squared errors monotone, of absolute ones with percentiles as leaves. */
static void
grow(AgDeviceOrder order, AgDeviceLoss loss, bool has_draws, double path_smooth)
{
	Rows rows(loss == AG_DEVICE_LOGISTIC ? 2 : 3);
	std::vector<double> values(64, 0.25), valid(3 * Rows::n_rows);
	std::vector<AgDeviceNode> nodes(64);
	std::vector<AgDeviceLeaf> leaves(64);
	std::vector<int64_t> sums(128);
	std::vector<uint8_t> is_used(Rows::n_features, 1);
	std::vector<double> weight(Rows::n_rows, 1.5);
	double base[3] = {0.0, 0.1, 0.2}, level = 0.3, measured[2];
	int8_t directions[Rows::n_features] = {1, -1, 0, 0, 0, 0};
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
	spec.target = rows.target.data();
	spec.class_of = rows.class_of.data();
	spec.train_rows = rows.train.data();
	spec.n_train = (int64_t) rows.train.size();
	spec.valid_rows = rows.held.data();
	spec.n_valid = (int64_t) rows.held.size();
	spec.base = base;
	spec.order = order;
	spec.monotone =
		loss == AG_DEVICE_SQUARED && order != AG_DEVICE_SYMMETRIC ? directions : nullptr;
	spec.renews_leaves = loss == AG_DEVICE_ABSOLUTE;
	spec.levels = &level;
	spec.weight = loss == AG_DEVICE_ABSOLUTE ? weight.data() : nullptr;
	spec.sums_weights = spec.weighs_metric = spec.weight != nullptr;
	spec.metric = loss == AG_DEVICE_LOGISTIC || loss == AG_DEVICE_SOFTMAX
					  ? AG_DEVICE_METRIC_LOG
					  : AG_DEVICE_METRIC_ABSOLUTE;
	spec.max_leaves = 16;
	spec.max_depth = 6;
	spec.fraction_bylevel = path_smooth > 0.0 ? 0.7 : 1.0;
	spec.fraction_bynode = 1.0;
	spec.has_draws = has_draws;
	spec.draw_kind = has_draws ? 3 : 0; /* minimal variance sampling */
	spec.draw_share = 0.8;
	AG_REQUIRE(ops->open(0, INT64_C(1) << 40, &device, why, sizeof(why)) == AG_DEVICE_OK);
	AG_REQUIRE(ops->matrix_create(device, &rows.bins, &matrix) == AG_DEVICE_OK);
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
	tree_order.rules.is_plain = path_smooth == 0.0 && spec.monotone == nullptr;
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
	if (spec.renews_leaves)
		AG_CHECK(ops->boost_renew(device, boost, 0, 1 << 20, values.data()) == AG_DEVICE_OK);
	AG_CHECK(ops->boost_add(device, boost, 0, values.data()) == AG_DEVICE_OK);
	AG_CHECK(ops->boost_valid(device, boost, valid.data()) == AG_DEVICE_OK);
	AG_CHECK(ops->boost_metric(device, boost, measured) == AG_DEVICE_OK);
	AG_CHECK(measured[1] >= (double) rows.held.size());
	AG_CHECK(ops->boost_keep(device, boost) == AG_DEVICE_OK);
	AG_CHECK(ops->boost_kept(device, boost, valid.data()) == AG_DEVICE_OK);
	ops->boost_free(device, boost);
	ops->matrix_free(device, matrix);
	ops->close(device);
}

/* Two trees of a forest: nodes of a whole block and of warps; with a matrix that comes in blocks, by columns and gathered rows too. */
static void
grow_forest(int n_classes, bool is_extra, int64_t max_leaves, bool is_streamed = false)
{
	Rows rows(n_classes > 0 ? n_classes : 3);
	std::vector<int64_t> values(Rows::n_rows), class_rows(3, 700);
	int32_t rank_of[Rows::n_features] = {-1, -1, -1, -1, -1, 0}, n_at_once = 0;
	AgDeviceForestSpec spec = {};
	AgDeviceForestTree tree = {};
	AgDevice *device;
	AgDeviceMatrix *matrix;
	AgDeviceForest *forest;
	char why[200];

	for (int i = 0; i < Rows::n_rows; i++)
		values[i] = (int64_t) (rows.target[i] * 1e15);
	spec.n_classes = n_classes;
	spec.is_extra = is_extra;
	spec.has_bootstrap = spec.wants_out_of_bag = !is_extra;
	spec.train_rows = rows.train.data();
	spec.n_train = spec.n_draws = (int64_t) rows.train.size();
	spec.class_of = rows.class_of.data();
	spec.values = n_classes > 0 ? nullptr : values.data();
	spec.class_rows = n_classes > 2 ? class_rows.data() : nullptr;
	spec.weighs_by_tree = true;
	spec.rank_of = rank_of;
	spec.n_ranks = 1;
	spec.n_features_tried = 3;
	spec.max_leaves = max_leaves;
	spec.max_depth = 5;
	spec.min_rows_split = 40;
	spec.min_rows_leaf = 3;
	spec.n_trees = 2;
	AG_REQUIRE(ops->open(0, INT64_C(1) << 40, &device, why, sizeof(why)) == AG_DEVICE_OK);
	if (is_streamed)
	{
		AgDeviceShape shape = {Rows::n_rows, 1100, Rows::n_features};
		int64_t need = ops->forest_memory(device, &shape, &spec, 2);

		ops->close(device);
		rows.bins.spare_bytes = need;
		AG_REQUIRE(ops->open(0, need + 40000, &device, why, sizeof(why)) == AG_DEVICE_OK);
	}
	AG_REQUIRE(ops->matrix_create(device, &rows.bins, &matrix) == AG_DEVICE_OK);
	if (is_streamed)
	{
		AgDeviceLayout layout;

		ops->matrix_layout(matrix, &layout);
		AG_CHECK(layout.n_blocks > 1);
	}
	AG_REQUIRE(ops->forest_create(device, matrix, &spec, &forest, &n_at_once) == AG_DEVICE_OK);
	AG_REQUIRE(ops->forest_grow(device, forest, 0, 2, nullptr, nullptr) == AG_DEVICE_OK);
	for (int32_t i = 0; i < 2; i++)
	{
		AG_CHECK(ops->forest_tree(device, forest, i, &tree) == AG_DEVICE_OK);
		std::vector<AgDeviceForestNode> nodes(tree.n_nodes);
		std::vector<uint8_t> ranks(256), mask(rows.train.size() / 8 + 1);
		AgDeviceForestLeaf leaf = {};
		uint32_t shares[3];

		AG_CHECK(tree.is_whole && tree.n_nodes > 2);
		AG_CHECK(ops->forest_fetch(device, forest, i, nodes.data(), ranks.data(),
								   is_extra ? nullptr : mask.data()) == AG_DEVICE_OK);
		leaf.n_rows = nodes[0].n_rows;
		AG_CHECK(ops->forest_leaves(device, forest, i, &leaf, 1,
									n_classes > 2 ? shares : nullptr) == AG_DEVICE_OK);
		AG_CHECK_EQ(leaf.weight, nodes[0].weight);
	}
	ops->forest_free(device, forest);
	ops->matrix_free(device, matrix);
	ops->close(device);
}

/* One op of a net, of every kind, over arrays that don't overlap. */
static std::vector<AgDeviceNetOp>
ops_of_a_net()
{
	std::vector<AgDeviceNetOp> made;

	for (int kind = AG_NET_DO_INPUT; kind <= AG_NET_DO_TRANSPOSE; kind++)
	{
		AgDeviceNetOp op = {};

		op.kind = kind;
		op.n_rows = op.n_inner = 20;
		op.n_columns = 32;
		op.n_lots = 2;
		op.a = 0;
		op.b = 10000;
		op.c = 20000;
		op.d = 30000;
		op.e = 40000;
		op.f = 50000;
		op.more = 60000;
		op.a_stride = op.b_stride = op.c_stride = 48;
		op.a_inner = 1;
		op.a_lot = op.b_lot = op.c_lot = op.d_lot = 2000;
		if (kind == AG_NET_DO_EMBEDDING)
		{
			op.index = 1;
			op.n_columns = 4;
		}
		if (kind == AG_NET_DO_LOSS || kind == AG_NET_DO_STATS || kind == AG_NET_DO_NORM_SUMS ||
			kind == AG_NET_DO_EMBEDDING)
			op.n_lots = 1;
		if (kind == AG_NET_DO_TRANSPOSE)
			op.n_rows = 32;
		made.push_back(op);
	}
	return made;
}

static void
step(AgDeviceNetLoss loss, bool has_half)
{
	const int n_rows = 40;
	std::vector<float> numbers(n_rows * 16, 0.5f), target(n_rows, 0.25f), quantiles(3, 0.5f);
	std::vector<uint32_t> places, slots(n_rows * 2);
	std::vector<int32_t> class_of(n_rows, 1);
	std::vector<AgDeviceNetOp> made = ops_of_a_net();
	AgDeviceNetSlot of_net[2] = {{-1, 0, 3, 3, 3}, {70000, 3, 5, 30, 4}};
	AgDeviceNetStep steps[2] = {};
	AgDeviceNetSpec spec = {};
	AgDeviceNet *net;
	AgDevice *device;
	char why[200];

	for (int i = 0; i < n_rows; i++)
	{
		places.push_back((uint32_t) i);
		slots[2 * i] = (uint32_t) i % 4 == 3 ? 8 : (uint32_t) i % 4;
		slots[2 * i + 1] = 3 + (uint32_t) i % 5;
	}
	spec.n_floats = 80000;
	spec.n_rows = spec.n_train = n_rows;
	spec.number_stride = 16;
	spec.numbers = numbers.data();
	spec.n_numbers = 3;
	spec.n_slots = 2;
	spec.row_slots = slots.data();
	spec.slots = of_net;
	spec.no_column = 8;
	spec.bends = true;
	spec.n_inputs = 40;
	spec.input_stride = 48;
	spec.n_waves = 4;
	spec.n_wave_inputs = 3;
	spec.first_wave = 6;
	spec.waves = 10000;
	spec.train_rows = places.data();
	spec.loss = loss;
	spec.target = target.data();
	spec.class_of = class_of.data();
	spec.quantiles = quantiles.data();
	spec.n_outputs = 3;
	spec.n_batch = 20;
	spec.n_members = 1;
	spec.ops = made.data();
	spec.n_ops = (int32_t) made.size();
	spec.has_half = has_half;
	for (int s = 0; s < 2; s++)
		steps[s] = {20 * s, 7, 20000, 20000, 0.01f, 0.9f, 0.99f, 1.0f, 1e-8f, 0.0f, 1.0f};
	AG_REQUIRE(ops->open(0, INT64_C(1) << 40, &device, why, sizeof(why)) == AG_DEVICE_OK);
	AG_REQUIRE(ops->net_create(device, &spec, &net) == AG_DEVICE_OK);
	AG_CHECK(ops->net_order(device, net, places.data()) == AG_DEVICE_OK);
	AG_CHECK(ops->net_steps(device, net, steps, 2) == AG_DEVICE_OK);
	ops->net_free(device, net);
	ops->close(device);
}

/* Rows of numbers and slots, for what takes them so. */
struct Dense
{
	static constexpr int n_rows = 300, stride = 16, n_slots = 2, n_columns = 9;
	std::vector<float> numbers;
	std::vector<uint32_t> slots, rows, self, places;
	std::vector<int32_t> slot_of, class_of;
	std::vector<int64_t> starts;
	std::vector<double> target, quantiles;

	Dense() : numbers(n_rows * stride), target(n_rows, 0.5), quantiles(3, 0.5)
	{
		unsigned state = 3;

		for (int i = 0; i < n_rows; i++)
		{
			for (int j = 0; j < 5; j++)
				numbers[i * stride + j] = (float) (draw(&state) % 100) * 0.01f;
			slots.push_back((uint32_t) i % 4);
			slots.push_back(i % 7 == 6 ? n_columns : 4 + (uint32_t) i % 5);
			rows.push_back((uint32_t) i);
			self.push_back(i % 2 == 0 ? (uint32_t) i : UINT32_MAX);
			class_of.push_back(i % 3);
		}
		for (int c = 0; c < n_columns; c++)
		{
			starts.push_back((int64_t) places.size());
			slot_of.push_back(c >= 4);
			for (int i = 0; i < n_rows; i++)
				if (slots[2 * i + (c >= 4)] == (uint32_t) c)
					places.push_back((uint32_t) i);
		}
		starts.push_back((int64_t) places.size());
	}
};

static void
neighbours()
{
	Dense rows;
	AgDeviceKnnSpec spec = {};
	std::vector<AgDeviceNeighbor> found(Dense::n_rows * 20);
	std::vector<int32_t> n_found(Dense::n_rows);
	int64_t n_at_once = 0;
	AgDeviceKnn *knn;
	AgDevice *device;
	char why[200];

	spec.n_rows = spec.n_kept = spec.n_queries = Dense::n_rows;
	spec.number_stride = Dense::stride;
	spec.numbers = rows.numbers.data();
	spec.n_numbers = 5;
	spec.n_slots = Dense::n_slots;
	spec.row_slots = rows.slots.data();
	spec.mismatch = 2.0f;
	spec.kept = spec.queries = rows.rows.data();
	spec.self = rows.self.data();
	spec.n_neighbors = 20;
	AG_REQUIRE(ops->open(0, INT64_C(1) << 40, &device, why, sizeof(why)) == AG_DEVICE_OK);
	AG_REQUIRE(ops->knn_create(device, &spec, &knn, &n_at_once) == AG_DEVICE_OK);
	AG_CHECK_EQ(n_at_once, Dense::n_rows);
	AG_CHECK(ops->knn_search(device, knn, 0, n_at_once, found.data(), n_found.data()) ==
			 AG_DEVICE_OK);
	AG_CHECK_EQ(n_found[1], 20);
	ops->knn_free(device, knn);
	ops->close(device);
}

static void
linear(AgDeviceLinearLoss loss)
{
	bool is_wide = loss == AG_DEVICE_LINEAR_SOFTMAX || loss == AG_DEVICE_LINEAR_QUANTILES;
	int padded = is_wide ? 8 : 1;
	int n_values = (Dense::stride + Dense::n_columns + 2) * padded;
	std::vector<double> x(n_values, 0.01), gradient(n_values), losses(2), products(32 * 32);
	AgDeviceProducts order = {32, Dense::stride + Dense::n_columns, 2, 64};
	AgDeviceLinearSpec spec = {};
	Dense rows;
	AgDeviceLinear *model;
	AgDevice *device;
	char why[200];

	spec.n_rows = spec.n_train = Dense::n_rows;
	spec.number_stride = Dense::stride;
	spec.numbers = rows.numbers.data();
	spec.n_numbers = 5;
	spec.n_slots = Dense::n_slots;
	spec.n_columns = Dense::n_columns;
	spec.row_slots = rows.slots.data();
	spec.slot_of = rows.slot_of.data();
	spec.column_starts = rows.starts.data();
	spec.column_places = rows.places.data();
	spec.train_rows = rows.rows.data();
	spec.target = rows.target.data();
	spec.class_of = rows.class_of.data();
	spec.quantiles = rows.quantiles.data();
	spec.loss = loss;
	spec.n_outputs = is_wide ? 3 : 1;
	spec.n_padded = padded;
	spec.n_parts = 2;
	spec.block_rows = 64;
	AG_REQUIRE(ops->open(0, INT64_C(1) << 40, &device, why, sizeof(why)) == AG_DEVICE_OK);
	AG_REQUIRE(ops->linear_create(device, &spec, &model) == AG_DEVICE_OK);
	AG_CHECK(ops->linear_sum(device, model, x.data(), 0.1, losses.data(), gradient.data(), nullptr,
							 nullptr) == AG_DEVICE_OK);
	if (loss == AG_DEVICE_LINEAR_SQUARED)
		AG_CHECK(ops->linear_products(device, model, &order, products.data(), nullptr, nullptr) ==
				 AG_DEVICE_OK);
	ops->linear_free(device, model);
	ops->close(device);
}

static void
bin()
{
	const int n = 1500;
	std::vector<double> values(n), cuts(200);
	std::vector<uint64_t> keys(n);
	std::vector<uint8_t> bins(n);
	unsigned state = 9;
	int64_t n_keys = 0;
	AgDeviceBinner *binner;
	AgDevice *device;
	char why[200];

	for (double &value : values)
		value = draw(&state) % 7 == 0 ? (double) NAN : draw(&state) % 1000;
	for (int c = 0; c < 200; c++)
		cuts[c] = c * 5;
	AG_REQUIRE(ops->open(0, INT64_C(1) << 40, &device, why, sizeof(why)) == AG_DEVICE_OK);
	AG_REQUIRE(ops->bin_create(device, n, n, &binner) == AG_DEVICE_OK);
	AG_CHECK(ops->bin_sort(device, binner, values.data(), n, keys.data(), &n_keys) == AG_DEVICE_OK);
	AG_CHECK(n_keys > 1000 && n_keys < n && keys[0] < keys[n_keys - 1]);
	AG_CHECK(ops->bin_assign(device, binner, values.data(), n, cuts.data(), 200, bins.data()) ==
			 AG_DEVICE_OK);
	ops->bin_free(device, binner);
	ops->close(device);
}

int
main(int argc, char **argv)
{
	static int out[128];
	AgCudaTable table;

	sim::machine.devices.resize(1);
	sim::machine.devices[0].properties.totalGlobalMem = (size_t) 8 << 30;
	sim::machine.devices[0].properties.major = 9;
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
	grow(AG_DEVICE_BEST_FIRST, AG_DEVICE_ABSOLUTE, false, 0.0);
	grow(AG_DEVICE_SYMMETRIC, AG_DEVICE_LOGISTIC, true, 0.0);
	grow_forest(0, false, 20);
	grow_forest(3, false, INT64_MAX);
	grow_forest(2, true, 20);
	grow_forest(3, false, 20, true);
	grow_forest(0, true, INT64_MAX, true);
	step(AG_DEVICE_NET_SOFTMAX, false);
	step(AG_DEVICE_NET_QUANTILES, true);
	neighbours();
	bin();
	linear(AG_DEVICE_LINEAR_SQUARED);
	linear(AG_DEVICE_LINEAR_LOGISTIC);
	linear(AG_DEVICE_LINEAR_SOFTMAX);
	linear(AG_DEVICE_LINEAR_QUANTILES);
	return ag_unit_done("races") + simt::forget_threads();
}
