/*
 * stream.h - the rows of a source as blocks on a line.
 */
#ifndef AG_STREAM_H
#define AG_STREAM_H

#include "postgres.h"

#include "pgtime.h"

#include "engine/data/schema.h"
#include "pg/line.h"
#include "pg/source.h"

/* columns[c] of a column that no source has, the boolean that tells sources apart: the value that all rows get. */
#define AG_STREAM_FALSE (-1)
#define AG_STREAM_TRUE (-2)

/*
 * Reads the source (selected before) to its end and sends it in BLOCK frames; gives how many rows that were. columns[c]: the
 * source's column that schema->columns[c] is. Call inside an SPI connection.
 */
extern int64 ag_stream_run(AgSource *source, const AgSchema *schema, const int *columns,
						   pg_tz *zone, bool raw_text, AgLine *line);

/* END_OF_ROWS, after the last source; n_rows of all. */
extern void ag_stream_end(AgLine *line, int64 n_rows);

#endif
