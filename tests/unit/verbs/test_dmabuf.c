/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions of a dma-buf. Software RoCE takes none, so the device is not there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "rig.h"

#define FD 5 /* the fake device does not look at it */
#define OFFSET 0x3010u
#define LENGTH 256u
#define IOVA UINT64_C(0x7f0000001010)

static struct ndx_spi_mr *create_mr(struct rig *rig)
{
	struct ndx_spi_mr *mr = NULL;

	rig_open(rig);
	assert_int_equal(verbs_mr_create(&rig->adapter.spi, &mr), NDX_OK);
	return mr;
}

static void close_mr(struct rig *rig, struct ndx_spi_mr *mr)
{
	verbs_mr_destroy(mr);
	rig_close(rig);
}

static void the_capability_is_what_the_device_can_do(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig);
	assert_false(verbs_mr_has_dmabuf(&rig.adapter));
	rig.device.has_dmabuf = true;
	assert_true(verbs_mr_has_dmabuf(&rig.adapter));
	assert_int_equal(rig.device.regions, 0);
	rig_close(&rig);
}

/* The bytes at IOVA - 1 and behind the last are no part of the region. */
static bool is_good(struct rig *rig, uint64_t at, uint32_t length, uint32_t token, bool write)
{
	const struct ndx_sge sge = {(void *)(uintptr_t)at, length, token};

	return verbs_list_is_good(&rig->adapter, &sge, 1, write);
}

/* Requests name the memory by `iova`; rdma-core calls the offset the region's address. */
static void requests_name_the_memory_by_its_iova(void **state)
{
	struct rig rig;
	struct ndx_spi_mr *mr = create_mr(&rig);

	(void)state;
	rig.device.has_dmabuf = true;
	assert_int_equal(
		verbs_mr_register_dmabuf(mr, FD, OFFSET, LENGTH, IOVA, NDX_MR_ALLOW_LOCAL_WRITE),
		NDX_OK);
	assert_int_not_equal(mr->local_token, 0);
	assert_int_not_equal(mr->remote_token, 0);
	assert_true(is_good(&rig, IOVA, LENGTH, mr->local_token, true));
	assert_true(is_good(&rig, IOVA + LENGTH - 1, 1, mr->local_token, true));
	assert_false(is_good(&rig, IOVA - 1, 1, mr->local_token, true));
	assert_false(is_good(&rig, IOVA + LENGTH, 1, mr->local_token, true));
	assert_false(is_good(&rig, OFFSET, 1, mr->local_token, true));
	assert_int_equal(verbs_mr_deregister(mr, false), NDX_OK);
	assert_int_equal(verbs_mr_register_dmabuf(mr, FD, OFFSET, LENGTH, IOVA, 0), NDX_OK);
	assert_true(is_good(&rig, IOVA, LENGTH, mr->local_token, false));
	assert_false(is_good(&rig, IOVA, LENGTH, mr->local_token, true));
	assert_int_equal(verbs_mr_deregister(mr, false), NDX_OK);
	assert_int_equal(rig.device.regions, 0);
	close_mr(&rig, mr);
}

static void a_refusal_says_what_may_be_wrong(void **state)
{
	struct rig rig;
	struct ndx_spi_mr *mr = create_mr(&rig);

	(void)state;
	assert_int_equal(verbs_mr_register_dmabuf(mr, FD, OFFSET, LENGTH, IOVA, 0),
	                 NDX_E_NOT_SUPPORTED);
	rig.device.has_dmabuf = true;
	assert_int_equal(verbs_mr_register_dmabuf(mr, FD, OFFSET, LENGTH, IOVA + 1, 0),
	                 NDX_E_INVALID_PARAMETER);
	assert_non_null(strstr(ndx_last_error(), "dma-buf 5 from offset 0x3010"));
	assert_non_null(strstr(ndx_last_error(), "same position in a page"));
	rig.device.refuse_nth[FAKE_REG_MR] = 1;
	assert_int_not_equal(verbs_mr_register_dmabuf(mr, FD, OFFSET, LENGTH, IOVA, 0), NDX_OK);
	assert_int_equal(rig.device.regions, 0);
	close_mr(&rig, mr);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_capability_is_what_the_device_can_do),
		cmocka_unit_test(requests_name_the_memory_by_its_iova),
		cmocka_unit_test(a_refusal_says_what_may_be_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
