/* SPDX-License-Identifier: BSD-2-Clause */
/* Variants in Python: one class per variant, one object of the class per session. */
#include "python.h"

#include <stdlib.h>

struct instance {
	const struct guest_variant *variant;
	PyObject *settings; /* a dict */
};

struct session {
	const struct instance *instance;
	PyObject *exchange; /* the object's `exchange`: what the session passes to the plugin */
	PyObject *object;
};

static const char *const ended = "Python has ended";

static enum ndx_status fail_call(struct ndx_exchange_reply *reply, enum ndx_plugin_error error)
{
	reply->error = error;
	switch (error) {
	case NDX_PLUGIN_PEER_DATA:
		return NDX_E_REMOTE_ERROR;
	case NDX_PLUGIN_RESOURCES:
		return NDX_E_INSUFFICIENT_RESOURCES;
	case NDX_PLUGIN_CONFIGURATION:
		return NDX_E_INVALID_CONFIG;
	case NDX_PLUGIN_OK:
	case NDX_PLUGIN_SERIALIZATION:
	case NDX_PLUGIN_VENDOR:
	default:
		return NDX_E_UNSUCCESSFUL;
	}
}

/* The interpreter has ended, so there is no exception to report. */
static enum ndx_status fail_ended(struct ndx_exchange_reply *reply)
{
	(void)snprintf(reply->text, sizeof(reply->text), "%s", ended);
	return fail_call(reply, NDX_PLUGIN_VENDOR);
}

static enum ndx_status fail_python(const struct guest *g, struct ndx_exchange_reply *reply)
{
	return fail_call(reply, py_why(g->host, reply->text, sizeof(reply->text)));
}

/* ---- variants and instances ---- */

static enum ndx_status available(void *plugin, const struct ndx_plugin_variant *variant, char *why,
                                 size_t room)
{
	const struct guest_variant *v = variant->state;
	enum ndx_status st = NDX_E_DEVICE_NOT_READY;
	const char *text = NULL;
	PyGILState_STATE held;
	PyObject *answer;

	(void)plugin;
	if (!py_enter(&held)) {
		(void)snprintf(why, room, "%s", ended);
		return st;
	}
	/* None, or a text with the reason. */
	answer = PyObject_CallMethod(v->class, "available", NULL);
	if (answer != NULL && PyUnicode_Check(answer))
		text = PyUnicode_AsUTF8(answer);
	if (answer == Py_None)
		st = NDX_OK;
	else if (text != NULL)
		(void)snprintf(why, room, "%s", text);
	else if (PyErr_Occurred() != NULL) /* text that UTF-8 cannot encode */
		(void)py_why(v->guest->host, why, room);
	Py_XDECREF(answer);
	py_leave(held);
	return st;
}

/* Rows for _settings() of support.py. */
PyObject *exchange_settings(const struct ndx_plugin_param *params,
                            const struct ndx_plugin_value *values)
{
	PyObject *rows = PyList_New(0);

	for (size_t i = 0; rows != NULL && params != NULL && params[i].name != NULL; i++) {
		PyObject *row = Py_BuildValue("(siiLs)", params[i].name, (int)params[i].type,
		                              (int)values[i].given, (long long)values[i].number,
		                              values[i].text);

		if (row == NULL || PyList_Append(rows, row) != 0)
			Py_CLEAR(rows);
		Py_XDECREF(row);
	}
	return rows != NULL ? py_support("_settings", Py_BuildValue("(N)", rows)) : NULL;
}

/* Let the class check the combination of its settings before a session exists. */
static bool check_settings(const struct guest_variant *v, PyObject *settings)
{
	PyObject *answer;

	if (settings == NULL)
		return false;
	if (!PyObject_HasAttrString(v->class, "check"))
		return true;
	answer = PyObject_CallMethod(v->class, "check", "(O)", settings);
	Py_XDECREF(answer);
	return answer != NULL;
}

static enum ndx_status create(void *plugin, const struct ndx_plugin_variant *variant,
                              const struct ndx_plugin_value *values, void **out, char *why,
                              size_t room)
{
	const struct guest_variant *v = variant->state;
	struct instance *instance = calloc(1, sizeof(*instance));
	enum ndx_status st = NDX_OK;
	PyGILState_STATE held;

	(void)plugin;
	if (instance == NULL || !py_enter(&held)) {
		(void)snprintf(why, room, "%s", instance == NULL ? "out of memory" : ended);
		free(instance);
		return NDX_E_INSUFFICIENT_RESOURCES;
	}
	instance->variant = v;
	instance->settings = exchange_settings(variant->params, values);
	if (!check_settings(v, instance->settings)) {
		(void)py_why(v->guest->host, why, room);
		Py_CLEAR(instance->settings);
		st = NDX_E_INVALID_CONFIG;
	}
	py_leave(held);
	if (st == NDX_OK)
		*out = instance;
	else
		free(instance);
	return st;
}

static void destroy(void *state)
{
	struct instance *instance = state;
	PyGILState_STATE held;

	if (py_enter(&held)) {
		Py_CLEAR(instance->settings);
		py_leave(held);
	}
	free(instance);
}

/* ---- sessions ---- */

static const char *stage_name(enum ndx_stage stage)
{
	static const char *const names[] = {"info", "validate", "ready", "done"};

	return names[stage];
}

/* Set an attribute. Steals the reference to `value`. If `value` is NULL, an exception is set. */
static bool set(PyObject *object, const char *name, PyObject *value)
{
	const bool ok = value != NULL && PyObject_SetAttrString(object, name, value) == 0;

	Py_XDECREF(value);
	return ok;
}

static PyObject *none(void)
{
	Py_INCREF(Py_None);
	return Py_None;
}

static PyObject *make_exchange(const struct instance *instance, const struct ndx_exchange *x)
{
	PyObject *e = PyObject_CallNoArgs(py_support_get("Exchange"));

	if (e == NULL)
		return NULL;
	Py_INCREF(instance->settings);
	if (set(e, "settings", instance->settings) &&
	    set(e, "session", PyLong_FromUnsignedLongLong(x->session)) &&
	    set(e, "role",
	        PyUnicode_FromString(x->role == NDX_ROLE_CLIENT ? "client" : "server")) &&
	    set(e, "stage", PyUnicode_FromString("info")) && set(e, "round", PyLong_FromLong(0)) &&
	    set(e, "own", py_from_description(x->own)) && set(e, "peer", none()) &&
	    set(e, "agreed", none()))
		return e;
	Py_DECREF(e);
	return NULL;
}

static enum ndx_status begin_session(void *state, const struct ndx_exchange *x, void **out,
                                     struct ndx_exchange_reply *reply)
{
	const struct instance *instance = state;
	struct session *s = calloc(1, sizeof(*s));
	enum ndx_status st = NDX_OK;
	PyGILState_STATE held;

	if (s == NULL) {
		(void)snprintf(reply->text, sizeof(reply->text), "out of memory");
		return fail_call(reply, NDX_PLUGIN_RESOURCES);
	}
	s->instance = instance;
	if (!py_enter(&held)) {
		free(s);
		return fail_ended(reply);
	}
	s->exchange = make_exchange(instance, x);
	if (s->exchange != NULL)
		s->object = PyObject_CallOneArg(instance->variant->class, s->exchange);
	if (s->object == NULL) {
		st = fail_python(instance->variant->guest, reply);
		Py_CLEAR(s->exchange);
		free(s);
	} else {
		*out = s;
	}
	py_leave(held);
	return st;
}

static void end_session(void *state)
{
	struct session *s = state;
	PyGILState_STATE held;

	if (py_enter(&held)) {
		Py_CLEAR(s->object);
		Py_CLEAR(s->exchange);
		py_leave(held);
	}
	free(s);
}

/* ---- exchange ---- */

static bool update_exchange(const struct session *s, const struct ndx_exchange *x, size_t room)
{
	return set(s->exchange, "stage", PyUnicode_FromString(stage_name(x->stage))) &&
	       set(s->exchange, "round", PyLong_FromUnsignedLong(x->round)) &&
	       set(s->exchange, "room", PyLong_FromSize_t(room)) &&
	       (x->stage == NDX_STAGE_INFO ||
	        set(s->exchange, "agreed", py_from_agreement(x->agreed)));
}

/* Accepts bytes, any object with a buffer, or None (no data). */
static bool take_data(PyObject *data, struct ndx_exchange_reply *reply)
{
	Py_buffer view;

	if (data == Py_None)
		return true;
	if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) != 0)
		return false;
	if ((size_t)view.len > reply->room)
		(void)PyErr_Format(py_support_get("SerializationError"),
		                   "it returned %zd bytes, %zu are allowed", view.len, reply->room);
	else if (view.len > 0)
		memcpy(reply->data, view.buf, (size_t)view.len);
	reply->length = (size_t)view.len <= reply->room ? (size_t)view.len : 0;
	PyBuffer_Release(&view);
	return PyErr_Occurred() == NULL;
}

/* (data, completed) */
static bool take_answer(PyObject *answer, struct ndx_exchange_reply *reply)
{
	int completed;

	if (!PyTuple_Check(answer) || PyTuple_Size(answer) != 2) {
		(void)PyErr_Format(PyExc_TypeError, "it returned %R, not (data, completed)",
		                   answer);
		return false;
	}
	completed = PyObject_IsTrue(PyTuple_GetItem(answer, 1));
	reply->completed = completed == 1;
	return completed >= 0 && take_data(PyTuple_GetItem(answer, 0), reply);
}

/* Copy the peer's description, as far as the plugin has set it. */
static bool take_peer(const struct session *s, const struct ndx_exchange *x)
{
	PyObject *peer = PyObject_GetAttrString(s->exchange, "peer");
	bool ok = peer != NULL;

	if (ok && peer != Py_None)
		ok = py_to_description(peer, x->peer);
	Py_XDECREF(peer);
	return ok;
}

static enum ndx_status call(struct session *s, const char *function, const struct ndx_exchange *x,
                            const void *peer, size_t length, struct ndx_exchange_reply *reply)
{
	const struct guest *g = s->instance->variant->guest;
	enum ndx_status st = NDX_OK;
	PyObject *answer = NULL;
	PyGILState_STATE held;

	if (!py_enter(&held))
		return fail_ended(reply);
	if (update_exchange(s, x, reply->room))
		answer = peer == NULL ? PyObject_CallMethod(s->object, function, "(O)", Py_None)
		                      : PyObject_CallMethod(s->object, function, "(y#)", peer,
		                                            (Py_ssize_t)length);
	if (answer == NULL || !take_answer(answer, reply) ||
	    (x->stage == NDX_STAGE_INFO && !take_peer(s, x)))
		st = fail_python(g, reply);
	Py_XDECREF(answer);
	py_leave(held);
	return st;
}

static enum ndx_status info(void *session, const struct ndx_exchange *x, const void *peer,
                            size_t peer_length, struct ndx_exchange_reply *reply)
{
	return call(session, "rdma_info_exchange", x, peer, peer_length, reply);
}

static enum ndx_status ready(void *session, const struct ndx_exchange *x, const void *peer,
                             size_t peer_length, struct ndx_exchange_reply *reply)
{
	return call(session, "rdma_ready_exchange", x, peer, peer_length, reply);
}

static enum ndx_status done(void *session, const struct ndx_exchange *x, const void *peer,
                            size_t peer_length, struct ndx_exchange_reply *reply)
{
	return call(session, "rdma_done_exchange", x, peer, peer_length, reply);
}

static enum ndx_status reset(void *session, enum ndx_stage stage)
{
	const struct session *s = session;
	enum ndx_status st = NDX_OK;
	PyGILState_STATE held;
	PyObject *answer;
	char why[160];

	if (!py_enter(&held))
		return NDX_E_UNSUCCESSFUL;
	answer = PyObject_CallMethod(s->object, "reset", "(s)", stage_name(stage));
	if (answer == NULL) {
		(void)py_why(s->instance->variant->guest->host, why, sizeof(why));
		st = NDX_E_UNSUCCESSFUL;
	}
	Py_XDECREF(answer);
	py_leave(held);
	return st;
}

const struct ndx_variant_ops exchange_ops = {.available = available,
                                             .create = create,
                                             .destroy = destroy,
                                             .begin = begin_session,
                                             .end = end_session,
                                             .info = info,
                                             .ready = ready,
                                             .done = done,
                                             .reset = reset};
