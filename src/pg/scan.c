/*
 * scan.c - see scan.h. Ordered scans, so that rows come the same way whatever the table's layout.
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "pg/catalog.h"
#include "pg/scan.h"

void
ag_scan_key_text(ScanKey key, AttrNumber column, const char *text)
{
	ScanKeyInit(key, column, BTEqualStrategyNumber, F_TEXTEQ, CStringGetTextDatum(text));
}

void
ag_scan_key_uuid(ScanKey key, AttrNumber column, const pg_uuid_t *id)
{
	ScanKeyInit(key, column, BTEqualStrategyNumber, F_UUID_EQ, UUIDPGetDatum(id));
}

void
ag_scan_key_int8(ScanKey key, AttrNumber column, int64 value)
{
	ScanKeyInit(key, column, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(value));
}

void
ag_scan_key_int4(ScanKey key, AttrNumber column, int value)
{
	ScanKeyInit(key, column, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(value));
}

/*
 * The columns that are read, as the install script creates them. The tables' owner may be an ordinary role, who can alter them: a
 * number read as a pointer would give him more than his tables.
 */
static const struct
{
	const char *table;
	int n;
	Oid types[24];
} layouts[] = {
	{"ag_predictor", 22, {UUIDOID,  TEXTOID,        INT4OID,   BOOLOID,   TEXTOID, TEXTOID,
						  TEXTOID,  TEXTOID,        TEXTOID,   JSONBOID,  INT8OID, INT8OID,
						  JSONBOID, TIMESTAMPTZOID, FLOAT8OID, FLOAT8OID, TEXTOID, FLOAT8OID,
						  JSONBOID, JSONBOID,       INT4OID,   FLOAT8OID}},
	{"ag_predictor_feature",
	 14,
	 {UUIDOID, INT4OID, TEXTOID, TEXTOID, TEXTOID, BOOLOID, TEXTOID, TEXTOID, INT8OID, INT8OID,
	  FLOAT8OID, FLOAT8OID, FLOAT8OID, JSONBOID}},
	{"ag_member",
	 19,
	 {UUIDOID, INT4OID, TEXTOID, TEXTOID, INT4OID, INT4OID, INT4OID, JSONBOID, FLOAT8OID, FLOAT8OID,
	  FLOAT8OID, TEXTOID, FLOAT8OID, INT4OID, BOOLOID, FLOAT8OID, JSONBOID, JSONBOID, JSONBOID}},
	{"ag_member_part", 5, {UUIDOID, INT4OID, INT4OID, BYTEAOID, INT8OID}},
	{"ag_predictor_grant", 3, {TEXTOID, TEXTOID, TEXTOID}},
	{"ag_job", 6, {INT8OID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID}},
};

static void
check_layout(const char *table, TupleDesc desc, int n_columns)
{
	size_t i = 0;

	while (i < lengthof(layouts) && strcmp(layouts[i].table, table) != 0)
		i++;
	if (i == lengthof(layouts) || n_columns > layouts[i].n)
		elog(ERROR, "table \"%s\" has no known layout", table);
	if (desc->natts < n_columns)
		ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
						errmsg("table \"%s\" has %d columns, but ag_pg needs %d", table,
							   desc->natts, n_columns)));
	for (int c = 0; c < n_columns; c++)
		if (TupleDescAttr(desc, c)->attisdropped ||
			TupleDescAttr(desc, c)->atttypid != layouts[i].types[c])
			ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
							errmsg("column %d of table \"%s\" was altered", c + 1, table),
							errhint("Drop the extension and create it again.")));
}

/*
 * The extension may have been dropped, and created again, since this transaction looked last (a fit looks before and after): the
 * try at the lock takes note of that, and the next look tells it or finds the new table.
 */
static Relation
open_table(const char *name)
{
	Relation table;

	do
		table = try_relation_open(ag_catalog_relation(name), AccessShareLock);
	while (table == NULL);
	return table;
}

void
ag_scan_begin(AgScan *scan, const char *table, const char *index, int n_columns, int n_keys,
			  ScanKey keys)
{
	int n_table_columns;

	scan->table = open_table(table);
	/* their owner can rename them, and make views of their names: those have no rows to scan */
	if (scan->table->rd_rel->relkind != RELKIND_RELATION)
		ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
						errmsg("\"%s\" of extension \"ag_pg\" is no table", table),
						errhint("Drop the extension and create it again.")));
	check_layout(table, RelationGetDescr(scan->table), n_columns);
	n_table_columns = RelationGetDescr(scan->table)->natts;
	scan->values = palloc(sizeof(Datum) * n_table_columns);
	scan->nulls = palloc(sizeof(bool) * n_table_columns);
	scan->index = index_open(ag_catalog_relation(index), AccessShareLock);
	if (scan->index->rd_rel->relam != BTREE_AM_OID ||
		scan->index->rd_index->indrelid != RelationGetRelid(scan->table))
		ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
						errmsg("index \"%s\" of table \"%s\" was replaced", index, table),
						errhint("Drop the extension and create it again.")));
	for (int i = 0; i < n_keys; i++)
		keys[i].sk_collation = scan->index->rd_indcollation[i];
	scan->scan =
		systable_beginscan_ordered(scan->table, scan->index, GetActiveSnapshot(), n_keys, keys);
}

bool
ag_scan_next(AgScan *scan)
{
	HeapTuple tuple = systable_getnext_ordered(scan->scan, ForwardScanDirection);

	scan->tuple = tuple;
	if (!HeapTupleIsValid(tuple))
		return false;
	heap_deform_tuple(tuple, RelationGetDescr(scan->table), scan->values, scan->nulls);
	return true;
}

bool
ag_scan_is_ours(const AgScan *scan)
{
	return TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(scan->tuple->t_data));
}

void
ag_scan_end(AgScan *scan)
{
	systable_endscan_ordered(scan->scan);
	index_close(scan->index, AccessShareLock);
	table_close(scan->table, AccessShareLock);
}

Datum
ag_scan_must(const AgScan *scan, int column)
{
	if (scan->nulls[column - 1])
		ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
						errmsg("the catalog of models has a NULL where a value must be")));
	return scan->values[column - 1];
}

char *
ag_scan_text(const AgScan *scan, int column)
{
	return TextDatumGetCString(ag_scan_must(scan, column));
}

char *
ag_scan_text_or_null(const AgScan *scan, int column)
{
	return scan->nulls[column - 1] ? NULL : TextDatumGetCString(scan->values[column - 1]);
}

double
ag_scan_number(const AgScan *scan, int column)
{
	return scan->nulls[column - 1] ? NAN : DatumGetFloat8(scan->values[column - 1]);
}

Jsonb *
ag_scan_must_jsonb(const AgScan *scan, int column)
{
	return DatumGetJsonbPCopy(ag_scan_must(scan, column));
}

Jsonb *
ag_scan_jsonb(const AgScan *scan, int column)
{
	return scan->nulls[column - 1] ? NULL : DatumGetJsonbPCopy(scan->values[column - 1]);
}
