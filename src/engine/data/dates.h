/*
 * dates.h - the parts of a date (private to the data room).
 */
#ifndef AG_DATES_H
#define AG_DATES_H

#include <stdint.h>

#define AG_DAY_US INT64_C(86400000000)

typedef struct AgCivil
{
	int64_t year;    /* as PostgreSQL's extract(year): 1 BC is -1, there is no year 0 */
	int month;       /* 1..12 */
	int day;         /* 1..31 */
	int day_of_week; /* 0 = Sunday */
} AgCivil;

/* The Gregorian date that lies `days` after 2000-01-01, for any |days| up to 2^55. */
AgCivil ag_civil_from_days(int64_t days);

/* And back, of a date that exists, year 1 to 9999. */
int64_t ag_days_from_civil(int year, int month, int day);

/* Whole days since 2000-01-01 of a timestamp, rounded down; *time_us gets the microseconds since midnight. */
int64_t ag_days_of_timestamp(int64_t timestamp_us, int64_t *time_us);

#endif
