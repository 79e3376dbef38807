/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plugin for the FPGA RoCE engine of SLAC's surf library. Its peer is not a program: the
 * variant determines the values for the FPGA, and the plugin's transport writes them, register by
 * register (device.c).
 *
 * Stage info has two rounds: the description of the own queue pair goes to the transport, and the
 * description of the FPGA's queue pair, which is connected, comes back. Stage ready switches the
 * FPGA on, stage done switches it off. The FPGA releases everything when the session is closed. The
 * session must be closed before the host's queue pair ends, because only the session reaches the
 * FPGA.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/plugin.h>

#include "device.h"
#include "words.h"

#define IPV4_AT 12u

struct instance {
	uint32_t fpga_ip; /* in network byte order */
	uint32_t mtu;     /* upper limit; 0: the port's MTU */
	struct surf_order order;
};

struct session {
	const struct instance *instance;
	uint32_t mtu; /* as set in the FPGA */
};

/* ---- parameters ---- */

enum {
	PARAM_FPGA_IP,
	PARAM_BASE,
	PARAM_UDP_CLIENT,
	PARAM_MTU,
	PARAM_MIN_RNR_TIMER,
	PARAM_TIMEOUT,
	PARAM_RETRY_COUNT,
	PARAM_RNR_RETRY,
	PARAM_STEP_MS,
	PARAM_WRAP,
	PARAM_STREAM,
};

static const struct ndx_plugin_param params[] = {
	[PARAM_FPGA_IP] = {.name = "fpga-ip",
                           .type = NDX_PARAM_STRING,
                           .required = true,
                           .least = 7,
                           .most = 15,
                           .help = "IPv4 address that the FPGA has for RoCE"},
	[PARAM_BASE] = {.name = "base",
                        .type = NDX_PARAM_INT,
                        .most = 0xffff0000,
                        .initial = "0",
                        .help = "address of the RoCE engine's registers"},
	[PARAM_UDP_CLIENT] = {.name = "udp-client",
                              .type = NDX_PARAM_INT,
                              .most = 0xfffffff8,
                              .initial = "0",
                              .help = "address of the UDP engine's client, which is told where "
                                      "the host is; 0: somebody else tells it"},
	[PARAM_MTU] = {.name = "mtu",
                       .type = NDX_PARAM_CHOICE,
                       .choices = "port|256|512|1024|2048|4096",
                       .initial = "port",
                       .help = "path MTU in bytes, at most; port: what the port has"},
	[PARAM_MIN_RNR_TIMER] = {.name = "min-rnr-timer",
                                 .type = NDX_PARAM_INT,
                                 .most = 31,
                                 .initial = "12",
                                 .help = "how long the host waits when the FPGA has no slot; a "
                                         "code, 12 is 0.64 ms, 1 is 0.01 ms, 0 is 655 ms"},
	[PARAM_TIMEOUT] = {.name = "timeout",
                           .type = NDX_PARAM_INT,
                           .most = 31,
                           .initial = "14",
                           .help = "how long the FPGA waits for the host's acknowledgement; a "
                                   "code, 14 is 67 ms"},
	[PARAM_RETRY_COUNT] = {.name = "retry-count",
                               .type = NDX_PARAM_INT,
                               .most = 7,
                               .initial = "3",
                               .help = "how often the FPGA sends again without one"},
	[PARAM_RNR_RETRY] = {.name = "rnr-retry",
                             .type = NDX_PARAM_INT,
                             .most = 7,
                             .initial = "7",
                             .help = "how often it sends again when the host has no slot; 7: for "
                                     "ever"},
	[PARAM_STEP_MS] = {.name = "step-ms",
                           .type = NDX_PARAM_INT,
                           .least = 1,
                           .most = 600000,
                           .initial = "5000",
                           .help = "how long each answer of the FPGA may take"},
	[PARAM_WRAP] = {.name = "wrap",
                        .type = NDX_PARAM_INT,
                        .least = 1,
                        .most = 1 << 24,
                        .initial = "16777216",
                        .help = "frames are numbered 0 to wrap - 1: the receiver's sequence_wrap"},
	[PARAM_STREAM] = {.name = "stream",
                          .type = NDX_PARAM_BOOL,
                          .initial = "true",
                          .help = "switch the FPGA's dispatcher on when the host is ready"},
	{.name = NULL},
};

static enum ndx_status create(void *plugin, const struct ndx_plugin_variant *variant,
                              const struct ndx_plugin_value *values, void **out, char *why,
                              size_t room)
{
	struct in_addr fpga;
	struct instance *instance;

	(void)plugin;
	(void)variant;
	if (inet_pton(AF_INET, values[PARAM_FPGA_IP].text, &fpga) != 1) {
		(void)snprintf(why, room, "fpga-ip \"%s\" is no IPv4 address",
		               values[PARAM_FPGA_IP].text);
		return NDX_E_INVALID_CONFIG;
	}
	if (values[PARAM_BASE].number % 4 != 0 || values[PARAM_UDP_CLIENT].number % 4 != 0) {
		(void)snprintf(why, room,
		               "base and udp-client are addresses of 32-bit registers: "
		               "multiples of 4");
		return NDX_E_INVALID_CONFIG;
	}
	instance = calloc(1, sizeof(*instance));
	if (instance == NULL) {
		(void)snprintf(why, room, "out of memory");
		return NDX_E_NO_MEMORY;
	}
	instance->fpga_ip = fpga.s_addr;
	/* "port", "256", "512", ... */
	instance->mtu = values[PARAM_MTU].number == 0 ? 0 : 128u << values[PARAM_MTU].number;
	instance->order =
		(struct surf_order){.base = (uint64_t)values[PARAM_BASE].number,
	                            .udp_client = (uint64_t)values[PARAM_UDP_CLIENT].number,
	                            .min_rnr_timer = (uint64_t)values[PARAM_MIN_RNR_TIMER].number,
	                            .timeout = (uint64_t)values[PARAM_TIMEOUT].number,
	                            .retry_count = (uint64_t)values[PARAM_RETRY_COUNT].number,
	                            .rnr_retry = (uint64_t)values[PARAM_RNR_RETRY].number,
	                            .step_ms = (uint64_t)values[PARAM_STEP_MS].number,
	                            .wrap = (uint64_t)values[PARAM_WRAP].number,
	                            .stream = (uint64_t)values[PARAM_STREAM].number};
	*out = instance;
	return NDX_OK;
}

static void destroy(void *instance)
{
	free(instance);
}

/* ---- a session ---- */

static enum ndx_status give_up(struct ndx_exchange_reply *reply, enum ndx_plugin_error error,
                               enum ndx_status status, const char *text)
{
	reply->error = error;
	(void)snprintf(reply->text, sizeof(reply->text), "%s", text);
	return status;
}

static enum ndx_status begin_session(void *instance, const struct ndx_exchange *x, void **out,
                                     struct ndx_exchange_reply *reply)
{
	struct session *s;

	if (x->role != NDX_ROLE_CLIENT)
		return give_up(reply, NDX_PLUGIN_CONFIGURATION, NDX_E_INVALID_CONFIG,
		               "an FPGA does not ask for connections: the session has to be a "
		               "client's");
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return give_up(reply, NDX_PLUGIN_RESOURCES, NDX_E_NO_MEMORY, "out of memory");
	s->instance = instance;
	*out = s;
	return NDX_OK;
}

static void end(void *session)
{
	free(session);
}

/* NULL, or why an FPGA cannot be connected to the own end. */
static const char *unfit(const struct ndx_peer_description *own)
{
	static const uint8_t mapped[IPV4_AT] = {[10] = 0xff, [11] = 0xff};

	if (own->kind != NDX_DESCRIPTION_VERBS_RC)
		return "the own queue pair has no numbers to tell an FPGA; take an adapter of "
		       "verbs";
	if (own->lid != 0)
		return "the own queue pair is on InfiniBand, the FPGA on Ethernet";
	if (memcmp(own->gid, mapped, sizeof(mapped)) != 0)
		return "the own GID is of no IPv4 address; bind the connector to the address that "
		       "the FPGA can reach, or say gid=N in the adapter's URI";
	if (own->memory.length == 0)
		return "the FPGA wants to be told of memory; give the session the receiver's slab "
		       "(ndx_receiver_get_memory())";
	return NULL;
}

static uint64_t code_of(uint32_t mtu)
{
	uint64_t code = 0;

	while (mtu > 128u << code)
		code++;
	return code;
}

static enum ndx_status say_order(struct session *s, const struct ndx_exchange *x,
                                 struct ndx_exchange_reply *reply)
{
	const struct ndx_peer_description *own = x->own;
	const char *why = unfit(own);
	struct surf_order order = s->instance->order;
	uint32_t ip;

	if (why != NULL)
		return give_up(reply, NDX_PLUGIN_CONFIGURATION, NDX_E_INVALID_CONFIG, why);
	if (reply->room < SURF_ORDER_BYTES)
		return give_up(reply, NDX_PLUGIN_SERIALIZATION, NDX_E_BUFFER_OVERFLOW,
		               "messages of 256 bytes must be allowed");
	s->mtu = own->mtu;
	if (s->instance->mtu != 0 && s->instance->mtu < own->mtu)
		s->mtu = s->instance->mtu;
	memcpy(&ip, own->gid + IPV4_AT, sizeof(ip));
	order.host_ip = ntohl(ip);
	order.host_qpn = own->qpn;
	order.host_psn = own->psn;
	order.host_reads_in = own->inbound_read_limit;
	order.host_reads_out = own->outbound_read_limit;
	order.mr_address = own->memory.address;
	order.mr_length = own->memory.length;
	order.pmtu = code_of(s->mtu);
	surf_words_write(reply->data, &order, SURF_ORDER_BYTES);
	reply->length = SURF_ORDER_BYTES;
	return NDX_OK;
}

static enum ndx_status take_answer(const struct session *s, const struct ndx_exchange *x,
                                   const void *peer, size_t length,
                                   struct ndx_exchange_reply *reply)
{
	struct surf_answer answer;

	if (peer == NULL || length != SURF_ANSWER_BYTES)
		return give_up(reply, NDX_PLUGIN_PEER_DATA, NDX_E_REMOTE_ERROR,
		               "the answer is none of the plugin's transport");
	surf_words_read(&answer, peer, SURF_ANSWER_BYTES);
	*x->peer = (struct ndx_peer_description){.kind = NDX_DESCRIPTION_VERBS_RC,
	                                         .inbound_read_limit = SURF_READS,
	                                         .outbound_read_limit = SURF_READS,
	                                         .qpn = (uint32_t)answer.qpn,
	                                         .psn = (uint32_t)answer.psn,
	                                         .mtu = s->mtu,
	                                         .policy = NDX_PEER_DEVICE};
	x->peer->gid[10] = 0xff;
	x->peer->gid[11] = 0xff;
	memcpy(x->peer->gid + IPV4_AT, &s->instance->fpga_ip, sizeof(s->instance->fpga_ip));
	reply->completed = true;
	return NDX_OK;
}

static enum ndx_status info(void *session, const struct ndx_exchange *x, const void *peer,
                            size_t peer_length, struct ndx_exchange_reply *reply)
{
	if (x->round == 0)
		return say_order(session, x, reply);
	return take_answer(session, x, peer, peer_length, reply);
}

/* In the stages ready and done the message only says that the stage has come. */
static enum ndx_status go(void *session, const struct ndx_exchange *x, const void *peer,
                          size_t peer_length, struct ndx_exchange_reply *reply)
{
	(void)session;
	(void)x;
	(void)peer;
	(void)peer_length;
	reply->completed = true;
	return NDX_OK;
}

/* No `reset`: a new session sets up again what was lost with the register bus. */
static const struct ndx_variant_ops ops = {
	.create = create,
	.destroy = destroy,
	.begin = begin_session,
	.end = end,
	.info = info,
	.ready = go,
	.done = go,
};

static const struct ndx_plugin_variant variants[] = {
	{.name = "gen1",
         .help = "an FPGA with the metadata bus of 303 bits",
         .params = params,
         .transport = "registers",
         .ops = &ops},
};

/* ---- the plugin ---- */

static enum ndx_status initialize(const struct ndx_plugin_host *host, void **state, char *why,
                                  size_t room)
{
	struct surf_plugin *plugin = calloc(1, sizeof(*plugin));

	if (plugin == NULL) {
		(void)snprintf(why, room, "out of memory");
		return NDX_E_NO_MEMORY;
	}
	plugin->host = host;
	*state = plugin;
	return NDX_OK;
}

static void finalize(void *state)
{
	free(state);
}

const struct ndx_plugin ndx_plugin = {
	.abi = NDX_PLUGIN_ABI,
	.size = sizeof(struct ndx_plugin),
	.name = "surf",
	.version = "1.0",
	.vendor = "NDX",
	.flags = NDX_PLUGIN_DEVICE,
	.initialize = initialize,
	.finalize = finalize,
	.list = variants,
	.count = sizeof(variants) / sizeof(variants[0]),
	.transports = surf_device_transports,
};
