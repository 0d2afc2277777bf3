/*
 * options_tree.c - from flat entries to a tree, and single values.
 */
#include "engine/search/options_tree.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/hash.h"
#include "engine/search/json.h"

#define SHOWN_BYTES 60 /* of a value in a message */

/* Paths to nodes: open addressing over the pointers, twice as many slots as entries. */
typedef struct PathIndex
{
	AgOptionNode **slots;
	size_t mask;
} PathIndex;

static AgOptionNode **
path_slot(const PathIndex *index, const char *path, size_t n)
{
	size_t at = (size_t) ag_hash64(path, n, 0) & index->mask;

	while (index->slots[at] != NULL &&
		   (strncmp(index->slots[at]->path, path, n) != 0 || index->slots[at]->path[n] != '\0'))
		at = (at + 1) & index->mask;
	return &index->slots[at];
}

/* One step of a JSON pointer with ~1 and ~0 resolved; NULL when out of memory. */
static char *
step_unescape(AgArena *arena, const char *step)
{
	char *out = ag_arena_strndup(arena, step, strlen(step)), *to = out;

	for (const char *from = step; out != NULL && *from != '\0'; from++)
	{
		if (*from == '~' && (from[1] == '0' || from[1] == '1'))
			*to++ = *++from == '0' ? '~' : '/';
		else
			*to++ = *from;
	}
	if (out != NULL)
		*to = '\0';
	return out;
}

static AgStatus
tree_malformed(AgError *err)
{
	return ag_error_set(err, AG_ERR_OPTION, "malformed list of options");
}

static AgStatus
node_add(AgArena *arena, PathIndex *index, const AgOptionEntry *entry, AgOptionNode *node,
		 AgError *err)
{
	const char *step = strrchr(entry->path, '/');
	AgOptionNode **slot, *parent;
	size_t n = strnlen(entry->path, AG_MAX_OPTION_PATH + 1);

	if (step == NULL || entry->path[0] != '/' || (unsigned) entry->type > AG_JSON_ARRAY)
		return tree_malformed(err);
	if (n > AG_MAX_OPTION_PATH)
		return ag_error_set(
			err, AG_ERR_OPTION, "options have a name of more than %d bytes: \"%.*s...\"",
			AG_MAX_OPTION_PATH, (int) ag_utf8_clip(entry->path + 1, n - 1, SHOWN_BYTES),
			entry->path + 1);
	parent = *path_slot(index, entry->path, (size_t) (step - entry->path));
	if (parent == NULL || (parent->type != AG_JSON_OBJECT && parent->type != AG_JSON_ARRAY))
		return tree_malformed(err);
	slot = path_slot(index, entry->path, n);
	if (*slot != NULL)
		return ag_error_set(err, AG_ERR_OPTION, "option \"%s\" is given twice", entry->path + 1);
	if (parent->depth >= AG_MAX_OPTION_DEPTH)
		return ag_error_set(err, AG_ERR_OPTION, "options are nested deeper than %d levels",
							AG_MAX_OPTION_DEPTH);
	node->path = entry->path;
	node->text = entry->text;
	node->type = entry->type;
	node->depth = parent->depth + 1;
	node->key = step_unescape(arena, step + 1);
	if (node->key == NULL)
		return ag_mem_error(arena->mem, n, err);
	if (parent->last == NULL)
		parent->first = node;
	else
		parent->last->next = node;
	parent->last = node;
	parent->n_children++;
	*slot = node;
	return AG_OK;
}

AgStatus
ag_option_tree_build(AgArena *arena, const AgOptionEntry *entries, int n_entries,
					 AgOptionNode **root, AgError *err)
{
	PathIndex index;
	AgOptionNode *nodes;
	size_t n_slots = 16;

	*root = NULL;
	if (n_entries < 0 || n_entries > AG_MAX_OPTION_ENTRIES)
		return ag_error_set(err, AG_ERR_OPTION, "options have more than %d values",
							AG_MAX_OPTION_ENTRIES);
	while (n_slots < (size_t) n_entries * 2 + 2)
		n_slots *= 2;
	index.mask = n_slots - 1;
	index.slots = ag_arena_alloc(arena, n_slots, sizeof *index.slots);
	nodes = ag_arena_alloc(arena, (size_t) n_entries + 1, sizeof *nodes);
	if (index.slots == NULL || nodes == NULL)
		return ag_mem_error(arena->mem, n_slots * sizeof *index.slots, err);
	nodes[0].path = nodes[0].key = nodes[0].text = "";
	nodes[0].type = AG_JSON_OBJECT;
	*path_slot(&index, "", 0) = &nodes[0];
	for (int i = 0; i < n_entries; i++)
		AG_TRY(node_add(arena, &index, &entries[i], &nodes[i + 1], err));
	*root = &nodes[0];
	return AG_OK;
}

const AgOptionNode *
ag_option_child(const AgOptionNode *node, const char *key)
{
	for (const AgOptionNode *child = node->first; child != NULL; child = child->next)
		if (strcmp(child->key, key) == 0)
			return child;
	return NULL;
}

/* Recursion is bounded by AG_MAX_OPTION_DEPTH. */
static void
json_value(AgWriter *out, const AgOptionNode *node)
{
	bool first = true;

	switch (node->type)
	{
		case AG_JSON_NULL:
			ag_json_raw(out, "null");
			break;
		case AG_JSON_BOOL:
		case AG_JSON_NUMBER:
			ag_json_raw(out, node->text);
			break;
		case AG_JSON_STRING:
			ag_json_string(out, node->text, strlen(node->text));
			break;
		case AG_JSON_OBJECT:
		case AG_JSON_ARRAY:
			ag_write_u8(out, node->type == AG_JSON_OBJECT ? '{' : '[');
			for (const AgOptionNode *child = node->first; child != NULL; child = child->next)
			{
				if (node->type == AG_JSON_OBJECT)
					ag_json_key(out, &first, child->key);
				else if (child != node->first)
					ag_json_raw(out, ", ");
				json_value(out, child);
			}
			ag_write_u8(out, node->type == AG_JSON_OBJECT ? '}' : ']');
			break;
	}
}

char *
ag_option_json(AgArena *arena, const AgOptionNode *node)
{
	AgWriter out;

	ag_writer_init(&out, arena->mem);
	json_value(&out, node);
	return ag_json_take(&out, arena);
}

/* JSON's number grammar; strtod would also take "0x1p3", "inf" and leading blanks. */
static bool
number_grammar(const char *at)
{
	const char *digits;

	at += *at == '-';
	digits = at;
	at += strspn(at, "0123456789");
	if (at == digits)
		return false;
	if (*at == '.')
	{
		digits = ++at;
		at += strspn(at, "0123456789");
		if (at == digits)
			return false;
	}
	if (*at == 'e' || *at == 'E')
	{
		at++;
		at += *at == '+' || *at == '-';
		digits = at;
		at += strspn(at, "0123456789");
		if (at == digits)
			return false;
	}
	return *at == '\0';
}

bool
ag_option_number(const AgOptionNode *node, double *value)
{
	if (node->type != AG_JSON_NUMBER || !number_grammar(node->text))
		return false;
	*value = strtod(node->text, NULL);
	return isfinite(*value);
}

/* Plain digits are read exactly; "1e3" and "5.0" by way of a double, which is exact up to 2^53. */
bool
ag_option_integer(const AgOptionNode *node, int64_t min, int64_t max, int64_t *value)
{
	const char *digits = node->text;
	double number;

	if (!ag_option_number(node, &number))
		return false;
	digits += *digits == '-';
	if (digits[strspn(digits, "0123456789")] == '\0')
	{
		errno = 0;
		*value = strtoll(node->text, NULL, 10);
		if (errno != 0)
			return false;
	}
	else
	{
		if (number != floor(number) || fabs(number) > 9007199254740992.0)
			return false;
		*value = (int64_t) number;
	}
	return *value >= min && *value <= max;
}

const char *
ag_option_label(const AgOptionNode *node, char *buffer, size_t size)
{
	size_t n = strlen(node->path);

	if (n > size)
		n = size;
	memcpy(buffer, node->path + (n > 0), n > 0 ? n - 1 : 0);
	buffer[n > 0 ? n - 1 : 0] = '\0';
	for (char *at = buffer; *at != '\0'; at++)
		if (*at == '/')
			*at = '.';
	return buffer;
}

AgStatus
ag_option_reject(const AgOptionNode *node, const char *what, AgError *err)
{
	char label[AG_MAX_OPTION_PATH + 1];
	size_t n = strlen(node->text);
	int shown = (int) ag_utf8_clip(node->text, n, SHOWN_BYTES);
	const char *cut = n > SHOWN_BYTES ? "..." : "";

	ag_option_label(node, label, sizeof label);
	switch (node->type)
	{
		case AG_JSON_STRING:
			return ag_error_set(err, AG_ERR_OPTION, "option \"%s\" takes %s, not \"%.*s%s\"", label,
								what, shown, node->text, cut);
		case AG_JSON_OBJECT:
		case AG_JSON_ARRAY:
			return ag_error_set(err, AG_ERR_OPTION, "option \"%s\" takes %s, not %s", label, what,
								node->type == AG_JSON_OBJECT ? "an object" : "an array");
		case AG_JSON_NULL:
		case AG_JSON_BOOL:
		case AG_JSON_NUMBER:
			break;
	}
	return ag_error_set(err, AG_ERR_OPTION, "option \"%s\" takes %s, not %.*s%s", label, what,
						node->type == AG_JSON_NULL ? 4 : shown,
						node->type == AG_JSON_NULL ? "null" : node->text, cut);
}

bool
ag_option_is_off(const AgOptionNode *node, const char *off)
{
	size_t n = strlen(node->text);
	double value, other;

	if (node->type == AG_JSON_NULL)
		return true;
	if (node->type == AG_JSON_BOOL && strcmp(node->text, "false") == 0)
		return off == NULL || strstr(off, "true") == NULL;
	if (node->type == AG_JSON_OBJECT || node->type == AG_JSON_ARRAY)
		return node->n_children == 0;
	while (off != NULL && *off != '\0')
	{
		size_t word = strcspn(off, " ");

		if (node->type == AG_JSON_NUMBER && ag_option_number(node, &value) &&
			(*off == '-' || (*off >= '0' && *off <= '9')))
		{
			other = strtod(off, NULL);
			if (value == other)
				return true;
		}
		else if (node->type != AG_JSON_NUMBER && word == n && memcmp(off, node->text, n) == 0)
			return true;
		off += word + (off[word] == ' ');
	}
	return false;
}
