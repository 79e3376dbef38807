/* SPDX-License-Identifier: BSD-2-Clause */
/* The transport is cut behind each frame by which queue pairs are added, and within it: the session
 * ends, nothing of the batch stays, and nothing else is lost. */
#include "many_proxy.h"

#include <poll.h>

#include "fake_direct.h"

enum { BASE = 2, FEW = 2, SPARE = 1 };

/* Both ends of all that came before have said what they had to say. */
static void is_idle(const struct rig *r, uint64_t sessions)
{
	struct ndx_negotiation_server_stats stats = {.size = sizeof(stats)};

	for (int i = 0; i < WAIT_MS && stats.completed < sessions; i++) {
		(void)poll(NULL, 0, 1);
		assert_int_equal(ndx_negotiation_server_get_stats(r->server, &stats), NDX_OK);
	}
	assert_int_equal(stats.completed, sessions);
}

/* A session that does not go through the proxy. */
static struct ndx_session *run_another(struct rig *r)
{
	struct ndx_session *good;

	ndx_session_close(r->session);
	bare = true;
	make_session(r);
	assert_int_equal(ndx_session_run(r->session), NDX_OK);
	bare = false;
	good = r->session;
	r->session = NULL;
	return good;
}

static void can_do_all(struct ndx_session *good)
{
	struct ndx_session_queue_pair list[SPARE] = {{.connector = NULL}};
	uint32_t first = 0;

	bare = true;
	assert_int_equal(ndx_session_add_queue_pairs(good, list, SPARE, &first), NDX_OK);
	assert_int_equal(ndx_session_remove_queue_pairs(good, first, SPARE), NDX_OK);
	bare = false;
	ndx_session_close(good);
}

/* The connections that were there before: those that the transport carried are aborted. */
static void connections_end(struct rig *r, bool carried)
{
	for (uint32_t i = 0; i < r->count; i++) {
		if (carried) {
			indicated(&r->a[i], NDX_DISCONNECT_ABORTED);
			indicated(&r->b[i], NDX_DISCONNECT_ABORTED);
		} else {
			disconnect_both(&r->a[i], &r->b[i]);
		}
	}
}

/* The server's program has heard the outcome of what it was asked for, once. */
static void program_knows(struct rig *r, int closed)
{
	is_told(&r->closed, closed);
	assert_int_equal(r->added + r->not_added, r->asked);
}

/* False: there are not so many frames. */
static bool cuts(struct proxy *x, uint32_t *added)
{
	const bool carried = strcmp(rig_uri, "direct") == 0;
	struct ndx_session *good;
	enum ndx_status st;
	struct rig r;

	rig_up(&r, BASE);
	good = run_another(&r);
	proxy_start(x, &r);
	make_session(&r);
	assert_int_equal(ndx_session_run(r.session), NDX_OK);
	for (uint32_t i = 0; i < BASE; i++) {
		watch(&r.a[i]);
		watch(&r.b[i]);
	}
	is_idle(&r, 2);
	more_up(&r, FEW);
	proxy_arm(x, true);
	st = more_add(&r, NULL);
	if (!__atomic_load_n(&x->cut, __ATOMIC_ACQUIRE)) {
		proxy_arm(x, false);
		assert_int_equal(st, NDX_OK);
		more_end(&r);
		for (uint32_t i = 0; i < BASE; i++)
			disconnect_both(&r.a[i], &r.b[i]);
	} else {
		assert_int_equal(st, NDX_E_CONNECTION_ABORTED);
		assert_int_equal(ndx_session_get_state(r.session), NDX_SESSION_FAILED);
		program_knows(&r, 1);
		*added += (uint32_t)r.added;
		connections_end(&r, carried);
		more_down(&r);
	}
	can_do_all(good);
	rig_down(&r);
	proxy_stop(x);
	return x->cut;
}

static bool has_seen(const struct proxy_stream *s, enum frame_type type, enum ndx_stage stage)
{
	for (uint32_t i = 0; i < s->frames && i < PROXY_FRAMES; i++)
		if (s->seen[i] == type * 256 + stage)
			return true;
	return false;
}

/* All kinds of frames were there, so that each of them was the first one that did not get through.
 */
static void all_were_there(const struct proxy *x, bool proves)
{
	for (int d = 0; d < 2; d++) {
		const struct proxy_stream *s = &x->streams[d];

		assert_true(has_seen(s, FRAME_DATA, NDX_STAGE_INFO));
		assert_true(has_seen(s, FRAME_VALIDATE, NDX_STAGE_VALIDATE));
		assert_true(!proves || has_seen(s, FRAME_PROOF, NDX_STAGE_VALIDATE));
		assert_true(has_seen(s, FRAME_DATA, NDX_STAGE_READY));
	}
	assert_true(has_seen(&x->streams[PROXY_TO_SERVER], FRAME_ADD, NDX_STAGE_INFO));
	assert_true(has_seen(&x->streams[PROXY_TO_CLIENT], FRAME_ADD, NDX_STAGE_READY));
}

static void sweep(enum proxy_direction direction, bool proves)
{
	static const uint32_t parts[] = {0, 7, FRAME_HEADER};
	uint32_t added = 0;
	uint32_t nth = 0;
	struct proxy x;

	do {
		x = (struct proxy){.direction = direction,
		                   .nth = nth,
		                   .part = parts[nth % 3],
		                   .reset = nth % 2 == 1};
		nth++;
	} while (cuts(&x, &added));
	all_were_there(&x, proves);
	/* The server has ended a batch when the client's last message has come: then the cut of the
	 * answer comes too late. */
	assert_true(direction == PROXY_TO_CLIENT ? added >= 1 : added == 0);
	print_message("%s: %u frames %s\n", rig_uri, x.streams[direction].frames,
	              direction == PROXY_TO_CLIENT ? "to the client" : "to the server");
}

static void a_transport_is_cut_behind_each_frame(void **state)
{
	static const char *const uris[] = {"direct", "loop", "ofi:tcp"};

	(void)state;
	for (int i = 0; i < 2; i++)
		fake_direct_proofs[i] = (struct ndx_spi_proof){
			.written = NDX_PROVED_WHOLE, .seen = NDX_PROVED_WHOLE, .status = NDX_OK};
	for (int k = 0; k < 3; k++) {
		rig_uri = uris[k];
		fake_direct_proves = k == 0;
		sweep(PROXY_TO_SERVER, k == 0);
		sweep(PROXY_TO_CLIENT, k == 0);
	}
	fake_direct_proves = false;
	rig_uri = "direct";
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_transport_is_cut_behind_each_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
