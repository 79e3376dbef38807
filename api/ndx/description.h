/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Descriptions of one end of a connection, for peers that exchange them without a connection
 * manager: by a negotiated session, or by hand.
 *
 * A description is a plain value in the host's byte order, free of pointers. How it travels is the
 * business of whoever carries it (api/ndx/spi/plugin.h).
 */
#ifndef NDX_DESCRIPTION_H
#define NDX_DESCRIPTION_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <ndx/decls.h>

NDX_DECLS_BEGIN

/** Who begins. Each connection has one of each. */
enum ndx_role {
	NDX_ROLE_CLIENT = 0,
	NDX_ROLE_SERVER = 1,
};

/** What a description describes; two ends of different kinds cannot connect. */
enum ndx_description_kind {
	NDX_DESCRIPTION_NONE = 0,
	NDX_DESCRIPTION_MEETING =
		1, /**< the server listens at an address, a cookie tells who comes */
	NDX_DESCRIPTION_VERBS_RC = 2, /**< a reliable connected queue pair: numbers, GID or LID */
};

/**
 * Memory that a peer may reach. A peer that has one of its numbers can reach the memory. They are
 * for different readers: a peer that is NDX posts reads and writes with the token, which is opaque;
 * any other device has to be told the rkey, the number as the InfiniBand wire has it.
 */
struct ndx_memory_description {
	uint64_t address;
	uint64_t length; /**< bytes; 0: none */
	uint32_t token;  /**< remote token, as ndx_mr_get_remote_token() has it */
	uint32_t rkey;   /**< VERBS_RC: the rkey, in the host's byte order. May be left 0 in what a
	                      program describes: it follows from the token */
};

/** The rkey of a remote token of an adapter whose ends are described as VERBS_RC: a token is the
 * rkey's four bytes in the order of the wire. */
static inline uint32_t ndx_rkey_of_token(uint32_t token)
{
	const unsigned char *byte = (const unsigned char *)&token;

	return (uint32_t)byte[0] << 24 | (uint32_t)byte[1] << 16 | (uint32_t)byte[2] << 8 | byte[3];
}

/** The remote token of an rkey that a device has told: what reads and writes are posted with. */
static inline uint32_t ndx_token_of_rkey(uint32_t rkey)
{
	return ndx_rkey_of_token(rkey); /* the same the other way */
}

/** One end. Fields that its kind does not have are 0. */
struct ndx_peer_description {
	uint32_t kind;                /**< enum ndx_description_kind */
	uint32_t inbound_read_limit;  /**< reads that this end serves at once */
	uint32_t outbound_read_limit; /**< reads that this end wants in flight */
	uint32_t mailbox_rkey; /**< VERBS_RC: rkey of memory into which an NDX peer may write a
	                            byte, at 32 * (qpn mod 64) + 9, to learn whether this end
	                            answers; 0: none, it is not asked */
	struct ndx_memory_description memory;

	/* MEETING */
	char stack[16];     /**< what both ends must have in common: "ofi:tcp"; NUL-terminated */
	uint8_t cookie[16]; /**< random; tells this end from any other */
	struct sockaddr_storage
		address; /**< the server's: where it listens; the client's: from
	                      where it comes, or AF_UNSPEC. The scope of a link-local
	                      one may be 0: whoever connects knows its own link */

	/* VERBS_RC (InfiniBand Architecture Specification, volume 1, 12.9) */
	uint32_t qpn;    /**< 24 bits */
	uint32_t psn;    /**< 24 bits: of the first packet that this end sends */
	uint32_t mtu;    /**< bytes: 256, 512, 1024, 2048 or 4096, the port's active one */
	uint16_t lid;    /**< 0 on Ethernet */
	uint8_t gid[16]; /**< all 0: none (InfiniBand without a global route) */
};

/** What both ends settled on; the same on either side. */
struct ndx_agreement {
	uint32_t kind;         /**< enum ndx_description_kind */
	uint32_t mtu;          /**< bytes: the smaller one; 0 where it does not matter */
	uint32_t client_reads; /**< reads that the client may have in flight */
	uint32_t server_reads; /**< reads that the server may have in flight */
};

NDX_DECLS_END

#endif
