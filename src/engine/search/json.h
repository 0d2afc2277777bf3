/*
 * json.h - JSON text, written piece by piece: parameters, plans, levels.
 */
#ifndef AG_JSON_WRITE_H
#define AG_JSON_WRITE_H

#include "engine/base/bytes.h"

/* A string literal of n bytes of UTF-8, quoted and escaped. */
void ag_json_string(AgWriter *out, const char *text, size_t n);
/* The shortest decimal form that reads back as the same double; null for NaN and infinity. */
void ag_json_number(AgWriter *out, double value);
/* Text as it is: punctuation, literals, numbers already written. */
void ag_json_raw(AgWriter *out, const char *text);
/* "name": with a comma in front unless *first, which it clears. */
void ag_json_key(AgWriter *out, bool *first, const char *name);
/* The text so far as a NUL-terminated copy in the arena, and the writer is given back; NULL when out of memory. */
char *ag_json_take(AgWriter *out, AgArena *arena);

#endif
