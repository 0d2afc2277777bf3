/*
 * resources.c - see resources.h.
 *
 * AutoGluon's words: "num_gpus" of the fit is what all share, that of ag_args_ensemble's ag_args_fit what a bag has, that of
 * ag_args_fit what each training takes. Where a wider one is given and a narrower one isn't, the narrower has its part of it: no
 * number that somebody wrote is without effect.
 */
#include "engine/search/resources.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The least of a GPU that a training gets where nobody said how much. */
#define LEAST_SHARES 30

static int
min_of(int a, int b)
{
	return a < b ? a : b;
}

static int
max_of(int a, int b)
{
	return a > b ? a : b;
}

int
ag_gpu_shares(double num_gpus)
{
	double shares = ceil(num_gpus * AG_GPU_SHARES - 1e-6);

	if (!(shares > 0.0))
		return 0;
	return shares < AG_MAX_GPUS * AG_GPU_SHARES ? (int) shares : AG_MAX_GPUS * AG_GPU_SHARES;
}

/* What counts for a model: the narrowest of what was said. */
static double
narrowest(const AgFitOptions *options, const AgModelConfig *model)
{
	if (model->asked.num_gpus != AG_GPUS_UNSAID)
		return model->asked.num_gpus;
	if (model->bag.num_gpus != AG_GPUS_UNSAID)
		return model->bag.num_gpus;
	return options->total.num_gpus;
}

/* Nothing is left of a wider 0. */
static bool
is_barred(const AgFitOptions *options, const AgModelConfig *model)
{
	return options->total.num_gpus == 0.0 || model->bag.num_gpus == 0.0;
}

bool
ag_model_asks_gpu(const AgFitOptions *options, const AgModelConfig *model)
{
	double asked = narrowest(options, model);

	return asked != AG_GPUS_UNSAID && asked != 0.0 && !is_barred(options, model);
}

bool
ag_model_insists(const AgFitOptions *options, const AgModelConfig *model)
{
	return ag_model_asks_gpu(options, model) &&
		   (model->asked.num_gpus > 0.0 || model->bag.num_gpus > 0.0 ||
			options->total.num_gpus > 0.0);
}

bool
ag_fit_asks_gpu(const AgFitOptions *options)
{
	for (int i = 0; i < options->n_models; i++)
		if (options->models[i].family->on_gpu && ag_model_asks_gpu(options, &options->models[i]))
			return true;
	return false;
}

/* May it be trained on the GPUs that were found? */
static bool
is_trained(const AgFitOptions *options, const AgModelConfig *model, const AgGpuState *state)
{
	return model->family->on_gpu && (state->families >> model->family->id & 1) != 0 &&
		   ag_model_asks_gpu(options, model);
}

static int
usable_of(const AgGpuState *state, int limit)
{
	return limit >= 0 ? min_of(state->n_usable, limit) : state->n_usable;
}

/* --- what to ask for */

/* The most that all its trainings may have together. */
static int
most_shares(const AgFitOptions *options, const AgModelConfig *model, int available)
{
	int most = available;

	if (options->total.num_gpus > 0.0)
		most = min_of(most, ag_gpu_shares(options->total.num_gpus));
	if (model->bag.num_gpus > 0.0)
		most = min_of(most, ag_gpu_shares(model->bag.num_gpus));
	return most;
}

void
ag_gpu_need(const AgFitOptions *options, const AgGpuState *state, int limit, int n_jobs,
			int n_parallel, AgGpuNeed *need)
{
	int available = usable_of(state, limit) * AG_GPU_SHARES;
	int at_a_time = max_of(1, min_of(n_jobs, n_parallel));

	memset(need, 0, sizeof *need);
	for (int i = 0; i < options->n_models; i++)
	{
		const AgModelConfig *model = &options->models[i];
		int chunk, most = most_shares(options, model, available);

		if (!is_trained(options, model, state) || most == 0)
			continue;
		if (model->asked.num_gpus > 0.0)
		{
			chunk = min_of(ag_gpu_shares(model->asked.num_gpus), AG_GPU_SHARES);
			most = min_of(most, chunk * at_a_time);
		}
		else
		{
			chunk = min_of(most, AG_GPU_SHARES);
			/* what a bag or fit was promised is held; "auto" takes what can work at the same time */
			if (!(model->bag.num_gpus > 0.0) && !(options->total.num_gpus > 0.0))
				most = min_of(most, AG_GPU_SHARES * at_a_time);
		}
		need->chunk = max_of(need->chunk, chunk);
		need->most = max_of(need->most, most);
		if (ag_model_insists(options, model))
			need->least = max_of(need->least, model->asked.num_gpus > 0.0 ? chunk : most);
	}
}

/* --- what isn't to be had */

static void
shortage_set(AgGpuShortage *shortage, bool is_partial, const char *reason, const char *cure)
{
	shortage->is_partial = is_partial;
	snprintf(shortage->reason, sizeof shortage->reason, "%s", reason);
	snprintf(shortage->cure, sizeof shortage->cure, "%s", cure);
}

/* "GBM", "GBM and CAT", "GBM, CAT and RF": families, by their bits. */
static void
families_text(uint32_t families, char *text, size_t size)
{
	size_t at = 0;

	text[0] = '\0';
	for (int i = 0; i < AG_FAMILY_LAST && at < size; i++)
	{
		bool is_last = families >> i == 1;

		if ((families >> i & 1) == 0)
			continue;
		at += (size_t) snprintf(text + at, size - at, "%s%s",
								at == 0   ? ""
								: is_last ? " and "
										  : ", ",
								ag_family((AgFamilyId) i)->key);
	}
}

/* More GPUs than there are, for the fit or a bag; or more than one for a training. */
static bool
is_too_much(const AgFitOptions *options, const AgGpuState *state, int limit,
			AgGpuShortage *shortage)
{
	int usable = usable_of(state, limit);
	const char *why = usable < state->n_usable ? " (ag_pg.num_gpus)" : "";
	double total = options->total.num_gpus;
	char reason[300];

	if (total > usable)
	{
		snprintf(reason, sizeof reason, "%.10g GPUs are asked for, and %d can be used%s", total,
				 usable, why);
		shortage_set(shortage, true, reason,
					 "Lower the option \"num_gpus\"; ag_gpus() lists the GPUs there are.");
		return true;
	}
	for (int i = 0; i < options->n_models; i++)
	{
		const AgModelConfig *model = &options->models[i];

		if (!is_trained(options, model, state))
			continue;
		if (model->bag.num_gpus > usable)
		{
			snprintf(reason, sizeof reason,
					 "model \"%s\" asks for %.10g GPUs for its bag, and %d can be used%s",
					 model->name, model->bag.num_gpus, usable, why);
			shortage_set(shortage, true, reason,
						 "Lower \"num_gpus\" in the \"ag_args_fit\" of \"ag_args_ensemble\"; "
						 "ag_gpus() lists the GPUs there are.");
			return true;
		}
		if (model->asked.num_gpus > 1.0)
		{
			snprintf(reason, sizeof reason,
					 "model \"%s\" asks for %.10g GPUs for each training, and a training runs on "
					 "one",
					 model->name, model->asked.num_gpus);
			shortage_set(
				shortage, true, reason,
				"Give that number as the option \"num_gpus\" (the whole fit), or in the "
				"\"ag_args_fit\" of \"ag_args_ensemble\" (each bag): folds and models are spread "
				"over GPUs.");
			return true;
		}
	}
	return false;
}

bool
ag_gpu_shortage(const AgFitOptions *options, const AgGpuState *state, int limit,
				AgGpuShortage *shortage)
{
	uint32_t asking = 0, trained = 0;

	memset(shortage, 0, sizeof *shortage);
	for (int i = 0; i < options->n_models; i++)
	{
		const AgModelConfig *model = &options->models[i];

		if (!model->family->on_gpu || !ag_model_insists(options, model))
			continue;
		asking |= UINT32_C(1) << model->family->id;
		trained |= UINT32_C(1) << model->family->id & state->families;
	}
	if (asking == 0)
		return false;
	if (limit == 0)
		shortage_set(shortage, false, "the setting ag_pg.num_gpus is 0",
					 "A superuser can raise it; or set the option \"num_gpus\" to 0.");
	else if (state->n_usable == 0)
		shortage_set(shortage, false,
					 state->reason[0] != '\0' ? state->reason : "none was looked for", state->cure);
	else if (trained != asking)
	{
		char text[128], reason[300];

		families_text(asking & ~trained, text, sizeof text);
		snprintf(reason, sizeof reason, "the CUDA module has no code to train %s", text);
		shortage_set(shortage, trained != 0, reason,
					 "Install the module of this release, or set \"num_gpus\" to 0 for these "
					 "models.");
	}
	else
		return is_too_much(options, state, limit, shortage);
	return true;
}

bool
ag_gpu_taken(const AgFitOptions *options, const AgGpuNeed *need, const AgGpuGrant *grants,
			 int n_grants, AgGpuShortage *shortage)
{
	int granted = 0;
	char reason[200];

	for (int i = 0; i < n_grants; i++)
		granted += grants[i].shares;
	if (granted >= need->least)
		return false;
	if (granted == 0)
		snprintf(reason, sizeof reason, "other fits hold the GPUs");
	else
		snprintf(reason, sizeof reason, "other fits hold all but %.4g of the %.4g asked for",
				 (double) granted / AG_GPU_SHARES, (double) need->least / AG_GPU_SHARES);
	shortage_set(shortage, granted > 0, reason,
				 options->total.num_gpus > 1.0 || need->least > AG_GPU_SHARES
					 ? "Ask for fewer, fit again later, or set ag_pg.gpu_fallback to \"wait\"."
					 : "Fit again later, share GPUs between fits (\"num_gpus\": 0.5), or set "
					   "ag_pg.gpu_fallback to \"wait\".");
	return true;
}

/* --- who gets what */

/* Trainings of so many shares that fit on what is granted. */
static int
room_for(const AgGpuGrant *grants, int n_grants, int shares)
{
	int n = 0;

	for (int i = 0; i < n_grants; i++)
		n += grants[i].shares / shares;
	return n;
}

/* The largest part that each of n trainings can have of what is granted. */
static int
part_for(const AgGpuGrant *grants, int n_grants, int n, int most)
{
	int shares = min_of(AG_GPU_SHARES, max_of(1, most / n));

	while (shares > 1 && room_for(grants, n_grants, shares) < n)
		shares--;
	return shares;
}

/* The GPUs' side of a plan whose n_parallel is what CPUs and folds allow. */
static void
gpus_divide(const AgModelConfig *model, const AgGpuGrant *grants, int n_grants, int most,
			AgModelPlan *plan)
{
	int shares, room;

	if (model->asked.num_gpus > 0.0)
		shares = min_of(ag_gpu_shares(model->asked.num_gpus), AG_GPU_SHARES);
	else /* as many at a time as have half a GPU each */
		shares = min_of(max_of(LEAST_SHARES, most / plan->n_parallel), AG_GPU_SHARES);
	shares = min_of(shares, most);
	room = min_of(room_for(grants, n_grants, shares), most / shares);
	plan->n_parallel = max_of(1, min_of(plan->n_parallel, room));
	if (room == 0 || !(model->asked.num_gpus > 0.0))
		shares = part_for(grants, n_grants, plan->n_parallel, most);
	plan->gpu_shares = shares;
}

void
ag_model_plan(const AgFitOptions *options, const AgModelConfig *model, int number,
			  const AgGpuState *state, const AgGpuGrant *grants, int n_grants, int n_cpus,
			  int n_jobs, int n_parallel, AgModelPlan *plan)
{
	int available = 0, most;
	/* a bag's CPUs are its trainings'; what a single model asks for is what it gets */
	int cpus = model->bag.num_cpus > 0 ? min_of(model->bag.num_cpus, n_cpus) : n_cpus;
	int each = model->asked.num_cpus > 0 ? min_of(model->asked.num_cpus, cpus) : -1;

	memset(plan, 0, sizeof *plan);
	plan->n_parallel = max_of(1, min_of(min_of(n_jobs, n_parallel), cpus / max_of(each, 1)));
	for (int i = 0; i < n_grants; i++)
		available += grants[i].shares;
	most = most_shares(options, model, available);
	if (state != NULL && most > 0 && is_trained(options, model, state))
		gpus_divide(model, grants, n_grants, most, plan);
	plan->cpus_per_job = each > 0 ? each : max_of(1, cpus / plan->n_parallel);
	plan->num_cpus = plan->cpus_per_job * plan->n_parallel;
	plan->first_of_gpus = n_grants > 0 ? number % n_grants : 0;
}

/* Trainings that run at the same time are dealt round by round, so that no GPU has two before all have one. */
const AgGpuGrant *
ag_plan_gpu(const AgModelPlan *plan, const AgGpuGrant *grants, int n_grants, int job, int *place)
{
	int wanted = job % plan->n_parallel, at = 0;

	if (plan->gpu_shares == 0)
		return NULL;
	for (int round = 1; round <= AG_GPU_SHARES; round++)
		for (int i = 0; i < n_grants; i++)
		{
			const AgGpuGrant *grant = &grants[(plan->first_of_gpus + i) % n_grants];

			if (grant->shares / plan->gpu_shares < round || at++ != wanted)
				continue;
			if (place != NULL)
				*place = round - 1;
			return grant;
		}
	return NULL;
}
