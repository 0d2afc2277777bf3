/*
 * import_lightgbm.c - trees out of LightGBM's text (what save_model and model_to_string write).
 *
 * Lines "key=value": a head, then a section a tree that begins with "Tree=", then "end of trees". Its predicate x <= threshold in double precision is ours.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/json_read.h"
#include "engine/data/dictionary.h"
#include "engine/import_private.h"

#define NUMBER_BYTES 64

/* decision_type: bit 0 a category, bit 1 missing goes left, bits 2 and 3 what is missing */
#define DECISION_CATEGORY 1
#define DECISION_MISSING_LEFT 2

enum
{
	MISSING_NONE = 0, /* NaN is 0 */
	MISSING_ZERO = 1, /* NaN is 0, and 0 is missing */
	MISSING_NAN = 2
};

/* What follows '=' in a line. */
typedef struct Value
{
	const char *at, *end;
} Value;

typedef struct Section
{
	Value num_leaves, num_cat, split_feature, threshold, decision_type, left_child, right_child,
		leaf_value, cat_boundaries, cat_threshold, is_linear;
} Section;

typedef struct File
{
	AgImporting *importing;
	const char *at, *end;
	Value names, infos, objective, levels;
	double n_classes, n_per_iteration, last_feature;
	double scale; /* of leaves */
	size_t n_trees;
	bool is_averaged;
} File;

/* --- pieces --- */

/* The next line without its end; false: there is none. */
static bool
next_line(File *file, Value *line)
{
	const char *end;

	if (file->at >= file->end)
		return false;
	end = memchr(file->at, '\n', (size_t) (file->end - file->at));
	line->at = file->at;
	line->end = end != NULL ? end : file->end;
	file->at = end != NULL ? end + 1 : file->end;
	if (line->end > line->at && line->end[-1] == '\r')
		line->end--;
	return true;
}

static bool
is(const Value *line, const char *text)
{
	return (size_t) (line->end - line->at) == strlen(text) &&
		   memcmp(line->at, text, strlen(text)) == 0;
}

/* Does the line give that key? Then *value is what. */
static bool
gives(const Value *line, const char *key, Value *value)
{
	size_t n = strlen(key);

	if ((size_t) (line->end - line->at) <= n || memcmp(line->at, key, n) != 0 || line->at[n] != '=')
		return false;
	value->at = line->at + n + 1;
	value->end = line->end;
	return true;
}

/* The next word of a value, with what follows it left in the value; false: there is none. */
static bool
next_word(Value *value, Value *word)
{
	while (value->at < value->end && *value->at == ' ')
		value->at++;
	if (value->at == value->end)
		return false;
	word->at = value->at;
	while (value->at < value->end && *value->at != ' ')
		value->at++;
	word->end = value->at;
	return true;
}

/* The next number; false: there is none, or no number. "inf" and "nan" are numbers to strtod. */
static bool
next_number(Value *value, double *number)
{
	char text[NUMBER_BYTES];
	Value word;
	char *end;

	if (!next_word(value, &word) || word.end - word.at >= NUMBER_BYTES)
		return false;
	memcpy(text, word.at, (size_t) (word.end - word.at));
	text[word.end - word.at] = '\0';
	*number = strtod(text, &end);
	return *end == '\0' && end != text;
}

static bool
next_integer(Value *value, double low, double high, double *number)
{
	return next_number(value, number) && *number == floor(*number) && *number >= low &&
		   *number <= high;
}

/* A line's one number, within bounds. */
static AgStatus
one_integer(const File *file, Value value, double low, double high, double *number)
{
	if (!next_integer(&value, low, high, number))
		return ag_import_malformed(file->importing, "a line of its head makes no sense");
	return AG_OK;
}

/* --- the head --- */

static const struct
{
	const char *name;
	AgLink link;
} objectives[] = {
	{"regression", AG_LINK_IDENTITY}, {"regression_l1", AG_LINK_IDENTITY},
	{"huber", AG_LINK_IDENTITY},      {"fair", AG_LINK_IDENTITY},
	{"quantile", AG_LINK_IDENTITY},   {"mape", AG_LINK_IDENTITY},
	{"lambdarank", AG_LINK_IDENTITY}, {"rank_xendcg", AG_LINK_IDENTITY},
	{"binary", AG_LINK_SIGMOID},      {"cross_entropy", AG_LINK_SIGMOID},
	{"multiclass", AG_LINK_SOFTMAX},  {"poisson", AG_LINK_EXP},
	{"gamma", AG_LINK_EXP},           {"tweedie", AG_LINK_EXP},
};

/* "binary sigmoid:1", "regression sqrt", "multiclass num_class:3". */
static AgStatus
read_objective(File *file)
{
	AgImporting *importing = file->importing;
	Value value = file->objective, word;
	size_t i = 0;

	if (!next_word(&value, &word))
		return ag_import_malformed(importing, "it has no objective");
	while (i < sizeof objectives / sizeof *objectives && !is(&word, objectives[i].name))
		i++;
	if (i == sizeof objectives / sizeof *objectives)
		return ag_import_refuse(importing, "with that objective");
	importing->link = objectives[i].link;
	file->scale = 1.0;
	while (next_word(&value, &word))
	{
		Value number = {word.at + strlen("sigmoid:"), word.end};

		if (is(&word, "sqrt"))
			return ag_import_refuse(importing, "that was fitted on roots of its labels");
		if (importing->link != AG_LINK_SIGMOID || word.end - word.at <= (long) strlen("sigmoid:") ||
			memcmp(word.at, "sigmoid:", strlen("sigmoid:")) != 0)
			continue;
		if (!next_number(&number, &file->scale) || !(file->scale > 0) || !isfinite(file->scale))
			return ag_import_malformed(importing, "its sigmoid makes no sense");
	}
	return AG_OK;
}

static AgStatus
read_names(File *file)
{
	AgImporting *importing = file->importing;
	Value value = file->names, word;

	AG_TRY(ag_import_array(importing, importing->n_features, sizeof(char *), &importing->names));
	for (uint32_t f = 0; f < importing->n_features; f++)
	{
		if (!next_word(&value, &word))
			return ag_import_malformed(importing, "it has not one name a feature");
		importing->names[f] =
			ag_arena_strndup(&importing->arena, word.at, (size_t) (word.end - word.at));
		if (importing->names[f] == NULL)
			return ag_mem_error(importing->ctx->mem, (size_t) (word.end - word.at),
								importing->ctx->error);
	}
	return next_word(&value, &word)
			   ? ag_import_malformed(importing, "it has not one name a feature")
			   : AG_OK;
}

/* A list of levels of pandas: texts, or numbers and words as they are written. */
static AgStatus
read_level_list(File *file, AgJsonText *json, AgDictionary *dictionary)
{
	AgMem *mem = file->importing->ctx->mem;
	uint32_t code, n = 0;

	ag_json_begin_array(json);
	while (ag_json_next_item(json))
	{
		const char *text;
		size_t n_bytes;

		if (ag_json_peek(json) == '"')
		{
			text = ag_json_read_string(json);
			n_bytes = strlen(text);
		}
		else
		{
			text = json->at;
			ag_json_skip(json);
			n_bytes = (size_t) (json->at - text);
		}
		if (json->failed || n_bytes > AG_TEXT_MAX)
			break;
		if (!ag_dictionary_add(dictionary, mem, text, (uint32_t) n_bytes, &code))
			return ag_mem_error(mem, n_bytes, file->importing->ctx->error);
		if (code != n++)
			return ag_import_malformed(file->importing, "a category is there twice");
	}
	return AG_OK;
}

/* The line that the Python package writes for categories of pandas: a list a column of categories, in the order of columns, which are those whose values are
 * listed in feature_infos ("0:1:2") and not given by bounds ("[0:1]"). */
static AgStatus
read_levels(File *file)
{
	AgImporting *importing = file->importing;
	Value infos = file->infos, word;
	AgJsonText json;

	if (file->levels.at == NULL || is(&file->levels, "null") || is(&file->levels, "[]"))
		return AG_OK;
	AG_TRY(ag_import_array(importing, importing->n_features, sizeof(AgDictionary *),
						   &importing->levels));
	ag_json_text_init(&json, file->levels.at, (size_t) (file->levels.end - file->levels.at),
					  &importing->arena);
	ag_json_begin_array(&json);
	for (uint32_t f = 0; f < importing->n_features && next_word(&infos, &word); f++)
	{
		AgDictionary *dictionary;

		if (*word.at == '[' || is(&word, "none"))
			continue;
		if (!ag_json_next_item(&json))
			return ag_import_malformed(importing,
									   "it has categories that pandas_categorical lacks");
		AG_TRY(ag_import_array(importing, 1, sizeof *dictionary, &dictionary));
		if (!ag_dictionary_init(dictionary, importing->ctx->mem))
			return ag_mem_error(importing->ctx->mem, sizeof *dictionary, importing->ctx->error);
		importing->levels[f] = dictionary;
		AG_TRY(read_level_list(file, &json, dictionary));
		if (dictionary->n_levels == 0)
			return ag_import_malformed(importing, "a list of categories is empty");
	}
	if (ag_json_next_item(&json) || !ag_json_text_done(&json))
		return ag_import_malformed(importing,
								   "pandas_categorical has lists of no feature, or makes no sense");
	return AG_OK;
}

static AgStatus
read_head(File *file)
{
	AgImporting *importing = file->importing;
	Value line, value;
	bool is_first = true;

	file->n_classes = file->n_per_iteration = 1;
	file->last_feature = -1;
	while (next_line(file, &line))
	{
		if (is_first && !is(&line, "tree"))
			break;
		is_first = false;
		if (gives(&line, "num_class", &value))
			AG_TRY(one_integer(file, value, 1, AG_IMPORT_MOST_OUTPUTS, &file->n_classes));
		else if (gives(&line, "num_tree_per_iteration", &value))
			AG_TRY(one_integer(file, value, 1, AG_IMPORT_MOST_OUTPUTS, &file->n_per_iteration));
		else if (gives(&line, "max_feature_idx", &value))
			AG_TRY(one_integer(file, value, 0, INT32_MAX, &file->last_feature));
		else if (gives(&line, "objective", &value))
			file->objective = value;
		else if (gives(&line, "feature_names", &value))
			file->names = value;
		else if (gives(&line, "feature_infos", &value))
			file->infos = value;
		else if (is(&line, "average_output"))
			file->is_averaged = true;
		else if (gives(&line, "Tree", &value))
		{
			file->at = line.at; /* the first tree's section begins with it */
			break;
		}
	}
	if (is_first || file->last_feature < 0)
		return ag_import_malformed(importing, "its head is missing");
	if (file->last_feature >= AG_MAX_COLUMNS)
		return ag_import_refuse(importing, "of more features than a table has columns");
	importing->n_features = (uint32_t) file->last_feature + 1;
	AG_TRY(read_objective(file));
	importing->n_outputs = importing->link == AG_LINK_SOFTMAX ? (uint32_t) file->n_classes : 1;
	if (file->n_per_iteration != importing->n_outputs ||
		(importing->link == AG_LINK_SOFTMAX && importing->n_outputs < 2))
		return ag_import_malformed(importing, "its classes and trees don't go together");
	if (file->is_averaged && importing->link != AG_LINK_IDENTITY)
		return ag_import_refuse(importing, "that is a forest of classes' shares");
	importing->family = "GBM";
	return ag_import_array(importing, importing->n_outputs, sizeof(double), &importing->base);
}

/* --- trees --- */

static AgStatus
read_section(File *file, Section *section)
{
	Value line;

	memset(section, 0, sizeof *section);
	while (next_line(file, &line) && line.at < line.end)
	{
		const struct
		{
			const char *key;
			Value *value;
		} wanted[] = {
			{"num_leaves", &section->num_leaves},
			{"num_cat", &section->num_cat},
			{"split_feature", &section->split_feature},
			{"threshold", &section->threshold},
			{"decision_type", &section->decision_type},
			{"left_child", &section->left_child},
			{"right_child", &section->right_child},
			{"leaf_value", &section->leaf_value},
			{"cat_boundaries", &section->cat_boundaries},
			{"cat_threshold", &section->cat_threshold},
			{"is_linear", &section->is_linear},
		};

		for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
			if (gives(&line, wanted[i].key, wanted[i].value))
				break;
	}
	return AG_OK;
}

/* The bounds of sets of 32-bit words, and the words, as numbers. */
typedef struct Sets
{
	uint32_t *bounds, *words;
	uint32_t n_sets, n_words;
} Sets;

static AgStatus
read_sets(File *file, Section *section, uint32_t n_sets, AgArena *arena, Sets *sets)
{
	double number, before = 0.0;

	*sets = (Sets){.n_sets = n_sets};
	if (n_sets == 0)
		return AG_OK;
	sets->bounds = ag_arena_alloc(arena, n_sets + 1, sizeof(uint32_t));
	if (sets->bounds == NULL)
		return ag_mem_error(file->importing->ctx->mem, n_sets * sizeof(uint32_t),
							file->importing->ctx->error);
	for (uint32_t i = 0; i <= n_sets; i++)
	{
		if (!next_integer(&section->cat_boundaries, before,
						  (double) (section->cat_threshold.end - section->cat_threshold.at),
						  &number))
			return ag_import_malformed(file->importing,
									   "a tree's sets of categories make no sense");
		sets->bounds[i] = (uint32_t) number;
		before = number;
	}
	sets->n_words = sets->bounds[n_sets];
	sets->words = ag_arena_alloc(arena, sets->n_words + 1, sizeof(uint32_t));
	if (sets->words == NULL)
		return ag_mem_error(file->importing->ctx->mem, sets->n_words * sizeof(uint32_t),
							file->importing->ctx->error);
	for (uint32_t i = 0; i < sets->n_words; i++)
	{
		if (!next_integer(&section->cat_threshold, 0, UINT32_MAX, &number))
			return ag_import_malformed(file->importing,
									   "a tree's sets of categories make no sense");
		sets->words[i] = (uint32_t) number;
	}
	return AG_OK;
}

/* Missing values, negative codes and those beyond the set go right there; here a missing one and an unseen one go where their flags are: right. */
static AgStatus
take_set(File *file, const Sets *sets, double which, AgImportItem *item)
{
	uint32_t first, n;

	if (!(which >= 0 && which < sets->n_sets) || which != floor(which))
		return ag_import_malformed(file->importing, "a node's set of categories isn't there");
	first = sets->bounds[(uint32_t) which];
	n = sets->bounds[(uint32_t) which + 1] - first;
	item->n_set = n / 2 + 1;
	AG_TRY(ag_import_new_set(file->importing, item->n_set, &item->set));
	for (uint32_t i = 0; i < n; i++)
		file->importing->sets[item->set + i / 2] |= (uint64_t) sets->words[first + i]
													<< (i % 2 * 32);
	item->flags = AG_NODE_CATEGORY;
	item->threshold = 0.0;
	return AG_OK;
}

/* Where a missing number goes. A zero that is missing must go where its value would send it, for here it is no missing one. */
static AgStatus
take_missing(File *file, int decision, AgImportItem *item)
{
	bool zero_left = 0.0 <= item->threshold;
	bool missing_left = (decision & DECISION_MISSING_LEFT) != 0;

	switch (decision >> 2 & 3)
	{
		case MISSING_NONE:
			missing_left = zero_left;
			break;
		case MISSING_ZERO:
			if (missing_left != zero_left)
				return ag_import_refuse(file->importing, "that takes zeros for missing values");
			break;
		default:
			break;
	}
	item->flags = missing_left ? AG_NODE_MISSING_LEFT : 0;
	return AG_OK;
}

/* Items: nodes, then leaves. */
static AgStatus
read_node(File *file, Section *section, const Sets *sets, uint32_t n_nodes, AgImportItem *item)
{
	double left, right, feature, decision;

	if (!next_integer(&section->split_feature, 0, file->last_feature, &feature) ||
		!next_number(&section->threshold, &item->threshold) || isnan(item->threshold) ||
		!next_integer(&section->decision_type, 0, 15, &decision) ||
		!next_integer(&section->left_child, -(double) n_nodes - 1, n_nodes - 1, &left) ||
		!next_integer(&section->right_child, -(double) n_nodes - 1, n_nodes - 1, &right))
		return ag_import_malformed(file->importing, "a node of a tree makes no sense");
	item->feature = (uint32_t) feature;
	item->left = left >= 0 ? (int32_t) left : (int32_t) n_nodes + ~(int32_t) left;
	item->right = right >= 0 ? (int32_t) right : (int32_t) n_nodes + ~(int32_t) right;
	if (((int) decision & DECISION_CATEGORY) != 0)
		return take_set(file, sets, item->threshold, item);
	if (file->importing->levels != NULL && file->importing->levels[item->feature] != NULL)
		return ag_import_malformed(file->importing, "a category is compared like a number");
	return take_missing(file, (int) decision, item);
}

static AgStatus
read_tree(File *file, Section *section)
{
	AgImporting *importing = file->importing;
	double n_leaves, n_sets, linear;
	AgArena arena;
	Sets sets;
	AgStatus status;

	if (!next_integer(&section->num_leaves, 1, AG_IMPORT_MOST_NODES / 2, &n_leaves))
		return ag_import_malformed(importing, "a tree has no leaves");
	if (section->is_linear.at != NULL &&
		(!next_integer(&section->is_linear, 0, 1, &linear) || linear != 0))
		return ag_import_refuse(importing, "with linear models in its leaves");
	if (section->num_cat.at == NULL || !next_integer(&section->num_cat, 0, n_leaves, &n_sets))
		n_sets = 0;
	/* what is to be read takes bytes: no more items than those */
	if (n_leaves > (double) (section->leaf_value.end - section->leaf_value.at))
		return ag_import_malformed(importing, "a tree has fewer leaves than it says");
	ag_arena_init(&arena, importing->ctx->mem);
	AG_GO(ag_import_begin_tree(importing, 2 * (size_t) n_leaves - 1));
	AG_GO(read_sets(file, section, (uint32_t) n_sets, &arena, &sets));
	for (uint32_t i = 0; i + 1 < (uint32_t) n_leaves; i++)
		AG_GO(read_node(file, section, &sets, (uint32_t) n_leaves - 1, &importing->items[i]));
	for (uint32_t i = 0; i < (uint32_t) n_leaves; i++)
	{
		AgImportItem *item = &importing->items[(uint32_t) n_leaves - 1 + i];

		item->is_leaf = true;
		if (!next_number(&section->leaf_value, &item->leaf))
			AG_GO(ag_import_malformed(importing, "a leaf's value is missing"));
	}
	AG_GO(ag_import_end_tree(importing, (uint32_t) (importing->n_trees % importing->n_outputs),
							 file->scale));

done:
	ag_arena_free(&arena);
	return status;
}

static AgStatus
read_trees(File *file)
{
	Value line, value;
	Section section;

	while (next_line(file, &line))
	{
		if (is(&line, "end of trees"))
			return AG_OK;
		if (!gives(&line, "Tree", &value))
			continue;
		AG_TRY(read_section(file, &section));
		AG_TRY(read_tree(file, &section));
	}
	return ag_import_malformed(file->importing, "its end is missing");
}

/* Of a forest the score is the mean of trees. */
static void
average(AgImporting *importing)
{
	for (size_t i = 0; i < importing->n_leaves; i++)
		importing->leaves[i] /= (double) importing->n_trees;
}

/* The levels' line is the last one of all, and trees need to know which features are categories. */
static void
find_levels(File *file)
{
	File rest = *file;
	Value line;

	while (next_line(&rest, &line))
		if (line.end - line.at > (long) strlen("pandas_categorical:") &&
			memcmp(line.at, "pandas_categorical:", strlen("pandas_categorical:")) == 0)
			file->levels = (Value){line.at + strlen("pandas_categorical:"), line.end};
}

AgStatus
ag_import_lightgbm(AgImporting *importing, const char *text, size_t n_bytes)
{
	File file = {.importing = importing, .at = text, .end = text + n_bytes};

	AG_TRY(read_head(&file));
	AG_TRY(read_names(&file));
	find_levels(&file);
	AG_TRY(read_levels(&file));
	AG_TRY(read_trees(&file));
	if (file.is_averaged)
		average(importing);
	return AG_OK;
}
