/* SPDX-License-Identifier: BSD-2-Clause */
/* The disconnect protocol as a pure state machine: events in, actions out. */
#ifndef CORE_DISCONNECT_H
#define CORE_DISCONNECT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A machine belongs to one side of one established connection; it starts when both sides may send.
 * It does no I/O, reads no clock, takes no lock and allocates nothing: the caller serialises the
 * steps and performs the returned actions. disconnect.def defines the states, events and actions,
 * and is the source of the model in docs/model, too.
 */

#define NDX_LINK_STATE(name) DISCONNECT_STATE_##name,
enum disconnect_state {
#include "disconnect.def"
	DISCONNECT_STATES
};

/* The events of NDX_INNER pass between the parts of the machine; the caller does not use them. */
#define NDX_EVENT(name) DISCONNECT_EV_##name,
enum disconnect_event {
#include "disconnect.def"
	DISCONNECT_EVENTS,
	DISCONNECT_BEFORE_INNER = DISCONNECT_EVENTS - 1,
#define NDX_INNER(name) DISCONNECT_EV_##name,
#include "disconnect.def"
	DISCONNECT_ALL_EVENTS
};

/* Bit numbers, see DISCONNECT_DO(); actions with lower numbers are performed first. */
#define NDX_ACTION(name) DISCONNECT_DO_##name,
enum disconnect_action {
#include "disconnect.def"
	DISCONNECT_ACTIONS
};

#define DISCONNECT_DO(name) (UINT32_C(1) << DISCONNECT_DO_##name)

/* Plain data: may be copied and compared. Private to disconnect.c. */
struct disconnect {
	uint8_t link;
	uint8_t notify;
	uint8_t call;
};

void disconnect_init(struct disconnect *d);

/**
 * Take one event.
 *
 * @param d   the machine
 * @param ev  what happened; below DISCONNECT_EVENTS
 *
 * @return OR of DISCONNECT_DO(action), to be carried out before the next step, lowest bit first; 0
 *         if the event changes nothing. A notify_disconnect or disconnect that the event itself
 *         brought may be among those to complete.
 */
uint32_t disconnect_step(struct disconnect *d, enum disconnect_event ev);

/* False if `ev` is possible only after a provider or the front door has broken its contract: log
 * it. The step does nothing then. */
bool disconnect_expects(const struct disconnect *d, enum disconnect_event ev);

enum disconnect_state disconnect_get_state(const struct disconnect *d);

/* Whether new work is admitted; otherwise it completes CANCELED after the work in flight. */
bool disconnect_admits_work(const struct disconnect *d);

/* Whether the own initiator work has ended, completed or cancelled: closing a handle waits for
 * this. Stays true. */
bool disconnect_is_drained(const struct disconnect *d);

/* Whether the teardown has ended: nothing moves any more, every result is visible. Stays true. */
bool disconnect_is_over(const struct disconnect *d);

/* Whether a call is pending: the connector sends no second NOTIFY. */
bool disconnect_notify_is_pending(const struct disconnect *d);
/* Whether a call is pending: the front door refuses a second one. */
bool disconnect_call_is_pending(const struct disconnect *d);

/* Never NULL; "?" for an invalid number. */
const char *disconnect_state_name(enum disconnect_state state);
const char *disconnect_event_name(enum disconnect_event ev);
const char *disconnect_action_name(enum disconnect_action action);

#endif
