/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inner provider's upcalls on their way to the core: delayed, failing, or lost. Upcalls of one
 * connection keep their order; those of different connections may overtake each other.
 */
#include <stdlib.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "fault.h"

#define BITS 5 /* bits of enum ndx_spi_report */

struct upcall {
	uint64_t due; /* 0: there is none */
	enum ndx_status status;
	int32_t native;
	bool has_params;
	struct ndx_spi_params params;
};

struct fault_conn {
	struct ndxp_list node;
	struct ndx_spi_conn *conn;
	bool hurry;
	uint64_t last_due;
	struct upcall connected;
	struct upcall established;
	uint64_t bits_due[BITS];
	int32_t native;
	const char *cause;
};

struct fault_request {
	struct ndxp_list node;
	struct ndx_spi_request *request;
	uint64_t due;
};

static struct fault_adapter *of_conn(const struct ndx_spi_conn *conn)
{
	return fault_of(conn->native);
}

/* Lock held. */
static struct fault_conn *find_conn(struct fault_adapter *fa, const struct ndx_spi_conn *conn)
{
	for (struct ndxp_list *n = fa->conns.next; n != &fa->conns; n = n->next) {
		struct fault_conn *fc = container_of(n, struct fault_conn, node);

		if (fc->conn == conn)
			return fc;
	}
	return NULL;
}

/* ---- create and destroy; any thread ---- */

struct fault_conn *fault_events_new(struct fault_adapter *fa)
{
	struct fault_conn *fc = calloc(1, sizeof(*fc));

	if (fc == NULL)
		return NULL;
	ndxp_lock_acquire(&fa->lock);
	ndxp_list_add(&fa->conns, &fc->node);
	ndxp_lock_release(&fa->lock);
	return fc;
}

void fault_events_name(struct fault_adapter *fa, struct fault_conn *fc, struct ndx_spi_conn *conn)
{
	ndxp_lock_acquire(&fa->lock);
	fc->conn = conn;
	ndxp_lock_release(&fa->lock);
}

void fault_events_free(struct fault_adapter *fa, struct fault_conn *fc)
{
	ndxp_lock_acquire(&fa->lock);
	ndxp_list_remove(&fc->node);
	ndxp_lock_release(&fa->lock);
	free(fc);
}

void fault_events_drop(struct fault_adapter *fa, const struct ndx_spi_conn *conn)
{
	struct fault_conn *fc;

	ndxp_lock_acquire(&fa->lock);
	fc = find_conn(fa, conn);
	if (fc != NULL)
		ndxp_list_remove(&fc->node);
	ndxp_lock_release(&fa->lock);
	free(fc);
}

void fault_events_forget(struct fault_adapter *fa, const struct ndx_spi_conn *conn)
{
	struct fault_conn *fc;

	ndxp_lock_acquire(&fa->lock);
	fc = find_conn(fa, conn);
	if (fc != NULL) {
		fc->connected.due = 0;
		fc->established.due = 0;
		for (unsigned i = 0; i < BITS; i++)
			fc->bits_due[i] = 0;
	}
	ndxp_lock_release(&fa->lock);
}

/* ---- passing upcalls on; lock held ---- */

static bool take_due(uint64_t *due, uint64_t now, uint64_t *next)
{
	if (*due == 0)
		return false;
	if (*due > now) {
		if (*due < *next)
			*next = *due;
		return false;
	}
	*due = 0;
	return true;
}

static const struct ndx_spi_params *params_of(const struct upcall *upcall)
{
	return upcall->has_params ? &upcall->params : NULL;
}

/* Pass on the upcalls that are due at `now`; lower `next` to the time of the first that is not. */
static void pass_due(struct fault_adapter *fa, struct fault_conn *fc, uint64_t now, uint64_t *next)
{
	const bool connected = take_due(&fc->connected.due, now, next);
	const bool established = take_due(&fc->established.due, now, next);
	uint32_t bits = 0;

	for (unsigned i = 0; i < BITS; i++) {
		if (take_due(&fc->bits_due[i], now, next))
			bits |= UINT32_C(1) << i;
	}
	/* behind an upcall the consumer may look for results, so show them first */
	if (connected || established || bits != 0)
		fault_cqs_end_delay(fa);
	if (connected)
		fa->core->connected(fc->conn, fc->connected.status, fc->connected.native,
		                    params_of(&fc->connected));
	if (established)
		fa->core->established(fc->conn, fc->established.status, fc->established.native,
		                      params_of(&fc->established));
	if (bits != 0)
		fa->core->report(fc->conn, bits, fc->native, fc->cause);
}

void fault_events_hurry(struct fault_adapter *fa, const struct ndx_spi_conn *conn, bool hurry)
{
	uint64_t next = UINT64_MAX;
	struct fault_conn *fc;

	ndxp_lock_acquire(&fa->lock);
	fc = find_conn(fa, conn);
	if (fc != NULL) {
		fc->hurry = hurry;
		pass_due(fa, fc, UINT64_MAX, &next);
	}
	ndxp_lock_release(&fa->lock);
}

static uint64_t pass_requests(struct fault_adapter *fa, uint64_t now,
                              const struct ndx_spi_listener *of)
{
	uint64_t next = UINT64_MAX;
	struct ndxp_list *following;

	for (struct ndxp_list *n = fa->requests.next; n != &fa->requests; n = following) {
		struct fault_request *r = container_of(n, struct fault_request, node);

		following = n->next;
		if ((of != NULL && r->request->listener != of) || !take_due(&r->due, now, &next))
			continue;
		ndxp_list_remove(&r->node);
		fa->core->request(r->request);
		free(r);
	}
	return next;
}

void fault_events_flush_requests(struct fault_adapter *fa, const struct ndx_spi_listener *listener)
{
	ndxp_lock_acquire(&fa->lock);
	fa->dying = listener;
	(void)pass_requests(fa, UINT64_MAX, listener);
	ndxp_lock_release(&fa->lock);
}

void fault_events_listener_gone(struct fault_adapter *fa)
{
	ndxp_lock_acquire(&fa->lock);
	fa->dying = NULL;
	ndxp_lock_release(&fa->lock);
}

/* Does the core still wait for the report that the connection has ended? */
static bool delays_end(const struct fault_conn *fc)
{
	const uint32_t ends = NDX_REPORT_PEER_DISC | NDX_REPORT_ABORT;

	for (unsigned i = 0; i < BITS; i++) {
		if ((ends & UINT32_C(1) << i) && fc->bits_due[i] != 0)
			return true;
	}
	return false;
}

void fault_events_flush_ends(struct fault_adapter *fa)
{
	uint64_t next = UINT64_MAX;

	ndxp_lock_acquire(&fa->lock);
	for (struct ndxp_list *n = fa->conns.next; n != &fa->conns; n = n->next) {
		struct fault_conn *fc = container_of(n, struct fault_conn, node);

		if (delays_end(fc))
			pass_due(fa, fc, UINT64_MAX, &next);
	}
	ndxp_lock_release(&fa->lock);
}

uint64_t fault_events_tick(struct fault_adapter *fa, uint64_t now)
{
	uint64_t next;

	ndxp_lock_acquire(&fa->lock);
	next = pass_requests(fa, now, NULL);
	for (struct ndxp_list *n = fa->conns.next; n != &fa->conns; n = n->next)
		pass_due(fa, container_of(n, struct fault_conn, node), now, &next);
	ndxp_lock_release(&fa->lock);
	return next;
}

/* ---- upcalls from the inner provider; any thread, any lock of the inner provider's ---- */

/* Lock held: count an upcall. Is this the one that fault_event_drop loses? */
static bool is_lost(struct fault_adapter *fa, const char *what)
{
	if (++fa->events != fa->options.event_drop)
		return false;
	log_warn(0, "upcall %llu, %s, is lost", (unsigned long long)fa->events, what);
	return true;
}

static uint64_t due_at(struct fault_adapter *fa)
{
	const uint64_t ms = fault_random(fa, fa->options.event_delay_ms + 1u);

	return ndxp_now_ns() + ms * NDXP_NS_PER_MS;
}

/* When the next upcall of this connection is passed on: not before the upcalls ahead of it. */
static uint64_t next_due(struct fault_adapter *fa, struct fault_conn *fc)
{
	const uint64_t due = due_at(fa);

	if (due > fc->last_due)
		fc->last_due = due;
	return fc->last_due;
}

/* Lock held. Pass upcalls on, or return when the control thread has to do so. */
static uint64_t pass(struct fault_adapter *fa, struct fault_conn *fc)
{
	uint64_t next = UINT64_MAX;

	if (fa->options.event_delay_ms == 0 || fc->hurry)
		pass_due(fa, fc, UINT64_MAX, &next);
	else
		next = fc->last_due;
	return next;
}

static void store_upcall(struct upcall *upcall, uint64_t due, enum ndx_status status,
                         int32_t native, const struct ndx_spi_params *params)
{
	upcall->due = due;
	upcall->status = status;
	upcall->native = native;
	upcall->has_params = params != NULL;
	if (params != NULL)
		upcall->params = *params;
}

/* The upcall connected or established. */
static void on_answer(struct ndx_spi_conn *conn, enum fault_call call, enum ndx_status status,
                      int32_t native, const struct ndx_spi_params *params)
{
	struct fault_adapter *fa = of_conn(conn);
	const enum ndx_status st = status == NDX_OK ? fault_inject(fa, call) : NDX_OK;
	uint64_t next = UINT64_MAX;
	struct fault_conn *fc;

	if (st != NDX_OK) {
		status = st;
		params = NULL;
	}
	ndxp_lock_acquire(&fa->lock);
	fc = find_conn(fa, conn);
	if (fc != NULL && !is_lost(fa, fault_call_name(call))) {
		store_upcall(call == FAULT_CALL_connected ? &fc->connected : &fc->established,
		             next_due(fa, fc), status, native, params);
		next = pass(fa, fc);
	}
	ndxp_lock_release(&fa->lock);
	fault_wake_at(fa, next);
}

static void on_connected(struct ndx_spi_conn *conn, enum ndx_status status, int32_t native,
                         const struct ndx_spi_params *params)
{
	on_answer(conn, FAULT_CALL_connected, status, native, params);
}

static void on_established(struct ndx_spi_conn *conn, enum ndx_status status, int32_t native,
                           const struct ndx_spi_params *params)
{
	on_answer(conn, FAULT_CALL_established, status, native, params);
}

static void on_report(struct ndx_spi_conn *conn, uint32_t bits, int32_t native, const char *cause)
{
	struct fault_adapter *fa = of_conn(conn);
	uint64_t next = UINT64_MAX;
	struct fault_conn *fc;

	ndxp_lock_acquire(&fa->lock);
	fc = find_conn(fa, conn);
	if (fc != NULL && bits == 0) {
		/* only the cause of a failure that follows: the core keeps it for that one */
		fa->core->report(conn, 0, native, cause);
	} else if (fc != NULL && !is_lost(fa, "report")) {
		const uint64_t due = next_due(fa, fc);

		for (unsigned i = 0; i < BITS; i++) {
			if ((bits & (UINT32_C(1) << i)) && fc->bits_due[i] == 0)
				fc->bits_due[i] = due;
		}
		if ((bits & NDX_REPORT_ABORT) && fc->cause == NULL) {
			fc->native = native;
			fc->cause = cause;
		}
		next = pass(fa, fc);
	}
	ndxp_lock_release(&fa->lock);
	fault_wake_at(fa, next);
}

/* A request is never lost: the inner provider has handed it over, so nothing else would answer
 * it. */
static void on_request(struct ndx_spi_request *request)
{
	struct fault_adapter *fa = fault_of(request->listener->native);
	struct fault_request *r = NULL;
	uint64_t due = UINT64_MAX;

	ndxp_lock_acquire(&fa->lock);
	if (fa->options.event_delay_ms != 0 && request->listener != fa->dying)
		r = calloc(1, sizeof(*r));
	if (r != NULL) {
		due = due_at(fa);
		r->request = request;
		r->due = due;
		ndxp_list_add(&fa->requests, &r->node);
	} else {
		fa->core->request(request);
	}
	ndxp_lock_release(&fa->lock);
	fault_wake_at(fa, due);
}

void fault_events_init(struct fault_adapter *fa)
{
	fa->host = *fa->core;
	fa->host.request = on_request;
	fa->host.connected = on_connected;
	fa->host.established = on_established;
	fa->host.report = on_report;
}
