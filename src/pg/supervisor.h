/*
 * supervisor.h - the background worker between a session and its trainer, and what the two tell each other.
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
	int64 memory_limit_bytes; /* of this fit */
	int64 memory_total_bytes; /* of all fits: ag_pg.memory_limit */
	int num_cpus;             /* of all fits */
	int num_gpus;             /* of all fits; -1: all there are */
	int max_fits;
} AgSupervisorOrders;

/* In bgw_extra. */
typedef struct AgSupervisorSegments
{
	dsm_handle rows;
	dsm_handle results;
} AgSupervisorSegments;

#define AG_SUPERVISOR_FUNCTION "ag_supervisor_main"
#define AG_SUPERVISOR_TYPE "ag_pg supervisor"

extern PGDLLEXPORT void ag_supervisor_main(Datum arg);

#endif
