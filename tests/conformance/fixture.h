/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two sides and a connection between them. Everything that pair_open() made is closed by the runner
 * when the case is over, in whatever state it is; a case that closes an object itself uses the
 * functions here, so that nothing is closed twice.
 */
#ifndef FIXTURE_H
#define FIXTURE_H

#include "check.h"
#include "world.h"

enum { SIDE_TAGS = 8192 };

struct side_attr {
	struct ndx_adapter *adapter; /* NULL: that of the side's place */
	struct ndx_cq *cq;           /* NULL: an own one; otherwise another pair's */
	struct ndx_srq *srq;
	uint32_t receive_depth;
	uint32_t initiator_depth;
	uint32_t receive_sge;
	uint32_t initiator_sge;
	uint32_t inline_size;
	uint32_t no_receive_timeout_ms; /* 0: the library's default */
	uint32_t keepalive_ms;
	uint32_t cq_depth; /* 0: enough for both queues */
	bool separate_cqs; /* one for receives, one for the rest */
	uint32_t inbound_reads;
	uint32_t outbound_reads;
	uint32_t drain_ms; /* 0: the library's default, as the next two */
	uint32_t disconnect_ms;
	uint32_t connect_ms;
	size_t buffer; /* bytes, registered */
	uint32_t access;
	int family; /* AF_UNSPEC: the adapter's first address */
};

struct side {
	struct check *c;
	const char *name; /* "A", "B" */
	struct side_attr attr;
	const struct place *place;
	struct ndx_adapter *adapter;
	struct ndx_cq *cq;  /* initiator, and receive unless separate */
	struct ndx_cq *rcq; /* receive */
	struct ndx_qp *qp;
	struct ndx_connector *conn;
	struct ndx_mr *mr;
	uint8_t *buf;
	struct ndx_overlapped ov;     /* connect, accept, complete_connect, request */
	struct ndx_overlapped notify; /* notify_disconnect */
	struct ndx_overlapped disc;   /* disconnect */
	struct ndx_result held[64];   /* taken, not looked at yet */
	size_t held_at;
	size_t held_count;
	char tags[SIDE_TAGS]; /* addresses that serve as request contexts */
};

struct pair {
	struct pair *next;
	struct check *c;
	struct side a; /* the active one */
	struct side b;
	struct ndx_listener *listener; /* of B, may be another pair's */
	bool own_listener;
	struct sockaddr_storage address; /* of the listener */
};

void side_attr_init(struct side_attr *attr);

/* Make one side, not connected. False, and nothing to close, if that fails. */
bool side_open(struct check *c, struct side *s, unsigned place, const struct side_attr *attr,
               const char *name);
void side_close(struct side *s);
/* Close one object now. */
void side_close_connector(struct side *s);
void side_close_qp(struct side *s);
void side_close_cqs(struct side *s);
void side_close_mr(struct side *s);
/* Instead of one that was used up. */
bool side_new_qp(struct side *s);
bool side_new_connector(struct side *s);

/*
 * Two sides, with a listener at B. `attr` NULL: defaults; `b` NULL: as A. NULL when the check is
 * over.
 */
struct pair *pair_open(struct check *c, const struct side_attr *a, const struct side_attr *b);
/* The same over the listener of another pair. */
struct pair *pair_open_on(struct pair *first, const struct side_attr *a, const struct side_attr *b);
/* `count` pairs over one listener, not connected. */
bool pairs_open(struct check *c, struct pair **pairs, size_t count, const struct side_attr *a,
                const struct side_attr *b);
/* pair_open() and pair_connect(). */
struct pair *pair_up(struct check *c, const struct side_attr *a);
struct pair *pair_up_with(struct check *c, const struct side_attr *a, const struct side_attr *b);
void pair_close_all(struct check *c);
/*
 * Instead of listening: `address` has no listener and can get none, in this process or another,
 * because B's connector is bound to it. (A port that was free a moment ago may belong to another
 * program.)
 */
bool pair_without_listener(struct pair *p);

/* A listener at a place, listening. NULL when the check is over. */
struct ndx_listener *listener_open(struct check *c, struct ndx_adapter *adapter,
                                   const struct sockaddr_storage *address, uint32_t backlog,
                                   struct sockaddr_storage *listening);

/* Steps of connecting; A's connect, B's request; A's connect done; both done. */
enum ndx_status side_connect(struct side *s, const struct sockaddr_storage *to, const void *data,
                             size_t length);
enum ndx_status side_accept(struct side *s, const void *data, size_t length);
bool pair_ask(struct pair *p);
bool pair_answer(struct pair *p);
bool pair_complete(struct pair *p);
/* All of them. */
bool pair_connect(struct pair *p);

/* Start ... on the side's own overlapped object; must be accepted. */
bool side_start_notify(struct side *s);
bool side_start_disconnect(struct side *s);
/* Disconnect and wait for it. */
bool side_disconnect(struct side *s, enum ndx_status want);
/* The indication comes and says so; where the adapter cannot tell, "unknown" will do. */
bool side_indicated(struct side *s, enum ndx_disconnect_reason want);
/* A disconnects, B sees it, B disconnects: all graceful. */
bool pair_disconnect(struct pair *p);

/* Does every adapter of the pair have the capability? */
bool has_capability(const struct side *s, uint64_t bit);

struct side *pair_other(struct pair *p, struct side *s);

#endif
