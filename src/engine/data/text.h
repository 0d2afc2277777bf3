/*
 * text.h - what can be read off one text: its words, its statistics, the numbers and the date in it (private to the
 * data room).
 *
 * Nothing depends on a locale. Bytes are taken as UTF-8; what isn't valid counts as letters. Letters of Latin, Greek and
 * Cyrillic are lower-cased; nothing is composed or decomposed.
 */
#ifndef AG_TEXT_H
#define AG_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A word is a run of letters and digits, or one character of a script that is written without spaces. */
typedef struct AgTextScan
{
	const unsigned char *at, *end;
} AgTextScan;

void ag_text_scan(AgTextScan *scan, const char *text, uint32_t n_bytes);
/* The hash of the next word in lower case; false: there is none. */
bool ag_text_next_word(AgTextScan *scan, uint64_t *hash);

#define AG_TEXT_MAX_WORDS 1024 /* of a text that count; those behind are ignored */
#define AG_TEXT_MAX_TERMS (3 * AG_TEXT_MAX_WORDS)

/* The hashes of a text's words, pairs and triples of neighbours, at most AG_TEXT_MAX_TERMS; returns how many. */
uint32_t ag_text_terms(const char *text, uint32_t n_bytes, uint64_t *hashes);

#define AG_TEXT_N_SYMBOLS 16
/* They are counted each; the order is part of the format. */
extern const char ag_text_symbols[AG_TEXT_N_SYMBOLS + 1];

typedef struct AgTextStats
{
	uint32_t n_chars, n_words; /* words: runs between blanks */
	uint32_t n_upper, n_lower, n_digits, n_special;
	uint32_t n_symbols[AG_TEXT_N_SYMBOLS];
} AgTextStats;

void ag_text_stats(const char *text, uint32_t n_bytes, AgTextStats *stats);

#define AG_TEXT_NUMBERS 2 /* that are looked for in a text */

typedef struct AgTextNumbers
{
	int n;
	double values[AG_TEXT_NUMBERS];
	uint64_t unit;  /* hash of the letters behind the first number, lower-cased; 0: none */
	bool is_first;  /* the first number stands at the beginning, but for signs and blanks */
	bool is_plain;  /* the text is digits and blanks only */
	bool has_point; /* the first number has a fraction */
} AgTextNumbers;

/* "23.4 kmpl", "190Nm@ 2,000rpm", "$37500". Groups of three digits may be parted by commas. */
void ag_text_numbers(const char *text, uint32_t n_bytes, AgTextNumbers *numbers);

/* How a column writes its dates. The numbers are part of the format. */
typedef enum AgTextDate
{
	AG_TEXT_NO_DATE = 0,
	AG_TEXT_YMD = 1, /* 2024-02-29, 2024/02/29 */
	AG_TEXT_MDY = 2, /* 2/29/2024 */
	AG_TEXT_DMY = 3  /* 29.2.2024, 29/2/2024 */
} AgTextDate;

/*
 * A date, with a time of day behind it or not, in microseconds since 2000-01-01; a zone's offset is left out. False: the
 * text is none.
 */
bool ag_text_date(const char *text, uint32_t n_bytes, AgTextDate format, int64_t *timestamp_us);

#endif
