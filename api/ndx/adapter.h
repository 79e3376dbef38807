/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Adapters: listing, opening, querying and closing them.
 *
 * An adapter is one open device of one provider, and the protection domain of everything that is
 * created on it. Queue pairs, regions, windows and queues that are used together must belong to the
 * same adapter. Every adapter has one control thread ("ndx-ctl"), which drives connections,
 * time-outs and callbacks.
 *
 * A URI names an adapter: PROVIDER[:DEVICE][?KEY=VALUE[&KEY=VALUE]...], for example "loop",
 * "ofi:tcp?iface=lo" or "verbs:rxe0?gid=1". docs/providers.md lists devices and keys. Two keys
 * belong to every adapter: `thread`, the name of the control thread, at most 15 bytes; and `cpus`,
 * the processors that it runs on, such as "cpus=2-3,8". Without `cpus` it runs where the thread
 * that opens the adapter may run. (IND2Adapter, IND2Provider, NdOpenAdapter.)
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

/** Optional abilities of an adapter; bits of ndx_adapter_info.capabilities. */
enum ndx_capability {
	/** Later bytes of a write never become visible before its earlier bytes. */
	NDX_CAP_IN_ORDER_DMA = 1 << 0,
	NDX_CAP_LOOPBACK = 1 << 1,  /**< can connect to itself */
	NDX_CAP_CQ_RESIZE = 1 << 2, /**< supports ndx_cq_resize() */
	/** Supports NDX_CQ_NOTIFY_SOLICITED; without this bit, SOLICITED acts as ANY. */
	NDX_CAP_NOTIFY_SOLICITED = 1 << 3,
	NDX_CAP_NOTIFY_AFFINITY = 1 << 4,      /**< supports ndx_cq_get_notify_affinity() */
	NDX_CAP_INTERRUPT_MODERATION = 1 << 5, /**< the device may coalesce completion events */
	NDX_CAP_MEMORY_WINDOW = 1 << 6,        /**< supports ndx_mw_create(), bind and invalidate */
	NDX_CAP_SRQ = 1 << 7,                  /**< supports ndx_srq_create() */
	NDX_CAP_SEND_IMMEDIATE = 1 << 8,       /**< supports ndx_qp_send_immediate() */
	NDX_CAP_WRITE_IMMEDIATE = 1 << 9,      /**< supports ndx_qp_write_immediate() */
	/** A request that violates the peer's access rights completes NDX_E_ACCESS_VIOLATION. */
	NDX_CAP_REMOTE_ACCESS_STATUS = 1 << 10,
	/** Always tells a graceful disconnect from an abort. */
	NDX_CAP_DISCONNECT_REASON = 1 << 11,
	NDX_CAP_RNR_TIMER = 1 << 12, /**< supports `rnr_timer` of struct ndx_qp_attr */
	NDX_CAP_EVENTS = 1 << 13,    /**< supports ndx_adapter_get_event() */
	NDX_CAP_DMABUF = 1 << 14,    /**< supports ndx_mr_register_dmabuf() */
};

/** Name of a capability bit, for example "SRQ"; NULL for an unknown bit. */
const char *ndx_capability_name(enum ndx_capability bit);

/**
 * Limits and capabilities of an open adapter. All limits may be used at the same time.
 * (ND2_ADAPTER_INFO; lengths are in bytes, depths in requests.)
 */
struct ndx_adapter_info {
	size_t size;           /**< the caller sets sizeof(struct ndx_adapter_info) */
	char uri[128];         /**< ndx_adapter_open() opens the same adapter with this URI */
	char provider[16];     /**< its name, for example "ofi" */
	char device[64];       /**< the device's name at its provider */
	uint64_t adapter_id;   /**< unique on this host; the same at every open */
	uint32_t vendor_id;    /**< PCI vendor id; 0 for a software device */
	uint32_t device_id;    /**< PCI device id; 0 for a software device */
	uint64_t capabilities; /**< OR of enum ndx_capability */
	uint64_t max_registration_size;    /**< largest region */
	uint64_t max_window_size;          /**< largest memory window; 0 without windows */
	uint32_t max_initiator_sge;        /**< SGEs of one send or write */
	uint32_t max_receive_sge;          /**< SGEs of one receive */
	uint32_t max_read_sge;             /**< SGEs of one read; at most max_initiator_sge */
	uint32_t max_transfer_length;      /**< sum of the SGEs of one request */
	uint32_t max_inline_data_size;     /**< sum of the SGEs of one inline request */
	uint32_t inline_request_threshold; /**< inline is faster below this length; 0: never */
	uint32_t large_request_threshold;  /**< read and write are faster than send above it */
	uint32_t max_inbound_read_limit;   /**< reads of the peer served at once, per connection */
	uint32_t max_outbound_read_limit;  /**< own reads in flight, per connection */
	uint32_t max_receive_queue_depth;
	uint32_t max_initiator_queue_depth;      /**< equals max_receive_queue_depth */
	uint32_t max_shared_receive_queue_depth; /**< 0 without SRQs */
	uint32_t max_completion_queue_depth;
	uint32_t max_caller_data; /**< longest private data of connect */
	uint32_t max_callee_data; /**< longest private data of accept and reject */
};

/** `size` of struct ndx_adapter_info in version 0.1; the smallest that is accepted. */
#define NDX_ADAPTER_INFO_SIZE_0_1 NDX_SIZE_UP_TO(struct ndx_adapter_info, max_callee_data)

/** One adapter in the list: usable, or present but unusable for a stated reason. */
struct ndx_adapter_entry {
	char uri[128]; /**< to be passed to ndx_adapter_open() */
	char provider[16];
	char device[64];
	char interface_name[32]; /**< network interface; "" if the device has none */
	struct sockaddr_storage
		address; /**< first of `addresses`; ss_family is AF_UNSPEC if none */
	uint64_t adapter_id;
	enum ndx_status state; /**< NDX_OK, or why the adapter cannot be used */
	char hint[256];        /**< the cause and the command that removes it; "" if NDX_OK */
	/**
	 * All local addresses, with port 0, in the order in which ndx_adapter_query_addresses()
	 * gives them once `uri` is open; NULL if there are none. They belong to the list, which
	 * ndx_adapter_list_free() releases; a copy of the entry points to the same addresses. They
	 * are those of the time of the listing: an interface may gain or lose addresses later, and
	 * an open adapter keeps those that it found. An entry that is not usable has the addresses
	 * that the adapter would have, where the provider can find them, else none.
	 */
	const struct sockaddr_storage *addresses;
	size_t address_count; /**< number of `addresses`; 0 if there are none */
	void *reserved[2];    /**< NULL; room for later members */
};

/**
 * List the adapters of all providers, with their addresses, without opening any. The list holds the
 * usable adapters, and the unusable ones with the reason. A provider of NDX that is not installed
 * is an entry, too: NDX_E_NOT_FOUND, and the package in `hint`.
 *
 * @param[out] entries  array of @p count entries; release it with ndx_adapter_list_free()
 * @param[out] count    number of entries; 0 is possible
 *
 * @retval NDX_E_NO_MEMORY out of memory; the outputs are untouched
 *
 * Thread safety: any thread. Blocks: while devices are probed, up to about a second. The calling
 * thread takes no signals during the call.
 */
enum ndx_status ndx_adapter_list(struct ndx_adapter_entry **entries, size_t *count);

/** Release the list of ndx_adapter_list(), and the addresses of its entries. NULL is a no-op. */
void ndx_adapter_list_free(struct ndx_adapter_entry *entries);

/**
 * Open an adapter.
 *
 * @param uri       the adapter to open. NULL: $NDX_ADAPTER if it is set; else `adapter = ...` of
 *                  section [ndx] in the INI file, which is that of $NDX_CONFIG, else the first
 *                  that exists of ~/.config/ndx.ini and /etc/ndx.ini; else the automatic choice.
 *                  "auto" asks for the automatic choice: verbs if a device has an active port, else
 *                  ofi:verbs, else ofi:tcp
 * @param[out] out  the adapter; untouched on failure; release it with ndx_adapter_close()
 *
 * @retval NDX_E_INVALID_PARAMETER      @p out is NULL
 * @retval NDX_E_INVALID_CONFIG         URI, variable or file is malformed, the file of $NDX_CONFIG
 *                                      does not exist, a key is unknown, or a
 *                                      value is out of range, for example a processor in `cpus`
 *                                      that does not exist or that the process may not use;
 *                                      ndx_last_error() names the place
 * @retval NDX_E_NOT_FOUND              no such provider, device or interface
 * @retval NDX_E_DEVICE_NOT_READY       the device exists but cannot be used: a module, a port or a
 *                                      permission is missing
 * @retval NDX_E_ABI_MISMATCH           the provider was built against another version of the
 *                                      provider interface
 * @retval NDX_E_NO_MEMORY              out of memory
 * @retval NDX_E_INSUFFICIENT_RESOURCES no thread, descriptor or device context left
 *
 * Thread safety: any thread. Blocks: while devices are probed. The calling thread takes no
 * signals during the call.
 */
enum ndx_status ndx_adapter_open(const char *uri, struct ndx_adapter **out);

/**
 * Query the adapter that the user chose for programs that name none: $NDX_ADAPTER, or the INI file,
 * as for ndx_adapter_open() of NULL. The URI is returned as it is written there: the call neither
 * checks the URI nor opens the adapter.
 *
 * @param[out] uri          buffer for the URI; untouched on failure; may be NULL if @p *uri_size
 *                          is 0
 * @param[in,out] uri_size  room in @p uri in bytes, 256 suffices for a URI that can be opened; set
 *                          to the size of the URI with its null byte
 *
 * @retval NDX_E_INVALID_PARAMETER @p uri_size is NULL, or @p uri is NULL and @p *uri_size is not 0
 * @retval NDX_E_NOT_FOUND         the user chose none, or "auto": ndx_adapter_open() of NULL then
 *                                 makes the automatic choice
 * @retval NDX_E_BUFFER_OVERFLOW   @p uri is too small; nothing was copied, @p *uri_size is needed
 * @retval NDX_E_INVALID_CONFIG    the INI file is malformed; ndx_last_error() names the place
 * @retval NDX_E_NO_MEMORY         out of memory
 *
 * Thread safety: any thread. Blocks: while the INI file is read.
 */
enum ndx_status ndx_adapter_default(char *uri, size_t *uri_size);

/**
 * Close the handle of an adapter. Objects of the adapter stay usable until they are closed
 * themselves; the library closes the device together with the last of them. If no object is left,
 * the call waits for the background disconnects of connections that are closed already: each ends,
 * or times out, within its disconnect time-out. Called from a callback, it does not wait.
 * Operations of ndx_adapter_get_event() complete NDX_E_CANCELED first. NULL is a no-op.
 */
void ndx_adapter_close(struct ndx_adapter *adapter);

/**
 * Query limits and capabilities.
 *
 * @param[in,out] info  the caller sets `size`; the library fills as much as that, and sets
 *                      `size` to what it filled
 *
 * @retval NDX_E_INVALID_PARAMETER `size` is smaller than in any released version
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_adapter_query(struct ndx_adapter *adapter, struct ndx_adapter_info *info);

/**
 * Query the local addresses of the adapter, IPv4 and IPv6, with port 0.
 *
 * @param[out] list      up to @p *count addresses; may be NULL if @p *count is 0
 * @param[in,out] count  room in @p list; set to the number of addresses
 *
 * @retval NDX_E_BUFFER_OVERFLOW @p list is too small; nothing was copied, @p *count is needed
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_adapter_query_addresses(struct ndx_adapter *adapter,
                                            struct sockaddr_storage *list, size_t *count);

/**
 * Find the local adapter that reaches a remote address, and the local address to use
 * (NdResolveAddress). For an address of this host, find the adapter that has the address
 * (NdCheckAddress, NdOpenAdapter). The adapter that $NDX_ADAPTER or the INI file names takes
 * precedence, and its URI is returned as it is written there. The call opens no adapter, except
 * that one for a moment if ndx_adapter_list() has no usable entry with the very URI.
 *
 * @param remote            IPv4 or IPv6 address; the port is ignored
 * @param remote_len        length of @p remote in bytes
 * @param[out] uri          buffer for the adapter's URI; may be NULL if @p *uri_size is 0
 * @param[in,out] uri_size  room in @p uri in bytes, 128 suffices; set to the size of the URI with
 *                          its null byte
 * @param[out] local        local address to bind to, with port 0; may be NULL
 *
 * @retval NDX_E_INVALID_PARAMETER   the address family is not supported, or NULL argument
 * @retval NDX_E_NETWORK_UNREACHABLE no route
 * @retval NDX_E_INVALID_ADDRESS     the route leaves by a local address that no adapter has
 * @retval NDX_E_BUFFER_OVERFLOW     @p uri is too small; nothing was copied, @p *uri_size is needed
 * @retval NDX_E_INVALID_CONFIG      the INI file is malformed
 *
 * Thread safety: any thread. Blocks: while devices are probed. The calling thread takes no
 * signals during the call.
 */
enum ndx_status ndx_resolve(const struct sockaddr *remote, socklen_t remote_len, char *uri,
                            size_t *uri_size, struct sockaddr_storage *local);

NDX_DECLS_END

#endif
