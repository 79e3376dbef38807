/* SPDX-License-Identifier: BSD-2-Clause */
/* What the proofs of both ends say about the path between two queue pairs. */
#include "proof.h"

#include <stdio.h>

#include <ndx/spi/provider.h>

enum finding {
	PASSES,
	UNANSWERED, /* all has arrived, but the writer did not get the acknowledgement */
	DENIED,     /* the receiver's device refuses the write */
	ONLY_SMALL, /* a few bytes arrive, a packet of the path MTU does not */
	ONLY_ACKS,  /* nothing arrives, but acknowledgements in the same direction do */
	NOTHING,
};

/*
 * The writer knows from the answer of the receiver's device, the receiver from its own queue pair,
 * which is broken then. Either may be the only one: the answer can get lost, or come after the
 * receiver's end of the connection, and a queue pair of the receiver may have ended before.
 */
static bool is_denied(const struct frame_proof *writer, const struct frame_proof *receiver)
{
	return writer->denied || receiver->seen == NDX_PROVED_REFUSED;
}

/* A direction, by what the writer and the receiver of the same direction say. */
static enum finding look(const struct frame_proof *writer, const struct frame_proof *receiver)
{
	if (receiver->seen == NDX_PROVED_WHOLE)
		return writer->written == NDX_PROVED_WHOLE ? PASSES : UNANSWERED;
	if (is_denied(writer, receiver))
		return DENIED;
	if (receiver->seen == NDX_PROVED_SMALL)
		return ONLY_SMALL;
	/* The writer of this direction acknowledges what the receiver writes. */
	return receiver->written != NDX_PROVED_NOTHING ? ONLY_ACKS : NOTHING;
}

/* The direction that is worse decides on the causes. */
static const char *causes_of(enum finding finding)
{
	static const char nothing_arrives[] =
		"check the GIDs and their addresses, the path MTU, firewalls (UDP 4791), the PSNs, "
		"the keys";
	static const char *const causes[] = {
		[PASSES] = "",
		[UNANSWERED] = "packets are lost on the way",
		[DENIED] = "the device there refuses the key of the memory, or takes no writes",
		[ONLY_SMALL] = "small ones do; lower the path MTU of the queue pairs",
		[ONLY_ACKS] = "acknowledgements do; check the PSNs and the keys",
		[NOTHING] = nothing_arrives,
	};

	return causes[finding];
}

/* With a connection manager: request, answer, and a message as long as a packet each way. The first
 * that does not arrive tells; nothing behind it was sent. */
static enum ndx_status judge_messages(const struct frame_proof *client,
                                      const struct frame_proof *server, char why[PROOF_TEXT])
{
	const bool answer = server->seen != NDX_PROVED_NOTHING;
	const bool whole = answer && client->seen != NDX_PROVED_NOTHING;
	const bool last = whole && server->seen == NDX_PROVED_WHOLE;

	if (last && client->seen == NDX_PROVED_WHOLE)
		return NDX_OK;
	(void)snprintf(
		why, PROOF_TEXT, "%s do not pass from %s: %s%s",
		whole ? "packets of the path MTU" : "RDMA packets",
		last || (answer && !whole) ? "server to client" : "client to server",
		whole ? "small ones do; make the network pass longer ones, or lower its MTU at "
			"both ends"
		      : "check the addresses of both adapters, and firewalls (UDP 4791)",
		last || (answer && !whole) ? "" : "; the way back was not tried");
	return NDX_E_HOST_UNREACHABLE;
}

/* Without one: each end writes to the other, whatever arrives. */
static enum ndx_status judge_writes(const struct frame_proof *client,
                                    const struct frame_proof *server, uint32_t mtu,
                                    char why[PROOF_TEXT])
{
	const enum finding forth = look(client, server);
	const enum finding back = look(server, client);
	const enum finding worse = forth > back ? forth : back;
	const bool denied_forth = is_denied(client, server);
	const char *where = "pass in neither direction";
	const char *what = "RDMA packets";
	char packets[64];

	if (worse == PASSES)
		return NDX_OK;
	/* A device that refuses a write breaks its own queue pair, whose writes are then lost. */
	if (denied_forth != is_denied(server, client)) {
		(void)snprintf(why, PROOF_TEXT,
		               "RDMA packets do not pass from %s: the device there refuses the key "
		               "of the memory, or takes no writes",
		               denied_forth ? "client to server" : "server to client");
		return NDX_E_ACCESS_VIOLATION;
	}
	/* An acknowledgement that was lost blames the other direction, unless that one passes. */
	if (worse == UNANSWERED) {
		(void)snprintf(why, PROOF_TEXT,
		               "the path loses RDMA packets: the writes arrived, not all "
		               "acknowledgements did in time");
		return NDX_E_IO_TIMEOUT;
	}
	if (worse == ONLY_SMALL) {
		(void)snprintf(packets, sizeof(packets), "packets of the path MTU, %u bytes,", mtu);
		what = packets;
	}
	if (back == PASSES || back == UNANSWERED)
		where = "do not pass from client to server";
	else if (forth == PASSES || forth == UNANSWERED)
		where = "do not pass from server to client";
	(void)snprintf(why, PROOF_TEXT, "%s %s: %s", what, where, causes_of(worse));
	return worse == DENIED ? NDX_E_ACCESS_VIOLATION : NDX_E_HOST_UNREACHABLE;
}

enum ndx_status proof_judge(enum ndx_role role, const struct frame_proof *own,
                            const struct frame_proof *peer, const struct ndx_agreement *agreed,
                            char why[PROOF_TEXT])
{
	const struct frame_proof *client = role == NDX_ROLE_CLIENT ? own : peer;
	const struct frame_proof *server = role == NDX_ROLE_CLIENT ? peer : own;

	if (agreed->kind == NDX_DESCRIPTION_VERBS_RC)
		return judge_writes(client, server, agreed->mtu, why);
	return judge_messages(client, server, why);
}

void proof_describe(const struct frame_proof *own, char text[PROOF_TEXT])
{
	static const char *const much[] = {"nothing", "a few bytes", "all",
	                                   "nothing (refused here)"};
	const unsigned most = sizeof(much) / sizeof(much[0]) - 1;

	(void)snprintf(text, PROOF_TEXT,
	               "of its writes the peer acknowledged %s%s, of the peer's %s arrived",
	               much[own->written < most ? own->written : most],
	               own->denied ? " (access denied)" : "",
	               much[own->seen < most ? own->seen : most]);
}
