/*
 * decode.h - what the decoders of message_*.c share: a reader that carries its arena and its first fault.
 *
 * After a fault every read gives zero, "" or NULL, so a decoder reads all its fields and asks once, at ag_decode_end.
 * Counts are bounded by the bytes that are left, so a loop over them is too.
 */
#ifndef AG_DECODE_H
#define AG_DECODE_H

#include "engine/base/bytes.h"
#include "engine/base/status.h"

typedef struct AgDecoder
{
	AgReader in;
	AgArena *arena;
	AgError *err;
	AgStatus status;  /* the first fault */
	const char *name; /* the message's, for the error */
} AgDecoder;

/* arena may be NULL for messages without texts or arrays. */
void ag_decode_begin(AgDecoder *decoder, const char *name, const void *payload, size_t n,
					 AgArena *arena, AgError *err);
/* AG_OK when every byte was read and nothing failed. */
AgStatus ag_decode_end(AgDecoder *decoder);
/* The message breaks a rule of its own. */
void ag_decode_reject(AgDecoder *decoder);
/* A text without NUL inside, NUL-terminated in the arena; never NULL. */
const char *ag_decode_text(AgDecoder *decoder);
/* The same behind a flag byte: NULL when the flag is 0. Written by ag_encode_text_or_null. */
const char *ag_decode_text_or_null(AgDecoder *decoder);
void ag_encode_text_or_null(AgWriter *out, const char *text);
bool ag_decode_bool(AgDecoder *decoder);
/* A zeroed array in the arena, at least one item long; NULL after a fault. */
void *ag_decode_array(AgDecoder *decoder, size_t n, size_t size);
/* A double that is no NaN. */
double ag_decode_number(AgDecoder *decoder);

#endif
