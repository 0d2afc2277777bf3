/* trees.c - scores, link and image of trees: against a slow telling of the same rules, and against damage. */
#include "unit/unit.h"

#include "engine/base/hash.h"
#include "engine/data/format.h"
#include "engine/model/trees_plan.h"
#include "engine/model/trees_rows.h"
#include "unit/random_trees.h"

static AgMem mem;
static AgError err;
static AgContext ctx;

static const RandomTrees shapes[] = {
	{1, 7, 20, 1, 31, AG_LINK_IDENTITY},          {2, 1, 3, 1, 2, AG_LINK_EXP},
	{3, 12, 30, 3, 17, AG_LINK_SOFTMAX},          {4, 3, 5, 1, 1, AG_LINK_SIGMOID},
	{5, 30, 8, 1, 300, AG_LINK_SIGMOID},          {6, 5, 0, 2, 4, AG_LINK_SOFTMAX},
	{7, 3, 40, 1, 64, AG_LINK_SIGMOID},           {9, 2, 33, 1, 31, AG_LINK_IDENTITY},
	{10, 2, 16, 4, 9, AG_LINK_SOFTMAX},           {11, 7, 20, 1, 31, AG_LINK_MEAN_FREQUENCIES},
	{12, 7, 33, 4, 31, AG_LINK_MEAN_FREQUENCIES}, {13, 3, 8, 2, 200, AG_LINK_MEAN_FREQUENCIES},
};
#define N_SHAPES (sizeof shapes / sizeof shapes[0])

static AgTrees *
make(RandomTrees shape)
{
	AgTrees *trees;

	AG_REQUIRE(random_trees(&ctx, shape, &trees) == AG_OK);
	return trees;
}

static void
make_row(const AgTrees *trees, uint64_t seed, uint64_t row, double *features)
{
	for (uint32_t f = 0; f < trees->n_features; f++)
		features[f] = random_value(seed, row, f);
}

/* What trees.h says, word by word. */
static double
leaf_of(const AgTrees *trees, const AgTree *tree, int32_t at, const double *features)
{
	const AgTreeNode *node;
	double x;
	bool left;

	if (at < 0)
		return trees->leaves[tree->first_leaf + (uint64_t) (-1 - at)];
	node = &trees->nodes[tree->first_node + (uint64_t) at];
	x = features[node->feature];
	if (isnan(x))
		left = node->flags & AG_NODE_MISSING_LEFT;
	else if (node->flags & AG_NODE_CATEGORY)
	{
		left = node->flags & AG_NODE_UNSEEN_LEFT;
		for (uint32_t code = 0; code < node->n_set * 64; code++)
			if (x == (double) code)
				left = trees->sets[node->set + code / 64] & (UINT64_C(1) << (code % 64));
	}
	else
		left = !(x > node->threshold);
	return leaf_of(trees, tree, left ? node->left : node->right, features);
}

/* A leaf joins the scores: itself, or the vector that it names. */
static void
tell_leaf(const AgTrees *trees, uint32_t output, double leaf, double *told)
{
	if (trees->link != AG_LINK_MEAN_FREQUENCIES || trees->n_outputs == 1)
		told[output] += leaf;
	else
		for (uint64_t e = trees->vectors[(int) leaf]; e < trees->vectors[(int) leaf + 1]; e++)
			told[trees->entries[e].output] += trees->entries[e].share;
}

static void
scores_as_told(void)
{
	for (size_t s = 0; s < N_SHAPES; s++)
	{
		AgTrees *trees = make(shapes[s]);
		double features[64], scores[8], told[8];

		AG_CHECK_EQ(ag_trees_check(&ctx, trees, AG_ERR_INTERNAL), AG_OK);
		for (uint64_t row = 0; row < 300; row++)
		{
			make_row(trees, s, row, features);
			memcpy(told, trees->base, trees->n_outputs * sizeof(double));
			for (uint32_t t = 0; t < trees->n_trees; t++)
				tell_leaf(trees, trees->trees[t].output,
						  leaf_of(trees, &trees->trees[t], trees->trees[t].n_nodes > 0 ? 0 : -1,
								  features),
						  told);
			ag_trees_score(trees, features, scores);
			AG_CHECK(memcmp(scores, told, trees->n_outputs * sizeof(double)) == 0);
		}
		ag_trees_free(trees);
	}
	ag_trees_free(NULL);
}

/* The fast layout gives the same bytes; where it can't be made the plain walk stays. */
static void
layouts(void)
{
	static double features[1600];
	double plain[8], fast[8];
	AgTrees *trees;

	for (size_t s = 0; s < N_SHAPES; s++)
	{
		trees = make(shapes[s]);
		AG_CHECK_EQ(ag_trees_lay_out(&ctx, trees), AG_OK);
		AG_CHECK((trees->plan != NULL) == (shapes[s].n_trees >= 8));
		for (uint64_t row = 0; trees->plan != NULL && row < 500; row++)
		{
			const struct AgTreePlan *plan = trees->plan;

			make_row(trees, s + 50, row, features);
			ag_trees_score(trees, features, fast);
			trees->plan = NULL;
			ag_trees_score(trees, features, plain);
			trees->plan = plan;
			AG_CHECK(memcmp(plain, fast, trees->n_outputs * sizeof(double)) == 0);
		}
		ag_trees_free(trees);
	}
	trees = make((RandomTrees){11, 1600, 200, 1, 200, AG_LINK_IDENTITY});
	AG_CHECK_EQ(ag_trees_lay_out(&ctx, trees), AG_OK);
	AG_CHECK(trees->plan == NULL); /* too many features split on */
	make_row(trees, 1, 1, features);
	ag_trees_score(trees, features, plain);
	AG_CHECK(isfinite(plain[0]));
	ag_trees_free(trees);
	trees = make(shapes[0]);
	trees->n_features = UINT32_MAX; /* a forged width costs no memory */
	AG_CHECK_EQ(ag_trees_lay_out(&ctx, trees), AG_OK);
	AG_CHECK(trees->plan == NULL);
	ag_trees_free(trees);
	/* a feature that is a number here and a category there */
	trees = make((RandomTrees){9, 2, 33, 1, 31, AG_LINK_IDENTITY});
	((AgTreeNode *) trees->nodes)[0].flags = AG_NODE_CATEGORY;
	AG_CHECK_EQ(ag_trees_lay_out(&ctx, trees), AG_OK);
	AG_CHECK(trees->plan == NULL);
	ag_trees_free(trees);
}

/* Thresholds on a grid, so that no feature has more than 254 of them. */
static void
coarsen(AgTrees *trees)
{
	AgTreeNode *nodes = (AgTreeNode *) trees->nodes;

	for (uint64_t i = 0; i < trees->n_nodes; i++)
		if (isfinite(nodes[i].threshold) && fabs(nodes[i].threshold) < 1e6)
			nodes[i].threshold = floor(nodes[i].threshold * 8.0) / 8.0;
}

/* Too large for masks in the mean; or, with vectors, too many of them. */
static bool
are_big(const AgTrees *trees)
{
	uint32_t n_large = 0;

	for (uint32_t t = 0; t < trees->n_trees; t++)
		n_large += trees->trees[t].n_nodes > AG_ROWS_MAX_NODES;
	return ag_cpu_level() == AG_CPU_PORTABLE
			   ? trees->n_trees > 0 && trees->n_leaves / trees->n_trees > 64
			   : n_large > trees->n_trees / 8;
}

/* Many rows at once give the same bytes as one by one: any number of them, in trees of any size. */
static void
many_rows(void)
{
	static const RandomTrees big[] = {{12, 20, 40, 1, 60, AG_LINK_IDENTITY},
									  {13, 4, 48, 3, 100, AG_LINK_SOFTMAX},
									  {14, 9, 17, 1, 400, AG_LINK_SIGMOID},
									  {15, 2, 300, 1, 31, AG_LINK_SIGMOID}};
	static const int64_t counts[] = {0, 1, 15, 16, 17, 63, 64, 65, 200};
	static double features[200 * 64], scores[200 * 4], alone[200 * 4];

	for (size_t s = 0; s < N_SHAPES + 4; s++)
	{
		AgTrees *trees = make(s < N_SHAPES ? shapes[s] : big[s - N_SHAPES]);
		bool is_big = are_big(trees);

		coarsen(trees);
		for (uint64_t row = 0; row < 200; row++)
			make_row(trees, s + 90, row, features + row * trees->n_features);
		for (int64_t i = 0; i < 200; i++)
			ag_trees_score(trees, features + i * trees->n_features, alone + i * trees->n_outputs);
		AG_CHECK_EQ(ag_trees_lay_out(&ctx, trees), AG_OK); /* by it alone at first */
		for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++)
		{
			size_t n = (size_t) counts[c] * trees->n_outputs;

			for (size_t i = 0; i < 200 * 4; i++)
				scores[i] = -77.0;
			ag_trees_score_rows(trees, counts[c], features, scores);
			AG_CHECK(memcmp(scores, alone, n * sizeof(double)) == 0);
			AG_CHECK(n == 800 || scores[n] == -77.0);
		}
		AG_CHECK_EQ(ag_trees_prepare_rows(&ctx, trees), AG_OK);
		AG_CHECK((trees->rows != NULL) == (trees->n_trees >= 16 && !is_big));
		for (uint64_t row = 0; row < 200; row++)
			make_row(trees, s + 90, row, features + row * trees->n_features);
		for (int64_t i = 0; i < 200; i++)
			ag_trees_score(trees, features + i * trees->n_features, alone + i * trees->n_outputs);
		for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++)
		{
			size_t n = (size_t) counts[c] * trees->n_outputs;

			for (int level = AG_CPU_PORTABLE; level <= (int) ag_cpu_level(); level++)
			{
				if (trees->rows != NULL)
					((AgTreeRows *) trees->rows)->level = (AgCpuLevel) level;
				for (size_t i = 0; i < 200 * 4; i++)
					scores[i] = -77.0;
				ag_trees_score_rows(trees, counts[c], features, scores);
				AG_CHECK(memcmp(scores, alone, n * sizeof(double)) == 0);
				AG_CHECK(n == 800 || scores[n] == -77.0); /* nothing behind the last row */
			}
		}
		ag_trees_free(trees);
	}
}

/* Trees with all nodes of a depth; of symmetric ones those of a level ask the same, in every second tree for a category. */
static AgTrees *
make_full(uint32_t depth, bool is_symmetric, uint32_t n_outputs)
{
	uint32_t n = (1u << depth) - 1, n_trees = 24;
	AgTrees *trees;
	AgTree *tree;
	AgTreeNode *nodes;
	double *leaves;
	uint64_t *sets;

	AG_REQUIRE(ag_trees_create(&ctx, &trees) == AG_OK);
	trees->n_features = 6;
	trees->n_outputs = n_outputs;
	trees->link = n_outputs > 1 ? AG_LINK_SOFTMAX : AG_LINK_IDENTITY;
	trees->n_trees = n_trees;
	trees->n_nodes = (uint64_t) n * n_trees;
	trees->n_leaves = (uint64_t) (n + 1) * n_trees;
	trees->n_set_words = trees->n_nodes;
	trees->base = ag_arena_alloc(&trees->arena, n_outputs, sizeof(double));
	trees->trees = tree = ag_arena_alloc(&trees->arena, n_trees, sizeof *tree);
	trees->nodes = nodes = ag_arena_alloc(&trees->arena, trees->n_nodes, sizeof *nodes);
	trees->sets = sets = ag_arena_alloc(&trees->arena, trees->n_nodes, sizeof *sets);
	trees->leaves = leaves = ag_arena_alloc(&trees->arena, trees->n_leaves, sizeof *leaves);
	for (uint32_t t = 0; t < n_trees; t++)
	{
		tree[t] =
			(AgTree){(uint64_t) n * t, (uint64_t) (n + 1) * t, n, n + 1, t % n_outputs, depth};
		for (uint32_t i = 0; i < n; i++)
		{
			uint32_t level = 31 - (uint32_t) __builtin_clz(i + 1);
			uint64_t which = (uint64_t) t * 1000 + (is_symmetric ? level : i);
			uint64_t at = (uint64_t) n * t + i;
			AgTreeNode *node = &nodes[at];
			bool is_category = t % 2 == 1 && is_symmetric && level % 2 == 0;

			node->feature = is_category ? 2 + 3 * ag_random_below(21, which, 2)
										: 3 * ag_random_below(21, which, 2);
			node->threshold = is_category ? 0.0 : ag_random_below(22, which, 64) / 8.0 - 4.0;
			node->flags = ag_random_below(23, which, 2) * AG_NODE_MISSING_LEFT;
			if (is_category)
			{
				node->flags |= AG_NODE_CATEGORY;
				node->set = (uint32_t) at;
				node->n_set = 1;
				sets[at] = ag_random_u64(25, which) & 0xffff;
			}
			node->left = 2 * i + 1 < n ? (int32_t) (2 * i + 1) : ~(int32_t) (2 * i + 1 - n);
			node->right = 2 * i + 2 < n ? (int32_t) (2 * i + 2) : ~(int32_t) (2 * i + 2 - n);
		}
	}
	for (uint64_t i = 0; i < trees->n_leaves; i++)
		leaves[i] = ag_random_unit(24, i) - 0.5;
	return trees;
}

/* Shallow trees have forms of their own, and the same scores by each of them. */
static void
shallow_trees(void)
{
	static double features[100 * 6], scores[100 * 3], alone[100 * 3];

	for (uint32_t depth = 1; depth <= AG_ROWS_FULL_DEPTH + 1; depth++)
		for (int what = 0; what < 4; what++)
		{
			AgTrees *trees = make_full(depth, what & 1, what & 2 ? 3 : 1);
			size_t n = 100 * (size_t) trees->n_outputs;

			AG_CHECK_EQ(ag_trees_check(&ctx, trees, AG_ERR_INTERNAL), AG_OK);
			for (uint64_t row = 0; row < 100; row++)
				make_row(trees, depth, row, features + row * 6);
			for (int64_t i = 0; i < 100; i++)
				ag_trees_score(trees, features + i * 6, alone + i * trees->n_outputs);
			AG_CHECK_EQ(ag_trees_prepare_rows(&ctx, trees), AG_OK);
			AG_REQUIRE(trees->rows != NULL);
			for (uint32_t t = 0; t < trees->n_trees; t++)
				AG_CHECK_EQ(trees->rows->trees[t].form, depth > AG_ROWS_FULL_DEPTH ? AG_ROWS_MASKS
														: depth == 1 || what & 1 ? AG_ROWS_SYMMETRIC
																				 : AG_ROWS_FULL);
			for (int level = AG_CPU_PORTABLE; level <= (int) ag_cpu_level(); level++)
			{
				((AgTreeRows *) trees->rows)->level = (AgCpuLevel) level;
				ag_trees_score_rows(trees, 100, features, scores);
				AG_CHECK(memcmp(scores, alone, n * sizeof(double)) == 0);
			}
			ag_trees_free(trees);
		}
}

/* What can't be prepared is scored row by row; a single tree too large is walked. */
static void
rows_that_do_not_fit(void)
{
	AgTrees *trees = make((RandomTrees){16, 1, 40, 1, 40, AG_LINK_IDENTITY});
	AgTreeNode *nodes = (AgTreeNode *) trees->nodes;
	double features[64], scores[64], one;

	for (uint64_t i = 0; i < trees->n_nodes; i++)
		nodes[i].threshold = (double) i / (double) trees->n_nodes;
	AG_CHECK(trees->n_nodes > 254);
	AG_CHECK_EQ(ag_trees_prepare_rows(&ctx, trees), AG_OK);
	AG_CHECK(trees->rows == NULL); /* more cuts than a byte tells apart */
	for (uint64_t i = 0; i < 64; i++)
		features[i] = random_value(5, i, 0);
	ag_trees_score_rows(trees, 64, features, scores);
	for (int i = 0; i < 64; i++)
	{
		ag_trees_score(trees, features + i, &one);
		AG_CHECK(scores[i] == one);
	}
	/* exactly 254 are told apart, and any fewer */
	for (uint64_t n_cuts = 254; n_cuts > 0; n_cuts = n_cuts > 130 ? n_cuts - 31 : n_cuts - 1)
	{
		for (uint64_t i = 0; i < trees->n_nodes; i++)
			nodes[i].threshold = (double) (i % n_cuts) / 32.0 - 4.0;
		trees->rows = NULL;
		AG_CHECK_EQ(ag_trees_prepare_rows(&ctx, trees), AG_OK);
		AG_REQUIRE(trees->rows != NULL);
		/* below, at and between cuts */
		for (uint64_t i = 0; i < 62; i++)
			features[i] =
				(double) ag_random_below(n_cuts, i, n_cuts * 2 + 3) / 64.0 - 4.0 - 1.0 / 64;
		features[62] = (double) NAN;
		features[63] = (double) INFINITY;
		for (int level = AG_CPU_PORTABLE; level <= (int) ag_cpu_level(); level++)
		{
			((AgTreeRows *) trees->rows)->level = (AgCpuLevel) level;
			ag_trees_score_rows(trees, 64, features, scores);
			for (int i = 0; i < 64; i++)
			{
				ag_trees_score(trees, features + i, &one);
				AG_CHECK(scores[i] == one);
			}
		}
	}
	ag_trees_free(trees);
	trees = make((RandomTrees){17, 600, 300, 1, 60, AG_LINK_IDENTITY});
	AG_CHECK_EQ(ag_trees_prepare_rows(&ctx, trees), AG_OK);
	AG_CHECK(trees->rows == NULL); /* more columns than there is room for */
	trees->n_features = UINT32_MAX;
	AG_CHECK_EQ(ag_trees_prepare_rows(&ctx, trees), AG_OK);
	AG_CHECK(trees->rows == NULL);
	ag_trees_free(trees);
}

static void
links(void)
{
	static const double extremes[] = {0.0,    -0.0,  1.0,   -1.0,   36.0,
									  -800.0, 800.0, 1e300, -1e300, 5e-324};
	AgTrees trees = {.n_outputs = 1, .link = AG_LINK_SIGMOID};
	double out[3], scores[3];

	AG_CHECK_EQ(ag_trees_n_out(&trees), 2);
	for (size_t i = 0; i < sizeof extremes / sizeof extremes[0]; i++)
	{
		double x = extremes[i];

		trees.link = AG_LINK_SIGMOID;
		trees.n_outputs = 1;
		ag_trees_link(&trees, &x, out);
		AG_CHECK(out[0] + out[1] == 1.0 && out[0] >= 0.0 && out[1] >= 0.0);
		AG_CHECK_NEAR(out[1], 1.0 / (1.0 + exp(-x)), 1e-15);
		trees.link = AG_LINK_EXP;
		out[0] = x;
		ag_trees_link(&trees, out, out);
		AG_CHECK(isfinite(out[0]));
		AG_CHECK(x > 700.0 || fabs(out[0] - exp(x)) <= 1e-14 * exp(x));
		trees.link = AG_LINK_IDENTITY;
		ag_trees_link(&trees, &x, out);
		AG_CHECK(out[0] == x);
		for (size_t j = 0; j < sizeof extremes / sizeof extremes[0]; j++)
		{
			trees.link = AG_LINK_SOFTMAX;
			trees.n_outputs = 3;
			scores[0] = x;
			scores[1] = extremes[j];
			scores[2] = 0.5;
			AG_CHECK_EQ(ag_trees_n_out(&trees), 3);
			ag_trees_link(&trees, scores, out);
			AG_CHECK_NEAR(out[0] + out[1] + out[2], 1.0, 4e-16);
			AG_CHECK(out[0] >= 0.0 && out[1] >= 0.0 && out[2] >= 0.0);
			AG_CHECK((out[0] > out[1]) <= (scores[0] > scores[1]));
			ag_trees_link(&trees, scores, scores);
			AG_CHECK(memcmp(scores, out, sizeof out) == 0);
		}
	}
}

/* A forest's outputs are means over its trees. */
static void
means(void)
{
	AgTrees trees = {.n_outputs = 1, .n_trees = 8, .link = AG_LINK_MEAN_FREQUENCIES};
	double scores[3] = {2.0, 5.0, 1.0}, out[3];

	AG_CHECK_EQ(ag_trees_n_out(&trees), 2);
	ag_trees_link(&trees, scores, out);
	AG_CHECK(out[0] == 0.75 && out[1] == 0.25);
	trees.n_outputs = 3;
	AG_CHECK_EQ(ag_trees_n_out(&trees), 3);
	ag_trees_link(&trees, scores, scores);
	AG_CHECK(scores[0] == 0.25 && scores[1] == 0.625 && scores[2] == 0.125);
}

static void *
image_of(const AgTrees *trees, size_t *size)
{
	AgWriter writer;
	void *image;

	ag_writer_init(&writer, &mem);
	AG_REQUIRE(ag_trees_write(&ctx, trees, &writer) == AG_OK);
	*size = writer.size;
	image = ag_mem_alloc(&mem, writer.size, 1); /* blocks are 64-byte aligned */
	AG_REQUIRE(image != NULL);
	memcpy(image, writer.data, writer.size);
	ag_writer_free(&writer);
	return image;
}

static void
round_trips(void)
{
	for (size_t s = 0; s < N_SHAPES; s++)
	{
		AgTrees *trees = make(shapes[s]), *again;
		double features[64], scores[8], scores_again[8];
		size_t size, size_again;
		void *image = image_of(trees, &size), *image_again;

		AG_REQUIRE(ag_trees_read(&ctx, image, size, &again) == AG_OK);
		for (uint64_t row = 0; row < 100; row++)
		{
			make_row(trees, s, row, features);
			ag_trees_score(trees, features, scores);
			ag_trees_score(again, features, scores_again);
			AG_CHECK(memcmp(scores, scores_again, trees->n_outputs * sizeof(double)) == 0);
		}
		AG_CHECK_EQ(again->link, trees->link);
		AG_CHECK_EQ(again->n_features, trees->n_features);
		image_again = image_of(again, &size_again);
		AG_CHECK(size == size_again && memcmp(image, image_again, size) == 0);
		ag_mem_free(&mem, image_again);
		ag_trees_free(again);
		ag_mem_free(&mem, image);
		ag_trees_free(trees);
	}
}

/* Whatever the bytes say, reading them is an error or gives trees that score: finite, and in the end. */
static bool
survives(const void *image, size_t size)
{
	AgTrees *trees;
	double features[64], scores[512], out[512];
	AgStatus status;

	ag_error_init(&err);
	status = ag_trees_read(&ctx, image, size, &trees);
	if (status != AG_OK)
	{
		AG_CHECK_EQ(status, AG_ERR_CORRUPT);
		AG_CHECK(trees == NULL && err.message[0] != '\0');
		return false;
	}
	if (trees->n_features <= 64 && trees->n_outputs <= 512)
		for (uint64_t row = 0; row < 4; row++)
		{
			make_row(trees, 3, row, features);
			ag_trees_score(trees, features, scores);
			ag_trees_link(trees, scores, out);
			for (uint32_t k = 0; k < ag_trees_n_out(trees); k++)
				AG_CHECK(isfinite(out[k]));
		}
	ag_trees_free(trees);
	return true;
}

static void
seal(uint8_t *image, size_t size)
{
	uint64_t hash = ag_hash64(image + 64, size - 64, AG_IMAGE_TREES);

	memcpy(image + 24, &hash, sizeof hash);
}

/* Every bit that flips is noticed; behind a checksum that was mended, nothing worse than other numbers comes of it. */
static void
damage(RandomTrees shape)
{
	AgTrees *trees = make(shape);
	size_t size;
	uint8_t *image = image_of(trees, &size);

	AG_CHECK(survives(image, size));
	for (size_t bit = 0; bit < size * 8; bit += 3)
	{
		image[bit / 8] ^= (uint8_t) (1u << (bit % 8));
		AG_CHECK(!survives(image, size));
		seal(image, size);
		survives(image, size);
		image[bit / 8] ^= (uint8_t) (1u << (bit % 8));
		seal(image, size);
	}
	AG_CHECK(survives(image, size));
	for (size_t cut = 0; cut < size; cut += 7)
	{
		uint8_t *part = ag_mem_alloc(&mem, cut, 1); /* exact size: ASan sees a read behind it */

		AG_REQUIRE(part != NULL);
		memcpy(part, image, cut);
		AG_CHECK(!survives(part, cut));
		ag_mem_free(&mem, part);
	}
	ag_mem_free(&mem, image);
	ag_trees_free(trees);
}

typedef void (*Damage)(AgTrees *trees, AgTree *tree, AgTreeNode *nodes, double *leaves,
					   double *base);

#define DAMAGE(name, ...)                                                                          \
	static void name(AgTrees *trees, AgTree *tree, AgTreeNode *nodes, double *leaves,              \
					 double *base)                                                                 \
	{                                                                                              \
		(void) trees, (void) tree, (void) nodes, (void) leaves, (void) base;                       \
		__VA_ARGS__;                                                                               \
	}

DAMAGE(no_feature, nodes[0].feature = trees->n_features)
DAMAGE(huge_feature, nodes[1].feature = UINT32_MAX)
DAMAGE(odd_flags, nodes[0].flags |= 8)
DAMAGE(nan_threshold, nodes[0].flags &= AG_NODE_MISSING_LEFT; nodes[0].threshold = NAN)
DAMAGE(set_too_long, nodes[0].flags |= AG_NODE_CATEGORY; nodes[0].set = 0;
	   nodes[0].n_set = UINT32_MAX)
DAMAGE(set_too_far, nodes[0].flags |= AG_NODE_CATEGORY; nodes[0].set = UINT32_MAX;
	   nodes[0].n_set = 2)
DAMAGE(loop, nodes[1].left = 1)
DAMAGE(back_to_root, nodes[1].left = 0)
DAMAGE(far_node, nodes[0].left = INT32_MAX)
DAMAGE(far_leaf, nodes[0].left = INT32_MIN)
DAMAGE(next_trees_leaf, nodes[tree[0].n_nodes - 1].left = ~(int32_t) tree[0].n_leaves)
DAMAGE(leaf_twice, nodes[tree[0].n_nodes - 1].left = nodes[tree[0].n_nodes - 1].right)
DAMAGE(node_twice, nodes[0].left = 1; nodes[0].right = 1)
DAMAGE(nan_leaf, leaves[0] = NAN)
DAMAGE(infinite_leaf, leaves[trees->n_leaves - 1] = -INFINITY)
DAMAGE(huge_leaf, leaves[0] = 1e300)
DAMAGE(nan_base, base[0] = NAN)
DAMAGE(infinite_base, base[0] = INFINITY)
DAMAGE(wrong_output, tree[0].output = 1)
DAMAGE(wrong_depth, tree[0].depth++)
DAMAGE(wrong_leaves, tree[0].n_leaves++)
DAMAGE(wrong_nodes, tree[0].n_nodes--)
DAMAGE(node_gap, tree[1].first_node++)
DAMAGE(leaf_gap, tree[1].first_leaf--)
DAMAGE(too_few_trees, trees->n_trees--)
DAMAGE(short_nodes, trees->n_nodes--)
DAMAGE(short_leaves, trees->n_leaves--)
DAMAGE(many_nodes, tree[0].n_nodes = UINT32_MAX; tree[0].n_leaves = 0)
DAMAGE(wrong_forest, trees->link = AG_LINK_MEAN_FREQUENCIES; base[0] = 0.0)
DAMAGE(wrong_link, trees->link = AG_LINK_SOFTMAX)
DAMAGE(no_outputs, trees->n_outputs = 0)
DAMAGE(no_features, trees->n_features = 0)

/* Each rule of the check, broken alone. */
static void
rules(void)
{
	static const Damage damages[] = {
		no_feature,   huge_feature,  odd_flags,     nan_threshold, set_too_long, set_too_far,
		loop,         back_to_root,  far_node,      far_leaf,      leaf_twice,   next_trees_leaf,
		node_twice,   nan_leaf,      infinite_leaf, huge_leaf,     nan_base,     infinite_base,
		wrong_output, wrong_depth,   wrong_leaves,  wrong_nodes,   node_gap,     leaf_gap,
		short_nodes,  too_few_trees, short_leaves,  many_nodes,    wrong_forest, wrong_link,
		no_outputs,   no_features,
	};

	for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++)
	{
		AgTrees *trees = make((RandomTrees){22, 6, 6, 1, 12, AG_LINK_IDENTITY});
		AgWriter writer;

		AG_REQUIRE(trees->trees[0].n_nodes > 3);
		ag_error_init(&err);
		AG_CHECK_EQ(ag_trees_check(&ctx, trees, AG_ERR_CORRUPT), AG_OK);
		damages[i](trees, (AgTree *) trees->trees, (AgTreeNode *) trees->nodes,
				   (double *) trees->leaves, (double *) trees->base);
		if (!AG_CHECK_EQ(ag_trees_check(&ctx, trees, AG_ERR_CORRUPT), AG_ERR_CORRUPT))
			fprintf(stderr, "    damage %zu\n", i);
		AG_CHECK(strncmp(err.message, "stored model is damaged: ", 25) == 0);
		ag_error_init(&err);
		ag_writer_init(&writer, &mem);
		AG_CHECK_EQ(ag_trees_write(&ctx, trees, &writer), AG_ERR_INTERNAL);
		AG_CHECK(strncmp(err.message, "trained model is damaged: ", 26) == 0);
		ag_writer_free(&writer);
		ag_trees_free(trees);
	}
	ag_error_init(&err);
}

typedef void (*ForestDamage)(AgTrees *trees, uint64_t *vectors, AgLeafEntry *entries,
							 double *leaves, double *base);

#define FOREST_DAMAGE(name, ...)                                                                   \
	static void name(AgTrees *trees, uint64_t *vectors, AgLeafEntry *entries, double *leaves,      \
					 double *base)                                                                 \
	{                                                                                              \
		(void) trees, (void) vectors, (void) entries, (void) leaves, (void) base;                  \
		__VA_ARGS__;                                                                               \
	}

FOREST_DAMAGE(no_vectors, trees->vectors = NULL)
FOREST_DAMAGE(late_vector, vectors[0] = 1)
FOREST_DAMAGE(empty_vector, vectors[1] = 0)
FOREST_DAMAGE(far_vector, vectors[1] = UINT64_MAX)
FOREST_DAMAGE(fewer_entries, trees->n_entries--)
FOREST_DAMAGE(far_class, entries[0].output = trees->n_outputs)
FOREST_DAMAGE(class_twice, entries[trees->n_entries - 1].output = 0)
FOREST_DAMAGE(odd_entry, entries[0].zero = 1)
FOREST_DAMAGE(nan_share, entries[0].share = NAN)
FOREST_DAMAGE(no_share, entries[0].share = 0.0)
FOREST_DAMAGE(sum_above, entries[trees->n_entries - 1].share += 1e-6)
FOREST_DAMAGE(far_leaf_vector, leaves[0] = (double) trees->n_vectors)
FOREST_DAMAGE(half_leaf_vector, leaves[0] = 0.5)
FOREST_DAMAGE(negative_leaf_vector, leaves[0] = -1.0)
FOREST_DAMAGE(forest_base, base[1] = 0.1)
FOREST_DAMAGE(other_link, trees->link = AG_LINK_SOFTMAX)

static void
forest_rules(void)
{
	static const ForestDamage damages[] = {
		no_vectors,    late_vector, empty_vector,     far_vector,
		fewer_entries, far_class,   class_twice,      odd_entry,
		nan_share,     no_share,    sum_above,        far_leaf_vector,
		forest_base,   other_link,  half_leaf_vector, negative_leaf_vector,
	};

	for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++)
	{
		AgTrees *trees = make((RandomTrees){31, 6, 6, 3, 12, AG_LINK_MEAN_FREQUENCIES});

		AG_REQUIRE(trees->vectors[trees->n_vectors] - trees->vectors[trees->n_vectors - 1] > 1);
		ag_error_init(&err);
		AG_CHECK_EQ(ag_trees_check(&ctx, trees, AG_ERR_CORRUPT), AG_OK);
		damages[i](trees, (uint64_t *) trees->vectors, (AgLeafEntry *) trees->entries,
				   (double *) trees->leaves, (double *) trees->base);
		if (!AG_CHECK_EQ(ag_trees_check(&ctx, trees, AG_ERR_CORRUPT), AG_ERR_CORRUPT))
			fprintf(stderr, "    damage %zu\n", i);
		ag_trees_free(trees);
	}
	ag_error_init(&err);
}

static void
no_memory(void)
{
	AgTrees *trees = make(shapes[2]), *again;
	int64_t used = atomic_load(&mem.used_bytes);
	AgStatus status = AG_ERR_MEMORY;
	AgWriter writer;
	void *image;
	size_t size;

	for (int after = 0; status != AG_OK && after < 1000; after++)
	{
		ag_error_init(&err);
		ag_writer_init(&writer, &mem);
		atomic_store(&mem.fail_after, after);
		status = ag_trees_write(&ctx, trees, &writer);
		AG_CHECK(status == AG_OK || status == AG_ERR_MEMORY);
		ag_writer_free(&writer);
		AG_CHECK_EQ(atomic_load(&mem.used_bytes), used);
	}
	AG_CHECK_EQ(status, AG_OK);
	atomic_store(&mem.fail_after, -1);
	image = image_of(trees, &size);
	used = atomic_load(&mem.used_bytes);
	status = AG_ERR_MEMORY;
	for (int after = 0; status != AG_OK && after < 1000; after++)
	{
		ag_error_init(&err);
		atomic_store(&mem.fail_after, after);
		status = ag_trees_read(&ctx, image, size, &again);
		AG_CHECK(status == AG_OK || (status == AG_ERR_MEMORY && again == NULL));
		if (status == AG_OK)
			ag_trees_free(again);
		AG_CHECK_EQ(atomic_load(&mem.used_bytes), used);
	}
	AG_CHECK_EQ(status, AG_OK);
	status = AG_ERR_MEMORY;
	for (int after = 0; status != AG_OK && after < 1000; after++)
	{
		atomic_store(&mem.fail_after, -1);
		AG_REQUIRE(ag_trees_read(&ctx, image, size, &again) == AG_OK);
		ag_error_init(&err);
		atomic_store(&mem.fail_after, after);
		status = ag_trees_prepare_rows(&ctx, again);
		AG_CHECK(status == AG_OK || (status == AG_ERR_MEMORY && again->rows == NULL));
		ag_trees_free(again);
		AG_CHECK_EQ(atomic_load(&mem.used_bytes), used);
	}
	AG_CHECK_EQ(status, AG_OK);
	atomic_store(&mem.fail_after, -1);
	ag_error_init(&err);
	ag_mem_free(&mem, image);
	ag_trees_free(trees);
}

/* What a process that has image and layout from elsewhere predicts, is what the one that made them does. */
static void
check_moved(const AgTrees *trees, const void *image, size_t size, const void *layout)
{
	double features[64 * 64], scores[64 * 8], moved_scores[64 * 8];
	int64_t used = atomic_load(&mem.used_bytes);
	AgContext trusting = ctx;
	AgStatus status = AG_ERR_MEMORY;
	AgTrees *moved;

	trusting.trusts_images = true;
	for (uint64_t row = 0; row < 64; row++)
		make_row(trees, 17, row, features + row * trees->n_features);
	for (int after = 0; status != AG_OK && after < 100; after++)
	{
		AG_REQUIRE(ag_trees_read(&trusting, image, size, &moved) == AG_OK);
		AG_CHECK(moved->plan == NULL);
		atomic_store(&mem.fail_after, after);
		status = ag_trees_use_layout(&trusting, moved, layout);
		atomic_store(&mem.fail_after, -1);
		ag_error_init(&err);
		if (status == AG_OK)
		{
			AG_CHECK_EQ(ag_trees_prepare_rows(&trusting, moved), AG_OK);
			AG_CHECK((moved->plan != NULL) == (trees->plan != NULL));
			AG_CHECK((moved->rows != NULL) == (trees->rows != NULL));
			ag_trees_score_rows(trees, 64, features, scores);
			ag_trees_score_rows(moved, 64, features, moved_scores);
			AG_CHECK(memcmp(scores, moved_scores, 64 * trees->n_outputs * sizeof(double)) == 0);
			ag_trees_score(moved, features, moved_scores);
			AG_CHECK(memcmp(scores, moved_scores, trees->n_outputs * sizeof(double)) == 0);
		}
		ag_trees_free(moved);
	}
	AG_CHECK_EQ(status, AG_OK);
	AG_CHECK_EQ(atomic_load(&mem.used_bytes), used);
}

static void
moved_layouts(void)
{
	for (size_t s = 0; s < N_SHAPES; s++)
	{
		AgTrees *trees = make(shapes[s]);
		void *layout, *image;
		char *layout_again;
		size_t size, n_layout;

		coarsen(trees);
		image = image_of(trees, &size);
		AG_CHECK_EQ(ag_trees_lay_out(&ctx, trees), AG_OK);
		AG_CHECK_EQ(ag_trees_prepare_rows(&ctx, trees), AG_OK);
		n_layout = ag_trees_layout_bytes(trees);
		layout = ag_mem_alloc(&mem, n_layout, 1);
		layout_again = ag_mem_alloc(&mem, n_layout, 1);
		AG_REQUIRE(layout != NULL && layout_again != NULL);
		ag_trees_layout_write(trees, layout);
		memset(layout_again, 0x55, n_layout);
		ag_trees_layout_write(trees, layout_again);
		AG_CHECK(memcmp(layout, layout_again, n_layout) == 0); /* no address, no byte by chance */
		ag_mem_free(&mem, layout);
		check_moved(trees, image, size, layout_again);
		ag_mem_free(&mem, layout_again);
		ag_mem_free(&mem, image);
		ag_trees_free(trees);
	}
}

int
main(void)
{
	ag_mem_init(&mem, INT64_MAX);
	ag_error_init(&err);
	ctx = (AgContext){.mem = &mem, .deadline_ns = INT64_MAX, .error = &err};
	scores_as_told();
	layouts();
	many_rows();
	shallow_trees();
	rows_that_do_not_fit();
	links();
	means();
	round_trips();
	damage((RandomTrees){8, 6, 4, 1, 6, AG_LINK_SIGMOID});
	damage((RandomTrees){8, 6, 4, 3, 6, AG_LINK_MEAN_FREQUENCIES});
	rules();
	forest_rules();
	no_memory();
	moved_layouts();
	AG_CHECK_EQ(atomic_load(&mem.used_bytes), 0);
	return ag_unit_done("trees");
}
