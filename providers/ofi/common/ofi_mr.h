/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory regions of the libfabric provider: tokens, rights, and what happens when one goes. */
#ifndef OFI_OFI_MR_H
#define OFI_OFI_MR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fi_domain.h>

#include <ndx/spi/provider.h>

#include "base_list.h"
#include "base_lock.h"
#include "ofi_wire.h"

struct ofi_adapter;
struct ofi_mr;
struct ofi_qp;
struct ofi_tx;

#define OFI_MR_CHUNK 1024u
#define OFI_MR_CHUNKS 1024u
#define OFI_MR_SLOTS (OFI_MR_CHUNK * OFI_MR_CHUNKS)
#define OFI_MR_USES 4096u                 /* of a slot: all values of a token's upper bits */
#define OFI_MR_REGIONS (OFI_MR_SLOTS / 2) /* at a time */

enum ofi_right {
	OFI_RIGHT_SOURCE = 0, /* every region may be read locally */
	OFI_RIGHT_RECEIVE = 1 << 0,
	OFI_RIGHT_SINK = 1 << 1, /* of own reads */
};

/* What a local token stands for. token is 0 while the slot is free. */
struct ofi_mr_slot {
	uint32_t token;
	uint32_t rights;
	uintptr_t start;
	size_t length;
	struct ofi_mr *region; /* under the lock */
	void *desc;            /* the stack's name for it, if it has one; atomic */
	uint32_t uses;         /* since the slot was fresh, or began anew; under the lock, as: */
	uint32_t next;         /* slot in the same list, if there is one */
};

/* Slots that are not in use. */
struct ofi_mr_slots {
	uint32_t count;
	uint32_t first; /* valid if there are any, as last */
	uint32_t last;
};

struct ofi_mr_table {
	struct base_lock lock; /* of all but lookups, and of what windows are bound to */
	struct ofi_mr_slot *chunks[OFI_MR_CHUNKS];
	uint32_t used;             /* slots ever used */
	uint32_t live;             /* slots in use */
	struct ofi_mr_slots begun; /* have tokens left */
	struct ofi_mr_slots spent; /* have none left; the first has waited longest */
};

#define OFI_KEY_BUCKETS 1024u

#define OFI_TOLD_MAX 6u

/* The links whose peers have been told what a token opens; no other uses it. */
struct ofi_told {
	uint32_t count; /* OFI_TOLD_MAX + 1: there is no room for all */
	uint32_t ids[OFI_TOLD_MAX];
};

/* What a remote token opens. In the adapter's table while peers may use it. */
struct ofi_key {
	struct ofi_key *next;
	struct ofi_grant grant; /* its token is 0: not in the table */
	uint32_t only;          /* id of the link whose peer may use it; 0: all */
	struct ofi_told told;
};

struct ofi_key_table {
	struct base_lock lock;
	struct ofi_key *buckets[OFI_KEY_BUCKETS];
};

/* How long nothing may come from a peer that owes the answer to a SYNC, ... */
#define OFI_STALL_MS 2000u
/* ... and how long the answer may take if something does. */
#define OFI_CONFIRM_MS 60000u

/*
 * A region goes (ofi_revoke.c). Requests that the stack has and that use it cannot be stopped:
 * their connections are closed. What peers have on the way into it, or read from it, is waited for.
 */
struct ofi_revoke {
	struct ofi_adapter *adapter;
	struct base_list node;                    /* in adapter->asked, then in adapter->revokes */
	struct ndx_overlapped *ov;                /* NULL: nobody is to be told */
	void (*ended)(struct ofi_revoke *revoke); /* NULL, or called on the control thread */
	uint32_t *going;       /* atomic, a futex: how many of the same owner have not ended */
	const uint32_t *bound; /* NULL, or a count that falls when this one ends */
	uint64_t hurried_ns;   /* since when a callback waits; 0: none does */
	uint64_t asked_ns;     /* when the round began */
	uint64_t look_ns;      /* when to look who of the peers still lives */
	struct ofi_told told;  /* which peers it is about */
	uint32_t token;        /* local; 0: no request of ours can name it */
	uint32_t forget;       /* remote token that they have to forget first; 0: they have */
	struct fid_mr *mr;     /* to be closed when they have; NULL: was, or peers have no access */
	uint32_t round;        /* that every link must have reached; 0: none */
};

struct ofi_mr {
	struct ndx_spi_mr spi;
	struct ofi_adapter *adapter;
	struct fid_mr *mr; /* NULL: local only */
	struct ofi_key key;
	struct ofi_revoke *revoke; /* of this registration, for its end; NULL: there is none */
	uint32_t revoking;         /* of former ones; a futex */
	struct base_list windows;  /* struct ofi_mw.of_mr; adapter->regions.lock */
	uint32_t bound;            /* how many those are; a futex */
};

/* A window is bound and not any more in the order of the queue pair's requests. The fields are
 * under adapter->regions.lock. */
struct ofi_mw {
	struct ndx_spi_mw spi;
	struct ofi_adapter *adapter;
	struct ofi_mr *region; /* NULL: not bound */
	struct fid_mr *mr;
	struct ofi_key key;
	struct base_list of_mr;
	struct base_list of_qp;
	uint32_t pending; /* binds and invalidates that were posted and have not ended */
	bool planned;     /* it will be bound when they have */
	bool going;       /* the binding is being revoked, ... */
	bool awaited;     /* ... and requests wait for that, or did */
	struct ofi_revoke revoke;
	uint32_t revoking; /* a futex */
};

void ofi_key_add(struct ofi_key_table *table, struct ofi_key *key);
/* Who knows it? Harmless on a key that is not in the table. */
void ofi_key_remove(struct ofi_key_table *table, struct ofi_key *key, struct ofi_told *told);
/* Was it told to the peer of this link? */
bool ofi_told_has(const struct ofi_told *told, uint32_t link_id);
/* What to tell the peer of a link that asks; it knows it from now on. */
void ofi_key_tell(struct ofi_key_table *table, uint32_t token, uint32_t link_id,
                  struct ofi_grant *out);

/* The table of local tokens (ofi_mr_table.c). It begins as zeros. */
void ofi_mr_table_fini(struct ofi_mr_table *table);
/* The table's lock held: a token, which opens nothing yet; and it is not needed any more. */
enum ndx_status ofi_mr_table_take(struct ofi_mr_table *table, uint32_t *token);
void ofi_mr_table_put(struct ofi_mr_table *table, uint32_t token);
/* The same: of a token that was taken. */
struct ofi_mr_slot *ofi_mr_table_slot(struct ofi_mr_table *table, uint32_t token);
/* Register with a random key. */
int ofi_mr_reg(struct ofi_adapter *adapter, const void *buffer, size_t length, uint64_t access,
               struct fid_mr **out, uint32_t *key);
/* What a right of the peer's is for libfabric. */
uint64_t ofi_mr_access(uint32_t rights);
enum ndx_status ofi_mr_create(struct ndx_spi_adapter *adapter, struct ndx_spi_mr **out);
void ofi_mr_destroy(struct ndx_spi_mr *spi);
enum ndx_status ofi_mr_register(struct ndx_spi_mr *spi, void *buffer, size_t length, uint32_t flags,
                                struct ndx_overlapped *ov);
enum ndx_status ofi_mr_deregister(struct ndx_spi_mr *spi, struct ndx_overlapped *ov);
void ofi_mr_settle(struct ndx_spi_mr *spi);
/* adapter->regions.lock held: what this local token stands for; NULL: nothing (any more). */
struct ofi_mr *ofi_mr_find(const struct ofi_mr_table *table, uint32_t token);

enum ndx_status ofi_mw_create(struct ndx_spi_adapter *adapter, struct ndx_spi_mw **out);
void ofi_mw_destroy(struct ndx_spi_mw *spi);
/* Entry points of the data path. */
enum ndx_status ofi_mw_bind(struct ndx_qp *handle, void *context, struct ndx_mr *mr,
                            struct ndx_mw *mw, void *buffer, size_t length, uint32_t flags);
enum ndx_status ofi_mw_invalidate(struct ndx_qp *handle, void *context, struct ndx_mw *mw,
                                  uint32_t flags);
/* The queue pair's lock held: it is the turn of a bind or invalidate. False: not yet, or the queue
 * pair is broken. */
bool ofi_mw_run(struct ofi_qp *qp, struct ofi_tx *tx);
/* The same: the request ends without having run. Harmless on one of another kind. */
void ofi_mw_skip(struct ofi_tx *tx);
/* One of both was posted: what the window will be when it has run. */
void ofi_mw_plan(struct ofi_mw *mw, struct ofi_tx *tx);
/* The request ends. */
void ofi_mw_run_out(struct ofi_tx *tx);
/* adapter->regions.lock held: end the binding, if that has not begun. */
void ofi_mw_revoke(struct ofi_mw *mw);
/* The queue pair goes, and with it what was bound through it. */
void ofi_mw_leave_qp(struct ofi_qp *qp);

/* The tokens were removed; what says which is filled. NDX_OK, or NDX_PENDING if it ends later, and
 * `ov` completes then. */
enum ndx_status ofi_revoke(struct ofi_revoke *revoke, struct ndx_overlapped *ov);
/* The same where the stack stops all access when the key is closed. */
enum ndx_status ofi_revoke_native(struct ofi_revoke *revoke);
/* The same for what nobody's request can name; it ends later. */
void ofi_revoke_begin(struct ofi_revoke *revoke);
/* Control thread: the next one that was asked for; NULL: there is none. */
struct base_list *ofi_revoke_take_asked(struct ofi_adapter *adapter);
/* Until this many is none: `going` or `bound` of some that are going on. In a callback it takes
 * some tenths of a second at most: a peer that has not answered loses its connection. */
void ofi_revoke_wait(struct ofi_adapter *adapter, const uint32_t *count);
void ofi_revoke_on_job(void *arg);   /* the adapter */
void ofi_revoke_on_timer(void *arg); /* the adapter */

/* What the stack calls the region that has this token, or had it last. */
static inline void *ofi_mr_desc(const struct ofi_mr_table *table, uint32_t token)
{
	const uint32_t index = token % OFI_MR_SLOTS;
	const struct ofi_mr_slot *slot =
		__atomic_load_n(&table->chunks[index / OFI_MR_CHUNK], __ATOMIC_ACQUIRE);

	return slot == NULL ? NULL
	                    : __atomic_load_n(&slot[index % OFI_MR_CHUNK].desc, __ATOMIC_RELAXED);
}

/* May [buffer, +length) be used under this token? */
static inline bool ofi_mr_allows(const struct ofi_mr_table *table, const void *buffer,
                                 size_t length, uint32_t token, uint32_t right)
{
	const uint32_t index = token % OFI_MR_SLOTS;
	const struct ofi_mr_slot *slot =
		__atomic_load_n(&table->chunks[index / OFI_MR_CHUNK], __ATOMIC_ACQUIRE);
	uintptr_t start;
	size_t size;

	if (slot == NULL || token == 0)
		return false;
	slot += index % OFI_MR_CHUNK;
	if (__atomic_load_n(&slot->token, __ATOMIC_ACQUIRE) != token)
		return false;
	start = __atomic_load_n(&slot->start, __ATOMIC_RELAXED);
	size = __atomic_load_n(&slot->length, __ATOMIC_RELAXED);
	return (__atomic_load_n(&slot->rights, __ATOMIC_RELAXED) & right) == right &&
	       (uintptr_t)buffer >= start && (uintptr_t)buffer - start <= size &&
	       size - ((uintptr_t)buffer - start) >= length;
}

#endif
