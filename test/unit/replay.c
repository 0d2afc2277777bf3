/* replay.c - a plan that tells of folds and weighings that time ended: as it is written, as it is read, and what is fitted by it. */
#include "unit/fit_again.h"

#include "engine/base/json_read.h"
#include "engine/search/json.h"

#define MOST_ENTRIES 600

/* The options of a fit, then the plan that it is to repeat. */
typedef struct Entries
{
	AgArena arena;
	AgOptionEntry list[MOST_ENTRIES];
	int n;
} Entries;

static const AgOptionEntry bags[] = {
	{"/hyperparameters", AG_JSON_OBJECT, "2"},
	{"/hyperparameters/GBM", AG_JSON_OBJECT, "2"},
	{"/hyperparameters/GBM/num_boost_round", AG_JSON_NUMBER, "25"},
	{"/hyperparameters/GBM/num_leaves", AG_JSON_NUMBER, "5"},
	{"/hyperparameters/LR", AG_JSON_OBJECT, "0"},
};
#define N_BAGS ((int) (sizeof bags / sizeof bags[0]))

static const char *
kept(Entries *e, const char *text)
{
	const char *copy = ag_arena_strndup(&e->arena, text, strlen(text));

	AG_REQUIRE(copy != NULL);
	return copy;
}

/* One value of JSON text, as the glue flattens jsonb. */
static void
flatten(Entries *e, AgJsonText *json, const char *path)
{
	char text[64], below[256], first = ag_json_peek(json);
	int at = e->n++, n = 0;
	const char *key;

	AG_REQUIRE(e->n <= MOST_ENTRIES);
	e->list[at].path = kept(e, path);
	if (first == '{' && ag_json_begin_object(json))
		while (ag_json_next_key(json, &key))
		{
			snprintf(below, sizeof below, "%s/%s", path, key);
			flatten(e, json, below);
			n++;
		}
	else if (first == '[' && ag_json_begin_array(json))
		while (ag_json_next_item(json))
		{
			snprintf(below, sizeof below, "%s/%d", path, n++);
			flatten(e, json, below);
		}
	snprintf(text, sizeof text, "%d", n);
	e->list[at].text = kept(e, text);
	e->list[at].type = first == '{' ? AG_JSON_OBJECT : AG_JSON_ARRAY;
	if (first == '{' || first == '[')
		return;
	e->list[at].type = first == '"'                   ? AG_JSON_STRING
					   : first == 'n'                 ? AG_JSON_NULL
					   : first == 't' || first == 'f' ? AG_JSON_BOOL
													  : AG_JSON_NUMBER;
	if (first == '"')
		e->list[at].text = ag_json_read_string(json);
	else if (first == 'n')
		ag_json_skip(json);
	else if (first == 't' || first == 'f')
		e->list[at].text = ag_json_read_number(json) != 0.0 ? "true" : "false";
	else
	{
		snprintf(text, sizeof text, "%.17g", ag_json_read_number(json));
		e->list[at].text = kept(e, text);
	}
}

static void
entries_free(Entries *e)
{
	ag_arena_free(&e->arena);
}

/* The options of all fits here, and the plan itself. */
static void
entries_of_replay(Entries *e, AgMem *mem, const char *replay)
{
	AgJsonText json;

	memset(e, 0, sizeof *e);
	ag_arena_init(&e->arena, mem);
	memcpy(e->list, bags, sizeof bags);
	e->n = N_BAGS;
	ag_json_text_init(&json, replay, strlen(replay), &e->arena);
	flatten(e, &json, "/replay");
	AG_REQUIRE(ag_json_text_done(&json));
}

/* Likewise of a whole plan as it is stored. */
static void
entries_of_plan(Entries *e, AgMem *mem, const char *plan)
{
	AgJsonText json;
	const char *key;

	memset(e, 0, sizeof *e);
	ag_arena_init(&e->arena, mem);
	memcpy(e->list, bags, sizeof bags);
	e->n = N_BAGS;
	ag_json_text_init(&json, plan, strlen(plan), &e->arena);
	AG_REQUIRE(ag_json_begin_object(&json));
	while (ag_json_next_key(&json, &key))
		if (strcmp(key, "replay") == 0)
			flatten(e, &json, "/replay");
		else
			ag_json_skip(&json);
	AG_REQUIRE(ag_json_text_done(&json) && e->n > N_BAGS);
}

static void
fit_by(AgMem *mem, const Entries *e, Result *r)
{
	Setting s = {.mem = mem, .n_rows = 240, .entries = e->list, .n_entries = e->n, .n_threads = 2};
	AgError err;

	memset(r, 0, sizeof *r);
	if (!AG_CHECK_EQ(run(&s, r, &err), AG_OK))
		fprintf(stderr, "    %s\n", err.message);
}

/* To the last bit. */
static void
are_same(const Result *a, const Result *b)
{
	AG_CHECK_STR(a->best, b->best);
	AG_REQUIRE(a->n_members == b->n_members && a->n_images == b->n_images);
	AG_CHECK(memcmp(a->scores, b->scores, sizeof a->scores) == 0);
	AG_CHECK(memcmp(a->weights, b->weights, sizeof a->weights) == 0);
	for (int i = 0; i < a->n_members; i++)
		AG_CHECK_STR(a->names[i], b->names[i]);
	for (int i = 0; i < a->n_images; i++)
		AG_CHECK(a->images[i].size == b->images[i].size &&
				 memcmp(a->images[i].data, b->images[i].data, a->images[i].size) == 0);
}

/* The part of a stored plan that begins with that key. */
static const char *
part(const Result *r, const char *key)
{
	const char *at = strstr(r->plan, key);

	AG_REQUIRE(at != NULL);
	return at;
}

/* Repeats the fit by what it stored of itself, and finds the same, told in the same words. */
static void
repeats(AgMem *mem, const Result *r)
{
	static Result again;
	Entries e;

	entries_of_plan(&e, mem, r->plan);
	fit_by(mem, &e, &again);
	are_same(r, &again);
	AG_CHECK(strncmp(part(r, "\"replay\""), part(&again, "\"replay\""),
					 (size_t) (part(r, "\"failures\"") - part(r, "\"replay\""))) == 0);
	result_free(&again);
	entries_free(&e);
}

/* --- folds */

#define BAG "{\"name\": \"GBM_BAG_L1\", \"full\": false, \"rounds\": [0, 0, 0]}"

/* Of two sets of three folds the second lacks one: no other child of that set is another one for it but by its rounds. */
static void
folds_are_left_out(AgMem *mem)
{
	static Result r;
	Entries e;
	int bag;

	entries_of_replay(
		&e, mem,
		"{\"num_bag_folds\": 3, \"num_bag_sets\": 2, \"num_stack_levels\": 0, \"models\": ["
		"{\"name\": \"GBM_BAG_L1\", \"full\": false, \"rounds\": [0, 0, 7, 0, 0], \"children\": "
		"[0, 1, 2, 3, 5]},"
		"{\"name\": \"LR_BAG_L1\", \"full\": false, \"rounds\": [0, 0, 0]}]}");
	fit_by(mem, &e, &r);
	bag = find_name(&r, "GBM_BAG_L1");
	AG_REQUIRE(bag >= 0);
	AG_CHECK_EQ(r.n_inputs[bag], 5);
	AG_CHECK(find_name(&r, "GBM_BAG_L1/S2F1") >= 0 && find_name(&r, "GBM_BAG_L1/S2F3") >= 0);
	AG_CHECK(find_name(&r, "GBM_BAG_L1/S2F2") < 0);
	AG_CHECK_EQ(r.n_inputs[find_name(&r, "LR_BAG_L1")], 3); /* its second set was never begun */
	AG_CHECK(isfinite(r.scores[bag])); /* each row has been predicted by one set at least */
	AG_CHECK(strstr(part(&r, "\"replay\""),
					"\"rounds\": [0, 0, 7, 0, 0], \"children\": [0, 1, 2, 3, 5]") != NULL);
	repeats(mem, &r);
	result_free(&r);
	entries_free(&e);
	AG_CHECK_EQ(mem->used_bytes, 0);
}

/* A bag that is the only one, and lacks folds of its first set: scored on the rows that it knows. */
static void
bag_is_torn(AgMem *mem)
{
	static Result r;
	Entries e;

	entries_of_replay(&e, mem,
					  "{\"num_bag_folds\": 4, \"num_bag_sets\": 1, \"num_stack_levels\": 0, "
					  "\"models\": [{\"name\": \"GBM_BAG_L1\", \"full\": false, \"rounds\": [0, "
					  "0], \"children\": [1, 3]}]}");
	fit_by(mem, &e, &r);
	AG_CHECK_STR(r.best, "GBM_BAG_L1");
	AG_CHECK_EQ(r.n_inputs[find_name(&r, "GBM_BAG_L1")], 2);
	AG_CHECK(find_name(&r, "GBM_BAG_L1/S1F2") >= 0 && find_name(&r, "GBM_BAG_L1/S1F4") >= 0);
	AG_CHECK(isfinite(r.score));
	AG_CHECK(find_name(&r, "LR_BAG_L1") < 0); /* the plan doesn't have it */
	repeats(mem, &r);
	result_free(&r);
	entries_free(&e);
	AG_CHECK_EQ(mem->used_bytes, 0);
}

/* A spare set behind more than one, which no fit writes: it isn't there, and nothing is read of where its folds would be. */
static void
spare_set_is_odd(AgMem *mem)
{
	static Result r;
	Entries e;

	entries_of_replay(&e, mem,
					  "{\"num_bag_folds\": 3, \"num_bag_sets\": 2, \"spare_set\": true, "
					  "\"num_stack_levels\": 0, \"models\": [{\"name\": \"GBM_BAG_L1\", \"full\": "
					  "false, \"rounds\": [0, 0, 0, 0, 0, 0], \"children\": [0, 1, 2, 6, 7, 8]}]}");
	fit_by(mem, &e, &r);
	AG_CHECK_EQ(r.n_inputs[find_name(&r, "GBM_BAG_L1")], 3);
	AG_CHECK(strstr(part(&r, "\"replay\""), "\"spare_set\"") == NULL);
	repeats(mem, &r);
	result_free(&r);
	entries_free(&e);
	AG_CHECK_EQ(mem->used_bytes, 0);
}

/* Rows were held out from all folds by a rule that a fit that is repeated doesn't ask. */
static void
rows_are_held_out_again(AgMem *mem)
{
	static Result r;
	AgFitOptions *none;
	AgError err;
	Entries e;

	entries_of_replay(&e, mem,
					  "{\"num_bag_folds\": 3, \"num_bag_sets\": 1, \"bag_holdout\": true, "
					  "\"num_stack_levels\": 0, \"models\": [" BAG "]}");
	fit_by(mem, &e, &r);
	AG_CHECK(strstr(r.log, "scored on those held out") != NULL);
	AG_CHECK(strstr(part(&r, "\"replay\""), "\"bag_holdout\": true") != NULL);
	repeats(mem, &r);
	result_free(&r);
	entries_free(&e);
	/* a plan that no fit writes: levels learn from scores of all rows */
	entries_of_replay(&e, mem,
					  "{\"num_bag_folds\": 3, \"num_bag_sets\": 1, \"bag_holdout\": true, "
					  "\"num_stack_levels\": 1, \"models\": [" BAG "]}");
	ag_error_init(&err);
	AG_CHECK_EQ(ag_options_parse(mem, e.list, e.n, &none, &err), AG_ERR_OPTION);
	entries_free(&e);
	AG_CHECK_EQ(mem->used_bytes, 0);
}

/* What no bag can be, "child_oof", isn't. */
static void
child_oof_is_odd(AgMem *mem)
{
	static Result r;
	Entries e;

	entries_of_replay(&e, mem,
					  "{\"num_bag_folds\": 0, \"num_bag_sets\": 1, \"num_stack_levels\": 0, "
					  "\"models\": [{\"name\": \"GBM\", \"full\": false, \"rounds\": [0], "
					  "\"child_oof\": true}]}");
	fit_by(mem, &e, &r);
	AG_CHECK_STR(r.best, "GBM");
	AG_CHECK(strstr(part(&r, "\"replay\""), "\"child_oof\"") == NULL);
	result_free(&r);
	entries_free(&e);
	AG_CHECK_EQ(mem->used_bytes, 0);
}

/* A second set is memory, also where a plan asks for it. */
static void
spare_set_is_reckoned_with(AgMem *mem)
{
	static const char *const plans[] = {
		"{\"num_bag_folds\": 3, \"num_bag_sets\": 1, \"num_stack_levels\": 0, \"models\": [" BAG
		"]}",
		"{\"num_bag_folds\": 3, \"num_bag_sets\": 1, \"spare_set\": true, \"num_stack_levels\": 0, "
		"\"models\": [" BAG "]}"};
	int64_t needs[2];

	for (int i = 0; i < 2; i++)
	{
		Again a;
		Entries e;
		Setting s = {.mem = mem, .n_rows = 240};

		entries_of_replay(&e, mem, plans[i]);
		s.entries = e.list;
		s.n_entries = e.n;
		again(&a, &s);
		needs[i] = ag_fit_memory(a.table, a.options, 1);
		again_free(&a);
		entries_free(&e);
	}
	AG_CHECK(needs[1] > needs[0]);
	AG_CHECK_EQ(mem->used_bytes, 0);
}

/* --- weighings */

/* Weights that time cut short are taken as they were, and so is what they were judged to be worth. */
static void
weights_are_kept(AgMem *mem)
{
	static Result r;
	Entries e;
	int ensemble;

	entries_of_replay(&e, mem,
					  "{\"num_bag_folds\": 3, \"num_bag_sets\": 1, \"num_stack_levels\": 0, "
					  "\"models\": [{\"name\": \"GBM_BAG_L1\", \"full\": false, \"rounds\": [0, 0, "
					  "0]}, {\"name\": \"LR_BAG_L1\", \"full\": false, \"rounds\": [0, 0, 0]}], "
					  "\"ensembles\": [{\"name\": \"WeightedEnsemble_L2\", \"value\": 0.0625, "
					  "\"single_value\": 0.125, \"weights\": [0.25, 0.75]}]}");
	fit_by(mem, &e, &r);
	ensemble = find_name(&r, "WeightedEnsemble_L2");
	AG_REQUIRE(ensemble >= 0);
	AG_CHECK(r.scores[ensemble] == -0.0625);
	AG_CHECK_EQ(r.n_inputs[ensemble], 2);
	AG_CHECK(r.weights[ensemble][0] == 0.25 && r.weights[ensemble][1] == 0.75);
	repeats(mem, &r);
	result_free(&r);
	entries_free(&e);
	AG_CHECK_EQ(mem->used_bytes, 0);
}

#define N_ROWS 300
#define N_MODELS 2

/* A fit whose models are done and are to be weighed. */
typedef struct Weighing
{
	AgFit fit;
	AgError err;
	AgContext host;
	AgFitModel models[N_MODELS];
	AgLabel label;
	AgFitJob job;
	AgPipeline pipeline;
	AgTrained children[N_MODELS];
	int child_at;
	double target[N_ROWS], proba[N_MODELS][N_ROWS];
	uint32_t rows[N_ROWS];
	uint8_t fold_of[N_ROWS];
} Weighing;

static void
weighing_make(Weighing *w, AgMem *mem, AgFitOptions *options, int64_t deadline_ns)
{
	AgFit *fit = &w->fit;

	memset(w, 0, sizeof *w);
	ag_error_init(&w->err);
	ag_arena_init(&fit->arena, mem);
	w->label.problem = AG_PROBLEM_REGRESSION;
	w->job.time_zone = "UTC";
	w->host.deadline_ns = deadline_ns;
	fit->host = &w->host;
	fit->ctx.mem = mem;
	fit->ctx.error = &w->err;
	fit->ctx.deadline_ns = deadline_ns;
	fit->options = options;
	fit->job = &w->job;
	fit->label = &w->label;
	fit->pipeline = &w->pipeline;
	fit->metric = AG_METRIC_RMSE;
	fit->level = fit->n_levels = 1;
	fit->models = w->models;
	fit->n_models = N_MODELS;
	fit->n_rows = N_ROWS;
	for (int i = 0; i < N_ROWS; i++)
	{
		w->target[i] = noise(1, i);
		w->rows[i] = (uint32_t) i;
		w->fold_of[i] = (uint8_t) (i % 5);
		for (int m = 0; m < N_MODELS; m++)
			w->proba[m][i] = w->target[i] + (m + 1) * 0.3 * (noise(m + 2, i) - 0.5);
	}
	for (int m = 0; m < N_MODELS; m++)
	{
		snprintf(w->models[m].name, sizeof w->models[m].name, "M%d", m);
		w->models[m].config = &options->models[0];
		w->models[m].level = 1;
		w->models[m].proba = w->proba[m];
		w->models[m].n_covered = N_ROWS;
		w->models[m].value = 0.1 * (m + 1);
		w->models[m].n_children = 1;
		w->models[m].children = &w->children[m];
		w->models[m].child_at = &w->child_at;
		w->children[m].rounds_run = 40;
	}
	fit->validation.n_folds = 5;
	fit->validation.n_sets = 1;
	fit->validation.fold_of = w->fold_of;
	fit->validation.scored_rows = w->rows;
	fit->validation.n_scored = N_ROWS;
	fit->validation.target = w->target;
	AG_CHECK_EQ(ag_fit_ensemble(fit), AG_OK);
	AG_CHECK_EQ(fit->n_ensembles, 1);
}

static char *
plan_of(Weighing *w)
{
	AgWriter out;
	char *text;

	ag_writer_init(&out, w->fit.ctx.mem);
	ag_fit_replay_write(&w->fit, &out);
	text = ag_json_take(&out, &w->fit.arena);
	AG_REQUIRE(text != NULL);
	return text;
}

static AgFitOptions *
options_of(const Entries *e, AgMem *mem)
{
	AgFitOptions *options;
	AgError err;

	ag_error_init(&err);
	if (!AG_CHECK_EQ(ag_options_parse(mem, e->list, e->n, &options, &err), AG_OK))
	{
		fprintf(stderr, "    %s\n", err.message);
		exit(1);
	}
	return options;
}

/* With no time left to choose, what there is of weights goes into the plan; with time, nothing does. */
static void
cut_is_told(AgMem *mem)
{
	static Weighing whole, cut, again;
	Entries plain = {.n = N_BAGS}, e;
	AgFitOptions *options, *replayed;
	const AgFitEnsemble *was, *is;

	memcpy(plain.list, bags, sizeof bags);
	options = options_of(&plain, mem);
	weighing_make(&whole, mem, options, INT64_MAX);
	AG_CHECK(!whole.fit.ensembles[0].is_cut);
	AG_CHECK(isfinite(whole.fit.ensembles[0].single_value));
	AG_CHECK(strstr(plan_of(&whole), "\"ensembles\": []") != NULL);
	weighing_make(&cut, mem, options, ag_clock_ns() - 1);
	was = &cut.fit.ensembles[0];
	AG_CHECK(was->is_cut);
	AG_CHECK(isnan(was->single_value)); /* scores of so little choosing aren't compared */
	entries_of_replay(&e, mem, plan_of(&cut));
	replayed = options_of(&e, mem);
	AG_REQUIRE(ag_replay_ensemble(replayed, "WeightedEnsemble_L2") != NULL);
	AG_CHECK(ag_replay_ensemble(replayed, "WeightedEnsemble_L3") == NULL);
	weighing_make(&again, mem, replayed, INT64_MAX);
	is = &again.fit.ensembles[0];
	AG_CHECK(memcmp(was->weights, is->weights, N_MODELS * sizeof(double)) == 0);
	AG_CHECK(memcmp(&was->value, &is->value, sizeof(double)) == 0 ||
			 (isnan(was->value) && isnan(is->value)));
	AG_CHECK(memcmp(&was->single_value, &is->single_value, sizeof(double)) == 0 ||
			 (isnan(was->single_value) && isnan(is->single_value)));
	AG_CHECK_STR(plan_of(&again), plan_of(&cut)); /* and the next one knows it, too */
	ag_options_free(replayed);
	ag_options_free(options);
	entries_free(&e);
	ag_arena_free(&whole.fit.arena);
	ag_arena_free(&cut.fit.arena);
	ag_arena_free(&again.fit.arena);
	AG_CHECK_EQ(mem->used_bytes, 0);
}

/* --- what can't be told */

/* A first tree that was left half grown, and more cuts than there is room for. */
static void
refuses(AgMem *mem)
{
	static Weighing w;
	Entries plain = {.n = N_BAGS}, e;
	AgFitOptions *options, *none;
	AgError err;

	memcpy(plain.list, bags, sizeof bags);
	options = options_of(&plain, mem);
	weighing_make(&w, mem, options, INT64_MAX);
	AG_CHECK(strstr(plan_of(&w), "refused") == NULL);
	w.children[1].ended_by = "time";
	AG_CHECK(strstr(plan_of(&w), "refused") == NULL); /* after 40 rounds */
	AG_CHECK(strstr(plan_of(&w), "\"rounds\": [40]") != NULL);
	w.children[1].rounds_run = 1;
	AG_CHECK(strstr(plan_of(&w), "\"refused\": \"time cut M1 short\"") != NULL);
	w.children[1].ended_by = "patience";
	AG_CHECK(strstr(plan_of(&w), "refused") == NULL);
	w.children[0].cuts.is_full = true;
	AG_CHECK(strstr(plan_of(&w), "\"refused\": \"time cut M0 short\"") != NULL);
	entries_of_replay(&e, mem, plan_of(&w));
	ag_error_init(&err);
	AG_CHECK_EQ(ag_options_parse(mem, e.list, e.n, &none, &err), AG_ERR_OPTION);
	AG_CHECK(strstr(err.message, "can't be repeated exactly: time cut M0 short") != NULL);
	entries_free(&e);
	ag_options_free(options);
	ag_arena_free(&w.fit.arena);
	AG_CHECK_EQ(mem->used_bytes, 0);
}

/* --- models trained once more */

#define REFIT                                                                                      \
	"\"refit\": true, \"num_bag_folds\": 0, \"num_bag_sets\": 1, \"num_stack_levels\": 0, "
#define TWO                                                                                        \
	"\"models\": [{\"name\": \"G\", \"config\": \"GBM\", \"full\": false, \"rounds\": [9]}, "      \
	"{\"name\": \"L\", \"config\": \"LR\", \"full\": false, \"rounds\": [0]}]"

/* Each once, on all rows, for the rounds that are told, under the names that are told; nothing is validated. */
static void
models_once_more(AgMem *mem)
{
	static Result r;
	Entries e;
	int g, ensemble;

	entries_of_replay(&e, mem,
					  "{" REFIT TWO ", \"best\": \"E\", \"temperature\": 0, \"threshold\": 0, "
					  "\"ensembles\": [{\"name\": \"E\", \"weights\": [0.25, 0.75]}]}");
	fit_by(mem, &e, &r);
	AG_CHECK_STR(r.best, "E");
	AG_CHECK(isnan(r.score));
	AG_CHECK_EQ(r.n_members, 3);
	g = find_name(&r, "G");
	ensemble = find_name(&r, "E");
	AG_REQUIRE(g >= 0 && ensemble >= 0);
	AG_CHECK(isnan(r.scores[g]) && isnan(r.scores[ensemble]));
	AG_CHECK_EQ(r.n_inputs[ensemble], 2);
	AG_CHECK(r.weights[ensemble][0] == 0.25 && r.weights[ensemble][1] == 0.75);
	AG_CHECK(strstr(r.plan, "\"rounds_run\": 9") != NULL);
	AG_CHECK(strstr(r.log, "trained on all 240 rows") != NULL);
	AG_CHECK(error_of(mem, &r, ensemble + 1, 0) < 1.0);
	repeats(mem, &r);
	result_free(&r);
	entries_free(&e);
	AG_CHECK_EQ(mem->used_bytes, 0);
}

static void
refit_is_checked(AgMem *mem)
{
	static const char *const wrong[] = {
		"{" REFIT TWO "}", /* what predicts? */
		"{" REFIT TWO ", \"best\": 3}",
		"{" REFIT TWO ", \"best\": \"E\", \"ensembles\": [{\"name\": \"E\", \"weights\": [1]}]}",
		"{" REFIT TWO ", \"best\": \"G\", \"shifts\": [\"a\"]}",
		"{" REFIT "\"models\": [], \"best\": \"G\"}",
		"{" REFIT "\"models\": [{\"name\": \"G\", \"full\": false, \"rounds\": [9]}], \"best\": "
		"\"G\"}",
		"{" REFIT
		"\"models\": [{\"name\": \"G\", \"config\": \"GBM\", \"full\": false, \"rounds\": "
		"[9, 9]}], \"best\": \"G\"}",
		"{\"refit\": true, \"num_bag_folds\": 3, \"num_bag_sets\": 1, \"num_stack_levels\": 0, " TWO
		", \"best\": \"G\"}",
		"{" REFIT "\"models\": [{\"name\": \"G\", \"config\": \"GBM_7\", \"full\": false, "
		"\"rounds\": [9]}], \"best\": \"G\"}",
	};

	for (int i = 0; i < (int) (sizeof wrong / sizeof wrong[0]); i++)
	{
		AgFitOptions *options = NULL;
		AgError err;
		Entries e;

		entries_of_replay(&e, mem, wrong[i]);
		ag_error_init(&err);
		if (!AG_CHECK_EQ(ag_options_parse(mem, e.list, e.n, &options, &err), AG_ERR_OPTION))
			fprintf(stderr, "    %s\n", wrong[i]);
		AG_CHECK(options == NULL);
		entries_free(&e);
		AG_CHECK_EQ(mem->used_bytes, 0);
	}
}

int
main(void)
{
	AgMem mem;

	ag_mem_init(&mem, INT64_MAX);
	models_once_more(&mem);
	refit_is_checked(&mem);
	folds_are_left_out(&mem);
	bag_is_torn(&mem);
	spare_set_is_odd(&mem);
	rows_are_held_out_again(&mem);
	child_oof_is_odd(&mem);
	spare_set_is_reckoned_with(&mem);
	weights_are_kept(&mem);
	cut_is_told(&mem);
	refuses(&mem);
	return ag_unit_done("replay");
}
