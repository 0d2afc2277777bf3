/*
 * host.h - what the engine gets of its host: log, progress and results become frames.
 */
#ifndef AG_HOST_H
#define AG_HOST_H

#include <stdatomic.h>

#include "engine/search/fit.h"
#include "trainer/channel.h"
#include "wire/message.h"

typedef struct AgHost
{
	const AgChannel *channel;
	AgMem *mem;
	AgError *err; /* where it is said that memory ran out */
	int verbosity;
	int64_t started_ns;       /* of the call */
	int64_t progress_sent_ns; /* 0: none yet */
	AgStanding standing;      /* of the fit: the engine's context points to it */
	int64_t n_parts, n_part_bytes;
	bool peer_gone;        /* a frame could not be sent: nobody reads any more */
	_Atomic bool finished; /* the fit is over: end of file is no reason to die any more */
} AgHost;

/* AgLogFn, AgProgressFn and the sink, with an AgHost as host. */
void ag_host_log(void *host, AgLogLevel level, const char *text, const char *hint);
void ag_host_progress(void *host, const char *phase, double fraction);
void ag_host_sink(AgHost *host, AgFitSink *sink);
/* A frame of a message that was written; frees the writer. AG_ERR_SYSTEM when the peer is gone. */
AgStatus ag_host_send(AgHost *host, AgFrameType type, AgWriter *message);

#endif
