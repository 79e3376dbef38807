/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Descriptions of one end of a connection, for peers that exchange them without a connection
 * manager: in a negotiated session, or by hand.
 *
 * A description is a plain value in host byte order, without pointers. The format on the wire is up
 * to the plugin or program that carries it (ndx/spi/plugin.h).
 */
#ifndef NDX_DESCRIPTION_H
#define NDX_DESCRIPTION_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <ndx/decls.h>

NDX_DECLS_BEGIN

/** The two ends of a connection: one is the client, the other the server. */
enum ndx_role {
	NDX_ROLE_CLIENT = 0,
	NDX_ROLE_SERVER = 1,
};

/** The kind of end. Two ends of different kinds cannot connect. */
enum ndx_description_kind {
	NDX_DESCRIPTION_NONE = 0,
	/** The server listens at an address and recognises the client by a cookie. */
	NDX_DESCRIPTION_RENDEZVOUS = 1,
	NDX_DESCRIPTION_VERBS_RC = 2, /**< a reliable connected queue pair: numbers, GID or LID */
};

/**
 * Memory that a peer may access. Access needs one of two numbers. A peer that runs NDX posts reads
 * and writes with the token, which is opaque. Any other device needs the rkey, the number that the
 * InfiniBand wire carries.
 */
struct ndx_memory_description {
	uint64_t address;
	uint64_t length; /**< in bytes; 0: none */
	uint32_t token;  /**< remote token, as from ndx_mr_get_remote_token() */
	/**
	 * VERBS_RC only: the rkey in host byte order. A program that describes its end may leave it
	 * 0; the library derives it from the token.
	 */
	uint32_t rkey;
};

/**
 * The rkey for a remote token, for adapters whose descriptions are of kind VERBS_RC. A token is the
 * four bytes of the rkey in network byte order.
 */
static inline uint32_t ndx_rkey_of_token(uint32_t token)
{
	const unsigned char *byte = (const unsigned char *)&token;

	return (uint32_t)byte[0] << 24 | (uint32_t)byte[1] << 16 | (uint32_t)byte[2] << 8 | byte[3];
}

/** The remote token for a device's rkey. Reads and writes are posted with the token. */
static inline uint32_t ndx_token_of_rkey(uint32_t rkey)
{
	return ndx_rkey_of_token(rkey); /* the conversion is its own inverse */
}

/**
 * What an end does without, for ends that do not run NDX: bits of struct ndx_peer_description.
 * Without a bit, the end is treated as one that runs NDX.
 */
enum ndx_peer_policy {
	/**
	 * Of its own accord, NDX writes nothing into this end's memory, whatever mailbox_rkey says:
	 * no probe, and no proof of the path. Requests of the program are the program's affair.
	 */
	NDX_PEER_NOT_WRITTEN = 1 << 0,
	/**
	 * This end is not asked for signs of life, neither by keepalive nor by a write of no bytes
	 * that names no memory. Its silence proves nothing, and only a request that fails, or the
	 * end of the stream between the two ends, shows that it is gone. But see
	 * NDX_PEER_IS_HEARD.
	 */
	NDX_PEER_NOT_ASKED = 1 << 1,
	/**
	 * This end neither sends nor answers goodbyes. It needs no out-of-band stream: the own
	 * goodbye counts as delivered and answered, as with NDX_NO_OOB_STREAM.
	 */
	NDX_PEER_NO_GOODBYES = 1 << 2,
	/**
	 * With NOT_ASKED: this end sends often, so keepalive goes by what it sends. The connection
	 * ends if nothing of it completes a receive, or answers a request, for `keepalive_ms`. For
	 * queue pairs without an SRQ; writes without immediate data are not seen.
	 */
	NDX_PEER_IS_HEARD = 1 << 3,
	/** A device with a queue pair and nothing else: the first three of these. */
	NDX_PEER_DEVICE = NDX_PEER_NOT_WRITTEN | NDX_PEER_NOT_ASKED | NDX_PEER_NO_GOODBYES,
};

/** One end of a connection. Fields that do not apply to the kind are 0. */
struct ndx_peer_description {
	uint32_t kind;                /**< enum ndx_description_kind */
	uint32_t inbound_read_limit;  /**< reads that this end serves at once */
	uint32_t outbound_read_limit; /**< own reads that this end wants in flight */
	/**
	 * VERBS_RC: rkey of memory for the liveness probe. An NDX peer may write one byte at offset
	 * 32 * (qpn mod 64) + 9 to find out whether this end answers. In a negotiated session it
	 * may also write what proves the path, into the first 6144 bytes
	 * (docs/negotiation-protocol.md), if this end says that it does the same. 0: none; the peer
	 * writes nothing.
	 */
	uint32_t mailbox_rkey;
	struct ndx_memory_description memory;

	/* RENDEZVOUS */
	char stack[16]; /**< must be the same at both ends, for example "ofi:tcp"; NUL-terminated */
	uint8_t cookie[16]; /**< random; identifies this end */
	/**
	 * Server: the address where it listens. Client: its source address, or AF_UNSPEC. The scope
	 * id of a link-local address may be 0; the end that connects fills in its own.
	 */
	struct sockaddr_storage address;

	/* VERBS_RC (InfiniBand Architecture Specification, volume 1, 12.9) */
	uint32_t qpn;    /**< 24 bits */
	uint32_t psn;    /**< 24 bits: PSN of the first packet that this end sends */
	uint32_t mtu;    /**< the port's active MTU in bytes: 256, 512, 1024, 2048 or 4096 */
	uint16_t lid;    /**< 0 on Ethernet */
	uint8_t gid[16]; /**< all 0: none (InfiniBand without a global route) */
	uint32_t policy; /**< OR of enum ndx_peer_policy; 0: this end runs NDX */
};

/** Parameters that both ends agreed on; identical at both ends. */
struct ndx_agreement {
	uint32_t kind; /**< enum ndx_description_kind */
	uint32_t mtu;  /**< the smaller of the two MTUs, in bytes; 0 where it does not apply */
	uint32_t client_reads; /**< reads that the client may have in flight */
	uint32_t server_reads; /**< reads that the server may have in flight */
};

NDX_DECLS_END

#endif
