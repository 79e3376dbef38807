/* SPDX-License-Identifier: BSD-2-Clause */
/* Arguments of a session: for Session(), and for a session of a manager. */
#include "negotiation.h"

/* The texts of a tuple, which keeps them. */
static bool texts_of(PyObject *tuple, const char **texts, size_t *count)
{
	Py_ssize_t size = PyTuple_Size(tuple);

	if (size > SESSION_SERVERS) {
		PyErr_Format(PyExc_ValueError, "at most %d servers", SESSION_SERVERS);
		return false;
	}
	for (*count = 0; (Py_ssize_t)*count < size; (*count)++) {
		const char *text =
			PyUnicode_AsUTF8AndSize(PyTuple_GetItem(tuple, (Py_ssize_t)*count), NULL);

		if (text == NULL)
			return false;
		texts[*count] = text;
	}
	return true;
}

bool session_arguments(PyObject *args, PyObject *kwargs, struct session_arguments *a)
{
	static char *names[] = {"variant",
	                        "servers",
	                        "connector",
	                        "qp",
	                        "memory",
	                        "queue_pairs",
	                        "inbound_read_limit",
	                        "outbound_read_limit",
	                        "connect_timeout_ms",
	                        "attempts",
	                        "backoff_ms",
	                        "backoff_most_ms",
	                        "stage_timeout_ms",
	                        "session_timeout_ms",
	                        "max_message",
	                        "max_rounds",
	                        "max_history",
	                        "tls",
	                        "allow_plaintext",
	                        NULL};
	struct ndx_session_attr *attr = &a->attr;
	PyObject *servers;
	int allow_plaintext = 0;

	ndx_session_attr_init(attr);
	a->connector = a->qp = a->memory = a->tls_object = Py_None;
	a->queue_pairs = NULL;
	if (!PyArg_ParseTupleAndKeywords(
		    args, kwargs, "OO!|$OOOO!O&O&O&O&O&O&O&O&O&O&O&Op:Session", names, &a->variant,
		    &PyTuple_Type, &servers, &a->connector, &a->qp, &a->memory, &PyTuple_Type,
		    &a->queue_pairs, pyndx_u32, &attr->inbound_read_limit, pyndx_u32,
		    &attr->outbound_read_limit, pyndx_u32, &attr->connect_timeout_ms, pyndx_u32,
		    &attr->attempts, pyndx_u32, &attr->backoff_ms, pyndx_u32,
		    &attr->backoff_most_ms, pyndx_u32, &attr->stage_timeout_ms, pyndx_u32,
		    &attr->session_timeout_ms, pyndx_u32, &attr->max_message, pyndx_u32,
		    &attr->max_rounds, pyndx_u32, &attr->max_history, &a->tls_object,
		    &allow_plaintext) ||
	    !pyndx_is(a->variant, pyndx.variant_type, "variant") ||
	    !texts_of(servers, a->servers, &attr->server_count) || !tls_of(a->tls_object, &a->tls))
		return false;
	attr->servers = a->servers;
	attr->tls = a->tls.wanted ? &a->tls.attr : NULL;
	attr->allow_plaintext = allow_plaintext != 0;
	return true;
}
