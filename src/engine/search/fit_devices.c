/*
 * fit_devices.c - what a fit says of the GPUs it was asked to use, and each model's part of them.
 */
#include <stdio.h>
#include <string.h>

#include "engine/base/threads.h"
#include "engine/search/fit_state.h"

/* Trainings of one model that run at the same time, at most. */
#define FOLDS_AT_A_TIME 1

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

	ag_gpu_need(job->options, &job->gpu, job->gpu_limit, n_jobs,
				n_cpus < FOLDS_AT_A_TIME ? n_cpus : FOLDS_AT_A_TIME, &job->gpu_need);
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

static bool
is_cpu_family(const AgFit *fit, const AgModelConfig *model)
{
	return !model->family->on_gpu && ag_model_asks_gpu(fit->options, model);
}

static bool
asks_fp16(const AgFit *fit, const AgModelConfig *model)
{
	(void) fit;
	return model->use_fp16;
}

static void
families_tell(AgFit *fit)
{
	char text[256];

	families_text(fit, is_cpu_family, text, sizeof text);
	if (text[0] != '\0')
		ag_log(&fit->ctx, AG_LOG_NORMAL, "No GPU path: %s %s fitted on the CPU", text,
			   strchr(text, ' ') != NULL ? "are" : "is");
	families_text(fit, asks_fp16, text, sizeof text);
	if (text[0] != '\0')
		ag_log(
			&fit->ctx, AG_LOG_NORMAL,
			"\"use_fp16\" means nothing to %s: trees are grown from integers, and the others are "
			"trained on the CPU in single precision",
			text);
}

static bool
trouble_copy(const AgGpuShortage *trouble, AgGpuShortage *shortage)
{
	if (trouble->reason[0] == '\0')
		return false;
	*shortage = *trouble;
	return true;
}

/* Exactly one WARNING a fit, however many models ask. */
AgStatus
ag_fit_tell_devices(AgFit *fit)
{
	const AgFitJob *job = fit->job;
	AgGpuShortage shortage;
	bool is_short = trouble_copy(&job->gpu_trouble, &shortage) ||
					ag_gpu_shortage(job->options, &job->gpu, job->gpu_limit, &shortage) ||
					ag_gpu_taken(job->options, &job->gpu_need, job->gpus, job->n_gpus, &shortage);

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

void
ag_fit_plan_model(const AgFit *fit, AgFitModel *model)
{
	const AgFitJob *job = fit->job;
	const AgValidation *v = &fit->validation;
	int n_jobs = model->is_bag ? v->n_folds * v->n_sets : 1;

	ag_model_plan(fit->options, model->config, (int) (model->config - fit->options->models),
				  job->n_gpus > 0 ? &job->gpu : NULL, job->gpus, job->n_gpus,
				  ag_pool_size(fit->ctx.pool), n_jobs, FOLDS_AT_A_TIME, &model->plan);
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

void
ag_trained_devices(const AgTrained *trained, int n, char *text, size_t size)
{
	bool used[AG_MAX_GPUS] = {false}, on_cpu = n == 0;
	size_t at = 0;

	for (int i = 0; i < n; i++)
		if (trained[i].gpu == NULL)
			on_cpu = true;
		else
			used[trained[i].gpu->device] = true;
	text[0] = '\0';
	if (on_cpu)
		at += (size_t) snprintf(text, size, "cpu");
	for (int d = 0; d < AG_MAX_GPUS && at < size; d++)
		if (used[d])
			at += (size_t) snprintf(text + at, size - at, "%scuda:%d", at > 0 ? ", " : "", d);
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
