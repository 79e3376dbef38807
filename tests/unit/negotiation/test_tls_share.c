/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions of a variant share what TLS has read and made, as long as it would be the same again. */
#include "tls_rig.h"

#include <poll.h>
#include <unistd.h>

#define KEY "000102030405060708090a0b0c0d0e0f"
#define WRONG_KEY "ff0102030405060708090a0b0c0d0e0f"

static struct ndx_tls_attr with_key(const char *name)
{
	struct ndx_tls_attr tls;

	ndx_tls_attr_init(&tls);
	tls.psk_file = paper(name);
	return tls;
}

/* A server with KEY. */
static void open_with_key(struct host *h, void **state)
{
	const struct ndx_tls_attr tls = with_key("psk");

	host_open(h, *state, &tls, WAIT_MS);
}

static void runs(struct ndx_session *s)
{
	if (ndx_session_run(s) != NDX_OK)
		fail_msg("%s", ndx_last_error());
}

static void passes(void **state, const struct host *h, const struct ndx_tls_attr *tls)
{
	struct ndx_session *s = tls_session(*state, h->address, tls, WAIT_MS);

	runs(s);
	ndx_session_close(s);
}

static void is_refused(void **state, const struct host *h, const struct ndx_tls_attr *tls)
{
	struct ndx_session *s = tls_session(*state, h->address, tls, WAIT_MS);

	assert_int_equal(ndx_session_run(s), NDX_E_CONNECTION_REFUSED);
	ndx_session_close(s);
}

static enum ndx_status create(const struct rig *r, const struct ndx_tls_attr *tls)
{
	static const char *const server = "127.0.0.1:1";
	struct ndx_session *s = NULL;
	struct ndx_session_attr attr;
	enum ndx_status st;

	ndx_session_attr_init(&attr);
	attr.variant = r->variant;
	attr.servers = &server;
	attr.server_count = 1;
	attr.tls = tls;
	st = ndx_session_create(&attr, &s);
	ndx_session_close(s);
	return st;
}

static void share(void **state, const struct ndx_tls_attr *client,
                  const struct ndx_tls_attr *server)
{
	struct ndx_session *one;
	struct ndx_session *two;
	struct host h;

	host_open(&h, *state, server, WAIT_MS);
	papers_age();
	one = tls_session(*state, h.address, client, WAIT_MS);
	two = tls_session(*state, h.address, client, WAIT_MS);
	assert_non_null(one->tls);
	assert_ptr_equal(one->tls, two->tls);
	runs(one);
	ndx_session_close(one);
	runs(two);
	ndx_session_close(two);
	host_close(&h);
}

static void sessions_with_a_key_share(void **state)
{
	const struct ndx_tls_attr tls = with_key("psk");

	share(state, &tls, &tls);
}

static void sessions_with_certificates_share(void **state)
{
	const struct ndx_tls_attr client = tls_client();
	const struct ndx_tls_attr server = tls_server();

	share(state, &client, &server);
}

/* ---- the file is not what it was ---- */

static void a_key_that_is_written_anew_is_used(void **state)
{
	const struct ndx_tls_attr tls = with_key("changing");
	struct host h;

	open_with_key(&h, state);
	for (int aged = 0; aged < 2; aged++) {
		paper_write("changing", "alice:" KEY "\n", 0600);
		if (aged)
			papers_age();
		passes(state, &h, &tls);
		passes(state, &h, &tls);
		paper_write("changing", "alice:" WRONG_KEY "\n", 0600);
		if (aged)
			papers_age();
		is_refused(state, &h, &tls);
		is_refused(state, &h, &tls);
	}
	host_close(&h);
}

/* The second change may well leave the times and the size as the first one has set them. */
static void changes_within_a_tick_are_noticed(void **state)
{
	const struct ndx_tls_attr tls = with_key("quick");

	for (int i = 0; i < 20; i++) {
		struct ndx_session *one;
		struct ndx_session *two;

		paper_write("quick", "alice:" KEY "\n", 0600);
		one = tls_session(*state, "127.0.0.1:1", &tls, WAIT_MS);
		paper_write("quick", "alice:" WRONG_KEY "\n", 0600);
		two = tls_session(*state, "127.0.0.1:1", &tls, WAIT_MS);
		assert_ptr_not_equal(one->tls, two->tls);
		ndx_session_close(one);
		ndx_session_close(two);
	}
}

/* The rule behind that, also where the kernel's times are so fine that nothing depends on it. The
 * machine may be slow, and the file old when it is read: but not each time. */
static void a_file_that_has_just_changed_is_read_again(void **state)
{
	const struct ndx_tls_attr tls = with_key("fresh");
	bool shared = true;

	for (int i = 0; shared && i < 50; i++) {
		struct ndx_session *one;
		struct ndx_session *two;

		paper_write("fresh", "alice:" KEY "\n", 0600);
		one = tls_session(*state, "127.0.0.1:1", &tls, WAIT_MS);
		two = tls_session(*state, "127.0.0.1:1", &tls, WAIT_MS);
		shared = one->tls == two->tls;
		ndx_session_close(one);
		ndx_session_close(two);
	}
	assert_false(shared);
}

static void a_file_in_the_place_of_another_is_used(void **state)
{
	const struct ndx_tls_attr tls = with_key("place");
	struct host h;

	open_with_key(&h, state);
	paper_write("place", "alice:" WRONG_KEY "\n", 0600);
	paper_write("heir", "alice:" KEY "\n", 0600);
	papers_age();
	is_refused(state, &h, &tls);
	assert_int_equal(rename(paper("heir"), paper("place")), 0);
	passes(state, &h, &tls);
	host_close(&h);
}

/* A session goes on with the key that it began with. */
static void a_session_keeps_its_key(void **state)
{
	const struct ndx_tls_attr tls = with_key("kept");
	struct ndx_session *s;
	struct host h;

	open_with_key(&h, state);
	paper_write("kept", "alice:" KEY "\n", 0600);
	papers_age();
	s = tls_session(*state, h.address, &tls, WAIT_MS);
	paper_write("kept", "alice:" WRONG_KEY "\n", 0600);
	is_refused(state, &h, &tls);
	runs(s);
	ndx_session_close(s);
	host_close(&h);
}

static void a_file_of_no_use_is_noticed(void **state)
{
	const struct ndx_tls_attr tls = with_key("lost");

	paper_write("lost", "alice:" KEY "\n", 0600);
	papers_age();
	assert_int_equal(create(*state, &tls), NDX_OK);
	assert_int_equal(chmod(tls.psk_file, 0644), 0);
	assert_int_equal(create(*state, &tls), NDX_E_INVALID_CONFIG);
	says("lost is secret, and its mode 0644 lets others open it; chmod 600");
	assert_int_equal(chmod(tls.psk_file, 0600), 0);
	papers_age();
	assert_int_equal(create(*state, &tls), NDX_OK);
	assert_int_equal(unlink(tls.psk_file), 0);
	assert_int_equal(create(*state, &tls), NDX_E_NOT_FOUND);
	says("ndx_session_create: ");
	says("lost cannot be opened");
	paper_write("lost", "no key\n", 0600);
	assert_int_equal(create(*state, &tls), NDX_E_INVALID_CONFIG);
	says("lost: line 1 is not \"identity:key\"");
	if (geteuid() == 0) /* may read every file */
		return;
	paper_write("lost", "alice:" KEY "\n", 0600);
	papers_age();
	assert_int_equal(create(*state, &tls), NDX_OK);
	assert_int_equal(chmod(tls.psk_file, 0), 0);
	assert_int_equal(create(*state, &tls), NDX_E_INVALID_CONFIG);
	says("lost cannot be opened");
}

/* ---- other attributes ---- */

static void other_attributes_are_not_shared(void **state)
{
	const struct ndx_tls_attr server = tls_server();
	const struct ndx_tls_attr good = tls_client();
	struct ndx_tls_attr bad[4] = {good, good, good, good};
	struct ndx_session *s;
	struct ndx_session *last = NULL;
	struct host h;

	bad[0].server_name = "another.example";
	bad[1].ca_file = paper("alien.pem");
	bad[2].cert_file = NULL;
	bad[2].key_file = NULL;
	bad[3].verify = NDX_TLS_VERIFY_NONE; /* not refused */
	host_open(&h, *state, &server, WAIT_MS);
	papers_age();
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		s = tls_session(*state, h.address, &good, WAIT_MS);
		last = tls_session(*state, h.address, &bad[i], WAIT_MS);
		assert_ptr_not_equal(s->tls, last->tls);
		assert_int_equal(ndx_session_run(last), i < 3 ? NDX_E_CONNECTION_REFUSED : NDX_OK);
		ndx_session_close(last);
		runs(s);
		ndx_session_close(s);
	}
	host_close(&h);
}

/* ---- threads ---- */

/* The file is replaced, by the same key, while sessions of several threads look at it. */
static void threads_share(void **state)
{
	const struct ndx_tls_attr tls = with_key("crowded");
	struct crowd c = {.rig = *state, .tls = &tls, .threads = 6, .sessions = 12};
	struct host h;

	paper_write("crowded", "alice:" KEY "\n", 0600);
	papers_age();
	open_with_key(&h, state);
	c.host = &h;
	crowd_start(&c);
	for (int i = 0; i < 5; i++) {
		paper_write("next", "alice:" KEY "\n", 0600);
		assert_int_equal(rename(paper("next"), paper("crowded")), 0);
		(void)poll(NULL, 0, 10);
	}
	crowd_end(&c);
	host_close(&h);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rig_begin_with_reset, rig_end)
	const struct CMUnitTest tests[] = {
		T(sessions_with_a_key_share),
		T(sessions_with_certificates_share),
		T(a_key_that_is_written_anew_is_used),
		T(changes_within_a_tick_are_noticed),
		T(a_file_that_has_just_changed_is_read_again),
		T(a_file_in_the_place_of_another_is_used),
		T(a_session_keeps_its_key),
		T(a_file_of_no_use_is_noticed),
		T(other_attributes_are_not_shared),
		T(threads_share),
	};

	return cmocka_run_group_tests(tests, papers_make, papers_remove);
}
