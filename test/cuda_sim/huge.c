/*
 * huge.c - indices beyond 2^32. The simulator's allocations of 1 GiB and more are only there to be indexed: nothing fills them, and of
 * what is copied there the end arrives. So the last rows of a matrix of 4.8e9 cells are trained on, with histograms of 4.6e9 cells
 * behind each other, and must give what the same rows give in a small matrix. An index of 32 bits would find other rows.
 */
#include <sys/mman.h>

#include "cuda_sim/lib/there.h"

#define N_FEATURES 2000
#define N_BINS 140
#define ROW_STRIDE 2016
#define N_TRAIN 200
#define N_VALID 50
#define N_LISTED (N_TRAIN + N_VALID)

/* The listed rows are the last ones of n_rows. */
typedef struct Huge
{
	int64_t n_rows, column_stride;
	uint8_t *rows, *columns;
	double *target;
	int64_t *values;
	uint32_t listed[N_LISTED];
	AgDeviceFeature features[N_FEATURES];
} Huge;

static double cuts[N_BINS];
static int32_t no_ranks[N_FEATURES];

static void *
reserve(size_t n_bytes)
{
	void *at = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	AG_REQUIRE(at != MAP_FAILED);
	return at;
}

static void
huge_init(Huge *huge, int64_t n_rows)
{
	memset(huge, 0, sizeof *huge);
	huge->n_rows = n_rows;
	huge->column_stride = (n_rows + 63) / 64 * 64;
	huge->rows = reserve((size_t) (n_rows * ROW_STRIDE));
	huge->columns = reserve((size_t) (N_FEATURES * huge->column_stride));
	huge->target = reserve((size_t) n_rows * sizeof(double));
	huge->values = reserve((size_t) n_rows * sizeof(int64_t));
	for (int f = 0; f < N_FEATURES; f++)
		huge->features[f] = (AgDeviceFeature){.n_bins = N_BINS, .cuts = cuts, .centers = cuts};
	for (int64_t i = 0; i < N_LISTED; i++)
	{
		int64_t id = n_rows - N_LISTED + i;

		huge->listed[i] = (uint32_t) id;
		for (int64_t f = 0; f < N_FEATURES; f++)
		{
			uint8_t bin =
				(uint8_t) (ag_random_below(ag_key(3, (uint64_t) f), (uint64_t) i, N_BINS + 1));

			huge->rows[id * ROW_STRIDE + f] = bin;
			huge->columns[f * huge->column_stride + id] = bin;
		}
		/* whole numbers, for which rounding to steps of 1 does nothing */
		huge->target[id] = huge->rows[id * ROW_STRIDE + N_FEATURES - 1] / 20 - 3;
		huge->values[id] = (int64_t) huge->target[id] * (INT64_C(1) << 40);
	}
}

static void
huge_end(Huge *huge)
{
	munmap(huge->rows, (size_t) (huge->n_rows * ROW_STRIDE));
	munmap(huge->columns, (size_t) (N_FEATURES * huge->column_stride));
	munmap(huge->target, (size_t) huge->n_rows * sizeof(double));
	munmap(huge->values, (size_t) huge->n_rows * sizeof(int64_t));
}

static AgDeviceMatrix *
huge_matrix(const Huge *huge, There *there)
{
	AgDeviceBins bins = {huge->n_rows, N_FEATURES,          huge->features, ROW_STRIDE,
						 huge->rows,   huge->column_stride, huge->columns,  0};
	AgDeviceMatrix *matrix;

	AG_REQUIRE(there->gpu.ops->matrix_create(there->gpu.device, &bins, &matrix) == AG_DEVICE_OK);
	return matrix;
}

/* What came out, without what depends on where the rows lie. */
typedef struct Grown
{
	AgDeviceNode nodes[8];
	AgDeviceLeaf leaves[8];
	double valid[N_VALID];
	int32_t n_leaves;
	AgDeviceForestNode forest[200];
	uint32_t n_forest;
} Grown;

/* A tree that splits on the last feature, with room for so many leaves. */
static void
grow_tree(There *there, const AgDeviceMatrix *matrix, const Huge *huge, int max_leaves,
		  Grown *grown)
{
	const AgDeviceOps *ops = there->gpu.ops;
	double base = 0.0, values[8] = {0.5, 1.5, 2.5, 3.5};
	uint8_t is_used[N_FEATURES] = {0};
	AgDeviceNode *nodes = calloc((size_t) max_leaves, sizeof *nodes);
	AgDeviceLeaf *leaves = calloc((size_t) max_leaves, sizeof *leaves);
	AgDeviceTree tree = {.nodes = nodes, .leaves = leaves};
	AgDeviceBoostSpec spec = {.loss = AG_DEVICE_SQUARED,
							  .n_outputs = 1,
							  .unit = 1.0,
							  .positive = 1.0,
							  .multiclass_hessian = 1.0,
							  .target = huge->target,
							  .train_rows = huge->listed,
							  .n_train = N_TRAIN,
							  .valid_rows = huge->listed + N_TRAIN,
							  .n_valid = N_VALID,
							  .base = &base,
							  .max_leaves = max_leaves,
							  .max_depth = 2,
							  .fraction_bylevel = 1.0,
							  .fraction_bynode = 1.0};
	AgDeviceTreeOrder order = {.n_rows = N_TRAIN,
							   .per_g = 1.0,
							   .per_h = 1.0,
							   .has_equal_hessians = true,
							   .is_used = is_used,
							   .rules = {.l2 = 1.0, .min_rows = 5, .is_plain = true},
							   .fixed_g = 1024.0,
							   .fixed_h = 1024.0};
	AgDeviceBoost *boost;
	AgDeviceRange range;

	is_used[N_FEATURES - 1] = 1;
	AG_REQUIRE(ops->boost_create(there->gpu.device, matrix, &spec, &boost) == AG_DEVICE_OK);
	AG_REQUIRE(ops->boost_gradients(there->gpu.device, boost, 0, &range) == AG_DEVICE_OK);
	AG_REQUIRE(ops->boost_grow(there->gpu.device, boost, &order, &tree) == AG_DEVICE_OK);
	AG_REQUIRE(tree.n_leaves == 4);
	AG_REQUIRE(ops->boost_add(there->gpu.device, boost, 0, values) == AG_DEVICE_OK);
	AG_REQUIRE(ops->boost_valid(there->gpu.device, boost, grown->valid) == AG_DEVICE_OK);
	grown->n_leaves = tree.n_leaves;
	memcpy(grown->nodes, nodes, 3 * sizeof *nodes);
	memcpy(grown->leaves, leaves, 4 * sizeof *leaves);
	ops->boost_free(there->gpu.device, boost);
	free(nodes);
	free(leaves);
}

static void
grow_forest(There *there, const AgDeviceMatrix *matrix, const Huge *huge, Grown *grown)
{
	const AgDeviceOps *ops = there->gpu.ops;
	AgDeviceForestSpec spec = {.train_rows = huge->listed,
							   .n_train = N_TRAIN,
							   .n_draws = N_TRAIN,
							   .has_bootstrap = true,
							   .values = huge->values,
							   .rank_of = no_ranks,
							   .n_features_tried = 3,
							   .max_leaves = INT64_MAX,
							   .max_depth = 3,
							   .min_rows_split = 2,
							   .min_rows_leaf = 1,
							   .n_trees = 1};
	AgDeviceForest *forest;
	AgDeviceForestTree tree;
	int32_t n_at_once;

	AG_REQUIRE(ops->forest_create(there->gpu.device, matrix, &spec, &forest, &n_at_once) ==
			   AG_DEVICE_OK);
	AG_REQUIRE(ops->forest_grow(there->gpu.device, forest, 0, 1, NULL, NULL) == AG_DEVICE_OK);
	AG_REQUIRE(ops->forest_tree(there->gpu.device, forest, 0, &tree) == AG_DEVICE_OK);
	AG_REQUIRE(tree.n_nodes > 6 && tree.n_nodes < 200);
	AG_REQUIRE(ops->forest_fetch(there->gpu.device, forest, 0, grown->forest, NULL, NULL) ==
			   AG_DEVICE_OK);
	grown->n_forest = tree.n_nodes;
	ops->forest_free(there->gpu.device, forest);
}

/* A leaf's slot is its place among 2 * max_leaves + 2 of 2 * N_FEATURES * (N_BINS + 1) sums. */
static void
grow_all(int64_t n_rows, int max_leaves, Grown *grown)
{
	Huge *huge = malloc(sizeof *huge);
	AgDeviceMatrix *matrix;
	There there;

	AG_REQUIRE(huge != NULL);
	memset(grown, 0, sizeof *grown);
	huge_init(huge, n_rows);
	there_init(&there, INT64_C(1) << 40);
	matrix = huge_matrix(huge, &there);
	grow_tree(&there, matrix, huge, max_leaves, grown);
	grow_forest(&there, matrix, huge, grown);
	there.gpu.ops->matrix_free(there.gpu.device, matrix);
	there_end(&there);
	huge_end(huge);
	free(huge);
}

int
main(void)
{
	static Grown small, large;

	there_begin();
	for (int b = 0; b < N_BINS; b++)
		cuts[b] = b;
	for (int f = 0; f < N_FEATURES; f++)
		no_ranks[f] = -1;
	grow_all(N_LISTED, 8, &small);
	if (is_simulated)
	{
		grow_all(2400000, 4096, &large);
		AG_CHECK(memcmp(&small, &large, sizeof small) == 0);
	}
	return ag_unit_done("cuda huge");
}
