/*
 * features.h - what a fit asks of its features.
 */
#ifndef AG_FEATURES_H
#define AG_FEATURES_H

#include <stdbool.h>
#include <stdint.h>

#define AG_FEATURE_MAX_NGRAMS 10000

typedef struct AgFeatureParams
{
	bool text_special;   /* statistics of texts */
	bool text_ngram;     /* vocabularies of texts, and texts' places among each other */
	uint32_t max_ngrams; /* 1 to AG_FEATURE_MAX_NGRAMS in a column's vocabulary */
	uint64_t seed;
	/* columns whose words nothing is to be learnt from; the caller's */
	int n_wordless;
	const char *const *wordless;
} AgFeatureParams;

void ag_feature_params_default(AgFeatureParams *params);

#endif
