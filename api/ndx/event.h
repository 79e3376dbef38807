/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Asynchronous events of an adapter: its port goes down, its address changes, its device is
 * removed. They concern the adapter as a whole. What they do to a connection or to a queue, the
 * connection or the queue reports itself; a program needs no events for that.
 */
#ifndef NDX_EVENT_H
#define NDX_EVENT_H

#include <stddef.h>
#include <stdint.h>

#include <ndx/adapter.h>
#include <ndx/decls.h>
#include <ndx/overlapped.h>
#include <ndx/status.h>

NDX_DECLS_BEGIN

/** What has happened. Later versions may have more. */
enum ndx_adapter_event_type {
	NDX_ADAPTER_EVENT_PORT_DOWN = 1, /**< connections end unless the port comes back soon */
	NDX_ADAPTER_EVENT_PORT_UP = 2,
	/** Addresses of the port came, went or changed: ndx_adapter_query_addresses(), GID, LID. */
	NDX_ADAPTER_EVENT_ADDRESS_CHANGE = 3,
	/** The subnet changed its manager or its partitions, or wants all to register anew. */
	NDX_ADAPTER_EVENT_SUBNET_CHANGE = 4,
	/** The device has failed or was removed; only closing works. The last event. */
	NDX_ADAPTER_EVENT_DEVICE_REMOVED = 5,
};

/** Name of a type, for example "port down"; "?" for an unknown type. Never NULL. */
const char *ndx_adapter_event_name(enum ndx_adapter_event_type type);

/** Number of events that an adapter keeps for ndx_adapter_get_event(). */
#define NDX_ADAPTER_EVENTS_KEPT 16

/** One event. */
struct ndx_adapter_event {
	size_t size; /**< the caller sets sizeof(struct ndx_adapter_event) */
	enum ndx_adapter_event_type type;
	uint32_t port;    /**< of the device, from 1; 0: the whole device */
	int32_t native;   /**< the provider's code: enum ibv_event_type, or errno; 0: none */
	uint64_t time_ns; /**< of the monotonic clock */
	uint64_t number;  /**< of the event within the adapter, from 1 */
	/** Events between the previous reported one and this one that were not kept. */
	uint64_t lost;
	char text[128]; /**< what the log says */
};

/** `size` of struct ndx_adapter_event in version 0.1; the smallest that is accepted. */
#define NDX_ADAPTER_EVENT_SIZE_0_1 NDX_SIZE_UP_TO(struct ndx_adapter_event, text)

/**
 * Get the next event. The adapter keeps the latest NDX_ADAPTER_EVENTS_KEPT events from its opening
 * on; each event completes one operation, in the order of the calls. All events are in the log,
 * too.
 *
 * @param[in,out] event  the caller sets `size`. Must stay valid and unchanged until the operation
 *                       has completed; with NDX_OK the library has filled as much as `size` said,
 *                       and has set `size` to that
 * @param ov             completes with NDX_OK; or with NDX_E_CANCELED after ndx_adapter_cancel() or
 *                       ndx_adapter_close(), and then @p event is untouched
 *
 * @retval NDX_PENDING                started; an event that is kept completes it at once
 * @retval NDX_E_INVALID_PARAMETER    NULL argument, `size` is smaller than in any released version,
 *                                    or @p ov is in flight
 * @retval NDX_E_NOT_SUPPORTED        the adapter lacks NDX_CAP_EVENTS
 * @retval NDX_E_INVALID_DEVICE_STATE called in a callback that ndx_adapter_close() has caused
 *
 * Thread safety: any thread, also in callbacks. Blocks: no.
 */
enum ndx_status ndx_adapter_get_event(struct ndx_adapter *adapter, struct ndx_adapter_event *event,
                                      struct ndx_overlapped *ov);

/**
 * Cancel the operations of the adapter that are in flight, those of ndx_adapter_get_event(): they
 * complete NDX_E_CANCELED, in order, before the call returns. Events that are kept stay. The
 * operations of other objects go on.
 *
 * @retval NDX_OK                  none is in flight
 * @retval NDX_E_INVALID_PARAMETER @p adapter is NULL
 *
 * Thread safety: any thread, also in callbacks. Blocks: until the callbacks of the cancelled
 * operations have returned. In a callback it does not wait: those callbacks follow after the
 * current one (<ndx/overlapped.h>).
 */
enum ndx_status ndx_adapter_cancel(struct ndx_adapter *adapter);

NDX_DECLS_END

#endif
