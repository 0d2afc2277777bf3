/*
 * export_lightgbm.c - trees as LightGBM's text.
 *
 * Its predicate is ours, x <= threshold in double precision, so predictions are the same numbers, up to the order of sums and the
 * library's exponential. Categories are codes, whose names stand in the last line, where its Python package looks for them.
 */
#include <stdio.h>
#include <string.h>

#include "engine/export_private.h"
#include "engine/search/json.h"

/* decision_type: bit 0 a category, bit 1 missing goes left, bits 2 and 3 what is missing (2: NaN) */
#define DECISION_CATEGORY 1
#define DECISION_MISSING_LEFT 2
#define DECISION_NAN 8

/* A category node as the format has it: codes in a set go left, everything else, missing values too, goes right. */
static bool
is_inverted(const AgTreeNode *node)
{
	return (node->flags & AG_NODE_UNSEEN_LEFT) != 0;
}

static AgStatus
check(const AgExport *export)
{
	const AgTrees *trees = export->trees;

	AG_TRY(ag_export_need_boosted(export));
	AG_TRY(ag_export_need_plain(export, true));
	for (uint64_t i = 0; i < trees->n_nodes; i++)
	{
		const AgTreeNode *node = &trees->nodes[i];
		bool missing_left = (node->flags & AG_NODE_MISSING_LEFT) != 0;

		if ((node->flags & AG_NODE_CATEGORY) != 0 && missing_left != is_inverted(node))
			return ag_error_set(export->ctx->error, AG_ERR_UNSUPPORTED,
								"format \"%s\" can't hold feature \"%s\": it sends a missing "
								"category where it sends an unknown one",
								export->format, ag_export_feature(export, node->feature)->name);
	}
	return AG_OK;
}

static const char *
objective(const AgExport *export, char *text, size_t size)
{
	switch (export->trees->link)
	{
		case AG_LINK_SIGMOID:
			return "binary sigmoid:1";
		case AG_LINK_SOFTMAX:
			snprintf(text, size, "multiclass num_class:%u", export->trees->n_outputs);
			return text;
		case AG_LINK_EXP:
			return "poisson";
		default:
			return "regression";
	}
}

/* Names may not hold blanks or what JSON needs: those become underscores. */
static void
put_name(AgExport *export, const char *name)
{
	for (; *name != '\0'; name++)
		ag_write_u8(export->out,
					strchr(" \t\n\r\"\\,:[]{}=", *name) != NULL ? '_' : (uint8_t) *name);
}

/* Of a number its bounds, of a category its codes. */
static void
put_info(AgExport *export, const AgFeature *feature, bool with_blank)
{
	ag_json_raw(export->out, with_blank ? " " : "");
	if (feature->kind != AG_FEATURE_CATEGORY)
		ag_json_raw(export->out, "[-inf:inf]");
	for (uint32_t code = 0; feature->kind == AG_FEATURE_CATEGORY && code < feature->n_levels;
		 code++)
		ag_export_put(export, "%s%u", code > 0 ? ":" : "", code);
}

static void
put_head(AgExport *export)
{
	const AgTrees *trees = export->trees;
	char text[64];

	ag_export_put(export,
				  "tree\nversion=v4\nnum_class=%u\nnum_tree_per_iteration=%u\nlabel_index=0\nmax_"
				  "feature_idx=%u\nobjective=%s\n",
				  trees->n_outputs, trees->n_outputs, trees->n_features - 1,
				  objective(export, text, sizeof text));
	ag_export_put(export, "feature_names=");
	for (uint32_t f = 0; f < trees->n_features; f++)
	{
		ag_json_raw(export->out, f > 0 ? " " : "");
		put_name(export, ag_export_feature(export, f)->name);
	}
	ag_export_put(export, "\nfeature_infos=");
	for (uint32_t f = 0; f < trees->n_features; f++)
		put_info(export, ag_export_feature(export, f), f > 0);
	ag_export_put(export, "\n\n");
}

/* --- one tree --- */

typedef struct Tree
{
	const AgTree *tree; /* NULL: a leaf of 0 */
	const AgTreeNode *nodes;
	const double *leaves;
	double shift; /* added to its leaves: the first one of an output has the base score */
} Tree;

static int32_t
child_of(const AgTreeNode *node, bool left)
{
	bool swapped = (node->flags & AG_NODE_CATEGORY) != 0 && is_inverted(node);

	return left != swapped ? node->left : node->right;
}

/* Codes that have a bit: an inverted set's words hold the complement, up to the last level. */
static uint32_t
set_words(const AgExport *export, const AgTreeNode *node)
{
	uint32_t n_levels = ag_export_feature(export, node->feature)->n_levels;

	return (n_levels + 31) / 32 > 0 ? (n_levels + 31) / 32 : 1;
}

static uint32_t
set_word(const AgExport *export, const AgTreeNode *node, uint32_t word)
{
	uint32_t n_levels = ag_export_feature(export, node->feature)->n_levels, bits = 0;

	for (uint32_t bit = 0; bit < 32 && word * 32 + bit < n_levels; bit++)
	{
		uint32_t code = word * 32 + bit;
		/* codes beyond the set's words are unseen to it */
		bool is_left =
			code / 64 < node->n_set ? ag_export_in_set(export, node, code) : is_inverted(node);

		if (is_left != is_inverted(node))
			bits |= UINT32_C(1) << bit;
	}
	return bits;
}

static void
put_categories(AgExport *export, const Tree *tree)
{
	uint32_t at = 0;

	ag_export_put(export, "cat_boundaries=0");
	for (uint32_t i = 0; i < tree->tree->n_nodes; i++)
		if ((tree->nodes[i].flags & AG_NODE_CATEGORY) != 0)
			ag_export_put(export, " %u", at += set_words(export, &tree->nodes[i]));
	ag_export_put(export, "\ncat_threshold=");
	at = 0;
	for (uint32_t i = 0; i < tree->tree->n_nodes; i++)
		for (uint32_t w = 0; (tree->nodes[i].flags & AG_NODE_CATEGORY) != 0 &&
							 w < set_words(export, &tree->nodes[i]);
			 w++)
			ag_export_put(export, "%s%u", at++ > 0 ? " " : "",
						  set_word(export, &tree->nodes[i], w));
	ag_export_put(export, "\n");
}

static void
put_nodes(AgExport *export, const Tree *tree)
{
	uint32_t n = tree->tree->n_nodes, n_categories = 0;

	ag_export_put(export, "split_feature=");
	for (uint32_t i = 0; i < n; i++)
		ag_export_put(export, "%s%u", i > 0 ? " " : "", tree->nodes[i].feature);
	ag_export_put(export, "\nsplit_gain=");
	for (uint32_t i = 0; i < n; i++)
		ag_export_put(export, "%s1", i > 0 ? " " : "");
	ag_export_put(export, "\nthreshold=");
	for (uint32_t i = 0; i < n; i++)
	{
		ag_json_raw(export->out, i > 0 ? " " : "");
		if ((tree->nodes[i].flags & AG_NODE_CATEGORY) != 0)
			ag_export_put(export, "%u", n_categories++);
		else
			ag_export_put_number(export, ag_export_threshold(export, &tree->nodes[i]));
	}
	ag_export_put(export, "\ndecision_type=");
	for (uint32_t i = 0; i < n; i++)
	{
		unsigned type = DECISION_NAN;

		if ((tree->nodes[i].flags & AG_NODE_CATEGORY) != 0)
			type |= DECISION_CATEGORY;
		else if ((tree->nodes[i].flags & AG_NODE_MISSING_LEFT) != 0)
			type |= DECISION_MISSING_LEFT;
		ag_export_put(export, "%s%u", i > 0 ? " " : "", type);
	}
	for (int side = 0; side < 2; side++)
	{
		ag_export_put(export, side == 0 ? "\nleft_child=" : "\nright_child=");
		for (uint32_t i = 0; i < n; i++)
			ag_export_put(export, "%s%d", i > 0 ? " " : "", child_of(&tree->nodes[i], side == 0));
	}
	ag_export_put(export, "\n");
}

static void
put_tree(AgExport *export, uint32_t number, const Tree *tree)
{
	uint32_t n_leaves = tree->tree == NULL ? 1 : tree->tree->n_leaves;
	uint32_t n_categories = 0;

	for (uint32_t i = 0; tree->tree != NULL && i < tree->tree->n_nodes; i++)
		n_categories += (tree->nodes[i].flags & AG_NODE_CATEGORY) != 0;
	ag_export_put(export, "Tree=%u\nnum_leaves=%u\nnum_cat=%u\n", number, n_leaves, n_categories);
	if (n_leaves > 1)
		put_nodes(export, tree);
	ag_export_put(export, "leaf_value=");
	for (uint32_t i = 0; i < n_leaves; i++)
	{
		ag_json_raw(export->out, i > 0 ? " " : "");
		ag_export_put_number(export, (tree->tree == NULL ? 0.0 : tree->leaves[i]) + tree->shift);
	}
	ag_export_put(export, "\n");
	if (n_categories > 0)
		put_categories(export, tree);
	ag_export_put(export, "is_linear=0\nshrinkage=1\n\n\n");
}

/*
 * The format has one tree of each output a round, one after the other. Ours may be in another order, and of one output there may be fewer: what
 * is missing is a leaf of 0.
 */
static const AgTree *
tree_of(const AgTrees *trees, uint32_t round, uint32_t output, bool is_regular)
{
	uint64_t at = (uint64_t) round * trees->n_outputs + output;
	uint32_t seen = 0;

	if (is_regular)
		return at < trees->n_trees ? &trees->trees[at] : NULL;
	for (uint32_t t = 0; t < trees->n_trees; t++)
		if (trees->trees[t].output == output && seen++ == round)
			return &trees->trees[t];
	return NULL;
}

static void
put_trees(AgExport *export)
{
	const AgTrees *trees = export->trees;
	uint32_t number = 0, n_left = trees->n_trees;
	bool is_regular = true;

	for (uint32_t t = 0; t < trees->n_trees; t++)
		is_regular = is_regular && trees->trees[t].output == t % trees->n_outputs;
	for (uint32_t round = 0; round == 0 || n_left > 0; round++)
		for (uint32_t k = 0; k < trees->n_outputs; k++)
		{
			Tree tree = {.tree = tree_of(trees, round, k, is_regular),
						 .shift = round == 0 ? trees->base[k] : 0.0};

			if (tree.tree != NULL)
			{
				tree.nodes = trees->nodes + tree.tree->first_node;
				tree.leaves = trees->leaves + tree.tree->first_leaf;
				n_left--;
			}
			put_tree(export, number++, &tree);
		}
	ag_export_put(export, "end of trees\n\n");
}

/* A list of levels a category column, in the order of columns; null where there is none. */
static void
put_levels(AgExport *export)
{
	const AgPipeline *pipeline = export->pipeline;
	bool any = false;

	ag_export_put(export,
				  "feature_importances:\n\nparameters:\nend of parameters\n\npandas_categorical:");
	for (uint32_t f = 0; f < export->trees->n_features; f++)
	{
		const AgFeature *feature = ag_export_feature(export, f);
		const AgDictionary *levels = pipeline->inputs[feature->input].levels;

		if (feature->kind != AG_FEATURE_CATEGORY || levels == NULL)
			continue;
		ag_json_raw(export->out, any ? ", [" : "[[");
		any = true;
		for (uint32_t code = 0; code < feature->n_levels; code++)
		{
			ag_json_raw(export->out, code > 0 ? ", " : "");
			ag_json_string(export->out, levels->texts[code], levels->n_bytes[code]);
		}
		ag_json_raw(export->out, "]");
	}
	ag_json_raw(export->out, any ? "]\n" : "null\n");
}

AgStatus
ag_export_lightgbm(AgExport *export)
{
	AG_TRY(check(export));
	put_head(export);
	put_trees(export);
	put_levels(export);
	return AG_OK;
}
