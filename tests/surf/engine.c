/* SPDX-License-Identifier: BSD-2-Clause */
/* A queue pair of the emulated FPGA, from its creation to its end. */
#include "engine.h"

#include <stdio.h>
#include <string.h>

#include "sample_frames.h"

#define CONNECT_MS 1500u /* below what a register access may take */
#define SLICE_MS 50u
#define READS 16u
#define CHANNEL 1u
#define REPLAY_SLOTS 16u
#define RECEIVE_SLOTS 64u

static bool failed(struct engine *e, const char *what)
{
	(void)snprintf(e->failure, sizeof(e->failure), "%s: %.120s", what, ndx_last_error());
	return false;
}

/* The host's frames: numbered from 0, each byte known. */
static bool check(void *context, const struct ndx_frame *frame)
{
	struct engine *e = context;
	uint64_t number = 0;
	const bool good =
		sample_frame_check(frame->data, frame->length, &number) && number == e->expected;

	e->expected++;
	if (!good)
		e->bad++;
	e->received++;
	return good;
}

/* An end that sends from this PSN. */
static bool describe(struct engine *e, uint32_t psn, struct ndx_peer_description *own)
{
	const struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr = e->ip};
	struct ndx_connector_attr attr;
	enum ndx_status st;

	ndx_connector_attr_init(&attr);
	attr.psn = psn;
	st = ndx_connector_create(e->adapter, &attr, &e->connector);
	if (st == NDX_OK)
		st = ndx_connector_bind(e->connector, (const struct sockaddr *)&here, sizeof(here));
	if (st == NDX_OK)
		st = ndx_connector_describe(e->connector, ndx_receiver_get_qp(e->receiver),
		                            NDX_ROLE_SERVER, READS, READS, own);
	return st == NDX_OK || failed(e, "describe");
}

static void forget(struct engine *e)
{
	ndx_connector_close(e->connector);
	e->connector = NULL;
}

static void destroy(void *state)
{
	struct engine *e = state;

	forget(e);
	ndx_receiver_close(e->receiver);
	e->receiver = NULL;
	e->unmade++;
}

static bool create(void *state, uint32_t *qpn)
{
	struct engine *e = state;
	struct ndx_peer_description own;
	struct ndx_receiver_attr attr;

	ndx_receiver_attr_init(&attr);
	attr.adapter = e->adapter;
	attr.slot_count = RECEIVE_SLOTS;
	attr.send_depth = REPLAY_SLOTS;
	attr.consumers[0] = (struct ndx_frame_consumer){check, e, NDX_CHANNEL_ANY};
	/* A host without a slot is waited for. */
	attr.no_receive_timeout_ms = NDX_INFINITE;
	if (ndx_receiver_create(&attr, &e->receiver) != NDX_OK)
		return failed(e, "create");
	e->made++;
	e->expected = 0;
	if (ndx_receiver_prepare(e->receiver) != NDX_OK || !describe(e, NDX_PSN_RANDOM, &own) ||
	    own.kind != NDX_DESCRIPTION_VERBS_RC) {
		destroy(e);
		return false;
	}
	/* The number stays, the PSN is told later. */
	*qpn = own.qpn;
	forget(e);
	return true;
}

static void address_gid(struct in_addr ip, uint8_t gid[16])
{
	memset(gid, 0, 16);
	gid[10] = 0xff;
	gid[11] = 0xff;
	memcpy(gid + 12, &ip, sizeof(ip));
}

static bool connect_host(void *state, const struct surf_attributes *a, uint32_t ip)
{
	struct engine *e = state;
	const struct in_addr told = {.s_addr = htonl(ip)};
	struct ndx_peer_description own;
	struct ndx_peer_description host = {.kind = NDX_DESCRIPTION_VERBS_RC,
	                                    .inbound_read_limit = READS,
	                                    .outbound_read_limit = READS,
	                                    .qpn = (uint32_t)a->dest_qpn,
	                                    .psn = (uint32_t)a->rq_psn,
	                                    .mtu = 128u << a->pmtu};
	struct ndx_overlapped ov = {0};
	enum ndx_status st;

	if (!describe(e, (uint32_t)a->sq_psn, &own)) {
		forget(e);
		return false;
	}
	address_gid(ip != 0 ? told : e->host_ip, host.gid);
	st = ndx_connector_set_oob_stream(e->connector, NDX_NO_OOB_STREAM);
	if (st == NDX_OK)
		st = ndx_connector_connect_peer(e->connector, &host, &ov);
	if (st == NDX_PENDING)
		st = ndx_overlapped_wait(&ov, CONNECT_MS);
	if (st == NDX_OK)
		st = ndx_receiver_start(e->receiver, e->connector);
	if (st != NDX_OK) {
		(void)failed(e, "connect");
		forget(e);
		return false;
	}
	e->connector = NULL; /* the receiver's by now */
	return true;
}

/* ---- the stream ---- */

static enum ndx_status send_frames(struct engine *e, struct ndx_sender *sender)
{
	enum ndx_status st = NDX_OK;
	uint64_t number = 0;

	while (!e->stop && (e->frames == 0 || number < e->frames)) {
		void *buffer;

		st = ndx_sender_acquire(sender, SLICE_MS, &buffer);
		if (st == NDX_PENDING)
			continue;
		if (st != NDX_OK)
			return st;
		sample_frame_fill(buffer, e->size, number);
		st = ndx_sender_post(sender, e->size, CHANNEL);
		if (st != NDX_OK)
			return st;
		number++;
	}
	do
		st = ndx_sender_flush(sender, SLICE_MS);
	while (st == NDX_PENDING && !e->stop);
	return st;
}

static void *stream_main(void *arg)
{
	struct engine *e = arg;
	struct ndx_sender_stats stats = {.size = sizeof(stats)};
	struct ndx_sender_attr attr;
	struct ndx_sender *sender;

	ndx_sender_attr_init(&attr);
	attr.receiver = e->receiver;
	attr.slot_size = SURF_FPGA_FRAME;
	attr.slot_count = REPLAY_SLOTS;
	attr.sequence_wrap = e->wrap;
	if (ndx_sender_create(&attr, &sender) != NDX_OK) {
		(void)failed(e, "sender");
		return NULL;
	}
	if (send_frames(e, sender) < 0)
		(void)failed(e, "stream");
	(void)ndx_sender_get_stats(sender, &stats);
	e->sent += stats.frames;
	ndx_sender_close(sender);
	return NULL;
}

static void dispatch(void *state, bool on, uint32_t wrap)
{
	struct engine *e = state;

	if (on && !e->streams) {
		e->wrap = wrap;
		e->stop = false;
		e->sent = 0;
		e->streams = pthread_create(&e->stream, NULL, stream_main, e) == 0;
	} else if (!on && e->streams) {
		e->stop = true;
		(void)pthread_join(e->stream, NULL);
		e->streams = false;
	}
}

static void error(void *state)
{
	struct engine *e = state;

	(void)ndx_receiver_stop(e->receiver);
}

bool engine_fits(struct ndx_adapter *adapter)
{
	struct ndx_adapter_info info = {.size = sizeof(info)};
	struct ndx_peer_description own = {.kind = NDX_DESCRIPTION_VERBS_RC};
	struct ndx_connector *connector = NULL;
	struct ndx_qp_attr attr;
	struct ndx_qp *qp = NULL;
	struct ndx_cq *cq = NULL;
	enum ndx_status st = ndx_adapter_query(adapter, &info);

	if (st == NDX_OK)
		st = ndx_cq_create_depth(adapter, 4, &cq);
	ndx_qp_attr_init(&attr);
	attr.receive_cq = attr.initiator_cq = cq;
	if (st == NDX_OK)
		st = ndx_qp_create(adapter, &attr, &qp);
	if (st == NDX_OK)
		st = ndx_connector_create(adapter, NULL, &connector);
	if (st == NDX_OK)
		st = ndx_connector_describe(connector, qp, NDX_ROLE_SERVER, 1, 1, &own);
	if (st != NDX_OK)
		(void)fprintf(stderr, "%s: %s: %s\n", info.uri, ndx_status_name(st),
		              ndx_last_error());
	else if (own.kind != NDX_DESCRIPTION_VERBS_RC)
		(void)fprintf(
			stderr,
			"%s: its queue pairs are not connected by their numbers, as a host of "
			"this FPGA does it; take an adapter of provider verbs\n",
			info.uri);
	ndx_connector_close(connector);
	ndx_qp_close(qp);
	ndx_cq_close(cq);
	return st == NDX_OK && own.kind == NDX_DESCRIPTION_VERBS_RC;
}

void engine_init(struct engine *e)
{
	e->ops = (struct surf_fpga_engine){.state = e,
	                                   .create = create,
	                                   .connect = connect_host,
	                                   .dispatch = dispatch,
	                                   .error = error,
	                                   .destroy = destroy};
}
