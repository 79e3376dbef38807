/* SPDX-License-Identifier: BSD-2-Clause */
/* The addresses of the entries of the list: what the core makes of what a provider gives. */
#include "says.h"

#include <netinet/in.h>

#include <ndx/adapter.h>

#include "config.h"
#include "list.h"

static struct seen seen;

/* What the provider below lists: an entry for each number, with as many addresses. */
static const size_t *numbers;
static bool knows_the_member;

static struct sockaddr_storage numbered(size_t number)
{
	struct sockaddr_storage address = {.ss_family = AF_INET};

	((struct sockaddr_in *)(void *)&address)->sin_addr.s_addr = (in_addr_t)number;
	return address;
}

/* The array is freed after each call, and the next entry has the next numbers. A provider that
 * knows the member need not set the other one. */
static enum ndx_status list_numbers(const struct ndx_provider *self,
                                    const struct ndx_spi_open *defaults, ndx_spi_list_fn *each,
                                    void *arg)
{
	size_t next = 1;

	(void)self;
	(void)defaults;
	for (size_t i = 0; numbers[i] != SIZE_MAX; i++) {
		struct sockaddr_storage *addresses = calloc(numbers[i] + 1, sizeof(*addresses));
		struct ndx_adapter_entry entry = {.uri = "numbers"};

		assert_non_null(addresses);
		for (size_t a = 0; a < numbers[i]; a++)
			addresses[a] = numbered(next++);
		if (numbers[i] > 0 && (!knows_the_member || i % 2 == 0))
			entry.address = addresses[0];
		if (knows_the_member) {
			entry.addresses = addresses;
			entry.address_count = numbers[i];
		}
		entry.reserved[1] = addresses; /* as of a provider that is newer than libndx */
		each(arg, &entry);
		memset(addresses, 0xee, numbers[i] * sizeof(*addresses));
		free(addresses);
	}
	return NDX_OK;
}

static const struct ndx_provider_ops numbers_ops = {.list = list_numbers};
static const struct ndx_provider numbers_provider = {
	.abi = NDX_SPI_ABI, .name = "numbers", .ops = &numbers_ops};

static struct listing listed(const size_t *given, bool knows)
{
	const struct config config = {0};
	struct listing listing = {0};

	numbers = given;
	knows_the_member = knows;
	assert_int_equal(list_provider(&numbers_provider, &config, &listing), NDX_OK);
	return listing;
}

/* The entry has `count` addresses, of which the first has this number. */
static void has_numbers(const struct ndx_adapter_entry *entry, size_t first, size_t count)
{
	assert_int_equal(entry->address_count, count);
	assert_null(entry->reserved[0]);
	assert_null(entry->reserved[1]);
	if (count == 0) {
		assert_null(entry->addresses);
		assert_int_equal(entry->address.ss_family, AF_UNSPEC);
		return;
	}
	assert_memory_equal(&entry->address, &entry->addresses[0], sizeof(entry->address));
	for (size_t i = 0; i < count; i++) {
		const struct sockaddr_storage address = numbered(first + i);

		assert_memory_equal(&entry->addresses[i], &address, sizeof(address));
	}
}

/* ---- no memory for them ---- */

static unsigned fails_at; /* the number of the call that fails; 0: none */

/* Names that the linker gives. */
/* NOLINTBEGIN(bugprone-reserved-identifier) */
void *__real_realloc(void *old, size_t size);
void *__real_reallocarray(void *old, size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_reallocarray(void *old, size_t count, size_t size);

void *__wrap_realloc(void *old, size_t size)
{
	return fails_at > 0 && --fails_at == 0 ? NULL : __real_realloc(old, size);
}

void *__wrap_reallocarray(void *old, size_t count, size_t size)
{
	return fails_at > 0 && --fails_at == 0 ? NULL : __real_reallocarray(old, count, size);
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* Neither an entry nor an address is lost without a status that says so. */
static void no_memory_is_reported(void **state)
{
	static const size_t given[] = {1, 20, 40, 2, 3, 4, 5, 6, 7, 8, 9, SIZE_MAX};
	const struct config config = {0};
	enum ndx_status st = NDX_E_NO_MEMORY;
	unsigned failures = 0;

	(void)state;
	numbers = given;
	knows_the_member = true;
	for (unsigned nth = 1; st != NDX_OK; nth++) {
		struct listing listing = {0};

		fails_at = nth;
		st = list_provider(&numbers_provider, &config, &listing);
		if (st == NDX_OK)
			st = list_pack(&listing);
		if (fails_at == 0) {
			failed_with(&seen, st, NDX_E_NO_MEMORY);
			says("list of adapters: out of memory");
			failures++;
		} else {
			assert_int_equal(st, NDX_OK);
			assert_int_equal(listing.count, 11);
			has_numbers(&listing.entries[10], 97, 9);
		}
		list_clear(&listing);
	}
	fails_at = 0;
	/* entries, ranks and addresses as they grow, and the block of all */
	assert_int_equal(failures, 9);
}

static void each_entry_has_all_of_its_addresses(void **state)
{
	static const size_t given[] = {0, 1, 2, 0, 10000, 17, 1, 0, SIZE_MAX};
	struct listing listing = listed(given, true);

	(void)state;
	for (int packed = 0; packed < 2; packed++) {
		size_t next = 1;

		for (size_t i = 0; given[i] != SIZE_MAX; i++) {
			has_numbers(&listing.entries[i], next, given[i]);
			next += given[i];
		}
		assert_int_equal(list_pack(&listing), NDX_OK);
	}
	ndx_adapter_list_free(listing.entries);
	listing.entries = NULL;
	list_clear(&listing);
}

static void a_list_without_addresses_packs(void **state)
{
	static const size_t given[] = {0, SIZE_MAX};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct listing listing = listed(&given[i], true);

		assert_int_equal(list_pack(&listing), NDX_OK);
		assert_int_equal(listing.count, 1 - i);
		if (i == 0)
			has_numbers(&listing.entries[0], 0, 0);
		list_clear(&listing);
	}
}

/* It leaves the members NULL that were reserved. */
static void an_older_provider_has_its_one_address(void **state)
{
	static const size_t given[] = {0, 1, 5, SIZE_MAX};
	struct listing listing = listed(given, false);

	(void)state;
	has_numbers(&listing.entries[0], 0, 0);
	has_numbers(&listing.entries[1], 1, 1);
	has_numbers(&listing.entries[2], 2, 1);
	list_clear(&listing);
}

static void addresses_that_do_not_fit_are_left_out(void **state)
{
	static const size_t given[] = {(1u << 18) - 3, 1, 4, 1, 2, SIZE_MAX};
	struct listing listing = listed(given, true);

	(void)state;
	has_numbers(&listing.entries[0], 1, given[0]);
	has_numbers(&listing.entries[1], given[0] + 1, 1);
	has_numbers(&listing.entries[2], given[0] + 2, 1); /* two were left */
	has_numbers(&listing.entries[3], given[0] + 6, 1);
	has_numbers(&listing.entries[4], given[0] + 7, 1);
	list_clear(&listing);
}

static int log_here(void **state)
{
	(void)state;
	ndx_log_set_sink(see, &seen, NDX_LOG_ERROR);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_memory_is_reported),
		cmocka_unit_test(each_entry_has_all_of_its_addresses),
		cmocka_unit_test(a_list_without_addresses_packs),
		cmocka_unit_test(an_older_provider_has_its_one_address),
		cmocka_unit_test(addresses_that_do_not_fit_are_left_out),
	};

	return cmocka_run_group_tests(tests, log_here, NULL);
}
