/* SPDX-License-Identifier: BSD-2-Clause */
/* Times, addresses and numbers between Python and C; types. */
#include "pyndx.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

bool pyndx_deadline(PyObject *timeout, struct deadline *out)
{
	double seconds;

	out->never = timeout == Py_None;
	out->end_ns = 0;
	if (out->never)
		return true;
	seconds = PyFloat_AsDouble(timeout);
	if (seconds == -1.0 && PyErr_Occurred() != NULL)
		return false;
	if (isnan(seconds) || seconds < 0) {
		PyErr_SetString(PyExc_ValueError,
		                "a timeout is a number of seconds from 0, or None");
		return false;
	}
	/* Longer than four years is no limit: it does not fit the library's milliseconds anyway. */
	out->never = seconds > 4e6;
	if (!out->never)
		out->end_ns = now_ns() + (uint64_t)(seconds * 1e9);
	return true;
}

uint32_t pyndx_left(const struct deadline *deadline)
{
	uint64_t now;

	if (deadline->never)
		return NDX_INFINITE;
	now = now_ns();
	if (now >= deadline->end_ns)
		return 0;
	return (uint32_t)((deadline->end_ns - now + 999999) / 1000000);
}

uint32_t pyndx_slice(const struct deadline *deadline)
{
	uint32_t left = pyndx_left(deadline);

	return left < SLICE_MS ? left : SLICE_MS;
}

/* ---- addresses ---- */

static bool bad_address(const char *host)
{
	PyErr_Format(PyExc_ValueError,
	             "\"%s\" is not an IPv4 or IPv6 address in numbers: names are not resolved",
	             host);
	return false;
}

static bool fill_address(const char *host, long port, long flow, long scope,
                         struct sockaddr_storage *out, socklen_t *length)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)out;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
	char name[INET6_ADDRSTRLEN + IF_NAMESIZE + 2];
	char *zone;

	memset(out, 0, sizeof(*out));
	if (port < 0 || port > 65535) {
		PyErr_Format(PyExc_ValueError, "port %ld is not in 0 .. 65535", port);
		return false;
	}
	if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons((uint16_t)port);
		*length = sizeof(*v4);
		return true;
	}
	if (strlen(host) >= sizeof(name))
		return bad_address(host);
	memcpy(name, host, strlen(host) + 1);
	zone = strchr(name, '%');
	if (zone != NULL) {
		*zone++ = '\0';
		scope = (long)if_nametoindex(zone);
		if (scope == 0)
			return bad_address(host);
	}
	if (inet_pton(AF_INET6, name, &v6->sin6_addr) != 1)
		return bad_address(host);
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons((uint16_t)port);
	v6->sin6_flowinfo = htonl((uint32_t)flow);
	v6->sin6_scope_id = (uint32_t)scope;
	*length = sizeof(*v6);
	return true;
}

/* "10.0.0.1:7471", "[fe80::1%eth0]:7471" */
static bool parse_address(PyObject *object, struct sockaddr_storage *out, socklen_t *length)
{
	const char *text = PyUnicode_AsUTF8AndSize(object, NULL);
	const char *host = text;
	const char *colon = text != NULL ? strrchr(text, ':') : NULL;
	char copy[128];
	char *end;
	size_t size;
	long port;

	if (text == NULL)
		return false;
	if (colon == NULL || colon[1] < '0' || colon[1] > '9' || strlen(text) >= sizeof(copy)) {
		PyErr_Format(PyExc_ValueError, "\"%s\" is not ADDRESS:PORT", text);
		return false;
	}
	errno = 0;
	port = strtol(colon + 1, &end, 10);
	if (*end != '\0' || errno != 0)
		port = -1;
	size = (size_t)(colon - text);
	if (text[0] == '[' && size > 2 && colon[-1] == ']') {
		host++;
		size -= 2;
	}
	memcpy(copy, host, size);
	copy[size] = '\0';
	return fill_address(copy, port, 0, 0, out, length);
}

bool pyndx_address(PyObject *object, struct sockaddr_storage *out, socklen_t *length)
{
	const char *host;
	int port = 0;
	int flow = 0;
	int scope = 0;

	if (PyUnicode_Check(object))
		return parse_address(object, out, length);
	if (!PyTuple_Check(object)) {
		PyErr_SetString(PyExc_TypeError,
		                "an address is a text \"HOST:PORT\", or a tuple (host, port)");
		return false;
	}
	if (!PyArg_ParseTuple(object, "si|ii;an address is (host, port[, flowinfo, scope_id])",
	                      &host, &port, &flow, &scope))
		return false;
	return fill_address(host, port, flow, scope, out, length);
}

PyObject *pyndx_from_address(const struct sockaddr_storage *address)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
	char text[INET6_ADDRSTRLEN];

	if (address->ss_family == AF_INET)
		return Py_BuildValue("(si)", inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text)),
		                     (int)ntohs(v4->sin_port));
	if (address->ss_family == AF_INET6)
		return Py_BuildValue("(siII)",
		                     inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text)),
		                     (int)ntohs(v6->sin6_port), (unsigned)ntohl(v6->sin6_flowinfo),
		                     (unsigned)v6->sin6_scope_id);
	Py_RETURN_NONE;
}

/* ---- others ---- */

PyObject *pyndx_text(const char *text)
{
	return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

PyObject *pyndx_take_text(char *text)
{
	PyObject *object = pyndx_text(text);

	free(text);
	return object;
}

bool pyndx_put(PyObject *dict, const char *name, PyObject *value)
{
	int rc = value != NULL ? PyDict_SetItemString(dict, name, value) : -1;

	Py_XDECREF(value);
	return rc == 0;
}

bool pyndx_number(PyObject *object, const char *name, uint64_t most, uint64_t *out)
{
	PyObject *index = PyNumber_Index(object);
	unsigned long long value;

	if (index == NULL)
		return false;
	value = PyLong_AsUnsignedLongLong(index);
	Py_DECREF(index);
	if (value == (unsigned long long)-1 && PyErr_Occurred() != NULL) {
		if (!PyErr_ExceptionMatches(PyExc_OverflowError))
			return false;
		PyErr_Clear();
		PyErr_Format(PyExc_ValueError, "%s is out of range", name);
		return false;
	}
	if (value > most) {
		PyErr_Format(PyExc_ValueError, "%s is %llu, it may be up to %llu", name, value,
		             (unsigned long long)most);
		return false;
	}
	*out = value;
	return true;
}

bool pyndx_part(Py_ssize_t size, Py_ssize_t offset, PyObject *length, Py_ssize_t most,
                Py_ssize_t *bytes)
{
	Py_ssize_t wanted;

	if (offset < 0 || offset > size) {
		PyErr_Format(PyExc_ValueError, "offset %zd is not in memory of %zd bytes", offset,
		             size);
		return false;
	}
	wanted = length == Py_None ? size - offset : PyNumber_AsSsize_t(length, NULL);
	if (wanted == -1 && PyErr_Occurred() != NULL)
		return false;
	if (wanted < 0 || wanted > most || wanted > size - offset) {
		PyErr_Format(PyExc_ValueError, "%zd bytes at %zd are not in memory of %zd bytes",
		             wanted, offset, size);
		return false;
	}
	*bytes = wanted;
	return true;
}

int pyndx_u16(PyObject *object, void *out)
{
	uint64_t value;

	if (!pyndx_number(object, "the number", UINT16_MAX, &value))
		return 0;
	*(uint16_t *)out = (uint16_t)value;
	return 1;
}

int pyndx_u32(PyObject *object, void *out)
{
	uint64_t value;

	if (!pyndx_number(object, "the number", UINT32_MAX, &value))
		return 0;
	*(uint32_t *)out = (uint32_t)value;
	return 1;
}

int pyndx_u64(PyObject *object, void *out)
{
	return pyndx_number(object, "the number", UINT64_MAX, out) ? 1 : 0;
}

bool pyndx_is(PyObject *object, PyTypeObject *type, const char *name)
{
	int is = PyObject_IsInstance(object, (PyObject *)type);

	if (is == 0)
		PyErr_Format(PyExc_TypeError, "%s has the wrong type", name);
	return is == 1;
}

int pyndx_visit(PyObject *self, PyObject *const *objects, size_t count, visitproc visit, void *arg)
{
	int rc = visit((PyObject *)Py_TYPE(self), arg);

	for (size_t i = 0; rc == 0 && i < count; i++)
		if (objects[i] != NULL)
			rc = visit(objects[i], arg);
	return rc;
}

int pyndx_add_type(PyObject *module, PyType_Spec *spec, PyTypeObject *base, PyTypeObject **out)
{
	PyObject *type = PyType_FromModuleAndSpec(module, spec, (PyObject *)base);

	if (type == NULL)
		return -1;
	*out = (PyTypeObject *)type;
	return PyModule_AddType(module, *out);
}
