/* SPDX-License-Identifier: BSD-2-Clause */
/* From the link layer to packets that may carry RDMA: a pure parser without state. */
#ifndef REASSEMBLY_LINK_H
#define REASSEMBLY_LINK_H

#include <ndx/reassembly.h>

/* A packet without link and network headers. */
struct frame {
	struct { /* compared and hashed as a whole, so no padding */
		uint8_t source[16];
		uint8_t destination[16];
	} address;
	uint8_t family;       /* enum ndx_rdma_address */
	uint8_t transport;    /* enum ndx_rdma_transport */
	uint16_t source_port; /* IWARP */
	uint16_t destination_port;
	uint32_t sequence;     /* IWARP: of TCP */
	uint32_t acknowledged; /* IWARP: acknowledgement number */
	uint8_t tcp_flags;
	const uint8_t *payload;  /* RoCE, IB: from the base transport header; iWARP: TCP payload */
	uint32_t length;         /* of the payload on the wire; RoCE, IB: without the ICRC */
	uint32_t captured;       /* captured bytes of the payload */
	const uint8_t *network;  /* the first byte that the ICRC covers; NULL: no ICRC */
	uint32_t network_length; /* from there to the payload */
};

enum link_verdict {
	LINK_RDMA,     /* `frame` is set */
	LINK_OTHER,    /* not RDMA */
	LINK_BAD,      /* truncated or contradictory */
	LINK_FRAGMENT, /* of IP; sets only transport (ROCE_V2: sure, IWARP: possible) and length */
};

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_ACK 0x10

enum link_verdict link_parse(const struct ndx_packet *packet, struct frame *frame);

#endif
