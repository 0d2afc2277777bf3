/*
 * context.c - what an engine call needs from its host.
 */
#include "engine/base/context.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Lists of column names make long lines; what doesn't fit is cut at a character. */
#define LINE_MAX_BYTES 4096

int64_t
ag_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t
ag_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

AgStatus
ag_check_cancel(const AgContext *ctx)
{
	if (!ag_cancelled(ctx))
		return AG_OK;
	return ag_error_set(ctx->error, AG_ERR_CANCELLED, "canceling the fit due to user request");
}

AgStatus
ag_check_stop(const AgContext *ctx, const char *doing)
{
	AG_TRY(ag_check_cancel(ctx));
	if (!ag_out_of_time(ctx))
		return AG_OK;
	return ag_error_set(ctx->error, AG_ERR_TIME, "time limit passed while %s", doing);
}

static AgStatus
hand_out(const AgContext *ctx, void *block, size_t n, size_t size, void *out)
{
	size_t bytes;

	memcpy(out, &block, sizeof block);
	if (block != NULL)
		return AG_OK;
	if (__builtin_mul_overflow(n, size, &bytes))
		bytes = SIZE_MAX;
	return ag_mem_error(ctx->mem, bytes, ctx->error);
}

AgStatus
ag_get(const AgContext *ctx, size_t n, size_t size, void *out)
{
	return hand_out(ctx, ag_mem_alloc(ctx->mem, n, size), n, size, out);
}

AgStatus
ag_get_zeroed(const AgContext *ctx, size_t n, size_t size, void *out)
{
	return hand_out(ctx, ag_mem_zalloc(ctx->mem, n, size), n, size, out);
}

static void
log_line(const AgContext *ctx, AgLogLevel level, const char *hint, const char *format, va_list args)
{
	char line[LINE_MAX_BYTES];
	int n;

	if (ctx->log == NULL)
		return;
	n = vsnprintf(line, sizeof line, format, args);
	if (n < 0)
		return;
	if ((size_t) n >= sizeof line)
		line[ag_utf8_clip(line, sizeof line - 1, sizeof line - 2)] = '\0';
	ctx->log(ctx->host, level, line, hint);
}

void
ag_log(const AgContext *ctx, AgLogLevel level, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	log_line(ctx, level, NULL, format, args);
	va_end(args);
}

void
ag_log_hint(const AgContext *ctx, AgLogLevel level, const char *hint, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	log_line(ctx, level, hint, format, args);
	va_end(args);
}

void
ag_progress(const AgContext *ctx, const char *phase, double fraction)
{
	if (ctx->progress != NULL)
		ctx->progress(ctx->host, phase, fraction);
}
