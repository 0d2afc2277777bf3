/*
 * fit_nested.c - stackers that can't see the labels that they are scored on.
 *
 * What a bag says of a row it has learnt from the labels of all other folds. A stacker that is scored on one fold, and that learns
 * from what bags say of the rows of others, learns from the scored fold's labels, too: it looks better than it is, up to seeing
 * skill in noise. So for each fold its columns are made anew, of models that were fitted without the scored fold *and*
 * without the row's own: as many as there are pairs of folds, for without a and b is without b and a. (Nested cross-validation;
 * Varma and Simon 2006.) What the child is then scored on, and asked for ever after, is what bags say of rows that they haven't
 * seen, as it is everywhere.
 *
 * With a third level, pairs are what its inputs must be fitted without, and triples what theirs: in general, a level needs of
 * each input what it says without any set of up to so many folds as there are levels from there on, and one. To keep them few,
 * folds are put together to parts.
 *
 * Models are fitted without validation rows, with the rounds that the bag's other children would have liked.
 */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/threads.h"
#include "engine/model/stacked.h"
#include "engine/search/fit_state.h"

#define MOST_PARTS 8
#define FEW_PARTS 4       /* where time is short: a quarter of the trainings */
#define PARTS_ABOVE_TWO 5 /* levels: their sets are many */
#define TIME_SHARE 0.5    /* of a level's time */
#define MEMORY_SHARE 0.25
#define FIRST_SPLIT 0x10000 /* numbers of the splits: no bag's, no refit's */

bool
ag_fit_is_nested(const AgFit *fit, int level)
{
	return level > 1 && fit->parts.n > 0;
}

uint32_t
ag_fit_part_of(const AgFit *fit, int fold)
{
	return UINT32_C(1) << (fold % fit->parts.n);
}

static void
said_free(const AgFit *fit, AgFitModel *model)
{
	for (int i = 0; model->without != NULL && i < fit->validation.n_sets << fit->parts.n; i++)
		ag_mem_free(fit->ctx.mem, model->without[i]);
	model->without = NULL;
}

void
ag_fit_nested_free(AgFit *fit)
{
	AgMem *mem = fit->ctx.mem;

	for (int i = 0; i < fit->n_models; i++)
		said_free(fit, &fit->models[i]);

	ag_mem_free(mem, fit->parts.of);
	ag_mem_free(mem, fit->parts.at);
	ag_mem_free(mem, fit->parts.size);
	memset(&fit->parts, 0, sizeof fit->parts);
}

/* --- which sets of parts */

static int
count_bits(uint32_t mask)
{
	int n = 0;

	for (; mask != 0; mask &= mask - 1)
		n++;
	return n;
}

/* Will the level at work, or one above, ask its inputs what they say without these parts? */
static bool
is_wanted(const AgFit *fit, uint32_t mask)
{
	int n = count_bits(mask);

	if (n == 1) /* of a part that is one fold, the bag has said it */
		return fit->parts.n < fit->validation.n_folds;
	return n > 1 && n <= fit->n_levels - fit->level + 2;
}

/* --- parts */

static int
parts_most(const AgFit *fit)
{
	int n = fit->n_levels > 2 ? PARTS_ABOVE_TWO : MOST_PARTS;

	if (n < fit->n_levels + 1)
		n = fit->n_levels + 1;
	return n < fit->validation.n_folds ? n : fit->validation.n_folds;
}

int
ag_fit_nested_at_most(const AgFit *fit)
{
	AgFit above = *fit;
	int n = 0;

	if (fit->level >= fit->n_levels || fit->validation.is_held_out || fit->validation.is_forward)
		return 0;
	above.level++;
	above.parts.n = parts_most(fit);
	for (uint32_t mask = 1; mask < UINT32_C(1) << above.parts.n; mask++)
		n += is_wanted(&above, mask);
	return n * fit->validation.n_sets;
}

static AgStatus
parts_make(AgFit *fit)
{
	const AgValidation *v = &fit->validation;
	AgFitParts *parts = &fit->parts;
	size_t n = (size_t) fit->n_rows * (size_t) v->n_sets;

	AG_TRY(ag_get(&fit->ctx, n, 1, &parts->of));
	AG_TRY(ag_get_zeroed(&fit->ctx, n, sizeof *parts->at, &parts->at));
	AG_TRY(ag_get_zeroed(&fit->ctx, (size_t) parts->n, (size_t) v->n_sets * sizeof *parts->size,
						 &parts->size));
	for (int set = 0; set < v->n_sets; set++)
	{
		int64_t first = (int64_t) set * fit->n_rows, *size = parts->size + set * parts->n;

		for (int64_t r = first; r < first + fit->n_rows; r++)
		{
			uint8_t fold = v->fold_of[r];

			parts->of[r] = fold;
			if (fold == AG_FIT_NO_FOLD || fold == AG_FIT_HELD)
				continue;
			parts->of[r] = (uint8_t) (fold % parts->n);
			parts->at[r] = (uint32_t) size[parts->of[r]]++;
		}
	}
	return AG_OK;
}

/* --- one model without one set of parts */

typedef struct Nested
{
	AgFit *fit;
	const AgContext *ctx;
	AgFitModel *model;
	int set, n_jobs, n_slots;
	_Atomic int n_done;
	uint32_t masks[1 << MOST_PARTS];
	struct NestedSlot *slots;
	_Atomic int next;
	_Atomic AgStatus status; /* the first fault */
} Nested;

typedef struct NestedSlot
{
	Nested *nested;
	AgFitSlot own;
	double *out;
} NestedSlot;

/* The rounds that children liked which were validated on other parts. */
static int
rounds_without(const AgFit *fit, const AgFitModel *model, int set, uint32_t mask)
{
	const AgTrained *others[AG_MAX_BAG_FOLDS];
	int n_folds = fit->validation.n_folds, n = 0, of_all = 0, rounds;
	int64_t sum = 0;

	if (model->children[0].rounds < 0)
		return 0;
	for (int c = 0; c < model->n_children; c++)
	{
		of_all += model->children[c].rounds;
		if (model->is_out_of_bag || model->child_at[c] / n_folds != set ||
			(mask & ag_fit_part_of(fit, model->child_at[c] % n_folds)) != 0)
			continue;
		sum += model->children[c].rounds;
		others[n++] = &model->children[c];
	}
	rounds = n > 0 ? (int) ((sum + n / 2) / n) : of_all / model->n_children;
	/* a net's epochs are no prefix of longer ones: its rounds are where its children ended up best */
	if (model->config->family->id == AG_FAMILY_GBM || model->config->family->id == AG_FAMILY_XGB ||
		model->config->family->id == AG_FAMILY_CAT)
		rounds = ag_fit_round_by(others, n, rounds);
	return rounds > 0 ? rounds : 1;
}

/* Rows to train on, ascending, and those of the parts, one part after the other. */
static void
rows_list(const AgFit *fit, int set, uint32_t mask, AgSplit *split)
{
	const AgFitParts *parts = &fit->parts;
	const uint8_t *part_of = parts->of + (int64_t) set * fit->n_rows;
	int64_t first[MOST_PARTS] = {0}, next = 0;

	for (int p = 0; p < parts->n; p++)
		if ((mask >> p & 1) != 0)
		{
			first[p] = next;
			next += parts->size[set * parts->n + p];
		}
	split->number = FIRST_SPLIT + (int) ((uint32_t) set << MOST_PARTS | mask);
	split->n_train = 0;
	split->n_valid = 0; /* the other list isn't for stopping */
	for (int64_t r = 0; r < fit->n_rows; r++)
		if (part_of[r] == AG_FIT_HELD)
			continue;
		else if (part_of[r] != AG_FIT_NO_FOLD && (mask >> part_of[r] & 1) != 0)
			split->valid_rows[first[part_of[r]]++] = (uint32_t) r;
		else
			split->train_rows[split->n_train++] = (uint32_t) r;
}

static int64_t
rows_count(const AgFit *fit, int set, uint32_t mask)
{
	int64_t n = 0;

	for (int p = 0; p < fit->parts.n; p++)
		if ((mask >> p & 1) != 0)
			n += fit->parts.size[set * fit->parts.n + p];
	return n;
}

static AgStatus
said_keep(AgFit *fit, const AgContext *ctx, const double *out, int64_t n, float **kept)
{
	int n_out = ag_fit_width(fit), width = ag_stack_width(fit->label->problem, n_out);

	out += ag_stack_first(fit->label->problem);
	AG_TRY(ag_get(ctx, (size_t) n, (size_t) width * sizeof **kept, kept));
	for (int64_t i = 0; i < n; i++)
		for (int k = 0; k < width; k++)
		{
			(*kept)[i * width + k] = (float) out[i * n_out + k];
			if (!isfinite((*kept)[i * width + k]))
				return ag_error_set(ctx->error, AG_ERR_DATA, "its predictions are not finite");
		}
	return AG_OK;
}

static AgStatus
nested_fit(NestedSlot *slot, uint32_t mask)
{
	Nested *nested = slot->nested;
	AgFit *fit = nested->fit;
	AgFitModel *model = nested->model;
	int64_t n = rows_count(fit, nested->set, mask);
	int rounds = rounds_without(fit, model, nested->set, mask);
	AgTrained trained;
	AgStatus status;

	AG_TRY(ag_check_cancel(&slot->own.ctx));
	if (ag_out_of_time(&slot->own.ctx))
		return AG_ERR_TIME;
	rows_list(fit, nested->set, mask, &slot->own.split);
	if (model->level > 1)
		AG_TRY(ag_fit_slot_columns(fit, model->level, nested->set, mask, -1, &slot->own));
	AG_TRY(ag_fit_train_part(fit, &slot->own, &slot->own.rows, model, (int) (slot - nested->slots),
							 rounds, &trained));
	AG_GO(ag_fit_check_whole(&trained, rounds, slot->own.ctx.error));
	AG_GO(ag_family_predict(&slot->own.ctx, &slot->own.rows, &trained, slot->own.split.valid_rows,
							n, slot->out));
	status = said_keep(fit, &slot->own.ctx, slot->out, n,
					   &model->without[(uint32_t) nested->set << fit->parts.n | mask]);
done:
	ag_trained_free(&slot->own.ctx, &trained);
	return status;
}

static void
slots_run(void *arg, int64_t begin, int64_t end, int thread)
{
	Nested *nested = arg;

	for (int64_t s = begin; s < end; s++)
	{
		NestedSlot *slot = &nested->slots[s];
		int job;

		slot->own.ctx.log = thread == 0 ? nested->ctx->log : NULL;
		slot->own.ctx.progress = thread == 0 ? nested->ctx->progress : NULL;
		while (atomic_load(&nested->status) == AG_OK &&
			   (job = atomic_fetch_add(&nested->next, 1)) < nested->n_jobs)
		{
			AgStatus status = nested_fit(slot, nested->masks[job]), none = AG_OK;

			atomic_fetch_add(&nested->n_done, status == AG_OK);
			if (status != AG_OK)
				atomic_compare_exchange_strong(&nested->status, &none, status);
		}
	}
}

/* One model without any of the sets that are wanted, of one dealing of the rows. *n_done: trainings so far. */
static AgStatus
set_fit(AgFit *fit, AgContext *ctx, int set, AgFitModel *model, int *n_done)
{
	Nested nested = {.fit = fit, .ctx = ctx, .model = model, .set = set};
	size_t n_out = (size_t) ag_fit_width(fit);
	AgStatus status;

	for (uint32_t mask = 1; mask < UINT32_C(1) << fit->parts.n; mask++)
		if (is_wanted(fit, mask))
			nested.masks[nested.n_jobs++] = mask;
	nested.n_slots =
		model->plan.n_parallel < nested.n_jobs ? model->plan.n_parallel : nested.n_jobs;
	AG_GO(ag_fit_slot_prepare(fit, ctx, model->level, model->config));
	AG_GO(ag_get_zeroed(ctx, (size_t) nested.n_slots, sizeof *nested.slots, &nested.slots));
	for (int s = 0; s < nested.n_slots; s++)
	{
		nested.slots[s].nested = &nested;
		AG_GO(ag_fit_slot_open(fit, ctx, model->level,
							   nested.n_slots > 1 ? model->plan.cpus_per_job : 0,
							   &nested.slots[s].own));
		AG_GO(ag_get(ctx, (size_t) fit->n_rows, n_out * sizeof(double), &nested.slots[s].out));
	}
	if (nested.n_slots > 1)
		ag_pool_run(ctx->pool, nested.n_slots, 1, slots_run, &nested);
	else
		slots_run(&nested, 0, 1, 0);
	*n_done += atomic_load(&nested.n_done);
	status = atomic_load(&nested.status);
	for (int s = 0; s < nested.n_slots && status != AG_OK && ctx->error != NULL; s++)
		if (nested.slots[s].own.error.status == status)
			*ctx->error = nested.slots[s].own.error;
done:
	for (int s = 0; nested.slots != NULL && s < nested.n_slots; s++)
	{
		ag_mem_free(ctx->mem, nested.slots[s].out);
		ag_fit_slot_close(fit, model->level, &nested.slots[s].own);
	}
	ag_mem_free(ctx->mem, nested.slots);
	return status;
}

/* --- the inputs of a level */

/* Trainings of a set, each counted by the share of the rows that it has. */
static double
trainings_count(const AgFit *fit)
{
	double n = 0.0;

	for (uint32_t mask = 1; mask < UINT32_C(1) << fit->parts.n; mask++)
		if (is_wanted(fit, mask))
			n += 1.0 - (double) count_bits(mask) / fit->parts.n;
	return n * fit->validation.n_sets;
}

static double
model_seconds(const AgFit *fit, const AgFitModel *model)
{
	int64_t rounds = 0;

	for (int c = 0; c < model->n_children; c++)
		rounds += model->children[c].rounds > 0 ? model->children[c].rounds : 0;
	return ag_fit_refit_seconds(fit, model, (int) (rounds / model->n_children)) *
		   trainings_count(fit) / (model->plan.n_parallel > 0 ? model->plan.n_parallel : 1);
}

/* How many of the inputs, the best first, there is time for. */
static int
inputs_affordable(const AgFit *fit, const AgFitLevel *level, double left)
{
	double seconds = 0.0;
	int n = 0;

	while (n < level->n_inputs &&
		   (seconds += model_seconds(fit, &fit->models[level->inputs[n]])) <= left)
		n++;
	return n;
}

static double
model_bytes(const AgFit *fit)
{
	int width = ag_stack_width(fit->label->problem, ag_fit_width(fit));
	double bytes = 0.0;

	for (uint32_t mask = 1; mask < UINT32_C(1) << fit->parts.n; mask++)
		if (is_wanted(fit, mask))
			bytes += (double) count_bits(mask) / fit->parts.n;
	return bytes * (double) fit->n_rows * fit->validation.n_sets * width * sizeof(float);
}

/* Of the parts, so many that most of what there is to be learnt from can be; said once, for all levels. */
static void
parts_choose(AgFit *fit, const AgFitLevel *level, double left)
{
	int most = parts_most(fit);

	fit->parts.n = most;
	if (fit->options->replay != NULL && fit->options->replay->n_parts >= fit->n_levels + 1 &&
		fit->options->replay->n_parts < most)
		fit->parts.n = fit->options->replay->n_parts;
	else if (left < (double) INFINITY && most > FEW_PARTS && fit->n_levels + 1 <= FEW_PARTS &&
			 inputs_affordable(fit, level, left) < level->n_inputs)
		fit->parts.n = FEW_PARTS;
}

static AgStatus
input_make(AgFit *fit, int64_t deadline_ns, AgFitModel *model, int *n_done)
{
	AgContext ctx = fit->ctx;
	size_t n = (size_t) fit->validation.n_sets << fit->parts.n;
	struct AgPool *pool = NULL;
	AgError err;
	AgStatus status;

	ag_error_init(&err);
	ctx.error = &err;
	ctx.deadline_ns = deadline_ns;
	model->without = ag_arena_alloc(&fit->arena, n, sizeof *model->without);
	if (model->without == NULL)
		AG_GO(ag_mem_error(ctx.mem, n * sizeof *model->without, &err));
	memset(model->without, 0, n * sizeof *model->without);
	AG_GO(ag_fit_pool(fit, model->plan.num_cpus, &pool, &ctx));
	for (int set = 0; set < fit->validation.n_sets; set++)
		AG_GO(set_fit(fit, &ctx, set, model, n_done));
done:
	ag_pool_free(pool);
	if (status == AG_ERR_CANCELLED)
		return ag_check_cancel(&fit->ctx);
	if (status == AG_OK)
		return AG_OK;
	said_free(fit, model);
	ag_log(&fit->ctx, AG_LOG_NORMAL, "  level %d does without %s: %s", fit->level, model->name,
		   status == AG_ERR_TIME ? "no time to fit it for that" : err.message);
	return status;
}

AgStatus
ag_fit_nested_make(AgFit *fit, AgFitLevel *level)
{
	int64_t began = ag_clock_ns(), deadline = fit->ctx.deadline_ns;
	double left = (double) INFINITY, room;
	const char *wanting = "time";
	int n = 0, n_done = 0, most;

	if (fit->validation.is_held_out || fit->validation.is_forward)
		return AG_OK; /* nothing has learnt from the rows that scores are of, or from later ones */
	if (deadline != INT64_MAX)
	{
		left = (double) (deadline - began) * 1e-9 * TIME_SHARE;
		deadline = began + (int64_t) (left * 1e9);
	}
	if (fit->level == 2)
	{
		parts_choose(fit, level, left);
		AG_TRY(parts_make(fit));
		fit->n_parts = fit->parts.n;
	}
	room = fit->ctx.mem->limit_bytes < INT64_MAX
			   ? (double) (fit->ctx.mem->limit_bytes - fit->ctx.mem->used_bytes) * MEMORY_SHARE
			   : (double) INFINITY;
	most = inputs_affordable(fit, level, left);
	if (most * model_bytes(fit) > room)
	{
		most = (int) (room / model_bytes(fit));
		wanting = "memory";
	}
	if (most < level->n_inputs)
		ag_log(&fit->ctx, AG_LOG_NORMAL, "  level %d looks at %d of %d models for want of %s",
			   fit->level, most, level->n_inputs, wanting);
	fit->phase = "fitting what stackers learn from";
	ag_progress(&fit->ctx, fit->phase, 0.0);
	for (int i = 0; i < most; i++)
	{
		AgStatus status = input_make(fit, deadline, &fit->models[level->inputs[i]], &n_done);

		if (status == AG_ERR_CANCELLED)
			return status;
		if (status == AG_OK)
			level->inputs[n++] = level->inputs[i];
		ag_progress(&fit->ctx, fit->phase, (i + 1.0) / most);
	}
	fit->phase = NULL;
	level->n_inputs = n;
	ag_log(&fit->ctx, AG_LOG_NORMAL,
		   "  %.2f s  to fit them without the rows that level %d is scored on (%d trainings)",
		   ag_fit_seconds(began), fit->level, n_done);
	return AG_OK;
}
