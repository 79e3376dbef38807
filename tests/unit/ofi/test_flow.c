/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What counts while the answer to a SYNC is awaited: data that the answer can stand behind, and no
 * control word, however many there are. The kernel's counters of the connection are the test's, so
 * a flood is one whatever the machine does meanwhile.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <string.h>

#undef fail /* cmocka's; base_log.h has another */
#include "ofi.h"

#define SIGN 1024u  /* bytes that count */
#define WORD 96u    /* bytes of a control word at most */
#define FLOOD 1000u /* words */

static struct base_traffic bytes; /* of the connection */
static bool told;                 /* the kernel knows */

/* The linker puts it before base_diag.c's. */
bool __wrap_base_diag_tcp(int fd, const struct sockaddr_storage *near,
                          const struct sockaddr_storage *far, struct base_diag_end *out);

bool __wrap_base_diag_tcp(int fd, const struct sockaddr_storage *near,
                          const struct sockaddr_storage *far, struct base_diag_end *out)
{
	(void)fd;
	(void)near;
	(void)far;
	*out = (struct base_diag_end){.established = true, .bytes = bytes};
	return told;
}

static int give_name(fid_t fid, void *address, size_t *len)
{
	const struct sockaddr_in local = {.sin_family = AF_INET,
	                                  .sin_port = htons(1),
	                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	(void)fid;
	assert_true(*len >= sizeof(local));
	memcpy(address, &local, sizeof(local));
	*len = sizeof(local);
	return 0;
}

static int give_peer(struct fid_ep *ep, void *address, size_t *len)
{
	return give_name(&ep->fid, address, len);
}

static struct fi_ops_cm cm = {
	.size = sizeof(struct fi_ops_cm), .getname = give_name, .getpeer = give_peer};

struct rig {
	struct ofi_adapter adapter;
	struct fid_ep ep;
	struct ofi_link link;
};

static void rig_open(struct rig *rig, bool acked)
{
	memset(rig, 0, sizeof(*rig));
	rig->ep.cm = &cm;
	rig->link.adapter = &rig->adapter;
	rig->link.ep = &rig->ep;
	rig->link.sync_acked = acked;
	bytes = (struct base_traffic){0};
	told = true;
}

/* Since the last look; the time from which on it counts is long ago. */
static bool has_moved(struct rig *rig)
{
	return ofi_liveness_stall_ns(&rig->link, 1) == 0;
}

/* The peer says something, and we answer. */
static void exchange_control_messages(struct rig *rig, unsigned count)
{
	rig->link.ctrl_in += count;
	rig->link.signs_of_life += count;
	bytes.in += (uint64_t)WORD * count;
	bytes.out += (uint64_t)WORD * count;
}

static void control_messages_do_not_count_as_progress(void **state)
{
	struct rig rig;

	(void)state;
	for (int acked = 0; acked < 2; acked++) {
		rig_open(&rig, acked != 0);
		for (int i = 0; i < 10; i++) {
			exchange_control_messages(&rig, FLOOD);
			assert_false(has_moved(&rig));
		}
		bytes.in += SIGN - 1;
		assert_false(has_moved(&rig));
		bytes.in++;
		assert_true(has_moved(&rig));
		assert_false(has_moved(&rig));
		/* ... nor do they count against what comes later. */
		exchange_control_messages(&rig, FLOOD);
		bytes.in += SIGN;
		assert_true(has_moved(&rig));
		bytes.in += SIGN;
		assert_true(has_moved(&rig));
	}
}

static void what_comes_counts_bit_by_bit(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig, true);
	for (int i = 0; i < 3; i++) {
		bytes.in += SIGN / 2;
		assert_false(has_moved(&rig));
		bytes.in += SIGN / 2;
		assert_true(has_moved(&rig));
	}
}

/* The answer does not stand behind what we send once SYNC has been delivered. */
static void what_goes_counts_until_the_question_is_delivered(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig, false);
	bytes.out += SIGN;
	assert_true(has_moved(&rig));
	rig.link.sync_acked = true;
	bytes.out += FLOOD * SIGN;
	assert_false(has_moved(&rig));
	bytes.in += SIGN;
	assert_true(has_moved(&rig));
}

static void where_the_kernel_does_not_tell_any_sign_counts(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig, true);
	told = false;
	assert_false(has_moved(&rig));
	rig.link.signs_of_life++;
	assert_true(has_moved(&rig));
	assert_false(has_moved(&rig));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(control_messages_do_not_count_as_progress),
		cmocka_unit_test(what_comes_counts_bit_by_bit),
		cmocka_unit_test(what_goes_counts_until_the_question_is_delivered),
		cmocka_unit_test(where_the_kernel_does_not_tell_any_sign_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
