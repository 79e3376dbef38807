/* SPDX-License-Identifier: BSD-2-Clause */
#include "pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <ndx/spi/provider.h>

#define EVERY_RIGHT (NDX_MR_ALLOW_REMOTE_WRITE | NDX_MR_ALLOW_REMOTE_READ)

uint64_t pair_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void open_side(struct pair_side *side, const char *uri)
{
	assert_int_equal(ndx_adapter_open(uri, &side->adapter), NDX_OK);
	side->memory =
		mmap(NULL, PAIR_MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(side->memory != MAP_FAILED);
	assert_int_equal(ndx_mr_register_new(side->adapter, side->memory, PAIR_MEMORY, EVERY_RIGHT,
	                                     &side->mr),
	                 NDX_OK);
}

static void close_side(struct pair_side *side)
{
	pair_drop_side(side);
	ndx_mr_close(side->mr);
	(void)munmap(side->memory, PAIR_MEMORY);
	ndx_adapter_close(side->adapter);
}

int pair_up(void **state)
{
	const char *uri = getenv("PAIR_URI");
	const char *address = getenv("PAIR_ADDRESS");
	struct pair *p = calloc(1, sizeof(*p));
	struct sockaddr_in any = {.sin_family = AF_INET};
	socklen_t len = sizeof(p->address);

	if (uri == NULL)
		uri = "ofi:tcp?iface=lo";
	any.sin_addr.s_addr = address != NULL ? inet_addr(address) : htonl(INADDR_LOOPBACK);
	open_side(&p->a, uri);
	open_side(&p->b, uri);
	assert_int_equal(
		ndx_listen_on(p->b.adapter, (struct sockaddr *)&any, sizeof(any), 0, &p->listener),
		NDX_OK);
	assert_int_equal(
		ndx_listener_get_local_address(p->listener, (struct sockaddr *)&p->address, &len),
		NDX_OK);
	ndx_qp_attr_init(&p->attr);
	p->read_limit = 16;
	*state = p;
	return 0;
}

int pair_down(void **state)
{
	struct pair *p = *state;

	ndx_listener_close(p->listener);
	close_side(&p->a);
	close_side(&p->b);
	free(p);
	return 0;
}

void pair_make_side(struct pair *p, struct pair_side *side)
{
	struct ndx_qp_attr attr = p->attr;
	struct ndx_connector_attr how;

	ndx_connector_attr_init(&how);
	if (p->drain_ms > 0)
		how.drain_timeout_ms = p->drain_ms;
	memset(&side->ov, 0, sizeof(side->ov));
	assert_int_equal(ndx_cq_create_depth(side->adapter, 2, &side->cq), NDX_OK);
	attr.receive_cq = side->cq;
	attr.initiator_cq = side->cq;
	attr.context = side;
	assert_int_equal(ndx_qp_create(side->adapter, &attr, &side->qp), NDX_OK);
	assert_int_equal(ndx_connector_create(side->adapter, &how, &side->connector), NDX_OK);
}

void pair_drop_side(struct pair_side *side)
{
	ndx_connector_close(side->connector);
	ndx_qp_close(side->qp);
	ndx_cq_close(side->cq);
	side->connector = NULL;
	side->qp = NULL;
	side->cq = NULL;
}

void pair_make(struct pair *p)
{
	pair_make_side(p, &p->a);
	pair_make_side(p, &p->b);
}

void pair_drop(struct pair *p)
{
	pair_drop_side(&p->a);
	pair_drop_side(&p->b);
}

enum ndx_status pair_wait(struct ndx_overlapped *ov)
{
	return ndx_overlapped_wait(ov, PAIR_TIMEOUT_MS);
}

void pair_request(struct pair *p)
{
	assert_int_equal(ndx_listener_get_connection_request(p->listener, p->b.connector, &p->b.ov),
	                 NDX_PENDING);
	assert_int_equal(ndx_connector_connect(
				 p->a.connector, p->a.qp, (struct sockaddr *)&p->address,
				 sizeof(struct sockaddr_in),
				 &(struct ndx_connect_attr){.size = sizeof(struct ndx_connect_attr),
	                                                    .private_data = "hello",
	                                                    .private_data_len = 5,
	                                                    .inbound_read_limit = p->read_limit,
	                                                    .outbound_read_limit = p->read_limit},
				 &p->a.ov),
	                 NDX_PENDING);
	assert_int_equal(pair_wait(&p->b.ov), NDX_OK);
}

void pair_accept(struct pair *p)
{
	assert_int_equal(ndx_connector_accept(
				 p->b.connector, p->b.qp,
				 &(struct ndx_connect_attr){.size = sizeof(struct ndx_connect_attr),
	                                                    .private_data = "welcome",
	                                                    .private_data_len = 7,
	                                                    .inbound_read_limit = p->read_limit,
	                                                    .outbound_read_limit = p->read_limit},
				 &p->b.ov),
	                 NDX_PENDING);
	assert_int_equal(pair_wait(&p->a.ov), NDX_OK);
}

void pair_connect(struct pair *p)
{
	pair_request(p);
	pair_accept(p);
	assert_int_equal(ndx_connector_complete_connect(p->a.connector, &p->a.ov), NDX_PENDING);
	assert_int_equal(pair_wait(&p->a.ov), NDX_OK);
	assert_int_equal(pair_wait(&p->b.ov), NDX_OK);
}

void pair_disconnect(struct pair *p)
{
	assert_int_equal(ndx_connector_disconnect(p->a.connector, &p->a.ov), NDX_PENDING);
	assert_int_equal(pair_wait(&p->a.ov), NDX_OK);
	assert_int_equal(ndx_connector_disconnect(p->b.connector, &p->b.ov), NDX_PENDING);
	assert_int_equal(pair_wait(&p->b.ov), NDX_OK);
}

struct ndx_sge pair_sge(const struct pair_side *side, size_t offset, uint32_t length)
{
	assert_true(offset + length <= PAIR_MEMORY);
	return (struct ndx_sge){side->memory + offset, length, ndx_mr_get_local_token(side->mr)};
}

void pair_receive(struct pair_side *side, uintptr_t context, size_t offset, uint32_t length)
{
	const struct ndx_sge sge = pair_sge(side, offset, length);

	assert_int_equal(ndx_qp_receive(side->qp, (void *)context, &sge, 1), NDX_OK);
}

void pair_send(struct pair_side *side, uintptr_t context, size_t offset, uint32_t length,
               uint32_t flags)
{
	const struct ndx_sge sge = pair_sge(side, offset, length);

	assert_int_equal(ndx_qp_send(side->qp, (void *)context, &sge, 1, flags), NDX_OK);
}

struct ndx_result pair_expect(struct pair_side *side, enum ndx_request_type type, uintptr_t context,
                              enum ndx_status status)
{
	struct ndx_result result = {0};
	size_t got = 0;

	assert_int_equal(ndx_cq_wait_results(side->cq, &result, 1, PAIR_TIMEOUT_MS, &got), NDX_OK);
	assert_int_equal(got, 1);
	assert_int_equal(result.request_type, type);
	assert_int_equal((uintptr_t)result.request_context, context);
	assert_ptr_equal(result.queue_pair_context, side);
	assert_int_equal(result.status, status);
	return result;
}

struct search {
	const char *name;
	uint64_t value;
	unsigned found;
};

static void match_counter(void *arg, const char *name, uint64_t value)
{
	struct search *search = arg;

	if (strcmp(name, search->name) != 0)
		return;
	search->value = value;
	search->found++;
}

enum ndx_status pair_next_status(struct pair_side *side, uintptr_t context)
{
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS;
	struct ndx_result result;

	while (pair_now() < end) {
		if (ndx_cq_get_results(side->cq, &result, 1) == 0 ||
		    result.request_type == NDX_REQUEST_RECEIVE)
			continue;
		assert_ptr_equal(result.request_context, (void *)context);
		return result.status;
	}
	return NDX_PENDING;
}

uint64_t pair_counter(const struct pair_side *side, bool of_qp, const char *name)
{
	struct ndx_spi_qp *qp = (struct ndx_spi_qp *)(void *)side->qp;
	struct ndx_spi_adapter *adapter = qp->object.native;
	struct search search = {.name = name};

	adapter->provider->ops->get_counters(adapter, of_qp ? qp : NULL, match_counter, &search);
	assert_int_equal(search.found, 1);
	return search.value;
}

void pair_run_jobs(const struct pair_side *side)
{
	struct ndx_mr *mr;

	assert_int_equal(ndx_mr_create(side->adapter, &mr), NDX_OK);
	assert_int_equal(ndx_mr_cancel(mr), NDX_OK);
	ndx_mr_close(mr);
}

void pair_fill(unsigned char *at, size_t length, unsigned seed)
{
	for (size_t i = 0; i < length; i++)
		at[i] = (unsigned char)(seed + i * 31 + (i >> 8));
}

void pair_assert_filled(const unsigned char *at, size_t length, unsigned seed)
{
	for (size_t i = 0; i < length; i++) {
		if (at[i] != (unsigned char)(seed + i * 31 + (i >> 8)))
			fail_msg("byte %zu is %u", i, at[i]);
	}
}

#define MAX_USED_FDS 512u /* descriptors; no test needs more */

static void limit_descriptors(unsigned long most)
{
	struct rlimit old_limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old_limit), 0);
	old_limit.rlim_cur = most;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old_limit), 0);
}

void pair_use_up_descriptors(struct pair_used_fds *used_fds)
{
	struct rlimit old_limit;
	int fd;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old_limit), 0);
	used_fds->old_limit = old_limit.rlim_cur;
	used_fds->fds = calloc(MAX_USED_FDS, sizeof(*used_fds->fds));
	used_fds->count = 0;
	assert_non_null(used_fds->fds);
	limit_descriptors(MAX_USED_FDS);
	while (used_fds->count < MAX_USED_FDS && (fd = dup(STDERR_FILENO)) >= 0)
		used_fds->fds[used_fds->count++] = fd;
	assert_int_equal(errno, EMFILE);
}

void pair_give_back_descriptors(struct pair_used_fds *used_fds)
{
	while (used_fds->count > 0)
		(void)close(used_fds->fds[--used_fds->count]);
	free(used_fds->fds);
	limit_descriptors(used_fds->old_limit);
}
