/*
 * route.h - sending rows of the bins through a grown tree.
 *
 * For the rows that the tree wasn't grown on: of validation, and out of the bag.
 */
#ifndef AG_ROUTE_H
#define AG_ROUTE_H

#include "engine/base/context.h"
#include "engine/model/grow.h"

/* A node or a leaf; leaves come behind the nodes and lead to themselves. */
typedef struct AgRouteNode
{
	const uint8_t *column;
	uint32_t left_bits[8]; /* bit b of the 256: bin b goes left */
	int32_t next[2];       /* right, left */
} AgRouteNode;

typedef struct AgRoute
{
	AgRouteNode *nodes; /* [2 * max_leaves] */
	int n_inner;
} AgRoute;

AgStatus ag_route_create(const AgContext *ctx, int max_leaves, AgRoute *route);
void ag_route_free(const AgContext *ctx, AgRoute *route); /* all zero is allowed */

/* Takes over the tree that the grower holds. */
void ag_route_set(AgRoute *route, const AgGrower *grower);

/* leaves[i]: the number of the leaf that rows[i] falls into. */
void ag_route_rows(const AgRoute *route, const uint32_t *rows, int64_t n_rows, int32_t *leaves);

#endif
