/*
 * machine.h - what this machine, or the container we are in, has.
 */
#ifndef AG_MACHINE_H
#define AG_MACHINE_H

#include "postgres.h"

/* CPUs that this process may use: affinity mask and cgroup quota (rounded up) looked at. At least 1. */
extern int ag_machine_cpus(void);

/* Memory of the machine or the least limit of the cgroups we are in, in bytes. */
extern int64 ag_machine_memory(void);

#endif
