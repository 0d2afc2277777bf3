/* message.c - every message there and back, and damaged in every way a test can think of. */
#include "unit/unit.h"

#include "wire/message.h"

/* A message as bytes, and how to read it again. */
typedef AgStatus (*ReadFn)(AgArena *arena, const void *payload, size_t n, AgError *err);

#define READER(name, type)                                                                         \
	static AgStatus read_##name(AgArena *arena, const void *payload, size_t n, AgError *err)       \
	{                                                                                              \
		type msg;                                                                                  \
		return ag_msg_##name##_read(arena, payload, n, &msg, err);                                 \
	}
READER(hello, AgMsgHello)
READER(job, AgMsgJob)
READER(need, AgMsgNeed)
READER(grant, AgMsgGrant)
READER(log, AgMsgLog)
READER(progress, AgMsgProgress)
READER(predictor, AgFittedPredictor)
READER(feature, AgFittedFeature)
READER(member, AgFittedMember)
READER(done, AgMsgDone)

static AgStatus
read_error(AgArena *arena, const void *payload, size_t n, AgError *err)
{
	AgError msg;

	(void) arena;
	return ag_msg_error_read(payload, n, &msg, err);
}

static AgStatus
read_part(AgArena *arena, const void *payload, size_t n, AgError *err)
{
	AgMsgPart msg;

	(void) arena;
	return ag_msg_part_read(payload, n, &msg, err);
}

/* Cut short, prolonged, each byte changed, each allocation failed: errors that are named, nothing else. */
static void
torture(AgMem *mem, const AgWriter *out, ReadFn read)
{
	AgArena arena;
	AgError err;

	ag_arena_init(&arena, mem);
	for (size_t n = 0; n <= out->size; n++)
	{
		uint8_t *copy = malloc(n ? n : 1);

		memcpy(copy, out->data, n);
		ag_error_init(&err);
		AG_CHECK_EQ(read(&arena, copy, n, &err), n == out->size ? AG_OK : AG_ERR_PROTOCOL);
		free(copy);
	}
	for (size_t at = 0; at < out->size; at++)
		for (int how = 0; how < 3; how++)
		{
			uint8_t *copy = malloc(out->size);
			AgStatus status;

			memcpy(copy, out->data, out->size);
			copy[at] = how == 0 ? 0 : how == 1 ? 0xff : (uint8_t) (copy[at] ^ 1);
			ag_error_init(&err);
			status = read(&arena, copy, out->size, &err);
			AG_CHECK(status == AG_OK || status == AG_ERR_PROTOCOL);
			free(copy);
		}
	/* a byte too many */
	{
		uint8_t *longer = calloc(1, out->size + 1);

		memcpy(longer, out->data, out->size);
		ag_error_init(&err);
		AG_CHECK_EQ(read(&arena, longer, out->size + 1, &err), AG_ERR_PROTOCOL);
		free(longer);
	}
	ag_arena_free(&arena);
	for (int64_t after = 0; after < 4; after++)
	{
		AgStatus status;

		mem->fail_after = after;
		ag_error_init(&err);
		status = read(&arena, out->data, out->size, &err);
		AG_CHECK(status == AG_OK || status == AG_ERR_MEMORY);
		mem->fail_after = -1;
		ag_arena_free(&arena);
	}
}

/* Needs and grants of GPUs that make no sense. */
static void
wrong_shares(AgMem *mem, AgArena *arena)
{
	static const AgMsgNeed needs[] = {
		{1, 1, {61, 61, 61}, false, 1, {0}},  /* a training on more than a GPU */
		{1, 1, {60, 90, 60}, false, 1, {0}},  /* at least more than at most */
		{1, 1, {60, 0, 30}, false, 1, {0}},   /* less than a training at most */
		{1, 1, {-1, 0, 30}, false, 1, {0}},   /* less than nothing */
		{1, 1, {60, 0, 3900}, false, 1, {0}}, /* more than 64 GPUs */
		{1, 1, {60, 0, 60}, false, 2, {1, 1}}, {1, 1, {60, 0, 60}, false, 1, {64}},
		{1, 1, {60, 0, 60}, false, 1, {-1}},
	};
	static const AgMsgGrant grants[] = {
		{1, 1, 1.0, 0.9, 1, {{0, 0}}},           {1, 1, 1.0, 0.9, 1, {{0, 61}}},
		{1, 1, 1.0, 0.9, 2, {{2, 60}, {2, 60}}}, {1, 1, 1.0, 0.9, 1, {{64, 60}}},
		{1, 1, 1.0, 1.1, 1, {{0, 60}}},          {1, 1, 1.0, -0.1, 0, {{0, 0}}},
	};
	AgMsgNeed need;
	AgMsgGrant grant;
	AgWriter out;
	AgError err;

	ag_writer_init(&out, mem);
	for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++)
	{
		ag_error_init(&err);
		out.size = 0;
		ag_msg_need_write(&out, &needs[i]);
		AG_CHECK_EQ(ag_msg_need_read(arena, out.data, out.size, &need, &err), AG_ERR_PROTOCOL);
	}
	for (size_t i = 0; i < sizeof grants / sizeof grants[0]; i++)
	{
		ag_error_init(&err);
		out.size = 0;
		ag_msg_grant_write(&out, &grants[i]);
		AG_CHECK_EQ(ag_msg_grant_read(arena, out.data, out.size, &grant, &err), AG_ERR_PROTOCOL);
	}
	ag_writer_free(&out);
}

static void
small_messages(AgMem *mem, AgArena *arena)
{
	AgWriter out;
	AgError err;

	ag_error_init(&err);
	ag_writer_init(&out, mem);
	{
		AgMsgHello a = {AG_WIRE_VERSION, "0.1.0+abc"}, b;

		ag_msg_hello_write(&out, &a);
		AG_CHECK_EQ(ag_msg_hello_read(arena, out.data, out.size, &b, &err), AG_OK);
		AG_CHECK_EQ(b.wire_version, AG_WIRE_VERSION);
		AG_CHECK_STR(b.build_id, "0.1.0+abc");
		torture(mem, &out, read_hello);
		/* a later version's hello may be longer: it must be told from garbage */
		out.size = 0;
		a.wire_version = AG_WIRE_VERSION + 1;
		ag_msg_hello_write(&out, &a);
		ag_write_u64(&out, 7);
		AG_CHECK_EQ(ag_msg_hello_read(arena, out.data, out.size, &b, &err), AG_OK);
		AG_CHECK_EQ(b.wire_version, AG_WIRE_VERSION + 1);
		out.size = 0;
	}
	{
		AgMsgNeed a = {123456789012, 3, {30, 60, 90}, true, 2, {5, 1}}, b;

		ag_msg_need_write(&out, &a);
		AG_CHECK_EQ(ag_msg_need_read(arena, out.data, out.size, &b, &err), AG_OK);
		AG_CHECK_EQ(b.memory_bytes, 123456789012);
		AG_CHECK_EQ(b.num_cpus, 3);
		AG_CHECK(b.gpu.chunk == 30 && b.gpu.least == 60 && b.gpu.most == 90 && b.gpu_waits);
		AG_CHECK(b.n_devices == 2 && b.devices[0] == 5 && b.devices[1] == 1);
		torture(mem, &out, read_need);
		out.size = 0;
	}
	{
		AgMsgGrant a = {1 << 30, 2, INFINITY, 0.9, 2, {{0, 60}, {3, 1}}}, b;

		ag_msg_grant_write(&out, &a);
		AG_CHECK_EQ(ag_msg_grant_read(arena, out.data, out.size, &b, &err), AG_OK);
		AG_CHECK_EQ(b.num_cpus, 2);
		AG_CHECK(isinf(b.time_left));
		AG_CHECK(b.gpu_memory_fraction == 0.9 && b.n_gpus == 2 && b.gpus[1].device == 3 &&
				 b.gpus[1].shares == 1);
		torture(mem, &out, read_grant);
		out.size = 0;
		wrong_shares(mem, arena);
	}
	{
		AgMsgLog a = {AG_LOG_RESOURCES, "Fitting GBM", NULL}, b;

		ag_msg_log_write(&out, &a);
		AG_CHECK_EQ(ag_msg_log_read(arena, out.data, out.size, &b, &err), AG_OK);
		AG_CHECK_EQ(b.level, AG_LOG_RESOURCES);
		AG_CHECK_STR(b.text, "Fitting GBM");
		AG_CHECK_STR(b.hint, "");
		torture(mem, &out, read_log);
		out.size = 0;
	}
	{
		AgMsgProgress a = {"fitting GBM", -1.0, 1.5, 0.25, NAN}, b;

		ag_msg_progress_write(&out, &a);
		AG_CHECK_EQ(ag_msg_progress_read(arena, out.data, out.size, &b, &err), AG_OK);
		AG_CHECK_STR(b.phase, "fitting GBM");
		AG_CHECK(b.fraction == -1.0 && b.elapsed_s == 1.5 && b.done == 0.25 && isnan(b.score));
		torture(mem, &out, read_progress);
		out.size = 0;
	}
	{
		AgMsgDone a = {1 << 20, 2.5, 3, 4000}, b;

		ag_msg_done_write(&out, &a);
		AG_CHECK_EQ(ag_msg_done_read(arena, out.data, out.size, &b, &err), AG_OK);
		AG_CHECK(b.peak_memory_bytes == 1 << 20 && b.cpu_seconds == 2.5 && b.n_parts == 3 &&
				 b.n_part_bytes == 4000);
		torture(mem, &out, read_done);
		out.size = 0;
	}
	ag_writer_free(&out);
}

static void
error_and_part(AgMem *mem)
{
	AgWriter out;
	AgError err, a, b;
	AgMsgPart part = {1, 2, "bytes\0more", 10}, part_read;

	ag_error_init(&err);
	ag_writer_init(&out, mem);
	ag_error_init(&a);
	ag_error_set(&a, AG_ERR_DATA, "label column \"%s\" is constant", "y");
	ag_error_hint(&a, "Choose another.");
	ag_msg_error_write(&out, &a);
	AG_CHECK_EQ(ag_msg_error_read(out.data, out.size, &b, &err), AG_OK);
	AG_CHECK_EQ(b.status, AG_ERR_DATA);
	AG_CHECK_STR(b.message, "label column \"y\" is constant");
	AG_CHECK_STR(b.hint, "Choose another.");
	AG_CHECK_STR(b.detail, "");
	torture(mem, &out, read_error);
	out.size = 0;
	a.status = (AgStatus) 99; /* of a newer build: the text still counts */
	ag_msg_error_write(&out, &a);
	AG_CHECK_EQ(ag_msg_error_read(out.data, out.size, &b, &err), AG_OK);
	AG_CHECK_EQ(b.status, AG_ERR_INTERNAL);
	out.size = 0;
	ag_msg_part_write(&out, &part);
	AG_CHECK_EQ(ag_msg_part_read(out.data, out.size, &part_read, &err), AG_OK);
	AG_CHECK(part_read.member == 1 && part_read.part == 2 && part_read.n_bytes == 10 &&
			 memcmp(part_read.bytes, "bytes\0more", 10) == 0);
	torture(mem, &out, read_part);
	ag_writer_free(&out);
}

static void
job(AgMem *mem, AgArena *arena)
{
	AgOptionEntry entries[] = {{"/ag_args_fit", AG_JSON_OBJECT, "1"},
							   {"/ag_args_fit/num_gpus", AG_JSON_NUMBER, "1"},
							   {"/name", AG_JSON_STRING, "m\xc3\xbcll"}};
	AgColumn columns[] = {{"a", "integer", AG_TYPE_INT32, AG_ROLE_FEATURE},
						  {"y \xc3\xa9", "text", AG_TYPE_TEXT, AG_ROLE_LABEL}};
	AgMsgJob a, b;
	AgWriter out;
	AgError err;

	memset(&a, 0, sizeof a);
	a.n_entries = 3;
	a.entries = entries;
	a.schema.n_columns = 2;
	a.schema.columns = columns;
	a.label_column = 1;
	a.source_name = "public.t";
	a.time_zone = "Europe/Berlin";
	a.raw_text = true;
	a.time_left = 12.5;
	a.time_limit = 300;
	a.memory_limit_bytes = INT64_C(1) << 40;
	a.gpu_fallback = "warn";
	a.num_gpus = 3;
	a.sandbox = true;
	ag_error_init(&err);
	ag_writer_init(&out, mem);
	ag_msg_job_write(&out, &a);
	AG_REQUIRE(ag_msg_job_read(arena, out.data, out.size, &b, &err) == AG_OK);
	AG_CHECK_EQ(b.n_entries, 3);
	AG_CHECK_STR(b.entries[1].path, "/ag_args_fit/num_gpus");
	AG_CHECK_EQ(b.entries[1].type, AG_JSON_NUMBER);
	AG_CHECK_STR(b.entries[1].text, "1");
	AG_CHECK_EQ(b.schema.n_columns, 2);
	AG_CHECK_STR(b.schema.columns[1].name, "y \xc3\xa9");
	AG_CHECK_EQ(b.schema.columns[1].type, AG_TYPE_TEXT);
	AG_CHECK_EQ(b.schema.columns[1].role, AG_ROLE_LABEL);
	AG_CHECK_EQ(b.label_column, 1);
	AG_CHECK_STR(b.source_name, "public.t");
	AG_CHECK_STR(b.time_zone, "Europe/Berlin");
	AG_CHECK(b.raw_text);
	AG_CHECK(b.time_left == 12.5 && b.time_limit == 300);
	AG_CHECK_EQ(b.memory_limit_bytes, INT64_C(1) << 40);
	AG_CHECK_STR(b.gpu_fallback, "warn");
	AG_CHECK_EQ(b.num_gpus, 3);
	AG_CHECK(b.sandbox);
	torture(mem, &out, read_job);

	out.size = 0;
	a.label_column = 0; /* not the label's role */
	ag_msg_job_write(&out, &a);
	AG_CHECK_EQ(ag_msg_job_read(arena, out.data, out.size, &b, &err), AG_ERR_PROTOCOL);
	out.size = 0;
	a.label_column = 2;
	ag_msg_job_write(&out, &a);
	AG_CHECK_EQ(ag_msg_job_read(arena, out.data, out.size, &b, &err), AG_ERR_PROTOCOL);
	out.size = 0;
	a.label_column = 1;
	a.time_left = NAN;
	ag_msg_job_write(&out, &a);
	AG_CHECK_EQ(ag_msg_job_read(arena, out.data, out.size, &b, &err), AG_ERR_PROTOCOL);
	ag_writer_free(&out);
}

static void
results(AgMem *mem, AgArena *arena)
{
	AgClass classes[] = {{"no", 2, NAN, 10}, {"yes", 3, NAN, 4}};
	const char *warnings[] = {"first", "second"};
	const char *inputs[] = {"GBM", "GBM_2"};
	double weights[] = {0.25, 0.75};
	AgFittedPredictor p, q;
	AgFittedFeature f, g;
	AgFittedMember m, k;
	AgWriter out;
	AgError err;

	ag_error_init(&err);
	ag_writer_init(&out, mem);
	memset(&p, 0, sizeof p);
	p.problem = AG_PROBLEM_BINARY;
	p.eval_metric = AG_METRIC_ACCURACY;
	p.n_rows = 14;
	p.n_rows_left_out = 2;
	p.n_classes = 2;
	p.classes = classes;
	p.best_model = "WeightedEnsemble_L2";
	p.score_val = NAN;
	p.fit_seconds = 1.25;
	p.plan_json = "{}";
	p.warnings = warnings;
	p.n_warnings = 2;
	ag_msg_predictor_write(&out, &p);
	AG_REQUIRE(ag_msg_predictor_read(arena, out.data, out.size, &q, &err) == AG_OK);
	AG_CHECK(q.problem == AG_PROBLEM_BINARY && q.eval_metric == AG_METRIC_ACCURACY);
	AG_CHECK(q.n_rows == 14 && q.n_rows_left_out == 2 && q.n_classes == 2);
	AG_CHECK_STR(q.classes[1].name, "yes");
	AG_CHECK(q.classes[1].n_bytes == 3 && q.classes[1].n_rows == 4 && isnan(q.classes[1].number));
	AG_CHECK_STR(q.best_model, "WeightedEnsemble_L2");
	AG_CHECK(isnan(q.score_val));
	AG_CHECK_EQ(q.n_warnings, 2);
	AG_CHECK_STR(q.warnings[1], "second");
	torture(mem, &out, read_predictor);
	out.size = 0;

	memset(&f, 0, sizeof f);
	f.ordinal = 3;
	f.column = "colour";
	f.sql_type = "text";
	f.kind = "category";
	f.is_used = true;
	f.became = "category of 3 levels";
	f.n_distinct = -1;
	f.min = f.max = f.mean = NAN;
	f.categories_json = "[\"a\"]";
	ag_msg_feature_write(&out, &f);
	AG_REQUIRE(ag_msg_feature_read(arena, out.data, out.size, &g, &err) == AG_OK);
	AG_CHECK_STR(g.became, "category of 3 levels");
	AG_CHECK(g.dropped_why == NULL && g.is_used && g.n_distinct == -1 && isnan(g.mean));
	AG_CHECK_STR(g.categories_json, "[\"a\"]");
	torture(mem, &out, read_feature);
	out.size = 0;

	memset(&m, 0, sizeof m);
	m.ordinal = 3;
	m.name = "WeightedEnsemble_L2";
	m.family = "ENS_WEIGHTED";
	m.stack_level = 2;
	m.fold = 3;
	m.fit_order = 3;
	m.params_json = "{}";
	m.score_val = -0.5;
	m.fit_seconds = 1;
	m.predict_seconds = 0.5;
	m.device = "cpu";
	m.num_cpus = 2;
	m.can_infer = true;
	m.n_inputs = 2;
	m.input_names = inputs;
	m.input_weights = weights;
	m.history_json = "{\"val\": [1]}";
	ag_msg_member_write(&out, &m);
	AG_REQUIRE(ag_msg_member_read(arena, out.data, out.size, &k, &err) == AG_OK);
	AG_CHECK(k.n_inputs == 2 && k.input_weights[1] == 0.75 && k.stack_level == 2 && k.fold == 3 &&
			 k.can_infer);
	AG_CHECK_STR(k.input_names[0], "GBM");
	AG_CHECK_STR(k.device, "cpu");
	AG_CHECK_STR(k.history_json, "{\"val\": [1]}");
	torture(mem, &out, read_member);
	ag_writer_free(&out);
}

int
main(void)
{
	AgMem mem;
	AgArena arena;

	ag_mem_init(&mem, INT64_MAX);
	ag_arena_init(&arena, &mem);
	small_messages(&mem, &arena);
	error_and_part(&mem);
	job(&mem, &arena);
	results(&mem, &arena);
	ag_arena_free(&arena);
	AG_CHECK_EQ(mem.used_bytes, 0);
	return ag_unit_done("message");
}
