/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory regions of the libfabric provider: tokens, rights, and revoking. */
#ifndef OFI_OFI_MR_H
#define OFI_OFI_MR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fi_domain.h>

#include <ndx/spi/provider.h>

#include <ndx/spi/list.h>
#include <ndx/spi/lock.h>
#include <ndx/spi/mw.h>
#include <ndx/spi/table.h>
#include "ofi_wire.h"

struct ofi_adapter;
struct ofi_mr;
struct ofi_qp;
struct ofi_tx;

#define OFI_MR_CHUNK 1024u
#define OFI_MR_CHUNKS 1024u
#define OFI_MR_SLOTS (OFI_MR_CHUNK * OFI_MR_CHUNKS)
#define OFI_MR_USES 4096u                 /* uses of a slot: all values of a token's upper bits */
#define OFI_MR_REGIONS (OFI_MR_SLOTS / 2) /* limit of regions at a time */

enum ofi_right {
	OFI_RIGHT_SOURCE = 0, /* every region may be read locally */
	OFI_RIGHT_RECEIVE = 1 << 0,
	OFI_RIGHT_SINK = 1 << 1, /* target of this side's reads */
};

/* Why a request must not use memory. */
enum ofi_denied {
	OFI_DENIED_TOKEN,   /* no region of this adapter has the token now */
	OFI_DENIED_REVOKED, /* the region was deregistered behind the post */
	OFI_DENIED_RIGHT,   /* the region or window lacks the right */
	OFI_DENIED_BOUNDS,  /* not all inside the region or window */
	OFI_DENIED_PEER,    /* the peer grants nothing by this token */
};

/* The region behind a local token. token is 0 while the slot is free. */
struct ofi_mr_slot {
	uint32_t token;
	uint32_t rights;
	uintptr_t start;
	size_t length;
	struct ofi_mr *region; /* under the lock */
	void *desc;            /* libfabric's descriptor of the region, if it has one; atomic */
	uint32_t uses;         /* tokens made from this slot; under the lock, as `next` */
	uint32_t next;         /* the next slot of the same list, if there is one */
};

/* A list of slots that are not in use. */
struct ofi_mr_slots {
	uint32_t count;
	uint32_t first; /* first and last are valid if count is not 0 */
	uint32_t last;
};

struct ofi_mr_table {
	struct ndxp_lock lock; /* guards all but lookups, and the bindings of windows */
	struct ofi_mr_slot *chunks[OFI_MR_CHUNKS];
	uint32_t used;             /* slots that were used at least once */
	uint32_t live;             /* slots in use */
	struct ofi_mr_slots begun; /* slots with tokens left */
	struct ofi_mr_slots spent; /* slots without tokens left; the first has waited longest */
};

#define OFI_KEY_BUCKETS 1024u

#define OFI_KEY_USERS_MAX 6u

/* The links whose peers know the rights of a token; no other peer uses the token. */
struct ofi_key_users {
	uint32_t count; /* OFI_KEY_USERS_MAX + 1: more links than ids */
	uint32_t ids[OFI_KEY_USERS_MAX];
};

/* The rights behind a remote token. In the adapter's table while peers may use it. */
struct ofi_key {
	struct ndxp_table_node node;
	struct ofi_grant grant; /* its token is 0: not in the table */
	uint32_t only;          /* id of the link whose peer may use it; 0: every link */
	struct ofi_key_users users;
};

struct ofi_key_table {
	struct ndxp_lock lock;
	struct ndxp_table by_token;
	struct ndxp_table_node *buckets[OFI_KEY_BUCKETS];
};

/* How long a peer that owes the answer to a SYNC may send nothing, ... */
#define OFI_STALL_MS 2000u
/* ... and how long the answer may take if the peer does send. */
#define OFI_CONFIRM_MS 60000u
/* How long a message may take to arrive in memory that is being deregistered. */
#define OFI_RECALL_MS 100u

/*
 * A registration or binding ends (ofi_revoke.c). Requests of this side that use it and that
 * libfabric has cannot be stopped: their connections are closed. For the peers' requests that use
 * it the revoke waits.
 */
struct ofi_revoke {
	struct ofi_adapter *adapter;
	struct ndxp_list node;     /* in adapter->asked, then in adapter->revokes */
	struct ndx_spi_mr *region; /* whose deregistration ends; NULL: the core waits for none */
	void (*ended)(struct ofi_revoke *revoke); /* called on the control thread; or NULL */
	uint32_t *going; /* count of the owner's revokes that have not ended; atomic, a futex */
	const uint32_t *bound;      /* NULL, or a count that falls when this revoke ends */
	bool cleared;               /* libfabric has no own request any more that names the token */
	uint64_t recall_until_ns;   /* how long messages may take to arrive in such memory */
	uint64_t hurried_ns;        /* when a callback began to wait; 0: none waits */
	uint64_t asked_ns;          /* when the round began */
	uint64_t look_ns;           /* when to check next whether the peers are alive */
	struct ofi_key_users users; /* the peers that know the token */
	uint32_t token;             /* local token; 0: no own request can name one */
	uint32_t forget;            /* remote token that peers have to forget first; 0: they have */
	struct fid_mr *mr; /* closed when peers have forgotten it; NULL: closed, or no rights */
	uint32_t round;    /* the SYNC round that every link has to reach; 0: none */
};

struct ofi_mr {
	struct ndx_spi_mr spi;
	struct ofi_adapter *adapter;
	struct fid_mr *mr; /* NULL: local only */
	struct ofi_key key;
	struct ofi_revoke *revoke; /* for the end of this registration; NULL: there is none */
	uint32_t revoking;         /* count of revokes of earlier registrations; a futex */
	struct ndxp_list windows;  /* struct ofi_mw.of_mr; guarded by adapter->regions.lock */
	uint32_t bound;            /* count of those windows; a futex */
};

/* A window is bound and unbound in the order of the queue pair's requests. The members are guarded
 * by adapter->regions.lock. */
struct ofi_mw {
	struct ndx_spi_mw spi;
	struct ofi_adapter *adapter;
	struct ndxp_mw state;  /* guarded by adapter->regions.lock, as all down to `awaited` */
	struct ofi_mr *region; /* valid while bound */
	struct fid_mr *mr;
	struct ofi_key key;
	struct ndxp_list of_mr;
	struct ndxp_list of_qp;
	bool going;   /* the binding is being revoked */
	bool awaited; /* requests wait, or have waited, for the end of the revoke */
	struct ofi_revoke revoke;
	uint32_t revoking; /* a futex */
};

void ofi_key_add(struct ofi_key_table *table, struct ofi_key *key);
/* `users`: the links whose peers know the key. A no-op for a key that is not in the table. */
void ofi_key_remove(struct ofi_key_table *table, struct ofi_key *key, struct ofi_key_users *users);
/* Does the peer of this link know the key? */
bool ofi_key_users_has(const struct ofi_key_users *users, uint32_t link_id);
/* The answer to the peer's question for a token; from now on the peer of the link knows it. */
void ofi_key_answer(struct ofi_key_table *table, uint32_t token, uint32_t link_id,
                    struct ofi_grant *out);

/* The table of local tokens (ofi_mr_table.c). A table of zeros is valid and empty. */
void ofi_mr_table_fini(struct ofi_mr_table *table);
/* The table's lock held: take a token, which has no rights yet; free a token. */
enum ndx_status ofi_mr_table_take(struct ofi_mr_table *table, uint32_t *token);
void ofi_mr_table_put(struct ofi_mr_table *table, uint32_t token);
/* The table's lock held: the slot of a token in use. */
struct ofi_mr_slot *ofi_mr_table_slot(struct ofi_mr_table *table, uint32_t token);
/* Register memory in libfabric with a random key. */
int ofi_mr_reg(struct ofi_adapter *adapter, const void *buffer, size_t length, uint64_t access,
               struct fid_mr **out, uint32_t *key);
/* libfabric's access flags for rights of the peer. */
uint64_t ofi_mr_access(uint32_t rights);
enum ndx_status ofi_mr_create(struct ndx_spi_adapter *adapter, struct ndx_spi_mr **out);
void ofi_mr_destroy(struct ndx_spi_mr *spi);
enum ndx_status ofi_mr_register(struct ndx_spi_mr *spi, void *buffer, size_t length,
                                uint32_t flags);
enum ndx_status ofi_mr_deregister(struct ndx_spi_mr *spi, bool closing);
void ofi_mr_wait_idle(struct ndx_spi_mr *spi);
/* adapter->regions.lock held: the region with this local token; NULL: none (any more). */
struct ofi_mr *ofi_mr_find(const struct ofi_mr_table *table, uint32_t token);

enum ndx_status ofi_mw_create(struct ndx_spi_adapter *adapter, struct ndx_spi_mw **out);
void ofi_mw_destroy(struct ndx_spi_mw *spi);
/* Entry points of the data path. */
enum ndx_status ofi_mw_bind(struct ndx_qp *handle, void *context, struct ndx_mr *mr,
                            struct ndx_mw *mw, void *buffer, size_t length, uint32_t flags);
enum ndx_status ofi_mw_invalidate(struct ndx_qp *handle, void *context, struct ndx_mw *mw,
                                  uint32_t flags);
/* The queue pair's lock held: run a bind or invalidate whose turn has come. False: not finished, or
 * the queue pair is broken. */
bool ofi_mw_run(struct ofi_qp *qp, struct ofi_tx *tx);
/* The queue pair's lock held: the request ends without having run. A no-op for other types. */
void ofi_mw_skip(struct ofi_tx *tx);
/* The queue pair's lock held: a bind or invalidate was posted. */
void ofi_mw_plan(struct ofi_mw *mw, struct ofi_tx *tx);
/* The queue pair's lock held: the bind or invalidate ends. */
void ofi_mw_run_out(struct ofi_tx *tx);
/* adapter->regions.lock held: begin to end the binding, unless that has begun. */
void ofi_mw_revoke(struct ofi_mw *mw);
/* The queue pair is destroyed: end the bindings that were made through it. */
void ofi_mw_leave_qp(struct ofi_qp *qp);

/* Begin a revoke whose tokens are removed already. NDX_OK, or NDX_PENDING if the revoke ends later
 * and reports the end of the deregistration of `region`. */
enum ndx_status ofi_revoke(struct ofi_revoke *revoke);
/* The same where the device stops all access when the key is closed. */
enum ndx_status ofi_revoke_native(struct ofi_revoke *revoke);
/* The same for a token that no own request can name; the revoke ends later. */
void ofi_revoke_begin(struct ofi_revoke *revoke);
/* Control thread: the next revoke that was asked for; NULL: none. */
struct ndxp_list *ofi_revoke_take_asked(struct ofi_adapter *adapter);
/* Wait until *count is 0: `going` or `bound` of revokes in progress. In a callback the wait takes
 * some tenths of a second at most: a peer that has not answered loses its connection. */
void ofi_revoke_wait(struct ofi_adapter *adapter, const uint32_t *count);
void ofi_revoke_on_job(void *arg);   /* `arg` is the adapter */
void ofi_revoke_on_timer(void *arg); /* `arg` is the adapter */

/* libfabric's descriptor of the region that has this token, or had it last. */
static inline void *ofi_mr_desc(const struct ofi_mr_table *table, uint32_t token)
{
	const uint32_t index = token % OFI_MR_SLOTS;
	const struct ofi_mr_slot *slot =
		__atomic_load_n(&table->chunks[index / OFI_MR_CHUNK], __ATOMIC_ACQUIRE);

	return slot == NULL ? NULL
	                    : __atomic_load_n(&slot[index % OFI_MR_CHUNK].desc, __ATOMIC_RELAXED);
}

/* Which check has failed where ofi_mr_allows() says no. */
enum ofi_denied ofi_mr_denied(const struct ofi_mr_table *table, uint32_t token, uint32_t right);

/* Does the token grant `right` on [buffer, +length)? */
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
