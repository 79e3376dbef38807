/* SPDX-License-Identifier: BSD-2-Clause */
/* State and counters of receivers: methods of Receiver. */
#include "stream.h"

static struct ndx_receiver *handle_of(PyObject *self)
{
	return ((struct object *)self)->handle;
}

PyObject *receiver_state(PyObject *self, void *unused)
{
	enum ndx_receiver_state state;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	state = ndx_receiver_get_state(handle_of(self));
	object_leave((struct object *)self);
	return pyndx_enum(PYTHON_RECEIVER_STATE, state);
}

PyObject *receiver_cause(PyObject *self, PyObject *unused)
{
	struct ndx_receiver_cause cause;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	ndx_receiver_get_cause(handle_of(self), &cause);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	return Py_BuildValue("(NNis)", pyndx_enum(PYTHON_RECEIVER_END, cause.end),
	                     pyndx_status(cause.status), cause.native, cause.text);
}

PyObject *receiver_memory(PyObject *self, PyObject *unused)
{
	struct ndx_memory_description memory;
	enum ndx_status st;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_receiver_get_memory(((struct object *)self)->handle, &memory);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	if (st != NDX_OK)
		return pyndx_raise_last(st);
	return Py_BuildValue("(KKI)", (unsigned long long)memory.address,
	                     (unsigned long long)memory.length, memory.token);
}

PyObject *receiver_snapshot(PyObject *self, PyObject *unused)
{
	enum ndx_status st;
	char *json = NULL;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_receiver_snapshot(handle_of(self), &json);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	return st == NDX_OK ? pyndx_take_text(json) : pyndx_raise_last(st);
}

static bool put_counters(PyObject *dict, const struct ndx_receiver_stats *s)
{
	const struct {
		const char *name;
		uint64_t value;
	} counters[] = {
		{"time_ns", s->time_ns},
		{"frames", s->frames},
		{"bytes", s->bytes},
		{"copied", s->copied},
		{"copies_missed", s->copies_missed},
		{"empty", s->empty},
		{"no_immediate", s->no_immediate},
		{"lost", s->lost},
		{"repeated", s->repeated},
		{"overwritten", s->overwritten},
		{"misplaced", s->misplaced},
		{"oversize", s->oversize},
		{"repost_failed", s->repost_failed},
		{"connections", s->connections},
		{"out_of_slots", s->out_of_slots},
		{"out_of_slots_ns", s->out_of_slots_ns},
		{"sleeps", s->sleeps},
		{"wakeups", s->wakeups},
		{"slots", s->slots},
		{"posted", s->posted},
		{"held", s->held},
		{"low_water", s->low_water},
		{"queued", s->queued},
	};

	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		if (!pyndx_put(dict, counters[i].name,
		               PyLong_FromUnsignedLongLong(counters[i].value)))
			return false;
	return true;
}

static bool put_row(PyObject *dict, const char *name, const uint64_t *values, size_t count)
{
	PyObject *row = PyTuple_New((Py_ssize_t)count);

	for (size_t i = 0; row != NULL && i < count; i++) {
		PyObject *value = PyLong_FromUnsignedLongLong(values[i]);

		if (value == NULL || PyTuple_SetItem(row, (Py_ssize_t)i, value) != 0)
			Py_CLEAR(row);
	}
	return pyndx_put(dict, name, row);
}

PyObject *receiver_stats(PyObject *self, PyObject *unused)
{
	struct ndx_receiver_stats stats = {.size = sizeof(stats)};
	enum ndx_status st;
	PyObject *dict;

	(void)unused;
	if (!object_enter((struct object *)self))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	st = ndx_receiver_get_stats(handle_of(self), &stats);
	Py_END_ALLOW_THREADS;
	object_leave((struct object *)self);
	if (st != NDX_OK)
		return pyndx_raise_last(st);
	dict = PyDict_New();
	if (dict != NULL && put_counters(dict, &stats) &&
	    put_row(dict, "consumer_errors", stats.consumer_errors, NDX_RECEIVER_CONSUMERS) &&
	    put_row(dict, "sizes", stats.sizes, NDX_STATS_BUCKETS) &&
	    put_row(dict, "gaps", stats.gaps, NDX_STATS_BUCKETS))
		return dict;
	Py_XDECREF(dict);
	return NULL;
}
