/*
 * forest_predict.c - what the forest says of validation rows, and of rows by the trees that haven't seen them.
 *
 * Rows are walked by their bins, a chunk of them through one tree after the other; sums go through the trees in
 * order, so that validation predictions are the model's to the bit.
 */
#include <string.h>

#include "engine/base/threads.h"
#include "engine/model/forest_private.h"
#include "engine/model/trees_walk.h"

#define CHUNK_ROWS 512

typedef struct AgForestPass
{
	AgForest *forest;
	const AgTrees *trees;
	const uint32_t *rows;
	bool is_oob;
	double *out;         /* [n_rows][n_out] */
	uint32_t *count;     /* OOB: [n_rows] */
	const double *prior; /* [n_out] */
	size_t n_out;
} AgForestPass;

static uint32_t
leaf_of(const AgForestTree *tree, const uint8_t *bins)
{
	int32_t at = tree->n_nodes > 0 ? 0 : ~0;

	while (at >= 0)
	{
		const AgForestNode *node = &tree->nodes[at];
		uint32_t bin = bins[node->feature & AG_FOREST_FEATURE];
		bool is_left = (node->feature & AG_FOREST_CATEGORY) == 0
						   ? ag_forest_cut_left(node->cut, bin)
						   : tree->sets[node->cut].bits[bin >> 6] >> (bin & 63) & 1;

		at = is_left ? node->left : node->right;
	}
	return (uint32_t) ~at;
}

/* Adds the tree to the scores of rows [begin, end); scores are the first n_outputs of out. */
static void
add_tree(const AgForestPass *pass, int t, int64_t begin, int64_t end)
{
	const AgForestTree *tree = &pass->forest->trees[t];
	const AgBins *bins = pass->forest->data->bins;
	const double *leaves = pass->trees->leaves + pass->trees->trees[t].first_leaf;

	for (int64_t i = begin; i < end; i++)
	{
		if (pass->is_oob)
		{
			if (!(tree->out_of_bag[i >> 3] >> (i & 7) & 1))
				continue;
			pass->count[i]++;
		}
		ag_leaf_add(pass->trees, 0,
					leaves[leaf_of(tree, bins->rows + pass->rows[i] * bins->row_stride)],
					pass->out + (size_t) i * pass->n_out);
	}
}

/* From sums over `count` of the trees to a prediction. */
static void
finish_row(const AgForestPass *pass, uint32_t count, double *out)
{
	const AgTrees *trees = pass->trees;

	if (count == 0)
		memcpy(out, pass->prior, pass->n_out * sizeof *out);
	else if (!pass->is_oob)
		ag_trees_link(trees, out, out);
	else if (trees->link == AG_LINK_IDENTITY)
		out[0] = out[0] * trees->n_trees / count; /* leaves are a tree's part of the mean */
	else if (trees->n_outputs == 1)
	{
		out[1] = out[0] / count;
		out[0] = 1.0 - out[1];
	}
	else
		for (size_t k = 0; k < pass->n_out; k++)
			out[k] /= count;
}

static void
pass_task(void *arg, int64_t begin, int64_t end, int thread)
{
	const AgForestPass *pass = arg;

	(void) thread;
	memset(pass->out + (size_t) begin * pass->n_out, 0,
		   (size_t) (end - begin) * pass->n_out * sizeof *pass->out);
	for (int t = 0; t < pass->forest->n_trees; t++)
	{
		if (ag_cancelled(pass->forest->ctx))
			return;
		add_tree(pass, t, begin, end);
	}
	for (int64_t i = begin; i < end; i++)
		finish_row(pass, pass->is_oob ? pass->count[i] : 1, pass->out + (size_t) i * pass->n_out);
}

/* The training rows' own mean. */
static void
fill_prior(const AgForest *forest, double *prior)
{
	const AgTrainData *data = forest->data;
	const int64_t *n_rows = forest->class_rows;
	double total = 0.0;

	for (int64_t i = 0; i < data->n_train; i++)
	{
		uint32_t id = data->train_rows[i];
		double weight = forest->weights != NULL ? forest->weights[id] : 1.0;

		total += weight;
		if (forest->is_classes)
			prior[data->class_of[id]] += weight;
		else
			prior[0] += (weight / total) * (data->target[id] - prior[0]);
	}
	if (n_rows != NULL) /* class_weight */
		total = 0.0;
	for (int k = 0; n_rows != NULL && k < forest->n_classes; k++)
	{
		prior[k] = n_rows[k] > 0 ? prior[k] / (double) n_rows[k] : 0.0;
		total += prior[k];
	}
	for (int k = 0; forest->is_classes && k < forest->n_classes; k++)
		prior[k] /= total;
}

AgStatus
ag_forest_predict(AgForest *forest, AgForestResult *result)
{
	const AgContext *ctx = forest->ctx;
	const AgTrainData *data = forest->data;
	size_t n_out = forest->is_classes ? (size_t) forest->n_classes : 1;
	AgForestPass pass = {.forest = forest, .trees = result->trees, .n_out = n_out};
	double *prior;
	AgStatus status;

	AG_TRY(ag_get_zeroed(ctx, n_out, sizeof(double), &prior));
	pass.prior = prior;
	fill_prior(forest, prior);
	AG_GO(ag_get(ctx, (size_t) data->n_valid, n_out * sizeof(double), &result->valid_proba));
	pass.rows = data->valid_rows;
	pass.out = result->valid_proba;
	ag_pool_run(ctx->pool, data->n_valid, CHUNK_ROWS, pass_task, &pass);
	if (forest->params->bootstrap && forest->params->wants_oob)
	{
		AG_GO(ag_get(ctx, (size_t) data->n_train, n_out * sizeof(double), &result->oob_proba));
		AG_GO(ag_get_zeroed(ctx, (size_t) data->n_train, sizeof(uint32_t), &result->oob_count));
		pass.is_oob = true;
		pass.rows = data->train_rows;
		pass.out = result->oob_proba;
		pass.count = result->oob_count;
		ag_pool_run(ctx->pool, data->n_train, CHUNK_ROWS, pass_task, &pass);
	}
	status = ag_check_cancel(ctx);
done:
	ag_mem_free(ctx->mem, prior);
	return status;
}
