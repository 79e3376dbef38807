/* SPDX-License-Identifier: BSD-2-Clause */
/* The attributes that the provider sets on a native queue pair, and the description of the
 * device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "rig.h"

#define DEPTH 16u

static const struct ibv_qp_attr *bring_up_qp(struct rig *rig)
{
	verbs_qp_bring_down(rig_qp(rig));
	assert_int_equal(verbs_qp_bring_up(rig_qp(rig), &rig->conn), 0);
	return &fake_qp_of(rig_native(rig))->modify_attr;
}

static void every_rnr_timer_reaches_the_device(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig);
	rig_connect(&rig, DEPTH, NULL);
	assert_int_equal(bring_up_qp(&rig)->min_rnr_timer, 14); /* 1.28 ms */
	/* the path is known from rdma_cm, or from a description of the peer */
	for (int by_hand = 0; by_hand < 2; by_hand++) {
		rig.conn.oob.on = by_hand;
		rig.conn.oob.mtu = 1024;
		for (uint32_t code = 0; code <= 31; code++) {
			rig.qp->attr.rnr_timer = code;
			assert_int_equal(bring_up_qp(&rig)->min_rnr_timer, code);
		}
	}
	rig_close(&rig);
}

static void every_path_mtu_reaches_the_device(void **state)
{
	static const enum ibv_mtu codes[] = {IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048,
	                                     IBV_MTU_4096};
	struct rig rig;

	(void)state;
	rig_open(&rig);
	rig_connect(&rig, DEPTH, NULL);
	rig.conn.oob.on = true;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		rig.conn.oob.mtu = 256u << i;
		assert_int_equal(bring_up_qp(&rig)->path_mtu, codes[i]);
	}
	rig_close(&rig);
}

/* ndx_qp_query() tells what the device has: state, numbers and path MTU, and none of an attempt
 * before. */
static void a_query_tells_what_the_device_has(void **state)
{
	struct ndx_qp_info info = {0};
	struct rig rig;

	(void)state;
	rig_open(&rig);
	rig_connect(&rig, DEPTH, NULL);
	rig.conn.oob.on = true;
	rig.conn.oob.mtu = 2048;
	rig.conn.oob.peer_number = 4711;
	(void)bring_up_qp(&rig);
	verbs_qp_query(rig.qp, &info);
	assert_string_equal(info.device_state, "RTS");
	assert_int_equal(info.device_qp, rig_native(&rig)->qp_num);
	assert_int_equal(info.peer_device_qp, 4711);
	assert_int_equal(info.mtu, 2048);
	rig_native(&rig)->state = IBV_QPS_ERR;
	verbs_qp_query(rig.qp, &info);
	assert_string_equal(info.device_state, "ERR");
	verbs_qp_bring_down(rig_qp(&rig));
	memset(&info, 0, sizeof(info));
	verbs_qp_query(rig.qp, &info);
	assert_string_equal(info.device_state, "RESET");
	assert_int_equal(info.device_qp, rig_native(&rig)->qp_num);
	assert_int_equal(info.peer_device_qp, 0);
	assert_int_equal(info.mtu, 0);
	rig_close(&rig);
}

/* Two described ends use the smaller path MTU of the two. */
static void the_smaller_path_mtu_reaches_the_device(void **state)
{
	static const struct {
		uint32_t own;
		uint32_t peers;
		enum ibv_mtu code;
	} cases[] = {{4096, 1024, IBV_MTU_1024}, {1024, 4096, IBV_MTU_1024}};
	struct ndx_peer_description peer = {.kind = NDX_DESCRIPTION_VERBS_RC, .qpn = 7};
	struct rig rig;

	(void)state;
	rig_open(&rig);
	rig.device.port.active_mtu = IBV_MTU_4096;
	rig_connect(&rig, DEPTH, NULL);
	rig.conn.spi.qp = rig.qp;
	rig.conn.oob.on = true;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		rig.conn.oob.mtu = cases[i].own;
		peer.mtu = cases[i].peers;
		verbs_qp_bring_down(rig_qp(&rig));
		assert_int_equal(verbs_qp_connect_peer(&rig.conn.spi, &peer), NDX_OK);
		assert_int_equal(fake_qp_of(rig_native(&rig))->modify_attr.path_mtu, cases[i].code);
		ndxp_list_remove(&rig.conn.node);
	}
	rig_close(&rig);
}

/* Without the key the provider writes nothing into the peer's memory: keepalive, proof, drain. */
static void a_peer_that_is_not_written_grants_no_memory(void **state)
{
	struct ndx_peer_description peer = {
		.kind = NDX_DESCRIPTION_VERBS_RC, .qpn = 7, .mtu = 1024, .mailbox_rkey = 5};
	struct rig rig;

	(void)state;
	rig_open(&rig);
	rig.device.port.active_mtu = IBV_MTU_4096;
	rig_connect(&rig, DEPTH, NULL);
	rig.conn.spi.qp = rig.qp;
	rig.conn.oob.on = true;
	for (unsigned i = 0; i < 2; i++) {
		rig.conn.oob.mtu = 1024;
		peer.policy = i == 0 ? 0 : NDX_PEER_DEVICE;
		verbs_qp_bring_down(rig_qp(&rig));
		assert_int_equal(verbs_qp_connect_peer(&rig.conn.spi, &peer), NDX_OK);
		assert_int_equal(rig.conn.peer.mailbox_key, i == 0 ? 5 : 0);
		assert_int_equal(rig_qp(&rig)->not_asked, i != 0);
		ndxp_list_remove(&rig.conn.node);
	}
	rig_close(&rig);
}

/* On Ethernet the change to INIT needs no call of rdma_cm. */
static void the_first_step_on_ethernet_sends_no_request(void **state)
{
	const struct ibv_qp_attr *modify_attr;
	struct rig rig;

	(void)state;
	rig_open(&rig);
	rig_connect(&rig, DEPTH, NULL);
	rig.adapter.options.port = 2;
	for (int ethernet = 0; ethernet < 2; ethernet++) {
		rig.adapter.ethernet = ethernet;
		rig.device.count[FAKE_INIT_QP_ATTR] = 0;
		modify_attr = bring_up_qp(&rig);
		assert_int_equal(rig.device.count[FAKE_INIT_QP_ATTR], ethernet ? 2 : 3);
	}
	assert_int_equal(modify_attr->port_num, 2);
	assert_int_equal(modify_attr->pkey_index, 0);
	assert_int_equal(modify_attr->qp_access_flags,
	                 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	rig_close(&rig);
}

/* The driver of software RoCE reports a vendor; the provider does not. */
static void software_has_no_vendor(void **state)
{
	struct verbs_adapter adapter = {.attr = {.vendor_id = 0x2c9, .vendor_part_id = 4119}};
	struct ndx_adapter_info info;

	(void)state;
	verbs_describe(&adapter, &info);
	assert_int_equal(info.vendor_id, 0x2c9);
	assert_int_equal(info.device_id, 4119);
	adapter.soft_roce = true;
	verbs_describe(&adapter, &info);
	assert_int_equal(info.vendor_id, 0);
	assert_int_equal(info.device_id, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_rnr_timer_reaches_the_device),
		cmocka_unit_test(every_path_mtu_reaches_the_device),
		cmocka_unit_test(a_query_tells_what_the_device_has),
		cmocka_unit_test(the_smaller_path_mtu_reaches_the_device),
		cmocka_unit_test(a_peer_that_is_not_written_grants_no_memory),
		cmocka_unit_test(the_first_step_on_ethernet_sends_no_request),
		cmocka_unit_test(software_has_no_vendor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
