/*
 * convert.h - PostgreSQL's values to the engine's, one way for training and prediction.
 */
#ifndef AG_CONVERT_H
#define AG_CONVERT_H

#include "postgres.h"

#include "fmgr.h"
#include "pgtime.h"

#include "engine/data/schema.h"

/*
 * The engine type that a column of SQL type typid trains as. Domains count as their base
 * type; enum, uuid, citext, name, "char", varchar and char(n) (blanks trimmed) are TEXT; money and
 * numeric are FLOAT64; timestamptz is TIMESTAMP in the model's zone. False: no feature can be made of it
 * (json, arrays, bytea, geometry, ranges, ...).
 */
extern bool ag_convert_natural_type(Oid typid, AgType *type);

/* How one column's values become AgValues of a fixed type. Lives in the memory context current at init. */
typedef struct AgConverter AgConverter;

/*
 * A converter from values of SQL type typid to `type`. column is for messages. zone: the model's
 * zone (timestamptz on either side). raw_text: texts stay in the server's encoding (SQL_ASCII); else they are
 * converted to UTF-8. Any SQL type is accepted whose text form can be read as `type`: integers for floats, text '5' for
 * an integer, a timestamp for a date (its day), an integer for a category.
 */
extern AgConverter *ag_converter_create(Oid typid, AgType type, const char *column, pg_tz *zone,
										bool raw_text);

/*
 * One value. A text result points into the datum, the converter's buffer or the current memory context (short-lived: the
 * caller resets it per row or block). ERROR 22P02 with the column's name where the value can't be read as `type`; NaN is
 * kept; integers out of range of `type` saturate to it.
 */
extern void ag_converter_run(AgConverter *converter, Datum value, bool is_null, AgValue *out);

/* Is a value a float8 that becomes a FLOAT64 as it is? Then a hot loop may do so itself. */
extern bool ag_converter_is_float8(const AgConverter *converter);

/* Does it know nothing that could change in a session, as enums' labels and output functions may? */
extern bool ag_converter_is_lasting(const AgConverter *converter);

/* The same from a text form (JSON strings, numbers, booleans). */
extern void ag_converter_run_text(AgConverter *converter, const char *text, AgValue *out);

#endif
