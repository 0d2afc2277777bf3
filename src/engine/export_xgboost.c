/*
 * export_xgboost.c - trees as XGBoost's JSON.
 *
 * Its predicate is x < condition with both as floats, ours x <= threshold with doubles: the condition is the least float above the threshold, which
 * for inputs that are floats means the same. Leaves become floats too. The base score goes into the first tree of each output, so that
 * nothing depends on how a version of the library reads it.
 */
#include <math.h>
#include <string.h>

#include "engine/export_private.h"
#include "engine/search/json.h"

#define NO_PARENT 2147483647

/* The library takes a node's right child to be behind its left one, so nodes and leaves are numbered level by level. */
typedef struct Item
{
	int32_t old; /* a node, or ~leaf */
	uint32_t parent;
	uint32_t left; /* its right child is left + 1 */
} Item;

typedef struct Tree
{
	const AgTree *tree; /* NULL: a single leaf */
	const AgTreeNode *nodes;
	const double *leaves;
	double shift; /* added to its leaves */
	Item *items;
	uint32_t n_all;
} Tree;

static void
number_items(Tree *tree)
{
	uint32_t n = 1;

	tree->items[0] = (Item){tree->tree == NULL || tree->tree->n_nodes == 0 ? -1 : 0, NO_PARENT, 0};
	for (uint32_t i = 0; i < n; i++)
	{
		const AgTreeNode *node;

		if (tree->items[i].old < 0)
			continue;
		node = &tree->nodes[tree->items[i].old];
		tree->items[i].left = n;
		tree->items[n++] = (Item){node->left, i, 0};
		tree->items[n++] = (Item){node->right, i, 0};
	}
	tree->n_all = n;
}

/* NULL: a leaf. */
static const AgTreeNode *
node_at(const Tree *tree, uint32_t i)
{
	return tree->items[i].old < 0 ? NULL : &tree->nodes[tree->items[i].old];
}

static void
put_array(AgExport *export, const char *name, const Tree *tree,
		  void (*put)(AgExport *, const Tree *, uint32_t))
{
	ag_export_put(export, "\"%s\":[", name);
	for (uint32_t i = 0; i < tree->n_all; i++)
	{
		if (i > 0)
			ag_write_u8(export->out, ',');
		put(export, tree, i);
	}
	ag_json_raw(export->out, "],");
}

static void
put_zero(AgExport *export, const Tree *tree, uint32_t i)
{
	(void) tree;
	(void) i;
	ag_write_u8(export->out, '0');
}

static void
put_nothing(AgExport *export, const Tree *tree, uint32_t i)
{
	(void) tree;
	(void) i;
	ag_json_raw(export->out, "0E0");
}

static void
put_left(AgExport *export, const Tree *tree, uint32_t i)
{
	ag_export_put(export, "%d", node_at(tree, i) != NULL ? (int) tree->items[i].left : -1);
}

static void
put_right(AgExport *export, const Tree *tree, uint32_t i)
{
	ag_export_put(export, "%d", node_at(tree, i) != NULL ? (int) tree->items[i].left + 1 : -1);
}

static void
put_parent(AgExport *export, const Tree *tree, uint32_t i)
{
	ag_export_put(export, "%u", tree->items[i].parent);
}

static void
put_default(AgExport *export, const Tree *tree, uint32_t i)
{
	const AgTreeNode *node = node_at(tree, i);

	ag_export_put(export, "%d", node != NULL && (node->flags & AG_NODE_MISSING_LEFT) != 0);
}

static void
put_feature(AgExport *export, const Tree *tree, uint32_t i)
{
	const AgTreeNode *node = node_at(tree, i);

	ag_export_put(export, "%u", node != NULL ? node->feature : 0);
}

/* The library takes what has no exponent or point for an integer. */
static void
put_condition(AgExport *export, const Tree *tree, uint32_t i)
{
	const AgTreeNode *node = node_at(tree, i);
	float value;

	if (node != NULL)
		value = nextafterf(ag_export_float_below(ag_export_threshold(export, node)), INFINITY);
	else
		value =
			(float) ((tree->tree == NULL ? 0.0 : tree->leaves[~tree->items[i].old]) + tree->shift);
	ag_export_put(export, "%.9E", (double) value);
}

static void
put_tree(AgExport *export, uint32_t number, Tree *tree)
{
	number_items(tree);
	ag_export_put(export, "%s{", number > 0 ? "," : "");
	put_array(export, "base_weights", tree, put_nothing);
	ag_json_raw(export->out, "\"categories\":[],\"categories_nodes\":[],\"categories_segments\":[],"
							 "\"categories_sizes\":[],");
	put_array(export, "default_left", tree, put_default);
	ag_export_put(export, "\"id\":%u,", number);
	put_array(export, "left_children", tree, put_left);
	put_array(export, "loss_changes", tree, put_nothing);
	put_array(export, "parents", tree, put_parent);
	put_array(export, "right_children", tree, put_right);
	put_array(export, "split_conditions", tree, put_condition);
	put_array(export, "split_indices", tree, put_feature);
	put_array(export, "split_type", tree, put_zero);
	put_array(export, "sum_hessian", tree, put_nothing);
	ag_export_put(export,
				  "\"tree_param\":{\"num_deleted\":\"0\",\"num_feature\":\"%u\",\"num_nodes\":\"%"
				  "u\",\"size_leaf_vector\":\"1\"}}",
				  export->trees->n_features, tree->n_all);
}

/* --- the model --- */

static void
put_shift_trees(AgExport *export, Item *items)
{
	for (uint32_t k = 0; k < export->trees->n_outputs; k++)
	{
		Tree tree = {.shift = export->trees->base[k], .items = items};

		put_tree(export, k, &tree);
	}
}

static void
put_trees(AgExport *export, Item *items)
{
	const AgTrees *trees = export->trees;

	ag_json_raw(export->out, "\"trees\":[");
	put_shift_trees(export, items);
	for (uint32_t t = 0; t < trees->n_trees; t++)
	{
		const AgTree *from = &trees->trees[t];
		Tree tree = {.tree = from,
					 .nodes = trees->nodes + from->first_node,
					 .leaves = trees->leaves + from->first_leaf,
					 .items = items};

		put_tree(export, trees->n_outputs + t, &tree);
	}
	ag_json_raw(export->out, "]");
}

static void
put_booster(AgExport *export, Item *items)
{
	const AgTrees *trees = export->trees;
	uint32_t n_all = trees->n_trees + trees->n_outputs;

	ag_export_put(export,
				  "\"gradient_booster\":{\"model\":{\"gbtree_model_param\":{\"num_parallel_tree\":"
				  "\"1\",\"num_trees\":\"%u\"},",
				  n_all);
	/* one tree a round, whichever output it is of; what a round is matters only to who cuts some off */
	ag_json_raw(export->out, "\"iteration_indptr\":[0");
	for (uint32_t t = 1; t <= n_all; t++)
		ag_export_put(export, ",%u", t);
	ag_json_raw(export->out, "],\"tree_info\":[");
	for (uint32_t t = 0; t < n_all; t++)
		ag_export_put(export, "%s%u", t > 0 ? "," : "",
					  t < trees->n_outputs ? t : trees->trees[t - trees->n_outputs].output);
	ag_json_raw(export->out, "],");
	put_trees(export, items);
	ag_json_raw(export->out, "},\"name\":\"gbtree\"},");
}

static void
put_objective(AgExport *export)
{
	uint32_t n = export->trees->n_outputs;

	switch (export->trees->link)
	{
		case AG_LINK_SIGMOID:
			ag_json_raw(export->out, "\"objective\":{\"name\":\"binary:logistic\",\"reg_loss_"
									 "param\":{\"scale_pos_weight\":\"1\"}}");
			break;
		case AG_LINK_SOFTMAX:
			ag_export_put(export,
						  "\"objective\":{\"name\":\"multi:softprob\",\"softmax_multiclass_param\":"
						  "{\"num_class\":\"%u\"}}",
						  n);
			break;
		case AG_LINK_EXP:
			ag_json_raw(export->out, "\"objective\":{\"name\":\"count:poisson\",\"poisson_"
									 "regression_param\":{\"max_delta_step\":\"0.7\"}}");
			break;
		default:
			ag_json_raw(export->out, "\"objective\":{\"name\":\"reg:squarederror\",\"reg_loss_"
									 "param\":{\"scale_pos_weight\":\"1\"}}");
			break;
	}
}

/* Where the score without any tree is 0: as an output. */
static const char *
base_score(AgLink link)
{
	return link == AG_LINK_SIGMOID || link == AG_LINK_SOFTMAX ? "5E-1"
		   : link == AG_LINK_EXP                              ? "1E0"
															  : "0E0";
}

static void
put_names(AgExport *export)
{
	ag_json_raw(export->out, "\"feature_names\":[");
	for (uint32_t f = 0; f < export->trees->n_features; f++)
	{
		const char *name = ag_export_feature(export, f)->name;

		ag_json_raw(export->out, f > 0 ? "," : "");
		ag_json_string(export->out, name, strlen(name));
	}
	ag_json_raw(export->out, "],\"feature_types\":[");
	for (uint32_t f = 0; f < export->trees->n_features; f++)
		ag_json_raw(export->out, f > 0 ? ",\"float\"" : "\"float\"");
	ag_json_raw(export->out, "],");
}

AgStatus
ag_export_xgboost(AgExport *export)
{
	const AgTrees *trees = export->trees;
	uint32_t most = 1;
	Item *items;

	AG_TRY(ag_export_need_boosted(export));
	AG_TRY(ag_export_need_plain(export, false));
	for (uint32_t t = 0; t < trees->n_trees; t++)
		if (trees->trees[t].n_nodes + trees->trees[t].n_leaves > most)
			most = trees->trees[t].n_nodes + trees->trees[t].n_leaves;
	items = ag_mem_alloc(export->ctx->mem, most, sizeof *items);
	if (items == NULL)
		return ag_mem_error(export->ctx->mem, most * sizeof *items, export->ctx->error);
	ag_json_raw(export->out, "{\"learner\":{\"attributes\":{},");
	put_names(export);
	put_booster(export, items);
	ag_export_put(export,
				  "\"learner_model_param\":{\"base_score\":\"%s\",\"boost_from_average\":\"0\","
				  "\"num_class\":\"%u\",\"num_feature\":\"%u\",\"num_target\":\"1\"},",
				  base_score(trees->link), trees->link == AG_LINK_SOFTMAX ? trees->n_outputs : 0,
				  trees->n_features);
	put_objective(export);
	ag_json_raw(export->out, "},\"version\":[2,0,0]}\n");
	ag_mem_free(export->ctx->mem, items);
	return AG_OK;
}
