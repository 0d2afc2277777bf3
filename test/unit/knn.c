/* knn.c - the KNN family: against brute force, left-out rows, samples, odd data, threads, bytes, memory. */
#include "unit/unit.h"

#include <float.h>

#include "engine/model/knn.h"
#include "unit/dense_cases.h"

static AgMem mem;
static AgError err;
static AgContext ctx;

typedef struct Fitted
{
	AgDense *dense;
	AgDenseMatrix *matrix;
	AgKnnResult result;
	AgStatus status;
} Fitted;

static AgKnnParams
defaults(void)
{
	AgKnnParams params;

	ag_params_default(ag_knn_specs, ag_knn_n_specs, &params);
	return params;
}

static Fitted
train(const Columns *columns, uint32_t n_features, int64_t n_rows, const AgTrainData *data,
	  AgKnnParams params)
{
	AgDenseSource source = source_of(columns, n_features, n_rows);
	Fitted fitted = {0};

	AG_REQUIRE(ag_dense_fit(&ctx, &source, data->train_rows, data->n_train, &params.dense,
							&fitted.dense) == AG_OK);
	AG_REQUIRE(ag_dense_matrix(&ctx, fitted.dense, &source, &fitted.matrix) == AG_OK);
	fitted.status = ag_knn_train(&ctx, fitted.dense, fitted.matrix, data, &params, &fitted.result);
	return fitted;
}

static void
drop(Fitted *fitted)
{
	ag_knn_result_free(&ctx, &fitted->result);
	ag_dense_matrix_free(fitted->matrix);
	ag_dense_free(fitted->dense);
	ag_error_init(&err);
}

static float
distance(const Fitted *fitted, size_t a, size_t b, float category_distance)
{
	const AgDenseMatrix *m = fitted->matrix;
	float four[4] = {0}, sum;

	for (uint32_t j = 0; j < fitted->dense->n_numbers; j++)
	{
		float d = m->numbers[a * m->stride + j] - m->numbers[b * m->stride + j];

		four[j % 4] += d * d;
	}
	sum = (four[0] + four[1]) + (four[2] + four[3]);
	for (uint32_t s = 0; s < m->n_slots; s++)
		if (m->slots[a * m->n_slots + s] != m->slots[b * m->n_slots + s])
			sum += category_distance;
	return sum;
}

/* What knn.h says of one row, by selecting the nearest over and over. */
static void
brute_force(const Fitted *fitted, const AgTrainData *data, AgKnnParams params, size_t query,
			double *out)
{
	bool *taken = calloc((size_t) data->n_train, 1);
	int n_out = ag_train_outputs(data), n_exact = 0;
	double total = 0.0;

	memset(out, 0, (size_t) n_out * sizeof *out);
	for (int k = 0; k < params.n_neighbors; k++)
	{
		int64_t best = -1;
		float nearest = INFINITY;
		double w;

		for (int64_t i = 0; i < data->n_train; i++)
		{
			float d;

			if (taken[i] || data->train_rows[i] == query)
				continue;
			d = distance(fitted, query, data->train_rows[i], (float) params.category_distance);
			if (d < nearest)
			{
				nearest = d;
				best = i;
			}
		}
		if (best < 0)
			break;
		taken[best] = true;
		w = data->weight != NULL ? data->weight[data->train_rows[best]] : 1.0;
		if (params.weights == AG_KNN_DISTANCE)
		{
			if (nearest == 0.0f)
				n_exact++;
			else if (n_exact > 0)
				break;
			else
				w /= sqrt((double) nearest);
		}
		total += w;
		if (data->n_classes > 0)
			out[data->class_of[data->train_rows[best]]] += w;
		else
			out[0] += w * data->target[data->train_rows[best]];
	}
	for (int k = 0; k < n_out; k++)
		out[k] /= total;
	free(taken);
}

static void
is_brute_force(void)
{
	Mixed mixed = mixed_make(31, 330);

	for (int64_t i = 0; i < 330; i += 7) /* equal rows */
		for (int f = 0; f < MIXED_FEATURES && i > 0; f++)
			mixed.cells[f][i] = mixed.cells[f][i - 7];
	for (int p = 0; p < 2; p++)
		for (int weights = 0; weights < 2; weights++)
			for (int k = 1; k <= 40; k += 13)
				for (int self = 0; self < 2; self++)
				{
					AgTrainData data =
						mixed_data(&mixed, p ? AG_PROBLEM_REGRESSION : AG_PROBLEM_MULTICLASS, 300);
					AgKnnParams params = defaults();
					Fitted fitted;
					double out[3];

					params.n_neighbors = k;
					params.weights = weights;
					data.weight = k > 10 ? mixed.weight : NULL;
					if (self)
					{
						data.valid_rows = data.train_rows;
						data.n_valid = 70;
					}
					fitted = train(&mixed.columns, MIXED_FEATURES, 330, &data, params);
					AG_REQUIRE(fitted.status == AG_OK);
					AG_CHECK_EQ(fitted.result.n_left_out, 0);
					for (int64_t i = 0; i < data.n_valid; i++)
					{
						int n_out = p ? 1 : 3;

						brute_force(&fitted, &data, params, data.valid_rows[i], out);
						for (int c = 0; c < n_out; c++)
							AG_CHECK_NEAR(fitted.result.valid_proba[i * n_out + c], out[c],
										  1e-6 * (1.0 + fabs(out[c])));
					}
					drop(&fitted);
				}
	mixed_free(&mixed);
}

static void
exact_hits_decide(void)
{
	double x[] = {0, 0, 1, 2, 3, 50}, y[] = {10, 20, 1000, 1000, 1000, 1000};
	uint32_t rows[] = {0, 1, 2, 3, 4, 5};
	Columns columns = {{0}, {x}};
	AgTrainData data = {.problem = AG_PROBLEM_REGRESSION,
						.target = y,
						.train_rows = rows,
						.n_train = 6,
						.valid_rows = rows,
						.n_valid = 1};
	AgKnnParams params = defaults();
	Fitted fitted;
	double features[] = {0.0}, out[1];
	uint64_t scratch[64];

	params.weights = AG_KNN_DISTANCE;
	fitted = train(&columns, 1, 6, &data, params);
	AG_REQUIRE(fitted.status == AG_OK);
	AG_REQUIRE(ag_knn_scratch_bytes(fitted.result.model) <= sizeof scratch);
	AG_CHECK_NEAR(fitted.result.valid_proba[0], 20.0, 1e-9); /* row 0 sees row 1 alone */
	ag_knn_run(fitted.result.model, features, scratch, out);
	AG_CHECK_NEAR(out[0], 15.0, 1e-9);
	drop(&fitted);
}

static void
samples(void)
{
	enum
	{
		N = 1000
	};
	double x[N];
	int32_t class_of[N];
	uint32_t rows[N];
	Columns columns = {{0}, {x}};
	AgTrainData data = {.problem = AG_PROBLEM_MULTICLASS,
						.n_classes = 3,
						.class_of = class_of,
						.train_rows = rows,
						.n_train = N,
						.valid_rows = rows,
						.n_valid = 0};
	AgKnnParams params = defaults();
	Fitted fitted;
	int counts[3] = {0};

	for (int i = 0; i < N; i++)
	{
		rows[i] = (uint32_t) i;
		x[i] = i;
		class_of[i] = i >= 990 ? 2 : i % 2;
	}
	params.max_rows = 100;
	params.n_neighbors = 6;
	fitted = train(&columns, 1, N, &data, params);
	AG_REQUIRE(fitted.status == AG_OK);
	AG_CHECK_EQ(fitted.result.model->n_rows, 100);
	AG_CHECK_EQ(fitted.result.n_left_out, 900);
	for (int i = 0; i < 100; i++)
		counts[fitted.result.model->labels[i]]++;
	AG_CHECK_EQ(counts[2], 6);
	AG_CHECK_EQ(counts[0], 47);
	AG_CHECK(ag_knn_bytes(fitted.dense, &data, &params) >= 100 * 4 + 112 * 4);
	drop(&fitted);
	params.max_rows = 4; /* too few for six of each class: one of each */
	fitted = train(&columns, 1, N, &data, params);
	AG_REQUIRE(fitted.status == AG_OK);
	AG_CHECK_EQ(fitted.result.model->n_rows, 4);
	AG_CHECK_EQ(fitted.result.model->n_neighbors, 4);
	AG_CHECK(fitted.result.model->labels[0] == 0 && fitted.result.model->labels[1] == 1 &&
			 fitted.result.model->labels[2] == 0 && fitted.result.model->labels[3] == 2);
	drop(&fitted);
}

static uint8_t *
image_of(const AgKnn *knn, size_t *size)
{
	AgWriter writer;
	uint8_t *bytes;

	ag_writer_init(&writer, &mem);
	AG_REQUIRE(ag_knn_write(&ctx, knn, &writer) == AG_OK);
	*size = writer.size;
	bytes = ag_mem_alloc(&mem, writer.size, 1);
	memcpy(bytes, writer.data, writer.size);
	ag_writer_free(&writer);
	return bytes;
}

static void
threads_change_nothing(void)
{
	Mixed mixed = mixed_make(32, 900);
	AgTrainData data = mixed_data(&mixed, AG_PROBLEM_MULTICLASS, 900);
	AgKnnParams params = defaults();
	Fitted alone, threaded;

	data.valid_rows = data.train_rows;
	data.n_valid = 900;
	alone = train(&mixed.columns, MIXED_FEATURES, 900, &data, params);
	AG_REQUIRE(ag_pool_create(&mem, 4, &ctx.pool, &err) == AG_OK);
	threaded = train(&mixed.columns, MIXED_FEATURES, 900, &data, params);
	ag_pool_free(ctx.pool);
	ctx.pool = NULL;
	AG_REQUIRE(alone.status == AG_OK && threaded.status == AG_OK);
	AG_CHECK(memcmp(alone.result.valid_proba, threaded.result.valid_proba,
					900 * 3 * sizeof(double)) == 0);
	drop(&alone);
	drop(&threaded);
	mixed_free(&mixed);
}

static void
check_outputs(const AgKnn *knn, uint64_t seed)
{
	double features[64], out[64];
	void *scratch = malloc(ag_knn_scratch_bytes(knn));
	uint32_t n_out = ag_knn_n_out(knn);

	AG_REQUIRE(n_out <= 64 && knn->dense->n_features <= 64);
	for (uint64_t r = 0; r < 4; r++)
	{
		for (uint32_t f = 0; f < knn->dense->n_features; f++)
			features[f] = odd_value(ag_key(seed, r), f);
		ag_knn_run(knn, features, scratch, out);
		for (uint32_t k = 0; k < n_out; k++)
			AG_CHECK(isfinite(out[k]));
	}
	free(scratch);
}

static void
odd_tables(void)
{
	Mixed mixed = mixed_make(33, 40);
	int64_t sizes[] = {1, 2, 16, 17, 40};

	for (int i = 0; i < 40; i++)
		mixed.target[i] = i % 2 ? DBL_MAX : -DBL_MAX;
	for (int s = 0; s < 5; s++)
		for (int p = 0; p < 2; p++)
			for (int weights = 0; weights < 2; weights++)
			{
				AgTrainData data =
					mixed_data(&mixed, p ? AG_PROBLEM_REGRESSION : AG_PROBLEM_MULTICLASS, sizes[s]);
				AgKnnParams params = defaults();
				Fitted fitted;

				params.weights = weights;
				data.valid_rows = mixed.rows; /* some of them themselves */
				data.n_valid = 40;
				fitted = train(&mixed.columns, MIXED_FEATURES, 40, &data, params);
				AG_CHECK_EQ(fitted.status, AG_OK);
				for (int i = 0; i < 40 * (p ? 1 : 3); i++)
					AG_CHECK(isfinite(fitted.result.valid_proba[i]));
				check_outputs(fitted.result.model, 1);
				drop(&fitted);
			}
	mixed_free(&mixed);
}

static void
stops(void)
{
	Mixed mixed = mixed_make(34, 50);
	AgTrainData data = mixed_data(&mixed, AG_PROBLEM_REGRESSION, 40);
	AgKnnParams params = defaults();
	_Atomic bool cancel = true;
	Fitted fitted = train(&mixed.columns, MIXED_FEATURES, 50, &data, params);

	ag_knn_result_free(&ctx, &fitted.result);
	ctx.cancel = &cancel;
	AG_CHECK_EQ(ag_knn_train(&ctx, fitted.dense, fitted.matrix, &data, &params, &fitted.result),
				AG_ERR_CANCELLED);
	ctx.cancel = NULL;
	ag_error_init(&err);
	ctx.deadline_ns = ag_clock_ns() - 1;
	AG_CHECK_EQ(ag_knn_train(&ctx, fitted.dense, fitted.matrix, &data, &params, &fitted.result),
				AG_ERR_TIME);
	AG_CHECK(strstr(err.message, "time limit") != NULL);
	ctx.deadline_ns = INT64_MAX;
	ag_error_init(&err);
	data.problem = AG_PROBLEM_QUANTILE;
	AG_CHECK_EQ(ag_knn_train(&ctx, fitted.dense, fitted.matrix, &data, &params, &fitted.result),
				AG_ERR_UNSUPPORTED);
	AG_CHECK(fitted.result.model == NULL);
	drop(&fitted);
	mixed_free(&mixed);
}

static void
bytes_and_damage(void)
{
	Mixed mixed = mixed_make(35, 90);

	for (int p = 0; p < 2; p++)
	{
		AgTrainData data =
			mixed_data(&mixed, p ? AG_PROBLEM_REGRESSION : AG_PROBLEM_MULTICLASS, 50);
		AgKnnParams params = defaults();
		Fitted fitted;
		AgKnn *again;
		uint8_t *bytes, *damaged, *twice;
		size_t size, size_twice;
		int n_refused = 0;
		void *scratch;

		params.weights = p;
		data.weight = p ? mixed.weight : NULL;
		fitted = train(&mixed.columns, MIXED_FEATURES, 90, &data, params);
		AG_REQUIRE(fitted.status == AG_OK);
		bytes = image_of(fitted.result.model, &size);
		AG_REQUIRE(ag_knn_read(&ctx, bytes, size, &again) == AG_OK);
		twice = image_of(again, &size_twice);
		AG_CHECK(size == size_twice && memcmp(bytes, twice, size) == 0);
		scratch = malloc(ag_knn_scratch_bytes(again));
		for (int64_t i = 0; i < data.n_valid; i++)
		{
			double features[MIXED_FEATURES], out[3];
			uint32_t n_out = ag_knn_n_out(again);

			for (int f = 0; f < MIXED_FEATURES; f++)
				features[f] = mixed.cells[f][data.valid_rows[i]];
			ag_knn_run(again, features, scratch, out);
			AG_CHECK(memcmp(out, fitted.result.valid_proba + i * n_out, n_out * sizeof *out) == 0);
		}
		free(scratch);
		ag_knn_free(again);
		damaged = ag_mem_alloc(&mem, size, 1);
		for (uint64_t trial = 0; trial < 4000; trial++)
		{
			memcpy(damaged, bytes, size);
			for (uint64_t k = 0; k < 1 + trial % 3; k++)
				damaged[ag_random_below(k, trial, trial % 2 ? 700 : (uint32_t) size)] ^=
					(uint8_t) (1 + ag_random_below(9 + k, trial, 255));
			mend_image(damaged, size);
			ag_error_init(&err);
			if (ag_knn_read(&ctx, damaged, size, &again) == AG_OK)
			{
				check_outputs(again, trial);
				ag_knn_free(again);
			}
			else
			{
				AG_CHECK(again == NULL && err.status == AG_ERR_CORRUPT && err.message[0] != '\0');
				n_refused++;
			}
		}
		AG_CHECK(n_refused > 300);
		ag_mem_free(&mem, damaged);
		ag_mem_free(&mem, twice);
		ag_mem_free(&mem, bytes);
		drop(&fitted);
	}
	mixed_free(&mixed);
}

/* Many rows give the same bytes as each alone, ties and odd values too. */
static void
many_rows(void)
{
	static const int64_t counts[] = {1, 3, 4, 8, 9, 63, 64, 65, 130, 200};
	enum
	{
		N = 200
	};
	static double features[N * MIXED_FEATURES], out[N * 3], alone[N * 3];
	Mixed mixed = mixed_make(41, 400);

	for (int64_t i = 7; i < 400; i += 7) /* equal rows */
		for (int f = 0; f < MIXED_FEATURES; f++)
			mixed.cells[f][i] = mixed.cells[f][i - 7];
	for (int64_t i = 0; i < N; i++)
		for (int f = 0; f < MIXED_FEATURES; f++)
			features[i * MIXED_FEATURES + f] =
				i % 3 == 0 ? odd_value(ag_key(42, (uint64_t) i), (uint32_t) f)
						   : mixed.cells[f][200 + i];
	for (int p = 0; p < 2; p++)
		for (int k = 1; k <= 300; k = 4 * k + 1)
		{
			AgTrainData data =
				mixed_data(&mixed, p ? AG_PROBLEM_REGRESSION : AG_PROBLEM_MULTICLASS, 333);
			AgKnnParams params = defaults();
			Fitted fitted;
			AgKnn *again;
			uint8_t *bytes;
			size_t size;
			void *scratch;

			params.n_neighbors = k;
			params.weights = k % 2;
			data.n_valid = 0;
			fitted = train(&mixed.columns, MIXED_FEATURES, 400, &data, params);
			AG_REQUIRE(fitted.status == AG_OK);
			bytes = image_of(fitted.result.model, &size);
			AG_REQUIRE(ag_knn_read(&ctx, bytes, size, &again) == AG_OK);
			scratch = malloc(ag_knn_scratch_bytes(again) * N);
			for (int64_t i = 0; i < N; i++)
				ag_knn_run(again, features + i * MIXED_FEATURES, scratch,
						   alone + i * ag_knn_n_out(again));
			for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++)
			{
				size_t n = (size_t) counts[c] * ag_knn_n_out(again);

				for (int i = 0; i < N * 3; i++)
					out[i] = -77.0;
				ag_knn_run_rows(again, counts[c], features, scratch, out);
				AG_CHECK(memcmp(out, alone, n * sizeof *out) == 0);
				AG_CHECK(n == N * 3 || out[n] == -77.0);
			}
			free(scratch);
			ag_knn_free(again);
			ag_mem_free(&mem, bytes);
			drop(&fitted);
		}
	mixed_free(&mixed);
}

static void
no_memory(void)
{
	Mixed mixed = mixed_make(36, 60);
	AgTrainData data = mixed_data(&mixed, AG_PROBLEM_MULTICLASS, 40);
	AgKnnParams params = defaults();
	AgStatus status = AG_ERR_MEMORY;
	Fitted fitted;
	uint8_t *bytes;
	size_t size;
	AgKnn *again;
	int64_t used;

	data.weight = mixed.weight;
	params.max_rows = 30;
	fitted = train(&mixed.columns, MIXED_FEATURES, 60, &data, params);
	bytes = image_of(fitted.result.model, &size);
	ag_knn_result_free(&ctx, &fitted.result);
	used = atomic_load(&mem.used_bytes);
	for (int after = 0; status != AG_OK && after < 1000; after++)
	{
		ag_error_init(&err);
		atomic_store(&mem.fail_after, after);
		status = ag_knn_train(&ctx, fitted.dense, fitted.matrix, &data, &params, &fitted.result);
		AG_CHECK(status == AG_OK || status == AG_ERR_MEMORY);
		AG_CHECK((fitted.result.model != NULL) == (status == AG_OK));
		ag_knn_result_free(&ctx, &fitted.result);
		AG_CHECK_EQ(atomic_load(&mem.used_bytes), used);
	}
	AG_CHECK_EQ(status, AG_OK);
	status = AG_ERR_MEMORY;
	for (int after = 0; status != AG_OK && after < 1000; after++)
	{
		ag_error_init(&err);
		atomic_store(&mem.fail_after, after);
		status = ag_knn_read(&ctx, bytes, size, &again);
		AG_CHECK(status == AG_OK || status == AG_ERR_MEMORY);
		ag_knn_free(again);
		AG_CHECK_EQ(atomic_load(&mem.used_bytes), used);
	}
	AG_CHECK_EQ(status, AG_OK);
	atomic_store(&mem.fail_after, -1);
	ag_mem_free(&mem, bytes);
	drop(&fitted);
	mixed_free(&mixed);
}

int
main(void)
{
	ag_mem_init(&mem, INT64_MAX);
	ag_error_init(&err);
	ctx = (AgContext){.mem = &mem, .deadline_ns = INT64_MAX, .error = &err};
	is_brute_force();
	exact_hits_decide();
	samples();
	threads_change_nothing();
	odd_tables();
	stops();
	bytes_and_damage();
	many_rows();
	no_memory();
	AG_CHECK_EQ(atomic_load(&mem.used_bytes), 0);
	return ag_unit_done("knn");
}
