/*
 * row.h - a row (record, JSON object, slot) to the values that a model reads, matched by column name.
 */
#ifndef AG_ROW_H
#define AG_ROW_H

#include "postgres.h"

#include "access/htup.h"
#include "access/tupdesc.h"
#include "executor/tuptable.h"
#include "utils/jsonb.h"

#include "engine/data/schema.h"
#include "pg/cache.h"

/* Where each of a model's inputs is found in rows of one kind. */
typedef struct AgRowMap AgRowMap;

/* Lives in a child of parent. The model must stay as long. name is the model's, for messages. */
extern AgRowMap *ag_row_map_create(const AgOpenModel *model, const char *name,
								   MemoryContext parent);

/*
 * The model's inputs of one row. Columns that the model doesn't use are not looked at; a used one that is missing is
 * ERROR 42703, which names all of them. The values are good until the next call or until the current (short-lived)
 * memory context is reset.
 */
extern const AgValue *ag_row_from_record(AgRowMap *map, HeapTupleHeader record);
extern const AgValue *ag_row_from_jsonb(AgRowMap *map, Jsonb *features);
extern const AgValue *ag_row_from_text(AgRowMap *map, const text *features);

/* The same for rows of a query: bind to their descriptor first. */
extern void ag_row_map_bind(AgRowMap *map, TupleDesc desc);
extern const AgValue *ag_row_from_slot(AgRowMap *map, TupleTableSlot *slot);

/* The same for a function's arguments, one a column of the descriptor. */
extern bool ag_row_map_is_bound(const AgRowMap *map);
/* May what it is bound to be used by later statements too? */
extern bool ag_row_map_is_lasting(const AgRowMap *map);
extern const AgValue *ag_row_from_arguments(AgRowMap *map, const NullableDatum *arguments);

#endif
