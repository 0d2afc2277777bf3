/*
 * confine.h - what the program takes from itself before it works: it must die with its supervisor, never dump core,
 * never gain rights, and be the first to go when the machine runs out of memory.
 */
#ifndef AG_CONFINE_H
#define AG_CONFINE_H

#include <stdbool.h>
#include <stdint.h>

/* False when the supervisor that made the socket is gone already. */
bool ag_confine_process(int socket);
/* A net above the arena's budget, for memory that doesn't come from it (threads' stacks, libraries). */
void ag_confine_memory(int64_t budget_bytes, int n_threads);

#endif
