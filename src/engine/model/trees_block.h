/*
 * trees_block.h - the inner loops of trees_rows.c, by kind of CPU; all give the same bytes. Private to trees*.c.
 */
#ifndef AG_TREES_BLOCK_H
#define AG_TREES_BLOCK_H

#include "engine/model/trees_rows.h"

/* Up to AG_ROWS_BLOCK rows at work. */
typedef struct AgBlock
{
	const AgTrees *trees;
	uint32_t n_rows;
	const double *features;
	const uint8_t (*columns)[AG_ROWS_BLOCK]; /* aligned to 64 bytes */
	const uint32_t (*codes)[AG_ROWS_BLOCK];
} AgBlock;

typedef struct AgBlockOps
{
	/* The bytes of one input. */
	void (*fill)(const AgRowsInput *input, uint32_t n_rows, uint32_t n_features,
				 const double *features, uint8_t (*columns)[AG_ROWS_BLOCK]);
	/* Those of one category; NULL: not looked at. */
	void (*code)(const AgRowsCode *code, uint32_t n_rows, uint32_t n_features,
				 const double *features, uint8_t (*columns)[AG_ROWS_BLOCK]);
	/* The rows that reach each node of tree t and then each leaf, as bits: reached[0] is given. */
	void (*reach)(const AgBlock *block, uint32_t t, uint64_t *reached);
	/* The leaf of each row, of at most 256; each row is in one mask; 0 for rows that are in none. */
	void (*number_leaves)(const uint64_t *masks, uint32_t n_leaves, uint8_t leaf_of[AG_ROWS_BLOCK]);
	/* The leaf of each row in a tree that isn't of the form AG_ROWS_MASKS. */
	void (*find_leaves)(const AgBlock *block, uint32_t t, uint8_t leaf_of[AG_ROWS_BLOCK]);
	/* The same, and adds it to scores[n_rows]. */
	void (*add_leaves)(const AgBlock *block, uint32_t t, double *scores);
} AgBlockOps;

const AgBlockOps *ag_block_ops(AgCpuLevel level);

#endif
