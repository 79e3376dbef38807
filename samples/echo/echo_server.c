/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * echo-server: any number of clients at once, one thread, no blocking call. The thread sleeps in
 * epoll on three descriptors: that of a port, which gets the completions of connecting and
 * disconnecting, that of the completion queue, and one for signals.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <ndx/ndx.h>

#include "sample_address.h"
#include "sample_options.h"
#include "sample_report.h"

#define WHO "echo-server"
#define SLOTS 4u
#define SLOT_SIZE 4096u

/** The operation for which the overlapped object of a guest is in use. */
enum stage { EXPECTED, ACCEPTING, WATCHED, LEAVING };

/** One client, or the place for the next one. */
struct guest {
	struct server *server;
	enum stage stage;
	struct ndx_overlapped ov; /* one operation at a time */
	struct ndx_connector *connector;
	struct ndx_qp *qp;
	struct ndx_mr *mr;
	struct guest *next;
	char memory[SLOTS][SLOT_SIZE];
};

struct server {
	struct ndx_adapter *adapter;
	struct ndx_listener *listener;
	struct ndx_cq *cq;
	struct ndx_port *port;
	int epoll, signals;
	struct guest *guests;
	uint32_t left; /* guests until the program ends; 0: no end */
	bool stop;
	uint64_t echoed;
};

/* No operation of a guest may be in flight or in the port: both would refer to freed memory. */
static void guest_free(struct guest *guest)
{
	ndx_connector_close(guest->connector);
	ndx_qp_close(guest->qp);
	ndx_mr_close(guest->mr);
	free(guest);
}

static void forget(struct server *s, struct guest *guest)
{
	struct guest **at = &s->guests;

	while (*at != guest)
		at = &(*at)->next;
	*at = guest->next;
	guest_free(guest);
}

/* Request the next client without waiting: the port reports it. */
static enum ndx_status expect_guest(struct server *s)
{
	struct guest *guest = calloc(1, sizeof(*guest));
	enum ndx_status st = NDX_E_NO_MEMORY;

	if (guest == NULL)
		return st;
	guest->server = s;
	guest->stage = EXPECTED;
	guest->ov.port = s->port;
	guest->ov.context = guest;
	st = ndx_connector_create(s->adapter, NULL, &guest->connector);
	if (st == NDX_OK)
		st = ndx_listener_get_connection_request(s->listener, guest->connector, &guest->ov);
	if (st != NDX_PENDING) {
		guest_free(guest);
		return st;
	}
	guest->next = s->guests;
	s->guests = guest;
	return st;
}

static enum ndx_status post_slot(struct guest *guest, char *slot, uint32_t length, bool send)
{
	struct ndx_sge sge = {slot, length, ndx_mr_get_local_token(guest->mr)};

	return send ? ndx_qp_send(guest->qp, slot, &sge, 1, 0)
	            : ndx_qp_receive(guest->qp, slot, &sge, 1);
}

/* Create everything that a connection needs, then accept. */
static enum ndx_status welcome(struct guest *guest)
{
	struct server *s = guest->server;
	struct ndx_qp_attr attr;
	enum ndx_status st;

	st = ndx_mr_register_new(s->adapter, guest->memory, sizeof(guest->memory),
	                         NDX_MR_ALLOW_LOCAL_WRITE, &guest->mr);
	if (st != NDX_OK)
		return st;
	ndx_qp_attr_init(&attr);
	attr.receive_cq = attr.initiator_cq = s->cq;
	attr.receive_depth = attr.initiator_depth = SLOTS;
	attr.context = guest;
	attr.keepalive_ms = 10000;
	st = ndx_qp_create(s->adapter, &attr, &guest->qp);
	for (uint32_t i = 0; i < SLOTS && st == NDX_OK; i++)
		st = post_slot(guest, guest->memory[i], SLOT_SIZE, false);
	if (st != NDX_OK)
		return st;
	guest->stage = ACCEPTING;
	return ndx_connector_accept(guest->connector, guest->qp, NULL, &guest->ov);
}

/*
 * An operation of a guest has completed: start the next one. Any result but NDX_PENDING ends the
 * guest.
 */
static enum ndx_status advance(struct guest *guest)
{
	enum stage was = guest->stage;

	if (guest->ov.status != NDX_OK || was == LEAVING)
		return NDX_OK;
	if (was == EXPECTED)
		return welcome(guest);
	guest->stage = was == ACCEPTING ? WATCHED : LEAVING;
	if (was == ACCEPTING)
		return ndx_connector_notify_disconnect(guest->connector, &guest->ov);
	return ndx_connector_disconnect(guest->connector, &guest->ov);
}

static void completed(struct server *s, struct guest *guest)
{
	bool came = guest->stage == EXPECTED && guest->ov.status == NDX_OK;
	enum ndx_status st = advance(guest);

	if (came && (s->left == 0 || --s->left > 0))
		(void)expect_guest(s);
	if (st == NDX_PENDING)
		return;
	printf(WHO ": a guest is gone: disconnect %s, end of connection: %s\n",
	       ndx_status_name(guest->ov.status),
	       ndx_disconnect_reason_name(ndx_connector_get_disconnect_reason(guest->connector)));
	forget(s, guest);
}

/* Send back what was received; a completed send frees its slot for the next receive. */
static void echo(struct server *s, const struct ndx_result *result)
{
	struct guest *guest = result->queue_pair_context;
	bool received = result->request_type == NDX_REQUEST_RECEIVE;

	if (result->status != NDX_OK)
		return; /* the port reports the end of the connection */
	s->echoed += received;
	(void)post_slot(guest, result->request_context,
	                received ? result->bytes_transferred : SLOT_SIZE, received);
}

/*
 * Take all results, then arm: a result that comes in between fires the notification at once, see
 * ndx_cq_notify().
 */
static void take_results(struct server *s)
{
	struct ndx_result results[16];
	size_t got;

	do {
		got = ndx_cq_get_results(s->cq, results, 16);
		for (size_t i = 0; i < got; i++)
			echo(s, &results[i]);
	} while (got == 16);
	(void)ndx_cq_notify(s->cq, NDX_CQ_NOTIFY_ANY, NULL);
}

static void take_completions(struct server *s)
{
	struct ndx_overlapped *ovs[16];
	size_t got = ndx_port_get(s->port, ovs, 16, 0);

	/*
	 * The queue may still hold results of a guest that leaves: take them before the guest is
	 * freed.
	 */
	take_results(s);
	for (size_t i = 0; i < got; i++)
		completed(s, ovs[i]->context);
}

static int watch(struct server *s, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data = {.fd = fd}};

	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event);
}

static int prepare_epoll(struct server *s)
{
	sigset_t set;
	int cq_fd;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->signals = signalfd(-1, &set, SFD_CLOEXEC);
	if (s->epoll < 0 || s->signals < 0 || sigprocmask(SIG_BLOCK, &set, NULL) != 0 ||
	    ndx_cq_get_fd(s->cq, &cq_fd) != NDX_OK || watch(s, cq_fd) != 0 ||
	    watch(s, ndx_port_get_fd(s->port)) != 0 || watch(s, s->signals) != 0) {
		perror(WHO ": epoll");
		return SAMPLE_EXIT_FAILED;
	}
	return SAMPLE_EXIT_OK;
}

static void run(struct server *s)
{
	struct epoll_event events[4];

	take_results(s);
	while (!s->stop && s->guests != NULL) {
		int n = epoll_wait(s->epoll, events, 4, -1);

		for (int i = 0; i < n; i++) {
			if (events[i].data.fd == s->signals)
				s->stop = true;
		}
		take_completions(s);
	}
}

/* Closing disconnects; the goodbyes are exchanged in the background. */
static void send_home(struct server *s)
{
	struct ndx_overlapped *ovs[16];
	struct guest *guest;

	if (s->guests == NULL)
		return;
	for (guest = s->guests; guest != NULL; guest = guest->next) {
		ndx_connector_close(guest->connector);
		guest->connector = NULL;
	}
	/*
	 * Operations in flight have completed into the port, whose objects are members of the
	 * guests.
	 */
	while (ndx_port_get(s->port, ovs, 16, 0) > 0)
		;
	while ((guest = s->guests) != NULL) {
		s->guests = guest->next;
		guest_free(guest);
	}
}

static int start(struct server *s, const char *uri, const char *where)
{
	struct sample_address address;
	char text[SAMPLE_ADDRESS_TEXT];
	enum ndx_status st;
	const char *why;
	int rc;

	if (!sample_address_parse(where, &address, &why)) {
		fprintf(stderr, WHO ": %s: %s\n", where, why);
		return SAMPLE_EXIT_USAGE;
	}
	st = ndx_adapter_open(uri, &s->adapter);
	if (st != NDX_OK) {
		(void)sample_failed(WHO, st, "open the adapter");
		return SAMPLE_EXIT_NO_ADAPTER;
	}
	st = ndx_port_create(&s->port);
	if (st == NDX_OK)
		st = ndx_cq_create_depth(s->adapter, 1024, &s->cq);
	if (st == NDX_OK)
		st = ndx_listen_on(s->adapter, (struct sockaddr *)&address.storage, address.length,
		                   0, &s->listener);
	if (st == NDX_OK)
		st = ndx_listener_get_local_address(
			s->listener, (struct sockaddr *)&address.storage, &address.length);
	if (st == NDX_OK)
		st = expect_guest(s);
	if (st != NDX_PENDING)
		return sample_failed(WHO, st, "start");
	rc = prepare_epoll(s);
	if (rc != SAMPLE_EXIT_OK)
		return rc;
	/* Print this last: a reader of the line may send a signal at once. */
	printf(WHO ": listening on %s\n", sample_address_format(&address, text, sizeof(text)));
	fflush(stdout);
	return SAMPLE_EXIT_OK;
}

int main(int argc, char **argv)
{
	const char *uri = NULL;
	struct server s = {.epoll = -1, .signals = -1};
	const struct sample_option options[] = {
		{"--adapter", "URI", "which adapter, e.g. ofi:tcp?iface=lo", .text = &uri},
		{"--count", "N", "end after N clients (0: never)", .number = &s.left, .min = 0,
	         .max = UINT32_MAX},
	};
	const struct sample_program program = {
		.name = WHO,
		.synopsis = "[ADDRESS:PORT] [options]",
		.about = "Sends everything back, to many clients at once, from one thread.",
		.options = options,
		.option_count = sizeof(options) / sizeof(options[0]),
		.max_operands = 1,
	};
	size_t operands;
	int rc;

	if (!sample_parse(&program, argc, argv, &operands, &rc))
		return rc;
	rc = start(&s, uri, operands == 1 ? argv[1] : "127.0.0.1:0");
	if (rc == SAMPLE_EXIT_OK) {
		run(&s);
		printf(WHO ": %llu messages echoed\n", (unsigned long long)s.echoed);
	}
	send_home(&s);
	ndx_listener_close(s.listener);
	ndx_cq_close(s.cq);
	ndx_port_close(s.port);
	ndx_adapter_close(s.adapter);
	if (s.epoll >= 0)
		(void)close(s.epoll);
	if (s.signals >= 0)
		(void)close(s.signals);
	return rc;
}
