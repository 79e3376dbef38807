/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers that do without something, as their description says (enum ndx_peer_policy). */
#include "end.h"

#undef fail /* cmocka's; <ndx/spi/log.h> has another */
#include <string.h>
#include <unistd.h>

#include "fake_direct.h"

static void a_peer_that_knows_no_goodbyes_needs_no_stream(void **state)
{
	struct ndx_peer_description device;
	struct end e;

	(void)state;
	end_open(&e, END_PATIENCE_MS);
	device = e.peer;
	device.policy = NDX_PEER_DEVICE;
	device.mtu = 1500; /* a refused one leaves nothing */
	assert_int_equal(ndx_connector_connect_peer(e.connector, &device, &e.ov),
	                 NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_connector_connect_peer(e.connector, &e.peer, &e.ov),
	                 NDX_E_INVALID_DEVICE_STATE);
	device.mtu = e.peer.mtu;
	assert_int_equal(ndx_connector_connect_peer(e.connector, &device, &e.ov), NDX_PENDING);
	end_completes(&e.ov, NDX_OK);
	assert_int_equal(fake_direct_peer.policy, NDX_PEER_DEVICE);
	end_disconnects(&e, NDX_OK);
	(void)close(e.fd);
	end_close(&e);
}

static void a_policy_that_makes_no_sense_is_refused(void **state)
{
	static const uint32_t bad[] = {1u << 4, NDX_PEER_DEVICE | 1u << 31, NDX_PEER_IS_HEARD};
	struct ndx_peer_description peer;
	struct end e;

	(void)state;
	end_open(&e, END_PATIENCE_MS);
	assert_int_equal(ndx_connector_set_oob_stream(e.connector, e.fd), NDX_OK);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		peer = e.peer;
		peer.policy = bad[i];
		assert_int_equal(ndx_connector_connect_peer(e.connector, &peer, &e.ov),
		                 NDX_E_INVALID_PARAMETER);
		assert_non_null(strstr(ndx_last_error(), "policy"));
	}
	peer = e.peer;
	peer.policy = NDX_PEER_NO_GOODBYES;
	assert_int_equal(ndx_connector_connect_peer(e.connector, &peer, &e.ov),
	                 NDX_E_INVALID_PARAMETER);
	assert_non_null(strstr(ndx_last_error(), "goodbyes"));
	end_close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_peer_that_knows_no_goodbyes_needs_no_stream),
		cmocka_unit_test(a_policy_that_makes_no_sense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
