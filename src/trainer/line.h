/*
 * line.h - facts as lines of fields parted by tabs (probe.h).
 */
#ifndef AG_TRAINER_LINE_H
#define AG_TRAINER_LINE_H

#include <stdbool.h>

/* Keeps standard output for the lines: what libraries print there goes to standard error from now on. */
bool ag_line_begin(void);

/* A line, out at once. types: a letter a field, s a text (may be NULL: empty), i an int64_t. Longer texts are cut. */
void ag_line_print(const char *key, const char *types, ...);

/* False when some line could not be written. */
bool ag_line_end(void);

#endif
