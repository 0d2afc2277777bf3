/* resources.c - every place where GPUs can be asked for, on machines with none, one, two and four of them. */
#include "unit/unit.h"

#include "engine/search/fit_state.h"

#define MAX_ENTRIES 64
#define N_MACHINES 4
#define ALL_FAMILIES ((UINT32_C(1) << AG_FAMILY_LAST) - 1)

static const int machines[N_MACHINES] = {0, 1, 2, 4};

/* "path type text" a line, parents first; type one of n b 0 s { [. */
static AgStatus
parse(AgMem *mem, const char *lines, AgFitOptions **options, AgError *err)
{
	static const char types[] = "nb0s{[";
	AgOptionEntry entries[MAX_ENTRIES];
	char *copy = strdup(lines), *line, *save = NULL;
	int n = 0;
	AgStatus status;

	for (line = strtok_r(copy, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save))
	{
		char *type = strchr(line, ' ');

		AG_REQUIRE(type != NULL && n < MAX_ENTRIES);
		*type++ = '\0';
		entries[n].path = line;
		entries[n].type = (AgJson) (strchr(types, *type) - types);
		entries[n].text = type[1] == ' ' ? type + 2 : "";
		n++;
	}
	ag_error_init(err);
	status = ag_options_parse(mem, entries, n, options, err);
	free(copy);
	return status;
}

/* A machine with so many GPUs of 80 GB, all of which the module trains trees on. */
static void
machine_make(int n_gpus, AgGpuState *state)
{
	memset(state, 0, sizeof *state);
	state->families = ALL_FAMILIES;
	for (int i = 0; i < n_gpus; i++)
	{
		AgGpuFound *gpu = &state->gpus[state->n_usable++];

		gpu->device = i;
		snprintf(gpu->name, sizeof gpu->name, "Fake %d", i);
		gpu->total_bytes = gpu->free_bytes = INT64_C(80) << 30;
	}
	if (n_gpus == 0)
	{
		snprintf(state->reason, sizeof state->reason, "no driver");
		snprintf(state->cure, sizeof state->cure, "Install one.");
	}
}

/* A lease that gives what is free, as the server's does: chunks, then the rest. free_shares: of each GPU. */
static int
lease_make(const AgGpuState *state, const AgGpuNeed *need, int limit, int *free_shares,
		   AgGpuGrant *grants)
{
	int n_devices = limit >= 0 && limit < state->n_usable ? limit : state->n_usable;
	int got = 0, n = 0, shares[AG_MAX_GPUS] = {0};

	for (int i = 0; i < n_devices && need->chunk > 0; i++)
		while (need->most - got >= need->chunk && free_shares[i] >= need->chunk)
		{
			free_shares[i] -= need->chunk;
			shares[i] += need->chunk;
			got += need->chunk;
		}
	for (int i = 0; i < n_devices && need->chunk > 0; i++)
	{
		int rest = need->most % need->chunk;

		if (rest == 0 || got != need->most - rest || free_shares[i] < rest)
			continue;
		free_shares[i] -= rest;
		shares[i] += rest;
		got += rest;
	}
	for (int i = 0; i < n_devices; i++)
		if (shares[i] > 0)
		{
			grants[n].device = state->gpus[i].device;
			grants[n].shares = shares[i];
			snprintf(grants[n++].name, sizeof grants[0].name, "%s", state->gpus[i].name);
		}
	return n;
}

/*
 * What becomes of the first model, a bag of 8 folds on 8 CPUs, all of which may run at a time: "cpu", or "2 x 0.5 on 0 1" (so many trainings
 * at a time, each with so much of a GPU, on which GPUs); behind it " !" and the shortage, if there is one.
 */
static void
outcome(AgMem *mem, const char *lines, int n_gpus, int limit, int taken, char *text, size_t size)
{
	AgGpuGrant grants[AG_MAX_GPUS];
	int free_shares[AG_MAX_GPUS], n_grants;
	AgFitOptions *options;
	AgModelPlan plan;
	AgGpuShortage shortage;
	AgGpuState state;
	AgGpuNeed need;
	AgError err;
	size_t at;

	if (parse(mem, lines, &options, &err) != AG_OK)
	{
		snprintf(text, size, "refused: %s", err.message);
		return;
	}
	machine_make(n_gpus, &state);
	for (int i = 0; i < AG_MAX_GPUS; i++)
		free_shares[i] = AG_GPU_SHARES - (i == 0 ? taken : 0);
	ag_gpu_need(options, &state, limit, 8, 8, &need);
	n_grants = lease_make(&state, &need, limit, free_shares, grants);
	ag_model_plan(options, &options->models[0], 0, &state, grants, n_grants, 8, 8, 8, &plan);
	AG_CHECK(plan.n_parallel * plan.cpus_per_job <= 8 && plan.n_parallel >= 1);
	if (plan.gpu_shares == 0)
	{
		at = (size_t) snprintf(text, size, "cpu");
		AG_CHECK(ag_plan_gpu(&plan, grants, n_grants, 0, NULL) == NULL);
	}
	else
	{
		int used[AG_MAX_GPUS] = {0};

		at = (size_t) snprintf(text, size, "%d x %.4g on", plan.n_parallel,
							   (double) plan.gpu_shares / AG_GPU_SHARES);
		for (int job = 0; job < plan.n_parallel; job++)
			used[ag_plan_gpu(&plan, grants, n_grants, job, NULL)->device] += plan.gpu_shares;
		for (int i = 0; i < n_grants; i++)
		{
			AG_CHECK(used[grants[i].device] <= grants[i].shares);
			if (used[grants[i].device] > 0)
				at += (size_t) snprintf(text + at, size - at, " %d", grants[i].device);
		}
	}
	if (ag_gpu_shortage(options, &state, limit, &shortage) ||
		ag_gpu_taken(options, &need, grants, n_grants, &shortage))
	{
		AG_CHECK(shortage.cure[0] != '\0' && shortage.cure[strlen(shortage.cure) - 1] == '.');
		AG_CHECK(shortage.is_partial == (plan.gpu_shares > 0));
		snprintf(text + at, size - at, " !%s", shortage.reason);
	}
	ag_options_free(options);
}

#define GBM "/hyperparameters { 1\n/hyperparameters/GBM { 1\n"
#define TOTAL(n) "/num_gpus 0 " n "\n"
#define EACH(n) "/ag_args_fit { 1\n/ag_args_fit/num_gpus 0 " n "\n"
#define COMMON(n)                                                                                  \
	"/hyperparameters { 2\n/hyperparameters/AG_ARGS_FIT { 1\n/hyperparameters/AG_ARGS_FIT/"        \
	"num_gpus 0 " n "\n/hyperparameters/GBM { 0\n"
#define OWN(n)                                                                                     \
	GBM "/hyperparameters/GBM/ag_args_fit { 1\n/hyperparameters/GBM/ag_args_fit/num_gpus 0 " n "\n"
#define BAG(n)                                                                                     \
	"/ag_args_ensemble { 1\n/ag_args_ensemble/ag_args_fit { 1\n/ag_args_ensemble/ag_args_fit/"     \
	"num_gpus 0 " n "\n"
#define OWN_BAG(n)                                                                                 \
	GBM "/hyperparameters/GBM/ag_args_ensemble { 1\n/hyperparameters/GBM/ag_args_ensemble/"        \
		"ag_args_fit { 1\n/hyperparameters/GBM/ag_args_ensemble/ag_args_fit/num_gpus 0 " n "\n"

#define NONE "cpu !no driver"

static const struct
{
	const char *lines;
	const char *expected[N_MACHINES]; /* with 0, 1, 2 and 4 GPUs */
} cases[] = {
	{"", {"cpu", "cpu", "cpu", "cpu"}},
	/* the whole fit */
	{TOTAL("1"), {NONE, "2 x 0.5 on 0", "2 x 0.5 on 0", "2 x 0.5 on 0"}},
	{TOTAL("2"),
	 {NONE, "2 x 0.5 on 0 !2 GPUs are asked for, and 1 can be used", "4 x 0.5 on 0 1",
	  "4 x 0.5 on 0 1"}},
	{TOTAL("0.5"), {NONE, "1 x 0.5 on 0", "1 x 0.5 on 0", "1 x 0.5 on 0"}},
	{TOTAL("1.5"),
	 {NONE, "2 x 0.5 on 0 !1.5 GPUs are asked for, and 1 can be used", "3 x 0.5 on 0 1",
	  "3 x 0.5 on 0 1"}},
	{TOTAL("0"), {"cpu", "cpu", "cpu", "cpu"}},
	{"/num_gpus s auto", {"cpu", "2 x 0.5 on 0", "4 x 0.5 on 0 1", "8 x 0.5 on 0 1 2 3"}},
	{"/num_gpus n", {"cpu", "cpu", "cpu", "cpu"}},
	/* each training, of all models */
	{EACH("1"), {NONE, "1 x 1 on 0", "2 x 1 on 0 1", "4 x 1 on 0 1 2 3"}},
	{EACH("0.5"), {NONE, "2 x 0.5 on 0", "4 x 0.5 on 0 1", "8 x 0.5 on 0 1 2 3"}},
	{EACH("0.25"), {NONE, "4 x 0.25 on 0", "8 x 0.25 on 0 1", "8 x 0.25 on 0 1"}},
	{EACH("2"),
	 {NONE,
	  "1 x 1 on 0 !model \"GBM\" asks for 2 GPUs for each training, and a training runs on one",
	  "2 x 1 on 0 1 !model \"GBM\" asks for 2 GPUs for each training, and a training runs on one",
	  "4 x 1 on 0 1 2 3 !model \"GBM\" asks for 2 GPUs for each training, and a training runs on "
	  "one"}},
	{EACH("0"), {"cpu", "cpu", "cpu", "cpu"}},
	{"/ag_args_fit { 1\n/ag_args_fit/num_gpus s auto",
	 {"cpu", "2 x 0.5 on 0", "4 x 0.5 on 0 1", "8 x 0.5 on 0 1 2 3"}},
	/* the same among the hyperparameters, and of one model */
	{COMMON("1"), {NONE, "1 x 1 on 0", "2 x 1 on 0 1", "4 x 1 on 0 1 2 3"}},
	{OWN("1"), {NONE, "1 x 1 on 0", "2 x 1 on 0 1", "4 x 1 on 0 1 2 3"}},
	{GBM "/hyperparameters/GBM/ag.num_gpus 0 0.5",
	 {NONE, "2 x 0.5 on 0", "4 x 0.5 on 0 1", "8 x 0.5 on 0 1 2 3"}},
	/* each bag */
	{BAG("1"), {NONE, "2 x 0.5 on 0", "2 x 0.5 on 0", "2 x 0.5 on 0"}},
	{BAG("2"),
	 {NONE, "2 x 0.5 on 0 !model \"GBM\" asks for 2 GPUs for its bag, and 1 can be used",
	  "4 x 0.5 on 0 1", "4 x 0.5 on 0 1"}},
	{BAG("0"), {"cpu", "cpu", "cpu", "cpu"}},
	{OWN_BAG("0.5"), {NONE, "1 x 0.5 on 0", "1 x 0.5 on 0", "1 x 0.5 on 0"}},
	/* several of them */
	{TOTAL("2") EACH("0.5"),
	 {NONE, "2 x 0.5 on 0 !2 GPUs are asked for, and 1 can be used", "4 x 0.5 on 0 1",
	  "4 x 0.5 on 0 1"}},
	{TOTAL("2") BAG("1") EACH("0.25"),
	 {NONE, "4 x 0.25 on 0 !2 GPUs are asked for, and 1 can be used", "4 x 0.25 on 0",
	  "4 x 0.25 on 0"}},
	{TOTAL("1") EACH("2"),
	 {"refused: model \"GBM\" asks for 2 GPUs, but the whole fit has 1",
	  "refused: model \"GBM\" asks for 2 GPUs, but the whole fit has 1",
	  "refused: model \"GBM\" asks for 2 GPUs, but the whole fit has 1",
	  "refused: model \"GBM\" asks for 2 GPUs, but the whole fit has 1"}},
	{TOTAL("1") BAG("2"),
	 {"refused: model \"GBM\" asks for 2 GPUs for its bag, but the whole fit has 1",
	  "refused: model \"GBM\" asks for 2 GPUs for its bag, but the whole fit has 1",
	  "refused: model \"GBM\" asks for 2 GPUs for its bag, but the whole fit has 1",
	  "refused: model \"GBM\" asks for 2 GPUs for its bag, but the whole fit has 1"}},
	{BAG("0.5") EACH("1"),
	 {"refused: model \"GBM\" asks for 1 GPU for each training, but its bag has 0.5",
	  "refused: model \"GBM\" asks for 1 GPU for each training, but its bag has 0.5",
	  "refused: model \"GBM\" asks for 1 GPU for each training, but its bag has 0.5",
	  "refused: model \"GBM\" asks for 1 GPU for each training, but its bag has 0.5"}},
	{TOTAL("0") "/ag_args_fit { 1\n/ag_args_fit/num_gpus s auto", {"cpu", "cpu", "cpu", "cpu"}},
	{EACH("1") OWN("0"), {"cpu", "cpu", "cpu", "cpu"}},
	{COMMON("0") EACH("1"), {"cpu", "cpu", "cpu", "cpu"}},
	/* a family without trees */
	{"/hyperparameters { 1\n/hyperparameters/LR { 0\n" EACH("1"),
	 {NONE, "1 x 1 on 0", "2 x 1 on 0 1", "4 x 1 on 0 1 2 3"}},
};

static void
matrix(AgMem *mem)
{
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		for (int m = 0; m < N_MACHINES; m++)
		{
			char text[700];

			outcome(mem, cases[i].lines, machines[m], -1, 0, text, sizeof text);
			if (!AG_CHECK_STR(text, cases[i].expected[m]))
				fprintf(stderr, "    %d GPUs, %s\n", machines[m], cases[i].lines);
		}
}

/* One placement on a machine of two GPUs, under a setting, or with a part of the first GPU taken by another fit. */
static void
shared(AgMem *mem, const char *lines, int limit, int taken, const char *expected)
{
	char text[700];

	outcome(mem, lines, 2, limit, taken, text, sizeof text);
	if (!AG_CHECK_STR(text, expected))
		fprintf(stderr, "    limit %d, %d taken, %s\n", limit, taken, lines);
}

static void
limits(AgMem *mem)
{
	shared(mem, TOTAL("1"), 0, 0, "cpu !the setting ag_pg.num_gpus is 0");
	shared(mem, "/num_gpus s auto", 0, 0, "cpu");
	shared(mem, TOTAL("2"), 1, 0,
		   "2 x 0.5 on 0 !2 GPUs are asked for, and 1 can be used (ag_pg.num_gpus)");
	shared(mem, EACH("1"), 1, 0, "1 x 1 on 0");
	shared(mem, EACH("1"), 7, 0, "2 x 1 on 0 1");
	/* other fits */
	shared(mem, EACH("1"), -1, 30, "1 x 1 on 1");
	shared(mem, EACH("1"), 1, 30, "cpu !other fits hold the GPUs");
	shared(mem, EACH("0.5"), 1, 30, "1 x 0.5 on 0");
	shared(mem, TOTAL("2"), -1, 30, "2 x 0.5 on 1 !other fits hold all but 1 of the 2 asked for");
	shared(mem, "/num_gpus s auto", 1, 30, "cpu");
}

/* Several families in one fit, and modules that lack some. */
static void
families(AgMem *mem)
{
	AgFitOptions *o;
	AgGpuShortage shortage;
	AgGpuState state;
	AgGpuNeed need;
	AgError err;

	machine_make(1, &state);
	AG_REQUIRE(parse(mem,
					 "/hyperparameters { 3\n/hyperparameters/GBM { 0\n/hyperparameters/XGB { 0\n"
					 "/hyperparameters/LR { 0\n" EACH("1"),
					 &o, &err) == AG_OK);
	AG_CHECK(ag_fit_asks_gpu(o));
	AG_CHECK(!ag_gpu_shortage(o, &state, -1, &shortage));
	state.families = UINT32_C(1) << AG_FAMILY_GBM;
	AG_CHECK(ag_gpu_shortage(o, &state, -1, &shortage) && shortage.is_partial);
	AG_CHECK_STR(shortage.reason, "the CUDA module has no code to train LR and XGB");
	ag_gpu_need(o, &state, -1, 1, 1, &need);
	AG_CHECK(need.chunk == 60 && need.least == 60 && need.most == 60);
	state.families = 0;
	AG_CHECK(ag_gpu_shortage(o, &state, -1, &shortage) && !shortage.is_partial);
	AG_CHECK_STR(shortage.reason, "the CUDA module has no code to train GBM, LR and XGB");
	ag_gpu_need(o, &state, -1, 1, 1, &need);
	AG_CHECK(need.chunk == 0 && need.most == 0);
	ag_options_free(o);

	AG_REQUIRE(parse(mem, "/hyperparameters { 1\n/hyperparameters/LR { 0\n" EACH("1"), &o, &err) ==
			   AG_OK);
	AG_CHECK(ag_fit_asks_gpu(o) && ag_model_asks_gpu(o, &o->models[0]));
	ag_options_free(o);
}

/* CPUs of a plan, and models that are spread over GPUs. */
static void
plans(AgMem *mem)
{
	static const AgGpuGrant grants[] = {{.device = 1, .shares = 60}, {.device = 3, .shares = 60}};
	AgFitOptions *o;
	AgGpuState state;
	AgModelPlan plan;
	AgError err;

	machine_make(4, &state);
	AG_REQUIRE(parse(mem, GBM EACH("0.5"), &o, &err) == AG_OK);
	/* the lines of SQL_API: a GPU, eight CPUs, eight folds */
	ag_model_plan(o, &o->models[0], 0, &state, grants, 1, 8, 8, 8, &plan);
	AG_CHECK(plan.n_parallel == 2 && plan.gpu_shares == 30 && plan.cpus_per_job == 4 &&
			 plan.num_cpus == 8);
	/* one after the other; on another GPU for each model */
	for (int number = 0; number < 4; number++)
	{
		ag_model_plan(o, &o->models[0], number, &state, grants, 2, 8, 8, 1, &plan);
		AG_CHECK(plan.n_parallel == 1 && plan.gpu_shares == 30 && plan.cpus_per_job == 8);
		for (int job = 0; job < 8; job++)
			AG_CHECK_EQ(ag_plan_gpu(&plan, grants, 2, job, NULL)->device, number % 2 == 0 ? 1 : 3);
	}
	/* no GPU has two trainings before all have one */
	ag_model_plan(o, &o->models[0], 0, &state, grants, 2, 3, 8, 8, &plan);
	AG_CHECK(plan.n_parallel == 3 && plan.cpus_per_job == 1);
	AG_CHECK_EQ(ag_plan_gpu(&plan, grants, 2, 0, NULL)->device, 1);
	AG_CHECK_EQ(ag_plan_gpu(&plan, grants, 2, 1, NULL)->device, 3);
	AG_CHECK_EQ(ag_plan_gpu(&plan, grants, 2, 2, NULL)->device, 1);
	AG_CHECK_EQ(ag_plan_gpu(&plan, grants, 2, 3, NULL)->device,
				1); /* the first one's place again */
	/* which of those on a GPU at the same time it is */
	ag_model_plan(o, &o->models[0], 0, &state, grants, 2, 8, 8, 4, &plan);
	AG_CHECK_EQ(plan.n_parallel, 4);
	for (int job = 0; job < 8; job++)
	{
		int place = -1;

		AG_CHECK_EQ(ag_plan_gpu(&plan, grants, 2, job, &place)->device, job % 2 == 0 ? 1 : 3);
		AG_CHECK_EQ(place, job % 4 / 2);
	}
	/* nothing granted */
	ag_model_plan(o, &o->models[0], 0, NULL, NULL, 0, 8, 8, 4, &plan);
	AG_CHECK(plan.gpu_shares == 0 && plan.n_parallel == 4 && plan.cpus_per_job == 2);
	ag_options_free(o);

	AG_REQUIRE(parse(mem, GBM "/ag_args_fit { 1\n/ag_args_fit/num_cpus 0 3", &o, &err) == AG_OK);
	ag_model_plan(o, &o->models[0], 0, NULL, NULL, 0, 8, 8, 8, &plan);
	AG_CHECK(plan.n_parallel == 2 && plan.cpus_per_job == 3 && plan.num_cpus == 6);
	ag_model_plan(o, &o->models[0], 0, NULL, NULL, 0, 2, 8, 8, &plan); /* fewer than asked for */
	AG_CHECK(plan.n_parallel == 1 && plan.cpus_per_job == 2 && plan.num_cpus == 2);
	ag_options_free(o);

	/* more GPUs or fractions than shares can say */
	AG_CHECK_EQ(ag_gpu_shares(1.0 / 3.0), 20);
	AG_CHECK_EQ(ag_gpu_shares(0.001), 1);
	AG_CHECK_EQ(ag_gpu_shares(0.0), 0);
	AG_CHECK_EQ(ag_gpu_shares(1024.0), AG_MAX_GPUS * AG_GPU_SHARES);
}

/* What the leaderboard shows: where trainings really ran, not where they were to. */
static void
devices(void)
{
	static const AgGpuGrant grants[] = {{.device = 1, .shares = 60}, {.device = 3, .shares = 60}};
	AgTrained trained[4];
	AgFitModel model;
	char text[AG_DEVICES_TEXT];

	memset(trained, 0, sizeof trained);
	memset(&model, 0, sizeof model);
	ag_trained_devices(trained, 4, text, sizeof text);
	AG_CHECK_STR(text, "cpu");
	ag_trained_devices(trained, 0, text, sizeof text);
	AG_CHECK_STR(text, "cpu");
	model.children = trained;
	model.n_children = 4;
	model.plan.n_parallel = 2;
	model.plan.gpu_shares = 30;
	AG_CHECK(ag_fit_model_gpus(&model) == 0.0);
	trained[1].gpu = &grants[0];
	ag_trained_devices(&trained[1], 1, text, sizeof text);
	AG_CHECK_STR(text, "cuda:1");
	AG_CHECK(ag_fit_model_gpus(&model) == 0.5);
	trained[2].gpu = &grants[1];
	trained[3].gpu = &grants[1];
	ag_trained_devices(trained, 4, text, sizeof text);
	AG_CHECK_STR(text, "cpu, cuda:1, cuda:3");
	trained[0].gpu = &grants[0];
	ag_trained_devices(trained, 4, text, sizeof text);
	AG_CHECK_STR(text, "cuda:1, cuda:3");
	AG_CHECK(ag_fit_model_gpus(&model) == 1.0); /* two at a time */
}

int
main(void)
{
	AgMem mem;

	ag_mem_init(&mem, INT64_MAX);
	matrix(&mem);
	limits(&mem);
	families(&mem);
	plans(&mem);
	devices();
	AG_CHECK_EQ(mem.used_bytes, 0);
	return ag_unit_done("resources");
}
