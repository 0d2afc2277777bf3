/*
 * bytes.h - a bounds-checked reader and a growing writer of little-endian bytes.
 *
 * The reader never reads past its end: the first short read sets `failed`, and
 * from then on every read gives 0 or NULL. So a decoder reads all its fields
 * and tests `failed` once, before using any of them.
 */
#ifndef AG_BYTES_H
#define AG_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/mem.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "ag_pg's wire and model formats are little-endian, and so must the machine be"
#endif

typedef struct AgReader
{
	const uint8_t *data;
	size_t size;
	size_t at;
	bool failed;
} AgReader;

void ag_reader_init(AgReader *reader, const void *data, size_t size);
uint8_t ag_read_u8(AgReader *reader);
uint16_t ag_read_u16(AgReader *reader);
uint32_t ag_read_u32(AgReader *reader);
uint64_t ag_read_u64(AgReader *reader);
int32_t ag_read_i32(AgReader *reader);
int64_t ag_read_i64(AgReader *reader);
double ag_read_f64(AgReader *reader);
/* n bytes in place, or NULL. */
const void *ag_read_bytes(AgReader *reader, size_t n);
/* A u32 length and that many bytes, in place (no NUL behind them); *n is the length. */
const char *ag_read_text(AgReader *reader, uint32_t *n);
/* A count that must fit the rest of the bytes at min_size bytes an item: guards allocations. */
uint32_t ag_read_count(AgReader *reader, size_t min_size);
size_t ag_reader_left(const AgReader *reader);
/* True when nothing failed and every byte was read. */
bool ag_reader_done(const AgReader *reader);

typedef struct AgWriter
{
	AgMem *mem;
	uint8_t *data;
	size_t size;
	size_t capacity;
	bool failed; /* out of memory: everything after is dropped */
} AgWriter;

void ag_writer_init(AgWriter *writer, AgMem *mem);
void ag_write_u8(AgWriter *writer, uint8_t value);
void ag_write_u16(AgWriter *writer, uint16_t value);
void ag_write_u32(AgWriter *writer, uint32_t value);
void ag_write_u64(AgWriter *writer, uint64_t value);
void ag_write_i32(AgWriter *writer, int32_t value);
void ag_write_i64(AgWriter *writer, int64_t value);
void ag_write_f64(AgWriter *writer, double value);
void ag_write_bytes(AgWriter *writer, const void *bytes, size_t n);
/* A u32 length and the bytes; text may be NULL with n 0. */
void ag_write_text(AgWriter *writer, const char *text, size_t n);
void ag_write_str(AgWriter *writer, const char *text); /* NUL-terminated; NULL = empty */
/* Zero bytes up to a multiple of alignment (a power of two). */
void ag_write_align(AgWriter *writer, size_t alignment);
void ag_writer_free(AgWriter *writer);

#endif
