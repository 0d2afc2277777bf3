/*
 * search_space.c - the spaces that are searched, and points of them drawn by chance.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/maths.h"
#include "engine/base/rng.h"
#include "engine/search/search.h"

#define KEY_DRAW 0x64726177 /* what these random numbers are for */
#define DRAWS 64            /* that are tried for a point of its own */

typedef struct Default
{
	AgFamilyId family;
	const char *param;
	AgSearchKind kind;
	double lower, upper;
	bool is_log;
	const char *choices; /* blank-separated JSON, strings without quotes */
} Default;

/* What matters most of each family, around its defaults. */
static const Default defaults[] = {
	{AG_FAMILY_GBM, "learning_rate", AG_SEARCH_REAL, 0.005, 0.2, true, NULL},
	{AG_FAMILY_GBM, "num_leaves", AG_SEARCH_INT, 8, 128, true, NULL},
	{AG_FAMILY_GBM, "feature_fraction", AG_SEARCH_REAL, 0.5, 1.0, false, NULL},
	{AG_FAMILY_GBM, "min_data_in_leaf", AG_SEARCH_INT, 2, 60, true, NULL},
	{AG_FAMILY_LR, "C", AG_SEARCH_REAL, 0.01, 100.0, true, NULL},
	{AG_FAMILY_LR, "penalty", AG_SEARCH_CHOICE, 0, 0, false, "L2 L1"},
	{AG_FAMILY_KNN, "n_neighbors", AG_SEARCH_INT, 2, 50, true, NULL},
	{AG_FAMILY_KNN, "weights", AG_SEARCH_CHOICE, 0, 0, false, "uniform distance"},
	{AG_FAMILY_RF, "max_features", AG_SEARCH_REAL, 0.1, 1.0, false, NULL},
	{AG_FAMILY_RF, "min_samples_leaf", AG_SEARCH_INT, 1, 20, true, NULL},
	{AG_FAMILY_XT, "max_features", AG_SEARCH_REAL, 0.1, 1.0, false, NULL},
	{AG_FAMILY_XT, "min_samples_leaf", AG_SEARCH_INT, 1, 20, true, NULL},
	{AG_FAMILY_NN_TORCH, "learning_rate", AG_SEARCH_REAL, 1e-4, 3e-2, true, NULL},
	{AG_FAMILY_NN_TORCH, "weight_decay", AG_SEARCH_REAL, 1e-8, 0.1, true, NULL},
	{AG_FAMILY_NN_TORCH, "dropout_prob", AG_SEARCH_REAL, 0.0, 0.5, false, NULL},
	{AG_FAMILY_NN_TORCH, "num_layers", AG_SEARCH_INT, 2, 5, false, NULL},
	{AG_FAMILY_NN_TORCH, "hidden_size", AG_SEARCH_CHOICE, 0, 0, false, "128 256 512"},
	{AG_FAMILY_FASTAI, "lr", AG_SEARCH_REAL, 1e-4, 0.1, true, NULL},
	{AG_FAMILY_FASTAI, "ps", AG_SEARCH_REAL, 0.0, 0.6, false, NULL},
	{AG_FAMILY_FASTAI, "emb_drop", AG_SEARCH_REAL, 0.0, 0.6, false, NULL},
	{AG_FAMILY_FASTAI, "wd", AG_SEARCH_REAL, 1e-4, 0.1, true, NULL},
	{AG_FAMILY_REALMLP, "p_drop", AG_SEARCH_REAL, 0.0, 0.5, false, NULL},
	{AG_FAMILY_REALMLP, "wd", AG_SEARCH_REAL, 1e-3, 0.5, true, NULL},
	{AG_FAMILY_REALMLP, "activation", AG_SEARCH_CHOICE, 0, 0, false, "auto selu mish relu"},
	{AG_FAMILY_TABM, "lr", AG_SEARCH_REAL, 1e-4, 1e-2, true, NULL},
	{AG_FAMILY_TABM, "weight_decay", AG_SEARCH_REAL, 1e-5, 0.1, true, NULL},
	{AG_FAMILY_TABM, "dropout", AG_SEARCH_REAL, 0.0, 0.5, false, NULL},
	{AG_FAMILY_TABM, "n_blocks", AG_SEARCH_INT, 1, 4, false, NULL},
	{AG_FAMILY_TABM, "d_block", AG_SEARCH_CHOICE, 0, 0, false, "128 192 256"},
	{AG_FAMILY_XGB, "learning_rate", AG_SEARCH_REAL, 0.005, 0.3, true, NULL},
	{AG_FAMILY_XGB, "max_depth", AG_SEARCH_INT, 3, 10, false, NULL},
	{AG_FAMILY_XGB, "min_child_weight", AG_SEARCH_REAL, 0.3, 10.0, true, NULL},
	{AG_FAMILY_XGB, "colsample_bytree", AG_SEARCH_REAL, 0.5, 1.0, false, NULL},
	{AG_FAMILY_CAT, "learning_rate", AG_SEARCH_REAL, 0.005, 0.2, true, NULL},
	{AG_FAMILY_CAT, "depth", AG_SEARCH_INT, 4, 8, false, NULL},
	{AG_FAMILY_CAT, "l2_leaf_reg", AG_SEARCH_REAL, 1.0, 10.0, true, NULL},
};

#define N_DEFAULTS (sizeof defaults / sizeof defaults[0])

const char *
ag_search_default_text(AgFamilyId family, const AgParamSpec *spec, char *text, size_t size)
{
	for (size_t i = 0; i < N_DEFAULTS; i++)
	{
		const Default *one = &defaults[i];

		if (one->family != family || strcmp(one->param, spec->name) != 0)
			continue;
		if (one->choices != NULL)
			snprintf(text, size, "one of %s", one->choices);
		else
			snprintf(text, size, "%g to %g%s", one->lower, one->upper,
					 one->is_log ? ", logarithmic" : "");
		return text;
	}
	return NULL;
}

/* --- places and values */

static double
clamp(double x, double least, double most)
{
	return !(x >= least) ? least : x > most ? most : x;
}

/* The ends of the interval that 0 and 1 stand for: an integer has half a step on either side of it. */
static void
ends_of(const AgSearchDim *dim, double *low, double *high)
{
	double half = dim->kind == AG_SEARCH_INT ? 0.5 : 0.0;

	*low = dim->lower - half;
	*high = dim->upper + half;
	if (dim->is_log)
	{
		*low = ag_ln(*low);
		*high = ag_ln(*high);
	}
}

/* To six digits: enough of a parameter, and good to read. */
static double
six_digits(double x)
{
	double size = fabs(x), unit = 1.0;

	if (!(size > 1e-30) || size >= 1e5)
		return x;
	while (size * unit < 1e5)
		unit *= 10.0;
	return round(x * unit) / unit;
}

static double
value_at(const AgSearchDim *dim, double place)
{
	double low, high, x;

	ends_of(dim, &low, &high);
	x = low + place * (high - low);
	if (dim->is_log)
		x = ag_exp(x);
	x = dim->kind == AG_SEARCH_INT ? round(x) : six_digits(x);
	return clamp(x, dim->lower, dim->upper);
}

static int
choice_at(const AgSearchDim *dim, double place)
{
	return (int) clamp(floor(place * dim->n_choices), 0.0, dim->n_choices - 1.0);
}

double
ag_search_place(const AgSearchDim *dim, double value)
{
	double low, high;

	if (dim->kind == AG_SEARCH_CHOICE || !(value >= dim->lower && value <= dim->upper))
		return 0.5;
	ends_of(dim, &low, &high);
	return clamp(((dim->is_log ? ag_ln(value) : value) - low) / (high - low), 0.0, 1.0);
}

double
ag_search_snap(const AgSearchDim *dim, double place)
{
	if (dim->kind == AG_SEARCH_CHOICE)
		return (choice_at(dim, place) + 0.5) / dim->n_choices;
	return ag_search_place(dim, value_at(dim, place));
}

AgStatus
ag_search_set(const AgSearch *search, const double *point, void *params, AgError *err)
{
	const AgFamily *family = search->family;

	for (int d = 0; d < search->n_dims; d++)
	{
		const AgSearchDim *dim = &search->dims[d];
		AgSearchChoice own = {NULL, false};
		char text[32];

		if (dim->kind == AG_SEARCH_CHOICE)
			own = dim->choices[choice_at(dim, point[d])];
		else
		{
			snprintf(text, sizeof text, "%.17g", value_at(dim, point[d]));
			own.text = text;
		}
		AG_TRY(ag_param_set(family->specs, *family->n_specs, family->key, dim->spec->name, own.text,
							own.is_string, params, err));
	}
	return family->check != NULL ? family->check(params, err) : AG_OK;
}

char *
ag_search_text(const AgSearch *search, const double *point, char *text, size_t size)
{
	size_t at = 0;

	text[0] = '\0';
	for (int d = 0; d < search->n_dims && at < size; d++)
	{
		const AgSearchDim *dim = &search->dims[d];
		const char *comma = d > 0 ? ", " : "";

		if (dim->kind == AG_SEARCH_CHOICE)
			at += (size_t) snprintf(text + at, size - at, "%s%s %s", comma, dim->spec->name,
									dim->choices[choice_at(dim, point[d])].text);
		else
			at += (size_t) snprintf(text + at, size - at, "%s%s %.6g", comma, dim->spec->name,
									value_at(dim, point[d]));
	}
	if (at >= size)
		text[ag_utf8_clip(text, size - 1, size - 2)] = '\0';
	return text;
}

/* --- chance */

bool
ag_search_is_taken(const AgSearch *search, int n, const double *point)
{
	size_t size = (size_t) search->n_dims * sizeof *point;

	for (int i = 0; i < n; i++)
		if (memcmp(search->points + (size_t) i * (size_t) search->n_dims, point, size) == 0)
			return true;
	return false;
}

/* Values of a dimension; 0: too many to count. */
static int
n_values(const AgSearchDim *dim)
{
	if (dim->kind == AG_SEARCH_CHOICE)
		return dim->n_choices;
	if (dim->kind == AG_SEARCH_INT && dim->upper - dim->lower < AG_MAX_MODELS)
		return (int) (dim->upper - dim->lower) + 1;
	return 0;
}

int
ag_search_n_points(const AgSearch *search, int most)
{
	int n = 1;

	for (int d = 0; d < search->n_dims && n < most; d++)
	{
		int values = n_values(&search->dims[d]);

		n = values == 0 || values > most ? most : n * values;
	}
	return n < most ? n : most;
}

/* The i-th of few points. */
static void
point_at(const AgSearch *search, int i, double *point)
{
	for (int d = 0; d < search->n_dims; d++)
	{
		const AgSearchDim *dim = &search->dims[d];
		int n = n_values(dim), at = n > 0 ? i % n : 0;

		i = n > 0 ? i / n : i;
		if (dim->kind == AG_SEARCH_CHOICE)
			point[d] = ag_search_snap(dim, (at + 0.5) / dim->n_choices);
		else
			point[d] = ag_search_place(dim, dim->lower + at);
	}
}

void
ag_search_draw(const AgSearch *search, int trial, double *point)
{
	uint64_t key = ag_key(ag_key(search->key, KEY_DRAW), (uint64_t) trial);
	int n = ag_search_n_points(search, AG_MAX_MODELS);

	for (int d = 0; trial == 1 && d < search->n_dims; d++)
		point[d] = search->dims[d].first;
	if (trial == 1)
		return;
	for (int draw = 0; draw < DRAWS; draw++)
	{
		for (int d = 0; d < search->n_dims; d++)
			point[d] = ag_search_snap(&search->dims[d],
									  ag_random_unit(key, (uint64_t) (draw * AG_SEARCH_DIMS + d)));
		if (!ag_search_is_taken(search, trial - 1, point))
			return;
	}
	for (int i = 0; i < n; i++) /* few are left: the first of them */
	{
		point_at(search, i, point);
		if (!ag_search_is_taken(search, trial - 1, point))
			return;
	}
}

/* --- spaces that nobody gave */

static AgStatus
words_split(const char *words, AgArena *arena, AgSearchDim *dim, AgError *err)
{
	dim->choices = ag_arena_alloc(arena, AG_SEARCH_CHOICES, sizeof *dim->choices);
	while (dim->choices != NULL && *words != '\0')
	{
		size_t n = strcspn(words, " ");
		char *text = ag_arena_strndup(arena, words, n);

		if (text == NULL)
			dim->choices = NULL;
		else
			dim->choices[dim->n_choices++] =
				(AgSearchChoice){text, strchr("0123456789-[", text[0]) == NULL};
		words += n + (words[n] == ' ');
	}
	return dim->choices == NULL ? ag_mem_error(arena->mem, AG_SEARCH_CHOICES, err) : AG_OK;
}

AgStatus
ag_search_default_dims(AgFamilyId family, AgArena *arena, AgSearchDim *dims, int *n, AgError *err)
{
	const AgFamily *owner = ag_family(family);

	*n = 0;
	for (size_t i = 0; i < N_DEFAULTS; i++)
	{
		const Default *one = &defaults[i];
		AgSearchDim *dim = &dims[*n];

		if (one->family != family)
			continue;
		memset(dim, 0, sizeof *dim);
		dim->spec = ag_param_find(owner->specs, *owner->n_specs, one->param, NULL);
		if (dim->spec == NULL)
			return ag_error_set(err, AG_ERR_INTERNAL, "%s has no parameter \"%s\"", owner->key,
								one->param);
		dim->kind = one->kind;
		dim->lower = one->lower;
		dim->upper = one->upper;
		dim->is_log = one->is_log;
		if (one->choices != NULL)
			AG_TRY(words_split(one->choices, arena, dim, err));
		/* each list of choices begins with the default */
		dim->first = ag_search_snap(
			dim, one->choices != NULL ? 0.0 : ag_search_place(dim, dim->spec->normal));
		(*n)++;
	}
	return AG_OK;
}
