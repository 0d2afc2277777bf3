/*
 * export_json.c - a model of trees as JSON that holds all of it, for programs to be written to.
 *
 * {"features": [{"name", "column", "kind": "number" | "category" | ..., "origin", "levels"}], "link", "base": [score], "trees": [{"output", "nodes": [...], "leaves": [...]}]}.
 * A node: {"feature", "threshold", "missing": "left" | "right", "left", "right"}: a value goes left if it isn't above the threshold, or {"feature", "levels": [codes that go left],
 * "missing", "unseen", "left", "right"}. A child from 0 on is a node of the tree, below 0 leaf -1 - child. A score is the base and the sum of leaves over trees of its output.
 */
#include <string.h>

#include "engine/export_private.h"
#include "engine/search/json.h"

static const char *
link_name(AgLink link)
{
	static const char *const names[] = {"identity", "sigmoid", "softmax", "mean", "exp"};

	return names[link];
}

static void
put_string(AgExport *export, const char *text)
{
	ag_json_string(export->out, text, strlen(text));
}

static void
put_levels(AgExport *export, const AgFeature *feature)
{
	const AgDictionary *levels = export->pipeline->inputs[feature->input].levels;

	if (feature->kind != AG_FEATURE_CATEGORY || levels == NULL)
		return;
	ag_json_raw(export->out, ", \"levels\": [");
	for (uint32_t code = 0; code < feature->n_levels; code++)
	{
		ag_json_raw(export->out, code > 0 ? ", " : "");
		ag_json_string(export->out, levels->texts[code], levels->n_bytes[code]);
	}
	ag_json_raw(export->out, "]");
}

static void
put_features(AgExport *export)
{
	ag_json_raw(export->out, "\"features\": [");
	for (uint32_t f = 0; f < export->trees->n_features; f++)
	{
		const AgFeature *feature = ag_export_feature(export, f);
		bool is_plain = ag_export_is_plain(export, f);

		ag_json_raw(export->out, f > 0 ? ",\n  {\"name\": " : "\n  {\"name\": ");
		put_string(export, feature->name);
		ag_json_raw(export->out, ", \"column\": ");
		put_string(export, export->pipeline->inputs[feature->input].name);
		ag_json_raw(export->out, ", \"kind\": ");
		put_string(export, feature->kind == AG_FEATURE_CATEGORY ? "category"
						   : is_plain                           ? "number"
																: "derived");
		if (feature->origin != 0)
			ag_export_put(export, ", \"origin\": %lld", (long long) feature->origin);
		put_levels(export, feature);
		ag_json_raw(export->out, "}");
	}
	ag_json_raw(export->out, "],\n");
}

static void
put_node(AgExport *export, const AgTreeNode *node)
{
	bool first = true;

	ag_export_put(export, "{\"feature\": %u, ", node->feature);
	if ((node->flags & AG_NODE_CATEGORY) != 0)
	{
		ag_json_raw(export->out, "\"levels\": [");
		for (uint32_t code = 0; code < node->n_set * 64; code++)
			if (ag_export_in_set(export, node, code) &&
				code < ag_export_feature(export, node->feature)->n_levels)
			{
				ag_export_put(export, "%s%u", first ? "" : ",", code);
				first = false;
			}
		ag_export_put(export, "], \"unseen\": \"%s\"",
					  (node->flags & AG_NODE_UNSEEN_LEFT) != 0 ? "left" : "right");
	}
	else
	{
		ag_json_raw(export->out, "\"threshold\": ");
		ag_export_put_number(export, node->threshold);
	}
	ag_export_put(export, ", \"missing\": \"%s\", \"left\": %d, \"right\": %d}",
				  (node->flags & AG_NODE_MISSING_LEFT) != 0 ? "left" : "right", node->left,
				  node->right);
}

static void
put_tree(AgExport *export, const AgTree *tree)
{
	ag_export_put(export, "{\"output\": %u, \"nodes\": [", tree->output);
	for (uint32_t i = 0; i < tree->n_nodes; i++)
	{
		ag_json_raw(export->out, i > 0 ? ", " : "");
		put_node(export, &export->trees->nodes[tree->first_node + i]);
	}
	ag_json_raw(export->out, "], \"leaves\": [");
	for (uint32_t i = 0; i < tree->n_leaves; i++)
	{
		ag_json_raw(export->out, i > 0 ? ", " : "");
		ag_export_put_number(export, export->trees->leaves[tree->first_leaf + i]);
	}
	ag_json_raw(export->out, "]}");
}

static void
put_classes(AgExport *export)
{
	const AgPipeline *pipeline = export->pipeline;

	if (pipeline->n_classes == 0)
		return;
	ag_json_raw(export->out, "\"classes\": [");
	for (int c = 0; c < pipeline->n_classes; c++)
	{
		ag_json_raw(export->out, c > 0 ? ", " : "");
		ag_json_string(export->out, pipeline->classes[c].name, pipeline->classes[c].n_bytes);
	}
	ag_json_raw(export->out, "],\n");
}

AgStatus
ag_export_json(AgExport *export)
{
	const AgTrees *trees = export->trees;

	if (trees->n_combos > 0)
		return ag_export_refuse(export, "can't hold combinations of categories");
	if (trees->vectors != NULL)
		return ag_export_refuse(export, "can't hold a forest of more than two classes");
	ag_json_raw(export->out, "{\"format\": \"ag_pg trees 1\",\n\"label\": ");
	put_string(export, export->pipeline->label_name);
	ag_json_raw(export->out, ",\n");
	put_classes(export);
	put_features(export);
	ag_export_put(export, "\"link\": \"%s\",\n\"base\": [", link_name(trees->link));
	for (uint32_t k = 0; k < trees->n_outputs; k++)
	{
		ag_json_raw(export->out, k > 0 ? ", " : "");
		ag_export_put_number(export, trees->base[k]);
	}
	ag_json_raw(export->out, "],\n\"trees\": [");
	for (uint32_t t = 0; t < trees->n_trees; t++)
	{
		ag_json_raw(export->out, t > 0 ? ",\n  " : "\n  ");
		put_tree(export, &trees->trees[t]);
	}
	ag_json_raw(export->out, "]}\n");
	return AG_OK;
}
