/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of UCX that the lane over UCX makes. The program loads the library when it opens such a
 * lane, and not before: UCX changes the process as soon as it is loaded (it may take signals over),
 * and measurements without UCX are to stay as they are. Nor does the program need UCX to run.
 */
#ifndef BENCH_UCX_H
#define BENCH_UCX_H

#include <ucp/api/ucp.h>

struct ucx_calls {
	void *library;
	__typeof__(ucp_config_read) *config_read;
	__typeof__(ucp_config_modify) *config_modify;
	__typeof__(ucp_config_release) *config_release;
	__typeof__(ucp_init_version) *init_version;
	__typeof__(ucp_cleanup) *cleanup;
	__typeof__(ucp_worker_create) *worker_create;
	__typeof__(ucp_worker_destroy) *worker_destroy;
	__typeof__(ucp_worker_get_address) *worker_get_address;
	__typeof__(ucp_worker_release_address) *worker_release_address;
	__typeof__(ucp_worker_get_efd) *worker_get_efd;
	__typeof__(ucp_worker_arm) *worker_arm;
	__typeof__(ucp_worker_progress) *worker_progress;
	__typeof__(ucp_ep_create) *ep_create;
	__typeof__(ucp_ep_flush_nbx) *ep_flush_nbx;
	__typeof__(ucp_ep_close_nbx) *ep_close_nbx;
	__typeof__(ucp_tag_send_nbx) *tag_send_nbx;
	__typeof__(ucp_tag_recv_nbx) *tag_recv_nbx;
	__typeof__(ucp_request_check_status) *request_check_status;
	__typeof__(ucp_request_cancel) *request_cancel;
	__typeof__(ucp_request_free) *request_free;
	__typeof__(ucs_status_string) *status_string;
};

/* Ends the program if there is no such library, or another one. */
void ucx_load(struct ucx_calls *calls);
void ucx_unload(struct ucx_calls *calls);

#endif
