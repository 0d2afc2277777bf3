/*
 * param.h - the hyperparameters of a family: one table a family serves parsing, checking,
 * help texts and ag_families().
 */
#ifndef AG_PARAM_H
#define AG_PARAM_H

#include "engine/base/context.h"

typedef enum AgParamType
{
	AG_PARAM_INT,
	AG_PARAM_REAL, /* with `choices`: a number >= 0, or one of them, stored as -1 - its index */
	AG_PARAM_BOOL,
	AG_PARAM_CHOICE, /* one of `choices`; stored as its index in an int */
	AG_PARAM_INTS,   /* a list of integers, empty by default; stored as an AgParamInts */
	AG_PARAM_CHOICE_NUMBER /* one of `choices`, of which "word:key=" takes a number behind; stored as an AgParamChoice */
} AgParamType;

#define AG_PARAM_MAX_INTS 16

typedef struct AgParamInts
{
	int n;
	int values[AG_PARAM_MAX_INTS];
} AgParamInts;

/* The number is NaN where none was given; a choice of words without "=" has none. */
typedef struct AgParamChoice
{
	int choice;
	double number;
} AgParamChoice;

typedef struct AgParamSpec
{
	const char *name;
	const char *aliases; /* blank-separated, or NULL */
	AgParamType type;
	double min, max;     /* both allowed; infinite: no bound on that side */
	double normal;       /* the default; BOOL: 0 or 1; CHOICE and CHOICE_NUMBER: the index */
	const char *choices; /* CHOICE, and REAL that takes words too: blank-separated; else NULL */
	const char *help;    /* one line: what it does, its unit */
	size_t
		offset; /* where the value sits in the family's struct: int, double, bool, AgParamInts or AgParamChoice */
} AgParamSpec;

/*
 * The spec that a name (or alias) means; NULL when none. *nearest (may be NULL) gets the closest name for the hint.
 */
const AgParamSpec *ag_param_find(const AgParamSpec *specs, int n_specs, const char *name,
								 const char **nearest);
/* The word that a value of a spec with choices means, of *n_bytes; NULL when it is a number. */
const char *ag_param_word(const AgParamSpec *spec, double value, size_t *n_bytes);
/* Fills a family's struct with the defaults. */
void ag_params_default(const AgParamSpec *specs, int n_specs, void *params);
/*
 * What a parameter takes, for messages and listings: "an integer from 2 to 131072", "true or false",
 * "one of \"gini\", \"entropy\"". Returns text, cut to size bytes.
 */
char *ag_param_takes(const AgParamSpec *spec, char *text, size_t size);
/*
 * Sets one parameter from JSON text (number, true/false, null, an array or object as text, or a string without
 * quotes). is_string says whether it was a string. AG_ERR_OPTION names the parameter, what it takes and what was
 * given, or the nearest name when there is none of that name; params is unchanged then.
 */
AgStatus ag_param_set(const AgParamSpec *specs, int n_specs, const char *family, const char *name,
					  const char *text, bool is_string, void *params, AgError *err);

#endif
