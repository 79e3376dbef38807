/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps that end later: all report to the run's port. */
#include <string.h>

#include "sweep.h"

#define POISON 4711

static struct op *new_op(struct run *r, const char *what)
{
	for (size_t i = 0; i < SWEEP_OPS; i++) {
		struct op *op = &r->ops[i];

		if (op->what != NULL)
			continue;
		op->what = what;
		op->ov.port = r->port;
		op->ov.context = op;
		op->ov.status = (enum ndx_status)POISON;
		op->ov.information = POISON;
		op->ov.native = POISON;
		return op;
	}
	sweep_wrong(r, "a script has more than %u operations", SWEEP_OPS);
	return NULL;
}

/* Returns whether to call once more; *op is NULL when it came to nothing. */
static bool begun(struct run *r, struct op **op, enum ndx_status st)
{
	struct op *o = *op;
	bool again;

	if (st == NDX_PENDING) {
		o->pending = true;
		return false;
	}
	(void)sweep_check(r,
	                  o->ov.status == (enum ndx_status)POISON && o->ov.information == POISON &&
	                          o->ov.native == POISON,
	                  "%s failed and wrote to its overlapped object", o->what);
	again = sweep_again(r, o->what, st, NDX_PENDING);
	if (!again) {
		memset(o, 0, sizeof(*o));
		*op = NULL;
	}
	return again;
}

struct op *step_register(struct side *s, void *buffer, size_t length, uint32_t flags)
{
	struct op *op = new_op(s->run, "mr_register");

	while (op != NULL &&
	       begun(s->run, &op, ndx_mr_register(s->mr, buffer, length, flags, &op->ov)))
		;
	(void)sweep_check(s->run,
	                  op != NULL || (ndx_mr_get_local_token(s->mr) == 0 &&
	                                 ndx_mr_get_remote_token(s->mr) == 0),
	                  "a region that is not registered has a token");
	return op;
}

struct op *step_deregister(struct side *s)
{
	struct op *op = new_op(s->run, "mr_deregister");

	while (op != NULL && begun(s->run, &op, ndx_mr_deregister(s->mr, &op->ov)))
		;
	return op;
}

struct op *step_connect(struct side *s, const void *data, size_t len)
{
	struct run *r = s->run;
	struct op *op = new_op(r, "connect");

	while (op != NULL &&
	       begun(r, &op,
	             ndx_connector_connect(
			     s->connector, s->qp, (const struct sockaddr *)&r->where, r->where_len,
			     &(struct ndx_connect_attr){.size = sizeof(struct ndx_connect_attr),
	                                                .private_data = data,
	                                                .private_data_len = len,
	                                                .inbound_read_limit = 3,
	                                                .outbound_read_limit = 2},
			     &op->ov)))
		;
	return op;
}

struct op *step_complete(struct side *s)
{
	struct op *op = new_op(s->run, "complete_connect");

	while (op != NULL &&
	       begun(s->run, &op, ndx_connector_complete_connect(s->connector, &op->ov)))
		;
	return op;
}

struct op *step_request(struct side *s)
{
	struct op *op = new_op(s->run, "get_connection_request");

	while (op != NULL &&
	       begun(s->run, &op,
	             ndx_listener_get_connection_request(s->listener, s->connector, &op->ov)))
		;
	return op;
}

struct op *step_accept(struct side *s, const void *data, size_t len)
{
	struct op *op = new_op(s->run, "accept");

	while (op != NULL &&
	       begun(s->run, &op,
	             ndx_connector_accept(
			     s->connector, s->qp,
			     &(struct ndx_connect_attr){.size = sizeof(struct ndx_connect_attr),
	                                                .private_data = data,
	                                                .private_data_len = len,
	                                                .inbound_read_limit = 4,
	                                                .outbound_read_limit = 1},
			     &op->ov)))
		;
	return op;
}

struct op *step_notify_disconnect(struct side *s)
{
	struct op *op = new_op(s->run, "notify_disconnect");

	while (op != NULL &&
	       begun(s->run, &op, ndx_connector_notify_disconnect(s->connector, &op->ov)))
		;
	return op;
}

struct op *step_disconnect(struct side *s)
{
	struct op *op = new_op(s->run, "disconnect");

	while (op != NULL && begun(s->run, &op, ndx_connector_disconnect(s->connector, &op->ov)))
		;
	return op;
}

struct op *step_cq_notify(struct side *s, enum ndx_cq_notify_type type)
{
	struct op *op = new_op(s->run, "cq_notify");

	while (op != NULL && begun(s->run, &op, ndx_cq_notify(s->cq, type, &op->ov)))
		;
	return op;
}

struct op *step_srq_notify(struct side *s)
{
	struct op *op = new_op(s->run, "srq_notify");

	while (op != NULL && begun(s->run, &op, ndx_srq_notify(s->srq, &op->ov)))
		;
	return op;
}

/* ---- waiting ---- */

/* Take what has ended. */
static size_t take_ended(struct run *r, uint32_t timeout_ms)
{
	struct ndx_overlapped *ovs[SWEEP_OPS];
	const size_t n = ndx_port_get(r->port, ovs, SWEEP_OPS, timeout_ms);

	for (size_t i = 0; i < n; i++) {
		struct op *op = ovs[i]->context;

		(void)sweep_check(r, op->pending, "%s completed twice", op->what);
		op->pending = false;
	}
	return n;
}

static void forget(struct op *op)
{
	memset(op, 0, sizeof(*op));
}

enum ndx_status sweep_await(struct run *r, struct op *op, const struct op *with)
{
	enum ndx_status st;

	while (op->pending) {
		if (with != NULL && with->what != NULL && !with->pending && with->ov.status < 0)
			return NDX_PENDING;
		if (take_ended(r, SWEEP_PATIENCE_MS) == 0) {
			sweep_wrong(r, "%s did not complete in %u ms", op->what, SWEEP_PATIENCE_MS);
			r->failed = true;
			return NDX_PENDING;
		}
	}
	st = op->ov.status;
	return st;
}

bool step_wait_either(struct run *r, struct op *op, enum ndx_status wanted, const struct op *with)
{
	const char *what;
	enum ndx_status st;

	if (op == NULL || r->wrong)
		return false;
	what = op->what;
	st = sweep_await(r, op, with);
	if (st == NDX_PENDING) {
		r->failed = true;
		return false;
	}
	forget(op);
	/* the call that began it cannot simply be made again: its object has moved on */
	if (st != wanted) {
		const bool repeated = r->repeated;

		r->repeated = true;
		r->failed = true;
		(void)sweep_check(r, st < 0, "%s completed %s", what, ndx_status_name(st));
		(void)sweep_check(r, faults_struck(r),
		                  "%s completed %s although nothing was made to fail", what,
		                  ndx_status_name(st));
		r->repeated = repeated;
	}
	return st == wanted;
}

bool step_wait(struct run *r, struct op *op, enum ndx_status wanted)
{
	return step_wait_either(r, op, wanted, NULL);
}

/* Everything is closed: nothing may be in flight any more. */
void sweep_settle(struct run *r)
{
	while (take_ended(r, 0) > 0)
		;
	for (size_t i = 0; i < SWEEP_OPS; i++) {
		struct op *op = &r->ops[i];

		if (op->what != NULL)
			(void)sweep_check(r, !op->pending,
			                  "%s is in flight though its object is closed", op->what);
		forget(op);
	}
}
