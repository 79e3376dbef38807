/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Log records. The library calls a sink from any thread, and may hold its own locks, so the sink
 * must not take the interpreter's lock: it copies the record to a queue, from which a thread of
 * Python takes it (ndx/_log.py). The queue has a bound: records beyond it are counted only.
 */
#include "pyndx.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define QUEUED_MOST 4096u
#define WHERE_SIZE 48
#define TEXT_SIZE 704

struct record {
	struct record *next;
	enum ndx_log_level level;
	int native;
	uint64_t time_ns;
	char where[WHERE_SIZE];
	char text[TEXT_SIZE];
};

/* The sink stays set to the end of the process, also when Python has ended. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t arrived;
	struct record *first, **end;
	unsigned count;
	uint64_t lost;
	bool open; /* records are wanted */
	bool woken;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .arrived = PTHREAD_COND_INITIALIZER};

static uint64_t wall_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void sink(void *arg, const struct ndx_log_record *record)
{
	struct record *copy;

	(void)arg;
	/* In the child of a fork the lock may be held by a thread that does not exist there. */
	if (__atomic_load_n(&pyndx.forked, __ATOMIC_RELAXED))
		return;
	copy = malloc(sizeof(*copy));
	if (copy != NULL) {
		copy->next = NULL;
		copy->level = record->level;
		copy->native = record->native;
		copy->time_ns = wall_ns();
		(void)snprintf(copy->where, sizeof(copy->where), "%s", record->where);
		(void)snprintf(copy->text, sizeof(copy->text), "%s", record->text);
	}
	(void)pthread_mutex_lock(&queue.lock);
	if (queue.open && copy != NULL && queue.count < QUEUED_MOST) {
		*queue.end = copy;
		queue.end = &copy->next;
		queue.count++;
		copy = NULL;
		(void)pthread_cond_signal(&queue.arrived);
	} else if (queue.open) {
		queue.lost++;
	}
	(void)pthread_mutex_unlock(&queue.lock);
	free(copy);
}

/* All records that wait; the queue is empty afterwards. */
static struct record *take_all(uint64_t *lost)
{
	struct record *first = queue.first;

	*lost = queue.lost;
	queue.first = NULL;
	queue.end = &queue.first;
	queue.count = 0;
	queue.lost = 0;
	return first;
}

static PyObject *list_of(struct record *record)
{
	PyObject *list = PyList_New(0);

	while (record != NULL) {
		struct record *next = record->next;
		PyObject *text = pyndx_text(record->text);
		PyObject *item = NULL;

		if (list != NULL && text != NULL)
			item = Py_BuildValue("(isiOK)", (int)record->level, record->where,
			                     record->native, text,
			                     (unsigned long long)record->time_ns);
		if (list != NULL && (item == NULL || PyList_Append(list, item) != 0))
			Py_CLEAR(list);
		Py_XDECREF(item);
		Py_XDECREF(text);
		free(record);
		record = next;
	}
	return list;
}

static struct timespec soon(uint32_t ms)
{
	struct timespec end;

	(void)clock_gettime(CLOCK_REALTIME, &end);
	end.tv_nsec += (long)ms * 1000000;
	end.tv_sec += end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	return end;
}

/* _log_take(timeout) -> (records, lost): wait up to that for a record, or for _log_wake(). */
static PyObject *take_function(PyObject *module, PyObject *timeout)
{
	struct deadline deadline;
	struct record *records;
	uint64_t lost;
	PyObject *list;

	(void)module;
	if (!pyndx_deadline(timeout, &deadline))
		return NULL;
	/* The wait is short, so that a thread that waits notices the end of the interpreter. */
	Py_BEGIN_ALLOW_THREADS;
	(void)pthread_mutex_lock(&queue.lock);
	if (queue.first == NULL && !queue.woken) {
		struct timespec end = soon(pyndx_slice(&deadline));

		(void)pthread_cond_timedwait(&queue.arrived, &queue.lock, &end);
	}
	queue.woken = false;
	records = take_all(&lost);
	(void)pthread_mutex_unlock(&queue.lock);
	Py_END_ALLOW_THREADS;
	list = list_of(records);
	if (list == NULL)
		return NULL;
	return Py_BuildValue("(NK)", list, (unsigned long long)lost);
}

static PyObject *wake_function(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	(void)pthread_mutex_lock(&queue.lock);
	queue.woken = true;
	(void)pthread_cond_signal(&queue.arrived);
	(void)pthread_mutex_unlock(&queue.lock);
	Py_RETURN_NONE;
}

/* _log_open(level): begin to collect the records up to a level; -1: end that. */
static PyObject *open_function(PyObject *module, PyObject *number)
{
	long level = PyLong_AsLong(number);
	struct record *old = NULL;
	uint64_t lost;

	(void)module;
	if (level == -1 && PyErr_Occurred() != NULL)
		return NULL;
	if (level < -1 || level > (long)NDX_LOG_DEBUG) {
		PyErr_SetString(PyExc_ValueError, "there is no such level");
		return NULL;
	}
	if (!pyndx_usable())
		return NULL;
	(void)pthread_mutex_lock(&queue.lock);
	if (queue.end == NULL)
		queue.end = &queue.first;
	queue.open = level >= 0;
	if (!queue.open)
		old = take_all(&lost);
	(void)pthread_mutex_unlock(&queue.lock);
	/* A call of the sink that has begun may still come: its record is not wanted then. */
	ndx_log_set_sink(level >= 0 ? sink : NULL, NULL,
	                 level >= 0 ? (enum ndx_log_level)level : NDX_LOG_ERROR);
	while (old != NULL) {
		struct record *next = old->next;

		free(old);
		old = next;
	}
	Py_RETURN_NONE;
}

/* _unraisable(target): report the exception that is being handled. */
static PyObject *unraisable_function(PyObject *module, PyObject *target)
{
	PyObject *type, *value, *trace;

	(void)module;
	PyErr_GetExcInfo(&type, &value, &trace);
	PyErr_Restore(type, value, trace);
	PyErr_WriteUnraisable(target);
	Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
	{"_log_open", open_function, METH_O, NULL},
	{"_log_take", take_function, METH_O, NULL},
	{"_log_wake", wake_function, METH_NOARGS, NULL},
	{"_unraisable", unraisable_function, METH_O, NULL},
	{NULL, NULL, 0, NULL},
};

int pyndx_add_log(PyObject *module)
{
	return PyModule_AddFunctions(module, functions);
}
