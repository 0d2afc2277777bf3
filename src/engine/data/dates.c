/*
 * dates.c - the parts of a date.
 *
 * The calendar repeats every 400 years, which are 146097 days. Years that begin on the 1st of March have their leap day
 * at the end, and then months follow the pattern 31 30 31 30 31 that repeats every five months (153 days). All in 64
 * bits, so that dates at both ends of PostgreSQL's range can't overflow.
 */
#include "engine/data/dates.h"

#define ERA_DAYS 146097
/* From 0000-03-01 to 2000-01-01. */
#define EPOCH_SHIFT 730425

static int64_t
floor_divide(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

AgCivil
ag_civil_from_days(int64_t days)
{
	int64_t shifted = days + EPOCH_SHIFT;
	int64_t era = floor_divide(shifted, ERA_DAYS);
	int in_era = (int) (shifted - era * ERA_DAYS);
	int year = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
	int in_year = in_era - (365 * year + year / 4 - year / 100);
	int month = (5 * in_year + 2) / 153; /* 0 = March */
	int weekday = (int) (days - floor_divide(days, 7) * 7);
	AgCivil civil;

	civil.day = in_year - (153 * month + 2) / 5 + 1;
	civil.month = month < 10 ? month + 3 : month - 9;
	civil.year = era * 400 + year + (civil.month <= 2);
	if (civil.year <= 0)
		civil.year--;
	civil.day_of_week = (weekday + 6) % 7; /* 2000-01-01 was a Saturday */
	return civil;
}

int64_t
ag_days_from_civil(int year, int month, int day)
{
	int shifted = month <= 2 ? year - 1 : year; /* of years that begin in March */
	int in_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

	return (int64_t) shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + in_year -
		   EPOCH_SHIFT;
}

int64_t
ag_days_of_timestamp(int64_t timestamp_us, int64_t *time_us)
{
	int64_t time = timestamp_us % AG_DAY_US;

	*time_us = time < 0 ? time + AG_DAY_US : time;
	return floor_divide(timestamp_us, AG_DAY_US);
}
