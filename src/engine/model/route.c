/*
 * route.c - sending rows of the bins through a grown tree.
 *
 * Sixteen rows walk side by side: each step waits for a bin and a node, and the waits of
 * independent rows overlap.
 */
#include "engine/model/route.h"

#include <string.h>

#define AG_ROUTE_ROWS 16

AgStatus
ag_route_create(const AgContext *ctx, int max_leaves, AgRoute *route)
{
	route->n_inner = 0;
	return ag_get(ctx, 2 * (size_t) max_leaves, sizeof(AgRouteNode), &route->nodes);
}

void
ag_route_free(const AgContext *ctx, AgRoute *route)
{
	ag_mem_free(ctx->mem, route->nodes);
	memset(route, 0, sizeof *route);
}

void
ag_route_set(AgRoute *route, const AgGrower *grower)
{
	const AgBins *bins = grower->bins;
	int n = grower->n_nodes;

	route->n_inner = n;
	for (int i = 0; i < n; i++)
	{
		const AgGrownNode *grown = grower->nodes + i;
		AgRouteNode *node = route->nodes + i;

		memset(node, 0, sizeof *node);
		node->column = bins->columns + grown->split.feature * bins->column_stride;
		ag_split_bits(&grown->split, node->left_bits);
		node->next[1] = grown->left < 0 ? n + ~grown->left : grown->left;
		node->next[0] = grown->right < 0 ? n + ~grown->right : grown->right;
	}
	for (int l = 0; l < grower->n_leaves; l++)
	{
		AgRouteNode *node = route->nodes + n + l;

		memset(node, 0, sizeof *node);
		node->column = bins->columns;
		node->next[0] = node->next[1] = n + l;
	}
}

static inline int32_t
step(const AgRoute *route, int32_t at, uint32_t row)
{
	const AgRouteNode *node = route->nodes + at;
	unsigned bin = node->column[row];

	return node->next[node->left_bits[bin >> 5] >> (bin & 31) & 1];
}

void
ag_route_rows(const AgRoute *route, const uint32_t *rows, int64_t n_rows, int32_t *leaves)
{
	int64_t i = 0;

	for (; i + AG_ROUTE_ROWS <= n_rows; i += AG_ROUTE_ROWS)
	{
		int32_t at[AG_ROUTE_ROWS] = {0}, least = 0;

		while (least < route->n_inner)
		{
			least = INT32_MAX;
			for (int r = 0; r < AG_ROUTE_ROWS; r++)
			{
				at[r] = step(route, at[r], rows[i + r]);
				least = at[r] < least ? at[r] : least;
			}
		}
		for (int r = 0; r < AG_ROUTE_ROWS; r++)
			leaves[i + r] = at[r] - route->n_inner;
	}
	for (; i < n_rows; i++)
	{
		int32_t at = 0;

		while (at < route->n_inner)
			at = step(route, at, rows[i]);
		leaves[i] = at - route->n_inner;
	}
}
