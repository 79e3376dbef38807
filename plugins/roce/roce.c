/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plugin for a standard peer: two queue pairs that are described by numbers and addresses
 * alone, without knowledge about a vendor.
 *
 * Stage info has three rounds: the sides exchange descriptions; each side computes the agreement
 * and sends it; each side compares the two agreements. Stage ready is one empty message.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/plugin.h>

#include "payload.h"

#define DEVICES "/sys/class/infiniband"

struct instance {
	uint32_t kind;
	uint32_t mtu; /* upper limit; 0: the port's MTU */
	bool no_proof;
};

struct session {
	const struct instance *instance;
	struct ndx_agreement agreed;
};

static const char *kind_name(uint32_t kind)
{
	static const char *const names[] = {"nothing", "a rendezvous", "a verbs queue pair"};

	return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "something unknown";
}

static const char *variant_of(uint32_t kind)
{
	return kind == NDX_DESCRIPTION_VERBS_RC ? "verbs-rc" : "fabric-msg";
}

/* ---- variants and instances ---- */

static enum ndx_status verbs_available(void *plugin, const struct ndx_plugin_variant *variant,
                                       char *why, size_t room)
{
	const struct dirent *entry;
	bool found = false;
	DIR *dir = opendir(DEVICES);

	(void)plugin;
	(void)variant;
	while (dir != NULL && !found && (entry = readdir(dir)) != NULL)
		found = entry->d_name[0] != '.';
	if (dir != NULL)
		(void)closedir(dir);
	if (found)
		return NDX_OK;
	(void)snprintf(why, room, "this machine has no RDMA device (%s is empty)", DEVICES);
	return NDX_E_DEVICE_NOT_READY;
}

static enum ndx_status create(void *plugin, const struct ndx_plugin_variant *variant,
                              const struct ndx_plugin_value *values, void **out, char *why,
                              size_t room)
{
	struct instance *instance = calloc(1, sizeof(*instance));

	(void)plugin;
	if (instance == NULL) {
		(void)snprintf(why, room, "out of memory");
		return NDX_E_NO_MEMORY;
	}
	instance->kind = NDX_DESCRIPTION_RENDEZVOUS;
	if (variant->params != NULL) {
		/* "port", "256", "512", ... */
		instance->kind = NDX_DESCRIPTION_VERBS_RC;
		instance->mtu = values[0].number == 0 ? 0 : 128u << values[0].number;
		instance->no_proof = values[1].number == 0;
	}
	*out = instance;
	return NDX_OK;
}

static void destroy(void *instance)
{
	free(instance);
}

static enum ndx_status begin_session(void *instance, const struct ndx_exchange *x, void **out,
                                     struct ndx_exchange_reply *reply)
{
	struct session *s = calloc(1, sizeof(*s));

	(void)x;
	if (s == NULL) {
		reply->error = NDX_PLUGIN_RESOURCES;
		(void)snprintf(reply->text, sizeof(reply->text), "out of memory");
		return NDX_E_NO_MEMORY;
	}
	s->instance = instance;
	*out = s;
	return NDX_OK;
}

static void end(void *session)
{
	free(session);
}

/* ---- stage info ---- */

static enum ndx_status give_up(struct ndx_exchange_reply *reply, enum ndx_plugin_error error,
                               const char *text)
{
	reply->error = error;
	(void)snprintf(reply->text, sizeof(reply->text), "%s", text);
	return error == NDX_PLUGIN_PEER_DATA ? NDX_E_REMOTE_ERROR : NDX_E_INVALID_CONFIG;
}

static enum ndx_status write_reply(const struct roce_payload *p, struct ndx_exchange_reply *reply)
{
	const char *why;

	if (reply->room < ROCE_PAYLOAD_MAX)
		return give_up(reply, NDX_PLUGIN_SERIALIZATION,
		               "messages of 96 bytes must be allowed");
	reply->length = roce_payload_write(reply->data, p, &why);
	if (reply->length > 0)
		return NDX_OK;
	(void)snprintf(reply->text, sizeof(reply->text),
	               "the own queue pair's description cannot be sent: %s", why);
	reply->error = NDX_PLUGIN_SERIALIZATION;
	return NDX_E_INVALID_CONFIG;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t own_mtu(const struct session *s, const struct ndx_exchange *x)
{
	return s->instance->mtu == 0 ? x->own->mtu : smaller(x->own->mtu, s->instance->mtu);
}

static enum ndx_status describe(const struct session *s, const struct ndx_exchange *x,
                                struct ndx_exchange_reply *reply)
{
	struct roce_payload p = {.message = ROCE_DESCRIPTION, .description = *x->own};

	if (x->own->kind == NDX_DESCRIPTION_NONE)
		return give_up(reply, NDX_PLUGIN_CONFIGURATION,
		               "the session has no queue pair to describe; give it one");
	if (x->own->kind != s->instance->kind) {
		(void)snprintf(reply->text, sizeof(reply->text),
		               "the own queue pair is described as %s, which this variant cannot "
		               "tell; take variant %s",
		               kind_name(x->own->kind), variant_of(x->own->kind));
		reply->error = NDX_PLUGIN_CONFIGURATION;
		return NDX_E_INVALID_CONFIG;
	}
	p.description.mtu = own_mtu(s, x);
	return write_reply(&p, reply);
}

/* Why the two ends cannot be connected; false: they can. */
static bool differ(const struct ndx_peer_description *own, const struct ndx_peer_description *peer,
                   char *text, size_t room)
{
	if (own->kind != peer->kind) {
		(void)snprintf(text, room, "here is %s, there is %s", kind_name(own->kind),
		               kind_name(peer->kind));
		return true;
	}
	if (own->kind == NDX_DESCRIPTION_RENDEZVOUS &&
	    strncmp(own->stack, peer->stack, sizeof(own->stack)) != 0) {
		(void)snprintf(text, room, "the stacks differ: %.16s here, %.16s there", own->stack,
		               peer->stack);
		return true;
	}
	if (own->kind == NDX_DESCRIPTION_VERBS_RC && (own->lid == 0) != (peer->lid == 0)) {
		(void)snprintf(text, room, "the links differ: %s here, %s there",
		               own->lid == 0 ? "Ethernet" : "InfiniBand",
		               peer->lid == 0 ? "Ethernet" : "InfiniBand");
		return true;
	}
	return false;
}

static void compute_agreement(struct session *s, const struct ndx_exchange *x)
{
	const bool is_client = x->role == NDX_ROLE_CLIENT;
	const struct ndx_peer_description *client = is_client ? x->own : x->peer;
	const struct ndx_peer_description *server = is_client ? x->peer : x->own;

	s->agreed = (struct ndx_agreement){
		.kind = x->own->kind,
		.mtu = smaller(x->own->mtu, x->peer->mtu),
		.client_reads = smaller(client->outbound_read_limit, server->inbound_read_limit),
		.server_reads = smaller(server->outbound_read_limit, client->inbound_read_limit)};
}

static enum ndx_status parse(const void *peer, size_t length, enum roce_message wanted,
                             struct roce_payload *p, struct ndx_exchange_reply *reply)
{
	const char *why = "it comes out of turn";

	if (peer != NULL && roce_payload_parse(peer, length, p, &why) && p->message == wanted)
		return NDX_OK;
	(void)snprintf(reply->text, sizeof(reply->text), "the peer's %s cannot be taken: %s",
	               wanted == ROCE_DESCRIPTION ? "description" : "agreement",
	               why != NULL ? why : "it comes out of turn");
	reply->error = NDX_PLUGIN_PEER_DATA;
	return NDX_E_REMOTE_ERROR;
}

static enum ndx_status take_description(struct session *s, const struct ndx_exchange *x,
                                        const void *peer, size_t length,
                                        struct ndx_exchange_reply *reply)
{
	struct roce_payload p;
	enum ndx_status st = parse(peer, length, ROCE_DESCRIPTION, &p, reply);

	if (st != NDX_OK)
		return st;
	if (differ(x->own, &p.description, reply->text, sizeof(reply->text))) {
		reply->error = NDX_PLUGIN_CONFIGURATION;
		return NDX_E_INVALID_CONFIG;
	}
	*x->peer = p.description;
	/* The framework agrees on the smaller of the port's MTU and this value. */
	if (x->own->kind == NDX_DESCRIPTION_VERBS_RC)
		x->peer->mtu = smaller(p.description.mtu, own_mtu(s, x));
	compute_agreement(s, x);
	p = (struct roce_payload){.message = ROCE_AGREEMENT, .agreed = s->agreed};
	return write_reply(&p, reply);
}

/* NULL if the agreements are equal; else what differs. */
static const char *disagree(const struct ndx_agreement *a, const struct ndx_agreement *b)
{
	if (a->kind != b->kind)
		return "the kind of queue pair";
	if (a->mtu != b->mtu)
		return "the MTU";
	if (a->client_reads != b->client_reads)
		return "the reads of the client";
	if (a->server_reads != b->server_reads)
		return "the reads of the server";
	return NULL;
}

static enum ndx_status take_agreement(const struct session *s, const void *peer, size_t length,
                                      struct ndx_exchange_reply *reply)
{
	struct roce_payload p;
	enum ndx_status st = parse(peer, length, ROCE_AGREEMENT, &p, reply);
	const char *what;

	if (st != NDX_OK)
		return st;
	what = disagree(&s->agreed, &p.agreed);
	if (what != NULL) {
		(void)snprintf(reply->text, sizeof(reply->text),
		               "the two sides do not understand each other's %s in the same way",
		               what);
		reply->error = NDX_PLUGIN_PEER_DATA;
		return NDX_E_REMOTE_ERROR;
	}
	reply->completed = true;
	return NDX_OK;
}

static enum ndx_status info(void *session, const struct ndx_exchange *x, const void *peer,
                            size_t peer_length, struct ndx_exchange_reply *reply)
{
	struct session *s = session;

	reply->no_proof = s->instance->no_proof;
	switch (x->round) {
	case 0:
		return describe(s, x, reply);
	case 1:
		return take_description(s, x, peer, peer_length, reply);
	default:
		return take_agreement(s, peer, peer_length, reply);
	}
}

/* ---- stage ready ---- */

static enum ndx_status ready(void *session, const struct ndx_exchange *x, const void *peer,
                             size_t peer_length, struct ndx_exchange_reply *reply)
{
	const struct session *s = session;
	const char *what = disagree(&s->agreed, x->agreed);

	(void)peer;
	(void)peer_length;
	if (what != NULL) {
		(void)snprintf(reply->text, sizeof(reply->text),
		               "the framework has agreed on something else: %s", what);
		reply->error = NDX_PLUGIN_VENDOR;
		return NDX_E_INTERNAL_ERROR;
	}
	reply->completed = true;
	return NDX_OK;
}

/* A stage has no state but its round. */
static enum ndx_status reset(void *session, enum ndx_stage stage)
{
	(void)session;
	(void)stage;
	return NDX_OK;
}

static const struct ndx_plugin_param verbs_params[] = {
	{.name = "mtu",
         .type = NDX_PARAM_CHOICE,
         .choices = "port|256|512|1024|2048|4096",
         .initial = "port",
         .help = "path MTU in bytes, at most; port: what the port has"},
	{.name = "proof",
         .type = NDX_PARAM_BOOL,
         .initial = "true",
         .help = "try out both directions of the path in stage validate, if the peer does, too"},
	{.name = NULL},
};
static const struct ndx_variant_ops verbs_ops = {.available = verbs_available,
                                                 .create = create,
                                                 .destroy = destroy,
                                                 .begin = begin_session,
                                                 .end = end,
                                                 .info = info,
                                                 .ready = ready,
                                                 .reset = reset};
static const struct ndx_variant_ops fabric_ops = {.create = create,
                                                  .destroy = destroy,
                                                  .begin = begin_session,
                                                  .end = end,
                                                  .info = info,
                                                  .ready = ready,
                                                  .reset = reset};
static const struct ndx_plugin_variant variants[] = {
	{.name = "verbs-rc",
         .help = "a reliable connected queue pair: number, PSN, LID or GID, MTU",
         .params = verbs_params,
         .ops = &verbs_ops},
	{.name = "fabric-msg",
         .help = "an end that the stack connects: the server's address and two cookies",
         .ops = &fabric_ops},
};

const struct ndx_plugin ndx_plugin = {
	.abi = NDX_PLUGIN_ABI,
	.size = sizeof(struct ndx_plugin),
	.name = "roce",
	.version = "1.0",
	.vendor = "NDX",
	.flags = NDX_PLUGIN_MANY | NDX_PLUGIN_ADDS,
	.list = variants,
	.count = sizeof(variants) / sizeof(variants[0]),
};
