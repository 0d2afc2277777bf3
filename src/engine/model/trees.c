#include <float.h>
#include <math.h>

#include "engine/base/maths.h"
#include "engine/model/ascending.h"
#include "engine/model/trees_plan.h"
#include "engine/model/trees_walk.h"

AgStatus
ag_trees_create(const AgContext *ctx, AgTrees **trees)
{
	AgArena arena;
	AgTrees *made;

	*trees = NULL;
	ag_arena_init(&arena, ctx->mem);
	made = ag_arena_alloc(&arena, 1, sizeof(AgTrees));
	if (made == NULL)
	{
		ag_arena_free(&arena);
		return ag_mem_error(ctx->mem, sizeof(AgTrees), ctx->error);
	}
	made->arena = arena;
	*trees = made;
	return AG_OK;
}

void
ag_trees_cut(AgTrees *trees, uint32_t n_trees)
{
	if (n_trees >= trees->n_trees)
		return;
	trees->n_nodes = trees->trees[n_trees].first_node;
	trees->n_leaves = trees->trees[n_trees].first_leaf;
	trees->n_trees = n_trees;
	trees->n_set_words = 0;
	for (uint64_t i = 0; i < trees->n_nodes; i++)
	{
		uint64_t end = (uint64_t) trees->nodes[i].set + trees->nodes[i].n_set;

		trees->n_set_words = end > trees->n_set_words ? end : trees->n_set_words;
	}
	trees->plan = NULL; /* both lie in the arena */
	trees->rows = NULL;
	trees->has_layout = false;
}

void
ag_trees_free(AgTrees *trees)
{
	AgArena arena;

	if (trees == NULL)
		return;
	arena = trees->arena; /* the struct goes with it */
	ag_arena_free(&arena);
}

void
ag_trees_score(const AgTrees *trees, const double *features, double *scores)
{
	if (trees->plan != NULL)
	{
		ag_plan_score(trees, features, scores);
		return;
	}
	for (uint32_t k = 0; k < trees->n_outputs; k++)
		scores[k] = trees->base[k];
	for (uint32_t t = 0; t < trees->n_trees; t++)
		ag_leaf_add(trees, trees->trees[t].output, ag_tree_value(trees, &trees->trees[t], features),
					scores);
}

uint32_t
ag_trees_n_out(const AgTrees *trees)
{
	bool is_pair = trees->link == AG_LINK_SIGMOID ||
				   (trees->link == AG_LINK_MEAN_FREQUENCIES && trees->n_outputs == 1);

	return is_pair ? 2 : trees->n_outputs;
}

/* Subtracting the greatest score keeps every power at most 1 and one of them 1: no overflow, no 0/0. */
static void
softmax(const double *scores, uint32_t n, double *out)
{
	double greatest = scores[0], sum = 0.0;

	for (uint32_t k = 1; k < n; k++)
		if (scores[k] > greatest)
			greatest = scores[k];
	for (uint32_t k = 0; k < n; k++)
	{
		out[k] = ag_exp(scores[k] - greatest);
		sum += out[k];
	}
	for (uint32_t k = 0; k < n; k++)
		out[k] /= sum;
}

void
ag_trees_link(const AgTrees *trees, const double *scores, double *out)
{
	double p;

	switch (trees->link)
	{
		case AG_LINK_SIGMOID:
			p = ag_sigmoid(scores[0]);
			out[0] = 1.0 - p;
			out[1] = p;
			break;
		case AG_LINK_SOFTMAX:
			softmax(scores, trees->n_outputs, out);
			break;
		case AG_LINK_EXP:
			for (uint32_t k = 0; k < trees->n_outputs; k++)
				out[k] = fmin(ag_exp(scores[k]), DBL_MAX);
			break;
		case AG_LINK_MEAN_FREQUENCIES:
			for (uint32_t k = trees->n_outputs; k > 0; k--)
				out[k - 1] = scores[k - 1] / trees->n_trees;
			if (trees->n_outputs == 1)
			{
				out[1] = out[0];
				out[0] = 1.0 - out[1];
			}
			break;
		case AG_LINK_IDENTITY:
			for (uint32_t k = 0; k < trees->n_outputs; k++)
				out[k] = scores[k];
			break;
		case AG_LINK_QUANTILES:
			ag_ascending(scores, (int) trees->n_outputs, out);
			break;
	}
}
