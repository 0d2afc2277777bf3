/*
 * supervisor.h - watching over a trainer; and the background worker that does it for a session, and what those two tell each
 * other.
 *
 * Two segments of shared memory a fit, each with one of PostgreSQL's own message queues: rows (session to supervisor)
 * and results (back). A message of either is a piece of the stream of frames, of any length up to AG_PIECE_BYTES; of the results
 * queue it has one byte in front that says which (AgPieceKind). Frames are the trainer's matter: the supervisor looks at headers
 * only, but for HELLO and NEED.
 */
#ifndef AG_SUPERVISOR_H
#define AG_SUPERVISOR_H

#include "postgres.h"

#include "storage/dsm.h"

#define AG_PIECE_BYTES (64 * 1024)
#define AG_ROWS_QUEUE_BYTES (4 * 1024 * 1024)
#define AG_RESULTS_QUEUE_BYTES (256 * 1024)
#define AG_SUPERVISOR_MAGIC 0x41475055

typedef enum AgPieceKind
{
	AG_PIECE_STREAM = 0, /* bytes of the trainer's stream */
	AG_PIECE_OWN = 1     /* one whole frame of the supervisor's, between two pieces of the stream */
} AgPieceKind;

/*
 * At the start of the rows segment, the queue behind it. Written before the supervisor starts; it copies it and
 * uses only the copy. The first two fields never move: they tell a library of another build.
 */
typedef struct AgSupervisorOrders
{
	uint32 magic;
	char build_id[60];
	int64 deadline_ns;        /* ag_clock_ns() of the call's end; INT64_MAX: none */
	double time_limit;        /* seconds the whole call has; of use with a deadline only */
	int64 memory_limit_bytes; /* of this fit */
	int64 memory_total_bytes; /* of all fits: ag_pg.memory_limit */
	int num_cpus;             /* of all fits */
	double gpu_memory_fraction;
	int max_fits;
} AgSupervisorOrders;

/* In bgw_extra. */
typedef struct AgSupervisorSegments
{
	dsm_handle rows;
	dsm_handle results;
} AgSupervisorSegments;

/*
 * Watching over one trainer, in whichever process does it (one at a time a process): its start, turns that go as far as is possible
 * without waiting, waits, its end. The caller fills in orders and session of a zeroed AgSupervisor (relay.h) first. An ERROR may
 * come out of a turn or wait; ag_supervisor_end must follow then, and kills the child and gives back the lease.
 */
struct AgSupervisor;
typedef enum AgSupervisorTurn
{
	AG_TURN_WAIT,  /* nothing to do before something happens */
	AG_TURN_AGAIN, /* more can be done at once */
	AG_TURN_OVER   /* all is said, and the child is gone */
} AgSupervisorTurn;

extern void ag_supervisor_start(struct AgSupervisor *s);
extern AgSupervisorTurn ag_supervisor_turn(struct AgSupervisor *s);
extern void ag_supervisor_wait(struct AgSupervisor *s, long timeout_ms);
extern void ag_supervisor_end(struct AgSupervisor *s);

#define AG_SUPERVISOR_FUNCTION "ag_supervisor_main"
#define AG_SUPERVISOR_TYPE "ag_pg supervisor"

extern PGDLLEXPORT void ag_supervisor_main(Datum arg);

#endif
