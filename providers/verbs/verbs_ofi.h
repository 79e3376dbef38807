/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection whose peer is on ofi:verbs, that is, on libfabric. Such a peer cannot find this
 * end's data in rdma_cm's, posts a receive for this end's first message, sends a message only with
 * a credit, and disconnects only when both ends have said goodbye. So this end follows the protocol
 * of ofi:verbs (ofi_verbs.h) with it. This end's own requests may wait for receives in the device,
 * so this end may have to disconnect without a goodbye; its flag NDXP_RC_IS_VERBS says so.
 *
 * A queue pair with a shared receive queue cannot follow: the peer's first message needs a receive
 * of this connection, and a shared receive belongs to no connection.
 */
#ifndef VERBS_VERBS_OFI_H
#define VERBS_VERBS_OFI_H

#include <ndx/spi/rc_wire.h>
#include "verbs_conn.h"

#define VERBS_OFI_NO_SRQ                                                                     \
	"the peer is on ofi:verbs, which cannot talk to a queue pair with a shared receive " \
	"queue; use verbs at both ends"

struct verbs_ofi {
	struct verbs_req first; /* the receive for the peer's first message */
	uint8_t *area;          /* registered; the peer writes into the fields at its start */
	struct ibv_mr *mr;
	struct ndxp_timer look;
	uint32_t look_ms;
	bool ready;        /* passive side: READY has come, ... */
	bool established;  /* ... and rdma_cm has reported the connection */
	bool goodbye_done; /* the peer has this end's goodbye */
	uint64_t cut_ns;   /* 0, or until when a peer that has disconnected may have had a cause */
	bool leaving;      /* the peer closes its queue pair, and waits for this end's goodbye */
	/* guarded by qp->base.lock: */
	bool first_came;
	bool introduced;    /* the first message is read: the peer's region is known */
	uint32_t first_len; /* bytes of the first message */
	uint32_t key;       /* of the peer's control region, ... */
	uint64_t address;   /* ... and its address */
	uint32_t credits;   /* receives that the peer had at first */
	uint32_t depth;     /* of the peer's receive queue */
	uint32_t sent;      /* messages that this end has posted in all */
	uint32_t start;     /* index of the first receive of this connection */
	uint32_t announced; /* receives announced to the peer in all */
	bool rung;          /* the bell is posted */
};

/* ---- the connection; control thread ---- */

/* For a conn with a queue pair that is not connected yet. */
enum ndx_status verbs_ofi_open(struct verbs_conn *conn);
/* When the native queue pair has no requests any more; a no-op without a peer on ofi:verbs. */
void verbs_ofi_close(struct verbs_conn *conn);
/* Send this end's first message: READY or HELLO. 0, or errno. */
int verbs_ofi_introduce(struct verbs_conn *conn, enum ndxp_rc_first type);
/* Has the peer's first message come? Once. For a connection that has a queue pair. */
bool verbs_ofi_first_came(struct verbs_conn *conn);
/* The peer's first message has come: NULL, and *record, or a text that says what is wrong. */
const char *verbs_ofi_read_first(struct verbs_conn *conn, struct ndxp_rc_record *record);
/* Write GOODBYE, ABORTED or the bell into the peer's region. 0, or errno; EBUSY: a request of this
 * end has not ended. */
int verbs_ofi_write(struct verbs_conn *conn, enum verbs_control which);
/* Ring if the peer has a receive for the bell. */
void verbs_ofi_ring(struct verbs_conn *conn);
/* The peer's goodbye, with its flags; 0: not said, or messages that were sent before have not come.
 */
uint64_t verbs_ofi_goodbye(const struct verbs_conn *conn);
/* Has the peer written this field? */
bool verbs_ofi_has(const struct verbs_conn *conn, enum ndxp_rc_field which);

/* ---- the data path; base.lock held ---- */

/* The native queue pair takes receives from now on: post the one for the first message. 0, or
 * errno. */
int verbs_ofi_begin(struct verbs_qp *qp);
/* Tell the peer of new receives, if that is due. */
void verbs_ofi_tell_credits(struct verbs_qp *qp);
/* A completion of the receive for the first message. */
void verbs_ofi_first_done(struct verbs_qp *qp, const struct ibv_wc *wc);
/* Is this the bell? Then its receive is posted again, or canceled if the connection is over. */
bool verbs_ofi_took_bell(struct verbs_qp *qp, struct verbs_req *req, const struct ibv_wc *wc);

#endif
