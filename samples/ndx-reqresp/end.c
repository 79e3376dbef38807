/* SPDX-License-Identifier: BSD-2-Clause */
/* One end of a connection: the calls that client and server have in common. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reqresp.h"
#include "sample_clock.h"
#include "sample_json.h"
#include "sample_options.h"
#include "sample_report.h"

/* Polls between two reads of the clock. */
#define POLLS_PER_LOOK 1024u

int end_open(struct end *end, const char *who, const struct reqresp_options *options)
{
	enum ndx_status st;
	int rc;

	memset(end, 0, sizeof(*end));
	end->who = who;
	end->options = options;
	rc = sample_open_adapter(who, options->adapter, &end->adapter);
	if (rc != SAMPLE_EXIT_OK)
		return rc;
	end->info.size = sizeof(end->info);
	st = ndx_adapter_query(end->adapter, &end->info);
	if (st == NDX_OK)
		return SAMPLE_EXIT_OK;
	ndx_adapter_close(end->adapter);
	return sample_failed(who, st, "query adapter");
}

void end_tell(struct end *end)
{
	if (reqresp_tell && atomic_exchange(&reqresp_tell, false))
		sample_print_stats(end->who, end->adapter);
}

void end_stats(struct end *end, const char *name)
{
	char *json = NULL;

	if (end->options->json == NULL) {
		sample_print_stats(end->who, end->adapter);
	} else if (ndx_adapter_snapshot(end->adapter, &json) == NDX_OK) {
		sample_json_add(name, json_loads(json, 0, NULL));
		free(json);
	}
}

static enum ndx_status make_region(struct end *end, uint32_t flags, uint8_t **memory,
                                   struct ndx_mr **mr)
{
	size_t length = (size_t)end->slots * end->size;

	*memory = calloc(end->slots, end->size);
	if (*memory == NULL)
		return NDX_E_NO_MEMORY;
	return ndx_mr_register_new(end->adapter, *memory, length, flags, mr);
}

static enum ndx_status make_queue_pair(struct end *end)
{
	struct ndx_qp_attr attr;

	ndx_qp_attr_init(&attr);
	attr.receive_cq = end->cq;
	attr.initiator_cq = end->cq;
	attr.receive_depth = end->slots;
	attr.initiator_depth = end->slots;
	attr.keepalive_ms = end->options->keepalive_ms;
	return ndx_qp_create(end->adapter, &attr, &end->qp);
}

int end_make(struct end *end, uint32_t slots, uint32_t size)
{
	enum ndx_status st;

	end->slots = slots;
	end->size = size;
	end->have = end->next = 0;
	st = ndx_cq_create_depth(end->adapter, 2 * slots, &end->cq);
	if (st != NDX_OK)
		return sample_failed(end->who, st, "create a completion queue of %u", 2 * slots);
	st = make_region(end, NDX_MR_ALLOW_LOCAL_WRITE, &end->requests, &end->requests_mr);
	if (st == NDX_OK)
		st = make_region(end, NDX_MR_ALLOW_LOCAL_WRITE, &end->responses,
		                 &end->responses_mr);
	if (st != NDX_OK)
		return sample_failed(end->who, st, "register %u messages of %u bytes", slots, size);
	st = make_queue_pair(end);
	if (st != NDX_OK)
		return sample_failed(end->who, st, "create a queue pair");
	return SAMPLE_EXIT_OK;
}

void end_drop(struct end *end)
{
	/*
	 * Objects may be closed in any order: each keeps what it needs. Memory is different: it is
	 * freed here, so its regions are closed before.
	 */
	ndx_connector_close(end->connector);
	ndx_qp_close(end->qp);
	ndx_mr_close(end->requests_mr);
	ndx_mr_close(end->responses_mr);
	ndx_cq_close(end->cq);
	free(end->requests);
	free(end->responses);
	end->connector = NULL;
	end->qp = NULL;
	end->requests_mr = end->responses_mr = NULL;
	end->cq = NULL;
	end->requests = end->responses = NULL;
}

static struct ndx_sge sge_of(const struct end *end, const struct ndx_mr *mr, uint8_t *base,
                             uint32_t slot)
{
	struct ndx_sge sge = {
		.buffer = base + (size_t)slot * end->size,
		.length = end->size,
		.token = ndx_mr_get_local_token(mr),
	};

	return sge;
}

/* In results, a slot is identified by its address in the memory of the requests. */
enum ndx_status end_post_receive(struct end *end, struct ndx_mr *mr, uint8_t *base, uint32_t slot)
{
	struct ndx_sge sge = sge_of(end, mr, base, slot);

	return ndx_qp_receive(end->qp, end->requests + (size_t)slot * end->size, &sge, 1);
}

enum ndx_status end_post_send(struct end *end, struct ndx_mr *mr, uint8_t *base, uint32_t slot)
{
	struct ndx_sge sge = sge_of(end, mr, base, slot);

	return ndx_qp_send(end->qp, end->requests + (size_t)slot * end->size, &sge, 1, 0);
}

static enum ndx_status poll_results(struct end *end, uint32_t timeout_ms)
{
	uint64_t deadline = sample_now_ns() + timeout_ms * UINT64_C(1000000);

	for (uint32_t empty = 1;; empty++) {
		end->have = ndx_cq_get_results(end->cq, end->results, 16);
		if (end->have > 0)
			return NDX_OK;
		if (empty % POLLS_PER_LOOK != 0)
			continue;
		if (sample_now_ns() >= deadline)
			return NDX_PENDING;
		(void)sched_yield(); /* the peer may need this CPU to answer */
	}
}

enum ndx_status end_next_result(struct end *end, uint32_t timeout_ms, struct ndx_result *result)
{
	enum ndx_status st = NDX_OK;

	if (end->next == end->have) {
		end_tell(end);
		end->next = end->have = 0;
		if (end->options->wait)
			st = ndx_cq_wait_results(end->cq, end->results, 16, timeout_ms, &end->have);
		else
			st = poll_results(end, timeout_ms);
	}
	if (st == NDX_OK)
		*result = end->results[end->next++];
	return st;
}

int end_finish(struct end *end, enum ndx_status started, struct ndx_overlapped *ov,
               const char *what)
{
	enum ndx_status st;

	if (started != NDX_PENDING)
		return sample_failed(end->who, started, "%s", what);
	st = ndx_overlapped_wait(ov, end->options->timeout_ms);
	if (st == NDX_OK)
		return SAMPLE_EXIT_OK;
	if (st != NDX_PENDING)
		return sample_ended_badly(end->who, end->connector, ov, "%s", what);
	/*
	 * Give up. The overlapped object is on the caller's stack, so it must not stay in flight.
	 */
	(void)ndx_connector_cancel(end->connector);
	return sample_no_answer(end->who, what, end->options->timeout_ms);
}

int end_watch(struct end *end)
{
	enum ndx_status st;

	ndx_overlapped_init(&end->notify);
	st = ndx_connector_notify_disconnect(end->connector, &end->notify);
	if (st != NDX_PENDING)
		return sample_failed(end->who, st, "ask for the end of the connection");
	return SAMPLE_EXIT_OK;
}

enum ndx_disconnect_reason end_reason(struct end *end, uint32_t timeout_ms)
{
	if (ndx_overlapped_wait(&end->notify, timeout_ms) != NDX_OK)
		return NDX_DISCONNECT_NONE;
	return (enum ndx_disconnect_reason)end->notify.information;
}

int end_disconnect(struct end *end)
{
	struct ndx_overlapped ov;
	enum ndx_status st;

	ndx_overlapped_init(&ov);
	st = ndx_connector_disconnect(end->connector, &ov);
	return end_finish(end, st, &ov, "disconnect");
}
