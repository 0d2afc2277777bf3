/* options.c - the options of ag_fit: every one accepted, refused and explained. */
#include "engine/model/gbm.h"
#include "unit/option_lines.h"

static const AgBoostParams *
gbm(const AgFitOptions *options, int i)
{
	AG_REQUIRE(options->models[i].family->id == AG_FAMILY_GBM);
	return options->models[i].params;
}

static void
defaults(AgMem *mem)
{
	AgFitOptions *o = accepted(mem, "");

	AG_CHECK(o->name == NULL && isnan(o->time_limit) && o->problem == AG_PROBLEM_AUTO &&
			 o->eval_metric == AG_METRIC_NONE && o->verbosity == 2 && o->random_state == 0 &&
			 isnan(o->holdout_frac) && isnan(o->memory_limit_gb) && o->positive_class == NULL &&
			 o->time_zone == NULL && o->n_ignored == 0);
	AG_CHECK(o->total.num_gpus == -1 && o->total.num_cpus == -1);
	AG_REQUIRE(o->n_models == 12);
	AG_CHECK_STR(o->models[0].name, "GBM");
	AG_CHECK_STR(o->models[1].name, "LR");
	AG_CHECK_STR(o->models[2].name, "GBM_2");
	AG_CHECK_STR(o->models[3].name, "NN_TORCH");
	AG_CHECK_STR(o->models[4].name, "XT");
	AG_CHECK_STR(o->models[5].name, "CAT");
	AG_CHECK_STR(o->models[6].name, "GBM_3");
	AG_CHECK_STR(o->models[7].name, "NN_TORCH_2");
	AG_CHECK_STR(o->models[8].name, "FASTAI");
	AG_CHECK_STR(o->models[9].name, "GBM_4");
	AG_CHECK_STR(o->models[10].name, "RF");
	AG_CHECK_STR(o->models[11].name, "XGB");
	AG_CHECK(!gbm(o, 0)->extra_trees && gbm(o, 9)->extra_trees);
	AG_CHECK_EQ(gbm(o, 2)->num_leaves, 8);
	AG_CHECK(gbm(o, 0)->num_boost_round == 10000 && gbm(o, 0)->learning_rate == 0.05);
	AG_CHECK(gbm(o, 6)->learning_rate == 0.03 && gbm(o, 6)->num_leaves == 96 &&
			 gbm(o, 6)->feature_fraction == 0.7 && gbm(o, 6)->min_data_in_leaf == 3);
	AG_CHECK(o->models[0].early_stop == -1 && isinf(o->models[0].max_time_limit));
	AG_CHECK(o->models[0].asked.num_gpus == -1 && o->models[0].asked.num_cpus == -1);
	AG_CHECK_STR(o->models[5].params_json, "{\"max_ctr_complexity\": 2}");
	ag_options_free(o);
}

static void
everything(AgMem *mem)
{
	AgFitOptions *o =
		accepted(mem, "/name s m\xc3\xbcll\n"
					  "/presets [ 1\n/presets/0 s medium_quality\n"
					  "/time_limit 0 12.5\n"
					  "/problem_type s binary\n"
					  "/eval_metric s nll\n"
					  "/num_gpus 0 1.5\n"
					  "/num_cpus 0 4\n"
					  "/memory_limit 0 0.5\n"
					  "/holdout_frac 0 0.25\n"
					  "/positive_class b true\n"
					  "/ignored_columns [ 2\n/ignored_columns/0 s a\n/ignored_columns/1 s B b\n"
					  "/verbosity 0 4\n"
					  "/random_state 0 9223372036854775807\n"
					  "/time_zone s Europe/Berlin\n"
					  "/ag_args_fit { 2\n"
					  "/ag_args_fit/num_gpus 0 0.5\n"
					  "/ag_args_fit/num_cpus 0 2\n"
					  "/hyperparameters { 2\n"
					  "/hyperparameters/AG_ARGS_FIT { 1\n"
					  "/hyperparameters/AG_ARGS_FIT/early_stop 0 7\n"
					  "/hyperparameters/GBM [ 3\n"
					  "/hyperparameters/GBM/0 { 0\n"
					  "/hyperparameters/GBM/1 { 4\n"
					  "/hyperparameters/GBM/1/num_leaves 0 7\n"
					  "/hyperparameters/GBM/1/ag_args_fit { 2\n"
					  "/hyperparameters/GBM/1/ag_args_fit/num_cpus 0 3\n"
					  "/hyperparameters/GBM/1/ag_args_fit/max_time_limit 0 9\n"
					  "/hyperparameters/GBM/1/ag.num_cpus 0 1\n"
					  "/hyperparameters/GBM/2 { 2\n"
					  "/hyperparameters/GBM/2/ag.early_stop n\n"
					  "/hyperparameters/GBM/2/extra_trees b true");

	AG_CHECK_STR(o->name, "m\xc3\xbcll");
	AG_CHECK(o->time_limit == 12.5 && o->problem == AG_PROBLEM_BINARY &&
			 o->eval_metric == AG_METRIC_LOG_LOSS && o->total.num_gpus == 1.5 &&
			 o->total.num_cpus == 4 && o->memory_limit_gb == 0.5 && o->holdout_frac == 0.25 &&
			 o->verbosity == 4 && o->random_state == INT64_MAX);
	AG_CHECK_STR(o->positive_class, "true");
	AG_CHECK_STR(o->time_zone, "Europe/Berlin");
	AG_REQUIRE(o->n_ignored == 2);
	AG_CHECK_STR(o->ignored_columns[1], "B b");
	AG_REQUIRE(o->n_models == 3);
	AG_CHECK(o->models[0].asked.num_gpus == 0.5 && o->models[0].asked.num_cpus == 2 &&
			 o->models[0].early_stop == 7);
	AG_CHECK(o->models[1].asked.num_cpus == 1 && o->models[1].max_time_limit == 9 &&
			 gbm(o, 1)->num_leaves == 7 && o->models[1].early_stop == 7);
	AG_CHECK(o->models[2].early_stop == 0 && gbm(o, 2)->extra_trees);
	AG_CHECK_STR(o->models[1].params_json,
				 "{\"num_leaves\": 7, \"ag_args_fit\": {\"num_cpus\": 3, \"max_time_limit\": 9}, "
				 "\"ag.num_cpus\": 1}");
	ag_options_free(o);
}

/* Levels are kept ascending, with the order that they were asked for in. */
static void
quantile_levels(AgMem *mem)
{
	AgFitOptions *o;

	o = accepted(mem, "/problem_type s quantile");
	AG_REQUIRE(o != NULL && o->n_quantiles == 9);
	for (int i = 0; i < 9; i++)
	{
		AG_CHECK_NEAR(o->quantiles[i], 0.1 * (i + 1), 1e-15);
		AG_CHECK_EQ(o->quantile_order[i], i);
	}
	AG_CHECK(o->n_left_out > 0);
	for (int i = 0; i < o->n_models; i++)
		AG_CHECK(o->models[i].family->no_quantiles == NULL);
	ag_options_free(o);
	o = accepted(mem, "/problem_type s quantile\n/quantile_levels [ 3\n/quantile_levels/0 0 0.9\n"
					  "/quantile_levels/1 0 0.05\n/quantile_levels/2 0 0.5");
	AG_REQUIRE(o != NULL && o->n_quantiles == 3);
	AG_CHECK(o->quantiles[0] == 0.05 && o->quantiles[1] == 0.5 && o->quantiles[2] == 0.9);
	AG_CHECK(o->quantile_order[0] == 2 && o->quantile_order[1] == 0 && o->quantile_order[2] == 1);
	ag_options_free(o);
	/* what is on unless said otherwise can't be turned off without a word */
	refused(mem, "/ag_args_fit { 1\n/ag_args_fit/drop_unique b false", AG_ERR_UNSUPPORTED,
			"argument of \"ag_args_fit\" \"drop_unique\" is not supported yet", "");
	refused(mem, "/quantile_levels [ 1\n/quantile_levels/0 0 0.5", AG_ERR_OPTION,
			"option \"quantile_levels\" needs \"problem_type\": \"quantile\"", "");
	refused(mem,
			"/problem_type s quantile\n/quantile_levels [ 2\n/quantile_levels/0 0 "
			"0.5\n/quantile_levels/1 0 0.5",
			AG_ERR_OPTION, "option \"quantile_levels\" has the level 0.5 twice", "");
	refused(mem, "/problem_type s quantile\n/quantile_levels [ 1\n/quantile_levels/0 0 1",
			AG_ERR_OPTION, "option \"quantile_levels.0\" takes a number between 0 and 1, not 1",
			"");
	refused(mem, "/problem_type s quantile\n/eval_metric s rmse", AG_ERR_OPTION,
			"metric \"root_mean_squared_error\" does not fit a quantile problem",
			"Choose another \"eval_metric\" (the default here is \"pinball_loss\"), or set "
			"\"problem_type\".");
}

/* Parameters of losses go with their loss only. */
static void
losses(AgMem *mem)
{
	refused(mem, "/hyperparameters { 1\n/hyperparameters/GBM { 1\n/hyperparameters/GBM/fair_c 0 2",
			AG_ERR_OPTION, "parameter \"fair_c\" of family GBM needs \"objective\" \"fair\"", "");
	refused(
		mem, "/hyperparameters { 1\n/hyperparameters/XGB { 1\n/hyperparameters/XGB/huber_slope 0 2",
		AG_ERR_OPTION,
		"parameter \"huber_slope\" of family XGB needs \"objective\" \"reg:pseudohubererror\"", "");
	refused(
		mem,
		"/hyperparameters { 1\n/hyperparameters/CAT { 1\n/hyperparameters/CAT/loss_function s "
		"Huber",
		AG_ERR_OPTION,
		"parameter \"loss_function\" of family CAT takes \"Huber:delta=\" with a number greater "
		"than 0",
		"");
	refused(
		mem,
		"/hyperparameters { 1\n/hyperparameters/CAT { 1\n/hyperparameters/CAT/loss_function s "
		"Quantile:alpha=1.5",
		AG_ERR_OPTION,
		"\"alpha\" in parameter \"loss_function\" of family CAT takes a number between 0 and 1, "
		"not 1.5",
		"");
}

/* What asks for nothing is accepted, even of an option that is not offered. */
static void
nothing_asked(AgMem *mem)
{
	static const char *const lines[] = {
		"/num_bag_folds 0 0",
		"/num_bag_sets 0 1",
		"/num_stack_levels 0 0",
		"/auto_stack b false",
		"/dynamic_stacking b false",
		"/refit_full b false",
		"/calibrate s auto",
		"/calibrate b false",
		"/sample_weight n",
		"/quantile_levels n",
		"/monotone_constraints { 0",
		"/dry_run b false",
		"/ag_args_ensemble { 0",
		"/time_limit n",
		"/hyperparameters n",
		"/presets s mq",
		"/presets [ 0",
		"/hyperparameters s default",
		"/ag_args_fit { 1\n/ag_args_fit/max_memory_usage_ratio 0 1.0",
		"/ag_args_fit { 1\n/ag_args_fit/ag.max_time_limit n",
		"/ag_args_fit { 1\n/ag_args_fit/use_fp16 b true",
		"/memory_limit s auto",
		"/num_cpus s auto",
		"/num_gpus s auto",
		"/included_model_types s GBM",
		"/excluded_model_types [ 1\n/excluded_model_types/0 s NN_TORCH",
	};

	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
		ag_options_free(accepted(mem, lines[i]));
}

/* A family asked for by name is fitted, whether or not the list of models has it. */
static void
included_families(AgMem *mem)
{
	AgFitOptions *o =
		accepted(mem, "/included_model_types [ 3\n/included_model_types/0 s REALMLP\n"
					  "/included_model_types/1 s GBM\n/included_model_types/2 s REALMLP");

	AG_REQUIRE(o->n_models == 5);
	AG_CHECK_STR(o->models[0].name, "GBM");
	AG_CHECK_STR(o->models[4].name, "REALMLP");
	AG_CHECK_STR(o->models[4].params_json, "{}");
	ag_options_free(o);
	o = accepted(mem, "/hyperparameters s light\n/included_model_types s KNN");
	AG_REQUIRE(o->n_models == 1);
	AG_CHECK_STR(o->models[0].name, "KNN");
	ag_options_free(o);
	/* an object of families says itself what there is */
	o = accepted(mem, "/hyperparameters { 1\n/hyperparameters/GBM { 0\n"
					  "/included_model_types [ 2\n/included_model_types/0 s KNN\n"
					  "/included_model_types/1 s GBM");
	AG_REQUIRE(o->n_models == 1);
	AG_CHECK_STR(o->models[0].name, "GBM");
	ag_options_free(o);
	refused(mem, "/included_model_types s KNN\n/excluded_model_types s KNN", AG_ERR_OPTION,
			"the options leave no model to fit",
			"Look at \"hyperparameters\", \"included_model_types\" and \"excluded_model_types\".");
}

static void
unknown_names(AgMem *mem)
{
	refused(mem, "/time_limt 0 5", AG_ERR_OPTION, "unrecognized option \"time_limt\"",
			"Did you mean \"time_limit\"?");
	refused(mem, "/xyzzy 0 5", AG_ERR_OPTION, "unrecognized option \"xyzzy\"",
			"\"SELECT * FROM ag_options()\" lists the options.");
	refused(mem, "/a~1b~0c 0 5", AG_ERR_OPTION, "unrecognized option \"a/b~c\"",
			"\"SELECT * FROM ag_options()\" lists the options.");
	refused(mem, "/presets s best_qualty", AG_ERR_OPTION,
			"option \"presets\" takes a preset such as \"best\", not \"best_qualty\"",
			"Did you mean \"best_quality\"?");
	refused(mem, "/presets s medum", AG_ERR_OPTION,
			"option \"presets\" takes a preset such as \"best\", not \"medum\"",
			"Did you mean \"medium\"?");
	refused(mem, "/problem_type s multclass", AG_ERR_OPTION,
			"option \"problem_type\" takes \"binary\", \"multiclass\", \"regression\" or "
			"\"quantile\", not "
			"\"multclass\"",
			"Did you mean \"multiclass\"?");
	refused(
		mem, "/eval_metric s log_los", AG_ERR_OPTION,
		"option \"eval_metric\" takes the name of a metric such as \"log_loss\", not \"log_los\"",
		"Did you mean \"log_loss\"?");
	refused(mem, "/hyperparameters { 1\n/hyperparameters/GMB { 0", AG_ERR_OPTION,
			"unrecognized model family \"GMB\"", "Did you mean \"GBM\"?");
	refused(mem, "/ag_args_fit { 1\n/ag_args_fit/num_gpu 0 1", AG_ERR_OPTION,
			"unrecognized argument \"ag_args_fit.num_gpu\"", "Did you mean \"num_gpus\"?");
	refused(mem, "/hyperparameters s defualt", AG_ERR_OPTION,
			"option \"hyperparameters\" takes \"default\" or an object of model families, not "
			"\"defualt\"",
			"Did you mean \"default\"?");
	refused(mem, "/excluded_model_types s GMB", AG_ERR_OPTION, "unrecognized model family \"GMB\"",
			"Did you mean \"GBM\"?");
}

static void
wrong_values(AgMem *mem)
{
	refused(mem, "/time_limit 0 0", AG_ERR_OPTION,
			"option \"time_limit\" takes a number of seconds greater than 0, not 0", "");
	refused(mem, "/time_limit 0 -1", AG_ERR_OPTION,
			"option \"time_limit\" takes a number of seconds greater than 0, not -1", "");
	refused(mem, "/time_limit 0 1e999", AG_ERR_OPTION,
			"option \"time_limit\" takes a number of seconds greater than 0, not 1e999", "");
	refused(mem, "/time_limit s fast", AG_ERR_OPTION,
			"option \"time_limit\" takes a number of seconds greater than 0, not \"fast\"", "");
	refused(mem, "/verbosity 0 5", AG_ERR_OPTION,
			"option \"verbosity\" takes an integer from 0 to 4, not 5", "");
	refused(mem, "/verbosity 0 2.5", AG_ERR_OPTION,
			"option \"verbosity\" takes an integer from 0 to 4, not 2.5", "");
	refused(mem, "/holdout_frac 0 1", AG_ERR_OPTION,
			"option \"holdout_frac\" takes a number greater than 0 and less than 1, not 1", "");
	refused(mem, "/num_cpus 0 0", AG_ERR_OPTION,
			"option \"num_cpus\" takes an integer from 1 to 65536 or \"auto\", not 0", "");
	refused(mem, "/num_gpus b true", AG_ERR_OPTION,
			"option \"num_gpus\" takes a number from 0 to 1024 or \"auto\", not true", "");
	refused(mem, "/name s a@b", AG_ERR_OPTION,
			"option \"name\" takes a text of 1 to 63 bytes without \"@\" and \"/\", not \"a@b\"",
			"");
	refused(mem, "/random_state 0 9223372036854775808", AG_ERR_OPTION,
			"option \"random_state\" takes an integer from 0 to 9223372036854775807, not "
			"9223372036854775808",
			"");
	refused(mem, "/ag_args_fit 0 1", AG_ERR_OPTION,
			"option \"ag_args_fit\" takes an object such as {\"num_gpus\": 1}, not 1", "");
	refused(mem, "/ignored_columns [ 1\n/ignored_columns/0 0 1", AG_ERR_OPTION,
			"option \"ignored_columns.0\" takes the name of a column, not 1", "");
	refused(mem, "/hyperparameters { 1\n/hyperparameters/GBM [ 1\n/hyperparameters/GBM/0 0 1",
			AG_ERR_OPTION, "option \"hyperparameters.GBM.0\" takes an object of parameters, not 1",
			"");
	refused(mem, "/hyperparameters { 0", AG_ERR_OPTION, "the options leave no model to fit",
			"Look at \"hyperparameters\", \"included_model_types\" and \"excluded_model_types\".");
	refused(mem, "/hyperparameters { 1\n/hyperparameters/GBM { 0\n/excluded_model_types s GBM",
			AG_ERR_OPTION, "the options leave no model to fit",
			"Look at \"hyperparameters\", \"included_model_types\" and \"excluded_model_types\".");
	/* a text is cut at a character */
	refused(mem,
			"/verbosity s 0123456789012345678901234567890123456789012345678901234567"
			"8\xc3\xa4\xc3\xa4",
			AG_ERR_OPTION,
			"option \"verbosity\" takes an integer from 0 to 4, not "
			"\"01234567890123456789012345678901234567890123456789012345678...\"",
			"");
}

static void
unsupported(AgMem *mem)
{
	AgFitOptions *options;
	AgError err;
	const AgOptionSpec *specs;
	int n;

	refused(mem, "/presets s tabarena", AG_ERR_UNSUPPORTED,
			"preset \"tabarena\" is not supported yet",
			"This release has the presets medium, good, high, best, extreme, interpretable, "
			"ignore_text, ignore_text_ngrams and optimize_for_deployment.");
	refused(mem, "/problem_type s softclass", AG_ERR_UNSUPPORTED,
			"problem type \"softclass\" is not supported yet", "");
	refused(mem, "/problem_type s quantile\n/hyperparameters { 1\n/hyperparameters/KNN { 0",
			AG_ERR_UNSUPPORTED,
			"model \"KNN\" can't be fitted: a few neighbours say little about quantiles",
			"Add another model family, such as GBM.");
	refused(mem, "/hyperparameters { 1\n/hyperparameters/EBM { 0", AG_ERR_UNSUPPORTED,
			"model family \"EBM\" is not supported yet",
			"This release fits GBM, LR, KNN, RF, XT, NN_TORCH, FASTAI, REALMLP, XGB, CAT, TABM.");
	refused(
		mem,
		"/included_model_types [ 2\n/included_model_types/0 s GBM\n/included_model_types/1 s EBM",
		AG_ERR_UNSUPPORTED, "model family \"EBM\" is not supported yet",
		"This release fits GBM, LR, KNN, RF, XT, NN_TORCH, FASTAI, REALMLP, XGB, CAT, TABM.");
	refused(mem, "/hyperparameters s zeroshot_2023", AG_ERR_UNSUPPORTED,
			"list of models \"zeroshot_2023\" is not supported yet", "");
	refused(mem, "/ag_args_fit { 1\n/ag_args_fit/stopping_metric s roc_auc", AG_ERR_UNSUPPORTED,
			"argument of \"ag_args_fit\" \"stopping_metric\" is not supported yet", "");
	/* every row of the table that is not offered is refused by its name when it asks for something */
	specs = ag_option_specs(&n);
	for (int i = 0; i < n; i++)
	{
		char line[100], expected[200];

		if (specs[i].supported)
			continue;
		snprintf(line, sizeof line, "/%s s something", specs[i].name);
		snprintf(expected, sizeof expected, "option \"%s\" is not supported yet", specs[i].name);
		AG_CHECK_EQ(parse(mem, line, &options, &err), AG_ERR_UNSUPPORTED);
		AG_CHECK_STR(err.message, expected);
	}
}

/* The table and the parsers can't disagree: a supported option given nonsense is an error of its own. */
static void
table(AgMem *mem)
{
	const AgOptionSpec *specs;
	AgFitOptions *options;
	AgError err;
	int n;

	specs = ag_option_specs(&n);
	AG_CHECK(n >= 40);
	for (int i = 0; i < n; i++)
	{
		char line[100];

		AG_CHECK(specs[i].help[0] != '\0' && specs[i].type[0] != '\0' &&
				 specs[i].normal[0] != '\0');
		for (int j = 0; j < i; j++)
			AG_CHECK(strcmp(specs[i].name, specs[j].name) != 0);
		if (!specs[i].supported)
			continue;
		snprintf(line, sizeof line, "/%s [ 1\n/%s/0 [ 0", specs[i].name, specs[i].name);
		AG_CHECK_EQ(parse(mem, line, &options, &err), AG_ERR_OPTION);
		AG_CHECK(strstr(err.message, specs[i].name) != NULL);
	}
}

/* Every configuration of every list is one that its family takes; extreme begins as zeroshot does. */
static void
lists(AgMem *mem)
{
	static const char *const names[] = {"default", "light",    "very_light",   "toy",
										"extreme", "zeroshot", "interpretable"};
	AgFitOptions *o, *best, *extreme;
	AgError err;

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
	{
		char line[64];

		snprintf(line, sizeof line, "/hyperparameters s %s", names[i]);
		o = accepted(mem, line);
		ag_error_init(&err);
		for (int m = 0; m < o->n_models; m++)
			if (o->models[m].family->check != NULL)
				AG_CHECK_EQ(o->models[m].family->check(o->models[m].params, &err), AG_OK);
		ag_options_free(o);
	}
	best = accepted(mem, "/presets s bq");
	extreme = accepted(mem, "/presets s extreme_v160");
	AG_CHECK(extreme->auto_stack && extreme->time_limit == 3600.0 && !extreme->refit_full);
	AG_CHECK_EQ(best->n_models, 24);
	AG_REQUIRE(extreme->n_models == 48);
	for (int m = 0; m < best->n_models; m++)
	{
		AG_CHECK_STR(extreme->models[m].name, best->models[m].name);
		AG_CHECK_STR(extreme->models[m].params_json, best->models[m].params_json);
	}
	ag_options_free(best);
	ag_options_free(extreme);
}

/* What a bag may have: in ag_args_ensemble, of all models or of one. */
static void
bag_resources(AgMem *mem)
{
	AgFitOptions *o;

	o = accepted(mem, "/ag_args_ensemble { 1\n/ag_args_ensemble/ag_args_fit { 2\n"
					  "/ag_args_ensemble/ag_args_fit/num_gpus 0 2\n"
					  "/ag_args_ensemble/ag_args_fit/num_cpus 0 6\n"
					  "/hyperparameters { 2\n/hyperparameters/GBM { 1\n"
					  "/hyperparameters/GBM/ag_args_ensemble { 1\n"
					  "/hyperparameters/GBM/ag_args_ensemble/ag_args_fit { 1\n"
					  "/hyperparameters/GBM/ag_args_ensemble/ag_args_fit/num_gpus s auto\n"
					  "/hyperparameters/LR { 1\n/hyperparameters/LR/ag_args_fit { 1\n"
					  "/hyperparameters/LR/ag_args_fit/num_cpus 0 2");
	AG_CHECK(o->models[0].bag.num_gpus == AG_GPUS_AUTO && o->models[0].bag.num_cpus == 6);
	AG_CHECK(o->models[1].bag.num_gpus == 2.0 && o->models[1].asked.num_cpus == 2);
	ag_options_free(o);
	refused(mem,
			"/num_gpus 0 1\n/ag_args_ensemble { 1\n/ag_args_ensemble/ag_args_fit { 1\n"
			"/ag_args_ensemble/ag_args_fit/num_gpus 0 2",
			AG_ERR_OPTION, "model \"GBM\" asks for 2 GPUs for its bag, but the whole fit has 1",
			"Raise the option \"num_gpus\" (all models together), or lower \"num_gpus\" in the "
			"\"ag_args_fit\" of \"ag_args_ensemble\" (each bag).");
	refused(mem,
			"/ag_args_fit { 1\n/ag_args_fit/num_gpus 0 1\n/ag_args_ensemble { 1\n"
			"/ag_args_ensemble/ag_args_fit { 1\n/ag_args_ensemble/ag_args_fit/num_gpus 0 0.5",
			AG_ERR_OPTION, "model \"GBM\" asks for 1 GPU for each training, but its bag has 0.5",
			"Raise \"num_gpus\" in the \"ag_args_fit\" of \"ag_args_ensemble\" (each bag), or "
			"lower it in \"ag_args_fit\" (each training).");
	refused(mem,
			"/ag_args_fit { 1\n/ag_args_fit/num_cpus 0 4\n/ag_args_ensemble { 1\n"
			"/ag_args_ensemble/ag_args_fit { 1\n/ag_args_ensemble/ag_args_fit/num_cpus 0 2",
			AG_ERR_OPTION, "model \"GBM\" asks for 4 CPUs for each training, but its bag has 2",
			"Raise \"num_cpus\" in the \"ag_args_fit\" of \"ag_args_ensemble\" (each bag), or "
			"lower it in \"ag_args_fit\" (each training).");
	refused(mem,
			"/num_cpus 0 2\n/ag_args_ensemble { 1\n/ag_args_ensemble/ag_args_fit { 1\n"
			"/ag_args_ensemble/ag_args_fit/num_cpus 0 4",
			AG_ERR_OPTION, "model \"GBM\" asks for 4 CPUs for its bag, but the whole fit has 2",
			"Raise the option \"num_cpus\" (all models together), or lower \"num_cpus\" in the "
			"\"ag_args_fit\" of \"ag_args_ensemble\" (each bag).");
	refused(
		mem,
		"/ag_args_ensemble { 1\n/ag_args_ensemble/ag_args_fit { 1\n"
		"/ag_args_ensemble/ag_args_fit/max_time_limit 0 4",
		AG_ERR_UNSUPPORTED,
		"argument \"ag_args_ensemble.ag_args_fit.max_time_limit\" is not supported yet",
		"A bag as a whole takes \"num_gpus\" and \"num_cpus\"; what each of its trainings takes "
		"is in \"ag_args_fit\" itself.");
	refused(mem,
			"/hyperparameters { 1\n/hyperparameters/GBM { 1\n"
			"/hyperparameters/GBM/ag_args_ensemble { 1\n"
			"/hyperparameters/GBM/ag_args_ensemble/use_orig_features b false",
			AG_ERR_UNSUPPORTED,
			"model argument \"hyperparameters.GBM.ag_args_ensemble.use_orig_features\" is not "
			"supported yet",
			"");
}

static void
resources(AgMem *mem)
{
	AgFitOptions *o;

	refused(mem, "/num_gpus 0 1\n/ag_args_fit { 1\n/ag_args_fit/num_gpus 0 2", AG_ERR_OPTION,
			"model \"GBM\" asks for 2 GPUs, but the whole fit has 1",
			"Raise the option \"num_gpus\" (all models together), or lower \"num_gpus\" in "
			"\"ag_args_fit\" (each model).");
	refused(mem, "/num_cpus 0 1\n/ag_args_fit { 1\n/ag_args_fit/num_cpus 0 2", AG_ERR_OPTION,
			"model \"GBM\" asks for 2 CPUs, but the whole fit has 1",
			"Raise the option \"num_cpus\" (all models together), or lower \"num_cpus\" in "
			"\"ag_args_fit\" (each model).");
	o = accepted(mem, "/num_gpus 0 0.5\n/num_cpus 0 3"); /* not ignored: what the models share */
	AG_CHECK(o->total.num_gpus == 0.5 && o->models[2].asked.num_gpus == AG_GPUS_UNSAID &&
			 o->models[2].asked.num_cpus == 3);
	ag_options_free(o);
	bag_resources(mem);
}

/* A plan to repeat: what of it is read, and that nothing half read passes. */
static void
replay(AgMem *mem)
{
	static const char whole[] = "/num_bag_folds 0 8\n"
								"/replay { 4\n"
								"/replay/num_bag_folds 0 3\n"
								"/replay/num_bag_sets 0 2\n"
								"/replay/num_stack_levels 0 1\n"
								"/replay/models [ 1\n"
								"/replay/models/0 { 3\n"
								"/replay/models/0/name s GBM_BAG_L1\n"
								"/replay/models/0/full b true\n"
								"/replay/models/0/rounds [ 2\n"
								"/replay/models/0/rounds/0 0 12\n"
								"/replay/models/0/rounds/1 0 0\n";
	AgFitOptions *o = accepted(mem, whole);
	const AgReplayModel *model = ag_replay_find(o, "GBM_BAG_L1");

	AG_REQUIRE(model != NULL);
	AG_CHECK(model->is_full && model->n_children == 2 && model->rounds[0] == 12 &&
			 model->rounds[1] == 0);
	AG_CHECK(ag_replay_find(o, "LR_BAG_L1") == NULL);
	AG_CHECK(o->num_bag_folds == 3 && o->num_bag_sets == 2 && o->num_stack_levels == 1);
	ag_options_free(o);
	refused(mem, "/replay s m@3", AG_ERR_OPTION,
			"option \"replay\" takes the name of a version such as \"name@3\", not \"m@3\"", "");
	refused(mem, "/replay { 2\n/replay/models [ 0\n/replay/refused s time cut LR short",
			AG_ERR_OPTION, "that fit can't be repeated exactly: time cut LR short",
			"ag_refresh fits again as it was asked for.");
	refused(mem, "/weight_evaluation b true", AG_ERR_OPTION,
			"option \"weight_evaluation\" needs \"sample_weight\"", "");
	refused(mem, "/use_bag_holdout b true", AG_ERR_OPTION,
			"option \"use_bag_holdout\" needs \"num_bag_folds\"", "");
	/* every other line that is lost is missed */
	for (const char *line = strchr(whole, '\n') + 1; *line != '\0'; line = strchr(line, '\n') + 1)
	{
		char text[sizeof whole];
		AgFitOptions *options;
		AgError err;
		size_t before = (size_t) (line - whole);

		memcpy(text, whole, before);
		strcpy(text + before, strchr(line, '\n') + 1);
		/* a bag of fewer children is a plan, too */
		AG_CHECK((parse(mem, text, &options, &err) != AG_OK) ==
				 (strncmp(line, "/replay/models/0/rounds/", 24) != 0));
		if (options != NULL)
			ag_options_free(options);
	}
}

static void
metrics(AgMem *mem)
{
	AgError err;

	refused(
		mem, "/problem_type s regression\n/eval_metric s accuracy", AG_ERR_OPTION,
		"metric \"accuracy\" does not fit a regression problem",
		"Choose another \"eval_metric\" (the default here is \"root_mean_squared_error\"), or set "
		"\"problem_type\".");
	ag_options_free(accepted(mem, "/eval_metric s roc_auc"));
	ag_error_init(&err);
	AG_CHECK_EQ(ag_options_check_metric(AG_METRIC_ROC_AUC, AG_PROBLEM_MULTICLASS, &err),
				AG_ERR_OPTION);
}

static void
hostile(AgMem *mem)
{
	AgFitOptions *options;
	AgError err;
	AgOptionEntry *many = calloc(AG_MAX_OPTION_ENTRIES + 1, sizeof *many);
	char(*paths)[32] = calloc(AG_MAX_OPTION_ENTRIES + 1, sizeof *paths);
	char deep[200] = "", *lines = calloc(1, 10000), path[2000];
	int n;

	refused(mem, "/verbosity 0 1\n/verbosity 0 2", AG_ERR_OPTION,
			"option \"verbosity\" is given twice", "");
	refused(mem, "/ag_args_fit/num_gpus 0 1", AG_ERR_OPTION, "malformed list of options", "");
	refused(mem, "/verbosity 0 1\n/verbosity/x 0 1", AG_ERR_OPTION, "malformed list of options",
			"");
	refused(mem, "verbosity 0 1", AG_ERR_OPTION, "malformed list of options", "");
	refused(mem, "/verbosity 0 0x2", AG_ERR_OPTION,
			"option \"verbosity\" takes an integer from 0 to 4, not 0x2", "");
	refused(mem, "/verbosity 0 nan", AG_ERR_OPTION,
			"option \"verbosity\" takes an integer from 0 to 4, not nan", "");
	for (int depth = 0; depth < 20; depth++)
	{
		strcat(deep, "/a");
		sprintf(lines + strlen(lines), "%s { 1\n", deep);
	}
	refused(mem, lines, AG_ERR_OPTION, "options are nested deeper than 12 levels", "");
	memset(path, 'x', sizeof path);
	memcpy(path, "/", 1);
	strcpy(path + 1990, " 0 1");
	AG_CHECK_EQ(parse(mem, path, &options, &err), AG_ERR_OPTION);
	AG_CHECK(strncmp(err.message, "options have a name of more than 1024 bytes", 43) == 0);

	/* 100,000 models, and one entry more than there may be */
	many[0] = (AgOptionEntry){"/hyperparameters", AG_JSON_OBJECT, "1"};
	many[1] = (AgOptionEntry){"/hyperparameters/GBM", AG_JSON_ARRAY, "99998"};
	for (n = 2; n <= AG_MAX_OPTION_ENTRIES; n++)
	{
		snprintf(paths[n], sizeof paths[n], "/hyperparameters/GBM/%u", (unsigned) (n - 2) % 100000);
		many[n] = (AgOptionEntry){paths[n], AG_JSON_OBJECT, "0"};
	}
	ag_error_init(&err);
	AG_CHECK_EQ(ag_options_parse(mem, many, AG_MAX_OPTION_ENTRIES, &options, &err), AG_ERR_OPTION);
	AG_CHECK_STR(err.message, "option \"hyperparameters\" has more than 200 models");
	ag_error_init(&err);
	AG_CHECK_EQ(ag_options_parse(mem, many, AG_MAX_OPTION_ENTRIES + 1, &options, &err),
				AG_ERR_OPTION);
	AG_CHECK_STR(err.message, "options have more than 100000 values");
	ag_error_init(&err);
	AG_CHECK_EQ(ag_options_parse(mem, many, 2 + 200, &options, &err), AG_OK);
	AG_CHECK_EQ(options->n_models, 200);
	AG_CHECK_STR(options->models[199].name, "GBM_200");
	ag_options_free(options);
	free(many);
	free(paths);
	free(lines);
}

/* Each allocation fails once: an error, and nothing is lost. */
static void
no_memory(AgMem *mem)
{
	static const char *const texts[] = {
		"/name s x\n/ignored_columns s y\n/hyperparameters { 1\n"
		"/hyperparameters/GBM { 1\n/hyperparameters/GBM/num_leaves 0 3",
		"/num_trials 0 3\n/hyperparameters { 1\n/hyperparameters/LR { 1\n"
		"/hyperparameters/LR/penalty { 2\n/hyperparameters/LR/penalty/space s categorical\n"
		"/hyperparameters/LR/penalty/choices [ 2\n/hyperparameters/LR/penalty/choices/0 s L2\n"
		"/hyperparameters/LR/penalty/choices/1 s L1",
		"/num_trials 0 2\n/hyperparameters { 1\n/hyperparameters/KNN { 0"};

	for (int64_t after = 0; after < 90; after++)
	{
		AgFitOptions *options;
		AgError err;
		AgStatus status;

		mem->fail_after = after / 3;
		status = parse(mem, texts[after % 3], &options, &err);
		mem->fail_after = -1;
		AG_CHECK(status == AG_OK || status == AG_ERR_MEMORY);
		ag_options_free(options);
		AG_CHECK_EQ(mem->used_bytes, 0);
	}
}

/* What presets stand for; the later of several, and any option given itself, wins. */
static void
presets(AgMem *mem)
{
	AgFitOptions *o;

	o = accepted(mem, "/presets s bq");
	AG_CHECK(o->auto_stack && o->num_bag_folds == -1 && o->time_limit == 3600.0);
	AG_CHECK(o->refit_full == AG_REFIT_NONE && o->save_bag_folds && o->fit_weighted_ensemble);
	AG_CHECK(o->n_models > 12);
	ag_options_free(o);
	o = accepted(mem, "/presets s good_quality");
	AG_CHECK(o->auto_stack && o->refit_full == AG_REFIT_ALL && o->set_best_to_refit_full);
	AG_CHECK(!o->save_bag_folds && o->n_models == 12);
	ag_options_free(o);
	/* explicit options win, wherever they stand */
	o = accepted(mem, "/time_limit 0 20\n/hyperparameters s toy\n/num_bag_folds 0 3\n"
					  "/presets s high\n/refit_full b false");
	AG_CHECK(o->time_limit == 20.0 && o->num_bag_folds == 3 && o->n_models == 5);
	AG_CHECK(o->refit_full == AG_REFIT_NONE && !o->set_best_to_refit_full && o->save_bag_folds);
	ag_options_free(o);
	o = accepted(mem, "/presets [ 2\n/presets/0 s best\n/presets/1 s optimize_for_deployment");
	AG_CHECK(o->auto_stack && o->keep_only_best && o->time_limit == 3600.0);
	ag_options_free(o);
	o = accepted(mem, "/presets [ 2\n/presets/0 s best\n/presets/1 s medium");
	AG_CHECK(!o->auto_stack && isnan(o->time_limit) && o->n_models == 12);
	ag_options_free(o);
	o = accepted(mem, "/presets s interpretable\n/num_cpus 0 1");
	AG_CHECK(!o->fit_weighted_ensemble && o->n_models == 3);
	AG_CHECK_STR(o->models[2].params_json, "{\"n_estimators\": 1, \"max_depth\": 4, "
										   "\"bootstrap\": false, \"max_features\": 1.0}");
	AG_CHECK_STR(o->models[1].params_json, "{\"penalty\": \"L1\", \"C\": 0.1}");
	ag_options_free(o);
	/* the sets that no preset has */
	o = accepted(mem, "/hyperparameters s very_light\n/excluded_model_types [ 1\n"
					  "/excluded_model_types/0 s XGB");
	AG_CHECK_EQ(o->n_models, 9);
	ag_options_free(o);
	refused(mem, "/presets [ 1\n/presets/0 0 1", AG_ERR_OPTION,
			"option \"presets.0\" takes a preset such as \"best\", or an array of presets, not 1",
			"");
	/* objects have no order: those of most use first, and of each family one before the second */
	o = accepted(mem, "/hyperparameters { 2\n/hyperparameters/LR { 0\n/hyperparameters/GBM [ 2\n"
					  "/hyperparameters/GBM/0 { 0\n/hyperparameters/GBM/1 { 0");
	AG_CHECK_STR(o->models[0].name, "GBM");
	AG_CHECK_STR(o->models[1].name, "LR");
	AG_CHECK_STR(o->models[2].name, "GBM_2");
	ag_options_free(o);
}

/* Bags, refits, roles: what is taken and what isn't. */
static void
bags(AgMem *mem)
{
	AgFitOptions *o;

	o = accepted(mem, "/num_bag_folds 0 8\n/num_bag_sets 0 2\n/sample_weight s w\n/groups s g\n"
					  "/ag_args_ensemble { 1\n/ag_args_ensemble/fold_fitting_strategy s "
					  "sequential_local");
	AG_CHECK(o->num_bag_folds == 8 && o->num_bag_sets == 2);
	AG_CHECK_STR(o->sample_weight, "w");
	AG_CHECK_STR(o->groups, "g");
	ag_options_free(o);
	o = accepted(mem, "/num_bag_folds 0 0\n/auto_stack b true");
	AG_CHECK_EQ(ag_folds_asked(o, 1000), 0);
	ag_options_free(o);
	o = accepted(mem, "/auto_stack b true");
	AG_CHECK_EQ(ag_folds_asked(o, 1000), 8);
	ag_options_free(o);
	refused(mem, "/num_bag_folds 0 1", AG_ERR_OPTION,
			"option \"num_bag_folds\" takes 0 or an integer from 2 to 100, not 1", "");
	refused(mem, "/num_bag_sets 0 2\n/num_bag_folds 0 0\n/auto_stack b true", AG_ERR_OPTION,
			"option \"num_bag_sets\" needs \"num_bag_folds\"",
			"Set \"num_bag_folds\" to 8, for example, or \"auto_stack\" to true.");
	refused(mem, "/ag_args_ensemble { 1\n/ag_args_ensemble/save_bag_folds b false", AG_ERR_OPTION,
			"option \"ag_args_ensemble.save_bag_folds\" needs \"refit_full\"",
			"Set \"refit_full\" to true.");
	refused(mem, "/ag_args_ensemble { 1\n/ag_args_ensemble/use_child_oof 0 1", AG_ERR_OPTION,
			"option \"ag_args_ensemble.use_child_oof\" takes true or false, not 1", "");
	refused(mem, "/ag_args_ensemble { 1\n/ag_args_ensemble/max_base_models 0 -1", AG_ERR_OPTION,
			"option \"ag_args_ensemble.max_base_models\" takes a number of models, or 0 for no "
			"limit, not -1",
			"");
	refused(mem, "/num_stack_levels 0 6\n/num_bag_folds 0 3", AG_ERR_OPTION,
			"option \"num_stack_levels\" takes an integer from 0 to 5, not 6", "");
	refused(mem, "/num_stack_levels 0 1", AG_ERR_OPTION,
			"option \"num_stack_levels\" needs \"num_bag_folds\"",
			"Set \"num_bag_folds\" to 8, for example, or \"auto_stack\" to true.");
	o = accepted(mem, "/num_stack_levels 0 2\n/auto_stack b true\n/ag_args_ensemble { 2\n"
					  "/ag_args_ensemble/max_base_models 0 7\n"
					  "/ag_args_ensemble/max_base_models_per_type s auto");
	AG_CHECK(o->num_stack_levels == 2 && o->max_base_models == 7 &&
			 o->max_base_models_per_type == -1);
	ag_options_free(o);
	refused(mem, "/sample_weight s auto_weight", AG_ERR_UNSUPPORTED,
			"sample weight \"auto_weight\" is not supported yet", "");
}

int
main(void)
{
	AgMem mem;

	ag_mem_init(&mem, INT64_MAX);
	defaults(&mem);
	presets(&mem);
	bags(&mem);
	everything(&mem);
	quantile_levels(&mem);
	losses(&mem);
	nothing_asked(&mem);
	included_families(&mem);
	unknown_names(&mem);
	wrong_values(&mem);
	unsupported(&mem);
	table(&mem);
	lists(&mem);
	resources(&mem);
	metrics(&mem);
	replay(&mem);
	hostile(&mem);
	no_memory(&mem);
	AG_CHECK_EQ(mem.used_bytes, 0);
	return ag_unit_done("options");
}
