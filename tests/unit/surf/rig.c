/* SPDX-License-Identifier: BSD-2-Clause */
#include "rig.h"

#include <stdio.h>
#include <string.h>

const struct ndx_plugin_transport *const rig_transport = &surf_device_transports[0];
unsigned rig_warnings;

static void count(const struct ndx_plugin_host *host, enum ndx_log_level level, const char *text)
{
	(void)host;
	(void)text;
	rig_warnings += level == NDX_LOG_WARN;
}

static const struct ndx_plugin_host host = {.log = count};
struct surf_plugin rig_plugin = {.host = &host};

void rig_begin(struct rig *r)
{
	char why[160];

	memset(r, 0, sizeof(*r));
	rig_warnings = 0;
	assert_true(serving_begin(&r->serving));
	r->order = (struct surf_order){.host_qpn = RIG_HOST_QPN,
	                               .host_psn = RIG_HOST_PSN,
	                               .host_ip = 0x0a090001,
	                               .udp_client = SURF_FPGA_UDP,
	                               .host_reads_in = 3,
	                               .host_reads_out = 40,
	                               .mr_address = 0x7f0012345000,
	                               .mr_length = 0x230000,
	                               .pmtu = 3,
	                               .min_rnr_timer = 12,
	                               .timeout = 14,
	                               .retry_count = 3,
	                               .rnr_retry = 7,
	                               .step_ms = 5000,
	                               .wrap = 256,
	                               .stream = 1};
	assert_int_equal(rig_transport->connect(&rig_plugin, r->serving.address, RIG_LONG_MS,
	                                        &r->stream, why, sizeof(why)),
	                 NDX_OK);
}

void rig_end(struct rig *r)
{
	rig_transport->close(r->stream);
	r->stream = NULL;
	serving_end(&r->serving);
}

void rig_send(struct rig *r, uint8_t type, uint8_t stage, uint32_t round, const void *payload,
              size_t length)
{
	const struct surf_frame f = {.type = type,
	                             .stage = stage,
	                             .round = round,
	                             .length = (uint32_t)length,
	                             .payload = payload};
	const size_t bytes = surf_frame_write(r->bytes, &f);

	serve_in_turn();
	assert_int_equal(rig_transport->send(r->stream, r->bytes, bytes, RIG_LONG_MS), NDX_OK);
}

enum ndx_status rig_receive_within(struct rig *r, uint32_t timeout_ms)
{
	size_t used = 0;
	size_t n;
	enum ndx_status st = NDX_OK;

	/* In pieces, as a stream may come: a part of the header, then of the payload. */
	while (st == NDX_OK && !surf_frame_parse(r->bytes, used, &r->heard)) {
		st = rig_transport->receive(r->stream, r->bytes + used,
		                            used == 0 ? 7 : SURF_FRAME_HEADER, &n, timeout_ms);
		used += st == NDX_OK ? n : 0;
	}
	serve_in_turn();
	if (st == NDX_OK && r->heard.type == SURF_ERROR) {
		assert_int_equal(r->heard.payload[0], 2);
		(void)snprintf(r->text, sizeof(r->text), "%.*s", (int)r->heard.length - 8,
		               (const char *)r->heard.payload + 8);
	}
	return st;
}

void rig_expect(struct rig *r, uint8_t type)
{
	assert_int_equal(rig_receive_within(r, RIG_LONG_MS), NDX_OK);
	if (r->heard.type != type)
		fail_msg("%u came, not %u: %s", r->heard.type, type, r->text);
}

void rig_send_order(struct rig *r)
{
	uint8_t order[SURF_ORDER_BYTES];

	surf_words_write(order, &r->order, sizeof(order));
	rig_send(r, SURF_DATA, NDX_STAGE_INFO, 0, order, sizeof(order));
}
