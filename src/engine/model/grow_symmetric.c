/*
 * grow_symmetric.c - growth of oblivious trees: one split for all leaves of a level.
 *
 * A cut's merit is summed over the leaves: each leaf adds its part to two numbers a cut, so that histograms need not
 * all be there at once. A leaf's histogram is kept, as memory allows, for its children: the larger child's is what
 * the smaller one's leaves of it. Nodes are those of a full tree, level by level, so that it predicts like any other.
 */
#include "engine/model/grow.h"

#include <math.h>
#include <string.h>

#include "engine/base/rng.h"
#include "engine/base/threads.h"
#include "engine/model/combine.h"
#include "engine/model/level_scan.h"
#include "engine/model/ordered.h"
#include "engine/model/sample.h"

#define AG_KEY_COMBINATIONS (UINT64_C(4) << 32)
#define AG_LEVEL_PARALLEL 20000 /* cells below which one thread is quicker */
#define AG_NO_SLOT (-1)

/* What the search needs beside the grower's own. */
typedef struct AgSymmetric
{
	double *nums, *dens; /* [n_cells] sums over leaves, by cut */
	uint8_t *may_cut;    /* [n_cells] does it part the tree's rows, and isn't used yet? */
	int *slot_of;        /* [max_leaves] of a leaf's histogram, or AG_NO_SLOT */
	double *best_score;  /* [n_features] of each feature's best cut, with noise */
	int *best_cut;       /* [n_features] -1: none */
	int *features;       /* [n_features] that the level may split on */
	int n_features;
} AgSymmetric;

AgStatus
ag_symmetric_create(const AgContext *ctx, AgGrower *grower)
{
	size_t n_cells = (size_t) grower->hists.layout.n_cells;
	size_t n_features = (size_t) grower->bins->n_features;
	AgSymmetric *s;

	AG_TRY(ag_get_zeroed(ctx, 1, sizeof *s, &grower->symmetric));
	s = grower->symmetric;
	AG_TRY(ag_get(ctx, n_cells, sizeof(double), &s->nums));
	AG_TRY(ag_get(ctx, n_cells, sizeof(double), &s->dens));
	AG_TRY(ag_get(ctx, n_cells, 1, &s->may_cut));
	AG_TRY(ag_get(ctx, (size_t) grower->growth.max_leaves, sizeof(int), &s->slot_of));
	AG_TRY(ag_get(ctx, n_features, sizeof(double), &s->best_score));
	AG_TRY(ag_get(ctx, n_features, sizeof(int), &s->best_cut));
	return ag_get(ctx, n_features, sizeof(int), &s->features);
}

void
ag_symmetric_free(const AgContext *ctx, AgGrower *grower)
{
	AgSymmetric *s = grower->symmetric;

	if (s == NULL)
		return;
	ag_mem_free(ctx->mem, s->nums);
	ag_mem_free(ctx->mem, s->dens);
	ag_mem_free(ctx->mem, s->may_cut);
	ag_mem_free(ctx->mem, s->slot_of);
	ag_mem_free(ctx->mem, s->best_score);
	ag_mem_free(ctx->mem, s->best_cut);
	ag_mem_free(ctx->mem, s->features);
	ag_mem_free(ctx->mem, s);
	grower->symmetric = NULL;
}

int64_t
ag_symmetric_memory(int64_t n_cells, int n_features, int max_leaves)
{
	return n_cells * 17 + n_features * INT64_C(16) + max_leaves * INT64_C(4);
}

/* A tree in work. */
typedef struct AgLevelWork
{
	AgGrower *grower;
	AgSymmetric *s;
	const AgSplitRules *rules;
	uint64_t key;
	int level;
	AgHist hist; /* that is added, or that was found last */
} AgLevelWork;

/* ---- a leaf's part of the scores ---- */

static void
add_task(void *arg, int64_t begin, int64_t end, int thread)
{
	AgLevelWork *work = arg;
	const AgHistLayout *layout = &work->grower->hists.layout;

	(void) thread;
	if (ag_cancelled(work->grower->ctx))
		return;
	for (int64_t i = begin; i < end; i++)
	{
		int f = work->s->features[i];
		const AgBinFeature *feature = work->grower->bins->features + f;
		int64_t g[AG_HIST_BINS], h[AG_HIST_BINS];

		ag_hist_load(layout, &work->hist, f, feature->n_bins + 1, g, h);
		ag_level_add(work->grower->level, feature, g, h, work->rules->l2,
					 work->s->nums + layout->offset[f], work->s->dens + layout->offset[f]);
	}
}

static AgPool *
pool_of(const AgLevelWork *work)
{
	return work->grower->hists.layout.n_cells < AG_LEVEL_PARALLEL ? NULL : work->grower->ctx->pool;
}

static AgStatus
add_leaf(AgLevelWork *work, const AgHist *hist)
{
	work->hist = *hist;
	ag_pool_run(pool_of(work), work->s->n_features, 4, add_task, work);
	return ag_check_cancel(work->grower->ctx);
}

/* Takes a slot; the last one is for what isn't kept. */
static AgStatus
take_slot(AgGrower *grower, bool is_kept, int *slot, AgHist *hist)
{
	*slot = grower->n_slots - 1;
	if (is_kept && grower->n_free_slots > 0)
		*slot = grower->free_slots[--grower->n_free_slots];
	if (grower->slots[*slot] == NULL)
		AG_TRY(ag_get(grower->ctx, (size_t) grower->slot_cells, sizeof(int64_t),
					  &grower->slots[*slot]));
	hist->cells = grower->slots[*slot];
	return AG_OK;
}

/* Builds the histogram of a leaf from its rows; without a free slot it isn't there for the next level. */
static AgStatus
build_leaf(AgLevelWork *work, int l, bool is_kept, AgHist *hist)
{
	AgGrower *grower = work->grower;
	const AgGrownLeaf *leaf = grower->leaves + l;
	AgRowList list = {grower->lists[leaf->list].ids + leaf->begin, grower->lists[leaf->list].grads};
	int slot;

	AG_TRY(take_slot(grower, is_kept, &slot, hist));
	AG_TRY(ag_hist_build(&grower->hists, &list, leaf->n_rows, hist));
	work->s->slot_of[l] = slot < grower->n_slots - 1 ? slot : AG_NO_SLOT;
	return AG_OK;
}

/* Two leaves of one parent, whose histogram, if there still is one, is in slot `from`. */
static AgStatus
add_children(AgLevelWork *work, int left, int from, bool is_wide, bool is_kept)
{
	AgGrower *grower = work->grower;
	bool left_is_small = grower->leaves[left].n_rows <= grower->leaves[left + 1].n_rows;
	int small = left_is_small ? left : left + 1, large = left_is_small ? left + 1 : left;
	AgHist child, parent = {.cells = from >= 0 ? grower->slots[from] : NULL, .is_wide = is_wide};

	work->s->slot_of[small] = work->s->slot_of[large] = AG_NO_SLOT;
	if (grower->leaves[large].n_rows == 0)
		return AG_OK;
	if (from >= 0 && grower->leaves[small].n_rows == 0)
	{
		work->s->slot_of[large] = from;
		return add_leaf(work, &parent);
	}
	if (grower->leaves[small].n_rows > 0)
	{
		AG_TRY(build_leaf(work, small, is_kept, &child));
		AG_TRY(add_leaf(work, &child));
	}
	if (from < 0)
	{
		AG_TRY(build_leaf(work, large, is_kept, &child));
		return add_leaf(work, &child);
	}
	ag_hist_subtract(&grower->hists, &parent, &child, grower->leaves[large].n_rows);
	work->s->slot_of[large] = from;
	return add_leaf(work, &parent);
}

/* The cuts of a feature that part rows of which h[n_bins + 1] lie in its bins. */
static void
open_feature(const AgBinFeature *feature, const int64_t *h, uint8_t *may_cut)
{
	int64_t left = 0, total = 0;
	int n = feature->n_bins;

	for (int b = 0; b <= n; b++)
		total += h[b];
	for (int b = 0; b <= n; b++)
	{
		left = feature->is_category ? h[b] : left + h[b];
		may_cut[b] = left > 0 && left < total;
	}
	if (!feature->is_category)
	{
		may_cut[0] = 0; /* is may_cut[n] the other way round */
		may_cut[n] = h[0] > 0 && h[0] < total;
	}
}

/* The cuts that part the rows of the root. */
static void
open_cuts(AgLevelWork *work, const AgHist *root)
{
	const AgGrower *grower = work->grower;
	const AgHistLayout *layout = &grower->hists.layout;

	for (int f = 0; f < grower->bins->n_features; f++)
	{
		const AgBinFeature *feature = grower->bins->features + f;
		int64_t g[AG_HIST_BINS], h[AG_HIST_BINS];

		ag_hist_load(layout, root, f, feature->n_bins + 1, g, h);
		open_feature(feature, h, work->s->may_cut + layout->offset[f]);
	}
}

/* ---- ordered boosting: no histograms are kept ---- */

static void
score_ordered_task(void *arg, int64_t begin, int64_t end, int thread)
{
	AgLevelWork *work = arg;
	const AgGrower *grower = work->grower;
	const AgHistLayout *layout = &grower->hists.layout;

	for (int64_t i = begin; i < end; i++)
	{
		int f = work->s->features[i];

		ag_ordered_score(grower->ordered, grower, grower->bins->features + f,
						 grower->bins->columns + f * grower->bins->column_stride, work->rules->l2,
						 thread, work->s->nums + layout->offset[f],
						 work->s->dens + layout->offset[f]);
	}
}

static AgStatus
add_level_ordered(AgLevelWork *work)
{
	AgGrower *grower = work->grower;

	for (int f = 0; work->level == 0 && f < grower->bins->n_features; f++)
	{
		uint32_t counts[AG_HIST_BINS];
		int64_t h[AG_HIST_BINS];

		ag_hist_count(grower->bins, f, grower->lists[0].ids, grower->leaves[0].n_rows, counts);
		for (int b = 0; b < AG_HIST_BINS; b++)
			h[b] = counts[b];
		open_feature(grower->bins->features + f, h,
					 work->s->may_cut + grower->hists.layout.offset[f]);
	}
	ag_pool_run(grower->ctx->pool, work->s->n_features, 1, score_ordered_task, work);
	return ag_check_cancel(grower->ctx);
}

/* ---- the level's split ---- */

/*
 * A feature's best cut by scores with noise; it then stands for its feature with noise of its own, as CatBoost has it: else of
 * many cuts one would always be lucky, and features of many cuts would be preferred to others.
 */
static void
choose_task(void *arg, int64_t begin, int64_t end, int thread)
{
	AgLevelWork *work = arg;
	const AgHistLayout *layout = &work->grower->hists.layout;
	const AgCombiner *combiner = work->grower->combiner;
	AgSymmetric *s = work->s;
	double noise = work->rules->noise;

	(void) thread;
	for (int64_t i = begin; i < end; i++)
	{
		int f = s->features[i], n = work->grower->bins->features[f].n_bins;
		size_t at = layout->offset[f];
		uint64_t key =
			ag_key(ag_key(work->key, AG_KEY_NOISE + (uint64_t) work->level), (uint64_t) f);

		double best = 0.0;

		s->best_cut[i] = -1;
		for (int b = 0; b <= n; b++)
		{
			double plain, score;

			if (!s->may_cut[at + (size_t) b])
				continue;
			plain = ag_level_score(s->nums[at + (size_t) b], s->dens[at + (size_t) b],
								   work->grower->growth.has_cosine_score);
			score = plain + (noise > 0.0 ? noise * ag_level_noise(key, (uint64_t) b) : 0.0);
			if (s->best_cut[i] >= 0 && !(score > best))
				continue;
			best = score;
			s->best_score[i] = plain;
			s->best_cut[i] = b;
		}
		if (noise > 0.0)
			s->best_score[i] += noise * ag_level_noise(key, AG_HIST_BINS);
		if (combiner != NULL)
			s->best_score[i] *= combiner->weight_of[f];
	}
}

/* The level's features: the tree's, or a draw of them, in any order. */
static void
draw_features(AgLevelWork *work)
{
	const AgGrower *grower = work->grower;
	AgSymmetric *s = work->s;
	double fraction = grower->growth.feature_fraction_bylevel;
	int n = 0;

	for (int f = 0; f < grower->bins->n_features; f++)
		if (grower->is_used[f])
			s->features[n++] = f;
	s->n_features = ag_sample_size(fraction, n);
	if (s->n_features < n)
		ag_sample_front(ag_key(work->key, AG_KEY_LEVEL + (uint64_t) work->level), s->n_features, n,
						s->features);
}

/* Of equal scores the lowest feature's; its place in the level's features, -1: nothing parts the rows any more. */
static int
choose_feature(AgLevelWork *work)
{
	AgSymmetric *s = work->s;
	int best = -1;

	ag_pool_run(pool_of(work), s->n_features, 4, choose_task, work);
	for (int i = 0; i < s->n_features; i++)
	{
		if (s->best_cut[i] < 0)
			continue;
		if (best < 0 || s->best_score[i] > s->best_score[best] ||
			(s->best_score[i] == s->best_score[best] && s->features[i] < s->features[best]))
			best = i;
	}
	return best;
}

/* The split of one feature's best cut, which is not to be chosen again. */
static void
make_split(AgLevelWork *work, int best, AgSplit *split)
{
	AgSymmetric *s = work->s;
	const AgBinFeature *feature;

	*split = ag_split_none();
	split->feature = s->features[best];
	split->bin = s->best_cut[best];
	feature = work->grower->bins->features + split->feature;
	s->may_cut[work->grower->hists.layout.offset[split->feature] + (uint32_t) split->bin] = 0;
	if (feature->is_category)
	{
		split->is_category = true;
		split->left_bins[split->bin >> 6] |= UINT64_C(1) << (split->bin & 63);
		split->missing_left = split->bin == 0;
		split->unseen_left = feature->has_other && split->bin == feature->n_bins;
	}
	else
		split->missing_left = split->bin < feature->n_bins; /* missing is less than any number */
}

/* The level's split, of a feature or of a combination; none: split->feature is -1. */
static AgStatus
choose_split(AgLevelWork *work, AgSplit *split)
{
	AgCombiner *combiner = work->grower->combiner;
	bool is_better = false;
	int best;

	if (combiner != NULL)
		ag_combiner_weigh(combiner);
	best = choose_feature(work);
	*split = ag_split_none();
	if (combiner != NULL)
	{
		AgCombineLevel level = {.grower = work->grower,
								.rules = work->rules,
								.key =
									ag_key(work->key, AG_KEY_COMBINATIONS + (uint64_t) work->level),
								.share = work->grower->growth.feature_fraction_bylevel,
								.best = best >= 0 ? work->s->best_score[best] : -(double) INFINITY};

		AG_TRY(ag_combiner_choose(combiner, &level, split, &is_better));
	}
	if (!is_better && best >= 0)
		make_split(work, best, split);
	if (combiner != NULL && split->feature >= 0)
		ag_combiner_take(combiner, split);
	return AG_OK;
}

/* ---- growing ---- */

/* Moves the rows of all leaves to their children, from the last leaf on, for children take the place of leaves. */
static AgStatus
split_level(AgLevelWork *work, const AgSplit *split)
{
	AgGrower *grower = work->grower;
	int n = grower->n_leaves;

	for (int l = n - 1; l >= 0; l--)
	{
		AgGrownLeaf leaf = grower->leaves[l];
		uint32_t *from = grower->lists[leaf.list].ids + leaf.begin;
		uint32_t *to = grower->lists[1 - leaf.list].ids + leaf.begin;
		int64_t n_left = 0;

		if (leaf.n_rows > 0)
			AG_TRY(ag_partition(grower->ctx, grower->level, grower->bins, split, from, leaf.n_rows,
								to, grower->scratch, &n_left));
		grower->nodes[n - 1 + l].split = *split;
		for (int c = 0; c < 2; c++)
			grower->leaves[2 * l + c] =
				(AgGrownLeaf){.begin = leaf.begin + (c == 0 ? 0 : n_left),
							  .n_rows = c == 0 ? n_left : leaf.n_rows - n_left,
							  .list = 1 - leaf.list,
							  .depth = leaf.depth + 1};
	}
	grower->n_leaves = 2 * n;
	grower->n_nodes = 2 * n - 1;
	grower->depth++;
	return AG_OK;
}

/* Adds all leaves of the level; their parents' slots move to the children. Is_last: none is kept. */
static AgStatus
add_level(AgLevelWork *work, bool is_last)
{
	AgGrower *grower = work->grower;
	AgSymmetric *s = work->s;
	AgHist root;

	if (grower->ordered != NULL)
		return add_level_ordered(work);
	if (work->level == 0)
	{
		AG_TRY(build_leaf(work, 0, !is_last, &root));
		open_cuts(work, &root);
		return add_leaf(work, &root);
	}
	for (int p = grower->n_leaves / 2 - 1; p >= 0; p--)
	{
		int64_t n_rows = grower->leaves[2 * p].n_rows + grower->leaves[2 * p + 1].n_rows;

		AG_TRY(add_children(work, 2 * p, s->slot_of[p], n_rows > AG_NARROW_ROWS, !is_last));
	}
	return AG_OK;
}

/* Nodes of level d are 2^d - 1 and on, in the order of their leaves. */
static void
link_nodes(AgGrower *grower)
{
	for (int i = 0; i < grower->n_nodes; i++)
	{
		bool is_inner = 2 * i + 1 < grower->n_nodes;

		grower->nodes[i].left = is_inner ? 2 * i + 1 : ~(2 * i + 1 - grower->n_nodes);
		grower->nodes[i].right = is_inner ? 2 * i + 2 : ~(2 * i + 2 - grower->n_nodes);
	}
}

AgStatus
ag_grow_symmetric(AgGrower *grower, const AgSplitRules *rules, int64_t n_rows, uint64_t key)
{
	AgLevelWork work = {.grower = grower, .s = grower->symmetric, .rules = rules, .key = key};
	size_t n_cells = (size_t) grower->hists.layout.n_cells;
	AgSplit split;

	grower->n_free_slots = 0;
	for (int i = grower->n_slots - 2; i >= 0; i--)
		grower->free_slots[grower->n_free_slots++] = i;
	grower->leaves[0] = (AgGrownLeaf){.n_rows = n_rows};
	grower->n_leaves = 1;
	while (n_rows > 1 && 2 * grower->n_leaves <= grower->growth.max_leaves)
	{
		grower->is_cut_short = ag_out_of_time(grower->ctx);
		if (grower->is_cut_short)
			break;
		memset(work.s->nums, 0, n_cells * sizeof(double));
		memset(work.s->dens, 0, n_cells * sizeof(double));
		draw_features(&work);
		AG_TRY(add_level(&work, 4 * grower->n_leaves > grower->growth.max_leaves));
		AG_TRY(choose_split(&work, &split));
		if (split.feature < 0)
			break;
		AG_TRY(split_level(&work, &split));
		work.level++;
		if (grower->tick != NULL)
			grower->tick(grower->tick_arg);
	}
	link_nodes(grower);
	return AG_OK;
}
