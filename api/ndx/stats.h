/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Counters, the history of each connection, and both as one JSON text.
 *
 * Objects are numbered within their adapter, each kind from 1 on: connector#3, qp#2, cq#1. Log
 * records, histories and snapshots use the same numbers. docs/observability.md shows how to read
 * them.
 *
 * Counting costs the data path next to nothing: most figures are derived from positions that the
 * queues keep anyway. Counters never decrease while their object lives. The counters of an adapter
 * include objects that are closed. Times are nanoseconds of the monotonic clock.
 */
#ifndef NDX_STATS_H
#define NDX_STATS_H

#include <stddef.h>
#include <stdint.h>

#include <ndx/adapter.h>
#include <ndx/connector.h>
#include <ndx/cq.h>
#include <ndx/decls.h>
#include <ndx/qp.h>
#include <ndx/status.h>

NDX_DECLS_BEGIN

/** Length of arrays that a status indexes: [0] counts NDX_OK, [-status] a failure. */
#define NDX_STATS_STATUSES 48

/** Length of ndx_duration_stats.log2_us. */
#define NDX_STATS_BUCKETS 24

/** Number of transitions that a connector remembers. */
#define NDX_HISTORY_MAX 16

/** Requests of one side of a queue pair, or of all queue pairs of an adapter. */
struct ndx_work_stats {
	uint64_t posted;    /**< accepted by a post call */
	uint64_t completed; /**< of `posted`: have ended; the others are in flight */
	/**
	 * Of `completed`: unsignaled successes, NDX_OK without a result (NDX_OP_SILENT_SUCCESS).
	 */
	uint64_t silent;
	/** `completed` by status; flushed requests are at [-NDX_E_CANCELED]. */
	uint64_t by_status[NDX_STATS_STATUSES];
};

/** Counters of a queue pair. */
struct ndx_qp_stats {
	size_t size; /**< the caller sets sizeof(struct ndx_qp_stats) */
	uint32_t id; /**< qp#id */
	/** Connector of its connection or of its latest attempt, also a past one; 0: none yet. */
	uint32_t connector_id;
	uint32_t receive_cq_id;   /**< cq#id */
	uint32_t initiator_cq_id; /**< cq#id */
	uint32_t receive_depth;   /**< as granted; 0 with a shared receive queue */
	uint32_t initiator_depth; /**< as granted */
	struct ndx_work_stats initiator;
	/** With a shared receive queue: the receives that it used from there. */
	struct ndx_work_stats receive;
	uint64_t rnr_waits;   /**< how often a send waited for the peer to post a receive (RNR) */
	uint64_t rnr_wait_ns; /**< total time of these waits, including a wait in progress */
};

/** `size` of struct ndx_qp_stats in version 0.1; the smallest that is accepted. */
#define NDX_QP_STATS_SIZE_0_1 NDX_SIZE_UP_TO(struct ndx_qp_stats, rnr_wait_ns)

/** Counters of a completion queue. */
struct ndx_cq_stats {
	size_t size;         /**< the caller sets sizeof(struct ndx_cq_stats) */
	uint32_t id;         /**< cq#id */
	uint32_t depth;      /**< as the program asked for */
	uint32_t reserved;   /**< slots of the queue pairs that use this queue */
	uint32_t waiting;    /**< results that were not taken yet */
	uint32_t high_water; /**< highest number of waiting results so far */
	/** Calls of ndx_cq_get_results(), modulo 2^32. Shows whether a consumer polls the queue. */
	uint32_t polls;
	uint64_t results;                       /**< results that were added */
	uint64_t taken;                         /**< results that were taken */
	uint64_t notifications;                 /**< how often a notification fired */
	uint64_t by_status[NDX_STATS_STATUSES]; /**< `results` by status */
	enum ndx_status failed; /**< why the queue no longer works; NDX_OK: it works */
};

/** `size` of struct ndx_cq_stats in version 0.1; the smallest that is accepted. */
#define NDX_CQ_STATS_SIZE_0_1 NDX_SIZE_UP_TO(struct ndx_cq_stats, failed)

/** How a connection ended, seen from this side. */
enum ndx_disconnect_outcome {
	NDX_OUTCOME_GRACEFUL = 0, /**< both sides sent their goodbye */
	NDX_OUTCOME_ABORTED = 1,  /**< lost, failed, or ended by the peer without a goodbye */
	NDX_OUTCOME_FLUSHED = 2, /**< ended by this side: flush, or close with requests in flight */
	NDX_OUTCOME_TIMED_OUT = 3, /**< no goodbye of the peer within disconnect_timeout_ms */
};

/** Number of members of enum ndx_disconnect_outcome. */
#define NDX_OUTCOMES 4

/** Name of an outcome, for example "timed_out". Never NULL. */
const char *ndx_disconnect_outcome_name(enum ndx_disconnect_outcome outcome);

/** Distribution of a duration. */
struct ndx_duration_stats {
	uint64_t count;
	uint64_t total_ns; /**< mean = total_ns / count */
	uint64_t min_ns;   /**< 0 if count is 0 */
	uint64_t max_ns;
	/**
	 * [0]: below 2 us; [n]: 2^n us and more, below 2^(n+1) us; the last bucket has no upper
	 * bound.
	 */
	uint32_t log2_us[NDX_STATS_BUCKETS];
};

/** Number of objects of one kind. */
struct ndx_object_stats {
	uint32_t now;  /**< objects that exist now */
	uint32_t ever; /**< objects created since the adapter was opened; also the highest number
	                  assigned */
};

/** Counters of an adapter. The sums include closed queue pairs. */
struct ndx_adapter_stats {
	size_t size;      /**< the caller sets sizeof(struct ndx_adapter_stats) */
	uint64_t time_ns; /**< when the counters were read */
	struct ndx_object_stats cqs;
	struct ndx_object_stats qps;
	struct ndx_object_stats srqs;
	struct ndx_object_stats mrs;
	struct ndx_object_stats mws;
	/** `now` includes connectors that still disconnect in the background. */
	struct ndx_object_stats connectors;
	struct ndx_object_stats listeners;
	struct ndx_work_stats initiator; /**< of all queue pairs */
	struct ndx_work_stats receive;
	uint64_t rnr_waits; /**< RNR waits, as in struct ndx_qp_stats; all queue pairs */
	uint64_t rnr_wait_ns;
	uint32_t high_water;  /**< highest number of results that ever waited in one queue */
	uint32_t established; /**< connections that are established or disconnecting */
	/** Attempts of the active side that have ended, by status; [0]: connections established. */
	uint64_t connects[NDX_STATS_STATUSES];
	/**
	 * Requests that a connector took and that ended without ndx_connector_reject(), by status.
	 */
	uint64_t accepts[NDX_STATS_STATUSES];
	uint64_t requests; /**< requests that arrived at listeners */
	/**
	 * Of `requests`: those refused because the backlog was full or the listener was closed, and
	 * those whose active side had given up.
	 */
	uint64_t requests_refused;
	uint64_t rejects_passive; /**< requests that ndx_connector_reject() refused */
	uint64_t rejects_active;  /**< accepted connections that ndx_connector_reject() refused */
	/** How long disconnects took, from the end of the connected state on; by outcome. */
	struct ndx_duration_stats disconnects[NDX_OUTCOMES];
	uint64_t drain_timeouts; /**< disconnects in which own requests were cancelled */
};

/** `size` of struct ndx_adapter_stats in version 0.1; the smallest that is accepted. */
#define NDX_ADAPTER_STATS_SIZE_0_1 NDX_SIZE_UP_TO(struct ndx_adapter_stats, drain_timeouts)

/**
 * One transition of a connector: the state before, the event, the state after. The names are those
 * of the log and of docs/observability.md.
 */
struct ndx_transition {
	uint64_t time_ns;       /**< never decreases within a history */
	const char *from;       /**< "CONNECTING"; a string constant, like `event` and `to` */
	const char *event;      /**< "ANSWER" */
	const char *to;         /**< "CONNECT_RESPONSE"; may be the same as `from` */
	enum ndx_status status; /**< status that the event brought: NDX_OK, or a failure */
	int32_t native;         /**< errno or provider code of a failure, 0 if none */
	/**
	 * Readable cause; "" if there is none. A longer text is cut after a word and ends in "...".
	 */
	char cause[256];
	void *reserved[4]; /**< NULL; room for later members */
};

/**
 * Counters of an adapter.
 *
 * @param[in,out] stats  the caller sets `size`; the call fills as much as that
 *
 * @retval NDX_OK                  filled
 * @retval NDX_E_INVALID_PARAMETER NULL argument, or `size` is smaller than in any released version
 *
 * Thread safety: any thread. Blocks: no; the call visits each queue pair.
 */
enum ndx_status ndx_adapter_get_stats(struct ndx_adapter *adapter, struct ndx_adapter_stats *stats);

/**
 * Counters of a completion queue.
 *
 * @param[in,out] stats  the caller sets `size`; the call fills as much as that
 *
 * @retval NDX_OK                  filled
 * @retval NDX_E_INVALID_PARAMETER NULL argument, or `size` is smaller than in any released version
 * @retval NDX_E_NOT_SUPPORTED     the adapter's provider does not count
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_cq_get_stats(struct ndx_cq *cq, struct ndx_cq_stats *stats);

/**
 * Counters of a queue pair.
 *
 * @param[in,out] stats  the caller sets `size`; the call fills as much as that
 *
 * @retval NDX_OK                  filled
 * @retval NDX_E_INVALID_PARAMETER NULL argument, or `size` is smaller than in any released version
 * @retval NDX_E_NOT_SUPPORTED     the adapter's provider does not count
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_qp_get_stats(struct ndx_qp *qp, struct ndx_qp_stats *stats);

/** Number of a connector, as in connector#3; 0 if @p connector is NULL. Any thread. */
uint32_t ndx_connector_get_id(const struct ndx_connector *connector);

/**
 * The latest transitions of a connector, oldest first. Available until the connector is closed,
 * also when the connection has ended or was never established.
 *
 * @param[out] list      up to @p *count transitions; may be NULL if @p *count is 0
 * @param[in,out] count  room in @p list (NDX_HISTORY_MAX suffices); set to the number filled
 * @param[out] total     number of transitions so far; may be NULL
 *
 * @retval NDX_OK                  filled
 * @retval NDX_E_INVALID_PARAMETER NULL argument
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_connector_get_history(struct ndx_connector *connector,
                                          struct ndx_transition *list, size_t *count,
                                          uint64_t *total);

/**
 * A snapshot of an adapter as one JSON text. It has the whole state: counters, every queue pair,
 * completion queue, listener and connector with its history, and the post-mortems of connectors
 * that failed and are closed. docs/observability.md describes the members; later versions may add
 * members.
 *
 * @param[out] json  ends with a newline and a null byte; release it with free(); untouched on
 *                   failure
 *
 * @retval NDX_OK                  taken
 * @retval NDX_E_INVALID_PARAMETER NULL argument
 * @retval NDX_E_NO_MEMORY         out of memory
 *
 * Thread safety: any thread; not in a signal handler. Blocks: no. While the figures are copied,
 * connecting and disconnecting pause; transfers do not.
 */
enum ndx_status ndx_adapter_snapshot(struct ndx_adapter *adapter, char **json);

NDX_DECLS_END

#endif
