/*
 * evaluate.h - models run over a table or query that has the label, and scored.
 */
#ifndef AG_EVALUATE_H
#define AG_EVALUATE_H

#include "postgres.h"

#include "pg/cache.h"
#include "pg/catalog.h"

/* Labels and predictions of all rows that have a label. Lives in the memory context current at ag_evaluate_run. */
typedef struct AgEvaluation
{
	int64 n_rows;
	double *target;  /* regression */
	double *weight;  /* in metrics; NULL: all alike */
	int32 *class_of; /* classes; -1: one that training never saw */
	int n_models;
	double **out;             /* [n_models][n_rows × outputs] */
	double *seconds;          /* [n_models] predicting all rows */
	const AgOpenModel *model; /* the first */
	double *features;         /* ag_evaluate_sample: [n_rows][ag_predictor_features] */
	int64 n_seen;             /* rows that had a label */
} AgEvaluation;

/*
 * By what rows are weighted in metrics: NULL where they aren't, else a column of the data, or AG_BALANCE_WEIGHT. As the fit was told
 * ("sample_weight" and "weight_evaluation").
 */
extern const char *ag_evaluate_weight(const AgPredictorRow *row);

/*
 * Reads data (a table's name or a query) as the caller, within its snapshot, and predicts every row with each of the models,
 * members of one predictor. weight: of ag_evaluate_weight; NULL: none is wanted. Rows whose label is NULL are left out, classes that training never saw are named, both with a NOTICE.
 * ERROR where no row has a label, or where a regression's label is no number.
 */
extern AgEvaluation *ag_evaluate_run(const char *data, const char *name, const char *label,
									 const char *weight, const AgOpenModel *const *models,
									 int n_models);

/*
 * Reads likewise, but keeps at most max_rows rows, every row as likely, for the caller to predict: labels and encoded features,
 * no predictions (n_models is 1, its `out` has room). The same seed draws the same places in the order of the rows.
 */
extern AgEvaluation *ag_evaluate_sample(const char *data, const char *name, const char *label,
										const char *weight, const AgOpenModel *model,
										int64 max_rows, uint64 seed);

/*
 * The NOTICE that these rows are those the model was fitted on, with its score on rows it hadn't seen, where the data is called as it was at the fit and the
 * caller may know that.
 */
extern void ag_evaluate_warn(const AgPredictorRow *row, const char *data);

/* The plain value of a metric for one of the models; NaN where it is undefined on these rows. */
extern double ag_evaluate_metric(const AgEvaluation *evaluation, int model, AgMetric metric);

#endif
