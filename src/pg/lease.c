/*
 * lease.c - see lease.h.
 *
 * Nothing here waits. One taker at a time goes through the door (a lock of its own), takes what it needs unit by unit, and
 * gives all of it back when something is missing; so two fits can't each hold half of what both need. The supervisor tries again
 * every 100 ms, which keeps cancels and the time limit working.
 */
#include "postgres.h"

#include "storage/lock.h"

#include "pg/lease.h"

#define LEASE_KEY 0x4147 /* objsubid: SQL's advisory locks have 1 or 2 there */

typedef enum LeaseKind
{
	LEASE_DOOR = 0,
	LEASE_SLOT = 1,
	LEASE_CPU = 2,
	LEASE_MEMORY = 3,
	LEASE_GPU = 4 /* and one kind a GPU above it */
} LeaseKind;

typedef struct AgLeaseUnit
{
	uint32 kind;
	uint32 number;
} AgLeaseUnit;

static bool
take_unit(uint32 kind, uint32 number)
{
	LOCKTAG tag;

	SET_LOCKTAG_ADVISORY(tag, InvalidOid, kind, number, LEASE_KEY);
	return LockAcquire(&tag, ExclusiveLock, true, true) != LOCKACQUIRE_NOT_AVAIL;
}

static void
give_unit(uint32 kind, uint32 number)
{
	LOCKTAG tag;

	SET_LOCKTAG_ADVISORY(tag, InvalidOid, kind, number, LEASE_KEY);
	(void) LockRelease(&tag, ExclusiveLock, true);
}

static void
remember(AgLease *lease, uint32 kind, uint32 number)
{
	if (lease->n_taken == lease->taken_size)
	{
		lease->taken_size = Max(64, lease->taken_size * 2);
		lease->taken = lease->taken == NULL
						   ? palloc(lease->taken_size * sizeof(AgLeaseUnit))
						   : repalloc(lease->taken, lease->taken_size * sizeof(AgLeaseUnit));
	}
	lease->taken[lease->n_taken].kind = kind;
	lease->taken[lease->n_taken].number = number;
	lease->n_taken++;
}

/* Takes up to `wanted` of a kind's units; how many it got. */
static int
take_units(AgLease *lease, uint32 kind, int total, int wanted)
{
	int taken = 0;

	for (int i = 0; i < total && taken < wanted; i++)
	{
		if (!take_unit(kind, (uint32) i))
			continue;
		remember(lease, kind, (uint32) i);
		taken++;
	}
	return taken;
}

static void
give_back_to(AgLease *lease, int n)
{
	while (lease->n_taken > n)
	{
		lease->n_taken--;
		give_unit(lease->taken[lease->n_taken].kind, lease->taken[lease->n_taken].number);
	}
}

/* All shares of a chunk on one GPU, or none. */
static bool
take_chunk(AgLease *lease, int device, int chunk)
{
	int before = lease->n_taken;

	if (take_units(lease, LEASE_GPU + (uint32) device, AG_GPU_SHARES, chunk) == chunk)
		return true;
	give_back_to(lease, before);
	return false;
}

/*
 * Whole chunks, as many as a GPU has room for, then the next GPU; at last the rest of what is wanted. All fits begin with the same
 * GPU, so that small ones share it and leave whole ones to others.
 */
static int
take_gpus(AgLease *lease, const AgLeaseWant *want)
{
	int got = 0;

	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < want->n_devices; i++)
		{
			int *shares = &lease->gpu_shares[want->devices[i]];
			int rest = want->gpu.most % want->gpu.chunk;
			int chunk = pass == 0 ? want->gpu.chunk : rest;

			if (pass > 0 && got != want->gpu.most - rest)
				return got;
			while (chunk > 0 && want->gpu.most - got >= chunk && *shares + chunk <= AG_GPU_SHARES &&
				   take_chunk(lease, want->devices[i], chunk))
			{
				*shares += chunk;
				got += chunk;
			}
		}
	return got;
}

/* False: they have to be waited for. */
static bool
settle_gpus(AgLease *lease, const AgLeaseWant *want)
{
	memset(lease->gpu_shares, 0, sizeof lease->gpu_shares);
	if (want->gpu.chunk < 1)
		return true;
	return take_gpus(lease, want) >= want->gpu.least || !want->gpu_waits;
}

static const char *
take_all(AgLease *lease, const AgSupervisorOrders *orders, const AgLeaseWant *want)
{
	int64 unit_bytes = Max(1, orders->memory_total_bytes / AG_LEASE_MEMORY_UNITS);
	int units =
		(int) Min(AG_LEASE_MEMORY_UNITS, (want->memory_bytes + unit_bytes - 1) / unit_bytes);
	int cpus = want->num_cpus > 0 ? Min(want->num_cpus, orders->num_cpus) : orders->num_cpus;

	if (take_units(lease, LEASE_SLOT, orders->max_fits, 1) < 1)
		return "a training slot (ag_pg.max_fits)";
	if (take_units(lease, LEASE_MEMORY, AG_LEASE_MEMORY_UNITS, units) < units)
		return "memory (ag_pg.memory_limit)";
	if (!settle_gpus(lease, want))
		return "a GPU (ag_pg.num_gpus)";
	lease->num_cpus = take_units(lease, LEASE_CPU, orders->num_cpus, cpus);
	if (lease->num_cpus < 1)
		return "a CPU (ag_pg.num_cpus)";
	lease->memory_bytes = Max(want->memory_bytes, units * unit_bytes);
	return NULL;
}

bool
ag_lease_try(AgLease *lease, const AgSupervisorOrders *orders, const AgLeaseWant *want,
			 const char **lacking)
{
	if (!take_unit(LEASE_DOOR, 0))
	{
		*lacking = NULL; /* another fit is looking right now */
		return false;
	}
	*lacking = take_all(lease, orders, want);
	lease->held = *lacking == NULL;
	if (!lease->held)
		give_back_to(lease, 0);
	give_unit(LEASE_DOOR, 0);
	return lease->held;
}

void
ag_lease_release(AgLease *lease)
{
	give_back_to(lease, 0);
	lease->held = false;
}
