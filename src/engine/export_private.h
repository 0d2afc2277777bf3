/*
 * export_private.h - writing a model in other programs' formats. For export*.c only.
 */
#ifndef AG_EXPORT_PRIVATE_H
#define AG_EXPORT_PRIVATE_H

#include "engine/data/pipeline.h"
#include "engine/engine.h"
#include "engine/model/trees.h"

typedef struct AgExport
{
	const AgContext *ctx;
	const AgPipeline *pipeline;
	const AgTrees *trees;
	const char *format; /* its name, for messages */
	AgWriter *out;
} AgExport;

/* One a format. What the format can't hold: AG_ERR_UNSUPPORTED, with a text that says what. */
AgStatus ag_export_json(AgExport *export);
AgStatus ag_export_sql(AgExport *export);
AgStatus ag_export_xgboost(AgExport *export);
AgStatus ag_export_lightgbm(AgExport *export);
AgStatus ag_export_onnx(AgExport *export);

/* The format can't hold that: what, the end of a sentence that begins with "format ... ". */
AgStatus ag_export_refuse(const AgExport *export, const char *what);

/* A feature that is its column's value as it is: a number, a boolean or a category. */
bool ag_export_is_plain(const AgExport *export, uint32_t feature);
static inline const AgFeature *
ag_export_feature(const AgExport *export, uint32_t feature)
{
	return &export->pipeline->features[feature];
}
/* Every feature that some tree looks at is plain (and where no categories are allowed, a number), or it is refused by name. */
AgStatus ag_export_need_plain(const AgExport *export, bool categories);
/* Trees of a link, refused with a name for it. */
AgStatus ag_export_need_boosted(const AgExport *export);

/* A node's threshold in the column's own numbers. */
double ag_export_threshold(const AgExport *export, const AgTreeNode *node);
/* The greatest float that isn't above it. */
float ag_export_float_below(double value);
/* Is the code's bit in the node's set? */
bool ag_export_in_set(const AgExport *export, const AgTreeNode *node, uint32_t code);

/* printf into the output, numbers as short as reads back. */
void ag_export_put(AgExport *export, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ag_export_put_number(AgExport *export, double value);

#endif
