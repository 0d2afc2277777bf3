/*
 * vocabulary.c - learning which terms texts have in common, and finding them in one.
 *
 * Terms are known by 64 bits of hash alone: among some ten thousand a stranger passes for one with a chance of 10^-15.
 */
#include "engine/data/vocabulary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/maths.h"
#include "engine/base/rng.h"

#define MAX_OCCURRENCES (INT64_C(4) << 20) /* terms of the sampled texts, each once a text */
#define SKETCH_BITS 22                     /* at most; a few slots a term will do */
#define SKETCH_LEAST_BITS 10
#define MIN_TEXTS 20       /* fewer say nothing about what is common */
#define LEAST_TEXTS_WITH 3 /* that have a term, of a small sample */
#define MOST_TEXTS_WITH 30 /* that suffice for any sample */
#define COMMON_SHARE 0.95  /* of the texts: what nearly all have tells none apart */
#define SVD_TEXTS 8000

typedef struct Counted
{
	uint64_t hash;
	uint32_t n_texts;
} Counted;

static int
compare_hashes(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *) left, b = *(const uint64_t *) right;

	return (a > b) - (a < b);
}

/* The most frequent first. */
static int
compare_counts(const void *left, const void *right)
{
	const Counted *a = left, *b = right;

	if (a->n_texts != b->n_texts)
		return a->n_texts < b->n_texts ? 1 : -1;
	return (a->hash > b->hash) - (a->hash < b->hash);
}

static int
compare_counted_hashes(const void *left, const void *right)
{
	return compare_hashes(left, right);
}

static uint32_t
keep_distinct(uint64_t *hashes, uint32_t n)
{
	uint32_t kept = 0;

	qsort(hashes, n, sizeof *hashes, compare_hashes);
	for (uint32_t i = 0; i < n; i++)
		if (i == 0 || hashes[i] != hashes[i - 1])
			hashes[kept++] = hashes[i];
	return kept;
}

/* Every text's distinct hashes one text after the other; fewer texts than sampled where they are long. */
static AgStatus
collect(const AgContext *ctx, const AgTextSample *sample, uint64_t **hashes, int64_t *n_hashes,
		int64_t *n_texts)
{
	size_t capacity = 0;
	uint64_t *all = NULL;
	int64_t n = 0, i;

	*hashes = NULL;
	*n_hashes = *n_texts = 0;
	for (i = 0; i < sample->n && n < MAX_OCCURRENCES; i++)
	{
		if (capacity - (size_t) n < AG_TEXT_MAX_TERMS)
		{
			size_t wanted = capacity + capacity / 2 + AG_TEXT_MAX_TERMS;
			uint64_t *more = ag_mem_realloc(ctx->mem, all, wanted, sizeof *all);

			if (more == NULL)
			{
				ag_mem_free(ctx->mem, all);
				return ag_mem_error(ctx->mem, wanted * sizeof *all, ctx->error);
			}
			all = more;
			capacity = wanted;
		}
		n += keep_distinct(all + n, ag_text_terms(sample->texts[i], sample->n_bytes[i], all + n));
		if (i % 256 == 0 && ag_cancelled(ctx))
			break;
	}
	*hashes = all;
	*n_hashes = n;
	*n_texts = i;
	return ag_check_cancel(ctx);
}

/*
 * Terms that at least `least` texts have, in any order. A sketch first counts hashes by their lower bits, an upper bound: most terms
 * of a language are rare, and are never looked at again.
 */
static AgStatus
count(const AgContext *ctx, uint64_t *hashes, int64_t n, uint32_t least, Counted **counted,
	  int64_t *n_counted)
{
	int bits = SKETCH_LEAST_BITS;
	uint8_t *sketch = NULL;
	int64_t kept = 0, found = 0;
	uint64_t mask;
	AgStatus status;

	while (bits < SKETCH_BITS && n > INT64_C(1) << bits >> 3)
		bits++;
	mask = (UINT64_C(1) << bits) - 1;
	*counted = NULL;
	AG_GO(ag_get_zeroed(ctx, (size_t) mask + 1, 1, &sketch));
	for (int64_t i = 0; i < n; i++)
		sketch[hashes[i] & mask] += sketch[hashes[i] & mask] < UINT8_MAX;
	for (int64_t i = 0; i < n; i++)
		if (sketch[hashes[i] & mask] >= least)
			hashes[kept++] = hashes[i];
	qsort(hashes, (size_t) kept, sizeof *hashes, compare_hashes);
	AG_GO(ag_get(ctx, (size_t) kept, sizeof **counted, counted));
	for (int64_t i = 0, j; i < kept; i = j)
	{
		for (j = i; j < kept && hashes[j] == hashes[i]; j++)
			;
		if (j - i >= least)
			(*counted)[found++] = (Counted){hashes[i], (uint32_t) (j - i)};
	}
	*n_counted = found;
done:
	ag_mem_free(ctx->mem, sketch);
	return status;
}

bool
ag_vocabulary_index(AgVocabulary *vocabulary, AgArena *arena)
{
	uint32_t n_slots = 16;

	while (n_slots < vocabulary->n_terms * 2)
		n_slots *= 2;
	vocabulary->slots = ag_arena_alloc(arena, n_slots, sizeof *vocabulary->slots);
	vocabulary->pool_of = ag_arena_alloc(arena, vocabulary->n_terms, sizeof *vocabulary->pool_of);
	if (vocabulary->slots == NULL || vocabulary->pool_of == NULL)
		return false;
	for (uint32_t t = 0; t < vocabulary->n_terms; t++)
		vocabulary->pool_of[t] = AG_NO_TERM;
	for (uint32_t i = 0; i < vocabulary->n_pool; i++)
		vocabulary->pool_of[vocabulary->pool[i]] = i;
	vocabulary->mask = n_slots - 1;
	for (uint32_t t = 0; t < vocabulary->n_terms; t++)
	{
		uint32_t at = (uint32_t) vocabulary->hashes[t] & vocabulary->mask;

		while (vocabulary->slots[at] != 0)
			at = (at + 1) & vocabulary->mask;
		vocabulary->slots[at] = t + 1;
	}
	return true;
}

static uint32_t
find_term(const AgVocabulary *vocabulary, uint64_t hash)
{
	uint32_t at = (uint32_t) hash & vocabulary->mask;

	for (; vocabulary->slots[at] != 0; at = (at + 1) & vocabulary->mask)
		if (vocabulary->hashes[vocabulary->slots[at] - 1] == hash)
			return vocabulary->slots[at] - 1;
	return AG_NO_TERM;
}

/* Few items, or many: insertion up to a distance that halves (Shell, with Ciura's gaps). */
static void
sort_terms(uint32_t *terms, uint32_t n)
{
	static const uint32_t gaps[] = {1750, 701, 301, 132, 57, 23, 10, 4, 1};

	for (size_t g = 0; g < sizeof gaps / sizeof gaps[0]; g++)
		for (uint32_t i = gaps[g]; i < n; i++)
		{
			uint32_t term = terms[i], j = i;

			for (; j >= gaps[g] && terms[j - gaps[g]] > term; j -= gaps[g])
				terms[j] = terms[j - gaps[g]];
			terms[j] = term;
		}
}

uint32_t
ag_vocabulary_terms(const AgVocabulary *vocabulary, const char *text, uint32_t n_bytes,
					AgTerm *terms)
{
	uint64_t hashes[AG_TEXT_MAX_TERMS];
	uint32_t found[AG_TEXT_MAX_TERMS];
	uint32_t n = ag_text_terms(text, n_bytes, hashes), n_found = 0, n_terms = 0;
	double length = 0.0;

	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t term = find_term(vocabulary, hashes[i]);

		if (term != AG_NO_TERM)
			found[n_found++] = term;
	}
	sort_terms(found, n_found);
	for (uint32_t i = 0, j; i < n_found; i = j)
	{
		double weight = vocabulary->idf[found[i]];

		for (j = i; j < n_found && found[j] == found[i]; j++)
			;
		if (j - i > 1)
			weight *= 1.0 + ag_ln((double) (j - i));
		terms[n_terms++] = (AgTerm){found[i], (float) weight};
		length += weight * weight;
	}
	length = length > 0.0 ? 1.0 / sqrt(length) : 0.0;
	for (uint32_t i = 0; i < n_terms; i++)
		terms[i].weight = (float) (terms[i].weight * length);
	return n_terms;
}

void
ag_vocabulary_place(const AgVocabulary *vocabulary, const AgTerm *terms, uint32_t n, float *out)
{
	uint32_t n_dims = vocabulary->n_dims;

	memset(out, 0, n_dims * sizeof *out);
	for (uint32_t i = 0; i < n; i++)
	{
		const float *vector = vocabulary->vectors + (size_t) terms[i].term * n_dims;

		for (uint32_t d = 0; d < n_dims; d++)
			out[d] += terms[i].weight * vector[d];
	}
}

uint32_t
ag_vocabulary_pool(const AgVocabulary *vocabulary, AgTerm *terms, uint32_t n)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++)
		if (vocabulary->pool_of[terms[i].term] != AG_NO_TERM)
			terms[kept++] = (AgTerm){vocabulary->pool_of[terms[i].term], terms[i].weight};
	return kept;
}

static AgStatus
no_memory(const AgContext *ctx, size_t n)
{
	return ag_mem_error(ctx->mem, n, ctx->error);
}

/* A term as it is ranked for the pool. */
typedef struct Ranked
{
	double power;
	uint32_t term;
} Ranked;

static int
compare_power(const void *left, const void *right)
{
	const Ranked *a = left, *b = right;

	if (a->power != b->power)
		return a->power < b->power ? 1 : -1;
	return (a->term > b->term) - (a->term < b->term);
}

static int
compare_terms(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *) left, b = *(const uint32_t *) right;

	return (a > b) - (a < b);
}

/* The terms that have most to say: how many texts have one, times the square of its weight. */
static AgStatus
choose_pool(const AgContext *ctx, AgArena *arena, uint32_t n_pool, AgVocabulary *vocabulary)
{
	uint32_t n = n_pool < vocabulary->n_terms ? n_pool : vocabulary->n_terms;
	uint32_t *pool = ag_arena_alloc(arena, n, sizeof *pool);
	Ranked *ranked;

	if (pool == NULL)
		return no_memory(ctx, n * sizeof *pool);
	AG_TRY(ag_get(ctx, vocabulary->n_terms, sizeof *ranked, &ranked));
	for (uint32_t t = 0; t < vocabulary->n_terms; t++)
	{
		double idf = vocabulary->idf[t];

		ranked[t] = (Ranked){idf * idf * ag_exp(-idf), t};
	}
	qsort(ranked, vocabulary->n_terms, sizeof *ranked, compare_power);
	for (uint32_t i = 0; i < n; i++)
		pool[i] = ranked[i].term;
	ag_mem_free(ctx->mem, ranked);
	qsort(pool, n, sizeof *pool, compare_terms);
	vocabulary->n_pool = n;
	vocabulary->pool = pool;
	return AG_OK;
}

/* The commonest terms, in the order of their hashes. */
static AgStatus
choose_terms(const AgContext *ctx, AgArena *arena, Counted *counted, int64_t n, int64_t n_texts,
			 uint32_t max_terms, uint32_t n_pool, AgVocabulary *vocabulary)
{
	int64_t first = 0;
	uint64_t *hashes;
	float *idf;

	qsort(counted, (size_t) n, sizeof *counted, compare_counts);
	while (first < n && (double) counted[first].n_texts > COMMON_SHARE * (double) n_texts)
		first++;
	counted += first;
	n = n - first < max_terms ? n - first : max_terms;
	qsort(counted, (size_t) n, sizeof *counted, compare_counted_hashes);
	hashes = ag_arena_alloc(arena, (size_t) n, sizeof *hashes);
	idf = ag_arena_alloc(arena, (size_t) n, sizeof *idf);
	if (hashes == NULL || idf == NULL)
		return no_memory(ctx, (size_t) n * 12);
	for (int64_t t = 0; t < n; t++)
	{
		hashes[t] = counted[t].hash;
		idf[t] =
			(float) (1.0 + ag_ln((1.0 + (double) n_texts) / (1.0 + (double) counted[t].n_texts)));
	}
	vocabulary->n_terms = (uint32_t) n;
	vocabulary->hashes = hashes;
	vocabulary->idf = idf;
	AG_TRY(choose_pool(ctx, arena, n_pool, vocabulary));
	return ag_vocabulary_index(vocabulary, arena) ? AG_OK : no_memory(ctx, (size_t) n * 8);
}

/* The sampled texts as rows of terms, and from them the space. */
static AgStatus
learn_space(const AgContext *ctx, AgArena *arena, const AgTextSample *sample,
			const AgVocabularyParams *params, AgVocabulary *vocabulary)
{
	int64_t n = sample->n < SVD_TEXTS ? sample->n : SVD_TEXTS;
	size_t n_terms = 0, capacity = 0;
	AgTerm *terms = NULL;
	uint64_t *first = NULL;
	float *vectors;
	AgTermRows rows;
	AgStatus status;

	AG_GO(ag_get(ctx, (size_t) n + 1, sizeof *first, &first));
	for (int64_t i = 0; i < n; i++)
	{
		if (capacity - n_terms < AG_TEXT_MAX_TERMS)
		{
			size_t wanted = capacity + capacity / 2 + AG_TEXT_MAX_TERMS;
			AgTerm *more = ag_mem_realloc(ctx->mem, terms, wanted, sizeof *terms);

			if (more == NULL)
				AG_GO(no_memory(ctx, wanted * sizeof *terms));
			terms = more;
			capacity = wanted;
		}
		first[i] = n_terms;
		n_terms +=
			ag_vocabulary_terms(vocabulary, sample->texts[i], sample->n_bytes[i], terms + n_terms);
	}
	first[n] = n_terms;
	rows = (AgTermRows){n, first, terms};
	vocabulary->n_dims = params->n_dims;
	if (vocabulary->n_dims > vocabulary->n_terms / 2)
		vocabulary->n_dims = vocabulary->n_terms / 2;
	vectors = ag_arena_alloc(arena, vocabulary->n_terms, vocabulary->n_dims * sizeof *vectors);
	if (vectors == NULL)
		AG_GO(no_memory(ctx, (size_t) vocabulary->n_terms * vocabulary->n_dims * sizeof *vectors));
	AG_GO(ag_vocabulary_svd(ctx, &rows, vocabulary->n_terms, params->seed, &vocabulary->n_dims,
							vectors));
	vocabulary->vectors = vectors;
done:
	ag_mem_free(ctx->mem, first);
	ag_mem_free(ctx->mem, terms);
	return status;
}

AgStatus
ag_vocabulary_fit(const AgContext *ctx, AgArena *arena, const AgTextSample *sample,
				  const AgVocabularyParams *params, AgVocabulary **vocabulary)
{
	AgVocabulary *made;
	uint64_t *hashes = NULL;
	Counted *counted = NULL;
	int64_t n_hashes = 0, n_texts = 0, n_counted = 0, least;
	AgStatus status;

	*vocabulary = NULL;
	if (params->max_terms == 0 || sample->n < MIN_TEXTS)
		return AG_OK;
	AG_GO(collect(ctx, sample, &hashes, &n_hashes, &n_texts));
	least = n_texts / 1000;
	least = least < LEAST_TEXTS_WITH  ? LEAST_TEXTS_WITH
			: least > MOST_TEXTS_WITH ? MOST_TEXTS_WITH
									  : least;
	AG_GO(count(ctx, hashes, n_hashes, (uint32_t) least, &counted, &n_counted));
	made = ag_arena_alloc(arena, 1, sizeof *made);
	if (made == NULL)
		AG_GO(no_memory(ctx, sizeof *made));
	AG_GO(choose_terms(ctx, arena, counted, n_counted, n_texts, params->max_terms, params->n_pool,
					   made));
	if (made->n_terms >= 2)
	{
		AG_GO(learn_space(ctx, arena, sample, params, made));
		*vocabulary = made;
	}
done:
	ag_mem_free(ctx->mem, hashes);
	ag_mem_free(ctx->mem, counted);
	return status;
}
