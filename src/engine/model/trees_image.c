/*
 * trees_image.c - trees as bytes, and the check of trees that come from bytes.
 *
 * The image's sections hold the arrays of AgTrees as they lie in memory, so reading is
 * checking. A hostile image costs no more than its size: every count in it is compared with the
 * sections' own before anything is indexed or allocated by it.
 */
#include <math.h>
#include <string.h>

#include "engine/data/format.h"
#include "engine/model/trees_plan.h"

#define TAG_HEAD 1u
#define TAG_BASE 2u
#define TAG_TREES 3u
#define TAG_NODES 4u
#define TAG_LEAVES 5u
#define TAG_SETS 6u
/* only of forests with more than one output */
#define TAG_VECTORS 7u
#define TAG_ENTRIES 8u
/* only of trees with combinations of categories */
#define TAG_COMBOS 9u
#define TAG_COMBO_MEMBERS 10u
#define TAG_COMBO_KEYS 11u

/* How far a vector's shares may be from a sum of 1. */
#define SHARE_SLACK 1e-9

/* Scores may not pass this in any row; softmax subtracts two of them. */
#define MAX_SCORE 1e300

#define KNOWN_FLAGS (AG_NODE_CATEGORY | AG_NODE_MISSING_LEFT | AG_NODE_UNSEEN_LEFT)

typedef struct Head
{
	uint32_t n_features;
	uint32_t n_outputs;
	uint32_t n_trees;
	uint32_t link;
} Head;

_Static_assert(sizeof(Head) == 16, "part of the format");
_Static_assert(sizeof(AgTree) == 32, "part of the format");
_Static_assert(sizeof(AgTreeNode) == 32, "part of the format");
_Static_assert(sizeof(AgLeafEntry) == 16, "part of the format");
_Static_assert(sizeof(AgTreeCombo) == 24, "part of the format");
_Static_assert(sizeof(AgComboMember) == 16, "part of the format");

/* What a check carries: scratch space as large as the largest tree, and how it reports. */
typedef struct Check
{
	const AgContext *ctx;
	const AgTrees *trees;
	AgStatus status;
	uint32_t *level;     /* [nodes] the root's is 1; 0: not reached yet */
	uint8_t *leaf_taken; /* [leaves] */
	double *greatest;    /* [n_outputs] bound of |score| */
} Check;

/* The one text: of a stored model when its bytes are read, of a trained one before they are written. */
static AgStatus
damaged(const Check *check, const char *what)
{
	return ag_error_set(check->ctx->error, check->status, "%s model is damaged: %s",
						check->status == AG_ERR_CORRUPT ? "stored" : "trained", what);
}

static AgStatus
fault(const Check *check, uint32_t t, const char *what)
{
	return ag_error_set(check->ctx->error, check->status, "%s model is damaged: tree %u %s",
						check->status == AG_ERR_CORRUPT ? "stored" : "trained", t, what);
}

static AgStatus
check_node(const Check *check, uint32_t t, const AgTreeNode *node)
{
	const AgTrees *trees = check->trees;

	if (node->feature >= (uint64_t) trees->n_features + trees->n_combos)
		return fault(check, t, "splits on a feature that does not exist");
	if (node->feature >= trees->n_features && (node->flags & AG_NODE_CATEGORY) == 0)
		return fault(check, t, "compares a combination of categories with a number");
	if ((node->flags & ~KNOWN_FLAGS) != 0)
		return fault(check, t, "has a node of unknown flags");
	if ((node->flags & AG_NODE_CATEGORY) == 0)
		return node->threshold == node->threshold ? AG_OK
												  : fault(check, t, "has a threshold of NaN");
	if ((uint64_t) node->set + node->n_set > trees->n_set_words)
		return fault(check, t, "has a category set beyond the sets");
	return AG_OK;
}

/*
 * Takes the child of node i. As children lie behind their parent, going through the nodes in
 * order meets every reached node after its parent. All 2 n references differ, and there are just 2 n
 * nodes and leaves to refer to (n - 1 + n + 1): so each is reached exactly once.
 */
static AgStatus
check_child(const Check *check, uint32_t t, const AgTree *tree, uint32_t i, int32_t child)
{
	if (child < 0)
	{
		uint32_t leaf = (uint32_t) ~child;

		if (leaf >= tree->n_leaves || check->leaf_taken[leaf])
			return fault(check, t, "has a leaf that is outside of it or reached twice");
		check->leaf_taken[leaf] = 1;
		return AG_OK;
	}
	if ((uint32_t) child <= i || (uint32_t) child >= tree->n_nodes || check->level[child] != 0)
		return fault(check, t, "has a node that is outside of it or reached twice");
	check->level[child] = check->level[i] + 1;
	return AG_OK;
}

static bool
has_vectors(const AgTrees *trees)
{
	return trees->link == AG_LINK_MEAN_FREQUENCIES && trees->n_outputs > 1;
}

/* A leaf of a forest: a share, or the number of a vector. */
static bool
is_forest_leaf(const AgTrees *trees, double value)
{
	if (!has_vectors(trees))
		return value >= 0.0 && value <= 1.0;
	return value >= 0.0 && value < (double) trees->n_vectors && value == floor(value);
}

static AgStatus
check_tree(const Check *check, uint32_t t)
{
	const AgTree *tree = &check->trees->trees[t];
	const AgTreeNode *nodes = check->trees->nodes + tree->first_node;
	const double *leaves = check->trees->leaves + tree->first_leaf;
	uint32_t depth = 0;
	double greatest = 0.0;

	if (tree->n_nodes > 0)
	{
		memset(check->level, 0, (size_t) tree->n_nodes * sizeof *check->level);
		memset(check->leaf_taken, 0, (size_t) tree->n_leaves);
		check->level[0] = 1;
	}
	for (uint32_t i = 0; i < tree->n_nodes; i++)
	{
		AG_TRY(check_node(check, t, &nodes[i]));
		AG_TRY(check_child(check, t, tree, i, nodes[i].left));
		AG_TRY(check_child(check, t, tree, i, nodes[i].right));
		if (check->level[i] > depth)
			depth = check->level[i];
	}
	if (tree->depth != depth)
		return fault(check, t, "has another depth than it says");
	for (uint32_t i = 0; i < tree->n_leaves; i++)
	{
		if (!isfinite(leaves[i]))
			return fault(check, t, "has a leaf that is not finite");
		if (check->trees->link == AG_LINK_MEAN_FREQUENCIES &&
			!is_forest_leaf(check->trees, leaves[i]))
			return fault(check, t, "has a leaf that is no share of classes");
		greatest = fmax(greatest, fabs(leaves[i]));
	}
	check->greatest[tree->output] += greatest;
	return AG_OK;
}

/* Trees tile the arrays; *n_largest gets the leaves of the largest. */
static AgStatus
check_extents(const Check *check, uint32_t *n_largest)
{
	const AgTrees *trees = check->trees;
	uint64_t n_nodes = 0, n_leaves = 0;

	*n_largest = 0;
	for (uint32_t t = 0; t < trees->n_trees; t++)
	{
		const AgTree *tree = &trees->trees[t];

		if (tree->n_nodes > INT32_MAX - 1 || tree->n_leaves != tree->n_nodes + 1)
			return fault(check, t, "has not one leaf more than nodes");
		if (tree->output >= trees->n_outputs)
			return fault(check, t, "adds to an output that does not exist");
		if (tree->first_node != n_nodes || tree->first_leaf != n_leaves)
			return fault(check, t, "does not begin where the one before ends");
		n_nodes += tree->n_nodes;
		n_leaves += tree->n_leaves;
		if (n_nodes > trees->n_nodes || n_leaves > trees->n_leaves)
			return fault(check, t, "ends behind the last node or leaf");
		if (tree->n_leaves > *n_largest)
			*n_largest = tree->n_leaves;
	}
	if (n_nodes != trees->n_nodes || n_leaves != trees->n_leaves)
		return damaged(check, "some nodes or leaves belong to no tree");
	return AG_OK;
}

static AgStatus
check_outputs(const Check *check)
{
	const AgTrees *trees = check->trees;
	bool fits;

	switch (trees->link)
	{
		case AG_LINK_IDENTITY:
		case AG_LINK_QUANTILES:
			fits = trees->n_outputs >= 1;
			break;
		case AG_LINK_SIGMOID:
		case AG_LINK_EXP:
			fits = trees->n_outputs == 1;
			break;
		case AG_LINK_SOFTMAX:
			fits = trees->n_outputs >= 2;
			break;
		case AG_LINK_MEAN_FREQUENCIES:
			fits = trees->n_outputs >= 1 && trees->n_trees >= 1;
			break;
		default:
			return damaged(check, "its link function is unknown");
	}
	if (!fits)
		return damaged(check, "its link function doesn't fit its outputs");
	return AG_OK;
}

/* Entries tile the vectors; each vector's are ascending in output and sum to 1. */
static AgStatus
check_vectors(const Check *check)
{
	const AgTrees *trees = check->trees;
	const uint64_t *vectors = trees->vectors;

	if (!has_vectors(trees))
		return trees->vectors == NULL ? AG_OK : damaged(check, "it has vectors without a use");
	if (vectors == NULL || vectors[0] != 0 || vectors[trees->n_vectors] != trees->n_entries)
		return damaged(check, "its vectors of shares don't fit their entries");
	for (uint64_t v = 0; v < trees->n_vectors; v++)
	{
		double sum = 0.0;

		if (vectors[v + 1] <= vectors[v] || vectors[v + 1] > trees->n_entries)
			return damaged(check, "its vectors of shares don't fit their entries");
		for (uint64_t e = vectors[v]; e < vectors[v + 1]; e++)
		{
			const AgLeafEntry *entry = &trees->entries[e];

			if (entry->output >= trees->n_outputs || entry->zero != 0 ||
				(e > vectors[v] && entry->output <= entry[-1].output) ||
				!(entry->share > 0.0 && entry->share <= 1.0))
				return damaged(check, "a vector has a share out of range");
			sum += entry->share;
		}
		if (!(fabs(sum - 1.0) <= SHARE_SLACK))
			return damaged(check, "a vector's shares don't sum to 1");
	}
	return AG_OK;
}

static AgStatus
check_combo(const Check *check, const AgTreeCombo *combo)
{
	const AgTrees *trees = check->trees;
	const AgComboMember *members = trees->combo_members + combo->first_member;
	const uint64_t *keys = trees->combo_keys + combo->first_key;

	for (uint32_t m = 0; m < combo->n_members; m++)
		if (members[m].feature >= trees->n_features || members[m].has_other > 1 ||
			members[m].zero != 0)
			return damaged(check, "a combination has a member out of range");
	for (uint64_t k = 1; k < combo->n_keys; k++)
		if (keys[k] <= keys[k - 1])
			return damaged(check, "a combination's keys don't ascend");
	return AG_OK;
}

/* Members and keys tile the combinations. */
static AgStatus
check_combos(const Check *check)
{
	const AgTrees *trees = check->trees;
	uint64_t n_members = 0, n_keys = 0;

	for (uint32_t c = 0; c < trees->n_combos; c++)
	{
		const AgTreeCombo *combo = &trees->combos[c];

		if (combo->n_members < 1 || combo->n_members > AG_COMBO_MEMBERS ||
			combo->n_keys >= UINT32_MAX - 1 || combo->first_member != n_members ||
			combo->first_key != n_keys || combo->n_members > trees->n_combo_members - n_members ||
			combo->n_keys > trees->n_combo_keys - n_keys)
			return damaged(check, "its combinations don't fit their members and keys");
		n_members += combo->n_members;
		n_keys += combo->n_keys;
		AG_TRY(check_combo(check, combo));
	}
	if (n_members != trees->n_combo_members || n_keys != trees->n_combo_keys)
		return damaged(check, "some members or keys belong to no combination");
	return AG_OK;
}

AgStatus
ag_trees_check(const AgContext *ctx, const AgTrees *trees, AgStatus status_of_fault)
{
	Check check = {ctx, trees, status_of_fault, NULL, NULL, NULL};
	uint32_t n_largest;
	AgStatus status;

	AG_TRY(check_outputs(&check));
	AG_TRY(check_vectors(&check));
	AG_TRY(check_combos(&check));
	AG_TRY(check_extents(&check, &n_largest));
	AG_GO(ag_get(ctx, n_largest, sizeof *check.level, &check.level));
	AG_GO(ag_get(ctx, n_largest, sizeof *check.leaf_taken, &check.leaf_taken));
	AG_GO(ag_get_zeroed(ctx, trees->n_outputs, sizeof *check.greatest, &check.greatest));
	for (uint32_t t = 0; t < trees->n_trees; t++)
		AG_GO(check_tree(&check, t));
	for (uint32_t k = 0; k < trees->n_outputs; k++)
		if (trees->link == AG_LINK_MEAN_FREQUENCIES && trees->base[k] != 0.0)
			AG_GO(damaged(&check, "a forest's scores don't begin at 0"));
		else if (!(fabs(trees->base[k]) + check.greatest[k] < MAX_SCORE))
			AG_GO(damaged(&check, "its scores can grow beyond all bounds"));
done:
	ag_mem_free(ctx->mem, check.greatest);
	ag_mem_free(ctx->mem, check.leaf_taken);
	ag_mem_free(ctx->mem, check.level);
	return status;
}

AgStatus
ag_trees_write(const AgContext *ctx, const AgTrees *trees, AgWriter *writer)
{
	Head head = {trees->n_features, trees->n_outputs, trees->n_trees, (uint32_t) trees->link};
	AgImageWriter image;

	AG_TRY(ag_trees_check(ctx, trees, AG_ERR_INTERNAL));
	ag_image_begin(&image, writer, AG_IMAGE_TREES);
	ag_image_section(&image, TAG_HEAD, sizeof head, &head, 1);
	ag_image_section(&image, TAG_BASE, sizeof *trees->base, trees->base, trees->n_outputs);
	ag_image_section(&image, TAG_TREES, sizeof *trees->trees, trees->trees, trees->n_trees);
	ag_image_section(&image, TAG_NODES, sizeof *trees->nodes, trees->nodes, trees->n_nodes);
	ag_image_section(&image, TAG_LEAVES, sizeof *trees->leaves, trees->leaves, trees->n_leaves);
	ag_image_section(&image, TAG_SETS, sizeof *trees->sets, trees->sets, trees->n_set_words);
	if (has_vectors(trees))
	{
		ag_image_section(&image, TAG_VECTORS, sizeof *trees->vectors, trees->vectors,
						 trees->n_vectors + 1);
		ag_image_section(&image, TAG_ENTRIES, sizeof *trees->entries, trees->entries,
						 trees->n_entries);
	}
	if (trees->n_combos > 0)
	{
		ag_image_section(&image, TAG_COMBOS, sizeof *trees->combos, trees->combos, trees->n_combos);
		ag_image_section(&image, TAG_COMBO_MEMBERS, sizeof *trees->combo_members,
						 trees->combo_members, trees->n_combo_members);
		ag_image_section(&image, TAG_COMBO_KEYS, sizeof *trees->combo_keys, trees->combo_keys,
						 trees->n_combo_keys);
	}
	return ag_image_end(ctx, &image);
}

static AgStatus
find_vectors(const AgContext *ctx, const AgImage *image, AgTrees *trees)
{
	const void *items;

	AG_TRY(
		ag_image_find(ctx, image, TAG_VECTORS, sizeof *trees->vectors, &items, &trees->n_vectors));
	if (trees->n_vectors == 0)
		return ag_error_set(ctx->error, AG_ERR_CORRUPT,
							"stored model is damaged: it has no vectors of shares");
	trees->n_vectors--;
	trees->vectors = items;
	AG_TRY(
		ag_image_find(ctx, image, TAG_ENTRIES, sizeof *trees->entries, &items, &trees->n_entries));
	trees->entries = items;
	return AG_OK;
}

static AgStatus
find_combos(const AgContext *ctx, const AgImage *image, AgTrees *trees)
{
	const void *items;
	uint64_t n_combos;

	if (!ag_image_has(image, TAG_COMBOS))
		return AG_OK;
	AG_TRY(ag_image_find(ctx, image, TAG_COMBOS, sizeof *trees->combos, &items, &n_combos));
	if (n_combos > INT32_MAX || trees->n_features > INT32_MAX)
		return ag_error_set(ctx->error, AG_ERR_CORRUPT,
							"stored model is damaged: it has too many combinations");
	trees->combos = items;
	trees->n_combos = (uint32_t) n_combos;
	AG_TRY(ag_image_find(ctx, image, TAG_COMBO_MEMBERS, sizeof *trees->combo_members, &items,
						 &trees->n_combo_members));
	trees->combo_members = items;
	AG_TRY(ag_image_find(ctx, image, TAG_COMBO_KEYS, sizeof *trees->combo_keys, &items,
						 &trees->n_combo_keys));
	trees->combo_keys = items;
	return AG_OK;
}

/* The arrays, in place; their lengths are compared with the head's. */
static AgStatus
find_arrays(const AgContext *ctx, const AgImage *image, AgTrees *trees)
{
	const void *items;
	uint64_t n_heads, n_base, n_trees;
	const Head *head;

	AG_TRY(ag_image_find(ctx, image, TAG_HEAD, sizeof *head, &items, &n_heads));
	if (n_heads != 1)
		return ag_error_set(ctx->error, AG_ERR_CORRUPT,
							"stored model is damaged: it has no header or several");
	head = items;
	trees->n_features = head->n_features;
	trees->n_outputs = head->n_outputs;
	trees->n_trees = head->n_trees;
	if (head->link > AG_LINK_QUANTILES) /* an enum may hold no other value than its own */
		return ag_error_set(ctx->error, AG_ERR_CORRUPT,
							"stored model is damaged: its link function is unknown");
	trees->link = (AgLink) head->link;
	AG_TRY(ag_image_find(ctx, image, TAG_BASE, sizeof *trees->base, &items, &n_base));
	trees->base = items;
	AG_TRY(ag_image_find(ctx, image, TAG_TREES, sizeof *trees->trees, &items, &n_trees));
	trees->trees = items;
	if (n_base != trees->n_outputs || n_trees != trees->n_trees)
		return ag_error_set(
			ctx->error, AG_ERR_CORRUPT,
			"stored model is damaged: its header and its sections differ in length");
	AG_TRY(ag_image_find(ctx, image, TAG_NODES, sizeof *trees->nodes, &items, &trees->n_nodes));
	trees->nodes = items;
	AG_TRY(ag_image_find(ctx, image, TAG_LEAVES, sizeof *trees->leaves, &items, &trees->n_leaves));
	trees->leaves = items;
	AG_TRY(ag_image_find(ctx, image, TAG_SETS, sizeof *trees->sets, &items, &trees->n_set_words));
	trees->sets = items;
	if (has_vectors(trees))
		AG_TRY(find_vectors(ctx, image, trees));
	return find_combos(ctx, image, trees);
}

AgStatus
ag_trees_read(const AgContext *ctx, const void *image_bytes, size_t size, AgTrees **trees)
{
	AgImage image;
	AgStatus status;

	*trees = NULL;
	AG_TRY(ag_image_open(ctx, image_bytes, size, AG_IMAGE_TREES, &image));
	AG_TRY(ag_trees_create(ctx, trees));
	AG_GO(find_arrays(ctx, &image, *trees));
	if (ctx->trusts_images) /* their layout comes with them */
		goto done;
	AG_GO(ag_trees_check(ctx, *trees, AG_ERR_CORRUPT));
	AG_GO(ag_trees_lay_out(ctx, *trees));
done:
	if (status != AG_OK)
	{
		ag_trees_free(*trees);
		*trees = NULL;
	}
	return status;
}
