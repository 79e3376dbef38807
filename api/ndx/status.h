/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Status codes: the one way a call, an overlapped operation or a work request tells how it went.
 *
 * The names are NetworkDirect's (ndstatus.h) without the prefix ND_; the values are ours. Where a
 * code stands for several causes, ndx_last_error() (for a call) or the log (for a completion) says
 * which it was, with the native code.
 */
#ifndef NDX_STATUS_H
#define NDX_STATUS_H

#include <ndx/decls.h>

NDX_DECLS_BEGIN

/** Outcome of something. Zero is success, positive is "not yet", negative is failure. */
enum ndx_status {
	NDX_OK = 0,      /**< done */
	NDX_PENDING = 1, /**< accepted, or still going on; the outcome comes as a completion */

	/* the caller can correct it */
	NDX_E_INVALID_PARAMETER = -1,   /**< an argument breaks its documented precondition */
	NDX_E_INVALID_BUFFER_SIZE = -2, /**< private data too long, or a region of length 0 */
	NDX_E_BUFFER_OVERFLOW = -3,     /**< does not fit: message into receive, list into array */
	NDX_E_DATA_OVERRUN = -4,        /**< too many SGEs, or more bytes than can be sent */
	NDX_E_NO_MORE_ENTRIES = -5,     /**< queue full; poll completions, then post again */
	NDX_E_ACCESS_VIOLATION = -6, /**< memory not registered, not mapped or without the right */
	NDX_E_INVALID_DEVICE_REQUEST =
		-7, /**< malformed work request, e.g. invalidate of an unbound window */
	NDX_E_INVALID_DEVICE_STATE = -8, /**< the object is not in the state the call needs */
	NDX_E_DEVICE_BUSY = -9,    /**< in use: windows are bound to the region, ov in flight */
	NDX_E_NOT_SUPPORTED = -10, /**< this adapter lacks the capability; see ndx_adapter_info */
	NDX_E_WOULD_BLOCK =
		-11, /**< refused: the call blocks and this is a callback, of any adapter */

	/* what could not be found or understood */
	NDX_E_NOT_FOUND = -12,      /**< no such provider, device, interface, plugin, variant or
	                                 directory */
	NDX_E_INVALID_CONFIG = -13, /**< adapter URI, environment, INI file or a plugin's parameter,
	                             or two ends that do not match; text names the place */
	NDX_E_ABI_MISMATCH = -14,   /**< provider or plugin was built against another interface */

	/* addresses */
	NDX_E_INVALID_ADDRESS = -15,            /**< not an address of this adapter */
	NDX_E_SHARING_VIOLATION = -16,          /**< local port already in use */
	NDX_E_ADDRESS_ALREADY_EXISTS = -17,     /**< the same connection exists already */
	NDX_E_ADDRESS_ALREADY_ASSOCIATED = -18, /**< the object is bound already */
	NDX_E_TOO_MANY_ADDRESSES = -19,         /**< no free ephemeral port */
	NDX_E_BAD_NETWORK_NAME = -20,           /**< destination is the unspecified address */
	NDX_E_NETWORK_UNREACHABLE = -21,        /**< no route */
	NDX_E_HOST_UNREACHABLE = -22,           /**< the host does not answer */

	/* connections */
	NDX_E_CONNECTION_REFUSED =
		-23, /**< nobody listens, backlog full, or rejected by the peer */
	NDX_E_CONNECTION_INVALID = -24, /**< not connected (never was), or not connecting */
	NDX_E_CONNECTION_ACTIVE = -25,  /**< queue pair or connector is connecting or connected, or
	                                   was before */
	NDX_E_CONNECTION_ABORTED =
		-26,              /**< the connection, or the attempt, ended without goodbye */
	NDX_E_IO_TIMEOUT = -27,   /**< no answer in time, or no receive posted in time */
	NDX_E_CANCELED = -28,     /**< cancelled, or flushed with its queue pair */
	NDX_E_REMOTE_ERROR = -29, /**< the request caused an error at the peer */

	/* resources and the device */
	NDX_E_NO_MEMORY = -30,              /**< out of host memory */
	NDX_E_INSUFFICIENT_RESOURCES = -31, /**< device or kernel limit (RLIMIT_MEMLOCK, files) */
	NDX_E_DEVICE_NOT_READY = -32, /**< the stack or port is down; text says what mends it */
	NDX_E_DEVICE_REMOVED = -33,   /**< only clean-up works from now on */
	NDX_E_INTERNAL_ERROR = -34,   /**< the device or its driver failed */
	NDX_E_UNSUCCESSFUL = -35,     /**< failed, no better code; see ndx_last_error() */
};

/** Name of a status, e.g. "NDX_E_CANCELED". Never NULL; "NDX_?" outside the enum. Any thread. */
const char *ndx_status_name(enum ndx_status status);

/** One sentence for people: what the status means. Never NULL. Any thread. */
const char *ndx_status_text(enum ndx_status status);

/**
 * What the latest failing call of this thread had to say: call, object, address, native cause and
 * the next step, as far as known. Never NULL; "" if no call failed yet. Valid until this thread's
 * next call into the library. Calls of the data path (send, receive, read, write, bind, invalidate,
 * get_results) do not set it.
 */
const char *ndx_last_error(void);

NDX_DECLS_END

#endif
