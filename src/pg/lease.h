/*
 * lease.h - the share of the cluster's CPUs, memory, GPUs and slots that one fit holds.
 *
 * Every unit of a budget is a lock tag of the advisory kind with database 0, which SQL can't name: units are taken by
 * conditional lock requests of the supervisor's session and vanish with it, without shared_preload_libraries. They show in
 * pg_locks (database 0, objsubid 16711).
 */
#ifndef AG_LEASE_H
#define AG_LEASE_H

#include "postgres.h"

#include "engine/search/fit.h"
#include "pg/supervisor.h"

#define AG_LEASE_MEMORY_UNITS 64

typedef struct AgLeaseWant
{
	int64 memory_bytes;
	int num_cpus;  /* at most; 0: all there are. At least one is taken */
	AgGpuNeed gpu; /* in shares; chunk 0: none */
	bool
		gpu_waits; /* the lease waits for gpu.least; else it does with what is free, and be it none */
	int n_devices; /* where, most wanted first */
	int devices[AG_MAX_GPUS];
} AgLeaseWant;

typedef struct AgLease
{
	bool held;
	int num_cpus;
	int64 memory_bytes;
	int gpu_shares[AG_MAX_GPUS]; /* of each GPU, by its number */
	int n_taken, taken_size;
	struct AgLeaseUnit *taken; /* palloc'd */
} AgLease;

/*
 * Tries once to take all of it. False: nothing is held, and *lacking says what was missing ("a CPU", for "waiting for ...").
 * A want beyond a whole budget is never met: the caller checks first.
 */
extern bool ag_lease_try(AgLease *lease, const AgSupervisorOrders *orders, const AgLeaseWant *want,
						 const char **lacking);

extern void ag_lease_release(AgLease *lease);

#endif
