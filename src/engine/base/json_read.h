/*
 * json_read.h - JSON text read from front to back, without a tree of it: the caller asks for what should come next.
 *
 * As with AgReader the first fault sets `failed`, and from then on every call answers false, 0 or an empty text; so callers test it once, at the
 * end of what belongs together. Nothing is ever read behind the text's end, and nesting is bounded.
 */
#ifndef AG_JSON_READ_H
#define AG_JSON_READ_H

#include "engine/base/mem.h"

#include <stdbool.h>
#include <stddef.h>

#define AG_JSON_DEPTH 64

typedef struct AgJsonText
{
	const char *at, *end;
	AgArena *arena; /* of the strings that are read */
	int depth;
	bool is_first; /* of the object or array just begun */
	bool failed;
	bool no_memory; /* that was why */
} AgJsonText;

void ag_json_text_init(AgJsonText *json, const char *text, size_t n_bytes, AgArena *arena);

/* An object: begun, then while ag_json_next_key says so a key, whose value must be read or skipped. */
bool ag_json_begin_object(AgJsonText *json);
bool ag_json_next_key(AgJsonText *json, const char **key);
/* An array: begun, then while ag_json_next_item says so an item to be read or skipped. */
bool ag_json_begin_array(AgJsonText *json);
bool ag_json_next_item(AgJsonText *json);

/* The first byte of the value that comes: '{', '[', '"', 't', 'f', 'n', '-' or a digit; 0: none. */
char ag_json_peek(AgJsonText *json);

/* A number; true and false are 1 and 0. Not finite, or none: a fault. */
double ag_json_read_number(AgJsonText *json);
/* The same as an integer between bounds. */
long ag_json_read_integer(AgJsonText *json, long low, long high);
/* A string, NUL-terminated in the arena; one that holds a NUL itself is a fault. */
const char *ag_json_read_string(AgJsonText *json);
/* Any value, left out. */
void ag_json_skip(AgJsonText *json);

/* Is all of it read? */
bool ag_json_text_done(AgJsonText *json);

#endif
