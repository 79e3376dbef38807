/* SPDX-License-Identifier: BSD-2-Clause */
/* The transport of a session is cut: before, within and behind each frame of either direction,
 * twice in each stage, and between two calls. */
#include "oob_rig.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include <ndx/spi/byteorder.h>
#include <ndx/spi/system.h>
#include "fake_direct.h"

/* ---- a proxy that cuts ---- */

enum how { BEFORE, WITHIN, BEHIND, HOWS };
enum part { CONNECT, INFO, VALIDATE, READY, PARTS }; /* of a session */
enum { SESSION_FRAMES = 12 };                        /* more than a session has each way */

static struct proxy {
	pthread_t thread;
	int fd;
	int stop;
	int cut;       /* cut now */
	int idle_cuts; /* atomic: how often that was done */
	uint16_t to;
	char address[32];
	/* Cut at that frame of that direction (0: the client's); */
	int direction;
	unsigned at; /* from 1; 0: none */
	enum how how;
	unsigned frames[2];
	bool forgets; /* take from both ends what they say of replays */
	int welcomes; /* atomic: how many say that the session goes on */
	/* or at the first frames of each part. */
	unsigned left[PARTS];
	unsigned cuts[PARTS]; /* so far */
} proxy;

struct side {
	uint8_t bytes[4096];
	size_t used;
};

static enum part part_of(const uint8_t *header)
{
	if (header[5] == FRAME_HELLO || header[5] == FRAME_WELCOME)
		return CONNECT;
	return (enum part)(header[6] + INFO);
}

static bool is_cut(const uint8_t *header, int direction)
{
	const enum part part = part_of(header);

	if (part >= PARTS || header[5] == FRAME_GOODBYE || header[5] == FRAME_SESSION_END)
		return false;
	/* When the server's word that stage ready has ended is there, the session is up at the
	 * client: from then on, a lost transport is the end of the connection. */
	if (header[5] == FRAME_ALIVE && part == READY && (direction == 0 || proxy.how == BEHIND))
		return false;
	proxy.frames[direction]++;
	if (proxy.at > 0 && direction == proxy.direction && proxy.frames[direction] == proxy.at) {
		proxy.cuts[part]++;
		return true;
	}
	if (proxy.left[part] == 0 ||
	    (part == CONNECT && (header[7] & FRAME_RESUMED) != 0 && proxy.cuts[INFO] > 0))
		return false;
	proxy.left[part]--;
	proxy.cuts[part]++;
	return true;
}

static bool pass(int to, const uint8_t *bytes, size_t length)
{
	return send(to, bytes, length, MSG_NOSIGNAL) == (ssize_t)length;
}

/* Forward the first frame. False: the connection is cut, or has ended. */
static bool forward_frame(struct side *s, int to, int direction, size_t length)
{
	if (is_cut(s->bytes, direction)) {
		if (proxy.how != BEFORE)
			(void)pass(to, s->bytes, proxy.how == BEHIND ? length : length - 1);
		return false;
	}
	if (proxy.forgets && s->bytes[5] == FRAME_HELLO)
		s->bytes[7] &= (uint8_t)~FRAME_REPLAYS;
	if (!pass(to, s->bytes, length))
		return false;
	if (s->bytes[5] == FRAME_WELCOME && (s->bytes[7] & FRAME_RESUMED) != 0)
		(void)__atomic_add_fetch(&proxy.welcomes, 1, __ATOMIC_SEQ_CST);
	s->used -= length;
	memmove(s->bytes, s->bytes + length, s->used);
	return true;
}

/* Forward the whole frames that have come. False: the connection is cut, or has ended. */
static bool forward(struct side *s, int from, int to, int direction)
{
	const ssize_t n = recv(from, s->bytes + s->used, sizeof(s->bytes) - s->used, 0);

	if (n <= 0)
		return false;
	s->used += (size_t)n;
	while (s->used >= FRAME_HEADER) {
		const size_t length = FRAME_HEADER + ndxp_get_be32(s->bytes + 16);

		assert_true(length <= sizeof(s->bytes));
		if (s->used < length)
			break;
		if (!forward_frame(s, to, direction, length))
			return false;
	}
	return true;
}

static void serve(int client)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
	                         .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)},
	                         .sin_port = htons(proxy.to)};
	const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct side sides[2] = {{.used = 0}, {.used = 0}};
	struct pollfd set[4] = {{.fd = client, .events = POLLIN},
	                        {.fd = server, .events = POLLIN},
	                        {.fd = proxy.stop, .events = POLLIN},
	                        {.fd = proxy.cut, .events = POLLIN}};
	bool on = connect(server, (struct sockaddr *)&at, sizeof(at)) == 0;

	while (on) {
		(void)poll(set, 4, -1);
		on = set[2].revents == 0 && set[3].revents == 0;
		for (int i = 0; on && i < 2; i++)
			if (set[i].revents != 0)
				on = forward(&sides[i], i == 0 ? client : server,
				             i == 0 ? server : client, i);
	}
	(void)close(server);
	(void)close(client);
	if (set[3].revents != 0) {
		ndxp_eventfd_clear(proxy.cut);
		(void)__atomic_add_fetch(&proxy.idle_cuts, 1, __ATOMIC_SEQ_CST);
	}
}

static void *proxy_main(void *arg)
{
	(void)arg;
	for (;;) {
		struct pollfd set[2] = {{.fd = proxy.fd, .events = POLLIN},
		                        {.fd = proxy.stop, .events = POLLIN}};

		(void)poll(set, 2, -1);
		if (set[1].revents != 0)
			return NULL;
		serve(accept(proxy.fd, NULL, NULL));
	}
}

static const char *detour(uint16_t port)
{
	proxy.to = port;
	return proxy.address;
}

static void proxy_begin(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
	                         .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
	socklen_t length = sizeof(at);

	memset(&proxy, 0, sizeof(proxy));
	proxy.stop = ndxp_eventfd_create();
	proxy.cut = ndxp_eventfd_create();
	proxy.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(proxy.fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(proxy.fd, 8), 0);
	assert_int_equal(getsockname(proxy.fd, (struct sockaddr *)&at, &length), 0);
	(void)snprintf(proxy.address, sizeof(proxy.address), "127.0.0.1:%u", ntohs(at.sin_port));
	rig_detour = detour;
}

static void proxy_end(void)
{
	ndxp_eventfd_set(proxy.stop);
	assert_int_equal(pthread_join(proxy.thread, NULL), 0);
	(void)close(proxy.fd);
	(void)close(proxy.stop);
	(void)close(proxy.cut);
	rig_detour = NULL;
}

/* ---- sessions ---- */

static void begin_through(struct rig *r, const char *what)
{
	print_message("%s\n", what);
	rig_up(r);
	r->session->attr.backoff_ms = 1;
	r->session->attr.attempts = 5;
	assert_int_equal(pthread_create(&proxy.thread, NULL, proxy_main, NULL), 0);
}

/* The connection says goodbye, and the session ends. */
static void end_through(struct rig *r)
{
	watch(&r->a);
	watch(&r->b);
	disconnect_both(&r->a, &r->b);
	assert_int_equal(ndx_session_execute(r->session, NDX_STAGE_DONE), NDX_OK);
	ndx_session_close(r->session);
	r->session = NULL;
	wait_closed(r);
	assert_int_equal(__atomic_load_n(&r->closed, __ATOMIC_SEQ_CST), 1);
	proxy_end();
	rig_down(r);
}

/* A session through the proxy. */
static void run_through(const char *what)
{
	struct rig r;

	begin_through(&r, what);
	if (ndx_session_run(r.session) != NDX_OK)
		fail_msg("%s: %s", what, ndx_last_error());
	end_through(&r);
}

static void cut_everywhere(unsigned seen[PARTS])
{
	char what[64];

	for (int direction = 0; direction < 2; direction++) {
		for (unsigned at = 1; at <= SESSION_FRAMES; at++) {
			for (int how = 0; how < HOWS; how++) {
				proxy_begin();
				proxy.direction = direction;
				proxy.at = at;
				proxy.how = (enum how)how;
				(void)snprintf(what, sizeof(what), "direction %d, frame %u, how %d",
				               direction, at, how);
				run_through(what);
				for (int i = 0; i < PARTS; i++)
					seen[i] += proxy.cuts[i];
			}
		}
	}
}

/* Without a connection manager: nothing proves the path, so that each stage has few frames. */
static void a_cut_at_any_frame_is_not_noticed(void **state)
{
	unsigned seen[PARTS] = {0};

	(void)state;
	cut_everywhere(seen);
	for (int i = 0; i < PARTS; i++)
		assert_true(seen[i] >= 2 * HOWS);
}

static void nor_where_the_path_is_proved(void **state)
{
	unsigned seen[PARTS] = {0};

	(void)state;
	fake_direct_proves = true;
	fake_direct_proofs[0] = fake_direct_proofs[1] =
		(struct ndx_spi_proof){.written = NDX_PROVED_WHOLE, .seen = NDX_PROVED_WHOLE};
	cut_everywhere(seen);
	fake_direct_proves = false;
	assert_true(seen[VALIDATE] >= 4 * HOWS);
}

/* With a connection manager, connecting takes messages of its own. */
static void nor_where_a_connection_manager_connects(void **state)
{
	unsigned seen[PARTS] = {0};

	(void)state;
	managed = true;
	cut_everywhere(seen);
	managed = false;
	for (int i = 0; i < PARTS; i++)
		assert_true(seen[i] >= 2 * HOWS);
}

static void two_cuts_in_each_stage_are_not_noticed(void **state)
{
	(void)state;
	for (int how = 0; how < HOWS; how++) {
		proxy_begin();
		proxy.how = (enum how)how;
		for (int i = 0; i < PARTS; i++)
			proxy.left[i] = 2;
		run_through("two cuts in each stage");
		for (int i = 0; i < PARTS; i++)
			assert_int_equal(proxy.cuts[i], 2);
	}
}

/* ---- between two calls ---- */

static void cut_now(int cuts)
{
	ndxp_eventfd_set(proxy.cut);
	for (int ms = 0; ms < WAIT_MS && __atomic_load_n(&proxy.idle_cuts, __ATOMIC_SEQ_CST) < cuts;
	     ms++)
		(void)poll(NULL, 0, 1);
	assert_int_equal(__atomic_load_n(&proxy.idle_cuts, __ATOMIC_SEQ_CST), cuts);
}

/* The session has noticed so many losses. */
static void notices(const struct ndx_session *s, int losses)
{
	struct ndx_history_entry e[128];
	int found = 0;

	for (int ms = 0; ms < WAIT_MS && found < losses; ms++) {
		size_t count = sizeof(e) / sizeof(e[0]);

		found = 0;
		assert_int_equal(ndx_session_get_history(s, e, &count, NULL), NDX_OK);
		for (size_t i = 0; i < count; i++)
			found += e[i].kind == NDX_HISTORY_LOST;
		(void)poll(NULL, 0, 1);
	}
	assert_int_equal(found, losses);
}

/* `cuts`: a bit for each stage before which the transport is cut. The next call goes on over a new
 * one, whether the session has noticed the loss by then, or the call is the first to notice. */
static void step_through(unsigned cuts, bool noticed)
{
	static const enum ndx_stage stages[] = {NDX_STAGE_INFO, NDX_STAGE_VALIDATE,
	                                        NDX_STAGE_READY};
	char what[64];
	int count = 0;
	struct rig r;

	(void)snprintf(what, sizeof(what), "cuts before stages %#x, %s", cuts,
	               noticed ? "noticed" : "not awaited");
	proxy_begin();
	begin_through(&r, what);
	assert_int_equal(ndx_session_connect(r.session), NDX_OK);
	for (int i = 0; i < 3; i++) {
		if ((cuts >> i & 1) != 0) {
			cut_now(++count);
			if (noticed)
				notices(r.session, count);
		}
		if (ndx_session_execute(r.session, stages[i]) != NDX_OK)
			fail_msg("%s: stage %d: %s", what, i, ndx_last_error());
	}
	assert_int_equal(__atomic_load_n(&proxy.welcomes, __ATOMIC_SEQ_CST), count);
	end_through(&r);
}

static void cuts_between_two_calls_are_not_noticed(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 4; k++) {
		managed = k % 2 == 1;
		for (unsigned cuts = 1; cuts < 8; cuts++)
			step_through(cuts, k < 2);
	}
	managed = false;
}

/* As over TLS: stage info begins anew, and the connection says goodbye over the second transport.
 */
static void without_replays_goodbyes_use_the_second_transport(void **state)
{
	(void)state;
	proxy_begin();
	proxy.forgets = true;
	proxy.left[INFO] = 1;
	run_through("a cut in stage info without replays");
	assert_int_equal(proxy.cuts[INFO], 1);
}

static int opens;             /* atomic: of the server's program */
static unsigned proxy_wanted; /* so many transports break */

/* Long enough for the client to come back: until the session has its next transport, or another
 * session has come instead. */
static void open_slowly(void)
{
	const int opened = __atomic_add_fetch(&opens, 1, __ATOMIC_SEQ_CST);

	for (int ms = 0; ms < WAIT_MS && opened == __atomic_load_n(&opens, __ATOMIC_SEQ_CST) &&
	                 __atomic_load_n(&proxy.welcomes, __ATOMIC_SEQ_CST) < (int)proxy_wanted;
	     ms++)
		(void)poll(NULL, 0, 1);
}

/* The transport breaks while the server's program opens the session: once, then twice. */
static void and_while_the_program_opens_the_session(void **state)
{
	(void)state;
	rig_opens = open_slowly;
	for (proxy_wanted = 1; proxy_wanted <= 2; proxy_wanted++) {
		__atomic_store_n(&opens, 0, __ATOMIC_SEQ_CST);
		proxy_begin();
		proxy.forgets = true;
		proxy.left[INFO] = proxy_wanted;
		run_through("cuts in a callback, without replays");
		assert_int_equal(proxy.cuts[INFO], proxy_wanted);
		assert_int_equal(opens, 1);
	}
	rig_opens = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_cuts_in_each_stage_are_not_noticed),
		cmocka_unit_test(a_cut_at_any_frame_is_not_noticed),
		cmocka_unit_test(nor_where_the_path_is_proved),
		cmocka_unit_test(nor_where_a_connection_manager_connects),
		cmocka_unit_test(cuts_between_two_calls_are_not_noticed),
		cmocka_unit_test(without_replays_goodbyes_use_the_second_transport),
		cmocka_unit_test(and_while_the_program_opens_the_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
