/*
 * deadline.c - see deadline.h.
 *
 * The server's own timers go by the clock on the wall: when that is put back by an hour, they go off an hour late. So this is a timer of the
 * kernel's, by the clock that only goes forward, with a signal that the server has no use for.
 */
#include "postgres.h"

#include <signal.h>
#include <time.h>

#include "miscadmin.h"
#include "storage/latch.h"

#include "engine/base/context.h"
#include "pg/deadline.h"

#define DEADLINE_SIGNAL (SIGRTMIN + 11)

static timer_t timer;
static bool has_timer = false; /* made once a process */
static volatile sig_atomic_t is_armed = false, went_off = false;

static void
on_timer(int signal_number)
{
	int saved_errno = errno;

	if (is_armed)
	{
		went_off = true;
		QueryCancelPending = true;
		InterruptPending = true;
		SetLatch(MyLatch);
	}
	errno = saved_errno;
}

static void
make_timer(void)
{
	struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = DEADLINE_SIGNAL};

	sigemptyset(&action.sa_mask);
	if (sigaction(DEADLINE_SIGNAL, &action, NULL) != 0 ||
		timer_create(CLOCK_MONOTONIC, &event, &timer) != 0)
		ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_RESOURCES),
						errmsg("could not make a timer for the time limit: %m")));
	has_timer = true;
}

/* 0: never. */
static void
set_timer(int64 moment_ns)
{
	struct itimerspec when = {
		.it_value = {.tv_sec = moment_ns / 1000000000, .tv_nsec = moment_ns % 1000000000}};

	(void) timer_settime(timer, TIMER_ABSTIME, &when, NULL);
}

void
ag_deadline_start(int64 deadline_ns)
{
	went_off = false;
	if (deadline_ns == INT64_MAX)
		return;
	if (!has_timer)
		make_timer();
	is_armed = true;
	set_timer(Max(deadline_ns, 1));
}

bool
ag_deadline_stop(void)
{
	bool late;

	if (is_armed)
		set_timer(0);
	is_armed = false;
	late = went_off;
	if (late)
		QueryCancelPending = false;
	went_off = false;
	return late;
}
