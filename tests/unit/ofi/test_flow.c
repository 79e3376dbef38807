/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What counts as progress while a SYNC awaits its answer: data that may precede the answer, and no
 * control message, however many arrive. What counts as a sign of life for keepalive, and when. The
 * test replaces the kernel's counters of the connection and moves the times of the link, so the
 * speed of the machine does not matter.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include <ndx/spi/system.h>

#undef fail /* cmocka's macro; <ndx/spi/log.h> declares a function of this name */
#include "ofi.h"

#define COUNTED_BYTES 1024u /* the number of data bytes that counts as progress */
#define CTRL_BYTES 96u      /* the largest number of bytes of a control message */
#define FLOOD 1000u         /* control messages */

static struct ndxp_traffic traffic; /* the kernel's byte counters of the connection */
static bool kernel_knows;           /* the kernel returns the counters */

/* The linker resolves ndxp_diag_tcp to this function. */
bool __wrap_ndxp_diag_tcp(int fd, const struct sockaddr_storage *near,
                          const struct sockaddr_storage *far, struct ndxp_diag_end *out);

bool __wrap_ndxp_diag_tcp(int fd, const struct sockaddr_storage *near,
                          const struct sockaddr_storage *far, struct ndxp_diag_end *out)
{
	(void)fd;
	(void)near;
	(void)far;
	*out = (struct ndxp_diag_end){.established = true, .bytes = traffic};
	return kernel_knows;
}

static int get_local_name(fid_t fid, void *address, size_t *len)
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

static int get_peer_name(struct fid_ep *ep, void *address, size_t *len)
{
	return get_local_name(&ep->fid, address, len);
}

static struct fi_ops_cm cm = {
	.size = sizeof(struct fi_ops_cm), .getname = get_local_name, .getpeer = get_peer_name};

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
	traffic = (struct ndxp_traffic){0};
	kernel_knows = true;
}

/* True: data have moved since the last call. The wait began at time 1 ns, long ago. */
static bool has_moved(struct rig *rig)
{
	return ofi_liveness_stall_ns(&rig->link, 1) == 0;
}

/* The peer sends control messages, and this end answers each of them. */
static void exchange_control_messages(struct rig *rig, unsigned count)
{
	rig->link.ctrl_in += count;
	rig->link.signs_of_life += count;
	traffic.in += (uint64_t)CTRL_BYTES * count;
	traffic.out += (uint64_t)CTRL_BYTES * count;
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
		traffic.in += COUNTED_BYTES - 1;
		assert_false(has_moved(&rig));
		traffic.in++;
		assert_true(has_moved(&rig));
		assert_false(has_moved(&rig));
		/* Control messages do not hide later data either. */
		exchange_control_messages(&rig, FLOOD);
		traffic.in += COUNTED_BYTES;
		assert_true(has_moved(&rig));
		traffic.in += COUNTED_BYTES;
		assert_true(has_moved(&rig));
	}
}

static void received_bytes_add_up(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig, true);
	for (int i = 0; i < 3; i++) {
		traffic.in += COUNTED_BYTES / 2;
		assert_false(has_moved(&rig));
		traffic.in += COUNTED_BYTES / 2;
		assert_true(has_moved(&rig));
	}
}

/* The answer does not wait behind data that this end sends after the delivery of SYNC. */
static void sent_bytes_count_until_sync_is_delivered(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig, false);
	traffic.out += COUNTED_BYTES;
	assert_true(has_moved(&rig));
	rig.link.sync_acked = true;
	traffic.out += FLOOD * COUNTED_BYTES;
	assert_false(has_moved(&rig));
	traffic.in += COUNTED_BYTES;
	assert_true(has_moved(&rig));
}

static void without_kernel_counters_any_sign_of_life_counts(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig, true);
	kernel_knows = false;
	assert_false(has_moved(&rig));
	rig.link.signs_of_life++;
	assert_true(has_moved(&rig));
	assert_false(has_moved(&rig));
}

/* ---- keepalive ---- */

#define KEEPALIVE_MS 8000u
#define PERIOD_MS (KEEPALIVE_MS / 4)
#define LOOK_MS 500u /* between the checks of a peer that does not answer */

struct kept {
	struct rig rig;
	struct ofi_conn conn;
	unsigned pings;
	unsigned aborts;
};

static struct kept *kept_of(struct ofi_link *link)
{
	struct rig *rig = container_of(link, struct rig, link);

	return container_of(rig, struct kept, rig);
}

static int count_ping(struct ofi_link *link, uint8_t type, uint16_t count, struct ofi_op *op)
{
	(void)count;
	(void)op;
	assert_int_equal(type, OFI_CTRL_PING);
	kept_of(link)->pings++;
	return 0;
}

static void count_abort(struct ndx_spi_conn *conn, uint32_t bits, int32_t native, const char *cause)
{
	assert_int_equal(bits, NDX_REPORT_ABORT);
	assert_int_equal(native, ETIMEDOUT);
	assert_non_null(strstr(cause, "keepalive"));
	container_of(ofi_conn_of(conn), struct kept, conn)->aborts++;
}

static const struct ndx_host host = {.report = count_abort};
static const struct ofi_backend backend = {.device = "none", .send_ctrl = count_ping};

/* A connection that is up. At the first check the peer has been heard. */
static void kept_open(struct kept *kept)
{
	struct ofi_link *link = &kept->rig.link;

	memset(kept, 0, sizeof(*kept));
	rig_open(&kept->rig, true);
	kept->rig.adapter.spi.host = &host;
	kept->rig.adapter.backend = &backend;
	link->conn = &kept->conn;
	link->stage = OFI_LINK_UP;
	link->keepalive_ms = KEEPALIVE_MS;
	link->signs_of_life = 1;
	assert_int_equal(ofi_keepalive_check(link), PERIOD_MS);
	assert_int_equal(kept->pings, 0);
}

/* The check after a period of silence sends a PING. */
static void expect_ping(struct kept *kept)
{
	assert_int_equal(ofi_keepalive_check(&kept->rig.link), PERIOD_MS);
	assert_int_equal(kept->pings, 1);
	assert_true(kept->rig.link.pinged);
}

/* Time passes: what the link remembers was longer ago. */
static void check_after(struct kept *kept, uint32_t ms, unsigned aborts)
{
	struct ofi_link *link = &kept->rig.link;

	link->pinged_ns -= ms * NDXP_NS_PER_MS;
	if (link->liveness_ns != 0)
		link->liveness_ns -= ms * NDXP_NS_PER_MS;
	assert_int_equal(ofi_keepalive_check(link), LOOK_MS);
	assert_int_equal(kept->aborts, aborts);
	assert_int_equal(kept->pings, 1);
}

/* Not after two or three times the limit: half of the limit until the PING, and the limit. */
static void a_silent_peer_has_keepalive_ms_to_answer(void **state)
{
	struct kept kept;

	(void)state;
	kept_open(&kept);
	expect_ping(&kept);
	check_after(&kept, KEEPALIVE_MS / 2, 0);
	check_after(&kept, KEEPALIVE_MS / 2, 1);
}

static void bytes_that_moved_before_the_ping_do_not_count(void **state)
{
	struct kept kept;

	(void)state;
	kept_open(&kept);
	traffic.in = traffic.out = FLOOD * COUNTED_BYTES;
	expect_ping(&kept);
	check_after(&kept, KEEPALIVE_MS, 1);
}

static void bytes_that_move_after_the_ping_count(void **state)
{
	struct kept kept;

	(void)state;
	kept_open(&kept);
	expect_ping(&kept);
	traffic.out += COUNTED_BYTES;
	check_after(&kept, KEEPALIVE_MS, 0);
	traffic.in += COUNTED_BYTES - 1;
	check_after(&kept, KEEPALIVE_MS, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(control_messages_do_not_count_as_progress),
		cmocka_unit_test(received_bytes_add_up),
		cmocka_unit_test(sent_bytes_count_until_sync_is_delivered),
		cmocka_unit_test(without_kernel_counters_any_sign_of_life_counts),
		cmocka_unit_test(a_silent_peer_has_keepalive_ms_to_answer),
		cmocka_unit_test(bytes_that_moved_before_the_ping_do_not_count),
		cmocka_unit_test(bytes_that_move_after_the_ping_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
