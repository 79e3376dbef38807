/* SPDX-License-Identifier: BSD-2-Clause */
/* Listeners: queues of requests and of connectors that wait for a request, first in, first out. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/log.h>
#include <ndx/spi/sockaddr.h>
#include "base_loop.h"
#include "connection.h"

#define STALE_LOOKS 16u /* how many waiting requests one arrival at a full backlog checks */

static void listener_work(void *arg);

enum ndx_status listener_create(struct ndx_adapter *adapter, struct ndx_listener **out)
{
	struct ndx_listener *l;
	enum ndx_status st;

	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a listener");
	l->adapter = adapter;
	l->work = (struct ndxp_job){.fn = listener_work, .arg = l};
	l->requests_end = &l->requests;
	l->hand = &l->requests;
	l->inbox_end = &l->inbox;
	ndxp_list_init(&l->wanted);
	adapter_lock(adapter);
	st = adapter->ops->listener_create(adapter->native, l, &l->native);
	if (st == NDX_OK) {
		l->native->front = l;
		l->native->native = adapter->native;
		adapter->refs++;
		adapter->handles++;
		l->id = stats_count_new(adapter, CORE_LISTENER);
		ndxp_list_add(&adapter->listeners, &l->node);
	}
	adapter_unlock(adapter);
	if (st != NDX_OK) {
		free(l);
		return st;
	}
	*out = l;
	return NDX_OK;
}

enum ndx_status listener_bind(struct ndx_listener *l, const struct sockaddr *address,
                              socklen_t address_len)
{
	enum ndx_status st;

	adapter_lock(l->adapter);
	if (l->bound)
		st = fail(NDX_E_ADDRESS_ALREADY_ASSOCIATED, 0,
		          "ndx_listener_bind: the listener is bound already");
	else
		st = l->adapter->ops->listener_bind(l->native, address, address_len);
	if (st == NDX_OK)
		l->bound = true;
	adapter_unlock(l->adapter);
	return st;
}

struct listen_call {
	struct ndx_listener *l;
	uint32_t backlog;
	enum ndx_status status;
	struct error_capture said;
};

static void listen_on_loop(void *arg)
{
	struct listen_call *call = arg;
	struct ndx_listener *l = call->l;

	error_capture_begin();
	adapter_lock(l->adapter);
	if (!l->bound || l->listening) {
		call->status = fail(NDX_E_INVALID_DEVICE_STATE, 0,
		                    "ndx_listener_listen: the listener is %s",
		                    l->bound ? "listening already" : "not bound; bind it first");
	} else {
		l->backlog = call->backlog;
		call->status = l->adapter->ops->listener_listen(l->native, call->backlog);
		l->listening = call->status == NDX_OK;
	}
	if (call->status == NDX_OK && ndxp_log_enabled(NDX_LOG_INFO)) {
		char text[NDXP_SOCKADDR_TEXT];

		log_info("listener#%u: listening on %s", l->id,
		         ndxp_sockaddr_text(&l->native->local, text));
	}
	adapter_unlock(l->adapter);
	error_capture_end(&call->said);
}

enum ndx_status listener_listen(struct ndx_listener *l, uint32_t backlog)
{
	struct listen_call call = {.l = l, .backlog = backlog};

	ndxp_loop_call(l->adapter->loop, listen_on_loop, &call);
	return error_capture_restore(call.status, &call.said);
}

enum ndx_status listener_get_local_address(struct ndx_listener *l, struct sockaddr *address,
                                           socklen_t *length)
{
	enum ndx_status st;

	adapter_lock(l->adapter);
	if (!l->listening)
		st = fail(NDX_E_INVALID_DEVICE_STATE, 0,
		          "ndx_listener_get_local_address: not listening");
	else
		st = ndxp_sockaddr_copy_out("ndx_listener_get_local_address", &l->native->local,
		                            address, length);
	adapter_unlock(l->adapter);
	return st;
}

void listener_forget(struct ndx_connector *c)
{
	ndxp_list_remove(&c->wanted);
	c->listener = NULL;
	conn_enter(c, CONN_NEW, "CANCEL", &conn_canceled);
}

void listener_request(struct ndx_spi_request *request)
{
	struct ndx_listener *l = request->listener->front;

	request->next = NULL;
	request->native = l->native->native;
	ndxp_lock_acquire(&l->inbox_lock);
	*l->inbox_end = request;
	l->inbox_end = &request->next;
	ndxp_lock_release(&l->inbox_lock);
	ndxp_loop_post(l->adapter->loop, &l->work);
}

void listener_failed(struct ndx_spi_listener *native, enum ndx_status status, int32_t cause)
{
	struct ndx_listener *l = native->front;

	ndxp_lock_acquire(&l->inbox_lock);
	l->failed = status;
	l->failed_native = cause;
	ndxp_lock_release(&l->inbox_lock);
	ndxp_loop_post(l->adapter->loop, &l->work);
}

static enum ndx_status get_failure(struct ndx_listener *l, int32_t *native)
{
	enum ndx_status st;

	ndxp_lock_acquire(&l->inbox_lock);
	st = l->failed;
	*native = l->failed_native;
	ndxp_lock_release(&l->inbox_lock);
	return st;
}

static struct ndx_spi_request *take_inbox(struct ndx_listener *l)
{
	struct ndx_spi_request *all;

	ndxp_lock_acquire(&l->inbox_lock);
	all = l->inbox;
	l->inbox = NULL;
	l->inbox_end = &l->inbox;
	ndxp_lock_release(&l->inbox_lock);
	return all;
}

static bool is_full(const struct ndx_listener *l)
{
	return l->backlog != 0 && l->waiting >= l->backlog && ndxp_list_empty(&l->wanted);
}

/* Remove the request to which the link `at` points. */
static struct ndx_spi_request *take_request(struct ndx_listener *l, struct ndx_spi_request **at)
{
	struct ndx_spi_request *request = *at;

	*at = request->next;
	if (l->requests_end == &request->next)
		l->requests_end = at;
	if (l->hand == &request->next)
		l->hand = at;
	l->waiting--;
	return request;
}

/* Lock held, control thread: drop requests whose active side has given up. The provider asks its
 * stack about each, so one arrival checks only a few; the next arrival continues from there. */
static void drop_stale(struct ndx_listener *l)
{
	const struct ndx_provider_ops *ops = l->adapter->ops;
	const uint32_t most = l->waiting < STALE_LOOKS ? l->waiting : STALE_LOOKS;

	if (ops->request_is_stale == NULL)
		return;
	for (uint32_t i = 0; i < most && is_full(l); i++) {
		struct ndx_spi_request **at = *l->hand != NULL ? l->hand : &l->requests;

		if (*at == NULL)
			return;
		l->hand = &(*at)->next;
		if (ops->request_is_stale(*at)) {
			l->adapter->stats.requests_refused++;
			ops->request_refuse(take_request(l, at));
		}
	}
}

/* Lock held, control thread. */
static void enqueue(struct ndx_listener *l, struct ndx_spi_request *request)
{
	char text[NDXP_SOCKADDR_TEXT];

	l->adapter->stats.requests++;
	if (is_full(l))
		drop_stale(l);
	if (is_full(l)) {
		log_warn(0, "listener#%u: request of %s refused: the backlog of %u is full", l->id,
		         ndxp_sockaddr_text(&request->peer, text), l->backlog);
		l->adapter->stats.requests_refused++;
		l->adapter->ops->request_refuse(request);
		return;
	}
	request->next = NULL;
	*l->requests_end = request;
	l->requests_end = &request->next;
	l->waiting++;
}

static void give_request(struct ndx_listener *l, struct ndx_connector *c,
                         struct ndx_spi_request *request)
{
	c->listener = NULL;
	c->passive = true;
	c->peer = request->params;
	c->peer_known = true;
	/* Until accept changes the limits, offer all that the adapter can serve. */
	conn_set_wishes(c, UINT32_MAX, UINT32_MAX, NULL, 0);
	conn_agree(c);
	c->native->local = request->local;
	c->native->peer = request->peer;
	conn_note_local(c);
	conn_enter(c, CONN_HAVE_REQUEST, "REQUEST", &conn_fine);
	l->adapter->ops->conn_take(c->native, request);
	if (c->rendezvous.on)
		conn_rendezvous_accept(c);
	else
		conn_complete_ov(c, &c->ov, NDX_OK, 0, 0);
}

static void give_first_request(struct ndx_listener *l, struct ndx_connector *c)
{
	give_request(l, c, take_request(l, &l->requests));
}

/* Give each request to the connector with its cookie, if that connector is ready. */
static void match_rendezvous(struct ndx_listener *l)
{
	struct ndx_spi_request **at = &l->requests;

	while (*at != NULL) {
		struct ndx_spi_request *request = *at;
		struct ndx_connector *c = NULL;

		if (!conn_rendezvous_find(l->adapter, request, &c)) {
			l->adapter->stats.requests_refused++;
			log_warn(0, "listener#%u: request refused: no cookie that is known here",
			         l->id);
			l->adapter->ops->request_refuse(take_request(l, at));
		} else if (c != NULL) {
			give_request(l, c, take_request(l, at));
		} else {
			at = &request->next;
		}
	}
}

void listener_set_rendezvous(struct ndx_listener *l)
{
	adapter_lock(l->adapter);
	l->rendezvous = true;
	l->adapter->handles--; /* the library's own: closing the adapter does not wait for it */
	adapter_unlock(l->adapter);
}

struct ndx_listener *listener_find_rendezvous(const struct ndx_adapter *adapter,
                                              const struct sockaddr_storage *address)
{
	for (struct ndxp_list *n = adapter->listeners.next; n != &adapter->listeners; n = n->next) {
		struct ndx_listener *l = container_of(n, struct ndx_listener, node);

		if (l->rendezvous &&
		    (address == NULL || ndxp_sockaddr_same_host(&l->native->local, address)))
			return l;
	}
	return NULL;
}

/* Lock held, control thread. */
static void match(struct ndx_listener *l)
{
	for (struct ndx_spi_request *r = take_inbox(l), *next; r != NULL; r = next) {
		next = r->next;
		enqueue(l, r);
		while (!l->rendezvous && l->requests != NULL && !ndxp_list_empty(&l->wanted))
			give_first_request(l, container_of(ndxp_list_take(&l->wanted),
			                                   struct ndx_connector, wanted));
	}
	if (l->rendezvous)
		match_rendezvous(l);
	while (l->requests != NULL && !ndxp_list_empty(&l->wanted))
		give_first_request(
			l, container_of(ndxp_list_take(&l->wanted), struct ndx_connector, wanted));
}

/* Lock held, control thread: fail the connectors that wait, because no request will come. */
static void fail_wanted(struct ndx_listener *l)
{
	struct conn_result result = {.cause = "the listener has failed"};

	result.status = get_failure(l, &result.native);
	while (result.status != NDX_OK && !ndxp_list_empty(&l->wanted)) {
		struct ndx_connector *c =
			container_of(ndxp_list_take(&l->wanted), struct ndx_connector, wanted);

		c->listener = NULL;
		conn_enter(c, CONN_FAILED, "FAILURE", &result);
		conn_complete_ov(c, &c->ov, result.status, 0, result.native);
	}
}

static void listener_work(void *arg)
{
	struct ndx_listener *l = arg;

	adapter_lock(l->adapter);
	if (!l->dead) {
		match(l);
		fail_wanted(l);
	}
	adapter_unlock(l->adapter);
}

static void cancel_wanted(struct ndx_listener *l)
{
	base_loop_hurry(l->adapter->loop, core_whose(0, UINT32_MAX), core_whose(0, l->id));
	while (!ndxp_list_empty(&l->wanted)) {
		struct ndx_connector *c =
			container_of(l->wanted.next, struct ndx_connector, wanted);

		listener_forget(c);
		conn_complete_ov(c, &c->ov, NDX_E_CANCELED, 0, 0);
	}
}

static void cancel_on_loop(void *arg)
{
	struct ndx_listener *l = arg;

	adapter_lock(l->adapter);
	cancel_wanted(l);
	adapter_unlock(l->adapter);
}

void listener_cancel(struct ndx_listener *l)
{
	ndxp_loop_call(l->adapter->loop, cancel_on_loop, l);
}

static void refuse_all(struct ndx_listener *l, struct ndx_spi_request *request)
{
	while (request != NULL) {
		struct ndx_spi_request *next = request->next;

		l->adapter->stats.requests_refused++;
		l->adapter->ops->request_refuse(request);
		request = next;
	}
}

static void free_listener(void *arg)
{
	struct ndx_listener *l = arg;
	struct ndx_adapter *adapter = l->adapter;

	free(l);
	adapter_put(adapter, false);
}

static void close_on_loop(void *arg)
{
	struct ndx_listener *l = arg;
	struct ndx_adapter *adapter = l->adapter;
	struct ndx_spi_request *late;

	adapter_lock(adapter);
	cancel_wanted(l);
	l->dead = true;
	/* Until listener_destroy() returns, another thread may add requests: they must be rejected,
	 * too. */
	adapter->ops->listener_destroy(l->native);
	refuse_all(l, l->requests);
	late = take_inbox(l);
	for (struct ndx_spi_request *r = late; r != NULL; r = r->next)
		adapter->stats.requests++;
	refuse_all(l, late);
	ndxp_list_remove(&l->node);
	stats_count_gone(adapter, CORE_LISTENER, NULL);
	if (!l->rendezvous)
		adapter->handles--;
	/* After a work job that may be queued. */
	l->last = (struct ndxp_job){.fn = free_listener, .arg = l};
	ndxp_loop_post(adapter->loop, &l->last);
	adapter_unlock(adapter);
}

void listener_close(struct ndx_listener *l)
{
	ndxp_loop_call(l->adapter->loop, close_on_loop, l);
}

void listener_look(struct ndxp_list *node, struct listener_view *view)
{
	const struct ndx_listener *l = container_of(node, struct ndx_listener, node);

	*view = (struct listener_view){
		.id = l->id,
		.local = l->native->local,
		.listening = l->listening,
		.backlog = l->backlog,
		.waiting = l->waiting,
	};
	for (const struct ndxp_list *n = l->wanted.next; n != &l->wanted; n = n->next)
		view->wanted++;
}
