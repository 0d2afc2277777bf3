/* net_gradients.c - derivatives of every layer, head and input of a net by differences; pieces of numbers. */
#include "unit/net_cases.h"

/* Loss of the batch with one value moved by h. */
static double
loss_at(AgNetTrainer *trainer, const uint32_t *order, int n, float *value, float h)
{
	float was = *value;
	double loss;

	*value = was + h;
	ag_net_weights_spread_all(trainer);
	loss = ag_net_batch_derive(trainer, order, n, 77);
	*value = was;
	ag_net_weights_spread_all(trainer);
	return loss;
}

static const double some_levels[] = {0.1, 0.5, 0.8};

/* Single precision and kinks leave some noise: all but a few of the sampled values must agree. */
static void
check_gradient_of(AgNetFamily family, AgProblem problem, int activation, double dropout,
				  int wave_kind)
{
	Mixed mixed = mixed_make(3, 60);
	AgTrainData data = data_of(&mixed, problem, 60);
	AgNetParams params = small(family, 1);
	AgNetTrainer trainer;
	Fitted fitted;
	uint32_t order[60];
	int n_tried = 0, n_bad = 0;
	bool has_kinks = family == AG_NET_FASTAI || activation == AG_NET_ACT_RELU ||
					 problem == AG_PROBLEM_QUANTILE || wave_kind == AG_NET_PIECES;

	if (problem == AG_PROBLEM_BINARY)
		two_classes(&mixed);
	data.weight = mixed.weight;
	if (problem == AG_PROBLEM_QUANTILE)
	{
		data.quantiles = some_levels;
		data.n_quantiles = 3;
	}
	if (family == AG_NET_NN_TORCH)
		params.use_batchnorm = dropout > 0.0;
	if (family == AG_NET_NN_TORCH || family == AG_NET_TABM)
		params.activation = activation;
	if (family == AG_NET_TABM)
		params.n_members = 3;
	params.dropout_prob = params.embedding_dropout_prob = dropout;
	params.batch_size = 60;
	params.embed_min_levels = 3;
	params.wave_kind = wave_kind;
	for (uint32_t i = 0; i < 60; i++)
		order[i] = i;
	prepare(&mixed.columns, MIXED_FEATURES, 60, &data, &params, &fitted);
	AG_REQUIRE(ag_net_trainer_init(&ctx, fitted.dense, fitted.matrix, &data, &params, &trainer) ==
			   AG_OK);
	AG_REQUIRE(ag_get_zeroed(&ctx, trainer.net->n_values, sizeof(float), &trainer.gradient) ==
			   AG_OK);
	AG_REQUIRE(ag_get_zeroed(&ctx, 512, sizeof(float), &trainer.scale_gradient) == AG_OK);
	for (uint64_t i = 0; trainer.input_scale != NULL && i < trainer.net->n_inputs; i++)
		trainer.input_scale[i] = 1.0f + 0.3f * number(8, i);
	for (uint64_t i = 0; wave_kind == AG_NET_PIECES && i < trainer.net->dense->n_numbers * 16;
		 i++) /* off the rows that pieces begin at */
		trainer.values[trainer.net->first_wave_value +
					   i / 16 * ag_net_wave_values(16, trainer.net->n_wave_inputs) + 16 + i % 16] +=
			0.05f + 0.02f * number(9, i);
	ag_net_weights_spread_all(&trainer);
	ag_net_batch(&trainer, order, 60, 77);
	for (uint64_t i = 0; i < trainer.net->n_values + trainer.net->n_inputs; i++)
	{
		bool is_scale = i >= trainer.net->n_values;
		float *value, h = has_kinks ? 1e-3f : 4e-3f;
		double slope, gradient, within;

		if (is_scale && trainer.input_scale == NULL)
			break;
		value = is_scale ? trainer.input_scale + (i - trainer.net->n_values) : trainer.values + i;
		gradient =
			is_scale ? trainer.scale_gradient[i - trainer.net->n_values] : trainer.gradient[i];
		if (gradient == 0.0 && i % 5 != 0)
			continue;
		if (i > 60 && i + 60 < trainer.net->n_values && i % 7 != 0) /* some of every layer */
			continue;
		slope = (loss_at(&trainer, order, 60, value, h) - loss_at(&trainer, order, 60, value, -h)) /
				(2.0 * h);
		within = (has_kinks ? 1e-3 : 2e-4) + 0.03 * fabs(slope);
		n_tried++;
		n_bad += !(fabs(slope - gradient) <= within);
	}
	AG_CHECK(n_tried > 100);
	if (!AG_CHECK(n_bad * (has_kinks ? 12 : 30) <= n_tried))
		fprintf(stderr, "    family %d problem %d activation %d dropout %g: %d of %d differ\n",
				family, problem, activation, dropout, n_bad, n_tried);
	ag_mem_free(&mem, trainer.gradient);
	ag_mem_free(&mem, trainer.scale_gradient);
	ag_net_trainer_free(&trainer);
	drop(&fitted);
	mixed_free(&mixed);
}

static void
check_gradient(AgNetFamily family, AgProblem problem, int activation, double dropout)
{
	check_gradient_of(family, problem, activation, dropout, AG_NET_COSINES);
}

/* A number's pieces: what is left behind is 1, what is to come 0, and the outer ones have no end. */
static void
test_pieces(void)
{
	Mixed mixed = mixed_make(5, 400);
	AgTrainData data = data_of(&mixed, AG_PROBLEM_REGRESSION, 400);
	AgNetParams params = small(AG_NET_TABM, 1);
	AgNetTrainer trainer;
	Fitted fitted;
	int n_wrong = 0;

	for (int64_t i = 0; i < 400; i++)
		mixed.cells[1][i] = (double) (i % 3); /* few values: few pieces */
	params.wave_kind = AG_NET_PIECES;
	prepare(&mixed.columns, MIXED_FEATURES, 400, &data, &params, &fitted);
	AG_REQUIRE(ag_net_trainer_init(&ctx, fitted.dense, fitted.matrix, &data, &params, &trainer) ==
			   AG_OK);
	AG_REQUIRE(trainer.net->n_waves == 16 && trainer.net->dense->n_numbers >= 3);
	for (uint32_t j = 0; j < trainer.net->dense->n_numbers; j++)
	{
		const float *w = trainer.values + trainer.net->first_wave_value +
						 j * ag_net_wave_values(16, trainer.net->n_wave_inputs);
		float before = -1e30f;
		double share = 0.0;
		int n_flat = 0;

		for (int at = -40; at <= 40; at++)
		{
			float x = (float) at * 0.1f, sum = 0.0f;

			for (uint32_t k = 0; k < 16; k++)
			{
				float piece = ag_net_piece(w[k] * x + w[16 + k], k, 16);

				n_wrong += (k > 0 && piece < 0.0f) || (k < 15 && piece > 1.0f);
				sum += piece;
			}
			n_wrong += !(sum >= before);
			before = sum;
		}
		for (uint32_t k = 0; k < 16; k++)
			n_flat += w[k] == 0.0f;
		for (int64_t i = 0; i < 400; i++) /* about as many rows in each */
			for (uint32_t k = 0; k < 16; k++)
			{
				float x = ag_net_number(
					trainer.net, fitted.matrix->numbers[(size_t) i * fitted.matrix->stride + j]);

				share += ag_net_piece(w[k] * x + w[16 + k], k, 16) / 400.0;
			}
		if (j < 2)
			AG_CHECK_EQ(n_flat, j == 0 ? 0 : 14);
		if (j == 0)
			AG_CHECK_NEAR(share, 8.0, 0.5);
	}
	AG_CHECK_EQ(n_wrong, 0);
	ag_net_trainer_free(&trainer);
	drop(&fitted);
	mixed_free(&mixed);
}

static void
test_gradients(void)
{
	static const AgProblem problems[] = {AG_PROBLEM_REGRESSION, AG_PROBLEM_BINARY,
										 AG_PROBLEM_MULTICLASS, AG_PROBLEM_QUANTILE};

	for (int p = 0; p < 4; p++)
	{
		check_gradient(AG_NET_NN_TORCH, problems[p], AG_NET_ACT_TANH, 0.0);
		check_gradient(AG_NET_NN_TORCH, problems[p], AG_NET_ACT_TANH, 0.3);
		check_gradient(AG_NET_FASTAI, problems[p], AG_NET_ACT_RELU, 0.0);
		check_gradient(AG_NET_FASTAI, problems[p], AG_NET_ACT_RELU, 0.2);
		check_gradient(AG_NET_REALMLP, problems[p], AG_NET_ACT_AUTO, 0.0);
		check_gradient(AG_NET_REALMLP, problems[p], AG_NET_ACT_AUTO, 0.2);
		check_gradient(AG_NET_TABM, problems[p], AG_NET_ACT_TANH, 0.0);
		check_gradient(AG_NET_TABM, problems[p], AG_NET_ACT_TANH, 0.2);
		check_gradient_of(AG_NET_TABM, problems[p], AG_NET_ACT_TANH, 0.0, AG_NET_PIECES);
	}
	for (int a = 0; a < AG_NET_ACT_AUTO; a++)
		check_gradient(AG_NET_NN_TORCH, AG_PROBLEM_MULTICLASS, a, 0.1);
}

int
main(void)
{
	ag_mem_init(&mem, INT64_MAX);
	ag_error_init(&err);
	ctx = (AgContext){.mem = &mem, .deadline_ns = INT64_MAX, .error = &err};
	test_gradients();
	test_pieces();
	AG_CHECK_EQ(atomic_load(&mem.used_bytes), 0);
	return ag_unit_done("net_gradients");
}
