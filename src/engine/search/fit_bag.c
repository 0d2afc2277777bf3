/*
 * fit_bag.c - one configuration as a bag: a child a fold, several of them at a time, and what they say of the rows they haven't
 * seen.
 *
 * A booster or a net that stopped where its own fold liked it best would flatter itself: its predictions of that fold are those of
 * a round that the other folds' children chose, by the mean of their curves. No row is given up for it.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/threads.h"
#include "engine/search/fit_state.h"

/* Beyond so many rows one child keeps all CPUs busy, and takes less memory than several. */
#define ROWS_IN_PARALLEL 20000
/* Of a bag's time, what cutting its children to their rounds may take. */
#define SETTLE_SHARE 0.1
/* Of the time left, what a bag may take whose first folds say that it is worth finishing. */
#define FINISH_SHARE 0.5

/* A set of folds under way. */
typedef struct Set
{
	AgFit *fit;
	const AgContext *ctx; /* the model's */
	AgFitModel *model;
	int number;                    /* 0.. */
	const char *phase;             /* of the model */
	int64_t began_ns, deadline_ns; /* of the children: rounds are settled afterwards */
	int n_slots;
	int end;            /* folds below it are to be trained */
	struct Slot *slots; /* [n_slots] */
	AgTrained *trained; /* [n_folds] */
	AgStatus *status;   /* [n_folds] AG_ERR_TIME where it wasn't begun */
	_Atomic int next, n_done;
	_Atomic bool failed;
} Set;

/* What trains one child at a time. */
typedef struct Slot
{
	Set *set;
	AgFitSlot own;
} Slot;

int
ag_folds_at_a_time(const AgFitOptions *options, int64_t n_rows)
{
	if (options->folds_sequential)
		return 1;
	if (options->num_folds_parallel > 0)
		return options->num_folds_parallel;
	return options->folds_parallel || n_rows <= ROWS_IN_PARALLEL ? AG_MAX_BAG_FOLDS : 1;
}

/* --- rounds by the other folds */

/* Several children of one set: each gets its round from the others. Alone it keeps its own. */
static AgStatus
rounds_settle(Set *set)
{
	const AgValidation *v = &set->fit->validation;
	const AgTrained *children[AG_MAX_BAG_FOLDS], *others[AG_MAX_BAG_FOLDS];
	int rounds[AG_MAX_BAG_FOLDS], fold_of[AG_MAX_BAG_FOLDS], n = 0;
	Slot *slot = &set->slots[0];

	for (int fold = 0; fold < v->n_folds; fold++)
		if (set->status[fold] == AG_OK)
		{
			fold_of[n] = fold;
			others[n] = &set->trained[fold];
			children[n++] = &set->trained[fold];
		}
	for (int c = 0; c < n; c++)
	{
		others[c] = NULL;
		rounds[c] = ag_fit_round_by(others, n, children[c]->rounds);
		others[c] = children[c];
	}
	for (int c = 0; c < n; c++)
	{
		AgTrained *trained = &set->trained[fold_of[c]];

		if (trained->rounds < 0 || trained->history.n == 0)
			continue;
		ag_fit_split_fold(set->fit, set->number, fold_of[c], &slot->own.split);
		AG_TRY(ag_family_settle(set->ctx, ag_fit_rows(set->fit, set->model->level),
								slot->own.split.valid_rows, slot->own.split.n_valid, rounds[c],
								trained));
	}
	return AG_OK;
}

/* --- children */

/* The child's predictions of its fold, added to those of other sets. */
static void
child_add(Set *set, int fold, uint8_t *n_predictions)
{
	const AgFit *fit = set->fit;
	const AgValidation *v = &fit->validation;
	const uint8_t *fold_of = v->fold_of + (int64_t) set->number * fit->n_rows;
	AgFitModel *model = set->model;
	AgTrained *child = &model->children[model->n_children];
	const double *from = set->trained[fold].valid_proba;
	int width = ag_fit_width(fit);

	for (int64_t i = 0; i < v->n_scored && !v->is_held_out; i++)
	{
		if (fold_of[v->scored_rows[i]] != fold)
			continue;
		for (int k = 0; k < width; k++)
			model->proba[i * width + k] += from[k];
		from += width;
		model->n_covered += n_predictions[i] == 0;
		n_predictions[i]++;
	}
	ag_mem_free(fit->ctx.mem, set->trained[fold].valid_proba);
	set->trained[fold].valid_proba = NULL;
	*child = set->trained[fold];
	memset(&set->trained[fold], 0, sizeof set->trained[fold]);
	model->child_at[model->n_children++] = set->number * v->n_folds + fold;
}

/* Likewise of the rows that are held out from all folds. before: the set's status so far. */
static AgStatus
held_add(Set *set, int fold, uint8_t *n_predictions, AgStatus before)
{
	AgFit *fit = set->fit;

	AG_TRY(ag_fit_held_predict(fit, set->ctx, &set->trained[fold], set->model->proba));
	for (int64_t i = 0; i < fit->validation.n_scored; i++)
		n_predictions[i]++;
	set->model->n_covered = fit->validation.n_scored;
	return before;
}

/*
 * An equal part of what is left for each lot of folds that is still to be fitted; twice that for the first, which also makes what
 * all share.
 */
static int64_t
fold_deadline(const Set *set, int fold)
{
	int64_t deadline = set->deadline_ns, now = ag_clock_ns();
	int left = (set->fit->validation.n_folds - fold + set->n_slots - 1) / set->n_slots;

	if (deadline == INT64_MAX || left <= 1)
		return deadline;
	if (fold < set->n_slots)
		return now + (deadline - now) / (left + 1) * 2;
	return now + (deadline - now) / left;
}

/* Is it foreseeable, for a family that can't do with less time, that the set won't be done? Of first folds that decide whether it gets more time, not. */
static bool
is_hopeless(Set *set)
{
	int n_done = atomic_load(&set->n_done), left = set->fit->validation.n_folds - n_done;

	return set->end == set->fit->validation.n_folds && set->ctx->deadline_ns != INT64_MAX &&
		   !set->model->config->family->stops_early && set->fit->n_models > 0 && n_done > 0 &&
		   ag_fit_seconds(set->began_ns) / n_done * left > -ag_fit_seconds(set->ctx->deadline_ns);
}

static AgStatus
child_fit(Slot *slot, int fold)
{
	Set *set = slot->set;
	AgFit *fit = set->fit;
	int child = set->number * fit->validation.n_folds + fold;

	AG_TRY(ag_check_cancel(&slot->own.ctx));
	if (ag_fit_is_replayed(fit, set->model, child) || ag_out_of_time(set->ctx) || is_hopeless(set))
		return AG_ERR_TIME;
	ag_fit_split_fold(fit, set->number, fold, &slot->own.split);
	if (ag_fit_is_nested(fit, set->model->level))
		AG_TRY(ag_fit_slot_columns(fit, set->model->level, set->number, ag_fit_part_of(fit, fold),
								   fold, &slot->own));
	slot->own.ctx.deadline_ns = fold_deadline(set, fold);
	return ag_fit_train_child(fit, &slot->own.ctx, &slot->own.rows, &slot->own.split, set->model,
							  child, (int) (slot - set->slots), &set->trained[fold]);
}

/* Only the thread that began the fit may speak. */
static void
phase_tell(Slot *slot, int fold, char *text, size_t size)
{
	Set *set = slot->set;
	AgFit *fit = set->fit;
	int n_folds = fit->validation.n_folds;

	snprintf(text, size, "%s, fold %d of %d", set->phase != NULL ? set->phase : "fitting",
			 set->number * n_folds + fold + 1,
			 (fit->validation.n_sets + fit->validation.n_spare_sets) * n_folds);
	fit->phase = text;
}

static void
slot_run(void *arg, int64_t begin, int64_t end, int thread)
{
	Set *set = arg;
	char text[192];

	for (int64_t s = begin; s < end; s++)
	{
		Slot *slot = &set->slots[s];
		int fold;

		slot->own.ctx.log = thread == 0 ? set->ctx->log : NULL;
		slot->own.ctx.progress = thread == 0 ? set->ctx->progress : NULL;
		while ((fold = atomic_fetch_add(&set->next, 1)) < set->end)
		{
			if (atomic_load(&set->failed))
				continue;
			if (thread == 0)
				phase_tell(slot, fold, text, sizeof text);
			set->status[fold] = child_fit(slot, fold);
			atomic_fetch_add(&set->n_done, set->status[fold] == AG_OK);
			if (set->status[fold] != AG_OK && set->status[fold] != AG_ERR_TIME)
				atomic_store(&set->failed, true);
		}
	}
}

/* --- a set of folds */

/* The first fault in the order of the folds, whichever came first; time that ran out comes last. */
static AgStatus
set_status(const Set *set)
{
	AgStatus status = AG_OK;

	for (int fold = 0; fold < set->fit->validation.n_folds; fold++)
	{
		if (set->status[fold] == AG_ERR_TIME)
			status = AG_ERR_TIME;
		else if (set->status[fold] != AG_OK)
		{
			for (int s = 0; s < set->n_slots; s++)
				if (set->slots[s].own.error.status == set->status[fold] && set->ctx->error != NULL)
					*set->ctx->error = set->slots[s].own.error;
			return set->status[fold];
		}
	}
	return status;
}

static AgStatus
set_open(Set *set)
{
	AgFit *fit = set->fit;
	const AgModelPlan *plan = &set->model->plan;
	size_t n_folds = (size_t) fit->validation.n_folds;

	AG_TRY(ag_fit_slot_prepare(fit, set->ctx, set->model->level, set->model->config));
	AG_TRY(ag_get_zeroed(set->ctx, n_folds, sizeof *set->trained, &set->trained));
	AG_TRY(ag_get_zeroed(set->ctx, n_folds, sizeof *set->status, &set->status));
	for (size_t fold = 0; fold < n_folds; fold++)
		set->status[fold] = AG_ERR_TIME;
	AG_TRY(ag_get_zeroed(set->ctx, (size_t) set->n_slots, sizeof *set->slots, &set->slots));
	for (int s = 0; s < set->n_slots; s++)
	{
		set->slots[s].set = set;
		AG_TRY(ag_fit_slot_open(fit, set->ctx, set->model->level,
								set->n_slots > 1 ? plan->cpus_per_job : 0, &set->slots[s].own));
	}
	return AG_OK;
}

/* Those from begin to end - 1. */
static void
folds_run(Set *set, int begin, int end)
{
	atomic_store(&set->next, begin);
	set->end = end;
	if (set->n_slots > 1)
		ag_pool_run(set->ctx->pool, set->n_slots, 1, slot_run, set);
	else
		slot_run(set, 0, 1, 0);
}

/* The first folds, if they are to say whether the others are worth their time; *n: how many; 0 when all are to be trained. */
static AgStatus
set_probe(Set *set, int *n)
{
	AgFit *fit = set->fit;
	bool helps = true;

	*n = set->number == 0 ? ag_fit_probe_folds(fit, set->n_slots) : 0;
	if (*n == 0)
		return AG_OK;
	folds_run(set, 0, *n);
	for (int fold = 0; fold < *n; fold++)
	{
		if (set->status[fold] != AG_OK)
			return set_status(set); /* it can't become whole any more */
		if (set->trained[fold].valid_proba == NULL)
			return AG_OK;
	}
	AG_TRY(ag_fit_probe(fit, set->ctx, set->trained, *n, &helps));
	set->model->is_dropped = !helps;
	return AG_OK;
}

/* What is worth finishing may take more than an equal part of the time: up to a half of what is left, unless its own limit says less. */
static void
set_extend(Set *set, AgContext *ctx)
{
	const AgFit *fit = set->fit;
	int64_t now = ag_clock_ns(), left = fit->ctx.deadline_ns - now;
	int64_t deadline = now + (int64_t) ((double) left * FINISH_SHARE);

	if (set->model->config->max_time_limit < 1e9 || deadline <= ctx->deadline_ns)
		return;
	ctx->deadline_ns = deadline;
	set->deadline_ns = deadline - (int64_t) ((double) (deadline - now) * SETTLE_SHARE);
}

/* One set of folds. AG_ERR_TIME when it wasn't done in time; the children that were are kept. */
static AgStatus
set_fit(AgFit *fit, AgContext *ctx, int number, AgFitModel *model, uint8_t *n_predictions)
{
	Set set = {.fit = fit, .ctx = ctx, .model = model, .number = number};
	int n_folds = fit->validation.n_folds, n_probed = 0;
	int64_t share_ns = ctx->deadline_ns; /* another set is measured by that, extended or not */
	AgStatus status, settled = AG_OK;

	set.began_ns = ag_clock_ns();
	set.deadline_ns = ctx->deadline_ns;
	if (ctx->deadline_ns != INT64_MAX && model->config->family->stops_early)
		set.deadline_ns -= (int64_t) ((double) (ctx->deadline_ns - set.began_ns) * SETTLE_SHARE);
	set.n_slots = model->plan.n_parallel < n_folds ? model->plan.n_parallel : n_folds;
	AG_GO(set_open(&set));
	set.phase = fit->phase;
	status = set_probe(&set, &n_probed);
	if (status == AG_OK && model->is_dropped)
		status = AG_ERR_TIME;
	if (status != AG_OK)
	{
		fit->phase = set.phase;
		goto done;
	}
	if (n_probed > 0)
		set_extend(&set, ctx);
	folds_run(&set, n_probed, n_folds);
	fit->phase = set.phase;
	status = set_status(&set);
	if (status == AG_OK || status == AG_ERR_TIME)
		settled = rounds_settle(&set);
	if (settled != AG_OK)
		status = settled;
	for (int fold = 0; fold < n_folds && (status == AG_OK || status == AG_ERR_TIME); fold++)
	{
		if (set.status[fold] == AG_OK && fit->validation.is_held_out)
			status = held_add(&set, fold, n_predictions, status);
		if (set.status[fold] == AG_OK)
			child_add(&set, fold, n_predictions);
	}
done:
	ctx->deadline_ns = share_ns;
	for (int s = 0; set.slots != NULL && s < set.n_slots; s++)
		ag_fit_slot_close(fit, model->level, &set.slots[s].own);
	for (int fold = 0; set.trained != NULL && fold < n_folds; fold++)
		ag_trained_free(ctx, &set.trained[fold]);
	ag_mem_free(ctx->mem, set.slots);
	ag_mem_free(ctx->mem, set.trained);
	ag_mem_free(ctx->mem, set.status);
	return status;
}

/* Of a bag with folds missing: scored on the rows that some child predicted, which are moved together. */
static AgStatus
score_some(AgFit *fit, const AgContext *ctx, const uint8_t *n_predictions, AgFitModel *model)
{
	const AgValidation *v = &fit->validation;
	size_t n = (size_t) model->n_covered, width = (size_t) ag_fit_width(fit);
	double *target = NULL, *weight = NULL;
	int32_t *class_of = NULL;
	int64_t at = 0;
	AgStatus status;

	if (v->weight != NULL)
		AG_GO(ag_get(ctx, n, sizeof *weight, &weight));
	if (v->class_of != NULL)
		AG_GO(ag_get(ctx, n, sizeof *class_of, &class_of));
	else
		AG_GO(ag_get(ctx, n, sizeof *target, &target));
	for (int64_t i = 0; i < v->n_scored; i++)
	{
		if (n_predictions[i] == 0)
			continue;
		if (class_of != NULL)
			class_of[at] = v->class_of[i];
		else
			target[at] = v->target[i];
		if (weight != NULL)
			weight[at] = v->weight[i];
		memmove(model->proba + (size_t) at * width, model->proba + (size_t) i * width,
				width * sizeof(double));
		at++;
	}
	AG_GO(ag_fit_value(fit, ctx, at, target, class_of, weight, model->proba, &model->value));
done:
	ag_mem_free(ctx->mem, target);
	ag_mem_free(ctx->mem, weight);
	ag_mem_free(ctx->mem, class_of);
	return status;
}

AgStatus
ag_fit_bag(AgFit *fit, AgContext *ctx, AgFitModel *model)
{
	const AgValidation *v = &fit->validation;
	int width = ag_fit_width(fit);
	int64_t began = ag_clock_ns();
	uint8_t *n_predictions = NULL;
	AgStatus status;

	AG_GO(ag_get_zeroed(ctx, (size_t) v->n_scored, (size_t) width * sizeof(double), &model->proba));
	AG_GO(ag_get_zeroed(ctx, (size_t) v->n_scored, 1, &n_predictions));
	for (int set = 0; set < v->n_sets; set++)
	{
		/* another set only if the time of this one is left once more */
		if (set > 0 && ctx->deadline_ns != INT64_MAX &&
			ag_fit_seconds(began) / set > -ag_fit_seconds(ctx->deadline_ns))
			break;
		status = set_fit(fit, ctx, set, model, n_predictions);
		if (status == AG_ERR_TIME && model->n_children > 0)
			break;
		if (status != AG_OK)
			goto done;
	}
	for (int64_t i = 0; i < v->n_scored; i++)
		for (int k = 0; k < width && n_predictions[i] > 1; k++)
			model->proba[i * width + k] /= n_predictions[i];
	if (model->n_covered == v->n_scored)
		status = ag_fit_value(fit, ctx, v->n_scored, v->target, v->class_of, v->weight,
							  model->proba, &model->value);
	else
		status = score_some(fit, ctx, n_predictions, model);
done:
	ag_mem_free(ctx->mem, n_predictions);
	return status;
}

AgStatus
ag_fit_bag_again(AgFit *fit, AgContext *ctx, AgFitModel *model)
{
	const AgValidation *v = &fit->validation;
	int width = ag_fit_width(fit);
	uint8_t *n_predictions;
	AgStatus status, scored;

	AG_TRY(ag_get(ctx, (size_t) v->n_scored, 1, &n_predictions));
	memset(n_predictions, 1, (size_t) v->n_scored);
	status = set_fit(fit, ctx, v->n_sets, model, n_predictions);
	for (int64_t i = 0; i < v->n_scored; i++)
		for (int k = 0; k < width && n_predictions[i] > 1; k++)
			model->proba[i * width + k] /= n_predictions[i];
	ag_mem_free(ctx->mem, n_predictions);
	scored = ag_fit_value(fit, ctx, v->n_scored, v->target, v->class_of, v->weight, model->proba,
						  &model->value);
	return status != AG_OK ? status : scored;
}
