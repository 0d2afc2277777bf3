/*
 * text_plan.c - what is read off a column's texts, as bytes and back:
 *
 *   u8 date format, u8 statistics, u8 numbers
 *   u32 units, each: u64 hash
 *   u32 terms (0: no vocabulary), u32 dimensions; then of all terms: u64 hash, ascending; u32 bits of the idf; of each dimensions
 *   times u32, the bits of a coordinate; then u32 terms that models may choose from, each: u32 term, ascending
 */
#include <string.h>

#include "engine/data/pipeline_private.h"

#define MAX_UNITS 64
#define MAX_WEIGHT 1e6f /* of an idf; a real one is the logarithm of a count of rows */
#define MAX_PLACE 1e3f  /* of a coordinate; a real one is at most 1 */

static void
write_floats(AgWriter *body, const float *values, size_t n)
{
	ag_write_bytes(body, values, n * sizeof *values);
}

void
ag_text_plan_write(const AgTextPlan *plan, AgWriter *body)
{
	const AgVocabulary *vocabulary = plan->vocabulary;

	ag_write_u8(body, (uint8_t) plan->date);
	ag_write_u8(body, plan->has_stats);
	ag_write_u8(body, plan->has_numbers);
	ag_write_u32(body, plan->n_units);
	for (uint32_t u = 0; u < plan->n_units; u++)
		ag_write_u64(body, plan->units[u]);
	ag_write_u32(body, vocabulary != NULL ? vocabulary->n_terms : 0);
	ag_write_u32(body, vocabulary != NULL ? vocabulary->n_dims : 0);
	if (vocabulary == NULL)
		return;
	for (uint32_t t = 0; t < vocabulary->n_terms; t++)
		ag_write_u64(body, vocabulary->hashes[t]);
	write_floats(body, vocabulary->idf, vocabulary->n_terms);
	write_floats(body, vocabulary->vectors, (size_t) vocabulary->n_terms * vocabulary->n_dims);
	ag_write_u32(body, vocabulary->n_pool);
	for (uint32_t i = 0; i < vocabulary->n_pool; i++)
		ag_write_u32(body, vocabulary->pool[i]);
}

static AgStatus
corrupt(const AgContext *ctx, const char *what)
{
	return ag_error_set(ctx->error, AG_ERR_CORRUPT, "stored preprocessing is damaged: %s", what);
}

static AgStatus
no_memory(const AgContext *ctx, size_t n)
{
	return ag_mem_error(ctx->mem, n, ctx->error);
}

/* n floats of at most `most`, copied: they may lie anywhere. */
static AgStatus
read_floats(const AgContext *ctx, AgReader *reader, AgArena *arena, size_t n, float least,
			float most, const float **floats)
{
	const void *bytes = n <= ag_reader_left(reader) / sizeof(float)
							? ag_read_bytes(reader, n * sizeof(float))
							: NULL;
	float *copy;

	if (bytes == NULL)
		return corrupt(ctx, "a vocabulary is cut off");
	copy = ag_arena_alloc(arena, n, sizeof *copy);
	if (copy == NULL)
		return no_memory(ctx, n * sizeof *copy);
	memcpy(copy, bytes, n * sizeof *copy);
	for (size_t i = 0; i < n; i++)
		if (!(copy[i] >= least && copy[i] <= most))
			return corrupt(ctx, "a vocabulary's number is out of range");
	*floats = copy;
	return AG_OK;
}

static AgStatus
read_hashes(const AgContext *ctx, AgReader *reader, AgArena *arena, uint32_t n,
			const uint64_t **hashes)
{
	uint64_t *copy = ag_arena_alloc(arena, n, sizeof *copy);

	if (copy == NULL)
		return no_memory(ctx, n * sizeof *copy);
	for (uint32_t i = 0; i < n; i++)
		copy[i] = ag_read_u64(reader);
	*hashes = copy;
	return reader->failed ? corrupt(ctx, "a list of hashes is cut off") : AG_OK;
}

static AgStatus
read_pool(const AgContext *ctx, AgReader *reader, AgArena *arena, AgVocabulary *vocabulary)
{
	uint32_t n = ag_read_count(reader, 4);
	uint32_t *pool;

	if (reader->failed || n > vocabulary->n_terms || n > AG_TEXT_MOST_TERMS)
		return corrupt(ctx, "a vocabulary's choice is too large");
	pool = ag_arena_alloc(arena, n, sizeof *pool);
	if (pool == NULL)
		return no_memory(ctx, n * sizeof *pool);
	for (uint32_t i = 0; i < n; i++)
	{
		pool[i] = ag_read_u32(reader);
		if (pool[i] >= vocabulary->n_terms || (i > 0 && pool[i] <= pool[i - 1]))
			return corrupt(ctx, "a vocabulary's choice is out of order");
	}
	vocabulary->n_pool = n;
	vocabulary->pool = pool;
	return AG_OK;
}

static AgStatus
read_vocabulary(const AgContext *ctx, AgReader *reader, AgArena *arena, uint32_t n_terms,
				uint32_t n_dims, AgVocabulary **vocabulary)
{
	AgVocabulary *made = ag_arena_alloc(arena, 1, sizeof *made);

	if (made == NULL)
		return no_memory(ctx, sizeof *made);
	made->n_terms = n_terms;
	made->n_dims = n_dims;
	AG_TRY(read_hashes(ctx, reader, arena, n_terms, &made->hashes));
	for (uint32_t t = 1; t < n_terms; t++)
		if (made->hashes[t] <= made->hashes[t - 1])
			return corrupt(ctx, "a vocabulary is out of order");
	AG_TRY(read_floats(ctx, reader, arena, n_terms, 0.0f, MAX_WEIGHT, &made->idf));
	AG_TRY(read_floats(ctx, reader, arena, (size_t) n_terms * n_dims, -MAX_PLACE, MAX_PLACE,
					   &made->vectors));
	AG_TRY(read_pool(ctx, reader, arena, made));
	if (!ag_vocabulary_index(made, arena))
		return no_memory(ctx, n_terms * sizeof(uint64_t));
	*vocabulary = made;
	return AG_OK;
}

AgStatus
ag_text_plan_read(const AgContext *ctx, AgReader *reader, AgArena *arena, AgTextPlan **plan)
{
	AgTextPlan *made = ag_arena_alloc(arena, 1, sizeof *made);
	uint8_t date, has_stats, has_numbers;
	uint32_t n_terms, n_dims;

	if (made == NULL)
		return no_memory(ctx, sizeof *made);
	date = ag_read_u8(reader);
	has_stats = ag_read_u8(reader);
	has_numbers = ag_read_u8(reader);
	made->n_units = ag_read_count(reader, 8);
	if (reader->failed || date > AG_TEXT_DMY || has_stats > 1 || has_numbers > 1 ||
		made->n_units > MAX_UNITS)
		return corrupt(ctx, "a column of text is read in an unknown way");
	made->date = (AgTextDate) date;
	made->has_stats = has_stats;
	made->has_numbers = has_numbers;
	AG_TRY(read_hashes(ctx, reader, arena, made->n_units, &made->units));
	n_terms = ag_read_u32(reader);
	n_dims = ag_read_u32(reader);
	if (reader->failed || n_terms > AG_VOCABULARY_MAX_TERMS || n_dims > AG_VOCABULARY_MAX_DIMS ||
		n_terms > ag_reader_left(reader) / 12)
		return corrupt(ctx, "a vocabulary has a wrong length");
	if (n_terms > 0)
		AG_TRY(read_vocabulary(ctx, reader, arena, n_terms, n_dims, &made->vocabulary));
	*plan = made;
	return AG_OK;
}
