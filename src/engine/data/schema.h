/*
 * schema.h - the columns of a table as the engine knows them.
 *
 * Types are those that reach the engine; the glue maps PostgreSQL's types onto
 * them. How each travels in a block and sits in a table:
 *
 *   BOOL       uint8   0 or 1
 *   INT32      int32   smallint, integer
 *   INT64      int64   bigint
 *   FLOAT32    float   real
 *   FLOAT64    double  double precision, numeric, money
 *   DATE       int32   days since 2000-01-01; INT32_MIN / MAX = -/+ infinity
 *   TIMESTAMP  int64   microseconds since 2000-01-01, local time in the model's zone for
 *                      timestamptz; INT64_MIN / MAX = -/+ infinity
 *   TIME       int64   microseconds since midnight
 *   INTERVAL   double  seconds (a month is 30 days, a year 365.25)
 *   TEXT       bytes   UTF-8 (or raw in an SQL_ASCII database), at most AG_TEXT_MAX after ag_text_clip
 */
#ifndef AG_SCHEMA_H
#define AG_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum AgType
{
	AG_TYPE_BOOL = 1,
	AG_TYPE_INT32 = 2,
	AG_TYPE_INT64 = 3,
	AG_TYPE_FLOAT32 = 4,
	AG_TYPE_FLOAT64 = 5,
	AG_TYPE_DATE = 6,
	AG_TYPE_TIMESTAMP = 7,
	AG_TYPE_TIME = 8,
	AG_TYPE_INTERVAL = 9,
	AG_TYPE_TEXT = 10
} AgType;

#define AG_MAX_COLUMNS 1664 /* PostgreSQL's limit on a target list */
#define AG_NAME_MAX 255     /* bytes of a column's name in UTF-8 (63 of the server's, converted) */
#define AG_TEXT_MAX 32768   /* bytes of one text value on the wire */

/* Bytes of a fixed-width value; 0 for TEXT and for anything that is no AgType. */
size_t ag_type_width(AgType type);
bool ag_type_valid(int type);
/* "boolean", "integer", ... for messages. */
const char *ag_type_name(AgType type);

typedef enum AgRole
{
	AG_ROLE_FEATURE = 0,
	AG_ROLE_LABEL = 1,
	AG_ROLE_WEIGHT = 2,
	AG_ROLE_GROUP = 3,
	AG_ROLE_TIME = 4,  /* a feature, and what puts rows in order of time */
	AG_ROLE_ORDER = 5, /* that only */
	AG_ROLE_TUNING = 6 /* boolean: the row came with the tuning data */
} AgRole;

static inline bool
ag_role_is_feature(AgRole role)
{
	return role == AG_ROLE_FEATURE || role == AG_ROLE_TIME;
}

typedef struct AgColumn
{
	const char *name;     /* UTF-8, NUL-terminated; case kept */
	const char *sql_type; /* the SQL type's name, for messages and ag_predictor_feature */
	AgType type;
	AgRole role;
} AgColumn;

typedef struct AgSchema
{
	int n_columns;
	AgColumn *columns;
} AgSchema;

/* One value of a row, as the encoders take it at prediction. text need not end with NUL. */
typedef struct AgValue
{
	bool is_null;
	union
	{
		bool b;
		int32_t i32; /* INT32, DATE */
		int64_t i64; /* INT64, TIMESTAMP, TIME */
		float f32;
		double f64; /* FLOAT64, INTERVAL */
		struct
		{
			const char *text;
			uint32_t n_bytes;
		} s;
	} v;
} AgValue;

/*
 * Text longer than AG_TEXT_MAX bytes is shortened to a prefix (cut at a UTF-8
 * character) and '#' and 32 hex digits of the whole text's 128-bit hash, so two
 * different long texts stay different. The same rule at fit and at prediction.
 * Writes into buffer (AG_TEXT_MAX bytes) only when it shortens; returns where
 * the result is and sets *n_out.
 */
const char *ag_text_clip(const char *text, size_t n, char *buffer, uint32_t *n_out);

#endif
