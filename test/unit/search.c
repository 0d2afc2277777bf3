/* search.c - spaces, draws and proposals of a search over hyperparameters, and the options that ask for one. */
#include <math.h>

#include "unit/unit.h"

#include "engine/model/gbm.h"
#include "engine/model/linear.h"
#include "engine/search/search.h"

#define MAX_ENTRIES 64

static AgMem mem;
static AgError err;
static AgContext ctx;

/* "path type text" a line, as in options.c. */
static AgStatus
parse(const char *lines, AgFitOptions **options)
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
	ag_error_init(&err);
	status = ag_options_parse(&mem, entries, n, options, &err);
	free(copy);
	return status;
}

static AgFitOptions *
accepted(const char *lines)
{
	AgFitOptions *options;

	if (!AG_CHECK_EQ(parse(lines, &options), AG_OK))
	{
		fprintf(stderr, "    %s: %s\n", lines, err.message);
		exit(ag_unit_done("search"));
	}
	return options;
}

static void
refused(const char *lines, const char *message)
{
	AgFitOptions *options;

	AG_CHECK_EQ(parse(lines, &options), AG_ERR_OPTION);
	AG_CHECK_STR(err.message, message);
	ag_options_free(options);
}

#define SPACE "/hyperparameters { 1\n/hyperparameters/GBM { 3\n"
#define RATE                                                                                       \
	"/hyperparameters/GBM/learning_rate { 4\n/hyperparameters/GBM/learning_rate/space s real\n"    \
	"/hyperparameters/GBM/learning_rate/lower 0 0.01\n"                                            \
	"/hyperparameters/GBM/learning_rate/upper 0 0.3\n"                                             \
	"/hyperparameters/GBM/learning_rate/log b true\n"
#define LEAVES                                                                                     \
	"/hyperparameters/GBM/num_leaves { 3\n/hyperparameters/GBM/num_leaves/space s Int\n"           \
	"/hyperparameters/GBM/num_leaves/lower 0 4\n/hyperparameters/GBM/num_leaves/upper 0 9\n"
#define EXTRA                                                                                      \
	"/hyperparameters/GBM/extra_trees { 2\n/hyperparameters/GBM/extra_trees/space s categorical\n" \
	"/hyperparameters/GBM/extra_trees/choices [ 2\n"                                               \
	"/hyperparameters/GBM/extra_trees/choices/0 b true\n"                                          \
	"/hyperparameters/GBM/extra_trees/choices/1 b false\n"

/* Every trial within its bounds, the first at the defaults, all different, all values of small spaces met, again the same. */
static void
draws(void)
{
	AgFitOptions *o = accepted(
		"/num_trials 0 40\n/hyperparameter_tune_kwargs s random\n" SPACE RATE LEAVES EXTRA);
	AgFitOptions *again =
		accepted("/hyperparameter_tune_kwargs { 2\n"
				 "/hyperparameter_tune_kwargs/num_trials 0 40\n"
				 "/hyperparameter_tune_kwargs/searcher s random\n" SPACE RATE LEAVES EXTRA);
	AgFitOptions *other =
		accepted("/random_state 0 1\n/num_trials 0 40\n"
				 "/hyperparameter_tune_kwargs s random\n" SPACE RATE LEAVES EXTRA);
	char text[128];
	int leaves[16] = {0}, extra = 0, n_low = 0, n_other = 0;

	AG_REQUIRE(o->n_models == 40 && again->n_models == 40 && other->n_models == 40);
	for (int i = 0; i < 40; i++)
	{
		const AgBoostParams *p = o->models[i].params, *q = again->models[i].params,
							*r = other->models[i].params;
		char name[32];

		snprintf(name, sizeof name, "GBM/T%d", i + 1);
		AG_CHECK_STR(o->models[i].name, name);
		AG_CHECK(p->learning_rate >= 0.01 && p->learning_rate <= 0.3);
		AG_CHECK(p->num_leaves >= 4 && p->num_leaves <= 9);
		leaves[p->num_leaves]++;
		extra += p->extra_trees;
		n_low += p->learning_rate < 0.0548; /* the middle of the logarithms */
		AG_CHECK(p->learning_rate == q->learning_rate && p->num_leaves == q->num_leaves);
		n_other += p->learning_rate != r->learning_rate;
		for (int k = 0; k < i; k++)
			AG_CHECK(p->learning_rate !=
					 ((const AgBoostParams *) o->models[k].params)->learning_rate);
	}
	AG_CHECK(((const AgBoostParams *) o->models[0].params)->learning_rate == 0.05);
	AG_CHECK(((const AgBoostParams *) o->models[0].params)->extra_trees);
	AG_CHECK_STR(
		ag_search_text(o->models[0].search, o->models[0].search->points, text, sizeof text),
		"learning_rate 0.05, num_leaves 7, extra_trees true");
	AG_CHECK_STR(ag_search_text(o->models[0].search, o->models[0].search->points, text, 10),
				 "learning");
	for (int l = 4; l <= 9; l++)
		AG_CHECK(leaves[l] > 0);
	AG_CHECK(extra > 8 && extra < 32 && n_low > 8 && n_low < 32);
	AG_CHECK_EQ(n_other, 39);
	ag_options_free(o);
	ag_options_free(again);
	ag_options_free(other);
}

/* A space of few points gives no more trials than points, each once. */
static void
few_points(void)
{
	AgFitOptions *o = accepted("/num_trials 0 100\n" SPACE LEAVES EXTRA);
	int seen[16][2] = {{0}};

	AG_REQUIRE(o->n_models == 12);
	for (int i = 0; i < 12; i++)
	{
		const AgBoostParams *p = o->models[i].params;

		seen[p->num_leaves][p->extra_trees]++;
	}
	for (int l = 4; l <= 9; l++)
		AG_CHECK(seen[l][0] == 1 && seen[l][1] == 1);
	ag_options_free(o);
}

/* Lists and words as choices, and the default that the first trial has. */
static void
choices(void)
{
	AgFitOptions *o =
		accepted("/num_trials 0 9\n/hyperparameters { 1\n/hyperparameters/NN_TORCH { 1\n"
				 "/hyperparameters/NN_TORCH/layers { 3\n"
				 "/hyperparameters/NN_TORCH/layers/space s categorical\n"
				 "/hyperparameters/NN_TORCH/layers/choices [ 2\n"
				 "/hyperparameters/NN_TORCH/layers/choices/0 [ 2\n"
				 "/hyperparameters/NN_TORCH/layers/choices/0/0 0 64\n"
				 "/hyperparameters/NN_TORCH/layers/choices/0/1 0 32\n"
				 "/hyperparameters/NN_TORCH/layers/choices/1 [ 1\n"
				 "/hyperparameters/NN_TORCH/layers/choices/1/0 0 16\n");

	AG_CHECK_EQ(o->n_models, 2);
	ag_options_free(o);
	o = accepted(
		"/num_trials 0 9\n/hyperparameters { 1\n/hyperparameters/LR { 1\n"
		"/hyperparameters/LR/penalty { 3\n/hyperparameters/LR/penalty/space s Categorical\n"
		"/hyperparameters/LR/penalty/default s L1\n"
		"/hyperparameters/LR/penalty/choices [ 2\n"
		"/hyperparameters/LR/penalty/choices/0 s L2\n"
		"/hyperparameters/LR/penalty/choices/1 s L1\n");
	AG_REQUIRE(o->n_models == 2);
	AG_CHECK(((const AgLinearParams *) o->models[0].params)->penalty == AG_PENALTY_L1);
	AG_CHECK(((const AgLinearParams *) o->models[1].params)->penalty == AG_PENALTY_L2);
	ag_options_free(o);
}

/* Spaces that nobody gave: of every family, its first trial at the defaults; what is fixed stays fixed. */
static void
default_spaces(void)
{
	for (int f = 0; f < AG_FAMILY_LAST; f++)
	{
		const AgFamily *family = ag_family((AgFamilyId) f);
		char lines[200];
		AgFitOptions *o;
		void *plain = calloc(1, family->params_bytes);

		snprintf(lines, sizeof lines,
				 "/num_trials 0 30\n/hyperparameters { 1\n/hyperparameters/%s { 0\n", family->key);
		o = accepted(lines);
		AG_CHECK(o->n_models == 30 && o->models[0].search->n_dims >= 2);
		ag_params_default(family->specs, *family->n_specs, plain);
		if (f != AG_FAMILY_RF && f != AG_FAMILY_XT) /* whose default no number of the space is */
			AG_CHECK(memcmp(plain, o->models[0].params, family->params_bytes) == 0);
		free(plain);
		ag_options_free(o);
	}
	{
		AgFitOptions *o = accepted("/num_trials 0 5\n/hyperparameters { 1\n"
								   "/hyperparameters/GBM { 1\n/hyperparameters/GBM/eta 0 0.2\n");

		for (int i = 0; i < o->n_models; i++)
			AG_CHECK(((const AgBoostParams *) o->models[i].params)->learning_rate == 0.2);
		AG_CHECK_EQ(o->models[0].search->n_dims, 3);
		ag_options_free(o);
		/* of a set, the plain ones; everyone's first trial comes before a second one */
		o = accepted("/hyperparameter_tune_kwargs s auto\n/num_trials 0 2\n");
		AG_CHECK_EQ(o->n_models, 20);
		AG_CHECK_STR(o->models[0].name, "GBM/T1");
		AG_CHECK_STR(o->models[2].name, "GBM_2");
		AG_CHECK_STR(o->models[5].name, "CAT/T1");
		AG_CHECK_EQ(((const AgBoostParams *) o->models[5].params)->max_ctr_complexity, 2);
		AG_CHECK_STR(o->models[12].name, "GBM/T2");
		ag_options_free(o);
	}
}

/* The best of n trials on a smooth function with its top off the middle. */
static double
best_of(const char *searcher, int seed, int n)
{
	char lines[1000];
	AgFitOptions *o;
	double scores[64], best = -(double) INFINITY;

	snprintf(lines, sizeof lines,
			 "/random_state 0 %d\n/hyperparameter_tune_kwargs s %s\n/num_trials 0 %d\n"
			 "/hyperparameters { 1\n/hyperparameters/GBM { 0\n",
			 seed, searcher, n);
	o = accepted(lines);
	for (int t = 1; t <= n; t++)
	{
		AgSearch *search = o->models[t - 1].search;
		double *point = search->points + (t - 1) * search->n_dims, value = 0.0;

		if (search->is_bayes && t > ag_search_warmup(search))
			AG_REQUIRE(ag_search_propose(&ctx, search, t, scores, point) == AG_OK);
		for (int d = 0; d < search->n_dims; d++)
		{
			AG_CHECK(point[d] >= 0.0 && point[d] <= 1.0);
			value -= (point[d] - 0.2 - 0.15 * d) * (point[d] - 0.2 - 0.15 * d) * (3.0 - 0.5 * d);
		}
		AG_CHECK(!ag_search_is_taken(search, t - 1, point));
		scores[t - 1] = value;
		best = value > best ? value : best;
	}
	ag_options_free(o);
	return best;
}

static void
bayes_is_better(void)
{
	double bayes = 0.0, by_chance = 0.0;
	int n_better = 0;

	for (int seed = 0; seed < 12; seed++)
	{
		double b = best_of("bayes", seed, 20), r = best_of("random", seed, 20);

		bayes += b;
		by_chance += r;
		n_better += b > r;
	}
	AG_CHECK(bayes > by_chance / 3.0); /* both below 0: a third of the distance from the top */
	AG_CHECK(n_better >= 10);
	AG_CHECK(best_of("bayes", 3, 15) == best_of("bayes", 3, 15));
}

static void
errors(void)
{
	refused(SPACE RATE, "option \"hyperparameters.GBM.learning_rate\" is a search space, which "
						"needs \"hyperparameter_tune_kwargs\"");
	refused("/num_trials 0 0", "option \"num_trials\" takes an integer from 1 to 200, not 0");
	refused("/hyperparameter_tune_kwargs s hyperband",
			"option \"hyperparameter_tune_kwargs\" takes \"auto\", \"random\", \"bayes\" or an "
			"object of num_trials, searcher and scheduler, not \"hyperband\"");
	refused("/hyperparameter_tune_kwargs { 1\n/hyperparameter_tune_kwargs/scheduler s ray",
			"option \"hyperparameter_tune_kwargs.scheduler\" takes \"local\", not \"ray\"");
	refused("/hyperparameter_tune_kwargs { 1\n/hyperparameter_tune_kwargs/trials 0 3",
			"unrecognized option \"hyperparameter_tune_kwargs.trials\"");
	refused("/num_trials 0 3\n/hyperparameter_tune_kwargs { 1\n"
			"/hyperparameter_tune_kwargs/num_trials 0 3",
			"options \"num_trials\" and \"hyperparameter_tune_kwargs.num_trials\" exclude each "
			"other");
	refused("/num_trials 0 100", "the search asks for 804 models, and at most 200 can be fitted");
	refused("/num_trials 0 3\n/hyperparameters { 1\n/hyperparameters/LR { 2\n"
			"/hyperparameters/LR/C 0 1\n/hyperparameters/LR/penalty s L1",
			"option \"hyperparameter_tune_kwargs\" finds nothing to search for");
	refused("/num_trials 0 3\n/hyperparameters { 1\n/hyperparameters/LR { 1\n"
			"/hyperparameters/LR/C { 3\n/hyperparameters/LR/C/space s real\n"
			"/hyperparameters/LR/C/lower 0 2\n/hyperparameters/LR/C/upper 0 1",
			"option \"hyperparameters.LR.C\" takes a search space whose \"lower\" is less than its "
			"\"upper\", not an object");
	refused("/num_trials 0 3\n/hyperparameters { 1\n/hyperparameters/LR { 1\n"
			"/hyperparameters/LR/C { 3\n/hyperparameters/LR/C/space s real\n"
			"/hyperparameters/LR/C/lower 0 -2\n/hyperparameters/LR/C/upper 0 1",
			"parameter \"C\" of family LR takes a number from 1e-10 to 1e+10, not -2");
	refused("/num_trials 0 3\n/hyperparameters { 1\n/hyperparameters/LR { 1\n"
			"/hyperparameters/LR/C { 1\n/hyperparameters/LR/C/space s normal",
			"option \"hyperparameters.LR.C.space\" takes \"real\", \"int\", \"bool\" or "
			"\"categorical\", not \"normal\"");
	refused("/num_trials 0 3\n/hyperparameters { 1\n/hyperparameters/LR { 1\n"
			"/hyperparameters/LR/C { 2\n/hyperparameters/LR/C/space s real\n"
			"/hyperparameters/LR/C/step 0 3",
			"unrecognized option \"hyperparameters.LR.C.step\"");
	refused("/num_trials 0 3\n/hyperparameters { 1\n/hyperparameters/LR { 1\n"
			"/hyperparameters/LR/penalty { 2\n/hyperparameters/LR/penalty/space s categorical\n"
			"/hyperparameters/LR/penalty/choices [ 1\n/hyperparameters/LR/penalty/choices/0 s L3",
			"parameter \"penalty\" of family LR takes one of \"L2\", \"L1\", \"elasticnet\", not "
			"the text \"L3\"");
}

int
main(void)
{
	ag_mem_init(&mem, INT64_C(1) << 30);
	ag_error_init(&err);
	ctx = (AgContext){.mem = &mem, .deadline_ns = INT64_MAX, .error = &err};
	draws();
	few_points();
	choices();
	default_spaces();
	bayes_is_better();
	errors();
	AG_CHECK_EQ(mem.used_bytes, 0);
	return ag_unit_done("search");
}
