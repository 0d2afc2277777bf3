/*
 * dictionary.c - distinct texts and their codes.
 *
 * Open addressing with linear probing over slots of 64 bits: the upper half is half of the text's hash, the
 * lower half the code plus one. So a miss is seen without touching the texts, which lie packed in chunks
 * that never move.
 */
#include "engine/data/dictionary.h"

#include <string.h>

#define FIRST_SLOTS 64
#define FIRST_CHUNK 1024
#define LAST_CHUNK ((size_t) 1 << 20)

typedef struct TextChunk
{
	struct TextChunk *next;
	char bytes[];
} TextChunk;

typedef struct AgDictionaryIndex
{
	uint64_t *slots;
	uint32_t mask;     /* number of slots - 1 */
	uint32_t capacity; /* of texts, n_bytes, counts */
	TextChunk *chunks;
	char *free_at; /* in the youngest chunk */
	size_t n_free;
	size_t next_chunk;
} AgDictionaryIndex;

static inline uint64_t
multiply_fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128) a * b;

	return (uint64_t) product ^ (uint64_t) (product >> 64);
}

static inline uint64_t
load64(const char *at)
{
	uint64_t word;

	memcpy(&word, at, 8);
	return word;
}

/*
 * A hash for this table alone (it is in no format): 16 bytes a multiplication, the last 16 overlapping those before
 * where the length is no multiple.
 */
static inline uint64_t
hash_text(const char *text, uint32_t n)
{
	const uint64_t k0 = UINT64_C(0x9e3779b97f4a7c15), k1 = UINT64_C(0xd1b54a32d192ed03);
	uint64_t hash = n * k1;
	uint64_t a = 0, b = 0;

	if (n > 16)
	{
		const char *end = text + n;

		for (; end - text > 16; text += 16)
			hash = multiply_fold(load64(text) ^ hash, load64(text + 8) ^ k0);
		a = load64(end - 16);
		b = load64(end - 8);
	}
	else if (n >= 8)
	{
		a = load64(text);
		b = load64(text + n - 8);
	}
	else if (n >= 4)
	{
		uint32_t low, high;

		memcpy(&low, text, 4);
		memcpy(&high, text + n - 4, 4);
		a = low;
		b = high;
	}
	else if (n > 0)
	{
		a = (uint64_t) (unsigned char) text[0] << 16 | (uint64_t) (unsigned char) text[n / 2] << 8 |
			(unsigned char) text[n - 1];
	}
	hash = multiply_fold(a ^ hash ^ k1, b ^ k0);
	return multiply_fold(hash ^ k0, k1);
}

bool
ag_dictionary_init(AgDictionary *dictionary, AgMem *mem)
{
	AgDictionaryIndex *index = ag_mem_zalloc(mem, 1, sizeof(AgDictionaryIndex));

	if (index == NULL)
		return false;
	index->slots = ag_mem_zalloc(mem, FIRST_SLOTS, sizeof(uint64_t));
	if (index->slots == NULL)
	{
		ag_mem_free(mem, index);
		return false;
	}
	index->mask = FIRST_SLOTS - 1;
	index->next_chunk = FIRST_CHUNK;
	dictionary->index = index;
	return true;
}

void
ag_dictionary_free(AgDictionary *dictionary, AgMem *mem)
{
	if (dictionary->index != NULL)
	{
		TextChunk *chunk = dictionary->index->chunks;

		while (chunk != NULL)
		{
			TextChunk *next = chunk->next;

			ag_mem_free(mem, chunk);
			chunk = next;
		}
		ag_mem_free(mem, dictionary->index->slots);
		ag_mem_free(mem, dictionary->index);
	}
	ag_mem_free(mem, dictionary->texts);
	ag_mem_free(mem, dictionary->n_bytes);
	ag_mem_free(mem, dictionary->counts);
	memset(dictionary, 0, sizeof *dictionary);
}

static bool
grow_levels(AgDictionary *dictionary, AgMem *mem)
{
	AgDictionaryIndex *index = dictionary->index;
	size_t capacity = index->capacity < 32 ? 32 : (size_t) index->capacity + index->capacity / 2;
	void *grown;

	if (capacity >= AG_NO_CODE)
		return false;
	if ((grown = ag_mem_realloc(mem, dictionary->texts, capacity, sizeof(char *))) == NULL)
		return false;
	dictionary->texts = grown;
	if ((grown = ag_mem_realloc(mem, dictionary->n_bytes, capacity, sizeof(uint32_t))) == NULL)
		return false;
	dictionary->n_bytes = grown;
	if ((grown = ag_mem_realloc(mem, dictionary->counts, capacity, sizeof(int64_t))) == NULL)
		return false;
	dictionary->counts = grown;
	index->capacity = (uint32_t) capacity;
	return true;
}

static void
put_slot(uint64_t *slots, uint32_t mask, uint64_t hash, uint32_t code)
{
	uint32_t at = (uint32_t) hash & mask;

	while (slots[at] != 0)
		at = (at + 1) & mask;
	slots[at] = (hash & UINT64_C(0xffffffff00000000)) | (code + 1);
}

/* New slots, n a power of two, with every level in them. */
static bool
rebuild_slots(AgDictionary *dictionary, AgMem *mem, size_t n)
{
	uint64_t *slots = ag_mem_zalloc(mem, n, sizeof(uint64_t));

	if (slots == NULL)
		return false;
	for (uint32_t code = 0; code < dictionary->n_levels; code++)
		put_slot(slots, (uint32_t) (n - 1),
				 hash_text(dictionary->texts[code], dictionary->n_bytes[code]), code);
	ag_mem_free(mem, dictionary->index->slots);
	dictionary->index->slots = slots;
	dictionary->index->mask = (uint32_t) (n - 1);
	return true;
}

static const char *
keep_text(AgDictionaryIndex *index, AgMem *mem, const char *text, uint32_t n_bytes)
{
	char *to;

	if (n_bytes > index->n_free)
	{
		size_t size = index->next_chunk > n_bytes ? index->next_chunk : n_bytes;
		TextChunk *chunk = ag_mem_alloc(mem, sizeof(TextChunk) + size, 1);

		if (chunk == NULL)
			return NULL;
		chunk->next = index->chunks;
		index->chunks = chunk;
		index->free_at = chunk->bytes;
		index->n_free = size;
		if (index->next_chunk < LAST_CHUNK)
			index->next_chunk *= 2;
	}
	if (n_bytes == 0)
		return "";
	to = index->free_at;
	memcpy(to, text, n_bytes);
	index->free_at += n_bytes;
	index->n_free -= n_bytes;
	return to;
}

bool
ag_dictionary_add(AgDictionary *dictionary, AgMem *mem, const char *text, uint32_t n_bytes,
				  uint32_t *code)
{
	AgDictionaryIndex *index = dictionary->index;
	uint64_t hash = hash_text(text, n_bytes);
	uint32_t at = (uint32_t) hash & index->mask;
	uint32_t level;

	for (; index->slots[at] != 0; at = (at + 1) & index->mask)
	{
		if ((index->slots[at] ^ hash) >> 32 != 0)
			continue;
		level = (uint32_t) index->slots[at] - 1;
		if (dictionary->n_bytes[level] == n_bytes &&
			(n_bytes == 0 || memcmp(dictionary->texts[level], text, n_bytes) == 0))
		{
			*code = level;
			return true;
		}
	}
	level = dictionary->n_levels;
	if (level == index->capacity && !grow_levels(dictionary, mem))
		return false;
	dictionary->texts[level] = keep_text(index, mem, text, n_bytes);
	if (dictionary->texts[level] == NULL)
		return false;
	dictionary->n_bytes[level] = n_bytes;
	dictionary->counts[level] = 0;
	dictionary->n_levels++;
	*code = level;
	if (level >= index->mask / 4 * 3)
		return rebuild_slots(dictionary, mem, ((size_t) index->mask + 1) * 2);
	index->slots[at] = (hash & UINT64_C(0xffffffff00000000)) | (level + 1);
	return true;
}

uint32_t
ag_dictionary_find(const AgDictionary *dictionary, const char *text, uint32_t n_bytes)
{
	const AgDictionaryIndex *index = dictionary->index;
	uint64_t hash = hash_text(text, n_bytes);
	uint32_t at = (uint32_t) hash & index->mask;

	for (; index->slots[at] != 0; at = (at + 1) & index->mask)
	{
		uint32_t level = (uint32_t) index->slots[at] - 1;

		if ((index->slots[at] ^ hash) >> 32 == 0 && dictionary->n_bytes[level] == n_bytes &&
			(n_bytes == 0 || memcmp(dictionary->texts[level], text, n_bytes) == 0))
			return level;
	}
	return AG_NO_CODE;
}

/* A level as it is sorted: most comparisons end in the first two words. */
typedef struct SortLevel
{
	int64_t count;
	uint64_t prefix; /* the first eight bytes, as a big-endian number, zero behind the end */
	uint32_t code;
} SortLevel;

static bool
comes_before(const AgDictionary *dictionary, const SortLevel *a, const SortLevel *b)
{
	uint32_t n_a, n_b;
	int order;

	if (a->count != b->count)
		return a->count > b->count;
	if (a->prefix != b->prefix)
		return a->prefix < b->prefix;
	n_a = dictionary->n_bytes[a->code];
	n_b = dictionary->n_bytes[b->code];
	order = memcmp(dictionary->texts[a->code], dictionary->texts[b->code], n_a < n_b ? n_a : n_b);
	return order != 0 ? order < 0 : n_a < n_b;
}

/* Bottom-up merge sort of n levels; spare has room for n. Returns where the result lies. */
static SortLevel *
sort_levels(const AgDictionary *dictionary, SortLevel *levels, SortLevel *spare, size_t n)
{
	for (size_t width = 1; width < n; width *= 2)
	{
		SortLevel *swap;

		for (size_t begin = 0; begin < n; begin += 2 * width)
		{
			size_t middle = n - begin < width ? n : begin + width;
			size_t end = n - begin < 2 * width ? n : begin + 2 * width;
			size_t left = begin, right = middle;

			for (size_t to = begin; to < end; to++)
			{
				if (left < middle &&
					(right == end || !comes_before(dictionary, &levels[right], &levels[left])))
					spare[to] = levels[left++];
				else
					spare[to] = levels[right++];
			}
		}
		swap = levels;
		levels = spare;
		spare = swap;
	}
	return levels;
}

static uint64_t
prefix_of(const char *text, uint32_t n)
{
	unsigned char bytes[8] = {0};
	uint64_t prefix = 0;

	memcpy(bytes, text, n < 8 ? n : 8);
	for (int i = 0; i < 8; i++)
		prefix = prefix << 8 | bytes[i];
	return prefix;
}

bool
ag_dictionary_canonicalise(AgDictionary *dictionary, AgMem *mem, uint32_t *new_codes)
{
	uint32_t n_old = dictionary->n_levels;
	uint32_t n = 0;
	SortLevel *levels = ag_mem_alloc(mem, n_old, 2 * sizeof(SortLevel));
	const char **texts = ag_mem_alloc(mem, n_old, sizeof(char *));
	uint32_t *n_bytes = ag_mem_alloc(mem, n_old, sizeof(uint32_t));
	int64_t *counts = ag_mem_alloc(mem, n_old, sizeof(int64_t));
	const SortLevel *sorted;
	size_t n_slots = FIRST_SLOTS;

	if (levels == NULL || texts == NULL || n_bytes == NULL || counts == NULL)
	{
		ag_mem_free(mem, levels);
		ag_mem_free(mem, texts);
		ag_mem_free(mem, n_bytes);
		ag_mem_free(mem, counts);
		return false;
	}
	for (uint32_t code = 0; code < n_old; code++)
	{
		new_codes[code] = AG_NO_CODE;
		if (dictionary->counts[code] == 0)
			continue;
		levels[n].count = dictionary->counts[code];
		levels[n].prefix = prefix_of(dictionary->texts[code], dictionary->n_bytes[code]);
		levels[n].code = code;
		n++;
	}
	sorted = sort_levels(dictionary, levels, levels + n_old, n);
	for (uint32_t code = 0; code < n; code++)
	{
		uint32_t old = sorted[code].code;

		texts[code] = dictionary->texts[old];
		n_bytes[code] = dictionary->n_bytes[old];
		counts[code] = dictionary->counts[old];
		new_codes[old] = code;
	}
	ag_mem_free(mem, levels);
	ag_mem_free(mem, dictionary->texts);
	ag_mem_free(mem, dictionary->n_bytes);
	ag_mem_free(mem, dictionary->counts);
	dictionary->texts = texts;
	dictionary->n_bytes = n_bytes;
	dictionary->counts = counts;
	dictionary->n_levels = n;
	dictionary->index->capacity = n_old;
	while (n_slots / 4 * 3 <= n)
		n_slots *= 2;
	return rebuild_slots(dictionary, mem, n_slots);
}

bool
ag_dictionary_copy(const AgDictionary *from, uint32_t max_levels, AgDictionary *to, AgMem *mem)
{
	uint32_t n = from->n_levels < max_levels ? from->n_levels : max_levels;

	memset(to, 0, sizeof *to);
	if (!ag_dictionary_init(to, mem))
		return false;
	for (uint32_t level = 0; level < n; level++)
	{
		uint32_t code;

		if (!ag_dictionary_add(to, mem, from->texts[level], from->n_bytes[level], &code))
			return false;
		to->counts[code] = from->counts[level];
	}
	return true;
}
