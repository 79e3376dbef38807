/* SPDX-License-Identifier: BSD-2-Clause */
/* What the provider makes of the kernel's messages about network interfaces, made up and real, and
 * of the kernel's lists. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include <ndx/spi/netif.h>

#include "netif_host.h"
#include "ofi.h"

#define TOGGLES 2000

/* ---- messages ---- */

struct fake {
	struct ofi_adapter adapter;
	struct ndx_host host;
	struct ofi_netif netif;
	unsigned events;
	enum ndx_adapter_event_type last;
	char text[128];
};

static struct fake *reporting;

static void on_event(struct ndx_adapter *front, enum ndx_adapter_event_type type, uint32_t port,
                     int32_t native, const char *text)
{
	(void)front;
	(void)native;
	assert_int_equal(port, 1);
	reporting->events++;
	reporting->last = type;
	(void)snprintf(reporting->text, sizeof(reporting->text), "%s", text);
}

static void fake_init(struct fake *f)
{
	memset(f, 0, sizeof(*f));
	f->host.adapter_event = on_event;
	f->adapter.spi.host = &f->host;
	f->netif = (struct ofi_netif){.name = "card0", .index = 7, .up = true};
	f->adapter.netifs.list = &f->netif;
	f->adapter.netifs.count = 1;
	reporting = f;
}

struct message {
	struct nlmsghdr header;
	struct ifinfomsg link;
	struct rtattr attribute;
	char name[16];
};

static struct message link_message(uint16_t type, uint8_t family, int index, unsigned flags,
                                   const char *name)
{
	struct message m = {
		.header = {.nlmsg_len = sizeof(m), .nlmsg_type = type},
		.link = {.ifi_family = family, .ifi_index = index, .ifi_flags = flags},
		.attribute = {.rta_type = IFLA_IFNAME, .rta_len = RTA_LENGTH(sizeof(m.name))}};

	(void)snprintf(m.name, sizeof(m.name), "%s", name);
	return m;
}

static void pass(struct fake *f, const struct message *m, size_t length)
{
	/* Memory of exactly that size, so that the address sanitizer sees a read behind the end. */
	struct nlmsghdr *copy = malloc(length > 0 ? length : 1);

	assert_non_null(copy);
	memcpy(copy, m, length);
	ndxp_netif_parse(copy, length, ofi_netifs_event, &f->adapter);
	free(copy);
}

static void messages_about_others_are_ignored(void **state)
{
	const struct message other = link_message(RTM_NEWLINK, AF_UNSPEC, 8, 0, "card1");
	const struct message bridge = link_message(RTM_DELLINK, AF_BRIDGE, 7, 0, "card0");
	const struct message same =
		link_message(RTM_NEWLINK, AF_UNSPEC, 7, IFF_UP | IFF_RUNNING, "card0");
	const struct message unknown = link_message(RTM_NEWROUTE, AF_UNSPEC, 7, 0, "card0");
	struct fake f;

	(void)state;
	fake_init(&f);
	pass(&f, &other, sizeof(other));
	pass(&f, &bridge, sizeof(bridge));
	pass(&f, &same, sizeof(same));
	pass(&f, &unknown, sizeof(unknown));
	assert_int_equal(f.events, 0);
	assert_true(f.netif.up);
}

static void a_carrier_is_needed(void **state)
{
	const struct message lost = link_message(RTM_NEWLINK, AF_UNSPEC, 7, IFF_UP, "card0");
	struct fake f;

	(void)state;
	fake_init(&f);
	pass(&f, &lost, sizeof(lost));
	pass(&f, &lost, sizeof(lost));
	assert_int_equal(f.events, 1);
	assert_int_equal(f.last, NDX_ADAPTER_EVENT_PORT_DOWN);
	assert_string_equal(f.text, "interface card0 is down");
}

static void another_name_is_the_same_interface(void **state)
{
	const struct message renamed =
		link_message(RTM_NEWLINK, AF_UNSPEC, 7, IFF_UP | IFF_RUNNING, "eth9");
	const struct message removed = link_message(RTM_DELLINK, AF_UNSPEC, 7, 0, "eth9");
	const struct message again =
		link_message(RTM_NEWLINK, AF_UNSPEC, 12, IFF_UP | IFF_RUNNING, "eth9");
	struct fake f;

	(void)state;
	fake_init(&f);
	pass(&f, &renamed, sizeof(renamed));
	assert_int_equal(f.events, 0);
	pass(&f, &removed, sizeof(removed));
	assert_int_equal(f.last, NDX_ADAPTER_EVENT_PORT_DOWN);
	assert_string_equal(f.text, "interface eth9 was removed");
	pass(&f, &removed, sizeof(removed));
	assert_int_equal(f.events, 1);
	pass(&f, &again, sizeof(again));
	assert_int_equal(f.events, 2);
	assert_string_equal(f.text, "interface eth9 is up");
	assert_int_equal(f.netif.index, 12);
}

/* ---- the present state ---- */

static void fake_end(struct fake *f)
{
	free(f->netif.addresses.list);
	free(f->netif.found_addresses.list);
}

static void a_renamed_interface_is_found_by_its_index(void **state)
{
	struct fake f;

	(void)state;
	netif_host_begin();
	fake_init(&f);
	f.netif.index = if_nametoindex("lo");
	assert_true(ofi_netifs_compare(&f.adapter));
	assert_string_equal(f.netif.name, "lo");
	assert_int_equal(f.events, 1); /* it has addresses now */
	assert_string_equal(f.text, "interface lo has other addresses");
	assert_true(ofi_netifs_compare(&f.adapter));
	assert_int_equal(f.events, 1);
	fake_end(&f);
}

static void an_interface_that_was_made_again_was_removed(void **state)
{
	struct fake f;

	(void)state;
	netif_host_begin();
	fake_init(&f);
	f.netif = (struct ofi_netif){.name = "lo", .index = 77, .up = true};
	assert_true(ofi_netifs_compare(&f.adapter));
	assert_int_equal(f.netif.index, if_nametoindex("lo"));
	assert_true(f.netif.up);
	assert_int_equal(f.events, 3); /* removed, up, addresses */
	fake_end(&f);
}

static void no_descriptor_is_an_error(void **state)
{
	struct rlimit old;
	struct rlimit none;
	struct fake f;

	(void)state;
	fake_init(&f);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_false(ofi_netifs_compare(&f.adapter));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(f.events, 0);
	assert_true(f.netif.up);
	fake_end(&f);
}

/* ---- lists that the kernel does not complete ---- */

ssize_t __real_recvfrom(int fd, void *room, size_t size, int flags, struct sockaddr *from,
                        socklen_t *length);
ssize_t __wrap_recvfrom(int fd, void *room, size_t size, int flags, struct sockaddr *from,
                        socklen_t *length);

static const void *answer; /* in place of the kernel's messages; NULL: read those */
static size_t answer_length;

ssize_t __wrap_recvfrom(int fd, void *room, size_t size, int flags, struct sockaddr *from,
                        socklen_t *length)
{
	if (answer == NULL)
		return __real_recvfrom(fd, room, size, flags, from, length);
	assert_true(answer_length <= size);
	memcpy(room, answer, answer_length);
	memset(from, 0, *length); /* from the kernel */
	return (ssize_t)answer_length;
}

static void count_report(void *arg, const struct ndxp_netif_report *r)
{
	(void)r;
	++*(unsigned *)arg;
}

static void an_incomplete_list_removes_no_interface(void **state)
{
	struct {
		struct nlmsghdr header;
		int err;
	} end = {.header = {.nlmsg_len = sizeof(end), .nlmsg_type = NLMSG_DONE}};
	unsigned reports = 0;
	struct fake f;

	(void)state;
	fake_init(&f);
	answer = &end;
	answer_length = sizeof(end);
	end.err = -EMSGSIZE;
	assert_false(ofi_netifs_compare(&f.adapter));
	assert_false(ndxp_netif_list(count_report, &reports));
	assert_int_equal(errno, EMSGSIZE);
	end.header.nlmsg_type = NLMSG_ERROR;
	assert_false(ofi_netifs_compare(&f.adapter));
	end.err = 0; /* an acknowledgement, for which no request asked */
	assert_false(ofi_netifs_compare(&f.adapter));
	assert_int_equal(f.events, 0);
	end.header.nlmsg_type = NLMSG_DONE;
	assert_true(ofi_netifs_compare(&f.adapter));
	assert_int_equal(f.events, 1);
	assert_string_equal(f.text, "interface card0 was removed");
	fake_end(&f);
}

static int read_the_kernel_again(void **state)
{
	(void)state;
	answer = NULL;
	return 0;
}

static void dropped_events_are_lost(void **state)
{
	unsigned reports = 0;
	bool lost = false;
	int fd;

	(void)state;
	netif_host_begin();
	fd = ndxp_netif_open();
	assert_true(fd >= 0);
	for (int i = 0; i < TOGGLES; i++)
		netif_host_set_up("lo", i % 2 == 0);
	while (!ndxp_netif_read(fd, count_report, &reports, &lost))
		;
	assert_true(lost);
	assert_true(reports > 0);
	lost = false;
	netif_host_set_up("lo", true);
	assert_true(ndxp_netif_read(fd, count_report, &reports, &lost));
	assert_false(lost);
	(void)close(fd);
}

static void look_for_ends(void *arg, const struct ndxp_netif_report *r)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)&r->address;
	unsigned *found = arg;

	if (r->what != NDXP_NETIF_ADDRESS || in->sin_family != AF_INET)
		return;
	found[0] += in->sin_addr.s_addr == htonl(0xC0000208);
	found[1] += in->sin_addr.s_addr == htonl(0xC0000209);
}

static void the_peer_of_a_link_is_not_its_address(void **state)
{
	unsigned found[2] = {0, 0};

	(void)state;
	netif_host_begin();
	if (!netif_host_ip("address add 192.0.2.8 peer 192.0.2.9 dev lo"))
		skip();
	assert_true(ndxp_netif_list(look_for_ends, found));
	assert_int_equal(found[0], 1);
	assert_int_equal(found[1], 0);
	assert_true(netif_host_ip("address del 192.0.2.8 peer 192.0.2.9 dev lo"));
}

/* Alternative names make a message as long as one likes. */
static void an_event_that_is_too_long_is_lost(void **state)
{
	unsigned reports = 0;
	bool lost = false;
	FILE *batch;
	int fd;

	(void)state;
	netif_host_begin();
	if (!netif_host_ip("link add va type veth peer name vb"))
		skip();
	batch = popen("ip -batch - 2>/dev/null", "w"); // NOLINT(cert-env33-c)
	assert_non_null(batch);
	for (int i = 0; i < 350; i++)
		(void)fprintf(batch, "link property add dev va altname %0120d\n", i);
	if (pclose(batch) != 0)
		skip();
	fd = ndxp_netif_open();
	assert_true(fd >= 0);
	assert_true(netif_host_ip("link set va up"));
	assert_true(ndxp_netif_read(fd, count_report, &reports, &lost));
	assert_true(lost);
	(void)close(fd);
	assert_true(netif_host_ip("link del va"));
}

/* Cut at every byte, with each length that the header may claim. */
static void cut_messages_are_not_read_past_their_end(void **state)
{
	struct message m = link_message(RTM_DELLINK, AF_UNSPEC, 7, 0, "card0");
	struct fake f;

	(void)state;
	for (size_t length = 0; length <= sizeof(m); length++) {
		for (uint32_t claimed = 0; claimed <= 2 * sizeof(m); claimed++) {
			fake_init(&f);
			m.header.nlmsg_len = claimed;
			pass(&f, &m, length);
			assert_true(f.events == 0 || length >= NLMSG_LENGTH(sizeof(m.link)));
		}
	}
	m.header.nlmsg_len = sizeof(m);
	for (unsigned claimed = 0; claimed <= UINT16_MAX; claimed++) {
		fake_init(&f);
		m.attribute.rta_len = (uint16_t)claimed;
		pass(&f, &m, sizeof(m));
		assert_int_equal(f.events, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_about_others_are_ignored),
		cmocka_unit_test(a_carrier_is_needed),
		cmocka_unit_test(another_name_is_the_same_interface),
		cmocka_unit_test(cut_messages_are_not_read_past_their_end),
		cmocka_unit_test(a_renamed_interface_is_found_by_its_index),
		cmocka_unit_test(an_interface_that_was_made_again_was_removed),
		cmocka_unit_test(no_descriptor_is_an_error),
		cmocka_unit_test_teardown(an_incomplete_list_removes_no_interface,
	                                  read_the_kernel_again),
		cmocka_unit_test(dropped_events_are_lost),
		cmocka_unit_test(the_peer_of_a_link_is_not_its_address),
		cmocka_unit_test(an_event_that_is_too_long_is_lost),
	};

	netif_host_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
