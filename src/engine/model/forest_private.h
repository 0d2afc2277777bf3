/*
 * forest_private.h - what the files of the forest share. Private to forest*.c.
 */
#ifndef AG_FOREST_PRIVATE_H
#define AG_FOREST_PRIVATE_H

#include "engine/model/forest.h"
#include "engine/model/forest_maths.h"

/* ---- grown trees, on bins ---- */

/* Beside the feature's number. */
#define AG_FOREST_CATEGORY 0x80000000u
#define AG_FOREST_UNSEEN_LEFT 0x40000000u
#define AG_FOREST_FEATURE 0x3fffffffu

/*
 * 16 bytes. cut of a number: missing right << 8 | how many bins, counted from the missing right's 1 or else from 0,
 * go left; of a category: number of its set.
 */
typedef struct AgForestNode
{
	uint32_t feature;
	uint32_t cut;
	int32_t left, right; /* node, or ~leaf */
} AgForestNode;

/* A class's weight in a leaf. */
typedef struct AgForestShare
{
	uint32_t class_of;
	uint32_t weight;
} AgForestShare;

/* Bins of a category that go left, as bits. */
typedef struct AgForestSet
{
	uint64_t bits[4];
} AgForestSet;

typedef struct AgForestTree
{
	AgForestNode *nodes;
	AgForestSet *sets;
	double *values;        /* [n_leaves] mean, or share of class 1 of two */
	AgForestShare *shares; /* more than two classes: those of leaf l end at share_ends[l] */
	uint32_t *share_ends;  /* [n_leaves] */
	uint8_t *out_of_bag;   /* [(n_train + 7) / 8] bits; NULL when nobody asks */
	uint32_t n_nodes, n_sets, n_leaves, n_shares, depth;
	bool is_grown;
	bool is_short; /* the deadline passed before it was fully grown */
} AgForestTree;

/* ---- the forest ---- */

typedef struct AgForest
{
	const AgContext *ctx;
	const AgTrainData *data;
	const AgForestParams *params;
	bool is_classes, is_entropy;
	bool is_far;          /* the bins don't lie in the near caches */
	int n_classes;        /* 0: regression */
	int n_features_tried; /* max_features as a number */
	int64_t max_leaves;   /* INT64_MAX: none */
	uint32_t max_depth;   /* UINT32_MAX: none */
	int64_t min_rows_split, min_rows_leaf;
	int64_t n_draws;     /* of a bootstrap */
	double min_gain;     /* min_impurity_decrease in the units of gains, over the tree's weight */
	uint32_t *weights;   /* [bins' rows] fixed point; NULL: all 1 */
	int64_t *class_rows; /* [n_classes] training rows that count, for class_weight; else NULL */
	int64_t *values;     /* [bins' rows] regression: the target in steps of `step` */
	double step;         /* a power of 2 */
	int *rank_of;        /* [n_features] number of a category's ranks, or -1 */
	int n_ranks;         /* how many categories there are */
	int64_t *logs;       /* entropy: [n_logs] fixed-point n ln n */
	int64_t n_logs;
	AgForestTree *trees; /* [n_estimators] */
	int n_trees;         /* asked for, then grown */
	int64_t deadline_ns; /* of growing */
	int64_t model_bytes; /* most bytes of the model */
	_Atomic int64_t used_bytes;
	_Atomic int next_tree, n_done;
	_Atomic bool is_out_of_time, is_out_of_room, has_failed;
	int64_t next_report_ns;
} AgForest;

/* ---- one tree ---- */

/* Cells of a histogram of classes. */
#define AG_FOREST_CELLS (AG_FOREST_BINS * 64)

typedef struct AgForestSplit
{
	double score; /* what features of one node are compared by */
	double gain;  /* decrease of impurity times weight: what nodes are compared by */
	double value; /* XT: the threshold drawn */
	int feature;  /* -1: none */
	int low,
		high; /* the last bin or rank that is on the left, and the first on the right; 255: none */
	bool has_missing, missing_left;
	bool is_perfect; /* both sides are pure */
	int64_t left_weight;
} AgForestSplit;

/* A node whose rows are still together. */
typedef struct AgForestOpen
{
	int64_t begin, n_rows;
	uint64_t key;
	int32_t parent;
	bool is_right;
	uint32_t depth;
	uint32_t cut; /* of the split, as AgForestNode's */
	int64_t weight;
	AgForestSplit split;
} AgForestOpen;

/* The node in work, as the search sees it. */
typedef struct AgForestView
{
	const uint64_t *rows;
	int64_t n_rows;
	AgForestKind kind;
	int64_t weight;
	int64_t
		sum; /* PAIR: weight of one class; NUMBERS: of weighted distances, in steps of 2^shift */
	int64_t squares; /* CLASSES: sum of the squared weights; entropy: of their n ln n */
	int shift;
	int n_classes;         /* CLASSES: that occur */
	uint64_t key, cut_key; /* of the node, and of its random cuts */
} AgForestView;

/* A feature's bytes, and the table that turns them into ranks (NULL: they are bins already). */
typedef struct AgForestColumn
{
	const uint8_t *bytes; /* of row i at i * step */
	int64_t step;
	const uint8_t *ranks;
} AgForestColumn;

/* What grows one tree at a time; one a thread. */
typedef struct AgForestWorker
{
	AgForest *forest;
	/* rows of the tree: id, then class << 8 | repeats above it */
	uint64_t *rows, *spare; /* [n_train] */
	int64_t n_rows, weight;
	int shift;           /* weights are shifted right by that, so that a tree's stay below 2^31 */
	uint8_t *repeats;    /* [n_train] */
	uint32_t *factors;   /* [n_classes] on weights, in fixed point, for class_weight; else NULL */
	int64_t *class_rows; /* [n_classes] of the tree, likewise */
	uint8_t *ranks;      /* [n_ranks][256] rank of each bin of each category */
	/* the node's rows */
	uint64_t *pairs;   /* PAIR: weight << 32 | weight of the class; NUMBERS: 1 << 32 | weight */
	int64_t *sums;     /* NUMBERS: distance times weight */
	uint32_t *classes; /* CLASSES: which of those that occur */
	uint32_t *weights;
	uint32_t *next; /* CLASSES: rows of one bin, linked */
	uint8_t *bins;  /* XT: the feature's */
	AgForestView view;
	/* [n_classes] */
	uint32_t *slot_of; /* class to place among those that occur; UINT32_MAX: doesn't */
	uint32_t *class_at;
	int64_t *totals, *lefts;
	/* one feature's groups of rows, by bin */
	uint32_t heads[AG_FOREST_BINS];
	uint64_t cells[2 * AG_FOREST_BINS];
	int64_t cell_sums[AG_FOREST_BINS];
	uint32_t cell_rows[AG_FOREST_BINS];
	uint32_t *class_cells; /* [AG_FOREST_CELLS] */
	int n_groups;
	uint8_t group_bins[AG_FOREST_BINS];
	int64_t group_sums[AG_FOREST_BINS], group_weights[AG_FOREST_BINS];
	int64_t group_rows[AG_FOREST_BINS];
	/* the draw of features */
	int *features; /* [n_features], in order between nodes */
	int *undo;
	uint64_t *constants; /* [n_open_max][n_words] features known to be constant; NULL: not kept */
	int n_words;
	/* open nodes */
	AgForestOpen *open;
	int *queue, *free_open;
	int n_open_max, n_queue, n_free;
	/* the tree, with room to grow */
	AgForestTree tree;
	uint32_t max_nodes, max_sets, max_leaves, max_shares, max_ends;
	uint64_t n_looks; /* since when the clock was read */
} AgForestWorker;

static inline int64_t
ag_forest_weight(const AgForestWorker *worker, uint64_t row)
{
	return ag_forest_row_weight(row, worker->forest->weights, worker->factors, worker->shift);
}

/* Nodes with fewer rows read the row-major copy where bins are far: one cache line a row serves all features. */
#define AG_FOREST_FEW_ROWS 4096

static inline AgForestColumn
ag_forest_column(const AgForestWorker *worker, int f, int64_t n_rows)
{
	const AgForest *forest = worker->forest;
	const AgBins *bins = forest->data->bins;
	int rank = forest->rank_of[f];
	AgForestColumn column = {bins->columns + f * bins->column_stride, 1, NULL};

	if (forest->is_far && n_rows < AG_FOREST_FEW_ROWS)
	{
		column.bytes = bins->rows + f;
		column.step = bins->row_stride;
	}
	if (rank >= 0)
		column.ranks = worker->ranks + rank * AG_FOREST_BINS;
	return column;
}

/* The bins whose ranks go left, eight at a time: each of eight bytes that are 0 or 1 becomes a bit. */
static inline void
ag_forest_left_bins(uint32_t cut, const uint8_t *ranks, int n_bins, AgForestSet *set)
{
	uint8_t is_left[AG_FOREST_BINS];
	int n = (n_bins + 8) / 8 * 8;

	for (int b = 0; b < n; b++)
		is_left[b] = ag_forest_cut_left(cut, ranks[b]) & (b <= n_bins);
	for (int b = 0; b < n; b += 8)
	{
		uint64_t bits = 0;

		for (int i = 0; i < 8; i++)
			bits |= (uint64_t) is_left[b + i] << i;
		set->bits[b >> 6] |= bits << (b & 63);
	}
}

/*
 * The bins of a category whose ranks a cut sends left. *unseen_left, the heavier side, becomes the tail's own side where there is a
 * tail: its levels and the unseen ones are one at prediction.
 */
static inline AgForestSet
ag_forest_set_of(const AgBinFeature *feature, const uint8_t *ranks, uint32_t cut, bool *unseen_left)
{
	AgForestSet set = {{0, 0, 0, 0}};

	ag_forest_left_bins(cut, ranks, feature->n_bins, &set);
	if (feature->has_other)
		*unseen_left = ag_forest_cut_left(cut, ranks[feature->n_bins]);
	return set;
}

/* Fixed-point n ln n. */
int64_t ag_forest_log(const AgForest *forest, int64_t n);

/* What is on the left so far. */
typedef struct AgForestLeft
{
	int64_t weight, n_rows;
	int64_t squares;  /* of its weights; entropy: n ln n */
	int64_t products; /* of its weights with the node's; entropy: n ln n of the right */
} AgForestLeft;

/* Does a cut leave enough rows and weight on both sides? */
bool ag_forest_is_allowed(const AgForestWorker *worker, int64_t left_rows, int64_t left_weight);
/* What a cut is worth among those of its node, of PAIR by gini and of NUMBERS. */
static inline double
ag_forest_ratio_score(const AgForestView *view, int64_t sum, int64_t weight)
{
	return ag_forest_ratio(view->sum, view->weight, sum, weight);
}

/* Does a cut of PAIR, or of two rows, leave nothing to split? */
static inline bool
ag_forest_is_perfect(const AgForestView *view, int64_t sum, int64_t weight)
{
	return ag_forest_is_pure(view->kind, view->n_rows, view->sum, view->weight, sum, weight);
}

/* Likewise of PAIR by entropy, and of CLASSES. */
double ag_forest_entropy_score(const AgForest *forest, const AgForestView *view, int64_t sum,
							   int64_t weight);
double ag_forest_classes_score(const AgForest *forest, const AgForestView *view,
							   const AgForestLeft *left);

/* forest_search.c: fills view from its rows, and finds the best split; constants (may be NULL) is updated. */
void ag_forest_view(AgForestWorker *worker, const uint64_t *rows, int64_t n_rows);
AgForestSplit ag_forest_search(AgForestWorker *worker, uint64_t *constants);
/* forest_scan.c: offers feature f's cuts to *best; false: the feature is constant. */
bool ag_forest_scan(AgForestWorker *worker, int f, AgForestSplit *best);
/* forest_random.c: offers a random one. */
bool ag_forest_draw(AgForestWorker *worker, int f, AgForestSplit *best);
/* forest_grow.c: AG_ERR_MEMORY without a text, since it may run on any thread; AG_OK too when cancelled. */
AgStatus ag_forest_worker_create(AgForest *forest, AgForestWorker *worker);
void ag_forest_worker_free(AgForestWorker *worker);
AgStatus ag_forest_grow(AgForestWorker *worker, int tree);
int64_t ag_forest_worker_memory(const AgTrainData *data, const AgForestParams *params);
void ag_forest_tree_free(const AgContext *ctx, AgForestTree *tree);
/* forest_bag.c: draws the tree's rows and orders its categories. */
AgStatus ag_forest_bag(AgForestWorker *worker, uint64_t key, AgForestTree *tree);

/* forest.c: progress, from the main thread. */
void ag_forest_report(AgForest *forest, int n_done);
/*
 * forest_gpu.c: grows the trees on ctx->gpu, and says in the result whether it did; where it can't, nothing was grown, and AG_OK
 * is returned all the same: the CPU does it.
 */
AgStatus ag_forest_gpu_grow(AgForest *forest, AgForestResult *result);
/* forest_model.c: the trees with thresholds. */
AgStatus ag_forest_model(AgForest *forest, AgTrees **trees);
int64_t ag_forest_tree_bytes(const AgForest *forest, const AgForestTree *tree);
/* forest_predict.c: fills valid_proba, oob_proba and oob_count. */
AgStatus ag_forest_predict(AgForest *forest, AgForestResult *result);

#endif
