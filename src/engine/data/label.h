/*
 * label.h - what is predicted: problem type, classes, the target vector.
 */
#ifndef AG_LABEL_H
#define AG_LABEL_H

#include "engine/base/bytes.h"
#include "engine/base/context.h"
#include "engine/data/table.h"

typedef enum AgProblem
{
	AG_PROBLEM_AUTO = 0,
	AG_PROBLEM_BINARY = 1,
	AG_PROBLEM_MULTICLASS = 2,
	AG_PROBLEM_REGRESSION = 3,
	AG_PROBLEM_QUANTILE = 4
} AgProblem;

const char *ag_problem_name(AgProblem problem); /* "binary", ... */

#define AG_MAX_QUANTILES 100 /* levels of one predictor */

/* Is the label one of several classes, not a number? */
static inline bool
ag_problem_has_classes(AgProblem problem)
{
	return problem == AG_PROBLEM_BINARY || problem == AG_PROBLEM_MULTICLASS;
}

/*
 * How many numbers every model answers a row with: a probability a class, a value a quantile level, else one value. The one place
 * that counts them; who keeps the two numbers has an accessor of his own.
 */
static inline int
ag_n_outputs(int n_classes, int n_quantiles)
{
	return n_classes > 0 ? n_classes : n_quantiles > 0 ? n_quantiles : 1;
}

typedef struct AgClass
{
	const char *
		name; /* UTF-8 bytes, NUL behind them; booleans "false"/"true", numbers in shortest form ("1", "2.5") */
	uint32_t n_bytes;
	double number; /* the label's number (booleans 0/1); NaN for a text label */
	int64_t n_rows;
} AgClass;

typedef struct AgLabel
{
	AgProblem problem;
	AgType type;   /* of the label column */
	int n_classes; /* 0 for regression; binary: 2, the positive class is index 1 */
	AgClass *
		classes; /* ascending: false < true, numbers by value, texts by bytes; binary: [negative, positive] */
	double *target;          /* [n_rows] regression */
	int32_t *class_of;       /* [n_rows] classification */
	int n_quantiles;         /* quantile regression: levels to predict; else 0 */
	const double *quantiles; /* [n_quantiles] ascending, in (0, 1); not owned */
	const int *
		quantile_order; /* [n_quantiles] place in quantiles of the level that was asked for i-th; not owned */
	int64_t n_rows;
	double min, max, mean, stddev; /* regression */
	char reason[256];              /* why this problem type, for the NOTICE */
	AgArena arena;
} AgLabel;

static inline int
ag_label_outputs(const AgLabel *label)
{
	return ag_n_outputs(label->n_classes, label->n_quantiles);
}

/*
 * Reads the label column of a finished table.
 *
 * asked AUTO infers: exactly two distinct values -> binary (any type); text, boolean ->
 * multiclass; integers and integral floats with at most 10 distinct values -> multiclass,
 * else regression. positive_class NULL: the default rule (true; 1 of {0,1}; else the
 * second in order). Rare classes are kept (a NOTICE counts them; see ag_label_leave_rare). Errors (AG_ERR_DATA, naming the column): no rows, all NULL, NaN or
 * infinite, one distinct value, a type no label can have (date, timestamp, time, interval: the hint
 * shows extract(epoch FROM ...)), text with problem_type regression, more than two classes with
 * binary, over 10,000 classes; AG_ERR_OPTION for an unknown positive class.
 * Logs the inference (NORMAL level) with how to override it.
 */
AgStatus ag_label_fit(const AgContext *ctx, const AgTable *table, int label_column, AgProblem asked,
					  const char *positive_class, AgLabel **label);
void ag_label_free(AgLabel *label);

/*
 * On a table that isn't finished: makes the labels of classes with fewer than threshold rows NULL, so that finishing it leaves
 * those rows out, and logs how many; *n_left_out counts the rows. Only where there are, and stay, more than one class and the
 * values will be taken for more than two classes; of other problems it says that the threshold means nothing.
 * AG_ERR_DATA when fewer than two classes would stay.
 */
AgStatus ag_label_leave_rare(const AgContext *ctx, AgTable *table, int label_column,
							 AgProblem asked, int64_t threshold, int64_t *n_left_out);

#endif
