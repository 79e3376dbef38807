/* SPDX-License-Identifier: BSD-2-Clause */
/* The client: a session from hello to bye, and the transfers in between. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "negotiate.h"
#include "sample_json.h"
#include "sample_options.h"
#include "sample_report.h"

#define WHO "ndx-negotiate client"
#define SERVERS_MOST 16

/* Split "a:1,b:2" into a list, in place. */
static size_t cut(char *text, const char **list)
{
	char *rest = text;
	size_t count = 0;

	while (rest != NULL && count < SERVERS_MOST)
		list[count++] = strsep(&rest, ",");
	return rest == NULL ? count : 0;
}

static enum ndx_status make_session(const struct place *place, const struct end *end,
                                    const char *const *servers, size_t count,
                                    struct ndx_session **out)
{
	struct ndx_session_attr attr;
	struct sample_tls_choice tls;

	if (sample_tls_choose(WHO, &place->options->tls, false, &tls) != SAMPLE_EXIT_OK)
		return NDX_E_INVALID_PARAMETER;
	ndx_session_attr_init(&attr);
	attr.variant = place->negotiation.variant;
	attr.servers = servers;
	attr.server_count = count;
	attr.connector = end->connector;
	attr.qp = end->qp;
	attr.memory = end_describe(end);
	attr.attempts = place->options->attempts;
	attr.stage_timeout_ms = place->options->timeout_ms;
	attr.tls = tls.attr;
	attr.allow_plaintext = place->options->tls.allow_plaintext;
	return ndx_session_create(&attr, out);
}

static void show_agreement(const struct place *place, const struct ndx_session *session)
{
	struct ndx_peer_description own, peer;
	struct ndx_agreement agreed;

	if (ndx_session_get_agreement(session, &own, &peer, &agreed) != NDX_OK)
		return;
	printf(WHO ": %s, negotiated by %s/%s with %s: path MTU %u, reads %u and %u\n",
	       place->info.uri, ndx_variant_plugin_name(place->negotiation.variant),
	       ndx_variant_name(place->negotiation.variant), ndx_session_get_server(session),
	       agreed.mtu, agreed.client_reads, agreed.server_reads);
	fflush(stdout);
}

/* Connected: transfer the data, run stage done, disconnect. */
static int use(struct end *end, struct ndx_session *session)
{
	struct ndx_peer_description peer;
	struct tally tally = {0};
	enum ndx_status st;
	int rc = end_watch(end);

	show_agreement(end->place, session);
	(void)ndx_session_get_agreement(session, NULL, &peer, NULL);
	if (peer.memory.length != 0 && peer.memory.length != end->size) {
		fprintf(stderr, WHO ": the server has messages of %llu bytes; say --size %llu\n",
		        (unsigned long long)peer.memory.length,
		        (unsigned long long)peer.memory.length);
		return SAMPLE_EXIT_USAGE;
	}
	if (rc == SAMPLE_EXIT_OK)
		rc = transfer_as_client(end, &peer.memory, &tally);
	printf(WHO ": %u messages of %u bytes each way, %u writes, %u reads: %u wrong\n",
	       tally.messages, end->size, tally.writes, tally.reads, tally.wrong);
	(void)fflush(stdout);
	sample_json_add("client",
	                json_pack("{s:s, s:I, s:I, s:I, s:I, s:I}", "adapter", end->place->info.uri,
	                          "messages", (json_int_t)tally.messages, "bytes",
	                          (json_int_t)end->size, "writes", (json_int_t)tally.writes,
	                          "reads", (json_int_t)tally.reads, "wrong",
	                          (json_int_t)tally.wrong));
	if (rc != SAMPLE_EXIT_OK) {
		fprintf(stderr, WHO ": connection: %s\n",
		        ndx_disconnect_reason_name(
				ndx_connector_get_disconnect_reason(end->connector)));
		return rc;
	}
	st = ndx_session_execute(session, NDX_STAGE_DONE);
	if (st != NDX_OK) {
		sample_session_failed(WHO, session);
		return SAMPLE_EXIT_FAILED;
	}
	rc = end_disconnect(end);
	if (rc == SAMPLE_EXIT_OK)
		printf(WHO ": done; disconnected: %s\n",
		       ndx_disconnect_reason_name(
			       ndx_connector_get_disconnect_reason(end->connector)));
	return rc;
}

static int run(const struct place *place, const char *const *servers, size_t count)
{
	struct ndx_session *session = NULL;
	enum ndx_status st;
	struct end end;
	int rc = end_make(&end, place);

	if (rc != SAMPLE_EXIT_OK)
		return rc;
	st = make_session(place, &end, servers, count, &session);
	if (st != NDX_OK) {
		rc = sample_failed(WHO, st, "make a session");
		goto drop_end;
	}
	stop_cancels(session);
	st = ndx_session_run(session);
	if (st == NDX_OK) {
		rc = use(&end, session);
	} else {
		sample_session_failed(WHO, session);
		rc = SAMPLE_EXIT_FAILED;
	}
	if (st == NDX_OK && place->options->history)
		sample_session_history(WHO, session);
	stop_cancels(NULL);
	ndx_session_close(session);
drop_end:
	end_drop(&end);
	return rc;
}

int client_run(const struct negotiate_options *options)
{
	const char *servers[SERVERS_MOST];
	char *text = strdup(options->address);
	struct place place;
	size_t count;
	int rc;

	if (text == NULL)
		return SAMPLE_EXIT_FAILED;
	count = cut(text, servers);
	if (count == 0) {
		fprintf(stderr, WHO ": more than %d servers\n", SERVERS_MOST);
		free(text);
		return SAMPLE_EXIT_USAGE;
	}
	rc = place_open(&place, WHO, options);
	if (rc == SAMPLE_EXIT_OK) {
		rc = run(&place, servers, count);
		place_close(&place);
	}
	free(text);
	return rc;
}
