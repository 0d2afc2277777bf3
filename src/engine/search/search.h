/*
 * search.h - a search over the hyperparameters of one configuration: its space, and which point of it a trial is.
 *
 * A point has a place between 0 and 1 in each dimension. It is a function of the seed, the trial's number and, with the searcher
 * "bayes", of what earlier trials scored: never of the clock or of who computes it.
 */
#ifndef AG_SEARCH_H
#define AG_SEARCH_H

#include "engine/search/options.h"

#define AG_SEARCH_DIMS 16     /* of one space, at most */
#define AG_SEARCH_TRIALS 10   /* of one search, where nobody says */
#define AG_SEARCH_CHOICES 100 /* of one dimension, at most */

typedef enum AgSearchKind
{
	AG_SEARCH_REAL,
	AG_SEARCH_INT,
	AG_SEARCH_CHOICE
} AgSearchKind;

/* A value as JSON writes it, strings without their quotes. */
typedef struct AgSearchChoice
{
	const char *text;
	bool is_string;
} AgSearchChoice;

typedef struct AgSearchDim
{
	const AgParamSpec *spec;
	AgSearchKind kind;
	bool is_log;
	double lower, upper; /* both possible */
	int n_choices;
	AgSearchChoice *choices;
	double first; /* the first trial's place */
} AgSearchDim;

typedef struct AgSearch
{
	const AgFamily *family;
	bool is_bayes;
	int n_trials;
	uint64_t key;
	int n_dims;
	AgSearchDim dims[AG_SEARCH_DIMS];
	double *points; /* [n_trials][n_dims] as far as they are known */
	void *largest;  /* parameters that need the most memory, about */
} AgSearch;

/* --- search_space.c */

/* Places that mean the same value become the same place. */
double ag_search_snap(const AgSearchDim *dim, double place);
/* The place of a number; 0.5 where the dimension doesn't have it. */
double ag_search_place(const AgSearchDim *dim, double value);
/* Sets the parameters that the point is about, and checks how all of them go together. */
AgStatus ag_search_set(const AgSearch *search, const double *point, void *params, AgError *err);
/* "learning_rate 0.02, num_leaves 40", cut to size bytes. Returns text. */
char *ag_search_text(const AgSearch *search, const double *point, char *text, size_t size);
/* A trial's (1..) point by chance, unlike those of the trials before it in search->points where there is any other. */
void ag_search_draw(const AgSearch *search, int trial, double *point);
/* Is the point one of the first n of search->points? */
bool ag_search_is_taken(const AgSearch *search, int n, const double *point);
/* How many different points there are; most where there are as many or more. */
int ag_search_n_points(const AgSearch *search, int most);
/* The dimensions that a family's models are searched over where nothing else is said. */
AgStatus ag_search_default_dims(AgFamilyId family, AgArena *arena, AgSearchDim *dims, int *n,
								AgError *err);

/* --- search_bayes.c */

/* Trials that are drawn before any is proposed. */
int ag_search_warmup(const AgSearch *search);
/*
 * The point from which a trial (1..) may expect most, by a Gaussian process over the trials before it. scores: [trial - 1], higher
 * is better, NaN where there is none; two of them at least are finite.
 */
AgStatus ag_search_propose(const AgContext *ctx, const AgSearch *search, int trial,
						   const double *scores, double *point);

#endif
