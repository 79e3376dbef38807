/* SPDX-License-Identifier: BSD-2-Clause */
/* negotiated.proof_*, negotiated.session_over_tls: what a session makes sure of before its queue
 * pairs are used: that the path passes packets, and the peer at the other end of the channel. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ndx/tls.h>

#include "cases.h"
#include "house.h"
#include "same_plugin.h"
#include "traffic.h"

enum { ENTRIES = 128 };

/* The latest entry of that kind. */
static bool find_entry(const struct ndx_session *s, enum ndx_history_kind kind,
                       struct ndx_history_entry *out)
{
	struct ndx_history_entry e[ENTRIES];
	size_t count = ENTRIES;

	if (ndx_session_get_history(s, e, &count, NULL) != NDX_OK)
		return false;
	while (count > 0) {
		*out = e[--count];
		if (out->kind == kind)
			return true;
	}
	return false;
}

/* ---- the path ---- */

static bool told_by_server(struct check *c, struct ndx_negotiation_server *server, const char *what)
{
	char *json = NULL;
	bool has;

	if (!check_status(c, ndx_negotiation_server_snapshot(server, &json), NDX_OK, "snapshot"))
		return false;
	has = strstr(json, what) != NULL;
	free(json);
	return check_that(c, has, "the server's snapshot does not say %s", what);
}

void case_negotiated_proof_is_told_at_both_ends(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct ndx_session *s = NULL;
	struct ndx_history_entry e;
	struct house h;

	if (house_open(&h, c, &same_plugin) && p && house_serve(&h, "127.0.0.1:0")) {
		house_give(&h, &p->b);
		if (house_session(&h, &p->a, &s) &&
		    check_status(c, ndx_session_run(s), NDX_OK, "run")) {
			if (!find_entry(s, NDX_HISTORY_PROOF, &e))
				check_skip(c, "connections of this stack prove nothing");
			else if (check_that(c, strcmp(e.text, "written 2 of 2, seen 2 of 2") == 0,
			                    "the client's proof: %s", e.text) &&
			         check_that(c,
			                    find_entry(s, NDX_HISTORY_VERDICT, &e) &&
			                            e.status == NDX_OK,
			                    "there is no good verdict at the client") &&
			         told_by_server(c, h.server, "written 2 of 2, seen 2 of 2") &&
			         told_by_server(c, h.server, "pass in both directions") &&
			         message_passes(&p->a, &p->b, 100))
				(void)pair_disconnect(p);
		}
	}
	pair_close_all(c);
	ndx_session_close(s);
	house_close(&h);
}

/* The client takes another key for the server's; both ends agree on everything else. */
static enum ndx_status wrong_key(void *session, const struct ndx_exchange *x, const void *peer,
                                 size_t length, struct ndx_exchange_reply *reply)
{
	const enum ndx_status st = same_info(session, x, peer, length, reply);

	if (st == NDX_OK && reply->completed && x->role == NDX_ROLE_CLIENT &&
	    x->peer->kind == NDX_DESCRIPTION_VERBS_RC && x->peer->mailbox_rkey != 0)
		x->peer->mailbox_rkey ^= 0x5a5a00;
	return st;
}

static const struct ndx_variant_ops lying_ops = {.info = wrong_key, .ready = same_ready};
static const struct ndx_plugin_variant lying_variant = {
	.name = "as-it-is", .help = "test", .ops = &lying_ops};
static const struct ndx_plugin lying_plugin = {.abi = NDX_PLUGIN_ABI,
                                               .size = sizeof(struct ndx_plugin),
                                               .name = "lying",
                                               .version = "1",
                                               .vendor = "test",
                                               .list = &lying_variant,
                                               .count = 1};

/* The direction is named, and its cause. */
static void check_denial(struct check *c, const struct ndx_session *s, enum ndx_status st)
{
	struct ndx_session_error e = {.size = sizeof(e)};
	struct ndx_history_entry verdict;

	(void)ndx_session_get_error(s, &e);
	if (check_status(c, st, NDX_E_ACCESS_VIOLATION, "run") &&
	    check_that(c, e.layer == NDX_LAYER_PROVIDER && e.stage == NDX_STAGE_VALIDATE,
	               "it fails in layer %s, stage %s", ndx_error_layer_name(e.layer),
	               ndx_stage_name(e.stage)) &&
	    check_that(c, strstr(e.text, "client to server") && strstr(e.text, "key"),
	               "the text does not name direction and key: %s", e.text))
		(void)check_that(c,
		                 find_entry(s, NDX_HISTORY_VERDICT, &verdict) &&
		                         verdict.status == NDX_E_ACCESS_VIOLATION,
		                 "there is no bad verdict in the history");
}

void case_negotiated_proof_fails_with_a_wrong_key(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct ndx_peer_description peer;
	struct ndx_session *s = NULL;
	enum ndx_status st;
	struct house h;

	if (house_open(&h, c, &lying_plugin) && p && house_serve(&h, "127.0.0.1:0")) {
		house_give(&h, &p->b);
		if (house_session(&h, &p->a, &s)) {
			st = ndx_session_run(s);
			if (ndx_session_get_agreement(s, NULL, &peer, NULL) == NDX_OK &&
			    (peer.kind != NDX_DESCRIPTION_VERBS_RC || peer.mailbox_rkey == 0))
				check_skip(c, "ends of this stack have no key for the proof");
			else
				check_denial(c, s, st);
		}
	}
	pair_close_all(c);
	ndx_session_close(s);
	house_close(&h);
}

/* ---- the channel ---- */

/* A session whose client has the keys of this file. */
static enum ndx_status run_with(struct house *h, struct side *side, const char *keys,
                                struct ndx_session **s)
{
	const char *const address = h->address;
	struct ndx_session_attr attr;
	struct ndx_tls_attr tls;

	ndx_tls_attr_init(&tls);
	tls.psk_file = keys;
	house_session_attr(h, side, &address, &attr);
	attr.tls = &tls;
	if (!check_status(h->c, ndx_session_create(&attr, s), NDX_OK, "a session"))
		return NDX_E_UNSUCCESSFUL;
	return ndx_session_run(*s);
}

static void check_channel(struct check *c, struct house *h, struct pair *p, const char *keys,
                          const char *others)
{
	struct ndx_session *s = NULL;
	struct ndx_history_entry e;

	/* The wrong key first: it takes no queue pair. */
	if (check_status(c, run_with(h, &p->a, others, &s), NDX_E_CONNECTION_REFUSED,
	                 "run with a wrong key") &&
	    check_that(c, find_entry(s, NDX_HISTORY_TLS, &e) && e.status != NDX_OK,
	               "there is no failed handshake in the history")) {
		ndx_session_close(s);
		s = NULL;
		if (check_status(c, run_with(h, &p->a, keys, &s), NDX_OK, "run") &&
		    check_that(c,
		               find_entry(s, NDX_HISTORY_TLS, &e) && e.status == NDX_OK &&
		                       strncmp(e.text, "TLS 1.3, ", 9) == 0,
		               "there is no handshake in the history") &&
		    message_passes(&p->a, &p->b, 100))
			(void)pair_disconnect(p);
	}
	pair_close_all(c);
	ndx_session_close(s);
}

void case_negotiated_session_over_tls(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct ndx_tls_attr tls;
	char keys[64] = "";
	char others[64] = "";
	struct house h;

	ndx_tls_attr_init(&tls);
	tls.psk_file = keys;
	if (house_open(&h, c, &same_plugin) && p &&
	    check_that(c,
	               house_key_file(keys, "case:000102030405060708090a0b0c0d0e0f\n") &&
	                       house_key_file(others, "case:ff0102030405060708090a0b0c0d0e0f\n"),
	               "the files of the keys cannot be written")) {
		h.tls = &tls;
		if (house_serve(&h, "127.0.0.1:0")) {
			house_give(&h, &p->b);
			check_channel(c, &h, p, keys, others);
		}
	}
	pair_close_all(c);
	house_close(&h);
	(void)unlink(keys);
	(void)unlink(others);
}
