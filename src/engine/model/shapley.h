/*
 * shapley.h - how much each player (a column, with all features made of it) adds to a model's output for one row, compared
 * with another row.
 *
 * The game (Lundberg and Lee 2017, "A unified approach to interpreting model predictions", with the interventional value of
 * Janzing, Minorics, Bloebaum 2020): players who are in bring the features of the row x, the others keep those of the
 * background row b. A player's contribution is the Shapley value; together they make f(x) - f(b). The mean over background
 * rows explains f(x) - mean f(b).
 */
#ifndef AG_SHAPLEY_H
#define AG_SHAPLEY_H

#include "engine/base/context.h"
#include "engine/model/model.h"

#define AG_SHAPLEY_MOST 64 /* background rows */

/* Who plays, and the background rows. */
typedef struct AgShapleyGame
{
	int n_features;
	int n_players;
	const int *player_of; /* [n_features] */
	int n_rows;           /* 1 to AG_SHAPLEY_MOST */
	const double *rows;   /* [n_rows][n_features] */
} AgShapleyGame;

/*
 * Contributions to one output (0 for numbers, else a class) of a model, exactly, if that takes no enumeration: sums of trees
 * without a link, forests' shares of two classes, linear models of numbers. What a model's background rows come to is prepared
 * once (ag_mem_free). Running adds weight times the means over the background rows to contributions[n_players]; sides:
 * scratch of n_players bytes.
 */
bool ag_shapley_is_direct(const AgModel *model);
AgStatus ag_shapley_direct_prepare(const AgContext *ctx, const AgModel *model,
								   const AgShapleyGame *game, void **prepared);
void ag_shapley_direct(const AgModel *model, const AgShapleyGame *game, const void *prepared,
					   const double *row, int output, double weight, int8_t *sides,
					   double *contributions);

/* Outputs of many rows: rows[n][n_features] to out[n]. */
typedef AgStatus (*AgShapleyRun)(void *arg, int64_t n, const double *rows, double *out);

#define AG_SHAPLEY_ROWS 256 /* that are run at once */

/* Room for ag_shapley_any. */
typedef struct AgShapleyWork
{
	double *rows; /* [AG_SHAPLEY_ROWS][n_features] */
	double out[AG_SHAPLEY_ROWS];
	int *players; /* [n_players] */
	int *order;   /* [n_players] */
	int player_at[AG_SHAPLEY_ROWS];
} AgShapleyWork;

AgStatus ag_shapley_work_create(const AgContext *ctx, int n_features, int n_players,
								AgShapleyWork **work);
void ag_shapley_work_free(const AgContext *ctx, AgShapleyWork *work); /* NULL allowed */

/*
 * Contributions to any function, against background row k, added to contributions[n_players]. Exact where at most 8 players differ between the rows (all
 * coalitions are run); else the mean over random orders of the players, each order and its reverse, the same for every row: each
 * order's contributions make f(x) - f(b), so their mean does too.
 */
AgStatus ag_shapley_any(const AgContext *ctx, const AgShapleyGame *game, int k, const double *row,
						AgShapleyRun run, void *arg, AgShapleyWork *work, double *contributions);

#endif
