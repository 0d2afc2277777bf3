/*
 * catalog.h - the extension's tables: who may see what, reading predictors, writing them.
 *
 * Reads are index scans under the active snapshot with our own check of rights on
 * GetUserId(); the tables themselves are granted to nobody. Writes run as the tables' owner
 * (SECURITY_RESTRICTED_OPERATION | SECURITY_LOCAL_USERID_CHANGE), and no user code runs then.
 */
#ifndef AG_CATALOG_H
#define AG_CATALOG_H

#include "postgres.h"

#include "utils/uuid.h"

#include "engine/engine.h"
#include "engine/search/fit.h"

/* Schema of the extension, from any of its functions. */
extern Oid ag_catalog_schema(void);

/* A row of ag_predictor, palloc'd. Texts in the server's encoding. */
typedef struct AgPredictorRow
{
	pg_uuid_t id;
	char *name;
	int version;
	bool pinned;
	char *owner;
	char *data;
	char *label;
	char *problem_type;
	char *eval_metric;
	char *best_model;
} AgPredictorRow;

/*
 * The predictor that "name", "name@3", "name/MEMBER" or "name@3/MEMBER" means under the active snapshot. *member: the
 * member's name or NULL. ERROR 42704 when there is none that the current user may use (the same error, so that
 * names don't leak); 22023 when the text is no model name. row may be NULL: only the check and the id.
 */
extern void ag_catalog_find(const char *model, pg_uuid_t *id, char **member, AgPredictorRow **row);

/* True when the current user owns a predictor of that owner name (member of the role, or superuser). */
extern bool ag_catalog_is_owner(const char *owner);

/* A fit's results on their way into the tables (in server encoding where text is given as such). */
typedef struct AgCatalogPredictor
{
	const char *name;
	const char *owner;
	const char *data; /* as given by the user */
	const char *label;
	const char *options_json;
	double time_limit;  /* seconds */
	double fit_seconds; /* of the whole call */
	const AgFittedPredictor *fitted;
} AgCatalogPredictor;

/*
 * Errors out (42501) when `name` is taken by a predictor of a role the current user is no member of. Called before any work.
 */
extern void ag_catalog_check_name(const char *name);

/*
 * Writes one predictor version: begin gives the version number (under a transaction lock on the name) and its
 * id; then features, members, parts in any order; all inside the caller's transaction.
 */
extern void ag_catalog_store_begin(const AgCatalogPredictor *predictor, pg_uuid_t *id,
								   int *version);
extern void ag_catalog_store_feature(const pg_uuid_t *id, const AgFittedFeature *feature);
extern void ag_catalog_store_member(const pg_uuid_t *id, const AgFittedMember *member);
extern void ag_catalog_store_part(const pg_uuid_t *id, int member, int part, const void *bytes,
								  uint32 n_bytes);
extern void ag_catalog_store_end(const pg_uuid_t *id);

#endif
