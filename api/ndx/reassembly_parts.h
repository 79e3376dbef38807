/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Reassembly for programs that have dissected the packets already.
 *
 * There are three places to enter:
 *  - ndx_reassembly_feed_transport() takes what is behind the network header: a packet of
 *    InfiniBand from its base transport header on, or a segment of TCP.
 *  - ndx_reassembly_feed_operation() takes whole operations: SENDs, and the data of writes and of
 *    reads with their handles and addresses.
 *  - struct ndx_rdma_segment is one memory segment by itself, without connections and calls: data
 *    are placed by address, by packet sequence number or by read request.
 *
 * The first two report the events of <ndx/reassembly.h>. Give a connection in one form only:
 * packets, transport or operations; different connections may have different forms.
 *
 * These calls are in libndx-reassembly. A call that fails returns a status only.
 */
#ifndef NDX_REASSEMBLY_PARTS_H
#define NDX_REASSEMBLY_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ndx/decls.h>
#include <ndx/reassembly.h>
#include <ndx/status.h>

NDX_DECLS_BEGIN

/** A packet without its link and network headers. Set everything else to 0. */
struct ndx_transport_packet {
	size_t size;      /**< the caller sets sizeof(struct ndx_transport_packet) */
	uint64_t time_ns; /**< since any origin; may decrease */
	enum ndx_rdma_transport transport;
	enum ndx_rdma_address family;
	/** NDX_RDMA_IWARP: `number` is the TCP port. Otherwise `number` is not read: the base
	 * transport header has it. Of an IPv4 address the last 4 bytes are read. */
	struct ndx_rdma_endpoint source, destination;
	uint32_t sequence;     /**< NDX_RDMA_IWARP: sequence number of TCP */
	uint32_t acknowledged; /**< NDX_RDMA_IWARP: acknowledgement number of TCP */
	uint32_t tcp_flags; /**< NDX_RDMA_IWARP: 1 FIN, 2 SYN, 4 RST, 16 ACK; or any byte of TCP */
	uint32_t captured;  /**< bytes in the capture; at least 12 for a packet of InfiniBand */
	/** Bytes on the wire, without the ICRC of InfiniBand; at least `captured`. */
	uint32_t length;
	/** From the base transport header on, or the payload of TCP; read during the call only; may
	 * be NULL if `captured` is 0. */
	const uint8_t *bytes;
};

/** `size` of struct ndx_transport_packet in version 0.1; the smallest that is accepted. */
#define NDX_TRANSPORT_PACKET_SIZE_0_1 NDX_SIZE_UP_TO(struct ndx_transport_packet, bytes)

/** Kind of an operation. */
enum ndx_rdma_operation_kind {
	NDX_RDMA_OPERATION_SEND = 1,  /**< `source` sends a message */
	NDX_RDMA_OPERATION_WRITE = 2, /**< `source` writes to memory of `destination` */
	NDX_RDMA_OPERATION_READ = 3,  /**< `source` has read memory of `destination` */
};

/**
 * An RDMA operation, or a part of a write or read. Set everything else to 0.
 *
 * Operations of a connection come in the order in which they took effect: the order tells whether
 * data are for an older or for a newer use of a handle.
 */
struct ndx_rdma_operation {
	size_t size;      /**< the caller sets sizeof(struct ndx_rdma_operation) */
	uint64_t time_ns; /**< since any origin; may decrease */
	enum ndx_rdma_transport transport;
	enum ndx_rdma_address family;
	/**
	 * The two sides; `number` is the queue pair number of that side, or its TCP port. With
	 * NDX_RDMA_IWARP both are needed. Otherwise a number may be NDX_RDMA_QPN_UNKNOWN: the
	 * connections between two hosts are told apart by the numbers only. Of an IPv4 address the
	 * last 4 bytes are read.
	 */
	struct ndx_rdma_endpoint source, destination;
	enum ndx_rdma_operation_kind kind;
	uint32_t handle;     /**< write, read: of the memory of `destination` */
	uint64_t address;    /**< write, read: where `bytes` are in that memory */
	uint32_t captured;   /**< bytes in the capture */
	uint32_t length;     /**< bytes of the operation; at least `captured` */
	bool has_immediate;  /**< SEND */
	bool has_invalidate; /**< SEND */
	uint32_t immediate;
	uint32_t invalidate; /**< handle that the receiver invalidates */
	/** Read during the call only; may be NULL if `captured` is 0. */
	const uint8_t *bytes;
};

/** `size` of struct ndx_rdma_operation in version 0.1; the smallest that is accepted. */
#define NDX_RDMA_OPERATION_SIZE_0_1 NDX_SIZE_UP_TO(struct ndx_rdma_operation, bytes)

/**
 * Process a packet without its link and network headers. Its events come before the call returns. A
 * packet that cannot be understood is counted; it is not a failure. The ICRC is not verified:
 * `check_crc` of the attributes concerns the CRC of MPA only.
 *
 * @retval NDX_E_INVALID_PARAMETER NULL argument; `size` is smaller than in any released version; no
 * such transport or family; a port above 65535; flags above 255; fewer than 12 bytes of an
 * InfiniBand packet; `length` is less than `captured`, or more than 2^30, the largest window of TCP
 *
 * Thread safety: as ndx_reassembly_feed(). Blocks: no.
 */
enum ndx_status ndx_reassembly_feed_transport(struct ndx_reassembly *reassembly,
                                              const struct ndx_transport_packet *packet);

/**
 * Process an operation. Its events come before the call returns. The `psn` of its events is a count
 * of the connection's operations in that direction, because operations have no packets.
 *
 * @retval NDX_E_INVALID_PARAMETER NULL argument; `size` is smaller than in any released version; no
 * such transport, family or kind; a number that is neither a port (iWARP) nor of 24 bits; `length`
 * is less than `captured`
 *
 * Thread safety: as ndx_reassembly_feed(). Blocks: no.
 */
enum ndx_status ndx_reassembly_feed_operation(struct ndx_reassembly *reassembly,
                                              const struct ndx_rdma_operation *operation);

/** A memory segment: bytes with addresses, of which some are present. Opaque. */
struct ndx_rdma_segment;

/**
 * Create a segment of which no byte is present.
 *
 * @param address   of its first byte, as the peer names it
 * @param length    bytes, from 1
 * @param max_bytes memory that it may use; memory is used where data arrive, 32 KiB at a time
 * @param[out] out  the segment; untouched on failure; release it with ndx_rdma_segment_close()
 *
 * @retval NDX_E_INVALID_PARAMETER `out` is NULL, `length` is 0, or the addresses wrap around
 * @retval NDX_E_NO_MEMORY         out of memory, or @p max_bytes is less than some hundred bytes
 *
 * Thread safety: any thread; a segment is used by one thread at a time. Blocks: no.
 */
enum ndx_status ndx_rdma_segment_create(uint64_t address, uint32_t length, size_t max_bytes,
                                        struct ndx_rdma_segment **out);

/** Release a segment and its data. NULL is a no-op. */
void ndx_rdma_segment_close(struct ndx_rdma_segment *segment);

/**
 * Place bytes by their address. Bytes that are present already stay as they are; bytes behind the
 * end of the segment are left out.
 *
 * @retval NDX_E_INVALID_PARAMETER NULL argument
 * @retval NDX_E_NOT_FOUND         @p address is not in the segment
 * @retval NDX_E_NO_MEMORY         out of memory, `max_bytes` is reached, or there are more than
 * 65536 gaps; nothing changed
 *
 * Thread safety: as ndx_rdma_segment_create(). Blocks: no.
 */
enum ndx_status ndx_rdma_segment_add_data(struct ndx_rdma_segment *segment, uint64_t address,
                                          const uint8_t *bytes, uint32_t length);

/**
 * Add an operation of InfiniBand, a write or a read: it maps packet sequence numbers to addresses.
 *
 * @param psn      of its first packet, 24 bits
 * @param address  where it begins, in the segment
 * @param length   bytes of the operation
 * @param path_mtu of the path, 256 .. 4096; 0: not known, the operation's packets show it
 *
 * @retval NDX_E_INVALID_PARAMETER NULL argument; @p psn has more than 24 bits, or there is no such
 * path MTU
 * @retval NDX_E_NOT_FOUND         @p address is not in the segment
 * @retval NDX_E_NO_MORE_ENTRIES   the segment has 1024 operations
 * @retval NDX_E_NO_MEMORY         out of memory, or `max_bytes` is reached
 *
 * Thread safety: as ndx_rdma_segment_create(). Blocks: no.
 */
enum ndx_status ndx_rdma_segment_add_operation(struct ndx_rdma_segment *segment, uint32_t psn,
                                               uint64_t address, uint32_t length,
                                               uint32_t path_mtu);

/**
 * Place the data of a packet of InfiniBand by its sequence number, through the oldest operation to
 * which the packet fits.
 *
 * @param psn  24 bits
 * @param last the opcode marks the last packet of the operation, or the only one
 *
 * @retval NDX_E_INVALID_PARAMETER NULL argument, or @p psn has more than 24 bits
 * @retval NDX_E_NOT_FOUND         the packet fits to no operation
 * @retval NDX_E_NO_MEMORY         as ndx_rdma_segment_add_data()
 *
 * Thread safety: as ndx_rdma_segment_create(). Blocks: no.
 */
enum ndx_status ndx_rdma_segment_add_packet(struct ndx_rdma_segment *segment, uint32_t psn,
                                            bool last, const uint8_t *bytes, uint32_t length);

/** Is a packet with this sequence number part of an operation of the segment? False for NULL. */
bool ndx_rdma_segment_valid_psn(const struct ndx_rdma_segment *segment, uint32_t psn);

/**
 * Add a read request of iWARP: its response names the sink, and the data are those of the source,
 * which is in the segment.
 *
 * @param sink_handle  STag of the sink
 * @param sink_offset  tagged offset of the sink
 * @param source       address in the segment
 * @param length       bytes that the request asks for
 *
 * @retval NDX_E_INVALID_PARAMETER NULL argument
 * @retval NDX_E_NOT_FOUND         @p source is not in the segment
 * @retval NDX_E_NO_MORE_ENTRIES   the segment has 1024 requests
 * @retval NDX_E_NO_MEMORY         out of memory, or `max_bytes` is reached
 *
 * Thread safety: as ndx_rdma_segment_create(). Blocks: no.
 */
enum ndx_status ndx_rdma_segment_add_request(struct ndx_rdma_segment *segment, uint32_t sink_handle,
                                             uint64_t sink_offset, uint64_t source,
                                             uint32_t length);

/**
 * Place the data of a read response of iWARP, or of a part of it, through the newest request to
 * which it fits.
 *
 * @retval NDX_E_INVALID_PARAMETER NULL argument
 * @retval NDX_E_NOT_FOUND         the data fit to no request
 * @retval NDX_E_NO_MEMORY         as ndx_rdma_segment_add_data()
 *
 * Thread safety: as ndx_rdma_segment_create(). Blocks: no.
 */
enum ndx_status ndx_rdma_segment_add_response(struct ndx_rdma_segment *segment,
                                              uint32_t sink_handle, uint64_t sink_offset,
                                              const uint8_t *bytes, uint32_t length);

/** Number of bytes that are present. 0 for NULL. */
uint64_t ndx_rdma_segment_size(const struct ndx_rdma_segment *segment);

/**
 * The first gap at or behind an offset.
 *
 * @param from        offset in the segment, in bytes
 * @param[out] offset of the first missing byte; untouched if there is none; may be NULL
 * @param[out] length number of missing bytes; untouched if there is none; may be NULL
 *
 * @return is there one? False for NULL.
 */
bool ndx_rdma_segment_gap(const struct ndx_rdma_segment *segment, uint64_t from, uint64_t *offset,
                          uint64_t *length);

/**
 * Copy the bytes of the segment, with zeros for those that are not present.
 *
 * @param padded add zeros up to a multiple of 4, as XDR does
 * @param buffer may be NULL if @p room is 0
 *
 * @return the length of the segment, with the padding; at most @p room bytes are copied. 0 for
 * NULL.
 */
size_t ndx_rdma_segment_get_data(const struct ndx_rdma_segment *segment, bool padded,
                                 uint8_t *buffer, size_t room);

NDX_DECLS_END

#endif
