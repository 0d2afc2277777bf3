/*
 * forest_search.cuh - the split of one node, by a team: what model/forest_search.c, forest_scan.c and forest_random.c find, to the
 * last bit.
 *
 * Features are drawn one after the other, as on the CPU, and of each the node's rows are added up by bin in shared memory. Sums are
 * integers. Of equal scores the feature drawn first wins, then missing values on the right, then the lowest bin: a cut's `order`.
 */
#ifndef AGK_FOREST_SEARCH_CUH
#define AGK_FOREST_SEARCH_CUH

#include "kernels/forest.cuh"
#include "kernels/forest_team.cuh"

/* What a team has for its node. */
template <class Team> struct AgkForestWork
{
	Team team;
	int64_t slot;
	AgkForestTree *tree;
	AgkForestTable *table;
	uint32_t *cells;
	int32_t *features; /* [n_features], and behind them how they were drawn */
	/* the node's part */
	uint64_t *rows;
	uint32_t *row_weights;
	uint32_t n_rows;
	/* its view: AgForestView's */
	AgForestKind kind;
	int64_t weight, sum, squares;
	int shift;
	uint32_t first_class; /* PAIR: the class that isn't added up */
	uint64_t key;
};

/* Distances times weights of the node's rows; they lie as rows do. */
template <class Team>
static __device__ inline int64_t *
agk_distances(const AgkForest &forest, const AgkForestWork<Team> &work)
{
	return forest.distances + (work.rows - forest.rows);
}

/* ---- the node's rows ---- */

template <class Team>
static __device__ void
agk_view_classes(const AgkForest &forest, AgkForestWork<Team> &work)
{
	uint32_t *totals = work.table->totals;
	int64_t weight = 0, squares = 0;
	int n_classes = 0;

	work.team.sync();
	for (int k = work.team.rank; k < forest.n_classes; k += Team::size)
		totals[k] = 0;
	work.team.sync();
	for (uint32_t i = work.team.rank; i < work.n_rows; i += Team::size)
	{
		int64_t w = agk_forest_weight(forest, work.tree, work.slot, work.rows[i]);

		work.row_weights[i] = (uint32_t) w;
		weight += w;
		atomicAdd(totals + ag_forest_class(work.rows[i]), (uint32_t) w);
	}
	work.team.sync();
	for (int k = work.team.rank; k < forest.n_classes; k += Team::size)
	{
		int64_t total = totals[k];

		n_classes += total != 0;
		squares +=
			forest.is_entropy ? ag_forest_log_at(forest.logs, forest.n_logs, total) : total * total;
	}
	work.weight = work.team.sum(weight);
	work.squares = work.team.sum(squares);
	n_classes = work.team.sum(n_classes);
	work.kind = n_classes == 1   ? AG_FOREST_PURE
				: n_classes == 2 ? AG_FOREST_PAIR
								 : AG_FOREST_CLASSES;
	work.first_class = forest.n_classes == 2 ? 0 : ag_forest_class(work.rows[0]);
	work.sum = work.weight - totals[work.first_class];
}

/* Distances from the mean, as exact as 30 bits make them in the node's own range. */
template <class Team>
static __device__ void
agk_view_numbers(const AgkForest &forest, AgkForestWork<Team> &work)
{
	int64_t weight = 0, low = 0, high = 0, sum = 0, center, range;
	int64_t least = INT64_MAX, most = INT64_MIN;

	for (uint32_t i = work.team.rank; i < work.n_rows; i += Team::size)
	{
		int64_t value = forest.values[(uint32_t) work.rows[i]];
		int64_t w = agk_forest_weight(forest, work.tree, work.slot, work.rows[i]);

		work.row_weights[i] = (uint32_t) w;
		weight += w;
		low += (value & INT32_MAX) * w;
		high += (value >> 31) * w;
		least = value < least ? value : least;
		most = value > most ? value : most;
	}
	work.weight = work.team.sum(weight);
	low = work.team.sum(low);
	high = work.team.sum(high);
	least = -work.team.highest(-least);
	most = work.team.highest(most);
	work.kind = least == most ? AG_FOREST_PURE : AG_FOREST_NUMBERS;
	if (work.kind == AG_FOREST_PURE)
		return;
	center = (int64_t) (((__int128) high * (INT64_C(1) << 31) + low) / work.weight);
	range = most - center > center - least ? most - center : center - least;
	for (work.shift = 0; range >> work.shift >= INT64_C(1) << AG_FOREST_DISTANCE_BITS;)
		work.shift++;
	for (uint32_t i = work.team.rank; i < work.n_rows; i += Team::size)
	{
		int64_t distance = (forest.values[(uint32_t) work.rows[i]] - center) >> work.shift;

		distance *= (int64_t) work.row_weights[i];
		agk_distances(forest, work)[i] = distance;
		sum += distance;
	}
	work.sum = work.team.sum(sum);
	work.team.sync();
}

/* ---- one feature's rows by bin ---- */

/* The tree's ranks of feature f's bins; null: they are their own. */
static __device__ inline const uint8_t *
agk_forest_ranks(const AgkForest &forest, int64_t slot, int f)
{
	int rank = forest.rank_of[f];

	return rank < 0 ? nullptr : forest.ranks + (slot * forest.n_ranks + rank) * AG_FOREST_BINS;
}

/* A warp's nodes have few rows. */
template <class Team>
static __device__ inline unsigned
agk_team_bin(const AgkForest &forest, int f, const uint8_t *ranks, bool by_rows, uint32_t id)
{
	if (Team::size == 32)
		return agk_row_bin(forest, f, ranks, id);
	return agk_forest_bin(forest, f, ranks, by_rows, id);
}

template <class Team>
static __device__ void
agk_fill_table(const AgkForest &forest, AgkForestWork<Team> &work, int f)
{
	AgkForestTable *table = work.table;
	const uint8_t *ranks = agk_forest_ranks(forest, work.slot, f);
	int n_bins = forest.matrix.n_bins[f], n_classes = forest.n_classes;
	bool has_cells = work.kind == AG_FOREST_CLASSES, wants_rows = forest.min_rows_leaf > 1;
	bool by_rows = work.n_rows < AGK_FOREST_SMALL;

	work.team.sync();
	for (int b = work.team.rank; b <= n_bins; b += Team::size)
	{
		table->sums[b] = 0;
		table->weights[b] = table->rows[b] = 0;
	}
	for (int c = work.team.rank; has_cells && c < (n_bins + 1) * n_classes; c += Team::size)
		work.cells[c] = 0;
	work.team.sync();
	for (uint32_t i = work.team.rank; i < work.n_rows; i += Team::size)
	{
		uint64_t row = work.rows[i];
		unsigned bin = agk_team_bin<Team>(forest, f, ranks, by_rows, (uint32_t) row);
		uint32_t w = work.row_weights[i];

		atomicAdd(table->weights + bin, w);
		if (wants_rows)
			atomicAdd(table->rows + bin, 1u);
		if (has_cells)
			atomicAdd(work.cells + bin * (unsigned) n_classes + ag_forest_class(row), w);
		else if (work.kind == AG_FOREST_NUMBERS)
			atomicAdd(table->sums + bin,
					  static_cast<unsigned long long>(agk_distances(forest, work)[i]));
		else if (ag_forest_class(row) != work.first_class)
			atomicAdd(table->sums + bin, static_cast<unsigned long long>(w));
	}
	work.team.sync();
}

/* Sums over bins before one, up to it, and of all that aren't missing. */
struct AgkForestSums
{
	int64_t weight, sum, rows;
};

static __device__ inline AgkForestSums
agk_bin_sums(const AgkForestTable *table, int b)
{
	AgkForestSums sums = {table->weights[b], static_cast<int64_t>(table->sums[b]), table->rows[b]};

	return sums;
}

static __device__ inline void
agk_add_sums(AgkForestSums *to, const AgkForestSums &from)
{
	to->weight += from.weight;
	to->sum += from.sum;
	to->rows += from.rows;
}

template <class Team>
static __device__ bool
agk_forest_allowed(const AgkForest &forest, const AgkForestWork<Team> &work, int64_t left_rows,
				   int64_t left_weight)
{
	double least = forest.min_weight_fraction * (double) work.tree->weight * (1.0 - 1e-12);

	if (forest.min_rows_leaf > 1 &&
		(left_rows < forest.min_rows_leaf || work.n_rows - left_rows < forest.min_rows_leaf))
		return false;
	return (double) left_weight >= least && (double) (work.weight - left_weight) >= least;
}

/* ---- scores ---- */

/* The left's sums of squares and products by class (AgForestLeft's), from a column of cells summed up to it and the missing's. */
template <class Team>
static __device__ void
agk_class_sums(const AgkForest &forest, const AgkForestWork<Team> &work, int k, int64_t left,
			   int64_t *squares, int64_t *products)
{
	int64_t all = work.table->totals[k];

	if (!forest.is_entropy)
	{
		*squares += left * left;
		*products += left * all;
		return;
	}
	*squares += ag_forest_log_at(forest.logs, forest.n_logs, left);
	*products += ag_forest_log_at(forest.logs, forest.n_logs, all - left) -
				 ag_forest_log_at(forest.logs, forest.n_logs, all);
}

template <class Team>
static __device__ double
agk_classes_score(const AgkForest &forest, const AgkForestWork<Team> &work, int64_t squares,
				  int64_t products, int64_t weight)
{
	return ag_forest_of_classes(forest.is_entropy, forest.logs, forest.n_logs, work.squares,
								work.weight, squares, products, weight);
}

/* Of the cut after bin b; cells are summed up over bins already. */
template <class Team>
static __device__ double
agk_cut_score(const AgkForest &forest, const AgkForestWork<Team> &work, int b, bool missing_left,
			  const AgkForestSums &left)
{
	int64_t squares = 0, products = 0;

	if (work.kind != AG_FOREST_CLASSES)
		return forest.is_entropy ? ag_forest_entropy(forest.logs, forest.n_logs, work.sum,
													 work.weight, left.sum, left.weight)
								 : ag_forest_ratio(work.sum, work.weight, left.sum, left.weight);
	for (int k = 0; k < forest.n_classes; k++)
		agk_class_sums(forest, work, k,
					   (int64_t) work.cells[b * forest.n_classes + k] +
						   (missing_left ? work.cells[k] : 0),
					   &squares, &products);
	return agk_classes_score(forest, work, squares, products, left.weight);
}

/* Cells of each class summed up over the value bins. */
template <class Team>
static __device__ void
agk_sum_cells(const AgkForest &forest, AgkForestWork<Team> &work, int n_bins)
{
	for (int k = work.team.rank; k < forest.n_classes; k += Team::size)
	{
		uint32_t sum = 0;

		for (int b = 1; b <= n_bins; b++)
			sum = work.cells[b * forest.n_classes + k] += sum;
	}
	work.team.sync();
}

/* ---- the best cut of a feature ---- */

/* The lane's best of its own bins; *own: what is left of that cut. False: the feature is constant. */
template <class Team>
static __device__ bool
agk_scan_bins(const AgkForest &forest, AgkForestWork<Team> &work, int n_bins, double bar,
			  AgkOffer *offer, AgkForestSums *own)
{
	constexpr int per_lane = AG_FOREST_BINS / Team::size;
	AgkForestSums sums = {0, 0, 0}, missing = agk_bin_sums(work.table, 0), all;
	int n_filled = 0, first = work.team.rank * per_lane;

	for (int b = first > 0 ? first : 1; b < first + per_lane && b <= n_bins; b++)
	{
		agk_add_sums(&sums, agk_bin_sums(work.table, b));
		n_filled += work.table->weights[b] != 0;
	}
	if (work.team.sum(n_filled) + (missing.weight != 0) < 2)
		return false;
	sums.weight = work.team.before(sums.weight, &all.weight);
	sums.sum = work.team.before(sums.sum, &all.sum);
	sums.rows = work.team.before(sums.rows, &all.rows);
	for (int b = first > 0 ? first : 1; b < first + per_lane && b <= n_bins; b++)
	{
		if (work.table->weights[b] == 0)
			continue;
		agk_add_sums(&sums, agk_bin_sums(work.table, b));
		for (int missing_left = 0; missing_left < 2; missing_left++)
		{
			AgkForestSums left = sums;
			bool is_last = sums.weight == all.weight;
			double score;

			if (missing_left)
				agk_add_sums(&left, missing);
			if ((missing_left || is_last) && (missing.weight == 0 || (missing_left && is_last)))
				continue;
			if (!agk_forest_allowed(forest, work, left.rows, left.weight))
				continue;
			score = agk_cut_score(forest, work, b, missing_left != 0, left);
			if (!(score > bar))
				continue;
			if (offer->order == INT32_MAX || score > offer->score ||
				(score == offer->score && missing_left * AG_FOREST_BINS + b < offer->order))
			{
				offer->score = score;
				offer->order = missing_left * AG_FOREST_BINS + b;
				*own = left;
			}
		}
	}
	return true;
}

/* Offers feature f's cuts to *best; false: it is constant. */
template <class Team>
static __device__ bool
agk_forest_scan(const AgkForest &forest, AgkForestWork<Team> &work, int f, AgkForestSplit *best)
{
	int n_bins = forest.matrix.n_bins[f], low;
	AgkForestTable *table = work.table;
	AgkOffer own = {0.0, INT32_MAX}, won;
	AgkForestSums left = {0, 0, 0};

	if (work.kind == AG_FOREST_CLASSES)
		agk_sum_cells(forest, work, n_bins);
	if (!agk_scan_bins(forest, work, n_bins, best->score, &own, &left))
		return false;
	won = work.team.best(own);
	if (won.order == INT32_MAX)
		return true;
	low = won.order % AG_FOREST_BINS;
	if (own.order == won.order) /* no other lane has that bin */
	{
		int high = low + 1;

		while (high <= n_bins && table->weights[high] == 0)
			high++;
		table->won.sum = left.sum;
		table->won.weight = left.weight;
		table->won.high = high <= n_bins ? high : 255;
	}
	work.team.sync();
	best->score = won.score;
	best->feature = f;
	best->low = low;
	best->high = table->won.high;
	best->has_missing = table->weights[0] != 0;
	best->missing_left = won.order >= AG_FOREST_BINS;
	best->left_weight = table->won.weight;
	best->is_perfect = ag_forest_is_pure(work.kind, work.n_rows, work.sum, work.weight,
										 table->won.sum, table->won.weight);
	return true;
}

/* ---- one random cut of a feature (XT) ---- */

/* Draws a value between the least and the greatest, and finds the last bin before the greatest whose middle doesn't pass it. */
static __device__ inline int
agk_draw_low(const AgkForest &forest, uint64_t key, int f, int least, int most, double *value)
{
	const double *centers = forest.matrix.centers + forest.matrix.first_center[f];
	double u = ag_random_unit(key, (uint64_t) f), low, high;
	int from = least, to = most - 1;

	if (forest.matrix.is_category[f])
		return least + (int) (u * (most - least));
	low = centers[least - 1];
	high = centers[most - 1];
	*value = low + u * (high - low);
	while (from < to)
	{
		int middle = (from + to + 1) / 2;

		if (centers[middle - 1] <= *value)
			from = middle;
		else
			to = middle - 1;
	}
	return from;
}

/* The score of the cut after bin `low`, for every lane. */
template <class Team>
static __device__ double
agk_random_score(const AgkForest &forest, AgkForestWork<Team> &work, int low, bool missing_left,
				 const AgkForestSums &left)
{
	int64_t squares = 0, products = 0;

	if (work.kind != AG_FOREST_CLASSES)
		return agk_cut_score(forest, work, low, missing_left, left);
	for (int k = work.team.rank; k < forest.n_classes; k += Team::size)
	{
		int64_t of_left = missing_left ? work.cells[k] : 0;

		for (int b = 1; b <= low; b++)
			of_left += work.cells[b * forest.n_classes + k];
		agk_class_sums(forest, work, k, of_left, &squares, &products);
	}
	return agk_classes_score(forest, work, work.team.sum(squares), work.team.sum(products),
							 left.weight);
}

template <class Team>
static __device__ bool
agk_forest_draw(const AgkForest &forest, AgkForestWork<Team> &work, int f, AgkForestSplit *best)
{
	int n_bins = forest.matrix.n_bins[f], least = 256, most = 0, low;
	AgkForestSums missing = agk_bin_sums(work.table, 0), left = {0, 0, 0};
	bool has_missing = missing.weight != 0, is_last;
	double value = 0.0;

	for (int b = 1 + work.team.rank; b <= n_bins; b += Team::size)
		if (work.table->weights[b] != 0)
		{
			least = b < least ? b : least;
			most = b;
		}
	least = -work.team.highest(-least);
	most = work.team.highest(most);
	is_last = least == most;
	if (most == 0 || (is_last && !has_missing))
		return false;
	low = is_last
			  ? most
			  : agk_draw_low(forest, ag_key(work.key, AG_FOREST_KEY_CUT), f, least, most, &value);
	for (int b = 1 + work.team.rank; b <= low; b += Team::size)
		agk_add_sums(&left, agk_bin_sums(work.table, b));
	left.weight = work.team.sum(left.weight);
	left.sum = work.team.sum(left.sum);
	left.rows = work.team.sum(left.rows);
	for (int missing_left = 0; missing_left < (has_missing && !is_last ? 2 : 1); missing_left++)
	{
		double score;

		if (missing_left)
			agk_add_sums(&left, missing);
		score = agk_random_score(forest, work, low, missing_left != 0, left);
		if (!(score > best->score) || !agk_forest_allowed(forest, work, left.rows, left.weight))
			continue;
		best->is_perfect =
			ag_forest_is_pure(work.kind, work.n_rows, work.sum, work.weight, left.sum, left.weight);
		best->score = score;
		best->feature = f;
		best->low = low;
		best->high = is_last ? 255 : most;
		best->value = value;
		best->has_missing = has_missing;
		best->missing_left = missing_left != 0;
		best->left_weight = left.weight;
	}
	return true;
}

/* ---- the search ---- */

/* The feature at a place among the n_left that weren't drawn is put behind them, with those that were. One thread. */
template <class Team>
static __device__ void
agk_take_feature(AgkForestWork<Team> &work, int n, int n_left, int at)
{
	int f = work.features[at];

	work.features[2 * n - n_left] = at;
	work.features[at] = work.features[n_left - 1];
	work.features[n_left - 1] = f;
}

/* All in order again, so that a draw depends on nothing but its key. One thread. */
template <class Team>
static __device__ void
agk_undo_draws(AgkForestWork<Team> &work, int n, int n_left)
{
	for (; n_left < n; n_left++)
	{
		int at = work.features[2 * n - n_left - 1], f = work.features[n_left];

		work.features[n_left] = work.features[at];
		work.features[at] = f;
	}
}

/* What a search begins with, and does it go on with so many features left? ag_forest_search. */
static __device__ inline AgkForestSplit
agk_no_split(void)
{
	AgkForestSplit none = {-(double) INFINITY, 0.0, 0, -1, 0, 0, false, false, false};

	return none;
}

static __device__ inline bool
agk_goes_on(const AgkForest &forest, const AgkForestSplit &best, int n_tried, int n_left)
{
	return n_left > 0 && (n_tried < forest.n_features_tried || best.feature < 0) &&
		   !best.is_perfect;
}

/* Offers feature f to *best; false: it is constant. */
template <class Team>
static __device__ bool
agk_try_feature(const AgkForest &forest, AgkForestWork<Team> &work, int f, AgkForestSplit *best)
{
	agk_fill_table(forest, work, f);
	return forest.is_extra ? agk_forest_draw(forest, work, f, best)
						   : agk_forest_scan(forest, work, f, best);
}

/* Features are drawn until enough of them weren't constant, and on until one gives a split. */
template <class Team>
static __device__ AgkForestSplit
agk_forest_search(const AgkForest &forest, AgkForestWork<Team> &work)
{
	uint64_t key = ag_key(work.key, AG_FOREST_KEY_FEATURES);
	int n = forest.matrix.n_features, n_left = n, n_tried = 0;
	AgkForestSplit best = agk_no_split();

	while (agk_goes_on(forest, best, n_tried, n_left))
	{
		int at = (int) ag_random_below(key, (uint64_t) (n - n_left), (uint32_t) n_left);
		int f = work.features[at];

		work.team.sync();
		if (work.team.rank == 0)
			agk_take_feature(work, n, n_left, at);
		n_left--;
		n_tried += agk_try_feature(forest, work, f, &best);
	}
	work.team.sync();
	if (work.team.rank == 0)
		agk_undo_draws(work, n, n_left);
	work.team.sync();
	return best;
}

#endif
