/*
 * deadline.c - see deadline.h.
 */
#include "postgres.h"

#include <limits.h>
#include <signal.h>

#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/timeout.h"

#include "engine/base/context.h"
#include "pg/deadline.h"

static TimeoutId timer = MAX_TIMEOUTS; /* registered once a process */
static volatile sig_atomic_t went_off = false;

/* In a signal handler. */
static void
on_timer(void)
{
	went_off = true;
	QueryCancelPending = true;
	InterruptPending = true;
	SetLatch(MyLatch);
}

void
ag_deadline_start(int64 deadline_ns)
{
	int64 left_ms = deadline_ns == INT64_MAX ? -1 : (deadline_ns - ag_clock_ns()) / 1000000;

	if (timer == MAX_TIMEOUTS)
		timer = RegisterTimeout(USER_TIMEOUT, on_timer);
	went_off = false;
	if (deadline_ns != INT64_MAX)
		enable_timeout_after(timer, (int) Max(1, Min(left_ms, INT_MAX - 1)));
}

bool
ag_deadline_stop(void)
{
	bool late;

	if (timer != MAX_TIMEOUTS)
		disable_timeout(timer, false);
	late = went_off;
	if (late)
		QueryCancelPending = false;
	went_off = false;
	return late;
}
