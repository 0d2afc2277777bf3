/*
 * family.h - the model families: what options, catalogue and help texts need to know of each.
 *
 * How a family is trained is told in search/families.c, how its models predict in model.c.
 */
#ifndef AG_FAMILY_H
#define AG_FAMILY_H

#include "engine/model/param.h"

typedef enum AgFamilyId
{
	AG_FAMILY_GBM = 0,
	AG_FAMILY_LR,
	AG_FAMILY_KNN,
	AG_FAMILY_RF,
	AG_FAMILY_XT,
	AG_FAMILY_NN_TORCH,
	AG_FAMILY_FASTAI,
	AG_FAMILY_REALMLP,
	AG_FAMILY_XGB,
	AG_FAMILY_CAT,
	AG_FAMILY_TABM,
	AG_FAMILY_LAST
} AgFamilyId;

typedef struct AgFamily
{
	AgFamilyId id;
	const char *key;   /* as hyperparameters name it */
	const char *title; /* for ag_families() */
	const AgParamSpec *specs;
	const int *n_specs;
	size_t params_bytes; /* of the structure that specs describe */
	bool stops_early;    /* grows in rounds until validation rows say stop: takes "early_stop" */
	bool on_gpu;         /* has a GPU path: the CUDA module may have code to train it */
	bool has_half;       /* on a GPU its products may be in half precision */
	bool keeps_monotone; /* honours monotone constraints */
	/* the parameter that "early_stop" sets in one that learns in epochs; NULL: it doesn't, or has stops_early */
	const char *patience;
	const char *no_quantiles; /* why it can't predict quantiles; NULL: it can */
	/* what parameters must agree on among themselves; NULL: nothing */
	AgStatus (*check)(const void *params, AgError *err);
} AgFamily;

const AgFamily *ag_family(AgFamilyId id);
/* NULL when there is none of that key. */
const AgFamily *ag_family_find(const char *key);

#endif
