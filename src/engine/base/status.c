/*
 * status.c - the text of a fault.
 */
#include "engine/base/status.h"

#include <stdio.h>
#include <string.h>

size_t
ag_utf8_clip(const char *text, size_t n_bytes, size_t limit)
{
	size_t n = n_bytes < limit ? n_bytes : limit;
	int back = 0;

	if (n == n_bytes)
		return n;
	/* A character has at most three continuation bytes; more of them are no UTF-8, and cut where they are. */
	while (back < 3 && n > (size_t) back &&
		   ((unsigned char) text[n - (size_t) back] & 0xc0) == 0x80)
		back++;
	if (((unsigned char) text[n - (size_t) back] & 0xc0) == 0x80)
		return n;
	return n - (size_t) back;
}

static void
format_text(char *to, size_t size, const char *format, va_list args)
{
	int n = vsnprintf(to, size, format, args);

	if (n < 0)
		to[0] = '\0';
	else if ((size_t) n >= size)
	{
		/* Keep a few bytes less than there are, so that the byte at the cut is at hand to judge by. */
		to[ag_utf8_clip(to, size - 1, size - 2)] = '\0';
	}
}

void
ag_error_init(AgError *err)
{
	if (err == NULL)
		return;
	err->status = AG_OK;
	err->message[0] = '\0';
	err->detail[0] = '\0';
	err->hint[0] = '\0';
}

AgStatus
ag_error_set(AgError *err, AgStatus status, const char *format, ...)
{
	va_list args;

	if (err == NULL)
		return status;
	if (err->status != AG_OK)
		return err->status;
	err->status = status;
	va_start(args, format);
	format_text(err->message, sizeof err->message, format, args);
	va_end(args);
	err->detail[0] = '\0';
	err->hint[0] = '\0';
	return status;
}

void
ag_error_detail(AgError *err, const char *format, ...)
{
	va_list args;

	if (err == NULL || err->status == AG_OK || err->detail[0] != '\0')
		return;
	va_start(args, format);
	format_text(err->detail, sizeof err->detail, format, args);
	va_end(args);
}

void
ag_error_hint(AgError *err, const char *format, ...)
{
	va_list args;

	if (err == NULL || err->status == AG_OK || err->hint[0] != '\0')
		return;
	va_start(args, format);
	format_text(err->hint, sizeof err->hint, format, args);
	va_end(args);
}
