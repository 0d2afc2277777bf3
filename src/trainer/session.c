/*
 * session.c - one fit, from hello to done.
 *
 *   trainer                      supervisor
 *   HELLO             ->  <-     HELLO
 *                         <-     JOB, BLOCK ..., END_OF_ROWS
 *   NEED              ->
 *                         <-     GRANT (when memory and CPUs are free)
 *   LOG, PROGRESS ... ->  <-     CANCEL, at any time; hanging up means the same, at once
 *   PREDICTOR, FEATURE ..., MEMBER ..., PART ..., DONE   (or ERROR) ->
 *
 * While rows arrive the main thread reads; while it computes a second thread listens for CANCEL and end of file.
 */
#include "trainer/session.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/base/threads.h"
#include "engine/data/table.h"
#include "trainer/confine.h"
#include "trainer/gpu.h"
#include "trainer/host.h"
#include "trainer/sandbox.h"
#include "wire/block.h"

/* Before the job names its budget: enough for any JOB frame. */
#define HELLO_BUDGET_BYTES (INT64_C(512) << 20)
/* To plan with, where all CPUs that there are are asked for. */
#define MANY_CPUS 16
/* Of the process's own memory, that a CUDA driver may map beside what the engine counts. */
#define DRIVER_BYTES (INT64_C(8) << 30)

typedef struct Session
{
	AgMem mem;
	AgError err;
	AgArena arena;
	AgChannel channel;
	AgHost host;
	AgContext ctx;
	_Atomic bool cancel;
	const char *build_id;
	uint8_t *payload; /* of the last frame */
	size_t room;
	AgMsgJob job;
	AgFitOptions *options;
	AgTable *table;
	AgFitJob fit;
	AgCudaTable module;
	AgPool *pool;
	int64_t n_block_bytes;
	int64_t reading_since_ns;
} Session;

/* The next frame. Hanging up ends the program: nobody is left to tell, and nothing needs to be put away. */
static AgStatus
receive(Session *s, AgFrameHeader *header)
{
	AgArrival arrival = ag_channel_receive(&s->channel, header, &s->payload, &s->room, &s->err);

	if (arrival == AG_HUNG_UP)
		_exit(1);
	if (arrival == AG_BROKEN)
		return s->err.status;
	if (header->type == AG_FRAME_CANCEL)
	{
		atomic_store(&s->cancel, true);
		return ag_check_cancel(&s->ctx);
	}
	return AG_OK;
}

static AgStatus
unexpected(Session *s, const AgFrameHeader *header, const char *wanted)
{
	return ag_error_set(&s->err, AG_ERR_PROTOCOL,
						"the trainer got a frame of type %d and waited for %s", (int) header->type,
						wanted);
}

static AgStatus
greet(Session *s)
{
	AgMsgHello ours = {AG_WIRE_VERSION, s->build_id}, theirs;
	AgFrameHeader header;
	AgWriter out;

	ag_writer_init(&out, &s->mem);
	ag_msg_hello_write(&out, &ours);
	AG_TRY(ag_host_send(&s->host, AG_FRAME_HELLO, &out));
	AG_TRY(receive(s, &header));
	if (header.type != AG_FRAME_HELLO)
		return unexpected(s, &header, "HELLO");
	AG_TRY(ag_msg_hello_read(&s->arena, s->payload, header.n_bytes, &theirs, &s->err));
	if (theirs.wire_version != AG_WIRE_VERSION || strcmp(theirs.build_id, s->build_id) != 0)
	{
		ag_error_set(
			&s->err, AG_ERR_SYSTEM,
			"the program ag_trainer (%s) and the library ag_pg.so (%s) are of different builds",
			s->build_id, theirs.build_id);
		ag_error_hint(&s->err,
					  "The package was changed while the server ran: connect again, and if that "
					  "does not help, install ag_pg again.");
		return AG_ERR_SYSTEM;
	}
	return AG_OK;
}

/* Seconds from now as a moment; too far away is never. */
static int64_t
moment_in(double seconds)
{
	if (!(seconds < 1e9))
		return INT64_MAX;
	return ag_clock_ns() + (int64_t) (seconds * 1e9);
}

/* A kernel without seccomp is no reason to refuse: whoever looks is told. */
static void
confine(Session *s, AgSandbox sandbox)
{
#if !defined(__SANITIZE_ADDRESS__) /* its reports open files */
	if (!s->job.sandbox)
		ag_log(&s->ctx, AG_LOG_RESOURCES,
			   "The trainer runs without a sandbox (ag_pg.sandbox is off)");
	else if (ag_sandbox_enter(sandbox))
		ag_log(&s->ctx, AG_LOG_RESOURCES, "The trainer runs in a sandbox, %s",
			   sandbox == AG_SANDBOX_CPU ? "for training on CPUs" : "for training on GPUs");
	else
		ag_log(&s->ctx, AG_LOG_RESOURCES, "The trainer runs without a sandbox: %s",
			   strerror(errno));
#else
	(void) s;
	(void) sandbox;
#endif
}

/* Before the driver, which starts threads that it couldn't reach. A kernel without it: as above. */
static void
confine_files(Session *s)
{
#if !defined(__SANITIZE_ADDRESS__)
	if (!s->job.sandbox)
		return;
	if (ag_sandbox_limit_files())
		ag_log(&s->ctx, AG_LOG_RESOURCES,
			   "Of files the trainer sees those only that a GPU's driver needs");
	else
		ag_log(&s->ctx, AG_LOG_RESOURCES, "The files that the trainer sees are not limited: %s",
			   strerror(errno));
#else
	(void) s;
#endif
}

/* JOB: options and schema; the memory budget holds from here on. */
static AgStatus
begin_job(Session *s)
{
	AgFrameHeader header;
	double gone = 0.0;

	AG_TRY(receive(s, &header));
	if (header.type != AG_FRAME_JOB)
		return unexpected(s, &header, "JOB");
	AG_TRY(ag_msg_job_read(&s->arena, s->payload, header.n_bytes, &s->job, &s->err));
	s->mem.limit_bytes = s->job.memory_limit_bytes;
	AG_TRY(ag_options_parse(&s->mem, s->job.entries, s->job.n_entries, &s->options, &s->err));
	if (isfinite(s->job.time_limit) && isfinite(s->job.time_left))
		gone = s->job.time_limit - s->job.time_left;
	s->fit.options = s->options;
	s->fit.label_name = s->job.schema.columns[s->job.label_column].name;
	s->fit.time_zone = s->job.time_zone;
	s->fit.raw_text = s->job.raw_text;
	s->fit.started_ns = ag_clock_ns() - (int64_t) (fmin(fmax(gone, 0.0), 1e9) * 1e9);
	/* what isn't on this machine won't come by waiting */
	s->fit.gpu_required = strcmp(s->job.gpu_fallback, "warn") != 0;
	s->fit.gpu_limit = s->job.num_gpus;
	s->ctx.deadline_ns = moment_in(s->job.time_left);
	s->host.verbosity = s->options->verbosity;
	s->host.started_ns = s->fit.started_ns;
	if (ag_fit_asks_gpu(s->options) && s->job.num_gpus != 0)
	{
		confine_files(s);
		/* before the limit of memory: the driver maps what it likes, and gives it back */
		ag_gpu_probe(&s->fit.gpu, &s->module);
	}
	else
		confine(s, AG_SANDBOX_CPU);
	ag_confine_memory(s->job.memory_limit_bytes, 1);
	AG_TRY(ag_fit_check_gpu(&s->fit, &s->err));
	return ag_table_create(&s->ctx, &s->job.schema, &s->table);
}

static AgStatus
append_block(Session *s, const AgFrameHeader *header, AgBlockView *view)
{
	AG_TRY(ag_block_read(s->payload, header->n_bytes, &s->job.schema, view, &s->err));
	s->n_block_bytes += header->n_bytes;
	return ag_table_append(&s->ctx, s->table, view->n_rows, view->values, view->nulls, view->texts);
}

static AgStatus
end_rows(Session *s, const AgFrameHeader *header)
{
	AgReader in;
	uint64_t n_rows;
	double seconds = (double) (ag_clock_ns() - s->reading_since_ns) * 1e-9;

	ag_reader_init(&in, s->payload, header->n_bytes);
	n_rows = ag_read_u64(&in);
	if (!ag_reader_done(&in) || n_rows != (uint64_t) s->table->n_rows)
		return ag_error_set(&s->err, AG_ERR_PROTOCOL,
							"the trainer got %lld rows, but %llu were sent",
							(long long) s->table->n_rows, (unsigned long long) n_rows);
	ag_log(&s->ctx, AG_LOG_RESOURCES,
		   "The trainer got %lld rows, %.1f MB in %.2f s (%.0f rows/s, %.1f MB/s), %.1f MB of "
		   "memory in use",
		   (long long) s->table->n_rows, (double) s->n_block_bytes / 1e6, seconds,
		   (double) s->table->n_rows / fmax(seconds, 1e-6),
		   (double) s->n_block_bytes / 1e6 / fmax(seconds, 1e-6), (double) s->mem.used_bytes / 1e6);
	return AG_OK;
}

/* BLOCK ... END_OF_ROWS. */
static AgStatus
read_rows(Session *s)
{
	AgFrameHeader header;
	AgBlockView view;
	size_t n = (size_t) s->job.schema.n_columns;

	view.values = ag_arena_alloc(&s->arena, n, sizeof *view.values);
	view.nulls = ag_arena_alloc(&s->arena, n, sizeof *view.nulls);
	view.texts = ag_arena_alloc(&s->arena, n, sizeof *view.texts);
	if (view.values == NULL || view.nulls == NULL || view.texts == NULL)
		return ag_mem_error(&s->mem, n * sizeof *view.values, &s->err);
	s->reading_since_ns = ag_clock_ns();
	for (;;)
	{
		AG_TRY(receive(s, &header));
		if (header.type == AG_FRAME_END_OF_ROWS)
			return end_rows(s, &header);
		if (header.type != AG_FRAME_BLOCK)
			return unexpected(s, &header, "rows");
		AG_TRY(append_block(s, &header, &view));
	}
}

/* CPUs to ask for: the most that a model wants; 0, all there are, when one leaves it open. */
static int
cpus_wanted(const AgFitOptions *options)
{
	int most = 0;

	for (int i = 0; i < options->n_models; i++)
	{
		if (options->models[i].asked.num_cpus < 1)
			return options->total.num_cpus > 0 ? options->total.num_cpus : 0;
		if (options->models[i].asked.num_cpus > most)
			most = options->models[i].asked.num_cpus;
	}
	return most;
}

static void
need_gpus(Session *s, AgMsgNeed *need)
{
	const AgGpuState *gpu = &s->fit.gpu;
	int limit = s->fit.gpu_limit;

	ag_fit_need_gpu(&s->fit, s->table->n_rows, need->num_cpus > 0 ? need->num_cpus : MANY_CPUS);
	need->gpu = s->fit.gpu_need;
	need->gpu_waits = strcmp(s->job.gpu_fallback, "wait") == 0;
	need->n_devices = 0;
	for (int i = 0; i < gpu->n_usable && (limit < 0 || i < limit); i++)
		need->devices[need->n_devices++] = gpu->gpus[i].device;
}

/* A part of the memory that goes with the shares, less what others that are no fits hold. */
static void
take_gpus(Session *s, const AgMsgGrant *grant)
{
	const AgGpuState *gpu = &s->fit.gpu;

	for (int i = 0; i < grant->n_gpus; i++)
		for (int g = 0; g < gpu->n_usable; g++)
		{
			const AgGpuFound *found = &gpu->gpus[g];
			AgGpuGrant *ours = &s->fit.gpus[s->fit.n_gpus];
			double part = grant->gpu_memory_fraction * grant->gpus[i].shares / AG_GPU_SHARES;

			if (found->device != grant->gpus[i].device)
				continue;
			s->fit.n_gpus++;
			ours->device = found->device;
			ours->shares = grant->gpus[i].shares;
			ours->memory_bytes = (int64_t) ((double) found->total_bytes * part);
			if (found->free_bytes >= 0 && found->free_bytes < ours->memory_bytes)
				ours->memory_bytes = found->free_bytes;
			memcpy(ours->name, found->name, sizeof ours->name);
		}
	s->fit.gpu_ops = s->module.ops;
}

/* NEED, and the wait for the GRANT. The buffer of the blocks goes first: it would only take from the grant. */
static AgStatus
get_resources(Session *s)
{
	AgFrameHeader header;
	AgMsgNeed need;
	AgMsgGrant grant;
	AgWriter out;
	int n_cpus = cpus_wanted(s->options);

	ag_mem_free(&s->mem, s->payload);
	s->payload = NULL;
	s->room = 0;
	need.memory_bytes = ag_fit_memory(s->table, s->options, n_cpus > 0 ? n_cpus : MANY_CPUS);
	if (need.memory_bytes > s->job.memory_limit_bytes)
		need.memory_bytes = s->job.memory_limit_bytes; /* the budget decides, not the estimate */
	need.num_cpus = n_cpus;
	need_gpus(s, &need);
	ag_writer_init(&out, &s->mem);
	ag_msg_need_write(&out, &need);
	AG_TRY(ag_host_send(&s->host, AG_FRAME_NEED, &out));
	AG_TRY(receive(s, &header));
	if (header.type != AG_FRAME_GRANT)
		return unexpected(s, &header, "GRANT");
	AG_TRY(ag_msg_grant_read(&s->arena, s->payload, header.n_bytes, &grant, &s->err));
	s->mem.limit_bytes = grant.memory_bytes;
	ag_confine_memory(grant.memory_bytes + (grant.n_gpus > 0 ? DRIVER_BYTES : 0), grant.num_cpus);
	s->ctx.deadline_ns = moment_in(grant.time_left);
	s->fit.num_cpus = grant.num_cpus;
	take_gpus(s, &grant);
	if (ag_fit_asks_gpu(s->options) && s->job.num_gpus != 0) /* else it is in one already */
		confine(s, s->fit.n_gpus > 0 ? AG_SANDBOX_GPU : AG_SANDBOX_CPU);
	AG_TRY(ag_pool_create(&s->mem, grant.num_cpus, &s->pool, &s->err));
	s->ctx.pool = s->pool;
	ag_log(&s->ctx, AG_LOG_RESOURCES, "Granted: %d CPUs, %.1f MB of memory", grant.num_cpus,
		   (double) grant.memory_bytes / 1e6);
	return AG_OK;
}

/* Listens while the main thread computes. Nothing but CANCEL may come; anything else ends the fit likewise. */
static void *
watch(void *arg)
{
	Session *s = arg;
	uint8_t bytes[AG_FRAME_HEADER];
	size_t at = 0;

	for (;;)
	{
		ssize_t got = recv(s->channel.fd, bytes + at, sizeof bytes - at, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		at += (size_t) got;
		if (at < sizeof bytes)
			continue;
		at = 0;
		atomic_store(&s->cancel, true);
	}
	/* The main thread may still be sending: then our own shutdown (stop_watching) woke us. */
	if (!atomic_load(&s->host.finished))
		_exit(1);
	return NULL;
}

static AgStatus
run_fit(Session *s)
{
	AgFitSink sink;
	pthread_t watcher;
	sigset_t all, before;
	AgStatus status;
	int failed;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&watcher, NULL, watch, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed != 0)
		return ag_error_set(&s->err, AG_ERR_SYSTEM, "could not start a thread: %s",
							strerror(failed));
	ag_host_sink(&s->host, &sink);
	status = ag_fit_run(&s->ctx, &s->fit, s->table, &sink);
	atomic_store(&s->host.finished, true);
	shutdown(s->channel.fd, SHUT_RD);
	pthread_join(watcher, NULL);
	return status;
}

static AgStatus
say_done(Session *s)
{
	struct rusage usage;
	AgMsgDone done;
	AgWriter out;

	memset(&usage, 0, sizeof usage);
	getrusage(RUSAGE_SELF, &usage);
	done.peak_memory_bytes = s->mem.peak_bytes;
	done.cpu_seconds = (double) usage.ru_utime.tv_sec + (double) usage.ru_utime.tv_usec * 1e-6 +
					   (double) usage.ru_stime.tv_sec + (double) usage.ru_stime.tv_usec * 1e-6;
	done.n_parts = s->host.n_parts;
	done.n_part_bytes = s->host.n_part_bytes;
	ag_log(&s->ctx, AG_LOG_RESOURCES,
		   "Peak memory %.1f MB, %.2f s of CPU, %lld parts of %.2f MB in all",
		   (double) done.peak_memory_bytes / 1e6, done.cpu_seconds, (long long) done.n_parts,
		   (double) done.n_part_bytes / 1e6);
	ag_writer_init(&out, &s->mem);
	ag_msg_done_write(&out, &done);
	return ag_host_send(&s->host, AG_FRAME_DONE, &out);
}

/* The last frame of a fit that failed. The budget may be what failed, so it is lifted for these few bytes. */
static void
say_error(Session *s, AgStatus status)
{
	AgWriter out;

	if (s->host.peer_gone)
		return;
	s->mem.limit_bytes = INT64_MAX;
	if (s->err.status == AG_OK)
		ag_error_set(&s->err, status, "the fit failed without saying why (status %d)",
					 (int) status);
	ag_writer_init(&out, &s->mem);
	ag_msg_error_write(&out, &s->err);
	ag_host_send(&s->host, AG_FRAME_ERROR, &out);
}

static AgStatus
converse(Session *s)
{
	AG_TRY(greet(s));
	AG_TRY(begin_job(s));
	AG_TRY(read_rows(s));
	AG_TRY(get_resources(s));
	AG_TRY(run_fit(s));
	return say_done(s);
}

int
ag_session_serve(int socket, const char *build_id)
{
	Session session, *s = &session;
	AgStatus status;

	memset(s, 0, sizeof *s);
	ag_mem_init(&s->mem, HELLO_BUDGET_BYTES);
	ag_error_init(&s->err);
	ag_arena_init(&s->arena, &s->mem);
	s->build_id = build_id;
	s->channel.fd = socket;
	s->channel.mem = &s->mem;
	s->host.channel = &s->channel;
	s->host.mem = &s->mem;
	s->host.err = &s->err;
	s->host.started_ns = ag_clock_ns();
	s->ctx.mem = &s->mem;
	s->ctx.cancel = &s->cancel;
	s->ctx.deadline_ns = INT64_MAX;
	s->ctx.log = ag_host_log;
	s->ctx.progress = ag_host_progress;
	s->ctx.host = &s->host;
	s->ctx.error = &s->err;
	s->host.standing.done = -1.0;
	s->host.standing.score = NAN;
	s->ctx.standing = &s->host.standing;

	status = converse(s);
	if (status != AG_OK)
		say_error(s, status);
	ag_pool_free(s->pool);
	ag_table_free(s->table);
	ag_options_free(s->options);
	ag_mem_free(&s->mem, s->payload);
	ag_arena_free(&s->arena);
	return status == AG_OK ? 0 : 1;
}
