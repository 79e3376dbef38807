/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lane over UCX's own TCP, by tagged messages. UCX promises less than NDX does: a send ends when
 * its memory may be used again, and a message that finds no receive is kept until there is one.
 */
#include <ifaddrs.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "lane.h"
#include "ucx.h"

#define SLEEP_MS 5000
#define TAG 1u
#define TAG_MASK UINT64_MAX

struct ucx_end;

/* A receive that is posted. */
struct ucx_receive {
	struct ucx_end *end;
	void *request; /* NULL: it is free */
};

struct ucx_end {
	struct end base;
	const struct ucx_calls *ucx;
	ucp_context_h context;
	ucp_worker_h worker;
	ucp_ep_h ep;
	int fd;
	uint32_t size;
	uint32_t under_way; /* sends */
	char *memory;       /* what is sent, then what is received */
	unsigned out_turn;
	unsigned in_turn;
	uint32_t depth;
	struct ucx_receive *receives;
	struct ucx_receive **free; /* those that are not posted, */
	uint32_t free_count;       /* so many */
};

struct ucx_lane {
	struct lane base;
	struct ucx_calls ucx;
	struct ucx_end ends[2];
};

static struct ucx_end *of(struct end *end)
{
	return (struct ucx_end *)(void *)end;
}

static void must(const struct ucx_calls *ucx, const char *call, ucs_status_t status)
{
	if (status != UCS_OK)
		lane_die(call, ucx->status_string(status));
}

/* A request, or NULL: what was asked for is done. */
static void *must_begin(const struct ucx_calls *ucx, const char *call, ucs_status_ptr_t request)
{
	if (UCS_PTR_IS_ERR(request))
		lane_die(call, ucx->status_string(UCS_PTR_STATUS(request)));
	return request;
}

/* ---- messages ---- */

static void on_received(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info,
                        void *arg)
{
	struct ucx_receive *receive = arg;
	struct ucx_end *end = receive->end;

	receive->request = NULL;
	end->free[end->free_count++] = receive;
	end->ucx->request_free(request);
	/* as the lane closes */
	if (status == UCS_ERR_CANCELED)
		return;
	must(end->ucx, "ucp_tag_recv_nbx", status);
	if (info->length != end->size)
		lane_die("a message", "has another length than it was sent with");
	end->base.received++;
}

static void end_receive(struct end *base)
{
	struct ucx_end *end = of(base);
	struct ucx_receive *receive = end->free[end->free_count - 1];
	char *in = lane_turn(end->memory + end->size + LANE_LINE, &end->in_turn);
	const ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
	                                                   UCP_OP_ATTR_FIELD_USER_DATA,
	                                   .cb.recv = on_received,
	                                   .user_data = receive};
	void *request = must_begin(
		end->ucx, "ucp_tag_recv_nbx",
		end->ucx->tag_recv_nbx(end->worker, in, end->size, TAG, TAG_MASK, &param));

	/* The message had come before. UCX does not call back then, and 1.13 does not fill in a
	 * length that it was asked for; a message that is too long would have failed. */
	if (request == NULL) {
		base->received++;
		return;
	}
	receive->request = request;
	end->free_count--;
}

static void on_sent(void *request, ucs_status_t status, void *arg)
{
	struct ucx_end *end = arg;

	end->ucx->request_free(request);
	must(end->ucx, "ucp_tag_send_nbx", status);
	end->under_way--;
	end->base.sent++;
}

static bool end_send(struct end *base)
{
	struct ucx_end *end = of(base);
	const ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
	                                                   UCP_OP_ATTR_FIELD_USER_DATA,
	                                   .cb.send = on_sent,
	                                   .user_data = end};
	const char *out;

	if (end->under_way == LANE_WINDOW)
		return false;
	out = lane_turn(end->memory, &end->out_turn);
	if (must_begin(end->ucx, "ucp_tag_send_nbx",
	               end->ucx->tag_send_nbx(end->ep, out, end->size, TAG, &param)) == NULL)
		base->sent++;
	else
		end->under_way++;
	return true;
}

static void end_poll(struct end *base)
{
	struct ucx_end *end = of(base);

	(void)end->ucx->worker_progress(end->worker);
}

static void end_wait(struct end *base)
{
	struct ucx_end *end = of(base);
	struct pollfd p = {.fd = end->fd, .events = POLLIN};
	const ucs_status_t status = end->ucx->worker_arm(end->worker);

	/* There is something to take. */
	if (status == UCS_ERR_BUSY)
		return;
	must(end->ucx, "ucp_worker_arm", status);
	if (poll(&p, 1, SLEEP_MS) == 0)
		lane_die("ucx: nothing came for", "five seconds");
}

static const struct end_ops ops = {
	.receive = end_receive, .send = end_send, .poll = end_poll, .wait = end_wait};

/* ---- life ---- */

static bool is_same_host(const struct sockaddr *a, const struct sockaddr *b)
{
	if (a == NULL || a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)(const void *)b)->sin_addr.s_addr;
	return a->sa_family == AF_INET6 &&
	       memcmp(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr,
	              &((const struct sockaddr_in6 *)(const void *)b)->sin6_addr,
	              sizeof(struct in6_addr)) == 0;
}

/* The interface that has the address; free() frees it. UCX is told interfaces, not addresses. */
static char *interface_of(const struct sockaddr *address)
{
	struct ifaddrs *list;
	char *name = NULL;

	if (getifaddrs(&list) != 0)
		lane_die("ucx: getifaddrs", "the interfaces cannot be listed");
	for (const struct ifaddrs *i = list; i != NULL && name == NULL; i = i->ifa_next) {
		if (is_same_host(i->ifa_addr, address))
			name = strdup(i->ifa_name);
	}
	freeifaddrs(list);
	if (name == NULL)
		lane_die("ucx", "no interface has the adapter's address");
	return name;
}

static void open_context(struct ucx_end *end, const struct lane_attr *attr, const char *interface)
{
	const struct ucx_calls *ucx = end->ucx;
	/* Waking up may cost those that poll. */
	const ucp_params_t params = {
		.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS,
		.features = UCP_FEATURE_TAG | (attr->wait ? UCP_FEATURE_WAKEUP : 0),
		.estimated_num_eps = 1};
	ucp_config_t *config;

	must(ucx, "ucp_config_read", ucx->config_read(NULL, NULL, &config));
	/* Both ends are in one process: UCX would choose shared memory. */
	must(ucx, "ucp_config_modify(TLS)", ucx->config_modify(config, "TLS", "tcp"));
	must(ucx, "ucp_config_modify(NET_DEVICES)",
	     ucx->config_modify(config, "NET_DEVICES", interface));
	must(ucx, "ucp_init",
	     ucx->init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &end->context));
	ucx->config_release(config);
}

static void open_end(struct ucx_end *end, const struct lane_attr *attr, const char *interface)
{
	/* The end is opened by one thread and used by another, one at a time. */
	const ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
	                                    .thread_mode = UCS_THREAD_MODE_SERIALIZED};

	end->base.ops = &ops;
	end->size = attr->size;
	end->depth = attr->depth;
	end->memory = lane_memory(2 * ((size_t)attr->size + LANE_LINE));
	end->receives = calloc(attr->depth, sizeof(*end->receives));
	end->free = calloc(attr->depth, sizeof(struct ucx_receive *));
	if (end->receives == NULL || end->free == NULL)
		lane_die("no memory", "for receives");
	open_context(end, attr, interface);
	must(end->ucx, "ucp_worker_create",
	     end->ucx->worker_create(end->context, &params, &end->worker));
	if (attr->wait)
		must(end->ucx, "ucp_worker_get_efd",
		     end->ucx->worker_get_efd(end->worker, &end->fd));
	for (uint32_t i = 0; i < attr->depth; i++) {
		end->receives[i].end = end;
		end->free[end->free_count++] = &end->receives[i];
	}
	while (end->free_count > 0)
		end_receive(&end->base);
}

static void connect_end(struct ucx_end *end, const struct ucx_end *peer)
{
	const struct ucx_calls *ucx = end->ucx;
	ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
	ucp_address_t *address;
	size_t len;

	must(ucx, "ucp_worker_get_address", ucx->worker_get_address(peer->worker, &address, &len));
	params.address = address;
	must(ucx, "ucp_ep_create", ucx->ep_create(end->worker, &params, &end->ep));
	ucx->worker_release_address(peer->worker, address);
}

/* The same request of both ends, until both are done: each may need the other. */
static void finish_both(struct ucx_lane *lane, const char *call, void *requests[2])
{
	const struct ucx_calls *ucx = &lane->ucx;

	for (int i = 0; i < 2; i++) {
		ucs_status_t status = UCS_OK;

		while (must_begin(ucx, call, requests[i]) != NULL &&
		       (status = ucx->request_check_status(requests[i])) == UCS_INPROGRESS) {
			(void)ucx->worker_progress(lane->ends[0].worker);
			(void)ucx->worker_progress(lane->ends[1].worker);
		}
		must(ucx, call, status);
		if (requests[i] != NULL)
			ucx->request_free(requests[i]);
	}
}

/* UCX connects at the first message. */
static void flush_both(struct ucx_lane *lane)
{
	const ucp_request_param_t param = {0};
	void *requests[2];

	for (int i = 0; i < 2; i++)
		requests[i] = lane->ucx.ep_flush_nbx(lane->ends[i].ep, &param);
	finish_both(lane, "ucp_ep_flush_nbx", requests);
}

static void cancel_receives(struct ucx_end *end)
{
	for (uint32_t i = 0; i < end->depth; i++) {
		if (end->receives[i].request != NULL)
			end->ucx->request_cancel(end->worker, end->receives[i].request);
	}
	while (end->free_count < end->depth)
		(void)end->ucx->worker_progress(end->worker);
}

static void close_lane(struct lane *base)
{
	struct ucx_lane *lane = (struct ucx_lane *)(void *)base;
	const ucp_request_param_t param = {0};
	void *requests[2];

	/* Nothing is under way when an end goes: the other one would see a failure. */
	flush_both(lane);
	for (int i = 0; i < 2; i++)
		cancel_receives(&lane->ends[i]);
	for (int i = 0; i < 2; i++)
		requests[i] = lane->ucx.ep_close_nbx(lane->ends[i].ep, &param);
	finish_both(lane, "ucp_ep_close_nbx", requests);
	for (int i = 0; i < 2; i++) {
		struct ucx_end *end = &lane->ends[i];

		lane->ucx.worker_destroy(end->worker);
		lane->ucx.cleanup(end->context);
		free(end->receives);
		free(end->free);
		free(end->memory);
	}
	ucx_unload(&lane->ucx);
	free(lane);
}

struct lane *lane_open_ucx(const struct lane_attr *attr, const struct sockaddr *address)
{
	struct ucx_lane *lane = calloc(1, sizeof(*lane));
	char *interface = interface_of(address);

	if (lane == NULL)
		lane_die("no memory", "for a connection");
	ucx_load(&lane->ucx);
	lane->base.name = "ucx";
	lane->base.close = close_lane;
	for (int i = 0; i < 2; i++) {
		lane->base.ends[i] = &lane->ends[i].base;
		lane->ends[i].ucx = &lane->ucx;
		open_end(&lane->ends[i], attr, interface);
	}
	free(interface);
	for (int i = 0; i < 2; i++)
		connect_end(&lane->ends[i], &lane->ends[1 - i]);
	flush_both(lane);
	return &lane->base;
}

bool lane_has_ucx(void)
{
	return true;
}
