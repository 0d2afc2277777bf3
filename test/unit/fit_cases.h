/*
 * fit_cases.h - a fit on made-up rows in one process, and what came of it.
 */
#ifndef AG_FIT_CASES_H
#define AG_FIT_CASES_H

#include "unit/unit.h"

#include "engine/base/rng.h"
#include "engine/base/threads.h"
#include "engine/engine.h"
#include "engine/search/fit_state.h"

#define MAX_MEMBERS 64

/* What the sink was given. */
typedef struct Result
{
	AgMem *mem;
	AgProblem problem;
	AgMetric metric;
	int64_t n_rows;
	char best[64];
	double score, threshold, temperature;
	char plan[32768];
	int n_warnings;
	char warning[512];
	int n_features, n_members, n_images;
	char names[MAX_MEMBERS][64], families[MAX_MEMBERS][64], params[MAX_MEMBERS][1024];
	double scores[MAX_MEMBERS];
	int folds[MAX_MEMBERS], levels[MAX_MEMBERS];
	bool can_infer[MAX_MEMBERS];
	int n_inputs[MAX_MEMBERS];
	int inputs[MAX_MEMBERS][MAX_MEMBERS];
	double weights[MAX_MEMBERS][MAX_MEMBERS];
	AgImagePart images[MAX_MEMBERS + 2];
	char features[2048];
	char log[32768];
	int n_warning_lines;
	AgStatus fail_with; /* of the next call of the sink */
} Result;

static inline AgStatus
on_predictor(void *host, const AgFittedPredictor *p)
{
	Result *r = host;

	r->problem = p->problem;
	r->metric = p->eval_metric;
	r->n_rows = p->n_rows;
	r->score = p->score_val;
	r->threshold = p->decision_threshold;
	r->n_warnings = p->n_warnings;
	if (p->n_warnings > 0)
		snprintf(r->warning, sizeof r->warning, "%s", p->warnings[0]);
	snprintf(r->best, sizeof r->best, "%s", p->best_model);
	snprintf(r->plan, sizeof r->plan, "%s", p->plan_json);
	return r->fail_with;
}

static inline AgStatus
on_feature(void *host, const AgFittedFeature *f)
{
	Result *r = host;
	size_t at = strlen(r->features);

	r->n_features++;
	snprintf(r->features + at, sizeof r->features - at, "%s: %s, %s%s\n", f->column, f->kind,
			 f->is_used ? f->became : "dropped, ", f->is_used ? "" : f->dropped_why);
	return AG_OK;
}

static inline AgStatus
on_member(void *host, const AgFittedMember *m)
{
	Result *r = host;
	int at = r->n_members++;

	AG_CHECK_EQ(m->ordinal, r->n_members);
	snprintf(r->names[at], sizeof r->names[at], "%s", m->name);
	snprintf(r->families[at], sizeof r->families[at], "%s", m->family);
	snprintf(r->params[at], sizeof r->params[at], "%s", m->params_json);
	r->scores[at] = m->score_val;
	r->folds[at] = m->fold;
	r->levels[at] = m->stack_level;
	r->temperature = fmax(r->temperature, m->temperature);
	r->can_infer[at] = m->can_infer;
	r->n_inputs[at] = m->n_inputs;
	for (int i = 0; i < m->n_inputs; i++)
	{
		r->weights[at][i] = m->input_weights[i];
		for (int k = 0; k < at; k++)
			if (strcmp(r->names[k], m->input_names[i]) == 0)
				r->inputs[at][i] = k + 1;
	}
	return AG_OK;
}

static inline AgStatus
on_image(void *host, int member, const void *bytes, size_t n)
{
	Result *r = host;
	void *copy = ag_mem_alloc(r->mem, n, 1);

	AG_CHECK(member == 0 || member > r->images[r->n_images - 1].member);
	if (copy == NULL)
		return AG_ERR_MEMORY;
	memcpy(copy, bytes, n);
	r->images[r->n_images++] = (AgImagePart){.member = member, .data = copy, .size = n};
	return AG_OK;
}

static inline void
on_log(void *host, AgLogLevel level, const char *text, const char *hint)
{
	Result *r = host;
	size_t at = strlen(r->log);

	(void) hint;
	r->n_warning_lines += level == AG_LOG_WARNING;
	snprintf(r->log + at, sizeof r->log - at, "%s\n", text);
}

static inline void
result_free(Result *r)
{
	for (int i = 0; i < r->n_images; i++)
		ag_mem_free(r->mem, (void *) (uintptr_t) r->images[i].data);
}

typedef struct Setting
{
	AgMem *mem;
	int n_rows;
	int n_classes;  /* 0: a number */
	int label_seed; /* 0: the label is the columns' doing; else drawn by this */
	const AgOptionEntry *entries;
	int n_entries;
	int n_threads;
	double seconds; /* deadline from now; 0: none */
	_Atomic bool *cancel;
	/* the rows; NULL: table_make */
	AgStatus (*make)(const AgContext *ctx, const struct Setting *s, AgTable **table);
	void (*grant)(AgFitJob *job); /* GPUs; NULL: there are none */
} Setting;

static inline double
noise(int what, int row)
{
	return ag_random_unit((uint64_t) what, (uint64_t) row);
}

static inline double
truth(int row)
{
	return 3.0 * noise(1, row) + (noise(2, row) > 0.5 ? 1.0 : 0.0);
}

/* Column 0 and 1 matter, 2 is constant, 3 is the label. */
static inline AgStatus
table_make(const AgContext *ctx, const Setting *s, AgTable **table)
{
	static AgColumn columns[] = {
		{"x", "double precision", AG_TYPE_FLOAT64, AG_ROLE_FEATURE},
		{"flag", "boolean", AG_TYPE_BOOL, AG_ROLE_FEATURE},
		{"same", "integer", AG_TYPE_INT32, AG_ROLE_FEATURE},
		{"y", "double precision", AG_TYPE_FLOAT64, AG_ROLE_LABEL},
	};
	AgSchema schema = {4, columns};
	double *x = calloc((size_t) s->n_rows + 1, sizeof *x), *y = calloc((size_t) s->n_rows + 1, 8);
	uint8_t *flag = calloc((size_t) s->n_rows + 1, 1);
	int32_t *same = calloc((size_t) s->n_rows + 1, sizeof *same);
	const void *values[] = {x, flag, same, y};
	const uint8_t *nulls[] = {NULL, NULL, NULL, NULL};
	const char *texts[] = {NULL, NULL, NULL, NULL};
	AgStatus status;

	for (int r = 0; r < s->n_rows; r++)
	{
		x[r] = noise(1, r);
		flag[r] = noise(2, r) > 0.5;
		same[r] = 7;
		y[r] = s->label_seed == 0 ? truth(r) : 4.0 * noise(s->label_seed, r);
		if (s->n_classes > 0)
			y[r] = (double) (int) (y[r] / 4.0 * s->n_classes);
	}
	AG_GO(ag_table_create(ctx, &schema, table));
	AG_GO(ag_table_append(ctx, *table, s->n_rows, values, nulls, texts));
done:
	free(x);
	free(y);
	free(flag);
	free(same);
	return status;
}

static inline AgStatus
run(const Setting *s, Result *r, AgError *err)
{
	AgContext ctx;
	AgFitOptions *options = NULL;
	AgFitJob job;
	AgFitSink sink = {r, on_predictor, on_feature, on_member, on_image};
	AgTable *table = NULL;
	AgPool *pool = NULL;
	AgStatus status, fail_with = r->fail_with;

	memset(r, 0, sizeof *r);
	r->mem = s->mem;
	r->fail_with = fail_with;
	ag_error_init(err);
	memset(&ctx, 0, sizeof ctx);
	ctx.mem = s->mem;
	ctx.cancel = s->cancel;
	ctx.log = on_log;
	ctx.host = r;
	ctx.error = err;
	ctx.deadline_ns = s->seconds > 0 ? ag_clock_ns() + (int64_t) (s->seconds * 1e9) : INT64_MAX;
	AG_GO(ag_options_parse(s->mem, s->entries, s->n_entries, &options, err));
	AG_GO(ag_pool_create(s->mem, s->n_threads > 0 ? s->n_threads : 1, &pool, err));
	ctx.pool = pool;
	memset(&job, 0, sizeof job);
	job.options = options;
	job.label_name = "y";
	job.time_zone = "UTC";
	job.num_cpus = ag_pool_size(pool);
	job.started_ns = ag_clock_ns();
	job.gpu_limit = -1;
	snprintf(job.gpu.reason, sizeof job.gpu.reason, "no driver");
	snprintf(job.gpu.cure, sizeof job.gpu.cure, "Install one.");
	if (s->grant != NULL)
		s->grant(&job);
	AG_GO((s->make != NULL ? s->make : table_make)(&ctx, s, &table));
	AG_CHECK(ag_fit_memory(table, options, 2) > 0);
	AG_GO(ag_fit_run(&ctx, &job, table, &sink));
done:
	ag_table_free(table);
	ag_pool_free(pool);
	ag_options_free(options);
	return status;
}

/* Mean absolute error, or share of wrong classes, of a stored member on rows that training never saw. */
static inline double
error_of(AgMem *mem, const Result *r, int member, int n_classes)
{
	AgMemberRef refs[MAX_MEMBERS];
	AgContext ctx;
	AgError err;
	AgPredictor *predictor;
	double out[16], sum = 0;

	memset(&ctx, 0, sizeof ctx);
	ctx.mem = mem;
	ctx.deadline_ns = INT64_MAX;
	ctx.error = &err;
	ag_error_init(&err);
	for (int i = 0; i < r->n_members; i++)
		refs[i] = (AgMemberRef){
			i + 1, r->names[i], r->families[i], r->n_inputs[i], r->inputs[i], r->weights[i], 0,
			0,     NULL};
	if (!AG_CHECK_EQ(
			ag_predictor_open(&ctx, r->images, r->n_images, refs, r->n_members, member, &predictor),
			AG_OK))
	{
		fprintf(stderr, "    %s\n", err.message);
		return (double) NAN;
	}
	for (int row = 100000; row < 100500; row++)
	{
		AgValue values[3];

		memset(values, 0, sizeof values);
		values[0].v.f64 = noise(1, row);
		values[1].v.b = noise(2, row) > 0.5;
		values[2].v.i32 = 7;
		ag_predictor_run(predictor, values, out);
		if (n_classes == 0)
			sum += fabs(out[0] - truth(row));
		else
		{
			int best = 0, real = (int) (truth(row) / 4.0 * n_classes);

			for (int k = 1; k < n_classes; k++)
				if (out[k] > out[best])
					best = k;
			sum += best != real;
		}
	}
	ag_predictor_close(predictor);
	return sum / 500;
}

static const AgOptionEntry quick[] = {
	{"/hyperparameters", AG_JSON_OBJECT, "1"},
	{"/hyperparameters/GBM", AG_JSON_ARRAY, "2"},
	{"/hyperparameters/GBM/0", AG_JSON_OBJECT, "1"},
	{"/hyperparameters/GBM/0/num_boost_round", AG_JSON_NUMBER, "60"},
	{"/hyperparameters/GBM/1", AG_JSON_OBJECT, "3"},
	{"/hyperparameters/GBM/1/num_boost_round", AG_JSON_NUMBER, "60"},
	{"/hyperparameters/GBM/1/max_bin", AG_JSON_NUMBER, "31"},
	{"/hyperparameters/GBM/1/ag.num_cpus", AG_JSON_NUMBER, "1"},
};
#define N_QUICK ((int) (sizeof quick / sizeof quick[0]))

#endif
