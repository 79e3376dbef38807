/* SPDX-License-Identifier: BSD-2-Clause */
/* adapter.*: what the limits promise, and what lies beyond them. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/resource.h>

#include "cases.h"
#include "traffic.h"

enum { MANY = 200, PIECES_MAX = 64 };

static uint32_t smaller(uint32_t one, uint32_t other)
{
	return one < other ? one : other;
}

/* What a call that fails must leave as it was. */
struct outputs {
	struct ndx_cq *cq;
	struct ndx_qp *qp;
	struct ndx_srq *srq;
	struct ndx_mw *mw;
	struct ndx_mr *mr;
	struct ndx_connector *conn;
	struct ndx_listener *listener;
};

/* It failed as it should, its text has the word, and no output was touched. */
static bool refused(struct check *c, enum ndx_status got, enum ndx_status want,
                    const struct outputs *out, const char *word, const char *what)
{
	static const struct outputs none;

	check_status(c, got, want, what);
	check_that(c, strstr(ndx_last_error(), word) != NULL,
	           "%s: the text does not name %s: \"%s\"", what, word, ndx_last_error());
	return check_that(c, memcmp(out, &none, sizeof(none)) == 0, "%s: an output was touched",
	                  what);
}

static void cq_beyond_limits(struct check *c, struct ndx_adapter *adapter, uint32_t most)
{
	struct outputs out = {0};

	refused(c, ndx_cq_create_depth(adapter, 0, &out.cq), NDX_E_INVALID_PARAMETER, &out, "depth",
	        "cq_create with depth 0");
	if (most < UINT32_MAX)
		refused(c, ndx_cq_create_depth(adapter, most + 1, &out.cq), NDX_E_INVALID_PARAMETER,
		        &out, "depth", "cq_create beyond the depth");
	refused(c,
	        ndx_cq_create(adapter,
	                      &(struct ndx_cq_attr){
				      .size = sizeof(struct ndx_cq_attr), .depth = 1, .group = 1},
	                      &out.cq),
	        NDX_E_INVALID_PARAMETER, &out, "group", "cq_create with group 1");
	refused(c, ndx_cq_create_depth(NULL, 1, &out.cq), NDX_E_INVALID_PARAMETER, &out, "",
	        "cq_create without an adapter");
	check_status(c, ndx_cq_create_depth(adapter, 1, NULL), NDX_E_INVALID_PARAMETER,
	             "cq_create without a place for it");
}

void case_adapter_completion_queues_beyond_limits(struct check *c)
{
	const struct place *place = &c->world->places[0];
	struct ndx_cq *cq[2] = {NULL, NULL};

	cq_beyond_limits(c, place->adapter, place->info.max_completion_queue_depth);
	check_status(c, ndx_cq_create_depth(place->adapter, 1, &cq[0]), NDX_OK,
	             "cq_create with depth 1");
	check_status(
		c,
		ndx_cq_create(place->adapter,
	                      &(struct ndx_cq_attr){.size = sizeof(struct ndx_cq_attr),
	                                            .depth = place->info.max_completion_queue_depth,
	                                            .affinity = 1},
	                      &cq[1]),
		NDX_OK, "cq_create at the limit");
	ndx_cq_close(cq[0]);
	ndx_cq_close(cq[1]);
}

struct wrong_number {
	const char *name;
	uint32_t value;
	uint32_t *where;
};

/* Each number of the attributes beyond its limit, the others good. */
static void numbers_beyond_limits(struct check *c, const struct place *place,
                                  struct ndx_qp_attr *attr)
{
	const struct ndx_adapter_info *info = &place->info;
	const struct wrong_number wrong[] = {
		{"receive_depth", info->max_receive_queue_depth + 1, &attr->receive_depth},
		{"receive_depth", 0, &attr->receive_depth},
		{"initiator_depth", info->max_initiator_queue_depth + 1, &attr->initiator_depth},
		{"initiator_depth", 0, &attr->initiator_depth},
		{"max_receive_sge", info->max_receive_sge + 1, &attr->max_receive_sge},
		{"max_initiator_sge", info->max_initiator_sge + 1, &attr->max_initiator_sge},
		{"inline_size", info->max_inline_data_size + 1, &attr->inline_size},
		{"receive_depth", UINT32_MAX, &attr->receive_depth},
		{"max_receive_sge", UINT32_MAX, &attr->max_receive_sge},
		{"no_receive_timeout_ms", 0, &attr->no_receive_timeout_ms},
	};
	struct outputs out = {0};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]) && !check_over(c); i++) {
		uint32_t good = *wrong[i].where;

		*wrong[i].where = wrong[i].value;
		refused(c, ndx_qp_create(place->adapter, attr, &out.qp), NDX_E_INVALID_PARAMETER,
		        &out, wrong[i].name, "qp_create with a number out of range");
		*wrong[i].where = good;
	}
}

void case_adapter_queue_pairs_beyond_limits(struct check *c)
{
	const struct place *place = &c->world->places[0];
	struct ndx_qp_attr attr;
	struct ndx_qp *qp = NULL;
	struct outputs out = {0};
	struct ndx_cq *cq = NULL;

	if (!check_status(c, ndx_cq_create_depth(place->adapter, 16, &cq), NDX_OK, "cq_create"))
		return;
	ndx_qp_attr_init(&attr);
	refused(c, ndx_qp_create(place->adapter, &attr, &out.qp), NDX_E_INVALID_PARAMETER, &out,
	        "receive_cq", "qp_create without queues");
	attr.receive_cq = cq;
	refused(c, ndx_qp_create(place->adapter, &attr, &out.qp), NDX_E_INVALID_PARAMETER, &out,
	        "initiator_cq", "qp_create without an initiator queue");
	attr.initiator_cq = cq;
	numbers_beyond_limits(c, place, &attr);
	attr.size = 8;
	refused(c, ndx_qp_create(place->adapter, &attr, &out.qp), NDX_E_INVALID_PARAMETER, &out,
	        "size", "qp_create with attributes of 8 bytes");
	attr.size = sizeof(attr);
	if (check_status(c, ndx_qp_create(place->adapter, &attr, &qp), NDX_OK, "qp_create"))
		ndx_qp_close(qp);
	ndx_cq_close(cq);
}

void case_adapter_foreign_queues_are_refused(struct check *c)
{
	const struct place *place = &c->world->places[0];
	struct ndx_adapter *other = NULL;
	struct ndx_cq *foreign = NULL;
	struct ndx_srq *srq = NULL;
	struct outputs out = {0};
	struct ndx_qp_attr attr;
	struct ndx_cq *cq = NULL;

	check_status(c, ndx_adapter_open(place->uri, &other), NDX_OK, "open");
	if (check_over(c))
		return;
	check_status(c, ndx_cq_create_depth(other, 16, &foreign), NDX_OK, "cq_create");
	check_status(c, ndx_cq_create_depth(place->adapter, 16, &cq), NDX_OK, "cq_create");
	ndx_qp_attr_init(&attr);
	attr.receive_cq = cq;
	attr.initiator_cq = foreign;
	refused(c, ndx_qp_create(place->adapter, &attr, &out.qp), NDX_E_INVALID_PARAMETER, &out,
	        "another adapter", "qp_create with a foreign initiator queue");
	attr.receive_cq = foreign;
	attr.initiator_cq = cq;
	refused(c, ndx_qp_create(place->adapter, &attr, &out.qp), NDX_E_INVALID_PARAMETER, &out,
	        "another adapter", "qp_create with a foreign receive queue");
	attr.receive_cq = cq;
	if (place->info.capabilities & NDX_CAP_SRQ &&
	    check_status(c, make_srq(other, 4, 1, 0, &srq), NDX_OK, "srq_create")) {
		attr.srq = srq;
		refused(c, ndx_qp_create(place->adapter, &attr, &out.qp), NDX_E_INVALID_PARAMETER,
		        &out, "another adapter", "qp_create with a foreign shared queue");
		ndx_srq_close(srq);
	}
	ndx_cq_close(cq);
	ndx_cq_close(foreign);
	ndx_adapter_close(other);
}

void case_adapter_lacking_capabilities_are_refused(struct check *c)
{
	const struct place *place = &c->world->places[0];
	struct ndx_cq *cq = NULL;
	struct outputs out = {0};
	uint16_t group = 7;
	uint64_t mask = 7;

	if (!check_status(c, ndx_cq_create_depth(place->adapter, 4, &cq), NDX_OK, "cq_create"))
		return;
	if (!(place->info.capabilities & NDX_CAP_SRQ))
		refused(c, make_srq(place->adapter, 4, 1, 0, &out.srq), NDX_E_NOT_SUPPORTED, &out,
		        "shared", "srq_create");
	if (!(place->info.capabilities & NDX_CAP_MEMORY_WINDOW))
		refused(c, ndx_mw_create(place->adapter, &out.mw), NDX_E_NOT_SUPPORTED, &out,
		        "window", "mw_create");
	if (!(place->info.capabilities & NDX_CAP_CQ_RESIZE))
		refused(c, ndx_cq_resize(cq, 8), NDX_E_NOT_SUPPORTED, &out, "resize", "cq_resize");
	if (!(place->info.capabilities & NDX_CAP_NOTIFY_AFFINITY)) {
		refused(c, ndx_cq_get_notify_affinity(cq, &group, &mask), NDX_E_NOT_SUPPORTED, &out,
		        "affinity", "cq_get_notify_affinity");
		check_that(c, group == 7 && mask == 7, "outputs of a failed call were touched");
	}
	ndx_cq_close(cq);
}

/* ---- what is within them ---- */

static void limits_attr(struct side_attr *attr, const struct ndx_adapter_info *info)
{
	uint32_t depth = smaller(info->max_receive_queue_depth, info->max_completion_queue_depth);

	side_attr_init(attr);
	attr->separate_cqs = true;
	attr->cq_depth = info->max_completion_queue_depth;
	attr->receive_depth = depth;
	attr->initiator_depth = depth;
	attr->receive_sge = info->max_receive_sge;
	attr->initiator_sge = info->max_initiator_sge;
	attr->inline_size = info->inline_request_threshold;
	attr->inbound_reads = info->max_inbound_read_limit;
	attr->outbound_reads = info->max_outbound_read_limit;
}

void case_adapter_limits_are_usable_at_once(struct check *c)
{
	struct side_attr attr[2];
	struct pair *p;
	size_t count;

	limits_attr(&attr[0], &c->world->places[0].info);
	limits_attr(&attr[1], &c->world->places[1].info);
	p = pair_open(c, &attr[0], &attr[1]);
	if (!p)
		return;
	count = smaller(attr[0].initiator_depth, attr[1].receive_depth);
	for (size_t i = 0; i < count; i++)
		receive_ok(&p->b, i, 0, 16);
	pair_connect(p);
	for (size_t i = 0; i < count; i++)
		send_ok(&p->a, i, 64, 16, 0);
	expect_run(&p->a, NDX_REQUEST_SEND, 0, count, NDX_OK);
	expect_run(&p->b, NDX_REQUEST_RECEIVE, 0, count, NDX_OK);
	pair_disconnect(p);
}

/* `count` pieces of `length` bytes, in reverse order of their addresses. */
static void pieces(const struct side *s, size_t at, size_t length, size_t count,
                   struct ndx_sge *list)
{
	for (size_t i = 0; i < count; i++)
		list[i] = sge(s, at + (count - 1 - i) * 2 * length, length);
}

static void gather(const struct side *s, size_t at, size_t length, size_t count, uint8_t *out)
{
	for (size_t i = 0; i < count; i++)
		memcpy(out + i * length, s->buf + at + (count - 1 - i) * 2 * length, length);
}

static void pieces_arrive(struct check *c, const struct side *from, size_t n_from, size_t l_from,
                          const struct side *to, size_t n_to, size_t l_to)
{
	uint8_t sent[4096] = {0};
	uint8_t got[4096] = {0};
	size_t bytes = n_from * l_from;

	gather(from, 0, l_from, n_from, sent);
	gather(to, 32768, l_to, n_to, got);
	check_that(c, memcmp(sent, got, bytes) == 0, "%zu bytes in %zu pieces came wrong", bytes,
	           n_from);
}

void case_adapter_longest_sge_lists_are_usable(struct check *c)
{
	const struct ndx_adapter_info *info = &c->world->places[0].info;
	size_t out = smaller(info->max_initiator_sge, PIECES_MAX);
	size_t in = smaller(c->world->places[1].info.max_receive_sge, PIECES_MAX);
	size_t sink = smaller(info->max_read_sge, PIECES_MAX);
	struct ndx_sge list[PIECES_MAX];
	struct side_attr attr[2];
	struct pair *p;

	limits_attr(&attr[0], info);
	limits_attr(&attr[1], &c->world->places[1].info);
	p = pair_up_with(c, &attr[0], &attr[1]);
	if (!p)
		return;
	pattern_fill(p->a.buf, 32768, check_random(c));
	pieces(&p->b, 32768, out, in, list); /* in * out bytes each way */
	check_status(c, ndx_qp_receive(p->b.qp, tag(&p->b, 1), list, in), NDX_OK, "receive");
	pieces(&p->a, 0, in, out, list);
	check_status(c, ndx_qp_send(p->a.qp, tag(&p->a, 2), list, out, 0), NDX_OK, "send");
	expect(&p->a, NDX_REQUEST_SEND, 2, NDX_OK);
	expect_received(&p->b, 1, in * out);
	if (!check_over(c))
		pieces_arrive(c, &p->a, out, in, &p->b, in, out);
	pattern_fill(p->b.buf, 32768, check_random(c));
	pieces(&p->a, 32768, 8, sink, list);
	check_status(c,
	             ndx_qp_read(p->a.qp, tag(&p->a, 3), list, sink, (uintptr_t)p->b.buf,
	                         ndx_mr_get_remote_token(p->b.mr), 0),
	             NDX_OK, "read");
	expect(&p->a, NDX_REQUEST_READ, 3, NDX_OK);
	for (size_t i = 0; i < sink && !check_over(c); i++)
		check_that(c, memcmp(list[i].buffer, p->b.buf + 8 * i, 8) == 0,
		           "piece %zu of a read came wrong", i);
}

void case_adapter_smallest_sizes_are_usable(struct check *c)
{
	struct side_attr attr;
	struct pair *p;

	side_attr_init(&attr);
	attr.cq_depth = 1;
	attr.receive_depth = 1;
	attr.initiator_depth = 1;
	attr.receive_sge = 0;
	attr.initiator_sge = 0;
	attr.inbound_reads = 0;
	attr.outbound_reads = 0;
	p = pair_up(c, &attr);
	for (unsigned i = 0; p && i < 10 && !check_over(c); i++) {
		check_status(c, ndx_qp_receive(p->b.qp, tag(&p->b, 1), NULL, 0), NDX_OK, "receive");
		check_status(c, ndx_qp_send(p->a.qp, tag(&p->a, 2), NULL, 0, 0), NDX_OK, "send");
		expect(&p->a, NDX_REQUEST_SEND, 2, NDX_OK);
		expect_received(&p->b, 1, 0);
	}
	if (p)
		pair_disconnect(p);
}

/* ---- many of them ---- */

struct many {
	struct ndx_cq *cq[MANY];
	struct ndx_qp *qp[MANY];
	struct ndx_mr *mr[MANY];
	struct ndx_mw *mw[MANY];
	struct ndx_srq *srq[MANY];
	struct ndx_connector *conn[MANY];
	struct ndx_listener *listener[MANY];
};

static void make_one(struct check *c, const struct place *place, struct many *all, size_t i)
{
	struct ndx_qp_attr attr;

	check_status(c, ndx_cq_create_depth(place->adapter, 64, &all->cq[i]), NDX_OK, "cq_create");
	ndx_qp_attr_init(&attr);
	attr.receive_cq = all->cq[i];
	attr.initiator_cq = all->cq[i / 2];
	if (!check_over(c))
		check_status(c, ndx_qp_create(place->adapter, &attr, &all->qp[i]), NDX_OK,
		             "qp_create");
	check_status(c,
	             ndx_mr_register_new(place->adapter, all, sizeof(*all),
	                                 NDX_MR_ALLOW_REMOTE_READ, &all->mr[i]),
	             NDX_OK, "mr_register_new");
	if (place->info.capabilities & NDX_CAP_MEMORY_WINDOW)
		check_status(c, ndx_mw_create(place->adapter, &all->mw[i]), NDX_OK, "mw_create");
	if (place->info.capabilities & NDX_CAP_SRQ)
		check_status(c, make_srq(place->adapter, 16, 1, 0, &all->srq[i]), NDX_OK,
		             "srq_create");
	check_status(c, ndx_connector_create(place->adapter, NULL, &all->conn[i]), NDX_OK,
	             "connector_create");
	check_status(c, ndx_listener_create(place->adapter, &all->listener[i]), NDX_OK,
	             "listener_create");
}

void case_adapter_many_of_each_kind(struct check *c)
{
	struct many *all = calloc(1, sizeof(*all));

	if (!all) {
		check_fail(c, "no memory");
		return;
	}
	for (size_t i = 0; i < MANY && !check_over(c); i++)
		make_one(c, &c->world->places[0], all, i);
	for (size_t i = 0; i < MANY; i++) {
		ndx_listener_close(all->listener[i]);
		ndx_connector_close(all->conn[i]);
		ndx_qp_close(all->qp[i]);
		ndx_cq_close(all->cq[i]);
		ndx_mr_close(all->mr[i]);
		ndx_mw_close(all->mw[i]);
		ndx_srq_close(all->srq[i]);
	}
	free(all);
}

/* No descriptor beyond those that are open. */
static bool close_the_door(struct check *c, struct rlimit *before)
{
	struct rlimit now;
	int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (!check_that(c, lowest >= 0 && getrlimit(RLIMIT_NOFILE, before) == 0,
	                "cannot tell the limit of descriptors"))
		return false;
	(void)close(lowest);
	now = *before;
	now.rlim_cur = (rlim_t)lowest;
	return check_that(c, setrlimit(RLIMIT_NOFILE, &now) == 0, "cannot set the limit");
}

void case_adapter_no_descriptor_left_is_reported(struct check *c)
{
	const struct place *place = &c->world->places[0];
	struct ndx_adapter *none = place->adapter;
	struct ndx_adapter *adapter = none;
	struct ndx_port *port = NULL;
	struct ndx_cq *cq = NULL;
	struct rlimit before;
	int fd = -7;

	if (!check_status(c, ndx_cq_create_depth(place->adapter, 4, &cq), NDX_OK, "cq_create"))
		return;
	if (close_the_door(c, &before)) {
		check_status(c, ndx_adapter_open(place->uri, &adapter),
		             NDX_E_INSUFFICIENT_RESOURCES, "open");
		check_status(c, ndx_port_create(&port), NDX_E_INSUFFICIENT_RESOURCES,
		             "port_create");
		check_status(c, ndx_cq_get_fd(cq, &fd), NDX_E_INSUFFICIENT_RESOURCES, "cq_get_fd");
		(void)setrlimit(RLIMIT_NOFILE, &before);
	}
	check_that(c, adapter == none && port == NULL && fd == -7,
	           "the output of a failed call was touched");
	check_status(c, ndx_port_create(&port), NDX_OK, "port_create afterwards");
	check_status(c, ndx_cq_get_fd(cq, &fd), NDX_OK, "cq_get_fd afterwards");
	ndx_port_close(port);
	ndx_cq_close(cq);
	if (!check_over(c))
		(void)pair_up(c, NULL);
}
