/*
 * bytes.c - a bounds-checked reader and a growing writer of little-endian bytes.
 */
#include "engine/base/bytes.h"

#include <string.h>

void
ag_reader_init(AgReader *reader, const void *data, size_t size)
{
	reader->data = data;
	reader->size = size;
	reader->at = 0;
	reader->failed = false;
}

const void *
ag_read_bytes(AgReader *reader, size_t n)
{
	const uint8_t *bytes;

	if (reader->failed || n > reader->size - reader->at)
	{
		reader->failed = true;
		return NULL;
	}
	bytes = reader->data + reader->at;
	reader->at += n;
	return bytes;
}

#define DEFINE_READ(name, type)                                                                    \
	type name(AgReader *reader)                                                                    \
	{                                                                                              \
		const void *bytes = ag_read_bytes(reader, sizeof(type));                                   \
		type value = 0;                                                                            \
                                                                                                   \
		if (bytes != NULL)                                                                         \
			memcpy(&value, bytes, sizeof value);                                                   \
		return value;                                                                              \
	}

DEFINE_READ(ag_read_u8, uint8_t)
DEFINE_READ(ag_read_u16, uint16_t)
DEFINE_READ(ag_read_u32, uint32_t)
DEFINE_READ(ag_read_u64, uint64_t)
DEFINE_READ(ag_read_i32, int32_t)
DEFINE_READ(ag_read_i64, int64_t)
DEFINE_READ(ag_read_f64, double)

const char *
ag_read_text(AgReader *reader, uint32_t *n)
{
	uint32_t length = ag_read_u32(reader);
	const char *text = ag_read_bytes(reader, length);

	*n = text != NULL ? length : 0;
	return text;
}

uint32_t
ag_read_count(AgReader *reader, size_t min_size)
{
	uint32_t count = ag_read_u32(reader);

	if (min_size > 0 && count > ag_reader_left(reader) / min_size)
		reader->failed = true;
	return reader->failed ? 0 : count;
}

size_t
ag_reader_left(const AgReader *reader)
{
	return reader->failed ? 0 : reader->size - reader->at;
}

bool
ag_reader_done(const AgReader *reader)
{
	return !reader->failed && reader->at == reader->size;
}

void
ag_writer_init(AgWriter *writer, AgMem *mem)
{
	writer->mem = mem;
	writer->data = NULL;
	writer->size = 0;
	writer->capacity = 0;
	writer->failed = false;
}

/* Room for n more bytes; NULL (and failed) when there is none. */
static uint8_t *
make_room(AgWriter *writer, size_t n)
{
	size_t need, capacity;
	uint8_t *data;

	if (writer->failed)
		return NULL;
	if (__builtin_add_overflow(writer->size, n, &need))
	{
		writer->failed = true;
		return NULL;
	}
	if (need > writer->capacity)
	{
		capacity = writer->capacity < 256 ? 256 : writer->capacity + writer->capacity / 2;
		if (capacity < need)
			capacity = need;
		data = ag_mem_realloc(writer->mem, writer->data, capacity, 1);
		if (data == NULL)
		{
			writer->failed = true;
			return NULL;
		}
		writer->data = data;
		writer->capacity = capacity;
	}
	data = writer->data + writer->size;
	writer->size = need;
	return data;
}

void
ag_write_bytes(AgWriter *writer, const void *bytes, size_t n)
{
	uint8_t *to;

	if (n == 0)
		return;
	to = make_room(writer, n);
	if (to != NULL)
		memcpy(to, bytes, n);
}

#define DEFINE_WRITE(name, type)                                                                   \
	void name(AgWriter *writer, type value)                                                        \
	{                                                                                              \
		ag_write_bytes(writer, &value, sizeof value);                                              \
	}

DEFINE_WRITE(ag_write_u8, uint8_t)
DEFINE_WRITE(ag_write_u16, uint16_t)
DEFINE_WRITE(ag_write_u32, uint32_t)
DEFINE_WRITE(ag_write_u64, uint64_t)
DEFINE_WRITE(ag_write_i32, int32_t)
DEFINE_WRITE(ag_write_i64, int64_t)
DEFINE_WRITE(ag_write_f64, double)

void
ag_write_text(AgWriter *writer, const char *text, size_t n)
{
	if (n > UINT32_MAX)
	{
		writer->failed = true;
		return;
	}
	ag_write_u32(writer, (uint32_t) n);
	ag_write_bytes(writer, text, n);
}

void
ag_write_str(AgWriter *writer, const char *text)
{
	ag_write_text(writer, text, text != NULL ? strlen(text) : 0);
}

void
ag_write_align(AgWriter *writer, size_t alignment)
{
	size_t n = (alignment - writer->size % alignment) % alignment;
	uint8_t *to;

	if (n == 0)
		return;
	to = make_room(writer, n);
	if (to != NULL)
		memset(to, 0, n);
}

void
ag_writer_free(AgWriter *writer)
{
	ag_mem_free(writer->mem, writer->data);
	writer->data = NULL;
	writer->size = 0;
	writer->capacity = 0;
}
