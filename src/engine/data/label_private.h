/*
 * label_private.h - parts of the label's reading that tests look at (private to the data room).
 */
#ifndef AG_LABEL_PRIVATE_H
#define AG_LABEL_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>

#define AG_LABEL_MAX_CLASSES 10000

/* The name of a numeric class: the shortest decimal form that reads back as the same double (or float). */
void ag_label_number_name(double number, bool is_single, char *text, size_t size);

#endif
