/*
 * text.c - characters, words and statistics of one text.
 */
#include "engine/data/text.h"

#include <string.h>

#include "engine/base/rng.h"

const char ag_text_symbols[AG_TEXT_N_SYMBOLS + 1] = "!?@%$*&#^.:/;-=,";

typedef enum CharClass
{
	CHAR_BLANK,
	CHAR_SYMBOL,
	CHAR_DIGIT,
	CHAR_UPPER,
	CHAR_LOWER, /* and letters without case */
	CHAR_ALONE  /* a word by itself */
} CharClass;

/* The next character; bytes that are no UTF-8 come one by one, as private characters. at < end. */
static uint32_t
next_char(const unsigned char **at, const unsigned char *end)
{
	const unsigned char *p = *at;
	uint32_t c = *p;
	int more = c >= 0xf0 && c < 0xf5   ? 3
			   : c >= 0xe0 && c < 0xf0 ? 2
			   : c >= 0xc2 && c < 0xe0 ? 1
									   : 0;

	if (c < 0x80)
	{
		*at = p + 1;
		return c;
	}
	if (more == 0 || end - p <= more)
	{
		*at = p + 1;
		return 0xe000 + c;
	}
	c &= 0x3fu >> more;
	for (int i = 1; i <= more; i++)
	{
		if ((p[i] & 0xc0) != 0x80)
		{
			*at = p + 1;
			return 0xe000 + p[0];
		}
		c = c << 6 | (p[i] & 0x3f);
	}
	*at = p + more + 1;
	return c;
}

/* Lower case of Latin, Greek and Cyrillic letters; all others as they are. */
static uint32_t
lower_of(uint32_t c)
{
	if (c < 0x80)
		return c >= 'A' && c <= 'Z' ? c + 32 : c;
	if (c < 0x100)
		return c >= 0xc0 && c <= 0xde && c != 0xd7 ? c + 32 : c;
	if (c < 0x180)
	{
		if (c == 0x130)
			return 'i';
		if (c == 0x178)
			return 0xff;
		/* pairs begin at even numbers, but for two stretches */
		if ((c >= 0x139 && c <= 0x148) || c >= 0x179)
			return (c & 1) != 0 && c != 0x17f ? c + 1 : c;
		return (c & 1) == 0 && c != 0x138 ? c + 1 : c;
	}
	if (c >= 0x391 && c <= 0x3ab && c != 0x3a2)
		return c + 32;
	if (c >= 0x388 && c <= 0x38a)
		return c + 37;
	if (c == 0x386)
		return 0x3ac;
	if (c == 0x38c)
		return 0x3cc;
	if (c == 0x38e || c == 0x38f)
		return c + 63;
	if (c >= 0x410 && c <= 0x42f)
		return c + 32;
	if (c >= 0x400 && c <= 0x40f)
		return c + 80;
	if (c >= 0x460 && c <= 0x4ff && (c < 0x482 || c > 0x489) && (c < 0x4c0 || c > 0x4cf))
		return c | 1;
	if (c >= 0x1e00 && c <= 0x1eff && (c < 0x1e96 || c > 0x1e9f))
		return c | 1;
	return c;
}

static CharClass
class_of(uint32_t c)
{
	if (c < 0x80)
	{
		if (c >= 'a' && c <= 'z')
			return CHAR_LOWER;
		if (c >= 'A' && c <= 'Z')
			return CHAR_UPPER;
		if (c >= '0' && c <= '9')
			return CHAR_DIGIT;
		return c <= ' ' || c == 0x7f ? CHAR_BLANK : CHAR_SYMBOL;
	}
	if (c == 0xa0 || (c >= 0x2000 && c <= 0x200b) || c == 0x2028 || c == 0x2029 || c == 0x3000 ||
		c == 0x85)
		return CHAR_BLANK;
	if (c < 0xc0)
		return c == 0xaa || c == 0xb5 || c == 0xba ? CHAR_LOWER : CHAR_SYMBOL;
	if (c == 0xd7 || c == 0xf7 || (c > 0x200b && c <= 0x2bff) || (c >= 0x3001 && c <= 0x303f) ||
		(c >= 0xff01 && c <= 0xff0f))
		return CHAR_SYMBOL;
	if ((c >= 0x3040 && c <= 0x30ff) || (c >= 0x3400 && c <= 0x9fff) ||
		(c >= 0xf900 && c <= 0xfaff) || (c >= 0x1f000 && c <= 0x1faff) || c >= 0x20000)
		return CHAR_ALONE;
	return lower_of(c) != c ? CHAR_UPPER : CHAR_LOWER;
}

/* --- words */

#define WORD_SEED UINT64_C(0x5851f42d4c957f2d)

void
ag_text_scan(AgTextScan *scan, const char *text, uint32_t n_bytes)
{
	scan->at = (const unsigned char *) text;
	scan->end = scan->at + n_bytes;
}

bool
ag_text_next_word(AgTextScan *scan, uint64_t *hash)
{
	const unsigned char *at = scan->at, *end = scan->end;
	uint64_t word = WORD_SEED;
	bool has_word = false;

	while (at < end)
	{
		const unsigned char *before = at;
		uint32_t c = next_char(&at, end);
		CharClass kind = class_of(c);

		if (kind == CHAR_ALONE && !has_word)
		{
			word = (word ^ c) * UINT64_C(0x100000001b3);
			has_word = true;
			break;
		}
		if (kind == CHAR_BLANK || kind == CHAR_SYMBOL || kind == CHAR_ALONE)
		{
			if (!has_word)
				continue;
			at = before;
			break;
		}
		word = (word ^ lower_of(c)) * UINT64_C(0x100000001b3);
		has_word = true;
	}
	scan->at = at;
	*hash = ag_mix64(word);
	return has_word;
}

uint32_t
ag_text_terms(const char *text, uint32_t n_bytes, uint64_t *hashes)
{
	AgTextScan scan;
	uint64_t word, last = 0, last_pair = 0;
	uint32_t n = 0;
	int n_words = 0;

	ag_text_scan(&scan, text, n_bytes);
	while (n_words < AG_TEXT_MAX_WORDS && ag_text_next_word(&scan, &word))
	{
		uint64_t pair = ag_key(last, word);

		hashes[n++] = word;
		if (n_words >= 1)
			hashes[n++] = pair;
		if (n_words >= 2)
			hashes[n++] = ag_key(~last_pair, word);
		last = word;
		last_pair = pair;
		n_words++;
	}
	return n;
}

/* --- statistics */

void
ag_text_stats(const char *text, uint32_t n_bytes, AgTextStats *stats)
{
	const unsigned char *at = (const unsigned char *) text, *end = at + n_bytes;
	bool in_word = false;

	memset(stats, 0, sizeof *stats);
	while (at < end)
	{
		uint32_t c = next_char(&at, end);
		CharClass kind = class_of(c);

		stats->n_chars++;
		if (kind != CHAR_BLANK && !in_word)
			stats->n_words++;
		in_word = kind != CHAR_BLANK;
		stats->n_upper += kind == CHAR_UPPER;
		stats->n_lower += kind == CHAR_LOWER;
		stats->n_digits += kind == CHAR_DIGIT;
		if (kind != CHAR_SYMBOL)
			continue;
		stats->n_special++;
		for (int i = 0; i < AG_TEXT_N_SYMBOLS && c < 0x80; i++)
			if ((unsigned char) ag_text_symbols[i] == c)
				stats->n_symbols[i]++;
	}
}

/* --- numbers */

static bool
is_digit(unsigned char c)
{
	return c >= '0' && c <= '9';
}

/* The number that begins at *at, which is a digit; sets *at behind it. */
static double
read_number(const unsigned char **at, const unsigned char *end, bool *has_point)
{
	static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8, 1e9,
								  1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18};
	const unsigned char *p = *at;
	uint64_t mantissa = 0;
	int n_digits = 0, n_fraction = 0, n_dropped = 0;

	*has_point = false;
	for (; p < end; p++)
	{
		if (is_digit(*p))
		{
			if (n_digits < 18)
			{
				mantissa = mantissa * 10 + (*p - '0');
				n_digits += mantissa > 0;
				n_fraction += *has_point;
			}
			else
				n_dropped += !*has_point;
		}
		else if (*p == ',' && !*has_point && end - p > 3 && is_digit(p[1]) && is_digit(p[2]) &&
				 is_digit(p[3]) && (end - p == 4 || !is_digit(p[4])))
			continue;
		else if (*p == '.' && !*has_point && end - p > 1 && is_digit(p[1]))
			*has_point = true;
		else
			break;
	}
	*at = p;
	if (n_dropped > 0)
		return (double) mantissa * tens[n_dropped < 18 ? n_dropped : 18];
	/* zeros before the first other digit make a fraction longer than the table */
	for (; n_fraction > 18; n_fraction--)
		mantissa /= 10;
	return (double) mantissa / tens[n_fraction];
}

/* The hash of the letters at `at`, behind at most one blank; 0: there are none. */
static uint64_t
unit_at(const unsigned char *at, const unsigned char *end)
{
	uint64_t hash = WORD_SEED;
	int n = 0;

	if (at < end && *at == ' ')
		at++;
	while (at < end && n < 16)
	{
		uint32_t c = next_char(&at, end);
		CharClass kind = class_of(c);

		if (kind != CHAR_LOWER && kind != CHAR_UPPER && !(n == 0 && c == '%'))
			break;
		hash = (hash ^ lower_of(c)) * UINT64_C(0x100000001b3);
		n++;
	}
	return n == 0 ? 0 : ag_mix64(hash) | 1;
}

/* A minus that is no hyphen: at the beginning, or behind a blank or an opening bracket. */
static bool
is_minus(const unsigned char *begin, const unsigned char *at)
{
	return at > begin && at[-1] == '-' &&
		   (at - 1 == begin || at[-2] == ' ' || at[-2] == '(' || at[-2] == '$');
}

/* A long run without a blank: a key, a hash or an address, whose digits are no numbers. */
static bool
is_code(const unsigned char *text, uint32_t n_bytes)
{
	return n_bytes >= 24 && memchr(text, ' ', n_bytes) == NULL;
}

void
ag_text_numbers(const char *text, uint32_t n_bytes, AgTextNumbers *numbers)
{
	const unsigned char *begin = (const unsigned char *) text, *at = begin, *end = at + n_bytes;
	bool has_letters = false;

	memset(numbers, 0, sizeof *numbers);
	if (is_code(begin, n_bytes))
		return;
	numbers->is_plain = true;
	while (at < end && numbers->n < AG_TEXT_NUMBERS)
	{
		const unsigned char *from = at;
		bool has_point;
		double value;

		if (!is_digit(*at))
		{
			uint32_t c = next_char(&at, end);
			CharClass kind = class_of(c);

			has_letters |= kind == CHAR_LOWER || kind == CHAR_UPPER || kind == CHAR_ALONE;
			numbers->is_plain &= kind == CHAR_BLANK;
			continue;
		}
		value = read_number(&at, end, &has_point);
		if (is_minus(begin, from))
			value = -value;
		if (numbers->n == 0)
		{
			numbers->is_first = !has_letters;
			numbers->has_point = has_point;
			numbers->unit = unit_at(at, end);
		}
		numbers->is_plain &= !has_point && numbers->n == 0;
		numbers->values[numbers->n++] = value;
	}
	for (; at < end; at++)
		numbers->is_plain &= *at == ' ';
}
