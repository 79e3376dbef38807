/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptions and agreements between C and Python; support.py has the Python half. */
#include "python.h"

#include <netinet/in.h>

PyObject *py_from_description(const struct ndx_peer_description *d)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)&d->address;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&d->address;
	uint8_t address[16] = {0};
	unsigned family = 0;
	unsigned port = 0;

	if (d->address.ss_family == AF_INET) {
		family = 4;
		port = ntohs(in->sin_port);
		memcpy(address, &in->sin_addr, 4);
	} else if (d->address.ss_family == AF_INET6) {
		family = 6;
		port = ntohs(in6->sin6_port);
		memcpy(address, &in6->sin6_addr, 16);
	}
	return py_support(
		"_unflatten",
		Py_BuildValue("(IIIKKIy#y#IIy#IIIIy#III)", d->kind, d->inbound_read_limit,
	                      d->outbound_read_limit, (unsigned long long)d->memory.address,
	                      (unsigned long long)d->memory.length, d->memory.token, d->stack,
	                      (Py_ssize_t)strnlen(d->stack, sizeof(d->stack)), d->cookie,
	                      (Py_ssize_t)sizeof(d->cookie), family, port, address,
	                      (Py_ssize_t)sizeof(address), d->qpn, d->psn, d->mtu, (unsigned)d->lid,
	                      d->gid, (Py_ssize_t)sizeof(d->gid), d->memory.rkey, d->mailbox_rkey,
	                      d->policy));
}

static void set_address(struct sockaddr_storage *out, unsigned family, unsigned port,
                        const char packed[16])
{
	struct sockaddr_in *in = (struct sockaddr_in *)out;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;

	if (family == 4) {
		in->sin_family = AF_INET;
		in->sin_port = htons((uint16_t)port);
		memcpy(&in->sin_addr, packed, 4);
	} else if (family == 6) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons((uint16_t)port);
		memcpy(&in6->sin6_addr, packed, 16);
	}
}

bool py_to_description(PyObject *from, struct ndx_peer_description *d)
{
	PyObject *flat = py_support("_flatten", Py_BuildValue("(O)", from));
	struct ndx_peer_description made;
	unsigned long long memory[2];
	const char *bytes[4];
	Py_ssize_t length[4];
	unsigned family;
	unsigned port;
	unsigned lid;
	bool ok;

	memset(&made, 0, sizeof(made));
	ok = flat != NULL &&
	     PyArg_ParseTuple(flat, "IIIKKIy#y#IIy#IIIIy#III", &made.kind, &made.inbound_read_limit,
	                      &made.outbound_read_limit, &memory[0], &memory[1], &made.memory.token,
	                      &bytes[0], &length[0], &bytes[1], &length[1], &family, &port,
	                      &bytes[2], &length[2], &made.qpn, &made.psn, &made.mtu, &lid,
	                      &bytes[3], &length[3], &made.memory.rkey, &made.mailbox_rkey,
	                      &made.policy);
	if (ok) {
		/* support.py has checked the lengths */
		made.memory.address = memory[0];
		made.memory.length = memory[1];
		made.lid = (uint16_t)lid;
		memcpy(made.stack, bytes[0], (size_t)length[0]);
		memcpy(made.cookie, bytes[1], sizeof(made.cookie));
		memcpy(made.gid, bytes[3], sizeof(made.gid));
		set_address(&made.address, family, port, bytes[2]);
		*d = made;
	}
	Py_XDECREF(flat);
	return ok;
}

PyObject *py_from_agreement(const struct ndx_agreement *a)
{
	return py_support("_agreement", Py_BuildValue("(IIII)", a->kind, a->mtu, a->client_reads,
	                                              a->server_reads));
}
