/*
 * import.c - ag_predictor_import, and what the formats have in common: a pipeline of plain columns and trees that have been looked at.
 *
 * Nothing is trusted: trees are put into our order by a walk that must reach every item once, and what comes out is checked as any stored
 * model's image is.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/data/dictionary.h"
#include "engine/import_private.h"
#include "engine/search/fit.h"

AgStatus
ag_import_malformed(const AgImporting *importing, const char *what)
{
	return ag_error_set(importing->ctx->error, AG_ERR_VALUE, "the model is no \"%s\": %s",
						importing->format, what);
}

AgStatus
ag_import_refuse(const AgImporting *importing, const char *what)
{
	return ag_error_set(importing->ctx->error, AG_ERR_UNSUPPORTED, "can't import a model %s", what);
}

static AgStatus
no_memory(const AgImporting *importing, size_t n_bytes)
{
	return ag_mem_error(importing->ctx->mem, n_bytes, importing->ctx->error);
}

AgStatus
ag_import_array(AgImporting *importing, size_t n, size_t size, void *array)
{
	void *made = ag_arena_alloc(&importing->arena, n > 0 ? n : 1, size);

	if (made == NULL)
		return no_memory(importing, n * size);
	memcpy(array, &made, sizeof made);
	return AG_OK;
}

/* --- trees --- */

/* Makes room for n more; *array is ag_mem's. */
static AgStatus
grow(AgImporting *importing, void *array, size_t n_now, size_t n_more, size_t size, size_t *max)
{
	void *old, *grown;
	size_t wanted = *max;

	memcpy(&old, array, sizeof old);
	if (n_now + n_more <= *max)
		return AG_OK;
	while (wanted < n_now + n_more)
		wanted = wanted < 1024 ? 1024 : wanted + wanted / 2;
	grown = ag_mem_realloc(importing->ctx->mem, old, wanted, size);
	if (grown == NULL)
		return no_memory(importing, wanted * size);
	memcpy(array, &grown, sizeof grown);
	*max = wanted;
	return AG_OK;
}

AgStatus
ag_import_pause(AgImporting *importing)
{
	ag_progress(importing->ctx, "reading trees", -1.0);
	return ag_check_cancel(importing->ctx);
}

AgStatus
ag_import_begin_tree(AgImporting *importing, size_t n_items)
{
	AG_TRY(ag_import_pause(importing));
	if (n_items == 0 || n_items > AG_IMPORT_MOST_NODES)
		return ag_import_malformed(importing, "a tree has no nodes, or too many");
	AG_TRY(grow(importing, &importing->items, 0, n_items, sizeof *importing->items,
				&importing->max_items));
	memset(importing->items, 0, n_items * sizeof *importing->items);
	importing->n_items = n_items;
	return AG_OK;
}

AgStatus
ag_import_new_set(AgImporting *importing, size_t n_words, uint32_t *set)
{
	if (n_words > UINT32_MAX - importing->n_set_words)
		return ag_import_refuse(importing, "with so many sets of categories");
	AG_TRY(grow(importing, &importing->sets, importing->n_set_words, n_words,
				sizeof *importing->sets, &importing->max_set_words));
	memset(importing->sets + importing->n_set_words, 0, n_words * sizeof *importing->sets);
	*set = (uint32_t) importing->n_set_words;
	importing->n_set_words += n_words;
	return AG_OK;
}

/* A walk level by level. */
typedef struct Walk
{
	int32_t *queue;  /* inner items in the order of their new numbers */
	uint32_t *depth; /* of each of them, from 1 on */
	bool *is_seen;   /* by item */
	uint32_t n_nodes, n_leaves, most_depth;
} Walk;

/* The new reference to an item: a node's number, or ~leaf. */
static AgStatus
reach(AgImporting *importing, Walk *walk, int32_t item, uint32_t depth, double scale,
	  int32_t *reference)
{
	if (item < 0 || (size_t) item >= importing->n_items || walk->is_seen[item])
		return ag_import_malformed(importing, "the nodes of a tree don't form one");
	walk->is_seen[item] = true;
	if (!importing->items[item].is_leaf)
	{
		walk->depth[walk->n_nodes] = depth + 1;
		if (depth + 1 > walk->most_depth)
			walk->most_depth = depth + 1;
		*reference = (int32_t) walk->n_nodes;
		walk->queue[walk->n_nodes++] = item;
		return AG_OK;
	}
	if (!isfinite(importing->items[item].leaf * scale))
		return ag_import_malformed(importing, "a leaf's value isn't finite");
	importing->leaves[importing->n_leaves + walk->n_leaves] = importing->items[item].leaf * scale;
	*reference = ~(int32_t) walk->n_leaves++;
	return AG_OK;
}

static AgStatus
walk_tree(AgImporting *importing, Walk *walk, double scale)
{
	AgTreeNode *nodes = importing->nodes + importing->n_nodes;
	int32_t root;

	AG_TRY(reach(importing, walk, 0, 0, scale, &root));
	for (uint32_t i = 0; i < walk->n_nodes; i++)
	{
		const AgImportItem *item = &importing->items[walk->queue[i]];

		if (item->feature >= importing->n_features)
			return ag_import_malformed(importing, "a node looks at a feature that there isn't");
		nodes[i] = (AgTreeNode){.threshold = item->threshold,
								.feature = item->feature,
								.flags = item->flags,
								.set = item->set,
								.n_set = item->n_set};
		AG_TRY(reach(importing, walk, item->left, walk->depth[i], scale, &nodes[i].left));
		AG_TRY(reach(importing, walk, item->right, walk->depth[i], scale, &nodes[i].right));
	}
	return AG_OK;
}

AgStatus
ag_import_end_tree(AgImporting *importing, uint32_t output, double scale)
{
	AgMem *mem = importing->ctx->mem;
	size_t n = importing->n_items;
	Walk walk = {.queue = ag_mem_alloc(mem, n, sizeof(int32_t)),
				 .depth = ag_mem_alloc(mem, n, sizeof(uint32_t)),
				 .is_seen = ag_mem_zalloc(mem, n, 1)};
	AgStatus status;

	if (walk.queue == NULL || walk.depth == NULL || walk.is_seen == NULL)
		AG_GO(no_memory(importing, n * 9));
	if (output >= importing->n_outputs)
		AG_GO(ag_import_malformed(importing, "a tree is of a class that there isn't"));
	AG_GO(grow(importing, &importing->trees, importing->n_trees, 1, sizeof *importing->trees,
			   &importing->max_trees));
	AG_GO(grow(importing, &importing->nodes, importing->n_nodes, n, sizeof *importing->nodes,
			   &importing->max_nodes));
	AG_GO(grow(importing, &importing->leaves, importing->n_leaves, n, sizeof *importing->leaves,
			   &importing->max_leaves));
	AG_GO(walk_tree(importing, &walk, scale));
	importing->trees[importing->n_trees++] = (AgTree){.first_node = importing->n_nodes,
													  .first_leaf = importing->n_leaves,
													  .n_nodes = walk.n_nodes,
													  .n_leaves = walk.n_leaves,
													  .output = output,
													  .depth = walk.most_depth};
	importing->n_nodes += walk.n_nodes;
	importing->n_leaves += walk.n_leaves;

done:
	ag_mem_free(mem, walk.queue);
	ag_mem_free(mem, walk.depth);
	ag_mem_free(mem, walk.is_seen);
	return status;
}

/* The arrays are lent. */
static AgStatus
write_trees(AgImporting *importing, AgWriter *out)
{
	AgTrees *trees;
	AgStatus status;

	if (importing->n_trees == 0)
		return ag_import_refuse(importing, "without trees");
	AG_TRY(ag_trees_create(importing->ctx, &trees));
	trees->n_features = importing->n_features;
	trees->n_outputs = importing->n_outputs;
	trees->n_trees = (uint32_t) importing->n_trees;
	trees->link = importing->link;
	trees->base = importing->base;
	trees->trees = importing->trees;
	trees->nodes = importing->nodes;
	trees->leaves = importing->leaves;
	trees->sets = importing->sets;
	trees->n_nodes = importing->n_nodes;
	trees->n_leaves = importing->n_leaves;
	trees->n_set_words = importing->n_set_words;
	status = ag_trees_check(importing->ctx, trees, AG_ERR_VALUE);
	if (status == AG_OK)
		status = ag_trees_write(importing->ctx, trees, out);
	ag_trees_free(trees);
	return status;
}

/* --- columns --- */

static const char *
feature_name(AgImporting *importing, uint32_t f)
{
	char text[16];

	if (importing->names != NULL)
		return importing->names[f];
	snprintf(text, sizeof text, "f%u", f);
	return ag_arena_strndup(&importing->arena, text, strlen(text));
}

static AgStatus
check_names(AgImporting *importing, const AgPipeline *pipeline, const char *label)
{
	for (int i = 0; i < pipeline->n_inputs; i++)
	{
		const char *name = pipeline->inputs[i].name;

		if (name[0] == '\0' || strlen(name) > AG_NAME_MAX)
			return ag_import_refuse(importing, "with a feature whose name no column can have");
		if (strcmp(name, label) == 0)
			return ag_error_set(importing->ctx->error, AG_ERR_OPTION,
								"the label is called \"%s\", like a feature", label);
		for (int j = 0; j < i; j++)
			if (strcmp(name, pipeline->inputs[j].name) == 0)
				return ag_import_refuse(importing, "with two features of one name");
	}
	return AG_OK;
}

/* Each feature is its column. The one row to compare with in explanations has nothing but missing values. */
static AgStatus
make_columns(AgImporting *importing, AgPipeline *pipeline)
{
	int n = (int) importing->n_features;
	double *row = NULL;
	AgHistogram *histograms = NULL;
	int64_t zero = 0;

	AG_TRY(ag_import_array(importing, (size_t) n, sizeof(AgInput), &pipeline->inputs));
	AG_TRY(ag_import_array(importing, (size_t) n, sizeof(AgFeature), &pipeline->features));
	AG_TRY(ag_import_array(importing, (size_t) n, sizeof(double), &row));
	AG_TRY(ag_import_array(importing, (size_t) n, sizeof(AgHistogram), &histograms));
	pipeline->n_inputs = pipeline->n_features = n;
	for (int i = 0; i < n; i++)
	{
		AgInput *input = &pipeline->inputs[i];
		AgDictionary *levels = importing->levels != NULL ? importing->levels[i] : NULL;
		char *name = (char *) feature_name(importing, (uint32_t) i);

		if (name == NULL)
			return no_memory(importing, 16);
		*input = (AgInput){.name = name,
						   .sql_type = (char *) (levels != NULL ? "text" : "double precision"),
						   .type = levels != NULL ? AG_TYPE_TEXT : AG_TYPE_FLOAT64,
						   .is_used = true,
						   .n_missing = zero,
						   .min = NAN,
						   .max = NAN,
						   .mean = NAN,
						   .levels = levels,
						   .n_distinct = levels != NULL ? levels->n_levels : 0};
		pipeline->features[i] =
			(AgFeature){.kind = levels != NULL ? AG_FEATURE_CATEGORY : AG_FEATURE_NUMBER,
						.input = i,
						.name = name,
						.n_levels = levels != NULL ? levels->n_levels : 0};
		row[i] = NAN;
	}
	pipeline->profile =
		(AgProfile){.n_table_rows = 1, .n_rows = 1, .rows = row, .histograms = histograms};
	return AG_OK;
}

static AgStatus
make_classes(AgImporting *importing, const AgImport *import, AgPipeline *pipeline)
{
	bool is_pair = importing->link == AG_LINK_SIGMOID;
	int n = is_pair ? 2 : importing->link == AG_LINK_SOFTMAX ? (int) importing->n_outputs : 0;

	pipeline->problem = n == 0    ? AG_PROBLEM_REGRESSION
						: is_pair ? AG_PROBLEM_BINARY
								  : AG_PROBLEM_MULTICLASS;
	pipeline->label_type = n == 0                  ? AG_TYPE_FLOAT64
						   : import->n_classes > 0 ? AG_TYPE_TEXT
												   : AG_TYPE_INT32;
	if (import->n_classes > 0 && import->n_classes != n)
		return ag_error_set(importing->ctx->error, AG_ERR_OPTION,
							n == 0 ? "the model predicts a number, and has no classes to be named"
								   : "the model has %d classes, and %d are named",
							n, import->n_classes);
	AG_TRY(ag_import_array(importing, (size_t) n, sizeof(AgClass), &pipeline->classes));
	pipeline->n_classes = n;
	for (int k = 0; k < n; k++)
	{
		char number[16];
		const char *name = import->n_classes > 0 ? import->classes[k] : number;

		snprintf(number, sizeof number, "%d", k);
		for (int j = 0; j < k; j++)
			if (strcmp(pipeline->classes[j].name, name) == 0)
				return ag_error_set(importing->ctx->error, AG_ERR_OPTION,
									"two classes are called \"%s\"", name);
		pipeline->classes[k].n_bytes = (uint32_t) strlen(name);
		pipeline->classes[k].name = ag_arena_strndup(&importing->arena, name, strlen(name));
		pipeline->classes[k].number = import->n_classes > 0 ? NAN : k;
		if (pipeline->classes[k].name == NULL)
			return no_memory(importing, strlen(name));
	}
	return AG_OK;
}

/* --- the predictor --- */

static AgStatus
put_features(const AgPipeline *pipeline, const AgFitSink *sink)
{
	for (int i = 0; i < pipeline->n_inputs; i++)
	{
		const AgInput *input = &pipeline->inputs[i];
		AgFittedFeature feature = {.ordinal = i + 1,
								   .column = input->name,
								   .sql_type = input->sql_type,
								   .kind = input->levels != NULL ? "category" : "number",
								   .is_used = true,
								   .became = input->levels != NULL ? "category" : "number",
								   .n_distinct = -1,
								   .min = NAN,
								   .max = NAN,
								   .mean = NAN};

		AG_TRY(sink->feature(sink->host, &feature));
	}
	return AG_OK;
}

static AgStatus
put_predictor(const AgImporting *importing, const AgPipeline *pipeline, const AgFitSink *sink,
			  const AgWriter *images)
{
	AgFittedPredictor predictor = {.problem = pipeline->problem,
								   .eval_metric = ag_metric_default(pipeline->problem),
								   .n_classes = pipeline->n_classes,
								   .classes = pipeline->classes,
								   .best_model = importing->family,
								   .score_val = NAN,
								   .plan_json = "{\"imported\": true}"};
	AgFittedMember member = {.ordinal = 1,
							 .name = importing->family,
							 .family = importing->family,
							 .stack_level = 1,
							 .fit_order = 1,
							 .params_json = "{}",
							 .score_val = NAN,
							 .device = "imported",
							 .can_infer = true};

	AG_TRY(sink->predictor(sink->host, &predictor));
	AG_TRY(put_features(pipeline, sink));
	AG_TRY(sink->member(sink->host, &member));
	for (int i = 0; i < 2; i++)
		AG_TRY(sink->image(sink->host, i, images[i].data, images[i].size));
	return AG_OK;
}

static AgStatus
finish(AgImporting *importing, const AgImport *import, const AgFitSink *sink)
{
	AgPipeline pipeline = {
		.mem = importing->ctx->mem, .label_name = (char *) import->label, .time_zone = (char *) ""};
	AgWriter images[2];
	AgStatus status;

	ag_writer_init(&images[0], importing->ctx->mem);
	ag_writer_init(&images[1], importing->ctx->mem);
	AG_GO(make_columns(importing, &pipeline));
	AG_GO(check_names(importing, &pipeline, import->label));
	AG_GO(make_classes(importing, import, &pipeline));
	AG_GO(write_trees(importing, &images[1]));
	AG_GO(ag_pipeline_write(importing->ctx, &pipeline, &images[0]));
	AG_GO(put_predictor(importing, &pipeline, sink, images));

done:
	ag_writer_free(&images[0]);
	ag_writer_free(&images[1]);
	return status;
}

static void
give_back(AgImporting *importing)
{
	AgMem *mem = importing->ctx->mem;

	for (uint32_t f = 0; importing->levels != NULL && f < importing->n_features; f++)
		if (importing->levels[f] != NULL)
			ag_dictionary_free(importing->levels[f], mem);
	ag_mem_free(mem, importing->trees);
	ag_mem_free(mem, importing->nodes);
	ag_mem_free(mem, importing->leaves);
	ag_mem_free(mem, importing->sets);
	ag_mem_free(mem, importing->items);
	ag_arena_free(&importing->arena);
}

AgStatus
ag_predictor_import(const AgContext *ctx, const AgImport *import, const AgFitSink *sink)
{
	AgImporting importing = {.ctx = ctx, .format = import->format};
	AgStatus status;

	ag_arena_init(&importing.arena, ctx->mem);
	if (strcmp(import->format, "xgboost_json") == 0)
		AG_GO(ag_import_xgboost(&importing, import->bytes, import->n_bytes));
	else if (strcmp(import->format, "lightgbm_text") == 0)
		AG_GO(ag_import_lightgbm(&importing, import->bytes, import->n_bytes));
	else
	{
		status = ag_error_set(ctx->error, AG_ERR_OPTION, "there is no format \"%s\" to import",
							  import->format);
		ag_error_hint(ctx->error, "The formats are \"xgboost_json\" and \"lightgbm_text\".");
		goto done;
	}
	if (importing.n_features == 0 || importing.n_features > AG_MAX_COLUMNS)
		AG_GO(ag_import_refuse(&importing, "of no features, or of more than a table has columns"));
	AG_GO(finish(&importing, import, sink));

done:
	give_back(&importing);
	return status;
}
