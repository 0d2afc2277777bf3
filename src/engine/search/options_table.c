/*
 * options_table.c - every option of ag_fit, one row each: what is documented is what is parsed.
 *
 * A row whose feature comes with a later release has supported = false: giving it is an error, unless the value asks for
 * nothing (options.c).
 */
#include "engine/search/options.h"

#define METRICS                                                                                    \
	"classes: accuracy, balanced_accuracy, mcc, log_loss, pac, quadratic_kappa, and of f1, "       \
	"precision and recall the means _macro, _micro, _weighted; binary: roc_auc, "                  \
	"average_precision, f1, precision, recall; multiclass: roc_auc_ovr (_macro, _micro, "          \
	"_weighted), roc_auc_ovo (_macro, _weighted); regression: root_mean_squared_error, "           \
	"mean_squared_error, mean_absolute_error, median_absolute_error, "                             \
	"mean_absolute_percentage_error, symmetric_mean_absolute_percentage_error, r2, pearsonr, "     \
	"spearmanr; quantile: pinball_loss"

static const AgOptionSpec specs[] = {
	/* what and how long */
	{"name", "text", "1 to 63 bytes, no @ or /", "null", true,
	 "Name of the predictor; null: <table>_<label> in lower case, required when data is a query"},
	{"presets", "text or array of text",
	 "medium, good, high, best, extreme, interpretable, ignore_text, ignore_text_ngrams, "
	 "optimize_for_deployment, and AutoGluon's aliases",
	 "null", true,
	 "Bundles of options; explicit options win over them. null: those of the setting "
	 "ag_pg.default_presets, without any medium"},
	{"time_limit", "number", "greater than 0", "null", true,
	 "Seconds the whole call may take; null: the setting ag_pg.default_time_limit"},
	{"problem_type", "text", "binary, multiclass, regression, quantile", "null", true,
	 "What kind of value the label is; null: inferred from its type and values"},
	{"eval_metric", "text", METRICS, "null", true,
	 "What is optimised; null: accuracy for classes, root_mean_squared_error for numbers, "
	 "pinball_loss for quantiles"},

	/* models */
	{"hyperparameters", "text or object",
	 "default, light, very_light, toy, zeroshot, extreme, interpretable, or model families with "
	 "their "
	 "parameters",
	 "\"default\"", true,
	 "Models to fit: {\"GBM\": {parameters} or [{...}, {...}], \"AG_ARGS_FIT\": {...}}"},
	{"fit_weighted_ensemble", "boolean", "true or false", "true", true,
	 "Combine the models to a weighted mean"},
	{"ag_args", "object",
	 "name, name_main, name_prefix, name_suffix, priority, problem_types, valid_base, "
	 "valid_stacker",
	 "{}", true,
	 "What models are called, and when their turn comes: {\"name_suffix\": \"_slow\", "
	 "\"priority\": 10}, the higher the earlier; a model's own ag_args wins over it"},
	{"ag_args_fit", "object",
	 "num_gpus, num_cpus, max_time_limit, early_stop, use_fp16, prep_params", "{}", true,
	 "Arguments of every model's fit; a model's own ag_args_fit wins over it. early_stop: rounds "
	 "of boosters and epochs of nets to wait for a better score, null: all; other families have "
	 "none"},
	{"ag_args_ensemble", "object",
	 "fold_fitting_strategy, num_folds_parallel, save_bag_folds, use_child_oof, ag_args_fit", "{}",
	 true,
	 "How the folds of a bagged model are fitted; ag_args_fit: num_gpus and num_cpus that they "
	 "have together; use_child_oof: one forest that draws its rows, or one KNN, instead of one "
	 "a fold, validated by what it says of rows that it leaves out"},
	{"included_model_types", "text or array of text", "model families", "null", true,
	 "Families to fit of those in hyperparameters; null: all"},
	{"excluded_model_types", "text or array of text", "model families", "[]", true,
	 "Families to leave out of hyperparameters"},
	{"hyperparameter_tune_kwargs", "text or object",
	 "auto, random, bayes, or {\"num_trials\": 1 to 200, \"searcher\": one of those, "
	 "\"scheduler\": \"local\"}",
	 "null", true,
	 "Search over hyperparameters: of each model the spaces that it is given, as {\"space\": "
	 "\"real\", \"lower\": 0.01, \"upper\": 0.3, \"log\": true}, or else its family's; auto is "
	 "bayes"},
	{"num_trials", "integer", "1 to 200", "10", true,
	 "Trials of each model that is searched over; they are members GBM/T1, GBM/T2, ..."},

	/* resources */
	{"num_gpus", "number or text", "at least 0, or auto", "null", true,
	 "GPUs for the whole fit, shared by its models; fractions are allowed; auto: as many as can be "
	 "used, and none is no fault; null: as its models ask"},
	{"num_cpus", "integer or text", "at least 1, or auto", "\"auto\"", true,
	 "CPUs for the whole fit; auto: all that ag_pg.num_cpus allows"},
	{"memory_limit", "number or text", "greater than 0, or auto", "\"auto\"", true,
	 "GB for this fit; can lower ag_pg.memory_limit, not raise it"},

	/* bagging and stacking */
	{"num_bag_folds", "integer", "0, or 2 to 100", "0", true,
	 "Folds of a bagged model: so many models, each trained without one fold and scored on it; 0: "
	 "none"},
	{"num_bag_sets", "integer", "1 to 20", "1", true,
	 "Repeats of the folds, each with the rows dealt anew; as far as time allows"},
	{"num_stack_levels", "integer", "0 to 5", "null", true,
	 "Levels of bags above the first, which learn from the predictions of the level below, too; "
	 "null: 0, or what auto_stack chooses"},
	{"auto_stack", "boolean", "true or false", "false", true,
	 "Choose num_bag_folds by the number of rows: 8, or 5 to 7 for less than 80; and "
	 "num_stack_levels: 1 of 750 rows or more with 300 s or more, for two classes only with "
	 "dynamic_stacking"},
	{"dynamic_stacking", "boolean or text", "true, false or auto", "false", true,
	 "true: try first, on rows held back, whether stacking helps; auto: levels where there are 300 "
	 "s "
	 "or more, and their scores tell"},
	{"ds_args", "object", "detection_time_frac, holdout_frac", "{}", true,
	 "Shares of the time and of the rows that the trial of dynamic_stacking takes: 0.25 and 0.111"},

	/* validation data */
	{"holdout_frac", "number", "greater than 0, less than 1", "null", true,
	 "Fraction of the rows held out for validation; null: 0.2 to 0.01 by the number of rows, twice "
	 "that (0.2 at most) for a search"},
	{"tuning_data", "text", "a table or query", "null", true,
	 "Validation rows of your own, with the columns of data; none of data is held out then"},
	{"use_bag_holdout", "boolean", "true or false", "null", true,
	 "Score bags and choose the ensemble on rows held out from all folds (holdout_frac, the latest "
	 "by time_column, or tuning_data), not on the rows that they are trained on; without stacking; "
	 "null: where auto_stack chooses the folds, of 1,000,000 rows and more"},

	/* deployment */
	{"refit_full", "boolean or text", "true, false, all, best", "false", true,
	 "Fit models again on all rows, as X_FULL, with the rounds that validation found"},
	{"set_best_to_refit_full", "boolean", "true or false", "false", true,
	 "Predict with the model that was fitted again"},
	{"retrain_full", "boolean", "true or false", "true", true,
	 "Without bags: train what the best model combines once more, under the same names, with the "
	 "rows "
	 "held out and the rounds that they found; scores stay those from before. Tuning data are "
	 "never "
	 "trained on"},
	{"keep_only_best", "boolean", "true or false", "false", true,
	 "Store only the best model and what it combines"},
	{"save_space", "boolean", "true or false", "false", true,
	 "Store only what prediction needs: no predictions of validation rows (ag_predict_oof), no "
	 "learning curves"},
	{"calibrate", "boolean or text", "true, false or auto", "\"auto\"", true,
	 "Bring probabilities to the right size by a temperature; auto: when the eval_metric looks at "
	 "them, from 3,000 validation rows on, or 500 of more than two classes. Move quantiles until "
	 "as "
	 "many rows lie below each as it says; auto: from 1,000 validation rows on"},
	{"calibrate_decision_threshold", "boolean or text", "true, false or auto", "\"auto\"", true,
	 "Choose the probability above which a row is positive by the eval_metric; auto: from 50 "
	 "validation rows on, 10,000 for accuracy, not for precision and recall"},
	{"infer_limit", "number", "greater than 0", "null", true,
	 "Seconds that the models may take to predict one row, on one CPU: slower ones are not used"},

	/* roles of the data */
	{"sample_weight", "text", "a column, or balance_weight", "null", true,
	 "How much each row counts in training: a column, which is no feature then; balance_weight: "
	 "all classes alike"},
	{"weight_evaluation", "boolean", "true or false", "false", true,
	 "Weights count in validation scores, in early stopping and in what the ensemble is chosen by, "
	 "too; and in evaluations, whose data must have that column then"},
	{"groups", "text", "a column", "null", true,
	 "Rows of one value of that column, which is no feature then, are validated together"},
	{"time_column", "text", "a column", "null", true,
	 "Validate on the latest rows by that column, a date, time or number: those held out, or with "
	 "bags folds that each validate on the rows right after those they train on"},
	{"monotone_constraints", "object", "column: -1, 0 or 1", "{}", true,
	 "Numbers with which predictions may not fall (1) or rise (-1); only families that keep them "
	 "are "
	 "fitted"},
	{"quantile_levels", "array of number", "1 to 100 different ones between 0 and 1",
	 "[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]", true,
	 "Levels to predict with problem_type quantile; predictions are in this order"},
	{"positive_class", "text, number or boolean", "a value of the label", "null", true,
	 "Class that counts as positive in a binary problem; null: true, 1, or the second in order"},
	{"ignored_columns", "text or array of text", "columns of data", "[]", true,
	 "Columns that are no features"},
	{"label_count_threshold", "integer", "at least 1", "null", true,
	 "Of more than two classes, those with fewer rows are left out; null: none is"},
	{"_feature_generator_kwargs", "object",
	 "enable_text_special_features, enable_text_ngram_features: true or false; "
	 "text_ngram_params: {\"max_features\": 1 to 10000}",
	 "{}", true,
	 "What is read off columns of text: statistics of their characters, and which words they have "
	 "in common"},

	/* the story and its repetition */
	{"verbosity", "integer", "0 to 4", "2", true,
	 "0 silent, 1 the result, 2 the story, 3 the resources of every model too, 4 a trace"},
	{"random_state", "integer", "0 to 9223372036854775807", "0", true,
	 "Seed: the same data, options and seed give the same predictor"},
	{"replay", "text", "name@version", "null", true,
	 "Repeat that version's executed plan exactly: its options, and of its models those that were "
	 "fitted, as far as they were; beside it only name, verbosity and resources can be given; one "
	 "with tuning_data takes being its owner"},
	{"dry_run", "boolean", "true or false", "false", true,
	 "Fit and store nothing: ag_fit reads the rows, says what would be fitted, on what device, "
	 "with "
	 "what memory and time, and gives that as JSON text"},
	{"time_zone", "text", "a time zone", "null", true,
	 "Zone in which parts of a timestamptz are taken; null: the session's"},
};

const AgOptionSpec *
ag_option_specs(int *n)
{
	*n = (int) (sizeof specs / sizeof specs[0]);
	return specs;
}

AgStatus
ag_options_check_metric(AgMetric metric, AgProblem problem, AgError *err)
{
	if (ag_metric_fits(metric, problem))
		return AG_OK;
	ag_error_set(err, AG_ERR_OPTION, "metric \"%s\" does not fit a %s problem",
				 ag_metric_name(metric), ag_problem_name(problem));
	ag_error_hint(err,
				  "Choose another \"eval_metric\" (the default here is \"%s\"), or set "
				  "\"problem_type\".",
				  ag_metric_name(ag_metric_default(problem)));
	return AG_ERR_OPTION;
}
