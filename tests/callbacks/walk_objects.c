/* SPDX-License-Identifier: BSD-2-Clause */
/* Adapters, queues, memory, queue pairs, overlapped work, ports. */
#include <stdlib.h>

#include "walk.h"

static enum ndx_status call_adapter_open(struct scene *s)
{
	(void)s;
	struct ndx_adapter *adapter = NULL;
	enum ndx_status st = ndx_adapter_open("loop", &adapter);

	ndx_adapter_close(adapter);
	return st;
}

static enum ndx_status call_adapter_close(struct scene *s)
{
	struct ndx_adapter *adapter = s->own;

	s->own = NULL; /* its objects keep it */
	ndx_adapter_close(adapter);
	return NDX_OK;
}

static enum ndx_status call_adapter_query(struct scene *s)
{
	struct ndx_adapter_info info = {.size = sizeof(info)};

	return ndx_adapter_query(s->own, &info);
}

static enum ndx_status call_adapter_query_addresses(struct scene *s)
{
	struct sockaddr_storage list[64];
	size_t count = 64;

	return ndx_adapter_query_addresses(s->own, list, &count);
}

static enum ndx_status call_adapter_list(struct scene *s)
{
	struct ndx_adapter_entry *entries = NULL;
	size_t count = 0;
	enum ndx_status st = ndx_adapter_list(&entries, &count);

	(void)s;
	ndx_adapter_list_free(entries);
	return st;
}

static enum ndx_status call_adapter_default(struct scene *s)
{
	char uri[256];
	size_t size = sizeof(uri);

	(void)s;
	return ndx_adapter_default(uri, &size);
}

static enum ndx_status call_resolve(struct scene *s)
{
	char uri[256];
	size_t size = sizeof(uri);

	return ndx_resolve((struct sockaddr *)&s->far_address, s->far_address_len, uri, &size,
	                   NULL);
}

static enum ndx_status call_adapter_get_stats(struct scene *s)
{
	struct ndx_adapter_stats stats = {.size = sizeof(stats)};

	return ndx_adapter_get_stats(s->own, &stats);
}

static enum ndx_status call_adapter_snapshot(struct scene *s)
{
	char *json = NULL;
	enum ndx_status st = ndx_adapter_snapshot(s->own, &json);

	free(json);
	return st;
}

static enum ndx_status call_cq_create(struct scene *s)
{
	struct ndx_cq *cq = NULL;
	enum ndx_status st = ndx_cq_create_depth(s->own, 4, &cq);

	ndx_cq_close(cq);
	return st;
}

static enum ndx_status call_cq_close(struct scene *s)
{
	ndx_cq_close(s->cq);
	s->cq = NULL;
	return NDX_OK;
}

static enum ndx_status call_cq_cancel(struct scene *s)
{
	return ndx_cq_cancel(s->cq);
}

static enum ndx_status call_cq_get_fd(struct scene *s)
{
	int fd;

	return ndx_cq_get_fd(s->cq, &fd);
}

static enum ndx_status call_cq_get_notify_affinity(struct scene *s)
{
	uint16_t group;
	uint64_t affinity;

	return ndx_cq_get_notify_affinity(s->cq, &group, &affinity);
}

static enum ndx_status call_cq_get_stats(struct scene *s)
{
	struct ndx_cq_stats stats = {.size = sizeof(stats)};

	return ndx_cq_get_stats(s->cq, &stats);
}

static enum ndx_status call_cq_notify(struct scene *s)
{
	return ndx_cq_notify(s->cq, NDX_CQ_NOTIFY_ANY, &s->ov);
}

static enum ndx_status call_cq_resize(struct scene *s)
{
	return ndx_cq_resize(s->cq, 300);
}

static enum ndx_status call_cq_wait_results(struct scene *s)
{
	struct ndx_result result;
	size_t got;

	return ndx_cq_wait_results(s->cq, &result, 1, PATIENCE_MS, &got);
}

static enum ndx_status call_srq_create(struct scene *s)
{
	struct ndx_srq *srq = NULL;
	enum ndx_status st = ndx_srq_create(
		s->own,
		&(struct ndx_srq_attr){
			.size = sizeof(struct ndx_srq_attr), .depth = 4, .max_sge = 1},
		&srq);

	ndx_srq_close(srq);
	return st;
}

static enum ndx_status call_srq_close(struct scene *s)
{
	ndx_srq_close(s->srq);
	s->srq = NULL;
	return NDX_OK;
}

static enum ndx_status call_srq_cancel(struct scene *s)
{
	return s->srq ? ndx_srq_cancel(s->srq) : NDX_OK;
}

static enum ndx_status call_srq_modify(struct scene *s)
{
	return s->srq ? ndx_srq_modify(s->srq, 4, 1) : NDX_E_NOT_SUPPORTED;
}

static enum ndx_status call_srq_notify(struct scene *s)
{
	return s->srq ? ndx_srq_notify(s->srq, &s->ov) : NDX_PENDING;
}

static enum ndx_status call_srq_receive_list(struct scene *s)
{
	size_t posted;

	return s->srq ? ndx_srq_receive_list(s->srq, NULL, 0, &posted) : NDX_E_NOT_SUPPORTED;
}

static enum ndx_status call_srq_get_notify_affinity(struct scene *s)
{
	uint16_t group;
	uint64_t affinity;

	if (!s->srq)
		return NDX_E_NOT_SUPPORTED;
	return ndx_srq_get_notify_affinity(s->srq, &group, &affinity);
}

static enum ndx_status call_mr_create(struct scene *s)
{
	struct ndx_mr *mr = NULL;
	enum ndx_status st = ndx_mr_create(s->own, &mr);

	ndx_mr_close(mr);
	return st;
}

static enum ndx_status call_mr_close(struct scene *s)
{
	ndx_mr_close(s->mr);
	s->mr = NULL;
	return NDX_OK;
}

static enum ndx_status call_mr_cancel(struct scene *s)
{
	return ndx_mr_cancel(s->mr);
}

static enum ndx_status call_mr_register(struct scene *s)
{
	return ndx_mr_register(s->raw_mr, s->memory + BYTES, BYTES, 0, &s->ov);
}

static enum ndx_status call_mr_register_dmabuf(struct scene *s)
{
	return ndx_mr_register_dmabuf(s->raw_mr, -1, 0, BYTES, 0, 0, &s->ov);
}

static enum ndx_status call_mr_register_new(struct scene *s)
{
	struct ndx_mr *mr = NULL;
	enum ndx_status st = ndx_mr_register_new(s->own, s->memory + BYTES, BYTES, 0, &mr);

	ndx_mr_close(mr);
	return st;
}

static enum ndx_status call_mr_deregister(struct scene *s)
{
	return ndx_mr_deregister(s->mr, &s->ov);
}

static enum ndx_status call_mr_get_local_token(struct scene *s)
{
	return ndx_mr_get_local_token(s->mr) != 0 ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_mr_get_remote_token(struct scene *s)
{
	(void)ndx_mr_get_remote_token(s->mr);
	return NDX_OK;
}

static enum ndx_status call_mw_create(struct scene *s)
{
	struct ndx_mw *mw = NULL;
	enum ndx_status st = ndx_mw_create(s->own, &mw);

	ndx_mw_close(mw);
	return st;
}

static enum ndx_status call_mw_close(struct scene *s)
{
	ndx_mw_close(s->mw);
	s->mw = NULL;
	return NDX_OK;
}

static enum ndx_status call_mw_get_remote_token(struct scene *s)
{
	if (s->mw)
		(void)ndx_mw_get_remote_token(s->mw);
	return NDX_OK;
}

static enum ndx_status call_cq_attr_init(struct scene *s)
{
	struct ndx_cq_attr attr;

	(void)s;
	ndx_cq_attr_init(&attr);
	return attr.size == sizeof(attr) ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_srq_attr_init(struct scene *s)
{
	struct ndx_srq_attr attr;

	(void)s;
	ndx_srq_attr_init(&attr);
	return attr.size == sizeof(attr) ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_qp_attr_init(struct scene *s)
{
	struct ndx_qp_attr attr;

	(void)s;
	ndx_qp_attr_init(&attr);
	return attr.size == sizeof(attr) ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_qp_create(struct scene *s)
{
	struct ndx_qp_attr attr;
	struct ndx_qp *qp = NULL;
	enum ndx_status st;

	ndx_qp_attr_init(&attr);
	attr.receive_cq = s->cq;
	attr.initiator_cq = s->cq;
	st = ndx_qp_create(s->own, &attr, &qp);
	ndx_qp_close(qp);
	return st;
}

static enum ndx_status call_qp_close(struct scene *s)
{
	ndx_qp_close(s->up_qp);
	s->up_qp = NULL;
	return NDX_OK;
}

static enum ndx_status call_qp_flush(struct scene *s)
{
	return ndx_qp_flush(s->up_qp);
}

static enum ndx_status call_qp_post_list(struct scene *s)
{
	const struct ndx_request list[2] = {{.type = NDX_POST_SEND}, {.type = NDX_POST_SEND}};
	size_t posted;

	return ndx_qp_post_list(s->up_qp, list, 2, &posted);
}

static enum ndx_status call_qp_receive_list(struct scene *s)
{
	const struct ndx_receive list[2] = {{0}, {0}};
	size_t posted;

	return ndx_qp_receive_list(s->up_qp, list, 2, &posted);
}

static enum ndx_status call_qp_get_stats(struct scene *s)
{
	struct ndx_qp_stats stats = {.size = sizeof(stats)};

	return ndx_qp_get_stats(s->up_qp, &stats);
}

static enum ndx_status call_overlapped_init(struct scene *s)
{
	ndx_overlapped_init(&s->ov);
	return NDX_OK;
}

static enum ndx_status call_overlapped_status(struct scene *s)
{
	return ndx_overlapped_status(&s->pending);
}

static enum ndx_status call_overlapped_wait(struct scene *s)
{
	return ndx_overlapped_wait(&s->pending, PATIENCE_MS);
}

static enum ndx_status call_port_create(struct scene *s)
{
	struct ndx_port *port = NULL;
	enum ndx_status st = ndx_port_create(&port);

	(void)s;
	ndx_port_close(port);
	return st;
}

static void sink_nothing(struct ndx_overlapped *ov)
{
	(void)ov;
}

static enum ndx_status call_port_create_sink(struct scene *s)
{
	struct ndx_port *port = NULL;
	enum ndx_status st = ndx_port_create_sink(sink_nothing, &port);

	(void)s;
	ndx_port_close(port);
	return st;
}

static enum ndx_status call_port_close(struct scene *s)
{
	ndx_port_close(s->port);
	s->port = NULL;
	return NDX_OK;
}

static enum ndx_status call_port_get(struct scene *s)
{
	struct ndx_overlapped *ov;

	return ndx_port_get(s->port, &ov, 1, PATIENCE_MS) == 0 ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_port_get_fd(struct scene *s)
{
	return ndx_port_get_fd(s->port) >= 0 ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_qp_query(struct scene *s)
{
	struct ndx_qp_attr attr = {.size = sizeof(attr)};
	struct ndx_qp_info info = {.size = sizeof(info)};

	return ndx_qp_query(s->up_qp, &attr, &info);
}

static enum ndx_status call_qp_state_name(struct scene *s)
{
	(void)s;
	return ndx_qp_state_name(NDX_QP_CONNECTED)[0] != '?' ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_mr_query(struct scene *s)
{
	struct ndx_mr_info info = {.size = sizeof(info)};

	return ndx_mr_query(s->mr, &info);
}

static enum ndx_status call_mr_state_name(struct scene *s)
{
	(void)s;
	return ndx_mr_state_name(NDX_MR_REGISTERED)[0] != '?' ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_port_post(struct scene *s)
{
	ndx_port_post(s->port, &s->ov);
	return NDX_OK;
}

const struct row object_rows[] = {
	{"ndx_adapter_open", call_adapter_open, NDX_OK, NDX_OK},
	{"ndx_adapter_close", call_adapter_close, NDX_OK, NDX_OK},
	{"ndx_adapter_query", call_adapter_query, NDX_OK, NDX_OK},
	{"ndx_adapter_query_addresses", call_adapter_query_addresses, NDX_OK, NDX_OK},
	{"ndx_adapter_list", call_adapter_list, NDX_OK, NDX_OK},
	{"ndx_adapter_list_free", call_adapter_list, NDX_OK, NDX_OK},
	{"ndx_adapter_default", call_adapter_default, NDX_OK, NDX_E_NOT_FOUND},
	{"ndx_resolve", call_resolve, NDX_OK, NDX_E_NETWORK_UNREACHABLE},
	{"ndx_adapter_get_stats", call_adapter_get_stats, NDX_OK, NDX_OK},
	{"ndx_adapter_snapshot", call_adapter_snapshot, NDX_OK, NDX_OK},
	{"ndx_cq_create", call_cq_create, NDX_OK, NDX_OK},
	{"ndx_cq_close", call_cq_close, NDX_OK, NDX_OK},
	{"ndx_cq_attr_init_sized", call_cq_attr_init, NDX_OK, NDX_OK},
	{"ndx_cq_cancel", call_cq_cancel, NDX_OK, NDX_OK},
	{"ndx_cq_get_fd", call_cq_get_fd, NDX_OK, NDX_OK},
	{"ndx_cq_get_notify_affinity", call_cq_get_notify_affinity, NDX_OK, NDX_E_NOT_SUPPORTED},
	{"ndx_cq_get_stats", call_cq_get_stats, NDX_OK, NDX_OK},
	{"ndx_cq_notify", call_cq_notify, NDX_PENDING, NDX_OK},
	{"ndx_cq_resize", call_cq_resize, NDX_OK, NDX_E_NOT_SUPPORTED},
	{"ndx_cq_wait_results", call_cq_wait_results, NDX_E_WOULD_BLOCK, NDX_OK},
	{"ndx_srq_create", call_srq_create, NDX_OK, NDX_E_NOT_SUPPORTED},
	{"ndx_srq_close", call_srq_close, NDX_OK, NDX_OK},
	{"ndx_srq_attr_init_sized", call_srq_attr_init, NDX_OK, NDX_OK},
	{"ndx_srq_cancel", call_srq_cancel, NDX_OK, NDX_OK},
	{"ndx_srq_modify", call_srq_modify, NDX_OK, NDX_E_NOT_SUPPORTED},
	{"ndx_srq_notify", call_srq_notify, NDX_PENDING, NDX_OK},
	{"ndx_srq_receive_list_sized", call_srq_receive_list, NDX_OK, NDX_E_NOT_SUPPORTED},
	{"ndx_srq_get_notify_affinity", call_srq_get_notify_affinity, NDX_OK, NDX_E_NOT_SUPPORTED},
	{"ndx_mr_create", call_mr_create, NDX_OK, NDX_OK},
	{"ndx_mr_close", call_mr_close, NDX_OK, NDX_OK},
	{"ndx_mr_cancel", call_mr_cancel, NDX_OK, NDX_OK},
	{"ndx_mr_register", call_mr_register, NDX_PENDING, NDX_OK},
	{"ndx_mr_register_dmabuf", call_mr_register_dmabuf, NDX_E_NOT_SUPPORTED,
         NDX_E_INVALID_PARAMETER},
	{"ndx_mr_register_new", call_mr_register_new, NDX_OK, NDX_OK},
	{"ndx_mr_deregister", call_mr_deregister, NDX_PENDING, NDX_OK},
	{"ndx_mr_get_local_token", call_mr_get_local_token, NDX_OK, NDX_OK},
	{"ndx_mr_get_remote_token", call_mr_get_remote_token, NDX_OK, NDX_OK},
	{"ndx_mw_create", call_mw_create, NDX_OK, NDX_E_NOT_SUPPORTED},
	{"ndx_mw_close", call_mw_close, NDX_OK, NDX_OK},
	{"ndx_mw_get_remote_token", call_mw_get_remote_token, NDX_OK, NDX_OK},
	{"ndx_qp_attr_init_sized", call_qp_attr_init, NDX_OK, NDX_OK},
	{"ndx_qp_create", call_qp_create, NDX_OK, NDX_OK},
	{"ndx_qp_close", call_qp_close, NDX_OK, NDX_OK},
	{"ndx_qp_flush", call_qp_flush, NDX_OK, NDX_OK},
	{"ndx_qp_get_stats", call_qp_get_stats, NDX_OK, NDX_OK},
	{"ndx_qp_post_list_sized", call_qp_post_list, NDX_OK, NDX_OK},
	{"ndx_qp_receive_list_sized", call_qp_receive_list, NDX_OK, NDX_OK},
	{"ndx_qp_query", call_qp_query, NDX_OK, NDX_OK},
	{"ndx_qp_state_name", call_qp_state_name, NDX_OK, NDX_OK},
	{"ndx_mr_query", call_mr_query, NDX_OK, NDX_OK},
	{"ndx_mr_state_name", call_mr_state_name, NDX_OK, NDX_OK},
	{"ndx_overlapped_init", call_overlapped_init, NDX_OK, NDX_OK},
	{"ndx_overlapped_status", call_overlapped_status, NDX_PENDING, NDX_OK},
	{"ndx_overlapped_wait", call_overlapped_wait, NDX_E_WOULD_BLOCK, NDX_OK},
	{"ndx_port_create", call_port_create, NDX_OK, NDX_OK},
	{"ndx_port_create_sink", call_port_create_sink, NDX_OK, NDX_OK},
	{"ndx_port_close", call_port_close, NDX_OK, NDX_OK},
	{"ndx_port_get", call_port_get, NDX_OK, NDX_OK},
	{"ndx_port_get_fd", call_port_get_fd, NDX_OK, NDX_OK},
	{"ndx_port_post", call_port_post, NDX_OK, NDX_OK},
};
const size_t object_row_count = sizeof(object_rows) / sizeof(object_rows[0]);
