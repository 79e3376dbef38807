/* SPDX-License-Identifier: BSD-2-Clause */
/* A session's end of the transport, and the emulated FPGA at the other. */
#ifndef TEST_SURF_RIG_H
#define TEST_SURF_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "device.h"
#include "serve.h"
#include "words.h"

#define RIG_LONG_MS 20000u
#define RIG_HOST_QPN 0x11u
#define RIG_HOST_PSN 0x22u

/* One FPGA, one host. */
struct rig {
	struct serving serving;
	struct ndx_plugin_stream *stream;
	struct surf_order order;
	uint8_t bytes[SURF_FRAME_HEADER + SURF_FRAME_PAYLOAD];
	struct surf_frame heard;
	char text[256]; /* of an ERROR */
};

extern const struct ndx_plugin_transport *const rig_transport;
extern struct surf_plugin rig_plugin;
extern unsigned rig_warnings; /* lines of the plugin's, since rig_begin() */

void rig_begin(struct rig *r);
/* The host goes. */
void rig_end(struct rig *r);
void rig_send(struct rig *r, uint8_t type, uint8_t stage, uint32_t round, const void *payload,
              size_t length);
void rig_send_order(struct rig *r);
enum ndx_status rig_receive_within(struct rig *r, uint32_t timeout_ms);
/* A frame of that type. */
void rig_expect(struct rig *r, uint8_t type);

#endif
