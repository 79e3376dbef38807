/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Status codes of calls, overlapped operations and work requests.
 *
 * The names are those of NetworkDirect (ndstatus.h) without the prefix ND_; the values are NDX's
 * own. Where a code stands for several causes, ndx_last_error() (for a call) or the log (for a
 * completion) names the cause and the native code.
 *
 * What does not fit. A call that copies a text, addresses, data or a list to the caller takes the
 * room in *length or *count, and sets it to what there is. If the room is too small, the call fails
 * with NDX_E_BUFFER_OVERFLOW: it has copied nothing, *length or *count is the room that is needed,
 * and ndx_last_error() has both numbers. With room 0, and NULL for the buffer, a call asks for the
 * size. Such a failure is not logged.
 *
 * NULL. A call that returns a status returns NDX_E_INVALID_PARAMETER for an argument that is NULL,
 * unless its description allows NULL. A close, free or release, and an ..._attr_init, of NULL does
 * nothing. A getter that returns no status has nothing to say of NULL: it returns 0, NULL or "", or
 * zeros, and writes nothing to NULL. The inline calls of the data path (posts, and taking results)
 * do not check their first argument.
 */
#ifndef NDX_STATUS_H
#define NDX_STATUS_H

#include <ndx/decls.h>

NDX_DECLS_BEGIN

/** Outcome of a call or operation. Zero is success, positive is "not yet", negative is failure. */
enum ndx_status {
	NDX_OK = 0,      /**< done */
	NDX_PENDING = 1, /**< started, or still in flight; the outcome comes as a completion */

	/* errors that the caller can correct */
	NDX_E_INVALID_PARAMETER = -1,   /**< an argument breaks its documented precondition */
	NDX_E_INVALID_BUFFER_SIZE = -2, /**< private data too long, or a region of length 0 */
	NDX_E_BUFFER_OVERFLOW = -3,     /**< does not fit: message into receive, list into array */
	NDX_E_DATA_OVERRUN = -4,        /**< too many SGEs, or more bytes than can be sent */
	NDX_E_NO_MORE_ENTRIES = -5,     /**< queue full; take results, then post again */
	/** Memory is not registered, is not mapped, or lacks the right. */
	NDX_E_ACCESS_VIOLATION = -6,
	/** Malformed work request, for example an invalidate of an unbound window. */
	NDX_E_INVALID_DEVICE_REQUEST = -7,
	NDX_E_INVALID_DEVICE_STATE = -8, /**< the object is not in the state the call needs */
	NDX_E_DEVICE_BUSY = -9,    /**< in use: windows are bound to the region, ov in flight */
	NDX_E_NOT_SUPPORTED = -10, /**< the adapter lacks the capability; see ndx_adapter_info */
	/** Refused: the call blocks, and was made in a callback of some adapter. */
	NDX_E_WOULD_BLOCK = -11,

	/* not found, or not understood */
	/** No such provider, device, interface, plugin, variant or directory. */
	NDX_E_NOT_FOUND = -12,
	/**
	 * Error in an adapter URI, the environment, an INI file or a plugin's parameter, or two
	 * ends that do not match; the text names the place.
	 */
	NDX_E_INVALID_CONFIG = -13,
	/** The provider or plugin was built against another version of its interface. */
	NDX_E_ABI_MISMATCH = -14,

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
	/** No listener, backlog full, or rejected by the peer. */
	NDX_E_CONNECTION_REFUSED = -23,
	NDX_E_CONNECTION_INVALID = -24, /**< not connected (never was), or not connecting */
	/** The queue pair or connector is connecting or connected, or was before. */
	NDX_E_CONNECTION_ACTIVE = -25,
	/** The connection, or the attempt, ended without a goodbye of the peer. */
	NDX_E_CONNECTION_ABORTED = -26,
	NDX_E_IO_TIMEOUT = -27,   /**< no answer in time, or no receive posted in time */
	NDX_E_CANCELED = -28,     /**< cancelled, or flushed with its queue pair */
	NDX_E_REMOTE_ERROR = -29, /**< the request caused an error at the peer */

	/* resources and the device */
	NDX_E_NO_MEMORY = -30,              /**< out of host memory */
	NDX_E_INSUFFICIENT_RESOURCES = -31, /**< device or kernel limit (RLIMIT_MEMLOCK, files) */
	NDX_E_DEVICE_NOT_READY = -32,       /**< stack or port is down; the text says what helps */
	NDX_E_DEVICE_REMOVED = -33,         /**< device removed; only closing objects works */
	NDX_E_INTERNAL_ERROR = -34,         /**< the device or its driver failed */
	NDX_E_UNSUCCESSFUL = -35, /**< failed without a better code; see ndx_last_error() */
	/**
	 * The system does not allow this process to do that: a port below 1024 (ip(7),
	 * CAP_NET_BIND_SERVICE), or a security module's rule. ND has no status of this meaning.
	 */
	NDX_E_ACCESS_DENIED = -36,
};

/**
 * Name of a status, for example "NDX_E_CANCELED". Never NULL; "NDX_?" outside the enum. Any thread.
 */
const char *ndx_status_name(enum ndx_status status);

/** One readable sentence: what the status means. Never NULL. Any thread. */
const char *ndx_status_text(enum ndx_status status);

/**
 * Text of this thread's latest failed call: call, object, address, native cause and next step, as
 * far as known. Never NULL; "" if no call has failed yet. Valid until this thread's next call into
 * the library. Calls of the data path (send, receive, read, write, bind, invalidate, get_results)
 * do not set it.
 */
const char *ndx_last_error(void);

NDX_DECLS_END

#endif
