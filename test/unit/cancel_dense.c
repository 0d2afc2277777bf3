/* cancel_dense.c - LR, KNN and nets end within 100 ms of a cancel, whenever it comes. */
#include "unit/net_cases.h"

#include <pthread.h>
#include <time.h>

#include "engine/model/knn.h"
#include "engine/model/linear.h"

#define N_ROWS 12000
#define MOST_NS INT64_C(100000000)

/* Raises the flag when the trainer's thread has worked for so long: its own clock, so that busy machines change nothing. */
typedef struct Raiser
{
	clockid_t clock;
	int64_t after_ns, at_ns; /* at_ns: when it was raised, by that clock */
	_Atomic bool flag;
	_Atomic bool has_ended;
} Raiser;

static int64_t
read_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void *
raise_flag(void *arg)
{
	Raiser *raiser = arg;
	struct timespec pause = {0, 500000};
	int64_t began = read_clock(raiser->clock);

	while (!atomic_load(&raiser->has_ended))
	{
		raiser->at_ns = read_clock(raiser->clock);
		if (raiser->at_ns - began >= raiser->after_ns)
		{
			atomic_store(&raiser->flag, true);
			break;
		}
		nanosleep(&pause, NULL);
	}
	return NULL;
}

typedef struct Case
{
	const char *name;
	int net; /* AgNetFamily; -1: LR, -2: KNN */
	AgTrainData data;
	Fitted fitted;
	AgNetParams params;
} Case;

/* Trained until it is stopped: far more to do than there is time for. */
static AgStatus
run(Case *c)
{
	AgStatus status;

	if (c->net >= 0)
	{
		status = ag_net_train(&ctx, c->fitted.dense, c->fitted.matrix, &c->data, &c->params,
							  &c->fitted.result);
		ag_net_result_free(&ctx, &c->fitted.result);
	}
	else if (c->net == -1)
	{
		AgLinearParams params;
		AgLinearResult result;

		ag_params_default(ag_linear_specs, ag_linear_n_specs, &params);
		params.tol = 1e-12;
		params.max_iter = 1000000000;
		params.C = 1e10;
		status =
			ag_linear_train(&ctx, c->fitted.dense, c->fitted.matrix, &c->data, &params, &result);
		ag_linear_result_free(&ctx, &result);
	}
	else
	{
		AgKnnParams params;
		AgKnnResult result;

		ag_params_default(ag_knn_specs, ag_knn_n_specs, &params);
		status = ag_knn_train(&ctx, c->fitted.dense, c->fitted.matrix, &c->data, &params, &result);
		ag_knn_result_free(&ctx, &result);
	}
	ag_error_init(&err);
	return status;
}

static void
check(Case *c, int after_ms)
{
	Raiser raiser = {.after_ns = after_ms * INT64_C(1000000)};
	pthread_t thread;
	AgStatus status;
	int64_t spent;

	AG_REQUIRE(pthread_getcpuclockid(pthread_self(), &raiser.clock) == 0);
	ctx.cancel = &raiser.flag;
	AG_REQUIRE(pthread_create(&thread, NULL, raise_flag, &raiser) == 0);
	status = run(c);
	spent = read_clock(raiser.clock);
	atomic_store(&raiser.has_ended, true);
	pthread_join(thread, NULL);
	ctx.cancel = NULL;
	spent -= raiser.at_ns;
	if (!AG_CHECK(status == AG_ERR_CANCELLED && spent <= MOST_NS))
		fprintf(stderr, "    %s, cancelled after %d ms: status %d, %.0f ms later\n", c->name,
				after_ms, (int) status, 1e-6 * (double) spent);
}

int
main(void)
{
	static const char *const names[] = {"KNN", "LR", "NN_TORCH", "FASTAI", "REALMLP", "TABM"};
	Mixed mixed;

	ag_mem_init(&mem, INT64_MAX);
	ag_error_init(&err);
	ctx = (AgContext){.mem = &mem, .deadline_ns = INT64_MAX, .error = &err};
	mixed = mixed_make(91, N_ROWS);
	for (int64_t i = 0; i < N_ROWS; i++)
		mixed.class_of[i] = (int32_t) ag_random_below(92, (uint64_t) i, 20);
	for (int f = -2; f < 4; f++)
	{
		Case c = {.name = names[f + 2], .net = f};

		ag_net_params_default(f < 0 ? AG_NET_NN_TORCH : (AgNetFamily) f, &c.params);
		c.params.num_epochs = 100000;
		c.params.batch_size = 512;
		c.params.layers.n = 4;
		for (int l = 0; l < 4; l++)
			c.params.layers.values[l] = f == AG_NET_NN_TORCH ? 1024 : 512;
		c.data = data_of(&mixed, AG_PROBLEM_MULTICLASS, N_ROWS - 500);
		c.data.n_classes = 20;
		if (f == -2) /* each row's neighbours among all the others */
		{
			c.data.valid_rows = c.data.train_rows;
			c.data.n_valid = c.data.n_train;
		}
		prepare(&mixed.columns, MIXED_FEATURES, N_ROWS, &c.data, &c.params, &c.fitted);
		check(&c, 3); /* while a net's weights are drawn, too */
		check(&c, 40);
		check(&c, 150);
		drop(&c.fitted);
	}
	mixed_free(&mixed);
	AG_CHECK_EQ(atomic_load(&mem.used_bytes), 0);
	return ag_unit_done("cancel_dense");
}
