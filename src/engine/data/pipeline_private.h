/*
 * pipeline_private.h - how a value becomes a feature: the one definition that fitting, binning and
 * prediction share (private to the data room).
 */
#ifndef AG_PIPELINE_PRIVATE_H
#define AG_PIPELINE_PRIVATE_H

#include <math.h>

#include "engine/data/dates.h"
#include "engine/data/pipeline.h"

/* Levels beyond this many are kept as if never seen: no family tells them apart, and models stay small. */
#define AG_PIPELINE_MAX_LEVELS 100000

/*
 * value - origin, without overflow and exact wherever the difference has at most 53 bits. The
 * ends of a 64-bit range lie further apart than a signed integer can say.
 */
static inline double
ag_number_of_int64(int64_t value, int64_t origin)
{
	if (value >= origin)
		return (double) ((uint64_t) value - (uint64_t) origin);
	return -(double) ((uint64_t) origin - (uint64_t) value);
}

static inline double
ag_number_of_date(int32_t value, int64_t origin)
{
	if (value == INT32_MIN || value == INT32_MAX)
		return value < 0 ? -(double) INFINITY : (double) INFINITY;
	return ag_number_of_int64(value, origin);
}

static inline double
ag_number_of_timestamp(int64_t value, int64_t origin)
{
	if (value == INT64_MIN || value == INT64_MAX)
		return value < 0 ? -(double) INFINITY : (double) INFINITY;
	return ag_number_of_int64(value, origin);
}

/* A date or timestamp taken apart once for all its features. */
typedef struct AgDateParts
{
	bool is_finite;
	AgCivil civil;
	int64_t time_us;
} AgDateParts;

static inline AgDateParts
ag_parts_of_date(int32_t value)
{
	AgDateParts parts = {value != INT32_MIN && value != INT32_MAX, {0, 0, 0, 0}, 0};

	if (parts.is_finite)
		parts.civil = ag_civil_from_days(value);
	return parts;
}

static inline AgDateParts
ag_parts_of_timestamp(int64_t value)
{
	AgDateParts parts = {value != INT64_MIN && value != INT64_MAX, {0, 0, 0, 0}, 0};

	if (parts.is_finite)
		parts.civil = ag_civil_from_days(ag_days_of_timestamp(value, &parts.time_us));
	return parts;
}

/* A part as a feature's value; NaN for infinity. kind is one of the parts. */
static inline double
ag_part_value(const AgDateParts *parts, AgFeatureKind kind)
{
	if (!parts->is_finite)
		return (double) NAN;
	switch (kind)
	{
		case AG_FEATURE_YEAR:
			return (double) parts->civil.year;
		case AG_FEATURE_MONTH:
			return parts->civil.month;
		case AG_FEATURE_DAY:
			return parts->civil.day;
		case AG_FEATURE_DAY_OF_WEEK:
			return parts->civil.day_of_week;
		case AG_FEATURE_HOUR:
			return (double) (parts->time_us / INT64_C(3600000000));
		case AG_FEATURE_MINUTE:
			return (double) (parts->time_us / 60000000 % 60);
		case AG_FEATURE_SECOND:
			return (double) (parts->time_us / 1000000 % 60);
		default:
			return (double) NAN;
	}
}

/* True when features of that kind can be made of that type. */
bool ag_feature_fits(AgFeatureKind kind, AgType type);
/* "year", "day of week", ... for names. */
const char *ag_feature_kind_name(AgFeatureKind kind);

/* An empty pipeline; NULL when out of memory. */
AgPipeline *ag_pipeline_new(AgMem *mem);

#endif
