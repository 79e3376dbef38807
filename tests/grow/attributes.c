/* SPDX-License-Identifier: BSD-2-Clause */
/* The objects that need no connection: one of each whose attributes have a size. */
#include <ndx/negotiation.h>
#include <ndx/negotiation_server.h>
#include <ndx/reassembly.h>
#include <ndx/receiver.h>
#include <ndx/sender.h>
#include <ndx/session.h>
#include <ndx/spi/plugin.h>

#include "grow.h"

static void connectors(struct ndx_adapter *adapter)
{
	struct ndx_connector *connector = NULL;
	struct ndx_connector_attr attr;

	ndx_connector_attr_init(&attr);
	REFUSED(attr, NDX_E_INVALID_PARAMETER, ndx_connector_create(adapter, &attr, &connector));
	must(ndx_connector_create(adapter, &attr, &connector), "create a connector");
	ndx_connector_close(connector);
}

static void shared_queues(struct ndx_adapter *adapter)
{
	struct ndx_adapter_info info = {.size = sizeof(info)};
	struct ndx_srq_attr attr;
	struct ndx_srq *srq = NULL;

	must(ndx_adapter_query(adapter, &info), "query the adapter");
	ndx_srq_attr_init(&attr);
	REFUSED(attr, NDX_E_INVALID_PARAMETER, ndx_srq_create(adapter, &attr, &srq));
	must_be(ndx_srq_create(adapter, &attr, &srq),
	        info.capabilities & NDX_CAP_SRQ ? NDX_OK : NDX_E_NOT_SUPPORTED,
	        "create a shared receive queue");
	ndx_srq_close(srq);
}

static void frames(struct ndx_adapter *adapter)
{
	struct ndx_receive_loop_attr loop_attr;
	struct ndx_receive_loop *loop = NULL;
	struct ndx_receiver *receiver = NULL;
	struct ndx_receiver_stats received;
	struct ndx_receiver_attr attr;
	struct ndx_sender_attr sender_attr;
	struct ndx_sender *sender = NULL;
	struct ndx_sender_stats sent;

	ndx_receive_loop_attr_init(&loop_attr);
	REFUSED(loop_attr, NDX_E_INVALID_PARAMETER, ndx_receive_loop_create(&loop_attr, &loop));
	must(ndx_receive_loop_create(&loop_attr, &loop), "create a receive loop");
	ndx_receiver_attr_init(&attr);
	attr.adapter = adapter;
	attr.pull = true;
	attr.loop = loop;
	REFUSED(attr, NDX_E_INVALID_PARAMETER, ndx_receiver_create(&attr, &receiver));
	must(ndx_receiver_create(&attr, &receiver), "create a receiver");
	PREPARE(received);
	must(ndx_receiver_get_stats(receiver, &received), "counters of a receiver");
	must_hold(received.slots == attr.slot_count, "wrong counters of a receiver");
	LEFT_ALONE(received);
	ndx_sender_attr_init(&sender_attr);
	sender_attr.adapter = adapter;
	REFUSED(sender_attr, NDX_E_INVALID_PARAMETER, ndx_sender_create(&sender_attr, &sender));
	must(ndx_sender_create(&sender_attr, &sender), "create a sender");
	PREPARE(sent);
	must(ndx_sender_get_stats(sender, &sent), "counters of a sender");
	must_hold(sent.failed == NDX_OK, "wrong counters of a sender");
	LEFT_ALONE(sent);
	ndx_sender_close(sender);
	ndx_receiver_close(receiver);
	ndx_receive_loop_close(loop);
}

static enum ndx_status say_nothing(void *session, const struct ndx_exchange *exchange,
                                   const void *peer, size_t peer_length,
                                   struct ndx_exchange_reply *reply)
{
	(void)session;
	(void)exchange;
	(void)peer;
	(void)peer_length;
	reply->completed = true;
	return NDX_OK;
}

static const struct ndx_variant_ops ops = {.info = say_nothing, .ready = say_nothing};
static const struct ndx_plugin_variant plain = {.name = "plain", .help = "none", .ops = &ops};

static struct ndx_variant *variant_of(struct ndx_negotiation *negotiation)
{
	/* The table stays as long as the plugin is registered. */
	static struct ndx_plugin plugin = {
		.abi = NDX_PLUGIN_ABI,
		.size = sizeof(struct ndx_plugin),
		.name = "grow",
		.version = "1",
		.vendor = "nobody",
		.list = &plain,
		.count = 1,
	};
	struct ndx_variant *variant = NULL;

	REFUSED(plugin, NDX_E_ABI_MISMATCH, ndx_negotiation_register(negotiation, &plugin));
	must(ndx_negotiation_register(negotiation, &plugin), "register a plugin");
	must(ndx_negotiation_get_variant(negotiation, "grow", "plain", NULL, 0, &variant),
	     "get its variant");
	return variant;
}

static void negotiations(void)
{
	const char *const servers[] = {"127.0.0.1:1"};
	struct ndx_negotiation_server_attr server_attr;
	struct ndx_negotiation_server_stats stats;
	struct ndx_session_error error;
	struct ndx_negotiation_server *server = NULL;
	struct ndx_negotiation *negotiation = NULL;
	struct ndx_session_attr attr;
	struct ndx_session *session = NULL;
	struct ndx_variant *variant;

	must(ndx_negotiation_create(&negotiation), "create a framework");
	variant = variant_of(negotiation);
	ndx_session_attr_init(&attr);
	attr.variant = variant;
	attr.servers = servers;
	attr.server_count = 1;
	REFUSED(attr, NDX_E_INVALID_PARAMETER, ndx_session_create(&attr, &session));
	must(ndx_session_create(&attr, &session), "create a session");
	PREPARE(error);
	must(ndx_session_get_error(session, &error), "error of a session");
	must_hold(error.status == NDX_OK && error.text[0] == '\0', "wrong error of a session");
	LEFT_ALONE(error);
	ndx_session_close(session);
	ndx_negotiation_server_attr_init(&server_attr);
	server_attr.address = "127.0.0.1:0";
	server_attr.variants = &variant;
	server_attr.variant_count = 1;
	REFUSED(server_attr, NDX_E_INVALID_PARAMETER,
	        ndx_negotiation_server_create(&server_attr, &server));
	must(ndx_negotiation_server_create(&server_attr, &server), "create a server");
	PREPARE(stats);
	must(ndx_negotiation_server_get_stats(server, &stats), "counters of a server");
	must_hold(stats.accepted == 0 && stats.threads >= 1, "wrong counters of a server");
	LEFT_ALONE(stats);
	ndx_negotiation_server_close(server);
	ndx_variant_close(variant);
	must(ndx_negotiation_close(negotiation), "close the framework");
}

static void ignore(void *context, const struct ndx_reassembly_event *event)
{
	(void)context;
	(void)event;
}

static void reassemblies(void)
{
	struct ndx_reassembly *reassembly = NULL;
	struct ndx_reassembly_attr attr;
	struct ndx_reassembly_stats stats;

	ndx_reassembly_attr_init(&attr);
	attr.on_event = ignore;
	REFUSED(attr, NDX_E_INVALID_PARAMETER, ndx_reassembly_create(&attr, &reassembly));
	must(ndx_reassembly_create(&attr, &reassembly), "create a reassembly");
	PREPARE(stats);
	must(ndx_reassembly_get_stats(reassembly, &stats), "counters of a reassembly");
	must_hold(stats.packets == 0 && stats.rdmap[15] == 0, "wrong counters of a reassembly");
	LEFT_ALONE(stats);
	ndx_reassembly_close(reassembly);
}

void grow_attributes(struct ndx_adapter *adapter)
{
	connectors(adapter);
	shared_queues(adapter);
	frames(adapter);
	negotiations();
	reassemblies();
}
