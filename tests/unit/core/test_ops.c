/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of the data path: whatever a provider sets, an inline call finds a function. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <ndx/log.h>

#include "ops.h"

static enum ndx_status post_send(struct ndx_qp *qp, void *context, const struct ndx_sge *sge,
                                 size_t count, uint32_t flags)
{
	(void)qp;
	(void)context;
	(void)sge;
	(void)count;
	(void)flags;
	return NDX_E_NO_MORE_ENTRIES;
}

static enum ndx_status post_receive(struct ndx_qp *qp, void *context, const struct ndx_sge *sge,
                                    size_t count)
{
	(void)qp;
	(void)context;
	(void)sge;
	(void)count;
	return NDX_OK;
}

static enum ndx_status transfer(struct ndx_qp *qp, void *context, const struct ndx_sge *sge,
                                size_t count, uint64_t remote_address, uint32_t remote_token,
                                uint32_t flags)
{
	(void)remote_address;
	(void)remote_token;
	return post_send(qp, context, sge, count, flags);
}

static enum ndx_status invalidate(struct ndx_qp *qp, void *context, struct ndx_mw *mw,
                                  uint32_t flags)
{
	(void)mw;
	return post_send(qp, context, NULL, 0, flags);
}

static const struct ndx_qp_ops least = {
	.size = sizeof(least),
	.send = post_send,
	.receive = post_receive,
	.read = transfer,
	.write = transfer,
};

static void lacking_functions_are_not_supported(void **state)
{
	struct ndx_spi_qp qp = {.pub.ops = &least};

	(void)state;
	assert_int_equal(ops_complete_qp(&qp), NDX_OK);
	assert_int_equal(qp.pub.ops->size, sizeof(struct ndx_qp_ops));
	assert_int_equal(ndx_qp_send_immediate(&qp.pub, NULL, NULL, 0, 1, 0), NDX_E_NOT_SUPPORTED);
	assert_int_equal(ndx_qp_write_immediate(&qp.pub, NULL, NULL, 0, 0, 0, 1, 0),
	                 NDX_E_NOT_SUPPORTED);
	assert_int_equal(ndx_qp_bind(&qp.pub, NULL, NULL, NULL, NULL, 0, 0), NDX_E_NOT_SUPPORTED);
	assert_int_equal(ndx_qp_invalidate(&qp.pub, NULL, NULL, 0), NDX_E_NOT_SUPPORTED);
	assert_int_equal(ndx_qp_send(&qp.pub, NULL, NULL, 0, 0), NDX_E_NO_MORE_ENTRIES);
	assert_int_equal(ndx_qp_receive(&qp.pub, NULL, NULL, 0), NDX_OK);
	free(qp.whole);
}

static unsigned sent;

static enum ndx_status take_three(struct ndx_qp *qp, void *context, const struct ndx_sge *sge,
                                  size_t count, uint32_t flags)
{
	assert_ptr_equal(context, (void *)(uintptr_t)(100 + sent));
	assert_int_equal(flags, sent);
	return sent == 3 ? post_send(qp, context, sge, count, flags) : (++sent, NDX_OK);
}

static enum ndx_status post_shared(struct ndx_srq *srq, void *context, const struct ndx_sge *sge,
                                   size_t count)
{
	(void)srq;
	(void)sge;
	(void)count;
	return (uintptr_t)context < 2 ? NDX_OK : NDX_E_NO_MORE_ENTRIES;
}

/* A provider without lists: one entry after the other, up to the first that is refused. */
static void lists_are_posted_singly(void **state)
{
	struct ndx_qp_ops older = least;
	struct ndx_srq_ops shared = {.size = sizeof(shared), .receive = post_shared};
	struct ndx_spi_qp qp = {.pub.ops = &older};
	struct ndx_spi_srq srq = {.pub.ops = &shared};
	struct ndx_request requests[5] = {{0}};
	struct ndx_receive receives[5] = {{0}};
	size_t posted = 9;

	(void)state;
	older.size = NDX_SIZE_UP_TO(struct ndx_qp_ops, invalidate);
	older.send = take_three;
	shared.size = NDX_SIZE_UP_TO(struct ndx_srq_ops, receive);
	assert_int_equal(ops_complete_qp(&qp), NDX_OK);
	assert_int_equal(ops_complete_srq(&srq), NDX_OK);
	for (uint32_t i = 0; i < 5; i++) {
		requests[i] = (struct ndx_request){
			.type = NDX_POST_SEND, .context = (void *)(uintptr_t)(100 + i), .flags = i};
		receives[i].context = (void *)(uintptr_t)i;
	}
	sent = 0;
	assert_int_equal(ndx_qp_post_list(&qp.pub, requests, 5, &posted), NDX_E_NO_MORE_ENTRIES);
	assert_int_equal(posted, 3);
	assert_int_equal(sent, 3);
	assert_non_null(strstr(ndx_last_error(), "ndx_qp_post_list: entry 3 of 5 was refused"));
	assert_int_equal(ndx_qp_receive_list(&qp.pub, receives, 5, &posted), NDX_OK);
	assert_int_equal(posted, 5);
	assert_int_equal(ndx_srq_receive_list(&srq.pub, receives, 5, &posted),
	                 NDX_E_NO_MORE_ENTRIES);
	assert_int_equal(posted, 2);
	free(qp.whole);
	free(srq.whole);
}

static void a_table_is_not_read_past_its_end(void **state)
{
	struct ndx_qp_ops older = least;
	struct ndx_spi_qp qp = {.pub.ops = &older};

	(void)state;
	older.size = NDX_SIZE_UP_TO(struct ndx_qp_ops, bind);
	/* What lies behind an older table is something else. */
	older.invalidate = invalidate;
	assert_int_equal(ops_complete_qp(&qp), NDX_OK);
	assert_int_equal(ndx_qp_invalidate(&qp.pub, NULL, NULL, 0), NDX_E_NOT_SUPPORTED);
	free(qp.whole);
}

static void a_complete_table_stays_the_providers(void **state)
{
	struct ndx_spi_qp whole = {.pub.ops = &least};
	struct ndx_spi_qp qp = {0};

	(void)state;
	assert_int_equal(ops_complete_qp(&whole), NDX_OK);
	qp.pub.ops = whole.pub.ops;
	assert_int_equal(ops_complete_qp(&qp), NDX_OK);
	assert_ptr_equal(qp.pub.ops, whole.pub.ops);
	assert_null(qp.whole);
	free(whole.whole);
}

static void functions_that_must_be_there_are_missed(void **state)
{
	struct ndx_qp_ops none = least;
	struct ndx_spi_qp qp = {.pub.ops = &none};
	const struct ndx_cq_ops cq = {.size = sizeof(cq)};
	const struct ndx_srq_ops srq_ops = {.size = sizeof(srq_ops)};
	struct ndx_spi_srq srq = {.pub.ops = &srq_ops};

	(void)state;
	none.write = NULL;
	assert_int_equal(ops_complete_qp(&qp), NDX_E_ABI_MISMATCH);
	none = least;
	none.size = 0;
	assert_int_equal(ops_complete_qp(&qp), NDX_E_ABI_MISMATCH);
	assert_false(ops_check_cq(&cq));
	assert_int_equal(ops_complete_srq(&srq), NDX_E_ABI_MISMATCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lacking_functions_are_not_supported),
		cmocka_unit_test(lists_are_posted_singly),
		cmocka_unit_test(a_table_is_not_read_past_its_end),
		cmocka_unit_test(a_complete_table_stays_the_providers),
		cmocka_unit_test(functions_that_must_be_there_are_missed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
