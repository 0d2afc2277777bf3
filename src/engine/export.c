/*
 * export.c - ag_predictor_export, and what the formats have in common.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/export_private.h"
#include "engine/predictor_private.h"
#include "engine/search/json.h"

static const struct
{
	const char *name;
	AgStatus (*write)(AgExport *export);
} formats[] = {
	{"json", ag_export_json},
	{"sql", ag_export_sql},
	{"xgboost_json", ag_export_xgboost},
	{"lightgbm_text", ag_export_lightgbm},
	{"onnx", ag_export_onnx},
};

AgStatus
ag_export_refuse(const AgExport *export, const char *what)
{
	return ag_error_set(export->ctx->error, AG_ERR_UNSUPPORTED, "format \"%s\" %s", export->format,
						what);
}

bool
ag_export_is_plain(const AgExport *export, uint32_t feature)
{
	const AgFeature *f = ag_export_feature(export, feature);
	const AgInput *input = &export->pipeline->inputs[f->input];

	if (f->kind == AG_FEATURE_CATEGORY)
		return input->type == AG_TYPE_TEXT && input->levels != NULL;
	return f->kind == AG_FEATURE_NUMBER && input->type <= AG_TYPE_FLOAT64;
}

AgStatus
ag_export_need_plain(const AgExport *export, bool categories)
{
	const AgTrees *trees = export->trees;

	for (uint64_t i = 0; i < trees->n_nodes; i++)
	{
		const AgTreeNode *node = &trees->nodes[i];
		const char *name;

		if (node->feature >= trees->n_features)
			return ag_export_refuse(export, "can't hold combinations of categories");
		name = ag_export_feature(export, node->feature)->name;
		if (!ag_export_is_plain(export, node->feature))
		{
			ag_error_set(export->ctx->error, AG_ERR_UNSUPPORTED,
						 "format \"%s\" can't hold feature \"%s\", which is made of its column",
						 export->format, name);
			ag_error_hint(
				export->ctx->error,
				"Format \"json\" can; or fit without that column, or on a query that makes "
				"a number or category of it.");
			return AG_ERR_UNSUPPORTED;
		}
		if (!categories && (node->flags & AG_NODE_CATEGORY) != 0)
		{
			ag_error_set(export->ctx->error, AG_ERR_UNSUPPORTED,
						 "format \"%s\" can't hold feature \"%s\", a category", export->format,
						 name);
			ag_error_hint(
				export->ctx->error,
				"Formats \"lightgbm_text\", \"onnx\", \"sql\" and \"json\" hold categories.");
			return AG_ERR_UNSUPPORTED;
		}
	}
	return AG_OK;
}

AgStatus
ag_export_need_boosted(const AgExport *export)
{
	if (export->trees->link == AG_LINK_MEAN_FREQUENCIES)
		return ag_export_refuse(export, "can't hold a forest of classes' shares");
	return AG_OK;
}

double
ag_export_threshold(const AgExport *export, const AgTreeNode *node)
{
	return node->threshold + (double) ag_export_feature(export, node->feature)->origin;
}

float
ag_export_float_below(double value)
{
	float nearest = (float) value;

	return (double) nearest > value ? nextafterf(nearest, -INFINITY) : nearest;
}

bool
ag_export_in_set(const AgExport *export, const AgTreeNode *node, uint32_t code)
{
	return code / 64 < node->n_set &&
		   (export->trees->sets[node->set + code / 64] >> (code % 64) & 1) != 0;
}

void
ag_export_put(AgExport *export, const char *format, ...)
{
	char text[512];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (n < 0 || (size_t) n >= sizeof text)
		export->out->failed = true; /* callers write names by other means */
	else
		ag_write_bytes(export->out, text, (size_t) n);
}

void
ag_export_put_number(AgExport *export, double value)
{
	/* a split of missing values from all others has an infinite threshold, which JSON can't say */
	if (isinf(value))
		value = value > 0.0 ? DBL_MAX : -DBL_MAX;
	ag_json_number(export->out, value);
}

static AgStatus
find_trees(const AgContext *ctx, const AgPredictor *predictor, const AgTrees **trees)
{
	const AgLeaf *leaf = predictor->leaves;

	if (predictor->n_leaves != 1 || !ag_predictor_is_flat(predictor) || leaf->weight != 1.0)
	{
		ag_error_set(ctx->error, AG_ERR_UNSUPPORTED, "an ensemble of %d models can't be exported",
					 predictor->n_leaves);
		ag_error_hint(ctx->error,
					  "Export one of its members by name, as in 'model/GBM'; of a bag, "
					  "the one that \"refit_full\" made, as in 'model/GBM_BAG_L1_FULL'.");
		return AG_ERR_UNSUPPORTED;
	}
	if (leaf->model.kind != AG_IMAGE_TREES)
	{
		ag_error_set(ctx->error, AG_ERR_UNSUPPORTED, "only models made of trees can be exported");
		ag_error_hint(ctx->error, "Export a member that is one by name, as in 'model/GBM'.");
		return AG_ERR_UNSUPPORTED;
	}
	*trees = leaf->model.fitted;
	return AG_OK;
}

AgStatus
ag_predictor_export(const AgContext *ctx, const AgPredictor *predictor, const char *format,
					AgWriter *out)
{
	AgExport export = {.ctx = ctx, .pipeline = predictor->pipeline, .out = out};

	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
	{
		if (strcmp(formats[i].name, format) != 0)
			continue;
		export.format = formats[i].name;
		AG_TRY(find_trees(ctx, predictor, &export.trees));
		AG_TRY(formats[i].write(&export));
		return out->failed ? ag_error_set(ctx->error, AG_ERR_MEMORY, "out of memory") : AG_OK;
	}
	ag_error_set(ctx->error, AG_ERR_OPTION, "there is no format \"%s\"", format);
	ag_error_hint(
		ctx->error,
		"The formats are \"json\", \"sql\", \"xgboost_json\", \"lightgbm_text\" and \"onnx\".");
	return AG_ERR_OPTION;
}
