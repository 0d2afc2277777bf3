/*
 * cache.h - this backend's opened models: read and decoded once, then shared by every call until they are the least
 * recently used and ag_pg.model_cache_size is full.
 */
#ifndef AG_CACHE_H
#define AG_CACHE_H

#include "postgres.h"

#include <math.h>

#include "utils/uuid.h"

#include "engine/engine.h"

/* An opened member of a predictor. Immutable but for the predictor's scratch space. */
typedef struct AgOpenModel
{
	pg_uuid_t id;
	char *member;
	AgPredictor *predictor;
	uint64 opening; /* of all that this backend opened, the how many-th */
	AgProblem problem;
	AgType label_type;
	const char *label; /* UTF-8, or raw */
	bool raw_text;     /* texts are bytes of an SQL_ASCII database */
	int n_outputs;
	int n_inputs;
	const AgInputInfo *inputs;
	int n_classes; /* 0: a number, or quantiles */
	const AgClass *classes;
	int n_quantiles; /* 0: no quantile regression */
	const double *quantiles;
	const int *quantile_order; /* the place in quantiles of the i-th that was asked for */
	int middle; /* output that stands for the others: the level nearest to 0.5; else 0 */
	double
		threshold; /* of two classes: above that probability it is the second; may change under a model that is open */
} AgOpenModel;

/* The threshold as the active snapshot has it; ag_cache_get has done so. */
extern void ag_cache_look_again(const AgOpenModel *model);

/*
 * The model, from the cache or the tables; it stays until `keeper` is reset or deleted. The caller has checked the
 * right on it. ERROR 42704 when the predictor has no such member, XX001 when its bytes are damaged.
 */
extern const AgOpenModel *ag_cache_get(const pg_uuid_t *id, const char *member,
									   MemoryContext keeper);

/* Pins a model again that was found once, as ag_cache_get does, if it is still the one of that opening; else false. */
extern bool ag_cache_pin_again(const AgOpenModel *model, uint64 opening, MemoryContext keeper);

/* A text of the model (class, column) in the server's encoding, palloc'd and with a NUL behind it. */
extern char *ag_model_text(const AgOpenModel *model, const char *text, size_t n);

/* Several whole labels may round to that number: only their names tell them apart. */
static inline bool
ag_model_is_rounded(const AgOpenModel *model, double number)
{
	return model->label_type == AG_TYPE_INT64 && fabs(number) >= 9007199254740992.0; /* 2^53 */
}

/* The class with the highest probability, the first one at a tie; of two, by the threshold where one was set. */
static inline int
ag_model_best_class(const AgOpenModel *model, const double *proba)
{
	int best = 0;

	if (model->n_classes == 2 && model->threshold != 0.5)
		return proba[1] > model->threshold;
	for (int i = 1; i < model->n_classes; i++)
		if (proba[i] > proba[best])
			best = i;
	return best;
}

#endif
