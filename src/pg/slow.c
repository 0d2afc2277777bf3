/*
 * slow.c - see slow.h.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "engine/base/context.h"
#include "pg/slow.h"

#define TELL_EVERY_NS INT64_C(10000000000)

void
ag_slow_begin(AgSlow *slow, const char *function)
{
	slow->function = function;
	slow->began_ns = slow->told_ns = ag_clock_ns();
}

void
ag_slow_tell(AgSlow *slow, int64 done, int64 of, const char *what)
{
	int64 now = ag_clock_ns();

	CHECK_FOR_INTERRUPTS();
	if (now - slow->told_ns < TELL_EVERY_NS)
		return;
	slow->told_ns = now;
	ereport(NOTICE,
			(errmsg("%s: " INT64_FORMAT " of " INT64_FORMAT " %s after %.0f s", slow->function,
					done, of, what, (double) (now - slow->began_ns) / 1e9)));
}
