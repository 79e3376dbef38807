/* SPDX-License-Identifier: BSD-2-Clause */
/* Plugin surf in its file: what it refuses, and sessions with an FPGA that moves no data. */
#include "ends.h"

#include "fake_direct.h"
#include "serve.h"

#define NEEDED                        \
	{                             \
		"fpga-ip", "10.9.0.2" \
	}

static const uint8_t fpga_gid[16] = {[10] = 0xff, [11] = 0xff, 10, 9, 0, 2};

static struct ndx_negotiation *framework(void)
{
	struct ndx_negotiation *n;

	assert_int_equal(ndx_negotiation_create(&n), NDX_OK);
	assert_int_equal(ndx_negotiation_load(n, TEST_PLUGINS "/ndx-plugin-surf.so"), NDX_OK);
	return n;
}

/* ---- parameters ---- */

static void parameters_are_checked(void **state)
{
	static const struct {
		struct ndx_setting settings[2];
		size_t count;
		const char *says;
	} cases[] = {
		{{{NULL, NULL}}, 0, "fpga-ip"},
		{{{"fpga-ip", "10.9.0.256"}}, 1, "fpga-ip \"10.9.0.256\" is no IPv4 address"},
		{{{"fpga-ip", "fd09::2"}}, 1, "is no IPv4 address"},
		{{NEEDED, {"base", "2"}}, 2, "multiples of 4"},
		{{NEEDED, {"udp-client", "0x1001"}}, 2, "multiples of 4"},
		{{NEEDED, {"base", "0x100000000"}}, 2, "base"},
		{{NEEDED, {"mtu", "1500"}}, 2, "mtu"},
		{{NEEDED, {"min-rnr-timer", "32"}}, 2, "min-rnr-timer"},
		{{NEEDED, {"timeout", "32"}}, 2, "timeout"},
		{{NEEDED, {"retry-count", "8"}}, 2, "retry-count"},
		{{NEEDED, {"rnr-retry", "8"}}, 2, "rnr-retry"},
		{{NEEDED, {"step-ms", "0"}}, 2, "step-ms"},
		{{NEEDED, {"wrap", "0"}}, 2, "wrap"},
		{{NEEDED, {"wrap", "16777217"}}, 2, "wrap"},
	};
	struct ndx_negotiation *n = framework();
	struct ndx_variant *v = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(ndx_negotiation_get_variant(n, "surf", "gen1", cases[i].settings,
		                                             cases[i].count, &v),
		                 NDX_E_INVALID_CONFIG);
		says(cases[i].says);
	}
	assert_null(v);
	assert_int_equal(ndx_negotiation_close(n), NDX_OK);
}

/* ---- sessions ---- */

struct visit {
	struct ndx_negotiation *n;
	struct ndx_variant *v;
	struct end end;
	struct serving serving;
	struct ndx_session_attr attr;
	struct ndx_session *s;
	struct ndx_session_error error;
};

static void visit_begin(struct visit *v, bool by_number, const char *mtu)
{
	static const char *servers[1];
	const struct ndx_setting settings[] = {NEEDED, {"mtu", mtu}};

	v->n = framework();
	assert_int_equal(ndx_negotiation_get_variant(v->n, "surf", "gen1", settings, 2, &v->v),
	                 NDX_OK);
	assert_true(end_open(&v->end, "loop"));
	if (by_number)
		fake_direct(v->end.adapter);
	assert_true(serving_begin(&v->serving));
	servers[0] = v->serving.address;
	ndx_session_attr_init(&v->attr);
	v->attr.variant = v->v;
	v->attr.servers = servers;
	v->attr.server_count = 1;
	v->attr.attempts = 1;
	v->attr.connector = v->end.connector;
	v->attr.qp = v->end.qp;
	v->attr.memory = (struct ndx_memory_description){.address = 0x10000, .length = 0x9000};
}

static enum ndx_status visit_run(struct visit *v)
{
	enum ndx_status st;

	assert_int_equal(ndx_session_create(&v->attr, &v->s), NDX_OK);
	st = ndx_session_run(v->s);
	serve_in_turn();
	v->error.size = sizeof(v->error);
	assert_int_equal(ndx_session_get_error(v->s, &v->error), NDX_OK);
	return st;
}

static void visit_end(struct visit *v)
{
	ndx_session_close(v->s);
	serving_end(&v->serving);
	end_close(&v->end);
	ndx_variant_close(v->v);
	assert_int_equal(ndx_negotiation_close(v->n), NDX_OK);
	assert_false(v->serving.fpga.pd.used || v->serving.fpga.mr[0].used ||
	             v->serving.fpga.qp.used || v->serving.fpga.stream.on);
}

static void a_session_connects_what_has_numbers(void **state)
{
	struct ndx_peer_description own;
	struct ndx_peer_description peer;
	struct ndx_agreement agreed;
	struct visit v;
	const struct surf_fpga *fpga = &v.serving.fpga;

	(void)state;
	fake_direct_mapped = true;
	visit_begin(&v, true, "512");
	assert_int_equal(visit_run(&v), NDX_OK);
	assert_int_equal(ndx_session_get_agreement(v.s, &own, &peer, &agreed), NDX_OK);
	assert_int_equal(agreed.mtu, 512);
	assert_int_equal(peer.qpn, fpga->qp.qpn);
	assert_int_equal(peer.psn, fpga->qp.attributes.sq_psn);
	assert_int_equal(peer.policy, NDX_PEER_DEVICE);
	assert_memory_equal(peer.gid, fpga_gid, sizeof(fpga_gid));
	assert_int_equal(fpga->qp.attributes.state, SURF_RTS);
	assert_int_equal(fpga->qp.attributes.dest_qpn, own.qpn);
	assert_int_equal(fpga->qp.attributes.rq_psn, own.psn);
	assert_int_equal(fpga->qp.attributes.pmtu, 2);
	assert_int_equal(fpga->mr[0].region.laddr, 0x10000);
	assert_int_equal(fpga->mr[0].region.length, 0x9000);
	assert_true(fpga->stream.on);
	assert_int_equal(ndx_session_execute(v.s, NDX_STAGE_DONE), NDX_OK);
	serve_in_turn();
	assert_false(fpga->stream.on);
	/* No peer is there to answer a goodbye, and no answer is waited for. */
	assert_int_equal(ndx_disconnect(v.end.connector, ENDS_WAIT_MS), NDX_OK);
	visit_end(&v);
	assert_int_equal(fpga->requests, 10);
	fake_direct_mapped = false;
}

/* The port's is the most. */
static void an_mtu_beyond_the_ports_is_none(void **state)
{
	struct ndx_agreement agreed;
	struct visit v;

	(void)state;
	fake_direct_mapped = true;
	visit_begin(&v, true, "4096");
	assert_int_equal(visit_run(&v), NDX_OK);
	assert_int_equal(ndx_session_get_agreement(v.s, NULL, NULL, &agreed), NDX_OK);
	assert_int_equal(agreed.mtu, 1024);
	assert_int_equal(v.serving.fpga.qp.attributes.pmtu, 3);
	visit_end(&v);
	fake_direct_mapped = false;
}

static void a_step_that_fails_ends_the_session(void **state)
{
	struct visit v;

	(void)state;
	fake_direct_mapped = true;
	visit_begin(&v, true, "port");
	v.serving.fpga.faults[3] = SURF_FAULT_REFUSE;
	serve_in_turn();
	assert_int_not_equal(visit_run(&v), NDX_OK);
	assert_int_equal(v.error.layer, NDX_LAYER_PLUGIN);
	assert_int_equal(v.error.plugin_error, NDX_PLUGIN_VENDOR);
	assert_int_equal(v.error.stage, NDX_STAGE_INFO);
	assert_non_null(strstr(v.error.text, "QP to INIT: the FPGA refuses"));
	visit_end(&v);
	assert_int_equal(v.serving.fpga.requests, 8);
	fake_direct_mapped = false;
}

/* What the own end is not fit for touches no register, and is told of. */
static void unfit(bool by_number, uint64_t memory, const char *text)
{
	struct visit v;

	visit_begin(&v, by_number, "port");
	v.attr.memory.length = memory;
	assert_int_equal(visit_run(&v), NDX_E_INVALID_CONFIG);
	assert_int_equal(v.error.plugin_error, NDX_PLUGIN_CONFIGURATION);
	if (strstr(v.error.text, text) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", v.error.text, text);
	visit_end(&v);
	assert_int_equal(v.serving.fpga.accesses, 0);
}

static void an_end_without_numbers_is_refused(void **state)
{
	(void)state;
	unfit(false, 1, "take an adapter of verbs");
	unfit(true, 1, "the own GID is of no IPv4 address");
	fake_direct_infiniband = true;
	unfit(true, 1, "the own queue pair is on InfiniBand");
	fake_direct_infiniband = false;
	fake_direct_mapped = true;
	unfit(true, 0, "ndx_receiver_get_memory()");
	fake_direct_mapped = false;
}

static void a_slab_of_4_gib_is_refused(void **state)
{
	struct visit v;

	(void)state;
	fake_direct_mapped = true;
	visit_begin(&v, true, "port");
	v.attr.memory.length = UINT64_C(1) << 32;
	assert_int_not_equal(visit_run(&v), NDX_OK);
	assert_non_null(strstr(v.error.text, "mr_length"));
	visit_end(&v);
	assert_int_equal(v.serving.fpga.accesses, 0);
	fake_direct_mapped = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parameters_are_checked),
		cmocka_unit_test(a_session_connects_what_has_numbers),
		cmocka_unit_test(an_mtu_beyond_the_ports_is_none),
		cmocka_unit_test(a_step_that_fails_ends_the_session),
		cmocka_unit_test(an_end_without_numbers_is_refused),
		cmocka_unit_test(a_slab_of_4_gib_is_refused),
	};

	return cmocka_run_group_tests_name("plugin surf", tests, NULL, NULL);
}
