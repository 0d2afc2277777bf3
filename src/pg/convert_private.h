/*
 * convert_private.h - what convert.c and convert_cast.c share.
 */
#ifndef AG_CONVERT_PRIVATE_H
#define AG_CONVERT_PRIVATE_H

#include "postgres.h"

#include "datatype/timestamp.h"
#include "utils/hsearch.h"

#include "pg/convert.h"

typedef void (*AgReadFn)(AgConverter *converter, Datum value, AgValue *out);

typedef struct AgEnumLabel
{
	Oid label; /* key */
	const char *text;
	uint32 n_bytes;
} AgEnumLabel;

/*
 * A time zone with the span of the last offset asked for, so that a column of timestamps costs a zone lookup a
 * span and not a value.
 */
typedef struct AgZone
{
	pg_tz *zone;
	pg_time_t from, until; /* seconds since 1970; empty when from > until */
	long offset;           /* seconds east of Greenwich in [from, until) */
} AgZone;

struct AgConverter
{
	MemoryContext context; /* the converter's own */
	Oid base;
	AgType type;
	const char *column;
	bool to_utf8;
	bool has_zone;
	AgZone zone; /* the model's, else the session's */
	double money_unit;
	FmgrInfo output;
	AgReadFn read;
	HTAB *enums;
	char *clip;     /* AG_TEXT_MAX bytes, made when a long text comes */
	char small[40]; /* a uuid */
};

extern void ag_converter_put_text(AgConverter *converter, const char *text, int n, AgValue *out);
/* The value's text, palloc'd: times in ISO form whatever DateStyle says, booleans as JSON has them. */
extern char *ag_converter_output(AgConverter *converter, Datum value);
/* The general road: AgReadFn. */
extern void ag_converter_cast(AgConverter *converter, Datum value, AgValue *out);

extern double ag_numeric_to_double(Datum value);
extern double ag_interval_seconds(const Interval *interval);
extern void ag_zone_init(AgZone *zone, pg_tz *tz);
/* Local microseconds since 2000-01-01 in the zone; infinities stay, the ends of time saturate. */
extern int64 ag_zone_local(AgZone *zone, TimestampTz value);

#endif
