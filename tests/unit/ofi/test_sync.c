/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tokens that a SYNC names, and the time limit of its answer. The peer is a bare one, which
 * answers when the test decides.
 */
#include "bare.h"

#include <poll.h>
#include <string.h>

#include <ndx/spi/byteorder.h>

#undef fail /* cmocka's macro; <ndx/spi/log.h> declares a function of this name */
#include <ndx/spi/system.h>
#include "ofi.h"

#define PART 64u
#define FIRST 1u                         /* is deregistered first, and the others during its SYNC */
#define MAX_OTHERS (OFI_TOKENS_MAX + 2u) /* more tokens than a SYNC can name */
#define NEVER_MS 600000u                 /* longer than any test */
#define FILL 0xee

static struct ofi_adapter *adapter_of(const struct pair_side *side)
{
	return ofi_adapter_of(((const struct ndx_spi_mr *)(const void *)side->mr)->object.native);
}

/* A slow machine must not end a connection. */
static void disable_stall_limit(const struct pair_side *side)
{
	adapter_of(side)->stall_ms = NEVER_MS;
}

static void write_synced(struct bare *b)
{
	bare_write_ctrl(b, bare_encode_ctrl(b, OFI_CTRL_SYNCED, 0));
}

static void expect_sync(struct bare *b, uint16_t count)
{
	const struct ofi_ctrl ctrl = bare_read_ctrl(b);

	assert_int_equal(ctrl.type, OFI_CTRL_SYNC);
	assert_int_equal(ctrl.count, count);
}

/* Answer each SYNC until the deregistration is complete. */
static void answer_syncs_until(struct bare *b, const struct ndx_overlapped *ov)
{
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS;
	struct fi_cq_data_entry entry;

	while (ndx_overlapped_status(ov) == NDX_PENDING && pair_now() < end) {
		if (fi_cq_read(b->cq, &entry, 1) == 1 && (entry.flags & FI_REMOTE_CQ_DATA) &&
		    ofi_ctrl_split(entry.data).type == OFI_CTRL_SYNC)
			write_synced(b);
	}
	assert_int_equal(ndx_overlapped_status(ov), NDX_OK);
}

/* ---- the tokens of a SYNC ---- */

struct asked_regions {
	struct ndx_mr *mr[FIRST + MAX_OTHERS];
	struct ndx_overlapped ov[FIRST + MAX_OTHERS];
	uint32_t token[FIRST + MAX_OTHERS];
};

/* Register `count` regions of b, and ask for their tokens. */
static void register_and_ask(struct asked_regions *k, struct pair *p, struct bare *b,
                             unsigned count)
{
	struct ofi_grant grant;

	memset(k, 0, sizeof(*k));
	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(ndx_mr_register_new(p->b.adapter, p->b.memory, PART,
		                                     NDX_MR_ALLOW_REMOTE_READ, &k->mr[i]),
		                 NDX_OK);
		k->token[i] = ndx_mr_get_remote_token(k->mr[i]);
		assert_int_equal(bare_ask_token(b, k->token[i], &grant), OFI_GRANT_READ);
	}
}

static void assert_named(const struct bare *b, const uint32_t *tokens, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(ndxp_get_be32(b->memory + OFI_AREA_TOKENS + 4 * i), tokens[i]);
	for (size_t i = OFI_AREA_TOKENS + 4 * count; i < sizeof(b->memory); i++)
		assert_int_equal(b->memory[i], FILL);
}

/* Deregister `count` regions during the SYNC about another one. The next SYNC names them one by
 * one, or all tokens. */
static void deregister_during_sync(struct pair *p, unsigned count, uint16_t named)
{
	static struct asked_regions k; /* static: outlives a case that fails */
	struct bare b;

	disable_stall_limit(&p->b);
	bare_connect_to_b(&b, p);
	bare_send_ready(&b, p);
	register_and_ask(&k, p, &b, FIRST + count);
	assert_int_equal(ndx_mr_deregister(k.mr[0], &k.ov[0]), NDX_PENDING);
	expect_sync(&b, FIRST);
	assert_int_equal(ndxp_get_be32(b.memory + OFI_AREA_TOKENS), k.token[0]);
	for (unsigned i = FIRST; i < FIRST + count; i++)
		assert_int_equal(ndx_mr_deregister(k.mr[i], &k.ov[i]), NDX_PENDING);
	pair_run_jobs(&p->b);
	memset(b.memory + OFI_AREA_TOKENS, FILL, sizeof(b.memory) - OFI_AREA_TOKENS);
	write_synced(&b);
	expect_sync(&b, named);
	assert_named(&b, k.token + FIRST, named == OFI_TOKENS_ALL ? 0 : count);
	write_synced(&b);
	for (unsigned i = 0; i < FIRST + count; i++) {
		answer_syncs_until(&b, &k.ov[i]);
		ndx_mr_close(k.mr[i]);
	}
	assert_int_equal(ndx_overlapped_status(&p->b.ov), NDX_PENDING);
	bare_close(&b);
	pair_drop_side(&p->b);
}

static void as_many_tokens_as_there_is_room_for_are_named(void **state)
{
	deregister_during_sync(*state, 1, 1);
	deregister_during_sync(*state, OFI_TOKENS_MAX, OFI_TOKENS_MAX);
}

static void more_tokens_than_that_stand_for_all(void **state)
{
	deregister_during_sync(*state, OFI_TOKENS_MAX + 1, OFI_TOKENS_ALL);
	deregister_during_sync(*state, MAX_OTHERS, OFI_TOKENS_ALL);
}

/* ---- SYNC from the peer ---- */

/* b writes to the peer. `asks`: b has to ask for the token's grant first. */
static void write_bytes(struct pair_side *side, struct bare *b, bool asks)
{
	const struct ndx_sge sge = pair_sge(side, 0, PART);
	struct ofi_grant grant = {.start = (uintptr_t)b->memory,
	                          .length = sizeof(b->memory),
	                          .token = BARE_KEY,
	                          .rights = OFI_GRANT_WRITE};
	uint8_t record[OFI_GRANT_SIZE];
	struct ndx_result result = {.status = NDX_PENDING};
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS;
	struct fi_cq_data_entry entry;

	assert_int_equal(ndx_qp_write(side->qp, NULL, &sge, 1, (uintptr_t)b->memory + OFI_AREA_SIZE,
	                              BARE_KEY, 0),
	                 NDX_OK);
	if (asks) {
		assert_int_equal(bare_read_ctrl(b).type, OFI_CTRL_ASK);
		assert_int_equal(ndxp_get_be32(b->memory + OFI_AREA_QUESTION), BARE_KEY);
		ofi_grant_encode(&grant, record);
		bare_write_record(b, bare_encode_ctrl(b, OFI_CTRL_ANSWER, 0), OFI_AREA_ANSWER,
		                  record, sizeof(record));
	}
	while (ndx_cq_get_results(side->cq, &result, 1) == 0 && pair_now() < end) {
		if (fi_cq_read(b->cq, &entry, 1) == 1)
			assert_int_equal(entry.flags & FI_REMOTE_CQ_DATA, 0);
	}
	assert_int_equal(result.status, NDX_OK);
}

/* The peer sends a SYNC of `count` tokens. The token that b knows is at `place`, and so is not
 * named if count <= place. */
static void write_sync(struct bare *b, uint16_t count, uint16_t place)
{
	uint8_t record[4 * OFI_TOKENS_MAX] = {0};

	for (uint16_t i = 0; i < OFI_TOKENS_MAX; i++)
		ndxp_put_be32(record + (size_t)4 * i, i == place ? BARE_KEY : BARE_KEY + 1u + i);
	bare_write_record(b, bare_encode_ctrl(b, OFI_CTRL_SYNC, count), OFI_AREA_TOKENS, record,
	                  sizeof(record));
	assert_int_equal(bare_read_ctrl(b).type, OFI_CTRL_SYNCED);
}

static void a_token_that_a_sync_names_is_asked_for_again(void **state)
{
	struct pair *p = *state;
	struct bare b;

	bare_connect_to_b(&b, p);
	bare_send_ready(&b, p);
	write_bytes(&p->b, &b, true);
	write_bytes(&p->b, &b, false);
	for (uint16_t i = 0; i < OFI_TOKENS_MAX; i++) {
		write_sync(&b, i, i); /* one token too few: the token is not named */
		write_bytes(&p->b, &b, false);
		write_sync(&b, i + 1, i);
		write_bytes(&p->b, &b, true);
	}
	write_sync(&b, OFI_TOKENS_ALL, OFI_TOKENS_MAX);
	write_bytes(&p->b, &b, true);
	bare_close(&b);
	pair_drop_side(&p->b);
}

/* ---- the time limit ---- */

/* The peer answers no SYNC and writes without end: it looks like a peer with much data to send
 * before its answer. */
static void an_endless_stream_ends_the_wait(void **state)
{
	struct pair *p = *state;
	const uint32_t token = ndx_mr_get_remote_token(p->b.mr);
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS;
	struct asked_regions k;
	struct fi_cq_data_entry entry;
	struct bare b;

	assert_int_equal(adapter_of(&p->b)->stall_ms, OFI_STALL_MS);
	assert_int_equal(adapter_of(&p->b)->confirm_ms, OFI_CONFIRM_MS);
	disable_stall_limit(&p->b);
	adapter_of(&p->b)->confirm_ms = 500;
	bare_connect_to_b(&b, p);
	bare_send_ready(&b, p);
	register_and_ask(&k, p, &b, 1);
	assert_int_equal(ndx_mr_deregister(k.mr[0], &k.ov[0]), NDX_PENDING);
	expect_sync(&b, 1);
	while (ndx_overlapped_status(&k.ov[0]) == NDX_PENDING) {
		assert_true(pair_now() < end);
		if (fi_write(b.ep, b.memory, sizeof(b.memory), NULL, 0, (uintptr_t)p->b.memory,
		             token, b.memory) != 0)
			continue; /* the connection has ended */
		while (fi_cq_read(b.cq, &entry, 1) == -FI_EAGAIN)
			;
	}
	assert_int_equal(ndx_overlapped_status(&k.ov[0]), NDX_OK);
	ndx_mr_close(k.mr[0]);
	assert_int_equal(pair_wait(&p->b.ov), NDX_OK);
	assert_int_equal(p->b.ov.information, NDX_DISCONNECT_ABORTED);
	bare_close(&b);
	pair_drop_side(&p->b);
}

/* ---- a window that is bound again ---- */

static uint32_t bind_window(struct pair_side *side, struct ndx_mr *mr, struct ndx_mw *mw)
{
	assert_int_equal(ndx_qp_bind(side->qp, NULL, mr, mw, side->memory, PART, NDX_OP_ALLOW_READ),
	                 NDX_OK);
	pair_expect(side, NDX_REQUEST_BIND, 0, NDX_OK);
	return ndx_mw_get_remote_token(mw);
}

struct close_call {
	struct ndx_overlapped ov; /* first */
	struct ndx_mr *mr;
	uint32_t finished;
};

static void close_region(struct ndx_overlapped *ov)
{
	struct close_call *c = (struct close_call *)(void *)ov;

	ndx_mr_close(c->mr);
	__atomic_store_n(&c->finished, 1, __ATOMIC_RELEASE);
}

/* Close the window's region in a callback, whose time limit is short, so the peer that does not
 * answer loses its connection. */
static void close_region_in_callback(struct pair *p, struct ndx_mw *mw)
{
	static struct close_call c; /* static: outlives a case that fails */
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS;
	struct ndx_mr *trigger;
	struct ofi_grant grant;
	struct bare b;

	c = (struct close_call){.ov.callback = close_region};
	bare_connect_to_b(&b, p);
	bare_send_ready(&b, p);
	assert_int_equal(ndx_mr_register_new(p->b.adapter, p->b.memory, PART, 0, &c.mr), NDX_OK);
	assert_int_equal(bare_ask_token(&b, bind_window(&p->b, c.mr, mw), &grant), OFI_GRANT_READ);
	assert_int_equal(ndx_mr_create(p->b.adapter, &trigger), NDX_OK);
	assert_int_equal(ndx_mr_register(trigger, p->b.memory, PART, 0, &c.ov), NDX_PENDING);
	while (__atomic_load_n(&c.finished, __ATOMIC_ACQUIRE) == 0 && pair_now() < end)
		(void)poll(NULL, 0, 1);
	assert_int_equal(c.finished, 1);
	ndx_mr_close(trigger);
	assert_int_equal(pair_wait(&p->b.ov), NDX_OK);
	assert_int_equal(p->b.ov.information, NDX_DISCONNECT_ABORTED);
	bare_close(&b);
	pair_drop_side(&p->b);
}

/* The short time limit of the callback does not stay with the window: the next peer has the full
 * time. */
static void a_window_bound_again_has_the_full_time_again(void **state)
{
	struct pair *p = *state;
	struct ofi_adapter *adapter = adapter_of(&p->b);
	struct ndx_result result = {.status = NDX_PENDING};
	struct ofi_grant grant;
	struct ndx_mw *mw;
	struct bare b;
	uint64_t end;

	disable_stall_limit(&p->b);
	assert_int_equal(ndx_mw_create(p->b.adapter, &mw), NDX_OK);
	close_region_in_callback(p, mw);
	bare_connect_to_b(&b, p);
	bare_send_ready(&b, p);
	assert_int_equal(bare_ask_token(&b, bind_window(&p->b, p->b.mr, mw), &grant),
	                 OFI_GRANT_READ);
	assert_int_equal(ndx_qp_invalidate(p->b.qp, NULL, mw, 0), NDX_OK);
	expect_sync(&b, 1);
	/* Wait longer than a callback does; then let the control thread look for peers that are
	 * late. */
	for (end = pair_now() + 300; pair_now() < end;)
		(void)poll(NULL, 0, 10);
	ndxp_loop_call(adapter->spi.loop, ofi_revoke_on_job, adapter);
	assert_int_equal(ndx_overlapped_status(&p->b.ov), NDX_PENDING);
	write_synced(&b);
	expect_sync(&b, 0);
	write_synced(&b);
	end = pair_now() + PAIR_TIMEOUT_MS;
	while (ndx_cq_get_results(p->b.cq, &result, 1) == 0 && pair_now() < end)
		(void)fi_cq_read(b.cq, NULL, 0);
	assert_int_equal(result.request_type, NDX_REQUEST_INVALIDATE);
	assert_int_equal(result.status, NDX_OK);
	bare_close(&b);
	pair_drop_side(&p->b);
	ndx_mw_close(mw);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, pair_up, pair_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(as_many_tokens_as_there_is_room_for_are_named),
		CASE(more_tokens_than_that_stand_for_all),
		CASE(a_token_that_a_sync_names_is_asked_for_again),
		CASE(an_endless_stream_ends_the_wait),
		CASE(a_window_bound_again_has_the_full_time_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
