/* SPDX-License-Identifier: BSD-2-Clause */
#include "ends.h"

#include <arpa/inet.h>

#include "format.h"

static struct ndx_peer_description rendezvous_end(int family)
{
	struct ndx_peer_description d = {.kind = NDX_DESCRIPTION_RENDEZVOUS,
	                                 .inbound_read_limit = 4,
	                                 .outbound_read_limit = 5,
	                                 .memory = {0x1000, 0x2000, 7},
	                                 .stack = "loop",
	                                 .cookie = {1, 2, 3}};
	struct sockaddr_in *in = (struct sockaddr_in *)&d.address;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&d.address;

	if (family == AF_INET) {
		in->sin_family = AF_INET;
		in->sin_port = htons(4791);
		in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	} else if (family == AF_INET6) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(4791);
		in6->sin6_addr = in6addr_loopback;
	}
	return d;
}

static struct ndx_peer_description verbs_end(void)
{
	return (struct ndx_peer_description){.kind = NDX_DESCRIPTION_VERBS_RC,
	                                     .inbound_read_limit = 1,
	                                     .outbound_read_limit = 2,
	                                     .qpn = 0x11,
	                                     .psn = 0x22,
	                                     .mtu = 1024,
	                                     .lid = 3,
	                                     .gid = {0xfe, 0x80}};
}

static void what_is_written_is_read(void **state)
{
	const struct example_message all[] = {
		{.step = EXAMPLE_HELLO, .ring = {1, 2}, .label = "rack 3, slot 4"},
		{.step = EXAMPLE_HELLO, .ring = {UINT32_MAX, 1}},
		{.step = EXAMPLE_OFFER, .description = {.inbound_read_limit = 9}},
		{.step = EXAMPLE_OFFER, .description = rendezvous_end(AF_UNSPEC)},
		{.step = EXAMPLE_OFFER, .description = rendezvous_end(AF_INET)},
		{.step = EXAMPLE_OFFER, .description = rendezvous_end(AF_INET6)},
		{.step = EXAMPLE_OFFER, .description = verbs_end()},
		{.step = EXAMPLE_CONFIRM, .ring = {64, 4096}},
	};
	uint8_t bytes[EXAMPLE_MESSAGE_MAX];
	struct example_message m;
	const char *why;

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		const size_t length = example_write(bytes, &all[i]);

		assert_true(example_parse(bytes, length, &m, &why));
		assert_memory_equal(&m, &all[i], sizeof(m));
		/* Nothing shorter passes, and nothing is read beyond its end. */
		for (size_t n = 0; n < length; n++) {
			uint8_t *exact = malloc(n > 0 ? n : 1);

			assert_non_null(exact);
			memcpy(exact, bytes, n);
			assert_false(example_parse(exact, n, &m, &why));
			free(exact);
		}
		assert_false(example_parse(bytes, length + 1, &m, &why));
	}
}

struct odd {
	const char *bytes;
	size_t length;
	const char *why;
};

#define ODD(bytes, why)                       \
	{                                     \
		bytes, sizeof(bytes) - 1, why \
	}
#define LIMITS "\1\10\0\0\0\1\0\0\0\1"
#define COOKIE "0123456789abcdef"

static void odd_messages_are_refused(void **state)
{
	static const struct odd odd[] = {
		ODD("EXMQ\1\1\0\0", "no message of this format"),
		ODD("EXMP\2\1\0\0", "another version"),
		ODD("EXMP\1\4\0\0", "no known step"),
		ODD("EXMP\1\1\0\1", "cut off, or goes on"),
		ODD("EXMP\1\1\0\10\0\0\0\1\0\0\0\1", "hello of the wrong length"),
		ODD("EXMP\1\1\0\11\0\0\0\1\0\0\0\1\1", "hello of the wrong length"),
		ODD("EXMP\1\1\0\12\0\0\0\1\0\0\0\1\1\7", "not printable"),
		ODD("EXMP\1\1\0\52\0\0\0\1\0\0\0\1\41xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
	            "too long"),
		ODD("EXMP\1\1\0\11\0\0\0\0\0\0\0\1\0", "ring of nothing"),
		ODD("EXMP\1\3\0\10\0\0\0\1\0\0\0\0", "ring of nothing"),
		ODD("EXMP\1\3\0\4\0\0\0\1", "confirm of the wrong length"),
		ODD("EXMP\1\2\0\0", "without limits"),
		ODD("EXMP\1\2\0\1\1", "cut off"),
		ODD("EXMP\1\2\0\3\1\10\0", "cut off"),
		ODD("EXMP\1\2\0\14" LIMITS "\310\1", "cut off"),
		ODD("EXMP\1\2\0\2\1\0", "makes no sense"),
		ODD("EXMP\1\2\0\24" LIMITS LIMITS, "twice"),
		ODD("EXMP\1\2\0\2\0\0", "unknown"),
		ODD("EXMP\1\2\0\2\6\0", "unknown"),
		ODD("EXMP\1\2\0\2\2\0", "makes no sense"),
		ODD("EXMP\1\2\0\26\2\24\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\1", "makes no sense"),
		ODD("EXMP\1\2\0\22\3\20" COOKIE, "makes no sense"),
		ODD("EXMP\1\2\0\23\3\21" COOKIE "\1", "makes no sense"),
		ODD("EXMP\1\2\0\23\3\21\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0x", "makes no sense"),
		ODD("EXMP\1\2\0\7\4\5\0\1\1\2\3", "makes no sense"),
		ODD("EXMP\1\2\0\10\4\6\0\0\1\2\3\4", "makes no sense"),
		ODD("EXMP\1\2\0\22" LIMITS "\4\6\0\1\1\2\3\4", "address without a rendezvous"),
		ODD("EXMP\1\2\0\3\5\1x", "makes no sense"),
		ODD("EXMP\1\2\0\75" LIMITS "\3\21" COOKIE "x\5\36" COOKIE "0123456789abcd",
	            "both a rendezvous and a queue pair"),
	};
	struct example_message m = {.step = (enum example_step)9};
	const char *why;

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		uint8_t *exact = malloc(odd[i].length);

		assert_non_null(exact);
		memcpy(exact, odd[i].bytes, odd[i].length);
		assert_false(example_parse(exact, odd[i].length, &m, &why));
		if (strstr(why, odd[i].why) == NULL)
			fail_msg("%zu: \"%s\" does not say \"%s\"", i, why, odd[i].why);
		free(exact);
	}
	assert_int_equal(m.step, 9);
}

static void fields_of_later_versions_are_skipped(void **state)
{
	static const char bytes[] = "EXMP\1\2\0\17\200\1?\377\0" LIMITS;
	struct example_message m;
	const char *why;

	(void)state;
	assert_true(example_parse((const uint8_t *)bytes, sizeof(bytes) - 1, &m, &why));
	assert_int_equal(m.description.outbound_read_limit, 1);
}

/* ---- in a framework ---- */

struct rig {
	struct ndx_negotiation *negotiation;
	struct ndx_variant *client;
	struct ndx_variant *server;
};

static struct ndx_variant *variant(struct rig *r, const char *slots, const char *size,
                                   const char *label)
{
	const struct ndx_setting settings[] = {
		{"slots", slots}, {"slot-size", size}, {"label", label}};
	struct ndx_variant *v;

	assert_int_equal(ndx_negotiation_get_variant(r->negotiation, "example", "three-round",
	                                             settings, 3, &v),
	                 NDX_OK);
	return v;
}

static int set_up(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	assert_int_equal(ndx_negotiation_create(&r->negotiation), NDX_OK);
	assert_int_equal(
		ndx_negotiation_load(r->negotiation, TEST_PLUGINS "/ndx-plugin-example.so"),
		NDX_OK);
	r->client = variant(r, "100", "512", "left");
	r->server = variant(r, "8", "9000", "right");
	*state = r;
	return 0;
}

static int end(void **state)
{
	struct rig *r = *state;

	ndx_log_set_sink(NULL, NULL, NDX_LOG_ERROR);
	ndx_variant_close(r->client);
	ndx_variant_close(r->server);
	assert_int_equal(ndx_negotiation_close(r->negotiation), NDX_OK);
	free(r);
	return 0;
}

struct heard {
	uint32_t rings; /* atomic */
};

static void on_record(void *arg, const struct ndx_log_record *record)
{
	struct heard *heard = arg;

	if (strstr(record->text, "8 slots of 512 bytes with \"left\"") != NULL ||
	    strstr(record->text, "8 slots of 512 bytes with \"right\"") != NULL)
		(void)__atomic_add_fetch(&heard->rings, 1, __ATOMIC_SEQ_CST);
}

static void both_sides_come_to_the_same_ring(void **state)
{
	struct rig *r = *state;
	struct heard heard = {0};
	struct rendezvous m = {.reads = {1, 1, 1, 1}};

	ndx_log_set_sink(on_record, &heard, NDX_LOG_INFO);
	rendezvous_run(&m, r->client, r->server);
	if (m.status != NDX_OK)
		fail_msg("%s", m.error.text);
	assert_int_equal(heard.rings, 2);
}

static void it_connects_queue_pairs(void **state)
{
	struct rig *r = *state;
	struct rendezvous m = {.reads = {3, 4, 5, 2}, .memory = {1, 2, 3}};

	if (!end_open(&m.client, "loop") || !end_open(&m.server, "loop"))
		skip();
	rendezvous_run(&m, r->client, r->server);
	if (m.status != NDX_OK)
		fail_msg("%s", m.error.text);
	assert_memory_equal(&m.agreed[0], &m.agreed[1], sizeof(m.agreed[0]));
	assert_int_equal(m.peer[0].memory.token, 3);
	end_close(&m.client);
	end_close(&m.server);
}

static void parameters_must_go_together(void **state)
{
	const struct ndx_setting settings[] = {{"slots", "65536"}, {"slot-size", "1048576"}};
	struct rig *r = *state;
	struct ndx_variant *v;

	assert_int_equal(ndx_negotiation_get_variant(r->negotiation, "example", "three-round",
	                                             settings, 2, &v),
	                 NDX_E_INVALID_CONFIG);
	says("slots x slot-size is above 4 GiB");
}

/* ---- by hand ---- */

static void rounds_go_wrong_with_a_reason(void **state)
{
	const struct ndx_plugin_variant *v = &ndx_plugin.list[0];
	const struct ndx_plugin_value values[] = {
		{.number = 4, .text = "4"}, {.number = 64, .text = "64"}, {.text = ""}};
	struct example_message other = {.step = EXAMPLE_CONFIRM, .ring = {4, 65}};
	struct side a;
	struct side b;

	(void)state;
	side_begin(&a, v, NDX_ROLE_CLIENT, values);
	side_begin(&b, v, NDX_ROLE_SERVER, values);
	side_call(&a, v->ops->info, NULL);
	side_call(&b, v->ops->info, NULL);
	b.x.round = 2; /* an offer is due, a hello comes */
	side_call(&b, v->ops->info, &a);
	assert_int_equal(b.reply.error, NDX_PLUGIN_PEER_DATA);
	assert_string_equal(b.reply.text, "from the peer came a message of another step");
	b.x.round = 1;
	side_call(&b, v->ops->info, &a);
	assert_int_equal(b.status, NDX_OK);
	a.reply.length = example_write(a.said, &other);
	b.x.round = 3;
	side_call(&b, v->ops->info, &a);
	assert_int_equal(b.status, NDX_E_REMOTE_ERROR);
	assert_non_null(strstr(b.reply.text, "another ring"));
	assert_int_equal(v->ops->reset(b.session, NDX_STAGE_INFO), NDX_OK);
	side_end(&a);
	side_end(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(odd_messages_are_refused),
		cmocka_unit_test(fields_of_later_versions_are_skipped),
		cmocka_unit_test_setup_teardown(both_sides_come_to_the_same_ring, set_up, end),
		cmocka_unit_test_setup_teardown(it_connects_queue_pairs, set_up, end),
		cmocka_unit_test_setup_teardown(parameters_must_go_together, set_up, end),
		cmocka_unit_test(rounds_go_wrong_with_a_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
