/* SPDX-License-Identifier: BSD-2-Clause */
/* Adapters as objects: lock, references, life, and the lists of each adapter's objects. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "adapter.h"
#include "base_loop.h"
#include <ndx/spi/log.h>

void adapter_lock(struct ndx_adapter *adapter)
{
	(void)pthread_mutex_lock(&adapter->lock);
}

void adapter_unlock(struct ndx_adapter *adapter)
{
	struct ndx_loop *loop = adapter->loop;
	const unsigned wakes = adapter->wakes;

	adapter->wakes = 0;
	(void)pthread_mutex_unlock(&adapter->lock);
	/* The adapter may be freed by now, by a job that was posted. */
	base_loop_wake(loop, wakes);
}

void adapter_post(struct ndx_adapter *adapter, struct ndxp_job *job)
{
	adapter->wakes += base_loop_queue(adapter->loop, job);
}

bool adapter_wait(struct ndx_adapter *adapter, uint64_t deadline_ns)
{
	const uint64_t ns = 1000000000ull;
	struct timespec until = {(time_t)(deadline_ns / ns), (long)(deadline_ns % ns)};

	base_loop_wake(adapter->loop, adapter->wakes);
	adapter->wakes = 0;
	return pthread_cond_timedwait(&adapter->changed, &adapter->lock, &until) != ETIMEDOUT;
}

void adapter_get(struct ndx_adapter *adapter, bool handle)
{
	adapter_lock(adapter);
	adapter->refs++;
	adapter->handles += handle;
	adapter_unlock(adapter);
}

/* The list that keeps objects of a kind; NULL: objects of this kind are never searched. */
static struct ndx_spi_object **list_of(struct ndx_adapter *adapter, enum core_kind kind)
{
	if (kind == CORE_CQ)
		return &adapter->cqs;
	return kind == CORE_QP ? &adapter->qps : NULL;
}

void adapter_add_object(struct ndx_adapter *adapter, struct ndx_spi_object *object,
                        enum core_kind kind)
{
	struct ndx_spi_object **list = list_of(adapter, kind);

	object->adapter = adapter;
	object->native = adapter->native;
	object->refs = 1;
	object->next = NULL;
	object->link = NULL;
	adapter_lock(adapter);
	adapter->refs++;
	adapter->handles++;
	object->id = stats_count_new(adapter, kind);
	if (list != NULL) {
		object->next = *list;
		object->link = list;
		if (*list != NULL)
			(*list)->link = &object->next;
		*list = object;
	}
	adapter_unlock(adapter);
}

void adapter_remove_object(struct ndx_adapter *adapter, struct ndx_spi_object *object,
                           enum core_kind kind)
{
	adapter_lock(adapter);
	stats_count_gone(adapter, kind, object);
	if (object->link != NULL) {
		*object->link = object->next;
		if (object->next != NULL)
			object->next->link = object->link;
	}
	adapter_unlock(adapter);
}

static void close_native(void *arg)
{
	struct ndx_adapter *adapter = arg;

	if (adapter->native != NULL)
		adapter->ops->adapter_close(adapter->native);
}

static void adapter_free(void *arg)
{
	struct ndx_adapter *adapter = arg;

	(void)pthread_cond_destroy(&adapter->changed);
	(void)pthread_mutex_destroy(&adapter->lock);
	selection_free(&adapter->selection);
	free(adapter->postmortems);
	free(adapter);
}

void adapter_destroy(struct ndx_adapter *adapter)
{
	ndxp_loop_call(adapter->loop, close_native, adapter);
	base_loop_destroy(adapter->loop, adapter_free, adapter);
}

void adapter_put(struct ndx_adapter *adapter, bool handle)
{
	bool last;

	adapter_lock(adapter);
	adapter->handles -= handle;
	last = --adapter->refs == 0;
	(void)pthread_cond_broadcast(&adapter->changed);
	adapter_unlock(adapter);
	if (last)
		adapter_destroy(adapter);
}

static void nothing(void *arg)
{
	(void)arg;
}

void adapter_flush_callbacks(struct ndx_adapter *adapter)
{
	ndxp_loop_call(adapter->loop, nothing, NULL);
}

void error_capture_begin(void)
{
	ndxp_set_last_error("%s", "");
}

void error_capture_end(struct error_capture *said)
{
	(void)snprintf(said->text, sizeof(said->text), "%s", ndx_last_error());
}

enum ndx_status error_capture_restore(enum ndx_status status, const struct error_capture *said)
{
	if (status != NDX_OK)
		ndxp_set_last_error("%s", said->text);
	return status;
}
