/* SPDX-License-Identifier: BSD-2-Clause */
/* Adapter and variant; completion queue, region, queue pair and connector of one end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "negotiate.h"
#include "sample_options.h"
#include "sample_report.h"

#define PARTS 3u /* parts of an end's memory */

static struct ndx_qp_attr qp_attr(const struct place *place, struct ndx_cq *cq)
{
	struct ndx_qp_attr attr;

	ndx_qp_attr_init(&attr);
	attr.receive_cq = cq;
	attr.initiator_cq = cq;
	attr.receive_depth = 2;
	attr.initiator_depth = 2;
	attr.keepalive_ms = place->options->keepalive_ms;
	return attr;
}

int place_open(struct place *place, const char *who, const struct negotiate_options *options)
{
	const char *variant = options->variant;
	enum ndx_status st;
	int rc;

	memset(place, 0, sizeof(*place));
	place->who = who;
	place->options = options;
	rc = sample_open_adapter(who, options->adapter, &place->adapter);
	if (rc != SAMPLE_EXIT_OK)
		return rc;
	place->info.size = sizeof(place->info);
	st = ndx_adapter_query(place->adapter, &place->info);
	if (st == NDX_OK && variant == NULL)
		st = sample_variant_of(place->adapter, &variant);
	if (st == NDX_OK)
		rc = sample_negotiation_open(&place->negotiation, who, variant, options->settings,
		                             options->plugins, "--plugins");
	else
		rc = sample_failed(who, st, "look at the adapter");
	if (rc != SAMPLE_EXIT_OK)
		ndx_adapter_close(place->adapter);
	return rc;
}

void place_close(struct place *place)
{
	sample_negotiation_close(&place->negotiation);
	ndx_adapter_close(place->adapter);
}

int end_make(struct end *end, const struct place *place)
{
	struct ndx_qp_attr attr;
	enum ndx_status st;

	memset(end, 0, sizeof(*end));
	end->place = place;
	end->size = place->options->size;
	end->memory = calloc(PARTS, end->size);
	if (end->memory == NULL)
		return sample_failed(place->who, NDX_E_NO_MEMORY, "make an end");
	st = ndx_cq_create_depth(place->adapter, 4, &end->cq);
	if (st == NDX_OK)
		st = ndx_mr_register_new(place->adapter, end->memory, PARTS * (size_t)end->size,
		                         NDX_MR_ALLOW_REMOTE_READ | NDX_MR_ALLOW_REMOTE_WRITE,
		                         &end->mr);
	attr = qp_attr(place, end->cq);
	if (st == NDX_OK)
		st = ndx_qp_create(place->adapter, &attr, &end->qp);
	if (st == NDX_OK)
		st = ndx_connector_create(place->adapter, NULL, &end->connector);
	if (st == NDX_OK)
		return SAMPLE_EXIT_OK;
	(void)sample_failed(place->who, st, "make an end with messages of %u bytes", end->size);
	end_drop(end);
	return SAMPLE_EXIT_FAILED;
}

void end_drop(struct end *end)
{
	ndx_connector_close(end->connector);
	ndx_qp_close(end->qp);
	ndx_mr_close(end->mr);
	ndx_cq_close(end->cq);
	free(end->memory);
	memset(end, 0, sizeof(*end));
}

struct ndx_memory_description end_describe(const struct end *end)
{
	return (struct ndx_memory_description){
		.address = (uintptr_t)(end->memory + 2 * (size_t)end->size),
		.length = end->size,
		.token = ndx_mr_get_remote_token(end->mr)};
}

int end_watch(struct end *end)
{
	enum ndx_status st;

	ndx_overlapped_init(&end->notify);
	st = ndx_connector_notify_disconnect(end->connector, &end->notify);
	if (st == NDX_PENDING)
		return SAMPLE_EXIT_OK;
	return sample_failed(end->place->who, st, "ask for the end of the connection");
}

enum ndx_disconnect_reason end_reason(struct end *end)
{
	enum ndx_status st = NDX_PENDING;

	for (uint32_t left = end->place->options->timeout_ms;
	     st == NDX_PENDING && left > 0 && !*stop_flag();) {
		const uint32_t slice = left < WAIT_SLICE_MS ? left : WAIT_SLICE_MS;

		st = ndx_overlapped_wait(&end->notify, slice);
		left -= slice;
	}
	if (st != NDX_OK)
		return NDX_DISCONNECT_NONE;
	return (enum ndx_disconnect_reason)end->notify.information;
}

int end_disconnect(struct end *end)
{
	enum ndx_status st = ndx_disconnect(end->connector, end->place->options->timeout_ms);

	return st == NDX_OK ? SAMPLE_EXIT_OK : sample_failed(end->place->who, st, "disconnect");
}
