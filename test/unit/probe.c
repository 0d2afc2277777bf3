/* probe.c - when a bag shows on its first folds whether it is worth finishing, and what counts as worth it. */
#include "unit/unit.h"

#include "engine/base/rng.h"
#include "engine/base/threads.h"
#include "engine/search/fit_state.h"

#define N_ROWS 400
#define N_FOLDS 8
#define N_MODELS 3

static AgLabel label = {.problem = AG_PROBLEM_REGRESSION};
static AgFitOptions options;
static AgFitModel models[N_MODELS];
static double proba[N_MODELS][N_ROWS], target[N_ROWS];
static uint32_t rows[N_ROWS];
static uint8_t fold_of[N_ROWS];

/* Three models that err alike, and each by itself. */
static void
fit_make(AgFit *fit, AgMem *mem, AgError *err)
{
	memset(fit, 0, sizeof *fit);
	memset(models, 0, sizeof models);
	memset(&options, 0, sizeof options);
	ag_error_init(err);
	for (int i = 0; i < N_ROWS; i++)
	{
		target[i] = ag_random_unit(1, (uint64_t) i);
		rows[i] = (uint32_t) i;
		fold_of[i] = (uint8_t) (i % N_FOLDS);
		for (int m = 0; m < N_MODELS; m++)
			proba[m][i] = target[i] + 0.5 * ag_random_unit(2, (uint64_t) i) +
						  0.1 * ag_random_unit((uint64_t) m + 3, (uint64_t) i);
	}
	for (int m = 0; m < N_MODELS; m++)
	{
		models[m].proba = proba[m];
		models[m].n_covered = N_ROWS;
		models[m].fit_seconds = 10.0;
	}
	fit->ctx.mem = mem;
	fit->ctx.error = err;
	fit->ctx.deadline_ns = ag_clock_ns() + INT64_C(60000000000);
	fit->options = &options;
	options.models_from_set = true;
	options.n_models = 12;
	fit->label = &label;
	fit->metric = AG_METRIC_RMSE;
	fit->level = 1;
	fit->models = models;
	fit->n_models = fit->at_model = N_MODELS;
	fit->validation.n_scored = N_ROWS;
	fit->validation.scored_rows = rows;
	fit->validation.fold_of = fold_of;
	fit->validation.target = target;
	fit->validation.n_folds = N_FOLDS;
	fit->validation.n_sets = 1;
}

/* Only where configurations of a set outnumber the time, and nobody asked for them by name. */
static void
when(AgFit *fit, AgMem *mem, AgError *err)
{
	AgReplay replay = {0};

	fit_make(fit, mem, err);
	AG_CHECK_EQ(ag_fit_probe_folds(fit, 1), 2);
	AG_CHECK_EQ(ag_fit_probe_folds(fit, 4), 4); /* as many as there are CPUs for at a time */
	AG_CHECK_EQ(ag_fit_probe_folds(fit, 8), 0); /* nothing would be saved */
	fit->at_model = 10;                         /* two more of 10 s each: there is time for them */
	AG_CHECK_EQ(ag_fit_probe_folds(fit, 1), 0);
	fit->at_model = N_MODELS;
	fit->ctx.deadline_ns = INT64_MAX;
	AG_CHECK_EQ(ag_fit_probe_folds(fit, 1), 0);
	fit_make(fit, mem, err);
	options.models_from_set = false;
	AG_CHECK_EQ(ag_fit_probe_folds(fit, 1), 0);
	fit_make(fit, mem, err);
	options.replay = &replay;
	AG_CHECK_EQ(ag_fit_probe_folds(fit, 1), 0);
	fit_make(fit, mem, err);
	fit->level = 2;
	AG_CHECK_EQ(ag_fit_probe_folds(fit, 1), 0);
	fit_make(fit, mem, err);
	fit->n_models = 2; /* too few to say that something adds nothing */
	AG_CHECK_EQ(ag_fit_probe_folds(fit, 1), 0);
	fit_make(fit, mem, err);
	models[0].n_covered = N_ROWS - 1;
	AG_CHECK_EQ(ag_fit_probe_folds(fit, 1), 0);
}

static bool
helps(AgFit *fit, double shared, double own, AgStatus expected)
{
	AgTrained trained[2];
	double said[2][N_ROWS];
	int n[2] = {0, 0};
	bool answer = false;

	memset(trained, 0, sizeof trained);
	for (int i = 0; i < N_ROWS; i++)
		if (fold_of[i] < 2)
			said[fold_of[i]][n[fold_of[i]]++] = target[i] +
												shared * ag_random_unit(2, (uint64_t) i) +
												own * ag_random_unit(9, (uint64_t) i);
	for (int f = 0; f < 2; f++)
		trained[f].valid_proba = said[f];
	AG_CHECK_EQ(ag_fit_probe(fit, &fit->ctx, trained, 2, &answer), expected);
	return answer;
}

int
main(void)
{
	AgMem mem;
	AgFit fit;
	AgError err;
	int64_t n;

	ag_mem_init(&mem, INT64_MAX);
	when(&fit, &mem, &err);
	fit_make(&fit, &mem, &err);
	AG_CHECK(!helps(&fit, 0.5, 1.0, AG_OK)); /* the same fault, and more of it */
	AG_CHECK(helps(&fit, 0.1, 0.1, AG_OK));  /* a better one */
	AG_CHECK(helps(&fit, -0.5, 1.0, AG_OK)); /* worse by itself, but it errs the other way */
	AG_CHECK_EQ(mem.used_bytes, 0);
	mem.n_allocations = 0;
	helps(&fit, 0.1, 0.1, AG_OK);
	n = mem.n_allocations;
	for (int64_t after = 0; after < n; after++)
	{
		mem.fail_after = after;
		helps(&fit, 0.1, 0.1, AG_ERR_MEMORY);
		mem.fail_after = -1;
		AG_CHECK_EQ(mem.used_bytes, 0);
	}
	return ag_unit_done("probe");
}
