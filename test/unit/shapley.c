/*
 * shapley.c - contributions against the definition: over all coalitions, of random trees and rows.
 */
#include "engine/model/shapley.h"
#include "engine/model/trees.h"
#include "unit/random_trees.h"
#include "unit/rows.h"

enum
{
	N_FEATURES = 14,
	MOST_PLAYERS = 14,
	N_ROWS = 5
};

typedef struct Case
{
	AgTrees *trees;
	AgModel model;
	int output;
	int player_of[N_FEATURES];
	double row[N_FEATURES];
	double background[N_ROWS][N_FEATURES];
	AgShapleyGame game;
	int64_t n_runs;
} Case;

static double
output_of(const Case *c, const double *row)
{
	double scores[4], out[4];

	ag_trees_score(c->trees, row, scores);
	ag_trees_link(c->trees, scores, out);
	return out[c->output];
}

static AgStatus
run(void *arg, int64_t n, const double *rows, double *out)
{
	Case *c = arg;

	AG_CHECK(n <= AG_SHAPLEY_ROWS);
	for (int64_t i = 0; i < n; i++)
		out[i] = output_of(c, rows + i * N_FEATURES);
	c->n_runs += n;
	return AG_OK;
}

static double
output_of_set(const Case *c, int k, int set)
{
	double row[N_FEATURES];

	for (int f = 0; f < N_FEATURES; f++)
		row[f] = (set >> c->player_of[f] & 1) ? c->row[f] : c->background[k][f];
	return output_of(c, row);
}

/* The definition: over all coalitions without the player, |S|! (n - |S| - 1)! / n! times what the player adds. */
static void
by_definition(const Case *c, int k, double *contributions)
{
	int n = c->game.n_players;
	double *v = malloc(sizeof(double) << n);

	for (int set = 0; set < 1 << n; set++)
		v[set] = output_of_set(c, k, set);
	for (int p = 0; p < n; p++)
	{
		for (int set = 0; set < 1 << n; set++)
			if ((set >> p & 1) == 0)
			{
				int size = __builtin_popcount((unsigned) set);

				contributions[p] += exp(lgamma(size + 1) + lgamma(n - size) - lgamma(n + 1)) *
									(v[set | 1 << p] - v[set]);
			}
	}
	free(v);
}

static void
case_open(Case *c, Host *host, uint64_t seed, AgLink link, uint32_t n_outputs, int n_players)
{
	RandomTrees want = {seed, N_FEATURES, 12, n_outputs, 24, link};

	memset(c, 0, sizeof *c);
	AG_REQUIRE(random_trees(&host->ctx, want, &c->trees) == AG_OK);
	if (link == AG_LINK_MEAN_FREQUENCIES)
		((double *) c->trees->base)[0] = 0.0;
	c->model.kind = AG_IMAGE_TREES;
	c->model.fitted = c->trees;
	for (int f = 0; f < N_FEATURES; f++)
	{
		c->player_of[f] = f % n_players;
		c->row[f] = random_value(seed, 1, (uint32_t) f);
		for (int k = 0; k < N_ROWS; k++)
			c->background[k][f] = random_value(seed, (uint64_t) (2 + k), (uint32_t) f);
	}
	c->game = (AgShapleyGame){N_FEATURES, n_players, c->player_of, N_ROWS, c->background[0]};
}

static void
check_direct(Case *c, Host *host, const double *defined)
{
	double direct[MOST_PLAYERS] = {0};
	int8_t sides[MOST_PLAYERS];
	void *prepared;

	AG_REQUIRE(ag_shapley_direct_prepare(&host->ctx, &c->model, &c->game, &prepared) == AG_OK);
	ag_shapley_direct(&c->model, &c->game, prepared, c->row, c->output, 2.0, sides, direct);
	for (int p = 0; p < c->game.n_players; p++)
		AG_CHECK_NEAR(direct[p], 2.0 * defined[p] / N_ROWS, 1e-12);
	ag_mem_free(&host->mem, prepared);
}

static void
check_case(Case *c, Host *host, bool is_direct, double tolerance)
{
	double defined[MOST_PLAYERS] = {0}, any[MOST_PLAYERS] = {0};
	double difference = 0.0, sum = 0.0;
	AgShapleyWork *work;

	AG_REQUIRE(ag_shapley_work_create(&host->ctx, N_FEATURES, c->game.n_players, &work) == AG_OK);
	for (int k = 0; k < N_ROWS; k++)
	{
		by_definition(c, k, defined);
		difference += output_of(c, c->row) - output_of(c, c->background[k]);
		AG_CHECK_EQ(ag_shapley_any(&host->ctx, &c->game, k, c->row, run, c, work, any), AG_OK);
	}
	for (int p = 0; p < c->game.n_players; p++)
	{
		AG_CHECK_NEAR(any[p] / N_ROWS, defined[p] / N_ROWS, tolerance);
		sum += any[p];
	}
	AG_CHECK_NEAR(sum, difference, 1e-11);
	AG_CHECK_EQ(ag_shapley_is_direct(&c->model), is_direct);
	if (is_direct)
		check_direct(c, host, defined);
	ag_shapley_work_free(&host->ctx, work);
}

/* A row compared with itself, and one that differs in a single player: who is alike in both adds nothing, and isn't run. */
static void
check_alike(Case *c, Host *host)
{
	double any[MOST_PLAYERS] = {0};
	AgShapleyWork *work;

	AG_REQUIRE(ag_shapley_work_create(&host->ctx, N_FEATURES, c->game.n_players, &work) == AG_OK);
	memcpy(c->background[0], c->row, sizeof c->row);
	c->row[3] = c->background[0][3] = (double) NAN;
	c->n_runs = 0;
	AG_CHECK_EQ(ag_shapley_any(&host->ctx, &c->game, 0, c->row, run, c, work, any), AG_OK);
	AG_CHECK_EQ(c->n_runs, 0);
	c->row[4] = 0.5;
	c->background[0][4] = 1.5;
	AG_CHECK_EQ(ag_shapley_any(&host->ctx, &c->game, 0, c->row, run, c, work, any), AG_OK);
	AG_CHECK_EQ(c->n_runs, 2);
	for (int p = 0; p < c->game.n_players; p++)
		AG_CHECK(
			any[p] ==
			(p == c->player_of[4] ? output_of(c, c->row) - output_of(c, c->background[0]) : 0.0));
	ag_shapley_work_free(&host->ctx, work);
}

int
main(void)
{
	static const int players[] = {1, 3, 8, 14};
	Host host;
	Case c;

	host_open(&host, 1);
	for (uint64_t seed = 1; seed <= 20; seed++)
		for (int i = 0; i < 4; i++)
		{
			int n_players = players[i];
			bool is_sampled = n_players > 8;

			case_open(&c, &host, seed, AG_LINK_IDENTITY, 1, n_players);
			check_case(&c, &host, true, is_sampled ? 0.6 : 1e-12);
			ag_trees_free(c.trees);
			case_open(&c, &host, seed, AG_LINK_MEAN_FREQUENCIES, 1, n_players);
			c.output = (int) (seed % 2);
			check_case(&c, &host, true, is_sampled ? 0.1 : 1e-12);
			ag_trees_free(c.trees);
			case_open(&c, &host, seed, AG_LINK_SOFTMAX, 3, n_players);
			c.output = (int) (seed % 3);
			check_case(&c, &host, false, is_sampled ? 0.1 : 1e-12);
			if (n_players == 8)
				check_alike(&c, &host);
			ag_trees_free(c.trees);
		}
	for (int64_t k = 0; k < 3; k++)
	{
		AgShapleyWork *work;

		host_reset(&host);
		host.mem.fail_after = k;
		AG_CHECK_EQ(ag_shapley_work_create(&host.ctx, 4, 4, &work), AG_ERR_MEMORY);
		host.mem.fail_after = -1;
	}
	host_close(&host);
	return ag_unit_done("shapley");
}
