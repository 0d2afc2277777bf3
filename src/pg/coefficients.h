/*
 * coefficients.h - what a linear model has learnt, for ag_info.
 */
#ifndef AG_COEFFICIENTS_H
#define AG_COEFFICIENTS_H

#include "postgres.h"

#include "utils/jsonb.h"
#include "utils/uuid.h"

#include "pg/catalog.h"

/* Is it a linear model, or a bag of them, that can be opened? */
extern bool ag_coefficients_has(const AgMemberRow *member);

/* Its coefficients in the columns' terms (engine.h says how), palloc'd. The caller has checked the right to inspect. */
extern Jsonb *ag_coefficients(const pg_uuid_t *id, const AgMemberRow *members, int n,
							  const AgMemberRow *member);

#endif
