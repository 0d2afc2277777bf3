/*
 * scan.h - index scans over the extension's tables, under the active snapshot and without a check of privileges.
 */
#ifndef AG_SCAN_H
#define AG_SCAN_H

#include "postgres.h"

#include "access/genam.h"
#include "access/skey.h"
#include "utils/jsonb.h"
#include "utils/relcache.h"
#include "utils/uuid.h"

typedef struct AgScan
{
	Relation table;
	Relation index;
	SysScanDesc scan;
	HeapTuple tuple;
	Datum *values; /* of the row at hand: all of the table's columns */
	bool *nulls;
} AgScan;

/* Equality keys. column is the table's, and the keys of a scan are the index's first columns in order. */
extern void ag_scan_key_text(ScanKey key, AttrNumber column, const char *text);
extern void ag_scan_key_uuid(ScanKey key, AttrNumber column, const pg_uuid_t *id);
extern void ag_scan_key_int4(ScanKey key, AttrNumber column, int value);
extern void ag_scan_key_int8(ScanKey key, AttrNumber column, int64 value);

/*
 * Rows come in the index's order. n_columns: columns the table must have at least (XX001). A row is good until the next
 * one is asked for.
 */
extern void ag_scan_begin(AgScan *scan, const char *table, const char *index, int n_columns,
						  int n_keys, ScanKey keys);
extern bool ag_scan_next(AgScan *scan);
extern void ag_scan_end(AgScan *scan);

/* The row at hand was written by this transaction. */
extern bool ag_scan_is_ours(const AgScan *scan);

/*
 * One column (from 1) of the row: palloc'd copies for texts and jsonb. A NULL is XX001 where a value must be, else NULL
 * or NaN: tables restored by hand may hold anything.
 */
extern Datum ag_scan_must(const AgScan *scan, int column);
extern char *ag_scan_text(const AgScan *scan, int column);
extern char *ag_scan_text_or_null(const AgScan *scan, int column);
extern double ag_scan_number(const AgScan *scan, int column);
extern Jsonb *ag_scan_must_jsonb(const AgScan *scan, int column);
extern Jsonb *ag_scan_jsonb(const AgScan *scan, int column);

#endif
