/*
 * source.h - where rows come from: a table's name or one read-only query, read as the calling role.
 *
 * Used inside an SPI connection; everything lives in the memory context current at ag_source_open.
 */
#ifndef AG_SOURCE_H
#define AG_SOURCE_H

#include "postgres.h"

#include "executor/spi.h"
#include "storage/block.h"
#include "tcop/dest.h"

typedef struct AgSourceColumn
{
	const char *name; /* server encoding */
	Oid typid;
	int32 typmod;
	bool wanted;  /* set by the caller before ag_source_select; false at first */
	int position; /* in the rows delivered, from 0; after ag_source_select, where wanted */
} AgSourceColumn;

typedef struct AgSource
{
	const char *table; /* the table's own name; NULL: a query */
	Oid relid;
	bool uses_temp; /* a temporary table, view, or a query over one */
	int n_columns;  /* live columns only */
	AgSourceColumn *columns;
	SPIPlanPtr plan;
	char *qualified; /* schema-qualified and quoted name of the table */
} AgSource;

/*
 * Finds out what data means. A text that begins with SELECT, WITH, VALUES, TABLE or a parenthesis is a query, all else a
 * name. Errors: no such table (42P01), no kind of table (42809), not exactly one SELECT or one that writes (0A000), a column
 * name twice (42701).
 */
extern AgSource *ag_source_open(const char *data);

/*
 * Rows of the table that data names, by its statistics; -1 where there are none, or data is a query or no name. Needs no SPI, and
 * isn't the place where a wrong name is told.
 */
extern double ag_source_guess_rows(const char *data);

/*
 * The index of the column that a user's name means: the exact match, else the only one that matches without
 * regard to case. 42703 (42702 for several) that lists the candidates. role: what the name stands for ("label").
 */
extern int ag_source_find_column(const AgSource *source, const char *name, const char *role);

/* Makes ready to read: afterwards rows hold at least the wanted columns, each at its position. */
extern void ag_source_select(AgSource *source);

/*
 * For a receiver's rStartup: ERROR unless the rows' descriptor has the wanted columns that the source was opened with. A plan may
 * be made again between the look at its columns and its run, and then mean other types.
 */
extern void ag_source_check(const AgSource *source, TupleDesc desc);

/*
 * Runs it to the end, every row to the receiver (whose rStartup gets the row's descriptor). The caller's snapshot, rights
 * and row-level security count, functions in the query can't write, no parallel plan is used.
 */
extern void ag_source_run(AgSource *source, DestReceiver *receiver);

/*
 * For a table whose rows lie in blocks that ag_has_tid_ranges says yes to, or whose partitions' or children's do: the rows in blocks
 * [first, end) of the table part (the source's own, or one of those), in the order in which they lie there, as rows of the source's table
 * with all of its columns. May be called again and again, without ag_source_select. No right is asked for, and no policy applied: that
 * is the caller's to do.
 */
extern void ag_source_scan_blocks(AgSource *source, Oid part, BlockNumber first, BlockNumber end,
								  DestReceiver *receiver);

/*
 * Could the source, once selected, be read while the session is in parallel mode? Not where it calls functions that may write or else
 * are PARALLEL UNSAFE.
 */
extern bool ag_source_is_parallel_safe(const AgSource *source);

#endif
