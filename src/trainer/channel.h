/*
 * channel.h - frames on the socket to the supervisor, blocking.
 */
#ifndef AG_CHANNEL_H
#define AG_CHANNEL_H

#include "wire/frame.h"

typedef struct AgChannel
{
	int fd;
	AgMem *mem;
} AgChannel;

typedef enum AgArrival
{
	AG_ARRIVED,
	AG_HUNG_UP, /* end of file: nobody is left to work for */
	AG_BROKEN   /* err says why */
} AgArrival;

/*
 * The next frame. The payload is put into *payload (a block of channel->mem that is reused and grown; *room its size). Nothing is
 * believed of the header but what was checked.
 */
AgArrival ag_channel_receive(const AgChannel *channel, AgFrameHeader *header, uint8_t **payload,
							 size_t *room, AgError *err);
/* Sends header, head and body as one frame (body may be NULL); false when the other side is gone. */
bool ag_channel_send(const AgChannel *channel, AgFrameType type, const void *head, size_t n_head,
					 const void *body, size_t n_body);

#endif
