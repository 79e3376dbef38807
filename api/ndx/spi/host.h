/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * What a provider tells the core about its objects. <ndx/spi/provider.h> says when it may.
 */
#ifndef NDX_SPI_HOST_H
#define NDX_SPI_HOST_H

#include <stdint.h>

#include <ndx/event.h>
#include <ndx/overlapped.h>
#include <ndx/status.h>

struct ndx_adapter;
struct ndx_spi_conn;
struct ndx_spi_listener;
struct ndx_spi_mr;
struct ndx_spi_params;
struct ndx_spi_request;

/**
 * What a provider reports about an established connection. Bits; each may be reported repeatedly.
 */
enum ndx_spi_report {
	/** The peer's goodbye arrived; everything that the peer sent before it has completed. */
	NDX_REPORT_PEER_DISC = 1 << 0,
	NDX_REPORT_DISC_ACKED = 1 << 1, /**< the own goodbye was delivered */
	NDX_REPORT_DRAINED = 1 << 2,    /**< answer to conn_drain: own requests have ended */
	/**
	 * The connection is lost or broken. Must be reported before a result that this cancels can
	 * be taken.
	 */
	NDX_REPORT_ABORT = 1 << 3,
	/**
	 * Answer to conn_finish and conn_abort: no data moves any more, and every result is
	 * visible.
	 */
	NDX_REPORT_QUIET = 1 << 4,
	NDX_REPORT_PROOF = 1 << 5, /**< the own writes of conn_prove have ended */
};

/**
 * Messages about the end of a connection without a connection manager. The two ends exchange them
 * over an out-of-band stream, which the core keeps for the connection.
 */
enum ndx_spi_oob_message {
	/** Everything that the sender has sent has arrived; it will send nothing more. */
	NDX_OOB_GOODBYE,
	NDX_OOB_ABORT, /**< the connection is broken */
	NDX_OOB_LOST,  /**< received only: the stream ended without a message */
};

/** Upcalls of the core. */
struct ndx_host {
	uint32_t abi;  /**< NDX_SPI_ABI of the core */
	uint32_t size; /**< of the core's structure: it has the members that begin before this */
	/** Complete an overlapped operation that the provider kept, having returned NDX_PENDING. */
	void (*complete)(struct ndx_overlapped *ov, enum ndx_status status, uint32_t information,
	                 int32_t native);
	/**
	 * Report the outcome of an mr_register or mr_deregister that returned NDX_PENDING, once;
	 * also before the operation has returned. A failure changes nothing: the region is
	 * registered, or not registered, as before, and the program may try again. From this call
	 * on the next operation of the region may begin, on another thread; the provider waits in
	 * mr_destroy for what it still does with the region.
	 */
	void (*mr_ended)(struct ndx_spi_mr *mr, enum ndx_status status, int32_t native);
	/** Report a connection request. The core owns @p request until it passes it back. */
	void (*request)(struct ndx_spi_request *request);
	/**
	 * Report the peer's answer to conn_connect: NDX_OK with the peer's @p params, or the
	 * failure of the attempt (with the private data of a reject in @p params, NULL if there are
	 * none).
	 */
	void (*connected)(struct ndx_spi_conn *conn, enum ndx_status status, int32_t native,
	                  const struct ndx_spi_params *params);
	/**
	 * Report the end of conn_complete or conn_accept: the connection is established, or failed.
	 * From NDX_OK on the queue pair takes posts. Also reports that the peer gave up while the
	 * program has not decided yet (after `connected`, or after `request` was taken). @p params
	 * are the private data of an active side that refuses after an accept; NULL in all other
	 * cases.
	 */
	void (*established)(struct ndx_spi_conn *conn, enum ndx_status status, int32_t native,
	                    const struct ndx_spi_params *params);
	/**
	 * Report bits of enum ndx_spi_report; with ABORT, @p cause is for the log and for texts
	 * that the consumer asks for: a string constant, or a text that stays as it is until
	 * conn_destroy. Without bits: the cause of a failure that `connected` or `established` is
	 * about to report.
	 */
	void (*report)(struct ndx_spi_conn *conn, uint32_t bits, int32_t native, const char *cause);
	/**
	 * Send a message over the out-of-band stream of a connection made by qp_connect_peer. The
	 * core reports NDX_REPORT_DISC_ACKED when a goodbye has been sent.
	 */
	void (*oob_send)(struct ndx_spi_conn *conn, enum ndx_spi_oob_message message);
	/**
	 * Report that no more requests will come: pending and later operations that take one fail
	 * with @p status.
	 */
	void (*listener_failed)(struct ndx_spi_listener *listener, enum ndx_status status,
	                        int32_t native);
	/**
	 * Report an event of the device, for the log and for ndx_adapter_get_event(). Between
	 * adapter_open and adapter_close. @p front: that of struct ndx_spi_adapter; @p text: for
	 * the log, without the adapter's name, for example "port 1 is down"; copied. A provider
	 * that reports events has the capability bit NDX_CAP_EVENTS.
	 */
	void (*adapter_event)(struct ndx_adapter *front, enum ndx_adapter_event_type type,
	                      uint32_t port, int32_t native, const char *text);
};

#endif
