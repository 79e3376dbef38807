/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers that misbehave: port scans, other protocols, control words without sense. Each loses its
 * own connection; nobody else notices, and nothing burns a processor.
 */
#include "pair.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "ofi_wire.h"

static int raw_connect(const struct pair *p)
{
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(
		connect(fd, (const struct sockaddr *)&p->address, sizeof(struct sockaddr_in)), 0);
	return fd;
}

static int raw_listen(struct sockaddr_in *address)
{
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(*address);

	*address = (struct sockaddr_in){.sin_family = AF_INET};
	address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)address, len), 0);
	assert_int_equal(listen(fd, 4), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)address, &len), 0);
	return fd;
}

static uint64_t cpu_ms(void)
{
	struct rusage use;

	(void)getrusage(RUSAGE_SELF, &use);
	return (uint64_t)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000 +
	       (uint64_t)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1000;
}

/* Sooner or later the process sleeps; wake-ups for nothing are throttled after a while. */
static void assert_idle(void)
{
	uint64_t used = 101;

	for (int i = 0; i < 30 && used > 100; i++) {
		used = cpu_ms();
		(void)poll(NULL, 0, 300);
		used = cpu_ms() - used;
	}
	assert_in_range(used, 0, 100);
}

static void exchange_one(struct pair *p)
{
	pair_receive(&p->b, 1, 0, 64);
	pair_send(&p->a, 2, 0, 64, 0);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 1, NDX_OK);
	pair_expect(&p->a, NDX_REQUEST_SEND, 2, NDX_OK);
}

static void port_scans_and_rubbish_do_not_disturb_a_listener(void **state)
{
	static const char http[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
	struct pair *p = *state;
	int silent[8];

	pair_make(p);
	for (int i = 0; i < 50; i++) {
		const int fd = raw_connect(p);

		if (i % 3 == 1)
			assert_int_equal(write(fd, http, sizeof(http)), sizeof(http));
		if (i % 3 == 2)
			assert_int_equal(write(fd, http, 1), 1);
		(void)close(fd);
	}
	for (size_t i = 0; i < 8; i++)
		silent[i] = raw_connect(p);
	pair_connect(p);
	assert_idle();
	exchange_one(p);
	for (size_t i = 0; i < 8; i++)
		(void)close(silent[i]);
	assert_idle();
	pair_part(p);
	pair_drop(p);
}

static void a_silent_socket_does_not_keep_a_listener_from_closing(void **state)
{
	struct pair *p = *state;
	const int fd = raw_connect(p);
	char byte = 0;

	(void)poll(NULL, 0, 50);
	ndx_listener_close(p->listener);
	p->listener = NULL;
	(void)!write(fd, &byte, 1);
	(void)poll(NULL, 0, 50);
	(void)close(fd);
}

/* Connect to somebody who is no NDX and does `what` with the socket. */
static void connect_to_stranger(struct pair *p, const char *answer, bool linger)
{
	struct sockaddr_in address;
	const int listener = raw_listen(&address);
	const struct linger reset = {.l_onoff = 1, .l_linger = 0};
	char request[512];
	int fd;

	pair_make(p);
	assert_int_equal(ndx_connector_connect(p->a.connector, p->a.qp, (struct sockaddr *)&address,
	                                       sizeof(address), 0, 0, NULL, 0, &p->a.ov),
	                 NDX_PENDING);
	fd = accept(listener, NULL, NULL);
	assert_true(fd >= 0);
	assert_true(read(fd, request, sizeof(request)) > 0);
	if (answer != NULL)
		assert_true(write(fd, answer, strlen(answer)) > 0);
	if (linger)
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	if (answer == NULL || linger)
		(void)close(fd);
	assert_int_equal(pair_wait(&p->a.ov), NDX_E_CONNECTION_ABORTED);
	assert_idle();
	if (answer != NULL && !linger)
		(void)close(fd);
	(void)close(listener);
	pair_drop(p);
}

static void connecting_to_a_stranger_aborts(void **state)
{
	connect_to_stranger(*state, NULL, false);
	connect_to_stranger(*state, NULL, true);
	connect_to_stranger(*state, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", false);
	connect_to_stranger(*state, "no", false);
}

static void connecting_to_silence_waits_and_sleeps(void **state)
{
	struct pair *p = *state;
	struct sockaddr_in address;
	const int listener = raw_listen(&address);

	pair_make(p);
	assert_int_equal(ndx_connector_connect(p->a.connector, p->a.qp, (struct sockaddr *)&address,
	                                       sizeof(address), 0, 0, NULL, 0, &p->a.ov),
	                 NDX_PENDING);
	assert_idle();
	assert_int_equal(ndx_connector_cancel(p->a.connector), NDX_OK);
	assert_int_equal(pair_wait(&p->a.ov), NDX_E_CANCELED);
	(void)close(listener);
	pair_drop(p);
}

/* ---- a peer made of bare libfabric ---- */

struct bare {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_pep *pep;
	struct fid_mr *mr;
	uint8_t memory[512];
	uint8_t data[OFI_CM_SIZE]; /* of the latest event */
	size_t len;
	int failed; /* errno of the latest event, 0: it was good */
	struct ofi_cm peer;
};

#define BARE_KEY 77u

static struct fi_info *bare_info(const char *port, uint64_t flags)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_info *info = NULL;

	hints->caps = FI_MSG | FI_RMA;
	hints->ep_attr->type = FI_EP_MSG;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR;
	hints->fabric_attr->prov_name = strdup("tcp");
	assert_int_equal(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", port, flags, hints, &info), 0);
	fi_freeinfo(hints);
	info->domain_attr->mr_mode = FI_MR_VIRT_ADDR;
	return info;
}

static void bare_open(struct bare *b, const char *port, uint64_t flags)
{
	struct fi_eq_attr eq = {.wait_obj = FI_WAIT_FD};
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_FD};

	memset(b, 0, sizeof(*b));
	b->info = bare_info(port, flags);
	assert_int_equal(fi_fabric(b->info->fabric_attr, &b->fabric, NULL), 0);
	assert_int_equal(fi_domain(b->fabric, b->info, &b->domain, NULL), 0);
	assert_int_equal(fi_eq_open(b->fabric, &eq, &b->eq, NULL), 0);
	assert_int_equal(fi_cq_open(b->domain, &cq, &b->cq, NULL), 0);
	assert_int_equal(fi_mr_reg(b->domain, b->memory, sizeof(b->memory),
	                           FI_REMOTE_READ | FI_REMOTE_WRITE, 0, BARE_KEY, 0, &b->mr, NULL),
	                 0);
}

static void bare_endpoint(struct bare *b, struct fi_info *info)
{
	assert_int_equal(fi_endpoint(b->domain, info, &b->ep, NULL), 0);
	assert_int_equal(fi_ep_bind(b->ep, &b->eq->fid, 0), 0);
	assert_int_equal(fi_ep_bind(b->ep, &b->cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_enable(b->ep), 0);
}

static void bare_close(struct bare *b)
{
	if (b->pep != NULL)
		(void)fi_close(&b->pep->fid);
	if (b->ep != NULL)
		(void)fi_close(&b->ep->fid);
	(void)fi_close(&b->mr->fid);
	(void)fi_close(&b->cq->fid);
	(void)fi_close(&b->eq->fid);
	(void)fi_close(&b->domain->fid);
	(void)fi_close(&b->fabric->fid);
	fi_freeinfo(b->info);
}

/* Wait for an event; 0 if it was an error. */
static uint32_t bare_event(struct bare *b, struct fi_info **request)
{
	union {
		struct fi_eq_cm_entry entry;
		uint8_t room[sizeof(struct fi_eq_cm_entry) + OFI_CM_SIZE];
	} buffer;
	const uint64_t end = pair_now() + PAIR_PATIENCE_MS;
	struct fi_cq_data_entry ignored[4];
	uint32_t event = 0;
	ssize_t n;

	do {
		(void)fi_cq_read(b->cq, ignored, 4);
		errno = 0;
		n = fi_eq_read(b->eq, &event, &buffer, sizeof(buffer), 0);
	} while (n == -FI_EAGAIN && pair_now() < end);
	if (n == -FI_EAVAIL) {
		struct fi_eq_err_entry err = {.err_data = b->data, .err_data_size = OFI_CM_SIZE};

		assert_true(fi_eq_readerr(b->eq, &err, 0) > 0);
		b->failed = err.err;
		b->len = err.err_data_size;
		return 0;
	}
	assert_true(n >= (ssize_t)sizeof(buffer.entry));
	b->len = (size_t)n - sizeof(buffer.entry);
	memcpy(b->data, buffer.room + sizeof(buffer.entry), b->len);
	if (request != NULL)
		*request = buffer.entry.info;
	return event;
}

static struct ofi_cm bare_cm(const struct bare *b, enum ofi_cm_kind kind)
{
	return (struct ofi_cm){
		.kind = kind,
		.id = 1,
		.key = BARE_KEY,
		.address = (uintptr_t)b->memory,
		.depth = 64,
		.inbound_read_limit = 4,
		.outbound_read_limit = 4,
	};
}

static void bare_connect(struct bare *b, const struct pair *p, const void *data, size_t len)
{
	char port[8];

	(void)snprintf(port, sizeof(port), "%u",
	               ntohs(((const struct sockaddr_in *)(const void *)&p->address)->sin_port));
	bare_open(b, port, 0);
	bare_endpoint(b, b->info);
	assert_int_equal(fi_connect(b->ep, b->info->dest_addr, data, len), 0);
}

/* A bare active side against b of the pair, connected as far as libfabric is concerned. */
static void bare_join(struct bare *b, struct pair *p)
{
	uint8_t bytes[OFI_CM_SIZE];
	struct ofi_cm own;

	pair_make_side(p, &p->b);
	assert_int_equal(ndx_listener_get_connection_request(p->listener, p->b.connector, &p->b.ov),
	                 NDX_PENDING);
	own = bare_cm(b, OFI_CM_CONNECT);
	own.address = (uintptr_t)b->memory;
	bare_connect(b, p, bytes, ofi_cm_encode(&own, bytes));
	/* The request goes out when the queue is read. */
	while (ndx_overlapped_status(&p->b.ov) == NDX_PENDING) {
		uint32_t event;

		errno = 0;
		(void)fi_eq_read(b->eq, &event, bytes, 0, 0);
	}
	assert_int_equal(ndx_overlapped_status(&p->b.ov), NDX_OK);
	for (uintptr_t i = 0; i < 4; i++)
		pair_receive(&p->b, i, i * 64, 64);
	assert_int_equal(ndx_connector_accept(p->b.connector, p->b.qp, 4, 4, NULL, 0, &p->b.ov),
	                 NDX_PENDING);
	assert_int_equal(bare_event(b, NULL), FI_CONNECTED);
	assert_null(ofi_cm_decode(b->data, b->len, OFI_CM_ACCEPT, &b->peer));
	assert_int_equal(b->peer.credits, 4);
}

static void bare_say(struct bare *b, uint64_t word)
{
	const struct fi_rma_iov remote = {.addr = b->peer.address, .key = b->peer.key};
	const struct fi_msg_rma msg = {.rma_iov = &remote, .rma_iov_count = 1, .data = word};

	assert_int_equal(fi_writemsg(b->ep, &msg, FI_REMOTE_CQ_DATA), 0);
}

static uint64_t control(const struct bare *b, uint8_t type, uint16_t count)
{
	return ofi_word_encode(type, 0, count, b->peer.id);
}

static void bare_send(struct bare *b, uint64_t word, uint64_t flags)
{
	static uint8_t bytes[16];
	struct iovec iov = {bytes, sizeof(bytes)};
	const struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .data = word};

	assert_int_equal(fi_sendmsg(b->ep, &msg, flags), 0);
}

static void bystander_begin(struct pair *p, struct pair_side side[2])
{
	pair_make(p);
	pair_connect(p);
	side[0] = p->a;
	side[1] = p->b;
	p->a.connector = NULL;
	p->a.qp = NULL;
	p->a.cq = NULL;
}

static void bystander_end(struct pair *p, struct pair_side side[2])
{
	const struct ndx_sge sge = pair_sge(&p->a, 0, 64);
	struct ndx_result result;
	size_t got;

	assert_int_equal(ndx_qp_write(side[0].qp, NULL, &sge, 1, (uintptr_t)p->b.memory,
	                              ndx_mr_get_remote_token(p->b.mr), 0),
	                 NDX_OK);
	assert_int_equal(ndx_cq_wait_results(side[0].cq, &result, 1, PAIR_PATIENCE_MS, &got),
	                 NDX_OK);
	assert_int_equal(result.status, NDX_OK);
	pair_drop_side(&side[0]);
	pair_drop_side(&side[1]);
	memset(&p->b.ov, 0, sizeof(p->b.ov));
}

/* Before READY: the accept fails. */
static void nonsense_before_ready(struct pair *p, uint8_t type, uint16_t count, bool send)
{
	struct pair_side bystander[2];
	struct bare b;

	bystander_begin(p, bystander);
	bare_join(&b, p);
	if (send)
		bare_send(&b, ofi_word_encode(type, 0, count, 0), FI_REMOTE_CQ_DATA);
	else
		bare_say(&b, control(&b, type, count));
	assert_int_equal(pair_wait(&p->b.ov), NDX_E_CONNECTION_ABORTED);
	bare_close(&b);
	pair_drop_side(&p->b);
	bystander_end(p, bystander);
}

static void nonsense_before_the_connection_is_complete_fails_the_accept(void **state)
{
	nonsense_before_ready(*state, OFI_WORD_DISC, 0, false);
	nonsense_before_ready(*state, 99, 0, false);
	nonsense_before_ready(*state, OFI_WORD_CREDIT, 65, false);
	nonsense_before_ready(*state, OFI_WORD_REJECT, 221, false);
	nonsense_before_ready(*state, OFI_WORD_DATA, 0, false);
	nonsense_before_ready(*state, OFI_WORD_DATA, 0, true);
}

static void go_up(struct bare *b, struct pair *p)
{
	bare_say(b, control(b, OFI_WORD_READY, 0));
	assert_int_equal(pair_wait(&p->b.ov), NDX_OK);
	assert_int_equal(ndx_connector_notify_disconnect(p->b.connector, &p->b.ov), NDX_PENDING);
}

static void nonsense_afterwards(struct pair *p, void (*say)(struct bare *b))
{
	struct pair_side bystander[2];
	struct bare b;

	bystander_begin(p, bystander);
	bare_join(&b, p);
	go_up(&b, p);
	say(&b);
	assert_int_equal(pair_wait(&p->b.ov), NDX_OK);
	assert_int_equal(p->b.ov.information, NDX_DISCONNECT_ABORTED);
	bare_close(&b);
	pair_drop_side(&p->b);
	bystander_end(p, bystander);
}

static void say_ready_again(struct bare *b)
{
	bare_say(b, control(b, OFI_WORD_READY, 0));
}

static void say_reject_too_late(struct bare *b)
{
	bare_say(b, control(b, OFI_WORD_REJECT, 3));
}

static void say_too_many_credits(struct bare *b)
{
	bare_say(b, control(b, OFI_WORD_CREDIT, 60));
	bare_say(b, control(b, OFI_WORD_CREDIT, 5));
}

static void say_unknown_type(struct bare *b)
{
	bare_say(b, control(b, 200, 0));
}

static void say_unknown_flags(struct bare *b)
{
	bare_say(b, ofi_word_encode(OFI_WORD_PING, 8, 0, b->peer.id));
}

static void say_to_somebody_else(struct bare *b)
{
	bare_say(b, ofi_word_encode(OFI_WORD_PING, 0, 0, b->peer.id + 1));
}

static void send_without_word(struct bare *b)
{
	bare_send(b, 0, 0);
}

static void send_with_credit_of_nobody(struct bare *b)
{
	bare_send(b, ofi_word_encode(OFI_WORD_DATA, 0, 1000, 0), FI_REMOTE_CQ_DATA);
}

static void nonsense_on_a_connection_ends_it_and_no_other(void **state)
{
	nonsense_afterwards(*state, say_ready_again);
	nonsense_afterwards(*state, say_reject_too_late);
	nonsense_afterwards(*state, say_too_many_credits);
	nonsense_afterwards(*state, say_unknown_type);
	nonsense_afterwards(*state, say_unknown_flags);
	if (getenv("PAIR_URI") == NULL) /* with a shared queue nobody knows whose word it was */
		nonsense_afterwards(*state, say_to_somebody_else);
	nonsense_afterwards(*state, send_without_word);
	nonsense_afterwards(*state, send_with_credit_of_nobody);
}

static void a_second_goodbye_ends_in_an_abort(void **state)
{
	struct pair *p = *state;
	struct bare b;

	bare_join(&b, p);
	go_up(&b, p);
	bare_say(&b, control(&b, OFI_WORD_DISC, 0));
	bare_say(&b, control(&b, OFI_WORD_DISC, 0));
	assert_int_equal(pair_wait(&p->b.ov), NDX_OK);
	assert_int_equal(p->b.ov.information, NDX_DISCONNECT_GRACEFUL);
	bare_close(&b);
	pair_drop_side(&p->b);
}

static void messages_without_credit_do_not_burn_a_processor(void **state)
{
	struct pair *p = *state;
	struct bare b;

	bare_join(&b, p);
	go_up(&b, p);
	for (int i = 0; i < 10; i++)
		bare_send(&b, ofi_word_encode(OFI_WORD_DATA, 0, 0, 0), FI_REMOTE_CQ_DATA);
	for (uintptr_t i = 0; i < 4; i++)
		pair_expect(&p->b, NDX_REQUEST_RECEIVE, i, NDX_OK);
	/* It takes a moment to tell this from a transfer in many pieces. */
	(void)poll(NULL, 0, 1500);
	assert_idle();
	pair_receive(&p->b, 5, 0, 64);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 5, NDX_OK);
	bare_close(&b);
	pair_drop_side(&p->b);
}

static void strangers_over_libfabric_are_refused(void **state)
{
	static const uint8_t rubbish[] = "this is libfabric, but it is not NDX";
	struct pair *p = *state;
	uint8_t bytes[OFI_CM_SIZE];
	struct ofi_cm cm;
	struct bare b;

	for (int i = 0; i < 3; i++) {
		memset(&b, 0, sizeof(b));
		cm = bare_cm(&b, i == 0 ? OFI_CM_ACCEPT : OFI_CM_CONNECT);
		(void)ofi_cm_encode(&cm, bytes);
		if (i == 1)
			bytes[4]++; /* another version */
		if (i == 2)
			bare_connect(&b, p, rubbish, sizeof(rubbish));
		else
			bare_connect(&b, p, bytes, OFI_CM_HEADER);
		assert_int_equal(bare_event(&b, NULL), 0);
		assert_int_equal(b.failed, ECONNREFUSED);
		bare_close(&b);
	}
	pair_make(p);
	pair_connect(p);
	pair_part(p);
	pair_drop(p);
}

static void strangers_that_accept_are_left(void **state)
{
	struct pair *p = *state;
	struct sockaddr_in address;
	size_t len = sizeof(address);
	struct fi_info *request = NULL;
	struct bare b;

	bare_open(&b, "0", FI_SOURCE);
	assert_int_equal(fi_passive_ep(b.fabric, b.info, &b.pep, NULL), 0);
	assert_int_equal(fi_pep_bind(b.pep, &b.eq->fid, 0), 0);
	assert_int_equal(fi_listen(b.pep), 0);
	assert_int_equal(fi_getname(&b.pep->fid, &address, &len), 0);
	pair_make(p);
	assert_int_equal(ndx_connector_connect(p->a.connector, p->a.qp, (struct sockaddr *)&address,
	                                       sizeof(address), 0, 0, NULL, 0, &p->a.ov),
	                 NDX_PENDING);
	assert_int_equal(bare_event(&b, &request), FI_CONNREQ);
	bare_endpoint(&b, request);
	assert_int_equal(fi_accept(b.ep, "welcome", 7), 0);
	assert_int_equal(bare_event(&b, NULL), FI_CONNECTED);
	assert_int_equal(pair_wait(&p->a.ov), NDX_E_CONNECTION_ABORTED);
	assert_int_equal(bare_event(&b, NULL), FI_SHUTDOWN);
	fi_freeinfo(request);
	pair_drop(p);
	bare_close(&b);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, pair_up, pair_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(port_scans_and_rubbish_do_not_disturb_a_listener),
		CASE(a_silent_socket_does_not_keep_a_listener_from_closing),
		CASE(connecting_to_a_stranger_aborts),
		CASE(connecting_to_silence_waits_and_sleeps),
		CASE(strangers_over_libfabric_are_refused),
		CASE(strangers_that_accept_are_left),
		CASE(nonsense_before_the_connection_is_complete_fails_the_accept),
		CASE(nonsense_on_a_connection_ends_it_and_no_other),
		CASE(a_second_goodbye_ends_in_an_abort),
		CASE(messages_without_credit_do_not_burn_a_processor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
