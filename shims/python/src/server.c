/* SPDX-License-Identifier: BSD-2-Clause */
/* Servers of negotiations; what they call is in server_events.c. */
#include "negotiation.h"

#include <stdlib.h>

#define VARIANTS 64

static struct server *as_server(PyObject *self)
{
	return (struct server *)self;
}

static void close_handle(struct object *self)
{
	ndx_negotiation_server_close(self->handle);
}

static void drop(struct object *self)
{
	struct server *s = (struct server *)self;

	Py_CLEAR(s->variants);
	for (int i = 0; i < SERVER_FUNCTIONS; i++)
		Py_CLEAR(s->functions[i]);
	Py_CLEAR(s->sessions);
}

/* The end of the server waits for its callbacks. */
static bool calls(const struct object *self, unsigned long thread)
{
	return running_on(((const struct server *)self)->running, thread);
}

static const struct kind server_kind = {
	.name = "server",
	.rank = RANK_SERVER,
	.close = close_handle,
	.drop = drop,
	.calls = calls,
};

/* ---- the type ---- */

struct arguments {
	PyObject *variants, *functions[SERVER_FUNCTIONS], *tls, *grants;
	int allow_plaintext;
	uint32_t inbound_read_limit, outbound_read_limit;
	struct ndx_negotiation_server_attr attr;
};

static bool parse(PyObject *args, PyObject *kwargs, struct arguments *a)
{
	static char *names[] = {"address",
	                        "variants",
	                        "on_open",
	                        "on_staged",
	                        "on_closed",
	                        "on_open_many",
	                        "on_add_many",
	                        "on_added",
	                        "on_removed",
	                        "tls",
	                        "grants",
	                        "allow_plaintext",
	                        "inbound_read_limit",
	                        "outbound_read_limit",
	                        "max_sessions",
	                        "workers",
	                        "workers_most",
	                        "hello_timeout_ms",
	                        "stage_timeout_ms",
	                        "session_timeout_ms",
	                        "plugin_warn_ms",
	                        "max_message",
	                        "max_rounds",
	                        "max_history",
	                        "max_waiting_per_address",
	                        "max_sessions_per_principal",
	                        "max_queue_pairs_per_principal",
	                        "max_memory_per_principal",
	                        "max_handshakes_per_address",
	                        "max_handshakes",
	                        "max_queue_pairs",
	                        NULL};
	struct ndx_negotiation_server_attr *attr = &a->attr;

	ndx_negotiation_server_attr_init(attr);
	for (int i = 0; i < SERVER_FUNCTIONS; i++)
		a->functions[i] = Py_None;
	a->tls = Py_None;
	a->grants = NULL;
	a->allow_plaintext = 0;
	a->inbound_read_limit = a->outbound_read_limit = 16;
	return PyArg_ParseTupleAndKeywords(
		       args, kwargs,
		       "sO!|$OOOOOOOOO!pO&O&O&O&O&O&O&O&O&O&O&O&O&O&O&O&O&O&O&:Server", names,
		       &attr->address, &PyTuple_Type, &a->variants, &a->functions[ON_OPEN],
		       &a->functions[ON_STAGED], &a->functions[ON_CLOSED],
		       &a->functions[ON_OPEN_MANY], &a->functions[ON_ADD_MANY],
		       &a->functions[ON_ADDED], &a->functions[ON_REMOVED], &a->tls, &PyTuple_Type,
		       &a->grants, &a->allow_plaintext, pyndx_u32, &a->inbound_read_limit,
		       pyndx_u32, &a->outbound_read_limit, pyndx_u32, &attr->max_sessions,
		       pyndx_u32, &attr->workers, pyndx_u32, &attr->workers_most, pyndx_u32,
		       &attr->hello_timeout_ms, pyndx_u32, &attr->stage_timeout_ms, pyndx_u32,
		       &attr->session_timeout_ms, pyndx_u32, &attr->plugin_warn_ms, pyndx_u32,
		       &attr->max_message, pyndx_u32, &attr->max_rounds, pyndx_u32,
		       &attr->max_history, pyndx_u32, &attr->max_waiting_per_address, pyndx_u32,
		       &attr->max_sessions_per_principal, pyndx_u32,
		       &attr->max_queue_pairs_per_principal, pyndx_u64,
		       &attr->max_memory_per_principal, pyndx_u32,
		       &attr->max_handshakes_per_address, pyndx_u32, &attr->max_handshakes,
		       pyndx_u32, &attr->max_queue_pairs) != 0;
}

/* Grants of a tuple of (plugin, variant, name, psk_identity), for free(); the texts are the
 * tuple's. False: raised. */
static bool grants_of(PyObject *tuple, struct ndx_variant_grant **out, size_t *size)
{
	size_t count = tuple != NULL ? (size_t)PyTuple_Size(tuple) : 0;
	struct ndx_variant_grant *grants;

	*out = NULL;
	*size = count;
	if (count == 0)
		return true;
	grants = calloc(count, sizeof(*grants));
	if (grants == NULL) {
		PyErr_NoMemory();
		return false;
	}
	for (size_t i = 0; i < count; i++) {
		PyObject *grant = PyTuple_GetItem(tuple, (Py_ssize_t)i);

		if (!PyTuple_Check(grant)) {
			PyErr_SetString(PyExc_TypeError, "a grant is a Grant");
			free(grants);
			return false;
		}
		if (!PyArg_ParseTuple(grant, "szzz;a grant is a Grant", &grants[i].plugin,
		                      &grants[i].variant, &grants[i].name,
		                      &grants[i].psk_identity)) {
			free(grants);
			return false;
		}
	}
	*out = grants;
	return true;
}

/* The handles of a tuple of variants; enters each. */
static size_t enter_variants(PyObject *variants, struct ndx_variant **out)
{
	Py_ssize_t size = PyTuple_Size(variants);
	size_t count = 0;

	if (size > VARIANTS)
		PyErr_Format(PyExc_ValueError, "at most %d variants", VARIANTS);
	while (size <= VARIANTS && (Py_ssize_t)count < size) {
		PyObject *variant = PyTuple_GetItem(variants, (Py_ssize_t)count);

		if (!pyndx_is(variant, pyndx.variant_type, "variant") ||
		    !object_enter((struct object *)variant))
			break;
		out[count++] = ((struct object *)variant)->handle;
	}
	return count;
}

static struct server *prepare(PyTypeObject *type, const struct arguments *a)
{
	struct server *self = (struct server *)object_new(type, &server_kind);

	if (self == NULL)
		return NULL;
	Py_INCREF(a->variants);
	self->variants = a->variants;
	for (int i = 0; i < SERVER_FUNCTIONS; i++) {
		Py_INCREF(a->functions[i]);
		self->functions[i] = a->functions[i];
	}
	self->inbound_read_limit = a->inbound_read_limit;
	self->outbound_read_limit = a->outbound_read_limit;
	self->sessions = PyDict_New();
	if (self->sessions != NULL)
		return self;
	Py_DECREF(&self->base.ob_base);
	return NULL;
}

static PyObject *server_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	struct ndx_negotiation_server *handle = NULL;
	struct ndx_variant *variants[VARIANTS];
	enum ndx_status st = NDX_E_INVALID_PARAMETER;
	struct ndx_variant_grant *grants;
	struct server *self = NULL;
	struct arguments a;
	struct tls tls;
	size_t count;

	if (!parse(args, kwargs, &a) || !tls_of(a.tls, &tls))
		return NULL;
	if (!grants_of(a.grants, &grants, &a.attr.grant_count))
		goto free_tls;
	a.attr.grants = grants;
	self = prepare(type, &a);
	if (self == NULL)
		goto free_grants;
	a.attr.tls = tls.wanted ? &tls.attr : NULL;
	a.attr.allow_plaintext = a.allow_plaintext != 0;
	count = enter_variants(a.variants, variants);
	if (PyErr_Occurred() == NULL) {
		a.attr.variants = variants;
		a.attr.variant_count = count;
		server_set_events(self, &a.attr);
		Py_BEGIN_ALLOW_THREADS;
		st = ndx_negotiation_server_create(&a.attr, &handle);
		Py_END_ALLOW_THREADS;
		if (st == NDX_OK)
			object_open(&self->base, handle);
		else
			(void)pyndx_raise_last(st);
	}
	while (count > 0)
		object_leave((struct object *)PyTuple_GetItem(a.variants, (Py_ssize_t)--count));
	if (st != NDX_OK)
		Py_CLEAR(self);
free_grants:
	free(grants);
free_tls:
	tls_free(&tls);
	return (PyObject *)self;
}

static PyObject *server_address(PyObject *self, void *unused)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	enum ndx_status st;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	st = ndx_negotiation_server_get_address(((struct object *)self)->handle,
	                                        (struct sockaddr *)&address, &length);
	object_leave((struct object *)self);
	return st == NDX_OK ? pyndx_from_address(&address) : pyndx_raise_last(st);
}

static PyObject *server_stats(PyObject *self, PyObject *unused)
{
	struct ndx_negotiation_server_stats s = {.size = sizeof(s)};
	enum ndx_status st;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_negotiation_server_get_stats(((struct object *)self)->handle, &s);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	if (st != NDX_OK)
		return pyndx_raise_last(st);
	return Py_BuildValue(
		"{s:K,s:K,s:K,s:K,s:K,s:K,s:I,s:I,s:K,s:K,s:K,s:K,s:K}", "accepted",
		(unsigned long long)s.accepted, "refused", (unsigned long long)s.refused,
		"without_hello", (unsigned long long)s.without_hello, "completed",
		(unsigned long long)s.completed, "failed", (unsigned long long)s.failed, "resumed",
		(unsigned long long)s.resumed, "alive", s.alive, "threads", s.threads,
		"refused_addresses", (unsigned long long)s.refused_addresses, "refused_principals",
		(unsigned long long)s.refused_principals, "refused_variants",
		(unsigned long long)s.refused_variants, "refused_identities",
		(unsigned long long)s.refused_identities, "refused_handshakes",
		(unsigned long long)s.refused_handshakes);
}

static PyObject *server_snapshot(PyObject *self, PyObject *unused)
{
	enum ndx_status st;
	char *json = NULL;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_negotiation_server_snapshot(((struct object *)self)->handle, &json);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	return st == NDX_OK ? pyndx_take_text(json) : pyndx_raise_last(st);
}

static int server_traverse(PyObject *self, visitproc visit, void *arg)
{
	return pyndx_visit(self, as_server(self)->functions, SERVER_FUNCTIONS, visit, arg);
}

static int server_clear(PyObject *self)
{
	object_close((struct object *)self);
	return 0;
}

static PyMethodDef server_methods[] = {
	{"close", object_close_method, METH_NOARGS,
         "close(): end the server and its sessions. Raises BusyError in a callback of the server."},
	{"stats", server_stats, METH_NOARGS,
         "stats() -> dict: counters by the names of struct ndx_negotiation_server_stats."},
	{"snapshot", server_snapshot, METH_NOARGS,
         "snapshot() -> str: counters, limits and sessions as JSON (docs/observing-sessions.md)."},
	{NULL, NULL, 0, NULL},
};

static PyGetSetDef server_getset[] = {
	{"address", server_address, NULL, "Where the server listens, with the port.", NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot server_slots[] = {
	{Py_tp_new, server_new},
	{Py_tp_methods, server_methods},
	{Py_tp_getset, server_getset},
	{Py_tp_traverse, server_traverse},
	{Py_tp_clear, server_clear},
	{Py_tp_finalize, object_finalize},
	{Py_tp_doc, "Base of ndx.Server."},
	{0, NULL},
};

static PyType_Spec server_spec = {
	.name = "ndx._ndx.Server",
	.basicsize = sizeof(struct server),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
	.slots = server_slots,
};

int pyndx_add_servers(PyObject *module)
{
	return pyndx_add_type(module, &server_spec, pyndx.object_type, &pyndx.server_type);
}
