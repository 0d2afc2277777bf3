/*
 * curves.h - how well a classifier tells one class from the rest.
 */
#ifndef AG_CURVES_H
#define AG_CURVES_H

#include "postgres.h"

#include "engine/engine.h"
#include "pg/evaluate.h"

/* The curve of a class over the rows of the evaluation's first model; its points are in the current memory context. */
extern void ag_curves_make(const AgEvaluation *evaluation, int class, AgCurve *curve);

#endif
