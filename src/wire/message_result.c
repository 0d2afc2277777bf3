/*
 * message_result.c - what a fit gives back: the predictor, its features and its members.
 */
#include "wire/message.h"

#include <math.h>
#include <string.h>

#include "wire/decode.h"

static void
texts_write(AgWriter *out, int n, const char *const *texts)
{
	ag_write_u32(out, (uint32_t) n);
	for (int i = 0; i < n; i++)
		ag_write_str(out, texts[i]);
}

static const char *const *
texts_read(AgDecoder *d, int *n_out)
{
	uint32_t n = ag_read_count(&d->in, 4);
	const char **texts = ag_decode_array(d, n, sizeof(char *));

	*n_out = 0;
	if (texts == NULL)
		return NULL;
	for (uint32_t i = 0; i < n; i++)
		texts[i] = ag_decode_text(d);
	*n_out = (int) n;
	return texts;
}

void
ag_msg_predictor_write(AgWriter *out, const AgFittedPredictor *msg)
{
	ag_write_u32(out, (uint32_t) msg->problem);
	ag_write_u32(out, (uint32_t) msg->eval_metric);
	ag_write_i64(out, msg->n_rows);
	ag_write_i64(out, msg->n_rows_left_out);
	ag_write_u32(out, (uint32_t) msg->n_classes);
	for (int i = 0; i < msg->n_classes; i++)
	{
		ag_write_text(out, msg->classes[i].name, msg->classes[i].n_bytes);
		ag_write_f64(out, msg->classes[i].number);
		ag_write_i64(out, msg->classes[i].n_rows);
	}
	ag_write_str(out, msg->best_model);
	ag_write_f64(out, msg->score_val);
	ag_write_f64(out, msg->fit_seconds);
	ag_write_f64(out, msg->decision_threshold);
	ag_write_str(out, msg->plan_json);
	texts_write(out, msg->n_warnings, msg->warnings);
}

static void
classes_read(AgDecoder *d, AgFittedPredictor *msg)
{
	uint32_t n = ag_read_count(&d->in, 20); /* length, number, rows */
	AgClass *classes = ag_decode_array(d, n, sizeof(AgClass));

	msg->n_classes = 0;
	msg->classes = classes;
	if (classes == NULL)
		return;
	for (uint32_t i = 0; i < n; i++)
	{
		classes[i].name = ag_decode_text(d);
		classes[i].n_bytes = (uint32_t) strlen(classes[i].name);
		classes[i].number = ag_read_f64(&d->in);
		classes[i].n_rows = ag_read_i64(&d->in);
		if (classes[i].n_rows < 0)
			ag_decode_reject(d);
	}
	msg->n_classes = (int) n;
}

AgStatus
ag_msg_predictor_read(AgArena *arena, const void *payload, size_t n, AgFittedPredictor *msg,
					  AgError *err)
{
	AgDecoder d;
	uint32_t problem, metric;

	ag_decode_begin(&d, "PREDICTOR", payload, n, arena, err);
	problem = ag_read_u32(&d.in);
	metric = ag_read_u32(&d.in);
	msg->n_rows = ag_read_i64(&d.in);
	msg->n_rows_left_out = ag_read_i64(&d.in);
	classes_read(&d, msg);
	msg->best_model = ag_decode_text(&d);
	msg->score_val = ag_read_f64(&d.in);
	msg->fit_seconds = ag_decode_number(&d);
	msg->decision_threshold = ag_decode_number(&d);
	msg->plan_json = ag_decode_text(&d);
	msg->warnings = texts_read(&d, &msg->n_warnings);

	if (problem < AG_PROBLEM_BINARY || problem > AG_PROBLEM_QUANTILE)
	{
		ag_decode_reject(&d);
		problem = AG_PROBLEM_REGRESSION;
	}
	if (metric <= AG_METRIC_NONE || metric >= AG_METRIC_LAST)
	{
		ag_decode_reject(&d);
		metric = AG_METRIC_RMSE;
	}
	msg->problem = (AgProblem) problem;
	msg->eval_metric = (AgMetric) metric;
	if (!(msg->decision_threshold >= 0.0 && msg->decision_threshold < 1.0))
		ag_decode_reject(&d);
	if (msg->n_rows < 1 || msg->n_rows_left_out < 0 || msg->best_model[0] == '\0' ||
		(problem == AG_PROBLEM_BINARY && msg->n_classes != 2) ||
		(problem == AG_PROBLEM_MULTICLASS && msg->n_classes < 2) ||
		(problem >= AG_PROBLEM_REGRESSION && msg->n_classes != 0))
		ag_decode_reject(&d);
	return ag_decode_end(&d);
}

void
ag_msg_feature_write(AgWriter *out, const AgFittedFeature *msg)
{
	ag_write_i32(out, msg->ordinal);
	ag_write_str(out, msg->column);
	ag_write_str(out, msg->sql_type);
	ag_write_str(out, msg->kind);
	ag_write_u8(out, msg->is_used);
	ag_encode_text_or_null(out, msg->became);
	ag_encode_text_or_null(out, msg->dropped_why);
	ag_write_i64(out, msg->n_missing);
	ag_write_i64(out, msg->n_distinct);
	ag_write_f64(out, msg->min);
	ag_write_f64(out, msg->max);
	ag_write_f64(out, msg->mean);
	ag_encode_text_or_null(out, msg->categories_json);
}

AgStatus
ag_msg_feature_read(AgArena *arena, const void *payload, size_t n, AgFittedFeature *msg,
					AgError *err)
{
	AgDecoder d;

	ag_decode_begin(&d, "FEATURE", payload, n, arena, err);
	msg->ordinal = ag_read_i32(&d.in);
	msg->column = ag_decode_text(&d);
	msg->sql_type = ag_decode_text(&d);
	msg->kind = ag_decode_text(&d);
	msg->is_used = ag_decode_bool(&d);
	msg->became = ag_decode_text_or_null(&d);
	msg->dropped_why = ag_decode_text_or_null(&d);
	msg->n_missing = ag_read_i64(&d.in);
	msg->n_distinct = ag_read_i64(&d.in);
	msg->min = ag_read_f64(&d.in);
	msg->max = ag_read_f64(&d.in);
	msg->mean = ag_read_f64(&d.in);
	msg->categories_json = ag_decode_text_or_null(&d);
	if (msg->ordinal < 0 || msg->column[0] == '\0' || msg->n_missing < 0 || msg->n_distinct < -1)
		ag_decode_reject(&d);
	return ag_decode_end(&d);
}

void
ag_msg_member_write(AgWriter *out, const AgFittedMember *msg)
{
	ag_write_i32(out, msg->ordinal);
	ag_write_str(out, msg->name);
	ag_write_str(out, msg->family);
	ag_write_i32(out, msg->stack_level);
	ag_write_i32(out, msg->fold);
	ag_write_i32(out, msg->fit_order);
	ag_write_str(out, msg->params_json);
	ag_write_f64(out, msg->score_val);
	ag_write_f64(out, msg->fit_seconds);
	ag_write_f64(out, msg->predict_seconds);
	ag_write_str(out, msg->device);
	ag_write_f64(out, msg->num_gpus);
	ag_write_i32(out, msg->num_cpus);
	ag_write_u8(out, msg->can_infer);
	ag_write_f64(out, msg->temperature);
	ag_write_u32(out, (uint32_t) msg->n_shifts);
	for (int i = 0; i < msg->n_shifts; i++)
		ag_write_f64(out, msg->shifts[i]);
	texts_write(out, msg->n_inputs, msg->input_names);
	for (int i = 0; i < msg->n_inputs; i++)
		ag_write_f64(out, msg->input_weights[i]);
	ag_encode_text_or_null(out, msg->history_json);
}

static void
shifts_read(AgDecoder *d, AgFittedMember *msg)
{
	uint32_t n = ag_read_count(&d->in, sizeof(double));
	double *shifts = ag_decode_array(d, n, sizeof *shifts);

	msg->n_shifts = shifts != NULL ? (int) n : 0;
	for (int i = 0; i < msg->n_shifts; i++)
	{
		shifts[i] = ag_decode_number(d);
		if (!isfinite(shifts[i]))
			ag_decode_reject(d);
	}
	msg->shifts = shifts;
}

AgStatus
ag_msg_member_read(AgArena *arena, const void *payload, size_t n, AgFittedMember *msg, AgError *err)
{
	AgDecoder d;
	double *weights;

	ag_decode_begin(&d, "MEMBER", payload, n, arena, err);
	msg->ordinal = ag_read_i32(&d.in);
	msg->name = ag_decode_text(&d);
	msg->family = ag_decode_text(&d);
	msg->stack_level = ag_read_i32(&d.in);
	msg->fold = ag_read_i32(&d.in);
	msg->fit_order = ag_read_i32(&d.in);
	msg->params_json = ag_decode_text(&d);
	msg->score_val = ag_read_f64(&d.in);
	msg->fit_seconds = ag_decode_number(&d);
	msg->predict_seconds = ag_decode_number(&d);
	msg->device = ag_decode_text(&d);
	msg->num_gpus = ag_decode_number(&d);
	msg->num_cpus = ag_read_i32(&d.in);
	msg->can_infer = ag_decode_bool(&d);
	msg->temperature = ag_decode_number(&d);
	if (!(msg->temperature >= 0.0 && msg->temperature <= 1e6))
		ag_decode_reject(&d);
	shifts_read(&d, msg);
	msg->input_names = texts_read(&d, &msg->n_inputs);
	weights = ag_decode_array(&d, (size_t) msg->n_inputs, sizeof(double));
	if (weights == NULL)
		msg->n_inputs = 0;
	for (int i = 0; i < msg->n_inputs; i++)
	{
		weights[i] = ag_decode_number(&d);
		if (isinf(weights[i]))
			ag_decode_reject(&d);
	}
	msg->input_weights = weights;
	msg->history_json = ag_decode_text_or_null(&d);
	if (msg->ordinal < 1 || msg->name[0] == '\0' || msg->family[0] == '\0' ||
		msg->stack_level < 1 || msg->fold < 0 || msg->fit_order < 0 || msg->num_gpus < 0.0 ||
		msg->num_cpus < 0)
		ag_decode_reject(&d);
	return ag_decode_end(&d);
}
