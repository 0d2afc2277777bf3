/*
 * options.c - fuzzes the parser of ag_fit's options. The input is lines "path type text", type one of n b 0 s { [ for
 * null, boolean, number, string, object, array (as test/unit/options.c writes them).
 */
#include <stdlib.h>
#include <string.h>

#include "engine/search/options.h"

#define MAX_LINES 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char types[] = "nb0s{[";
	static AgOptionEntry entries[MAX_LINES];
	char *text = malloc(size + 1), *line = text;
	AgFitOptions *options;
	AgMem mem;
	AgError err;
	int n = 0;

	memcpy(text, data, size);
	text[size] = '\0';
	while (*line != '\0' && n < MAX_LINES)
	{
		char *end = line + strcspn(line, "\n"), *next = *end == '\0' ? end : end + 1;
		char *type = memchr(line, ' ', (size_t) (end - line));

		*end = '\0';
		entries[n].path = line;
		entries[n].type = AG_JSON_NULL;
		entries[n].text = "";
		if (type != NULL)
		{
			const char *known = type[1] != '\0' ? strchr(types, type[1]) : NULL;

			*type = '\0';
			entries[n].type = known != NULL ? (AgJson) (known - types) : (AgJson) type[1];
			if (type[1] != '\0' && type[2] == ' ')
				entries[n].text = type + 3;
		}
		n++;
		line = next;
	}
	ag_mem_init(&mem, INT64_C(64) << 20);
	ag_error_init(&err);
	if ((ag_options_parse(&mem, entries, n, &options, &err) == AG_OK) != (options != NULL) ||
		(options == NULL) != (err.status != AG_OK))
		abort();
	/* what was accepted is within what the engine relies on */
	if (options != NULL && (options->n_models < 1 || options->n_models > AG_MAX_MODELS ||
							options->verbosity < 0 || options->verbosity > 4))
		abort();
	ag_options_free(options);
	if (mem.used_bytes != 0)
		abort();
	free(text);
	return 0;
}
