/* SPDX-License-Identifier: BSD-2-Clause */
/* The interpreter of the tables in disconnect.def. */
#include "disconnect.h"

#include <assert.h>
#include <stddef.h>

#define NDX_NOTIFY_STATE(name) NOTIFY_##name,
enum notify_state {
#include "disconnect.def"
	NOTIFY_STATES
};

#define NDX_CALL_STATE(name) CALL_##name,
enum call_state {
#include "disconnect.def"
	CALL_STATES
};

/* Inner actions have the numbers above the caller's actions, in the order of their events. */
#define NDX_INNER(name) DISCONNECT_DO_##name,
enum inner_action {
	BEFORE_INNER = DISCONNECT_ACTIONS - 1,
#include "disconnect.def"
	ALL_ACTIONS
};

#define BIT(number) (UINT32_C(1) << (number))
#define CALLERS_ACTIONS (BIT(DISCONNECT_ACTIONS) - 1)
#define NDX_DO(name) DISCONNECT_DO(name)
#define NDX_NOTHING 0

_Static_assert(ALL_ACTIONS <= 16, "struct cell holds 16 actions");
_Static_assert(DISCONNECT_ALL_EVENTS - DISCONNECT_EVENTS == ALL_ACTIONS - DISCONNECT_ACTIONS,
               "every inner action has its event");

enum verdict { UNHEARD, TAKE, IGNORE, NEVER };

struct cell {
	uint8_t verdict;
	uint8_t next;
	uint16_t actions;
};

#define NDX_LINK(state, event, to, acts) \
	[DISCONNECT_STATE_##state][DISCONNECT_EV_##event] = {TAKE, DISCONNECT_STATE_##to, (acts)},
#define NDX_LINK_IGNORE(state, event) \
	[DISCONNECT_STATE_##state][DISCONNECT_EV_##event] = {IGNORE, 0, 0},
#define NDX_LINK_NEVER(state, event) \
	[DISCONNECT_STATE_##state][DISCONNECT_EV_##event] = {NEVER, 0, 0},
static const struct cell link_table[DISCONNECT_STATES][DISCONNECT_ALL_EVENTS] = {
#include "disconnect.def"
};

#define NDX_NOTIFY(state, event, to, acts) \
	[NOTIFY_##state][DISCONNECT_EV_##event] = {TAKE, NOTIFY_##to, (acts)},
#define NDX_NOTIFY_IGNORE(state, event) [NOTIFY_##state][DISCONNECT_EV_##event] = {IGNORE, 0, 0},
#define NDX_NOTIFY_NEVER(state, event) [NOTIFY_##state][DISCONNECT_EV_##event] = {NEVER, 0, 0},
static const struct cell notify_table[NOTIFY_STATES][DISCONNECT_ALL_EVENTS] = {
#include "disconnect.def"
};

#define NDX_CALL(state, event, to, acts) \
	[CALL_##state][DISCONNECT_EV_##event] = {TAKE, CALL_##to, (acts)},
#define NDX_CALL_IGNORE(state, event) [CALL_##state][DISCONNECT_EV_##event] = {IGNORE, 0, 0},
#define NDX_CALL_NEVER(state, event) [CALL_##state][DISCONNECT_EV_##event] = {NEVER, 0, 0},
static const struct cell call_table[CALL_STATES][DISCONNECT_ALL_EVENTS] = {
#include "disconnect.def"
};

/* An entry that is there twice is a redefinition here; a missing entry makes the count wrong. */
#define NDX_LINK(state, event, to, acts) LINK_ENTRY_##state##_##event,
#define NDX_LINK_IGNORE(state, event) LINK_ENTRY_##state##_##event,
#define NDX_LINK_NEVER(state, event) LINK_ENTRY_##state##_##event,
enum link_entry {
#include "disconnect.def"
	LINK_ENTRIES
};
#define NDX_LINK_HEARS(event) LINK_HEARS_##event,
enum link_hears {
#include "disconnect.def"
	LINK_EARS
};
_Static_assert(LINK_ENTRIES == DISCONNECT_STATES * LINK_EARS,
               "link: an entry for each state and event");

#define NDX_NOTIFY(state, event, to, acts) NOTIFY_ENTRY_##state##_##event,
#define NDX_NOTIFY_IGNORE(state, event) NOTIFY_ENTRY_##state##_##event,
#define NDX_NOTIFY_NEVER(state, event) NOTIFY_ENTRY_##state##_##event,
enum notify_entry {
#include "disconnect.def"
	NOTIFY_ENTRIES
};
#define NDX_NOTIFY_HEARS(event) NOTIFY_HEARS_##event,
enum notify_hears {
#include "disconnect.def"
	NOTIFY_EARS
};
_Static_assert(NOTIFY_ENTRIES == NOTIFY_STATES * NOTIFY_EARS,
               "notify: an entry for each state and event");

#define NDX_CALL(state, event, to, acts) CALL_ENTRY_##state##_##event,
#define NDX_CALL_IGNORE(state, event) CALL_ENTRY_##state##_##event,
#define NDX_CALL_NEVER(state, event) CALL_ENTRY_##state##_##event,
enum call_entry {
#include "disconnect.def"
	CALL_ENTRIES
};
#define NDX_CALL_HEARS(event) CALL_HEARS_##event,
enum call_hears {
#include "disconnect.def"
	CALL_EARS
};
_Static_assert(CALL_ENTRIES == CALL_STATES * CALL_EARS, "call: an entry for each state and event");

static uint32_t enter_state(const struct cell *cell, uint8_t *state)
{
	if (cell->verdict != TAKE)
		return 0;
	*state = cell->next;
	return cell->actions;
}

/* Pass an event to each machine whose table has the event. */
static uint32_t pass_event(struct disconnect *d, unsigned ev)
{
	uint32_t actions = 0;

	actions |= enter_state(&notify_table[d->notify][ev], &d->notify);
	actions |= enter_state(&call_table[d->call][ev], &d->call);
	actions |= enter_state(&link_table[d->link][ev], &d->link);
	return actions;
}

void disconnect_init(struct disconnect *d)
{
	*d = (struct disconnect){0};
}

uint32_t disconnect_step(struct disconnect *d, enum disconnect_event ev)
{
	uint32_t actions;

	assert(ev < DISCONNECT_EVENTS);
	actions = pass_event(d, ev);
	/* An inner action is the next event; an action causes only actions with higher numbers. */
	for (unsigned i = DISCONNECT_ACTIONS; i < ALL_ACTIONS; i++) {
		if (actions & BIT(i))
			actions |= pass_event(d, DISCONNECT_EVENTS + i - DISCONNECT_ACTIONS);
	}
	return actions & CALLERS_ACTIONS;
}

bool disconnect_expects(const struct disconnect *d, enum disconnect_event ev)
{
	assert(ev < DISCONNECT_EVENTS);
	return link_table[d->link][ev].verdict != NEVER &&
	       notify_table[d->notify][ev].verdict != NEVER &&
	       call_table[d->call][ev].verdict != NEVER;
}

enum disconnect_state disconnect_get_state(const struct disconnect *d)
{
	return (enum disconnect_state)d->link;
}

bool disconnect_admits_work(const struct disconnect *d)
{
	return d->link == DISCONNECT_STATE_UP;
}

bool disconnect_is_drained(const struct disconnect *d)
{
	static const bool drained[DISCONNECT_STATES] = {
		[DISCONNECT_STATE_WAIT] = true,      [DISCONNECT_STATE_WAIT_A] = true,
		[DISCONNECT_STATE_WAIT_P] = true,    [DISCONNECT_STATE_FINISH] = true,
		[DISCONNECT_STATE_CLOSED_OK] = true, [DISCONNECT_STATE_CLOSED_BAD] = true,
	};

	return drained[d->link];
}

bool disconnect_is_over(const struct disconnect *d)
{
	return d->link == DISCONNECT_STATE_CLOSED_OK || d->link == DISCONNECT_STATE_CLOSED_BAD;
}

bool disconnect_notify_is_pending(const struct disconnect *d)
{
	return d->notify == NOTIFY_ASKED;
}

bool disconnect_call_is_pending(const struct disconnect *d)
{
	return d->call == CALL_CALLED;
}

static const char *name_of(const char *const *names, size_t count, unsigned number)
{
	return number < count ? names[number] : "?";
}

const char *disconnect_state_name(enum disconnect_state state)
{
#define NDX_LINK_STATE(name) #name,
	static const char *const names[] = {
#include "disconnect.def"
	};

	return name_of(names, sizeof(names) / sizeof(*names), (unsigned)state);
}

const char *disconnect_event_name(enum disconnect_event ev)
{
#define NDX_EVENT(name) #name,
	static const char *const names[] = {
#include "disconnect.def"
#define NDX_INNER(name) #name,
#include "disconnect.def"
	};

	return name_of(names, sizeof(names) / sizeof(*names), (unsigned)ev);
}

const char *disconnect_action_name(enum disconnect_action action)
{
#define NDX_ACTION(name) #name,
	static const char *const names[] = {
#include "disconnect.def"
	};

	return name_of(names, sizeof(names) / sizeof(*names), (unsigned)action);
}
