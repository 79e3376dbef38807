/* SPDX-License-Identifier: BSD-2-Clause */
/* Two connected endpoints of libfabric in one process. */
#ifndef BENCH_RAW_H
#define BENCH_RAW_H

#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

struct raw_node {
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_pep *pep; /* NULL at the active end */
	struct fid_ep *ep;
	size_t inject_size;
};

/* Ends the program if a call of libfabric's failed. */
void raw_must(const char *call, ssize_t err);

/* A fabric, a domain and queues for each, as two processes would have. */
void raw_connect(struct raw_node *active, struct raw_node *passive, const char *device,
                 const struct sockaddr *address, socklen_t len);
void raw_close(struct raw_node *node);

#endif
