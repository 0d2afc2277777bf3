/*
 * probe.h - what `ag_trainer --probe` says of the GPUs, asked from a session. CUDA itself never comes into a server process.
 */
#ifndef AG_PROBE_H
#define AG_PROBE_H

#include "postgres.h"

#include "nodes/pg_list.h"

#define AG_PROBE_MAX_FIELDS 10

/* One line of the program's, its fields in the database's encoding. Fields that the line lacks are empty texts. */
typedef struct AgFact
{
	const char *key;
	const char *fields[AG_PROBE_MAX_FIELDS];
} AgFact;

typedef struct AgProbe
{
	List *facts;         /* of AgFact *, in order */
	bool started;        /* the program ran */
	const char *trouble; /* why not, or how it went wrong half-way; NULL: it came to its end */
	const char *cure;
} AgProbe;

/* A GPU, from all that the driver, NVML and the module's kernel tell of it. */
typedef struct AgGpu
{
	int index; /* as CUDA counts; -1: CUDA doesn't show it */
	const char *uuid, *name;
	int major, minor;              /* 0: unknown */
	int64 total_bytes, free_bytes; /* -1: unknown */
	bool usable;
	const char *reason, *cure; /* NULL: usable, or nothing is known */
	const char *pids;          /* "12 345"; NULL: unknown */
} AgGpu;

/*
 * Runs the program and takes in what it says; palloc'd. Waits as long as lines come, at most 10 s for the next and a minute
 * in all, then kills it. ERROR only for a cancel and the like.
 */
extern AgProbe *ag_probe_run(void);

/* The first line of that key; NULL: none. */
extern const AgFact *ag_probe_fact(const AgProbe *probe, const char *key);

/* A field of it; NULL: no such line. */
extern const char *ag_probe_text(const AgProbe *probe, const char *key, int field);

/* A field as a number; missing where there is none. */
extern int64 ag_fact_number(const AgFact *fact, int field, int64 missing);

/* Whether a field of the first line of that key is this text. */
extern bool ag_probe_is(const AgProbe *probe, const char *key, int field, const char *text);

/* Of AgGpu *, by index; those that CUDA doesn't show come last. */
extern List *ag_probe_gpus(const AgProbe *probe);

#endif
