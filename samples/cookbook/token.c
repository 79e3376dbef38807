/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: cookbook-token [URI]
 * The server grants memory in the private data of its answer; the client reads and changes the
 * memory without the server's help.
 */
#include "cookbook.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

/** In the private data. The token is opaque: its four bytes travel as they are. */
struct grant {
	uint64_t address; /* little endian */
	uint32_t length;  /* little endian */
	uint32_t token;
};

static void read_and_write(struct end *client, const struct grant *grant)
{
	const uint64_t address = le64toh(grant->address);
	char text[64] = "";
	struct ndx_mr *mr;

	check(le32toh(grant->length) <= sizeof(text), "the grant is longer than the buffer");
	must(ndx_mr_register_new(client->adapter, text, sizeof(text), NDX_MR_ALLOW_LOCAL_WRITE,
	                         &mr),
	     "register memory");
	struct ndx_sge sge = {text, le32toh(grant->length), ndx_mr_get_local_token(mr)};

	must(ndx_qp_read(client->qp, NULL, &sge, 1, address, grant->token, 0), "post a read");
	(void)end_result(client);
	printf("the client has read \"%s\"\n", text);
	(void)snprintf(text, sizeof(text), "changed by the client");
	must(ndx_qp_write(client->qp, NULL, &sge, 1, address, grant->token, 0), "post a write");
	(void)end_result(client); /* the bytes are in the server's memory now */
	ndx_mr_close(mr);
}

int main(int argc, char **argv)
{
	static char shared[64] = "written by the server";
	struct grant grant = {.address = htole64((uintptr_t)shared),
	                      .length = htole32(sizeof(shared))};
	struct grant got;
	size_t length = sizeof(got);
	struct pair pair;
	struct ndx_mr *mr;

	pair_open(&pair, adapter_of(argc, argv));
	must(ndx_mr_register_new(pair.adapter, shared, sizeof(shared),
	                         NDX_MR_ALLOW_REMOTE_READ | NDX_MR_ALLOW_REMOTE_WRITE, &mr),
	     "register memory");
	grant.token = ndx_mr_get_remote_token(mr);
	pair_connect(&pair, &grant, sizeof(grant));
	/* Some stacks pad private data with zeros, so `length` may be larger than what was sent:
	 * here more than `got` is no error, less is. */
	char data[256];

	length = sizeof(data);
	must(ndx_connector_get_private_data(pair.client.connector, data, &length), "private data");
	check(length >= sizeof(got), "the server granted nothing");
	memcpy(&got, data, sizeof(got));
	read_and_write(&pair.client, &got);
	printf("the server has \"%s\"\n", shared);
	ndx_mr_close(mr); /* from here on the token is worth nothing */
	pair_close(&pair);
	return 0;
}
