/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * What happened: counters, the history of each connection, and both as one JSON text.
 *
 * Objects are numbered within their adapter, each kind from 1 on: connector#3, qp#2, cq#1. The same
 * numbers stand in log records, histories and snapshots. docs/observability.md shows how to read
 * them.
 *
 * Counting costs the data path next to nothing: most figures are derived from the positions that
 * the queues keep anyway. Counters never go back while their object lives, and those of an adapter
 * include the objects that are gone. Times are of the monotonic clock, in nanoseconds.
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

/** Length of arrays that are indexed by a status: [0] counts NDX_OK, [-status] a failure. */
#define NDX_STATS_STATUSES 48

/** Length of ndx_duration_stats.log2_us. */
#define NDX_STATS_BUCKETS 24

/** How many transitions a connector remembers. */
#define NDX_HISTORY_MAX 16

/** Requests of one side of a queue pair, or of all queue pairs of an adapter. */
struct ndx_work_stats {
	uint64_t posted;    /**< accepted by a post call */
	uint64_t completed; /**< of those, ended; the others are under way */
	uint64_t silent;    /**< of those, NDX_OK without a result (NDX_OP_SILENT_SUCCESS) */
	/** Of `completed`, by status; flushed ones are at [-NDX_E_CANCELED]. */
	uint64_t by_status[NDX_STATS_STATUSES];
};

/** Counters of a queue pair. */
struct ndx_qp_stats {
	size_t size;              /**< sizeof(struct ndx_qp_stats), set by the caller */
	uint32_t id;              /**< qp#id */
	uint32_t connector_id;    /**< of its connection or attempt, also past; 0: none yet */
	uint32_t receive_cq_id;   /**< cq#id */
	uint32_t initiator_cq_id; /**< cq#id */
	uint32_t receive_depth;   /**< as granted; 0 with a shared receive queue */
	uint32_t initiator_depth; /**< as granted */
	struct ndx_work_stats initiator;
	struct ndx_work_stats receive; /**< with a shared receive queue: those it took from there */
	uint64_t starved;    /**< how often a send had to wait for the peer to post a receive */
	uint64_t starved_ns; /**< how long altogether, the wait that goes on included */
};

/** Counters of a completion queue. */
struct ndx_cq_stats {
	size_t size;         /**< sizeof(struct ndx_cq_stats), set by the caller */
	uint32_t id;         /**< cq#id */
	uint32_t depth;      /**< as asked for */
	uint32_t reserved;   /**< requests that attached queue pairs can have */
	uint32_t waiting;    /**< results that nobody has taken yet */
	uint32_t high_water; /**< the most that ever waited */
	uint32_t polls;      /**< calls of ndx_cq_get_results(), modulo 2^32: is anybody there? */
	uint64_t results;    /**< results that were added */
	uint64_t taken;      /**< results that were taken */
	uint64_t notifications;                 /**< how often a notification fired */
	uint64_t by_status[NDX_STATS_STATUSES]; /**< `results` by status */
	enum ndx_status failed;                 /**< why the queue is dead; NDX_OK: it is not */
};

/** How a connection was torn down, as seen from here. */
enum ndx_disconnect_outcome {
	NDX_OUTCOME_GRACEFUL = 0,  /**< both sides said goodbye */
	NDX_OUTCOME_ABORTED = 1,   /**< lost, failed, or ended by the peer without goodbye */
	NDX_OUTCOME_FLUSHED = 2,   /**< ended by the own side: flush, or close in mid-work */
	NDX_OUTCOME_TIMED_OUT = 3, /**< no goodbye in disconnect_timeout_ms */
};

/** Number of members of enum ndx_disconnect_outcome. */
#define NDX_OUTCOMES 4

/** Name of an outcome, "timed_out". Never NULL. */
const char *ndx_disconnect_outcome_name(enum ndx_disconnect_outcome outcome);

/** How long something took. */
struct ndx_duration_stats {
	uint64_t count;
	uint64_t total_ns; /**< mean = total_ns / count */
	uint64_t min_ns;   /**< 0 if count is 0 */
	uint64_t max_ns;
	/** [0]: below 2 us; [n]: 2^n us and more, below 2^(n+1) us; the last one has no end. */
	uint32_t log2_us[NDX_STATS_BUCKETS];
};

/** Objects of one kind. */
struct ndx_object_stats {
	uint32_t now;  /**< there now */
	uint32_t ever; /**< made since the adapter was opened; the highest number given */
};

/** Counters of an adapter. Queue pairs that are gone are in the sums. */
struct ndx_adapter_stats {
	size_t size;      /**< sizeof(struct ndx_adapter_stats), set by the caller */
	uint64_t time_ns; /**< when they were read */
	struct ndx_object_stats cqs;
	struct ndx_object_stats qps;
	struct ndx_object_stats srqs;
	struct ndx_object_stats mrs;
	struct ndx_object_stats mws;
	struct ndx_object_stats connectors; /**< `now` has goodbyes under way, too */
	struct ndx_object_stats listeners;
	struct ndx_work_stats initiator; /**< of all queue pairs */
	struct ndx_work_stats receive;
	uint64_t starved; /**< as of struct ndx_qp_stats, of all queue pairs */
	uint64_t starved_ns;
	uint32_t high_water;  /**< the most results that ever waited in one of the queues */
	uint32_t established; /**< connections that are up, or ending */
	/** Attempts of the active side that ended; [0]: a connection came up. */
	uint64_t connects[NDX_STATS_STATUSES];
	/** Requests that a connector took, and that ended without ndx_connector_reject(). */
	uint64_t accepts[NDX_STATS_STATUSES];
	uint64_t requests; /**< that came in at listeners */
	/** Of those: the backlog was full, the listener was closed, or the asker had given up. */
	uint64_t requests_refused;
	uint64_t rejects_passive; /**< requests that ndx_connector_reject() refused */
	uint64_t rejects_active;  /**< answers that it refused */
	/** How long teardown took, from the end of the connected state on; by outcome. */
	struct ndx_duration_stats disconnects[NDX_OUTCOMES];
	uint64_t drain_timeouts; /**< disconnects whose own work had to be cancelled */
};

/**
 * One thing that happened to a connector: what state it was in, what came, what it is in now. The
 * names are those of the log and of docs/observability.md.
 */
struct ndx_transition {
	uint64_t time_ns;       /**< never decreases along a history */
	const char *from;       /**< "CONNECTING"; a string constant, as the next two */
	const char *event;      /**< "ANSWER" */
	const char *to;         /**< "ANSWERED"; may be the same as `from` */
	enum ndx_status status; /**< what it brought: NDX_OK, or the failure */
	int32_t native;         /**< errno or provider code behind it, 0 if none */
	char cause[256];        /**< for people; "" if there is nothing to say; one that is longer
	                             is cut after a word and ends in "..." */
};

/**
 * Counters of an adapter.
 *
 * @param[in,out] stats  `size` set by the caller; the rest is filled
 *
 * @retval NDX_OK                  filled
 * @retval NDX_E_INVALID_PARAMETER NULL argument, or `size` is too small
 *
 * Thread safety: any thread. Blocks: no; takes the time of a look at each queue pair.
 */
enum ndx_status ndx_adapter_get_stats(struct ndx_adapter *adapter, struct ndx_adapter_stats *stats);

/**
 * Counters of a completion queue.
 *
 * @param[in,out] stats  `size` set by the caller; the rest is filled
 *
 * @retval NDX_OK                  filled
 * @retval NDX_E_INVALID_PARAMETER NULL argument, or `size` is too small
 * @retval NDX_E_NOT_SUPPORTED     the adapter's provider does not count
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_cq_get_stats(struct ndx_cq *cq, struct ndx_cq_stats *stats);

/**
 * Counters of a queue pair.
 *
 * @param[in,out] stats  `size` set by the caller; the rest is filled
 *
 * @retval NDX_OK                  filled
 * @retval NDX_E_INVALID_PARAMETER NULL argument, or `size` is too small
 * @retval NDX_E_NOT_SUPPORTED     the adapter's provider does not count
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_qp_get_stats(struct ndx_qp *qp, struct ndx_qp_stats *stats);

/** The connector's number, as in connector#3; 0 if @p connector is NULL. Any thread. */
uint32_t ndx_connector_get_id(const struct ndx_connector *connector);

/**
 * The latest transitions of a connector, oldest first; at any time until it is closed, also when
 * the connection has ended or never came up.
 *
 * @param[out] list      up to @p *count transitions; may be NULL if @p *count is 0
 * @param[in,out] count  room in @p list (NDX_HISTORY_MAX suffices); set to how many were filled
 * @param[out] total     how many there have been altogether; may be NULL
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
 * Receives a snapshot.
 *
 * @param arg     the caller's own
 * @param json    the text, ends with a newline and a null byte; gone when the function returns
 * @param length  bytes without the null byte
 */
typedef void ndx_snapshot_fn(void *arg, const char *json, size_t length);

/**
 * Everything that is known of an adapter as one JSON text: counters, every queue pair, completion
 * queue, listener and connector with its history, and connectors that failed and are closed
 * already. docs/observability.md describes the members; new ones may be added.
 *
 * @param write  called once, by the calling thread, with no lock held, if NDX_OK
 * @param arg    handed to @p write
 *
 * @retval NDX_OK                  written
 * @retval NDX_E_INVALID_PARAMETER NULL argument
 * @retval NDX_E_NO_MEMORY         out of memory
 *
 * Thread safety: any thread; not in a signal handler. Blocks: no; connecting and disconnecting
 * stand still while the figures are copied, transfers do not.
 */
enum ndx_status ndx_adapter_snapshot(struct ndx_adapter *adapter, ndx_snapshot_fn *write,
                                     void *arg);

NDX_DECLS_END

#endif
