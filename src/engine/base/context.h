/*
 * context.h - what an engine call needs from its host.
 *
 * One AgContext a fit (or a prediction call); no global state anywhere. The
 * engine never reads a clock for anything but budgets and reports, never
 * prints, and never touches a file.
 */
#ifndef AG_CONTEXT_H
#define AG_CONTEXT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/base/mem.h"
#include "engine/base/status.h"

struct AgPool; /* threads.h */
struct AgGpu;  /* device.h */

/* Levels of the story that a fit tells: shown when the fit's verbosity is at least the level. */
typedef enum AgLogLevel
{
	AG_LOG_WARNING = 0, /* a WARNING at every verbosity but 0 */
	AG_LOG_SUMMARY = 1,
	AG_LOG_NORMAL = 2,
	AG_LOG_RESOURCES = 3,
	AG_LOG_TRACE = 4
} AgLogLevel;

/* One line for the user. hint may be NULL. Called from the fit's main thread only. */
typedef void (*AgLogFn)(void *host, AgLogLevel level, const char *text, const char *hint);

/* Progress of the running phase: fraction in [0,1], or -1 when unknown. Main thread only; cheap to call often. */
typedef void (*AgProgressFn)(void *host, const char *phase, double fraction);

/* How a whole fit stands; kept up to date for the host, which looks at it when it is told of progress. */
typedef struct AgStanding
{
	double done;  /* of all that there is to do, by a rough count, in [0,1]; -1: unknown */
	double score; /* of the best model so far, by the metric, higher is better; NaN: none */
} AgStanding;

typedef struct AgContext
{
	AgMem *mem;
	struct AgPool *pool;  /* NULL: run on the calling thread alone */
	_Atomic bool *cancel; /* raised from another thread; NULL: never */
	int64_t
		deadline_ns; /* ag_clock_ns() after which a booster stops with its best so far; INT64_MAX: none */
	AgLogFn log;           /* NULL: silent */
	AgProgressFn progress; /* NULL: silent */
	void *host;            /* handed to log and progress */
	AgError *error;        /* where the fault's text goes */
	AgStanding *standing;  /* NULL: nobody asks */
	struct AgGpu *gpu;     /* to train on, where a family can; NULL: on the CPU */
	bool
		trusts_checksums; /* images' own are left out: their bytes have just been checked by others */
	bool
		trusts_images; /* images are read without a check: a process of this program has checked these very bytes */
} AgContext;

/* Monotonic nanoseconds; and those that all threads of the process have computed. */
int64_t ag_clock_ns(void);
int64_t ag_cpu_ns(void);

static inline bool
ag_cancelled(const AgContext *ctx)
{
	return ctx->cancel != NULL && atomic_load_explicit(ctx->cancel, memory_order_relaxed);
}

static inline bool
ag_out_of_time(const AgContext *ctx)
{
	return ctx->deadline_ns != INT64_MAX && ag_clock_ns() >= ctx->deadline_ns;
}

/* Is what takes long to be given up, for the one reason or the other? */
static inline bool
ag_must_stop(const AgContext *ctx)
{
	return ag_cancelled(ctx) || ag_out_of_time(ctx);
}

/* AG_ERR_CANCELLED with its text when the flag is up, else AG_OK. */
AgStatus ag_check_cancel(const AgContext *ctx);
/* Behind what ag_must_stop may have ended: the same, or AG_ERR_TIME. doing: "binning features". */
AgStatus ag_check_stop(const AgContext *ctx, const char *doing);

/* ag_mem_alloc/zalloc that write the error text; *out is NULL on failure. */
AgStatus ag_get(const AgContext *ctx, size_t n, size_t size, void *out);
AgStatus ag_get_zeroed(const AgContext *ctx, size_t n, size_t size, void *out);

/* A formatted line to ctx->log; does nothing when it is NULL. */
void ag_log(const AgContext *ctx, AgLogLevel level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void ag_log_hint(const AgContext *ctx, AgLogLevel level, const char *hint, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
void ag_progress(const AgContext *ctx, const char *phase, double fraction);

#endif
