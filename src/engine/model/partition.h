/*
 * partition.h - moving a node's rows to its children.
 *
 * Reads the split feature's byte column, and moves ids from one array to the other. The order of rows within a child
 * is not defined (threads reserve room chunk by chunk); nothing that is computed from a list depends on it.
 */
#ifndef AG_PARTITION_H
#define AG_PARTITION_H

#include "engine/base/context.h"
#include "engine/data/bins.h"
#include "engine/model/lanes.h"
#include "engine/model/quantise.h"
#include "engine/model/split.h"

/* A chunk of rows; its two halves wait in a thread's scratch until their place is known. */
#define AG_PARTITION_CHUNK 2048

/* One thread's room, slack for whole vectors included. */
typedef struct AgPartitionScratch
{
	uint32_t left[AG_PARTITION_CHUNK + 16];
	uint32_t right[AG_PARTITION_CHUNK + 16];
} AgPartitionScratch;

/*
 * Moves from[n_rows] to to[n_rows]: left rows in front, right rows behind; *n_left of them are left. from is used up.
 * scratch[] has one entry for each thread of the pool. AG_ERR_CANCELLED leaves both undefined.
 */
AgStatus ag_partition(const AgContext *ctx, AgCpuLevel level, const AgBins *bins,
					  const AgSplit *split, uint32_t *from, int64_t n_rows, uint32_t *to,
					  AgPartitionScratch *scratch, int64_t *n_left);

#endif
