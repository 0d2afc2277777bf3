/*
 * options_json.c - see options_json.h.
 *
 * jsonb is walked here and checked in the engine, where a fuzzer can reach. The iterator flattens the tree into tokens; a
 * stack of the open containers gives each value its JSON pointer.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/numeric.h"

#include "pg/errors.h"
#include "pg/options_json.h"

/* Each value has a path of its own: of long ones, memory would be a multiple of the options' size. */
#define MOST_PATH_BYTES 4096

typedef struct Container
{
	int path_length; /* of its own path, in `path` */
	bool is_array;
	int next; /* arrays: index of the next element */
} Container;

typedef struct Walk
{
	StringInfoData path; /* of the current node */
	Container *stack;
	int depth, stack_size;
	AgOptionEntry *entries;
	int n, size;
} Walk;

/* A key as a step of a JSON pointer: '~' and '/' are escaped (RFC 6901, section 3). */
static void
append_step(StringInfo path, const char *key, int n)
{
	appendStringInfoChar(path, '/');
	for (int i = 0; i < n; i++)
	{
		if (key[i] == '~')
			appendStringInfoString(path, "~0");
		else if (key[i] == '/')
			appendStringInfoString(path, "~1");
		else
			appendStringInfoChar(path, key[i]);
	}
}

static void
add_entry(Walk *walk, AgJson type, const char *text)
{
	if (walk->n >= AG_MAX_OPTION_ENTRIES)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("too many values in the options of ag_fit (more than %d)",
							   AG_MAX_OPTION_ENTRIES)));
	if (walk->path.len > MOST_PATH_BYTES)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("a name in the options of ag_fit is too long, or nested too deeply"),
						errdetail("The names on the way to a value have at most %d bytes.",
								  MOST_PATH_BYTES)));
	if (walk->n >= walk->size)
	{
		walk->size *= 2;
		walk->entries = repalloc(walk->entries, walk->size * sizeof(AgOptionEntry));
	}
	walk->entries[walk->n].path = ag_text_to_utf8(pstrdup(walk->path.data));
	walk->entries[walk->n].type = type;
	walk->entries[walk->n].text = ag_text_to_utf8(text);
	walk->n++;
}

static void
add_scalar(Walk *walk, const JsonbValue *value)
{
	switch (value->type)
	{
		case jbvNull:
			add_entry(walk, AG_JSON_NULL, "null");
			break;
		case jbvBool:
			add_entry(walk, AG_JSON_BOOL, value->val.boolean ? "true" : "false");
			break;
		case jbvNumeric:
			add_entry(walk, AG_JSON_NUMBER,
					  DatumGetCString(
						  DirectFunctionCall1(numeric_out, NumericGetDatum(value->val.numeric))));
			break;
		case jbvString:
			add_entry(walk, AG_JSON_STRING, pnstrdup(value->val.string.val, value->val.string.len));
			break;
		default:
			elog(ERROR, "unexpected jsonb value of type %d", (int) value->type);
	}
}

/* Puts the path at the element about to be read, if the open container is an array. */
static void
step_into_array(Walk *walk)
{
	Container *top = walk->depth > 0 ? &walk->stack[walk->depth - 1] : NULL;

	if (top != NULL && top->is_array)
	{
		walk->path.len = top->path_length;
		walk->path.data[walk->path.len] = '\0';
		appendStringInfo(&walk->path, "/%d", top->next++);
	}
}

static void
open_container(Walk *walk, const JsonbValue *value, bool is_array)
{
	if (walk->depth > 0) /* the root has no entry */
	{
		step_into_array(walk);
		add_entry(walk, is_array ? AG_JSON_ARRAY : AG_JSON_OBJECT,
				  psprintf("%d", is_array ? value->val.array.nElems : value->val.object.nPairs));
	}
	if (walk->depth >= walk->stack_size)
	{
		walk->stack_size *= 2;
		walk->stack = repalloc(walk->stack, walk->stack_size * sizeof(Container));
	}
	walk->stack[walk->depth].path_length = walk->path.len;
	walk->stack[walk->depth].is_array = is_array;
	walk->stack[walk->depth].next = 0;
	walk->depth++;
}

void
ag_options_flatten(Jsonb *options, AgOptionEntry **entries, int *n_entries)
{
	JsonbIterator *iterator;
	JsonbIteratorToken token;
	JsonbValue value;
	Walk walk = {0};

	if (!JB_ROOT_IS_OBJECT(options) || JB_ROOT_IS_SCALAR(options))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the options of ag_fit must be a JSON object"),
				 errhint("For example: ag_fit('expenses', 'amount', '{\"time_limit\": 60}').")));
	initStringInfo(&walk.path);
	walk.stack_size = 8;
	walk.stack = palloc(walk.stack_size * sizeof(Container));
	walk.size = 16;
	walk.entries = palloc(walk.size * sizeof(AgOptionEntry));
	iterator = JsonbIteratorInit(&options->root);
	while ((token = JsonbIteratorNext(&iterator, &value, false)) != WJB_DONE)
	{
		switch (token)
		{
			case WJB_BEGIN_OBJECT:
				open_container(&walk, &value, false);
				break;
			case WJB_BEGIN_ARRAY:
				open_container(&walk, &value, true);
				break;
			case WJB_KEY:
				walk.path.len = walk.stack[walk.depth - 1].path_length;
				walk.path.data[walk.path.len] = '\0';
				append_step(&walk.path, value.val.string.val, value.val.string.len);
				break;
			case WJB_VALUE:
				add_scalar(&walk, &value);
				break;
			case WJB_ELEM:
				step_into_array(&walk);
				add_scalar(&walk, &value);
				break;
			case WJB_END_OBJECT:
			case WJB_END_ARRAY:
				walk.depth--;
				break;
			default:
				break;
		}
	}
	*entries = walk.entries;
	*n_entries = walk.n;
}

JsonbValue *
ag_options_member(Jsonb *options, const char *name)
{
	JsonbValue key = {.type = jbvString}, *value;

	if (!JB_ROOT_IS_OBJECT(options))
		return NULL;
	key.val.string.val = (char *) name;
	key.val.string.len = (int) strlen(name);
	value = findJsonbValueFromContainer(&options->root, JB_FOBJECT, &key);
	return value != NULL && value->type != jbvNull ? value : NULL;
}
