/*
 * rights.h - what a role may do with a predictor.
 *
 * A predictor belongs to a role, by name, and every version of it does. The owner (and who has the owner's privileges) may do
 * all; rows of ag_predictor_grant give other roles, by name too, a part of it. Names are resolved when a right is looked
 * up: a dump restores where the roles are others, and REASSIGN OWNED doesn't reach rows (ag_reassign does).
 */
#ifndef AG_RIGHTS_H
#define AG_RIGHTS_H

#include "postgres.h"

/* Each includes those before it. */
typedef enum AgRight
{
	AG_RIGHT_NONE,
	AG_RIGHT_PREDICT, /* use it, see what it is called and how good it is */
	AG_RIGHT_INSPECT, /* see what it was made of too: data, options, plan, features, categories */
	AG_RIGHT_OWNER    /* fit it again, drop, rename, activate, grant */
} AgRight;

/* Whether the role has the privileges of that owner, a role's name. A name of no role: superusers only. */
extern bool ag_rights_is_owner(Oid role, const char *owner);

/* The role's right on the predictor of that name and owner, under the active snapshot. */
extern AgRight ag_rights_of(Oid role, const char *predictor, const char *owner);

/* 42501 unless the right is at least that: for predictors that the current user may at least see. */
extern void ag_rights_require(AgRight right, AgRight needed, const char *predictor);

/*
 * 42501 unless the current role is the owner itself, and nobody without its rights can write the tables: for what runs a query that is
 * kept with the predictor. Members of the owner's role may have stored it, and they have its rights, but not each other's.
 */
extern void ag_rights_require_self(const char *predictor, const char *owner, const char *action);

/*
 * The grants of a predictor's name go, or get another name. For the one that changes predictors, in the same
 * transaction.
 */
extern void ag_rights_forget(const char *predictor);
extern void ag_rights_rename(const char *predictor, const char *new_name);

#endif
