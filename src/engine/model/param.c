#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/nearest.h"
#include "engine/model/param.h"

/* The next blank-separated word from *list on; NULL at the end. */
static const char *
next_word(const char **list, size_t *n_bytes)
{
	const char *word = *list;

	while (*word == ' ')
		word++;
	if (*word == '\0')
		return NULL;
	*n_bytes = strcspn(word, " ");
	*list = word + *n_bytes;
	return word;
}

/* The place of name among the words of list, or -1. */
static int
word_index(const char *list, const char *name)
{
	size_t n_name = strlen(name), n_bytes;
	const char *word;

	for (int i = 0; list != NULL && (word = next_word(&list, &n_bytes)) != NULL; i++)
		if (n_bytes == n_name && memcmp(word, name, n_bytes) == 0)
			return i;
	return -1;
}

const AgParamSpec *
ag_param_find(const AgParamSpec *specs, int n_specs, const char *name, const char **nearest)
{
	AgNearest close;

	if (nearest != NULL)
		*nearest = NULL;
	for (int i = 0; i < n_specs; i++)
		if (strcmp(specs[i].name, name) == 0 || word_index(specs[i].aliases, name) >= 0)
			return &specs[i];
	if (nearest == NULL)
		return NULL;
	ag_nearest_init(&close, name);
	for (int i = 0; i < n_specs; i++)
		ag_nearest_offer(&close, specs[i].name);
	*nearest = ag_nearest_name(&close);
	return NULL;
}

const char *
ag_param_word(const AgParamSpec *spec, double value, size_t *n_bytes)
{
	const char *list = spec->choices, *word = NULL;
	double index = spec->type == AG_PARAM_REAL ? -1.0 - value : value;

	if (list == NULL || !(index >= 0.0))
		return NULL;
	for (double i = 0.0; i <= index && (word = next_word(&list, n_bytes)) != NULL; i++)
		;
	return word;
}

static void
store(const AgParamSpec *spec, double value, void *params)
{
	char *at = (char *) params + spec->offset;

	switch (spec->type)
	{
		case AG_PARAM_REAL:
			memcpy(at, &value, sizeof value);
			break;
		case AG_PARAM_BOOL:
		{
			bool flag = value != 0.0;

			memcpy(at, &flag, sizeof flag);
			break;
		}
		case AG_PARAM_INT:
		case AG_PARAM_CHOICE:
		{
			int number = (int) value;

			memcpy(at, &number, sizeof number);
			break;
		}
		case AG_PARAM_INTS:
			memset(at, 0, sizeof(AgParamInts));
			break;
		case AG_PARAM_CHOICE_NUMBER:
		{
			AgParamChoice choice = {(int) value, (double) NAN};

			memcpy(at, &choice, sizeof choice);
			break;
		}
	}
}

void
ag_params_default(const AgParamSpec *specs, int n_specs, void *params)
{
	for (int i = 0; i < n_specs; i++)
		store(&specs[i], specs[i].normal, params);
}

/* Appends to the NUL-terminated text, as far as it fits. */
static void __attribute__((format(printf, 3, 4)))
append(char *text, size_t size, const char *format, ...)
{
	size_t used = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + used, size - used, format, args);
	va_end(args);
}

char *
ag_param_takes(const AgParamSpec *spec, char *text, size_t size)
{
	const char *choices = spec->choices, *word;
	bool has_min = isfinite(spec->min), has_max = isfinite(spec->max);
	size_t n_bytes;

	if (size == 0)
		return text;
	text[0] = '\0';
	switch (spec->type)
	{
		case AG_PARAM_BOOL:
			append(text, size, "true or false");
			break;
		case AG_PARAM_CHOICE:
		case AG_PARAM_CHOICE_NUMBER:
			append(text, size, "one of");
			for (int i = 0; (word = next_word(&choices, &n_bytes)) != NULL; i++)
				append(text, size, "%s\"%.*s\"", i > 0 ? ", " : " ", (int) n_bytes, word);
			break;
		case AG_PARAM_INT:
		case AG_PARAM_REAL:
			append(text, size, "%s", spec->type == AG_PARAM_INT ? "an integer" : "a number");
			if (has_min && has_max)
				append(text, size, " from %.10g to %.10g", spec->min, spec->max);
			else if (has_min)
				append(text, size, " of at least %.10g", spec->min);
			else if (has_max)
				append(text, size, " of at most %.10g", spec->max);
			for (int i = 0; choices != NULL && (word = next_word(&choices, &n_bytes)) != NULL; i++)
				append(text, size, "%s\"%.*s\"", i > 0 ? ", " : " or one of ", (int) n_bytes, word);
			break;
		case AG_PARAM_INTS:
			append(text, size, "a list of at most %d integers from %.10g to %.10g",
				   AG_PARAM_MAX_INTS, spec->min, spec->max);
			break;
	}
	return text;
}

/*
 * Reads text as a JSON number. strtod alone would also take "inf", "nan", hexadecimal
 * and leading blanks.
 */
static bool
read_number(const char *text, double *value)
{
	const char *at = text;
	char *end;

	if (*at == '-')
		at++;
	if (*at < '0' || *at > '9' || text[strspn(text, "0123456789+-.eE")] != '\0')
		return false;
	*value = strtod(text, &end);
	return *end == '\0' && isfinite(*value);
}

/* True when text is a value of the spec's type and range. */
static bool
read_value(const AgParamSpec *spec, const char *text, bool is_string, double *value)
{
	int choice;

	switch (spec->type)
	{
		case AG_PARAM_BOOL:
			*value = strcmp(text, "true") == 0;
			return !is_string && (*value != 0.0 || strcmp(text, "false") == 0);
		case AG_PARAM_CHOICE:
			choice = word_index(spec->choices, text);
			*value = choice;
			return is_string && choice >= 0;
		case AG_PARAM_INT:
			return !is_string && read_number(text, value) && *value == floor(*value) &&
				   *value >= INT_MIN && *value <= INT_MAX && *value >= spec->min &&
				   *value <= spec->max;
		case AG_PARAM_REAL:
			choice = is_string ? word_index(spec->choices, text) : -1;
			if (choice >= 0)
			{
				*value = -1.0 - choice;
				return true;
			}
			return !is_string && read_number(text, value) && *value >= spec->min &&
				   *value <= spec->max;
		case AG_PARAM_INTS:
		case AG_PARAM_CHOICE_NUMBER:
			break;
	}
	return false;
}

/* One of the words, "word:key=number", or the word alone of those: then without a number. */
static bool
read_choice(const AgParamSpec *spec, const char *text, bool is_string, AgParamChoice *choice)
{
	const char *list = spec->choices, *word;
	size_t n_bytes, n_text = strlen(text);

	choice->number = (double) NAN;
	for (int i = 0; is_string && (word = next_word(&list, &n_bytes)) != NULL; i++)
	{
		const char *colon = memchr(word, ':', n_bytes);
		size_t n_name = colon != NULL ? (size_t) (colon - word) : n_bytes;

		choice->choice = i;
		if (n_text == n_name && memcmp(word, text, n_name) == 0)
			return true;
		if (colon != NULL && n_text > n_bytes && memcmp(word, text, n_bytes) == 0)
			return read_number(text + n_bytes, &choice->number);
	}
	return false;
}

/* True when text is a JSON array of integers in the spec's range, which list gets. */
static bool
read_ints(const AgParamSpec *spec, const char *text, bool is_string, AgParamInts *list)
{
	const char *at = text + strspn(text, " \t\n\r");
	char *end;

	memset(list, 0, sizeof *list);
	if (is_string || *at++ != '[')
		return false;
	at += strspn(at, " \t\n\r");
	while (*at != ']')
	{
		long value;

		if (list->n == AG_PARAM_MAX_INTS || ((*at < '0' || *at > '9') && *at != '-'))
			return false;
		value = strtol(at, &end, 10);
		if (end == at || (double) value < spec->min || (double) value > spec->max)
			return false;
		list->values[list->n++] = (int) value;
		at = end + strspn(end, " \t\n\r");
		if (*at == ',')
		{
			at += 1 + strspn(at + 1, " \t\n\r");
			if (*at == ']')
				return false;
		}
		else if (*at != ']')
			return false;
	}
	at++;
	return at[strspn(at, " \t\n\r")] == '\0';
}

#define SHOWN_BYTES 72

/* What the user wrote, at most 64 bytes of it, cut at a character's end. */
static const char *
shown(const char *text, char buffer[SHOWN_BYTES])
{
	size_t n = strnlen(text, 65);

	if (n <= 64)
		return text;
	for (n = 64; n > 0 && ((unsigned char) text[n] & 0xC0) == 0x80; n--)
		;
	memcpy(buffer, text, n);
	memcpy(buffer + n, "...", 4);
	return buffer;
}

static AgStatus
unknown_name(const AgParamSpec *specs, int n_specs, const char *family, const char *name,
			 const char *nearest, AgError *err)
{
	char names[900] = "", given[SHOWN_BYTES];
	AgStatus status;

	status = ag_error_set(err, AG_ERR_OPTION, "unrecognized parameter \"%s\" for family %s",
						  shown(name, given), family);
	if (nearest != NULL)
	{
		ag_error_hint(err, "Did you mean \"%s\"?", nearest);
		return status;
	}
	for (int i = 0; i < n_specs; i++)
		append(names, sizeof names, "%s%s", i > 0 ? ", " : "", specs[i].name);
	ag_error_hint(err, "Family %s takes: %s.", family, names);
	return status;
}

AgStatus
ag_param_set(const AgParamSpec *specs, int n_specs, const char *family, const char *name,
			 const char *text, bool is_string, void *params, AgError *err)
{
	const char *nearest;
	const AgParamSpec *spec = ag_param_find(specs, n_specs, name, &nearest);
	char takes[400];
	char given[SHOWN_BYTES];
	double value = 0.0;
	AgParamInts list;
	AgParamChoice choice;

	if (spec == NULL)
		return unknown_name(specs, n_specs, family, name, nearest, err);
	if (spec->type == AG_PARAM_INTS && read_ints(spec, text, is_string, &list))
	{
		memcpy((char *) params + spec->offset, &list, sizeof list);
		return AG_OK;
	}
	if (spec->type == AG_PARAM_CHOICE_NUMBER && read_choice(spec, text, is_string, &choice))
	{
		memcpy((char *) params + spec->offset, &choice, sizeof choice);
		return AG_OK;
	}
	if (read_value(spec, text, is_string, &value))
	{
		store(spec, value, params);
		return AG_OK;
	}
	return ag_error_set(err, AG_ERR_OPTION, "parameter \"%s\" of family %s takes %s, not %s%s%s",
						name, family, ag_param_takes(spec, takes, sizeof takes),
						is_string ? "the text \"" : "", shown(text, given), is_string ? "\"" : "");
}
