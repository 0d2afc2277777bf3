/*
 * channel.c - whole frames over a stream socket.
 */
#include "trainer/channel.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* n bytes: 1 all there, 0 end of file before the first, -1 anything else. */
static int
read_all(int fd, uint8_t *to, size_t n)
{
	size_t at = 0;

	while (at < n)
	{
		ssize_t got = recv(fd, to + at, n - at, 0);

		if (got > 0)
			at += (size_t) got;
		else if (got == 0)
			return at == 0 ? 0 : -1;
		else if (errno != EINTR)
			return -1;
	}
	return 1;
}

/*
 * A frame that is cut off means that the peer died in the middle of it: the same as hanging up. The buffer grows to the largest
 * frame seen, not to what a header claims: the claim is bounded by AG_FRAME_MAX and by the budget.
 */
AgArrival
ag_channel_receive(const AgChannel *channel, AgFrameHeader *header, uint8_t **payload, size_t *room,
				   AgError *err)
{
	uint8_t bytes[AG_FRAME_HEADER];

	if (read_all(channel->fd, bytes, sizeof bytes) != 1)
		return AG_HUNG_UP;
	if (ag_frame_header_read(bytes, header, err) != AG_OK)
		return AG_BROKEN;
	if (header->n_bytes > *room)
	{
		ag_mem_free(channel->mem, *payload);
		*room = 0;
		*payload = ag_mem_alloc(channel->mem, header->n_bytes, 1);
		if (*payload == NULL)
		{
			ag_mem_error(channel->mem, header->n_bytes, err);
			return AG_BROKEN;
		}
		*room = header->n_bytes;
	}
	if (header->n_bytes > 0 && read_all(channel->fd, *payload, header->n_bytes) != 1)
		return AG_HUNG_UP;
	return AG_ARRIVED;
}

bool
ag_channel_send(const AgChannel *channel, AgFrameType type, const void *head, size_t n_head,
				const void *body, size_t n_body)
{
	uint8_t bytes[AG_FRAME_HEADER];
	struct iovec parts[3];
	struct msghdr message;
	size_t left = sizeof bytes + n_head + n_body;

	ag_frame_header_write(bytes, type, (uint32_t) (n_head + n_body));
	parts[0].iov_base = bytes;
	parts[0].iov_len = sizeof bytes;
	parts[1].iov_base = (void *) (uintptr_t) head;
	parts[1].iov_len = n_head;
	parts[2].iov_base = (void *) (uintptr_t) body;
	parts[2].iov_len = n_body;
	memset(&message, 0, sizeof message);
	message.msg_iov = parts;
	message.msg_iovlen = 3;
	while (left > 0)
	{
		ssize_t sent = sendmsg(channel->fd, &message, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return false;
		left -= (size_t) sent;
		for (int i = 0; i < 3; i++)
		{
			size_t gone = (size_t) sent < parts[i].iov_len ? (size_t) sent : parts[i].iov_len;

			parts[i].iov_base = (char *) parts[i].iov_base + gone;
			parts[i].iov_len -= gone;
			sent -= (ssize_t) gone;
		}
	}
	return true;
}
