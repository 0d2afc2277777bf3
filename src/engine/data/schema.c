/*
 * schema.c - the columns of a table as the engine knows them.
 */
#include "engine/data/schema.h"

#include <string.h>

#include "engine/base/hash.h"
#include "engine/base/status.h"

size_t
ag_type_width(AgType type)
{
	switch (type)
	{
		case AG_TYPE_BOOL:
			return 1;
		case AG_TYPE_INT32:
		case AG_TYPE_FLOAT32:
		case AG_TYPE_DATE:
			return 4;
		case AG_TYPE_INT64:
		case AG_TYPE_FLOAT64:
		case AG_TYPE_TIMESTAMP:
		case AG_TYPE_TIME:
		case AG_TYPE_INTERVAL:
			return 8;
		case AG_TYPE_TEXT:
			return 0;
	}
	return 0;
}

bool
ag_type_valid(int type)
{
	return type >= AG_TYPE_BOOL && type <= AG_TYPE_TEXT;
}

const char *
ag_type_name(AgType type)
{
	switch (type)
	{
		case AG_TYPE_BOOL:
			return "boolean";
		case AG_TYPE_INT32:
			return "integer";
		case AG_TYPE_INT64:
			return "bigint";
		case AG_TYPE_FLOAT32:
			return "real";
		case AG_TYPE_FLOAT64:
			return "double precision";
		case AG_TYPE_DATE:
			return "date";
		case AG_TYPE_TIMESTAMP:
			return "timestamp";
		case AG_TYPE_TIME:
			return "time";
		case AG_TYPE_INTERVAL:
			return "interval";
		case AG_TYPE_TEXT:
			return "text";
	}
	return "unknown";
}

#define CLIP_TAIL 33 /* '#' and 32 hex digits */

const char *
ag_text_clip(const char *text, size_t n, char *buffer, uint32_t *n_out)
{
	static const char digits[] = "0123456789abcdef";
	AgHash128 hash;
	size_t keep;

	if (n <= AG_TEXT_MAX)
	{
		*n_out = (uint32_t) n;
		return text;
	}
	hash = ag_hash128(text, n, 0);
	keep = ag_utf8_clip(text, n, AG_TEXT_MAX - CLIP_TAIL);
	memcpy(buffer, text, keep);
	buffer[keep++] = '#';
	for (int i = 0; i < 16; i++)
		buffer[keep++] = digits[hash.hi >> (60 - 4 * i) & 15];
	for (int i = 0; i < 16; i++)
		buffer[keep++] = digits[hash.lo >> (60 - 4 * i) & 15];
	*n_out = (uint32_t) keep;
	return buffer;
}
