/*
 * order.h - numbers as integers in the same order, and their sorting.
 */
#ifndef AG_ORDER_H
#define AG_ORDER_H

#include <stdint.h>

/* A double as an integer in the same order (-0 counts as 0), and back. NaN must not come here. */
uint64_t ag_order_key(double value);
double ag_order_value(uint64_t key);

/* Sorts n keys ascending; spare has room for n. Returns where the result lies: keys or spare. */
uint64_t *ag_keys_sort(uint64_t *keys, uint64_t *spare, int64_t n);

#endif
