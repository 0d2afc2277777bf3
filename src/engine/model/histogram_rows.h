/*
 * histogram_rows.h - adding rows to a narrow histogram: the inner loops of histogram.c.
 *
 * A table that the nearest cache can't hold is filled a block of features at a time: some rows' bytes and gradients are copied to one
 * room, and then they are gone through once a block, whose cells stay near meanwhile.
 * Of rows of more than two cache lines it is a window's bytes, for all rows before the next window.
 */
#ifndef AG_HISTOGRAM_ROWS_H
#define AG_HISTOGRAM_ROWS_H

#include "engine/model/histogram.h"

#define AG_HIST_ROOM_BYTES 32768
#define AG_HIST_ROOM_ROWS 2048 /* the most that are in it */

/* Rows while their blocks are added. */
typedef struct AgHistRoom
{
	uint8_t *rows;   /* [AG_HIST_ROOM_BYTES]; NULL: all features of a row are added at once */
	int64_t *values; /* [AG_HIST_ROOM_ROWS] gradients as cells have them */
} AgHistRoom;

/* Whether tables of so many cells, for rows of that stride, are better filled in blocks on this machine. */
bool ag_hist_is_blocked(int64_t n_cells, int64_t row_stride);

/* Adds listed rows [begin, end), no more than cells have room for; is_new: cells hold nothing before. */
void ag_hist_add_rows(const AgBins *bins, const AgHistLayout *layout, const AgRowList *list,
					  int64_t begin, int64_t end, const AgHistRoom *room, bool is_new,
					  int64_t *cells);

#endif
