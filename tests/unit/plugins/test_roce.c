/* SPDX-License-Identifier: BSD-2-Clause */
#include "ends.h"

#include <arpa/inet.h>

#include "payload.h"

static const struct ndx_plugin_variant *verbs;
static const struct ndx_plugin_variant *fabric;

static struct ndx_peer_description verbs_end(uint8_t number)
{
	struct ndx_peer_description d = {
		.kind = NDX_DESCRIPTION_VERBS_RC,
		.inbound_read_limit = 16,
		.outbound_read_limit = number,
		.mailbox_rkey = 0x0a0b0c0d,
		.memory = {0x1000, 0x2000, ndx_token_of_rkey(0x12345678), 0x12345678},
		.qpn = 0x10u + number,
		.psn = 0xfffff0u + number,
		.mtu = 1024};

	d.gid[15] = number;
	return d;
}

static struct ndx_peer_description device_end(uint8_t number)
{
	struct ndx_peer_description d = verbs_end(number);

	d.policy = NDX_PEER_DEVICE | NDX_PEER_IS_HEARD;
	return d;
}

static struct ndx_peer_description rendezvous_end(uint8_t number, const char *address)
{
	struct ndx_peer_description d = {.kind = NDX_DESCRIPTION_RENDEZVOUS, .stack = "ofi:tcp"};
	struct sockaddr_in *in = (struct sockaddr_in *)&d.address;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&d.address;

	d.cookie[0] = number;
	if (address != NULL && inet_pton(AF_INET, address, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(7471);
	} else if (address != NULL) {
		assert_int_equal(inet_pton(AF_INET6, address, &in6->sin6_addr), 1);
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(7471);
	}
	return d;
}

static size_t write_payload(uint8_t bytes[ROCE_PAYLOAD_MAX], const struct ndx_peer_description *d)
{
	const struct roce_payload p = {.message = ROCE_DESCRIPTION, .description = *d};
	const char *why = "";

	return roce_payload_write(bytes, &p, &why);
}

static void what_is_written_is_read(void **state)
{
	const struct ndx_peer_description ends[] = {
		verbs_end(1),
		device_end(2),
		rendezvous_end(1, NULL),
		rendezvous_end(2, "127.0.0.1"),
		rendezvous_end(3, "fe80::1"),
	};
	const size_t lengths[] = {72, 72, 96, 96, 96};
	const struct roce_payload agreement = {
		.message = ROCE_AGREEMENT,
		.agreed = {.kind = NDX_DESCRIPTION_VERBS_RC, 4096, 1, UINT32_MAX}};
	uint8_t bytes[ROCE_PAYLOAD_MAX];
	struct roce_payload p;
	const char *why;

	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		assert_int_equal(write_payload(bytes, &ends[i]), lengths[i]);
		assert_true(roce_payload_parse(bytes, lengths[i], &p, &why));
		assert_int_equal(p.message, ROCE_DESCRIPTION);
		assert_memory_equal(&p.description, &ends[i], sizeof(p.description));
	}
	assert_int_equal(roce_payload_write(bytes, &agreement, &why), 24);
	assert_true(roce_payload_parse(bytes, 24, &p, &why));
	assert_int_equal(p.message, ROCE_AGREEMENT);
	assert_memory_equal(&p.agreed, &agreement.agreed, sizeof(p.agreed));
}

static void the_bytes_are_those_of_the_header_file(void **state)
{
	static const uint8_t expected[72] = {
		'R',  'C',  'Q',  'P',  2,  1,    2,    0, /* header */
		0,    0,    0,    16,   0,  0,    0,    7, /* reads */
		0,    0,    0,    0,    0,  0,    0x10, 0,    0,
		0,    0,    0,    0,    0,  0x20, 0,        /* memory */
		0x12, 0x34, 0x56, 0x78, 10, 11,   12,   13, /* rkeys: of the memory, of the mailbox
	                                                     */
		0,    0,    0,    0x17, 0,  0xff, 0xff, 0xf7, 0,
		0,    4,    0,    0,    0,  0,    0, /* numbers */
		0,    0,    0,    0,    0,  0,    0,    0,    0,
		0,    0,    0,    0,    0,  0,    7, /* GID */
	};
	struct ndx_peer_description d = verbs_end(7);
	uint8_t bytes[ROCE_PAYLOAD_MAX];

	(void)state;
	/* A token is what a device hands out, in the order of the wire. */
	memcpy(&d.memory.token, (const uint8_t[]){0x12, 0x34, 0x56, 0x78}, 4);
	assert_int_equal(ndx_rkey_of_token(d.memory.token), 0x12345678);
	assert_int_equal(write_payload(bytes, &d), sizeof(expected));
	assert_memory_equal(bytes, expected, sizeof(expected));
}

struct odd {
	size_t at;
	uint8_t value;
	const char *why;
};

static void refused(const struct ndx_peer_description *d, const struct odd *odd)
{
	struct roce_payload p = {.message = (enum roce_message)99};
	uint8_t bytes[ROCE_PAYLOAD_MAX];
	const size_t length = write_payload(bytes, d);
	const char *why = NULL;

	assert_true(length > odd->at);
	bytes[odd->at] = odd->value;
	if (roce_payload_parse(bytes, length, &p, &why))
		fail_msg("byte %zu may be %u", odd->at, odd->value);
	assert_int_equal(p.message, 99);
	if (strstr(why, odd->why) == NULL)
		fail_msg("byte %zu: \"%s\" does not say \"%s\"", odd->at, why, odd->why);
}

static void odd_bytes_are_refused(void **state)
{
	static const struct odd of_verbs[] = {
		{0, 'X', "another format"},
		{4, 1, "another version"},
		{5, 3, "neither"},
		{6, 0, "its kind is unknown"},
		{6, 3, "its kind is unknown"},
		{7, 16, "policy has unknown bits"},
		{7, 8, "not that it is not asked"},
		{16, 0xff, "address space"},
		{40, 1, "more than 24 bits"},
		{43, 0, "is 0 or"},
		{44, 1, "PSN"},
		{50, 3, "MTU is none"},
		{50, 0, "MTU is none"},
		{48, 1, "MTU is none"},
		{55, 1, "reserved"},
		{71, 0, "neither LID nor GID"},
		{5, 2, "length of an agreement"},
		{6, 1, "length of a description"},
	};
	static const struct odd of_rendezvous[] = {
		{7, 1, "reserved"},
		{39, 1, "reserved"},
		{40, 0, "stack"},
		{41, ' ', "stack"},
		{42, 0, "stack"},
		{55, 'x', "stack"},
		{56, 0, "no cookie"},
		{73, 1, "reserved"},
		{95, 1, "reserved"},
		{72, 0, "no address family"},
		{72, 5, "neither IPv4 nor IPv6"},
		{91, 1, "neither"},
	};
	struct ndx_peer_description d = verbs_end(1);

	(void)state;
	d.memory.length = UINT64_MAX - 0x1000;
	for (size_t i = 0; i < sizeof(of_verbs) / sizeof(of_verbs[0]); i++)
		refused(&d, &of_verbs[i]);
	d = rendezvous_end(1, "10.0.0.1");
	for (size_t i = 0; i < sizeof(of_rendezvous) / sizeof(of_rendezvous[0]); i++)
		refused(&d, &of_rendezvous[i]);
	d.memory = (struct ndx_memory_description){.address = 1, .length = 1};
	refused(&d, &(struct odd){31, 0, "memory of no length"});
}

static void no_other_length_passes(void **state)
{
	const struct ndx_peer_description ends[] = {verbs_end(1), rendezvous_end(1, "::1")};
	struct roce_payload p;
	const char *why;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		uint8_t bytes[ROCE_PAYLOAD_MAX];
		const size_t length = write_payload(bytes, &ends[i]);

		for (size_t n = 0; n < ROCE_PAYLOAD_MAX + 8; n++) {
			uint8_t *exact = calloc(1, n > 0 ? n : 1);

			assert_non_null(exact);
			memcpy(exact, bytes, n < length ? n : length);
			assert_int_equal(roce_payload_parse(exact, n, &p, &why), n == length);
			free(exact);
		}
	}
}

static void what_no_peer_takes_is_not_sent(void **state)
{
	struct ndx_peer_description d = verbs_end(1);
	uint8_t bytes[ROCE_PAYLOAD_MAX];

	(void)state;
	d.mtu = 1500;
	assert_int_equal(write_payload(bytes, &d), 0);
	d = rendezvous_end(1, NULL);
	d.address.ss_family = AF_UNIX;
	assert_int_equal(write_payload(bytes, &d), 0);
	memset(d.stack, 'x', sizeof(d.stack));
	d.address.ss_family = AF_UNSPEC;
	assert_int_equal(write_payload(bytes, &d), 0);
}

/* ---- two sides by hand ---- */

/* mtu, proof */
static const struct ndx_plugin_value mtu_of_port[] = {{.number = 0, .text = "port"},
                                                      {.number = 1, .text = "true"}};
static const struct ndx_plugin_value mtu_512[] = {{.number = 2, .text = "512"},
                                                  {.number = 1, .text = "true"}};

static void both_hold_the_common_subset(void **state)
{
	struct side a;
	struct side b;

	(void)state;
	side_begin(&a, verbs, NDX_ROLE_CLIENT, mtu_of_port);
	side_begin(&b, verbs, NDX_ROLE_SERVER, mtu_512);
	a.own = verbs_end(3);
	b.own = verbs_end(5);
	a.own.mtu = 4096;
	b.own.inbound_read_limit = 2;
	assert_true(sides_talk(&a, &b, NDX_STAGE_INFO));
	/* What the framework makes of it is the smaller one of these. */
	assert_int_equal(a.peer.mtu, 512);
	assert_int_equal(b.peer.mtu, 512);
	assert_int_equal(a.peer.qpn, b.own.qpn);
	assert_int_equal(b.peer.psn, a.own.psn);
	assert_memory_equal(a.peer.gid, b.own.gid, 16);
	assert_int_equal(a.peer.memory.rkey, 0x12345678);
	assert_int_equal(a.peer.memory.token, b.own.memory.token);
	a.agreed = (struct ndx_agreement){NDX_DESCRIPTION_VERBS_RC, 512, 2, 5};
	b.agreed = a.agreed;
	assert_true(sides_talk(&a, &b, NDX_STAGE_READY));
	b.agreed.client_reads = 3;
	assert_false(sides_talk(&a, &b, NDX_STAGE_READY));
	assert_int_equal(b.reply.error, NDX_PLUGIN_VENDOR);
	side_end(&a);
	side_end(&b);
}

/* Both sides fail, and say why. */
static void incompatible(struct side *a, struct side *b, const char *text)
{
	assert_false(sides_talk(a, b, NDX_STAGE_INFO));
	assert_int_equal(a->status, NDX_E_INVALID_CONFIG);
	assert_int_equal(a->reply.error, NDX_PLUGIN_CONFIGURATION);
	if (strstr(a->reply.text, text) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", a->reply.text, text);
	side_end(a);
	side_end(b);
}

static void incompatible_ends_are_told_what_differs(void **state)
{
	struct side a;
	struct side b;

	(void)state;
	side_begin(&a, fabric, NDX_ROLE_CLIENT, NULL);
	side_begin(&b, fabric, NDX_ROLE_SERVER, NULL);
	a.own = rendezvous_end(1, NULL);
	b.own = rendezvous_end(2, "127.0.0.1");
	(void)snprintf(b.own.stack, sizeof(b.own.stack), "loop");
	incompatible(&a, &b, "the stacks differ: ofi:tcp here, loop there");
	side_begin(&a, verbs, NDX_ROLE_CLIENT, mtu_of_port);
	side_begin(&b, verbs, NDX_ROLE_SERVER, mtu_of_port);
	a.own = verbs_end(1);
	b.own = verbs_end(2);
	b.own.lid = 4;
	incompatible(&a, &b, "the links differ: Ethernet here, InfiniBand there");
	side_begin(&a, verbs, NDX_ROLE_CLIENT, mtu_of_port);
	side_begin(&b, verbs, NDX_ROLE_SERVER, mtu_of_port);
	a.own = rendezvous_end(1, NULL);
	incompatible(&a, &b, "take variant fabric-msg");
	side_begin(&a, fabric, NDX_ROLE_CLIENT, NULL);
	side_begin(&b, verbs, NDX_ROLE_SERVER, mtu_of_port);
	a.own = rendezvous_end(1, NULL);
	b.own = verbs_end(2);
	incompatible(&a, &b, "here is a rendezvous, there is a verbs queue pair");
	side_begin(&a, fabric, NDX_ROLE_CLIENT, NULL);
	side_begin(&b, fabric, NDX_ROLE_SERVER, NULL);
	incompatible(&a, &b, "no queue pair to describe");
}

static void messages_out_of_turn_are_refused(void **state)
{
	struct side a;
	struct side b;

	(void)state;
	side_begin(&a, verbs, NDX_ROLE_CLIENT, mtu_of_port);
	side_begin(&b, verbs, NDX_ROLE_SERVER, mtu_of_port);
	a.own = verbs_end(1);
	b.own = verbs_end(2);
	side_call(&a, verbs->ops->info, NULL);
	side_call(&b, verbs->ops->info, NULL);
	b.x.round = 2; /* wants an agreement */
	side_call(&b, verbs->ops->info, &a);
	assert_int_equal(b.status, NDX_E_REMOTE_ERROR);
	assert_int_equal(b.reply.error, NDX_PLUGIN_PEER_DATA);
	assert_non_null(strstr(b.reply.text, "agreement cannot be taken: it comes out of turn"));
	a.reply.length = 5;
	b.x.round = 1;
	side_call(&b, verbs->ops->info, &a);
	assert_non_null(strstr(b.reply.text, "description cannot be taken: it is too short"));
	side_end(&a);
	side_end(&b);
}

/* ---- sessions over what there is here ---- */

static struct ndx_variant *variant(struct ndx_negotiation *n, const char *name)
{
	struct ndx_variant *v;

	assert_int_equal(ndx_negotiation_get_variant(n, "roce", name, NULL, 0, &v), NDX_OK);
	return v;
}

static void sessions_connect(const char *client_uri, const char *server_uri, const char *differs)
{
	struct rendezvous m = {.memory = {0x5000, 0x100, 77}, .reads = {3, 4, 5, 2}};
	struct ndx_negotiation *n;
	struct ndx_variant *v;

	assert_int_equal(ndx_negotiation_create(&n), NDX_OK);
	assert_int_equal(ndx_negotiation_load(n, TEST_PLUGINS "/ndx-plugin-roce.so"), NDX_OK);
	v = variant(n, "fabric-msg");
	if (!end_open(&m.client, client_uri) || !end_open(&m.server, server_uri))
		skip();
	rendezvous_run(&m, v, v);
	if (differs != NULL) {
		assert_true(m.status != NDX_OK);
		assert_int_equal(m.error.stage, NDX_STAGE_INFO);
		assert_int_equal(m.error.layer, NDX_LAYER_PLUGIN);
		assert_int_equal(m.error.plugin_error, NDX_PLUGIN_CONFIGURATION);
		assert_non_null(strstr(m.error.text, differs));
	} else {
		if (m.status != NDX_OK)
			fail_msg("%s", m.error.text);
		assert_memory_equal(&m.agreed[0], &m.agreed[1], sizeof(m.agreed[0]));
		assert_int_equal(m.agreed[0].client_reads, 4);
		assert_int_equal(m.agreed[0].server_reads, 2);
		assert_int_equal(m.peer[0].memory.token, 77);
		assert_int_equal(m.peer[1].memory.length, 0);
	}
	end_close(&m.client);
	end_close(&m.server);
	ndx_variant_close(v);
	assert_int_equal(ndx_negotiation_close(n), NDX_OK);
}

static void a_session_connects_over_loop(void **state)
{
	(void)state;
	sessions_connect("loop", "loop", NULL);
}

static void a_session_connects_over_ofi_tcp(void **state)
{
	(void)state;
	sessions_connect("ofi:tcp?iface=lo", "ofi:tcp?iface=lo", NULL);
}

static void a_session_tells_what_differs(void **state)
{
	(void)state;
	sessions_connect("loop", "ofi:tcp?iface=lo", "the stacks differ: ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(the_bytes_are_those_of_the_header_file),
		cmocka_unit_test(odd_bytes_are_refused),
		cmocka_unit_test(no_other_length_passes),
		cmocka_unit_test(what_no_peer_takes_is_not_sent),
		cmocka_unit_test(both_hold_the_common_subset),
		cmocka_unit_test(incompatible_ends_are_told_what_differs),
		cmocka_unit_test(messages_out_of_turn_are_refused),
		cmocka_unit_test(a_session_connects_over_loop),
		cmocka_unit_test(a_session_connects_over_ofi_tcp),
		cmocka_unit_test(a_session_tells_what_differs),
	};

	verbs = &ndx_plugin.list[0];
	fabric = &ndx_plugin.list[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
