/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Adapters: what there is, what it can do, opening and closing.
 *
 * An adapter is one open device of one provider and the protection domain of everything made from
 * it: queue pairs, regions, windows and queues that are used together come from the same adapter.
 * It has one control thread ("ndx-ctl"), which drives connections, time-outs and callbacks.
 *
 * Adapters are named by a URI, PROVIDER[:DEVICE][?KEY=VALUE[&KEY=VALUE]...]: "loop",
 * "ofi:tcp?iface=lo", "verbs:rxe0?gid=1". docs/providers.md lists devices and keys.
 * (IND2Adapter, IND2Provider, NdOpenAdapter.)
 */
#ifndef NDX_ADAPTER_H
#define NDX_ADAPTER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <ndx/decls.h>
#include <ndx/status.h>

NDX_DECLS_BEGIN

struct ndx_adapter; /* opaque */

/** What an adapter can do beyond the common part; bits of ndx_adapter_info.capabilities. */
enum ndx_capability {
	NDX_CAP_IN_ORDER_DMA = 1 << 0,     /**< later bytes never become visible before earlier */
	NDX_CAP_LOOPBACK = 1 << 1,         /**< connects to itself */
	NDX_CAP_CQ_RESIZE = 1 << 2,        /**< ndx_cq_resize() */
	NDX_CAP_NOTIFY_SOLICITED = 1 << 3, /**< NDX_CQ_NOTIFY_SOLICITED, else as ANY */
	NDX_CAP_NOTIFY_AFFINITY = 1 << 4,  /**< ndx_cq_get_notify_affinity() */
	NDX_CAP_INTERRUPT_MODERATION = 1 << 5, /**< completion events may be coalesced */
	NDX_CAP_MEMORY_WINDOW = 1 << 6,        /**< ndx_mw_create(), bind, invalidate */
	NDX_CAP_SRQ = 1 << 7,                  /**< ndx_srq_create() */
	NDX_CAP_SEND_IMMEDIATE = 1 << 8,       /**< ndx_qp_send_immediate() */
	NDX_CAP_WRITE_IMMEDIATE = 1 << 9,      /**< ndx_qp_write_immediate() */
	NDX_CAP_REMOTE_ACCESS_STATUS = 1
	                               << 10, /**< a remote violation completes ACCESS_VIOLATION */
	NDX_CAP_DISCONNECT_REASON = 1 << 11,  /**< tells graceful from aborted, always */
	NDX_CAP_RNR_TIMER = 1 << 12,          /**< `rnr_timer` of struct ndx_qp_attr */
};

/** Name of one capability bit, "SRQ"; NULL for an unknown bit. */
const char *ndx_capability_name(enum ndx_capability bit);

/**
 * Limits and capabilities of an open adapter. All limits are usable at once.
 * (ND2_ADAPTER_INFO; lengths in bytes, depths in requests.)
 */
struct ndx_adapter_info {
	size_t size;                    /**< sizeof(struct ndx_adapter_info), set by the caller */
	char uri[128];                  /**< what to pass to ndx_adapter_open() to get it again */
	char provider[16];              /**< "loop", "ofi", "verbs" */
	char device[64];                /**< the provider's name for the device */
	uint64_t adapter_id;            /**< unique on this host, the same at every open */
	uint32_t vendor_id;             /**< PCI vendor, 0 for software */
	uint32_t device_id;             /**< PCI device, 0 for software */
	uint64_t capabilities;          /**< OR of enum ndx_capability */
	uint64_t max_registration_size; /**< largest region */
	uint64_t max_window_size;       /**< largest memory window, 0 without windows */
	uint32_t max_initiator_sge;     /**< SGEs of a send or write */
	uint32_t max_receive_sge;       /**< SGEs of a receive */
	uint32_t max_read_sge;          /**< SGEs of a read, at most max_initiator_sge */
	uint32_t max_transfer_length;   /**< sum of the SGEs of one request */
	uint32_t max_inline_data_size;  /**< sum of the SGEs of one inline request */
	uint32_t inline_request_threshold; /**< below this, inline is worth it; 0: never */
	uint32_t large_request_threshold;  /**< above this, read/write beats send/receive */
	uint32_t max_inbound_read_limit;   /**< reads served at once per connection */
	uint32_t max_outbound_read_limit;  /**< reads in flight per connection */
	uint32_t max_receive_queue_depth;
	uint32_t max_initiator_queue_depth;      /**< equals max_receive_queue_depth */
	uint32_t max_shared_receive_queue_depth; /**< 0 without SRQ */
	uint32_t max_completion_queue_depth;
	uint32_t max_caller_data; /**< private data of connect */
	uint32_t max_callee_data; /**< private data of accept and reject */
};

/** One adapter that could be opened, or a device that is there but cannot be, and why. */
struct ndx_adapter_entry {
	char uri[128]; /**< for ndx_adapter_open() */
	char provider[16];
	char device[64];
	char interface_name[32];         /**< network interface, "" if none */
	struct sockaddr_storage address; /**< first local address; ss_family AF_UNSPEC if none */
	uint64_t adapter_id;
	enum ndx_status state; /**< NDX_OK, or why it cannot be used */
	char hint[256];        /**< what is wrong and the command that mends it; "" if NDX_OK */
};

/**
 * List the adapters of all providers of this build, usable ones and others with their reason.
 *
 * @param[out] entries  array of @p count entries, release with ndx_adapter_list_free()
 * @param[out] count    how many; 0 is possible
 *
 * @retval NDX_E_NO_MEMORY out of memory; outputs untouched
 *
 * Thread safety: any thread. Blocks: on device probing, up to about a second. The calling thread
 * takes signals again when the call returns.
 */
enum ndx_status ndx_adapter_list(struct ndx_adapter_entry **entries, size_t *count);

/** Release what ndx_adapter_list() returned. NULL is a no-op. */
void ndx_adapter_list_free(struct ndx_adapter_entry *entries);

/**
 * Open an adapter.
 *
 * @param uri       which one; NULL: $NDX_ADAPTER if set, else `adapter = ...` of section [ndx] in
 *                  the first INI file of $NDX_CONFIG, ~/.config/ndx.ini, /etc/ndx.ini that exists,
 *                  else automatic: verbs if a device has an active port, else ofi:verbs, else
 *                  ofi:tcp. "auto" asks for the automatic choice.
 * @param[out] out  the adapter; untouched on failure; release with ndx_adapter_close()
 *
 * @retval NDX_E_INVALID_PARAMETER      @p out is NULL
 * @retval NDX_E_INVALID_CONFIG         URI, variable or file is malformed, names an unknown key, or
 *                                      a value is out of range; ndx_last_error() says where
 * @retval NDX_E_NOT_FOUND              no such provider, device or interface
 * @retval NDX_E_DEVICE_NOT_READY       the device is there but cannot be used (module, port,
 * rights)
 * @retval NDX_E_ABI_MISMATCH           the provider was built against another interface
 * @retval NDX_E_NO_MEMORY              out of memory
 * @retval NDX_E_INSUFFICIENT_RESOURCES no thread, descriptor or device context left
 *
 * Thread safety: any thread. Blocks: on device probing. The calling thread takes signals again when
 * the call returns.
 */
enum ndx_status ndx_adapter_open(const char *uri, struct ndx_adapter **out);

/**
 * Close the handle. Objects made from the adapter stay usable until they are closed themselves; the
 * device is let go with the last of them. With none left it waits until goodbyes that are still on
 * their way have been said or have timed out (at most the disconnect time-out), unless called from
 * a callback. NULL is a no-op.
 */
void ndx_adapter_close(struct ndx_adapter *adapter);

/**
 * Limits and capabilities.
 *
 * @param[in,out] info  `size` set by the caller; the library fills no more than that
 *
 * @retval NDX_E_INVALID_PARAMETER `size` is smaller than any released version's
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_adapter_query(struct ndx_adapter *adapter, struct ndx_adapter_info *info);

/**
 * Local addresses of the adapter, IPv4 and IPv6, port 0.
 *
 * @param[out] list      up to @p *count addresses; may be NULL if @p *count is 0
 * @param[in,out] count  room in @p list; set to the number there are
 *
 * @retval NDX_E_BUFFER_OVERFLOW @p list is too small, nothing was copied, @p *count is what it
 * takes
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_adapter_query_addresses(struct ndx_adapter *adapter,
                                            struct sockaddr_storage *list, size_t *count);

/**
 * Which local adapter reaches a remote address, and from which local address (NdResolveAddress).
 * For an address of this host: the adapter that has it (NdCheckAddress, NdOpenAdapter). The one
 * that $NDX_ADAPTER or the INI file names goes first, as it is written there; it is opened for a
 * moment to ask for its addresses.
 *
 * @param remote      IPv4 or IPv6 address; the port does not matter
 * @param remote_len  its length in bytes
 * @param[out] uri    buffer for the adapter's URI
 * @param uri_size    its size; 128 suffices
 * @param[out] local  the local address to bind to, port 0; may be NULL
 *
 * @retval NDX_E_INVALID_PARAMETER   not an address of a family that we know
 * @retval NDX_E_NETWORK_UNREACHABLE no route
 * @retval NDX_E_INVALID_ADDRESS     routed over an interface that no adapter serves
 * @retval NDX_E_BUFFER_OVERFLOW     @p uri is too small
 * @retval NDX_E_INVALID_CONFIG      the INI file is malformed
 *
 * Thread safety: any thread. Blocks: on device probing. The calling thread takes signals again when
 * the call returns.
 */
enum ndx_status ndx_resolve(const struct sockaddr *remote, socklen_t remote_len, char *uri,
                            size_t uri_size, struct sockaddr_storage *local);

NDX_DECLS_END

#endif
