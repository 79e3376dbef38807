/* SPDX-License-Identifier: BSD-2-Clause */
/* Examples of the manual pages: sessions of the negotiation. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <ndx/ndx.h>

/* Negotiate a queue pair with one of two servers: after that it is connected. */
enum ndx_status example_session(struct ndx_variant *variant, struct ndx_connector *connector,
                                struct ndx_qp *qp, struct ndx_session **out)
{
	static const char *const servers[] = {"10.0.0.1:7471", "10.0.0.2:7471"};
	struct ndx_session_attr attr;
	enum ndx_status st;

	ndx_session_attr_init(&attr);
	attr.variant = variant;
	attr.servers = servers;
	attr.server_count = 2;
	attr.connector = connector;
	attr.qp = qp;
	attr.allow_plaintext = true; /* or attr.tls: see ndx_tls_attr_init() */
	st = ndx_session_create(&attr, out);
	if (st != NDX_OK)
		return st;
	st = ndx_session_run(*out); /* connect, and the stages info, validate and ready */
	if (st == NDX_OK)
		printf("session %" PRIu64 " with %s\n", ndx_session_get_id(*out),
		       ndx_session_get_server(*out));
	else
		ndx_session_close(*out);
	return st;
}

/* The same step by step, with a stage after the transfers. */
enum ndx_status example_stages(struct ndx_session *session)
{
	enum ndx_status st = ndx_session_connect(session);

	for (int stage = NDX_STAGE_INFO; st == NDX_OK && stage <= NDX_STAGE_DONE; stage++) {
		st = ndx_session_execute(session, (enum ndx_stage)stage);
		printf("%s: %s, %s\n", ndx_stage_name((enum ndx_stage)stage), ndx_status_name(st),
		       ndx_session_state_name(ndx_session_get_state(session)));
	}
	return st;
}

/* Without blocking; the program does other things until the operation completes. */
enum ndx_status example_session_overlapped(struct ndx_session *session)
{
	struct ndx_overlapped ov = {0};
	enum ndx_status st = ndx_session_run_overlapped(session, &ov);

	if (st == NDX_PENDING && ndx_overlapped_wait(&ov, 5000) == NDX_PENDING)
		ndx_session_cancel(session); /* from any thread */
	return st == NDX_PENDING ? ndx_overlapped_wait(&ov, NDX_INFINITE) : st;
}

/* Without blocking, step by step. */
enum ndx_status example_session_steps(struct ndx_session *session)
{
	struct ndx_overlapped ov = {0};
	enum ndx_status st = ndx_session_connect_overlapped(session, &ov);

	if (st == NDX_PENDING)
		st = ndx_overlapped_wait(&ov, NDX_INFINITE);
	if (st == NDX_OK)
		st = ndx_session_execute_overlapped(session, NDX_STAGE_INFO, &ov);
	return st == NDX_PENDING ? ndx_overlapped_wait(&ov, NDX_INFINITE) : st;
}

/* Two more queue pairs for a session that is up, and away with them. */
enum ndx_status example_more(struct ndx_session *session, const struct ndx_session_queue_pair *list)
{
	struct ndx_session_error error = {.size = sizeof(error)};
	uint32_t first;
	enum ndx_status st = ndx_session_add_queue_pairs(session, list, 2, &first);

	if (st == NDX_OK) {
		printf("%u queue pairs\n", ndx_session_get_queue_pair_count(session));
		return ndx_session_remove_queue_pairs(session, first, 2);
	}
	if (ndx_session_get_add_error(session, &error) == NDX_OK)
		fprintf(stderr, "%s\n", error.text);
	return st;
}

/* Add queue pairs without blocking. */
enum ndx_status example_more_overlapped(struct ndx_session *session,
                                        const struct ndx_session_queue_pair *list)
{
	struct ndx_overlapped ov = {0};
	enum ndx_status st = ndx_session_add_queue_pairs_overlapped(session, list, 2, &ov);

	return st == NDX_PENDING ? ndx_overlapped_wait(&ov, NDX_INFINITE) : st;
}

/* What was agreed, for the session and for its second queue pair. */
enum ndx_status example_agreement(const struct ndx_session *session)
{
	struct ndx_peer_description own, peer;
	struct ndx_agreement agreed;
	enum ndx_status st = ndx_session_get_agreement(session, &own, &peer, &agreed);

	if (st != NDX_OK)
		return st;
	printf("MTU %u; the peer's memory is at 0x%" PRIx64 "\n", agreed.mtu, peer.memory.address);
	return ndx_session_get_queue_pair_agreement(session, 1, &own, &peer, &agreed);
}

/* Why a session failed. */
void example_session_error(const struct ndx_session *session)
{
	struct ndx_session_error error = {.size = sizeof(error)};

	if (ndx_session_get_error(session, &error) == NDX_OK)
		fprintf(stderr, "%s %s, stage %s, layer %s, %s: %s\n",
		        error.remote ? "the server:" : "here:", ndx_status_name(error.status),
		        ndx_stage_name(error.stage), ndx_error_layer_name(error.layer),
		        ndx_plugin_error_name(error.plugin_error), error.text);
}

/* What the session went through: as text, then everything as JSON. */
enum ndx_status example_session_history(const struct ndx_session *session)
{
	struct ndx_history_entry list[64];
	char text[256], *json;
	size_t count = 64;
	uint64_t total;
	enum ndx_status st = ndx_session_get_history(session, list, &count, &total);

	if (st != NDX_OK)
		return st;
	for (size_t i = 0; i < count; i++)
		printf("%s: %s\n", ndx_history_kind_name(list[i].kind),
		       ndx_history_entry_text(&list[i], text, sizeof(text)));
	st = ndx_session_snapshot(session, &json);
	if (st == NDX_OK) {
		puts(json);
		free(json);
	}
	return st;
}

/* What a binding for another language calls. */
void example_session_sizes(struct ndx_session_attr *attr, size_t size)
{
	ndx_session_attr_init_sized(attr, size);
}
