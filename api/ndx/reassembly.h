/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Reassembly of captured RDMA packets into whole messages, up to RPC-over-RDMA calls and replies.
 *
 * The program feeds packets one by one, as bytes with a time. The library reports a message by
 * callback as soon as no part of it is missing. It makes one pass and uses bounded memory; it
 * reports everything that a limit or its age evicts. Packets may come late, twice, in another order
 * or not at all, and a capture may begin in the middle of a connection.
 *
 * Supported: Ethernet, 802.1Q, Linux cooked, raw IP and ERF; IPv4 and IPv6; RoCEv2, RoCEv1 and
 * native InfiniBand (RC, UC, XRC); iWARP over any TCP port (MPA revision 1 and 2, markers);
 * RPC-over-RDMA version 1, and the head of version 2. The library reads no files; ndx-decode does.
 *
 * These calls are in libndx-reassembly (pkg-config ndx-reassembly), which needs no other library of
 * NDX. A call that fails returns a status only: ndx_last_error() has no text.
 */
#ifndef NDX_REASSEMBLY_H
#define NDX_REASSEMBLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ndx/decls.h>
#include <ndx/status.h>

NDX_DECLS_BEGIN

struct ndx_reassembly; /* opaque */

/** What a packet begins with. The values are those of capture files (LINKTYPE_...). */
enum ndx_link_type {
	NDX_LINK_ETHERNET = 1,
	NDX_LINK_RAW = 101, /**< IPv4 or IPv6, according to the version field */
	NDX_LINK_SLL = 113, /**< Linux cooked, "any" interface */
	NDX_LINK_ERF = 197, /**< extensible record format: native InfiniBand, Ethernet */
	NDX_LINK_IPV4 = 228,
	NDX_LINK_IPV6 = 229,
	NDX_LINK_INFINIBAND = 247, /**< begins with the local route header */
	NDX_LINK_SLL2 = 276,
};

/** A captured packet. */
struct ndx_packet {
	const uint8_t *bytes; /**< read during the call only; may be NULL if captured is 0 */
	uint64_t time_ns;     /**< since any origin; may decrease */
	uint32_t captured;    /**< bytes in the capture */
	uint32_t original;  /**< bytes on the wire; more than captured if the capture cut the packet
	                     */
	uint32_t link_type; /**< enum ndx_link_type; packets of other types are counted only */
};

/** Transport of a connection. */
enum ndx_rdma_transport {
	NDX_RDMA_ROCE_V2 = 1,
	NDX_RDMA_ROCE_V1 = 2,
	NDX_RDMA_INFINIBAND = 3,
	NDX_RDMA_IWARP = 4,
};

/** Format of the 16 bytes of an address. */
enum ndx_rdma_address {
	NDX_RDMA_ADDRESS_IPV4 = 4, /**< the last 4 bytes, after ::ffff */
	NDX_RDMA_ADDRESS_IPV6 = 6,
	NDX_RDMA_ADDRESS_GID = 7,
	NDX_RDMA_ADDRESS_LID = 8, /**< the last 2 bytes */
};

/** A queue pair number that is not known, or not yet. */
#define NDX_RDMA_QPN_UNKNOWN UINT32_MAX

/** One side of a connection. */
struct ndx_rdma_endpoint {
	uint8_t address[16];
	uint32_t number; /**< queue pair number or TCP port; may be NDX_RDMA_QPN_UNKNOWN */
};

/** A connection, as far as the capture shows it. */
struct ndx_rdma_connection {
	uint64_t id; /**< 1, 2, ... in order of appearance */
	enum ndx_rdma_transport transport;
	enum ndx_rdma_address family;
	struct ndx_rdma_endpoint side[2]; /**< direction 0 is from side[0] to side[1] */
};

/** Consecutive bytes of a message. */
struct ndx_piece {
	const uint8_t *bytes;
	size_t length;
};

/** Purpose of a chunk. */
enum ndx_rpc_chunk_kind {
	NDX_RPC_CHUNK_READ = 1,  /**< of a call: the server reads it */
	NDX_RPC_CHUNK_WRITE = 2, /**< of a reply: the server writes it, in addition to the reply */
	NDX_RPC_CHUNK_REPLY = 3, /**< of a reply: the reply itself */
};

/** A chunk, transferred outside the inline part of its message. */
struct ndx_rpc_chunk {
	enum ndx_rpc_chunk_kind kind;
	uint32_t position;  /**< read chunk: its position in the canonical message */
	uint32_t segments;  /**< number of segments */
	uint64_t length;    /**< in bytes, without padding */
	size_t first_piece; /**< first of its pieces: pieces[first_piece], piece_count of them */
	size_t piece_count;
};

/**
 * An RPC call or reply.
 *
 * The canonical message of a call has its read chunks inserted at their XDR positions, each padded
 * with zeros to a multiple of 4; a chunk at position 0 is the message itself and is not padded. The
 * canonical message of a reply is the reduced message (RDMA_NOMSG: the reply chunk) followed by its
 * write chunks in order, unpadded: only the upper layer knows where they belong.
 */
struct ndx_rpc_message {
	uint32_t xid;
	uint32_t version;     /**< of RPC-over-RDMA */
	uint32_t header_type; /**< 0 RDMA_MSG, 1 RDMA_NOMSG, 2 RDMA_MSGP */
	uint32_t credits;
	uint32_t program; /**< of the call, also in a reply; 0 if not known */
	uint32_t program_version;
	uint32_t procedure;
	bool call_known;        /**< reply: the capture contains its call */
	uint64_t call_packet;   /**< reply: the packet that completed its call's SEND, or 0 */
	const uint8_t *reduced; /**< the inline part, after the RPC-over-RDMA header */
	size_t reduced_length;
	const struct ndx_rpc_chunk *chunks;
	size_t chunk_count;
	const struct ndx_piece *pieces; /**< pieces[0 .. piece_count) is the canonical message */
	size_t piece_count;
	uint64_t length; /**< of the canonical message */
};

/** A message of one SEND, whatever its content. */
struct ndx_rdma_send {
	const uint8_t *bytes;
	size_t length;    /**< bytes in the capture, which may have cut the last packet */
	size_t original;  /**< bytes that were sent */
	uint32_t psn;     /**< of its first packet; iWARP: message number */
	uint32_t packets; /**< number of packets of the message */
	/** Version of the RPC-over-RDMA header at its start; 0: there is no such header. */
	uint32_t rpc_version;
	bool has_immediate;
	bool has_invalidate;
	uint32_t immediate;
	uint32_t invalidate; /**< handle that the receiver invalidates */
};

/** An RDMA_ERROR message. */
struct ndx_rpc_error {
	uint32_t xid;
	uint32_t code; /**< 1: version (low, high: the range that is supported), 2: chunk */
	uint32_t low, high;
};

/** What a hole is a part of. */
enum ndx_hole_kind {
	NDX_HOLE_READ = 1,   /**< read chunk of a call */
	NDX_HOLE_WRITE = 2,  /**< write chunk of a reply */
	NDX_HOLE_REPLY = 3,  /**< reply chunk */
	NDX_HOLE_SEND = 4,   /**< message of several packets, or cut by the capture */
	NDX_HOLE_STREAM = 5, /**< TCP stream */
};

/**
 * Bytes that are missing in the capture. A message with a hole is not reported as a call or a
 * reply.
 */
struct ndx_hole {
	enum ndx_hole_kind kind;
	uint32_t xid;    /**< 0 for NDX_HOLE_SEND and NDX_HOLE_STREAM */
	uint32_t handle; /**< of the segment */
	uint64_t offset; /**< first missing byte within the segment, message or stream */
	uint64_t length; /**< number of missing bytes; 0 if not known */
	bool has_psn;
	uint32_t first_psn; /**< first of the packets that would fill the hole */
	uint32_t last_psn;
};

/** A packet that came before. */
struct ndx_duplicate {
	uint32_t psn; /**< PSN or TCP sequence number */
	uint8_t opcode;
	bool send; /**< (last packet of) a SEND: a whole message came again */
};

/** Kind of orphan: something whose counterpart is missing. */
enum ndx_orphan_kind {
	NDX_ORPHAN_DATA = 1,        /**< RDMA data for a handle that no call offered */
	NDX_ORPHAN_RESPONSE = 2,    /**< read response without its request */
	NDX_ORPHAN_FRAGMENT = 3,    /**< Middle or Last of a write without its First */
	NDX_ORPHAN_REPLY = 4,       /**< RPC reply without its call; its REPLY event comes, too */
	NDX_ORPHAN_IP_FRAGMENT = 5, /**< fragment of a RoCEv2 datagram; RoCE does not fragment */
};

struct ndx_orphan {
	enum ndx_orphan_kind kind;
	uint32_t psn;
	uint32_t handle; /**< 0 if not known */
	uint32_t xid;    /**< NDX_ORPHAN_REPLY */
	uint64_t length;
};

/** Why something incomplete was evicted. */
enum ndx_eviction_reason {
	NDX_EVICTION_AGE = 1,
	NDX_EVICTION_BYTES = 2,       /**< max_bytes */
	NDX_EVICTION_SEGMENTS = 3,    /**< max_segments */
	NDX_EVICTION_CONNECTIONS = 4, /**< max_connections */
	NDX_EVICTION_FRAGMENTS = 5,   /**< early packets above their share of max_bytes */
};

struct ndx_eviction {
	enum ndx_eviction_reason reason;
	uint32_t xid;      /**< of the evicted call; 0 if it was something else */
	uint32_t segments; /**< number of evicted segments */
	uint64_t bytes;    /**< memory freed */
};

/** Kind of an event. */
enum ndx_reassembly_event_type {
	NDX_REASSEMBLY_CONNECTION = 1, /**< new connection, or its second queue pair became known */
	NDX_REASSEMBLY_SEND = 2,       /**< `send` */
	NDX_REASSEMBLY_CALL = 3,       /**< `rpc` */
	NDX_REASSEMBLY_REPLY = 4,      /**< `rpc` */
	NDX_REASSEMBLY_ERROR = 5,      /**< `error` */
	NDX_REASSEMBLY_HOLE = 6,       /**< `hole` */
	NDX_REASSEMBLY_DUPLICATE = 7,  /**< `duplicate` */
	NDX_REASSEMBLY_ORPHAN = 8,     /**< `orphan` */
	NDX_REASSEMBLY_EVICTION = 9,   /**< `eviction` */
	NDX_REASSEMBLY_BAD_CRC = 10,   /**< ICRC or MPA CRC is wrong; the packet was skipped */
};

/** An event. Everything that it points to is valid during the callback only. */
struct ndx_reassembly_event {
	enum ndx_reassembly_event_type type;
	uint32_t direction; /**< 0: from side[0] of the connection to side[1]; 1: back */
	uint64_t packet;    /**< number of the packet that caused the event, from 1 */
	uint64_t time_ns;   /**< of that packet */
	const struct ndx_rdma_connection *connection; /**< NULL: no connection concerned */
	union {
		struct ndx_rdma_send send;
		struct ndx_rpc_message rpc;
		struct ndx_rpc_error error;
		struct ndx_hole hole;
		struct ndx_duplicate duplicate;
		struct ndx_orphan orphan;
		struct ndx_eviction eviction;
	};
};

/** Takes an event. Must not call the same reassembly. */
typedef void (*ndx_reassembly_event_fn)(void *context, const struct ndx_reassembly_event *event);

/** Attributes. Call ndx_reassembly_attr_init() first, then change members. */
struct ndx_reassembly_attr {
	size_t size;              /**< set by ndx_reassembly_attr_init() */
	size_t max_bytes;         /**< total memory; at least 1 MiB */
	uint64_t max_age_ns;      /**< how long incomplete data are kept, in capture time */
	uint32_t max_segments;    /**< memory segments alive at the same time */
	uint32_t max_connections; /**< connections known at the same time */
	/** How many packets later the packet that explains another one may come. */
	uint32_t reorder_packets;
	bool check_crc;                   /**< verify ICRC and MPA CRC; takes time */
	ndx_reassembly_event_fn on_event; /**< not NULL */
	void *context;                    /**< passed to on_event */
};

/** `size` of struct ndx_reassembly_attr in version 0.1; the smallest that is accepted. */
#define NDX_REASSEMBLY_ATTR_SIZE_0_1 NDX_SIZE_UP_TO(struct ndx_reassembly_attr, context)

/** Counters since creation or reset. */
struct ndx_reassembly_stats {
	size_t size; /**< the caller sets sizeof(struct ndx_reassembly_stats) */
	uint64_t packets;
	uint64_t bytes;        /**< bytes in the capture */
	uint64_t rdma_packets; /**< of `packets`: packets with RDMA data */
	uint64_t connections;
	uint64_t sends;
	uint64_t calls;
	uint64_t replies;            /**< replies whose call is known */
	uint64_t replies_unmatched;  /**< replies whose call is not known */
	uint64_t errors;             /**< RDMA_ERROR messages */
	uint64_t calls_incomplete;   /**< calls given up with a hole */
	uint64_t replies_incomplete; /**< replies given up with a hole */
	uint64_t calls_unanswered;   /**< complete calls without a reply */
	uint64_t holes;
	uint64_t duplicates;      /**< duplicate packets */
	uint64_t duplicate_sends; /**< of `duplicates`: SEND messages */
	uint64_t orphans;
	uint64_t evictions;
	uint64_t malformed; /**< packets and messages with contradictory lengths or fields */
	uint64_t truncated; /**< packets that the capture cut */
	uint64_t bad_crc;
	uint64_t crc_checked;
	uint64_t ip_fragments; /**< of UDP or TCP; skipped, because RDMA does not fragment */
	uint64_t bytes_held;   /**< memory at present */
	uint64_t bytes_peak;   /**< highest memory so far */
	uint64_t segments;     /**< segments alive at present */
	uint64_t opcodes[256]; /**< InfiniBand packets, by opcode of the base transport header */
	uint64_t rdmap[16];    /**< iWARP frames, by RDMAP opcode */
};

/** `size` of struct ndx_reassembly_stats in version 0.1; the smallest that is accepted. */
#define NDX_REASSEMBLY_STATS_SIZE_0_1 NDX_SIZE_UP_TO(struct ndx_reassembly_stats, rdmap)

/** As ndx_reassembly_attr_init(), of a structure of @p size bytes; for other languages. */
void ndx_reassembly_attr_init_sized(struct ndx_reassembly_attr *attr, size_t size);

/**
 * Fill @p attr with the defaults: 24 MiB, 300 s, 65536 segments, 4096 connections, 1024 packets.
 */
static inline void ndx_reassembly_attr_init(struct ndx_reassembly_attr *attr)
{
	ndx_reassembly_attr_init_sized(attr, sizeof(*attr));
}

/**
 * Create a reassembly.
 *
 * @param[out] out  the reassembly; untouched on failure; release it with ndx_reassembly_close()
 *
 * @retval NDX_E_INVALID_PARAMETER NULL argument, `size` is not that of a structure, no on_event, or
 * a limit out of range
 * @retval NDX_E_NO_MEMORY         out of memory
 *
 * Thread safety: any thread; an object is used by one thread at a time. Blocks: no.
 */
enum ndx_status ndx_reassembly_create(const struct ndx_reassembly_attr *attr,
                                      struct ndx_reassembly **out);

/**
 * Process a packet. Its events come before the call returns. A packet that cannot be understood is
 * counted; it is not a failure.
 *
 * @retval NDX_E_INVALID_PARAMETER NULL argument
 */
enum ndx_status ndx_reassembly_feed(struct ndx_reassembly *reassembly,
                                    const struct ndx_packet *packet);

/**
 * Report and drop all incomplete data (holes, orphans), at the end of a capture. Connections stay
 * known, so that the next file of a series may follow. NULL is a no-op.
 */
void ndx_reassembly_flush(struct ndx_reassembly *reassembly);

/** Drop everything without reports, and clear the counters. NULL is a no-op. */
void ndx_reassembly_reset(struct ndx_reassembly *reassembly);

/** Number of segments alive: offered by a call, and not completely used. 0 for NULL. */
size_t ndx_reassembly_size(const struct ndx_reassembly *reassembly);

/**
 * Copy the counters since creation or reset.
 *
 * @param[in,out] stats  the caller sets `size`; the call fills as much as that
 *
 * @retval NDX_E_INVALID_PARAMETER NULL argument, or `size` is smaller than in any released version
 */
enum ndx_status ndx_reassembly_get_stats(const struct ndx_reassembly *reassembly,
                                         struct ndx_reassembly_stats *stats);

/** Release a reassembly, without reports. NULL is a no-op. */
void ndx_reassembly_close(struct ndx_reassembly *reassembly);

/**
 * Copy a canonical message, or a chunk of it, into one buffer.
 *
 * @return bytes copied, at most @p room
 */
size_t ndx_piece_copy(const struct ndx_piece *pieces, size_t count, uint8_t *buffer, size_t room);

/** Name of an InfiniBand opcode, for example "RC SEND_Only"; "?" for an unknown one. Never NULL. */
const char *ndx_rdma_opcode_name(uint8_t opcode);

/** Name of an RDMAP opcode, for example "Read Request"; "?" for an unknown one. Never NULL. */
const char *ndx_rdmap_opcode_name(uint8_t opcode);

NDX_DECLS_END

#endif
