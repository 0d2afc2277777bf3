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

#include "access/htup.h"
#include "access/tupdesc.h"
#include "utils/jsonb.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "engine/engine.h"
#include "engine/search/fit.h"
#include "pg/rights.h"

/* Schema of the extension; 42704 when the database has none. */
extern Oid ag_catalog_schema(void);

/* One of the extension's tables or indexes by name. */
extern Oid ag_catalog_relation(const char *name);

/*
 * The tables' owner, for SetUserIdAndSecContext: writes run as this role and with this context. Fetches
 * the caller's identity, so that the writer can go back (and does, in PG_FINALLY or at the abort).
 */
extern void ag_catalog_become_owner_of(const char *table, Oid *caller, int *caller_context);

/* Whose that table is. */
extern Oid ag_catalog_owner_of(const char *table);

/* Whether the database has the extension. */
extern bool ag_catalog_is_installed(void);

/*
 * Runs one statement as the tables' owner, with nothing but pg_catalog in search_path; "@." in sql stands for the extension's
 * schema. Returns the rows processed. A read-only transaction and a standby get their standard error.
 */
extern uint64 ag_catalog_execute(const char *sql, int n_args, Oid *types, Datum *values,
								 const char *nulls);

/* The same as the owner of that one of the extension's tables; take (or NULL) gets the rows that come back, one by one. */
typedef void (*AgCatalogRowFn)(void *arg, HeapTuple row, TupleDesc desc);
extern uint64 ag_catalog_execute_on(const char *table, const char *sql, int n_args, Oid *types,
									Datum *values, const char *nulls, AgCatalogRowFn take,
									void *arg);

/*
 * The same on ag_predictor for who holds the lock on the names meant (ag_catalog_lock_name): it sees and changes what is
 * committed by now, also where the transaction's snapshot is older.
 */
extern uint64 ag_catalog_execute_latest(const char *sql, int n_args, Oid *types, Datum *values,
										AgCatalogRowFn take, void *arg);

/* What the data of an imported model begins with; "(imported: xgboost_json)". */
#define AG_IMPORTED_DATA "(imported: "

/* A row of ag_predictor, palloc'd. Texts in the server's encoding; jsonb values detoasted copies. */
typedef struct AgPredictorRow
{
	pg_uuid_t id;
	char *name;
	int version;
	bool pinned;
	char *owner;
	AgRight right; /* of the role it was looked up for: at least AG_RIGHT_PREDICT */
	char *data;
	char *label;
	char *problem_type;
	char *eval_metric;
	Jsonb *options;
	int64 rows;
	int64 rows_left_out;
	Jsonb *classes; /* NULL: regression */
	TimestampTz created_at;
	double time_limit; /* seconds; NaN: none */
	double fit_time;   /* seconds */
	char *best_model;
	double score_val; /* NaN: none */
	Jsonb *plan;
	Jsonb *warnings;
	int format;
	double decision_threshold; /* NaN: none was set, a half */
} AgPredictorRow;

/* "name", "name@3", "name/MEMBER" or "name@3/MEMBER" taken apart. */
typedef struct AgModelName
{
	char *name;
	int version;  /* 0: the current one */
	char *member; /* NULL: the predictor's best model */
} AgModelName;

/* Takes it apart; 22023, or false, when the text is no model name. */
extern bool ag_model_name_try(const char *model, AgModelName *parsed);
extern void ag_model_name_parse(const char *model, AgModelName *parsed);

/* 22023 unless a predictor can have that name. option: it was not given by the user, and this option could. NULL: it was. */
extern void ag_model_name_check(const char *name, const char *option);

/*
 * The predictor that "name", "name@3", "name/MEMBER" or "name@3/MEMBER" means under the active snapshot. *member: the
 * member's name or NULL. ERROR 42704 when there is none that the current user may predict with (the same error, so that
 * names don't leak); 22023 when the text is no model name. row may be NULL: only the check and the id.
 */
extern void ag_catalog_find(const char *model, pg_uuid_t *id, char **member, AgPredictorRow **row);

/* The same without errors: false where there is none, or the text is no model name. */
extern bool ag_catalog_find_quietly(const char *model, pg_uuid_t *id, char **member,
									AgPredictorRow **row);

/* The standard errors of a standby and of a read-only transaction, for what writes: "cannot execute ag_drop() in ...". */
extern void ag_catalog_refuse_read_only(const char *function);

/* Plans that name a model are made again: to be called by whoever changes what names mean. */
extern void ag_catalog_changed(void);

/* The same with the rights of another role than the current user. */
extern void ag_catalog_find_as(Oid role, const char *model, pg_uuid_t *id, char **member,
							   AgPredictorRow **row);

/* True when the current user owns a predictor of that owner name (member of the role, or superuser). */
extern bool ag_catalog_is_owner(const char *owner);

/* A row of ag_predictor_feature. */
typedef struct AgFeatureRow
{
	int ordinal;
	char *name;
	char *type;
	char *kind;
	bool is_used;
	char *became;      /* NULL: nothing */
	char *dropped_why; /* NULL: used */
} AgFeatureRow;

/* A row of ag_member. inputs: NULL, or one ordinal and weight a model it combines, in stored order. */
typedef struct AgMemberRow
{
	int ordinal;
	char *name;
	char *family;
	int stack_level;
	int fold; /* of a bag's child; 0: none */
	int fit_order;
	Jsonb *hyperparameters;
	double score_val; /* NaN: none */
	double fit_time, predict_time;
	char *device;
	double num_gpus;
	int num_cpus;
	bool can_infer;
	double temperature; /* 0: none */
	int n_shifts;
	double *shifts;
	int n_inputs;
	int *inputs;
	double *weights;
} AgMemberRow;

/* A predictor's columns and members, by ordinal, palloc'd. XX001 where rows contradict each other. */
extern AgFeatureRow *ag_catalog_features(const pg_uuid_t *id, int *n);
extern AgMemberRow *ag_catalog_members(const pg_uuid_t *id, int *n);
/* What ag_member.history holds of one of them; NULL: nothing. */
extern Jsonb *ag_catalog_history(const pg_uuid_t *id, int ordinal);

/*
 * The bytes of one member, its parts put together and their checksums looked at, in a 64-byte aligned block of mem (the
 * caller's to free); NULL when there is no part (an ensemble is all in ag_member). XX001 when parts are missing or
 * damaged, 53200 when they don't fit.
 */
extern void *ag_catalog_image(const pg_uuid_t *id, int member, AgMem *mem, size_t *size);

/* Of a version: the probability above which a row is positive, a half where none was set. */
extern double ag_catalog_threshold(const pg_uuid_t *id);

/* What ag_member_part.checksum holds. */
extern int64 ag_catalog_checksum(const void *bytes, uint32 n_bytes);

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

/* Until the transaction ends nobody else can add a version of that name, or give it to another predictor. */
extern void ag_catalog_lock_name(const char *name);

/*
 * Writes one predictor version: begin gives the version number (under a transaction lock on the name), its
 * id, and which older version stays current because it was activated by hand (0: none); then features, members, parts in any
 * order; all inside the caller's transaction.
 */
extern void ag_catalog_store_begin(const AgCatalogPredictor *predictor, pg_uuid_t *id, int *version,
								   int *pinned);
extern void ag_catalog_store_feature(const pg_uuid_t *id, const AgFittedFeature *feature);
extern void ag_catalog_store_member(const pg_uuid_t *id, const AgFittedMember *member);
extern void ag_catalog_store_part(const pg_uuid_t *id, int member, int part, const void *bytes,
								  uint32 n_bytes);
extern void ag_catalog_store_end(const pg_uuid_t *id);

#endif
