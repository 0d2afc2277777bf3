/*
 * options_models.h - the part of the options that says which models to fit. Private to options*.c.
 */
#ifndef AG_OPTIONS_MODELS_H
#define AG_OPTIONS_MODELS_H

#include "engine/base/nearest.h"
#include "engine/search/options_tree.h"

/* What "ag_args" says, as far as given; empty texts: nothing. */
typedef struct AgNaming
{
	char name[48], main[48], prefix[48], suffix[48];
	double priority; /* NAN: not said */
	bool never_stacks, never_base;
	uint32_t problems;
} AgNaming;

/* The arguments of a model's fit that are understood (ag_args_fit and "ag." keys), as far as given. */
typedef struct AgFitArgs
{
	AgResourcesAsked asked;
	AgResourcesAsked bag;
	double max_time_limit; /* INFINITY: none */
	int early_stop;        /* patience; -1 adaptive, 0 off */
	bool use_fp16;
	AgPrepAsked prep;
	AgNaming naming;
} AgFitArgs;

void ag_fit_args_default(AgFitArgs *args);
/* Reads an ag_args_fit object over what args holds. */
AgStatus ag_fit_args_parse(const AgOptionNode *node, AgFitArgs *args, AgError *err);
/* One argument by its name; *known says whether there is one of that name. */
AgStatus ag_fit_arg_parse(const AgOptionNode *node, const char *name, AgFitArgs *args, bool *known,
						  AgError *err);
/* Reads an ag_args_ensemble object into the options, and what a bag may have into args->bag. */
AgStatus ag_trial_args_parse(const AgOptionNode *node, AgFitOptions *options, AgError *err);
AgStatus ag_ensemble_args_parse(const AgOptionNode *node, AgFitOptions *options, AgFitArgs *args,
								AgError *err);
/* options_resources.c: "ag_args_fit" inside ag_args_ensemble, over what *bag holds. */
AgStatus ag_bag_args_parse(const AgOptionNode *node, AgResourcesAsked *bag, AgError *err);
/* Of the configurations, forests that draw their rows may be asked for what they say of those that a tree hasn't seen. */
void ag_models_ask_oob(AgFitOptions *options);
/* The same of a model's own ag_args_ensemble, in which nothing else is understood. */
AgStatus ag_model_ensemble_parse(const AgOptionNode *node, AgResourcesAsked *bag, AgError *err);
/* Does any training, or bag, ask for more than what it is a part of? CPUs that nobody speaks of are the fit's. */
AgStatus ag_resources_merge(AgFitOptions *options, AgError *err);
/* The levels of an array; and whether they go with the problem type, which has some if none are given. */
AgStatus ag_quantiles_parse(const AgOptionNode *node, AgFitOptions *options, AgError *err);
AgStatus ag_quantiles_check(AgFitOptions *options, AgError *err);
/* {"column": -1, 0 or 1}; *monotone stays NULL when nothing is asked for. And whether it goes with the other options. */
AgStatus ag_monotone_parse(const AgOptionNode *node, AgArena *arena, AgMonotone **monotone,
						   AgError *err);
AgStatus ag_monotone_check(const AgFitOptions *options, AgError *err);
/* Takes the configurations out that can't do what is asked for; AG_ERR_UNSUPPORTED with the reason when none is left. */
AgStatus ag_models_leave_out(AgFitOptions *options, AgError *err);
/* An argument that nobody knows, by its label; nearest: the ones there are, offered. */
AgStatus ag_option_argument_unknown(const AgOptionNode *node, const AgNearest *nearest,
									AgError *err);
/* AG_ERR_UNSUPPORTED: <what> "<name>" is not supported yet. */
AgStatus ag_option_unsupported(const char *what, const char *name, AgError *err);
/* "auto" or a number; shared with the options num_gpus and num_cpus. */
AgStatus ag_option_num_gpus(const AgOptionNode *node, double *num_gpus, AgError *err);
AgStatus ag_option_num_cpus(const AgOptionNode *node, int *num_cpus, AgError *err);

/*
 * Fills options->models from the node of "hyperparameters" (NULL: the list of that name, or the default one) and checks each model's resources
 * against options->total. included and excluded: nodes of included_model_types and excluded_model_types, or NULL.
 */
AgStatus ag_models_parse(const AgOptionNode *hyperparameters, const char *list,
						 const AgOptionNode *included, const AgOptionNode *excluded,
						 const AgFitArgs *args, AgFitOptions *options, AgError *err);

/*
 * options_search.c: the options "hyperparameter_tune_kwargs" and "num_trials"; is a parameter's value a search space, and which;
 * the model's space where none is given; and, when all models are known, trials in place of those that are searched over.
 */
AgStatus ag_search_asked_parse(const AgOptionNode *node, AgFitOptions *options, AgError *err);
AgStatus ag_search_num_trials_parse(const AgOptionNode *node, AgFitOptions *options, AgError *err);
bool ag_search_is_space(const AgOptionNode *node);
AgStatus ag_search_space_parse(const AgOptionNode *node, AgFitOptions *options,
							   AgModelConfig *model, AgError *err);
AgStatus ag_search_space_default(const AgOptionNode *node, AgFitOptions *options,
								 AgModelConfig *model, AgError *err);
AgStatus ag_search_expand(AgFitOptions *options, AgError *err);

/*
 * options_namesake.c: a parameter that the family's namesake in AutoGluon has and ours hasn't, or that says "auto" where ours has a number. *done: it asks for what
 * there is. AG_ERR_UNSUPPORTED with its name where it asks for something else.
 */
AgStatus ag_namesake_parse(const AgOptionNode *node, const AgFamily *family, bool *done,
						   AgError *err);
/* "early_stop", once it is known of a model; its own patience wins. node: its entry, or NULL. AG_ERR_OPTION where it alone is asked and knows no rounds. */
AgStatus ag_early_stop_settle(const AgOptionNode *node, const AgFitArgs *common,
							  AgModelConfig *model, AgError *err);

/* options_features.c: "prep_params" of a model's fit. */
AgStatus ag_prep_params_parse(const AgOptionNode *node, AgPrepAsked *prep, AgError *err);
/*
 * options_naming.c: reads an "ag_args" object over what naming holds; gives a model, the last of options' so far, its name, which no other has, and the rest
 * of it; and puts models of an object, whose order says nothing, into the order in which they are fitted.
 */
void ag_naming_default(AgNaming *naming);
AgStatus ag_naming_parse(const AgOptionNode *node, AgNaming *naming, AgError *err);
AgStatus ag_naming_apply(const AgFitOptions *options, const AgNaming *naming, AgModelConfig *model,
						 AgError *err);
void ag_naming_order(AgFitOptions *options);

/* "_feature_generator_kwargs" (options_features.c). */
AgStatus ag_feature_args_parse(const AgOptionNode *node, AgFeatureParams *params, AgError *err);

#endif
