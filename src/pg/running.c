/*
 * running.c - see running.h; and ag_running_fits, which reads the boards.
 */
#include "postgres.h"

#include <math.h>

#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/dsm.h"
#include "storage/lock.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "engine/base/context.h"
#include "pg/rights.h"
#include "pg/running.h"
#include "pg/srf.h"

#define BOARD_KEY 0x414c /* objsubid: SQL's advisory locks have 1 or 2 there */
#define BOARD_MAGIC 0x41475242
#define TRIES 1000 /* to read a board between two writes */

/* `changes` is odd while the session writes. A reader copies all of it, and uses the copy where `changes` was even, and the same before and after. */
typedef struct Board
{
	uint32 magic;
	char build_id[60];
	pg_atomic_uint32 changes;
	int pid;
	char owner[NAMEDATALEN];
	char model[NAMEDATALEN];
	char label[NAMEDATALEN];
	char data[256];
	char phase[160];
	char message[256];
	TimestampTz started_at;
	int64 started_ns,
		expected_end_ns; /* on ag_clock_ns(), which is one for all processes; 0: not known */
	double done, score;  /* NaN: not known */
} Board;

struct AgRunning
{
	dsm_segment *segment;
	Board *board;
};

static void
board_tag(LOCKTAG *tag, dsm_handle handle)
{
	SET_LOCKTAG_ADVISORY(*tag, MyDatabaseId, (uint32) handle, 0, BOARD_KEY);
}

/* As much as fits, whole characters. */
static void
put_text(char *to, Size size, const char *text)
{
	int n = pg_mbcliplen(text, (int) strnlen(text, INT_MAX), (int) size - 1);

	memcpy(to, text, n);
	to[n] = '\0';
}

static void
begin_change(Board *board)
{
	pg_atomic_write_u32(&board->changes, pg_atomic_read_u32(&board->changes) + 1);
	pg_write_barrier();
}

static void
end_change(Board *board)
{
	pg_write_barrier();
	pg_atomic_write_u32(&board->changes, pg_atomic_read_u32(&board->changes) + 1);
}

AgRunning *
ag_running_begin(const char *model, const char *data, const char *label)
{
	AgRunning *running = palloc(sizeof(AgRunning));
	Board *board;
	LOCKTAG tag;

	running->segment = dsm_create(sizeof(Board), 0);
	running->board = board = dsm_segment_address(running->segment);
	memset(board, 0, sizeof(Board));
	board->magic = BOARD_MAGIC;
	strlcpy(board->build_id, AG_BUILD_ID, sizeof board->build_id);
	pg_atomic_init_u32(&board->changes, 0);
	board->pid = MyProcPid;
	put_text(board->owner, sizeof board->owner, GetUserNameFromId(GetUserId(), false));
	put_text(board->model, sizeof board->model, model);
	put_text(board->label, sizeof board->label, label);
	put_text(board->data, sizeof board->data, data);
	put_text(board->phase, sizeof board->phase, "reading rows");
	board->started_at = GetCurrentTimestamp();
	board->started_ns = ag_clock_ns();
	board->done = board->score = NAN;
	/* nobody looks before the lock is there */
	board_tag(&tag, dsm_segment_handle(running->segment));
	(void) LockAcquire(&tag, ExclusiveLock, false, true);
	return running;
}

void
ag_running_end(AgRunning *running)
{
	LOCKTAG tag;

	board_tag(&tag, dsm_segment_handle(running->segment));
	(void) LockRelease(&tag, ExclusiveLock, false);
	dsm_detach(running->segment);
	pfree(running);
}

void
ag_running_progress(AgRunning *running, const char *phase, double done, double seconds_left,
					double score)
{
	Board *board = running->board;
	int64 end_ns = isnan(seconds_left) ? 0 : ag_clock_ns() + (int64) (seconds_left * 1e9);

	begin_change(board);
	put_text(board->phase, sizeof board->phase, phase);
	board->done = done;
	board->score = score;
	board->expected_end_ns = end_ns;
	end_change(board);
}

void
ag_running_message(AgRunning *running, const char *message)
{
	begin_change(running->board);
	put_text(running->board->message, sizeof running->board->message, message);
	end_change(running->board);
}

/* ---- reading ---- */

/* A consistent copy; false: it is no board of ours, or is written to all the time. */
static bool
copy_board(const Board *board, Size size, Board *copy)
{
	if (size < sizeof(Board) || board->magic != BOARD_MAGIC ||
		strncmp(board->build_id, AG_BUILD_ID, sizeof board->build_id) != 0)
		return false;
	for (int i = 0; i < TRIES; i++)
	{
		uint32 before = pg_atomic_read_u32((pg_atomic_uint32 *) &board->changes);

		pg_read_barrier();
		memcpy(copy, board, sizeof(Board));
		pg_read_barrier();
		if (before % 2 == 0 && pg_atomic_read_u32((pg_atomic_uint32 *) &board->changes) == before)
			return true;
		CHECK_FOR_INTERRUPTS();
	}
	return false;
}

/* The segment may have gone since its lock was seen, and be another one's by now. */
static bool
read_board(dsm_handle handle, Board *copy)
{
	dsm_segment *mapped = dsm_find_mapping(handle); /* our own */
	dsm_segment *segment = mapped != NULL ? mapped : dsm_attach(handle);
	bool is_read;

	if (segment == NULL)
		return false;
	is_read = copy_board(dsm_segment_address(segment), dsm_segment_map_length(segment), copy);
	if (mapped == NULL)
		dsm_detach(segment);
	return is_read;
}

static void
put_board(AgSrf *srf, const Board *board)
{
	Datum values[12];
	bool nulls[12] = {false};
	int64 now = ag_clock_ns();

	values[0] = Int32GetDatum(board->pid);
	ag_srf_text(values, nulls, 1, board->owner);
	ag_srf_text(values, nulls, 2, board->model);
	ag_srf_text(values, nulls, 3, board->data);
	ag_srf_text(values, nulls, 4, board->label);
	ag_srf_text(values, nulls, 5, board->phase);
	ag_srf_number(values, nulls, 6, board->done * 100);
	values[7] = TimestampTzGetDatum(board->started_at);
	ag_srf_number(values, nulls, 8, (double) Max(now - board->started_ns, 0) / 1e9);
	ag_srf_number(
		values, nulls, 9,
		board->expected_end_ns == 0 ? NAN : (double) Max(board->expected_end_ns - now, 0) / 1e9);
	ag_srf_number(values, nulls, 10, board->score);
	ag_srf_text(values, nulls, 11, board->message[0] != '\0' ? board->message : NULL);
	ag_srf_row(srf, values, nulls);
}

PG_FUNCTION_INFO_V1(ag_sql_running_fits);

Datum
ag_sql_running_fits(PG_FUNCTION_ARGS)
{
	LockData *locks = GetLockStatusData();
	Board board;
	AgSrf srf;

	ag_srf_begin(&srf, fcinfo);
	for (int i = 0; i < locks->nelements; i++)
	{
		const LockInstanceData *lock = &locks->locks[i];
		LOCKTAG tag;

		board_tag(&tag, (dsm_handle) lock->locktag.locktag_field2);
		if (memcmp(&lock->locktag, &tag, sizeof tag) == 0 &&
			(lock->holdMask & LOCKBIT_ON(ExclusiveLock)) != 0 &&
			read_board((dsm_handle) lock->locktag.locktag_field2, &board) &&
			ag_rights_is_owner(GetUserId(), board.owner))
			put_board(&srf, &board);
	}
	return (Datum) 0;
}
