/*
 * html.c - see html.h.
 */
#include "engine/base/html.h"

#include <stdint.h>
#include <string.h>

#define REPLACEMENT 0xfffd

/*
 * The character that begins at text[0], of n >= 1 bytes, and its length; REPLACEMENT and 1 where none does. The table of well-formed
 * sequences is that of The Unicode Standard, section 3.9, table 3-7.
 */
static uint32_t
decode(const unsigned char *text, size_t n, size_t *length)
{
	unsigned char first = text[0];
	unsigned char low = 0x80, high = 0xbf; /* bounds of the second byte */
	size_t n_bytes;
	uint32_t code;

	*length = 1;
	if (first < 0x80)
		return first;
	if (first < 0xc2 || first > 0xf4)
		return REPLACEMENT;
	n_bytes = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
	if (n < n_bytes)
		return REPLACEMENT;
	if (first == 0xe0)
		low = 0xa0;
	else if (first == 0xed)
		high = 0x9f;
	else if (first == 0xf0)
		low = 0x90;
	else if (first == 0xf4)
		high = 0x8f;
	if (text[1] < low || text[1] > high)
		return REPLACEMENT;
	code = (uint32_t) first & (0xffU >> (n_bytes + 1));
	code = code << 6 | (text[1] & 0x3f);
	for (size_t i = 2; i < n_bytes; i++)
	{
		if ((text[i] & 0xc0) != 0x80)
			return REPLACEMENT;
		code = code << 6 | (text[i] & 0x3f);
	}
	*length = n_bytes;
	return code;
}

static char *
put(char *out, const char *text)
{
	size_t n = strlen(text);

	memcpy(out, text, n);
	return out + n;
}

static char *
put_reference(char *out, uint32_t code)
{
	char digits[10];
	int n = 0;

	out = put(out, "&#");
	do
		digits[n++] = (char) ('0' + code % 10);
	while ((code /= 10) > 0);
	while (n > 0)
		*out++ = digits[--n];
	*out++ = ';';
	return out;
}

static char *
put_character(char *out, uint32_t code)
{
	switch (code)
	{
		case '&':
			return put(out, "&amp;");
		case '<':
			return put(out, "&lt;");
		case '>':
			return put(out, "&gt;");
		case '"':
			return put(out, "&quot;");
		case '\'':
			return put(out, "&#39;");
		case '\t':
		case '\n':
		case '\f':
		case '\r':
			*out++ = ' ';
			return out;
	}
	if (code < 0x20 || (code >= 0x7f && code < 0xa0) || (code & 0xfffe) == 0xfffe ||
		(code >= 0xfdd0 && code <= 0xfdef))
		code = REPLACEMENT;
	if (code >= 0x80)
		return put_reference(out, code);
	*out++ = (char) code;
	return out;
}

size_t
ag_html_escape(const char *text, size_t n_bytes, char *out)
{
	const unsigned char *at = (const unsigned char *) text;
	char *end = out;
	size_t length;

	for (size_t i = 0; i < n_bytes; i += length)
		end = put_character(end, decode(at + i, n_bytes - i, &length));
	return (size_t) (end - out);
}
