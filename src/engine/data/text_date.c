/*
 * text_date.c - dates that columns of text hold.
 */
#include "engine/data/dates.h"
#include "engine/data/text.h"

typedef struct DateScan
{
	const char *at, *end;
} DateScan;

/* A whole number of least to most digits; -1: there is none. */
static int
read_digits(DateScan *scan, int least, int most)
{
	int value = 0, n = 0;

	while (scan->at < scan->end && n < most && *scan->at >= '0' && *scan->at <= '9')
	{
		value = value * 10 + (*scan->at++ - '0');
		n++;
	}
	return n < least ? -1 : value;
}

static bool
take(DateScan *scan, char c)
{
	if (scan->at == scan->end || *scan->at != c)
		return false;
	scan->at++;
	return true;
}

static void
skip_blanks(DateScan *scan)
{
	while (scan->at < scan->end && *scan->at == ' ')
		scan->at++;
}

/* The same mark twice. */
static bool
take_mark(DateScan *scan, char *mark)
{
	if (*mark != '\0')
		return take(scan, *mark);
	if (scan->at == scan->end || (*scan->at != '-' && *scan->at != '/' && *scan->at != '.'))
		return false;
	*mark = *scan->at++;
	return true;
}

static bool
is_leap(int year)
{
	return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static bool
read_date(DateScan *scan, AgTextDate format, int *year, int *month, int *day)
{
	static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	char mark = '\0';
	int first = read_digits(scan, format == AG_TEXT_YMD ? 4 : 1, format == AG_TEXT_YMD ? 4 : 2);
	int second = -1, third = -1;

	if (first >= 0 && take_mark(scan, &mark))
		second = read_digits(scan, 1, 2);
	if (second >= 0 && take_mark(scan, &mark))
	{
		const char *begin = scan->at;

		third = read_digits(scan, format == AG_TEXT_YMD ? 1 : 2, format == AG_TEXT_YMD ? 2 : 4);
		if (format != AG_TEXT_YMD && scan->at - begin == 2)
			third += third < 70 ? 2000 : 1900;
		else if (format != AG_TEXT_YMD && scan->at - begin == 3)
			return false;
	}
	if (third < 0)
		return false;
	*year = format == AG_TEXT_YMD ? first : third;
	*month = format == AG_TEXT_MDY ? first : second;
	*day = format == AG_TEXT_YMD ? third : format == AG_TEXT_MDY ? second : first;
	return *year >= 1 && *month >= 1 && *month <= 12 && *day >= 1 &&
		   *day <= lengths[*month - 1] + (*month == 2 && is_leap(*year));
}

/* " 14:05", "T14:05:07.25", " 2:05 PM"; a zone behind it is passed over. */
static bool
read_time(DateScan *scan, int64_t *time_us)
{
	int hour = read_digits(scan, 1, 2), minute = -1, second = 0, digit;
	int64_t micros = 0, unit = 100000;

	if (hour >= 0 && take(scan, ':'))
		minute = read_digits(scan, 2, 2);
	if (minute >= 0 && take(scan, ':'))
		second = read_digits(scan, 2, 2);
	if (minute < 0 || minute > 59 || second < 0 || second > 60)
		return false;
	if (take(scan, '.'))
		while ((digit = read_digits(scan, 1, 1)) >= 0)
		{
			micros += digit * unit;
			unit /= 10;
		}
	skip_blanks(scan);
	if (scan->end - scan->at >= 2 && (scan->at[1] == 'M' || scan->at[1] == 'm'))
	{
		char half = *scan->at;

		if (hour < 1 || hour > 12 || (half != 'a' && half != 'A' && half != 'p' && half != 'P'))
			return false;
		hour = hour % 12 + (half == 'p' || half == 'P' ? 12 : 0);
		scan->at += 2;
	}
	if (hour > 24)
		return false;
	*time_us = ((int64_t) hour * 3600 + minute * 60 + second) * 1000000 + micros;
	if (take(scan, 'Z') || take(scan, 'z'))
		return true;
	if (take(scan, '+') || take(scan, '-'))
	{
		if (read_digits(scan, 1, 2) < 0)
			return false;
		take(scan, ':');
		read_digits(scan, 0, 2);
	}
	return true;
}

bool
ag_text_date(const char *text, uint32_t n_bytes, AgTextDate format, int64_t *timestamp_us)
{
	DateScan scan = {text, text + n_bytes};
	int year, month, day;
	int64_t time_us = 0;

	skip_blanks(&scan);
	if (!read_date(&scan, format, &year, &month, &day))
		return false;
	if (scan.at < scan.end && (*scan.at == 'T' || *scan.at == ' '))
	{
		scan.at++;
		skip_blanks(&scan);
		if (scan.at < scan.end && !read_time(&scan, &time_us))
			return false;
		skip_blanks(&scan);
	}
	if (scan.at != scan.end)
		return false;
	*timestamp_us = ag_days_from_civil(year, month, day) * AG_DAY_US + time_us;
	return true;
}
