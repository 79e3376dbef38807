/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: cookbook-options [URI]
 * Immediate data, inline sends, and silent success: what each saves, and what to watch.
 */
#include "cookbook.h"

#include <stdio.h>
#include <string.h>

#define MESSAGES 100u

/* Immediate data: 32 bits beside the message, here its number. They need no memory. */
static void send_a_number(struct pair *pair)
{
	struct ndx_result result;

	must(ndx_qp_receive(pair->server.qp, NULL, NULL, 0), "post a receive without memory");
	must(ndx_qp_send_immediate(pair->client.qp, NULL, NULL, 0, 42, 0), "send a number");
	(void)end_result(&pair->client);
	result = end_result(&pair->server);
	check((result.flags & NDX_RESULT_IMMEDIATE) != 0 && result.immediate == 42, "not 42");
	printf("a message of %u bytes with the number %u\n", result.bytes_transferred,
	       result.immediate);
}

/* Inline: the post copies the bytes, so they need no registration and may change at once. */
static void send_inline(struct pair *pair, struct ndx_mr *mr, char *into)
{
	char text[16] = "on the stack";
	struct ndx_sge from = {text, sizeof(text), 0};
	struct ndx_sge to = {into, 64, ndx_mr_get_local_token(mr)};

	must(ndx_qp_receive(pair->server.qp, NULL, &to, 1), "post a receive");
	must(ndx_qp_send(pair->client.qp, NULL, &from, 1, NDX_OP_INLINE), "send inline");
	memset(text, 0, sizeof(text)); /* legal before the result is there */
	(void)end_result(&pair->client);
	(void)end_result(&pair->server);
	printf("inline: \"%s\"\n", into);
}

/* Silent success: no result for a request that succeeds. Every now and then a request without the
 * flag gives back the places of all before it in the queue. */
static void send_silently(struct pair *pair, uint32_t depth)
{
	unsigned results = 0;

	for (unsigned i = 0; i < MESSAGES; i++) {
		const bool last_of_some = (i + 1) % (depth / 2) == 0 || i + 1 == MESSAGES;

		must(ndx_qp_receive(pair->server.qp, NULL, NULL, 0), "post a receive");
		must(ndx_qp_send(pair->client.qp, NULL, NULL, 0,
		                 last_of_some ? 0 : NDX_OP_SILENT_SUCCESS),
		     "send silently");
		(void)end_result(&pair->server);
		if (!last_of_some)
			continue;
		(void)end_result(&pair->client); /* those before it have succeeded, too */
		results++;
	}
	printf("%u messages, %u results\n", MESSAGES, results);
}

int main(int argc, char **argv)
{
	static char into[64];
	struct ndx_qp_attr attr;
	struct pair pair;
	struct ndx_mr *mr;

	pair_open(&pair, adapter_of(argc, argv));
	ndx_qp_close(pair.client.qp);
	ndx_qp_attr_init(&attr);
	attr.inline_size = 16; /* the longest inline request; 0 is the default */
	attr.initiator_depth = 16;
	end_new_qp(&pair.client, &attr);
	must(ndx_mr_register_new(pair.adapter, into, sizeof(into), NDX_MR_ALLOW_LOCAL_WRITE, &mr),
	     "register memory");
	pair_connect(&pair, NULL, 0);
	send_a_number(&pair);
	send_inline(&pair, mr, into);
	send_silently(&pair, attr.initiator_depth);
	ndx_mr_close(mr);
	pair_close(&pair);
	return 0;
}
