/*
 * host.c - from the engine's calls to frames.
 */
#include "trainer/host.h"

#include <string.h>

#define PROGRESS_EVERY_NS 500000000 /* at most two a second */

AgStatus
ag_host_send(AgHost *host, AgFrameType type, AgWriter *message)
{
	AgStatus status = AG_OK;

	if (message->failed)
		status = ag_mem_error(host->mem, message->size, host->err);
	else if (!ag_channel_send(host->channel, type, message->data, message->size, NULL, 0))
	{
		host->peer_gone = true;
		status = AG_ERR_SYSTEM;
	}
	ag_writer_free(message);
	return status;
}

/* A line that can't be sent for want of memory is lost; the fit itself will soon say why. */
void
ag_host_log(void *arg, AgLogLevel level, const char *text, const char *hint)
{
	AgHost *host = arg;
	AgMsgLog msg = {level, text, hint};
	AgWriter out;
	int least = level == AG_LOG_WARNING ? AG_LOG_SUMMARY : (int) level;

	if (host->verbosity < least)
		return;
	ag_writer_init(&out, host->mem);
	ag_msg_log_write(&out, &msg);
	if (out.failed)
		ag_writer_free(&out);
	else
		ag_host_send(host, AG_FRAME_LOG, &out);
}

void
ag_host_progress(void *arg, const char *phase, double fraction)
{
	AgHost *host = arg;
	int64_t now = ag_clock_ns();
	AgMsgProgress msg;
	AgWriter out;

	if (host->progress_sent_ns != 0 && now - host->progress_sent_ns < PROGRESS_EVERY_NS)
		return;
	host->progress_sent_ns = now;
	msg.phase = phase;
	msg.fraction = fraction >= 0.0 && fraction <= 1.0 ? fraction : -1.0;
	msg.done = host->standing.done;
	msg.score = host->standing.score;
	msg.elapsed_s = (double) (now - host->started_ns) * 1e-9;
	ag_writer_init(&out, host->mem);
	ag_msg_progress_write(&out, &msg);
	if (out.failed)
		ag_writer_free(&out);
	else
		ag_host_send(host, AG_FRAME_PROGRESS, &out);
}

static AgStatus
sink_predictor(void *arg, const AgFittedPredictor *predictor)
{
	AgHost *host = arg;
	AgWriter out;

	ag_writer_init(&out, host->mem);
	ag_msg_predictor_write(&out, predictor);
	return ag_host_send(host, AG_FRAME_PREDICTOR, &out);
}

static AgStatus
sink_feature(void *arg, const AgFittedFeature *feature)
{
	AgHost *host = arg;
	AgWriter out;

	ag_writer_init(&out, host->mem);
	ag_msg_feature_write(&out, feature);
	return ag_host_send(host, AG_FRAME_FEATURE, &out);
}

static AgStatus
sink_member(void *arg, const AgFittedMember *member)
{
	AgHost *host = arg;
	AgWriter out;

	ag_writer_init(&out, host->mem);
	ag_msg_member_write(&out, member);
	return ag_host_send(host, AG_FRAME_MEMBER, &out);
}

/* An image in parts; the bytes go from where they are to the socket, without a copy. */
static AgStatus
sink_image(void *arg, int member, const void *bytes, size_t n_bytes)
{
	AgHost *host = arg;
	AgMsgPart part;
	AgWriter head;

	memset(&part, 0, sizeof part);
	part.member = member;
	for (size_t at = 0; at < n_bytes; at += part.n_bytes, part.part++)
	{
		bool sent;

		part.bytes = (const uint8_t *) bytes + at;
		part.n_bytes = (uint32_t) (n_bytes - at < AG_PART_BYTES ? n_bytes - at : AG_PART_BYTES);
		ag_writer_init(&head, host->mem);
		ag_msg_part_head_write(&head, &part);
		if (head.failed)
		{
			ag_writer_free(&head);
			return ag_mem_error(host->mem, sizeof part, host->err);
		}
		sent = ag_channel_send(host->channel, AG_FRAME_PART, head.data, head.size, part.bytes,
							   part.n_bytes);
		ag_writer_free(&head);
		if (!sent)
		{
			host->peer_gone = true;
			return AG_ERR_SYSTEM;
		}
		host->n_parts++;
		host->n_part_bytes += part.n_bytes;
	}
	return AG_OK;
}

void
ag_host_sink(AgHost *host, AgFitSink *sink)
{
	sink->host = host;
	sink->predictor = sink_predictor;
	sink->feature = sink_feature;
	sink->member = sink_member;
	sink->image = sink_image;
}
