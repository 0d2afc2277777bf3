/*
 * fit_model.c - one configuration from its rows to its score: as one model, or (fit_bag.c) as a bag of one a fold.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/rng.h"
#include "engine/base/threads.h"
#include "engine/model/model.h"
#include "engine/search/fit_state.h"

#define KEY_LEVEL 0x6c65766c /* what these random numbers are for */
#define KEY_SAMPLE 0x736d706c
#define TIMED_ROWS 512 /* rows that prediction is timed on */

static double
megabytes(int64_t n_bytes)
{
	return (double) n_bytes / 1e6;
}

int
ag_fit_width(const AgFit *fit)
{
	return ag_label_outputs(fit->label);
}

AgStatus
ag_fit_take_sample(AgFit *fit)
{
	const AgValidation *v = &fit->validation;
	int64_t n = v->n_scored < TIMED_ROWS ? v->n_scored : TIMED_ROWS;
	int n_features = fit->pipeline->n_features;
	double *column;

	if (n == 0)
		return AG_OK;
	AG_TRY(ag_get(&fit->ctx, (size_t) n, (size_t) n_features * sizeof *fit->sample, &fit->sample));
	AG_TRY(ag_get(&fit->ctx, (size_t) n, sizeof *column, &column));
	for (int f = 0; f < n_features; f++)
	{
		ag_pipeline_feature(fit->pipeline, fit->table, f, v->scored_rows, n, column);
		for (int64_t i = 0; i < n; i++)
			fit->sample[i * n_features + f] = column[i];
	}
	ag_mem_free(fit->ctx.mem, column);
	fit->n_sample = n;
	return AG_OK;
}

/* --- scores */

AgTruth
ag_fit_truth(const AgFit *fit, const double *target, const int32_t *class_of, const double *weight)
{
	return (AgTruth){.n_classes = fit->label->n_classes,
					 .class_of = class_of,
					 .n_quantiles = fit->label->n_quantiles,
					 .quantiles = fit->label->quantiles,
					 .target = target,
					 .weight = weight};
}

AgStatus
ag_fit_value(AgFit *fit, const AgContext *ctx, int64_t n, const double *target,
			 const int32_t *class_of, const double *weight, const double *proba, double *value)
{
	AgTruth truth = ag_fit_truth(fit, target, class_of, weight);

	return ag_metric_value(ctx, fit->metric, &truth, n, proba, value);
}

/* A row of the sample, which are the first scored rows, as models of a level see it. */
static void
sample_row(const AgFit *fit, const AgFitRows *rows, int64_t i, double *features)
{
	int n = fit->pipeline->n_features;

	memcpy(features, fit->sample + i * n, (size_t) n * sizeof *features);
	for (int k = 0; k < rows->n_extra; k++)
		features[n + k] = rows->extra[k * fit->n_rows + fit->validation.scored_rows[i]];
}

/* Seconds that predicting the scored rows takes on one CPU, extrapolated from some of them and one child. */
static AgStatus
predict_time(AgFit *fit, const AgContext *ctx, AgFitModel *model)
{
	const AgTrained *trained = &model->children[0];
	const AgFitRows *rows = ag_fit_rows(fit, model->level);
	AgModel loaded;
	double *out = NULL, *features = NULL;
	void *scratch = NULL;
	int64_t began, n = 0;
	AgStatus status;

	model->predict_seconds = 0.0;
	if (fit->n_sample == 0)
		return AG_OK;
	AG_TRY(ag_model_read(ctx, trained->image, trained->n_image, &loaded));
	AG_GO(ag_get(ctx, (size_t) ag_fit_rows_width(rows), sizeof *features, &features));
	AG_GO(ag_get(ctx, ag_model_n_out(&loaded), sizeof *out, &out));
	AG_GO(ag_get(ctx, ag_model_scratch_bytes(&loaded), 1, &scratch));
	began = ag_clock_ns();
	while (n < fit->n_sample && ag_clock_ns() - began < 100000000) /* 0.1 s is enough to know */
	{
		sample_row(fit, rows, n, features);
		ag_model_run(&loaded, features, scratch, out);
		n++;
	}
	model->predict_seconds =
		ag_fit_seconds(began) / (double) n * (double) fit->validation.n_scored * model->n_children;
done:
	ag_mem_free(ctx->mem, features);
	ag_mem_free(ctx->mem, out);
	ag_mem_free(ctx->mem, scratch);
	ag_model_free(&loaded);
	return status;
}

/* --- training */

void
ag_fit_train_data(const AgFit *fit, const AgSplit *split, AgTrainData *data)
{
	memset(data, 0, sizeof *data);
	data->problem = fit->label->problem;
	data->n_classes = fit->label->n_classes;
	data->label_name = fit->job->label_name;
	data->n_quantiles = fit->label->n_quantiles;
	data->quantiles = fit->label->quantiles;
	data->target = fit->label->target;
	data->class_of = fit->label->class_of;
	data->weight = fit->weight;
	data->metric_weight = fit->options->weight_evaluation ? fit->weight : NULL;
	data->train_rows = split->train_rows;
	data->n_train = split->n_train;
	data->valid_rows = split->valid_rows;
	data->n_valid = split->n_valid;
	data->stop_metric = fit->stop_metric;
}

AgStatus
ag_fit_pool(AgFit *fit, int num_cpus, struct AgPool **own, AgContext *ctx)
{
	int have = ag_pool_size(fit->ctx.pool);

	*own = NULL;
	if (num_cpus >= 1 && num_cpus < have)
	{
		AG_TRY(ag_pool_create(fit->ctx.mem, num_cpus, own, ctx->error));
		ctx->pool = *own;
	}
	return AG_OK;
}

/* The seed of the first level's first split is the fit's own. */
static uint64_t
seed_of(const AgFit *fit, const AgSplit *split, int level)
{
	uint64_t seed = fit->options->random_state;

	if (level > 1)
		seed = ag_key(ag_key(seed, KEY_LEVEL), (uint64_t) level);

	return split->number == 1 || split->n_valid == 0 ? seed
													 : ag_key(seed, (uint64_t) split->number);
}

static AgStatus
check_finite(const AgContext *ctx, const AgTrained *trained, int64_t n_values)
{
	for (int64_t i = 0; trained->valid_proba != NULL && i < n_values; i++)
		if (!isfinite(trained->valid_proba[i]))
			return ag_error_set(ctx->error, AG_ERR_DATA,
								"its predictions of the validation rows are not finite");
	return AG_OK;
}

/* So many of the split's training rows, at random, ascending (Knuth, TAOCP 2, algorithm 3.4.2 S). */
static AgStatus
sample_draw(const AgFit *fit, const AgContext *ctx, const AgSplit *split, int64_t n,
			uint32_t **sample)
{
	uint64_t key = ag_key(ag_key(fit->options->random_state, KEY_SAMPLE), (uint64_t) split->number);
	int64_t n_drawn = 0;

	*sample = NULL;
	if (n == 0 || n >= split->n_train)
		return AG_OK;
	AG_TRY(ag_get(ctx, (size_t) n, sizeof **sample, sample));
	for (int64_t i = 0; i < split->n_train && n_drawn < n; i++)
		if ((int64_t) ag_random_below(key, split->train_rows[i], (uint32_t) (split->n_train - i)) <
			n - n_drawn)
			(*sample)[n_drawn++] = split->train_rows[i];
	return AG_OK;
}

/* job: which of the trainings that run at the same time. */
static AgStatus
train_on(AgFit *fit, const AgContext *ctx, AgFitRows *rows, const AgSplit *split,
		 const AgFitModel *model, int job, int max_rounds, const AgCuts *cuts, bool last,
		 bool keeps_rounds, AgTrained *trained)
{
	AgContext own = *ctx;
	AgTraining training;
	AgTrainData data;
	uint32_t *sample = NULL;
	int8_t *monotone = NULL;
	AgStatus status;

	own.gpu = ag_fit_gpu(model, job);
	memset(&training, 0, sizeof training);
	training.config = model->config;
	training.seed = seed_of(fit, split, model->level);
	training.split = split->number;
	training.max_rounds = max_rounds;
	training.last = last;
	training.wants_oob = model->is_out_of_bag && keeps_rounds; /* a child, not a refit */
	ag_fit_train_data(fit, split, &data);
	AG_GO(sample_draw(fit, ctx, split, model->n_sample, &sample));
	if (sample != NULL)
	{
		data.train_rows = sample;
		data.n_train = model->n_sample;
		training.split += AG_FIT_SAMPLE_SPLIT;
	}
	AG_GO(ag_fit_monotone(fit, ctx, model->config, &monotone));
	data.monotone = monotone;
	data.cuts = cuts;
	data.keeps_rounds = keeps_rounds;
	status = ag_family_train(&own, rows, &training, &data, trained);
	ag_fit_keep_gpu(fit, model, job, trained);
done:
	ag_mem_free(ctx->mem, monotone);
	ag_mem_free(ctx->mem, sample);
	return status;
}

/* What no validation rows watch stops after a modest number of rounds; a forest has as many trees as it is asked for. */
static int
rounds_of(const AgSplit *split, const AgFitModel *model)
{
	AgFamilyId family = model->config->family->id;

	return split->n_valid == 0 && family != AG_FAMILY_RF && family != AG_FAMILY_XT
			   ? AG_FIT_ROUNDS_UNWATCHED
			   : 0;
}

/* What the plan that is repeated tells of a child. */
static void
child_replayed(const AgFit *fit, const AgFitModel *model, int child, int *rounds,
			   const AgCuts **cuts)
{
	const AgReplayModel *replayed =
		fit->options->replay != NULL ? ag_replay_find(fit->options, model->name) : NULL;
	int place = replayed != NULL ? ag_replay_child(replayed, child) : -1;

	*rounds = place >= 0 ? replayed->rounds[place] : 0;
	*cuts = place >= 0 && replayed->cuts != NULL ? &replayed->cuts[place] : NULL;
}

bool
ag_fit_is_replayed(const AgFit *fit, const AgFitModel *model, int child)
{
	const AgReplayModel *replayed =
		fit->options->replay != NULL ? ag_replay_find(fit->options, model->name) : NULL;

	return replayed != NULL && ag_replay_child(replayed, child) < 0;
}

AgStatus
ag_fit_train_child(AgFit *fit, const AgContext *ctx, AgFitRows *rows, const AgSplit *split,
				   const AgFitModel *model, int child, int job, AgTrained *trained)
{
	int64_t n_values = split->n_valid * ag_fit_width(fit);
	const AgCuts *cuts;
	int max_rounds;

	child_replayed(fit, model, child, &max_rounds, &cuts);
	AG_TRY(train_on(fit, ctx, rows, split, model, job,
					max_rounds > 0 ? max_rounds : rounds_of(split, model), cuts, false,
					model->is_bag, trained));
	return check_finite(ctx, trained, n_values);
}

static AgStatus
single_fit(AgFit *fit, const AgContext *ctx, bool last, AgFitModel *model)
{
	const AgValidation *v = &fit->validation;
	static const AgCuts none = {.n = 0}; /* no schedule that goes by the clock */
	bool is_refit = ag_replay_refit(fit->options, model->config->name) != NULL;
	const AgCuts *cuts;
	int max_rounds;

	child_replayed(fit, model, 0, &max_rounds, &cuts);
	if (max_rounds == 0 && !is_refit)
		max_rounds = rounds_of(&v->split, model);
	if (cuts == NULL && is_refit)
		cuts = &none;
	AG_TRY(train_on(fit, ctx, &fit->rows, &v->split, model, 0, max_rounds, cuts, last, false,
					&model->children[0]));
	model->n_children = 1;
	if (is_refit)
		AG_TRY(ag_fit_check_whole(&model->children[0], max_rounds, ctx->error));
	AG_TRY(check_finite(ctx, &model->children[0], v->split.n_valid * ag_fit_width(fit)));
	if (v->n_scored == 0) /* no score; some families leave an empty list of predictions */
	{
		ag_mem_free(ctx->mem, model->children[0].valid_proba);
		model->children[0].valid_proba = NULL;
		return AG_OK;
	}
	model->proba = model->children[0].valid_proba;
	model->children[0].valid_proba = NULL;
	if (model->proba == NULL)
		return AG_OK;
	model->n_covered = v->n_scored;
	return ag_fit_value(fit, ctx, v->n_scored, v->target, v->class_of, v->weight, model->proba,
						&model->value);
}

/* --- a model */

static void
model_name(const AgFit *fit, AgFitModel *model)
{
	const AgReplayModel *refit = ag_replay_refit(fit->options, model->config->name), *replayed;

	model->is_bag = fit->validation.n_folds > 0;
	if (refit != NULL)
		snprintf(model->name, sizeof model->name, "%s", refit->name);
	else if (model->is_bag)
		snprintf(model->name, sizeof model->name, "%s_BAG_L%d", model->config->name, model->level);
	else
		snprintf(model->name, sizeof model->name, "%s", model->config->name);
	if (fit->options->replay != NULL)
	{
		replayed = ag_replay_find(fit->options, model->name);
		model->is_out_of_bag = model->is_bag && replayed != NULL && replayed->is_out_of_bag;
		model->n_sample = replayed != NULL ? replayed->n_sample : 0;
		return;
	}
	/* what stackers learn from depends on the fold that they go without: see fit_nested.c */
	model->is_out_of_bag =
		model->is_bag && model->level == 1 && ag_fit_is_out_of_bag(fit, model->config);
	model->n_sample = ag_fit_sample_rows(fit, model->config);
}

int
ag_fit_n_children(const AgFit *fit, const AgFitModel *model)
{
	const AgValidation *v = &fit->validation;

	return model->is_bag && !model->is_out_of_bag ? v->n_folds * v->n_sets : 1;
}

void
ag_fit_model_begin(AgFit *fit, const AgModelConfig *config, AgFitModel *model)
{
	memset(model, 0, sizeof *model);
	model->config = config;
	model->value = (double) NAN;
	model->level = fit->level;
	model_name(fit, model);
}

static void
resources_tell(AgFit *fit, const AgContext *ctx, const AgFitModel *model)
{
	ag_fit_tell_plan(fit, model);
	if (model->n_sample > 0)
		ag_log(&fit->ctx, AG_LOG_NORMAL,
			   "  learns from a sample of %lld rows, for want of time for all",
			   (long long) model->n_sample);
	ag_log(&fit->ctx, AG_LOG_RESOURCES, "  memory: %.1f MB in use, limit %.1f MB",
		   megabytes(ctx->mem->used_bytes), megabytes(ctx->mem->limit_bytes));
	if (fit->options->verbosity >= AG_LOG_TRACE)
	{
		const char *text = ag_fit_params_json(fit, model);

		ag_log(&fit->ctx, AG_LOG_TRACE, "  parameters: %s", text != NULL ? text : "?");
	}
}

AgStatus
ag_fit_model(AgFit *fit, AgContext *ctx, bool last, AgFitModel *model)
{
	size_t n_children = (size_t) ag_fit_n_children(fit, model);
	struct AgPool *pool = NULL;
	int64_t began = ag_clock_ns();
	AgStatus status;

	model->children = ag_arena_alloc(&fit->arena, n_children, sizeof *model->children);
	model->child_at = ag_arena_alloc(&fit->arena, n_children, sizeof *model->child_at);
	if (model->children == NULL || model->child_at == NULL)
		return ag_mem_error(ctx->mem, n_children * sizeof *model->children, ctx->error);
	ag_fit_plan_model(fit, model);
	AG_GO(ag_fit_open_model(fit, model));
	AG_GO(ag_fit_pool(fit, model->plan.num_cpus, &pool, ctx));
	resources_tell(fit, ctx, model);
	status = model->is_out_of_bag ? ag_fit_out_of_bag(fit, ctx, model)
			 : model->is_bag      ? ag_fit_bag(fit, ctx, model)
								  : single_fit(fit, ctx, last, model);
	if (status != AG_OK)
		goto done;
	model->fit_seconds = ag_fit_seconds(began);
	ag_fit_tell_fallback(fit, model);
	AG_GO(predict_time(fit, ctx, model));
done:
	ag_pool_free(pool);
	return status;
}

/*
 * Of a training whose result is dropped unless it is done in time: the way that the first child went, without its end, and no schedule
 * that goes by the clock.
 */
static AgCuts
again_cuts(const AgFitModel *model)
{
	AgCuts cuts = {.n = 0};

	if (model->config->family->id == AG_FAMILY_LR && model->children[0].cuts.n == 2)
		ag_cuts_add(&cuts, model->children[0].cuts.values[0], -1);
	return cuts;
}

AgStatus
ag_fit_train(AgFit *fit, AgContext *ctx, const AgSplit *split, const AgFitModel *model,
			 int max_rounds, AgTrained *trained)
{
	const AgCuts cuts = again_cuts(model);
	struct AgPool *pool;
	AgStatus status;

	AG_TRY(ag_fit_pool(fit, model->plan.num_cpus, &pool, ctx));
	status = train_on(fit, ctx, ag_fit_rows(fit, model->level), split, model, 0, max_rounds, &cuts,
					  false, false, trained);
	ag_mem_free(ctx->mem, trained->valid_proba);
	trained->valid_proba = NULL;
	ag_pool_free(pool);
	return status;
}

AgStatus
ag_fit_train_part(AgFit *fit, const AgFitSlot *slot, AgFitRows *rows, const AgFitModel *model,
				  int job, int max_rounds, AgTrained *trained)
{
	const AgCuts cuts = again_cuts(model);

	AG_TRY(train_on(fit, &slot->ctx, rows, &slot->split, model, job, max_rounds, &cuts, false,
					false, trained));
	ag_mem_free(slot->ctx.mem, trained->valid_proba); /* some families leave an empty list */
	trained->valid_proba = NULL;
	return AG_OK;
}

void
ag_fit_model_free(AgFit *fit, AgFitModel *model)
{
	ag_trained_free(&fit->ctx, &model->full);
	for (int i = 0; i < model->n_children; i++)
		ag_trained_free(&fit->ctx, &model->children[i]);
	ag_mem_free(fit->ctx.mem, model->proba);
	model->proba = NULL;
	model->n_children = 0;
}
