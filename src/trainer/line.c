/*
 * line.c - see line.h.
 */
#define _GNU_SOURCE
#include "trainer/line.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#define LINE_BYTES 4000
#define FIELD_BYTES 1200

static int output = -1;
static bool failed;

bool
ag_line_begin(void)
{
	failed = false;
	output = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 10);
	return output >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0;
}

/* Adds a text, control characters written \xHH; cut where the field or the line is full. */
static size_t
add_text(char *line, size_t at, const char *text)
{
	size_t end = at + FIELD_BYTES < LINE_BYTES - 8 ? at + FIELD_BYTES : LINE_BYTES - 8;

	for (; *text != '\0' && at < end; text++)
	{
		unsigned char c = (unsigned char) *text;

		if (c >= ' ' && c != 0x7f)
			line[at++] = (char) c;
		else
			at += (size_t) snprintf(line + at, 5, "\\x%02x", c);
	}
	return at;
}

static void
write_all(const char *bytes, size_t n)
{
	while (n > 0 && !failed)
	{
		ssize_t done = write(output, bytes, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			failed = true;
		else
		{
			bytes += done;
			n -= (size_t) done;
		}
	}
}

void
ag_line_print(const char *key, const char *types, ...)
{
	char line[LINE_BYTES], number[32];
	size_t at = add_text(line, 0, key);
	va_list fields;

	va_start(fields, types);
	for (; *types != '\0'; types++)
	{
		const char *text = number;

		if (*types == 's')
			text = va_arg(fields, const char *);
		else
			snprintf(number, sizeof number, "%" PRId64, va_arg(fields, int64_t));
		if (at < LINE_BYTES - 8)
			line[at++] = '\t';
		at = add_text(line, at, text != NULL ? text : "");
	}
	va_end(fields);
	line[at++] = '\n';
	write_all(line, at);
}

bool
ag_line_end(void)
{
	return !failed;
}
