/* namesake.c - parameters by the names that AutoGluon's families have: each does something, or is refused. */
#include "engine/model/net.h"
#include "unit/option_lines.h"

/* What AutoGluon's nets take: it changes our parameters, or it is what they are anyway, or it is refused by name. */
static void
namesakes(AgMem *mem)
{
	static const struct
	{
		const char *family, *line, *name;
		char means; /* c: changes the parameters, n: nothing else than the defaults, r: refused */
	} keys[] = {
		{"NN_TORCH", "num_layers 0 2", NULL, 'c'},
		{"NN_TORCH", "hidden_size 0 64", NULL, 'c'},
		{"NN_TORCH", "activation s elu", NULL, 'c'},
		{"NN_TORCH", "dropout_prob 0 0.25", NULL, 'c'},
		{"NN_TORCH", "use_batchnorm b true", NULL, 'c'},
		{"NN_TORCH", "learning_rate 0 0.0027", NULL, 'c'},
		{"NN_TORCH", "weight_decay 0 1.356e-12", NULL, 'c'},
		{"NN_TORCH", "num_epochs 0 5", NULL, 'c'},
		{"NN_TORCH", "epochs_wo_improve 0 7", NULL, 'c'},
		{"NN_TORCH", "epochs_wo_improve n", NULL, 'n'},
		{"NN_TORCH", "batch_size 0 32", NULL, 'c'},
		{"NN_TORCH", "max_batch_size 0 1024", NULL, 'c'},
		{"NN_TORCH", "embedding_size_factor 0 0.5", NULL, 'c'},
		{"NN_TORCH", "embed_exponent 0 0.3", NULL, 'c'},
		{"NN_TORCH", "max_embedding_dim 0 10", NULL, 'c'},
		{"NN_TORCH", "y_range_extend 0 0.1", NULL, 'c'},
		{"NN_TORCH", "proc.embed_min_categories 0 10", NULL, 'c'},
		{"NN_TORCH", "proc.impute_strategy s mean", NULL, 'c'},
		{"NN_TORCH", "proc.max_category_levels 0 200", NULL, 'c'},
		{"NN_TORCH", "proc.skew_threshold 0 0.5", NULL, 'c'},
		{"NN_TORCH", "optimizer s adam", NULL, 'n'},
		{"NN_TORCH", "optimizer s sgd", "optimizer", 'r'},
		{"NN_TORCH", "loss_function s auto", NULL, 'n'},
		{"NN_TORCH", "loss_function s mse", "loss_function", 'r'},
		{"NN_TORCH", "y_range n", NULL, 'n'},
		{"NN_TORCH", "y_range [ 0", "y_range", 'r'},
		{"NN_TORCH", "use_ngram_features b false", NULL, 'n'},
		{"NN_TORCH", "use_ngram_features b true", "use_ngram_features", 'r'},
		{"NN_TORCH", "gamma 0 5.0", NULL, 'n'},
		{"NN_TORCH", "gamma 0 1", "gamma", 'r'},
		{"NN_TORCH", "alpha 0 0.5", "alpha", 'r'},
		{"FASTAI", "layers [ 1", NULL, 'c'},
		{"FASTAI", "ps 0 0.2378", NULL, 'c'},
		{"FASTAI", "emb_drop 0 0.5412", NULL, 'c'},
		{"FASTAI", "bs 0 512", NULL, 'c'},
		{"FASTAI", "bs s auto", NULL, 'n'},
		{"FASTAI", "lr 0 0.0152", NULL, 'c'},
		{"FASTAI", "epochs 0 43", NULL, 'c'},
		{"FASTAI", "epochs s auto", NULL, 'n'},
		{"FASTAI", "early.stopping.patience 0 5", NULL, 'c'},
		{"FASTAI", "early.stopping.min_delta 0 0.01", NULL, 'c'},
		{"FASTAI", "smoothing 0 0.1", NULL, 'c'},
		{"FASTAI", "clipping b true", NULL, 'n'},
		{"FASTAI", "clipping b false", "clipping", 'r'},
		{"FASTAI", "y_scaler n", NULL, 'n'},
		{"FASTAI", "alpha 0 0.5", "alpha", 'r'},
		{"LR", "fit_intercept b false", "fit_intercept", 'r'},
		{"LR", "solver s lbfgs", NULL, 'n'},
		{"LR", "handle_text s only", "handle_text", 'r'},
		{"KNN", "p 0 1", "p", 'r'},
		{"KNN", "metric s minkowski", NULL, 'n'},
	};

	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
	{
		char lines[300], message[200];
		AgFitOptions *with, *without;

		snprintf(lines, sizeof lines, "/hyperparameters { 1\n/hyperparameters/%s { 0",
				 keys[i].family);
		without = accepted(mem, lines);
		snprintf(lines, sizeof lines,
				 "/hyperparameters { 1\n/hyperparameters/%s { 1\n"
				 "/hyperparameters/%s/%s%s%s%s",
				 keys[i].family, keys[i].family, keys[i].line,
				 strstr(keys[i].line, "[ 1") ? "\n/hyperparameters/" : "",
				 strstr(keys[i].line, "[ 1") ? keys[i].family : "",
				 strstr(keys[i].line, "[ 1") ? "/layers/0 0 40" : "");
		snprintf(message, sizeof message,
				 "parameter \"hyperparameters.%s.%s\" is not supported yet", keys[i].family,
				 keys[i].name != NULL ? keys[i].name : "");
		if (keys[i].means == 'r')
			refused(mem, lines, AG_ERR_UNSUPPORTED, message, "");
		else
		{
			with = accepted(mem, lines);
			AG_CHECK_EQ(memcmp(with->models[0].params, without->models[0].params,
							   with->models[0].family->params_bytes) != 0,
						keys[i].means == 'c');
			ag_options_free(with);
		}
		ag_options_free(without);
	}
}

static int
patience(const AgFitOptions *options)
{
	return ((const AgNetParams *) options->models[0].params)->patience;
}

/* "early_stop" is the patience of nets, unless they have one of their own. */
static void
early_stop(AgMem *mem)
{
	static const struct
	{
		const char *lines;
		int patience;
	} cases[] = {
		{"/hyperparameters { 1\n/hyperparameters/NN_TORCH { 0", -1},
		{"/hyperparameters { 1\n/hyperparameters/NN_TORCH { 0\n/ag_args_fit { "
		 "1\n/ag_args_fit/early_stop 0 9",
		 9},
		{"/hyperparameters { 1\n/hyperparameters/FASTAI { 0\n/ag_args_fit { "
		 "1\n/ag_args_fit/early_stop n",
		 0},
		{"/hyperparameters { 1\n/hyperparameters/FASTAI { 0\n/ag_args_fit { "
		 "1\n/ag_args_fit/early_stop s adaptive",
		 20},
		{"/hyperparameters { 1\n/hyperparameters/REALMLP { "
		 "1\n/hyperparameters/REALMLP/ag.early_stop 0 4",
		 4},
		{"/hyperparameters { 1\n/hyperparameters/NN_TORCH { "
		 "2\n/hyperparameters/NN_TORCH/ag.early_stop 0 4\n"
		 "/hyperparameters/NN_TORCH/epochs_wo_improve 0 6",
		 6},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
	{
		AgFitOptions *o = accepted(mem, cases[i].lines);

		AG_CHECK_EQ(patience(o), cases[i].patience);
		ag_options_free(o);
	}
	/* of all models: those that have rounds */
	ag_options_free(accepted(mem, "/ag_args_fit { 1\n/ag_args_fit/early_stop 0 9"));
	ag_options_free(accepted(mem, "/hyperparameters { 1\n/hyperparameters/LR { 1\n"
								  "/hyperparameters/LR/ag.early_stop n"));
	refused(mem,
			"/hyperparameters { 1\n/hyperparameters/LR { 1\n/hyperparameters/LR/ag.early_stop 0 9",
			AG_ERR_OPTION, "argument \"early_stop\" means nothing to family LR",
			"It doesn't learn in rounds or epochs.");
}

int
main(void)
{
	AgMem mem;

	ag_mem_init(&mem, INT64_MAX);
	namesakes(&mem);
	early_stop(&mem);
	AG_CHECK_EQ(mem.used_bytes, 0);
	return ag_unit_done("namesake");
}
