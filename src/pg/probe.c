/*
 * probe.c - see probe.h. Nothing that comes from the program is trusted: its bytes, lines and fields are counted, and what
 * isn't understood is left out.
 */
#include "postgres.h"

#include <unistd.h>

#include "miscadmin.h"
#include "pgstat.h"
#include "storage/latch.h"

#include "engine/base/context.h"
#include "pg/child.h"
#include "pg/compat.h"
#include "pg/errors.h"
#include "pg/probe.h"

#define SILENCE_MS 10000
#define TOTAL_MS 60000
#define MAX_BYTES (256 * 1024)
#define LINE_BYTES 4096
#define MAX_FACTS 1000

typedef struct Intake
{
	AgProbe *probe;
	char line[LINE_BYTES];
	int n_line;   /* -1: the line is too long, and left out up to its end */
	int64 n_read; /* in all */
	bool is_over;
} Intake;

/* ---- lines ---- */

static void
take_line(Intake *in)
{
	AgFact *fact;
	char *at, *field;
	int n = 0;

	if (in->n_line <= 0 || list_length(in->probe->facts) >= MAX_FACTS)
		return;
	in->line[in->n_line] = '\0';
	if (strlen(in->line) != (size_t) in->n_line)
		return;
	fact = palloc0(sizeof(AgFact));
	for (int i = 0; i < AG_PROBE_MAX_FIELDS; i++)
		fact->fields[i] = "";
	at = in->line;
	field = strsep(&at, "\t");
	fact->key = ag_message_from_utf8(field);
	while (n < AG_PROBE_MAX_FIELDS && (field = strsep(&at, "\t")) != NULL)
		fact->fields[n++] = ag_message_from_utf8(field);
	in->probe->facts = lappend(in->probe->facts, fact);
}

/* All that is there. is_over at its end, or when it says more than it ever should. */
static void
take_bytes(Intake *in, AgChild *child)
{
	char bytes[4096];
	ssize_t n;

	while ((n = read(child->socket, bytes, sizeof bytes)) != 0)
	{
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		in->n_read += n;
		if (n < 0 || in->n_read > MAX_BYTES)
			break;
		for (ssize_t i = 0; i < n; i++)
		{
			if (bytes[i] == '\n')
			{
				take_line(in);
				in->n_line = 0;
			}
			else if (in->n_line >= 0 && in->n_line < LINE_BYTES - 1)
				in->line[in->n_line++] = bytes[i];
			else
				in->n_line = -1;
		}
	}
	in->is_over = true;
}

/* ---- the program ---- */

/* False: it went silent. */
static bool
listen_to(Intake *in, AgChild *child)
{
	int64 began = ag_clock_ns();
	int64 heard = began;

	while (!in->is_over)
	{
		int64 now, n_before = in->n_read;

		(void) WaitLatchOrSocket(
			MyLatch, WL_LATCH_SET | WL_SOCKET_READABLE | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
			child->socket, 500, ag_wait_event(AG_WAIT_PROBE));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		ag_child_read_log(child);
		take_bytes(in, child);
		now = ag_clock_ns();
		if (in->n_read > n_before)
			heard = now;
		if (!in->is_over && (now - heard > SILENCE_MS * INT64_C(1000000) ||
							 now - began > TOTAL_MS * INT64_C(1000000)))
			return false;
	}
	return true;
}

/* How it ended, unless it came to the last line. */
static void
judge_end(AgProbe *probe, AgChild *child, bool answered)
{
	const char *step = "starting";
	char how[128];
	ListCell *cell;

	foreach (cell, probe->facts)
	{
		const AgFact *fact = lfirst(cell);

		if (strcmp(fact->key, "step") == 0)
			step = fact->fields[0];
		if (strcmp(fact->key, "done") == 0)
			return;
	}
	if (!answered)
	{
		probe->trouble = psprintf("ag_trainer --probe didn't answer within %d s, while %s",
								  SILENCE_MS / 1000, step);
		probe->cure = "The driver hangs: see whether nvidia-smi answers and what the kernel's log "
					  "(dmesg) says of "
					  "NVRM; reset the GPU or reboot.";
		return;
	}
	for (int i = 0; i < 200 && !ag_child_reap(child); i++)
		pg_usleep(5000);
	if (!child->reaped)
		strlcpy(how, "closed its output", sizeof how);
	else
		ag_child_describe_end(child, how, sizeof how);
	probe->trouble = psprintf("ag_trainer --probe %s, while %s", how, step);
	probe->cure = "The server's log may say more. A crash inside the driver's library is cured by "
				  "installing the "
				  "driver again; another one by installing ag_pg again, library and ag_trainer "
				  "from one build.";
}

AgProbe *
ag_probe_run(void)
{
	AgProbe *probe = palloc0(sizeof(AgProbe));
	AgChild *child = palloc0(sizeof(AgChild));
	Intake *in = palloc0(sizeof(Intake));
	char reason[512], hint[512];

	in->probe = probe;
	if (!ag_child_start(child, AG_CHILD_PROBE, reason, sizeof reason, hint, sizeof hint))
	{
		probe->trouble = pstrdup(reason);
		probe->cure = hint[0] != '\0' ? pstrdup(hint) : NULL;
		return probe;
	}
	probe->started = true;
	PG_TRY();
	{
		bool answered = listen_to(in, child);

		ag_child_read_log(child);
		judge_end(probe, child, answered);
	}
	PG_FINALLY();
	{
		ag_child_kill(child);
	}
	PG_END_TRY();
	return probe;
}

/* ---- facts ---- */

const AgFact *
ag_probe_fact(const AgProbe *probe, const char *key)
{
	ListCell *cell;

	foreach (cell, probe->facts)
	{
		const AgFact *fact = lfirst(cell);

		if (strcmp(fact->key, key) == 0)
			return fact;
	}
	return NULL;
}

const char *
ag_probe_text(const AgProbe *probe, const char *key, int field)
{
	const AgFact *fact = ag_probe_fact(probe, key);

	return fact != NULL ? fact->fields[field] : NULL;
}

int64
ag_fact_number(const AgFact *fact, int field, int64 missing)
{
	char *end;
	int64 number;

	if (fact == NULL || fact->fields[field][0] == '\0')
		return missing;
	errno = 0;
	number = strtoll(fact->fields[field], &end, 10);
	return errno == 0 && *end == '\0' ? number : missing;
}

bool
ag_probe_is(const AgProbe *probe, const char *key, int field, const char *text)
{
	const char *found = ag_probe_text(probe, key, field);

	return found != NULL && strcmp(found, text) == 0;
}
