/*
 * shapley.c - see shapley.h.
 *
 * Of a tree, only the leaves that some coalition reaches count, and a leaf's share follows from how many players must be in and
 * how many must be out to get there (Lundberg et al. 2020, "From local explanations to global understanding with explainable AI
 * for trees": the independent form of TreeSHAP). Random orders and their reverses: Mitchell et al. 2022, "Sampling permutations
 * for Shapley value estimation".
 */
#include "engine/model/shapley.h"

#include <string.h>

#include "engine/base/rng.h"
#include "engine/model/linear.h"
#include "engine/model/trees_walk.h"

#define SEED 0x73686170   /* of the orders */
#define MOST_ENUMERATED 8 /* players: 2^8 coalitions are one lot of rows */

/* 1 / (n_in * binomial(n_in + n_out, n_in)): the chance, in a random order, that of these players those who are in come first. */
static double
chance(int n_in, int n_out)
{
	double ways = n_in;

	for (int i = 1; i <= n_out; i++)
		ways *= (double) (n_in + i) / i;
	return 1.0 / ways;
}

/* --- trees */

#define FEW 12 /* players whose chances are looked up */

/*
 * All background rows walk together, as bits of a set, as long as the same players have taken sides: a node's mask has the rows
 * that go left.
 */
typedef struct Walk
{
	const AgTrees *trees;
	const AgTree *tree;
	const AgShapleyGame *game;
	const uint64_t *masks; /* of the tree's nodes */
	const double *row;
	double weight;
	double *contributions;
	int8_t *side; /* [n_players] 1: in, on the way here; -1: out; 0: either */
	double chances[FEW + 1][FEW + 1];
} Walk;

/* What the leaves below a node give to a player who is in, and take from one who is out. */
typedef struct Share
{
	double in, out;
} Share;

static void
add_leaf(const Walk *walk, int32_t at, uint64_t rows, int n_in, int n_out, Share *share)
{
	double value =
		walk->trees->leaves[walk->tree->first_leaf + (uint32_t) ~at] * __builtin_popcountll(rows);
	bool few = n_in <= FEW && n_out <= FEW;

	if (n_in > 0)
		share->in += value * (few ? walk->chances[n_in][n_out] : chance(n_in, n_out));
	if (n_out > 0)
		share->out += value * (few ? walk->chances[n_out][n_in] : chance(n_out, n_in));
}

/*
 * Calls itself only for a player who takes a side, or for less than half of the rows: so it goes no deeper than there are players,
 * and log2 of the rows.
 */
static void
walk_from(Walk *walk, int32_t at, uint64_t rows, int n_in, int n_out, Share *share)
{
	const AgTreeNode *nodes = walk->trees->nodes + walk->tree->first_node;

	while (at >= 0)
	{
		const AgTreeNode *node = &nodes[at];
		int player = walk->game->player_of[node->feature];
		int8_t side = walk->side[player];
		bool left = ag_node_goes_left(walk->trees, node, walk->row[node->feature]);
		uint64_t row_lefts = left ? UINT64_MAX : 0; /* as if all went where the row goes */
		uint64_t lefts = rows & (side > 0 ? row_lefts : walk->masks[at]);
		uint64_t others = left ? rows & ~lefts : lefts; /* don't go where the row goes */
		int32_t way = left ? node->left : node->right;
		int32_t other_way = left ? node->right : node->left;

		if (others != 0 && side == 0)
		{
			Share with = {0.0, 0.0}, without = {0.0, 0.0};

			walk->side[player] = 1;
			walk_from(walk, way, others, n_in + 1, n_out, &with);
			walk->side[player] = -1;
			walk_from(walk, other_way, others, n_in, n_out + 1, &without);
			walk->side[player] = 0;
			walk->contributions[player] += walk->weight * (with.in - without.out);
			share->in += with.in + without.in;
			share->out += with.out + without.out;
			rows &= ~others;
			at = way;
		}
		else if (others == 0)
			at = way;
		else if (2 * __builtin_popcountll(others) <= __builtin_popcountll(rows))
		{
			walk_from(walk, other_way, others, n_in, n_out, share);
			rows &= ~others;
			at = way;
		}
		else
		{
			if ((rows & ~others) != 0)
				walk_from(walk, way, rows & ~others, n_in, n_out, share);
			rows = others;
			at = other_way;
		}
		if (rows == 0)
			return;
	}
	add_leaf(walk, at, rows, n_in, n_out, share);
}

static bool
trees_are_direct(const void *fitted)
{
	const AgTrees *trees = fitted;

	/* a combination's node is several players' */
	return trees->n_outputs == 1 && trees->n_combos == 0 &&
		   (trees->link == AG_LINK_IDENTITY || trees->link == AG_LINK_MEAN_FREQUENCIES);
}

/* A mask a node. */
static AgStatus
trees_prepare(const AgContext *ctx, const void *fitted, const AgShapleyGame *game, void **prepared)
{
	const AgTrees *trees = fitted;
	uint64_t *masks = NULL;

	AG_TRY(ag_get_zeroed(ctx, (size_t) trees->n_nodes, sizeof *masks, &masks));
	*prepared = masks;
	for (uint64_t i = 0; i < trees->n_nodes; i++)
	{
		const AgTreeNode *node = &trees->nodes[i];

		for (int k = 0; k < game->n_rows; k++)
			if (ag_node_goes_left(
					trees, node,
					game->rows[(size_t) k * (size_t) game->n_features + node->feature]))
				masks[i] |= UINT64_C(1) << k;
	}
	return AG_OK;
}

static void
trees_direct(const void *fitted, const AgShapleyGame *game, const void *prepared, const double *row,
			 int output, double weight, int8_t *sides, double *contributions)
{
	const AgTrees *trees = fitted;
	Walk walk = {.trees = trees,
				 .game = game,
				 .row = row,
				 .weight = weight / game->n_rows,
				 .contributions = contributions,
				 .side = sides};

	if (trees->link == AG_LINK_MEAN_FREQUENCIES) /* the mean of class 1's shares */
		walk.weight *= (output == 1 ? 1.0 : -1.0) / trees->n_trees;
	for (int n_in = 1; n_in <= FEW; n_in++)
		for (int n_out = 0; n_out <= FEW; n_out++)
			walk.chances[n_in][n_out] = chance(n_in, n_out);
	memset(sides, 0, (size_t) game->n_players);
	for (uint32_t t = 0; t < trees->n_trees; t++)
	{
		Share share = {0.0, 0.0};

		walk.tree = &trees->trees[t];
		walk.masks = (const uint64_t *) prepared + walk.tree->first_node;
		if (walk.tree->n_nodes > 0)
			walk_from(&walk, 0, UINT64_MAX >> (AG_SHAPLEY_MOST - game->n_rows), 0, 0, &share);
	}
}

/* --- linear models */

static bool
linear_is_direct(const void *fitted)
{
	return ((const AgLinear *) fitted)->link == AG_LINK_IDENTITY;
}

/* A feature's term, in the mean. */
static AgStatus
linear_prepare(const AgContext *ctx, const void *fitted, const AgShapleyGame *game, void **prepared)
{
	double *means = NULL;

	AG_TRY(ag_get_zeroed(ctx, (size_t) game->n_features, sizeof *means, &means));
	*prepared = means;
	for (int k = 0; k < game->n_rows; k++)
		for (int f = 0; f < game->n_features; f++)
			means[f] += ag_linear_term(fitted, (uint32_t) f, game->rows[k * game->n_features + f]) /
						game->n_rows;
	return AG_OK;
}

/* Who comes when makes no difference: each feature's term is exchanged for another. */
static void
linear_direct(const void *fitted, const AgShapleyGame *game, const void *prepared,
			  const double *row, int output, double weight, int8_t *sides, double *contributions)
{
	const double *means = prepared;

	(void) output;
	(void) sides;
	for (int f = 0; f < game->n_features; f++)
		contributions[game->player_of[f]] +=
			weight * (ag_linear_term(fitted, (uint32_t) f, row[f]) - means[f]);
}

/* --- the kinds that need no enumeration, by kind of image */

typedef struct DirectKind
{
	bool (*is_direct)(const void *fitted);
	AgStatus (*prepare)(const AgContext *ctx, const void *fitted, const AgShapleyGame *game,
						void **prepared);
	void (*run)(const void *fitted, const AgShapleyGame *game, const void *prepared,
				const double *row, int output, double weight, int8_t *sides, double *contributions);
} DirectKind;

static const DirectKind kinds[] = {
	[AG_IMAGE_TREES] = {trees_are_direct, trees_prepare, trees_direct},
	[AG_IMAGE_LINEAR] = {linear_is_direct, linear_prepare, linear_direct},
};

bool
ag_shapley_is_direct(const AgModel *model)
{
	return model->kind < sizeof kinds / sizeof kinds[0] && kinds[model->kind].is_direct != NULL &&
		   kinds[model->kind].is_direct(model->fitted);
}

AgStatus
ag_shapley_direct_prepare(const AgContext *ctx, const AgModel *model, const AgShapleyGame *game,
						  void **prepared)
{
	return kinds[model->kind].prepare(ctx, model->fitted, game, prepared);
}

void
ag_shapley_direct(const AgModel *model, const AgShapleyGame *game, const void *prepared,
				  const double *row, int output, double weight, int8_t *sides,
				  double *contributions)
{
	kinds[model->kind].run(model->fitted, game, prepared, row, output, weight, sides,
						   contributions);
}

/* --- any function */

AgStatus
ag_shapley_work_create(const AgContext *ctx, int n_features, int n_players, AgShapleyWork **work)
{
	AgStatus status;

	AG_TRY(ag_get_zeroed(ctx, 1, sizeof **work, work));
	AG_GO(ag_get(ctx, (size_t) n_features * AG_SHAPLEY_ROWS, sizeof(double), &(*work)->rows));
	AG_GO(ag_get(ctx, (size_t) n_players, sizeof(int), &(*work)->players));
	AG_GO(ag_get(ctx, (size_t) n_players, sizeof(int), &(*work)->order));
done:
	if (status != AG_OK)
	{
		ag_shapley_work_free(ctx, *work);
		*work = NULL;
	}
	return status;
}

void
ag_shapley_work_free(const AgContext *ctx, AgShapleyWork *work)
{
	if (work == NULL)
		return;
	ag_mem_free(ctx->mem, work->rows);
	ag_mem_free(ctx->mem, work->players);
	ag_mem_free(ctx->mem, work->order);
	ag_mem_free(ctx->mem, work);
}

/* A row and what it is compared with, and what ag_shapley_any passes on. */
typedef struct Match
{
	const AgContext *ctx;
	const AgShapleyGame *game;
	const double *row, *background;
	AgShapleyRun run;
	void *arg;
	AgShapleyWork *work;
	int n; /* players that differ: work->players */
	double weight;
	double *contributions;
} Match;

/* The players whose features differ. */
static int
find_players(const Match *match)
{
	const AgShapleyGame *game = match->game;
	AgShapleyWork *work = match->work;
	int n = 0;

	/* order[p] is a mark first */
	memset(work->order, 0, (size_t) game->n_players * sizeof(int));
	for (int f = 0; f < game->n_features; f++)
	{
		double x = match->row[f], b = match->background[f];

		if (!(x == b || (x != x && b != b)))
			work->order[game->player_of[f]] = 1;
	}
	for (int p = 0; p < game->n_players; p++)
		if (work->order[p])
			work->players[n++] = p;
	return n;
}

/* Lets one player into the row. */
static void
enter(const Match *match, int player, double *row)
{
	const AgShapleyGame *game = match->game;

	for (int f = 0; f < game->n_features; f++)
		if (game->player_of[f] == player)
			row[f] = match->row[f];
}

/* All 2^n coalitions: number i has the players of its bits. */
static AgStatus
enumerate(Match *match)
{
	AgShapleyWork *work = match->work;
	size_t n_features = (size_t) match->game->n_features;
	int n = match->n, n_sets = 1 << n;
	double chance_of[MOST_ENUMERATED];

	for (int size = 0; size < n; size++)
		chance_of[size] = chance(n - size, size);
	memcpy(work->rows, match->background, n_features * sizeof(double));
	for (int set = 1; set < n_sets; set++)
	{
		double *row = work->rows + (size_t) set * n_features;
		int lowest = __builtin_ctz((unsigned) set);

		memcpy(row, work->rows + (size_t) (set & (set - 1)) * n_features,
			   n_features * sizeof(double));
		enter(match, work->players[lowest], row);
	}
	AG_TRY(match->run(match->arg, n_sets, work->rows, work->out));
	for (int set = 0; set < n_sets; set++)
		for (int i = 0; i < n; i++)
			if ((set >> i & 1) == 0)
				match->contributions[work->players[i]] +=
					chance_of[__builtin_popcount((unsigned) set)] *
					(work->out[set | 1 << i] - work->out[set]);
	return AG_OK;
}

/* Runs the rows that wait; *before is the output before the first of them, then after the last. */
static AgStatus
settle(Match *match, int n_rows, double *before)
{
	AG_TRY(ag_check_cancel(match->ctx));
	AG_TRY(match->run(match->arg, n_rows, match->work->rows, match->work->out));
	for (int i = 0; i < n_rows; i++)
	{
		if (match->work->player_at[i] >= 0)
			match->contributions[match->work->player_at[i]] +=
				match->weight * (match->work->out[i] - *before);
		*before = match->work->out[i];
	}
	return AG_OK;
}

/* Knuth, The Art of Computer Programming 2, algorithm 3.4.2 P. */
static void
draw_order(const AgShapleyWork *work, int n, uint64_t key)
{
	memcpy(work->order, work->players, (size_t) n * sizeof(int));
	for (int i = n - 1; i > 0; i--)
	{
		int j = (int) ag_random_below(key, (uint64_t) i, (uint32_t) (i + 1));
		int kept = work->order[i];

		work->order[i] = work->order[j];
		work->order[j] = kept;
	}
}

/* Rows from b to x, one player a row, in as many orders as pay; a row with player -1 begins each. */
static AgStatus
sample(Match *match, uint64_t key)
{
	AgShapleyWork *work = match->work;
	size_t n_features = (size_t) match->game->n_features;
	int n = match->n, n_waiting = 0;
	int n_pairs = AG_SHAPLEY_ROWS / (2 * (n + 1));
	double before = 0.0;
	const double *last = NULL;

	if (n_pairs < 1)
		n_pairs = 1;
	match->weight = 1.0 / (2 * n_pairs);
	for (int order = 0; order < 2 * n_pairs; order++)
	{
		if (order % 2 == 0)
			draw_order(work, n, ag_key(key, (uint64_t) order));
		for (int i = -1; i < n; i++)
		{
			double *row = work->rows + (size_t) n_waiting * n_features;

			if (i < 0)
				memcpy(row, match->background, n_features * sizeof(double));
			else
			{
				memcpy(row, last, n_features * sizeof(double));
				enter(match, work->order[order % 2 == 0 ? i : n - 1 - i], row);
			}
			work->player_at[n_waiting] = i < 0 ? -1 : work->order[order % 2 == 0 ? i : n - 1 - i];
			last = row;
			if (++n_waiting < AG_SHAPLEY_ROWS)
				continue;
			AG_TRY(settle(match, n_waiting, &before));
			n_waiting = 0;
		}
	}
	return n_waiting > 0 ? settle(match, n_waiting, &before) : AG_OK;
}

AgStatus
ag_shapley_any(const AgContext *ctx, const AgShapleyGame *game, int k, const double *row,
			   AgShapleyRun run, void *arg, AgShapleyWork *work, double *contributions)
{
	Match match = {.ctx = ctx,
				   .game = game,
				   .row = row,
				   .background = game->rows + (size_t) k * (size_t) game->n_features,
				   .run = run,
				   .arg = arg,
				   .work = work,
				   .contributions = contributions};

	match.n = find_players(&match);
	if (match.n == 0)
		return AG_OK;
	return match.n <= MOST_ENUMERATED ? enumerate(&match)
									  : sample(&match, ag_key(SEED, (uint64_t) k));
}
