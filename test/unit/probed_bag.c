/* probed_bag.c - a bag that is tried on its first folds: given up, given more time, and one whose first folds fail. */
#include "unit/fit_again.h"

#define N_FOLDS 8
#define N_OTHERS 3
#define N_ROWS 300
#define FIRST_FOLDS 2 /* that are tried, on one CPU */
#define SECONDS 3.0   /* left for all */
#define SHARE 0.3     /* of it for the bag */
#define TRIES 3       /* of what a busy machine may spoil */

/* Tells of each of its trainings, short as they are. */
static const AgOptionEntry quick_bag[] = {
	{"/hyperparameters", AG_JSON_OBJECT, "1"},
	{"/hyperparameters/KNN", AG_JSON_OBJECT, "0"},
	{"/num_bag_folds", AG_JSON_NUMBER, "8"},
	{"/eval_metric", AG_JSON_STRING, "root_mean_squared_error"},
	{"/ag_args_ensemble", AG_JSON_OBJECT, "1"},
	{"/ag_args_ensemble/use_child_oof", AG_JSON_BOOL, "false"},
};
#define N_QUICK_BAG ((int) (sizeof quick_bag / sizeof quick_bag[0]))

/* Takes all the time that it gets. */
static const AgOptionEntry endless[] = {
	{"/hyperparameters", AG_JSON_OBJECT, "1"},
	{"/hyperparameters/GBM", AG_JSON_OBJECT, "4"},
	{"/hyperparameters/GBM/num_boost_round", AG_JSON_NUMBER, "1000000"},
	{"/hyperparameters/GBM/learning_rate", AG_JSON_NUMBER, "0.0001"},
	{"/hyperparameters/GBM/num_leaves", AG_JSON_NUMBER, "3"},
	{"/hyperparameters/GBM/ag.early_stop", AG_JSON_NULL, ""},
	{"/num_bag_folds", AG_JSON_NUMBER, "8"},
	{"/num_bag_sets", AG_JSON_NUMBER, "2"},
};
#define N_ENDLESS ((int) (sizeof endless / sizeof endless[0]))

/* A fit in the middle of its list: some models are done, and what is left is too much for the time. */
typedef struct Middle
{
	Again a;
	Setting setting;
	AgFitJob job;
	AgFitModel models[N_OTHERS + 1];
	double proba[N_OTHERS][N_ROWS];
	double seconds; /* that the bag took */
	int last_fold;  /* of those that were begun; 0: none told */
} Middle;

static void
note_fold(void *host, const char *phase, double fraction)
{
	Middle *m = host;
	int fold = 0;

	(void) phase;
	(void) fraction;
	if (m->a.fit.phase != NULL && sscanf(m->a.fit.phase, "fitting, fold %d of", &fold) == 1 &&
		fold > m->last_fold)
		m->last_fold = fold;
}

/* others: how far the models that are done are from the truth. */
static void
middle_open(Middle *m, AgMem *mem, const AgOptionEntry *entries, int n_entries, double others)
{
	AgFit *fit = &m->a.fit;

	memset(m, 0, sizeof *m);
	m->setting =
		(Setting){.mem = mem, .n_rows = N_ROWS, .entries = entries, .n_entries = n_entries};
	again(&m->a, &m->setting);
	ag_arena_init(&fit->arena, mem);
	fit->host = &m->a.ctx;
	fit->ctx = m->a.ctx;
	fit->ctx.progress = note_fold;
	fit->ctx.host = m;
	fit->ctx.deadline_ns = ag_clock_ns() + (int64_t) (SECONDS * 1e9);
	fit->job = &m->job;
	m->job.label_name = "y";
	fit->table = m->a.table;
	fit->pipeline = m->a.pipeline;
	fit->rows.ctx = &fit->ctx;
	fit->rows.pipeline = fit->pipeline;
	fit->rows.table = fit->table;
	fit->metric = fit->stop_metric = AG_METRIC_RMSE;
	fit->level = fit->n_levels = 1;
	fit->models = m->models;
	fit->n_models = fit->at_model = N_OTHERS;
	for (int i = 0; i < N_OTHERS; i++)
	{
		m->models[i].proba = m->proba[i];
		m->models[i].n_covered = fit->validation.n_scored;
		m->models[i].fit_seconds = 1000.0;
		for (int64_t r = 0; r < fit->validation.n_scored; r++)
			m->proba[i][r] = fit->validation.target[r] + others * (noise(20 + i, (int) r) - 0.5);
	}
	m->a.options->models_from_set = true;
	m->a.options->n_models = N_OTHERS + 9;
	ag_fit_model_begin(fit, &m->a.options->models[0], &m->models[N_OTHERS]);
	AG_REQUIRE(fit->validation.n_scored == N_ROWS);
}

static AgStatus
middle_fit(Middle *m, double share)
{
	AgFit *fit = &m->a.fit;
	AgContext ctx = fit->ctx;
	int64_t began = ag_clock_ns(), deadline = began + (int64_t) (share * 1e9);
	AgStatus status;

	ctx.deadline_ns = deadline;
	status = ag_fit_model(fit, &ctx, false, &m->models[N_OTHERS]);
	m->seconds = ag_fit_seconds(began);
	AG_CHECK_EQ(ctx.deadline_ns, deadline); /* more time is lent, not given */
	return status;
}

static void
middle_close(Middle *m)
{
	AgMem *mem = m->a.ctx.mem;

	ag_fit_model_free(&m->a.fit, &m->models[N_OTHERS]);
	ag_fit_rows_free(&m->a.fit.rows);
	ag_arena_free(&m->a.fit.arena);
	again_free(&m->a);
	AG_CHECK_EQ(mem->used_bytes, 0);
}

static void
is_finished(AgMem *mem)
{
	static Middle m;

	middle_open(&m, mem, quick_bag, N_QUICK_BAG, 8.0);
	AG_CHECK_EQ(ag_fit_probe_folds(&m.a.fit, 1), FIRST_FOLDS);
	AG_CHECK_EQ(middle_fit(&m, SECONDS), AG_OK);
	AG_CHECK_EQ(m.models[N_OTHERS].n_children, N_FOLDS);
	AG_CHECK_EQ(m.models[N_OTHERS].n_covered, N_ROWS);
	AG_CHECK(!m.models[N_OTHERS].is_dropped);
	AG_CHECK_EQ(m.last_fold, N_FOLDS);
	middle_close(&m);
}

/* others: how far those that are done are from the truth; with 0 nothing can add to them. */
static void
is_given_up(AgMem *mem, double others)
{
	static Middle m;

	middle_open(&m, mem, quick_bag, N_QUICK_BAG, others);
	AG_CHECK_EQ(middle_fit(&m, SECONDS), AG_ERR_TIME);
	AG_CHECK(m.models[N_OTHERS].is_dropped);
	AG_CHECK_EQ(m.models[N_OTHERS].n_children, 0);
	AG_CHECK_EQ(m.last_fold, FIRST_FOLDS);
	middle_close(&m);
}

/* A bag whose first folds fail can't become whole: it ends with their fault, not as one that adds nothing, and no other fold is begun. */
static void
first_folds_fail(AgMem *mem)
{
	static Middle m;
	int64_t n;

	middle_open(&m, mem, quick_bag, N_QUICK_BAG, 1e-6);
	mem->n_allocations = 0;
	AG_CHECK_EQ(middle_fit(&m, SECONDS), AG_ERR_TIME);
	n = mem->n_allocations; /* up to the verdict */
	middle_close(&m);
	for (int64_t after = 0; after < n; after += 1 + n / 150)
	{
		AgStatus status;

		middle_open(&m, mem, quick_bag, N_QUICK_BAG, 1e-6);
		mem->fail_after = after;
		status = middle_fit(&m, SECONDS);
		mem->fail_after = -1;
		AG_CHECK(status == AG_ERR_MEMORY ||
				 (status == AG_ERR_TIME && m.models[N_OTHERS].is_dropped));
		AG_CHECK(status != AG_ERR_MEMORY || !m.models[N_OTHERS].is_dropped);
		AG_CHECK(m.last_fold <= FIRST_FOLDS);
		AG_CHECK_EQ(m.models[N_OTHERS].n_children, 0);
		middle_close(&m);
	}
	/* without any time, likewise */
	middle_open(&m, mem, quick_bag, N_QUICK_BAG, 1e-6);
	AG_CHECK_EQ(middle_fit(&m, -1.0), AG_ERR_TIME);
	AG_CHECK(!m.models[N_OTHERS].is_dropped);
	AG_CHECK_EQ(m.last_fold, 0);
	middle_close(&m);
}

/* What is worth finishing has up to a half of the time left, far beyond its share; and a second set is measured by the share all the same. */
static void
is_extended(AgMem *mem)
{
	static Middle m;

	middle_open(&m, mem, endless, N_ENDLESS, 8.0);
	AG_CHECK_EQ(middle_fit(&m, SHARE), AG_OK);
	AG_CHECK(m.seconds > (SECONDS - SHARE) * 0.4);
	AG_CHECK_EQ(m.models[N_OTHERS].n_children, N_FOLDS);
	AG_CHECK_STR(m.models[N_OTHERS].children[N_FOLDS - 1].ended_by, "time");
	middle_close(&m);
}

/* Unless the user has limited it. */
static void
keeps_its_limit(AgMem *mem)
{
	AgOptionEntry entries[N_ENDLESS + 2];
	bool is_kept = false;

	memcpy(entries, endless, sizeof endless);
	entries[N_ENDLESS] = (AgOptionEntry){"/ag_args_fit", AG_JSON_OBJECT, "1"};
	entries[N_ENDLESS + 1] = (AgOptionEntry){"/ag_args_fit/max_time_limit", AG_JSON_NUMBER, "60"};
	for (int i = 0; i < TRIES && !is_kept; i++)
	{
		static Middle m;

		middle_open(&m, mem, entries, N_ENDLESS + 2, 8.0);
		AG_CHECK_EQ(middle_fit(&m, SHARE), AG_OK);
		is_kept = m.seconds < (SECONDS - SHARE) * 0.4;
		middle_close(&m);
	}
	AG_CHECK(is_kept);
}

int
main(void)
{
	AgMem mem;

	ag_mem_init(&mem, INT64_MAX);
	is_finished(&mem);
	is_given_up(&mem, 1e-6);
	is_given_up(&mem, 0.0);
	first_folds_fail(&mem);
	is_extended(&mem);
	keeps_its_limit(&mem);
	return ag_unit_done("probed_bag");
}
