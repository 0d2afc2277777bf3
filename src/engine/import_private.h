/*
 * import_private.h - reading models of other programs. For import*.c only.
 */
#ifndef AG_IMPORT_PRIVATE_H
#define AG_IMPORT_PRIVATE_H

#include "engine/data/pipeline.h"
#include "engine/engine.h"
#include "engine/model/trees.h"

#define AG_IMPORT_MOST_OUTPUTS 10000
#define AG_IMPORT_MOST_NODES (INT32_C(1) << 24) /* of one tree */

/* A node or leaf as its program numbers them. */
typedef struct AgImportItem
{
	bool is_leaf;
	int32_t left, right; /* items */
	uint32_t feature;
	uint32_t flags; /* AG_NODE_... */
	double threshold;
	double leaf;
	uint32_t set, n_set; /* words in AgImporting.sets */
} AgImportItem;

/* What a format's reader finds out. Everything is in the arena but for the growing arrays, which are ag_mem's. */
typedef struct AgImporting
{
	const AgContext *ctx;
	AgArena arena;
	const char *format;
	const char *family; /* the one of ours that is nearest */
	uint32_t n_features;
	const char **names;    /* [n_features], or NULL: "f0", "f1", ... */
	AgDictionary **levels; /* [n_features], NULL: a number; or NULL: all are numbers */
	AgLink link;
	uint32_t n_outputs;
	double *base; /* [n_outputs] */
	/* trees so far */
	AgTree *trees;
	AgTreeNode *nodes;
	double *leaves;
	uint64_t *sets;
	size_t n_trees, n_nodes, n_leaves, n_set_words;
	size_t max_trees, max_nodes, max_leaves, max_set_words;
	/* the tree at hand */
	AgImportItem *items;
	size_t n_items, max_items;
} AgImporting;

/* One a format. */
AgStatus ag_import_xgboost(AgImporting *importing, const char *text, size_t n_bytes);
AgStatus ag_import_lightgbm(AgImporting *importing, const char *text, size_t n_bytes);

/* The file is damaged, or isn't what it should be. */
AgStatus ag_import_malformed(const AgImporting *importing, const char *what);
/* The model is whole, and more than we can hold. */
AgStatus ag_import_refuse(const AgImporting *importing, const char *what);

/* Between two trees: lets the host look after its session, and ends where that was cancelled. */
AgStatus ag_import_pause(AgImporting *importing);

/* Room for n items of the tree at hand, all of them zero. */
AgStatus ag_import_begin_tree(AgImporting *importing, size_t n_items);
/* The tree at hand, its root item 0, with every item reached once and every feature one that there is; leaves times `scale`. */
AgStatus ag_import_end_tree(AgImporting *importing, uint32_t output, double scale);
/* Room for a set of n words, all of them zero; *set is where. */
AgStatus ag_import_new_set(AgImporting *importing, size_t n_words, uint32_t *set);

/* An array in the arena, zeroed; a count beyond `most` is a fault. */
AgStatus ag_import_array(AgImporting *importing, size_t n, size_t size, void *array);

#endif
