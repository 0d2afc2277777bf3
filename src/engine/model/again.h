/*
 * again.h - a training whose device failed, begun anew on the CPU, which comes to the same model (private to the families).
 */
#ifndef AG_AGAIN_H
#define AG_AGAIN_H

#include <string.h>

#include "engine/base/context.h"

#define AG_WHY_BYTES 300 /* of a result's cpu_because */

typedef struct AgAgain
{
	AgContext ctx; /* without the device */
	char why[AG_WHY_BYTES];
} AgAgain;

/* Is there cause to train again? Then with again->ctx, which has forgotten the fault, and ag_again_end behind it. */
static inline bool
ag_again_begin(AgAgain *again, const AgContext *ctx, bool device_failed,
			   const char because[AG_WHY_BYTES])
{
	if (!device_failed)
		return false;
	again->ctx = *ctx;
	again->ctx.gpu = NULL;
	memcpy(again->why, because, sizeof again->why);
	if (ctx->error != NULL)
		ag_error_init(ctx->error);
	return true;
}

/* What the first attempt came to, into the second one's result. */
static inline void
ag_again_end(const AgAgain *again, bool *gpu_failed, char because[AG_WHY_BYTES])
{
	*gpu_failed = true;
	memcpy(because, again->why, sizeof again->why);
}

#endif
