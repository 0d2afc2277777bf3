/*
 * ensemble.h - weights of a weighted mean of models' predictions, chosen greedily on validation rows.
 */
#ifndef AG_ENSEMBLE_H
#define AG_ENSEMBLE_H

#include "engine/base/context.h"
#include "engine/data/label.h"
#include "engine/model/metric.h"

#define AG_ENSEMBLE_STEPS 25 /* the usual n_steps */

/*
 * predictions[n_candidates][n_rows][ag_truth_outputs] as ag_metric_value takes them. weights[n_candidates] gets shares of the
 * steps taken (they sum to 1, unused ones are exactly 0), *value the plain metric of that mean on the same rows.
 *
 * A candidate with a prediction that isn't finite is never chosen; AG_ERR_DATA when there is no other. Where the metric is
 * undefined on these rows the first candidate gets all the weight, and *value is NaN. At the
 * deadline it stops with the best so far, having tried one candidate at least.
 */
AgStatus ag_ensemble_select(const AgContext *ctx, AgMetric metric, const AgTruth *truth,
							int64_t n_rows, int n_candidates, const double *const *predictions,
							int n_steps, double *weights, double *value);

#endif
