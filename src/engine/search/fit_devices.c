/*
 * fit_devices.c - what a fit says of the GPUs it was asked to use, and each model's part of them.
 */
#include <stdio.h>
#include <string.h>

#include "engine/base/threads.h"
#include "engine/search/fit_state.h"

/* --- for the host */

static AgStatus
shortage_error(const AgGpuShortage *shortage, AgError *err)
{
	ag_error_set(err, AG_ERR_SYSTEM, "%s: %s",
				 shortage->is_partial ? "not all GPUs that were asked for can be used"
									  : "no GPU can be used",
				 shortage->reason);
	if (shortage->cure[0] != '\0')
		ag_error_hint(err, "%s", shortage->cure);
	return AG_ERR_SYSTEM;
}

AgStatus
ag_fit_check_gpu(const AgFitJob *job, AgError *err)
{
	AgGpuShortage shortage;

	if (!job->gpu_required || !ag_gpu_shortage(job->options, &job->gpu, job->gpu_limit, &shortage))
		return AG_OK;
	return shortage_error(&shortage, err);
}

void
ag_fit_need_gpu(AgFitJob *job, int64_t n_rows, int n_cpus)
{
	int n_folds = ag_folds_asked(job->options, n_rows);
	int n_jobs = n_folds > 0 ? n_folds * job->options->num_bag_sets : 1;
	int most = ag_folds_at_a_time(job->options, n_rows);

	ag_gpu_need(job->options, &job->gpu, job->gpu_limit, n_jobs, n_cpus < most ? n_cpus : most,
				&job->gpu_need);
}

/* --- once a fit */

/* "LR", "LR and KNN", "LR, KNN and RF": the families of the models that were chosen, each once. */
static void
families_text(const AgFit *fit, bool (*chosen)(const AgFit *, const AgModelConfig *), char *text,
			  size_t size)
{
	bool is_in[AG_FAMILY_LAST] = {false};
	int n = 0, said = 0;
	size_t at = 0;

	for (int i = 0; i < fit->options->n_models; i++)
	{
		const AgModelConfig *model = &fit->options->models[i];

		if (!is_in[model->family->id] && chosen(fit, model))
		{
			is_in[model->family->id] = true;
			n++;
		}
	}
	text[0] = '\0';
	for (int f = 0; f < AG_FAMILY_LAST && at < size; f++)
		if (is_in[f])
		{
			const char *before = said == 0 ? "" : said == n - 1 ? " and " : ", ";

			at += (size_t) snprintf(text + at, size - at, "%s%s", before,
									ag_family((AgFamilyId) f)->key);
			said++;
		}
}

/* Would take a GPU that there is, had the module code for it. Whoever insists on one is told of it by a warning. */
static bool
is_cpu_family(const AgFit *fit, const AgModelConfig *model)
{
	return fit->job->n_gpus > 0 && (fit->job->gpu.families >> model->family->id & 1) == 0 &&
		   ag_model_asks_gpu(fit->options, model) && !ag_model_insists(fit->options, model);
}

static bool
has_no_fp16(const AgFit *fit, const AgModelConfig *model)
{
	(void) fit;
	return model->use_fp16 && !model->family->has_half;
}

/* A net that no GPU is for. */
static bool
lacks_fp16(const AgFit *fit, const AgModelConfig *model)
{
	return model->use_fp16 && model->family->has_half &&
		   (fit->job->n_gpus == 0 || (fit->job->gpu.families >> model->family->id & 1) == 0 ||
			!ag_model_asks_gpu(fit->options, model));
}

/* What those families are told: before and after their names. */
static void
tell_of(AgFit *fit, bool (*chosen)(const AgFit *, const AgModelConfig *), const char *before,
		const char *after)
{
	char text[256];

	families_text(fit, chosen, text, sizeof text);
	if (text[0] != '\0')
		ag_log(&fit->ctx, AG_LOG_NORMAL, "%s %s%s", before, text, after);
}

static void
families_tell(AgFit *fit)
{
	tell_of(fit, is_cpu_family, "No GPU path in the CUDA module for", ": fitted on the CPU");
	tell_of(fit, has_no_fp16, "\"use_fp16\" means nothing to",
			": trees are grown from integers, and only nets have products that half precision is "
			"enough for");
	tell_of(fit, lacks_fp16, "\"use_fp16\" changes nothing for",
			": half precision takes a GPU, and on the CPU nets are trained in single precision");
}

/* --- devices */

/*
 * One training's part of a GPU. Trainings at the same time have one each, and so has each size of a part: all stay open to the end,
 * for closing resets the device.
 */
typedef struct AgFitDevice
{
	const AgGpuGrant *grant;
	int place, shares;
	AgGpu gpu; /* without a device: it couldn't be opened */
	struct AgFitDevice *next;
} AgFitDevice;

typedef struct AgFitDevices
{
	AgArena *arena; /* of the fit itself */
	AgFitDevice *first;
	bool told_trouble; /* of a GPU that was granted and isn't used */
	bool told_half;    /* of one that has no half precision */
} AgFitDevices;

static void
trouble_tell(AgFit *fit, const char *what, const char *why)
{
	if (fit->devices->told_trouble)
		return;
	fit->devices->told_trouble = true;
	ag_log_hint(&fit->ctx, AG_LOG_WARNING,
				"SELECT * FROM ag_gpus() shows who uses it; ag_doctor() tells more.", "%s: %s",
				what, why);
}

/* NULL, and why, when it can't be opened. */
static AgStatus
device_get(AgFit *fit, const AgGpuGrant *grant, int place, int shares, AgGpu **gpu, char *why,
		   int why_size)
{
	const AgDeviceOps *ops = fit->job->gpu_ops;
	AgFitDevice *device;

	*gpu = NULL;
	why[0] = '\0';
	if (ops == NULL)
		return AG_OK;
	for (device = fit->devices->first; device != NULL; device = device->next)
		if (device->grant == grant && device->place == place && device->shares == shares)
			break;
	if (device == NULL)
	{
		double part = (double) shares / grant->shares;

		device = ag_arena_alloc(fit->devices->arena, 1, sizeof *device);
		if (device == NULL)
			return ag_mem_error(fit->arena.mem, sizeof *device, fit->ctx.error);
		memset(device, 0, sizeof *device);
		device->grant = grant;
		device->place = place;
		device->shares = shares;
		device->gpu.ops = ops;
		snprintf(device->gpu.name, sizeof device->gpu.name, "%.20s:%d", ops->kind, grant->device);
		device->next = fit->devices->first;
		fit->devices->first = device;
		if (ops->open(grant->device, (int64_t) ((double) grant->memory_bytes * part),
					  &device->gpu.device, why, why_size) != AG_DEVICE_OK)
			device->gpu.device = NULL;
	}
	if (device->gpu.device != NULL && !device->gpu.is_lost)
		*gpu = &device->gpu;
	return AG_OK;
}

void
ag_fit_close_devices(AgFit *fit)
{
	if (fit->devices == NULL)
		return;
	for (AgFitDevice *device = fit->devices->first; device != NULL; device = device->next)
		if (device->gpu.device != NULL)
			device->gpu.ops->close(device->gpu.device);
	fit->devices->first = NULL;
}

/* All that was granted, once, so that what doesn't work is known before anything is fitted. */
static AgStatus
devices_try(AgFit *fit, bool *is_short, AgGpuShortage *shortage)
{
	const AgFitJob *job = fit->job;
	int n_open = 0;

	fit->devices = ag_arena_alloc(&fit->arena, 1, sizeof *fit->devices);
	if (fit->devices == NULL)
		return ag_mem_error(fit->arena.mem, sizeof *fit->devices, fit->ctx.error);
	memset(fit->devices, 0, sizeof *fit->devices);
	fit->devices->arena = &fit->arena;
	for (int i = 0; i < job->n_gpus && job->gpu_ops != NULL; i++)
	{
		const AgGpuGrant *grant = &job->gpus[i];
		char why[300];
		AgGpu *gpu;

		AG_TRY(device_get(fit, grant, 0, grant->shares, &gpu, why, sizeof why));
		n_open += gpu != NULL;
		if (gpu != NULL)
			continue;
		*is_short = fit->devices->told_trouble = true;
		snprintf(shortage->reason, sizeof shortage->reason,
				 "GPU cuda:%d (%s) could not be opened: %s", grant->device, grant->name, why);
		snprintf(shortage->cure, sizeof shortage->cure,
				 "SELECT * FROM ag_gpus() shows who uses it; ag_doctor() tells more.");
	}
	shortage->is_partial = shortage->is_partial || n_open > 0;
	return AG_OK;
}

/* --- once a fit */

/* Exactly one WARNING a fit, however many models ask. */
AgStatus
ag_fit_tell_devices(AgFit *fit)
{
	const AgFitJob *job = fit->job;
	AgGpuShortage shortage;
	bool is_short = ag_gpu_shortage(job->options, &job->gpu, job->gpu_limit, &shortage) ||
					ag_gpu_taken(job->options, &job->gpu_need, job->gpus, job->n_gpus, &shortage);

	AG_TRY(devices_try(fit, &is_short, &shortage));
	if (is_short && job->gpu_required)
		return shortage_error(&shortage, fit->ctx.error);
	if (is_short)
		ag_log_hint(&fit->ctx, AG_LOG_WARNING, shortage.cure[0] != '\0' ? shortage.cure : NULL,
					shortage.is_partial
						? "not all GPUs that were asked for can be used: %s"
						: "no GPU can be used, so the models are fitted on the CPU: %s",
					shortage.reason);
	families_tell(fit);
	for (int i = 0; i < job->n_gpus; i++)
		ag_log(&fit->ctx, AG_LOG_NORMAL, "Uses %.4g of GPU cuda:%d (%s), %.2f GB of its memory",
			   (double) job->gpus[i].shares / AG_GPU_SHARES, job->gpus[i].device, job->gpus[i].name,
			   (double) job->gpus[i].memory_bytes / 1e9);
	return AG_OK;
}

/* --- each model */

/* Of a configuration among those that are trained on GPUs: one after the other gets the next GPU. */
static int
gpu_number(const AgFit *fit, const AgModelConfig *config)
{
	int n = 0;

	for (const AgModelConfig *other = fit->options->models; other < config; other++)
		n += (fit->job->gpu.families >> other->family->id & 1) != 0 &&
			 ag_model_asks_gpu(fit->options, other);
	return n;
}

void
ag_fit_plan_model(const AgFit *fit, AgFitModel *model)
{
	const AgFitJob *job = fit->job;
	const AgValidation *v = &fit->validation;
	int n_jobs = model->is_bag && !model->is_out_of_bag ? v->n_folds : 1;

	ag_model_plan(fit->options, model->config, gpu_number(fit, model->config),
				  job->n_gpus > 0 ? &job->gpu : NULL, job->gpus, job->n_gpus,
				  ag_pool_size(fit->ctx.pool), n_jobs,
				  ag_folds_at_a_time(fit->options, fit->n_rows), &model->plan);
}

AgStatus
ag_fit_open_model(AgFit *fit, AgFitModel *model)
{
	const AgFitJob *job = fit->job;
	const AgModelPlan *plan = &model->plan;

	model->gpus = ag_arena_alloc(&fit->arena, (size_t) plan->n_parallel, sizeof *model->gpus);
	if (model->gpus == NULL)
		return ag_mem_error(fit->arena.mem, (size_t) plan->n_parallel, fit->ctx.error);
	for (int i = 0; i < plan->n_parallel; i++)
	{
		int place = 0;
		const AgGpuGrant *grant = ag_plan_gpu(plan, job->gpus, job->n_gpus, i, &place);
		char why[300], what[120];

		model->gpus[i] = NULL;
		if (grant == NULL)
			continue;
		AG_TRY(device_get(fit, grant, place, plan->gpu_shares, &model->gpus[i], why, sizeof why));
		snprintf(what, sizeof what, "GPU cuda:%d (%s) could not be opened", grant->device,
				 grant->name);
		if (model->gpus[i] == NULL && why[0] != '\0')
			trouble_tell(fit, what, why);
	}
	return AG_OK;
}

AgGpu *
ag_fit_gpu(const AgFitModel *model, int job)
{
	return model->gpus != NULL ? model->gpus[job % model->plan.n_parallel] : NULL;
}

AgGpu *
ag_fit_idle_gpu(const AgFit *fit, const AgModelConfig *config)
{
	if (fit->devices == NULL || (fit->job->gpu.families >> config->family->id & 1) == 0 ||
		!ag_model_asks_gpu(fit->options, config))
		return NULL;
	for (AgFitDevice *device = fit->devices->first; device != NULL; device = device->next)
		if (device->gpu.device != NULL && !device->gpu.is_lost)
			return &device->gpu;
	return NULL;
}

void
ag_fit_keep_gpu(const AgFit *fit, const AgFitModel *model, int job, AgTrained *trained)
{
	trained->gpu = trained->on_gpu
					   ? ag_plan_gpu(&model->plan, fit->job->gpus, fit->job->n_gpus, job, NULL)
					   : NULL;
}

static void
tell_half(AgFit *fit, const AgFitModel *model)
{
	for (int c = 0; c < model->n_children; c++)
		if (model->children[c].half_because[0] != '\0' && !fit->devices->told_half)
		{
			fit->devices->told_half = true;
			ag_log(&fit->ctx, AG_LOG_NORMAL,
				   "\"use_fp16\" can't be had, so nets are trained in single precision: %s",
				   model->children[c].half_because);
		}
}

void
ag_fit_tell_fallback(AgFit *fit, const AgFitModel *model)
{
	const AgTrained *child = NULL;
	char what[120];

	tell_half(fit, model);
	for (int c = 0; c < model->n_children && (child == NULL || !child->gpu_failed); c++)
		if (model->children[c].gpu == NULL && model->children[c].cpu_because[0] != '\0')
			child = &model->children[c];
	if (child == NULL)
		return;
	snprintf(what, sizeof what, "model %s was trained on the CPU", model->name);
	if (child->gpu_failed)
		trouble_tell(fit, what, child->cpu_because);
	else /* no fault: its parameters ask for it */
		ag_log(&fit->ctx, AG_LOG_NORMAL, "%s: %s", what, child->cpu_because);
}

void
ag_fit_tell_plan(AgFit *fit, const AgFitModel *model)
{
	const AgModelPlan *plan = &model->plan;

	ag_log(&fit->ctx, AG_LOG_RESOURCES, "Fitting %s with 'num_gpus': %.4g, 'num_cpus': %d",
		   model->name, (double) (plan->gpu_shares * plan->n_parallel) / AG_GPU_SHARES,
		   plan->num_cpus);
	if (model->is_bag)
		ag_log(&fit->ctx, AG_LOG_RESOURCES,
			   "Folding resources per job {'num_gpus': %.4g, 'num_cpus': %d}",
			   (double) plan->gpu_shares / AG_GPU_SHARES, plan->cpus_per_job);
}

/* "cpu", "cuda:1", "cuda:0, cuda:1". */
static void
devices_text(const bool used[AG_MAX_GPUS], bool on_cpu, char *text, size_t size)
{
	size_t at = 0;

	text[0] = '\0';
	if (on_cpu)
		at += (size_t) snprintf(text, size, "cpu");
	for (int d = 0; d < AG_MAX_GPUS && at < size; d++)
		if (used[d])
			at += (size_t) snprintf(text + at, size - at, "%scuda:%d", at > 0 ? ", " : "", d);
}

void
ag_plan_devices(const AgFit *fit, const AgModelPlan *plan, char *text, size_t size)
{
	bool used[AG_MAX_GPUS] = {false}, on_cpu = plan->gpu_shares == 0;

	for (int i = 0; i < plan->n_parallel && !on_cpu; i++)
		used[ag_plan_gpu(plan, fit->job->gpus, fit->job->n_gpus, i, NULL)->device] = true;
	devices_text(used, on_cpu, text, size);
}

void
ag_trained_devices(const AgTrained *trained, int n, char *text, size_t size)
{
	bool used[AG_MAX_GPUS] = {false}, on_cpu = n == 0;

	for (int i = 0; i < n; i++)
		if (trained[i].gpu == NULL)
			on_cpu = true;
		else
			used[trained[i].gpu->device] = true;
	devices_text(used, on_cpu, text, size);
}

/* What really ran: a bag whose trainings took turns had no more than one of them had. */
double
ag_fit_model_gpus(const AgFitModel *model)
{
	int n = 0;

	for (int c = 0; c < model->n_children; c++)
		n += model->children[c].gpu != NULL;
	if (n > model->plan.n_parallel)
		n = model->plan.n_parallel;
	return (double) (n * model->plan.gpu_shares) / AG_GPU_SHARES;
}
