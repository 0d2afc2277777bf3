/*
 * unit.h - the whole of the unit tests' harness.
 *
 * A test is a program: checks count, a failed one says where, ag_unit_done prints "N passed, N failed" and gives main's answer.
 * Checks go on after a failure; AG_REQUIRE ends the program where going on makes no sense.
 */
#ifndef AG_UNIT_H
#define AG_UNIT_H

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long ag_unit_passed;
static long ag_unit_failed;

static inline int
ag_unit_check(int ok, const char *file, int line, const char *text)
{
	if (ok)
		ag_unit_passed++;
	else
	{
		ag_unit_failed++;
		fprintf(stderr, "%s:%d: failed: %s\n", file, line, text);
	}
	return ok;
}

static inline int
ag_unit_check_int(long long a, long long b, const char *file, int line, const char *text)
{
	if (!ag_unit_check(a == b, file, line, text))
		fprintf(stderr, "    %lld, expected %lld\n", a, b);
	return a == b;
}

static inline int
ag_unit_check_str(const char *a, const char *b, const char *file, int line, const char *text)
{
	int ok = a != NULL && b != NULL ? strcmp(a, b) == 0 : a == b;

	if (!ag_unit_check(ok, file, line, text))
		fprintf(stderr, "    \"%s\", expected \"%s\"\n", a ? a : "(null)", b ? b : "(null)");
	return ok;
}

static inline int
ag_unit_check_near(double a, double b, double within, const char *file, int line, const char *text)
{
	int ok = a == b || fabs(a - b) <= within || (isnan(a) && isnan(b));

	if (!ag_unit_check(ok, file, line, text))
		fprintf(stderr, "    %.17g, expected %.17g within %g\n", a, b, within);
	return ok;
}

static inline int
ag_unit_done(const char *name)
{
	if (ag_unit_passed + ag_unit_failed == 0)
	{
		fprintf(stderr, "%s: no check ran\n", name);
		ag_unit_failed++;
	}
	printf("%ld passed, %ld failed\n", ag_unit_passed, ag_unit_failed);
	fflush(stdout);
	return ag_unit_failed != 0;
}

/* Each gives 1 when it held, so that a test may leave early. */
#define AG_CHECK(condition) ag_unit_check(!!(condition), __FILE__, __LINE__, #condition)
/* integers: got, expected */
#define AG_CHECK_EQ(got, expected)                                                                 \
	ag_unit_check_int((long long) (got), (long long) (expected), __FILE__, __LINE__,               \
					  #got " == " #expected)
#define AG_CHECK_STR(got, expected)                                                                \
	ag_unit_check_str((got), (expected), __FILE__, __LINE__, #got " is " #expected)
#define AG_CHECK_NEAR(got, expected, within)                                                       \
	ag_unit_check_near((got), (expected), (within), __FILE__, __LINE__, #got " ~ " #expected)
#define AG_REQUIRE(condition)                                                                      \
	do                                                                                             \
	{                                                                                              \
		if (!AG_CHECK(condition))                                                                  \
			exit(ag_unit_done(__FILE__));                                                          \
	} while (0)

#endif
