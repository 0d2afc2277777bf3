/*
 * resources.h - who may use which CPUs and GPUs: what a fit asks the host for, and how its models and folds share what it
 * gets. Pure arithmetic; the host finds, leases and opens devices.
 *
 * GPUs are counted in shares, 60 a GPU, so that halves, thirds, quarters, fifths and sixths are whole. One training runs on
 * one GPU, or on a part of one; what has more than one GPU is a fit or a bag.
 */
#ifndef AG_RESOURCES_H
#define AG_RESOURCES_H

#include "engine/search/options.h"

#define AG_GPU_SHARES 60
#define AG_MAX_GPUS 64

/* A GPU that a kernel of ours has run on. */
typedef struct AgGpuFound
{
	int device; /* as CUDA counts, from 0: "cuda:0" */
	char name[64];
	int64_t total_bytes;
	int64_t free_bytes; /* when it was looked at; -1: unknown */
} AgGpuFound;

/* What the host found out when a GPU was asked for. */
typedef struct AgGpuState
{
	int n_usable; /* of gpus, in the order of their numbers */
	AgGpuFound gpus[AG_MAX_GPUS];
	uint32_t families; /* 1 << AgFamilyId: there is code to train it on them */
	char reason[512];  /* why none is usable, root cause first; empty when n_usable > 0 */
	char cure[512];    /* what to do about it */
} AgGpuState;

/* What a fit asks the host for, in shares. */
typedef struct AgGpuNeed
{
	int chunk; /* what one training takes, all of it on one GPU; 0: no GPU */
	int least; /* with less, the fit has not what was asked for */
	int most;
} AgGpuNeed;

/* A part of a GPU that the fit holds. */
typedef struct AgGpuGrant
{
	int device;
	int shares;           /* 1 to 60 */
	int64_t memory_bytes; /* that the fit may take of it */
	char name[64];
} AgGpuGrant;

/* Why a GPU that was asked for isn't used. */
typedef struct AgGpuShortage
{
	bool is_partial; /* fewer GPUs than asked for are used; else none */
	char reason[600];
	char cure[512];
} AgGpuShortage;

/* How one configuration is fitted. */
typedef struct AgModelPlan
{
	int n_parallel;    /* trainings at a time */
	int num_cpus;      /* of them together */
	int cpus_per_job;  /* of each */
	int gpu_shares;    /* of each; 0: it runs on the CPU */
	int first_of_gpus; /* where in the list of grants its first training begins */
} AgModelPlan;

/* Shares that so many GPUs are, rounded up. */
int ag_gpu_shares(double num_gpus);

/* Does the configuration ask for a GPU, itself or by way of its bag or the whole fit? "auto" does, too. */
bool ag_model_asks_gpu(const AgFitOptions *options, const AgModelConfig *model);
/* A number was given: then it is a fault not to have it. */
bool ag_model_insists(const AgFitOptions *options, const AgModelConfig *model);

/* Is there a model that asks for a GPU and that one may train? Else the host need not look for GPUs. */
bool ag_fit_asks_gpu(const AgFitOptions *options);

/*
 * What to lease. limit: GPUs that fits may use (-1: all there are; those with the lowest numbers). n_jobs: trainings of each
 * model; n_parallel: how many of them run at a time at most.
 */
void ag_gpu_need(const AgFitOptions *options, const AgGpuState *state, int limit, int n_jobs,
				 int n_parallel, AgGpuNeed *need);

/* True when a GPU was asked for by a number and isn't to be had on this machine: before anything is leased. */
bool ag_gpu_shortage(const AgFitOptions *options, const AgGpuState *state, int limit,
					 AgGpuShortage *shortage);

/* The same after the lease: other fits hold what the need had as its least. */
bool ag_gpu_taken(const AgFitOptions *options, const AgGpuNeed *need, const AgGpuGrant *grants,
				  int n_grants, AgGpuShortage *shortage);

/*
 * A model's plan. number: of the model among those of the fit, so that models are spread over GPUs, too. state: NULL when
 * nothing was granted. n_cpus: those of the fit.
 */
void ag_model_plan(const AgFitOptions *options, const AgModelConfig *model, int number,
				   const AgGpuState *state, const AgGpuGrant *grants, int n_grants, int n_cpus,
				   int n_jobs, int n_parallel, AgModelPlan *plan);

/*
 * The grant that a model's job-th training (0..) runs on; NULL: the CPU. *place (may be NULL): which one of those that run there at the
 * same time it is, from 0 on.
 */
const AgGpuGrant *ag_plan_gpu(const AgModelPlan *plan, const AgGpuGrant *grants, int n_grants,
							  int job, int *place);

#endif
