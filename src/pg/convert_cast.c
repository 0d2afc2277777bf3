/*
 * convert_cast.c - values whose SQL type isn't the trained one: over a neutral value to the type asked for.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "common/int.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/cash.h"
#include "utils/date.h"
#include "utils/datetime.h"
#include "utils/float.h"
#include "utils/json.h"
#include "utils/timestamp.h"

#include "pg/convert_private.h"
#include "pg/errors.h"

/* A value on the way from one type to another. */
typedef enum NeutralKind
{
	NEUTRAL_INTEGER,
	NEUTRAL_REAL,
	NEUTRAL_BOOL,
	NEUTRAL_DATE,
	NEUTRAL_TIMESTAMP,
	NEUTRAL_TIME,
	NEUTRAL_INTERVAL,
	NEUTRAL_TEXT /* server encoding, palloc'd */
} NeutralKind;

typedef struct Neutral
{
	NeutralKind kind;
	int64 integer; /* INTEGER, BOOL, DATE (days), TIMESTAMP and TIME (microseconds) */
	double real;   /* REAL, INTERVAL (seconds) */
	char *text;
} Neutral;

pg_noreturn static void bad_value(AgConverter *converter, const char *text);

static void
bad_value(AgConverter *converter, const char *text)
{
	int n = (int) strlen(text);
	int shown = pg_mbcliplen(text, n, 60);

	ereport(ERROR,
			(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
			 errmsg("value of column \"%s\" can't be read as %s: \"%.*s%s\"", converter->column,
					ag_type_name(converter->type), shown, text, shown < n ? "..." : "")));
}

/* ---- zones and spans ---- */

void
ag_zone_init(AgZone *zone, pg_tz *tz)
{
	zone->zone = tz;
	zone->from = 1;
	zone->until = 0;
	zone->offset = 0;
}

int64
ag_zone_local(AgZone *zone, TimestampTz value)
{
	pg_time_t t;
	int64 local;

	if (TIMESTAMP_NOT_FINITE(value))
		return value;
	t = timestamptz_to_time_t(value);
	if (t < zone->from || t >= zone->until)
	{
		long before, after;
		int before_dst, after_dst, n;
		pg_time_t boundary;

		n = pg_next_dst_boundary(&t, &before, &before_dst, &boundary, &after, &after_dst,
								 zone->zone);
		if (n < 0)
			before = 0;
		zone->offset = before;
		zone->from = t;
		zone->until = n > 0 ? boundary : t + 1;
		/* the boundary itself is the first second after the change */
		if (n > 0 && zone->until <= t)
		{
			zone->offset = after;
			zone->until = t + 1;
		}
	}
	if (pg_add_s64_overflow(value, (int64) zone->offset * USECS_PER_SEC, &local))
		return value < 0 ? PG_INT64_MIN + 1 : PG_INT64_MAX - 1;
	return local;
}

double
ag_interval_seconds(const Interval *interval)
{
	int32 years = interval->month / MONTHS_PER_YEAR;
	int32 months = interval->month % MONTHS_PER_YEAR;

	if (interval->time == PG_INT64_MAX && interval->day == PG_INT32_MAX &&
		interval->month == PG_INT32_MAX)
		return get_float8_infinity();
	if (interval->time == PG_INT64_MIN && interval->day == PG_INT32_MIN &&
		interval->month == PG_INT32_MIN)
		return -get_float8_infinity();
	return (double) interval->time / 1e6 + (double) interval->day * SECS_PER_DAY +
		   (double) months * DAYS_PER_MONTH * SECS_PER_DAY +
		   (double) years * DAYS_PER_YEAR * SECS_PER_DAY;
}

/* ---- the value's text ---- */

char *
ag_converter_output(AgConverter *converter, Datum value)
{
	switch (converter->base)
	{
		case BOOLOID:
			return pstrdup(DatumGetBool(value) ? "true" : "false");
		case DATEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
		case TIMEOID:
		case TIMETZOID:
		{
			char *buffer = palloc(MAXDATELEN + 1);

			return JsonEncodeDateTime(buffer, value, converter->base, NULL);
		}
		default:
			return OutputFunctionCall(&converter->output, value);
	}
}

/* ---- a Datum to a neutral value ---- */

static void
read_neutral(AgConverter *converter, Datum value, Neutral *out)
{
	switch (converter->base)
	{
		case BOOLOID:
			out->kind = NEUTRAL_BOOL;
			out->integer = DatumGetBool(value);
			break;
		case INT2OID:
			out->kind = NEUTRAL_INTEGER;
			out->integer = DatumGetInt16(value);
			break;
		case INT4OID:
			out->kind = NEUTRAL_INTEGER;
			out->integer = DatumGetInt32(value);
			break;
		case INT8OID:
			out->kind = NEUTRAL_INTEGER;
			out->integer = DatumGetInt64(value);
			break;
		case FLOAT4OID:
			out->kind = NEUTRAL_REAL;
			out->real = DatumGetFloat4(value);
			break;
		case FLOAT8OID:
			out->kind = NEUTRAL_REAL;
			out->real = DatumGetFloat8(value);
			break;
		case NUMERICOID:
			out->kind = NEUTRAL_REAL;
			out->real = ag_numeric_to_double(value);
			break;
		case CASHOID:
			out->kind = NEUTRAL_REAL;
			out->real = (double) DatumGetCash(value) / converter->money_unit;
			break;
		case DATEOID:
			out->kind = NEUTRAL_DATE;
			out->integer = DatumGetDateADT(value);
			break;
		case TIMESTAMPOID:
			out->kind = NEUTRAL_TIMESTAMP;
			out->integer = DatumGetTimestamp(value);
			break;
		case TIMESTAMPTZOID:
			out->kind = NEUTRAL_TIMESTAMP;
			out->integer = ag_zone_local(&converter->zone, DatumGetTimestampTz(value));
			break;
		case TIMEOID:
			out->kind = NEUTRAL_TIME;
			out->integer = DatumGetTimeADT(value);
			break;
		case TIMETZOID:
			out->kind = NEUTRAL_TIME;
			out->integer = DatumGetTimeTzADTP(value)->time;
			break;
		case INTERVALOID:
			out->kind = NEUTRAL_INTERVAL;
			out->real = ag_interval_seconds(DatumGetIntervalP(value));
			break;
		default:
			out->kind = NEUTRAL_TEXT;
			out->text = ag_converter_output(converter, value);
			break;
	}
}

/* ---- a text read as a type ---- */

static char *
trim(const char *text)
{
	const char *end = text + strlen(text);

	while (isspace((unsigned char) *text))
		text++;
	while (end > text && isspace((unsigned char) end[-1]))
		end--;
	return pnstrdup(text, end - text);
}

/* A number, whole text; an integer as long as it fits. False: no number. (The server keeps LC_NUMERIC at C.) */
static bool
parse_number(const char *text, Neutral *out)
{
	char *end;

	if (*text == '\0' || strpbrk(text, "xX(") != NULL) /* strtod's hexadecimals and nan(...) */
		return false;
	errno = 0;
	out->integer = strtoll(text, &end, 10);
	if (*end == '\0' && errno == 0)
	{
		out->kind = NEUTRAL_INTEGER;
		return true;
	}
	out->real = strtod(text, &end);
	out->kind = NEUTRAL_REAL;
	return *end == '\0';
}

/*
 * Does a text of a time end in a zone ("Z", "+02", "Europe/Paris")? What follows the last digits of the time of day
 * decides; "AM", "PM", "BC" and "AD" are no zones.
 */
static bool
names_zone(const char *text)
{
	const char *at = strchr(text, ':');

	if (at == NULL)
		return false;
	at += strspn(at, ":0123456789.");
	while (isspace((unsigned char) *at))
		at++;
	if (pg_strncasecmp(at, "am", 2) == 0 || pg_strncasecmp(at, "pm", 2) == 0)
	{
		at += 2;
		while (isspace((unsigned char) *at))
			at++;
	}
	return *at == '+' || *at == '-' ||
		   (isalpha((unsigned char) *at) && pg_strcasecmp(at, "bc") != 0 &&
			pg_strcasecmp(at, "ad") != 0);
}

/* The server's own input function for times, with the column's name in its place where it fails. */
static Datum
parse_time(AgConverter *converter, PGFunction input, const char *text)
{
	MemoryContext context = CurrentMemoryContext;
	volatile Datum result = (Datum) 0;

	PG_TRY();
	{
		result = DirectFunctionCall3(input, CStringGetDatum(text), ObjectIdGetDatum(InvalidOid),
									 Int32GetDatum(-1));
	}
	PG_CATCH();
	{
		if (ERRCODE_TO_CATEGORY(geterrcode()) != ERRCODE_DATA_EXCEPTION)
			PG_RE_THROW();
		MemoryContextSwitchTo(context);
		FlushErrorState();
		bad_value(converter, text);
	}
	PG_END_TRY();
	return result;
}

/* The text as the kind that the target type is closest to. */
static void
parse_neutral(AgConverter *converter, const char *text, Neutral *out)
{
	char *trimmed = trim(text);
	bool flag;

	switch (converter->type)
	{
		case AG_TYPE_BOOL:
			out->kind = NEUTRAL_BOOL;
			if (parse_bool(trimmed, &flag))
				out->integer = flag;
			else if (!parse_number(trimmed, out))
				bad_value(converter, text);
			break;
		case AG_TYPE_INT32:
		case AG_TYPE_INT64:
		case AG_TYPE_FLOAT32:
		case AG_TYPE_FLOAT64:
			if (!parse_number(trimmed, out))
			{
				if (pg_strcasecmp(trimmed, "true") != 0 && pg_strcasecmp(trimmed, "false") != 0)
					bad_value(converter, text);
				out->kind = NEUTRAL_BOOL;
				out->integer = pg_strcasecmp(trimmed, "true") == 0;
			}
			break;
		case AG_TYPE_DATE:
			out->kind = NEUTRAL_DATE;
			out->integer = DatumGetDateADT(parse_time(converter, date_in, trimmed));
			break;
		case AG_TYPE_TIMESTAMP:
			out->kind = NEUTRAL_TIMESTAMP;
			if (converter->has_zone && names_zone(trimmed))
				out->integer = ag_zone_local(
					&converter->zone,
					DatumGetTimestampTz(parse_time(converter, timestamptz_in, trimmed)));
			else
				out->integer = DatumGetTimestamp(parse_time(converter, timestamp_in, trimmed));
			break;
		case AG_TYPE_TIME:
			out->kind = NEUTRAL_TIME;
			out->integer = DatumGetTimeADT(parse_time(converter, time_in, trimmed));
			break;
		case AG_TYPE_INTERVAL:
			out->kind = NEUTRAL_INTERVAL;
			out->real =
				ag_interval_seconds(DatumGetIntervalP(parse_time(converter, interval_in, trimmed)));
			break;
		case AG_TYPE_TEXT:
			break; /* never comes here */
	}
}

/* ---- a neutral value to the target ---- */

static int64
saturate(double value, int64 low, int64 high)
{
	if (value <= (double) low)
		return low;
	if (value >= (double) high)
		return high;
	return (int64) rint(value);
}

/* False: the kinds don't go together. */
static bool
put_number(const Neutral *in, AgType type, AgValue *out)
{
	bool is_integer = in->kind == NEUTRAL_INTEGER || in->kind == NEUTRAL_BOOL;

	if (!is_integer && in->kind != NEUTRAL_REAL)
		return false;
	switch (type)
	{
		case AG_TYPE_BOOL:
			out->v.b = is_integer ? in->integer != 0 : in->real != 0.0;
			break;
		case AG_TYPE_INT32:
			out->v.i32 = is_integer ? (int32) Max(PG_INT32_MIN, Min(PG_INT32_MAX, in->integer))
									: (int32) saturate(in->real, PG_INT32_MIN, PG_INT32_MAX);
			break;
		case AG_TYPE_INT64:
			out->v.i64 = is_integer ? in->integer : saturate(in->real, PG_INT64_MIN, PG_INT64_MAX);
			break;
		case AG_TYPE_FLOAT32:
			out->v.f32 = is_integer ? (float) in->integer : (float) in->real;
			break;
		default:
			out->v.f64 = is_integer ? (double) in->integer : in->real;
			break;
	}
	/* no integer and no boolean says "not a number": it is missing */
	if (!is_integer && isnan(in->real) && type != AG_TYPE_FLOAT32 && type != AG_TYPE_FLOAT64)
		out->is_null = true;
	return true;
}

static bool
put_time(const Neutral *in, AgType type, AgValue *out)
{
	switch (type)
	{
		case AG_TYPE_DATE:
			if (in->kind == NEUTRAL_DATE)
				out->v.i32 = (int32) in->integer;
			else if (in->kind == NEUTRAL_TIMESTAMP)
			{
				int64 day = in->integer / USECS_PER_DAY;

				if (in->integer % USECS_PER_DAY < 0)
					day--;
				out->v.i32 = in->integer == PG_INT64_MIN   ? PG_INT32_MIN
							 : in->integer == PG_INT64_MAX ? PG_INT32_MAX
														   : (int32) day;
			}
			else
				return false;
			return true;
		case AG_TYPE_TIMESTAMP:
			if (in->kind == NEUTRAL_TIMESTAMP)
				out->v.i64 = in->integer;
			else if (in->kind == NEUTRAL_DATE)
			{
				if (in->integer == PG_INT32_MIN)
					out->v.i64 = PG_INT64_MIN;
				else if (in->integer == PG_INT32_MAX)
					out->v.i64 = PG_INT64_MAX;
				else if (pg_mul_s64_overflow(in->integer, USECS_PER_DAY, &out->v.i64))
					out->v.i64 = in->integer < 0 ? PG_INT64_MIN + 1 : PG_INT64_MAX - 1;
			}
			else
				return false;
			return true;
		case AG_TYPE_TIME:
			if (in->kind == NEUTRAL_TIME)
				out->v.i64 = in->integer;
			else if (in->kind == NEUTRAL_TIMESTAMP)
			{
				out->v.i64 = in->integer % USECS_PER_DAY;
				if (out->v.i64 < 0)
					out->v.i64 += USECS_PER_DAY;
			}
			else
				return false;
			return true;
		default: /* INTERVAL */
			if (in->kind == NEUTRAL_INTERVAL || in->kind == NEUTRAL_REAL)
				out->v.f64 = in->real;
			else if (in->kind == NEUTRAL_INTEGER)
				out->v.f64 = (double) in->integer;
			else if (in->kind == NEUTRAL_TIME)
				out->v.f64 = (double) in->integer / 1e6;
			else
				return false;
			return true;
	}
}

static bool
put_neutral(AgConverter *converter, const Neutral *in, AgValue *out)
{
	switch (converter->type)
	{
		case AG_TYPE_BOOL:
		case AG_TYPE_INT32:
		case AG_TYPE_INT64:
		case AG_TYPE_FLOAT32:
		case AG_TYPE_FLOAT64:
			return put_number(in, converter->type, out);
		default:
			return put_time(in, converter->type, out);
	}
}

void
ag_converter_cast(AgConverter *converter, Datum value, AgValue *out)
{
	Neutral neutral = {0};

	read_neutral(converter, value, &neutral);
	if (neutral.kind == NEUTRAL_TEXT)
		parse_neutral(converter, neutral.text, &neutral);
	if (!put_neutral(converter, &neutral, out))
		bad_value(converter, ag_converter_output(converter, value));
}

void
ag_converter_run_text(AgConverter *converter, const char *text, AgValue *out)
{
	Neutral neutral = {0};

	out->is_null = false;
	if (converter->type == AG_TYPE_TEXT)
	{
		ag_converter_put_text(converter, text, (int) strlen(text), out);
		return;
	}
	parse_neutral(converter, text, &neutral);
	if (!put_neutral(converter, &neutral, out))
		bad_value(converter, text);
}
