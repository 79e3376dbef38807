/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * The state of a queue pair and of a memory region, for programs that debug or supervise them.
 *
 * <ndx/stats.h> has counters, the history of a connector, and everything of an adapter as one JSON
 * text; ndx_connector_get_history() has all that happened to a connection, of which ndx_qp_query()
 * returns the latest failure.
 */
#ifndef NDX_QUERY_H
#define NDX_QUERY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <ndx/adapter.h>
#include <ndx/connector.h>
#include <ndx/decls.h>
#include <ndx/mr.h>
#include <ndx/qp.h>
#include <ndx/status.h>

NDX_DECLS_BEGIN

/** Where a queue pair is in its life. */
enum ndx_qp_state {
	NDX_QP_UNCONNECTED = 0,   /**< was never connected; takes receives, and may connect */
	NDX_QP_CONNECTING = 1,    /**< a connector tries to connect the queue pair */
	NDX_QP_CONNECTED = 2,     /**< takes every request */
	NDX_QP_DISCONNECTING = 3, /**< one of the two sides ends the connection */
	NDX_QP_DISCONNECTED = 4,  /**< the connection is over; cannot connect again */
};

/** Name of a state, for example "connected". Never NULL. */
const char *ndx_qp_state_name(enum ndx_qp_state state);

/** A number of requests that the provider does not know. */
#define NDX_QP_NOT_COUNTED UINT64_MAX

/** State of a queue pair, of its connection, and of the queue pair of the device below. */
struct ndx_qp_info {
	size_t size; /**< the caller sets sizeof(struct ndx_qp_info) */
	uint32_t id; /**< qp#id, as in log and snapshot */
	enum ndx_qp_state state;
	/** Connector of the connection or of the latest attempt, also a past one; 0: none yet. */
	uint32_t connector_id;
	/** Reads of the peer that are served at once, as agreed; 0 until then. */
	uint32_t inbound_read_limit;
	uint32_t outbound_read_limit; /**< own reads in flight, as agreed; 0 until then */
	/** How the connection ended; NONE also if the connector is closed. */
	enum ndx_disconnect_reason reason;
	/**
	 * State of that connector, as in its history, for example "UP"; a string constant. Of a
	 * closed connector it is known if an attempt or the connection failed; else NULL.
	 */
	const char *connector_state;
	struct sockaddr_storage local; /**< AF_UNSPEC if unknown, as the next */
	struct sockaddr_storage peer;
	/** Posted requests that have not ended, or NDX_QP_NOT_COUNTED. */
	uint64_t initiator_outstanding;
	/** Posted receives that have not ended; with a shared receive queue those in use. */
	uint64_t receive_outstanding;
	/**
	 * Latest failure of the attempts and of the connection: status, errno or provider code,
	 * monotonic time in ns, cause. NDX_OK, 0, 0 and "" if nothing has failed. A cancel is no
	 * failure. The failures of closed connectors are known for the last eight of the adapter.
	 */
	enum ndx_status failure;
	int32_t failure_native;
	uint64_t failure_ns;
	char failure_cause[256];
	/**
	 * State that the device's queue pair has, as the device reports it, for example "RTS". ""
	 * if there is no such state, as on loop and ofi; then the members below are 0.
	 */
	char device_state[16];
	uint32_t device_qp;      /**< number of the device's queue pair (QPN) */
	uint32_t peer_device_qp; /**< that of the peer; 0 until connected */
	uint32_t mtu;            /**< path MTU in bytes; 0 until connected */
};

/** `size` of struct ndx_qp_info in version 0.1; the smallest that is accepted. */
#define NDX_QP_INFO_SIZE_0_1 NDX_SIZE_UP_TO(struct ndx_qp_info, mtu)

/**
 * Query a queue pair: attributes as granted, and state. Both are of one moment.
 *
 * @param[in,out] attr  the attributes that were granted; the caller sets `size`; may be NULL
 * @param[in,out] info  the state; the caller sets `size`; may be NULL
 *
 * The library fills as much as `size` says, and sets `size` to what it filled.
 *
 * @retval NDX_OK                  filled
 * @retval NDX_E_INVALID_PARAMETER @p qp is NULL, or both structures are; or a `size` is smaller
 *                                 than in any released version. Nothing was filled, unless only
 *                                 the size of @p info is too small
 *
 * Thread safety: any thread, also in callbacks; not beside ndx_qp_close() of the same queue pair.
 * Blocks: no; with @p info it asks the device, which is a system call on verbs.
 */
enum ndx_status ndx_qp_query(struct ndx_qp *qp, struct ndx_qp_attr *attr, struct ndx_qp_info *info);

/** Where a memory region is in its life. */
enum ndx_mr_state {
	NDX_MR_NOT_REGISTERED = 0,
	NDX_MR_REGISTERING = 1,   /**< ndx_mr_register() is in flight */
	NDX_MR_REGISTERED = 2,    /**< has its tokens */
	NDX_MR_DEREGISTERING = 3, /**< ndx_mr_deregister() is in flight; the tokens are 0 */
};

/** Name of a state, for example "registered". Never NULL. */
const char *ndx_mr_state_name(enum ndx_mr_state state);

/** State of a memory region. */
struct ndx_mr_info {
	size_t size; /**< the caller sets sizeof(struct ndx_mr_info) */
	uint32_t id; /**< mr#id; numbers count within the adapter */
	enum ndx_mr_state state;
	struct ndx_adapter *adapter; /**< that the region was created on */
	/**
	 * Memory and rights of the present registration, else of the latest one or of the latest
	 * attempt. NULL and 0 if there was none.
	 */
	const void *buffer;
	size_t length;  /**< in bytes */
	uint32_t flags; /**< OR of enum ndx_mr_flag */
	/** Outcome of the latest registration or deregistration that completed; NDX_OK: none. */
	enum ndx_status outcome;
	uint32_t local_token;   /**< as ndx_mr_get_local_token() */
	uint32_t remote_token;  /**< as ndx_mr_get_remote_token() */
	uint64_t registered_ns; /**< when the latest registration began to hold; 0: never */
	uint64_t ended_ns; /**< when the latest registration ended; 0: never, or it still holds */
};

/** `size` of struct ndx_mr_info in version 0.1; the smallest that is accepted. */
#define NDX_MR_INFO_SIZE_0_1 NDX_SIZE_UP_TO(struct ndx_mr_info, ended_ns)

/**
 * Query a memory region. Times are nanoseconds of the monotonic clock.
 *
 * @param[in,out] info  the caller sets `size`; the library fills as much as that, and sets `size`
 *                      to what it filled
 *
 * @retval NDX_OK                  filled
 * @retval NDX_E_INVALID_PARAMETER NULL argument, or `size` is smaller than in any released version
 *
 * Thread safety: any thread, also in callbacks; not beside ndx_mr_close() of the same region. While
 * another thread registers or deregisters the region, the members may be of two moments. Blocks:
 * no.
 */
enum ndx_status ndx_mr_query(struct ndx_mr *mr, struct ndx_mr_info *info);

NDX_DECLS_END

#endif
