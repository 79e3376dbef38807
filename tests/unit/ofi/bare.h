/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer made of bare libfabric, which says what no NDX would say. */
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
	uint8_t memory[512];
	uint8_t data[OFI_CM_SIZE]; /* of the latest event */
	size_t len;
	int failed; /* errno of the latest event, 0: it was good */
	struct ofi_cm peer;
};

void bare_open(struct bare *b, const char *port, uint64_t flags);
void bare_endpoint(struct bare *b, struct fi_info *info);
void bare_close(struct bare *b);
/* Wait for an event; 0 if it was an error. */
uint32_t bare_event(struct bare *b, struct fi_info **request);
struct ofi_cm bare_cm(const struct bare *b, enum ofi_cm_kind kind);
/* Listen at some port of the loopback interface. */
void bare_listen(struct bare *b, struct sockaddr_in *address);
/* Ask the pair's listener with these connection data. */
void bare_connect(struct bare *b, const struct pair *p, const void *data, size_t len);
/* A bare active side against b of the pair, connected as far as libfabric is concerned. */
void bare_join(struct bare *b, struct pair *p);
/* Its READY: the connection is up, and b's notify_disconnect pending in p->b.ov. */
void bare_go_up(struct bare *b, struct pair *p);
/* A connection of two good sides, made before; at the end it must still work. */
void bare_bystander_begin(struct pair *p, struct pair_side side[2]);
void bare_bystander_end(struct pair *p, struct pair_side side[2]);
/* Write no bytes to its control region, with a word. */
void bare_say(struct bare *b, uint64_t word);
/* Write a record there, too. */
void bare_tell(struct bare *b, uint64_t word, enum ofi_area_offset offset, void *record,
               size_t len);
/* The next word that comes and is not about credits. */
struct ofi_ctrl bare_hear(struct bare *b);
/* Ask what a token opens; returns the rights. */
uint32_t bare_ask(struct bare *b, uint32_t token, struct ofi_grant *grant);
/* Send 16 bytes. */
void bare_send(struct bare *b, uint64_t word, uint64_t flags);
/* A control word for the NDX of the other side. */
uint64_t bare_control(const struct bare *b, uint8_t type, uint16_t count);

#endif
