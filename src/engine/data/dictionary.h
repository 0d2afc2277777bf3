/*
 * dictionary.h - distinct texts and their codes (private to the data room).
 *
 * Codes are given in order of arrival; ag_dictionary_canonicalise renumbers them so that nothing
 * depends on that order. Functions that take memory return false when there is none.
 */
#ifndef AG_DICTIONARY_H
#define AG_DICTIONARY_H

#include "engine/base/mem.h"
#include "engine/data/table.h"

/* Makes an empty dictionary of an all-zero one. */
bool ag_dictionary_init(AgDictionary *dictionary, AgMem *mem);
void ag_dictionary_free(AgDictionary *dictionary, AgMem *mem); /* all-zero allowed */

/* The code of a text, given a new one when it wasn't there. Counts aren't touched. */
bool ag_dictionary_add(AgDictionary *dictionary, AgMem *mem, const char *text, uint32_t n_bytes,
					   uint32_t *code);

/* The code of a text, or AG_NO_CODE. */
uint32_t ag_dictionary_find(const AgDictionary *dictionary, const char *text, uint32_t n_bytes);

/*
 * Renumbers by (count descending, bytes ascending), leaving out levels whose count is 0.
 * new_codes[old n_levels] gets each old code's new one (AG_NO_CODE: left out).
 */
bool ag_dictionary_canonicalise(AgDictionary *dictionary, AgMem *mem, uint32_t *new_codes);

/* A copy of the first max_levels levels. `to` is initialised by it; free it whatever it returns. */
bool ag_dictionary_copy(const AgDictionary *from, uint32_t max_levels, AgDictionary *to,
						AgMem *mem);

#endif
