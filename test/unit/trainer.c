/*
 * trainer.c - the program ag_trainer without a server: this test plays the supervisor.
 *
 * AG_TRAINER names the program; the default is the one built for this test, with the sanitizers.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "unit/unit.h"

#include "engine/base/hash.h"
#include "engine/base/rng.h"
#include "wire/block.h"
#include "wire/message.h"

typedef struct Trainer
{
	pid_t pid;
	int fd;
	char build_id[200];
} Trainer;

/* What one fit is asked to do. */
typedef struct Ask
{
	int n_rows;
	bool classes;   /* a text label of three classes instead of a number */
	uint64_t order; /* seed of the rows' order; 0: as generated */
	int n_cpus;
	const AgOptionEntry *options;
	int n_options;
	double time_left;
	int64_t memory;
	const char *gpu_fallback;
	int cancel_after_ms; /* after the grant; -1: never */
	int wrong_rows;      /* added to the count in END_OF_ROWS */
} Ask;

/* What came back. */
typedef struct Answer
{
	AgError error; /* status AG_OK: DONE came */
	AgProblem problem;
	int64_t n_rows;
	int n_members, n_features, n_warnings, n_warning_lines, n_logs, n_progress, n_parts;
	char best[64];
	char members[512]; /* names */
	char devices[128];
	double score, weight_sum;
	AgHash128 parts; /* of all bytes of all parts */
	char log[16384];
	char hint[512]; /* of the last WARNING */
	int exit_status;
	double seconds_to_end; /* after CANCEL */
	bool in_order;
} Answer;

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double) t.tv_sec + (double) t.tv_nsec * 1e-9;
}

static const char *
program(void)
{
	const char *name = getenv("AG_TRAINER");

	return name != NULL ? name : "build/unit/ag_trainer";
}

static void
start(Trainer *t)
{
	int pair[2];

	AG_REQUIRE(access(program(), X_OK) == 0);
	AG_REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	t->fd = pair[0];
	fcntl(t->fd, F_SETFD, FD_CLOEXEC);
	t->pid = fork();
	AG_REQUIRE(t->pid >= 0);
	if (t->pid == 0)
	{
		if (pair[1] != 3)
		{
			dup2(pair[1], 3);
			close(pair[1]);
		}
		execl(program(), "ag_trainer", (char *) NULL);
		_exit(127);
	}
	close(pair[1]);
}

/* The exit status; -1 when it doesn't end within the time. */
static int
ended(Trainer *t, double seconds)
{
	double until = now() + seconds;
	int status;

	for (;;)
	{
		if (waitpid(t->pid, &status, WNOHANG) == t->pid)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
		if (now() > until)
		{
			kill(t->pid, SIGKILL);
			waitpid(t->pid, &status, 0);
			return -1;
		}
		usleep(2000);
	}
}

static bool
put(int fd, const void *bytes, size_t n)
{
	for (size_t at = 0; at < n;)
	{
		ssize_t sent = send(fd, (const char *) bytes + at, n - at, MSG_NOSIGNAL);

		if (sent <= 0)
			return false;
		at += (size_t) sent;
	}
	return true;
}

static bool
put_frame(int fd, AgFrameType type, AgWriter *out)
{
	uint8_t header[AG_FRAME_HEADER];
	bool sent;

	ag_frame_header_write(header, type, (uint32_t) out->size);
	sent = put(fd, header, sizeof header) && put(fd, out->data, out->size);
	out->size = 0;
	return sent;
}

static bool
get(int fd, void *bytes, size_t n)
{
	for (size_t at = 0; at < n;)
	{
		struct pollfd p = {fd, POLLIN, 0};
		ssize_t got;

		if (poll(&p, 1, 60000) <= 0)
			return false;
		got = recv(fd, (char *) bytes + at, n - at, 0);
		if (got <= 0)
			return false;
		at += (size_t) got;
	}
	return true;
}

/* The next frame; its payload is malloc'ed. */
static bool
get_frame(int fd, AgFrameHeader *header, uint8_t **payload)
{
	uint8_t bytes[AG_FRAME_HEADER];
	AgError err;

	ag_error_init(&err);
	*payload = NULL;
	if (!get(fd, bytes, sizeof bytes) || ag_frame_header_read(bytes, header, &err) != AG_OK)
		return false;
	*payload = malloc(header->n_bytes + 1);
	return get(fd, *payload, header->n_bytes);
}

static void
greet(AgMem *mem, Trainer *t, const char *build_id)
{
	AgFrameHeader header;
	uint8_t *payload;
	AgMsgHello hello = {AG_WIRE_VERSION, NULL};
	AgArena arena;
	AgWriter out;
	AgError err;

	ag_error_init(&err);
	ag_arena_init(&arena, mem);
	ag_writer_init(&out, mem);
	AG_REQUIRE(get_frame(t->fd, &header, &payload) && header.type == AG_FRAME_HELLO);
	AG_REQUIRE(ag_msg_hello_read(&arena, payload, header.n_bytes, &hello, &err) == AG_OK);
	if (build_id != NULL)
		hello.build_id = build_id;
	ag_msg_hello_write(&out, &hello);
	AG_CHECK(put_frame(t->fd, AG_FRAME_HELLO, &out));
	free(payload);
	ag_writer_free(&out);
	ag_arena_free(&arena);
}

static AgColumn columns[] = {
	{"x", "double precision", AG_TYPE_FLOAT64, AG_ROLE_FEATURE},
	{"n", "integer", AG_TYPE_INT32, AG_ROLE_FEATURE},
	{"colour", "text", AG_TYPE_TEXT, AG_ROLE_FEATURE},
	{"at", "timestamp", AG_TYPE_TIMESTAMP, AG_ROLE_FEATURE},
	{"y", "double precision", AG_TYPE_FLOAT64, AG_ROLE_LABEL},
};

/* Row i of the made-up table: something to learn, some NULLs, some noise. */
static void
row_make(int i, bool classes, AgValue *v)
{
	static const char *const colours[] = {"red", "green", "blue", "grey"};
	static const char *const names[] = {"low", "mid", "high"};
	double x = ag_random_unit(1, (uint64_t) i) * 4 - 2;
	int n = (int) ag_random_below(2, (uint64_t) i, 100);
	int colour = (int) ag_random_below(3, (uint64_t) i, 4);
	double y = x * x + 0.02 * n + colour + 0.2 * ag_random_unit(4, (uint64_t) i);

	memset(v, 0, 5 * sizeof *v);
	v[0].v.f64 = x;
	v[0].is_null = i % 17 == 3;
	v[1].v.i32 = n;
	v[2].v.s.text = colours[colour];
	v[2].v.s.n_bytes = (uint32_t) strlen(colours[colour]);
	v[3].v.i64 = INT64_C(600000000000000) + (int64_t) i * 3600000000;
	v[4].v.f64 = y;
	if (classes)
	{
		int k = y < 2.5 ? 0 : y < 4.5 ? 1 : 2;

		v[4].v.s.text = names[k];
		v[4].v.s.n_bytes = (uint32_t) strlen(names[k]);
	}
	v[4].is_null = i == 5;
}

static int *
order_make(const Ask *ask)
{
	int *order = malloc(sizeof *order * (size_t) (ask->n_rows + 1));

	for (int i = 0; i < ask->n_rows; i++)
		order[i] = i;
	for (int i = ask->n_rows - 1; i > 0 && ask->order != 0; i--)
	{
		int j = (int) ag_random_below(ask->order, (uint64_t) i, (uint32_t) i + 1);
		int k = order[i];

		order[i] = order[j];
		order[j] = k;
	}
	return order;
}

static AgSchema
schema_of(const Ask *ask)
{
	AgSchema schema = {5, columns};

	columns[4].type = ask->classes ? AG_TYPE_TEXT : AG_TYPE_FLOAT64;
	columns[4].sql_type = ask->classes ? "text" : "double precision";
	return schema;
}

static bool
send_job(AgMem *mem, Trainer *t, const Ask *ask)
{
	AgMsgJob job;
	AgWriter out;
	bool sent;

	memset(&job, 0, sizeof job);
	job.n_entries = ask->n_options;
	job.entries = (AgOptionEntry *) (uintptr_t) ask->options;
	job.schema = schema_of(ask);
	job.label_column = 4;
	job.source_name = "public.made_up";
	job.time_zone = "UTC";
	job.time_left = ask->time_left;
	job.time_limit = ask->time_left;
	job.memory_limit_bytes = ask->memory;
	job.gpu_fallback = ask->gpu_fallback;
	job.num_gpus = -1;
	ag_writer_init(&out, mem);
	ag_msg_job_write(&out, &job);
	sent = put_frame(t->fd, AG_FRAME_JOB, &out);
	ag_writer_free(&out);
	return sent;
}

/* The rows; the trainer may hang up half-way, when it has something to say. */
static bool
send_rows(AgMem *mem, Trainer *t, const Ask *ask)
{
	AgSchema schema = schema_of(ask);
	AgBlockBuilder *builder;
	AgValue values[5];
	AgWriter out;
	AgError err;
	int *order = order_make(ask);
	bool sent = true;

	ag_error_init(&err);
	ag_writer_init(&out, mem);
	AG_REQUIRE(ag_block_builder_create(mem, &schema, &builder, &err) == AG_OK);
	for (int i = 0; i < ask->n_rows && sent; i++)
	{
		row_make(order[i], ask->classes, values);
		AG_REQUIRE(ag_block_builder_add(builder, values, &err) == AG_OK);
		if (ag_block_builder_full(builder) || i % 1000 == 999 || i == ask->n_rows - 1)
		{
			AG_REQUIRE(ag_block_builder_take(builder, &out, &err) == AG_OK);
			sent = put_frame(t->fd, AG_FRAME_BLOCK, &out);
		}
	}
	if (sent)
	{
		ag_write_u64(&out, (uint64_t) (ask->n_rows + ask->wrong_rows));
		sent = put_frame(t->fd, AG_FRAME_END_OF_ROWS, &out);
	}
	ag_block_builder_free(builder);
	ag_writer_free(&out);
	free(order);
	return sent;
}

static void
send_grant(AgMem *mem, Trainer *t, const Ask *ask)
{
	AgMsgGrant grant = {
		.memory_bytes = ask->memory, .num_cpus = ask->n_cpus, .time_left = ask->time_left};
	AgWriter out;

	ag_writer_init(&out, mem);
	ag_msg_grant_write(&out, &grant);
	put_frame(t->fd, AG_FRAME_GRANT, &out);
	ag_writer_free(&out);
}

static void
text_add(char *to, size_t size, const char *text)
{
	size_t at = strlen(to);

	snprintf(to + at, size - at, "%s\n", text);
}

/* Takes one result frame apart. Results come in their order, and nothing but log and progress in between. */
static void
result_read(AgArena *arena, const AgFrameHeader *header, const uint8_t *payload, Answer *a,
			int *stage)
{
	AgFittedPredictor predictor;
	AgFittedFeature feature;
	AgFittedMember member;
	AgMsgProgress progress;
	AgMsgPart part;
	AgMsgLog log;
	AgMsgDone done;
	AgError err;

	ag_error_init(&err);
	if (header->type >= AG_FRAME_PREDICTOR)
	{
		a->in_order = a->in_order && (int) header->type >= *stage;
		*stage = (int) header->type;
	}
	switch (header->type)
	{
		case AG_FRAME_LOG:
			AG_CHECK_EQ(ag_msg_log_read(arena, payload, header->n_bytes, &log, &err), AG_OK);
			a->n_logs++;
			text_add(a->log, sizeof a->log, log.text);
			if (log.level == AG_LOG_WARNING)
			{
				a->n_warning_lines++;
				snprintf(a->hint, sizeof a->hint, "%s", log.hint);
			}
			break;
		case AG_FRAME_PROGRESS:
			AG_CHECK_EQ(ag_msg_progress_read(arena, payload, header->n_bytes, &progress, &err),
						AG_OK);
			a->n_progress++;
			break;
		case AG_FRAME_PREDICTOR:
			AG_CHECK_EQ(ag_msg_predictor_read(arena, payload, header->n_bytes, &predictor, &err),
						AG_OK);
			a->problem = predictor.problem;
			a->n_rows = predictor.n_rows;
			a->n_warnings = predictor.n_warnings;
			a->score = predictor.score_val;
			snprintf(a->best, sizeof a->best, "%s", predictor.best_model);
			AG_CHECK_EQ(predictor.n_rows_left_out, 1);
			AG_CHECK(predictor.plan_json[0] == '{');
			break;
		case AG_FRAME_FEATURE:
			AG_CHECK_EQ(ag_msg_feature_read(arena, payload, header->n_bytes, &feature, &err),
						AG_OK);
			AG_CHECK_EQ(feature.ordinal, ++a->n_features);
			AG_CHECK(feature.is_used == (feature.became != NULL));
			break;
		case AG_FRAME_MEMBER:
			AG_CHECK_EQ(ag_msg_member_read(arena, payload, header->n_bytes, &member, &err), AG_OK);
			AG_CHECK_EQ(member.ordinal, ++a->n_members);
			text_add(a->members, sizeof a->members, member.name);
			text_add(a->devices, sizeof a->devices, member.device);
			for (int i = 0; i < member.n_inputs; i++)
				a->weight_sum += member.input_weights[i];
			break;
		case AG_FRAME_PART:
			AG_CHECK_EQ(ag_msg_part_read(payload, header->n_bytes, &part, &err), AG_OK);
			a->parts = ag_hash128_fold(
				a->parts, ag_hash64(part.bytes, part.n_bytes,
									(uint64_t) part.member << 32 | (uint32_t) part.part));
			a->n_parts++;
			break;
		case AG_FRAME_DONE:
			AG_CHECK_EQ(ag_msg_done_read(arena, payload, header->n_bytes, &done, &err), AG_OK);
			AG_CHECK_EQ(done.n_parts, a->n_parts);
			AG_CHECK(done.peak_memory_bytes > 0 && done.cpu_seconds > 0);
			break;
		case AG_FRAME_ERROR:
			AG_CHECK_EQ(ag_msg_error_read(payload, header->n_bytes, &a->error, &err), AG_OK);
			break;
		default:
			AG_CHECK(!"a frame that the trainer never sends");
	}
}

/* Reads until DONE, ERROR or end of file, granting what is needed on the way. */
static void
read_answer(AgMem *mem, Trainer *t, const Ask *ask, Answer *a)
{
	AgFrameHeader header;
	uint8_t *payload;
	AgArena arena;
	AgError err;
	AgMsgNeed need;
	int stage = 0;
	double cancelled = 0;
	bool last = false;

	ag_arena_init(&arena, mem);
	a->in_order = true;
	while (!last && get_frame(t->fd, &header, &payload))
	{
		ag_error_init(&err);
		if (header.type == AG_FRAME_NEED)
		{
			AG_CHECK_EQ(ag_msg_need_read(&arena, payload, header.n_bytes, &need, &err), AG_OK);
			AG_CHECK(need.memory_bytes > 0 && need.memory_bytes <= ask->memory);
			send_grant(mem, t, ask);
			if (ask->cancel_after_ms >= 0)
			{
				AgWriter out;

				usleep((useconds_t) ask->cancel_after_ms * 1000);
				ag_writer_init(&out, mem);
				put_frame(t->fd, AG_FRAME_CANCEL, &out);
				cancelled = now();
			}
		}
		else
			result_read(&arena, &header, payload, a, &stage);
		last = header.type == AG_FRAME_DONE || header.type == AG_FRAME_ERROR;
		free(payload);
		payload = NULL;
	}
	free(payload);
	AG_CHECK(last);
	if (cancelled > 0)
		a->seconds_to_end = now() - cancelled;
	ag_arena_free(&arena);
}

static void
fit(const Ask *ask, Answer *a)
{
	AgMem mem;
	Trainer t;

	memset(a, 0, sizeof *a);
	ag_mem_init(&mem, INT64_MAX);
	start(&t);
	greet(&mem, &t, NULL);
	if (send_job(&mem, &t, ask))
		send_rows(&mem, &t, ask);
	read_answer(&mem, &t, ask, a);
	close(t.fd);
	a->exit_status = ended(&t, 10);
	AG_CHECK_EQ(mem.used_bytes, 0);
}

static const Ask usual = {
	.n_rows = 1200,
	.n_cpus = 2,
	.time_left = (double) INFINITY,
	.memory = INT64_C(1) << 30,
	.gpu_fallback = "warn",
	.cancel_after_ms = -1,
};

/* Few rounds: this is about the way of a fit, not its quality. */
static const AgOptionEntry quick[] = {
	{"/hyperparameters", AG_JSON_OBJECT, "1"},
	{"/hyperparameters/GBM", AG_JSON_ARRAY, "2"},
	{"/hyperparameters/GBM/0", AG_JSON_OBJECT, "1"},
	{"/hyperparameters/GBM/0/num_boost_round", AG_JSON_NUMBER, "40"},
	{"/hyperparameters/GBM/1", AG_JSON_OBJECT, "3"},
	{"/hyperparameters/GBM/1/num_boost_round", AG_JSON_NUMBER, "40"},
	{"/hyperparameters/GBM/1/extra_trees", AG_JSON_BOOL, "true"},
	{"/hyperparameters/GBM/1/max_bin", AG_JSON_NUMBER, "63"},
	{"/verbosity", AG_JSON_NUMBER, "3"},
};
#define N_QUICK ((int) (sizeof quick / sizeof quick[0]))

static void
regression_and_classes(void)
{
	Ask ask = usual;
	Answer first, again;

	ask.options = quick;
	ask.n_options = N_QUICK;
	for (int classes = 0; classes < 2; classes++)
	{
		ask.classes = classes;
		ask.order = 0;
		ask.n_cpus = 1;
		fit(&ask, &first);
		AG_CHECK_STR(first.error.message, "");
		AG_CHECK_EQ(first.exit_status, 0);
		AG_CHECK(first.in_order);
		AG_CHECK_EQ(first.problem, classes ? AG_PROBLEM_MULTICLASS : AG_PROBLEM_REGRESSION);
		AG_CHECK_EQ(first.n_rows, 1199);
		AG_CHECK_EQ(first.n_features, 4);
		AG_CHECK_STR(first.members, "GBM\nGBM_2\nWeightedEnsemble_L2\n");
		AG_CHECK_STR(first.devices, "cpu\ncpu\ncpu\n");
		AG_CHECK_NEAR(first.weight_sum, 1.0, 1e-9);
		AG_CHECK_EQ(first.n_parts, 4); /* pipeline, two models, predictions of validation rows */
		AG_CHECK_EQ(first.n_warning_lines, 0);
		AG_CHECK(classes ? first.score > 0.7 : first.score < 0 && first.score > -1);
		AG_CHECK(strstr(first.log, "Fitting GBM with 'num_gpus': 0, 'num_cpus': 1") != NULL);
		AG_CHECK(strstr(first.log, "1 row is left out") != NULL);
		/* any order of the rows, any number of CPUs: the same bytes */
		for (int n_cpus = 1; n_cpus <= 5; n_cpus += n_cpus == 1 ? 1 : 3)
		{
			ask.n_cpus = n_cpus;
			ask.order = (uint64_t) n_cpus * 77;
			fit(&ask, &again);
			AG_CHECK(again.parts.lo == first.parts.lo && again.parts.hi == first.parts.hi);
			AG_CHECK(again.score == first.score);
			AG_CHECK_STR(again.best, first.best);
		}
	}
}

static void
seeds(void)
{
	AgOptionEntry options[N_QUICK + 1];
	Ask ask = usual;
	Answer zero, one;

	memcpy(options, quick, sizeof quick);
	options[N_QUICK] = (AgOptionEntry){"/random_state", AG_JSON_NUMBER, "1"};
	ask.options = options;
	ask.n_options = N_QUICK;
	fit(&ask, &zero);
	ask.n_options++;
	fit(&ask, &one);
	AG_CHECK(zero.parts.lo != one.parts.lo);
}

static void
silence(void)
{
	AgOptionEntry options[N_QUICK];
	Ask ask = usual;
	Answer a;

	memcpy(options, quick, sizeof quick);
	options[N_QUICK - 1].text = "0";
	ask.options = options;
	ask.n_options = N_QUICK;
	fit(&ask, &a);
	AG_CHECK_EQ(a.error.status, AG_OK);
	AG_CHECK_EQ(a.n_logs, 0);
}

static void
gpu_asked(void)
{
	AgOptionEntry options[N_QUICK + 2];
	Ask ask = usual;
	Answer a;

	memcpy(options, quick, sizeof quick);
	options[N_QUICK] = (AgOptionEntry){"/ag_args_fit", AG_JSON_OBJECT, "1"};
	options[N_QUICK + 1] = (AgOptionEntry){"/ag_args_fit/num_gpus", AG_JSON_NUMBER, "1"};
	ask.options = options;
	ask.n_options = N_QUICK + 2;
	fit(&ask, &a);
	AG_CHECK_EQ(a.error.status, AG_OK);
	AG_CHECK_EQ(a.n_warning_lines, 1);
	AG_CHECK_EQ(a.n_warnings, 1);
	AG_CHECK(strstr(a.log, "fitted on the CPU") != NULL);
	AG_CHECK(a.hint[0] != '\0');
	ask.gpu_fallback = "error";
	fit(&ask, &a);
	AG_CHECK_EQ(a.error.status, AG_ERR_SYSTEM);
	AG_CHECK(a.error.hint[0] != '\0');
	AG_CHECK_EQ(a.exit_status, 1);
}

static void
faults(void)
{
	static const AgOptionEntry misspelt[] = {{"/verbosty", AG_JSON_NUMBER, "1"}};
	Ask ask = usual;
	Answer a;

	ask.options = misspelt;
	ask.n_options = 1;
	fit(&ask, &a);
	AG_CHECK_EQ(a.error.status, AG_ERR_OPTION);
	AG_CHECK_STR(a.error.hint, "Did you mean \"verbosity\"?");
	ask = usual;
	ask.wrong_rows = 1;
	fit(&ask, &a);
	AG_CHECK_EQ(a.error.status, AG_ERR_PROTOCOL);
	ask = usual;
	ask.n_rows = 0;
	fit(&ask, &a);
	AG_CHECK_EQ(a.error.status, AG_ERR_DATA);
	ask = usual;
	ask.time_left = 0.0;
	fit(&ask, &a);
	AG_CHECK_EQ(a.error.status, AG_ERR_TIME);
	AG_CHECK(strstr(a.error.message, "no model could be fitted within the time limit") != NULL);
	ask = usual;
	ask.n_rows = 200000;
	ask.memory = INT64_C(6) << 20;
	fit(&ask, &a);
	AG_CHECK_EQ(a.error.status, AG_ERR_MEMORY);
	AG_CHECK(a.error.hint[0] != '\0');
}

/* A time limit keeps the best so far, and is kept itself. */
static void
time_limit(void)
{
	static const AgOptionEntry endless[] = {
		{"/hyperparameters", AG_JSON_OBJECT, "1"},
		{"/hyperparameters/GBM", AG_JSON_OBJECT, "3"},
		{"/hyperparameters/GBM/num_boost_round", AG_JSON_NUMBER, "100000"},
		{"/hyperparameters/GBM/learning_rate", AG_JSON_NUMBER, "0.0001"},
		{"/hyperparameters/GBM/ag.early_stop", AG_JSON_NULL, ""},
	};
	Ask ask = usual;
	Answer a;
	double began = now();

	ask.options = endless;
	ask.n_options = 5;
	ask.n_rows = 5000;
	ask.time_left = 3;
	fit(&ask, &a);
	AG_CHECK_EQ(a.error.status, AG_OK);
	AG_CHECK(strstr(a.log, "ended by time") != NULL);
	AG_CHECK(now() - began < 4.0);
	AG_CHECK(now() - began > 1.5);
	AG_CHECK(a.n_progress >= 2 && a.n_progress <= 9);
	/* and CANCEL ends the same fit at once */
	ask.time_left = (double) INFINITY;
	ask.cancel_after_ms = 300;
	fit(&ask, &a);
	AG_CHECK_EQ(a.error.status, AG_ERR_CANCELLED);
	AG_CHECK(a.seconds_to_end < 1.0);
	AG_CHECK_EQ(a.exit_status, 1);
}

/* Whoever made the socket is gone: so is the trainer, wherever it stood. */
static void
hanging_up(void)
{
	AgMem mem;
	Trainer t;
	Ask ask = usual;
	AgFrameHeader header;
	uint8_t *payload;

	ag_mem_init(&mem, INT64_MAX);
	for (int stage = 0; stage < 5; stage++)
	{
		start(&t);
		if (stage >= 1)
			greet(&mem, &t, NULL);
		if (stage >= 2)
			AG_CHECK(send_job(&mem, &t, &ask));
		if (stage == 3)
			AG_CHECK(put(t.fd, "AGF1\3\0\0\0\xff\0\0\0\0\0\0\0half a block", 28));
		if (stage == 4)
		{
			ask.n_rows = 50000;
			AG_CHECK(send_rows(&mem, &t, &ask));
			AG_CHECK(get_frame(t.fd, &header, &payload) && header.type == AG_FRAME_NEED);
			free(payload);
			send_grant(&mem, &t, &ask);
			usleep(200000); /* it computes */
		}
		close(t.fd);
		AG_CHECK_EQ(ended(&t, 2), 1);
	}
}

static void
garbage(void)
{
	AgMem mem;
	Trainer t;
	Answer a;
	Ask ask = usual;
	AgWriter out;

	ag_mem_init(&mem, INT64_MAX);
	ag_writer_init(&out, &mem);
	for (int how = 0; how < 6; how++)
	{
		memset(&a, 0, sizeof a);
		start(&t);
		greet(&mem, &t, how == 0 ? "another build" : NULL);
		if (how == 1)
			put(t.fd, "what is this? I am no frame", 27);
		if (how == 2) /* a frame in the wrong place */
			put_frame(t.fd, AG_FRAME_GRANT, &out);
		if (how == 3) /* a job of nonsense */
		{
			ag_write_bytes(&out, "nonsense", 8);
			put_frame(t.fd, AG_FRAME_JOB, &out);
		}
		if (how >= 4)
			send_job(&mem, &t, &ask);
		if (how == 4) /* a block of nonsense */
		{
			ag_write_bytes(&out, "nonsense", 8);
			put_frame(t.fd, AG_FRAME_BLOCK, &out);
		}
		if (how == 5) /* longer than its budget lets it read */
		{
			uint8_t header[AG_FRAME_HEADER];

			ag_frame_header_write(header, AG_FRAME_BLOCK, AG_FRAME_MAX + 1);
			put(t.fd, header, sizeof header);
		}
		read_answer(&mem, &t, &ask, &a);
		AG_CHECK_EQ(a.error.status, how == 0 ? AG_ERR_SYSTEM : AG_ERR_PROTOCOL);
		close(t.fd);
		AG_CHECK_EQ(ended(&t, 2), 1);
	}
	ag_writer_free(&out);
}

int
main(void)
{
	signal(SIGPIPE, SIG_IGN);
	regression_and_classes();
	seeds();
	silence();
	gpu_asked();
	faults();
	time_limit();
	hanging_up();
	garbage();
	return ag_unit_done("trainer");
}
