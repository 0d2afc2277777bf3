/*
 * fit_state.h - a fit under way: what its parts (fit*.c) hand to each other. Private to them.
 */
#ifndef AG_FIT_STATE_H
#define AG_FIT_STATE_H

#include "engine/base/bytes.h"
#include "engine/data/pipeline.h"
#include "engine/search/families.h"
#include "engine/search/fit.h"

#define AG_FIT_MIN_HOLDOUT_ROWS 10  /* fewer rows are all trained on */
#define AG_FIT_ROUNDS_UNWATCHED 100 /* rounds without validation rows, unless the user says */

/* Which rows train and which validate; both ascend. */
typedef struct AgHoldout
{
	double fraction; /* as asked or by the rule; 0: none held out */
	uint32_t *train_rows, *valid_rows;
	int64_t n_train, n_valid;
	/* the labels of valid_rows; one of the two */
	double *target;
	int32_t *class_of;
} AgHoldout;

/* One configuration that was fitted. */
typedef struct AgFitModel
{
	const AgModelConfig *config;
	AgTrained trained; /* valid_proba: NULL without validation rows */
	double value;      /* of the eval metric, plain; NaN: unknown */
	double fit_seconds, predict_seconds;
	int num_cpus;
	double weight; /* in the ensemble */
} AgFitModel;

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
	AgHoldout holdout;
	AgMetric metric, stop_metric;
	int64_t n_rows, n_left_out;
	double promised_seconds; /* from the start of the call to the deadline; INFINITY: none */

	int n_models;
	AgFitModel *models; /* [n_models] those that were fitted, in order */
	bool has_ensemble;
	double ensemble_value, ensemble_seconds;

	const char *phase; /* of the model in work, for progress */
	int n_warnings;
	const char **warnings;
} AgFit;

/* Seconds since an ag_clock_ns(). */
double ag_fit_seconds(int64_t since_ns);
/* AG_ERR_TIME with its text when the deadline has passed, AG_ERR_CANCELLED when the flag is up. */
AgStatus ag_fit_check(const AgFit *fit);
AgStatus ag_fit_time_error(const AgFit *fit, AgError *err);

/* fit_holdout.c. Needs the label; logs the split. */
double ag_holdout_rule(int64_t n_rows);
AgStatus ag_fit_split(AgFit *fit);
/* fit_models.c */
AgStatus ag_fit_models(AgFit *fit);
/* fit_ensemble.c */
AgStatus ag_fit_ensemble(AgFit *fit);
/* fit_report.c: everything to the sink. */
AgStatus ag_fit_report(AgFit *fit);
/* The hyperparameters as JSON, in the fit's arena; NULL when out of memory. */
char *ag_fit_params_json(AgFit *fit, const AgModelConfig *config);
/* fit_plan.c: the executed plan as JSON, likewise. */
char *ag_fit_plan_json(AgFit *fit);
/* The name of the model to predict with, and its plain metric value. */
const char *ag_fit_best(const AgFit *fit, double *value);

#endif
