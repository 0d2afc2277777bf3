/*
 * export_sql.c - a small model of trees as one SQL expression over its columns: for places where the extension isn't.
 *
 * A regression's value, or the probability of the second of two classes.
 */
#include <math.h>
#include <string.h>

#include "engine/export_private.h"
#include "engine/search/json.h"

#define MOST_NODES 20000 /* of all trees; a longer expression is no use to anybody */
#define MOST_DEPTH 300

/* With a backslash it is an escape string, which means the same wherever standard_conforming_strings is set to. */
static void
put_literal(AgExport *export, const char *text, size_t n)
{
	bool has_backslash = n > 0 && memchr(text, '\\', n) != NULL;

	if (has_backslash)
		ag_write_u8(export->out, 'E');
	ag_write_u8(export->out, '\'');
	for (size_t i = 0; i < n; i++)
	{
		if (text[i] == '\'' || text[i] == '\\')
			ag_write_u8(export->out, (uint8_t) text[i]);
		ag_write_u8(export->out, (uint8_t) text[i]);
	}
	ag_write_u8(export->out, '\'');
}

static void
put_column(AgExport *export, const AgFeature *feature)
{
	const char *name = export->pipeline->inputs[feature->input].name;

	ag_write_u8(export->out, '"');
	for (; *name != '\0'; name++)
	{
		if (*name == '"')
			ag_write_u8(export->out, '"');
		ag_write_u8(export->out, (uint8_t) *name);
	}
	ag_write_u8(export->out, '"');
}

/* Is the value not above the threshold? NULL and NaN are missing. */
static void
put_number_test(AgExport *export, const AgTreeNode *node)
{
	const AgFeature *feature = ag_export_feature(export, node->feature);
	AgType type = export->pipeline->inputs[feature->input].type;
	double threshold = ag_export_threshold(export, node);

	ag_json_raw(export->out, "COALESCE(");
	if (type >= AG_TYPE_FLOAT32)
		ag_json_raw(export->out, "NULLIF(");
	put_column(export, feature);
	ag_json_raw(export->out, type == AG_TYPE_BOOL      ? "::int"
							 : type >= AG_TYPE_FLOAT32 ? "::float8, 'NaN')"
													   : "::float8");
	ag_json_raw(export->out, " <= ");
	if (isinf(threshold)) /* all that isn't missing goes one way */
		ag_json_raw(export->out, threshold > 0.0 ? "'Infinity'::float8" : "'-Infinity'::float8");
	else
		ag_export_put_number(export, threshold);
	ag_export_put(export, ", %s)", (node->flags & AG_NODE_MISSING_LEFT) != 0 ? "true" : "false");
}

/* Is it listed in the test: one of the levels that go left, or where unknown ones go left, one of those that go right? */
static bool
is_listed(const AgExport *export, const AgTreeNode *node, uint32_t code)
{
	bool unseen_left = (node->flags & AG_NODE_UNSEEN_LEFT) != 0;
	bool is_left = code / 64 < node->n_set ? ag_export_in_set(export, node, code) : unseen_left;

	return is_left != unseen_left;
}

static void
put_category_test(AgExport *export, const AgTreeNode *node)
{
	const AgFeature *feature = ag_export_feature(export, node->feature);
	const AgDictionary *levels = export->pipeline->inputs[feature->input].levels;
	bool unseen_left = (node->flags & AG_NODE_UNSEEN_LEFT) != 0;
	uint32_t n = 0;

	ag_json_raw(export->out, "COALESCE(");
	put_column(export, feature);
	for (uint32_t code = 0; code < feature->n_levels; code++)
	{
		if (!is_listed(export, node, code))
			continue;
		ag_json_raw(export->out, n++ > 0 ? ", " : unseen_left ? "::text NOT IN (" : "::text IN (");
		put_literal(export, levels->texts[code], levels->n_bytes[code]);
	}
	if (n == 0) /* no list can be empty: true, or false, where it isn't NULL */
		ag_json_raw(export->out,
					unseen_left ? "::text IS NOT NULL OR NULL" : "::text IS NULL AND NULL");
	else
		ag_json_raw(export->out, ")");
	ag_export_put(export, ", %s)", (node->flags & AG_NODE_MISSING_LEFT) != 0 ? "true" : "false");
}

/* As deep as the tree, which was looked at before. */
static void
put_child(AgExport *export, const AgTree *tree, int32_t child)
{
	const AgTreeNode *node;

	if (child < 0)
	{
		ag_export_put_number(export, export->trees->leaves[tree->first_leaf + (uint32_t) ~child]);
		return;
	}
	node = &export->trees->nodes[tree->first_node + (uint32_t) child];
	ag_json_raw(export->out, "CASE WHEN ");
	if ((node->flags & AG_NODE_CATEGORY) != 0)
		put_category_test(export, node);
	else
		put_number_test(export, node);
	ag_json_raw(export->out, " THEN ");
	put_child(export, tree, node->left);
	ag_json_raw(export->out, " ELSE ");
	put_child(export, tree, node->right);
	ag_json_raw(export->out, " END");
}

static AgStatus
check(const AgExport *export)
{
	const AgTrees *trees = export->trees;

	AG_TRY(ag_export_need_plain(export, true));
	if (trees->n_outputs > 1)
		return ag_export_refuse(export, "holds one number, and the model gives several");
	if (trees->n_nodes > MOST_NODES)
		return ag_export_refuse(export,
								"would be too long an expression: use fewer or smaller trees");
	for (uint32_t t = 0; t < trees->n_trees; t++)
		if (trees->trees[t].depth > MOST_DEPTH)
			return ag_export_refuse(export, "would be too deep an expression: use flatter trees");
	return AG_OK;
}

static void
put_sum(AgExport *export)
{
	const AgTrees *trees = export->trees;

	ag_json_raw(export->out, "(");
	ag_export_put_number(export, trees->base[0]);
	ag_json_raw(export->out, "::float8");
	for (uint32_t t = 0; t < trees->n_trees; t++)
	{
		ag_json_raw(export->out, "\n + (");
		put_child(export, &trees->trees[t], trees->trees[t].n_nodes > 0 ? 0 : -1);
		ag_json_raw(export->out, ")");
	}
	ag_json_raw(export->out, ")");
}

AgStatus
ag_export_sql(AgExport *export)
{
	AG_TRY(check(export));
	switch (export->trees->link)
	{
		case AG_LINK_SIGMOID: /* the power's bounds keep exp() from an overflow, which is an error to it */
			ag_json_raw(export->out, "1 / (1 + exp(LEAST(700, GREATEST(-700, -");
			put_sum(export);
			ag_json_raw(export->out, "))))\n");
			break;
		case AG_LINK_EXP:
			ag_json_raw(export->out, "exp(LEAST(709, GREATEST(-700, ");
			put_sum(export);
			ag_json_raw(export->out, ")))\n");
			break;
		case AG_LINK_MEAN_FREQUENCIES:
			put_sum(export);
			ag_export_put(export, " / %u\n", export->trees->n_trees);
			break;
		default:
			put_sum(export);
			ag_json_raw(export->out, "\n");
			break;
	}
	return AG_OK;
}
