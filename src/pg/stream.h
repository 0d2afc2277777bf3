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

/*
 * Reads the source (selected before) to its end and sends it: BLOCK frames, then END_OF_ROWS. columns[c]: the source's
 * column that schema->columns[c] is. Call inside an SPI connection.
 */
extern void ag_stream_run(AgSource *source, const AgSchema *schema, const int *columns, pg_tz *zone,
						  bool raw_text, AgLine *line);

#endif
