/*
 * label_private.h - parts of the label's reading that tests look at (private to the data room).
 */
#ifndef AG_LABEL_PRIVATE_H
#define AG_LABEL_PRIVATE_H

#include "engine/data/table.h"

#define AG_LABEL_MAX_CLASSES 10000
/* More distinct whole numbers than this are amounts, not classes: AutoGluon's looser rule makes a delay in minutes a 463-class problem. */
#define AG_LABEL_FEW_VALUES 10

/* A label's value as an integer that keeps its order: doubles by their bits, whole numbers exactly. */
uint64_t ag_label_key(const AgTableColumn *column, int64_t row);
bool ag_label_is_real(AgType type);

/* The name of a numeric class: the shortest decimal form that reads back as the same double (or float). */
void ag_label_number_name(double number, bool is_single, char *text, size_t size);

#endif
