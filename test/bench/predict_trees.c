/*
 * predict_trees.c - nanoseconds a row and tree of the three ways to score trees: the plain walk, the laid-out walk of one
 * row, and many rows at once.
 *
 *     predict_trees [n_trees n_leaves n_features n_rows]
 *
 * Trees are random, of 1 to n_leaves leaves, on numbers alone and with a third of the features categories; then ones that have all nodes
 * of a depth of 6, and symmetric ones, which ask the same on all nodes of a level. CPU time of one
 * thread, the median of five runs that take turns. Also: what layout and preparation take once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/random_trees.h"

#define N_RUNS 5

static int
compare(const void *a, const void *b)
{
	double x = *(const double *) a, y = *(const double *) b;

	return (x > y) - (x < y);
}

static double
median(double *runs)
{
	qsort(runs, N_RUNS, sizeof *runs, compare);
	return runs[N_RUNS / 2];
}

/* Thresholds of at most 200 values a feature, as a binned training gives; without categories if asked. */
static void
shape_nodes(AgTrees *trees, bool categories)
{
	AgTreeNode *nodes = (AgTreeNode *) trees->nodes;

	for (uint64_t i = 0; i < trees->n_nodes; i++)
	{
		if (!categories)
			nodes[i].flags &= AG_NODE_MISSING_LEFT;
		nodes[i].threshold = ag_random_below(9, i, 200) / 50.0 - 2.0;
	}
}

/* All nodes of a depth. */
static AgTrees *
make_full(const AgContext *ctx, uint32_t n_trees, uint32_t depth, bool is_symmetric)
{
	uint32_t n = (1u << depth) - 1;
	AgTrees *trees;
	AgTree *tree;
	AgTreeNode *nodes;
	double *leaves;

	if (ag_trees_create(ctx, &trees) != AG_OK)
		exit(1);
	trees->n_features = 28;
	trees->n_outputs = 1;
	trees->n_trees = n_trees;
	trees->n_nodes = (uint64_t) n * n_trees;
	trees->n_leaves = (uint64_t) (n + 1) * n_trees;
	trees->base = ag_arena_alloc(&trees->arena, 1, sizeof(double));
	trees->trees = tree = ag_arena_alloc(&trees->arena, n_trees, sizeof *tree);
	trees->nodes = nodes = ag_arena_alloc(&trees->arena, trees->n_nodes, sizeof *nodes);
	trees->leaves = leaves = ag_arena_alloc(&trees->arena, trees->n_leaves, sizeof *leaves);
	for (uint32_t t = 0; t < n_trees; t++)
	{
		tree[t] = (AgTree){(uint64_t) n * t, (uint64_t) (n + 1) * t, n, n + 1, 0, depth};
		for (uint32_t i = 0; i < n; i++)
		{
			uint32_t level = 31 - (uint32_t) __builtin_clz(i + 1);
			uint64_t which = (uint64_t) t * 1000 + (is_symmetric ? level : i);
			AgTreeNode *node = &nodes[(uint64_t) n * t + i];

			node->feature = ag_random_below(21, which, 28);
			node->threshold = ag_random_below(22, which, 200) / 50.0 - 2.0;
			node->flags = ag_random_below(23, which, 2) * AG_NODE_MISSING_LEFT;
			node->left = 2 * i + 1 < n ? (int32_t) (2 * i + 1) : ~(int32_t) (2 * i + 1 - n);
			node->right = 2 * i + 2 < n ? (int32_t) (2 * i + 2) : ~(int32_t) (2 * i + 2 - n);
		}
	}
	for (uint64_t i = 0; i < trees->n_leaves; i++)
		leaves[i] = ag_random_unit(24, i) - 0.5;
	return trees;
}

typedef enum Kind
{
	KIND_NUMBERS,
	KIND_CATEGORIES,
	KIND_FULL,
	KIND_SYMMETRIC
} Kind;

static const char *const kind_names[] = {"random", "random, categories", "full", "symmetric"};

static void
measure(const AgContext *ctx, RandomTrees shape, int64_t n_rows, Kind kind)
{
	double walk[N_RUNS], plan[N_RUNS], rows[N_RUNS], lay_out, prepare, began;
	double *features = malloc((size_t) n_rows * shape.n_features * sizeof(double));
	double *scores = malloc((size_t) n_rows * sizeof(double));
	double *check = malloc((size_t) n_rows * sizeof(double));
	AgTrees *trees;
	const struct AgTreePlan *laid;
	bool categories = kind == KIND_CATEGORIES;

	if (features == NULL || scores == NULL || check == NULL)
		exit(1);
	if (kind >= KIND_FULL)
		trees = make_full(ctx, shape.n_trees, 6, kind == KIND_SYMMETRIC);
	else if (random_trees(ctx, shape, &trees) != AG_OK)
		exit(1);
	else
		shape_nodes(trees, categories);
	for (int64_t i = 0; i < n_rows; i++)
		for (uint32_t f = 0; f < shape.n_features; f++)
			features[i * shape.n_features + f] =
				categories && f % 3 == 2
					? random_value(3, (uint64_t) i, f)
					: 6.0 * ag_random_unit(10, (uint64_t) i * shape.n_features + f) - 3.0;
	began = (double) ag_cpu_ns();
	if (ag_trees_lay_out(ctx, trees) != AG_OK)
		exit(1);
	lay_out = (double) ag_cpu_ns() - began;
	began = (double) ag_cpu_ns();
	if (ag_trees_prepare_rows(ctx, trees) != AG_OK)
		exit(1);
	prepare = (double) ag_cpu_ns() - began;
	laid = trees->plan;
	for (int run = 0; run < N_RUNS; run++)
	{
		double units = (double) n_rows * shape.n_trees;

		trees->plan = NULL;
		began = (double) ag_cpu_ns();
		for (int64_t i = 0; i < n_rows; i++)
			ag_trees_score(trees, features + i * shape.n_features, check + i);
		walk[run] = ((double) ag_cpu_ns() - began) / units;
		trees->plan = laid;
		began = (double) ag_cpu_ns();
		for (int64_t i = 0; i < n_rows; i++)
			ag_trees_score(trees, features + i * shape.n_features, scores + i);
		plan[run] = ((double) ag_cpu_ns() - began) / units;
		began = (double) ag_cpu_ns();
		ag_trees_score_rows(trees, n_rows, features, scores);
		rows[run] = ((double) ag_cpu_ns() - began) / units;
		if (memcmp(scores, check, (size_t) n_rows * sizeof(double)) != 0)
		{
			printf("scores differ\n");
			exit(1);
		}
	}
	printf("%u\t%.1f\t%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\n", shape.n_trees,
		   (double) trees->n_leaves / shape.n_trees, kind_names[kind], median(walk), median(plan),
		   median(rows), lay_out * 1e-6, prepare * 1e-6);
	ag_trees_free(trees);
	free(features);
	free(scores);
	free(check);
}

int
main(int argc, char **argv)
{
	AgMem mem;
	AgError err;
	AgContext ctx = {.mem = &mem, .deadline_ns = INT64_MAX, .error = &err};
	static const uint32_t usual[][2] = {{100, 31}, {100, 61}, {1000, 61}, {200, 255}};
	RandomTrees shape = {5, 28, 0, 1, 0, AG_LINK_IDENTITY};
	int64_t n_rows = argc > 4 ? atoll(argv[4]) : 6400;

	ag_mem_init(&mem, INT64_MAX);
	ag_error_init(&err);
	if (argc > 3)
		shape.n_features = (uint32_t) atoi(argv[3]);
	printf("trees\tmean leaves\tkind\twalk\tone row\tmany rows (ns/row/tree)\tlayout ms\t"
		   "preparation ms\n");
	for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
	{
		shape.n_trees = argc > 2 ? (uint32_t) atoi(argv[1]) : usual[i][0];
		shape.max_leaves = argc > 2 ? (uint32_t) atoi(argv[2]) : usual[i][1];
		measure(&ctx, shape, n_rows, KIND_NUMBERS);
		measure(&ctx, shape, n_rows, KIND_CATEGORIES);
		if (argc > 2)
			break;
	}
	for (uint32_t n = 100; argc <= 2 && n <= 1000; n *= 10)
	{
		shape = (RandomTrees){5, 28, n, 1, 64, AG_LINK_IDENTITY};
		measure(&ctx, shape, n_rows, KIND_FULL);
		measure(&ctx, shape, n_rows, KIND_SYMMETRIC);
	}
	return 0;
}
