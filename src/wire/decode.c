/*
 * decode.c - the shared part of the message decoders.
 */
#include "wire/decode.h"

#include <string.h>

void
ag_decode_begin(AgDecoder *decoder, const char *name, const void *payload, size_t n, AgArena *arena,
				AgError *err)
{
	ag_reader_init(&decoder->in, payload, n);
	decoder->arena = arena;
	decoder->err = err;
	decoder->status = AG_OK;
	decoder->name = name;
}

void
ag_decode_reject(AgDecoder *decoder)
{
	decoder->in.failed = true;
}

AgStatus
ag_decode_end(AgDecoder *decoder)
{
	if (decoder->status == AG_OK && !ag_reader_done(&decoder->in))
		decoder->status =
			ag_error_set(decoder->err, AG_ERR_PROTOCOL,
						 "malformed %s message between server and trainer", decoder->name);
	return decoder->status;
}

const char *
ag_decode_text(AgDecoder *decoder)
{
	uint32_t n;
	const char *bytes = ag_read_text(&decoder->in, &n);
	char *text;

	if (decoder->in.failed || bytes == NULL || decoder->status != AG_OK)
		return "";
	if (memchr(bytes, '\0', n) != NULL)
	{
		decoder->in.failed = true;
		return "";
	}
	text = ag_arena_strndup(decoder->arena, bytes, n);
	if (text == NULL)
	{
		decoder->status = ag_mem_error(decoder->arena->mem, n, decoder->err);
		return "";
	}
	return text;
}

const char *
ag_decode_text_or_null(AgDecoder *decoder)
{
	return ag_decode_bool(decoder) ? ag_decode_text(decoder) : NULL;
}

void
ag_encode_text_or_null(AgWriter *out, const char *text)
{
	ag_write_u8(out, text != NULL);
	if (text != NULL)
		ag_write_str(out, text);
}

bool
ag_decode_bool(AgDecoder *decoder)
{
	uint8_t value = ag_read_u8(&decoder->in);

	if (value > 1)
		decoder->in.failed = true;
	return value == 1;
}

void *
ag_decode_array(AgDecoder *decoder, size_t n, size_t size)
{
	void *items;

	if (decoder->in.failed || decoder->status != AG_OK)
		return NULL;
	items = ag_arena_alloc(decoder->arena, n > 0 ? n : 1, size);
	if (items == NULL)
		decoder->status = ag_mem_error(decoder->arena->mem, n * size, decoder->err);
	return items;
}

double
ag_decode_number(AgDecoder *decoder)
{
	double value = ag_read_f64(&decoder->in);

	if (value != value)
		decoder->in.failed = true;
	return value;
}
