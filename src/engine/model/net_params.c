/*
 * net_params.c - the hyperparameters of the nets: the names and defaults that AutoGluon's nets of the same names have, and
 * those of the paper for REALMLP.
 */
#include <math.h>
#include <string.h>

#include "engine/model/net_private.h"

#define OFFSET(field) offsetof(AgNetParams, field)
#define ACTIVATIONS "relu elu tanh selu mish auto"

/* What the families share: rows become numbers and slots alike. */
#define DENSE_SPECS(skew, levels)                                                                  \
	{"proc.skew_threshold",                                                                        \
	 NULL,                                                                                         \
	 AG_PARAM_REAL,                                                                                \
	 0,                                                                                            \
	 INFINITY,                                                                                     \
	 skew,                                                                                         \
	 NULL,                                                                                         \
	 "skewness above which a numeric column is mapped to a normal distribution",                   \
	 OFFSET(dense.skew_threshold)},                                                                \
		{"proc.impute_strategy",                                                                   \
		 NULL,                                                                                     \
		 AG_PARAM_CHOICE,                                                                          \
		 0,                                                                                        \
		 1,                                                                                        \
		 AG_DENSE_MEDIAN,                                                                          \
		 "median mean",                                                                            \
		 "what a missing number counts as",                                                        \
		 OFFSET(dense.impute)},                                                                    \
		{"proc.min_level_count",                                                                   \
		 NULL,                                                                                     \
		 AG_PARAM_INT,                                                                             \
		 1,                                                                                        \
		 1e9,                                                                                      \
		 2,                                                                                        \
		 NULL,                                                                                     \
		 "training rows that a category needs to be told from other rare ones",                    \
		 OFFSET(dense.min_level_count)},                                                           \
	{                                                                                              \
		"proc.max_category_levels", NULL, AG_PARAM_INT, 1, 1e6, levels, NULL,                      \
			"most categories of one feature that are told apart", OFFSET(dense.max_levels)         \
	}

const AgParamSpec ag_nn_specs[] = {
	{"num_layers", NULL, AG_PARAM_INT, 1, AG_NET_MAX_LAYERS, 4, NULL, "hidden layers",
	 OFFSET(num_layers)},
	{"hidden_size", NULL, AG_PARAM_INT, 1, AG_NET_MAX_WIDTH, 128, NULL, "units of a hidden layer",
	 OFFSET(hidden_size)},
	{"layers", NULL, AG_PARAM_INTS, 1, AG_NET_MAX_WIDTH, 0, NULL,
	 "units of each hidden layer, instead of num_layers and hidden_size", OFFSET(layers)},
	{"activation", NULL, AG_PARAM_CHOICE, 0, 5, AG_NET_ACT_RELU, ACTIVATIONS,
	 "what units do with their sums; auto: selu for classes, mish for numbers", OFFSET(activation)},
	{"dropout_prob", NULL, AG_PARAM_REAL, 0, 0.95, 0.1, NULL,
	 "share of the units that a training step leaves out", OFFSET(dropout_prob)},
	{"use_batchnorm", NULL, AG_PARAM_BOOL, 0, 1, 0, NULL, "normalise units over each batch",
	 OFFSET(use_batchnorm)},
	{"learning_rate", NULL, AG_PARAM_REAL, 1e-9, 10, 3e-4, NULL, "step size of Adam",
	 OFFSET(learning_rate)},
	{"weight_decay", NULL, AG_PARAM_REAL, 0, 10, 1e-6, NULL, "L2 penalty on the weights",
	 OFFSET(weight_decay)},
	{"batch_size", NULL, AG_PARAM_INT, 0, 65536, 0, NULL,
	 "training rows of a step; 0: by the number of rows, up to max_batch_size", OFFSET(batch_size)},
	{"max_batch_size", NULL, AG_PARAM_INT, 1, 65536, 512, NULL,
	 "most training rows of a step where batch_size is 0", OFFSET(max_batch_size)},
	{"num_epochs", NULL, AG_PARAM_INT, 1, 1000000, 1000, NULL, "most passes over the rows",
	 OFFSET(num_epochs)},
	{"epochs_wo_improve", NULL, AG_PARAM_INT, -1, 1000000, -1, NULL,
	 "epochs to wait for a better score; -1: 20 and half of those so far, 0: all",
	 OFFSET(patience)},
	{"y_range_extend", NULL, AG_PARAM_REAL, 0, 1000, 0.05, NULL,
	 "how far beyond the training labels predictions may go, in standard deviations",
	 OFFSET(y_range_extend)},
	{"proc.embed_min_categories", NULL, AG_PARAM_INT, 1, 1e9, 4, NULL,
	 "categories from which on a feature becomes a learnt vector", OFFSET(embed_min_levels)},
	{"embedding_size_factor", NULL, AG_PARAM_REAL, 0.01, 100, 1, NULL,
	 "factor on the length of such vectors", OFFSET(embed_factor)},
	{"embed_exponent", NULL, AG_PARAM_REAL, 0, 2, 0.56, NULL,
	 "their length is 1.6 times the number of categories to this power, at least 2",
	 OFFSET(embed_exponent)},
	{"max_embedding_dim", NULL, AG_PARAM_INT, 1, AG_NET_MAX_WIDTH, 100, NULL,
	 "their greatest length, before the factor", OFFSET(embed_most)},
	DENSE_SPECS(0.99, 100),
};
const int ag_nn_n_specs = sizeof ag_nn_specs / sizeof ag_nn_specs[0];

const AgParamSpec ag_fastai_specs[] = {
	{"layers", NULL, AG_PARAM_INTS, 1, AG_NET_MAX_WIDTH, 0, NULL,
	 "units of each hidden layer; by default 200 and 100, more for more than 50 classes",
	 OFFSET(layers)},
	{"ps", NULL, AG_PARAM_REAL, 0, 0.95, 0.1, NULL,
	 "share of the units that a training step leaves out", OFFSET(dropout_prob)},
	{"emb_drop", NULL, AG_PARAM_REAL, 0, 0.95, 0.1, NULL,
	 "share of the categories' learnt numbers that a training step leaves out",
	 OFFSET(embedding_dropout_prob)},
	{"bs", "batch_size", AG_PARAM_INT, 0, 65536, 0, NULL,
	 "training rows of a step; 0: 256, 512 from 200,000 rows on", OFFSET(batch_size)},
	{"lr", "learning_rate", AG_PARAM_REAL, 1e-9, 10, 1e-2, NULL,
	 "largest step size of the one-cycle schedule", OFFSET(learning_rate)},
	{"wd", "weight_decay", AG_PARAM_REAL, 0, 10, 0.01, NULL,
	 "how fast weights decay, times the step size", OFFSET(weight_decay)},
	{"epochs", "num_epochs", AG_PARAM_INT, 1, 1000000, 30, NULL, "passes over the rows",
	 OFFSET(num_epochs)},
	{"early.stopping.patience", NULL, AG_PARAM_INT, -1, 1000000, 20, NULL,
	 "epochs to wait for a better score; -1: 20 and half of those so far, 0: all",
	 OFFSET(patience)},
	{"early.stopping.min_delta", NULL, AG_PARAM_REAL, 0, 1e9, 1e-4, NULL,
	 "by how much a score must be better to be waited for", OFFSET(min_delta)},
	{"smoothing", NULL, AG_PARAM_REAL, 0, 0.9, 0, NULL, "share of a label given to all classes",
	 OFFSET(label_smoothing)},
	{"y_range_extend", NULL, AG_PARAM_REAL, 0, 1000, 0.05, NULL,
	 "how far beyond the training labels predictions may go, in standard deviations",
	 OFFSET(y_range_extend)},
	DENSE_SPECS(INFINITY, 1000),
};
const int ag_fastai_n_specs = sizeof ag_fastai_specs / sizeof ag_fastai_specs[0];

const AgParamSpec ag_realmlp_specs[] = {
	{"layers", "hidden_sizes", AG_PARAM_INTS, 1, AG_NET_MAX_WIDTH, 0, NULL,
	 "units of each hidden layer; by default three times 256", OFFSET(layers)},
	{"activation", "act", AG_PARAM_CHOICE, 0, 5, AG_NET_ACT_AUTO, ACTIVATIONS,
	 "what units do with their sums; auto: selu for classes, mish for numbers", OFFSET(activation)},
	{"p_drop", "dropout_prob", AG_PARAM_REAL, 0, 0.95, 0.15, NULL,
	 "share of the units that a training step leaves out; falls to 0 in the second half",
	 OFFSET(dropout_prob)},
	{"lr", "learning_rate", AG_PARAM_REAL, 0, 10, 0, NULL,
	 "largest step size; 0: 0.04 for classes, 0.07 for numbers", OFFSET(learning_rate)},
	{"wd", "weight_decay", AG_PARAM_REAL, 0, 10, 0.1, NULL,
	 "how fast weights decay, times the step size; falls to 0 in the second half",
	 OFFSET(weight_decay)},
	{"ls_eps", "label_smoothing", AG_PARAM_REAL, 0, 0.9, 0.1, NULL,
	 "share of a label given to all classes, where the metric looks at classes alone",
	 OFFSET(label_smoothing)},
	{"numeric_embeddings", NULL, AG_PARAM_BOOL, 0, 1, 1, NULL,
	 "add learnt waves of each number to the inputs", OFFSET(numeric_waves)},
	{"batch_size", NULL, AG_PARAM_INT, 0, 65536, 256, NULL,
	 "training rows of a step; 0: by the number of rows, up to 512", OFFSET(batch_size)},
	{"n_epochs", "num_epochs", AG_PARAM_INT, 1, 1000000, 256, NULL, "passes over the rows",
	 OFFSET(num_epochs)},
	{"early_stopping_patience", NULL, AG_PARAM_INT, -1, 1000000, 0, NULL,
	 "epochs to wait for a better score; -1: 20 and half of those so far, 0: all",
	 OFFSET(patience)},
	{"max_one_hot_cat_size", NULL, AG_PARAM_INT, 1, 1e9, 9, NULL,
	 "categories from which on a feature becomes a learnt vector", OFFSET(embed_min_levels)},
	{"y_range_extend", NULL, AG_PARAM_REAL, 0, 1000, 0, NULL,
	 "how far beyond the training labels predictions may go, in standard deviations",
	 OFFSET(y_range_extend)},
	DENSE_SPECS(0.99, 1000),
};
const int ag_realmlp_n_specs = sizeof ag_realmlp_specs / sizeof ag_realmlp_specs[0];

const AgParamSpec ag_tabm_specs[] = {
	{"tabm_k", NULL, AG_PARAM_INT, 1, AG_NET_MAX_MEMBERS, 16, NULL,
	 "members, which share all hidden layers", OFFSET(n_members)},
	{"n_blocks", "num_layers", AG_PARAM_INT, 1, AG_NET_MAX_LAYERS, 2, NULL, "hidden layers",
	 OFFSET(num_layers)},
	{"d_block", "hidden_size", AG_PARAM_INT, 1, AG_NET_MAX_WIDTH, 128, NULL,
	 "units of a hidden layer", OFFSET(hidden_size)},
	{"activation", NULL, AG_PARAM_CHOICE, 0, 5, AG_NET_ACT_RELU, ACTIVATIONS,
	 "what units do with their sums; auto: selu for classes, mish for numbers", OFFSET(activation)},
	{"dropout", "dropout_prob", AG_PARAM_REAL, 0, 0.95, 0.1, NULL,
	 "share of the units that a training step leaves out", OFFSET(dropout_prob)},
	{"lr", "learning_rate", AG_PARAM_REAL, 1e-9, 10, 2e-3, NULL, "step size of Adam",
	 OFFSET(learning_rate)},
	{"weight_decay", NULL, AG_PARAM_REAL, 0, 10, 3e-4, NULL,
	 "how fast weights decay, times the step size", OFFSET(weight_decay)},
	{"ls_eps", "label_smoothing", AG_PARAM_REAL, 0, 0.9, 0, NULL,
	 "share of a label given to all classes, where the metric looks at classes alone",
	 OFFSET(label_smoothing)},
	{"numeric_embeddings", NULL, AG_PARAM_BOOL, 0, 1, 1, NULL,
	 "add learnt waves of each number to the inputs", OFFSET(numeric_waves)},
	{"num_emb_type", NULL, AG_PARAM_CHOICE, 0, 1, AG_NET_COSINES, "waves pwl",
	 "what these are: waves, or pwl: how far the number is in each of 16 pieces of its range",
	 OFFSET(wave_kind)},
	{"d_embedding", NULL, AG_PARAM_INT, 1, AG_NET_LANES, 8, NULL,
	 "inputs that the waves of a number make", OFFSET(n_wave_inputs)},
	{"batch_size", NULL, AG_PARAM_INT, 0, 65536, 0, NULL,
	 "training rows of a step; 0: by the number of rows, 32 to 256", OFFSET(batch_size)},
	{"n_epochs", "num_epochs", AG_PARAM_INT, 1, 1000000, 200, NULL, "most passes over the rows",
	 OFFSET(num_epochs)},
	{"patience", NULL, AG_PARAM_INT, -1, 1000000, 16, NULL,
	 "epochs to wait for a better score; -1: 20 and half of those so far, 0: all",
	 OFFSET(patience)},
	{"max_one_hot_cat_size", NULL, AG_PARAM_INT, 1, 1e9, 9, NULL,
	 "categories from which on a feature becomes a learnt vector", OFFSET(embed_min_levels)},
	{"y_range_extend", NULL, AG_PARAM_REAL, 0, 1000, 0, NULL,
	 "how far beyond the training labels predictions may go, in standard deviations",
	 OFFSET(y_range_extend)},
	DENSE_SPECS(0.99, 1000),
};
const int ag_tabm_n_specs = sizeof ag_tabm_specs / sizeof ag_tabm_specs[0];

void
ag_net_params_complete(AgNetFamily family, AgNetParams *params)
{
	params->family = family;
	if (family == AG_NET_REALMLP)
		params->n_wave_inputs = 3;
	if (family != AG_NET_NN_TORCH)
		params->max_batch_size = 512;
	if (family == AG_NET_FASTAI)
	{
		params->activation = AG_NET_ACT_RELU;
		params->use_batchnorm = true;
		params->embed_min_levels = 2;
	}
	if (family == AG_NET_REALMLP && params->layers.n == 0)
	{
		params->num_layers = 3;
		params->hidden_size = 256;
	}
}

void
ag_net_params_default(AgNetFamily family, AgNetParams *params)
{
	memset(params, 0, sizeof *params);
	if (family == AG_NET_NN_TORCH)
		ag_params_default(ag_nn_specs, ag_nn_n_specs, params);
	else if (family == AG_NET_FASTAI)
		ag_params_default(ag_fastai_specs, ag_fastai_n_specs, params);
	else if (family == AG_NET_REALMLP)
		ag_params_default(ag_realmlp_specs, ag_realmlp_n_specs, params);
	else
		ag_params_default(ag_tabm_specs, ag_tabm_n_specs, params);
	ag_net_params_complete(family, params);
}
