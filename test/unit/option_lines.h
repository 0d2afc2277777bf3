/*
 * option_lines.h - options written as lines of text, parsed as a fit does.
 */
#ifndef AG_TEST_OPTION_LINES_H
#define AG_TEST_OPTION_LINES_H

#include "unit/unit.h"

#include "engine/search/fit_state.h"

#define MAX_ENTRIES 64

/*
 * A test writes entries as text: "path type text" a line, type one of n b 0 s { [ (null, bool, number, string, object,
 * array). Parents come first, as from the glue.
 */
static AgStatus
parse(AgMem *mem, const char *lines, AgFitOptions **options, AgError *err)
{
	static const char types[] = "nb0s{[";
	AgOptionEntry entries[MAX_ENTRIES];
	char *copy = strdup(lines), *line, *save = NULL;
	int n = 0;
	AgStatus status;

	for (line = strtok_r(copy, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save))
	{
		char *type = strchr(line, ' ');

		AG_REQUIRE(type != NULL && n < MAX_ENTRIES);
		*type++ = '\0';
		entries[n].path = line;
		entries[n].type = (AgJson) (strchr(types, *type) - types);
		entries[n].text = type[1] == ' ' ? type + 2 : "";
		n++;
	}
	ag_error_init(err);
	status = ag_options_parse(mem, entries, n, options, err);
	AG_CHECK_EQ(status, err->status);
	AG_CHECK_EQ(*options == NULL, status != AG_OK);
	free(copy);
	return status;
}

static void
refused(AgMem *mem, const char *lines, AgStatus expected, const char *message, const char *hint)
{
	AgFitOptions *options;
	AgError err;

	AG_CHECK_EQ(parse(mem, lines, &options, &err), expected);
	AG_CHECK_STR(err.message, message);
	AG_CHECK_STR(err.hint, hint);
	ag_options_free(options);
}

static AgFitOptions *
accepted(AgMem *mem, const char *lines)
{
	AgFitOptions *options;
	AgError err;

	if (!AG_CHECK_EQ(parse(mem, lines, &options, &err), AG_OK))
	{
		fprintf(stderr, "    %s: %s\n", lines, err.message);
		exit(1);
	}
	return options;
}

#endif
