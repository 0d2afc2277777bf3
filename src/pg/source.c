/*
 * source.c - see source.h.
 *
 * A table's name never becomes part of a text that is parsed again: it is looked up, and the query is made of the
 * quoted names that the catalogue has. A query is parsed and analysed once, by SPI_prepare, and only looked at here.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/tupconvert.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_proc.h"
#include "executor/tuptable.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "optimizer/clauses.h"
#include "parser/parse_relation.h"
#include "utils/builtins.h"
#include "utils/formatting.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/plancache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

#include "pg/compat.h"
#include "pg/source.h"

#define MAX_LISTED 30 /* columns named in a hint */

/* ---- a name or a query? ---- */

/* Behind white space and comments. */
static const char *
skip_blank(const char *text)
{
	for (;;)
	{
		if (isspace((unsigned char) *text))
			text++;
		else if (text[0] == '-' && text[1] == '-')
			text += strcspn(text, "\n");
		else if (text[0] == '/' && text[1] == '*')
		{
			const char *end = strstr(text + 2, "*/");

			if (end == NULL)
				return text;
			text = end + 2;
		}
		else
			return text;
	}
}

/*
 * A keyword counts only when more than a name follows: the table called "values" stays reachable as 'values' and
 * 'values.t' is a schema's.
 */
static bool
is_query(const char *text)
{
	static const char *const keywords[] = {"select", "with", "values", "table"};

	text = skip_blank(text);
	if (*text == '(')
		return true;
	for (size_t i = 0; i < lengthof(keywords); i++)
	{
		size_t n = strlen(keywords[i]);
		const char *rest = text + n;

		if (pg_strncasecmp(text, keywords[i], n) != 0 || isalnum((unsigned char) *rest) ||
			*rest == '_' || *rest == '$' || IS_HIGHBIT_SET(*rest))
			continue;
		rest = skip_blank(rest);
		return *rest != '\0' && *rest != '.';
	}
	return false;
}

double
ag_source_guess_rows(const char *data)
{
	List *names;
	HeapTuple tuple;
	double rows;
	Oid relid;

	if (is_query(data) || !SplitIdentifierString(pstrdup(data), '.', &names) ||
		list_length(names) < 1 || list_length(names) > 2)
		return -1.0;
	relid = RangeVarGetRelid(list_length(names) == 1
								 ? makeRangeVar(NULL, linitial(names), -1)
								 : makeRangeVar(linitial(names), lsecond(names), -1),
							 NoLock, true);
	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	if (!HeapTupleIsValid(tuple))
		return -1.0;
	rows = ((Form_pg_class) GETSTRUCT(tuple))->reltuples;
	ReleaseSysCache(tuple);
	return rows > 0.0 ? rows : -1.0;
}

/* ---- columns ---- */

static void
read_columns(AgSource *source, TupleDesc desc)
{
	source->columns = palloc0(Max(desc->natts, 1) * sizeof(AgSourceColumn));
	source->n_columns = 0;
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);
		AgSourceColumn *column = &source->columns[source->n_columns];

		if (attribute->attisdropped)
			continue;
		column->name = pstrdup(NameStr(attribute->attname));
		column->typid = attribute->atttypid;
		column->typmod = attribute->atttypmod;
		column->position = i;
		source->n_columns++;
	}
}

static char *
list_columns(const AgSource *source)
{
	StringInfoData list;

	initStringInfo(&list);
	for (int i = 0; i < source->n_columns && i < MAX_LISTED; i++)
		appendStringInfo(&list, "%s\"%s\"", i > 0 ? ", " : "", source->columns[i].name);
	if (source->n_columns > MAX_LISTED)
		appendStringInfo(&list, ", and %d more", source->n_columns - MAX_LISTED);
	return list.data;
}

static char *
folded(const char *name)
{
	return str_tolower(name, strlen(name), DEFAULT_COLLATION_OID);
}

int
ag_source_find_column(const AgSource *source, const char *name, const char *role)
{
	char *wanted = folded(name);
	StringInfoData matches;
	int n_matches = 0;
	int found = -1;

	for (int i = 0; i < source->n_columns; i++)
		if (strcmp(source->columns[i].name, name) == 0)
			return i;
	initStringInfo(&matches);
	for (int i = 0; i < source->n_columns; i++)
	{
		if (strcmp(folded(source->columns[i].name), wanted) != 0)
			continue;
		found = i;
		appendStringInfo(&matches, "%s\"%s\"", n_matches++ > 0 ? ", " : "",
						 source->columns[i].name);
	}
	if (n_matches == 1)
		return found;
	if (n_matches > 1)
		ereport(ERROR, (errcode(ERRCODE_AMBIGUOUS_COLUMN),
						errmsg("%s \"%s\" matches several columns: %s", role, name, matches.data),
						errhint("Write the column's name exactly, upper and lower case too.")));
	ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
					source->table != NULL
						? errmsg("%s \"%s\" is no column of \"%s\"", role, name, source->table)
						: errmsg("%s \"%s\" is no column of the query", role, name),
					source->n_columns > 0 ? errhint("The columns are %s.", list_columns(source))
										  : errhint("There is no column at all.")));
	return -1;
}

/* ---- tables ---- */

static List *
name_list(const char *data)
{
	char *copy = pstrdup(data);
	List *parts;
	List *names = NIL;
	ListCell *cell;

	if (!SplitIdentifierString(copy, '.', &parts) || parts == NIL)
		ereport(ERROR, (errcode(ERRCODE_INVALID_NAME),
						errmsg("\"%s\" is neither a table's name nor a query", data),
						errhint("Quote names as SQL does: 'sales', 'public.sales' or '\"Sales "
								"2024\"'. A query begins with SELECT, WITH, VALUES or TABLE.")));
	foreach (cell, parts)
		names = lappend(names, makeString(pstrdup((char *) lfirst(cell))));
	return names;
}

static void
open_table(AgSource *source, const char *data)
{
	RangeVar *range = makeRangeVarFromNameList(name_list(data));
	Relation relation = relation_openrv(range, AccessShareLock);

	switch (relation->rd_rel->relkind)
	{
		case RELKIND_RELATION:
		case RELKIND_VIEW:
		case RELKIND_MATVIEW:
		case RELKIND_FOREIGN_TABLE:
		case RELKIND_PARTITIONED_TABLE:
			break;
		default:
			ereport(ERROR,
					(errcode(ERRCODE_WRONG_OBJECT_TYPE),
					 errmsg("\"%s\" is not a table, view, materialized view or foreign table",
							RelationGetRelationName(relation))));
	}
	source->relid = RelationGetRelid(relation);
	source->uses_temp = relation->rd_rel->relpersistence == RELPERSISTENCE_TEMP;
	source->table = pstrdup(RelationGetRelationName(relation));
	source->qualified = quote_qualified_identifier(
		get_namespace_name(RelationGetNamespace(relation)), RelationGetRelationName(relation));
	read_columns(source, RelationGetDescr(relation));
	relation_close(relation, NoLock); /* the lock stays: its columns must not change under us */
}

/* SPI leaves its own memory context the current one. */
static SPIPlanPtr
prepare(const char *sql)
{
	MemoryContext context = CurrentMemoryContext;
	SPIPlanPtr plan = SPI_prepare(sql, 0, NULL);

	MemoryContextSwitchTo(context);
	return plan;
}

static void
select_from_table(AgSource *source)
{
	StringInfoData sql;
	int n = 0;

	initStringInfo(&sql);
	appendStringInfoString(&sql, "SELECT ");
	for (int i = 0; i < source->n_columns; i++)
	{
		AgSourceColumn *column = &source->columns[i];

		column->position = -1;
		if (!column->wanted)
			continue;
		column->position = n;
		appendStringInfo(&sql, "%s%s", n++ > 0 ? ", " : "", quote_identifier(column->name));
	}
	appendStringInfo(&sql, " FROM %s", source->qualified);
	source->plan = prepare(sql.data);
	if (source->plan == NULL)
		elog(ERROR, "could not prepare the reading of \"%s\": %s", source->table,
			 SPI_result_code_string(SPI_result));
}

/* ---- queries ---- */

static void
reject_query(const char *why)
{
	ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("%s", why),
					errhint("Give the name of a table or view, or one SELECT, WITH ... SELECT, "
							"VALUES or TABLE.")));
}

static void
open_query(AgSource *source, const char *data)
{
	List *sources;
	CachedPlanSource *cached;
	Query *query;

	source->plan = prepare(data);
	if (source->plan == NULL)
		elog(ERROR, "could not prepare the query: %s", SPI_result_code_string(SPI_result));
	sources = SPI_plan_get_plan_sources(source->plan);
	if (list_length(sources) != 1)
		reject_query("the data must be exactly one query");
	cached = linitial(sources);
	if (cached->raw_parse_tree == NULL || !IsA(cached->raw_parse_tree->stmt, SelectStmt) ||
		((SelectStmt *) cached->raw_parse_tree->stmt)->intoClause != NULL ||
		list_length(cached->query_list) != 1)
		reject_query("the data must be a query that only reads");
	query = linitial(cached->query_list);
	if (query->commandType != CMD_SELECT || query->utilityStmt != NULL || query->hasModifyingCTE ||
		cached->resultDesc == NULL)
		reject_query("the data must be a query that only reads");
	source->uses_temp = isQueryUsingTempRelation(query);
	if (query->rowMarks != NIL)
		reject_query("the data can't be a query that locks rows (FOR UPDATE or FOR SHARE)");
	read_columns(source, cached->resultDesc);
}

/* Columns are known by name ever after, so a name can stand only once. */
static void
check_names(const AgSource *source)
{
	for (int i = 0; i < source->n_columns; i++)
	{
		const char *name = source->columns[i].name;

		if (name[0] == '\0')
			ereport(ERROR, (errcode(ERRCODE_INVALID_COLUMN_REFERENCE),
							errmsg("column %d of the query has no name", i + 1)));
		for (int j = 0; j < i; j++)
			if (strcmp(source->columns[j].name, name) == 0)
				ereport(ERROR,
						(errcode(ERRCODE_DUPLICATE_COLUMN),
						 errmsg("column name \"%s\" appears more than once in the query", name),
						 errhint("Give each column a name of its own with AS.")));
	}
}

AgSource *
ag_source_open(const char *data)
{
	AgSource *source = palloc0(sizeof(AgSource));

	if (is_query(data))
	{
		open_query(source, data);
		check_names(source);
	}
	else
		open_table(source, data);
	return source;
}

void
ag_source_select(AgSource *source)
{
	if (source->table != NULL)
		select_from_table(source);
}

void
ag_source_check(const AgSource *source, TupleDesc desc)
{
	for (int c = 0; c < source->n_columns; c++)
	{
		const AgSourceColumn *column = &source->columns[c];

		if (column->wanted && (column->position >= desc->natts ||
							   TupleDescAttr(desc, column->position)->atttypid != column->typid))
			ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
							errmsg("the columns of the data changed while it was being opened"),
							errhint("Try again.")));
	}
}

static void
set_locally(const char *setting, const char *value)
{
	(void) set_config_option(setting, value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
							 false);
}

void
ag_source_run(AgSource *source, DestReceiver *receiver)
{
	bool was_read_only = XactReadOnly;
	int level = NewGUCNestLevel();
	int result;

	/*
	 * SPI's read_only stops statements that write, this stops the functions that they call. By the variable, for 16 refuses
	 * the setting in a function; an error ends the (sub)transaction, which puts it back.
	 */
	XactReadOnly = true;
	/* The order of rows doesn't matter to a fit, but the same rows in the same order are easier to debug. */
	set_locally("synchronize_seqscans", "off");
	/* No parallel plan either: SPI_prepare without CURSOR_OPT_PARALLEL_OK never makes one. */
	result = ag_spi_execute_to(source->plan, NULL, receiver);
	if (result < 0)
		elog(ERROR, "could not read the data: %s", SPI_result_code_string(result));
	AtEOXact_GUC(true, level);
	XactReadOnly = was_read_only;
}

void
ag_source_scan_blocks(AgSource *source, Oid part, BlockNumber first, BlockNumber end,
					  DestReceiver *receiver)
{
	Relation whole = table_open(source->relid, AccessShareLock);
	Relation relation = table_open(part, AccessShareLock);
	TupleTableSlot *read = table_slot_create(relation, NULL), *row = read;
	/* partitions and children may have their columns in another order */
	TupleConversionMap *map =
		part == source->relid
			? NULL
			: convert_tuples_by_name(RelationGetDescr(relation), RelationGetDescr(whole));
	TableScanDesc scan = ag_blocks_begin(relation, GetActiveSnapshot(), first, end);

	if (map != NULL)
		row = MakeSingleTupleTableSlot(RelationGetDescr(whole), &TTSOpsVirtual);
	receiver->rStartup(receiver, CMD_SELECT, RelationGetDescr(whole));
	while (ag_blocks_next(scan, read))
	{
		CHECK_FOR_INTERRUPTS();
		if (map != NULL)
			execute_attr_map_slot(map->attrMap, read, row);
		receiver->receiveSlot(row, receiver);
	}
	receiver->rShutdown(receiver);
	table_endscan(scan);
	if (map != NULL)
	{
		ExecDropSingleTupleTableSlot(row);
		free_conversion_map(map);
	}
	ExecDropSingleTupleTableSlot(read);
	table_close(relation, NoLock);
	table_close(whole, NoLock);
}

bool
ag_source_is_parallel_safe(const AgSource *source)
{
	List *sources = SPI_plan_get_plan_sources(source->plan);
	CachedPlanSource *cached = linitial(sources);

	/* as it was rewritten: views and policies of rows are in it. A plan that is just being made again isn't known. */
	if (!cached->is_valid || list_length(cached->query_list) != 1)
		return false;
	return max_parallel_hazard(linitial(cached->query_list)) != PROPARALLEL_UNSAFE;
}
