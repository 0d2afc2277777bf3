/*
 * trees_rows.h - scores of many rows: AG_ROWS_BLOCK of them at a time go through a tree together. Private to trees*.c.
 *
 * The rows' numbers become bytes first: how many of the feature's cuts lie below x. Then a node is one comparison of 64
 * bytes with its cut's index, which gives a mask of the rows that go left; with the mask of the rows that reach the
 * node it gives its children's; those of the leaves say which row gets which value. The idea of masks
 * instead of walks is QuickScorer's (Lucchese et al. 2015); the trees' order stays, so the sums are the same bytes.
 *
 * A shallow tree is filled up to a full one: then all its comparisons are made, and each level chooses its mask of 2^level by those of
 * the levels above: one mask a level is the number of each row's leaf. Of a tree that asks the same on all nodes of a level, a
 * symmetric one, there is one comparison a level.
 *
 * A category of few levels becomes two bytes: which byte of a node's set of 256 bits its code's bit is in, and that bit. Where CPUs look bytes
 * up in registers, a node's set is asked for all rows at once.
 */
#ifndef AG_TREES_ROWS_H
#define AG_TREES_ROWS_H

#include "engine/model/lanes.h"
#include "engine/model/trees.h"

#define AG_ROWS_BLOCK 64
#define AG_ROWS_MAX_COLUMNS 512 /* byte columns, on the stack: 32 KiB */
#define AG_ROWS_MAX_NODES 255   /* larger trees are walked */
#define AG_ROWS_MAX_CUTS 254
#define AG_ROWS_CUTS_BEHIND 7  /* eight are read at a time */
#define AG_ROWS_MAX_COMBOS 128 /* their codes are on the stack: 32 KiB */

typedef enum AgRowsAsk
{
	AG_ROWS_NUMBER,
	AG_ROWS_SET,     /* its category by a set of bytes: the tree's next one */
	AG_ROWS_CATEGORY /* row by row */
} AgRowsAsk;

#define AG_ROWS_SET_BYTES 32
#define AG_ROWS_SET_WORDS 3 /* of AgTrees.sets: codes below 192 */
#define AG_ROWS_UNSEEN 254  /* the code of what is none */
#define AG_ROWS_MISSING 255

typedef struct AgRowsNode
{
	uint16_t column;      /* of a set: that of which byte; the bit's is the next one */
	uint8_t cut;          /* bytes up to it go left */
	uint8_t ask;          /* AgRowsAsk */
	uint16_t left, right; /* node, or n_nodes + leaf */
} AgRowsNode;

#define AG_ROWS_FULL_DEPTH 6
#define AG_ROWS_LEAST_LEAVES 16 /* that a full tree has room for: two registers */

typedef enum AgRowsForm
{
	AG_ROWS_MASKS, /* by nodes */
	AG_ROWS_FULL, /* cuts level by level, of place p the right child at 2 p of the next level, the left one at 2 p + 1 */
	AG_ROWS_SYMMETRIC /* one cut a level */
} AgRowsForm;

/* As AgRowsNode. */
typedef struct AgRowsCut
{
	uint16_t column;
	uint8_t cut;
	uint8_t ask; /* of full trees: AG_ROWS_NUMBER */
} AgRowsCut;

typedef struct AgRowsTree
{
	uint32_t form; /* AgRowsForm */
	uint32_t depth;
	uint64_t first_set; /* in the order of nodes, or of levels */
	uint64_t first_cut;
	uint64_t
		first_leaf; /* of 2^depth, at least AG_ROWS_LEAST_LEAVES, by the number that the levels' "left" make, the root's first */
} AgRowsTree;

/* A number to turn into a byte. Where the missing go left their byte is 0, else 255; a feature may need both. */
typedef struct AgRowsInput
{
	uint32_t feature;
	uint32_t
		n_cuts; /* padded with infinity to 2^k - 1, and AG_ROWS_CUTS_BEHIND more that don't count */
	const double *cuts; /* ascending */
	int32_t column[2];  /* of the missing right, left; -1: no node needs it */
} AgRowsInput;

/* A category to turn into its two bytes. */
typedef struct AgRowsCode
{
	uint32_t feature;
	uint32_t column;
} AgRowsCode;

typedef struct AgTreeRows
{
	uint32_t n_inputs;
	const AgRowsInput *inputs;
	uint32_t n_codes;
	const AgRowsCode *codes;
	uint64_t n_sets;
	const uint8_t *sets;     /* [n_sets][AG_ROWS_SET_BYTES] */
	const AgRowsNode *nodes; /* as AgTrees.nodes; undefined for trees of over AG_ROWS_MAX_NODES */
	const AgRowsTree *trees;
	uint64_t n_cuts, n_leaves;
	const AgRowsCut *cuts;
	const double *leaves;
	bool has_categories;
	AgCpuLevel level; /* what scores them; the bytes are the same */
} AgTreeRows;

#endif
