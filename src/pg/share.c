/*
 * share.c - see share.h.
 *
 * A table of slots says which models there are. A segment is filled, then pinned and entered, and so belongs to the table; to
 * retire a model is to unpin it. Each process counts itself in at its slot while it has the segment mapped, and out by a
 * callback of the segment's end, which comes whichever way it ends: that is how the table knows what memory is still taken. The
 * callback takes no lock, since it may run where an error left one.
 *
 * The bound holds for all that is taken. When room is short, models that nobody has mapped go, least recently used first. If that
 * isn't enough, the new one stays private, and mapped models that nobody has used for some seconds are retired; sessions let go of
 * them with their next use of any model, and so there is room when the new one is opened again.
 */
#include "postgres.h"

#include <sys/statvfs.h>

#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/dsm.h"
#include "storage/dsm_impl.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "utils/resowner.h"
#include "utils/syscache.h"

#include "engine/base/context.h"
#include "pg/compat.h"
#include "pg/settings.h"
#include "pg/share.h"

#define MOST_MODELS 128
#define MEMBER_BYTES 128 /* of a name; members of longer ones aren't shared */
#define ALIGNMENT 64
#define TOUCH_EVERY_NS INT64_C(1000000000)
#define UNUSED_AFTER_NS INT64_C(5000000000)

typedef enum SlotState
{
	SLOT_FREE,
	SLOT_OFFERED,
	SLOT_RETIRED
} SlotState;

/* The lock guards all of it, but for what is atomic. */
typedef struct AgShareSlot
{
	pg_atomic_uint32 state;   /* SlotState; written under the lock */
	pg_atomic_uint32 n_users; /* processes that have it mapped; raised under the lock */
	pg_atomic_uint64 used_ns; /* ag_clock_ns(), which is one for all processes */
	Oid database;
	pg_uuid_t id;
	char member[MEMBER_BYTES];
	dsm_handle handle;
	uint64 bytes;
} AgShareSlot;

/*
 * Its name has the build's id, for what lies in segments is a build's own: where the library is replaced while the server runs, sessions of either
 * build share with their like. What those of the old one shared is freed when the server stops.
 */
typedef struct Table
{
	int tranche;
	LWLock lock;
	uint64 bytes; /* of all slots that aren't free */
	AgShareSlot slots[MOST_MODELS];
} Table;

/* What lies in a segment. */
typedef struct PartAt
{
	int32 member;
	uint32 zero;
	uint64 data, size;
	uint64 layout; /* offsets from the segment's begin; 0: none */
} PartAt;

typedef struct Content
{
	uint64 n_parts;
	PartAt parts[FLEXIBLE_ARRAY_MEMBER];
} Content;

static Table *table = NULL;
static bool is_looked_for = false; /* in this process */
static bool is_preloaded = false;
static bool has_told = false; /* that a segment couldn't be made */
static void (*previous_request)(void) = NULL;

/* --- the table --- */

static void
table_init(void *at)
{
	Table *made = at;

	memset(made, 0, sizeof *made);
	made->tranche = LWLockNewTrancheId();
	LWLockInitialize(&made->lock, made->tranche);
	for (int i = 0; i < MOST_MODELS; i++)
	{
		pg_atomic_init_u32(&made->slots[i].state, SLOT_FREE);
		pg_atomic_init_u32(&made->slots[i].n_users, 0);
		pg_atomic_init_u64(&made->slots[i].used_ns, 0);
	}
}

static void
request(void)
{
	if (previous_request != NULL)
		previous_request();
	RequestAddinShmemSpace(MAXALIGN(sizeof(Table)));
}

void
ag_share_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	is_preloaded = true;
	ag_shared_memory_on_request(request, &previous_request);
}

static bool
find_table(void)
{
	if (!is_looked_for)
	{
		table =
			ag_shared_memory("ag_pg models " AG_BUILD_ID, sizeof(Table), table_init, is_preloaded);
		if (table != NULL)
			LWLockRegisterTranche(table->tranche, "ag_pg_models");
		is_looked_for = true;
	}
	return table != NULL;
}

bool
ag_share_is_on(void)
{
	return ag_setting_shared_model_cache_kb > 0 && find_table();
}

static SlotState
state_of(AgShareSlot *slot)
{
	return (SlotState) pg_atomic_read_u32(&slot->state);
}

static uint64
limit_bytes(void)
{
	return (uint64) ag_setting_shared_model_cache_kb * 1024;
}

/* --- under the lock --- */

/* Frees the slots of retired models that nobody has mapped any more. */
static void
reap(void)
{
	for (int i = 0; i < MOST_MODELS; i++)
	{
		AgShareSlot *slot = &table->slots[i];

		if (state_of(slot) != SLOT_RETIRED || pg_atomic_read_u32(&slot->n_users) > 0)
			continue;
		table->bytes -= slot->bytes;
		pg_atomic_write_u32(&slot->state, SLOT_FREE);
	}
}

static void
retire(AgShareSlot *slot)
{
	pg_atomic_write_u32(&slot->state, SLOT_RETIRED);
	dsm_unpin_segment(slot->handle);
}

static AgShareSlot *
find_slot(const pg_uuid_t *id, const char *member)
{
	for (int i = 0; i < MOST_MODELS; i++)
	{
		AgShareSlot *slot = &table->slots[i];

		if (state_of(slot) == SLOT_OFFERED && slot->database == MyDatabaseId &&
			memcmp(&slot->id, id, UUID_LEN) == 0 && strcmp(slot->member, member) == 0)
			return slot;
	}
	return NULL;
}

/* Of the models that nobody has mapped, or has used since, the one that was used least recently. */
static AgShareSlot *
find_oldest(bool is_mapped, int64 since)
{
	AgShareSlot *found = NULL;

	for (int i = 0; i < MOST_MODELS; i++)
	{
		AgShareSlot *slot = &table->slots[i];
		int64 used_ns = (int64) pg_atomic_read_u64(&slot->used_ns);

		if (state_of(slot) == SLOT_OFFERED && used_ns <= since &&
			(is_mapped || pg_atomic_read_u32(&slot->n_users) == 0) &&
			(found == NULL || used_ns < (int64) pg_atomic_read_u64(&found->used_ns)))
			found = slot;
	}
	return found;
}

static AgShareSlot *
find_free(void)
{
	for (int i = 0; i < MOST_MODELS; i++)
		if (state_of(&table->slots[i]) == SLOT_FREE)
			return &table->slots[i];
	return NULL;
}

static bool
has_room(uint64 bytes)
{
	return table->bytes + bytes <= limit_bytes() && find_free() != NULL;
}

/* Retires mapped models that nobody uses, until there will be room, and a slot, when they are let go. */
static void
retire_unused(uint64 bytes)
{
	int64 since = ag_clock_ns() - UNUSED_AFTER_NS;
	uint64 left = table->bytes;
	bool has_slot = false;
	AgShareSlot *slot;

	for (int i = 0; i < MOST_MODELS; i++)
	{
		has_slot |= state_of(&table->slots[i]) != SLOT_OFFERED; /* free, or will be */
		if (state_of(&table->slots[i]) == SLOT_RETIRED)
			left -= table->slots[i].bytes;
	}
	while ((left + bytes > limit_bytes() || !has_slot) && (slot = find_oldest(true, since)) != NULL)
	{
		retire(slot);
		left -= slot->bytes;
		has_slot = true;
	}
}

/* A free slot, when there is room for so many bytes more; or NULL. */
static AgShareSlot *
make_room(uint64 bytes)
{
	AgShareSlot *idle;

	reap();
	while (!has_room(bytes) && (idle = find_oldest(false, PG_INT64_MAX)) != NULL)
	{
		retire(idle);
		reap();
	}
	if (has_room(bytes))
		return find_free();
	retire_unused(bytes);
	return NULL;
}

/* --- dropped databases --- */

/* Models of databases that are no more. Looked at when a model is opened: there is time for it. */
static void
forget_databases(void)
{
	Oid databases[MOST_MODELS];
	int n = 0;

	LWLockAcquire(&table->lock, LW_SHARED);
	for (int i = 0; i < MOST_MODELS; i++)
	{
		Oid database = table->slots[i].database;
		bool is_known = database == MyDatabaseId;

		for (int j = 0; j < n; j++)
			is_known |= databases[j] == database;
		if (state_of(&table->slots[i]) == SLOT_OFFERED && !is_known)
			databases[n++] = database;
	}
	LWLockRelease(&table->lock);
	for (int j = 0; j < n; j++)
	{
		if (SearchSysCacheExists1(DATABASEOID, ObjectIdGetDatum(databases[j])))
			continue;
		LWLockAcquire(&table->lock, LW_EXCLUSIVE);
		for (int i = 0; i < MOST_MODELS; i++)
			if (state_of(&table->slots[i]) == SLOT_OFFERED &&
				table->slots[i].database == databases[j])
				retire(&table->slots[i]);
		reap();
		LWLockRelease(&table->lock);
	}
}

/* --- segments --- */

/* Called when the mapping ends; also for one that has no slot yet. */
static void
count_out(dsm_segment *segment, Datum arg)
{
	AgShare *share = (AgShare *) DatumGetPointer(arg);

	if (share->slot != NULL)
		pg_atomic_fetch_sub_u32(&share->slot->n_users, 1);
	share->slot = NULL;
	share->segment = NULL;
}

/* Under the lock. */
static void
count_in(AgShare *share, AgShareSlot *slot)
{
	pg_atomic_fetch_add_u32(&slot->n_users, 1);
	pg_atomic_write_u64(&slot->used_ns, (uint64) ag_clock_ns());
	share->slot = slot;
}

/* A bound that was lowered, perhaps to 0, holds for what is shared already. */
static void
keep_bound(void)
{
	uint64 left;
	AgShareSlot *slot;

	LWLockAcquire(&table->lock, LW_EXCLUSIVE);
	left = table->bytes;
	for (int i = 0; i < MOST_MODELS; i++)
		if (state_of(&table->slots[i]) == SLOT_RETIRED)
			left -= table->slots[i].bytes;
	while (left > limit_bytes() && (slot = find_oldest(true, PG_INT64_MAX)) != NULL)
	{
		retire(slot);
		left -= slot->bytes;
	}
	reap();
	LWLockRelease(&table->lock);
}

bool
ag_share_attach(AgShare *share, const pg_uuid_t *id, const char *member)
{
	AgShareSlot *slot;

	if (find_table() && table->bytes > limit_bytes())
		keep_bound();
	if (!ag_share_is_on())
		return false;
	forget_databases();
	LWLockAcquire(&table->lock, LW_EXCLUSIVE);
	slot = find_slot(id, member);
	if (slot != NULL)
		share->segment = dsm_attach(slot->handle);
	if (share->segment != NULL)
	{
		on_dsm_detach(share->segment, count_out, PointerGetDatum(share));
		count_in(share, slot);
	}
	LWLockRelease(&table->lock);
	if (share->segment == NULL)
		return false;
	dsm_pin_mapping(share->segment);
	return true;
}

void
ag_share_detach(AgShare *share)
{
	if (share->segment != NULL)
		dsm_detach(share->segment);
}

/* Parallel queries and fits need room there too: half of it stays free. */
static bool
has_system_room(uint64 bytes)
{
	struct statvfs fs;

	if (dynamic_shared_memory_type != DSM_IMPL_POSIX || statvfs("/dev/shm", &fs) != 0)
		return true;
	return (double) fs.f_bavail * fs.f_frsize - (double) bytes >=
		   (double) fs.f_blocks * fs.f_frsize / 2;
}

/*
 * A segment of this process alone, or none: a model that can't be shared is no error. What is left of a failed attempt belongs to
 * a resource owner of its own, which clears it away.
 */
static void
create_segment(AgShare *share, Size bytes)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner caller = CurrentResourceOwner;
	ResourceOwner own = ResourceOwnerCreate(NULL, "ag_pg shared model");

	CurrentResourceOwner = own;
	PG_TRY();
	{
		share->segment = dsm_create(bytes, DSM_CREATE_NULL_IF_MAXSEGMENTS);
		if (share->segment != NULL)
		{
			on_dsm_detach(share->segment, count_out, PointerGetDatum(share));
			dsm_pin_mapping(share->segment);
		}
	}
	PG_CATCH();
	{
		ErrorData *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		share->segment = NULL;
		if (!has_told)
			ereport(LOG,
					(errmsg("ag_pg could not share a model between sessions: %s", error->message),
					 errhint("Each session decodes it for itself. Lower "
							 "ag_pg.shared_model_cache_size, or give the server more shared "
							 "memory.")));
		has_told = true;
		FreeErrorData(error);
	}
	PG_END_TRY();
	CurrentResourceOwner = caller;
	ResourceOwnerRelease(own, RESOURCE_RELEASE_BEFORE_LOCKS, false, true);
	ResourceOwnerRelease(own, RESOURCE_RELEASE_LOCKS, false, true);
	ResourceOwnerRelease(own, RESOURCE_RELEASE_AFTER_LOCKS, false, true);
	ResourceOwnerDelete(own);
}

static uint64
align_up(uint64 at)
{
	return (at + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Puts the parts one behind the other; at NULL it only counts bytes. */
static uint64
fill(char *at, const AgPredictor *predictor, const AgImagePart *parts, int n_parts)
{
	Content *content = (Content *) at;
	uint64 end = align_up(offsetof(Content, parts) + sizeof(PartAt) * (uint64) n_parts);

	if (at != NULL)
		content->n_parts = (uint64) n_parts;
	for (int i = 0; i < n_parts; i++)
	{
		uint64 layout_bytes = ag_predictor_layout_bytes(predictor, parts[i].member);
		PartAt part = {.member = parts[i].member, .data = end, .size = parts[i].size};

		end = align_up(end + part.size);
		part.layout = layout_bytes > 0 ? end : 0;
		end = align_up(end + layout_bytes);
		if (at == NULL)
			continue;
		content->parts[i] = part;
		memcpy(at + part.data, parts[i].data, part.size);
		if (part.layout > 0)
			ag_predictor_layout_write(predictor, part.member, at + part.layout);
	}
	return end;
}

/* A segment's begin, aligned as images must be; it isn't by itself where segments lie in the main one. */
static char *
content_of(const AgShare *share)
{
	return (char *) TYPEALIGN(ALIGNMENT, dsm_segment_address(share->segment));
}

AgImagePart *
ag_share_parts(const AgShare *share, int *n_parts)
{
	char *at = content_of(share);
	const Content *content = (const Content *) at;
	AgImagePart *parts = palloc(sizeof(AgImagePart) * content->n_parts);

	for (uint64 i = 0; i < content->n_parts; i++)
	{
		const PartAt *part = &content->parts[i];

		parts[i] = (AgImagePart){part->member, at + part->data, part->size,
								 part->layout > 0 ? at + part->layout : NULL};
	}
	*n_parts = (int) content->n_parts;
	return parts;
}

/* Could it be shared, as things stand? So that no segment is filled in vain. */
static bool
may_publish(const pg_uuid_t *id, const char *member, uint64 bytes)
{
	bool may;

	if (bytes > limit_bytes() || strlen(member) >= MEMBER_BYTES || !has_system_room(bytes))
		return false;
	LWLockAcquire(&table->lock, LW_EXCLUSIVE);
	may = find_slot(id, member) != NULL || make_room(bytes) != NULL;
	LWLockRelease(&table->lock);
	return may;
}

/* Enters a segment that is filled. False: another process was faster, or took the room. */
static bool
offer(AgShare *share, const pg_uuid_t *id, const char *member, uint64 bytes)
{
	AgShareSlot *slot = NULL;

	LWLockAcquire(&table->lock, LW_EXCLUSIVE);
	if (find_slot(id, member) == NULL)
		slot = make_room(bytes);
	if (slot != NULL)
	{
		dsm_pin_segment(share->segment);
		slot->database = MyDatabaseId;
		slot->id = *id;
		strlcpy(slot->member, member, MEMBER_BYTES);
		slot->handle = dsm_segment_handle(share->segment);
		slot->bytes = bytes;
		table->bytes += bytes;
		count_in(share, slot);
		pg_atomic_write_u32(&slot->state, SLOT_OFFERED);
	}
	LWLockRelease(&table->lock);
	return slot != NULL;
}

bool
ag_share_publish(AgShare *share, const pg_uuid_t *id, const char *member,
				 const AgPredictor *predictor, const AgImagePart *parts, int n_parts)
{
	uint64 bytes;

	if (!ag_share_is_on())
		return false;
	bytes = fill(NULL, predictor, parts, n_parts) + ALIGNMENT;
	if (!may_publish(id, member, bytes))
		return false;
	if (ag_share_attach(share, id, member))
		return true;
	create_segment(share, bytes);
	if (share->segment == NULL)
		return false;
	fill(content_of(share), predictor, parts, n_parts);
	if (offer(share, id, member, bytes))
		return true;
	ag_share_detach(share);
	return ag_share_attach(share, id, member);
}

/* --- what becomes of them --- */

void
ag_share_touch(const AgShare *share)
{
	int64 now;

	if (share->slot == NULL)
		return;
	now = ag_clock_ns();
	/* others read this line of memory all the time: it is written only now and then */
	if (now - (int64) pg_atomic_read_u64(&share->slot->used_ns) > TOUCH_EVERY_NS)
		pg_atomic_write_u64(&share->slot->used_ns, (uint64) now);
}

bool
ag_share_is_retired(const AgShare *share)
{
	return share->slot != NULL && state_of(share->slot) == SLOT_RETIRED;
}

void
ag_share_forget(const pg_uuid_t *id)
{
	if (!find_table())
		return;
	LWLockAcquire(&table->lock, LW_EXCLUSIVE);
	for (int i = 0; i < MOST_MODELS; i++)
		if (state_of(&table->slots[i]) == SLOT_OFFERED &&
			table->slots[i].database == MyDatabaseId &&
			memcmp(&table->slots[i].id, id, UUID_LEN) == 0)
			retire(&table->slots[i]);
	reap();
	LWLockRelease(&table->lock);
}

bool
ag_share_total(int64 *n_models, int64 *bytes)
{
	*n_models = 0;
	*bytes = 0;
	if (!find_table())
		return false;
	forget_databases();
	if (table->bytes > limit_bytes())
		keep_bound();
	LWLockAcquire(&table->lock, LW_EXCLUSIVE);
	reap();
	for (int i = 0; i < MOST_MODELS; i++)
		*n_models += state_of(&table->slots[i]) == SLOT_OFFERED;
	*bytes = (int64) table->bytes;
	LWLockRelease(&table->lock);
	return true;
}
