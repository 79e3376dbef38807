/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two sides that run the tables of core/connection/disconnect.def; between them a network that
 * delays, reorders, loses and breaks; above them consumers that call whatever they like, in any
 * order, as often as they like, or not at all; below them the least obliging providers that keep
 * their promises. README.md says what is left out and what each property means; run.sh runs it.
 *
 * -DCALM         nothing is lost, no timer fires, nobody flushes
 * -DNO_RECEIVES      no work ever completes by itself: neither side posts a receive
 * -DDATA         each send is followed through the network; consumers only post, flush, release
 * -DFAULT_name   plants a fault, see faults.def
 * -DLIVE         also: no live-lock
 * -DWITNESS_name claims that a condition of faults.def is never reached
 * -DONLY=number  checks only the property of that number
 */
#include "faults.def"

/* ---- the tables ---- */

#define NDX_LINK_STATE(name) S_##name,
mtype:link_state = {
#include "../../core/connection/disconnect.def"
}
#define NDX_NOTIFY_STATE(name) N_##name,
mtype:notify_state = {
#include "../../core/connection/disconnect.def"
}
#define NDX_CALL_STATE(name) C_##name,
mtype:call_state = {
#include "../../core/connection/disconnect.def"
}
#define NDX_EVENT(name) E_##name,
#define NDX_INNER(name) E_##name,
mtype:event = {
#include "../../core/connection/disconnect.def"
	E_NONE
}
#define NDX_ACTION(name) A_##name,
#define NDX_INNER(name) A_##name,
mtype:action = {
#include "../../core/connection/disconnect.def"
}
#define NDX_DO(name) (1 << A_##name)
#define NDX_NOTHING 0

/* ---- properties ----
 * Constants that put their name into the text of an assertion; 0 unless switched off. */

#ifndef ONLY
#define ONLY 0
#endif
#define PROPERTY(number, name) hidden byte name = (ONLY != 0 && ONLY != number);
PROPERTY(1, no_deadlock)
PROPERTY(2, silent_consumer_does_not_hang_peer)
PROPERTY(3, disconnect_completes_exactly_once)
PROPERTY(4, notify_completes_exactly_once)
PROPERTY(5, at_most_one_indication)
PROPERTY(6, indication_tells_the_truth)
PROPERTY(7, notify_completes_before_disconnect)
PROPERTY(8, nothing_completes_after_close)
PROPERTY(9, cancel_is_synchronous)
PROPERTY(10, disc_only_after_drain)
PROPERTY(11, success_only_after_both_discs_and_drain)
PROPERTY(12, completion_only_after_quiet)
PROPERTY(13, flush_makes_disconnect_fail)
PROPERTY(14, no_work_lost)
PROPERTY(15, graceful_agrees)
PROPERTY(16, undisturbed_ends_well_on_both_sides)
PROPERTY(17, each_step_once)
PROPERTY(18, only_expected_events)
PROPERTY(19, every_end_begins_at_once)
#ifdef WITNESS
PROPERTY(20, witness)
#endif
#define CHECK(name, cond) assert(name || (cond))

/* ---- one machine per side ---- */

mtype:link_state link[2] = S_UP;
mtype:notify_state notify[2] = N_NONE;
mtype:call_state call[2] = C_IDLE;

/* ---- the consumers; what they have in flight is kept apart from what the machine believes ---- */

bool rest;         /* no consumer calls anything any more, and the network stays as it is */
bool ov_notify[2]; /* a notify_disconnect is in flight */
bool ov_disc[2];   /* a disconnect is in flight */
bool told[2];      /* had an indication */
bool closed[2];    /* the connector's handle is closed */
bool flushed[2];   /* flushed a connection that had not ended */

/* ---- providers, timers and the network ---- */

byte out[2];         /* initiator work that has neither completed nor been cancelled, 0 .. 2 */
#ifdef DATA
byte wire[2];        /* of that: on the way to the peer */
byte back[2];        /* of that: received, the acknowledgement is on its way back */
bool arrived[2];     /* a receive has taken something that is not yet a visible result */
#endif
bool work_cut[2];    /* initiator work was cancelled by the end, not by the drain timer */
byte drain[2];       /* DRAINED reports owed */
bool drain_timer[2]; /* armed; may fire ever after */
bool disc_timer[2];
#define NONE 0
#define FLYING 1
#define ARRIVED 2  /* at the peer's provider */
#define REPORTED 3 /* to the peer's machine */
byte disc[2];
bool acked[2];       /* ACKED was reported */
bool seen[2];        /* ABORT was reported */
bool closing[2];     /* FINISH or ABORT_LINK was asked for */
bool gone[2];        /* and QUIET reported: the link is closed on this side */
#define ALIVE 0
#define CUT 1        /* nothing gets through any more, and nobody need notice */
#define BROKEN 2     /* both sides will notice, each in its own time; till then things may arrive */
byte net;
#ifdef LIVE
bool judged;         /* nothing can happen any more, and all is well */
#endif

hidden int acts;

#define PEER_OF(i) (1 - i)
#define REACHABLE(i) (net != CUT && !gone[i] && !seen[i])
#define OVER(i) (link[i] == S_CLOSED_OK || link[i] == S_CLOSED_BAD)

/* ---- carrying out the actions ---- */

#ifndef DATA
inline complete_notify(i)
{
	CHECK(nothing_completes_after_close, !closed[i]);
	CHECK(notify_completes_exactly_once, ov_notify[i]);
	ov_notify[i] = false
}

inline do_NOTIFY_GRACEFUL(i)
{
	complete_notify(i);
	CHECK(at_most_one_indication, !told[i]);
	CHECK(indication_tells_the_truth, disc[PEER_OF(i)] == REPORTED);
	told[i] = true
}

inline do_NOTIFY_ABORTED(i)
{
	complete_notify(i);
	CHECK(at_most_one_indication, !told[i]);
	CHECK(indication_tells_the_truth, link[i] == S_ABORTING || link[i] == S_CLOSED_BAD);
	told[i] = true
}

inline do_NOTIFY_CANCELED(i)
{
	complete_notify(i)
}

inline complete_disc(i)
{
	CHECK(nothing_completes_after_close, !closed[i]);
	CHECK(disconnect_completes_exactly_once, ov_disc[i]);
	ov_disc[i] = false
}

inline do_DISC_OK(i)
{
	complete_disc(i);
	CHECK(success_only_after_both_discs_and_drain,
	      disc[i] != NONE && disc[PEER_OF(i)] == REPORTED && out[i] == 0);
	CHECK(completion_only_after_quiet, gone[i]);
	CHECK(notify_completes_before_disconnect, !ov_notify[i]);
	CHECK(flush_makes_disconnect_fail, !flushed[i])
}

inline do_DISC_ABORTED(i)
{
	complete_disc(i);
	CHECK(completion_only_after_quiet, gone[i] && out[i] == 0);
	CHECK(notify_completes_before_disconnect, !ov_notify[i])
}

inline do_DISC_CANCELED(i)
{
	complete_disc(i)
}
#else
#define NOBODY_CALLED(name) inline do_##name(i) { CHECK(only_expected_events, false) }
NOBODY_CALLED(NOTIFY_GRACEFUL)
NOBODY_CALLED(NOTIFY_ABORTED)
NOBODY_CALLED(NOTIFY_CANCELED)
NOBODY_CALLED(DISC_OK)
NOBODY_CALLED(DISC_ABORTED)
NOBODY_CALLED(DISC_CANCELED)
#endif

inline do_START_DRAIN(i)
{
	CHECK(each_step_once, drain[i] == 0 && !drain_timer[i] && disc[i] == NONE);
	drain[i] = 1;
	drain_timer[i] = true
}

inline cancel_work(i)
{
	out[i] = 0;
#ifdef DATA
	wire[i] = 0;
	back[i] = 0
#endif
}

/* A DRAINED may be under way already: then there are two. */
inline do_CANCEL_INITIATOR(i)
{
	cancel_work(i);
	drain[i] = 2
}

inline do_SEND_DISC(i)
{
	CHECK(disc_only_after_drain, out[i] == 0);
	CHECK(each_step_once, disc[i] == NONE);
	disc[i] = FLYING;
	disc_timer[i] = true
}

/* Receives are cancelled from here on: nothing of the peer's may still want one. */
inline do_FINISH(i)
{
	CHECK(each_step_once, !closing[i]);
	CHECK(no_work_lost, out[PEER_OF(i)] == 0);
#ifdef DATA
	CHECK(no_work_lost, wire[PEER_OF(i)] == 0);
#endif
	closing[i] = true
}

inline do_ABORT_LINK(i)
{
	CHECK(each_step_once, !closing[i]);
	closing[i] = true
}

/* ---- a step of side i ---- */

#define TAKE(machine, state, event, next, a) \
	:: ev == event && machine[i] == state -> machine[i] = next; acts = acts | (a);
#define REFUSE(machine, state, event) \
	:: ev == event && machine[i] == state -> CHECK(only_expected_events, false);

inline tell(i, ev)
{
	if
#define WRONG(s, e, n, a) TAKE(notify, N_##s, E_##e, N_##n, a)
	WRONG_NOTIFY
#undef WRONG
	:: else ->
		if
#define NDX_NOTIFY(s, e, n, a) TAKE(notify, N_##s, E_##e, N_##n, a)
#define NDX_NOTIFY_NEVER(s, e) REFUSE(notify, N_##s, E_##e)
#include "../../core/connection/disconnect.def"
		:: else
		fi
	fi;
	if
#define WRONG(s, e, n, a) TAKE(call, C_##s, E_##e, C_##n, a)
	WRONG_CALL
#undef WRONG
	:: else ->
		if
#define NDX_CALL(s, e, n, a) TAKE(call, C_##s, E_##e, C_##n, a)
#define NDX_CALL_NEVER(s, e) REFUSE(call, C_##s, E_##e)
#include "../../core/connection/disconnect.def"
		:: else
		fi
	fi;
	if
#define WRONG(s, e, n, a) TAKE(link, S_##s, E_##e, S_##n, a)
	WRONG_LINK
#undef WRONG
	:: else ->
		if
#define NDX_LINK(s, e, n, a) TAKE(link, S_##s, E_##e, S_##n, a)
#define NDX_LINK_NEVER(s, e) REFUSE(link, S_##s, E_##e)
#include "../../core/connection/disconnect.def"
		:: else
		fi
	fi
}

inline step(i, ev)
{
	acts = 0;
	do
	:: ev != E_NONE ->
		tell(i, ev);
		ev = E_NONE;
		if
#define NDX_INNER(name) :: acts & NDX_DO(name) -> acts = acts & ~NDX_DO(name); ev = E_##name;
#include "../../core/connection/disconnect.def"
		:: else
		fi
	:: else -> break
	od;
#define NDX_ACTION(name) if :: acts & NDX_DO(name) -> do_##name(i) :: else fi;
#include "../../core/connection/disconnect.def"
	acts = 0
}

/* ---- everything that may happen at side i: sets ev, E_NONE if the machine need not know ---- */

inline consumer_calls(i, ev)
{
	if
#ifdef DATA
#else
	:: !rest && !closed[i] && (!ov_notify[i] || FRONT_DOOR_SLEEPS) -> ov_notify[i] = true; ev = E_NOTIFY
	:: !rest && !closed[i] && (!ov_disc[i] || FRONT_DOOR_SLEEPS) -> ov_disc[i] = true; ev = E_DISCONNECT
	:: !rest && !closed[i] -> ev = E_CANCEL
	:: !rest && !closed[i] -> ev = E_CLOSE
#endif
	:: !rest -> ev = E_RELEASE
#ifndef CALM
	:: !rest ->
		flushed[i] = flushed[i] || !(link[i] == S_FINISH || link[i] == S_CLOSED_OK);
		ev = E_FLUSH
#endif
	:: !rest && link[i] == S_UP && out[i] < 2 ->
		out[i]++;
#ifdef DATA
		wire[i]++
#endif
	fi
}

/* Sends complete while the peer can receive them. */
inline data_moves(i)
{
	if
#ifdef NO_RECEIVES
	:: false
#elif !defined(DATA)
	:: out[i] > 0 && REACHABLE(i) && REACHABLE(PEER_OF(i)) -> out[i]--
#else
	:: wire[i] > 0 && REACHABLE(PEER_OF(i)) ->
		wire[i]--;
		back[i]++;
		arrived[PEER_OF(i)] = true
	:: back[i] > 0 && REACHABLE(i) -> back[i]--; out[i]--
	:: arrived[i] -> arrived[i] = false
#ifdef FAULT_SEND_COMPLETES_WHEN_WRITTEN
	:: out[i] > back[i] -> out[i]--
#endif
#endif
	fi
}

inline provider_reports(i, ev)
{
	if
	:: drain[i] > 0 && out[i] == 0 -> drain[i]--; ev = E_DRAINED
	:: disc[PEER_OF(i)] == FLYING && REACHABLE(i) -> disc[PEER_OF(i)] = ARRIVED
	:: disc[PEER_OF(i)] == ARRIVED && !gone[i] -> disc[PEER_OF(i)] = REPORTED; ev = E_PEER
	:: disc[i] >= ARRIVED && !acked[i] && REACHABLE(i) -> acked[i] = true; ev = E_ACKED
	/* never before a DISC that has arrived */
	:: (net == BROKEN || (gone[PEER_OF(i)] && net != CUT)) && !seen[i] &&
	   (disc[PEER_OF(i)] != ARRIVED || ABORT_OVERTAKES) ->
		seen[i] = true;
		ev = E_ABORT
	:: closing[i] && !gone[i] ->
#ifdef DATA
#ifndef FAULT_CANCELS_BEFORE_HARVEST
		arrived[i] = false;
#endif
		CHECK(no_work_lost, !arrived[i]);
		CHECK(no_work_lost, wire[PEER_OF(i)] <= out[PEER_OF(i)]);
#endif
		work_cut[i] = out[i] > 0;
		cancel_work(i);
		gone[i] = true;
		/* what may be reported later is ignored; that is the unit test's business */
		drain[i] = 0;
		drain_timer[i] = false;
		disc_timer[i] = false;
		seen[i] = true;
		ev = E_QUIET
	fi
}

#ifndef CALM
inline misfortune(i, ev)
{
	if
	:: drain_timer[i] -> drain_timer[i] = false; ev = E_DRAIN_TIMEOUT
	:: disc_timer[i] -> disc_timer[i] = false; ev = E_TIMEOUT
	:: !rest && net == ALIVE -> net = CUT
	:: !rest && net != BROKEN -> net = BROKEN
	fi
}
#endif

inline check_after(i, was)
{
	if
#ifndef DATA
	:: was == E_CLOSE ->
		closed[i] = true;
		CHECK(nothing_completes_after_close, !ov_notify[i] && !ov_disc[i]);
		CHECK(nothing_completes_after_close, notify[i] == N_SHUT && call[i] == C_SHUT)
	:: was == E_CANCEL ->
		CHECK(cancel_is_synchronous, !ov_notify[i] && !ov_disc[i])
#endif
	:: was == E_ABORT || was == E_FLUSH -> CHECK(every_end_begins_at_once, closing[i])
	:: was == E_DISCONNECT || was == E_RELEASE || was == E_PEER ->
		CHECK(every_end_begins_at_once, link[i] != S_UP)
	:: was == E_QUIET ->
		CHECK(graceful_agrees, !((work_cut[0] || work_cut[1]) &&
		      (link[0] == S_CLOSED_OK || link[1] == S_CLOSED_OK)))
	:: else
	fi
#ifdef WITNESS
	; CHECK(witness, !(WITNESS))
#endif
}

active [2] proctype side()
{
	mtype:event ev = E_NONE;
	mtype:event was = E_NONE;

end:
	do
	:: atomic {
		if
		:: consumer_calls(_pid, ev)
		:: data_moves(_pid)
		:: provider_reports(_pid, ev)
#ifndef CALM
		:: misfortune(_pid, ev)
#endif
		fi;
		d_step {
			was = ev;
			step(_pid, ev);
			check_after(_pid, was);
			was = E_NONE
		}
	}
	od
}

/* When nothing can happen any more unless a consumer calls: who is still waiting? */
#define UNTOUCHED(i) (link[i] == S_UP && !seen[i] && disc[PEER_OF(i)] != REPORTED)
#define ENDED(i) (OVER(i) || UNTOUCHED(i))
#define PATIENT(i) (!ov_disc[i] && (!ov_notify[i] || link[i] == S_UP))

active proctype judge()
{
	atomic { !rest -> rest = true };
	timeout -> d_step {
#ifndef DATA
		CHECK(silent_consumer_does_not_hang_peer, !ov_disc[0] && !ov_disc[1]);
#endif
		CHECK(no_deadlock, ENDED(0) && ENDED(1) && PATIENT(0) && PATIENT(1));
#ifdef CALM
		CHECK(undisturbed_ends_well_on_both_sides,
		      link[0] == link[1] && link[0] != S_CLOSED_BAD);
#endif
#ifdef LIVE
		judged = true
#endif
	}
}

/* Once consumers and network leave off, everything comes to its end by itself: no live-lock. */
#ifdef LIVE
ltl every_teardown_ends { [] (rest -> <> judged) }
#endif
