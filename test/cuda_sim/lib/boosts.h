/*
 * boosts.h - a booster on the device against the same one on the CPU.
 */
#ifndef AG_SIM_BOOSTS_H
#define AG_SIM_BOOSTS_H

#include "cuda_sim/lib/there.h"

static inline AgStatus
train(const AgContext *ctx, const AgTrainData *data, const AgBoostParams *params,
	  const Table *table, AgBoostResult *result)
{
	const uint32_t *codes[64] = {0};

	if (params->family != NULL) /* only ag_cat_train names itself */
		return ag_boost_train(ctx, data, params, result);
	for (int c = 0; c < table->n_categories; c++)
		codes[table->n_numbers + c] = table->codes + c * table->n_rows;
	return ag_cat_train(ctx, data, codes, params, result);
}

/* Trains here and there; the model's bytes and validation predictions must be equal. */
static inline void
check_same(const char *what, const Table *table, const AgTrainData *data,
		   const AgBoostParams *params)
{
	There there;
	Bench here;
	AgBoostResult ours, theirs;
	AgWriter our_bytes, their_bytes;
	size_t n_proba = (size_t) data->n_valid * (size_t) (data->n_classes > 0 ? data->n_classes : 1);

	there_init(&there, INT64_C(1) << 40);
	bench_init(&here, 1);
	AG_REQUIRE(train(&here.ctx, data, params, table, &ours) == AG_OK);
	AG_REQUIRE(train(&there.bench.ctx, data, params, table, &theirs) == AG_OK);
	if (!AG_CHECK(theirs.on_gpu))
		fprintf(stderr, "    %s: %s %s\n", what, theirs.cpu_because,
				is_simulated && sim_fault() != NULL ? sim_fault() : "");
	our_bytes = model_bytes(&here.ctx, ours.trees);
	their_bytes = model_bytes(&there.bench.ctx, theirs.trees);
	if (!AG_CHECK(our_bytes.size == their_bytes.size &&
				  memcmp(our_bytes.data, their_bytes.data, our_bytes.size) == 0))
		fprintf(stderr, "    %s: other trees (%u against %u nodes, best round %d against %d)\n",
				what, (unsigned) theirs.trees->n_nodes, (unsigned) ours.trees->n_nodes,
				theirs.best_round, ours.best_round);
	AG_CHECK_EQ(ours.rounds_run, theirs.rounds_run);
	if (n_proba > 0)
		AG_CHECK(memcmp(ours.valid_proba, theirs.valid_proba, n_proba * sizeof(double)) == 0);
	ag_writer_free(&our_bytes);
	ag_writer_free(&their_bytes);
	ag_boost_result_free(&here.ctx, &ours);
	ag_boost_result_free(&there.bench.ctx, &theirs);
	ag_bins_leave_devices(table->bins);
	there_end(&there);
	bench_end(&here);
}

#endif
