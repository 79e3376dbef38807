/* SPDX-License-Identifier: BSD-2-Clause */
/* The disconnect contract as a pure machine: events in, actions out. */
#ifndef CORE_DISCONNECT_H
#define CORE_DISCONNECT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * One machine belongs to one side of one established connection; it starts when both sides may
 * send. It does no I/O, reads no clock, takes no lock, allocates nothing: the caller serialises the
 * steps and carries out what they return. What each name means stands in disconnect.def, which is
 * also what the model in docs/model is made of.
 */

#define NDX_LINK_STATE(name) DISCONNECT_STATE_##name,
enum disconnect_state {
#include "disconnect.def"
	DISCONNECT_STATES
};

/* Those of NDX_INNER pass between the parts of the machine; nobody else steps with them. */
#define NDX_EVENT(name) DISCONNECT_EV_##name,
enum disconnect_event {
#include "disconnect.def"
	DISCONNECT_EVENTS,
	DISCONNECT_BEFORE_INNER = DISCONNECT_EVENTS - 1,
#define NDX_INNER(name) DISCONNECT_EV_##name,
#include "disconnect.def"
	DISCONNECT_ALL_EVENTS
};

/* Bit numbers, see DISCONNECT_DO(); the lower ones are carried out first. */
#define NDX_ACTION(name) DISCONNECT_DO_##name,
enum disconnect_action {
#include "disconnect.def"
	DISCONNECT_ACTIONS
};

#define DISCONNECT_DO(name) (UINT32_C(1) << DISCONNECT_DO_##name)

/* Plain bytes: may be copied and compared. Private to disconnect.c. */
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

/* False if `ev` now means that a provider or the front door has broken its promise: worth a log
 * record. The step is harmless all the same. */
bool disconnect_expects(const struct disconnect *d, enum disconnect_event ev);

enum disconnect_state disconnect_get_state(const struct disconnect *d);

/* New work is admitted; otherwise it completes CANCELED behind what is there. */
bool disconnect_admits_work(const struct disconnect *d);

/* The own initiator work is over, be it completed or cancelled: what closing a handle waits for.
 * Stays true. */
bool disconnect_is_drained(const struct disconnect *d);

/* The teardown has ended: nothing moves any more, every result is visible. Stays true. */
bool disconnect_is_over(const struct disconnect *d);

/* A call is pending: the front door refuses a second one. */
bool disconnect_notify_is_pending(const struct disconnect *d);
bool disconnect_call_is_pending(const struct disconnect *d);

/* Never NULL; "?" for a number that is none. */
const char *disconnect_state_name(enum disconnect_state state);
const char *disconnect_event_name(enum disconnect_event ev);
const char *disconnect_action_name(enum disconnect_action action);

#endif
