/*
 * net_train.c - the epochs of a net: schedules, validation, when to stop, which weights to keep.
 */
#include "engine/base/maths.h"
#include "engine/base/rng.h"
#include "engine/base/threads.h"
#include "engine/model/again.h"
#include "engine/model/net_gpu.h"
#include "engine/model/net_maths.h"
#include "engine/model/net_train.h"

#include <math.h>
#include <string.h>

#define PROGRESS_NS INT64_C(1000000000)
#define LOOK_ROWS 65536 /* between looks after a cancel */
#define REPLAN_STEPS 32 /* steps between looks at the time that is left */
#define TIME_SHARE 0.95 /* of it, for steps */
#define WORTH_PLANNING 1.02
#define SETTLES_FROM 0.9 /* of the steps */
#define MIN_PATIENCE 20  /* AutoGluon's adaptive rule */
#define PATIENCE_SHARE 0.5

typedef struct Epochs
{
	const AgContext *ctx;
	AgNetTrainer trainer;
	AgNetGpu gpu; /* has a net: steps are made there */
	AgNetResult *result;
	AgNetParams asked; /* before schedules changed them */
	uint32_t *order;   /* [n_train] */
	float *folded;     /* [n_values] the weights of the last validation */
	float *kept;       /* and of the best one */
	double *proba, *kept_proba;
	float *scratch; /* [threads] of ag_net_run_block */
	size_t scratch_floats;
	double kept_score, kept_loss; /* higher and lower are better */
	bool has_kept;
	double waited_score; /* that patience counts from */
	int waited_epoch;
	int64_t n_steps, total_steps, began_ns, told_ns;
} Epochs;

/* --- schedules, t in [0, 1] */

static double
cosine(double from, double to, double t)
{
	return from + (to - from) * 0.5 * (1.0 - ag_net_cos2pi((float) (0.5 * t)));
}

/* Constant, then falling to 0 in the second half. */
static double
flat_cosine(double t)
{
	return t < 0.5 ? 1.0 : cosine(1.0, 0.0, 2.0 * t - 1.0);
}

/*
 * A constant step ends wherever its noise has taken the weights. In the last tenth it falls to 0: most of the noise goes, and what is
 * still far from its end loses next to nothing.
 */
static double
settling(double t)
{
	return t < SETTLES_FROM ? 1.0 : cosine(1.0, 0.0, (t - SETTLES_FROM) / (1.0 - SETTLES_FROM));
}

/* Without validation rows there are as many epochs as were asked for; with them it is most often patience that ends, or the time. */
static bool
end_is_known(const Epochs *e)
{
	const AgNetTrainer *t = &e->trainer;

	return t->data->n_valid == 0 ||
		   e->total_steps < t->data->n_train / t->batch_size * e->asked.num_epochs;
}

/* Smith 2018, "A disciplined approach to neural network hyper-parameters", with fastai's shape and constants. */
static void
one_cycle(double t, double peak, double *rate, double *beta1)
{
	double rise = t / 0.25, fall = (t - 0.25) / 0.75;

	*rate = t < 0.25 ? cosine(peak / 25.0, peak, rise) : cosine(peak, peak / 1e5, fall);
	*beta1 = t < 0.25 ? cosine(0.95, 0.85, rise) : cosine(0.85, 0.95, fall);
}

/* Holzmueller and others 2024: four cosine waves that grow longer. */
static double
log_cosine(double t)
{
	return 0.5 * (1.0 - ag_net_cos2pi((float) (ag_ln(1.0 + 15.0 * t) / ag_ln(2.0))));
}

/* What Adam does in the coming step. */
static void
plan_step(Epochs *e)
{
	AgNetTrainer *t = &e->trainer;
	double rate = t->params.learning_rate, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
	double done = e->total_steps > 0 ? (double) e->n_steps / (double) e->total_steps : 0.0;
	double coupled = 0.0, apart = 0.0;

	done = done > 1.0 ? 1.0 : done;
	switch (t->params.family)
	{
		case AG_NET_NN_TORCH:
			coupled = e->asked.weight_decay / t->loss_unit;
			eps /= t->loss_unit;
			if (end_is_known(e))
				rate *= settling(done);
			break;
		case AG_NET_FASTAI:
			one_cycle(done, rate, &rate, &beta1);
			beta2 = 0.99;
			eps = 1e-5;
			apart = e->asked.weight_decay;
			break;
		case AG_NET_REALMLP:
			rate *= log_cosine(done);
			beta2 = 0.95;
			apart = e->asked.weight_decay * flat_cosine(done);
			t->params.dropout_prob = e->asked.dropout_prob * flat_cosine(done);
			break;
		case AG_NET_TABM:
			rate *= flat_cosine(done);
			apart = e->asked.weight_decay;
			break;
	}
	t->product1 *= beta1;
	t->product2 *= beta2;
	t->adam.rate = (float) (rate / (1.0 - t->product1));
	t->adam.beta1 = (float) beta1;
	t->adam.beta2 = (float) beta2;
	t->adam.root = (float) (1.0 / sqrt(1.0 - t->product2));
	t->adam.eps = (float) eps;
	t->adam.decay = (float) coupled;
	t->adam.shrink = (float) (1.0 - rate * apart);
}

/* Of a training that is repeated: the next thing that the time decided, if it was after so many steps. */
static const int64_t *
next_cut(const Epochs *e)
{
	const AgCuts *cuts = e->trainer.data->cuts;

	if (cuts == NULL || e->result->cuts.n + 1 >= cuts->n ||
		cuts->values[e->result->cuts.n] != e->n_steps)
		return NULL;
	return cuts->values + e->result->cuts.n;
}

/* Is the time up? */
static bool
is_late(Epochs *e)
{
	const int64_t *cut = next_cut(e);

	if (!ag_out_of_time(e->ctx) && (cut == NULL || cut[1] > 0))
		return false;
	ag_cuts_add(&e->result->cuts, e->n_steps, 0);
	return true;
}

/* Where the time won't do for all epochs, schedules end with it. Not for every trifle: each change is kept. */
static void
replan(Epochs *e)
{
	const int64_t *cut = next_cut(e);
	double spent, left;

	if (cut != NULL && cut[1] > 0)
	{
		e->total_steps = cut[1];
		ag_cuts_add(&e->result->cuts, e->n_steps, e->total_steps);
	}
	if (e->trainer.data->cuts != NULL)
		return;
	if (e->ctx->deadline_ns == INT64_MAX || e->n_steps == 0 || e->n_steps % REPLAN_STEPS != 0)
		return;
	spent = (double) (ag_clock_ns() - e->began_ns);
	left = (double) (e->ctx->deadline_ns - e->began_ns) * TIME_SHARE;
	if (spent * (double) e->total_steps > WORTH_PLANNING * left * (double) e->n_steps)
	{
		e->total_steps = (int64_t) (left / spent * (double) e->n_steps);
		ag_cuts_add(&e->result->cuts, e->n_steps, e->total_steps);
	}
}

/* --- validation */

static void
validate_task(void *arg, int64_t begin, int64_t end, int thread)
{
	Epochs *e = arg;
	const AgTrainData *data = e->trainer.data;
	size_t n_out = ag_net_n_out(e->trainer.net);

	for (int64_t i = begin; i < end; i += AG_NET_BLOCK)
	{
		if (ag_cancelled(e->ctx))
			return;
		ag_net_run_block(e->trainer.net, e->trainer.matrix, data->valid_rows + i,
						 (int) (end - i < AG_NET_BLOCK ? end - i : AG_NET_BLOCK),
						 e->scratch + (size_t) thread * e->scratch_floats,
						 e->proba + (size_t) i * n_out);
	}
}

static AgStatus
measure(const Epochs *e, AgMetric metric, double *value)
{
	const AgTrainData *data = e->trainer.data;
	AgTruth truth = {.n_classes = data->n_classes,
					 .n_quantiles = data->n_quantiles,
					 .quantiles = data->quantiles};
	AgStatus status;
	double *target = NULL;
	double *weight = NULL;
	int32_t *class_of = NULL;

	if (ag_problem_has_classes(data->problem))
		AG_GO(ag_get(e->ctx, (size_t) data->n_valid, sizeof *class_of, &class_of));
	else
		AG_GO(ag_get(e->ctx, (size_t) data->n_valid, sizeof *target, &target));
	if (data->metric_weight != NULL)
		AG_GO(ag_get(e->ctx, (size_t) data->n_valid, sizeof *weight, &weight));
	for (int64_t i = 0; i < data->n_valid; i++)
	{
		if (weight != NULL)
			weight[i] = data->metric_weight[data->valid_rows[i]];
		if (class_of != NULL)
			class_of[i] = data->class_of[data->valid_rows[i]];
		else
			target[i] = data->target[data->valid_rows[i]];
	}
	truth.class_of = class_of;
	truth.target = target;
	truth.weight = weight;
	status = ag_metric_value(e->ctx, metric, &truth, data->n_valid, e->proba, value);
done:
	ag_mem_free(e->ctx->mem, target);
	ag_mem_free(e->ctx->mem, weight);
	ag_mem_free(e->ctx->mem, class_of);
	return status;
}

static bool
all_finite(const float *values, size_t n)
{
	float sum = 0.0f;

	for (size_t i = 0; i < n; i++)
		sum += values[i] * 0.0f; /* NaN when one is infinite or NaN */
	return sum == 0.0f;
}

static void
keep(Epochs *e)
{
	float *values = e->kept;
	double *proba = e->kept_proba;

	e->kept = e->folded;
	e->folded = values;
	e->kept_proba = e->proba;
	e->proba = proba;
	e->has_kept = true;
}

/* Looks at the weights as they are now; *diverged when they are no numbers any more. */
static AgStatus
validate(Epochs *e, int epoch, bool *diverged)
{
	const AgTrainData *data = e->trainer.data;
	AgMetric metric = data->stop_metric;
	double value = (double) NAN, score, loss = 0.0;
	bool is_better;

	if (e->gpu.net != NULL)
		AG_TRY(ag_net_gpu_fetch(e->ctx, &e->gpu, &e->trainer));
	ag_net_fold(&e->trainer, e->folded);
	*diverged = !all_finite(e->folded, e->trainer.net->n_values);
	if (*diverged)
		return AG_OK;
	if (data->n_valid > 0)
	{
		e->trainer.net->values = e->folded;
		ag_pool_run(e->ctx->pool, data->n_valid, AG_NET_BLOCK, validate_task, e);
		AG_TRY(ag_check_cancel(e->ctx));
		AG_TRY(measure(e, metric, &value));
		ag_history_add(&e->result->history, epoch, value);
		if (data->keeps_rounds)
			ag_stages_add(&e->result->stages, epoch, e->proba);
	}
	score = ag_metric_score(metric, value);
	if (data->n_classes > 0 && e->has_kept && score == e->kept_score)
		AG_TRY(measure(e, AG_METRIC_LOG_LOSS, &loss));
	is_better = !e->has_kept || isnan(e->kept_score) || score > e->kept_score ||
				(score == e->kept_score && loss < e->kept_loss);
	if (e->waited_epoch == 0 || isnan(e->waited_score) ||
		score > e->waited_score + e->asked.min_delta)
	{
		e->waited_epoch = epoch;
		e->waited_score = score;
	}
	if (!is_better)
		return AG_OK;
	if (data->n_classes > 0 && data->n_valid > 0)
		AG_TRY(measure(e, AG_METRIC_LOG_LOSS, &e->kept_loss));
	e->kept_score = score;
	e->result->best_value = value;
	e->result->best_epoch = epoch;
	keep(e);
	return AG_OK;
}

static bool
has_waited(const Epochs *e, int epoch)
{
	int patience = e->asked.patience;

	if (patience == 0 || e->trainer.data->n_valid == 0)
		return false;
	if (patience < 0)
		patience = MIN_PATIENCE + (int) (PATIENCE_SHARE * e->waited_epoch);
	return epoch - e->waited_epoch >= patience;
}

/* --- epochs */

/* Fisher and Yates' shuffle. */
static void
shuffle(Epochs *e, int epoch)
{
	uint64_t key = ag_key(ag_key(e->asked.seed, 2), (uint64_t) epoch);
	int64_t n = e->trainer.data->n_train;

	for (int64_t i = 0; i < n; i++)
		e->order[i] = (uint32_t) i;
	for (int64_t i = n - 1; i > 0 && !(i % LOOK_ROWS == 0 && ag_cancelled(e->ctx)); i--)
	{
		uint32_t j = ag_random_below(key, (uint64_t) i, (uint32_t) i + 1), row = e->order[i];

		e->order[i] = e->order[j];
		e->order[j] = row;
	}
}

static void
tell(Epochs *e)
{
	int64_t now = ag_clock_ns();

	if (now - e->told_ns < PROGRESS_NS)
		return;
	e->told_ns = now;
	ag_progress(e->ctx, "training",
				(double) e->n_steps / (double) (e->total_steps > 0 ? e->total_steps : 1));
}

/* Whole batches only: a rest of few rows would upset normalisation. *whole is false when the time is up. */
static AgStatus
run_epoch(Epochs *e, int epoch, bool *whole)
{
	AgNetTrainer *t = &e->trainer;
	int64_t n = t->data->n_train / t->batch_size;
	uint64_t key = ag_key(ag_key(e->asked.seed, 3), (uint64_t) epoch);

	*whole = false;
	shuffle(e, epoch);
	if (e->gpu.net != NULL)
		AG_TRY(ag_net_gpu_order(e->ctx, &e->gpu, e->order));
	for (int64_t b = 0; b < n; b++)
	{
		if (ag_cancelled(e->ctx) || e->n_steps >= e->total_steps || is_late(e))
			return AG_OK;
		plan_step(e);
		if (e->gpu.net != NULL)
			AG_TRY(
				ag_net_gpu_step(e->ctx, &e->gpu, t, b * t->batch_size, ag_key(key, (uint64_t) b)));
		else
			ag_net_batch(t, e->order + b * t->batch_size, t->batch_size, ag_key(key, (uint64_t) b));
		e->n_steps++;
		replan(e);
		tell(e);
	}
	*whole = true;
	return AG_OK;
}

static AgStatus
run_epochs(Epochs *e)
{
	AgNetResult *result = e->result;
	int64_t per_epoch = e->trainer.data->n_train / e->trainer.batch_size;
	bool diverged = false;

	e->total_steps = per_epoch * e->asked.num_epochs;
	e->began_ns = e->told_ns = ag_clock_ns();
	for (int epoch = 1; epoch <= e->asked.num_epochs && !diverged; epoch++)
	{
		bool whole;

		AG_TRY(run_epoch(e, epoch, &whole));
		AG_TRY(ag_check_cancel(e->ctx));
		result->stopped_by_time = !whole;
		if (e->n_steps == 0)
			return ag_error_set(e->ctx->error, AG_ERR_TIME,
								"time limit passed before the neural net made a step");
		result->epochs_run = epoch;
		if (e->trainer.data->n_valid > 0 || !whole || epoch == e->asked.num_epochs)
			AG_TRY(validate(e, epoch, &diverged));
		if (!whole)
			break;
		result->stopped_by_patience = has_waited(e, epoch);
		if (result->stopped_by_patience)
			break;
	}
	if (!e->has_kept)
		return ag_error_set(e->ctx->error, AG_ERR_DATA,
							"the neural net's weights grew without bound");
	return AG_OK;
}

static AgStatus
set_up(Epochs *e)
{
	const AgTrainData *data = e->trainer.data;
	size_t n_out = e->trainer.net->n_outputs, n = (size_t) data->n_valid;

	AG_TRY(ag_get(e->ctx, (size_t) data->n_train, sizeof *e->order, &e->order));
	AG_TRY(ag_get(e->ctx, e->trainer.net->n_values, sizeof *e->folded, &e->folded));
	AG_TRY(ag_get(e->ctx, e->trainer.net->n_values, sizeof *e->kept, &e->kept));
	AG_TRY(ag_get(e->ctx, n, n_out * sizeof *e->proba, &e->proba));
	AG_TRY(ag_get(e->ctx, n, n_out * sizeof *e->proba, &e->kept_proba));
	if (data->keeps_rounds)
		AG_TRY(ag_stages_begin(e->ctx, data->n_valid * (int64_t) n_out, &e->result->stages));
	e->scratch_floats = ag_net_block_floats(e->trainer.net);
	return ag_get(e->ctx, (size_t) ag_pool_size(e->ctx->pool), e->scratch_floats * sizeof(float),
				  &e->scratch);
}

/* The kept weights into the net's own memory; the net leaves the trainer. */
static AgStatus
hand_over(Epochs *e)
{
	AgNet *net = e->trainer.net;
	float *values = ag_arena_alloc(&net->arena, net->n_values, sizeof *values);

	if (values == NULL)
		return ag_mem_error(e->ctx->mem, net->n_values * sizeof *values, e->ctx->error);
	memcpy(values, e->kept, net->n_values * sizeof *values);
	net->values = values;
	e->trainer.net = NULL;
	e->result->model = net;
	e->result->valid_proba = e->kept_proba;
	e->kept_proba = NULL;
	return AG_OK;
}

/* Once, on the device where there is one that can. */
static AgStatus
train_once(const AgContext *ctx, const AgDense *dense, const AgDenseMatrix *matrix,
		   const AgTrainData *data, const AgNetParams *params, AgNetResult *result)
{
	Epochs e = {.ctx = ctx, .result = result, .asked = *params};
	AgStatus status;

	memset(result, 0, sizeof *result);
	result->best_value = (double) NAN;
	ag_history_begin(&result->history, data->stop_metric);
	AG_GO(ag_net_trainer_init(ctx, dense, matrix, data, params, &e.trainer));
	AG_GO(set_up(&e));
	if (ctx->gpu != NULL)
		AG_GO(ag_net_gpu_create(ctx, &e.trainer, &e.gpu));
	AG_GO(run_epochs(&e));
	AG_GO(hand_over(&e));
done:
	if (status != AG_OK)
		ag_net_result_free(ctx, result);
	result->on_gpu = status == AG_OK && e.gpu.net != NULL;
	result->gpu_failed = e.gpu.has_failed;
	memcpy(result->cpu_because, e.gpu.why, sizeof result->cpu_because);
	result->in_half = result->on_gpu && e.gpu.in_half;
	if (result->on_gpu)
		memcpy(result->half_because, e.gpu.half_because, sizeof result->half_because);
	ag_net_gpu_free(&e.gpu);
	ag_net_trainer_free(&e.trainer);
	ag_mem_free(ctx->mem, e.order);
	ag_mem_free(ctx->mem, e.folded);
	ag_mem_free(ctx->mem, e.kept);
	ag_mem_free(ctx->mem, e.proba);
	ag_mem_free(ctx->mem, e.kept_proba);
	ag_mem_free(ctx->mem, e.scratch);
	return status;
}

/* A device that fails takes nothing with it: the CPU begins anew, and comes to the same weights. */
AgStatus
ag_net_train(const AgContext *ctx, const AgDense *dense, const AgDenseMatrix *matrix,
			 const AgTrainData *data, const AgNetParams *params, AgNetResult *result)
{
	AgAgain again;
	AgStatus status = train_once(ctx, dense, matrix, data, params, result);

	if (!ag_again_begin(&again, ctx, status == AG_ERR_SYSTEM && result->gpu_failed,
						result->cpu_because))
		return status;
	status = train_once(&again.ctx, dense, matrix, data, params, result);
	ag_again_end(&again, &result->gpu_failed, result->cpu_because);
	return status;
}

void
ag_net_result_free(const AgContext *ctx, AgNetResult *result)
{
	ag_net_free(result->model);
	ag_mem_free(ctx->mem, result->valid_proba);
	ag_stages_free(ctx, &result->stages);
	result->model = NULL;
	result->valid_proba = NULL;
}
