/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: cookbook-copy receive FILE [PORT [URI]]     prints its port
 *        cookbook-copy send FILE ADDRESS PORT [URI]
 * A file between two hosts: writes with immediate data into the receiver's slots, credits back.
 */
#include "cookbook.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 8u
#define SLOT_SIZE 65536u
#define END UINT32_MAX /* immediate data of the last message */

/** In the private data of the answer. Both hosts have the same byte order here. */
struct slots {
	uint64_t address;
	uint32_t token, count, size;
};

static char memory[SLOTS][SLOT_SIZE];
static uint64_t bytes; /* of the file, so far */

static struct ndx_mr *prepare(struct end *end, const char *uri, uint32_t rights)
{
	struct ndx_mr *mr;

	must(ndx_adapter_open(uri, &end->adapter), uri);
	must(ndx_cq_create_depth(end->adapter, 4 * SLOTS, &end->cq), "create a completion queue");
	end_new_qp(end, NULL);
	must(ndx_mr_register_new(end->adapter, memory, sizeof(memory), rights, &mr), "register");
	/* receives without memory: for the immediate data of writes, or for credits */
	for (unsigned i = 0; i <= SLOTS; i++)
		must(ndx_qp_receive(end->qp, NULL, NULL, 0), "post a receive");
	return mr;
}

static void finish(struct end *end, struct ndx_mr *mr)
{
	must(ndx_disconnect(end->connector, WAIT_MS), "disconnect");
	end_close(end);
	ndx_mr_close(mr);
	ndx_adapter_close(end->adapter);
}

static void receive_file(FILE *file, const char *uri, uint16_t port)
{
	struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(port)};
	socklen_t length = sizeof(here);
	struct ndx_listener *listener;
	struct end end;
	struct ndx_mr *mr = prepare(&end, uri, NDX_MR_ALLOW_REMOTE_WRITE);
	struct slots slots = {(uintptr_t)memory, ndx_mr_get_remote_token(mr), SLOTS, SLOT_SIZE};
	must(ndx_listen_on(end.adapter, (struct sockaddr *)&here, sizeof(here), 0, &listener),
	     "listen");
	must(ndx_listener_get_local_address(listener, (struct sockaddr *)&here, &length), "port");
	(void)printf("%u\n", ntohs(here.sin_port));
	(void)fflush(stdout);
	must(ndx_accept_from(end.adapter, listener, end.qp, &slots, sizeof(slots), 60000,
	                     &end.connector),
	     "accept");
	ndx_listener_close(listener);
	for (;;) {
		const struct ndx_result result = end_result(&end);
		if (result.request_type != NDX_REQUEST_RECEIVE)
			continue; /* a credit has gone */
		if (result.immediate == END)
			break;
		check((result.flags & NDX_RESULT_WRITTEN) != 0 && result.immediate < SLOTS &&
		              result.bytes_transferred <= SLOT_SIZE,
		      "not a write into a slot");
		check_file(fwrite(memory[result.immediate], 1, result.bytes_transferred, file) ==
		                   result.bytes_transferred,
		           "write to the file");
		bytes += result.bytes_transferred;
		must(ndx_qp_receive(end.qp, NULL, NULL, 0), "post a receive");
		must(ndx_qp_send_immediate(end.qp, NULL, NULL, 0, result.immediate, 0), "credit");
	}
	finish(&end, mr);
}

static void send_file(FILE *file, const char *uri, const char *address, uint16_t port)
{
	struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct slots slots;
	char data[256];
	size_t length = sizeof(data);
	struct end end;
	struct ndx_mr *mr = prepare(&end, uri, 0);
	uint32_t owed[SLOTS] = {0}; /* of each slot: its write's result, and its credit */

	check(inet_pton(AF_INET, address, &there.sin_addr) == 1, "not an address");
	must(ndx_connect_to(end.adapter, end.qp, (struct sockaddr *)&there, sizeof(there), NULL, 0,
	                    WAIT_MS, &end.connector),
	     "connect");
	must(ndx_connector_get_private_data(end.connector, data, &length), "private data");
	check(length >= sizeof(slots), "the receiver grants no slots");
	memcpy(&slots, data, sizeof(slots));
	check(slots.count == SLOTS && slots.size == SLOT_SIZE, "slots of another size");
	for (uint32_t slot = 0;; slot = (slot + 1) % SLOTS) {
		while (owed[slot] > 0) {
			const struct ndx_result result = end_result(&end);
			const bool credit = result.request_type == NDX_REQUEST_RECEIVE;
			check(!credit || result.immediate < SLOTS, "a credit for no slot");
			--*(credit ? &owed[result.immediate] : (uint32_t *)result.request_context);
			if (credit)
				must(ndx_qp_receive(end.qp, NULL, NULL, 0), "post a receive");
		}
		const size_t got = fread(memory[slot], 1, SLOT_SIZE, file);
		struct ndx_sge sge = {memory[slot], (uint32_t)got, ndx_mr_get_local_token(mr)};
		if (got == 0)
			break;
		must(ndx_qp_write_immediate(end.qp, &owed[slot], &sge, 1,
		                            slots.address + (uint64_t)slot * SLOT_SIZE, slots.token,
		                            slot, 0),
		     "post a write");
		bytes += got;
		owed[slot] = 2;
	}
	check_file(!ferror(file), "read the file");
	must(ndx_qp_send_immediate(end.qp, NULL, NULL, 0, END, 0), "the end");
	finish(&end, mr); /* the disconnect waits until the receiver has everything */
}

int main(int argc, char **argv)
{
	const bool receives = argc > 2 && strcmp(argv[1], "receive") == 0;
	const int port = receives ? 3 : 4; /* then URI, for both */

	check(receives || (argc > port && strcmp(argv[1], "send") == 0),
	      "usage: cookbook-copy receive FILE [PORT [URI]]\n"
	      "       cookbook-copy send FILE ADDRESS PORT [URI]");
	const char *uri = argc > port + 1 ? argv[port + 1] : "ofi:tcp?iface=lo";
	const uint16_t number = (uint16_t)(argc > port ? strtoul(argv[port], NULL, 10) : 0);
	FILE *file = fopen(argv[2], receives ? "wb" : "rb");
	check_file(file != NULL, argv[2]);
	if (receives)
		receive_file(file, uri, number);
	else
		send_file(file, uri, argv[3], number);
	check_file(fclose(file) == 0, argv[2]);
	printf("%s %" PRIu64 " bytes, all of them\n", receives ? "received" : "sent", bytes);
	return 0;
}
