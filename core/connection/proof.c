/* SPDX-License-Identifier: BSD-2-Clause */
/* The proof that the path of a connection passes packets in both directions, for connections whose
 * ends were described to each other. */
#include <stdlib.h>

#include <ndx/spi/log.h>
#include <ndx/spi/system.h>
#include "base_ov.h"
#include "connection.h"

/* Nothing reports that the peer's writes have arrived. The peer begins at about the same time. */
#define LOOK_MS 1u
#define LOOKS 50u        /* at that distance, ... */
#define LOOK_MOST_MS 16u /* ... then at this one */

struct conn_proof {
	struct ndx_connector *connector;
	struct ndx_overlapped *ov;
	uint64_t write;
	uint64_t expect;
	uint64_t deadline_ns;
	struct ndxp_timer timer;
	uint32_t looks;
	bool begun;
};

bool conn_can_prove(const struct ndx_connector *c)
{
	const struct ndx_provider_ops *ops = c->adapter->ops;
	bool can;

	adapter_lock(c->adapter);
	can = ops->conn_prove != NULL && ops->conn_prove(c->native, 0, 0, NULL) == NDX_OK;
	adapter_unlock(c->adapter);
	return can;
}

static void complete(struct ndx_connector *c, enum ndx_status status, uint32_t information,
                     int32_t native)
{
	struct conn_proof *proof = c->proof;

	c->proof = NULL;
	ndxp_timer_cancel(c->adapter->loop, &proof->timer);
	conn_complete_ov(c, &proof->ov, status, information, native);
	free(proof);
}

static void look(struct ndx_connector *c, bool last)
{
	struct ndx_spi_proof found = {.status = NDX_PENDING};
	uint32_t information;
	enum ndx_status st;

	if (c->proof == NULL)
		return;
	if (!c->proof->begun) {
		if (last)
			complete(c, NDX_OK, 0, 0);
		return;
	}
	st = c->adapter->ops->conn_prove(c->native, c->proof->write, c->proof->expect, &found);
	last = last || st != NDX_OK || (found.status != NDX_OK && found.status != NDX_PENDING) ||
	       ndxp_now_ns() >= c->proof->deadline_ns;
	last = last || found.seen == NDX_PROVED_REFUSED; /* breaks the own queue pair, too */
	if (!last && (found.status == NDX_PENDING || found.seen != NDX_PROVED_WHOLE)) {
		ndxp_timer_set(c->adapter->loop, &c->proof->timer,
		               c->proof->looks++ < LOOKS ? LOOK_MS : LOOK_MOST_MS);
		return;
	}
	information = (uint32_t)found.written | (uint32_t)found.seen << 2;
	if (found.status == NDX_E_ACCESS_VIOLATION)
		information |= CONN_PROOF_DENIED;
	complete(c, NDX_OK, information, found.native);
}

static void on_timer(void *arg)
{
	struct ndx_connector *c = ((struct conn_proof *)arg)->connector;

	adapter_lock(c->adapter);
	look(c, false);
	adapter_unlock(c->adapter);
}

void conn_proof_begin(struct ndx_connector *c)
{
	if (c->proof == NULL)
		return;
	c->proof->begun = true;
	look(c, c->phase != CONN_UP);
}

void conn_proof_look(struct ndx_connector *c)
{
	look(c, false);
}

void conn_proof_end(struct ndx_connector *c)
{
	look(c, true);
}

void conn_proof_cancel(struct ndx_connector *c)
{
	if (c->proof != NULL)
		complete(c, NDX_E_CANCELED, 0, 0);
}

enum ndx_status conn_prove(struct ndx_connector *c, uint64_t write, uint64_t expect, uint32_t ms,
                           struct ndx_overlapped *ov)
{
	struct conn_proof *proof = calloc(1, sizeof(*proof));
	enum ndx_status st = NDX_OK;

	if (proof == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "no memory for the proof of the path");
	proof->connector = c;
	proof->ov = ov;
	proof->write = write;
	proof->expect = expect;
	proof->deadline_ns = ndxp_deadline(ms);
	proof->timer = (struct ndxp_timer){.fn = on_timer, .arg = proof};
	adapter_lock(c->adapter);
	if (c->proof != NULL)
		st = fail(NDX_E_CONNECTION_ACTIVE, 0, "a proof is in progress");
	else
		st = base_ov_begin(ov, c->adapter->loop);
	if (st == NDX_OK) {
		c->proof = proof;
		conn_command(c, CONN_DO_PROVE);
	}
	adapter_unlock(c->adapter);
	if (st == NDX_OK)
		return NDX_PENDING;
	free(proof);
	return st;
}
