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

#define MOST_ENUMERATED 8 /* players: 2^8 coalitions are one lot of rows */

/* --- trees */

typedef struct Walk
{
	const AgTrees *trees;
	const AgTree *tree;
	const AgShapleyPair *pair;
	double weight;
	double *contributions;
	int8_t *side; /* [n_players] 1: in, on the way here; -1: out; 0: either */
} Walk;

/* What the leaves below a node give to a player who is in, and take from one who is out. */
typedef struct Share
{
	double in, out;
} Share;

/* 1 / (n_in * binomial(n_in + n_out, n_in)): the chance, in a random order, that of these players those who are in come first. */
static double
chance(int n_in, int n_out)
{
	double ways = n_in;

	for (int i = 1; i <= n_out; i++)
		ways *= (double) (n_in + i) / i;
	return 1.0 / ways;
}

static Share
leaf_share(const Walk *walk, int32_t at, int n_in, int n_out)
{
	double value = walk->trees->leaves[walk->tree->first_leaf + (uint32_t) ~at];
	Share share = {0.0, 0.0};

	if (n_in > 0)
		share.in = value * chance(n_in, n_out);
	if (n_out > 0)
		share.out = value * chance(n_out, n_in);
	return share;
}

/* Branches only where a player not yet on a side would lead to another child: so the recursion is no deeper than there are players. */
static Share
walk_from(Walk *walk, int32_t at, int n_in, int n_out)
{
	const AgShapleyPair *pair = walk->pair;
	const AgTreeNode *nodes = walk->trees->nodes + walk->tree->first_node;

	while (at >= 0)
	{
		const AgTreeNode *node = &nodes[at];
		int player = pair->player_of[node->feature];
		int8_t side = walk->side[player];
		bool in = ag_node_goes_left(walk->trees, node, pair->row[node->feature]);
		bool out = ag_node_goes_left(walk->trees, node, pair->background[node->feature]);
		Share with, without;

		if (in == out || side != 0)
		{
			at = (side < 0 ? out : in) ? node->left : node->right;
			continue;
		}
		walk->side[player] = 1;
		with = walk_from(walk, in ? node->left : node->right, n_in + 1, n_out);
		walk->side[player] = -1;
		without = walk_from(walk, out ? node->left : node->right, n_in, n_out + 1);
		walk->side[player] = 0;
		walk->contributions[player] += walk->weight * (with.in - without.out);
		return (Share){with.in + without.in, with.out + without.out};
	}
	return leaf_share(walk, at, n_in, n_out);
}

static bool
trees_are_direct(const void *fitted)
{
	const AgTrees *trees = fitted;

	return trees->n_outputs == 1 &&
		   (trees->link == AG_LINK_IDENTITY || trees->link == AG_LINK_MEAN_FREQUENCIES);
}

static void
trees_direct(const void *fitted, const AgShapleyPair *pair, int output, double weight,
			 int8_t *sides, double *contributions)
{
	const AgTrees *trees = fitted;
	Walk walk = {trees, NULL, pair, weight, contributions, sides};

	if (trees->link == AG_LINK_MEAN_FREQUENCIES) /* the mean of class 1's shares */
		walk.weight *= (output == 1 ? 1.0 : -1.0) / trees->n_trees;
	memset(sides, 0, (size_t) pair->n_players);
	for (uint32_t t = 0; t < trees->n_trees; t++)
	{
		walk.tree = &trees->trees[t];
		if (walk.tree->n_nodes > 0)
			walk_from(&walk, 0, 0, 0);
	}
}

/* --- linear models */

static bool
linear_is_direct(const void *fitted)
{
	return ((const AgLinear *) fitted)->link == AG_LINK_IDENTITY;
}

/* Who comes when makes no difference: each feature's term is exchanged for another. */
static void
linear_direct(const void *fitted, const AgShapleyPair *pair, int output, double weight,
			  int8_t *sides, double *contributions)
{
	(void) output;
	(void) sides;
	for (int f = 0; f < pair->n_features; f++)
		contributions[pair->player_of[f]] +=
			weight * (ag_linear_term(fitted, (uint32_t) f, pair->row[f]) -
					  ag_linear_term(fitted, (uint32_t) f, pair->background[f]));
}

/* --- the kinds that need no enumeration, by kind of image */

typedef struct DirectKind
{
	bool (*is_direct)(const void *fitted);
	void (*run)(const void *fitted, const AgShapleyPair *pair, int output, double weight,
				int8_t *sides, double *contributions);
} DirectKind;

static const DirectKind kinds[] = {
	[AG_IMAGE_TREES] = {trees_are_direct, trees_direct},
	[AG_IMAGE_LINEAR] = {linear_is_direct, linear_direct},
};

bool
ag_shapley_is_direct(const AgModel *model)
{
	return model->kind < sizeof kinds / sizeof kinds[0] && kinds[model->kind].is_direct != NULL &&
		   kinds[model->kind].is_direct(model->fitted);
}

void
ag_shapley_direct(const AgModel *model, const AgShapleyPair *pair, int output, double weight,
				  int8_t *sides, double *contributions)
{
	kinds[model->kind].run(model->fitted, pair, output, weight, sides, contributions);
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

/* What ag_shapley_any passes on. */
typedef struct Game
{
	const AgContext *ctx;
	const AgShapleyPair *pair;
	AgShapleyRun run;
	void *arg;
	AgShapleyWork *work;
	int n; /* players that differ: work->players */
	double weight;
	double *contributions;
} Game;

/* The players whose features differ. */
static int
find_players(const AgShapleyPair *pair, AgShapleyWork *work)
{
	int n = 0;

	/* order[p] is a mark first */
	memset(work->order, 0, (size_t) pair->n_players * sizeof(int));
	for (int f = 0; f < pair->n_features; f++)
	{
		double x = pair->row[f], b = pair->background[f];

		if (!(x == b || (x != x && b != b)))
			work->order[pair->player_of[f]] = 1;
	}
	for (int p = 0; p < pair->n_players; p++)
		if (work->order[p])
			work->players[n++] = p;
	return n;
}

/* Lets one player into the row. */
static void
enter(const AgShapleyPair *pair, int player, double *row)
{
	for (int f = 0; f < pair->n_features; f++)
		if (pair->player_of[f] == player)
			row[f] = pair->row[f];
}

/* All 2^n coalitions: number i has the players of its bits. */
static AgStatus
enumerate(Game *game)
{
	const AgShapleyPair *pair = game->pair;
	AgShapleyWork *work = game->work;
	size_t n_features = (size_t) pair->n_features;
	int n = game->n, n_sets = 1 << n;
	double chance_of[MOST_ENUMERATED];

	for (int size = 0; size < n; size++)
		chance_of[size] = chance(n - size, size);
	memcpy(work->rows, pair->background, n_features * sizeof(double));
	for (int set = 1; set < n_sets; set++)
	{
		double *row = work->rows + (size_t) set * n_features;
		int lowest = __builtin_ctz((unsigned) set);

		memcpy(row, work->rows + (size_t) (set & (set - 1)) * n_features,
			   n_features * sizeof(double));
		enter(pair, work->players[lowest], row);
	}
	AG_TRY(game->run(game->arg, n_sets, work->rows, work->out));
	for (int set = 0; set < n_sets; set++)
		for (int i = 0; i < n; i++)
			if ((set >> i & 1) == 0)
				game->contributions[work->players[i]] +=
					chance_of[__builtin_popcount((unsigned) set)] *
					(work->out[set | 1 << i] - work->out[set]);
	return AG_OK;
}

/* Runs the rows that wait; *before is the output before the first of them, then after the last. */
static AgStatus
settle(Game *game, int n_rows, double *before)
{
	AG_TRY(ag_check_cancel(game->ctx));
	AG_TRY(game->run(game->arg, n_rows, game->work->rows, game->work->out));
	for (int i = 0; i < n_rows; i++)
	{
		if (game->work->player_at[i] >= 0)
			game->contributions[game->work->player_at[i]] +=
				game->weight * (game->work->out[i] - *before);
		*before = game->work->out[i];
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
sample(Game *game, uint64_t key)
{
	const AgShapleyPair *pair = game->pair;
	AgShapleyWork *work = game->work;
	size_t n_features = (size_t) pair->n_features;
	int n = game->n, n_waiting = 0;
	int n_pairs = AG_SHAPLEY_ROWS / (2 * (n + 1));
	double before = 0.0;
	const double *last = NULL;

	if (n_pairs < 1)
		n_pairs = 1;
	game->weight = 1.0 / (2 * n_pairs);
	for (int order = 0; order < 2 * n_pairs; order++)
	{
		if (order % 2 == 0)
			draw_order(work, n, ag_key(key, (uint64_t) order));
		for (int i = -1; i < n; i++)
		{
			double *row = work->rows + (size_t) n_waiting * n_features;

			/* the row before may be this one's own place, when a full lot was run */
			if (i < 0)
				memcpy(row, pair->background, n_features * sizeof(double));
			else
			{
				memmove(row, last, n_features * sizeof(double));
				enter(pair, work->order[order % 2 == 0 ? i : n - 1 - i], row);
			}
			work->player_at[n_waiting] =
				i < 0 ? -1 : work->order[order % 2 == 0 ? i : n - 1 - i];
			last = row;
			if (++n_waiting < AG_SHAPLEY_ROWS)
				continue;
			AG_TRY(settle(game, n_waiting, &before));
			n_waiting = 0;
		}
	}
	return n_waiting > 0 ? settle(game, n_waiting, &before) : AG_OK;
}

AgStatus
ag_shapley_any(const AgContext *ctx, const AgShapleyPair *pair, AgShapleyRun run, void *arg,
			   uint64_t key, AgShapleyWork *work, double *contributions)
{
	Game game = {ctx, pair, run, arg, work, find_players(pair, work), 1.0, contributions};

	if (game.n == 0)
		return AG_OK;
	return game.n <= MOST_ENUMERATED ? enumerate(&game) : sample(&game, key);
}
