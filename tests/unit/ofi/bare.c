/* SPDX-License-Identifier: BSD-2-Clause */
#include "bare.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/byteorder.h>

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

void bare_open(struct bare *b, const char *port, uint64_t flags)
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

void bare_endpoint(struct bare *b, struct fi_info *info)
{
	assert_int_equal(fi_endpoint(b->domain, info, &b->ep, NULL), 0);
	assert_int_equal(fi_ep_bind(b->ep, &b->eq->fid, 0), 0);
	assert_int_equal(fi_ep_bind(b->ep, &b->cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_enable(b->ep), 0);
}

void bare_close(struct bare *b)
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

uint32_t bare_wait_event(struct bare *b, struct fi_info **request)
{
	union {
		struct fi_eq_cm_entry entry;
		uint8_t room[sizeof(struct fi_eq_cm_entry) + OFI_CM_SIZE];
	} buffer;
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS;
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

struct ofi_cm bare_cm(const struct bare *b, enum ofi_cm_kind kind)
{
	return (struct ofi_cm){
		.kind = kind,
		.id = 1,
		.key = BARE_KEY,
		.address = (uintptr_t)b->memory,
		.depth = 64,
		.receive_size = OFI_SIZE_UNKNOWN,
		.inbound_read_limit = 4,
		.outbound_read_limit = 4,
	};
}

void bare_listen(struct bare *b, struct sockaddr_in *address)
{
	size_t len = sizeof(*address);

	bare_open(b, "0", FI_SOURCE);
	assert_int_equal(fi_passive_ep(b->fabric, b->info, &b->pep, NULL), 0);
	assert_int_equal(fi_pep_bind(b->pep, &b->eq->fid, 0), 0);
	assert_int_equal(fi_listen(b->pep), 0);
	assert_int_equal(fi_getname(&b->pep->fid, address, &len), 0);
}

void bare_connect(struct bare *b, const struct pair *p, const void *data, size_t len)
{
	char port[8];

	(void)snprintf(port, sizeof(port), "%u",
	               ntohs(((const struct sockaddr_in *)(const void *)&p->address)->sin_port));
	bare_open(b, port, 0);
	bare_endpoint(b, b->info);
	assert_int_equal(fi_connect(b->ep, b->info->dest_addr, data, len), 0);
}

void bare_connect_to_b(struct bare *b, struct pair *p)
{
	uint8_t bytes[OFI_CM_SIZE];
	struct ofi_cm own;

	pair_make_side(p, &p->b);
	assert_int_equal(ndx_listener_get_connection_request(p->listener, p->b.connector, &p->b.ov),
	                 NDX_PENDING);
	own = bare_cm(b, OFI_CM_CONNECT);
	own.address = (uintptr_t)b->memory;
	bare_connect(b, p, bytes, ofi_cm_encode(&own, bytes));
	/* libfabric sends the request when the test reads the event queue. */
	while (ndx_overlapped_status(&p->b.ov) == NDX_PENDING) {
		uint32_t event;

		errno = 0;
		(void)fi_eq_read(b->eq, &event, bytes, 0, 0);
	}
	assert_int_equal(ndx_overlapped_status(&p->b.ov), NDX_OK);
	for (uintptr_t i = 0; i < 4; i++)
		pair_receive(&p->b, i, i * 64, 64);
	assert_int_equal(ndx_connector_accept(
				 p->b.connector, p->b.qp,
				 &(struct ndx_connect_attr){.size = sizeof(struct ndx_connect_attr),
	                                                    .inbound_read_limit = 4,
	                                                    .outbound_read_limit = 4},
				 &p->b.ov),
	                 NDX_PENDING);
	assert_int_equal(bare_wait_event(b, NULL), FI_CONNECTED);
	assert_null(ofi_cm_decode(b->data, b->len, OFI_CM_ACCEPT, &b->peer));
	assert_int_equal(b->peer.credits, 4);
}

void bare_write_record(struct bare *b, uint64_t ctrl, enum ofi_area_offset offset, void *record,
                       size_t len)
{
	const struct iovec iov = {record, len};
	const struct fi_rma_iov remote = {b->peer.address + offset, len, b->peer.key};
	const struct fi_msg_rma msg = {
		.msg_iov = &iov,
		.iov_count = len > 0,
		.rma_iov = &remote,
		.rma_iov_count = 1,
		.data = ctrl,
	};

	assert_int_equal(fi_writemsg(b->ep, &msg, FI_REMOTE_CQ_DATA), 0);
}

void bare_write_ctrl(struct bare *b, uint64_t ctrl)
{
	bare_write_record(b, ctrl, 0, NULL, 0);
}

struct ofi_ctrl bare_read_ctrl(struct bare *b)
{
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS;
	struct fi_cq_data_entry entry;
	struct ofi_ctrl ctrl = {0};

	while (ctrl.type == 0 && pair_now() < end) {
		if (fi_cq_read(b->cq, &entry, 1) == 1 && (entry.flags & FI_REMOTE_CQ_DATA))
			ctrl = ofi_ctrl_split(entry.data);
		if (ctrl.type == OFI_CTRL_CREDIT)
			ctrl.type = 0;
	}
	return ctrl;
}

uint32_t bare_ask_token(struct bare *b, uint32_t token, struct ofi_grant *grant)
{
	uint8_t token_record[4];

	ndxp_put_be32(token_record, token);
	bare_write_record(b, bare_encode_ctrl(b, OFI_CTRL_ASK, 0), OFI_AREA_QUESTION, token_record,
	                  sizeof(token_record));
	assert_int_equal(bare_read_ctrl(b).type, OFI_CTRL_ANSWER);
	assert_null(ofi_grant_decode(b->memory + OFI_AREA_ANSWER, grant));
	assert_int_equal(grant->token, token);
	return grant->rights;
}

uint64_t bare_encode_ctrl(const struct bare *b, uint8_t type, uint16_t count)
{
	return ofi_ctrl_encode(type, count, 0, b->peer.id);
}

void bare_send(struct bare *b, uint64_t ctrl, uint64_t flags)
{
	static uint8_t bytes[16];
	struct iovec iov = {bytes, sizeof(bytes)};
	const struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .data = ctrl};

	assert_int_equal(fi_sendmsg(b->ep, &msg, flags), 0);
}

void bare_send_ready(struct bare *b, struct pair *p)
{
	bare_write_ctrl(b, bare_encode_ctrl(b, OFI_CTRL_READY, 0));
	assert_int_equal(pair_wait(&p->b.ov), NDX_OK);
	assert_int_equal(ndx_connector_notify_disconnect(p->b.connector, &p->b.ov), NDX_PENDING);
}

void bare_bystander_begin(struct pair *p, struct pair_side side[2])
{
	pair_make(p);
	pair_connect(p);
	side[0] = p->a;
	side[1] = p->b;
	p->a.connector = NULL;
	p->a.qp = NULL;
	p->a.cq = NULL;
}

void bare_bystander_end(struct pair *p, struct pair_side side[2])
{
	const struct ndx_sge sge = pair_sge(&p->a, 0, 64);
	struct ndx_result result;
	size_t got;

	assert_int_equal(ndx_qp_write(side[0].qp, NULL, &sge, 1, (uintptr_t)p->b.memory,
	                              ndx_mr_get_remote_token(p->b.mr), 0),
	                 NDX_OK);
	assert_int_equal(ndx_cq_wait_results(side[0].cq, &result, 1, PAIR_TIMEOUT_MS, &got),
	                 NDX_OK);
	assert_int_equal(result.status, NDX_OK);
	pair_drop_side(&side[0]);
	pair_drop_side(&side[1]);
	memset(&p->b.ov, 0, sizeof(p->b.ov));
}

void bare_violate(struct pair *p, void (*violate)(struct bare *b))
{
	struct pair_side bystander[2];
	struct bare b;

	bare_bystander_begin(p, bystander);
	bare_connect_to_b(&b, p);
	bare_send_ready(&b, p);
	violate(&b);
	assert_int_equal(pair_wait(&p->b.ov), NDX_OK);
	assert_int_equal(p->b.ov.information, NDX_DISCONNECT_ABORTED);
	bare_close(&b);
	pair_drop_side(&p->b);
	bare_bystander_end(p, bystander);
}
