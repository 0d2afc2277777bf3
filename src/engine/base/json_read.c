/*
 * json_read.c - see json_read.h. The grammar is RFC 8259's.
 */
#include "engine/base/json_read.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_BYTES 64 /* a longer one is nothing that any program writes */

void
ag_json_text_init(AgJsonText *json, const char *text, size_t n_bytes, AgArena *arena)
{
	*json = (AgJsonText){.at = text, .end = text + n_bytes, .arena = arena};
}

static bool
fail(AgJsonText *json)
{
	json->failed = true;
	json->at = json->end;
	return false;
}

static void
skip_blanks(AgJsonText *json)
{
	while (json->at < json->end &&
		   (*json->at == ' ' || *json->at == '\t' || *json->at == '\n' || *json->at == '\r'))
		json->at++;
}

char
ag_json_peek(AgJsonText *json)
{
	skip_blanks(json);
	return json->at < json->end ? *json->at : '\0';
}

static bool
take(AgJsonText *json, char c)
{
	if (ag_json_peek(json) != c)
		return false;
	json->at++;
	return true;
}

static bool
begin(AgJsonText *json, char bracket)
{
	if (json->depth == AG_JSON_DEPTH || !take(json, bracket))
		return fail(json);
	json->depth++;
	json->is_first = true;
	return true;
}

bool
ag_json_begin_object(AgJsonText *json)
{
	return begin(json, '{');
}

bool
ag_json_begin_array(AgJsonText *json)
{
	return begin(json, '[');
}

/* Another one, or the closing bracket. */
static bool
next(AgJsonText *json, char bracket)
{
	if (json->failed)
		return false;
	if (take(json, bracket))
	{
		json->depth--;
		json->is_first = false;
		return false;
	}
	if (!json->is_first && !take(json, ','))
		return fail(json);
	json->is_first = false;
	return true;
}

bool
ag_json_next_item(AgJsonText *json)
{
	return next(json, ']');
}

bool
ag_json_next_key(AgJsonText *json, const char **key)
{
	*key = "";
	if (!next(json, '}'))
		return false;
	*key = ag_json_read_string(json);
	if (json->failed || !take(json, ':'))
		return fail(json);
	return true;
}

/* --- strings --- */

/* Behind the closing quote of the string whose first byte is at; NULL: it has none. */
static const char *
end_of_string(const AgJsonText *json)
{
	for (const char *at = json->at; at < json->end; at++)
	{
		if (*at == '"')
			return at + 1;
		if ((unsigned char) *at < 0x20)
			return NULL;
		if (*at == '\\')
			at++;
	}
	return NULL;
}

/* Four hexadecimal digits; -1: they aren't. */
static int32_t
read_unit(const char *at, const char *end)
{
	int32_t code = 0;

	if (end - at < 4)
		return -1;
	for (int i = 0; i < 4; i++)
	{
		char c = at[i];
		int digit = c >= '0' && c <= '9'   ? c - '0'
					: c >= 'a' && c <= 'f' ? c - 'a' + 10
					: c >= 'A' && c <= 'F' ? c - 'A' + 10
										   : -1;

		if (digit < 0)
			return -1;
		code = code * 16 + digit;
	}
	return code;
}

static char *
put_utf8(char *out, uint32_t code)
{
	if (code < 0x80)
		*out++ = (char) code;
	else if (code < 0x800)
	{
		*out++ = (char) (0xc0 | code >> 6);
		*out++ = (char) (0x80 | (code & 0x3f));
	}
	else if (code < 0x10000)
	{
		*out++ = (char) (0xe0 | code >> 12);
		*out++ = (char) (0x80 | (code >> 6 & 0x3f));
		*out++ = (char) (0x80 | (code & 0x3f));
	}
	else
	{
		*out++ = (char) (0xf0 | code >> 18);
		*out++ = (char) (0x80 | (code >> 12 & 0x3f));
		*out++ = (char) (0x80 | (code >> 6 & 0x3f));
		*out++ = (char) (0x80 | (code & 0x3f));
	}
	return out;
}

/* \uXXXX, of which two in a row may be one character: *at is behind the first "\u". A character never takes more bytes than its escapes. */
static char *
read_code(const char **at, const char *end, char *out)
{
	int32_t first = read_unit(*at, end), second;

	if (first <= 0 || (first >= 0xdc00 && first < 0xe000))
		return NULL;
	*at += 4;
	if (first < 0xd800 || first >= 0xe000)
		return put_utf8(out, (uint32_t) first);
	if (end - *at < 6 || (*at)[0] != '\\' || (*at)[1] != 'u')
		return NULL;
	second = read_unit(*at + 2, end);
	if (second < 0xdc00 || second >= 0xe000)
		return NULL;
	*at += 6;
	return put_utf8(out, UINT32_C(0x10000) + ((uint32_t) (first - 0xd800) << 10) +
							 (uint32_t) (second - 0xdc00));
}

static char *
read_escape(const char **at, const char *end, char *out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	char c = **at;
	const char *place = strchr(from, c);

	++*at;
	if (c == 'u')
		return read_code(at, end, out);
	if (c == '\0' || place == NULL)
		return NULL;
	*out++ = to[place - from];
	return out;
}

const char *
ag_json_read_string(AgJsonText *json)
{
	const char *end;
	char *text, *out;

	if (!take(json, '"') || (end = end_of_string(json)) == NULL)
	{
		fail(json);
		return "";
	}
	text = out = ag_arena_alloc(json->arena, (size_t) (end - json->at), 1);
	if (text == NULL)
	{
		json->no_memory = true;
		fail(json);
		return "";
	}
	for (const char *at = json->at; at < end - 1;)
		if (*at != '\\')
			*out++ = *at++;
		else
		{
			at++;
			out = read_escape(&at, end - 1, out);
			if (out == NULL)
			{
				fail(json);
				return "";
			}
		}
	*out = '\0';
	json->at = end;
	return text;
}

/* --- numbers and words --- */

static bool
take_word(AgJsonText *json, const char *word)
{
	size_t n = strlen(word);

	if ((size_t) (json->end - json->at) < n || memcmp(json->at, word, n) != 0)
		return false;
	json->at += n;
	return true;
}

double
ag_json_read_number(AgJsonText *json)
{
	char text[NUMBER_BYTES];
	size_t n = 0;
	char *end;
	double value;

	ag_json_peek(json);
	if (take_word(json, "true"))
		return 1.0;
	if (take_word(json, "false"))
		return 0.0;
	while (json->at + n < json->end && n < NUMBER_BYTES && json->at[n] != '\0' &&
		   strchr("+-.eE0123456789", json->at[n]) != NULL)
		n++;
	if (n == 0 || n == NUMBER_BYTES)
		return fail(json);
	memcpy(text, json->at, n);
	text[n] = '\0';
	value = strtod(text, &end);
	if (*end != '\0' || !isfinite(value))
		return fail(json);
	json->at += n;
	return value;
}

long
ag_json_read_integer(AgJsonText *json, long low, long high)
{
	double value = ag_json_read_number(json);

	if (json->failed || value != floor(value) || value < (double) low || value > (double) high)
	{
		fail(json);
		return low;
	}
	return (long) value;
}

static void
skip_string(AgJsonText *json)
{
	const char *end;

	if (!take(json, '"') || (end = end_of_string(json)) == NULL)
		fail(json);
	else
		json->at = end;
}

/* As deep as brackets may be. */
void
ag_json_skip(AgJsonText *json)
{
	const char *key;

	switch (ag_json_peek(json))
	{
		case '{':
			ag_json_begin_object(json);
			while (ag_json_next_key(json, &key))
				ag_json_skip(json);
			break;
		case '[':
			ag_json_begin_array(json);
			while (ag_json_next_item(json))
				ag_json_skip(json);
			break;
		case '"':
			skip_string(json);
			break;
		case 'n':
			if (!take_word(json, "null"))
				fail(json);
			break;
		default:
			ag_json_read_number(json);
			break;
	}
}

bool
ag_json_text_done(AgJsonText *json)
{
	skip_blanks(json);
	return !json->failed && json->at == json->end && json->depth == 0;
}
