/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptions of one end of a connection as dicts of numbers and texts, which JSON can carry. */
#include "stream.h"

#include <string.h>

static PyObject *hex_of(const uint8_t *bytes, size_t size)
{
	static const char digits[] = "0123456789abcdef";
	char text[2 * 64];

	for (size_t i = 0; i < size; i++) {
		text[2 * i] = digits[bytes[i] >> 4];
		text[2 * i + 1] = digits[bytes[i] & 15];
	}
	return PyUnicode_FromStringAndSize(text, (Py_ssize_t)(2 * size));
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

static bool from_hex(const char *name, const char *text, uint8_t *out, size_t size)
{
	bool good = strlen(text) == 2 * size;

	for (size_t i = 0; good && i < size; i++) {
		int high = digit(text[2 * i]);
		int low = digit(text[2 * i + 1]);

		good = high >= 0 && low >= 0;
		if (good)
			out[i] = (uint8_t)(16 * high + low);
	}
	if (!good)
		PyErr_Format(PyExc_ValueError, "%s is not %zu bytes in hexadecimal", name, size);
	return good;
}

/* The numbers of a description by name. */
struct number {
	const char *name;
	size_t offset;
	uint8_t size; /* bytes of the member */
};

#define NUMBER(member)                                                     \
	{                                                                  \
#member, offsetof(struct ndx_peer_description, member),    \
			sizeof(((struct ndx_peer_description *)0)->member) \
	}

static const struct number numbers[] = {
	NUMBER(kind),
	NUMBER(inbound_read_limit),
	NUMBER(outbound_read_limit),
	NUMBER(mailbox_rkey),
	NUMBER(memory.address),
	NUMBER(memory.length),
	NUMBER(memory.token),
	NUMBER(memory.rkey),
	NUMBER(qpn),
	NUMBER(psn),
	NUMBER(mtu),
	NUMBER(lid),
	NUMBER(policy),
};
#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

static uint64_t number_get(const struct ndx_peer_description *d, const struct number *n)
{
	const char *at = (const char *)d + n->offset;
	uint64_t wide;
	uint32_t half;
	uint16_t quarter;

	switch (n->size) {
	case 8:
		memcpy(&wide, at, sizeof(wide));
		return wide;
	case 4:
		memcpy(&half, at, sizeof(half));
		return half;
	default:
		memcpy(&quarter, at, sizeof(quarter));
		return quarter;
	}
}

static void number_set(struct ndx_peer_description *d, const struct number *n, uint64_t value)
{
	char *at = (char *)d + n->offset;
	uint32_t half = (uint32_t)value;
	uint16_t quarter = (uint16_t)value;

	switch (n->size) {
	case 8:
		memcpy(at, &value, sizeof(value));
		break;
	case 4:
		memcpy(at, &half, sizeof(half));
		break;
	default:
		memcpy(at, &quarter, sizeof(quarter));
		break;
	}
}

PyObject *description_to(const struct ndx_peer_description *d)
{
	PyObject *dict = PyDict_New();

	for (size_t i = 0; dict != NULL && i < NUMBERS; i++)
		if (!pyndx_put(dict, numbers[i].name,
		               PyLong_FromUnsignedLongLong(number_get(d, &numbers[i]))))
			Py_CLEAR(dict);
	if (dict != NULL && pyndx_put(dict, "stack", pyndx_text(d->stack)) &&
	    pyndx_put(dict, "cookie", hex_of(d->cookie, sizeof(d->cookie))) &&
	    pyndx_put(dict, "gid", hex_of(d->gid, sizeof(d->gid))) &&
	    pyndx_put(dict, "address", pyndx_from_address(&d->address)))
		return dict;
	Py_XDECREF(dict);
	return NULL;
}

static const char *text_of(PyObject *dict, const char *name)
{
	PyObject *text = PyDict_GetItemString(dict, name);

	if (text == NULL) {
		PyErr_Format(PyExc_ValueError, "the description has no %s", name);
		return NULL;
	}
	return PyUnicode_AsUTF8AndSize(text, NULL);
}

static bool address_from(PyObject *dict, struct sockaddr_storage *out)
{
	PyObject *address = PyDict_GetItemString(dict, "address");
	PyObject *tuple;
	socklen_t length;
	bool good;

	if (address == NULL || address == Py_None)
		return true;
	tuple = PySequence_Tuple(address); /* JSON makes a list of it */
	if (tuple == NULL)
		return false;
	good = pyndx_address(tuple, out, &length);
	Py_DECREF(tuple);
	return good;
}

bool description_from(PyObject *dict, struct ndx_peer_description *out)
{
	const char *cookie;
	const char *stack;
	const char *gid;

	memset(out, 0, sizeof(*out));
	if (!PyDict_Check(dict)) {
		PyErr_SetString(PyExc_TypeError, "a description is a dict");
		return false;
	}
	for (size_t i = 0; i < NUMBERS; i++) {
		PyObject *value = PyDict_GetItemString(dict, numbers[i].name);
		uint64_t most = UINT64_MAX >> (64 - 8 * numbers[i].size);
		uint64_t number;

		if (value == NULL) {
			PyErr_Format(PyExc_ValueError, "the description has no %s",
			             numbers[i].name);
			return false;
		}
		if (!pyndx_number(value, numbers[i].name, most, &number))
			return false;
		number_set(out, &numbers[i], number);
	}
	stack = text_of(dict, "stack");
	cookie = stack != NULL ? text_of(dict, "cookie") : NULL;
	gid = cookie != NULL ? text_of(dict, "gid") : NULL;
	if (gid == NULL || !from_hex("cookie", cookie, out->cookie, sizeof(out->cookie)) ||
	    !from_hex("gid", gid, out->gid, sizeof(out->gid)))
		return false;
	if (strlen(stack) >= sizeof(out->stack)) {
		PyErr_SetString(PyExc_ValueError, "stack is too long");
		return false;
	}
	memcpy(out->stack, stack, strlen(stack) + 1);
	return address_from(dict, &out->address);
}
