/*
 * upkeep.h - what functions that make versions out of versions share.
 */
#ifndef AG_UPKEEP_H
#define AG_UPKEEP_H

#include "postgres.h"

#include "utils/uuid.h"

#include "pg/catalog.h"
#include "pg/compat.h"

/* The version that a name means, of a predictor of the current user's, and *id; ERROR for a single member, and for others' predictors. */
extern AgPredictorRow *ag_upkeep_find_own(const char *model, pg_uuid_t *id);
/* The same for a single member, too, whose name *member gets (it may not be there); else NULL. */
extern AgPredictorRow *ag_upkeep_find_own_member(const char *model, pg_uuid_t *id, char **member);
/* ERROR: the model has no member of that name. */
pg_noreturn extern void ag_upkeep_refuse_member(const AgPredictorRow *row, const char *name);
/* Makes a version the current one, one that this command has stored too. */
extern void ag_upkeep_activate(const char *name, int version);
/* ERROR of an imported model, which has no data to be fitted again on. */
extern void ag_upkeep_require_data(const AgPredictorRow *row);

#endif
