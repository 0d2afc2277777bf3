/* net.c - neural nets: products by hand, threads, odd data, limits, bytes, memory. */
#include "unit/net_cases.h"

/* --- the inner loops */

static void
test_products(void)
{
	static const int shapes[][3] = {{1, 1, 16},  {2, 3, 16},   {7, 5, 32},  {8, 16, 48},
									{9, 1, 64},  {32, 30, 80}, {33, 7, 96}, {17, 40, 112},
									{5, 0, 128}, {16, 9, 144}};
	enum
	{
		SIZE = 64 * 160
	};
	static float a[SIZE], b[SIZE], init[160], plain[SIZE], c[SIZE];
	const AgNetOps *variants[3];
	int n = ag_net_ops_variants(variants);

	for (int i = 0; i < SIZE; i++)
	{
		a[i] = number(1, (uint64_t) i);
		b[i] = number(2, (uint64_t) i);
		init[i % 160] = number(3, (uint64_t) i);
	}
	for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
		for (int mode = 0; mode < 2; mode++)
		{
			int rows = shapes[s][0], inner = shapes[s][1], columns = shapes[s][2];
			size_t a_row = mode == 0 ? 48 : 1, a_inner = mode == 0 ? 1 : 48;

			memset(plain, 0, sizeof plain);
			for (int i = 0; i < rows; i++)
				for (int j = 0; j < columns; j++)
				{
					float sum = mode == 0 ? init[j] : 0.0f;

					for (int k = 0; k < inner; k++)
						sum =
							fmaf(a[(size_t) i * a_row + (size_t) k * a_inner], b[k * 160 + j], sum);
					plain[i * 160 + j] = sum;
				}
			for (int v = 0; v < n; v++)
			{
				memset(c, 0, sizeof c);
				variants[v]->multiply(rows, inner, columns, a, a_row, a_inner, b, 160,
									  mode == 0 ? init : NULL, c, 160);
				AG_CHECK(memcmp(c, plain, sizeof c) == 0);
			}
		}
}

/* Every variant gives the bits of the portable one. */
static void
test_variants(void)
{
	enum
	{
		N = 700
	};
	static float x[N], y[N], out[3][9][N], squares[3][64 * 64];
	const AgNetOps *variants[3];
	int n = ag_net_ops_variants(variants);
	AgAdam adam = {0.01f, 0.9f, 0.95f, 1.5f, 1e-8f, 1e-3f, 0.999f};

	for (int i = 0; i < N; i++)
	{
		x[i] = 30.0f * number(4, (uint64_t) i) * number(5, (uint64_t) i);
		y[i] = number(6, (uint64_t) i);
	}
	for (int kind = 0; kind <= AG_ACT_NONE; kind++)
	{
		memset(out, 0, sizeof out);
		for (int v = 0; v < n; v++)
		{
			variants[v]->activate((AgActivation) kind, N, x, out[v][0], out[v][1]);
			variants[v]->activate((AgActivation) kind, N, x, out[v][2], NULL);
			variants[v]->drop(99, 7, 20000, 1.5f, N / 4 * 4, out[v][3]);
			memcpy(out[v][4], x, sizeof x);
			variants[v]->scale(N, y, out[v][4]);
			for (int i = 0; i < N; i++)
				out[v][6][i] = 0.1f;
			variants[v]->adam(&adam, N, y, out[v][4], out[v][5], out[v][6]);
			variants[v]->exponentials(N, x, out[v][7]);
			variants[v]->waves(N, 0.3f, 0.2f, x, out[v][8]);
			variants[v]->transpose(32, 48, x, 14, squares[v], 64); /* overlapping rows will do */
			AG_CHECK(memcmp(out[v], out[0], sizeof out[0]) == 0);
			AG_CHECK(memcmp(squares[v], squares[0], sizeof squares[0]) == 0);
		}
		AG_CHECK(memcmp(out[0][0], out[0][2], sizeof out[0][0]) == 0);
	}
	AG_CHECK(squares[0][3 * 64 + 20] == x[20 * 14 + 3]);
}

static void
test_maths(void)
{
	for (int i = -400; i <= 400; i++)
	{
		float x = (float) i * 0.1f, h = 1e-2f;

		if (x > -60.0f)
			AG_CHECK_NEAR(ag_net_exp(x) / exp(x), 1.0, 1e-6);
		AG_CHECK_NEAR(ag_net_cos2pi(x), cos(6.283185307179586 * x), 1e-6);
		if (fabsf(x) > 15.0f)
			continue;
		AG_CHECK_NEAR(ag_net_tanh(x), tanh(x), 1e-6);
		AG_CHECK_NEAR(ag_net_elu(x), x > 0 ? x : expm1(x), 1e-6);
		AG_CHECK_NEAR(ag_net_mish(x), x * tanh(log1p(exp(x))), 3e-6);
		if (i == 0)
			continue; /* kinks */
		AG_CHECK_NEAR(ag_net_elu_slope(x), (ag_net_elu(x + h) - ag_net_elu(x - h)) / (2 * h), 2e-3);
		AG_CHECK_NEAR(ag_net_selu_slope(x), (ag_net_selu(x + h) - ag_net_selu(x - h)) / (2 * h),
					  3e-3);
		AG_CHECK_NEAR(ag_net_tanh_slope(x), (ag_net_tanh(x + h) - ag_net_tanh(x - h)) / (2 * h),
					  2e-3);
		AG_CHECK_NEAR(ag_net_mish_slope(x), (ag_net_mish(x + h) - ag_net_mish(x - h)) / (2 * h),
					  2e-3);
	}
}


/* --- training */

static double
error_of(const AgTrainData *data, const AgNetResult *result)
{
	double sum = 0.0;

	for (int64_t i = 0; i < data->n_valid; i++)
	{
		uint32_t row = data->valid_rows[i];

		if (data->n_classes == 0)
			sum += fabs(result->valid_proba[i] - data->target[row]);
		else
			sum += 1.0 - result->valid_proba[i * data->n_classes + data->class_of[row]];
	}
	return sum / (double) data->n_valid;
}

/* Every family learns what there is to learn, and a small table by heart. */
static void
test_learning(void)
{
	for (int family = 0; family < 4; family++)
		for (int p = 0; p < 3; p++)
		{
			AgProblem problem = p == 0   ? AG_PROBLEM_REGRESSION
								: p == 1 ? AG_PROBLEM_BINARY
										 : AG_PROBLEM_MULTICLASS;
			Mixed mixed = mixed_make(9, 900);
			AgTrainData data = data_of(&mixed, problem, 600);
			AgNetParams params = small((AgNetFamily) family, 60);
			AgTrainData by_heart;
			Fitted fitted;

			if (p == 1)
				two_classes(&mixed);
			if (family == AG_NET_NN_TORCH)
				params.learning_rate = 3e-3;
			fitted = train(&mixed.columns, MIXED_FEATURES, 900, &data, &params);
			if (!AG_CHECK(fitted.status == AG_OK))
				fprintf(stderr, "    %s\n", err.message);
			AG_CHECK(error_of(&data, &fitted.result) < (p == 0 ? 2.0 : p == 1 ? 0.32 : 0.45));
			AG_CHECK(fitted.result.best_epoch >= 1 && fitted.result.epochs_run <= 60);
			AG_CHECK(isfinite(fitted.result.best_value));
			drop(&fitted);

			by_heart = data_of(&mixed, problem, 40);
			by_heart.valid_rows = by_heart.train_rows;
			by_heart.n_valid = 40;
			params.num_epochs = 400;
			params.patience = 0;
			params.dropout_prob = params.embedding_dropout_prob = 0.0;
			params.label_smoothing = 0.0;
			fitted = train(&mixed.columns, MIXED_FEATURES, 900, &by_heart, &params);
			AG_CHECK(fitted.status == AG_OK);
			if (!AG_CHECK(error_of(&by_heart, &fitted.result) < (p == 0 ? 0.6 : 0.1)))
				fprintf(stderr, "    family %d problem %d: %g\n", family, p,
						error_of(&by_heart, &fitted.result));
			drop(&fitted);
			mixed_free(&mixed);
		}
}

/* The same bytes at any number of threads; predictions row by row are those of the validation, bit by bit. */
static void
test_threads(void)
{
	static const int n_threads[] = {1, 2, 5};

	for (int family = 0; family < 4; family++)
		for (int p = 0; p < 2; p++)
		{
			Mixed mixed = mixed_make(13, 1300);
			AgTrainData data =
				data_of(&mixed, p == 0 ? AG_PROBLEM_REGRESSION : AG_PROBLEM_MULTICLASS, 1000);
			AgNetParams params = small((AgNetFamily) family, 3);
			AgWriter first = {0};

			data.weight = mixed.weight;
			params.layers.values[0] = 200;
			params.layers.values[1] = 64;
			params.batch_size = 200;
			for (int t = 0; t < 3; t++)
			{
				AgWriter bytes;
				AgPool *pool;
				Fitted fitted;

				AG_REQUIRE(ag_pool_create(&mem, n_threads[t], &pool, &err) == AG_OK);
				ctx.pool = pool;
				fitted = train(&mixed.columns, MIXED_FEATURES, 1300, &data, &params);
				AG_REQUIRE(fitted.status == AG_OK);
				ag_writer_init(&bytes, &mem);
				AG_REQUIRE(ag_net_write(&ctx, fitted.result.model, &bytes) == AG_OK);
				ag_write_bytes(&bytes, fitted.result.valid_proba,
							   (size_t) data.n_valid * fitted.result.model->n_outputs *
								   sizeof(double));
				for (int64_t i = 0; i < data.n_valid && t == 0; i++)
				{
					double features[MIXED_FEATURES], out[3];

					for (int f = 0; f < MIXED_FEATURES; f++)
						features[f] = mixed.cells[f][data.valid_rows[i]];
					run_one(fitted.result.model, features, out);
					AG_CHECK(memcmp(out,
									fitted.result.valid_proba + i * fitted.result.model->n_outputs,
									fitted.result.model->n_outputs * sizeof(double)) == 0);
				}
				if (t == 0)
					first = bytes;
				else
				{
					AG_CHECK(bytes.size == first.size &&
							 memcmp(bytes.data, first.data, first.size) == 0);
					ag_writer_free(&bytes);
				}
				drop(&fitted);
				ctx.pool = NULL;
				ag_pool_free(pool);
			}
			ag_writer_free(&first);
			mixed_free(&mixed);
		}
}

static void
check_finite(const AgNet *net, uint32_t n_features)
{
	double features[64], out[1024], sum;

	for (uint64_t r = 0; r < 60; r++)
	{
		for (uint32_t f = 0; f < n_features; f++)
			features[f] = odd_value(r, f);
		run_one(net, features, out);
		sum = 0.0;
		for (uint32_t k = 0; k < ag_net_n_out(net); k++)
		{
			AG_CHECK(isfinite(out[k]));
			sum += out[k];
		}
		if (net->link == AG_NET_SOFTMAX)
			AG_CHECK_NEAR(sum, 1.0, 1e-9);
		else
			AG_CHECK(out[0] >= net->low && out[0] <= net->high);
	}
}

/* Few rows, no features, huge labels, many classes, zero weights: a model, and finite answers. */
static void
test_odd_data(void)
{
	for (int family = 0; family < 4; family++)
	{
		Mixed mixed = mixed_make(21, 1200);
		AgTrainData data = data_of(&mixed, AG_PROBLEM_REGRESSION, 1);
		AgNetParams params = small((AgNetFamily) family, 2);
		Fitted fitted;

		for (int64_t n = 1; n < 80; n = n * 4 - 1) /* 1, 3, 11, 43 rows */
		{
			data.n_train = n;
			fitted = train(&mixed.columns, MIXED_FEATURES, 1200, &data, &params);
			AG_REQUIRE(fitted.status == AG_OK);
			check_finite(fitted.result.model, MIXED_FEATURES);
			drop(&fitted);
		}
		data.n_train = 100;
		data.n_valid = 0; /* nothing to stop by */
		fitted = train(&mixed.columns, MIXED_FEATURES, 1200, &data, &params);
		AG_CHECK(fitted.status == AG_OK && fitted.result.best_epoch == 2 &&
				 isnan(fitted.result.best_value));
		drop(&fitted);
		fitted = train(&mixed.columns, 0, 1200, &data, &params); /* no features */
		AG_CHECK(fitted.status == AG_OK);
		check_finite(fitted.result.model, 0);
		drop(&fitted);
		for (int64_t i = 0; i < mixed.n_rows; i++)
			mixed.target[i] = i % 2 == 0 ? 1.7e308 : -1.7e308;
		fitted = train(&mixed.columns, MIXED_FEATURES, 1200, &data, &params);
		AG_CHECK(fitted.status == AG_OK);
		check_finite(fitted.result.model, MIXED_FEATURES);
		drop(&fitted);
		for (int64_t i = 0; i < mixed.n_rows; i++)
			mixed.target[i] = 1e12;
		fitted = train(&mixed.columns, MIXED_FEATURES, 1200, &data, &params);
		AG_CHECK(fitted.status == AG_OK);
		check_finite(fitted.result.model, MIXED_FEATURES);
		drop(&fitted);

		data = data_of(&mixed, AG_PROBLEM_MULTICLASS, 1100);
		data.n_classes = 1000;
		for (int64_t i = 0; i < mixed.n_rows; i++)
			mixed.class_of[i] = (int32_t) (i * 7 % 1000);
		for (int64_t i = 0; i < mixed.n_rows; i++)
			mixed.weight[i] = i % 3 == 0 ? 0.0 : 1e300;
		data.weight = mixed.weight;
		fitted = train(&mixed.columns, MIXED_FEATURES, 1200, &data, &params);
		AG_CHECK(fitted.status == AG_OK);
		check_finite(fitted.result.model, MIXED_FEATURES);
		drop(&fitted);
		for (int64_t i = 0; i < mixed.n_rows; i++)
			mixed.weight[i] = 0.0;
		fitted = train(&mixed.columns, MIXED_FEATURES, 1200, &data, &params);
		AG_CHECK(fitted.status == AG_ERR_DATA);
		drop(&fitted);
		data.n_train = 0;
		{
			AgNetResult result;

			AG_CHECK(ag_net_train(&ctx, NULL, NULL, &data, &params, &result) == AG_ERR_DATA);
			ag_error_init(&err);
		}
		mixed_free(&mixed);
	}
}

/* Infinite steps: an error that says so, or a model of before, but nothing that is no number. */
static void
test_divergence(void)
{
	Mixed mixed = mixed_make(31, 300);
	AgTrainData data = data_of(&mixed, AG_PROBLEM_MULTICLASS, 200);
	AgNetParams params = small(AG_NET_NN_TORCH, 5);
	Fitted fitted;

	params.learning_rate = 1e38;
	fitted = train(&mixed.columns, MIXED_FEATURES, 300, &data, &params);
	AG_CHECK(fitted.status == AG_OK || fitted.status == AG_ERR_DATA);
	if (fitted.status == AG_OK)
		check_finite(fitted.result.model, MIXED_FEATURES);
	drop(&fitted);
	mixed_free(&mixed);
}

static void
test_limits(void)
{
	Mixed mixed = mixed_make(41, 3000);
	AgTrainData data = data_of(&mixed, AG_PROBLEM_MULTICLASS, 2500);
	AgNetParams params = small(AG_NET_REALMLP, 100000);
	_Atomic bool cancel = true;
	int64_t began;
	Fitted fitted;

	ctx.deadline_ns = ag_clock_ns() + INT64_C(300000000);
	began = ag_clock_ns();
	fitted = train(&mixed.columns, MIXED_FEATURES, 3000, &data, &params);
	AG_CHECK(fitted.status == AG_OK && fitted.result.stopped_by_time);
	AG_CHECK(ag_clock_ns() - began < INT64_C(3000000000));
	AG_CHECK(error_of(&data, &fitted.result) < 1.0);
	drop(&fitted);
	ctx.deadline_ns = 1;
	fitted = train(&mixed.columns, MIXED_FEATURES, 3000, &data, &params);
	AG_CHECK(fitted.status == AG_ERR_TIME);
	drop(&fitted);
	ctx.deadline_ns = INT64_MAX;
	prepare(&mixed.columns, MIXED_FEATURES, 3000, &data, &params, &fitted);
	ctx.cancel = &cancel;
	fitted.status = ag_net_train(&ctx, fitted.dense, fitted.matrix, &data, &params, &fitted.result);
	ctx.cancel = NULL;
	AG_CHECK(fitted.status == AG_ERR_CANCELLED);
	drop(&fitted);

	params = small(AG_NET_NN_TORCH, 10000); /* patience: labels that nothing explains */
	for (int64_t i = 0; i < mixed.n_rows; i++)
		mixed.class_of[i] = (int32_t) ag_random_below(5, (uint64_t) i, 3);
	params.patience = 3;
	data.n_train = 500;
	fitted = train(&mixed.columns, MIXED_FEATURES, 3000, &data, &params);
	AG_CHECK(fitted.status == AG_OK && fitted.result.stopped_by_patience);
	AG_CHECK(fitted.result.epochs_run >= fitted.result.best_epoch + 3 ||
			 fitted.result.epochs_run < 10000);
	drop(&fitted);
	mixed_free(&mixed);
}

/* --- bytes */

/* Many rows at once, of any count, as one by one. */
static void
check_rows(const AgNet *net, const Mixed *mixed)
{
	static const int64_t counts[] = {1, 5, 32, 100};
	double features[100 * MIXED_FEATURES], many[300], one[3];
	uint32_t n_out = ag_net_n_out(net);

	for (uint64_t i = 0; i < 100; i++)
		for (int f = 0; f < MIXED_FEATURES; f++)
			features[i * MIXED_FEATURES + (uint64_t) f] =
				i % 4 == 0 ? odd_value(i, (uint64_t) f) : mixed->cells[f][i];
	for (int c = 0; c < 4; c++)
	{
		void *scratch = ag_mem_alloc(&mem, (size_t) counts[c], ag_net_row_scratch_bytes(net));

		ag_net_run_rows(net, counts[c], features, scratch, many);
		for (int64_t i = 0; i < counts[c]; i++)
		{
			run_one(net, features + i * MIXED_FEATURES, one);
			AG_CHECK(memcmp(one, many + i * n_out, n_out * sizeof(double)) == 0);
		}
		ag_mem_free(&mem, scratch);
	}
}

static void
test_image(void)
{
	for (int family = 0; family < 4; family++)
	{
		Mixed mixed = mixed_make(51, 300);
		AgTrainData data = data_of(&mixed, AG_PROBLEM_MULTICLASS, 200);
		AgNetParams params = small((AgNetFamily) family, 2);
		AgWriter bytes, again;
		Fitted fitted;
		AgNet *read;
		uint8_t *damaged;
		int n_read = 0;

		params.use_batchnorm = true;
		params.layers.n = 1;
		fitted = train(&mixed.columns, MIXED_FEATURES, 300, &data, &params);
		AG_REQUIRE(fitted.status == AG_OK);
		ag_writer_init(&bytes, &mem);
		AG_REQUIRE(ag_net_write(&ctx, fitted.result.model, &bytes) == AG_OK);
		AG_REQUIRE(ag_net_read(&ctx, bytes.data, bytes.size, &read) == AG_OK);
		check_rows(read, &mixed);
		for (int64_t i = 0; i < 100; i++)
		{
			double features[MIXED_FEATURES], a[3], b[3];

			for (int f = 0; f < MIXED_FEATURES; f++)
				features[f] = i < 50 ? odd_value((uint64_t) i, (uint64_t) f) : mixed.cells[f][i];
			run_one(fitted.result.model, features, a);
			run_one(read, features, b);
			AG_CHECK(memcmp(a, b, sizeof a) == 0);
		}
		ag_writer_init(&again, &mem);
		AG_CHECK(ag_net_write(&ctx, read, &again) == AG_OK);
		AG_CHECK(again.size == bytes.size && memcmp(again.data, bytes.data, bytes.size) == 0);
		ag_writer_free(&again);
		ag_net_free(read);

		damaged = ag_mem_alloc(&mem, bytes.size, 1);
		for (size_t cut = 0; cut < bytes.size; cut += 1 + bytes.size / 97)
		{
			memcpy(damaged, bytes.data, bytes.size);
			AG_CHECK(ag_net_read(&ctx, damaged, cut, &read) == AG_ERR_CORRUPT);
			ag_error_init(&err);
		}
		for (uint64_t i = 0; i < 3000; i++)
		{
			uint32_t at =
				i < 1500 ? (uint32_t) (i / 2) : ag_random_below(1, i, (uint32_t) bytes.size);
			AgStatus status;

			memcpy(damaged, bytes.data, bytes.size);
			damaged[at % bytes.size] ^= (uint8_t) (1u << (i % 8));
			mend_image(damaged, bytes.size);
			status = ag_net_read(&ctx, damaged, bytes.size, &read);
			AG_CHECK(status == AG_OK || status == AG_ERR_CORRUPT);
			if (status == AG_OK)
			{
				n_read++;
				if (i % 16 == 0 && ag_net_n_out(read) <= 1024 && read->dense->n_features <= 64)
				{
					double features[64], out[1024];

					for (uint32_t f = 0; f < 64; f++)
						features[f] = odd_value(i, f);
					run_one(read, features, out);
					for (uint32_t k = 0; k < ag_net_n_out(read); k++)
						AG_CHECK(isfinite(out[k]));
				}
				ag_net_free(read);
			}
			ag_error_init(&err);
		}
		AG_CHECK(n_read > 0);
		ag_mem_free(&mem, damaged);
		ag_writer_free(&bytes);
		drop(&fitted);
		mixed_free(&mixed);
	}
}

/* The n-th allocation fails, for every n: an error, and nothing is left. */
static void
test_memory(void)
{
	for (int family = 0; family < 4; family++)
	{
		Mixed mixed = mixed_make(61, 120);
		AgTrainData data =
			data_of(&mixed, family == 0 ? AG_PROBLEM_REGRESSION : AG_PROBLEM_MULTICLASS, 80);
		AgNetParams params = small((AgNetFamily) family, 2);
		int64_t used, peak, estimate, n = 0;
		Fitted fitted;

		data.weight = mixed.weight;
		prepare(&mixed.columns, MIXED_FEATURES, 120, &data, &params, &fitted);
		used = atomic_load(&mem.used_bytes);
		for (;; n++)
		{
			atomic_store(&mem.fail_after, n);
			fitted.status =
				ag_net_train(&ctx, fitted.dense, fitted.matrix, &data, &params, &fitted.result);
			if (fitted.status == AG_OK)
				break;
			if (!AG_CHECK(fitted.status == AG_ERR_MEMORY) ||
				!AG_CHECK(atomic_load(&mem.used_bytes) == used))
				break;
			ag_error_init(&err);
		}
		atomic_store(&mem.fail_after, -1);
		AG_CHECK(n > 20);
		ag_net_result_free(&ctx, &fitted.result);
		AG_CHECK_EQ(atomic_load(&mem.used_bytes), used);

		atomic_store(&mem.peak_bytes, used);
		params.layers.n = 0;
		estimate = ag_net_memory(fitted.dense, &data, &params, 1);
		AG_CHECK(ag_net_train(&ctx, fitted.dense, fitted.matrix, &data, &params, &fitted.result) ==
				 AG_OK);
		peak = atomic_load(&mem.peak_bytes) - used;
		if (!AG_CHECK(peak <= estimate && estimate < 4 * peak + 3000000))
			fprintf(stderr, "    family %d: peak %lld, estimate %lld\n", family, (long long) peak,
					(long long) estimate);
		drop(&fitted);
		mixed_free(&mixed);
	}
}

static void
test_params(void)
{
	AgNetParams params;

	ag_net_params_default(AG_NET_FASTAI, &params);
	AG_CHECK(ag_param_set(ag_fastai_specs, ag_fastai_n_specs, "FASTAI", "layers", "[400, 200,100]",
						  false, &params, &err) == AG_OK);
	AG_CHECK(params.layers.n == 3 && params.layers.values[0] == 400 &&
			 params.layers.values[2] == 100);
	for (int i = 0; i < 7; i++)
	{
		static const char *wrong[] = {"[400,]", "[0]", "400", "[1.5]", "[5000]", "[1", "[1] 2"};

		AG_CHECK(ag_param_set(ag_fastai_specs, ag_fastai_n_specs, "FASTAI", "layers", wrong[i],
							  false, &params, &err) == AG_ERR_OPTION);
		ag_error_init(&err);
	}
	AG_CHECK_EQ(params.layers.n, 3);
	ag_net_params_default(AG_NET_NN_TORCH, &params);
	AG_CHECK_EQ(ag_net_batch_size(&params, 5), 5);
	AG_CHECK_EQ(ag_net_batch_size(&params, 1000), 64);
	AG_CHECK_EQ(ag_net_batch_size(&params, 99999), 128);
	AG_CHECK_EQ(ag_net_batch_size(&params, 100000), 256);
	AG_CHECK_EQ(ag_net_batch_size(&params, 50000000), 512);
	params.max_batch_size = 100;
	AG_CHECK_EQ(ag_net_batch_size(&params, 50000000), 100);
	/* as 1.6 n^0.56, from 2 to 100, and by the factor */
	AG_CHECK_EQ(ag_net_embedding_width(&params, 2), 2);
	AG_CHECK_EQ(ag_net_embedding_width(&params, 50), 14);
	AG_CHECK_EQ(ag_net_embedding_width(&params, 1000000), 100);
	params.embed_factor = 0.5;
	AG_CHECK_EQ(ag_net_embedding_width(&params, 50), 7);
	params.embed_exponent = 1.0;
	AG_CHECK_EQ(ag_net_embedding_width(&params, 50), 40);
	params.embed_most = 30;
	AG_CHECK_EQ(ag_net_embedding_width(&params, 50), 15);
}

/* FASTAI's labels are smoothed when that is asked for: a class is never sure. */
static void
test_smoothing(void)
{
	Mixed mixed = mixed_make(7, 300);
	AgTrainData data = data_of(&mixed, AG_PROBLEM_MULTICLASS, 300);
	AgNetTrainer trainer;

	for (int i = 0; i < 2; i++)
	{
		AgNetParams params = small(AG_NET_FASTAI, 1);
		Fitted fitted;

		params.label_smoothing = 0.2 * i;
		prepare(&mixed.columns, MIXED_FEATURES, 300, &data, &params, &fitted);
		AG_REQUIRE(ag_net_trainer_init(&ctx, fitted.dense, fitted.matrix, &data, &params,
									   &trainer) == AG_OK);
		AG_CHECK(fabs((double) trainer.smoothing - 0.2 * i) < 1e-6);
		ag_net_trainer_free(&trainer);
		drop(&fitted);
	}
	mixed_free(&mixed);
}

int
main(void)
{
	ag_mem_init(&mem, INT64_MAX);
	ag_error_init(&err);
	ctx = (AgContext){.mem = &mem, .deadline_ns = INT64_MAX, .error = &err};
	test_products();
	test_variants();
	test_maths();
	test_params();
	test_smoothing();
	test_learning();
	test_threads();
	test_odd_data();
	test_divergence();
	test_limits();
	test_image();
	test_memory();
	AG_CHECK_EQ(atomic_load(&mem.used_bytes), 0);
	return ag_unit_done("net");
}
