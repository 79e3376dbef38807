/* SPDX-License-Identifier: BSD-2-Clause */
/* A client whose queue pairs, added later, are bound to the channel of TLS in a wrong way: the
 * batch is given up, with a text that says so, and the session lives on. */
#include "many_raw.h"

#include <unistd.h>

enum { BASE = 2, FEW = 2 };

static char file[] = "/tmp/ndx-many-XXXXXX";
static struct ndx_tls_attr tls;

static int write_key(void **state)
{
	static const char key[] = "many:00112233445566778899aabbccddeeff\n";
	const int fd = mkstemp(file);

	(void)state;
	assert_int_equal(write(fd, key, sizeof(key) - 1), sizeof(key) - 1);
	(void)close(fd);
	ndx_tls_attr_init(&tls);
	tls.psk_file = file;
	return 0;
}

static int remove_key(void **state)
{
	(void)state;
	return unlink(file);
}

/* A session of NDX with connections, over TLS, and beside that the raw one. */
static void meet(struct rig *r, struct raw *p, bool secured)
{
	tls_server = tls_client = secured ? &tls : NULL;
	rig_run(r, BASE);
	bare = true;
	raw_connect(p, r, secured);
	assert_int_equal(raw_begin(p, BASE, FRAME_ADDS), FRAME_ADDS);
}

static void leave_both(struct rig *r, struct raw *p)
{
	const struct frame bye = {.type = FRAME_SESSION_END};
	struct ndx_negotiation_server_stats stats = {.size = sizeof(stats)};

	raw_say(p, &bye);
	raw_end(p, false);
	is_told(&r->closed, 1);
	assert_int_equal(ndx_negotiation_server_get_stats(r->server, &stats), NDX_OK);
	assert_int_equal(stats.failed, 0);
	all_last(r->a, BASE);
	all_last(r->b, BASE);
	rig_down(r);
	bare = false;
	tls_server = tls_client = NULL;
}

/* A batch with these MACs is not added, and the next one is. */
static void is_not_added(struct rig *r, struct raw *p, uint32_t *batch, enum raw_mac mac,
                         const char *text)
{
	const int added = r->added;
	const int before = r->not_added;
	const uint32_t first = BASE + FEW * *batch;

	p->mac = mac;
	p->batch = ++*batch;
	raw_add(p, *batch, first, FEW);
	raw_lanes(p, first, FEW, RAW_VALIDATE_ALL);
	raw_is_abandoned(p, *batch, text);
	is_told(&r->not_added, before + 1);
	p->mac = RAW_MAC_RIGHT;
	raw_adds(p, ++*batch, first + FEW, FEW);
	is_told(&r->added, added + 1);
}

static void a_mac_is_of_its_batch_and_queue_pair(void **state)
{
	static const char wrong[] = "is not bound to this channel of TLS: its VALIDATE has a wrong";
	uint32_t batch = 0;
	struct raw p;
	struct rig r;

	(void)state;
	meet(&r, &p, true);
	is_not_added(&r, &p, &batch, RAW_MAC_OF_BATCH_BEFORE, wrong); /* as of the start: 0 */
	is_not_added(&r, &p, &batch, RAW_MAC_OF_BATCH_BEFORE, wrong);
	is_not_added(&r, &p, &batch, RAW_MAC_OF_THE_FIRST, wrong);
	is_not_added(&r, &p, &batch, RAW_MAC_REPLAYED, wrong);
	is_not_added(&r, &p, &batch, RAW_MAC_NONE, "its VALIDATE has no MAC");
	leave_both(&r, &p);
}

static void in_plaintext_there_is_no_mac(void **state)
{
	uint32_t batch = 0;
	struct raw p;
	struct rig r;

	(void)state;
	meet(&r, &p, false);
	is_not_added(&r, &p, &batch, RAW_MAC_FLAG_ALONE, "this channel is in plaintext");
	leave_both(&r, &p);
}

/* A test that has failed leaves its choices behind. */
static int forget_the_last(void **state)
{
	(void)state;
	bare = false;
	tls_server = tls_client = NULL;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_mac_is_of_its_batch_and_queue_pair, forget_the_last),
		cmocka_unit_test_setup(in_plaintext_there_is_no_mac, forget_the_last),
	};

	return cmocka_run_group_tests(tests, write_key, remove_key);
}
