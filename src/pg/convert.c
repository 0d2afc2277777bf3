/*
 * convert.c - see convert.h.
 *
 * A value takes one of two roads. Where the SQL type's own form is the engine's (almost every column at fit, and at
 * prediction from a table like the one trained on) a reader does it in one step. Every other pair goes over a neutral value
 * (integer, real, boolean, date, ...) in convert_cast.c, so that n sources and m targets take n + m functions.
 */
#include "postgres.h"

#include "access/transam.h"
#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "parser/parse_coerce.h"
#include "utils/builtins.h"
#include "utils/cash.h"
#include "utils/date.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/pg_locale.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "pg/compat.h"
#include "pg/convert_private.h"
#include "pg/errors.h"

bool
ag_convert_natural_type(Oid typid, AgType *type)
{
	Oid base = getBaseType(typid);

	switch (base)
	{
		case BOOLOID:
			*type = AG_TYPE_BOOL;
			return true;
		case INT2OID:
		case INT4OID:
			*type = AG_TYPE_INT32;
			return true;
		case INT8OID:
			*type = AG_TYPE_INT64;
			return true;
		case FLOAT4OID:
			*type = AG_TYPE_FLOAT32;
			return true;
		case FLOAT8OID:
		case NUMERICOID:
		case CASHOID:
			*type = AG_TYPE_FLOAT64;
			return true;
		case DATEOID:
			*type = AG_TYPE_DATE;
			return true;
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			*type = AG_TYPE_TIMESTAMP;
			return true;
		case TIMEOID:
		case TIMETZOID:
			*type = AG_TYPE_TIME;
			return true;
		case INTERVALOID:
			*type = AG_TYPE_INTERVAL;
			return true;
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
		case NAMEOID:
		case CHAROID:
		case UUIDOID:
		case UNKNOWNOID:
			*type = AG_TYPE_TEXT;
			return true;
		default:
			break;
	}
	/* enums, and types of extensions that are text under another name (citext) */
	if (get_typtype(base) == TYPTYPE_ENUM ||
		(get_typtype(base) == TYPTYPE_BASE && IsBinaryCoercible(base, TEXTOID)))
	{
		*type = AG_TYPE_TEXT;
		return true;
	}
	return false;
}

/* ---- texts ---- */

void
ag_converter_put_text(AgConverter *converter, const char *text, int n, AgValue *out)
{
	if (converter->to_utf8)
	{
		const char *utf8 = pg_server_to_any(text, n, PG_UTF8);

		if (utf8 != text)
		{
			text = utf8;
			n = (int) strlen(utf8);
		}
	}
	if (n > AG_TEXT_MAX)
	{
		if (converter->clip == NULL)
			converter->clip = MemoryContextAlloc(converter->context, AG_TEXT_MAX);
		out->v.s.text = ag_text_clip(text, (size_t) n, converter->clip, &out->v.s.n_bytes);
		return;
	}
	out->v.s.text = text;
	out->v.s.n_bytes = (uint32_t) n;
}

static void
read_text(AgConverter *converter, Datum value, AgValue *out)
{
	struct varlena *text = PG_DETOAST_DATUM_PACKED(value);

	ag_converter_put_text(converter, VARDATA_ANY(text), VARSIZE_ANY_EXHDR(text), out);
}

static void
read_bpchar(AgConverter *converter, Datum value, AgValue *out)
{
	struct varlena *text = PG_DETOAST_DATUM_PACKED(value);
	const char *bytes = VARDATA_ANY(text);
	int n = VARSIZE_ANY_EXHDR(text);

	while (n > 0 && bytes[n - 1] == ' ')
		n--;
	ag_converter_put_text(converter, bytes, n, out);
}

static void
read_name(AgConverter *converter, Datum value, AgValue *out)
{
	const char *name = NameStr(*DatumGetName(value));

	ag_converter_put_text(converter, name, (int) strnlen(name, NAMEDATALEN), out);
}

static void
read_cstring(AgConverter *converter, Datum value, AgValue *out)
{
	const char *text = DatumGetCString(value);

	ag_converter_put_text(converter, text, (int) strlen(text), out);
}

static void
read_uuid(AgConverter *converter, Datum value, AgValue *out)
{
	static const char digits[] = "0123456789abcdef";
	const pg_uuid_t *uuid = DatumGetUUIDP(value);
	char *at = converter->small;

	for (int i = 0; i < UUID_LEN; i++)
	{
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*at++ = '-';
		*at++ = digits[uuid->data[i] >> 4];
		*at++ = digits[uuid->data[i] & 15];
	}
	out->v.s.text = converter->small;
	out->v.s.n_bytes = (uint32_t) (at - converter->small);
}

/* Enum labels: the catalogue is asked once a label, then the last one seen and a small hash table answer. */
static void
read_enum(AgConverter *converter, Datum value, AgValue *out)
{
	Oid label = DatumGetObjectId(value);
	AgEnumLabel *entry;
	bool found;

	if (converter->enums == NULL)
	{
		HASHCTL ctl = {0};

		ctl.keysize = sizeof(Oid);
		ctl.entrysize = sizeof(AgEnumLabel);
		ctl.hcxt = converter->context;
		converter->enums =
			hash_create("ag_pg enum labels", 32, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	entry = hash_search(converter->enums, &label, HASH_FIND, NULL);
	if (entry == NULL)
	{
		char *text = OutputFunctionCall(&converter->output, value);
		AgValue tmp = {0};
		char *copy;

		ag_converter_put_text(converter, text, (int) strlen(text), &tmp);
		copy = MemoryContextAlloc(converter->context, tmp.v.s.n_bytes + 1);
		memcpy(copy, tmp.v.s.text, tmp.v.s.n_bytes);
		copy[tmp.v.s.n_bytes] = '\0';
		entry = hash_search(converter->enums, &label, HASH_ENTER, &found);
		entry->text = copy;
		entry->n_bytes = tmp.v.s.n_bytes;
	}
	out->v.s.text = entry->text;
	out->v.s.n_bytes = entry->n_bytes;
}

/* The text of any value: times in ISO form whatever DateStyle says, booleans as JSON has them. */
static void
read_any_as_text(AgConverter *converter, Datum value, AgValue *out)
{
	char *text = ag_converter_output(converter, value);

	ag_converter_put_text(converter, text, (int) strlen(text), out);
}

/* ---- numbers ---- */

static void
read_bool(AgConverter *converter, Datum value, AgValue *out)
{
	out->v.b = DatumGetBool(value);
}

static void
read_int2(AgConverter *converter, Datum value, AgValue *out)
{
	out->v.i32 = DatumGetInt16(value);
}

static void
read_int4(AgConverter *converter, Datum value, AgValue *out)
{
	out->v.i32 = DatumGetInt32(value);
}

static void
read_int8(AgConverter *converter, Datum value, AgValue *out)
{
	out->v.i64 = DatumGetInt64(value);
}

static void
read_float4(AgConverter *converter, Datum value, AgValue *out)
{
	out->v.f32 = DatumGetFloat4(value);
}

static void
read_float8(AgConverter *converter, Datum value, AgValue *out)
{
	out->v.f64 = DatumGetFloat8(value);
}

static void
read_numeric(AgConverter *converter, Datum value, AgValue *out)
{
	out->v.f64 = ag_numeric_to_double(value);
}

static void
read_money(AgConverter *converter, Datum value, AgValue *out)
{
	out->v.f64 = (double) DatumGetCash(value) / converter->money_unit;
}

/* ---- times ---- */

static void
read_date(AgConverter *converter, Datum value, AgValue *out)
{
	out->v.i32 = DatumGetDateADT(value);
}

static void
read_timestamp(AgConverter *converter, Datum value, AgValue *out)
{
	out->v.i64 = DatumGetTimestamp(value);
}

static void
read_timestamptz(AgConverter *converter, Datum value, AgValue *out)
{
	out->v.i64 = ag_zone_local(&converter->zone, DatumGetTimestampTz(value));
}

static void
read_time(AgConverter *converter, Datum value, AgValue *out)
{
	out->v.i64 = DatumGetTimeADT(value);
}

static void
read_timetz(AgConverter *converter, Datum value, AgValue *out)
{
	out->v.i64 = DatumGetTimeTzADTP(value)->time;
}

static void
read_interval(AgConverter *converter, Datum value, AgValue *out)
{
	out->v.f64 = ag_interval_seconds(DatumGetIntervalP(value));
}

/* ---- which reader ---- */

static AgReadFn
text_reader(AgConverter *converter)
{
	switch (converter->base)
	{
		case TEXTOID:
		case VARCHAROID:
			return read_text;
		case BPCHAROID:
			return read_bpchar;
		case NAMEOID:
			return read_name;
		case UNKNOWNOID:
		case CSTRINGOID:
			return read_cstring;
		case UUIDOID:
			return read_uuid;
		default:
			break;
	}
	if (get_typtype(converter->base) == TYPTYPE_ENUM)
		return read_enum;
	if (get_typtype(converter->base) == TYPTYPE_BASE && IsBinaryCoercible(converter->base, TEXTOID))
		return read_text;
	return read_any_as_text;
}

/* The one-step reader of a pair, or NULL. */
static AgReadFn
direct_reader(AgConverter *converter)
{
	static const struct
	{
		Oid base;
		AgType type;
		AgReadFn read;
	} readers[] = {
		{BOOLOID, AG_TYPE_BOOL, read_bool},
		{INT2OID, AG_TYPE_INT32, read_int2},
		{INT4OID, AG_TYPE_INT32, read_int4},
		{INT8OID, AG_TYPE_INT64, read_int8},
		{FLOAT4OID, AG_TYPE_FLOAT32, read_float4},
		{FLOAT8OID, AG_TYPE_FLOAT64, read_float8},
		{NUMERICOID, AG_TYPE_FLOAT64, read_numeric},
		{CASHOID, AG_TYPE_FLOAT64, read_money},
		{DATEOID, AG_TYPE_DATE, read_date},
		{TIMESTAMPOID, AG_TYPE_TIMESTAMP, read_timestamp},
		{TIMESTAMPTZOID, AG_TYPE_TIMESTAMP, read_timestamptz},
		{TIMEOID, AG_TYPE_TIME, read_time},
		{TIMETZOID, AG_TYPE_TIME, read_timetz},
		{INTERVALOID, AG_TYPE_INTERVAL, read_interval},
	};

	if (converter->type == AG_TYPE_TEXT)
		return text_reader(converter);
	for (size_t i = 0; i < lengthof(readers); i++)
		if (readers[i].base == converter->base && readers[i].type == converter->type)
			return readers[i].read;
	return NULL;
}

AgConverter *
ag_converter_create(Oid typid, AgType type, const char *column, pg_tz *zone, bool raw_text)
{
	AgConverter *converter = palloc0(sizeof(AgConverter));
	Oid output;
	bool is_varlena;

	converter->context = CurrentMemoryContext;
	converter->base = getBaseType(typid);
	converter->type = type;
	converter->column = pstrdup(column);
	converter->to_utf8 = !raw_text && GetDatabaseEncoding() != PG_UTF8;
	converter->has_zone = zone != NULL;
	ag_zone_init(&converter->zone, zone != NULL ? zone : session_timezone);
	getTypeOutputInfo(converter->base, &output, &is_varlena);
	fmgr_info(output, &converter->output);
	if (converter->base == CASHOID)
	{
		struct lconv *locale = PGLC_localeconv();
		int digits = locale->frac_digits;

		if (digits < 0 || digits > 10)
			digits = 2; /* as the server does where the locale is silent */
		converter->money_unit = 1.0;
		while (digits-- > 0)
			converter->money_unit *= 10.0;
	}
	converter->read = direct_reader(converter);
	if (converter->read == NULL)
		converter->read = ag_converter_cast;
	return converter;
}

void
ag_converter_run(AgConverter *converter, Datum value, bool is_null, AgValue *out)
{
	out->is_null = is_null;
	if (!is_null)
		converter->read(converter, value, out);
}

bool
ag_converter_is_float8(const AgConverter *converter)
{
	return converter->read == read_float8;
}

bool
ag_converter_is_lasting(const AgConverter *converter)
{
	AgReadFn read = converter->read;

	return read != read_enum && read != read_any_as_text && read != read_money &&
		   read != ag_converter_cast && converter->base < FirstNormalObjectId;
}
