/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer that calls libfabric directly and sends messages that NDX never sends. */
#ifndef TESTS_OFI_BARE_H
#define TESTS_OFI_BARE_H

#include "pair.h"

#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "ofi_wire.h"

#define BARE_KEY 77u

struct bare {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_pep *pep;
	struct fid_mr *mr;
	uint8_t memory[OFI_AREA_SIZES + 64 * OFI_SIZE_ENTRY];
	uint8_t data[OFI_CM_SIZE]; /* data of the latest event */
	size_t len;
	int failed; /* error of the latest event; 0: no error */
	struct ofi_cm peer;
};

void bare_open(struct bare *b, const char *port, uint64_t flags);
void bare_endpoint(struct bare *b, struct fi_info *info);
void bare_close(struct bare *b);
/* Wait for an event of the event queue. Returns its type; 0: an error. */
uint32_t bare_wait_event(struct bare *b, struct fi_info **request);
struct ofi_cm bare_cm(const struct bare *b, enum ofi_cm_kind kind);
/* Listen at any free port of the loopback interface. */
void bare_listen(struct bare *b, struct sockaddr_in *address);
/* Connect to the pair's listener with these connection data. */
void bare_connect(struct bare *b, const struct pair *p, const void *data, size_t len);
/* Connect to b of the pair until libfabric reports the connection. b has four receives posted, and
 * its accept is pending. */
void bare_connect_to_b(struct bare *b, struct pair *p);
/* Send READY. The connection is up then, and b's notify_disconnect is pending in p->b.ov. */
void bare_send_ready(struct bare *b, struct pair *p);
/* A connection between two NDX sides, made before the bare peer's. The end of the test checks that
 * it still works. */
void bare_bystander_begin(struct pair *p, struct pair_side side[2]);
void bare_bystander_end(struct pair *p, struct pair_side side[2]);
/* Violate the protocol on a connection that is up: it ends in an abort, and no other does. */
void bare_violate(struct pair *p, void (*violate)(struct bare *b));
/* Write a control message without a record to the peer's control region. */
void bare_write_ctrl(struct bare *b, uint64_t ctrl);
/* Write a control message and a record. */
void bare_write_record(struct bare *b, uint64_t ctrl, enum ofi_area_offset offset, void *record,
                       size_t len);
/* Wait for the next control message that is not about credits. */
struct ofi_ctrl bare_read_ctrl(struct bare *b);
/* Ask for the grant behind a token. Returns its rights. */
uint32_t bare_ask_token(struct bare *b, uint32_t token, struct ofi_grant *grant);
/* Send 16 bytes. */
void bare_send(struct bare *b, uint64_t ctrl, uint64_t flags);
/* A control message with the identifier of the peer's link. */
uint64_t bare_encode_ctrl(const struct bare *b, uint8_t type, uint16_t count);

#endif
