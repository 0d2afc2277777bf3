/*
 * vocabulary.h - the words, pairs and triples of words of a column of text that are worth knowing, and where each lies in a
 * space of few dimensions (private to the data room).
 *
 * A text's term weighs (1 + ln(how often it is in the text)) * idf, and the weights of a text have a length of 1. Nothing here
 * looks at labels.
 */
#ifndef AG_VOCABULARY_H
#define AG_VOCABULARY_H

#include "engine/base/bytes.h"
#include "engine/base/context.h"
#include "engine/data/features.h"
#include "engine/data/sparse.h"
#include "engine/data/text.h"

#define AG_VOCABULARY_MAX_TERMS AG_FEATURE_MAX_NGRAMS
#define AG_VOCABULARY_MAX_DIMS 64
#define AG_NO_TERM UINT32_MAX

typedef struct AgVocabulary
{
	uint32_t n_terms;
	uint32_t n_dims;
	const uint64_t *hashes; /* [n_terms] ascending */
	const float *idf;       /* [n_terms] */
	const float *vectors;   /* [n_terms][n_dims] */
	uint32_t *slots;        /* open addressing: term + 1 */
	uint32_t mask;
	uint32_t n_pool;      /* terms that models may choose from */
	const uint32_t *pool; /* [n_pool] ascending */
	uint32_t *pool_of;    /* [n_terms] its place in the pool, or AG_NO_TERM */
} AgVocabulary;

/* Texts to learn from, in an order that says nothing. */
typedef struct AgTextSample
{
	const char *const *texts;
	const uint32_t *n_bytes;
	int64_t n;
} AgTextSample;

typedef struct AgVocabularyParams
{
	uint32_t max_terms; /* 0: no vocabulary */
	uint32_t n_dims;
	uint32_t n_pool;
	uint64_t seed;
} AgVocabularyParams;

/*
 * Learns a vocabulary, into the arena. *vocabulary is NULL where the texts have too little in common. A few million terms at most
 * are looked at, so that time and memory are bounded whatever the texts.
 */
AgStatus ag_vocabulary_fit(const AgContext *ctx, AgArena *arena, const AgTextSample *sample,
						   const AgVocabularyParams *params, AgVocabulary **vocabulary);

/* The terms of a text, ascending, with their weights; returns how many. terms has room for AG_TEXT_MAX_TERMS. */
uint32_t ag_vocabulary_terms(const AgVocabulary *vocabulary, const char *text, uint32_t n_bytes,
							 AgTerm *terms);
/* A text's place: out[n_dims]. */
void ag_vocabulary_place(const AgVocabulary *vocabulary, const AgTerm *terms, uint32_t n,
						 float *out);

/* Leaves of the terms those in the pool, as places in it; returns how many. */
uint32_t ag_vocabulary_pool(const AgVocabulary *vocabulary, AgTerm *terms, uint32_t n);

/* Puts the terms into slots, and the pool's into their places, from the arena. False: no memory. */
bool ag_vocabulary_index(AgVocabulary *vocabulary, AgArena *arena);

/*
 * vocabulary_svd.c: vectors[n_terms][n_dims] of the n_dims directions in which the rows differ most, the first most of all; *n_dims
 * gets less where there are fewer. vectors has room for as many as asked for.
 */
AgStatus ag_vocabulary_svd(const AgContext *ctx, const AgTermRows *rows, uint32_t n_terms,
						   uint64_t seed, uint32_t *n_dims, float *vectors);

#endif
