/*
 * share.h - models that all sessions of the server have together, decoded once: their bytes, checked, and trees laid out for speed.
 *
 * Where there is shared memory for it: from 17 on anywhere, before that with the library in shared_preload_libraries. Each model
 * has a segment of dynamic shared memory of its own, which nobody writes to once others can find it, and which the server frees
 * when nobody has it mapped any more; so whoever predicts with it needs no lock, and it doesn't matter how a session ends.
 */
#ifndef AG_SHARE_H
#define AG_SHARE_H

#include "postgres.h"

#include "utils/uuid.h"

#include "engine/engine.h"

/* A model as this process has it mapped. Stays where it is until it is let go; all zero: none. */
typedef struct AgShare
{
	struct dsm_segment *segment;
	struct AgShareSlot *slot;
} AgShare;

/* In _PG_init. */
extern void ag_share_init(void);

/* Does this server share models? */
extern bool ag_share_is_on(void);

/* Maps a member of a predictor of this database, if it is shared. The caller has checked the right to use it. */
extern bool ag_share_attach(AgShare *share, const pg_uuid_t *id, const char *member);

/*
 * Shares what a predictor was opened from, if there is room for it, and maps it. It must be ready for many rows. Where another process was
 * faster, the result is that one's.
 */
extern bool ag_share_publish(AgShare *share, const pg_uuid_t *id, const char *member,
							 const AgPredictor *predictor, const AgImagePart *parts, int n_parts);

/* The parts, to be opened by a context that trusts images; palloc'd. */
extern AgImagePart *ag_share_parts(const AgShare *share, int *n_parts);

/* Lets the mapping go, if there is one. */
extern void ag_share_detach(AgShare *share);

/* Tells that it is in use. */
extern void ag_share_touch(const AgShare *share);

/* Was the model dropped, or pushed out by others? Then its memory waits for this process to let go. */
extern bool ag_share_is_retired(const AgShare *share);

/* No session finds the predictor's models any more; those that have one mapped keep it until they let go. */
extern void ag_share_forget(const pg_uuid_t *id);

/* What is shared now, of all databases; false: this server shares nothing. */
extern bool ag_share_total(int64 *n_models, int64 *bytes);

#endif
