/* net_options.c - what users may set of a net, by the names that they set it by, does what its description says. */
#include "unit/net_cases.h"

#define N_ROWS 300
#define N_TRAIN 220
#define MOST_SPECS 40

typedef struct Family
{
	AgNetFamily id;
	const char *name;
	const AgParamSpec *specs;
	int n_specs;
	bool is_set[MOST_SPECS]; /* by any of the tests */
} Family;

static Mixed mixed;
static Family families[4];

static void
name_families(void)
{
	families[AG_NET_NN_TORCH] =
		(Family){AG_NET_NN_TORCH, "NN_TORCH", ag_nn_specs, ag_nn_n_specs, {0}};
	families[AG_NET_FASTAI] =
		(Family){AG_NET_FASTAI, "FASTAI", ag_fastai_specs, ag_fastai_n_specs, {0}};
	families[AG_NET_REALMLP] =
		(Family){AG_NET_REALMLP, "REALMLP", ag_realmlp_specs, ag_realmlp_n_specs, {0}};
	families[AG_NET_TABM] = (Family){AG_NET_TABM, "TABM", ag_tabm_specs, ag_tabm_n_specs, {0}};
}

/* The family's defaults with options "name=value name=value" on top, as a fit would take them. */
static AgNetParams
with(AgNetFamily id, const char *options)
{
	Family *family = &families[id];
	AgNetParams params;
	char text[400], *rest;

	memset(&params, 0, sizeof params);
	ag_params_default(family->specs, family->n_specs, &params);
	snprintf(text, sizeof text, "%s", options);
	for (char *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
	{
		char *value = strchr(word, '=');
		bool is_text;

		AG_REQUIRE(value != NULL);
		*value++ = '\0';
		is_text = value[0] >= 'a' && value[0] <= 'z' && strcmp(value, "true") != 0 &&
				  strcmp(value, "false") != 0;
		if (!AG_CHECK(ag_param_set(family->specs, family->n_specs, family->name, word, value,
								   is_text, &params, &err) == AG_OK))
			fprintf(stderr, "    %s: %s\n", word, err.message);
		for (int i = 0; i < family->n_specs; i++)
			family->is_set[i] = family->is_set[i] || strcmp(family->specs[i].name, word) == 0;
	}
	ag_net_params_complete(id, &params);
	params.seed = 5;
	return params;
}

static AgTrainData
watched(AgProblem problem)
{
	return data_of(&mixed, problem, N_TRAIN);
}

static Fitted
train_with(AgNetFamily id, AgProblem problem, const char *options)
{
	AgTrainData data = watched(problem);
	AgNetParams params = with(id, options);
	Fitted fitted = train(&mixed.columns, MIXED_FEATURES, N_ROWS, &data, &params);

	AG_REQUIRE(fitted.status == AG_OK);
	return fitted;
}

/* --- shapes */

static void
check_widths(AgNetFamily id, const char *options, uint32_t n, uint32_t first, uint32_t last)
{
	Fitted fitted = train_with(id, AG_PROBLEM_MULTICLASS, options);
	const AgNet *net = fitted.result.model;

	if (!AG_CHECK(net->n_layers == n + 1 && net->layers[0].n_out == first &&
				  net->layers[n - 1].n_out == last))
		fprintf(stderr, "    %s: %u layers\n", options, net->n_layers);
	drop(&fitted);
}

/* The slot of column 5, six levels and missing; is it one-hot, or how wide is its vector? */
static void
check_slot(AgNetFamily id, const char *options, bool is_one_hot, uint32_t width)
{
	Fitted fitted = train_with(id, AG_PROBLEM_REGRESSION, options);
	const AgNet *net = fitted.result.model;
	uint32_t s = 0;

	while (s < net->n_slots && net->dense->slots[s].feature != 5)
		s++;
	AG_REQUIRE(s < net->n_slots && net->dense->slots[s].width == 7);
	if (!AG_CHECK((net->slots[s].first == AG_NET_ONE_HOT) == is_one_hot &&
				  (width == 0 || net->slots[s].n_inputs == width)))
		fprintf(stderr, "    %s: %u inputs\n", options, net->slots[s].n_inputs);
	drop(&fitted);
}

static void
test_shapes(void)
{
	Fitted fitted;

	check_widths(AG_NET_NN_TORCH, "num_layers=3 hidden_size=20 num_epochs=1", 3, 20, 20);
	check_widths(AG_NET_NN_TORCH, "layers=[9,11] num_epochs=1", 2, 9, 11);
	check_widths(AG_NET_FASTAI, "layers=[7] epochs=1", 1, 7, 7);
	check_widths(AG_NET_FASTAI, "epochs=1", 2, 200, 100);
	check_widths(AG_NET_REALMLP, "layers=[8,6,4] n_epochs=1", 3, 8, 4);
	check_widths(AG_NET_TABM, "n_blocks=1 d_block=13 n_epochs=1", 1, 13, 13);
	check_slot(AG_NET_NN_TORCH, "num_epochs=1 proc.embed_min_categories=8", true, 7);
	check_slot(AG_NET_NN_TORCH, "num_epochs=1 proc.embed_min_categories=7", false,
			   5); /* 1.6 * 8^0.56 = 5.13 */
	check_slot(AG_NET_NN_TORCH, "num_epochs=1 embedding_size_factor=2", false, 10);
	check_slot(AG_NET_NN_TORCH, "num_epochs=1 embed_exponent=1", false, 12);
	check_slot(AG_NET_NN_TORCH, "num_epochs=1 max_embedding_dim=3", false, 3);
	check_slot(AG_NET_REALMLP, "n_epochs=1 max_one_hot_cat_size=8", true, 7);
	check_slot(AG_NET_REALMLP, "n_epochs=1 max_one_hot_cat_size=7", false, 0);
	check_slot(AG_NET_TABM, "n_epochs=1 max_one_hot_cat_size=8", true, 7);
	check_slot(AG_NET_TABM, "n_epochs=1 max_one_hot_cat_size=7", false, 0);
	for (int i = 0; i < 2; i++)
	{
		fitted = train_with(AG_NET_NN_TORCH, AG_PROBLEM_REGRESSION,
							i == 0 ? "use_batchnorm=false num_epochs=1"
								   : "use_batchnorm=true num_epochs=1");
		AG_CHECK_EQ(fitted.result.model->layers[0].has_norm, i);
		drop(&fitted);
		fitted = train_with(AG_NET_REALMLP, AG_PROBLEM_REGRESSION,
							i == 0 ? "numeric_embeddings=false n_epochs=1"
								   : "numeric_embeddings=true n_epochs=1");
		AG_CHECK_EQ(fitted.result.model->n_waves > 0, i);
		drop(&fitted);
		fitted = train_with(AG_NET_TABM, AG_PROBLEM_REGRESSION,
							i == 0 ? "num_emb_type=waves d_embedding=5 tabm_k=3 n_epochs=1"
								   : "num_emb_type=pwl n_epochs=1");
		AG_CHECK_EQ((fitted.result.model->bends & AG_NET_IN_PIECES) != 0, i);
		AG_CHECK_EQ(fitted.result.model->n_wave_inputs, i == 0 ? 5 : 8);
		AG_CHECK_EQ(fitted.result.model->n_members, i == 0 ? 3 : 16);
		drop(&fitted);
	}
	fitted = train_with(AG_NET_TABM, AG_PROBLEM_REGRESSION, "numeric_embeddings=false n_epochs=1");
	AG_CHECK_EQ(fitted.result.model->n_waves, 0);
	drop(&fitted);
}

static void
test_activations(void)
{
	static const struct
	{
		const char *name;
		uint32_t of_classes, of_numbers;
	} cases[] = {{"relu", AG_ACT_RELU, AG_ACT_RELU}, {"elu", AG_ACT_ELU, AG_ACT_ELU},
				 {"tanh", AG_ACT_TANH, AG_ACT_TANH}, {"selu", AG_ACT_SELU, AG_ACT_SELU},
				 {"mish", AG_ACT_MISH, AG_ACT_MISH}, {"auto", AG_ACT_SELU, AG_ACT_MISH}};
	static const AgNetFamily ids[] = {AG_NET_NN_TORCH, AG_NET_REALMLP, AG_NET_TABM};

	for (int i = 0; i < 6; i++)
		for (int f = 0; f < 3; f++)
		{
			char options[100];
			Fitted fitted;

			snprintf(options, sizeof options, "activation=%s %s=1", cases[i].name,
					 f == 0 ? "num_epochs" : "n_epochs");
			fitted = train_with(ids[f], AG_PROBLEM_MULTICLASS, options);
			AG_CHECK_EQ(fitted.result.model->layers[0].activation, cases[i].of_classes);
			drop(&fitted);
			fitted = train_with(ids[f], AG_PROBLEM_REGRESSION, options);
			AG_CHECK_EQ(fitted.result.model->layers[0].activation, cases[i].of_numbers);
			drop(&fitted);
		}
}

/* --- one batch */

/* A trainer behind one batch's derivatives. */
static void
derive(AgNetFamily id, AgMetric metric, const char *options, Fitted *fitted, AgNetTrainer *trainer)
{
	static AgTrainData data;
	static uint32_t order[N_TRAIN];
	AgNetParams params = with(id, options);

	data = watched(AG_PROBLEM_MULTICLASS);
	data.stop_metric = metric;
	for (uint32_t i = 0; i < N_TRAIN; i++)
		order[i] = i;
	prepare(&mixed.columns, MIXED_FEATURES, N_ROWS, &data, &params, fitted);
	AG_REQUIRE(ag_net_trainer_init(&ctx, fitted->dense, fitted->matrix, &data, &params, trainer) ==
			   AG_OK);
	ag_net_batch_derive(trainer, order, trainer->batch_size, 99);
}

static void
end(Fitted *fitted, AgNetTrainer *trainer)
{
	ag_net_trainer_free(trainer);
	drop(fitted);
}

static double
zeros(const float *x, int n_rows, size_t stride, size_t first, size_t last)
{
	double n = 0.0;

	for (int i = 0; i < n_rows; i++)
		for (size_t j = first; j < last; j++)
			n += x[(size_t) i * stride + j] == 0.0f;
	return n / ((double) n_rows * (double) (last - first));
}

/* The share of a layer's units that a step leaves out: their slopes are 0, or their factors where they are normalised. */
static void
test_dropout(void)
{
	static const char *const options[] = {"dropout_prob=0.4 activation=tanh", "ps=0.4",
										  "p_drop=0.4", "dropout=0.4 activation=tanh"};
	AgNetTrainer trainer;
	Fitted fitted;

	for (int f = 0; f < 4; f++)
	{
		const AgNetRows *rows;

		derive((AgNetFamily) f, AG_METRIC_LOG_LOSS, options[f], &fitted, &trainer);
		rows = &trainer.rows[0];
		AG_CHECK_NEAR(
			zeros(rows->keep != NULL ? rows->keep : rows->slope, ag_net_member_rows(&trainer),
				  ag_net_stride(trainer.net->layers[0].n_out), 0, trainer.net->layers[0].n_out),
			0.4, 0.02);
		end(&fitted, &trainer);
	}
	derive(AG_NET_FASTAI, AG_METRIC_LOG_LOSS, "emb_drop=0.3", &fitted, &trainer);
	AG_CHECK_NEAR(zeros(trainer.input_keep, trainer.n_rows, ag_net_stride(trainer.net->n_inputs),
						trainer.net->first_wave, trainer.net->n_inputs),
				  0.3, 0.03);
	AG_CHECK_NEAR(zeros(trainer.input_keep, trainer.n_rows, ag_net_stride(trainer.net->n_inputs), 0,
						trainer.net->first_wave),
				  0.0, 0.0);
	end(&fitted, &trainer);
}

/* Derivatives by the outputs are those of labels of which `share` goes to all classes alike. */
static void
check_smoothing(AgNetFamily id, AgMetric metric, const char *options, double share)
{
	AgNetTrainer trainer;
	Fitted fitted;
	const AgNetRows *last;
	double worst = 0.0;
	size_t stride;
	int n;

	derive(id, metric, options, &fitted, &trainer);
	last = &trainer.rows[trainer.net->n_layers - 1];
	stride = ag_net_stride(3);
	n = ag_net_member_rows(&trainer);
	for (int i = 0; i < n; i++)
	{
		const float *z = last->post + (size_t) i * stride, *d = last->delta + (size_t) i * stride;
		double total = exp((double) z[0]) + exp((double) z[1]) + exp((double) z[2]);
		int32_t label = mixed.class_of[i % trainer.n_rows];

		for (int k = 0; k < 3; k++)
			worst = fmax(worst, fabs((double) d[k] * n - (exp((double) z[k]) / total - share / 3.0 -
														  (k == label ? 1.0 - share : 0.0))));
	}
	if (!AG_CHECK(worst < 1e-4))
		fprintf(stderr, "    %s: %g off\n", options, worst);
	end(&fitted, &trainer);
}

static void
test_smoothing(void)
{
	check_smoothing(AG_NET_NN_TORCH, AG_METRIC_ACCURACY, "", 0.0);
	check_smoothing(AG_NET_FASTAI, AG_METRIC_LOG_LOSS, "smoothing=0.2", 0.2);
	check_smoothing(AG_NET_REALMLP, AG_METRIC_ACCURACY, "ls_eps=0.3", 0.3);
	check_smoothing(AG_NET_REALMLP, AG_METRIC_LOG_LOSS, "ls_eps=0.3", 0.0);
	check_smoothing(AG_NET_TABM, AG_METRIC_ACCURACY, "ls_eps=0.3", 0.3);
	check_smoothing(AG_NET_TABM, AG_METRIC_LOG_LOSS, "ls_eps=0.3", 0.0);
}

static void
test_batches(void)
{
	static const char *const options[] = {"batch_size=37", "bs=37", "batch_size=37",
										  "batch_size=37"};
	AgNetTrainer trainer;
	Fitted fitted;

	for (int f = 0; f < 4; f++)
	{
		derive((AgNetFamily) f, AG_METRIC_LOG_LOSS, options[f], &fitted, &trainer);
		AG_CHECK_EQ(trainer.batch_size, 37);
		end(&fitted, &trainer);
	}
	derive(AG_NET_NN_TORCH, AG_METRIC_LOG_LOSS, "max_batch_size=21", &fitted, &trainer);
	AG_CHECK_EQ(trainer.batch_size, 21);
	end(&fitted, &trainer);
}

/* --- trainings */

/* The first layer's weights behind one step. */
static void
one_step(AgNetFamily id, const char *format, double rate, float *weights, size_t n)
{
	char options[200];
	Fitted fitted;

	snprintf(options, sizeof options, format, rate);
	fitted = train_with(id, AG_PROBLEM_MULTICLASS, options);
	AG_REQUIRE(
		fitted.result.model->layers[0].n_in * (size_t) fitted.result.model->layers[0].n_out >= n);
	memcpy(weights, fitted.result.model->values + fitted.result.model->layers[0].first,
		   n * sizeof *weights);
	drop(&fitted);
}

/* Twice the rate goes twice as far, and Adam's first step goes no further than the rate. */
static void
check_rate(AgNetFamily id, const char *format)
{
	enum
	{
		N = 64
	};
	float none[N], once[N], twice[N];
	double moved = 0.0, off = 0.0;

	one_step(id, format, 1e-9, none, N);
	one_step(id, format, 0.01, once, N);
	one_step(id, format, 0.02, twice, N);
	for (int i = 0; i < N; i++)
	{
		moved = fmax(moved, fabs((double) once[i] - none[i]));
		off = fmax(off, fabs(((double) twice[i] - none[i]) - 2.0 * ((double) once[i] - none[i])));
	}
	if (!AG_CHECK(moved > 1e-5 && moved < 0.0101 && off < 0.02 * moved))
		fprintf(stderr, "    %s: %g, off by %g\n", families[id].name, moved, off);
}

static double
size_of_weights(AgNetFamily id, const char *options)
{
	Fitted fitted = train_with(id, AG_PROBLEM_MULTICLASS, options);
	const AgNet *net = fitted.result.model;
	double sum = 0.0;

	for (uint32_t k = 0; k < net->layers[1].n_in; k++)
		for (uint32_t j = 0; j < net->layers[1].n_out; j++)
		{
			double w =
				net->values[net->layers[1].first + k * ag_net_stride(net->layers[1].n_out) + j];

			sum += w * w;
		}
	drop(&fitted);
	return sum;
}

static void
test_steps(void)
{
	check_rate(AG_NET_NN_TORCH, "num_epochs=1 batch_size=220 learning_rate=%g");
	check_rate(AG_NET_TABM, "n_epochs=1 batch_size=220 lr=%g");
	/* a FASTAI begins with a 25th, a REALMLP with none: the second step is what moves */
	check_rate(AG_NET_FASTAI, "epochs=1 bs=220 lr=%g wd=0");
	check_rate(AG_NET_REALMLP, "n_epochs=1 batch_size=110 lr=%g wd=0");
	AG_CHECK(size_of_weights(AG_NET_NN_TORCH,
							 "layers=[16,16] num_epochs=20 learning_rate=0.01 weight_decay=1") <
			 0.5 *
				 size_of_weights(AG_NET_NN_TORCH,
								 "layers=[16,16] num_epochs=20 learning_rate=0.01 weight_decay=0"));
	AG_CHECK(size_of_weights(AG_NET_FASTAI, "layers=[16,16] epochs=20 wd=10") <
			 0.5 * size_of_weights(AG_NET_FASTAI, "layers=[16,16] epochs=20 wd=0"));
	AG_CHECK(size_of_weights(AG_NET_REALMLP, "layers=[16,16] n_epochs=20 wd=5") <
			 0.5 * size_of_weights(AG_NET_REALMLP, "layers=[16,16] n_epochs=20 wd=0"));
	AG_CHECK(size_of_weights(AG_NET_TABM, "d_block=16 n_epochs=20 lr=0.01 weight_decay=10") <
			 0.5 * size_of_weights(AG_NET_TABM, "d_block=16 n_epochs=20 lr=0.01 weight_decay=0"));
}

/* Ends after so many epochs without a better one, by the history that it keeps. patience: as the option. */
static void
check_patience(AgNetFamily id, const char *options, int patience, double min_delta)
{
	Fitted fitted = train_with(id, AG_PROBLEM_REGRESSION, options);
	const AgNetResult *result = &fitted.result;
	double best = INFINITY;
	int waited = 0, most;

	for (int i = 0; i < result->history.n; i++)
		if (result->history.valid[i] < best - min_delta)
		{
			best = result->history.valid[i];
			waited = i + 1;
		}
	most = patience < 0 ? 20 + waited / 2 : patience;
	if (!AG_CHECK(result->epochs_run == waited + most))
		fprintf(stderr, "    %s: %d epochs, the best at %d\n", options, result->epochs_run, waited);
	drop(&fitted);
}

static void
test_epochs(void)
{
	static const char *const options[] = {"num_epochs=7 epochs_wo_improve=0 learning_rate=0.3",
										  "epochs=7 early.stopping.patience=0 lr=1",
										  "n_epochs=7 early_stopping_patience=0 lr=1",
										  "n_epochs=7 patience=0 lr=1"};

	for (int f = 0; f < 4; f++)
	{
		Fitted fitted = train_with((AgNetFamily) f, AG_PROBLEM_REGRESSION, options[f]);

		AG_CHECK_EQ(fitted.result.epochs_run, 7);
		drop(&fitted);
	}
	check_patience(AG_NET_NN_TORCH, "num_epochs=400 epochs_wo_improve=3 learning_rate=0.01", 3,
				   0.0);
	check_patience(AG_NET_NN_TORCH, "num_epochs=400 epochs_wo_improve=-1 learning_rate=0.01", -1,
				   0.0);
	check_patience(AG_NET_FASTAI, "epochs=400 early.stopping.patience=3 early.stopping.min_delta=0",
				   3, 0.0);
	check_patience(AG_NET_FASTAI,
				   "epochs=400 early.stopping.patience=3 early.stopping.min_delta=1e9", 3, 1e9);
	check_patience(AG_NET_REALMLP, "n_epochs=400 early_stopping_patience=3", 3, 0.0);
	check_patience(AG_NET_TABM, "n_epochs=400 patience=3 lr=0.02", 3, 0.0);
}

/* Predictions of numbers keep to the training labels' range and so many deviations more. */
static void
test_range(void)
{
	double low = INFINITY, high = -INFINITY, mean = 0.0, square = 0.0;

	for (int i = 0; i < N_TRAIN; i++)
	{
		low = fmin(low, mixed.target[i]);
		high = fmax(high, mixed.target[i]);
		mean += mixed.target[i] / N_TRAIN;
	}
	for (int i = 0; i < N_TRAIN; i++)
		square += (mixed.target[i] - mean) * (mixed.target[i] - mean) / N_TRAIN;
	AG_REQUIRE(low < 0.0 && high > 0.0); /* else they keep to one side of 0 */
	for (int f = 0; f < 4; f++)
		for (int wide = 0; wide < 2; wide++)
		{
			char options[100];
			double extend = 0.7 * wide * sqrt(square);
			Fitted fitted;

			snprintf(options, sizeof options, "y_range_extend=%g %s=3", 0.7 * wide,
					 f == 0   ? "num_epochs"
					 : f == 1 ? "epochs"
							  : "n_epochs");
			fitted = train_with((AgNetFamily) f, AG_PROBLEM_REGRESSION, options);
			AG_CHECK_NEAR(fitted.result.model->low, low - extend, 1e-9 * (high - low));
			AG_CHECK_NEAR(fitted.result.model->high, high + extend, 1e-9 * (high - low));
			for (int i = 0; i < N_ROWS - N_TRAIN; i++)
				if (!(fitted.result.valid_proba[i] >= fitted.result.model->low &&
					  fitted.result.valid_proba[i] <= fitted.result.model->high))
					AG_CHECK(false);
			drop(&fitted);
		}
}

/* What rows become is the transform's (unit/dense); here that each family hands it on. */
static void
test_transform(void)
{
	for (int f = 0; f < 4; f++)
	{
		AgNetParams params =
			with((AgNetFamily) f, "proc.skew_threshold=3 proc.impute_strategy=mean "
								  "proc.min_level_count=9 proc.max_category_levels=17");

		AG_CHECK(params.dense.skew_threshold == 3.0 && params.dense.impute == AG_DENSE_MEAN &&
				 params.dense.min_level_count == 9 && params.dense.max_levels == 17);
	}
}

int
main(void)
{
	ag_mem_init(&mem, INT64_MAX);
	ag_error_init(&err);
	ctx = (AgContext){.mem = &mem, .deadline_ns = INT64_MAX, .error = &err};
	mixed = mixed_make(71, N_ROWS);
	name_families();
	test_shapes();
	test_activations();
	test_dropout();
	test_smoothing();
	test_batches();
	test_steps();
	test_epochs();
	test_range();
	test_transform();
	for (int f = 0; f < 4; f++)
		for (int i = 0; i < families[f].n_specs; i++)
			if (!AG_CHECK(families[f].is_set[i]))
				fprintf(stderr, "    nobody has tried %s of %s\n", families[f].specs[i].name,
						families[f].name);
	mixed_free(&mixed);
	AG_CHECK_EQ(atomic_load(&mem.used_bytes), 0);
	return ag_unit_done("net_options");
}
