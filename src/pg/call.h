/*
 * call.h - one place in a plan where a model predicts: the model it means, and how rows are read for it.
 */
#ifndef AG_CALL_H
#define AG_CALL_H

#include "postgres.h"

#include "pg/cache.h"
#include "pg/row.h"

/* Kept in or under fn_extra, which may outlive statements, transactions and SET ROLE. */
typedef struct AgCall
{
	struct AgCall *next; /* other models that the same place has predicted with */
	MemoryContext home;
	MemoryContext user;    /* as long as that lives the model stays open; NULL: home */
	MemoryContext pin;     /* in user, with the model's pin */
	MemoryContext context; /* what belongs to the model at hand */
	char *name;            /* as given: "churn@3/GBM" */
	const AgOpenModel *model;
	uint64 opening; /* the model's */
	AgRowMap *map;
	double *out; /* [n_outputs] of the row just predicted */
	uint64
		n_rows; /* that this statement's execution has asked for; 0 again when the name is another */
	void *extra; /* the caller's, in context; NULL when the model is new */
	/* what name meant when it was looked up last */
	struct AgCallSeen
	{
		bool valid;
		Oid role;
		TransactionId xmin, xmax;
		CommandId curcid;
		uint32 xcnt;
		int32 subxcnt;
		uint64 completion_count;
		double threshold; /* the model's, then */
	} seen;
} AgCall;

/*
 * A place's call for the model of that name (n bytes, not NUL-terminated), ready to predict. *first is NULL before the first
 * one, which is made in home. Version and right of role (InvalidOid: the current user) are looked up again whenever the
 * snapshot, the command or the role is another one than at the model's last row.
 */
extern AgCall *ag_call_get(AgCall **first, MemoryContext home, const char *name, int n_bytes,
						   Oid role);

/* A call for that name whose model stays open as long as user lives, which may be shorter than home. */
extern AgCall *ag_call_create(MemoryContext home, MemoryContext user, const char *name,
							  int n_bytes);

/*
 * For a call that outlives its users, one after the other: the last one's context is gone, user is the next one's. What the
 * call knows is kept as long as it is true.
 */
extern void ag_call_resume(AgCall *call, MemoryContext user);

/* How a row is given. */
typedef enum AgRowForm
{
	AG_ROW_RECORD,
	AG_ROW_JSONB,
	AG_ROW_TEXT,
	AG_ROW_COLUMNS /* one argument each: columns.h */
} AgRowForm;

/* The model's inputs of one row, good until the next one is read. */
extern const AgValue *ag_call_read(AgCall *call, AgRowForm form, Datum features);

/* Predicts one row; the result lies in call->out. */
extern void ag_call_run(AgCall *call, AgRowForm form, Datum features);

#endif
