/*
 * combine_make.c - levels, statistics and bins of one combination.
 */
#include <math.h>
#include <string.h>

#include "engine/base/threads.h"
#include "engine/model/combine_private.h"
#include "engine/model/lanes.h"
#include "engine/model/trees_walk.h"

#define AG_COMBINE_SAMPLE 4096 /* rows that the cuts are chosen from */
#define AG_COMBINE_CHUNK 4096

/* Room for one combination in the making. */
typedef struct AgCombineScratch
{
	uint64_t *row_keys; /* [n_rows] hashes */
	uint64_t *keys;     /* [n_train] of the codes */
	uint32_t *table;    /* [n_table] codes by hash */
	uint64_t n_table;   /* a power of two */
	uint8_t *levels;    /* [n_codes + 1][row_bytes] bins by all training rows */
	double *totals;     /* [n_codes][n_targets + 1] sums and rows of all training rows */
	double *sums;       /* likewise, of the rows so far */
} AgCombineScratch;

AgStatus
ag_combine_scratch_create(const AgContext *ctx, const AgCombiner *combiner,
						  AgCombineScratch **scratch)
{
	size_t n_rows = (size_t) combiner->data->bins->n_rows;
	size_t n_train = (size_t) combiner->data->n_train;
	size_t width = (size_t) combiner->n_targets + 1;
	AgCombineScratch *s;
	AgStatus status;

	*scratch = NULL;
	AG_TRY(ag_get_zeroed(ctx, 1, sizeof *s, &s));
	s->n_table = 16;
	while (s->n_table < 2 * n_train)
		s->n_table *= 2;
	AG_GO(ag_get(ctx, n_rows, sizeof *s->row_keys, &s->row_keys));
	AG_GO(ag_get(ctx, n_train, sizeof *s->keys, &s->keys));
	AG_GO(ag_get(ctx, (size_t) s->n_table, sizeof *s->table, &s->table));
	AG_GO(ag_get_zeroed(ctx, n_train + 1, (size_t) combiner->row_bytes, &s->levels));
	AG_GO(ag_get(ctx, n_train, width * sizeof(double), &s->totals));
	AG_GO(ag_get(ctx, n_train, width * sizeof(double), &s->sums));
done:
	if (status != AG_OK)
	{
		ag_combine_scratch_free(ctx, s);
		return status;
	}
	*scratch = s;
	return AG_OK;
}

void
ag_combine_scratch_free(const AgContext *ctx, AgCombineScratch *scratch)
{
	if (scratch == NULL)
		return;
	ag_mem_free(ctx->mem, scratch->row_keys);
	ag_mem_free(ctx->mem, scratch->keys);
	ag_mem_free(ctx->mem, scratch->table);
	ag_mem_free(ctx->mem, scratch->levels);
	ag_mem_free(ctx->mem, scratch->totals);
	ag_mem_free(ctx->mem, scratch->sums);
	ag_mem_free(ctx->mem, scratch);
}

uint64_t
ag_members_hash(const AgMembers *members)
{
	uint64_t hash = AG_COMBO_START;

	for (int m = 0; m < members->n; m++)
		hash = ag_combo_fold(hash, (uint32_t) members->features[m]);
	return hash;
}

/* ---- levels ---- */

/* The level of a member, as ag_combo_code gives it at prediction. */
static inline uint32_t
level_of(const AgCombiner *combiner, int feature, uint32_t row)
{
	const AgBins *bins = combiner->data->bins;
	const uint32_t *codes = combiner->codes != NULL ? combiner->codes[feature] : NULL;
	unsigned bin;

	if (codes != NULL)
		return codes[row]; /* missing is AG_COMBO_MISSING */
	bin = bins->columns[feature * bins->column_stride + row];
	if (bin == 0)
		return AG_COMBO_MISSING;
	return bins->features[feature].has_other && (int) bin == bins->features[feature].n_bins
			   ? AG_COMBO_OTHER
			   : bin - 1;
}

typedef struct AgMakeTask
{
	AgCombiner *combiner;
	AgCombined *combined;
} AgMakeTask;

static void
key_task(void *arg, int64_t begin, int64_t end, int thread)
{
	const AgMakeTask *task = arg;
	uint64_t *keys = task->combiner->scratch->row_keys;
	const AgMembers *members = &task->combined->members;

	(void) thread;
	for (int64_t row = begin; row < end; row++)
		keys[row] = AG_COMBO_START;
	for (int m = 0; m < members->n; m++)
		for (int64_t row = begin; row < end; row++)
			keys[row] = ag_combo_fold(
				keys[row], level_of(task->combiner, members->features[m], (uint32_t) row));
}

/* Where the key's code is, or could be put. */
static inline uint64_t
place_of(const AgCombineScratch *scratch, uint64_t key)
{
	uint64_t at = key & (scratch->n_table - 1);

	while (scratch->table[at] != AG_NO_CODE && scratch->keys[scratch->table[at]] != key)
		at = (at + 1) & (scratch->n_table - 1);
	return at;
}

/* Codes in the order of first training rows; returns how many. */
static uint32_t
number_levels(const AgCombiner *combiner, uint32_t *codes)
{
	const AgTrainData *data = combiner->data;
	AgCombineScratch *s = combiner->scratch;
	uint32_t n = 0;

	memset(s->table, 0xff, (size_t) s->n_table * sizeof *s->table);
	for (int64_t i = 0; i < data->n_train; i++)
	{
		uint64_t key = s->row_keys[data->train_rows[i]];
		uint64_t at = place_of(s, key);

		if (s->table[at] == AG_NO_CODE)
		{
			s->keys[n] = key;
			s->table[at] = n++;
		}
	}
	for (int64_t row = 0; row < data->bins->n_rows; row++)
		codes[row] = s->table[place_of(s, s->row_keys[row])];
	return n;
}

/* ---- statistics ---- */

static inline void
add_row(const AgCombiner *combiner, uint32_t row, double *cell)
{
	for (int t = 0; t < combiner->n_targets; t++)
		cell[t] += ag_stat_label(combiner->data, row, &combiner->rules[combiner->rule_of[t]]);
	cell[combiner->n_targets] += 1.0;
}

static inline double
statistic(const AgCombiner *combiner, int s, const double *cell)
{
	return ag_stat_value(&combiner->rules[s], cell[combiner->target_of[s]],
						 cell[combiner->n_targets]);
}

static void
sum_all(AgCombiner *combiner, const uint32_t *codes, uint32_t n_codes)
{
	const AgTrainData *data = combiner->data;
	AgCombineScratch *s = combiner->scratch;
	size_t width = (size_t) combiner->n_targets + 1;

	memset(s->totals, 0, n_codes * width * sizeof(double));
	for (int64_t i = 0; i < data->n_train; i++)
		add_row(combiner, combiner->orders[i], s->totals + codes[combiner->orders[i]] * width);
}

static AgStatus
make_columns(AgCombiner *combiner, uint32_t n_codes, AgCombination *own)
{
	const AgContext *ctx = combiner->ctx;
	size_t width = (size_t) combiner->n_targets + 1;
	static const double nothing[AG_STAT_MOST] = {0.0};

	AG_TRY(ag_get_zeroed(ctx, (size_t) combiner->n_stats, sizeof *own->columns, &own->columns));
	AG_TRY(ag_get(ctx, n_codes, sizeof *own->keys, &own->keys));
	own->n_codes = n_codes;
	memcpy(own->keys, combiner->scratch->keys, n_codes * sizeof *own->keys);
	for (int s = 0; s < combiner->n_stats; s++)
	{
		AgStatColumn *column = own->columns + s;

		AG_TRY(ag_get(ctx, n_codes, sizeof(double), &column->values));
		AG_TRY(ag_get(ctx, AG_STAT_BINS, sizeof(int64_t), &column->sets));
		for (int b = 0; b < AG_STAT_BINS; b++)
			column->sets[b] = -1;
		column->n_codes = (int) n_codes;
		for (uint32_t l = 0; l < n_codes; l++)
			column->values[l] = statistic(combiner, s, combiner->scratch->totals + l * width);
		column->unseen = column->missing = statistic(combiner, s, nothing);
	}
	return AG_OK;
}

/* Cuts by the statistics that all training rows give to some of them, far apart. */
static AgStatus
choose_cuts(AgCombiner *combiner, const AgCombination *own, AgCombined *combined)
{
	const AgContext *ctx = combiner->ctx;
	const AgTrainData *data = combiner->data;
	int64_t n = data->n_train < AG_COMBINE_SAMPLE ? data->n_train : AG_COMBINE_SAMPLE;
	AgBinParams params = {AG_STAT_BINS, 1, AG_COMBINE_SAMPLE};
	double *values;
	AgStatus status;

	AG_TRY(ag_get(ctx, (size_t) n, sizeof *values, &values));
	AG_GO(ag_bins_create(ctx, n, combiner->n_stats, &combined->sample));
	combined->features = combined->sample->features;
	for (int s = 0; s < combiner->n_stats; s++)
	{
		AgBinSource source = {.values = values};

		for (int64_t i = 0; i < n; i++)
			values[i] =
				own->columns[s].values[combined->codes[data->train_rows[i * data->n_train / n]]];
		AG_GO(ag_bins_set_feature(ctx, combined->sample, s, &source, &params));
	}
done:
	ag_mem_free(ctx->mem, values);
	return status;
}

/* ---- bins ---- */

/* What bins are found by. */
typedef struct AgBinTable
{
	int n_stats, n_targets;
	int target_of[AG_STAT_MOST];
	double weighted[AG_STAT_MOST], weight[AG_STAT_MOST]; /* of the prior; of the counter 0 and 0 */
	double cuts[AG_STAT_MOST][AG_STAT_BINS];             /* the last ones infinite */
} AgBinTable;

static void
table_init(const AgCombiner *combiner, const AgCombined *combined, AgBinTable *table)
{
	table->n_stats = combiner->n_stats;
	table->n_targets = combiner->n_targets;
	for (int s = 0; s < combiner->n_stats; s++)
	{
		const AgStatRule *rule = combiner->rules + s;

		table->target_of[s] = combiner->target_of[s];
		table->weighted[s] = rule->weight * rule->prior;
		table->weight[s] = rule->weight;
		for (int c = 0; c < AG_STAT_BINS; c++)
			table->cuts[s][c] = c < combined->features[s].n_bins - 1 ? combined->features[s].cuts[c]
																	 : (double) INFINITY;
	}
}

/* As ag_stat_value and ag_bin_of_number, without a branch, less 1. */
static inline __attribute__((always_inline)) unsigned
bin_of(const AgBinTable *table, const double *cell, int s)
{
	double x = (cell[table->target_of[s]] + table->weighted[s]) /
			   (cell[table->n_targets] + table->weight[s]);
	unsigned bin = 0;

	for (int c = 0; c < AG_STAT_BINS; c++)
		bin += x > table->cuts[s][c];
	return bin;
}

/* All but the last statistic, the counter, whose half of a byte stays. */
static inline __attribute__((always_inline)) void
fill_bytes(const AgBinTable *table, const double *cell, uint8_t *row)
{
	int last = table->n_stats - 1;

	for (int s = 0; s + 1 < last; s += 2)
		row[s >> 1] = (uint8_t) (bin_of(table, cell, s) | bin_of(table, cell, s + 1) << 4);
	if (last & 1)
		row[last >> 1] = (uint8_t) ((row[last >> 1] & 0xf0) | bin_of(table, cell, last - 1));
}

/* The training rows of a permutation, one by one: each by what the rows before it left in its level's cell. */
static inline __attribute__((always_inline)) void
fill_ordered(const AgCombiner *combiner, const AgBinTable *table, const uint32_t *order,
			 const uint32_t *codes, uint8_t *bytes)
{
	const AgTrainData *data = combiner->data;
	double *sums = combiner->scratch->sums;
	size_t width = (size_t) combiner->n_targets + 1;

	for (int64_t i = 0; i < data->n_train; i++)
	{
		uint32_t row = order[i];
		double *cell = sums + codes[row] * width;

		fill_bytes(table, cell, bytes + (int64_t) row * combiner->row_bytes);
		add_row(combiner, row, cell);
	}
}

static void
fill_ordered_portable(const AgCombiner *combiner, const AgBinTable *table, const uint32_t *order,
					  const uint32_t *codes, uint8_t *bytes)
{
	fill_ordered(combiner, table, order, codes, bytes);
}

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))) static void
fill_ordered_avx512(const AgCombiner *combiner, const AgBinTable *table, const uint32_t *order,
					const uint32_t *codes, uint8_t *bytes)
{
	fill_ordered(combiner, table, order, codes, bytes);
}

__attribute__((target("avx2"))) static void
fill_ordered_avx2(const AgCombiner *combiner, const AgBinTable *table, const uint32_t *order,
				  const uint32_t *codes, uint8_t *bytes)
{
	fill_ordered(combiner, table, order, codes, bytes);
}
#endif

static void
fill_ordered_best(const AgCombiner *combiner, const AgBinTable *table, const uint32_t *order,
				  const uint32_t *codes, uint8_t *bytes)
{
	AgCpuLevel level = ag_cpu_level();

#if defined(__x86_64__)
	if (level == AG_CPU_AVX512)
	{
		fill_ordered_avx512(combiner, table, order, codes, bytes);
		return;
	}
	if (level == AG_CPU_AVX2)
	{
		fill_ordered_avx2(combiner, table, order, codes, bytes);
		return;
	}
#endif
	(void) level;
	fill_ordered_portable(combiner, table, order, codes, bytes);
}

/* Every level's bins by all training rows, [n_codes + 1][row_bytes]; the last is of levels that none of them has. */
static void
fill_levels(AgCombiner *combiner, const AgCombined *combined)
{
	AgCombineScratch *s = combiner->scratch;
	size_t width = (size_t) combiner->n_targets + 1, n_codes = (size_t) combined->n_codes;
	static const double nothing[AG_STAT_MOST + 1] = {0.0};
	int counter = combiner->n_stats - 1;
	AgBinTable table;

	table_init(combiner, combined, &table);
	for (size_t l = 0; l <= n_codes; l++)
	{
		const double *cell = l < n_codes ? s->totals + l * width : nothing;
		uint8_t *level = s->levels + l * (size_t) combiner->row_bytes;
		unsigned bin;

		fill_bytes(&table, cell, level);
		bin = (unsigned) ag_bin_of_number(combined->features + counter, cell[combiner->n_targets]) -
			  1;
		level[counter >> 1] =
			(uint8_t) (counter & 1 ? (level[counter >> 1] & 0x0f) | bin << 4 : bin);
	}
}

/* Every row's bins by all training rows: what other rows have, and of training rows the counter, which tells nothing of their labels. */
static void
spread_levels(const AgCombiner *combiner, AgCombined *combined, uint8_t *bytes)
{
	size_t row_bytes = (size_t) combiner->row_bytes, n_codes = (size_t) combined->n_codes;
	const uint8_t *levels = combiner->scratch->levels;

	for (int64_t row = 0; row < combiner->data->bins->n_rows; row++)
	{
		size_t level = combined->codes[row] == AG_NO_CODE ? n_codes : combined->codes[row];

		memcpy(bytes + (size_t) row * row_bytes, levels + level * row_bytes, row_bytes);
	}
}

AgStatus
ag_combined_permute(AgCombiner *combiner, AgCombined *combined)
{
	size_t row_bytes = (size_t) combiner->row_bytes, n_codes = (size_t) combined->n_codes;
	size_t n_rows = (size_t) combiner->data->bins->n_rows;
	int p = combiner->permutation, other = 0;
	AgBinTable table;

	if (combined->bytes[p] != NULL)
		return AG_OK;
	while (other < AG_STAT_PERMUTATIONS && combined->bytes[other] == NULL)
		other++;
	AG_TRY(ag_get(combiner->ctx, n_rows, row_bytes, &combined->bytes[p]));
	if (other < AG_STAT_PERMUTATIONS)
		memcpy(combined->bytes[p], combined->bytes[other], n_rows * row_bytes);
	else
		spread_levels(combiner, combined, combined->bytes[p]);
	table_init(combiner, combined, &table);
	memset(combiner->scratch->sums, 0,
		   n_codes * ((size_t) combiner->n_targets + 1) * sizeof(double));
	fill_ordered_best(combiner, &table, combiner->orders + p * combiner->data->n_train,
					  combined->codes, combined->bytes[p]);
	return ag_check_cancel(combiner->ctx);
}

AgStatus
ag_combined_create(AgCombiner *combiner, const AgMembers *members, uint64_t hash,
				   AgCombined **combined)
{
	const AgContext *ctx = combiner->ctx;
	int64_t n_rows = combiner->data->bins->n_rows;
	AgMakeTask task = {.combiner = combiner};
	AgCombined *made;
	uint32_t n_codes;
	AgStatus status;

	*combined = NULL;
	AG_TRY(ag_get_zeroed(ctx, 1, sizeof *made, &made));
	task.combined = made;
	made->members = *members;
	made->hash = hash;
	made->number = -1;
	AG_GO(ag_get_zeroed(ctx, 1, sizeof *made->own, &made->own));
	made->own->members = *members;
	AG_GO(ag_get(ctx, (size_t) n_rows, sizeof *made->codes, &made->codes));
	ag_pool_run(ctx->pool, n_rows, AG_COMBINE_CHUNK, key_task, &task);
	n_codes = number_levels(combiner, made->codes);
	made->n_codes = (double) n_codes;
	sum_all(combiner, made->codes, n_codes);
	AG_GO(make_columns(combiner, n_codes, made->own));
	AG_GO(choose_cuts(combiner, made->own, made));
	fill_levels(combiner, made);
	AG_GO(ag_combined_permute(combiner, made));
	for (int u = 0; u < combiner->n_used; u++)
		if (combiner->used[u]->members.n == members->n &&
			memcmp(combiner->used[u]->members.features, members->features,
				   (size_t) members->n * sizeof(int)) == 0)
			made->number = u;
	if (made->number >= 0) /* its statistics are there, and where their cuts' sets lie */
	{
		ag_combination_free(combiner, made->own);
		made->own = NULL;
	}
done:
	if (status != AG_OK)
	{
		ag_combined_free(combiner, made);
		return status;
	}
	*combined = made;
	return AG_OK;
}

void
ag_combined_free(AgCombiner *combiner, AgCombined *combined)
{
	AgMem *mem = combiner->ctx->mem;

	if (combined == NULL)
		return;
	ag_combination_free(combiner, combined->own);
	ag_bins_free(combined->sample);
	ag_mem_free(mem, combined->codes);
	for (int p = 0; p < AG_STAT_PERMUTATIONS; p++)
		ag_mem_free(mem, combined->bytes[p]);
	ag_mem_free(mem, combined);
}

void
ag_combination_free(AgCombiner *combiner, AgCombination *combination)
{
	AgMem *mem = combiner->ctx->mem;

	if (combination == NULL)
		return;
	for (int s = 0; combination->columns != NULL && s < combiner->n_stats; s++)
	{
		ag_mem_free(mem, combination->columns[s].values);
		ag_mem_free(mem, combination->columns[s].sets);
	}
	ag_mem_free(mem, combination->columns);
	ag_mem_free(mem, combination->keys);
	ag_mem_free(mem, combination);
}

/* ---- use ---- */

typedef struct AgKeyPlace
{
	uint64_t key;
	uint32_t code;
} AgKeyPlace;

/*
 * Ascending. Keys are hashes, so each goes near to where it belongs by its size, and a step or two do the rest. heads:
 * [n + 1] scratch.
 */
static void
sort_keys(const uint64_t *keys, uint32_t n, uint32_t *heads, AgKeyPlace *places)
{
	memset(heads, 0, ((size_t) n + 1) * sizeof *heads);
	for (uint32_t l = 0; l < n; l++)
		heads[(((unsigned __int128) keys[l] * n) >> 64) + 1]++;
	for (uint32_t l = 0; l < n; l++)
		heads[l + 1] += heads[l];
	for (uint32_t l = 0; l < n; l++)
		places[heads[((unsigned __int128) keys[l] * n) >> 64]++] = (AgKeyPlace){keys[l], l};
	for (uint32_t l = 1; l < n; l++)
	{
		AgKeyPlace place = places[l];
		uint32_t at = l;

		for (; at > 0 && places[at - 1].key > place.key; at--)
			places[at] = places[at - 1];
		places[at] = place;
	}
}

/* Codes become places of ascending keys, as prediction looks them up. */
static AgStatus
sort_codes(AgCombiner *combiner, AgCombination *own)
{
	const AgContext *ctx = combiner->ctx;
	AgKeyPlace *places = NULL;
	double *values = NULL;
	uint32_t *heads = NULL;
	AgStatus status;

	AG_GO(ag_get(ctx, own->n_codes, sizeof *places, &places));
	AG_GO(ag_get(ctx, own->n_codes, sizeof *values, &values));
	AG_GO(ag_get(ctx, (size_t) own->n_codes + 1, sizeof *heads, &heads));
	sort_keys(own->keys, own->n_codes, heads, places);
	for (uint32_t l = 0; l < own->n_codes; l++)
		own->keys[l] = places[l].key;
	for (int s = 0; s < combiner->n_stats; s++)
	{
		memcpy(values, own->columns[s].values, own->n_codes * sizeof *values);
		for (uint32_t l = 0; l < own->n_codes; l++)
			own->columns[s].values[l] = values[places[l].code];
	}
done:
	ag_mem_free(ctx->mem, places);
	ag_mem_free(ctx->mem, heads);
	ag_mem_free(ctx->mem, values);
	return status;
}

AgStatus
ag_combined_use(AgCombiner *combiner, AgCombined *combined)
{
	const AgContext *ctx = combiner->ctx;

	if (combined->number >= 0)
		return AG_OK;
	if (combiner->n_used == combiner->max_used)
	{
		int wanted = combiner->max_used < 16 ? 16 : 2 * combiner->max_used;
		void *grown =
			ag_mem_realloc(ctx->mem, combiner->used, (size_t) wanted, sizeof *combiner->used);

		if (grown == NULL)
			return ag_mem_error(ctx->mem, (size_t) wanted * sizeof *combiner->used, ctx->error);
		combiner->used = grown;
		combiner->max_used = wanted;
	}
	AG_TRY(sort_codes(combiner, combined->own));
	for (int s = 0; s < combiner->n_stats; s++)
		combined->own->columns[s].source = combiner->stats->n_features + combiner->n_used;
	combined->number = combiner->n_used;
	combiner->used[combiner->n_used++] = combined->own;
	combined->own = NULL;
	return AG_OK;
}

void
ag_combination_codes(const AgCombiner *combiner, const AgCombination *combination, uint32_t *codes)
{
	const AgMembers *members = &combination->members;

	for (int64_t row = 0; row < combiner->data->bins->n_rows; row++)
	{
		uint64_t key = AG_COMBO_START;
		uint32_t code;

		for (int m = 0; m < members->n; m++)
			key = ag_combo_fold(key, level_of(combiner, members->features[m], (uint32_t) row));
		code = ag_combo_find(combination->keys, combination->n_codes, key);
		codes[row] = code == AG_COMBO_UNSEEN ? UINT32_MAX : code;
	}
}
