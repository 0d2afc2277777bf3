/*
 * pipeline_text.c - what a text becomes, at fit and at prediction.
 */
#include <string.h>

#include "engine/data/pipeline_private.h"

bool
ag_text_timestamp(const AgTextPlan *plan, const char *text, uint32_t n_bytes, int64_t *timestamp_us)
{
	return plan->date != AG_TEXT_NO_DATE && ag_text_date(text, n_bytes, plan->date, timestamp_us);
}

/* Apart from the rest, for its buffers. */
static __attribute__((noinline)) void
find_place(const AgVocabulary *vocabulary, const char *text, uint32_t n_bytes, float *place,
		   double *weights)
{
	AgTerm terms[AG_TEXT_MAX_TERMS];
	uint32_t n = ag_vocabulary_terms(vocabulary, text, n_bytes, terms);

	ag_vocabulary_place(vocabulary, terms, n, place);
	if (weights == NULL)
		return;
	n = ag_vocabulary_pool(vocabulary, terms, n);
	for (uint32_t i = 0; i < n; i++)
		weights[terms[i].term] = (double) terms[i].weight;
}

static void
short_text_facts(const AgTextPlan *plan, const char *text, uint32_t n_bytes, AgTextFacts *facts,
				 double *terms)
{
	facts->is_date = ag_text_timestamp(plan, text, n_bytes, &facts->timestamp_us);
	if (facts->is_date)
		facts->parts = ag_parts_of_timestamp(facts->timestamp_us);
	if (plan->has_stats)
		ag_text_stats(text, n_bytes, &facts->stats);
	if (plan->has_numbers)
		ag_text_numbers(text, n_bytes, &facts->numbers);
	if (plan->vocabulary != NULL)
		find_place(plan->vocabulary, text, n_bytes, facts->place, terms);
}

static __attribute__((noinline)) void
long_text_facts(const AgTextPlan *plan, const char *text, uint32_t n_bytes, AgTextFacts *facts,
				double *terms)
{
	char buffer[AG_TEXT_MAX];
	uint32_t n;

	text = ag_text_clip(text, n_bytes, buffer, &n);
	short_text_facts(plan, text, n, facts, terms);
}

void
ag_text_facts(const AgTextPlan *plan, const char *text, uint32_t n_bytes, AgTextFacts *facts,
			  double *terms)
{
	if (n_bytes > AG_TEXT_MAX)
		long_text_facts(plan, text, n_bytes, facts, terms);
	else
		short_text_facts(plan, text, n_bytes, facts, terms);
}

static double
share(uint32_t n, uint32_t of)
{
	return of > 0 ? (double) ((float) n / (float) of) : 0.0;
}

static double
unit_code(const AgTextPlan *plan, uint64_t unit)
{
	for (uint32_t code = 0; code < plan->n_units; code++)
		if (plan->units[code] == unit)
			return (double) code;
	return AG_UNSEEN;
}

double
ag_text_value(const AgFeature *feature, const AgTextPlan *plan, const AgTextFacts *facts)
{
	const AgTextStats *stats = &facts->stats;

	switch (feature->kind)
	{
		case AG_FEATURE_NUMBER:
			return facts->is_date ? (double) facts->timestamp_us : (double) NAN;
		case AG_FEATURE_TEXT_CHARS:
			return stats->n_chars;
		case AG_FEATURE_TEXT_WORDS:
			return stats->n_words;
		case AG_FEATURE_TEXT_UPPER:
			return share(stats->n_upper, stats->n_chars);
		case AG_FEATURE_TEXT_LOWER:
			return share(stats->n_lower, stats->n_chars);
		case AG_FEATURE_TEXT_DIGITS:
			return share(stats->n_digits, stats->n_chars);
		case AG_FEATURE_TEXT_SPECIAL:
			return share(stats->n_special, stats->n_chars);
		case AG_FEATURE_TEXT_SYMBOL:
			return stats->n_symbols[feature->part];
		case AG_FEATURE_TEXT_NUMBER:
			return feature->part < facts->numbers.n ? facts->numbers.values[feature->part]
													: (double) NAN;
		case AG_FEATURE_TEXT_UNIT:
			return facts->numbers.n > 0 ? unit_code(plan, facts->numbers.unit) : (double) NAN;
		case AG_FEATURE_TEXT_PLACE:
			return (double) facts->place[feature->part];
		default:
			return facts->is_date ? ag_part_value(&facts->parts, feature->kind) : (double) NAN;
	}
}
