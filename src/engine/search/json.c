/*
 * json.c - JSON text.
 */
#include "engine/search/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
ag_json_raw(AgWriter *out, const char *text)
{
	ag_write_bytes(out, text, strlen(text));
}

void
ag_json_string(AgWriter *out, const char *text, size_t n)
{
	ag_write_u8(out, '"');
	for (size_t i = 0; i < n; i++)
	{
		unsigned char c = (unsigned char) text[i];

		if (c < 0x20)
		{
			char escape[8];

			snprintf(escape, sizeof escape, "\\u%04x", c);
			ag_write_bytes(out, escape, 6);
			continue;
		}
		if (c == '"' || c == '\\')
			ag_write_u8(out, '\\');
		ag_write_u8(out, c);
	}
	ag_write_u8(out, '"');
}

void
ag_json_number(AgWriter *out, double value)
{
	char text[40];

	if (!isfinite(value))
	{
		ag_json_raw(out, "null");
		return;
	}
	for (int digits = 15; digits <= 17; digits++)
	{
		snprintf(text, sizeof text, "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	ag_json_raw(out, text);
}

void
ag_json_key(AgWriter *out, bool *first, const char *name)
{
	if (!*first)
		ag_json_raw(out, ", ");
	*first = false;
	ag_json_string(out, name, strlen(name));
	ag_json_raw(out, ": ");
}

char *
ag_json_take(AgWriter *out, AgArena *arena)
{
	char *text = NULL;

	if (!out->failed)
		text = ag_arena_strndup(arena, (const char *) out->data, out->size);
	ag_writer_free(out);
	return text;
}
