/*
 * html.c - fuzzes the escaping of texts in reports: what comes out is short enough, printable ASCII, and no markup.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/html.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The length of the reference at text[0] == '&'; 0: it is none. */
static size_t
reference(const char *text, size_t n)
{
	const char *end = memchr(text, ';', n);
	size_t length = end == NULL ? 0 : (size_t) (end - text) + 1;

	if (length < 4 || length > 10)
		return 0;
	for (size_t i = 1; i + 1 < length; i++)
		if (!(text[i] == '#' && i == 1) && !(text[i] >= '0' && text[i] <= '9') &&
			!(text[i] >= 'a' && text[i] <= 'z'))
			return 0;
	return length;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *out = malloc(size * AG_HTML_GROWTH + 1); /* so that ASan sees one byte too many */
	size_t n, length;

	if (out == NULL)
		return 0;
	n = ag_html_escape((const char *) data, size, out);
	if (n > size * AG_HTML_GROWTH)
		abort();
	for (size_t i = 0; i < n; i += length)
	{
		length = out[i] == '&' ? reference(out + i, n - i) : 1;
		if (length == 0 || out[i] < ' ' || out[i] > '~' || strchr("<>\"'", out[i]) != NULL)
			abort();
	}
	free(out);
	return 0;
}
