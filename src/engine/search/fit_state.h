/*
 * fit_state.h - a fit under way: what its parts (fit*.c) hand to each other. Private to them.
 */
#ifndef AG_FIT_STATE_H
#define AG_FIT_STATE_H

#include "engine/base/bytes.h"
#include "engine/data/pipeline.h"
#include "engine/search/outlook.h"
#include "engine/search/families.h"
#include "engine/search/fit.h"

#define AG_FIT_MIN_HOLDOUT_ROWS 10  /* fewer rows are all trained on */
#define AG_FIT_ROUNDS_UNWATCHED 100 /* rounds without validation rows, unless the user says */
#define AG_FIT_PLAN_ROUNDS 300      /* that a booster of moderate size is taken for */
#define AG_FIT_SAMPLE_SPLIT                                                                        \
	0x100000 /* is added to the number of a split of which a sample is taken */

/* Less time than that is short: no second level, no trial of one, and what fit_order.c does. */
#define AG_FIT_SHORT_SECONDS 299.0
/*
 * And from so much on it is long: there may be a spare set of folds, and of many rows there are bags, and nets see all of them. A little less
 * than the 600 that users write, of which some is gone when it is looked at.
 */
#define AG_FIT_LONG_SECONDS 599.0

#define AG_FIT_NO_FOLD 255 /* a row that is in every fold's training part */
#define AG_FIT_HELD 254    /* one that is in none: held back from all of them */
#define AG_FIT_NAME 80     /* of a model or an ensemble */

/* Which rows one model trains on and which stop it; both ascend. */
typedef struct AgSplit
{
	int number; /* from 1 on; no two splits of a fit share one */
	uint32_t *train_rows, *valid_rows;
	int64_t n_train, n_valid;
} AgSplit;

/* How models are validated: on rows held out, or (bagging) each row by the models that were trained without it. */
typedef struct AgValidation
{
	double fraction;     /* held out, as asked or by the rule; 0: none */
	int n_folds, n_sets; /* 0: no bagging */
	int n_spare_sets;    /* dealt behind the n_sets: 1 where time was left for it, else 0 */
	uint8_t *fold_of; /* [n_sets + n_spare_sets][n_rows], or AG_FIT_NO_FOLD; NULL without bagging */
	AgSplit split;    /* the rows held out */
	/* the rows that scores are of, ascending, and their labels: one of the two */
	int64_t n_scored;
	uint32_t *scored_rows; /* the split's valid_rows without bagging */
	double *target;
	int32_t *class_of;
	double *weight;   /* of the scored rows, where weights count in scores; else NULL */
	bool is_held_out; /* bags are scored on rows that are held out from all folds */
	bool is_forward;  /* folds ascend in time: none trains on rows of later ones */
} AgValidation;

/* One configuration that was fitted: as one model, or as a bag of children, one a fold. */
typedef struct AgFitModel
{
	const AgModelConfig *config;
	char name[AG_FIT_NAME]; /* "GBM", "GBM_2_BAG_L1" */
	int level;              /* from 1 on */
	int fit_order;
	bool is_bag;
	bool is_out_of_bag;  /* a bag of one child of all rows, scored by its out-of-bag predictions */
	int64_t n_sample;    /* rows of a split that it learns from; 0: all of them */
	int n_children;      /* trained; 1 unless it is a bag */
	AgTrained *children; /* in the arena; their valid_proba is given back already */
	int *child_at;       /* of a bag's children: set × folds + fold */
	double
		*proba; /* [n_scored][width] validation predictions; NULL without validation rows; owned */
	int64_t n_covered; /* scored rows that were predicted: fewer than all where time ran out */
	double value;      /* of the eval metric on those, plain; NaN: unknown */
	double fit_seconds, predict_seconds; /* predict: all its children, the scored rows */
	float **
		without; /* [n_sets << parts.n] what it says of rows that it is fitted without: see fit_nested.c; in the arena */
	bool is_dropped; /* a bag that was given up, for its first folds add nothing to the ensemble */
	bool is_slow;    /* beyond the infer_limit: neither the best model nor part of an ensemble */
	AgModelPlan plan;
	AgGpu **gpus;   /* [plan.n_parallel] opened; an entry that is NULL couldn't be. In the arena */
	AgTrained full; /* fitted again on all rows; without an image: wasn't */
	bool
		has_all_rows; /* its child was trained again on all rows, those that it is scored on among them */
} AgFitModel;

/* A model that was asked for and isn't there. In the arena. */
typedef struct AgFitFailure
{
	const char *name, *family;
	AgStatus status;
	const char *message;
	double seconds; /* that it took all the same */
	struct AgFitFailure *next;
} AgFitFailure;

/* A level above the first: its models have the out-of-fold predictions of some models below among their features. */
typedef struct AgFitLevel
{
	int n_inputs;
	int *inputs;     /* [n_inputs] of the fit's models; in the arena */
	double *columns; /* [n_inputs × width][n_rows]; owned */
	AgFitRows rows;
} AgFitLevel;

/* Folds by groups, as far as what stackers learn from goes by them: see fit_nested.c. */
typedef struct AgFitParts
{
	int n;         /* 0: what stackers learn from is the same in all folds */
	uint8_t *of;   /* [n_sets][n_rows] or as folds, AG_FIT_NO_FOLD and AG_FIT_HELD */
	uint32_t *at;  /* [n_sets][n_rows] how many rows of the part are before it */
	int64_t *size; /* [n_sets][n] */
} AgFitParts;

/* What trains one model at a time while others train others. */
typedef struct AgFitSlot
{
	AgContext ctx;
	AgError error;
	struct AgPool *pool; /* NULL: works alone, or with the pool of its maker */
	AgSplit split;       /* with room for all rows */
	AgFitRows rows;
	double *extra; /* the columns of rows, where they are its own */
} AgFitSlot;

/* A weighted mean of models. */
typedef struct AgFitEnsemble
{
	char name[AG_FIT_NAME]; /* "WeightedEnsemble_L2" */
	int level;              /* one above the models' */
	int fit_order;
	int n_models;    /* the first so many of the fit's */
	double *weights; /* [n_models] in the arena */
	double
		value; /* of the eval metric on rows that weights were not chosen on, plain; NaN: unknown */
	double single_value; /* likewise of the model that is the best on other rows */
	double seconds;
	bool is_cut; /* time ended the choice of its models, or may have */
} AgFitEnsemble;

/* A member as it will be stored. */
typedef struct AgFitMember
{
	AgFittedMember member;
	const void *image; /* NULL: a mean of others */
	size_t n_image;
	bool is_stacked; /* its inputs' predictions are among its features */
	bool is_needed;
} AgFitMember;

typedef struct AgFit
{
	const AgContext *host; /* the caller's */
	AgContext
		ctx; /* its copy: log and progress pass through here, deadline less what storing takes */
	const AgFitJob *job;
	const AgFitOptions *options;
	AgTable *table;
	const AgFitSink *sink;
	AgArena arena;

	AgLabel *label;
	AgPipeline *pipeline;
	AgFitRows rows;
	double *sample; /* [n_sample][n_features] validation rows to time predictions on */
	int64_t n_sample;
	double *weight;     /* [n_rows] with a mean of 1; NULL: all alike */
	double *moment;     /* [n_rows] by time_column; -INFINITY where NULL; NULL: there is none */
	uint8_t *is_tuning; /* [n_rows] rows of the tuning data; NULL: there is none */
	uint32_t *group_of; /* [n_rows] rows that stay together; NULL: each for itself */
	uint32_t n_groups;
	AgValidation validation;
	AgMetric metric, stop_metric;
	int64_t n_rows, n_left_out, n_rare; /* n_rare: of those left out, for their class */
	struct AgFitDevices *devices; /* that were opened, a trial's too; in the fit's own arena */
	double forms_seconds;         /* the most that forms of the rows have taken */
	double booster_seconds;       /* of a booster of moderate size, as measured; 0: it wasn't */
	int *order;             /* [options->n_models] which is fitted when; NULL: as they stand */
	int64_t level_began_ns; /* of the level at work */
	double net_seconds;     /* that its nets have taken so far */
	int n_nets;             /* which were so many */
	double least_share;     /* seconds below which a model isn't worth beginning, as far as known */
	double promised_seconds; /* from the start of the call to the deadline; INFINITY: none */
	double reserve_seconds; /* of those, for the results' way to the catalogue; 0 without a limit */
	int64_t began_ns, began_cpu_ns; /* of the clock, and of the process's */

	bool is_trial;                              /* nothing of it will be stored */
	bool is_pressed;                            /* models were not begun for want of time */
	int n_levels;                               /* to fit: 1 without stacking */
	int level;                                  /* at work, from 1 on */
	AgFitLevel levels[AG_MAX_STACK_LEVELS + 1]; /* [level - 1]; of the first only room */
	AgFitParts parts;                           /* while levels are fitted */
	int n_parts;                                /* that there were; 0: none */
	int n_models;
	AgFitModel *models; /* [n_models] those that were fitted, in order, level by level */
	int n_ensembles;
	AgFitEnsemble ensembles[AG_MAX_STACK_LEVELS + 1];
	const char *
		best_known; /* what is to predict, where models are only trained once more; NULL: scores tell */
	double threshold;   /* from which probability on a row is positive; 0: a half */
	double temperature; /* of the best model's probabilities; 0: as they are */
	double *shifts;     /* [n_quantiles] of its quantiles; NULL: none. In the arena */
	int n_fitted;       /* models and ensembles so far: numbers their order */

	const char *phase; /* of the model in work, for progress */
	int at_model;      /* in the order; -1: before the level's first; n_models: past them all */
	int64_t model_began_ns, model_deadline_ns;
	AgOutlook outlook;            /* of what is done */
	const AgOutlook *refits_left; /* what waits, while models are fitted again; NULL: before that */
	AgFitFailure *failures, *last_failure; /* NULL: none */
	int n_warnings;
	const char **warnings;
} AgFit;

/* Labels of some rows as metrics take them: one of the two arrays. */
AgTruth ag_fit_truth(const AgFit *fit, const double *target, const int32_t *class_of,
					 const double *weight);

/* Seconds since an ag_clock_ns(). */
double ag_fit_seconds(int64_t since_ns);
/* AG_ERR_TIME with its text when the deadline has passed, AG_ERR_CANCELLED when the flag is up. */
AgStatus ag_fit_check(const AgFit *fit);
AgStatus ag_fit_time_error(const AgFit *fit, AgError *err);

/* fit_roles.c: weights and groups. Needs the label. */
AgStatus ag_fit_read_roles(AgFit *fit);
/* fit_monotone.c. Does any model keep directions? Can all be kept? And the features' of one model: NULL, or to be given back. */
bool ag_fit_is_monotone(const AgFit *fit);
AgStatus ag_fit_check_monotone(AgFit *fit);
AgStatus ag_fit_monotone(const AgFit *fit, const AgContext *ctx, const AgModelConfig *config,
						 int8_t **directions);
/* fit_holdout.c. Needs the label; logs the split. */
double ag_holdout_rule(int64_t n_rows);
double ag_holdout_asked(const AgFitOptions *options, int64_t n_rows);
AgStatus ag_fit_hold_out(AgFit *fit);
/* fit_folds.c: deals the rows to folds, as the options ask; then, or else by ag_fit_hold_out, who validates is known. */
int ag_folds_rule(int64_t n_rows);
/* The folds that a fit of so many rows asks for; 0: no bagging. */
int ag_folds_asked(const AgFitOptions *options, int64_t n_rows);
AgStatus ag_fit_split(AgFit *fit);
/* Deals the rows to the validation's folds, of one set: by time, by groups or by class. [n_rows] */
AgStatus ag_fit_deal(AgFit *fit, int set, uint8_t *fold_of);
/* The split of one fold (0..) of a set (0..), into one whose lists have room for every row. */
void ag_fit_split_fold(const AgFit *fit, int set, int fold, AgSplit *split);
/* The number of a split that is all rows: no fold's, of any set. */
int ag_fit_all_rows_number(const AgFit *fit);
void ag_validation_free(const AgContext *ctx, AgValidation *validation);
/* The labels of scored_rows, gathered. */
AgStatus ag_fit_gather_labels(AgFit *fit);
/* fit_time.c: the same two by time. */
AgStatus ag_time_deal(AgFit *fit, uint8_t *fold_of);
AgStatus ag_time_hold_out(AgFit *fit, int64_t n_valid);
/* fit_groups.c: the same two with whole groups. Nothing is said. */
AgStatus ag_groups_deal(AgFit *fit, int set, uint8_t *fold_of);
AgStatus ag_groups_hold_out(AgFit *fit, int64_t n_valid);
/* fit_models.c */
AgStatus ag_fit_models(AgFit *fit);
/*
 * Of the time that is left, what storing the models there are takes beyond what is kept for it: for their bytes, and where the machine
 * has so much else to do that everything takes longer.
 */
int64_t ag_fit_store_ns(const AgFit *fit);
/* Seconds that a booster of moderate size may take on the rows, roughly: as measured, or guessed. */
double ag_fit_booster_seconds(const AgFit *fit);
/* fit_search.c. Decides on the configuration's parameters where it is a trial; may the models above have it, too? */
AgStatus ag_fit_search_begin(AgFit *fit, const AgContext *ctx, const AgModelConfig *config);
bool ag_fit_search_goes_up(const AgFit *fit, const AgModelConfig *config);
/* The points of all trials, as a JSON array. */
void ag_fit_search_write(const AgFit *fit, AgWriter *out);
/* fit_model.c. Some rows' features, to time predictions on: the table may be gone by then. */
AgStatus ag_fit_take_sample(AgFit *fit);
/* What is known of a model before it is fitted: its name. */
void ag_fit_model_begin(AgFit *fit, const AgModelConfig *config, AgFitModel *model);
/* Numbers of a prediction: 1, or the number of classes. */
int ag_fit_width(const AgFit *fit);
/*
 * From its rows to its score. last: nobody needs the table's columns afterwards. AG_ERR_TIME when not even one child was done in
 * time; with fewer of them than planned, fewer rows are covered. model is to be freed whatever the status.
 */
AgStatus ag_fit_model(AgFit *fit, AgContext *ctx, bool last, AgFitModel *model);
/* One training of a model on a split, with all of its CPUs. max_rounds: of all rows; 0: as validation rows say. */
AgStatus ag_fit_train(AgFit *fit, AgContext *ctx, const AgSplit *split, const AgFitModel *model,
					  int max_rounds, AgTrained *trained);
/* The same in a slot, on the rows that it has; nothing but the model comes of it. */
AgStatus ag_fit_train_part(AgFit *fit, const AgFitSlot *slot, AgFitRows *rows,
						   const AgFitModel *model, int job, int max_rounds, AgTrained *trained);
/* The pool of the fit, or (*own, the caller's) a smaller one for a model that wants fewer CPUs. */
AgStatus ag_fit_pool(AgFit *fit, int num_cpus, struct AgPool **own, AgContext *ctx);
void ag_fit_model_free(AgFit *fit, AgFitModel *model);
/* Seconds of what is left for a model while others wait. */
double ag_fit_share(const AgFit *fit, double left, int waiting);
/*
 * fit_order.c. Is time so short that a set of our own is not all fitted as it stands? The configuration that is fitted at-th (0..) on
 * the level at work.
 */
bool ag_fit_is_short(const AgFit *fit);
const AgModelConfig *ag_fit_config(const AgFit *fit, int at);
/* Is it on no level of this fit? Says so of all that are, once; an error when all are. */
bool ag_fit_is_left_out(const AgFit *fit, const AgModelConfig *config);
AgStatus ag_fit_tell_left_out(AgFit *fit);
/* Rows of a split that it is to learn from; 0: all. */
int64_t ag_fit_sample_rows(const AgFit *fit, const AgModelConfig *config);
/* Before a level; before its at-th, which may become another; what is left for that one where it is a net and others wait (else INFINITY); and what it took. */
AgStatus ag_fit_order_begin(AgFit *fit);
void ag_fit_order_next(AgFit *fit, int at);
double ag_fit_net_seconds(AgFit *fit, int at);
void ag_fit_order_took(AgFit *fit, const AgModelConfig *config, double seconds);
/* Is the configuration one for the level at work? */
bool ag_fit_is_for_level(AgFit *fit, const AgModelConfig *config);
/* fit_model.c: what a training on the split's rows learns from; its bins come later. */
void ag_fit_train_data(const AgFit *fit, const AgSplit *split, AgTrainData *data);
/* fit_dry.c: says what would be fitted instead of fitting; need_bytes: of the whole fit. */
AgStatus ag_fit_dry_run(AgFit *fit, int64_t need_bytes);
/* fit_replay.c: what a fit that repeats this one needs to know, as a JSON object. */
void ag_fit_replay_write(const AgFit *fit, AgWriter *out);
/* fit_oof.c: the image AG_OOF_MEMBER; nothing where there are no such predictions, or they aren't wanted. */
AgStatus ag_fit_oof_write(AgFit *fit, AgWriter *out);
/*
 * A bag's child on the forms of the rows that are given, with its predictions checked. Any thread, with a context and rows of its own.
 * job: which of the trainings that run at the same time.
 */
AgStatus ag_fit_train_child(AgFit *fit, const AgContext *ctx, AgFitRows *rows, const AgSplit *split,
							const AgFitModel *model, int child, int job, AgTrained *trained);
/* Did the bag that is repeated go without that child (set × folds + fold)? */
bool ag_fit_is_replayed(const AgFit *fit, const AgFitModel *model, int child);
/* The eval metric, plain. */
AgStatus ag_fit_value(AgFit *fit, const AgContext *ctx, int64_t n, const double *target,
					  const int32_t *class_of, const double *weight, const double *proba,
					  double *value);
/* fit_rounds.c: rounds of one child by those of others. All but those that are NULL have a say; by_default where none has. */
int ag_fit_round_by(const AgTrained *const *children, int n, int by_default);
/* fit_bag.c: trains the children, and scores them on the rows they haven't seen. How many run at a time, CPUs permitting. */
AgStatus ag_fit_bag(AgFit *fit, AgContext *ctx, AgFitModel *model);
/*
 * A bag with all children of its only set: those of the spare set beside them, for which there is room, and its score by both. AG_ERR_TIME:
 * not all of them were done in time.
 */
AgStatus ag_fit_bag_again(AgFit *fit, AgContext *ctx, AgFitModel *model);
/* How many it will have, if time allows; 1 where it is no bag. */
int ag_fit_n_children(const AgFit *fit, const AgFitModel *model);
/*
 * fit_probe.c. How many folds of a bag are to be trained to see whether the others are worth their time; 0: all are, whatever they say.
 * And whether these do: trained[n_folds] with their predictions.
 */
int ag_fit_probe_folds(const AgFit *fit, int n_slots);
AgStatus ag_fit_probe(AgFit *fit, const AgContext *ctx, const AgTrained *trained, int n_folds,
					  bool *helps);
/*
 * fit_out_of_bag.c: of a bag of forests, where "use_child_oof" asks for it and rows are as good as drawn one by one: one child,
 * trained on all rows, and scored on each by the trees that haven't seen it.
 */
bool ag_fit_is_out_of_bag(const AgFit *fit, const AgModelConfig *config);
AgStatus ag_fit_out_of_bag(AgFit *fit, AgContext *ctx, AgFitModel *model);
int ag_folds_at_a_time(const AgFitOptions *options, int64_t n_rows);
/* fit_heldout.c: adds a child's predictions of the scored rows, which are held out from all folds, to proba. */
AgStatus ag_fit_held_predict(AgFit *fit, const AgContext *ctx, const AgTrained *trained,
							 double *proba);
/*
 * fit_early.c: before folds are chosen, how well the label can be predicted and how long that takes, by a small part of the time. fit_spare.c: a
 * second set of folds where time is left; may there be one?
 */
AgStatus ag_fit_early(AgFit *fit);
bool ag_fit_may_spare(const AgFit *fit);
AgStatus ag_fit_spare_set(AgFit *fit);
/* fit_failures.c. The message is copied. As a JSON array, one object a model. */
void ag_fit_failure_add(AgFit *fit, const AgFitModel *model, AgStatus status, const char *message);
void ag_fit_failures_write(const AgFit *fit, AgWriter *out);
/* fit_devices.c: what is to be said once of GPUs; an error when one is missing that is required. */
AgStatus ag_fit_tell_devices(AgFit *fit);
void ag_fit_close_devices(AgFit *fit);
/* A model's part of CPUs and GPUs; opening those; its two lines; and, afterwards, why a training was not on its GPU. */
void ag_fit_plan_model(const AgFit *fit, AgFitModel *model);
AgStatus ag_fit_open_model(AgFit *fit, AgFitModel *model);
void ag_fit_tell_plan(AgFit *fit, const AgFitModel *model);
void ag_fit_tell_fallback(AgFit *fit, const AgFitModel *model);
/* The GPU of a model's job-th training, for its context; NULL: the CPU. And where it really was. */
AgGpu *ag_fit_gpu(const AgFitModel *model, int job);
/* A GPU for what is made before a model's trainings, while none runs; NULL: there is none, or the configuration isn't for one. */
AgGpu *ag_fit_idle_gpu(const AgFit *fit, const AgModelConfig *config);
void ag_fit_keep_gpu(const AgFit *fit, const AgFitModel *model, int job, AgTrained *trained);
/* Where trainings are to run, and where they really ran: "cpu", "cuda:1", "cuda:0, cuda:1". Room for AG_DEVICES_TEXT bytes holds them all. */
#define AG_DEVICES_TEXT (AG_MAX_GPUS * 9 + 8)
void ag_plan_devices(const AgFit *fit, const AgModelPlan *plan, char *text, size_t size);
void ag_trained_devices(const AgTrained *trained, int n, char *text, size_t size);
/* GPUs that the model's trainings really had at the same time. */
double ag_fit_model_gpus(const AgFitModel *model);
/* fit_levels.c. How many levels the options ask for, as far as is known without a trial; 1: no stacking. Needs the folds. */
AgStatus ag_fit_plan_levels(AgFit *fit);
/* The most that a fit of so many rows can have. */
int ag_levels_at_most(const AgFitOptions *options, int64_t n_rows);
/* Level fit->level (2..) made ready: *n_inputs 0 when there is nothing below that it could stand on. */
AgStatus ag_fit_level_begin(AgFit *fit, int *n_inputs);
/* fit_slot.c. Rows of a level in forms of the slot's own, but for the bins that all share; n_cpus: of its pool, 0 for none of its own. */
AgStatus ag_fit_slot_open(AgFit *fit, const AgContext *ctx, int level, int n_cpus, AgFitSlot *slot);
void ag_fit_slot_close(AgFit *fit, int level, AgFitSlot *slot);
/* Makes what trainings of that configuration in slots share. */
AgStatus ag_fit_slot_prepare(AgFit *fit, const AgContext *ctx, int level,
							 const AgModelConfig *config);
/* For a training without the parts in the mask: the columns that it may learn from; fold (-1: none): whose rows validate. */
AgStatus ag_fit_slot_columns(AgFit *fit, int level, int set, uint32_t without, int fold,
							 AgFitSlot *slot);
/* fit_nested.c. How many trainings of one model of the level at work the levels above ask for beside its own; fewer where time is short. */
int ag_fit_nested_at_most(const AgFit *fit);
/*
 * What the level's inputs, in the order of their scores, say of rows that they don't know, in all ways that levels
 * above will ask for. Inputs that there is no time or memory for are taken out.
 */
AgStatus ag_fit_nested_make(AgFit *fit, AgFitLevel *level);
/* Are a level's columns made anew for each fold? */
bool ag_fit_is_nested(const AgFit *fit, int level);
/* The mask of the part that a fold is in. */
uint32_t ag_fit_part_of(const AgFit *fit, int fold);
/* When the last level is done. */
void ag_fit_nested_free(AgFit *fit);
/* fit_trial.c: a part of the time for an honest answer to whether n_levels are better than one; if not, it is set to 1. */
bool ag_fit_wants_trial(const AgFit *fit);
AgStatus ag_fit_trial(AgFit *fit);
/* The forms of the rows that models of a level learn from. */
AgFitRows *ag_fit_rows(AgFit *fit, int level);
/* Which models does that one look at? NULL on the first level. */
const AgFitLevel *ag_fit_inputs(const AgFit *fit, const AgFitModel *model);
/* Marks the model, all it looks at, all those look at. */
void ag_fit_mark(const AgFit *fit, int model, bool *marked);
/* Will the children of a bag be stored? */
bool ag_fit_keeps_children(const AgFit *fit, int model);
void ag_fit_levels_free(AgFit *fit);
/* fit_ensemble.c: over all models so far; named by the level above theirs. */
AgStatus ag_fit_ensemble(AgFit *fit);
/*
 * fit_crossfit.c: what an ensemble of all models so far is worth on rows that its weights were not chosen on, and what the best of
 * the models, picked in the same way.
 */
AgStatus ag_fit_never(const AgFit *fit, const AgContext *ctx, double **never);
AgStatus ag_fit_crossfit(AgFit *fit, const AgContext *ctx, double *value, double *single_value);
/* The ensemble of that name; NULL: there is none. */
const AgFitEnsemble *ag_fit_find_ensemble(const AgFit *fit, const char *name);
/* fit_refit.c. When models have to be done so that there is time to fit them again; which; and fitting them again. */
int64_t ag_fit_models_deadline(const AgFit *fit);
AgRefit ag_fit_refits(const AgFit *fit);
bool ag_fit_retrains(const AgFit *fit);
/* How much depends on each model of what the one of that name combines: weights[n_models]. */
void ag_fit_weights(const AgFit *fit, const char *best, double *weights);
AgStatus ag_fit_refit(AgFit *fit);
/* AG_ERR_TIME or AG_ERR_MEMORY, then with err, of a training that was cut short by it before so many rounds (0: whatever they come to). */
AgStatus ag_fit_check_whole(const AgTrained *trained, int rounds, AgError *err);
/* Seconds that one training of the model on all rows takes, with so many rounds (0: as its children had), from what its children took. */
double ag_fit_refit_seconds(const AgFit *fit, const AgFitModel *model, int rounds);
/* fit_infer.c: marks the models that don't keep the infer_limit, alone or together; AG_ERR_OPTION when none does. */
AgStatus ag_fit_drop_slow(AgFit *fit);
/* How many of a level's inputs, the best first, leave time for what looks at them. */
int ag_fit_quick_inputs(const AgFit *fit, const int *inputs, int n);
/* fit_calibrate.c: threshold, temperature and quantiles, where the options say so. */
AgStatus ag_fit_calibrate(AgFit *fit);
/* fit_members.c: in the order in which they are stored, in the fit's arena; those that the options keep. */
AgStatus ag_fit_members(AgFit *fit, AgFitMember **members, int *n);
/* fit_report.c: everything to the sink. */
AgStatus ag_fit_report(AgFit *fit);
/* The hyperparameters as JSON, in the fit's arena; NULL when out of memory. */
char *ag_fit_params_json(AgFit *fit, const AgFitModel *model);
/* Likewise a training's history. */
char *ag_fit_history_json(AgFit *fit, const AgHistory *history);
/* fit_plan.c: the executed plan as JSON, likewise. */
char *ag_fit_plan_json(AgFit *fit);
/* The model with the best score, and its plain metric value. */
const char *ag_fit_best_model(const AgFit *fit, double *value);
/* The name of the member to predict with: that model, or as it was fitted again; and the model's value. */
const char *ag_fit_best(AgFit *fit, double *value);

#endif
