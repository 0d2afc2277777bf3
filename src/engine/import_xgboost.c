/*
 * import_xgboost.c - trees out of XGBoost's JSON (what save_model writes to a name that ends in .json).
 *
 * The file is read twice: what the model is may stand behind its trees. There x < condition, both rounded to float, goes left; here x <= threshold in double
 * precision: the threshold is the greatest double that rounds to a float below the condition, so every double goes the same way.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/json_read.h"
#include "engine/import_private.h"

#define MOST_TREES 1000000

typedef struct File
{
	AgImporting *importing;
	AgJsonText json;
	const char *booster, *objective, *base_score;
	long n_features, n_classes, n_targets, n_trees;
	int32_t *tree_info; /* [n_info] which output a tree is of */
	double *weight;     /* [n_weights] of dart's trees */
	size_t n_info, n_weights, n_names;
	bool has_encodings;
	bool wants_trees; /* the second time */
} File;

/* --- pieces --- */

/* A number that is written as a string. */
static long
read_quoted_integer(File *file, long high)
{
	const char *text = ag_json_read_string(&file->json);
	char *end;
	long value = strtol(text, &end, 10);

	if (*text == '\0' || *end != '\0' || value < 0 || value > high)
		file->json.failed = true;
	return value;
}

/* An array of numbers into the arena. The count is bounded by the bytes that are left. */
static AgStatus
read_numbers(File *file, double **values, size_t *n)
{
	size_t room = 0;

	*n = 0;
	ag_json_begin_array(&file->json);
	while (ag_json_next_item(&file->json))
	{
		double value = ag_json_read_number(&file->json);

		if (*n == room)
		{
			double *more;

			room = room < 64 ? 64 : room * 2;
			AG_TRY(ag_import_array(file->importing, room, sizeof(double), &more));
			if (*n > 0)
				memcpy(more, *values, *n * sizeof(double));
			*values = more;
		}
		(*values)[(*n)++] = value;
	}
	return AG_OK;
}

static AgStatus
read_tree_info(File *file)
{
	double *values = NULL;

	AG_TRY(read_numbers(file, &values, &file->n_info));
	AG_TRY(ag_import_array(file->importing, file->n_info, sizeof(int32_t), &file->tree_info));
	for (size_t i = 0; i < file->n_info; i++)
	{
		if (!(values[i] >= 0 && values[i] < AG_IMPORT_MOST_OUTPUTS) ||
			values[i] != floor(values[i]))
			return ag_import_malformed(file->importing, "tree_info names no class");
		file->tree_info[i] = (int32_t) values[i];
	}
	return AG_OK;
}

static AgStatus
read_names(File *file)
{
	AgImporting *importing = file->importing;
	const char *names[AG_MAX_COLUMNS];

	file->n_names = 0; /* of a list that stands there twice, the last counts */
	ag_json_begin_array(&file->json);
	while (ag_json_next_item(&file->json))
	{
		if (file->n_names == AG_MAX_COLUMNS)
			return ag_import_refuse(importing, "of more features than a table has columns");
		names[file->n_names++] = ag_json_read_string(&file->json);
	}
	if (file->n_names == 0)
		return AG_OK;
	AG_TRY(ag_import_array(importing, file->n_names, sizeof(char *), &importing->names));
	memcpy(importing->names, names, file->n_names * sizeof(char *));
	return AG_OK;
}

/* --- trees --- */

typedef struct Columns
{
	double *left, *right, *feature, *condition, *default_left, *type;
	double *categories, *nodes, *segments, *sizes;
	size_t n, n_right, n_feature, n_condition, n_default, n_type, n_categories, n_nodes, n_segments,
		n_sizes;
} Columns;

/* The greatest double that rounds to a float below the condition. */
static double
threshold_below(float condition)
{
	float below = nextafterf(condition, -INFINITY);
	double middle = ((double) below + (double) condition) / 2.0;

	return (float) middle < condition ? middle : nextafter(middle, -INFINITY);
}

/* The categories that go right there; here the node's left is their right. */
static AgStatus
read_categories(File *file, const Columns *columns, size_t which, AgImportItem *item)
{
	double at = columns->segments[which], size = columns->sizes[which];
	double most = 0.0;
	int32_t left = item->left;

	if (!(at >= 0 && size >= 0 && at + size <= (double) columns->n_categories))
		return ag_import_malformed(file->importing, "a node's categories aren't there");
	for (double i = at; i < at + size; i++)
	{
		double code = columns->categories[(size_t) i];

		if (!(code >= 0 && code < (1 << 24)) || code != floor(code))
			return ag_import_malformed(file->importing, "a category is no small number");
		most = code > most ? code : most;
	}
	item->n_set = (uint32_t) (most / 64) + 1;
	AG_TRY(ag_import_new_set(file->importing, item->n_set, &item->set));
	for (double i = at; i < at + size; i++)
	{
		uint64_t code = (uint64_t) columns->categories[(size_t) i];

		file->importing->sets[item->set + code / 64] |= UINT64_C(1) << (code % 64);
	}
	item->flags =
		AG_NODE_CATEGORY | ((item->flags & AG_NODE_MISSING_LEFT) == 0 ? AG_NODE_MISSING_LEFT : 0);
	item->threshold = 0.0;
	item->left = item->right;
	item->right = left;
	return AG_OK;
}

static AgStatus
take_tree(File *file, const Columns *columns)
{
	AgImporting *importing = file->importing;
	size_t number = importing->n_trees, which = 0;

	if (columns->n_right != columns->n || columns->n_feature != columns->n ||
		columns->n_condition != columns->n || columns->n_default != columns->n ||
		(columns->n_type != 0 && columns->n_type != columns->n) ||
		columns->n_segments != columns->n_nodes || columns->n_sizes != columns->n_nodes)
		return ag_import_malformed(importing, "the arrays of a tree differ in length");
	AG_TRY(ag_import_begin_tree(importing, columns->n));
	for (size_t i = 0; i < columns->n; i++)
	{
		AgImportItem *item = &importing->items[i];
		double bound = (double) columns->n;

		if (!(columns->left[i] >= -1 && columns->left[i] < bound && columns->right[i] >= -1 &&
			  columns->right[i] < bound) ||
			!(columns->feature[i] >= 0 && columns->feature[i] < UINT32_MAX) ||
			!(fabs(columns->condition[i]) <= 3.5e38))
			return ag_import_malformed(importing, "a node makes no sense");
		item->is_leaf = columns->left[i] < 0;
		item->left = (int32_t) columns->left[i];
		item->right = (int32_t) columns->right[i];
		item->feature = item->is_leaf ? 0 : (uint32_t) columns->feature[i];
		item->leaf = (double) (float) columns->condition[i];
		item->threshold = item->is_leaf ? 0.0 : threshold_below((float) columns->condition[i]);
		item->flags = !item->is_leaf && columns->default_left[i] != 0.0 ? AG_NODE_MISSING_LEFT : 0;
		if (columns->n_type == 0 || columns->type[i] == 0.0 || item->is_leaf)
			continue;
		if (which == columns->n_nodes || columns->nodes[which] != (double) i)
			return ag_import_malformed(importing, "a node's categories aren't there");
		AG_TRY(read_categories(file, columns, which++, item));
	}
	if (number >= file->n_info)
		return ag_import_malformed(importing, "tree_info is shorter than the list of trees");
	return ag_import_end_tree(importing, (uint32_t) file->tree_info[number],
							  number < file->n_weights ? file->weight[number] : 1.0);
}

static AgStatus
read_tree(File *file)
{
	Columns c = {0};
	const struct
	{
		const char *name;
		double **values;
		size_t *n;
	} wanted[] = {
		{"left_children", &c.left, &c.n},
		{"right_children", &c.right, &c.n_right},
		{"split_indices", &c.feature, &c.n_feature},
		{"split_conditions", &c.condition, &c.n_condition},
		{"default_left", &c.default_left, &c.n_default},
		{"split_type", &c.type, &c.n_type},
		{"categories", &c.categories, &c.n_categories},
		{"categories_nodes", &c.nodes, &c.n_nodes},
		{"categories_segments", &c.segments, &c.n_segments},
		{"categories_sizes", &c.sizes, &c.n_sizes},
	};
	AgArena kept = file->importing->arena; /* the arrays are of use for this tree alone */
	AgArena own;
	const char *key;
	AgStatus status = AG_OK;

	ag_arena_init(&own, file->importing->ctx->mem);
	file->importing->arena = own;
	file->json.arena = &file->importing->arena;
	ag_json_begin_object(&file->json);
	while (status == AG_OK && ag_json_next_key(&file->json, &key))
	{
		size_t i = 0;

		while (i < sizeof wanted / sizeof *wanted && strcmp(wanted[i].name, key) != 0)
			i++;
		if (i < sizeof wanted / sizeof *wanted)
			status = read_numbers(file, wanted[i].values, wanted[i].n);
		else
			ag_json_skip(&file->json);
	}
	if (status == AG_OK && !file->json.failed)
		status = take_tree(file, &c);
	ag_arena_free(&file->importing->arena);
	file->importing->arena = kept;
	return status;
}

static AgStatus
read_trees(File *file)
{
	ag_json_begin_array(&file->json);
	while (ag_json_next_item(&file->json))
	{
		if (++file->n_trees > MOST_TREES)
			return ag_import_refuse(file->importing, "of so many trees");
		AG_TRY(ag_import_pause(file->importing)); /* the first time, too, when trees are skipped */
		if (file->wants_trees)
			AG_TRY(read_tree(file));
		else
			ag_json_skip(&file->json);
	}
	return AG_OK;
}

/* --- the objects around them --- */

/* How pandas' categories were coded: with it, codes in the trees mean more than numbers. */
static void
read_encodings(File *file)
{
	const char *key;

	ag_json_begin_object(&file->json);
	while (ag_json_next_key(&file->json, &key))
		if (strcmp(key, "enc") == 0 && ag_json_peek(&file->json) == '[')
		{
			ag_json_begin_array(&file->json);
			while (ag_json_next_item(&file->json))
			{
				file->has_encodings = true;
				ag_json_skip(&file->json);
			}
		}
		else
			ag_json_skip(&file->json);
}

static AgStatus
read_model(File *file)
{
	const char *key;

	ag_json_begin_object(&file->json);
	while (ag_json_next_key(&file->json, &key))
		if (strcmp(key, "tree_info") == 0 && !file->wants_trees)
			AG_TRY(read_tree_info(file));
		else if (strcmp(key, "trees") == 0)
			AG_TRY(read_trees(file));
		else if (strcmp(key, "cats") == 0 && ag_json_peek(&file->json) == '{')
			read_encodings(file);
		else
			ag_json_skip(&file->json);
	return AG_OK;
}

static AgStatus
read_booster(File *file, bool is_inner)
{
	const char *key;

	ag_json_begin_object(&file->json);
	while (ag_json_next_key(&file->json, &key))
		if (strcmp(key, "name") == 0 && !is_inner)
			file->booster = ag_json_read_string(&file->json);
		else if (strcmp(key, "model") == 0 && ag_json_peek(&file->json) == '{')
			AG_TRY(read_model(file));
		else if (strcmp(key, "gbtree") == 0 && !is_inner)
			AG_TRY(read_booster(file, true));
		else if (strcmp(key, "weight_drop") == 0 && !file->wants_trees)
			AG_TRY(read_numbers(file, &file->weight, &file->n_weights));
		else
			ag_json_skip(&file->json);
	return AG_OK;
}

static void
read_parameters(File *file)
{
	const char *key;

	ag_json_begin_object(&file->json);
	while (ag_json_next_key(&file->json, &key))
		if (strcmp(key, "base_score") == 0)
			file->base_score = ag_json_read_string(&file->json);
		else if (strcmp(key, "num_class") == 0)
			file->n_classes = read_quoted_integer(file, AG_IMPORT_MOST_OUTPUTS);
		else if (strcmp(key, "num_feature") == 0)
			file->n_features = read_quoted_integer(file, INT32_MAX);
		else if (strcmp(key, "num_target") == 0)
			file->n_targets = read_quoted_integer(file, INT32_MAX);
		else
			ag_json_skip(&file->json);
}

static AgStatus
read_learner(File *file)
{
	const char *key, *inner;

	ag_json_begin_object(&file->json);
	while (ag_json_next_key(&file->json, &key))
		if (strcmp(key, "feature_names") == 0 && !file->wants_trees)
			AG_TRY(read_names(file));
		else if (strcmp(key, "gradient_booster") == 0)
			AG_TRY(read_booster(file, false));
		else if (strcmp(key, "learner_model_param") == 0)
			read_parameters(file);
		else if (strcmp(key, "objective") == 0)
		{
			ag_json_begin_object(&file->json);
			while (ag_json_next_key(&file->json, &inner))
				if (strcmp(inner, "name") == 0)
					file->objective = ag_json_read_string(&file->json);
				else
					ag_json_skip(&file->json);
		}
		else
			ag_json_skip(&file->json);
	return AG_OK;
}

static AgStatus
read_file(File *file, const char *text, size_t n_bytes)
{
	AgImporting *importing = file->importing;
	const char *key;

	ag_json_text_init(&file->json, text, n_bytes, &importing->arena);
	file->n_trees = 0;
	ag_json_begin_object(&file->json);
	while (ag_json_next_key(&file->json, &key))
		if (strcmp(key, "learner") == 0)
			AG_TRY(read_learner(file));
		else
			ag_json_skip(&file->json);
	if (file->json.no_memory)
		return ag_mem_error(importing->ctx->mem, n_bytes, importing->ctx->error);
	if (!ag_json_text_done(&file->json))
		return ag_import_malformed(importing, "it is no JSON, or isn't as XGBoost writes it");
	return AG_OK;
}

/* --- what kind of model it is --- */

static const struct
{
	const char *objective;
	AgLink link;
} objectives[] = {
	{"reg:squarederror", AG_LINK_IDENTITY},
	{"reg:linear", AG_LINK_IDENTITY},
	{"reg:squaredlogerror", AG_LINK_IDENTITY},
	{"reg:absoluteerror", AG_LINK_IDENTITY},
	{"reg:pseudohubererror", AG_LINK_IDENTITY},
	{"reg:quantileerror", AG_LINK_IDENTITY},
	{"rank:pairwise", AG_LINK_IDENTITY},
	{"rank:ndcg", AG_LINK_IDENTITY},
	{"rank:map", AG_LINK_IDENTITY},
	{"binary:logitraw", AG_LINK_IDENTITY},
	{"binary:logistic", AG_LINK_SIGMOID},
	{"reg:logistic", AG_LINK_SIGMOID},
	{"multi:softprob", AG_LINK_SOFTMAX},
	{"multi:softmax", AG_LINK_SOFTMAX},
	{"count:poisson", AG_LINK_EXP},
	{"reg:gamma", AG_LINK_EXP},
	{"reg:tweedie", AG_LINK_EXP},
};

/* "5E-1", or from 3.1 on "[5E-1]" and with several classes or targets one number each: as an output, to be made a score. */
static AgStatus
read_base(File *file)
{
	AgImporting *importing = file->importing;
	const char *at = file->base_score;
	bool is_logit =
		importing->link == AG_LINK_SIGMOID || strcmp(file->objective, "binary:logitraw") == 0;
	uint32_t n = 0;
	char *end;

	AG_TRY(ag_import_array(importing, importing->n_outputs, sizeof(double), &importing->base));
	at += *at == '[';
	do
	{
		double value = strtod(at, &end);

		if (end == at || !isfinite(value) || n == importing->n_outputs)
			return ag_import_malformed(importing, "its base_score makes no sense");
		if ((is_logit && !(value > 0 && value < 1)) ||
			(importing->link == AG_LINK_EXP && !(value > 0)))
			return ag_import_malformed(importing,
									   "its base_score is no output that its objective has");
		importing->base[n++] = is_logit                         ? log(value / (1 - value))
							   : importing->link == AG_LINK_EXP ? log(value)
																: value;
		at = end + (*end == ',');
	} while (*end == ',');
	for (uint32_t k = n; k < importing->n_outputs; k++)
		importing->base[k] = importing->base[0]; /* the older form has one for all */
	return AG_OK;
}

static AgStatus
understand(File *file)
{
	AgImporting *importing = file->importing;
	size_t i = 0;

	if (file->booster == NULL || file->objective == NULL || file->base_score == NULL ||
		file->tree_info == NULL)
		return ag_import_malformed(importing,
								   "its booster, objective, parameters or trees are missing");
	if (strcmp(file->booster, "gbtree") != 0 && strcmp(file->booster, "dart") != 0)
		return ag_import_refuse(importing, "that isn't made of trees");
	while (i < sizeof objectives / sizeof *objectives &&
		   strcmp(objectives[i].objective, file->objective) != 0)
		i++;
	if (i == sizeof objectives / sizeof *objectives)
		return ag_import_refuse(importing, "with that objective");
	if (file->n_targets > 1)
		return ag_import_refuse(importing, "of several targets");
	if (file->has_encodings)
		return ag_import_refuse(importing,
								"with categories that XGBoost codes itself: train it on codes");
	importing->family = "XGB";
	importing->link = objectives[i].link;
	importing->n_outputs = importing->link == AG_LINK_SOFTMAX ? (uint32_t) file->n_classes : 1;
	if (importing->n_outputs < 1 ||
		(importing->link == AG_LINK_SOFTMAX && importing->n_outputs < 2))
		return ag_import_malformed(importing, "it has no classes");
	if (file->n_features < 1 || file->n_features > AG_MAX_COLUMNS)
		return ag_import_refuse(importing, "of no features, or of more than a table has columns");
	importing->n_features = (uint32_t) file->n_features;
	if (importing->names != NULL && file->n_names != importing->n_features)
		return ag_import_malformed(importing, "it has not one name a feature");
	return read_base(file);
}

AgStatus
ag_import_xgboost(AgImporting *importing, const char *text, size_t n_bytes)
{
	File file = {.importing = importing};

	AG_TRY(read_file(&file, text, n_bytes));
	AG_TRY(understand(&file));
	file.wants_trees = true;
	return read_file(&file, text, n_bytes);
}
