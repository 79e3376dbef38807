/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registrations and deregistrations that end late. The in-process provider ends them at once; here
 * it keeps them, and reports the outcome that a test chooses, when the test chooses.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#undef fail /* cmocka's; <ndx/spi/log.h> has another */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/ndx.h>

#include "adapter.h"
#include <ndx/spi/system.h>
#include "base_ov.h"
#include "connection.h"
#include "pair.h"
#include "region.h"

#define MOMENT_MS 50u
#define NATIVE 77
#define ROUNDS 90u

/* The provider that is late. Its operations come from one thread at a time. */
static struct {
	const struct ndx_provider_ops *real;
	struct ndx_provider_ops ops;
	bool registers;        /* which operations are kept */
	bool deregisters;      /* unless the region is closing */
	bool at_once;          /* report the end before the operation returns */
	enum ndx_status drive; /* what mr_wait_idle reports */
	/* the operation that is kept */
	struct ndx_spi_mr *mr;
	bool is_register;
	void *buffer;
	size_t length;
	uint32_t flags;
	/* counts */
	unsigned closing;
	unsigned destroyed;
} late;

static struct {
	struct ndx_mr *mr;
	struct ndx_overlapped ov;
	unsigned char memory[64];
} own;

/* The kept operation ends. */
static void end_late(enum ndx_status st)
{
	struct ndx_spi_mr *mr = late.mr;

	assert_non_null(mr);
	late.mr = NULL;
	if (st == NDX_OK && late.is_register)
		st = late.real->mr_register(mr, late.buffer, late.length, late.flags);
	else if (st == NDX_OK)
		st = late.real->mr_deregister(mr, true);
	mr->object.native->host->mr_ended(mr, st, st == NDX_OK ? 0 : NATIVE);
}

static enum ndx_status keep_operation(struct ndx_spi_mr *mr, bool is_register)
{
	late.mr = mr;
	late.is_register = is_register;
	if (late.at_once)
		end_late(NDX_OK);
	return NDX_PENDING;
}

static enum ndx_status late_register(struct ndx_spi_mr *mr, void *buffer, size_t length,
                                     uint32_t flags)
{
	if (!late.registers)
		return late.real->mr_register(mr, buffer, length, flags);
	late.buffer = buffer;
	late.length = length;
	late.flags = flags;
	/* a provider may know the tokens before the device has agreed */
	mr->local_token = UINT32_MAX;
	mr->remote_token = UINT32_MAX;
	return keep_operation(mr, true);
}

static enum ndx_status late_deregister(struct ndx_spi_mr *mr, bool closing)
{
	late.closing += closing;
	return closing || !late.deregisters ? late.real->mr_deregister(mr, closing)
	                                    : keep_operation(mr, false);
}

static void late_wait_idle(struct ndx_spi_mr *mr)
{
	(void)mr;
	if (late.mr != NULL)
		end_late(late.drive);
}

static void late_destroy(struct ndx_spi_mr *mr)
{
	late.destroyed++;
	late.real->mr_destroy(mr);
}

/* The control thread reads the table, too, so it exchanges it. */
static void exchange_ops(void *arg)
{
	struct ndx_adapter *adapter = arg;

	adapter->ops = adapter->ops == &late.ops ? late.real : &late.ops;
}

static int open_late(void **state)
{
	const int err = pair_open(state);
	const struct pair *p = *state;

	if (err != 0)
		return err;
	memset(&late, 0, sizeof(late));
	late.real = p->a->ops;
	late.ops = *late.real;
	late.ops.mr_register = late_register;
	late.ops.mr_deregister = late_deregister;
	late.ops.mr_wait_idle = late_wait_idle;
	late.ops.mr_destroy = late_destroy;
	ndxp_loop_call(p->a->loop, exchange_ops, p->a);
	memset(&own, 0, sizeof(own));
	return ndx_mr_create(p->a, &own.mr) == NDX_OK ? 0 : -1;
}

static int close_late(void **state)
{
	const struct pair *p = *state;

	ndx_mr_close(own.mr);
	ndxp_loop_call(p->a->loop, exchange_ops, p->a);
	return pair_close(state);
}

/* ---- what a region says of itself ---- */

static enum ndx_status begin_register(void)
{
	return ndx_mr_register(own.mr, own.memory, sizeof(own.memory), NDX_MR_ALLOW_REMOTE_READ,
	                       &own.ov);
}

static void is_registered(bool registered)
{
	struct ndx_overlapped other = {0};

	assert_int_equal(ndx_mr_get_local_token(own.mr) != 0, registered);
	assert_int_equal(ndx_mr_get_remote_token(own.mr) != 0, registered);
	if (registered)
		assert_int_equal(ndx_mr_register(own.mr, own.memory, 1, 0, &other),
		                 NDX_E_INVALID_DEVICE_STATE);
	else
		assert_int_equal(ndx_mr_deregister(own.mr, &other), NDX_E_INVALID_DEVICE_STATE);
	assert_int_equal(ndx_overlapped_status(&other), NDX_OK);
}

/* The state of the region, and the outcome of its latest operation. */
static void query_is(enum ndx_mr_state state, enum ndx_status outcome)
{
	struct ndx_mr_info info = {.size = sizeof(info)};

	assert_int_equal(ndx_mr_query(own.mr, &info), NDX_OK);
	assert_string_equal(ndx_mr_state_name(info.state), ndx_mr_state_name(state));
	assert_int_equal(info.outcome, outcome);
	assert_int_equal(info.local_token, ndx_mr_get_local_token(own.mr));
	assert_ptr_equal(info.buffer, own.memory);
}

/* Neither registered nor not, and no other operation can begin. */
static void is_undecided(void)
{
	struct ndx_overlapped other = {0};

	assert_int_equal(ndx_overlapped_status(&own.ov), NDX_PENDING);
	assert_int_equal(ndx_mr_get_local_token(own.mr), 0);
	assert_int_equal(ndx_mr_get_remote_token(own.mr), 0);
	assert_int_equal(ndx_mr_register(own.mr, own.memory, 1, 0, &other), NDX_E_DEVICE_BUSY);
	assert_non_null(strstr(ndx_last_error(), "in flight"));
	assert_int_equal(ndx_mr_deregister(own.mr, &other), NDX_E_DEVICE_BUSY);
	assert_int_equal(ndx_overlapped_status(&other), NDX_OK);
}

static void has_ended(enum ndx_status st)
{
	assert_int_equal(ndx_overlapped_wait(&own.ov, 0), st);
	assert_int_equal(own.ov.native, st == NDX_OK ? 0 : NATIVE);
}

static void register_now(void)
{
	late.registers = false;
	assert_int_equal(begin_register(), NDX_PENDING);
	has_ended(NDX_OK);
}

/* ---- late ends ---- */

static void a_region_is_registered_when_the_provider_says_so(void **state)
{
	(void)state;
	late.registers = true;
	assert_int_equal(begin_register(), NDX_PENDING);
	is_undecided();
	query_is(NDX_MR_REGISTERING, NDX_OK);
	end_late(NDX_OK);
	has_ended(NDX_OK);
	is_registered(true);
	query_is(NDX_MR_REGISTERED, NDX_OK);
}

static void a_registration_that_fails_late_leaves_the_region_as_it_was(void **state)
{
	(void)state;
	late.registers = true;
	assert_int_equal(begin_register(), NDX_PENDING);
	end_late(NDX_E_INSUFFICIENT_RESOURCES);
	has_ended(NDX_E_INSUFFICIENT_RESOURCES);
	is_registered(false);
	query_is(NDX_MR_NOT_REGISTERED, NDX_E_INSUFFICIENT_RESOURCES);
	register_now();
	is_registered(true);
}

static void a_region_is_deregistered_when_the_provider_says_so(void **state)
{
	(void)state;
	register_now();
	late.deregisters = true;
	assert_int_equal(ndx_mr_deregister(own.mr, &own.ov), NDX_PENDING);
	is_undecided();
	query_is(NDX_MR_DEREGISTERING, NDX_OK);
	end_late(NDX_OK);
	has_ended(NDX_OK);
	is_registered(false);
	query_is(NDX_MR_NOT_REGISTERED, NDX_OK);
	register_now();
	is_registered(true);
}

static void a_deregistration_that_fails_late_leaves_the_region_registered(void **state)
{
	uint32_t token;

	(void)state;
	register_now();
	token = ndx_mr_get_remote_token(own.mr);
	late.deregisters = true;
	assert_int_equal(ndx_mr_deregister(own.mr, &own.ov), NDX_PENDING);
	end_late(NDX_E_DEVICE_BUSY);
	has_ended(NDX_E_DEVICE_BUSY);
	is_registered(true);
	query_is(NDX_MR_REGISTERED, NDX_E_DEVICE_BUSY);
	assert_int_equal(ndx_mr_get_remote_token(own.mr), token);
	late.deregisters = false;
	assert_int_equal(ndx_mr_deregister(own.mr, &own.ov), NDX_PENDING);
	has_ended(NDX_OK);
	is_registered(false);
}

/* ---- a close, and a cancel, while an operation is in flight ---- */

static void close_it(bool deregisters)
{
	ndx_mr_close(own.mr);
	own.mr = NULL;
	assert_null(late.mr);
	assert_int_equal(late.closing, deregisters);
	assert_int_equal(late.destroyed, 1);
}

static void closing_waits_for_a_registration_and_undoes_it(void **state)
{
	(void)state;
	late.registers = true;
	assert_int_equal(begin_register(), NDX_PENDING);
	close_it(true);
	has_ended(NDX_OK);
}

static void closing_waits_for_a_registration_that_fails(void **state)
{
	(void)state;
	late.registers = true;
	late.drive = NDX_E_INSUFFICIENT_RESOURCES;
	assert_int_equal(begin_register(), NDX_PENDING);
	close_it(false);
	has_ended(NDX_E_INSUFFICIENT_RESOURCES);
}

static void closing_waits_for_a_deregistration(void **state)
{
	(void)state;
	register_now();
	late.deregisters = true;
	assert_int_equal(ndx_mr_deregister(own.mr, &own.ov), NDX_PENDING);
	close_it(false);
	has_ended(NDX_OK);
}

static void closing_deregisters_again_what_could_not_be_deregistered(void **state)
{
	(void)state;
	register_now();
	late.deregisters = true;
	late.drive = NDX_E_DEVICE_BUSY;
	assert_int_equal(ndx_mr_deregister(own.mr, &own.ov), NDX_PENDING);
	close_it(true);
	has_ended(NDX_E_DEVICE_BUSY);
}

static void cancelling_waits_for_the_own_outcome(void **state)
{
	(void)state;
	late.registers = true;
	assert_int_equal(begin_register(), NDX_PENDING);
	assert_int_equal(ndx_mr_cancel(own.mr), NDX_OK);
	has_ended(NDX_OK);
	is_registered(true);
}

static bool called;

static void take_a_moment(struct ndx_overlapped *ov)
{
	const uint32_t never = 0;

	(void)ov;
	ndxp_futex_wait(&never, 0, ndxp_deadline(MOMENT_MS));
	called = true;
}

static void closing_waits_for_the_callback_of_a_deregistration(void **state)
{
	(void)state;
	register_now();
	late.deregisters = true;
	own.ov.callback = take_a_moment;
	called = false;
	assert_int_equal(ndx_mr_deregister(own.mr, &own.ov), NDX_PENDING);
	close_it(false);
	assert_true(called);
}

/* A provider that breaks its promise does not hang the program, and does no harm later. */
static void an_end_that_comes_after_the_patience_is_over_changes_nothing(void **state)
{
	struct ndx_spi_mr *mr = (struct ndx_spi_mr *)(void *)own.mr;

	(void)state;
	late.registers = true;
	assert_int_equal(begin_register(), NDX_PENDING);
	assert_false(region_await_end(mr, 1));
	assert_int_equal(ndx_overlapped_wait(&own.ov, 0), NDX_E_INTERNAL_ERROR);
	memset(&own.ov, 0xff, sizeof(own.ov)); /* the program uses the memory for something else */
	end_late(NDX_OK);
	assert_int_equal((uint32_t)own.ov.status, UINT32_MAX);
	assert_true(region_await_end(mr, 0));
}

/* ---- ends that overtake their operation ---- */

static struct {
	bool again; /* register once more before it is closed */
	enum ndx_status registered;
	uint32_t done;
} use;

static void use_and_close(struct ndx_overlapped *ov)
{
	struct ndx_overlapped again = {0};

	(void)ov;
	if (use.again) {
		use.registered = ndx_mr_register(own.mr, own.memory, sizeof(own.memory), 0, &again);
		if (use.registered == NDX_PENDING)
			use.registered = ndx_overlapped_status(&again);
	}
	ndx_mr_close(own.mr);
	own.mr = NULL;
	__atomic_store_n(&use.done, 1, __ATOMIC_RELEASE);
	ndxp_futex_wake(&use.done, 1);
}

static void await_use(void)
{
	const uint64_t deadline = ndxp_deadline(PATIENCE_MS);

	while (__atomic_load_n(&use.done, __ATOMIC_ACQUIRE) == 0 && ndxp_now_ns() < deadline)
		ndxp_futex_wait(&use.done, 0, deadline);
	assert_int_equal(__atomic_load_n(&use.done, __ATOMIC_ACQUIRE), 1);
}

/* The thread that began the operation is held up behind the report of its end. */
static enum ndx_status deregister_and_stay(struct ndx_spi_mr *mr, bool closing)
{
	const enum ndx_status st = late_deregister(mr, closing);

	if (!closing)
		await_use();
	return st;
}

static void a_region_may_be_used_and_closed_as_soon_as_its_deregistration_completes(void **state)
{
	const struct pair *p = *state;

	late.deregisters = true;
	late.at_once = true;
	late.ops.mr_deregister = deregister_and_stay;
	for (int i = 0; i < 2; i++) {
		if (own.mr == NULL)
			assert_int_equal(ndx_mr_create(p->a, &own.mr), NDX_OK);
		own.ov.callback = NULL;
		register_now();
		use.again = i == 0;
		use.registered = NDX_OK;
		use.done = 0;
		own.ov.callback = use_and_close;
		assert_int_equal(ndx_mr_deregister(own.mr, &own.ov), NDX_PENDING);
		assert_int_equal(use.registered, NDX_OK);
		assert_null(own.mr);
	}
}

/* ---- ends on a thread of the provider ---- */

static struct {
	bool slow;             /* the thread takes its time to complete an operation */
	struct ndx_spi_mr *mr; /* the operation that is kept; atomic */
	uint32_t begun;        /* a futex: operations that began */
	bool stop;
} other;

void __real_ndx_private_base_ov_complete(struct ndx_overlapped *ov, enum ndx_status status,
                                         uint32_t information, int32_t native);
void __wrap_ndx_private_base_ov_complete(struct ndx_overlapped *ov, enum ndx_status status,
                                         uint32_t information, int32_t native);

void __wrap_ndx_private_base_ov_complete(struct ndx_overlapped *ov, enum ndx_status status,
                                         uint32_t information, int32_t native)
{
	const uint32_t never = 0;

	if (other.slow)
		ndxp_futex_wait(&never, 0, ndxp_deadline(1));
	__real_ndx_private_base_ov_complete(ov, status, information, native);
}

static enum ndx_status pass_on(struct ndx_spi_mr *mr)
{
	__atomic_store_n(&other.mr, mr, __ATOMIC_RELEASE);
	(void)__atomic_add_fetch(&other.begun, 1, __ATOMIC_ACQ_REL);
	ndxp_futex_wake(&other.begun, 1);
	return NDX_PENDING;
}

static enum ndx_status register_there(struct ndx_spi_mr *mr, void *buffer, size_t length,
                                      uint32_t flags)
{
	const enum ndx_status st = late.real->mr_register(mr, buffer, length, flags);

	return st == NDX_OK ? pass_on(mr) : st;
}

static enum ndx_status deregister_there(struct ndx_spi_mr *mr, bool closing)
{
	const enum ndx_status st = late.real->mr_deregister(mr, closing);

	return st == NDX_OK && !closing ? pass_on(mr) : st;
}

/* The end comes soon by itself. */
static void wait_there(struct ndx_spi_mr *mr)
{
	(void)mr;
}

static void *end_there(void *arg)
{
	uint32_t seen = 0;

	while (!__atomic_load_n(&other.stop, __ATOMIC_ACQUIRE)) {
		struct ndx_spi_mr *mr = __atomic_exchange_n(&other.mr, NULL, __ATOMIC_ACQ_REL);

		if (mr != NULL)
			mr->object.native->host->mr_ended(mr, NDX_OK, 0);
		else
			ndxp_futex_wait(&other.begun, seen, ndxp_deadline(MOMENT_MS));
		seen = __atomic_load_n(&other.begun, __ATOMIC_ACQUIRE);
		if (__atomic_load_n(&other.mr, __ATOMIC_ACQUIRE) != NULL)
			seen--;
	}
	return arg;
}

static void completes(void)
{
	assert_int_equal(ndx_overlapped_wait(&own.ov, PATIENCE_MS), NDX_OK);
}

static void operations_follow_each_other_on_whatever_thread_they_end(void **state)
{
	const struct pair *p = *state;
	unsigned too_early = 0;
	pthread_t thread;

	late.ops.mr_register = register_there;
	late.ops.mr_deregister = deregister_there;
	late.ops.mr_wait_idle = wait_there;
	memset(&other, 0, sizeof(other));
	other.slow = true;
	assert_int_equal(pthread_create(&thread, NULL, end_there, NULL), 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		assert_int_equal(begin_register(), NDX_PENDING);
		completes();
		assert_int_not_equal(ndx_mr_get_local_token(own.mr), 0);
		assert_int_equal(ndx_mr_deregister(own.mr, &own.ov), NDX_PENDING);
		if (i % 3 != 0)
			completes();
		if (i % 3 == 1)
			continue;
		ndx_mr_close(own.mr);
		too_early += ndx_overlapped_status(&own.ov) == NDX_PENDING;
		completes();
		assert_int_equal(ndx_mr_create(p->a, &own.mr), NDX_OK);
	}
	__atomic_store_n(&other.stop, true, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(thread, NULL), 0);
	other.slow = false;
	assert_int_equal(too_early, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_late, close_late)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_region_is_registered_when_the_provider_says_so),
		CASE(a_registration_that_fails_late_leaves_the_region_as_it_was),
		CASE(a_region_is_deregistered_when_the_provider_says_so),
		CASE(a_deregistration_that_fails_late_leaves_the_region_registered),
		CASE(closing_waits_for_a_registration_and_undoes_it),
		CASE(closing_waits_for_a_registration_that_fails),
		CASE(closing_waits_for_a_deregistration),
		CASE(closing_deregisters_again_what_could_not_be_deregistered),
		CASE(cancelling_waits_for_the_own_outcome),
		CASE(closing_waits_for_the_callback_of_a_deregistration),
		CASE(an_end_that_comes_after_the_patience_is_over_changes_nothing),
		CASE(a_region_may_be_used_and_closed_as_soon_as_its_deregistration_completes),
		CASE(operations_follow_each_other_on_whatever_thread_they_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
