/* param.c - parameter tables: names, aliases, defaults, what is taken and what the refusals say. */
#include "unit/unit.h"

#include <stddef.h>

#include "engine/base/nearest.h"
#include "engine/model/param.h"

typedef struct Params
{
	int leaves;
	double rate;
	bool extra;
	int kind;
	double features;
	int guard;
} Params;

static const AgParamSpec specs[] = {
	{"num_leaves", "leaves max_leaves", AG_PARAM_INT, 2, 1000, 31, NULL, "",
	 offsetof(Params, leaves)},
	{"learning_rate", "eta", AG_PARAM_REAL, 0, INFINITY, 0.05, NULL, "", offsetof(Params, rate)},
	{"extra_trees", NULL, AG_PARAM_BOOL, 0, 1, 0, NULL, "", offsetof(Params, extra)},
	{"criterion", NULL, AG_PARAM_CHOICE, 0, 1, 1, "gini entropy", "", offsetof(Params, kind)},
	{"max_features", NULL, AG_PARAM_REAL, 0, 8, -2, "all sqrt", "", offsetof(Params, features)},
};
#define N_SPECS ((int) (sizeof specs / sizeof specs[0]))

static AgError err;
static Params params;

static AgStatus
set(const char *name, const char *text, bool is_string)
{
	ag_error_init(&err);
	return ag_param_set(specs, N_SPECS, "GBM", name, text, is_string, &params, &err);
}

static void
defaults(void)
{
	memset(&params, 0x55, sizeof params);
	params.guard = 77;
	ag_params_default(specs, N_SPECS, &params);
	AG_CHECK_EQ(params.leaves, 31);
	AG_CHECK(params.rate == 0.05);
	AG_CHECK(!params.extra);
	AG_CHECK_EQ(params.kind, 1);
	AG_CHECK_EQ(params.guard, 77);
}

/* A number, or one of some words. */
static void
words(void)
{
	size_t n = 0;

	ag_params_default(specs, N_SPECS, &params);
	AG_CHECK(params.features == -2.0);
	AG_CHECK_EQ(set("max_features", "0.5", false), AG_OK);
	AG_CHECK(params.features == 0.5);
	AG_CHECK(ag_param_word(&specs[4], 0.5, &n) == NULL);
	AG_CHECK_EQ(set("max_features", "all", true), AG_OK);
	AG_CHECK(params.features == -1.0);
	AG_CHECK(strncmp(ag_param_word(&specs[4], -2.0, &n), "sqrt", 4) == 0 && n == 4);
	AG_CHECK(ag_param_word(&specs[4], -3.0, &n) == NULL);
	AG_CHECK(strncmp(ag_param_word(&specs[3], 1.0, &n), "entropy", 7) == 0 && n == 7);
	AG_CHECK(ag_param_word(&specs[0], 31.0, &n) == NULL);
	AG_CHECK_EQ(set("max_features", "-1", false), AG_ERR_OPTION);
	AG_CHECK_EQ(set("max_features", "cube", true), AG_ERR_OPTION);
	AG_CHECK_STR(err.message, "parameter \"max_features\" of family GBM takes a number from 0 to 8 "
							  "or one of \"all\", \"sqrt\", not the text \"cube\"");
	AG_CHECK(params.features == -1.0);
}

static void
taken(void)
{
	AG_CHECK_EQ(set("num_leaves", "64", false), AG_OK);
	AG_CHECK_EQ(params.leaves, 64);
	AG_CHECK_EQ(set("max_leaves", "2", false), AG_OK);
	AG_CHECK_EQ(params.leaves, 2);
	AG_CHECK_EQ(set("leaves", "1e3", false), AG_OK);
	AG_CHECK_EQ(params.leaves, 1000);
	AG_CHECK_EQ(set("num_leaves", "5.0", false), AG_OK);
	AG_CHECK_EQ(params.leaves, 5);
	AG_CHECK_EQ(set("eta", "0.125", false), AG_OK);
	AG_CHECK(params.rate == 0.125);
	AG_CHECK_EQ(set("learning_rate", "0", false), AG_OK);
	AG_CHECK(params.rate == 0.0);
	AG_CHECK_EQ(set("extra_trees", "true", false), AG_OK);
	AG_CHECK(params.extra);
	AG_CHECK_EQ(set("extra_trees", "false", false), AG_OK);
	AG_CHECK(!params.extra);
	AG_CHECK_EQ(set("criterion", "gini", true), AG_OK);
	AG_CHECK_EQ(params.kind, 0);
}

/* Whatever is refused leaves the value alone. */
static void
refused(void)
{
	static const struct
	{
		const char *name, *text;
		bool is_string;
	} bad[] = {
		{"num_leaves", "1", false},      {"num_leaves", "1001", false},
		{"num_leaves", "2.5", false},    {"num_leaves", "31", true},
		{"num_leaves", "1e400", false},  {"num_leaves", "99999999999", false},
		{"num_leaves", "", false},       {"num_leaves", "null", false},
		{"num_leaves", "[31]", false},   {"num_leaves", "true", false},
		{"num_leaves", " 31", false},    {"num_leaves", "31 ", false},
		{"num_leaves", "0x1f", false},   {"num_leaves", "+31", false},
		{"learning_rate", "-1", false},  {"learning_rate", "nan", false},
		{"learning_rate", "inf", false}, {"learning_rate", "1e999", false},
		{"learning_rate", "-", false},   {"learning_rate", "1e", false},
		{"extra_trees", "1", false},     {"extra_trees", "true", true},
		{"extra_trees", "True", false},  {"criterion", "Gini", true},
		{"criterion", "gini", false},    {"criterion", "gini entropy", true},
		{"criterion", "", true},         {"criterion", "gin", true},
	};

	ag_params_default(specs, N_SPECS, &params);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
	{
		if (!AG_CHECK_EQ(set(bad[i].name, bad[i].text, bad[i].is_string), AG_ERR_OPTION))
			fprintf(stderr, "    %s = %s\n", bad[i].name, bad[i].text);
		AG_CHECK(strstr(err.message, bad[i].name) != NULL);
	}
	AG_CHECK_EQ(params.leaves, 31);
	AG_CHECK(params.rate == 0.05);
	AG_CHECK(!params.extra);
	AG_CHECK_EQ(params.kind, 1);
}

static void
texts(void)
{
	char text[100], small[10];

	set("num_leaves", "1", false);
	AG_CHECK_STR(err.message,
				 "parameter \"num_leaves\" of family GBM takes an integer from 2 to 1000, not 1");
	set("learning_rate", "fast", true);
	AG_CHECK_STR(err.message,
				 "parameter \"learning_rate\" of family GBM takes a number of at least 0, "
				 "not the text \"fast\"");
	set("criterion", "log_loss", true);
	AG_CHECK_STR(err.message, "parameter \"criterion\" of family GBM takes one of \"gini\", "
							  "\"entropy\", not the text \"log_loss\"");
	set("num_leave", "1", false);
	AG_CHECK_STR(err.message, "unrecognized parameter \"num_leave\" for family GBM");
	AG_CHECK_STR(err.hint, "Did you mean \"num_leaves\"?");
	set("zzzz", "1", false);
	AG_CHECK_STR(
		err.hint,
		"Family GBM takes: num_leaves, learning_rate, extra_trees, criterion, max_features.");
	AG_CHECK_STR(ag_param_takes(&specs[2], text, sizeof text), "true or false");
	AG_CHECK_STR(ag_param_takes(&specs[0], small, sizeof small), "an intege");
}

/* A text of any length is shown by its beginning, whole characters of it. */
static void
long_texts(void)
{
	char text[3001];

	for (int i = 0; i < 3000; i += 2)
		memcpy(text + i, "\xc3\xa9", 2);
	memset(text + 1, 'x', 1); /* now characters end at odd bytes */
	text[0] = 'x';
	memmove(text + 1, text + 2, 2998);
	text[2999] = '\0';
	AG_CHECK_EQ(set(text, "1", false), AG_ERR_OPTION);
	AG_CHECK(strstr(err.message, "\xc3\xa9...\" for family GBM") != NULL);
	AG_CHECK_EQ(set("criterion", text, true), AG_ERR_OPTION);
	AG_CHECK(strstr(err.message, "\xc3\xa9...\"") != NULL);
	AG_CHECK_EQ(ag_param_set(specs, N_SPECS, "GBM", "x", "1", false, &params, NULL), AG_ERR_OPTION);
}

static const char *
nearest(const char *wanted)
{
	static const char *const names[] = {"time_limit", "num_leaves",  "num_gpus", "num_cpus",
										"presets",    "eval_metric", "name"};
	AgNearest near;

	ag_nearest_init(&near, wanted);
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		ag_nearest_offer(&near, names[i]);
	return ag_nearest_name(&near);
}

static void
names(void)
{
	char longest[200];

	AG_CHECK_STR(nearest("time_limt"), "time_limit");
	AG_CHECK_STR(nearest("tiem_limit"), "time_limit");
	AG_CHECK_STR(nearest("TIME-LIMIT"), "time_limit");
	AG_CHECK_STR(nearest("leaves"), "num_leaves");
	AG_CHECK_STR(nearest("metric"), "eval_metric");
	AG_CHECK_STR(nearest("preset"), "presets");
	AG_CHECK_STR(nearest("num_gpu"), "num_gpus");
	AG_CHECK_STR(nearest("nmae"), "name");
	AG_CHECK(nearest("") == NULL);
	AG_CHECK(nearest("x") == NULL);
	AG_CHECK(nearest("completely_else") == NULL);
	memset(longest, 'n', sizeof longest - 1);
	longest[sizeof longest - 1] = '\0';
	AG_CHECK(nearest(longest) == NULL);
	longest[AG_NEAREST_MAX] = '\0';
	AG_CHECK(nearest(longest) == NULL);
}

int
main(void)
{
	defaults();
	taken();
	words();
	refused();
	texts();
	long_texts();
	names();
	return ag_unit_done("param");
}
