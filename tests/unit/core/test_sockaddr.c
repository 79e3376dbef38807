/* SPDX-License-Identifier: BSD-2-Clause */
#include "says.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <ndx/spi/sockaddr.h>

static struct sockaddr_storage v4(const char *host, uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_storage out = {0};

	assert_int_equal(inet_pton(AF_INET, host, &in.sin_addr), 1);
	memcpy(&out, &in, sizeof(in));
	return out;
}

static struct sockaddr_storage v6(const char *host, uint16_t port, uint32_t scope)
{
	struct sockaddr_in6 in = {
		.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_scope_id = scope};
	struct sockaddr_storage out = {0};

	assert_int_equal(inet_pton(AF_INET6, host, &in.sin6_addr), 1);
	memcpy(&out, &in, sizeof(in));
	return out;
}

static const struct sockaddr *generic(const struct sockaddr_storage *address)
{
	return (const struct sockaddr *)address;
}

static void addresses_are_valid_if_known_and_whole(void **state)
{
	const struct sockaddr_storage a4 = v4("10.0.0.1", 1);
	const struct sockaddr_storage a6 = v6("::1", 1, 0);
	const struct sockaddr_un local = {.sun_family = AF_UNIX};
	const struct sockaddr_storage none = {0};

	(void)state;
	assert_true(ndxp_sockaddr_valid(generic(&a4), sizeof(struct sockaddr_in)));
	assert_true(ndxp_sockaddr_valid(generic(&a4), sizeof(a4)));
	assert_true(ndxp_sockaddr_valid(generic(&a6), sizeof(struct sockaddr_in6)));
	assert_false(ndxp_sockaddr_valid(NULL, sizeof(a4)));
	assert_false(ndxp_sockaddr_valid(generic(&a4), 0));
	assert_false(ndxp_sockaddr_valid(generic(&a4), sizeof(struct sockaddr_in) - 1));
	assert_false(ndxp_sockaddr_valid(generic(&a6), sizeof(struct sockaddr_in)));
	assert_false(ndxp_sockaddr_valid((const struct sockaddr *)&local, sizeof(local)));
	assert_false(ndxp_sockaddr_valid(generic(&none), sizeof(none)));
}

static void an_address_is_no_longer_than_its_family_says(void **state)
{
	const struct sockaddr_storage a4 = v4("10.0.0.1", 1);
	const struct sockaddr_storage a6 = v6("::1", 1, 0);
	const struct sockaddr_storage none = {0};

	(void)state;
	assert_int_equal(ndxp_sockaddr_len(&a4), sizeof(struct sockaddr_in));
	assert_int_equal(ndxp_sockaddr_len(&a6), sizeof(struct sockaddr_in6));
	assert_int_equal(ndxp_sockaddr_len(&none), 0);
}

static void ports_are_in_host_order(void **state)
{
	struct sockaddr_storage a4 = v4("10.0.0.1", 1);
	struct sockaddr_storage a6 = v6("::1", 1, 0);
	struct sockaddr_storage none = {0};

	(void)state;
	ndxp_sockaddr_set_port(&a4, 0x1234);
	ndxp_sockaddr_set_port(&a6, 65535);
	ndxp_sockaddr_set_port(&none, 7);
	assert_int_equal(ndxp_sockaddr_port(&a4), 0x1234);
	assert_int_equal(ndxp_sockaddr_port(&a6), 65535);
	assert_int_equal(ndxp_sockaddr_port(&none), 0);
}

static void unspecified_and_loopback_are_told_from_others(void **state)
{
	static const struct {
		const char *host;
		bool any;
		bool loopback;
	} cases[] = {
		{"0.0.0.0", true, false},
		{"127.0.0.1", false, true},
		{"127.255.255.254", false, true},
		{"128.0.0.1", false, false},
		{"10.0.0.1", false, false},
		{"::", true, false},
		{"::1", false, true},
		{"::2", false, false},
		{"fe80::1", false, false},
		{"::ffff:0.0.0.0", true, false},
		{"::ffff:127.1.2.3", false, true},
		{"::ffff:10.0.0.1", false, false},
	};
	const struct sockaddr_storage none = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct sockaddr_storage a = strchr(cases[i].host, ':') != NULL
		                                          ? v6(cases[i].host, 5, 0)
		                                          : v4(cases[i].host, 5);

		assert_int_equal(ndxp_sockaddr_is_any(&a), cases[i].any);
		assert_int_equal(ndxp_sockaddr_is_loopback(&a), cases[i].loopback);
	}
	assert_false(ndxp_sockaddr_is_any(&none));
	assert_false(ndxp_sockaddr_is_loopback(&none));
}

static void the_same_host_is_the_same_whatever_port_scope_or_wrapping(void **state)
{
	const struct sockaddr_storage a = v4("10.0.0.1", 1);
	const struct sockaddr_storage b = v4("10.0.0.1", 2);
	const struct sockaddr_storage other = v4("10.0.0.2", 1);
	const struct sockaddr_storage mapped = v6("::ffff:10.0.0.1", 1, 0);
	const struct sockaddr_storage c = v6("fe80::1", 1, 1);
	const struct sockaddr_storage d = v6("fe80::1", 1, 2);
	const struct sockaddr_storage none = {0};

	(void)state;
	assert_true(ndxp_sockaddr_same_host(&a, &b));
	assert_false(ndxp_sockaddr_same_host(&a, &other));
	assert_true(ndxp_sockaddr_same_host(&a, &mapped));
	assert_true(ndxp_sockaddr_same_host(&mapped, &a));
	assert_true(ndxp_sockaddr_same_host(&c, &d));
	assert_false(ndxp_sockaddr_same_host(&a, &c));
	assert_false(ndxp_sockaddr_same_host(&c, &a));
	assert_false(ndxp_sockaddr_same_host(&none, &none));
}

static void the_nearest_is_the_one_itself_or_one_of_its_family_or_the_first(void **state)
{
	const struct sockaddr_storage own[] = {v4("127.0.0.1", 0), v6("::1", 0, 0),
	                                       v4("10.0.0.1", 0), v6("fe80::1", 0, 3)};
	const struct sockaddr_storage itself = v4("10.0.0.1", 7471);
	const struct sockaddr_storage on_the_link = v6("fe80::1", 7471, 0);
	const struct sockaddr_storage family = v6("fd00::9", 7471, 0);
	const struct sockaddr_storage unknown = {.ss_family = AF_UNSPEC};

	(void)state;
	assert_ptr_equal(ndxp_sockaddr_nearest(own, 4, &itself), &own[2]);
	assert_ptr_equal(ndxp_sockaddr_nearest(own, 4, &on_the_link), &own[3]);
	assert_ptr_equal(ndxp_sockaddr_nearest(own, 4, &family), &own[1]);
	assert_ptr_equal(ndxp_sockaddr_nearest(own, 1, &family), &own[0]);
	assert_ptr_equal(ndxp_sockaddr_nearest(own, 4, &unknown), &own[0]);
}

static void addresses_have_a_text(void **state)
{
	const unsigned lo = if_nametoindex("lo");
	const struct sockaddr_storage a4 = v4("10.0.0.1", 4000);
	const struct sockaddr_storage a6 = v6("2001:db8::1", 65535, 0);
	const struct sockaddr_storage scoped = v6("fe80::1", 4000, lo);
	const struct sockaddr_storage lost =
		v6("ffff:eeee:dddd:cccc:bbbb:aaaa:9999:8888", 65535, UINT32_MAX);
	const struct sockaddr_storage none = {0};
	char text[NDXP_SOCKADDR_TEXT];

	(void)state;
	assert_string_equal(ndxp_sockaddr_text(&a4, text), "10.0.0.1:4000");
	assert_string_equal(ndxp_sockaddr_text(&a6, text), "[2001:db8::1]:65535");
	if (lo != 0)
		assert_string_equal(ndxp_sockaddr_text(&scoped, text), "[fe80::1%lo]:4000");
	assert_string_equal(ndxp_sockaddr_text(&lost, text),
	                    "[ffff:eeee:dddd:cccc:bbbb:aaaa:9999:8888%4294967295]:65535");
	assert_string_equal(ndxp_sockaddr_text(&none, text), "-");
}

static void a_copy_is_the_address_and_zeroes(void **state)
{
	const struct sockaddr_storage from = v6("2001:db8::1", 7, 3);
	struct sockaddr_storage to;

	(void)state;
	memset(&to, 0xff, sizeof(to));
	ndxp_sockaddr_copy(&to, generic(&from), sizeof(struct sockaddr_in6));
	assert_memory_equal(&to, &from, sizeof(to));
}

static void an_address_is_copied_out_if_it_fits(void **state)
{
	const struct sockaddr_storage from = v6("2001:db8::1", 7, 3);
	struct sockaddr_storage to = {.ss_family = AF_UNSPEC};
	const socklen_t need = sizeof(struct sockaddr_in6);
	socklen_t length = need - 1;

	(void)state;
	assert_int_equal(ndxp_sockaddr_copy_out("get", &from, (struct sockaddr *)&to, &length),
	                 NDX_E_BUFFER_OVERFLOW);
	assert_int_equal(length, need);
	assert_int_equal(to.ss_family, AF_UNSPEC);
	assert_int_equal(ndxp_sockaddr_copy_out("get", &from, NULL, &length),
	                 NDX_E_BUFFER_OVERFLOW);
	length = sizeof(to);
	assert_int_equal(ndxp_sockaddr_copy_out("get", &from, (struct sockaddr *)&to, &length),
	                 NDX_OK);
	assert_int_equal(length, need);
	assert_memory_equal(&to, &from, need);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_valid_if_known_and_whole),
		cmocka_unit_test(an_address_is_no_longer_than_its_family_says),
		cmocka_unit_test(ports_are_in_host_order),
		cmocka_unit_test(unspecified_and_loopback_are_told_from_others),
		cmocka_unit_test(the_same_host_is_the_same_whatever_port_scope_or_wrapping),
		cmocka_unit_test(the_nearest_is_the_one_itself_or_one_of_its_family_or_the_first),
		cmocka_unit_test(addresses_have_a_text),
		cmocka_unit_test(a_copy_is_the_address_and_zeroes),
		cmocka_unit_test(an_address_is_copied_out_if_it_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
