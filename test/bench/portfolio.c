/*
 * portfolio.c - fits configurations one by one as bags on one table, and keeps what they say of rows they haven't seen: what a
 * search for their best order works on (portfolio.py, which writes the tables and calls this).
 *
 *     portfolio TABLE.tsv CONFIGURATIONS FOLDER problem_type eval_metric folds
 *
 * TABLE.tsv: names, types and roles (feature, label) in three lines, then rows as COPY writes them. CONFIGURATIONS: a line each, "NAME FAMILY name=value ...",
 * where prep=target,crosses,group_by asks for columns of its own. A quarter of the rows is held back; NAME.bin in FOLDER gets, in the machine's own order
 * of bytes: int64 scored rows, held rows, numbers a row, children; for each child double CPU seconds, rounds, bytes; as float32 the out-of-fold
 * predictions, the bag's of the rows held back, and its first child's of them. labels.bin has int64 scored and held rows, and as doubles the scored
 * rows' labels and folds, and the held ones' labels. What is there isn't made again. One thread: seconds are CPU time.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/search/fit_state.h"

#define N_PARTS 4
#define HOLD_SET 1000001
#define MOST_COLUMNS 1600

typedef struct Bench
{
	AgMem mem;
	AgError error;
	AgContext ctx;
	AgTable *table;
	AgFit fit;
	AgFitJob job;
	AgFitOptions *options;
	const char *folder;
	uint32_t *held; /* [n_held] */
	int64_t n_held;
	int n_folds;
} Bench;

static void
need(const Bench *b, AgStatus status, const char *what)
{
	if (status == AG_OK)
		return;
	fprintf(stderr, "%s: %s\n", what, b->error.message);
	exit(1);
}

/* --- the table */

static char *
file_read(const char *path)
{
	FILE *file = fopen(path, "rb");
	struct stat about;
	char *text;

	if (file == NULL || fstat(fileno(file), &about) != 0)
	{
		perror(path);
		exit(1);
	}
	text = malloc((size_t) about.st_size + 1);
	if (text == NULL || fread(text, 1, (size_t) about.st_size, file) != (size_t) about.st_size)
		exit(1);
	text[about.st_size] = '\0';
	fclose(file);
	return text;
}

/* The fields of a line, in place; *next gets where the line after it begins. */
static int
fields_cut(char *line, char **fields, char **next)
{
	char *end = strchr(line, '\n');
	int n = 0;

	if (end == NULL)
		end = line + strlen(line);
	*next = *end == '\n' ? end + 1 : end;
	*end = '\0';
	while (line != NULL && n < MOST_COLUMNS)
	{
		char *tab = strchr(line, '\t');

		if (tab != NULL)
			*tab++ = '\0';
		fields[n++] = line;
		line = tab;
	}
	return n;
}

static AgType
type_of(const char *name)
{
	return strcmp(name, "integer") == 0     ? AG_TYPE_INT32
		   : strcmp(name, "bigint") == 0    ? AG_TYPE_INT64
		   : strcmp(name, "boolean") == 0   ? AG_TYPE_BOOL
		   : strcmp(name, "date") == 0      ? AG_TYPE_DATE
		   : strcmp(name, "timestamp") == 0 ? AG_TYPE_TIMESTAMP
		   : strcmp(name, "text") == 0      ? AG_TYPE_TEXT
											: AG_TYPE_FLOAT64;
}

/* Days since 2000-01-01. */
static int64_t
days_of(const char *text)
{
	struct tm t = {0};

	sscanf(text, "%d-%d-%d", &t.tm_year, &t.tm_mon, &t.tm_mday);
	t.tm_year -= 1900;
	t.tm_mon -= 1;
	return (int64_t) (timegm(&t) / 86400) - 10957;
}

static int64_t
micros_of(const char *text)
{
	int hour = 0, minute = 0;
	double second = 0.0;

	sscanf(text + 11, "%d:%d:%lf", &hour, &minute, &second);
	return days_of(text) * INT64_C(86400000000) +
		   (int64_t) ((hour * 3600 + minute * 60 + second) * 1e6);
}

/* In place. */
static void
unescape(char *text)
{
	char *to = text;

	for (; *text != '\0'; text++)
		if (*text == '\\' && text[1] != '\0')
		{
			text++;
			*to++ = *text == 't' ? '\t' : *text == 'n' ? '\n' : *text == 'r' ? '\r' : *text;
		}
		else
			*to++ = *text;
	*to = '\0';
}

static void
value_put(AgType type, char *text, void *slot)
{
	int32_t i32;
	int64_t i64;
	double f64;

	switch (type)
	{
		case AG_TYPE_BOOL:
			*(uint8_t *) slot = *text == 't' || *text == 'T';
			break;
		case AG_TYPE_INT32:
			i32 = (int32_t) strtol(text, NULL, 10);
			memcpy(slot, &i32, sizeof i32);
			break;
		case AG_TYPE_DATE:
			i32 = (int32_t) days_of(text);
			memcpy(slot, &i32, sizeof i32);
			break;
		case AG_TYPE_INT64:
		case AG_TYPE_TIMESTAMP:
			i64 = type == AG_TYPE_INT64 ? strtoll(text, NULL, 10) : micros_of(text);
			memcpy(slot, &i64, sizeof i64);
			break;
		default:
			f64 = strtod(text, NULL);
			memcpy(slot, &f64, sizeof f64);
	}
}

/* One row at a time: these tables are small. */
static void
row_append(Bench *b, const AgColumn *columns, int n_columns, char **fields)
{
	static uint8_t slots[MOST_COLUMNS][8], is_null[MOST_COLUMNS];
	static uint32_t ends[MOST_COLUMNS][2];
	const void *values[MOST_COLUMNS];
	const uint8_t *nulls[MOST_COLUMNS];
	const char *texts[MOST_COLUMNS];

	for (int c = 0; c < n_columns; c++)
	{
		is_null[c] = strcmp(fields[c], "\\N") == 0;
		nulls[c] = is_null[c] ? &is_null[c] : NULL;
		texts[c] = fields[c];
		values[c] = slots[c];
		memset(slots[c], 0, sizeof slots[c]);
		if (columns[c].type == AG_TYPE_TEXT)
		{
			unescape(fields[c]);
			ends[c][0] = 0;
			ends[c][1] = is_null[c] ? 0 : (uint32_t) strlen(fields[c]);
			values[c] = ends[c];
		}
		else if (!is_null[c])
			value_put(columns[c].type, fields[c], slots[c]);
	}
	need(b, ag_table_append(&b->ctx, b->table, 1, values, nulls, texts), "row");
}

static void
table_read(Bench *b, const char *path)
{
	static char *names[MOST_COLUMNS], *types[MOST_COLUMNS], *roles[MOST_COLUMNS],
		*fields[MOST_COLUMNS];
	static AgColumn columns[MOST_COLUMNS];
	char *text = file_read(path), *line = text;
	int n = fields_cut(line, names, &line);
	AgSchema schema = {n, columns};

	if (fields_cut(line, types, &line) != n || fields_cut(line, roles, &line) != n)
		exit(1);
	for (int c = 0; c < n; c++)
	{
		bool is_label = strcmp(roles[c], "label") == 0;

		columns[c] = (AgColumn){names[c], types[c], type_of(types[c]),
								is_label ? AG_ROLE_LABEL : AG_ROLE_FEATURE};
		if (is_label)
			b->job.label_name = strdup(names[c]);
	}
	need(b, ag_table_create(&b->ctx, &schema, &b->table), path);
	while (*line != '\0')
		if (fields_cut(line, fields, &line) == n)
			row_append(b, columns, n, fields);
	free(text);
}

/* --- the fit, as fit.c begins it, with a part of the rows held back from all folds */

static int
label_column(const AgTable *table)
{
	int c = 0;

	while (table->columns[c].role != AG_ROLE_LABEL)
		c++;
	return c;
}

static void
rows_hold(Bench *b)
{
	AgFit *fit = &b->fit;
	AgValidation *v = &fit->validation;
	size_t n = (size_t) fit->n_rows;
	uint8_t *part_of = calloc(n, 1);

	need(b, ag_get(&fit->ctx, n, 1, &v->fold_of), "folds");
	need(b, ag_get(&fit->ctx, n, sizeof(uint32_t), &v->scored_rows), "folds");
	b->held = calloc(n, sizeof *b->held);
	v->n_sets = 1;
	v->n_folds = N_PARTS;
	need(b, ag_fit_deal(fit, HOLD_SET, part_of), "parts");
	v->n_folds = b->n_folds;
	need(b, ag_fit_deal(fit, 0, v->fold_of), "folds");
	for (size_t r = 0; r < n; r++)
		if (part_of[r] == N_PARTS - 1)
		{
			v->fold_of[r] = AG_FIT_HELD;
			b->held[b->n_held++] = (uint32_t) r;
		}
		else if (v->fold_of[r] != AG_FIT_NO_FOLD)
			v->scored_rows[v->n_scored++] = (uint32_t) r;
	need(b, ag_fit_gather_labels(fit), "labels");
	free(part_of);
}

static void
fit_begin(Bench *b, const char *problem, const char *metric)
{
	AgFit *fit = &b->fit;
	AgOptionEntry entries[] = {{"/problem_type", AG_JSON_STRING, problem},
							   {"/eval_metric", AG_JSON_STRING, metric},
							   {"/hyperparameters", AG_JSON_STRING, "toy"}};
	int column;

	need(b, ag_options_parse(&b->mem, entries, 3, &b->options, &b->error), "options");
	fit->host = &b->ctx;
	fit->ctx = b->ctx;
	b->job.options = fit->options = b->options;
	b->job.time_zone = "UTC";
	b->job.num_cpus = 1;
	fit->job = &b->job;
	fit->table = b->table;
	fit->level = fit->n_levels = 1;
	fit->promised_seconds = (double) INFINITY;
	ag_arena_init(&fit->arena, &b->mem);
	column = label_column(b->table);
	need(b, ag_label_leave_rare(&fit->ctx, b->table, column, b->options->problem, 10, &fit->n_rare),
		 "rare classes");
	need(b, ag_table_finish(&fit->ctx, b->table, &fit->n_left_out), "table");
	fit->n_rows = b->table->n_rows;
	need(b, ag_label_fit(&fit->ctx, b->table, column, b->options->problem, NULL, &fit->label),
		 "label");
	fit->metric = b->options->eval_metric;
	fit->stop_metric = ag_metric_is_ranking(fit->metric) ? AG_METRIC_LOG_LOSS : fit->metric;
	need(b,
		 ag_pipeline_fit(&fit->ctx, b->table, fit->label, "UTC", false, &b->options->features,
						 &fit->pipeline),
		 "features");
	fit->rows.ctx = &fit->ctx;
	fit->rows.pipeline = fit->pipeline;
	fit->rows.table = b->table;
	rows_hold(b);
}

static double
label_at(const Bench *b, uint32_t row)
{
	const AgLabel *label = b->fit.label;

	return label->class_of != NULL ? label->class_of[row] : label->target[row];
}

static void
labels_write(const Bench *b)
{
	const AgValidation *v = &b->fit.validation;
	int64_t sizes[] = {v->n_scored, b->n_held};
	char path[4096];
	FILE *out;

	snprintf(path, sizeof path, "%s/labels.bin", b->folder);
	out = fopen(path, "wb");
	if (out == NULL)
		exit(1);
	fwrite(sizes, sizeof sizes, 1, out);
	for (int what = 0; what < 3; what++)
		for (int64_t i = 0; i < (what < 2 ? v->n_scored : b->n_held); i++)
		{
			uint32_t row = what < 2 ? v->scored_rows[i] : b->held[i];
			double value = what == 1 ? v->fold_of[row] : label_at(b, row);

			fwrite(&value, sizeof value, 1, out);
		}
	fclose(out);
}

/* --- configurations */

static AgStatus
config_parse(Bench *b, char *words, AgFitOptions **options)
{
	char *save, *word = strtok_r(words, " ", &save), path[64];
	AgOptionEntry entries[] = {{"/hyperparameters", AG_JSON_OBJECT, "1"},
							   {path, AG_JSON_OBJECT, "0"}};
	AgModelConfig *config;

	snprintf(path, sizeof path, "/hyperparameters/%s", word);
	AG_TRY(ag_options_parse(&b->mem, entries, 2, options, &b->error));
	config = &(*options)->models[0];
	while ((word = strtok_r(NULL, " ", &save)) != NULL)
	{
		char *value = strchr(word, '=');
		bool is_word;

		*value++ = '\0';
		is_word = strchr("0123456789.-[", *value) == NULL && strcmp(value, "true") != 0 &&
				  strcmp(value, "false") != 0;
		if (strcmp(word, "prep") == 0)
		{
			config->prep.target = strstr(value, "target") != NULL;
			config->prep.crosses = strstr(value, "crosses") != NULL;
			config->prep.group_by = strstr(value, "group_by") != NULL;
		}
		else
			AG_TRY(ag_param_set(config->family->specs, *config->family->n_specs,
								config->family->key, word, value, is_word, config->params,
								&b->error));
	}
	return config->family->check != NULL ? config->family->check(config->params, &b->error) : AG_OK;
}

static void
floats_write(FILE *out, const double *values, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
	{
		float value = (float) values[i];

		fwrite(&value, sizeof value, 1, out);
	}
}

static AgStatus
result_write(Bench *b, const AgFitModel *model, const double *cpu, FILE *out)
{
	const AgValidation *v = &b->fit.validation;
	int width = ag_fit_width(&b->fit);
	int64_t sizes[] = {v->n_scored, b->n_held, width, model->n_children};
	size_t n = (size_t) b->n_held * (size_t) width;
	double *mean = calloc(n, sizeof *mean), *first = calloc(n, sizeof *first),
		   *one = calloc(n, sizeof *one);
	AgStatus status = AG_OK;

	fwrite(sizes, sizeof sizes, 1, out);
	for (int c = 0; c < model->n_children; c++)
	{
		double about[] = {cpu[c], model->children[c].rounds, (double) model->children[c].n_image};

		fwrite(about, sizeof about, 1, out);
	}
	for (int c = 0; c < model->n_children && status == AG_OK; c++)
	{
		status = ag_family_predict(&b->fit.ctx, &b->fit.rows, &model->children[c], b->held,
								   b->n_held, one);
		for (size_t i = 0; i < n; i++)
			mean[i] += one[i] / model->n_children;
		if (c == 0)
			memcpy(first, one, n * sizeof *one);
	}
	floats_write(out, model->proba, v->n_scored * width);
	floats_write(out, mean, (int64_t) n);
	floats_write(out, first, (int64_t) n);
	free(mean);
	free(first);
	free(one);
	return status;
}

static void
config_run(Bench *b, const char *name, char *words)
{
	AgFit *fit = &b->fit;
	AgFitOptions *options = NULL;
	AgContext ctx = fit->ctx;
	AgFitModel model;
	char path[4096], part[4096];
	double began, cpu[AG_MAX_BAG_FOLDS] = {0.0};
	FILE *out;
	AgStatus status;

	snprintf(path, sizeof path, "%s/%s.bin", b->folder, name);
	snprintf(part, sizeof part, "%s/%s.part", b->folder, name);
	if (access(path, F_OK) == 0)
		return;
	ag_error_init(&b->error);
	need(b, config_parse(b, words, &options), name);
	fit->options = options;
	ag_fit_model_begin(fit, &options->models[0], &model);
	began = ag_cpu_ns() * 1e-9;
	status = ag_fit_model(fit, &ctx, false, &model);
	for (int c = 0; c < model.n_children; c++)
		cpu[c] = (ag_cpu_ns() * 1e-9 - began) / model.n_children;
	out = fopen(part, "wb");
	if (out == NULL)
		exit(1);
	if (status == AG_OK && model.n_covered == fit->validation.n_scored)
		status = result_write(b, &model, cpu, out);
	fclose(out);
	fprintf(stderr, "%s %s: %.5g, %.2f s, %s\n", b->folder, name, model.value,
			cpu[0] * model.n_children, status == AG_OK ? "" : b->error.message);
	rename(part, path); /* what can't be fitted leaves an empty file */
	if (status != AG_OK && truncate(path, 0) != 0)
		exit(1);
	ag_fit_model_free(fit, &model);
	fit->options = b->options;
	ag_options_free(options);
}

int
main(int argc, char **argv)
{
	static Bench b;
	char *text, *line, *save;

	if (argc != 7)
	{
		fprintf(stderr,
				"portfolio TABLE.tsv CONFIGURATIONS FOLDER problem_type eval_metric folds\n");
		return 2;
	}
	ag_mem_init(&b.mem, INT64_C(6) << 30);
	ag_error_init(&b.error);
	b.ctx.mem = &b.mem;
	b.ctx.deadline_ns = INT64_MAX;
	b.ctx.error = &b.error;
	b.folder = argv[3];
	b.n_folds = atoi(argv[6]);
	table_read(&b, argv[1]);
	fit_begin(&b, argv[4], argv[5]);
	labels_write(&b);
	text = file_read(argv[2]);
	for (line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save))
	{
		char *words = strchr(line, ' ');

		if (*line == '#' || words == NULL)
			continue;
		*words++ = '\0';
		config_run(&b, line, words);
	}
	return 0;
}
