/*
 * export_onnx.c - trees of numbers as an ONNX model (operator set ai.onnx.ml 3), written by hand: a message of Protocol Buffers is
 * fields, each a key (number << 3 | type) and a value.
 *
 * Input "features", float [rows, columns] in the order of the model's features, whose names are in the graph's documentation; NaN is missing. Output
 * "prediction" [rows, 1], or "probabilities" [rows, classes]. Thresholds and leaves become floats: a threshold the greatest float not above it, which for
 * inputs that are floats means the same.
 */
#include <math.h>
#include <string.h>

#include "engine/export_private.h"
#include "engine/search/json.h"

enum
{
	WIRE_VARINT = 0,
	WIRE_BYTES = 2,
	WIRE_FLOAT = 5
};

/* AttributeProto.AttributeType */
enum
{
	ATTRIBUTE_INT = 2,
	ATTRIBUTE_STRING = 3,
	ATTRIBUTE_FLOATS = 6,
	ATTRIBUTE_INTS = 7,
	ATTRIBUTE_STRINGS = 8
};

static void
put_varint(AgWriter *out, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		ag_write_u8(out, (uint8_t) (value | 0x80));
	ag_write_u8(out, (uint8_t) value);
}

static void
put_int(AgWriter *out, int field, uint64_t value)
{
	put_varint(out, (uint64_t) field << 3 | WIRE_VARINT);
	put_varint(out, value);
}

static void
put_bytes(AgWriter *out, int field, const void *bytes, size_t n)
{
	put_varint(out, (uint64_t) field << 3 | WIRE_BYTES);
	put_varint(out, n);
	ag_write_bytes(out, bytes, n);
}

static void
put_text(AgWriter *out, int field, const char *text)
{
	put_bytes(out, field, text, strlen(text));
}

/* A message made by itself; it is given back. */
static void
put_message(AgWriter *out, int field, AgWriter *message)
{
	if (message->failed)
		out->failed = true;
	else
		put_bytes(out, field, message->data, message->size);
	ag_writer_free(message);
}

/* --- attributes of a node (NodeProto 5) --- */

static void
begin_attribute(AgExport *export, AgWriter *attribute, const char *name, int type)
{
	ag_writer_init(attribute, export->ctx->mem);
	put_text(attribute, 1, name);
	put_int(attribute, 20, (uint64_t) type);
}

static void
put_int_attribute(AgExport *export, AgWriter *node, const char *name, uint64_t value)
{
	AgWriter attribute;

	begin_attribute(export, &attribute, name, ATTRIBUTE_INT);
	put_int(&attribute, 3, value);
	put_message(node, 5, &attribute);
}

static void
put_string_attribute(AgExport *export, AgWriter *node, const char *name, const char *text)
{
	AgWriter attribute;

	begin_attribute(export, &attribute, name, ATTRIBUTE_STRING);
	put_text(&attribute, 4, text);
	put_message(node, 5, &attribute);
}

/* --- the ensemble's lists --- */

/* All trees' nodes and leaves one after the other; of a tree node i, and behind them leaf l as n_nodes + l. */
typedef struct Item
{
	uint32_t tree, number;
	const AgTreeNode *node; /* NULL: a leaf */
	double leaf;
	const AgTree *in;
} Item;

typedef void (*PutItem)(AgExport *export, AgWriter *out, const Item *item);

static void
each_item(AgExport *export, AgWriter *out, bool nodes, bool leaves, PutItem put)
{
	const AgTrees *trees = export->trees;

	for (uint32_t t = 0; t < trees->n_trees; t++)
	{
		const AgTree *tree = &trees->trees[t];

		for (uint32_t i = 0; nodes && i < tree->n_nodes; i++)
			put(export, out, &(Item){t, i, &trees->nodes[tree->first_node + i], 0.0, tree});
		for (uint32_t i = 0; leaves && i < tree->n_leaves; i++)
			put(export, out,
				&(Item){t, tree->n_nodes + i, NULL, trees->leaves[tree->first_leaf + i], tree});
	}
}

static void
put_list(AgExport *export, AgWriter *node, const char *name, int type, bool nodes, PutItem put)
{
	AgWriter attribute;

	begin_attribute(export, &attribute, name, type);
	each_item(export, &attribute, nodes, true, put);
	put_message(node, 5, &attribute);
}

static void
put_float_item(AgWriter *out, float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof bits);
	put_varint(out, 7 << 3 | WIRE_FLOAT);
	ag_write_u32(out, bits);
}

static void
put_tree_id(AgExport *export, AgWriter *out, const Item *item)
{
	(void) export;
	put_int(out, 8, item->tree);
}

static void
put_node_id(AgExport *export, AgWriter *out, const Item *item)
{
	(void) export;
	put_int(out, 8, item->number);
}

static void
put_feature(AgExport *export, AgWriter *out, const Item *item)
{
	(void) export;
	put_int(out, 8, item->node != NULL ? item->node->feature : 0);
}

static void
put_mode(AgExport *export, AgWriter *out, const Item *item)
{
	(void) export;
	put_text(out, 9, item->node != NULL ? "BRANCH_LEQ" : "LEAF");
}

static void
put_value(AgExport *export, AgWriter *out, const Item *item)
{
	put_float_item(out, item->node != NULL
							? ag_export_float_below(ag_export_threshold(export, item->node))
							: 0.0f);
}

static uint32_t
child_number(const Item *item, int32_t child)
{
	return child < 0 ? item->in->n_nodes + (uint32_t) ~child : (uint32_t) child;
}

static void
put_true(AgExport *export, AgWriter *out, const Item *item)
{
	(void) export;
	put_int(out, 8, item->node != NULL ? child_number(item, item->node->left) : 0);
}

static void
put_false(AgExport *export, AgWriter *out, const Item *item)
{
	(void) export;
	put_int(out, 8, item->node != NULL ? child_number(item, item->node->right) : 0);
}

static void
put_missing(AgExport *export, AgWriter *out, const Item *item)
{
	(void) export;
	put_int(out, 8, item->node != NULL && (item->node->flags & AG_NODE_MISSING_LEFT) != 0);
}

/* Two classes are two targets: of boosting, 0 and the score under a softmax; of a forest, both shares. */
static bool
is_pair(const AgTrees *trees)
{
	return trees->link == AG_LINK_SIGMOID || trees->link == AG_LINK_MEAN_FREQUENCIES;
}

static bool
is_forest_pair(const AgTrees *trees)
{
	return trees->link == AG_LINK_MEAN_FREQUENCIES;
}

static void
put_target_tree(AgExport *export, AgWriter *out, const Item *item)
{
	put_int(out, 8, item->tree);
	if (is_forest_pair(export->trees))
		put_int(out, 8, item->tree);
}

static void
put_target_node(AgExport *export, AgWriter *out, const Item *item)
{
	put_int(out, 8, item->number);
	if (is_forest_pair(export->trees))
		put_int(out, 8, item->number);
}

static void
put_target_id(AgExport *export, AgWriter *out, const Item *item)
{
	if (is_forest_pair(export->trees))
		put_int(out, 8, 0);
	put_int(out, 8, is_pair(export->trees) ? 1 : item->in->output);
}

static void
put_weight(AgExport *export, AgWriter *out, const Item *item)
{
	double n = export->trees->n_trees;

	if (is_forest_pair(export->trees))
	{
		put_float_item(out, (float) ((1.0 - item->leaf) / n));
		put_float_item(out, (float) (item->leaf / n));
	}
	else
		put_float_item(out, (float) item->leaf);
}

static void
put_base(AgExport *export, AgWriter *node)
{
	const AgTrees *trees = export->trees;
	AgWriter attribute;

	begin_attribute(export, &attribute, "base_values", ATTRIBUTE_FLOATS);
	if (is_pair(trees))
		put_float_item(&attribute, 0.0f);
	for (uint32_t k = 0; k < trees->n_outputs; k++)
		put_float_item(&attribute, (float) trees->base[k]);
	put_message(node, 5, &attribute);
}

/* --- nodes (NodeProto) --- */

static uint32_t
n_targets(const AgTrees *trees)
{
	return is_pair(trees) ? 2 : trees->n_outputs;
}

static void
put_ensemble(AgExport *export, AgWriter *graph, const char *output)
{
	AgWriter node;

	ag_writer_init(&node, export->ctx->mem);
	put_text(&node, 1, "features");
	put_text(&node, 2, output);
	put_text(&node, 3, "trees");
	put_text(&node, 4, "TreeEnsembleRegressor");
	put_text(&node, 7, "ai.onnx.ml");
	put_int_attribute(export, &node, "n_targets", n_targets(export->trees));
	put_string_attribute(export, &node, "aggregate_function", "SUM");
	put_string_attribute(export, &node, "post_transform", "NONE");
	put_base(export, &node);
	put_list(export, &node, "nodes_treeids", ATTRIBUTE_INTS, true, put_tree_id);
	put_list(export, &node, "nodes_nodeids", ATTRIBUTE_INTS, true, put_node_id);
	put_list(export, &node, "nodes_featureids", ATTRIBUTE_INTS, true, put_feature);
	put_list(export, &node, "nodes_modes", ATTRIBUTE_STRINGS, true, put_mode);
	put_list(export, &node, "nodes_values", ATTRIBUTE_FLOATS, true, put_value);
	put_list(export, &node, "nodes_truenodeids", ATTRIBUTE_INTS, true, put_true);
	put_list(export, &node, "nodes_falsenodeids", ATTRIBUTE_INTS, true, put_false);
	put_list(export, &node, "nodes_missing_value_tracks_true", ATTRIBUTE_INTS, true, put_missing);
	put_list(export, &node, "target_treeids", ATTRIBUTE_INTS, false, put_target_tree);
	put_list(export, &node, "target_nodeids", ATTRIBUTE_INTS, false, put_target_node);
	put_list(export, &node, "target_ids", ATTRIBUTE_INTS, false, put_target_id);
	put_list(export, &node, "target_weights", ATTRIBUTE_FLOATS, false, put_weight);
	put_message(graph, 1, &node);
}

static void
put_link(AgExport *export, AgWriter *graph, const char *input, const char *output,
		 const char *operator)
{
	AgWriter node;

	ag_writer_init(&node, export->ctx->mem);
	put_text(&node, 1, input);
	put_text(&node, 2, output);
	put_text(&node, 3, "link");
	put_text(&node, 4, operator);
	if (strcmp(operator, "Softmax") == 0)
		put_int_attribute(export, &node, "axis", 1);
	put_message(graph, 1, &node);
}

/* ValueInfoProto: a matrix of floats with any number of rows. */
static void
put_matrix(AgExport *export, AgWriter *graph, int field, const char *name, uint32_t n_columns)
{
	AgWriter value, type, tensor, shape, dimension;

	ag_writer_init(&shape, export->ctx->mem);
	ag_writer_init(&dimension, export->ctx->mem);
	put_text(&dimension, 2, "rows");
	put_message(&shape, 1, &dimension);
	ag_writer_init(&dimension, export->ctx->mem);
	put_int(&dimension, 1, n_columns);
	put_message(&shape, 1, &dimension);
	ag_writer_init(&tensor, export->ctx->mem);
	put_int(&tensor, 1, 1); /* float */
	put_message(&tensor, 2, &shape);
	ag_writer_init(&type, export->ctx->mem);
	put_message(&type, 1, &tensor);
	ag_writer_init(&value, export->ctx->mem);
	put_text(&value, 1, name);
	put_message(&value, 2, &type);
	put_message(graph, field, &value);
}

/* The names of the input's columns, as JSON. */
static void
put_names(AgExport *export, AgWriter *graph)
{
	AgWriter names;

	ag_writer_init(&names, export->ctx->mem);
	for (uint32_t f = 0; f < export->trees->n_features; f++)
	{
		const char *name = ag_export_feature(export, f)->name;

		ag_json_raw(&names, f > 0 ? ", " : "[");
		ag_json_string(&names, name, strlen(name));
	}
	ag_json_raw(&names, "]");
	put_message(graph, 10, &names);
}

static void
put_graph(AgExport *export, AgWriter *model)
{
	const AgTrees *trees = export->trees;
	bool has_classes = trees->link != AG_LINK_IDENTITY && trees->link != AG_LINK_EXP;
	const char *output = has_classes ? "probabilities" : "prediction";
	AgWriter graph;

	ag_writer_init(&graph, export->ctx->mem);
	if (trees->link == AG_LINK_IDENTITY || trees->link == AG_LINK_MEAN_FREQUENCIES)
		put_ensemble(export, &graph, output);
	else
	{
		put_ensemble(export, &graph, "scores");
		put_link(export, &graph, "scores", output, has_classes ? "Softmax" : "Exp");
	}
	put_text(&graph, 2, "ag_pg");
	put_names(export, &graph);
	put_matrix(export, &graph, 11, "features", trees->n_features);
	put_matrix(export, &graph, 12, output, n_targets(trees));
	put_message(model, 7, &graph);
}

static void
put_operators(AgExport *export, AgWriter *model, const char *domain, uint64_t version)
{
	AgWriter set;

	ag_writer_init(&set, export->ctx->mem);
	put_text(&set, 1, domain);
	put_int(&set, 2, version);
	put_message(model, 8, &set);
}

AgStatus
ag_export_onnx(AgExport *export)
{
	AG_TRY(ag_export_need_plain(export, false));
	if (export->trees->vectors != NULL)
		return ag_export_refuse(export, "can't hold a forest of more than two classes");
	if (export->trees->n_trees == 0)
		return ag_export_refuse(export, "can't hold a model without trees");
	put_int(export->out, 1, 8); /* the version of the format */
	put_text(export->out, 2, "ag_pg");
	put_operators(export, export->out, "", 17);
	put_operators(export, export->out, "ai.onnx.ml", 3);
	put_graph(export, export->out);
	return AG_OK;
}
