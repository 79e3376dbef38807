/* SPDX-License-Identifier: BSD-2-Clause */
/* What the proofs of both ends say about the path. */
#include "says.h"

#include <ndx/spi/provider.h>
#include "proof.h"

#define NONE NDX_PROVED_NOTHING
#define SMALL NDX_PROVED_SMALL
#define WHOLE NDX_PROVED_WHOLE
#define REFUSED NDX_PROVED_REFUSED

static const struct ndx_agreement writes = {.kind = NDX_DESCRIPTION_VERBS_RC, .mtu = 1024};
static const struct ndx_agreement messages = {.kind = NDX_DESCRIPTION_RENDEZVOUS};

struct row {
	const char *what;
	struct frame_proof client;
	struct frame_proof server;
	enum ndx_status status;
	const char *text;
};

static const struct row rows[] = {
	{"all passes", {WHOLE, WHOLE, 0}, {WHOLE, WHOLE, 0}, NDX_OK, NULL},
	{"lost from client to server",
         {NONE, WHOLE, 0},
         {NONE, NONE, 0},
         NDX_E_HOST_UNREACHABLE,
         "RDMA packets do not pass from client to server: check the GIDs"},
	{"lost from server to client",
         {NONE, NONE, 0},
         {NONE, WHOLE, 0},
         NDX_E_HOST_UNREACHABLE,
         "RDMA packets do not pass from server to client: check the GIDs"},
	{"lost both ways",
         {NONE, NONE, 0},
         {NONE, NONE, 0},
         NDX_E_HOST_UNREACHABLE,
         "RDMA packets pass in neither direction: check the GIDs"},
	{"long packets lost from client to server",
         {SMALL, WHOLE, 0},
         {WHOLE, SMALL, 0},
         NDX_E_HOST_UNREACHABLE,
         "packets of the path MTU, 1024 bytes, do not pass from client to server: small ones do"},
	{"long packets lost from server to client",
         {WHOLE, SMALL, 0},
         {SMALL, WHOLE, 0},
         NDX_E_HOST_UNREACHABLE,
         "packets of the path MTU, 1024 bytes, do not pass from server to client: small ones do"},
	{"long packets lost both ways",
         {SMALL, SMALL, 0},
         {SMALL, SMALL, 0},
         NDX_E_HOST_UNREACHABLE,
         "packets of the path MTU, 1024 bytes, pass in neither direction: small ones do"},
	{"the PSN from client to server is wrong",
         {NONE, WHOLE, 0},
         {WHOLE, NONE, 0},
         NDX_E_HOST_UNREACHABLE,
         "do not pass from client to server: acknowledgements do; check the PSNs"},
	{"acknowledged, and not written",
         {WHOLE, WHOLE, 0},
         {WHOLE, NONE, 0},
         NDX_E_HOST_UNREACHABLE,
         "do not pass from client to server: acknowledgements do; check the PSNs"},
	{"the client's device refuses the key",
         {WHOLE, NONE, 0},
         {NONE, WHOLE, 1},
         NDX_E_ACCESS_VIOLATION,
         "do not pass from server to client: the device there refuses the key"},
	{"the server's device refuses the key, and its own writes are flushed",
         {NONE, NONE, 1},
         {NONE, NONE, 0},
         NDX_E_ACCESS_VIOLATION,
         "do not pass from client to server: the device there refuses the key"},
	{"both devices refuse the key",
         {NONE, NONE, 1},
         {NONE, NONE, 1},
         NDX_E_ACCESS_VIOLATION,
         "pass in neither direction: the device there refuses the key"},
	{"the client's device refuses the key, and the server gets no answer",
         {WHOLE, REFUSED, 0},
         {NONE, WHOLE, 0},
         NDX_E_ACCESS_VIOLATION,
         "do not pass from server to client: the device there refuses the key"},
	{"the server's device refuses the key, the client gets no answer, and all else is flushed",
         {NONE, NONE, 0},
         {NONE, REFUSED, 0},
         NDX_E_ACCESS_VIOLATION,
         "do not pass from client to server: the device there refuses the key"},
	{"both ends know that the client's device refuses the key",
         {NONE, REFUSED, 0},
         {NONE, NONE, 1},
         NDX_E_ACCESS_VIOLATION,
         "do not pass from server to client: the device there refuses the key"},
	{"both devices refuse the key, and the server gets no answer",
         {NONE, REFUSED, 1},
         {NONE, NONE, 0},
         NDX_E_ACCESS_VIOLATION,
         "pass in neither direction: the device there refuses the key"},
	{"an acknowledgement is late",
         {SMALL, WHOLE, 0},
         {WHOLE, WHOLE, 0},
         NDX_E_IO_TIMEOUT,
         "the path loses RDMA packets"},
};

static void each_fault_has_its_direction_and_cause(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];
		char client[PROOF_TEXT] = "";
		char server[PROOF_TEXT] = "";

		if (proof_judge(NDX_ROLE_CLIENT, &row->client, &row->server, &writes, client) !=
		            row->status ||
		    proof_judge(NDX_ROLE_SERVER, &row->server, &row->client, &writes, server) !=
		            row->status)
			fail_msg("%s: another status", row->what);
		assert_string_equal(client, server);
		if (row->text != NULL && strstr(client, row->text) == NULL)
			fail_msg("%s: \"%s\" does not say \"%s\"", row->what, client, row->text);
	}
}

/* A connection manager: request, answer, a long message each way. */
static void the_first_message_that_is_lost_tells(void **state)
{
	static const struct {
		uint8_t server;
		uint8_t client;
		const char *text;
	} orders[] = {
		{NONE, NONE, "RDMA packets do not pass from client to server: check the addresses"},
		{SMALL, NONE,
	         "RDMA packets do not pass from server to client: check the addresses"},
		{SMALL, SMALL, "packets of the path MTU do not pass from client to server: small"},
		{WHOLE, SMALL, "packets of the path MTU do not pass from server to client: small"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		const struct frame_proof client = {0, orders[i].client, false};
		const struct frame_proof server = {0, orders[i].server, false};
		char here[PROOF_TEXT];
		char there[PROOF_TEXT];

		assert_int_equal(proof_judge(NDX_ROLE_CLIENT, &client, &server, &messages, here),
		                 NDX_E_HOST_UNREACHABLE);
		assert_int_equal(proof_judge(NDX_ROLE_SERVER, &server, &client, &messages, there),
		                 NDX_E_HOST_UNREACHABLE);
		assert_string_equal(here, there);
		if (strstr(here, orders[i].text) == NULL)
			fail_msg("\"%s\" does not say \"%s\"", here, orders[i].text);
		assert_true((strstr(here, "the way back was not tried") != NULL) == (i % 2 == 0));
		assert_true(strlen(here) < FRAME_ERROR_TEXT - 1);
	}
}

/* The text goes to the peer in an ERROR frame, and must not be cut there. */
static void every_verdict_fits_and_is_one_of_both_ends(void **state)
{
	unsigned ok = 0;

	(void)state;
	for (unsigned i = 0; i < 24 * 24; i++) {
		const struct frame_proof a = {(uint8_t)(i % 3), (uint8_t)(i / 3 % 4), i / 12 % 2};
		const struct frame_proof b = {(uint8_t)(i / 24 % 3), (uint8_t)(i / 72 % 4),
		                              i / 288 % 2};
		char client[PROOF_TEXT] = "";
		char server[PROOF_TEXT] = "";
		const enum ndx_status st = proof_judge(NDX_ROLE_CLIENT, &a, &b, &writes, client);

		assert_int_equal(proof_judge(NDX_ROLE_SERVER, &b, &a, &writes, server), st);
		assert_string_equal(client, server);
		assert_true(strlen(client) < FRAME_ERROR_TEXT - 1);
		if (st == NDX_OK) {
			ok++;
			assert_int_equal(a.written + a.seen + b.written + b.seen, 4 * WHOLE);
		} else {
			assert_true(client[0] != '\0');
		}
	}
	assert_int_equal(ok, 4); /* whatever `denied` says */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_fault_has_its_direction_and_cause),
		cmocka_unit_test(the_first_message_that_is_lost_tells),
		cmocka_unit_test(every_verdict_fits_and_is_one_of_both_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
