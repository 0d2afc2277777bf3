#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "engine/base/nearest.h"

/* ASCII only: the names we know are. */
static char
folded(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char) (c - 'A' + 'a');
	return c == '-' || c == ' ' ? '_' : c;
}

static int
smallest(int a, int b, int c)
{
	int least = a < b ? a : b;

	return least < c ? least : c;
}

/*
 * Insertions, deletions, replacements and swaps of neighbours that turn a into b
 * (Damerau 1964, in the form that edits no substring twice). A swap counts once:
 * it is the commonest slip of a fast typist. Bytes, without regard to case, '-' as '_'.
 */
static int
distance(const char *a, int n_a, const char *b, int n_b)
{
	int rows[3][AG_NEAREST_MAX + 1];
	int *before = rows[0], *last = rows[1], *row = rows[2], *spare;

	for (int j = 0; j <= n_b; j++)
		last[j] = j;
	for (int i = 1; i <= n_a; i++)
	{
		row[0] = i;
		for (int j = 1; j <= n_b; j++)
		{
			char ca = folded(a[i - 1]), cb = folded(b[j - 1]);

			row[j] = smallest(last[j] + 1, row[j - 1] + 1, last[j - 1] + (ca != cb));
			if (i > 1 && j > 1 && ca == folded(b[j - 2]) && folded(a[i - 2]) == cb &&
				before[j - 2] + 1 < row[j])
				row[j] = before[j - 2] + 1;
		}
		spare = before;
		before = last;
		last = row;
		row = spare;
	}
	return last[n_b];
}

/* Is the shorter one, of at least four letters, a piece of the other ("leaves" in "num_leaves")? */
static int
is_piece(const char *a, int n_a, const char *b, int n_b)
{
	const char *piece = n_a < n_b ? a : b, *whole = n_a < n_b ? b : a;
	int n_piece = n_a < n_b ? n_a : n_b, n_whole = n_a < n_b ? n_b : n_a;

	if (n_piece < 4)
		return 0;
	for (int at = 0; at + n_piece <= n_whole; at++)
	{
		int i = 0;

		while (i < n_piece && folded(piece[i]) == folded(whole[at + i]))
			i++;
		if (i == n_piece)
			return 1;
	}
	return 0;
}

void
ag_nearest_init(AgNearest *nearest, const char *wanted)
{
	nearest->wanted = wanted;
	nearest->best = NULL;
	nearest->best_distance = INT_MAX;
}

void
ag_nearest_offer(AgNearest *nearest, const char *name)
{
	size_t n_wanted = strnlen(nearest->wanted, AG_NEAREST_MAX + 1);
	size_t n_name = strnlen(name, AG_NEAREST_MAX + 1);
	int edits, longest, limit, apart;

	if (n_wanted > AG_NEAREST_MAX || n_name > AG_NEAREST_MAX || n_wanted == 0)
		return;
	/* A third of the letters (half of a short name's) may be wrong; beyond that two names just happen to be alike. */
	longest = (int) (n_wanted > n_name ? n_wanted : n_name);
	limit = longest < 6 ? longest / 2 : longest / 3;
	apart = (int) (n_wanted > n_name ? n_wanted - n_name : n_name - n_wanted);
	if (apart > limit && !is_piece(nearest->wanted, (int) n_wanted, name, (int) n_name))
		return; /* it takes as many edits at least, so there's no need to count them */
	edits = distance(nearest->wanted, (int) n_wanted, name, (int) n_name);
	/* Pieces rank behind every slip, closest first. */
	if (edits > limit)
		edits = is_piece(nearest->wanted, (int) n_wanted, name, (int) n_name)
					? edits + AG_NEAREST_MAX
					: INT_MAX;
	if (edits < nearest->best_distance)
	{
		nearest->best = name;
		nearest->best_distance = edits;
	}
}

const char *
ag_nearest_name(const AgNearest *nearest)
{
	return nearest->best;
}
