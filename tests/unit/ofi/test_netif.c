/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of network interfaces: of real ones, in a network namespace of the test's own, and of
 * messages that are made up. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <ndx/ndx.h>
#include <ndx/spi/netif.h>

#include "ofi.h"

#define WAIT_MS 20000
#define QUIET_MS 500
#define TOGGLES 2000

static bool own_network;

/* ---- interfaces ---- */

static void set_flag(const char *name, bool up)
{
	struct ifreq r = {0};
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	(void)snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	assert_int_equal(ioctl(fd, SIOCGIFFLAGS, &r), 0);
	r.ifr_flags = (short)(up ? r.ifr_flags | IFF_UP : r.ifr_flags & ~IFF_UP);
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &r), 0);
	(void)close(fd);
}

static void add_address(const char *alias, const char *text)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	struct ifreq r = {0};
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(inet_pton(AF_INET, text, &in.sin_addr), 1);
	(void)snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", alias);
	memcpy(&r.ifr_addr, &in, sizeof(in));
	assert_int_equal(ioctl(fd, SIOCSIFADDR, &r), 0);
	(void)close(fd);
}

static bool ip(const char *arguments)
{
	char command[256];

	(void)snprintf(command, sizeof(command), "ip %s 2>/dev/null", arguments);
	return system(command) == 0; // NOLINT(cert-env33-c)
}

/* ---- events ---- */

/* False: none came within the time. */
static bool next(struct ndx_adapter *adapter, struct ndx_adapter_event *event, uint32_t ms)
{
	struct ndx_overlapped ov = {0};

	*event = (struct ndx_adapter_event){.size = sizeof(*event)};
	assert_int_equal(ndx_adapter_get_event(adapter, event, &ov), NDX_PENDING);
	if (ndx_overlapped_wait(&ov, ms) == NDX_OK)
		return true;
	(void)ndx_adapter_cancel(adapter);
	return ndx_overlapped_wait(&ov, NDX_INFINITE) == NDX_OK;
}

/* An event with that text comes; others may come before. */
static void expect(struct ndx_adapter *adapter, enum ndx_adapter_event_type type, uint32_t port,
                   const char *text)
{
	struct ndx_adapter_event event = {.type = 0};

	while (strcmp(event.text, text) != 0) {
		if (!next(adapter, &event, WAIT_MS))
			fail_msg("no event \"%s\"", text);
	}
	assert_int_equal(event.type, type);
	assert_int_equal(event.port, port);
}

static void expect_none(struct ndx_adapter *adapter)
{
	struct ndx_adapter_event event;

	if (next(adapter, &event, QUIET_MS))
		fail_msg("an event too many: %s", event.text);
}

static struct ndx_adapter *open_adapter(const char *uri)
{
	struct ndx_adapter_info info = {.size = sizeof(info)};
	struct ndx_adapter *adapter = NULL;

	if (ndx_adapter_open(uri, &adapter) != NDX_OK)
		fail_msg("%s: %s", uri, ndx_last_error());
	assert_int_equal(ndx_adapter_query(adapter, &info), NDX_OK);
	assert_true(info.capabilities & NDX_CAP_EVENTS);
	return adapter;
}

static void a_port_goes_down_and_up(void **state)
{
	struct ndx_adapter *adapter;

	(void)state;
	if (!own_network)
		skip();
	set_flag("lo", true);
	adapter = open_adapter("ofi:tcp?iface=lo");
	set_flag("lo", false);
	expect(adapter, NDX_ADAPTER_EVENT_PORT_DOWN, 1, "interface lo is down");
	set_flag("lo", true);
	expect(adapter, NDX_ADAPTER_EVENT_PORT_UP, 1, "interface lo is up");
	ndx_adapter_close(adapter);
}

static void addresses_come_and_go(void **state)
{
	struct ndx_adapter *adapter;

	(void)state;
	if (!own_network)
		skip();
	set_flag("lo", true);
	adapter = open_adapter("ofi:tcp?iface=lo");
	add_address("lo:1", "127.9.9.9");
	expect(adapter, NDX_ADAPTER_EVENT_ADDRESS_CHANGE, 1, "interface lo has other addresses");
	expect_none(adapter);
	set_flag("lo:1", false); /* removes the address */
	expect(adapter, NDX_ADAPTER_EVENT_ADDRESS_CHANGE, 1, "interface lo has other addresses");
	ndx_adapter_close(adapter);
}

/* A virtual cable whose other end goes down takes the carrier away. The interfaces of the adapter
 * are its ports; the other end may be one, with an address that the kernel gave it. */
static void a_cable_is_pulled_and_the_interface_removed(void **state)
{
	struct ndx_adapter *adapter;

	(void)state;
	if (!own_network)
		skip();
	set_flag("lo", true);
	if (!ip("link add va type veth peer name vb") || !ip("address add 192.0.2.1/24 dev va") ||
	    !ip("link set vb up") || !ip("link set va up"))
		skip();
	adapter = open_adapter("ofi:tcp?trust=lan");
	assert_true(ip("link set vb down"));
	expect(adapter, NDX_ADAPTER_EVENT_PORT_DOWN, 2, "interface va is down");
	assert_true(ip("link set vb up"));
	expect(adapter, NDX_ADAPTER_EVENT_PORT_UP, 2, "interface va is up");
	assert_true(ip("link del va"));
	expect(adapter, NDX_ADAPTER_EVENT_PORT_DOWN, 2, "interface va was removed");
	assert_true(ip("link add va type veth peer name vb") && ip("link set vb up") &&
	            ip("link set va up"));
	expect(adapter, NDX_ADAPTER_EVENT_PORT_UP, 2, "interface va is up");
	ndx_adapter_close(adapter);
	assert_true(ip("link del va"));
}

/* A label stands in place of the interface's name in getifaddrs(). */
static void a_label_hides_no_address(void **state)
{
	struct ndx_adapter *adapter;

	(void)state;
	if (!own_network)
		skip();
	set_flag("lo", true);
	adapter = open_adapter("ofi:tcp?iface=lo");
	if (!ip("address add 127.8.8.8/8 dev lo label mgmt"))
		skip();
	expect(adapter, NDX_ADAPTER_EVENT_ADDRESS_CHANGE, 1, "interface lo has other addresses");
	assert_true(ip("address del 127.8.8.8/8 dev lo"));
	expect(adapter, NDX_ADAPTER_EVENT_ADDRESS_CHANGE, 1, "interface lo has other addresses");
	expect_none(adapter);
	ndx_adapter_close(adapter);
}

/* Interfaces with one hardware address have one link-local address. */
static void an_equal_address_makes_no_port(void **state)
{
	struct ndx_adapter *adapter;

	(void)state;
	if (!own_network)
		skip();
	if (!ip("link add va address 02:00:00:00:00:07 type veth peer name vb") ||
	    !ip("link add vc address 02:00:00:00:00:07 type veth peer name vd"))
		skip();
	assert_true(ip("link set vb up") && ip("link set va up") && ip("link set vd up") &&
	            ip("link set vc up"));
	adapter = open_adapter("ofi:tcp?iface=va&trust=lan");
	assert_true(ip("link set vd down"));
	expect_none(adapter);
	assert_true(ip("link set vb down"));
	expect(adapter, NDX_ADAPTER_EVENT_PORT_DOWN, 1, "interface va is down");
	ndx_adapter_close(adapter);
	assert_true(ip("link del va") && ip("link del vc"));
}

/* The control thread is in here: nothing is read, and the kernel has to drop messages. */
static void toggle(struct ndx_overlapped *ov)
{
	for (int i = 0; i < TOGGLES; i++)
		set_flag("lo", i % 2 == 0);
	set_flag("lo", false);
	(void)sem_post(ov->context);
}

static void what_the_kernel_drops_is_looked_up(void **state)
{
	struct ndx_adapter_event event = {.size = sizeof(event)};
	enum ndx_adapter_event_type last = 0;
	sem_t done;
	struct ndx_overlapped ov = {.callback = toggle, .context = &done};
	struct ndx_adapter *adapter;
	struct timespec until;

	(void)state;
	if (!own_network)
		skip();
	assert_int_equal(sem_init(&done, 0, 0), 0);
	set_flag("lo", true);
	adapter = open_adapter("ofi:tcp?iface=lo");
	assert_int_equal(ndx_adapter_get_event(adapter, &event, &ov), NDX_PENDING);
	add_address("lo:1", "127.9.9.9");
	assert_int_equal(clock_gettime(CLOCK_REALTIME, &until), 0);
	until.tv_sec += WAIT_MS / 1000;
	assert_int_equal(sem_timedwait(&done, &until), 0);
	while (next(adapter, &event, QUIET_MS)) {
		if (event.type != NDX_ADAPTER_EVENT_ADDRESS_CHANGE)
			last = event.type;
	}
	assert_int_equal(last, NDX_ADAPTER_EVENT_PORT_DOWN);
	ndx_adapter_close(adapter);
	set_flag("lo", true);
	assert_int_equal(sem_destroy(&done), 0);
}

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
	if (!own_network)
		skip();
	set_flag("lo", true);
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
	if (!own_network)
		skip();
	set_flag("lo", true);
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

static void count_report(void *arg, const struct ndxp_netif_report *r)
{
	(void)r;
	++*(unsigned *)arg;
}

static void dropped_events_are_lost(void **state)
{
	unsigned reports = 0;
	bool lost = false;
	int fd;

	(void)state;
	if (!own_network)
		skip();
	fd = ndxp_netif_open();
	assert_true(fd >= 0);
	for (int i = 0; i < TOGGLES; i++)
		set_flag("lo", i % 2 == 0);
	while (!ndxp_netif_read(fd, count_report, &reports, &lost))
		;
	assert_true(lost);
	assert_true(reports > 0);
	lost = false;
	set_flag("lo", true);
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
	found[0] += in->sin_addr.s_addr == htonl(0xC0000201);
	found[1] += in->sin_addr.s_addr == htonl(0xC0000202);
}

static void the_peer_of_a_link_is_not_its_address(void **state)
{
	unsigned found[2] = {0, 0};

	(void)state;
	if (!own_network || !ip("address add 192.0.2.1 peer 192.0.2.2 dev lo"))
		skip();
	assert_true(ndxp_netif_list(look_for_ends, found));
	assert_int_equal(found[0], 1);
	assert_int_equal(found[1], 0);
	assert_true(ip("address del 192.0.2.1 peer 192.0.2.2 dev lo"));
}

/* Alternative names make a message as long as one likes. */
static void an_event_that_is_too_long_is_lost(void **state)
{
	unsigned reports = 0;
	bool lost = false;
	FILE *batch;
	int fd;

	(void)state;
	if (!own_network || !ip("link add va type veth peer name vb"))
		skip();
	batch = popen("ip -batch - 2>/dev/null", "w"); // NOLINT(cert-env33-c)
	assert_non_null(batch);
	for (int i = 0; i < 350; i++)
		(void)fprintf(batch, "link property add dev va altname %0120d\n", i);
	if (pclose(batch) != 0)
		skip();
	fd = ndxp_netif_open();
	assert_true(fd >= 0);
	assert_true(ip("link set va up"));
	assert_true(ndxp_netif_read(fd, count_report, &reports, &lost));
	assert_true(lost);
	(void)close(fd);
	assert_true(ip("link del va"));
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
		cmocka_unit_test(a_port_goes_down_and_up),
		cmocka_unit_test(addresses_come_and_go),
		cmocka_unit_test(a_cable_is_pulled_and_the_interface_removed),
		cmocka_unit_test(a_label_hides_no_address),
		cmocka_unit_test(an_equal_address_makes_no_port),
		cmocka_unit_test(a_renamed_interface_is_found_by_its_index),
		cmocka_unit_test(an_interface_that_was_made_again_was_removed),
		cmocka_unit_test(no_descriptor_is_an_error),
		cmocka_unit_test(dropped_events_are_lost),
		cmocka_unit_test(the_peer_of_a_link_is_not_its_address),
		cmocka_unit_test(an_event_that_is_too_long_is_lost),
		cmocka_unit_test(what_the_kernel_drops_is_looked_up),
	};

	own_network = unshare(CLONE_NEWNET) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0;
	if (!own_network)
		print_message("no network namespace can be made here: %s\n", strerror(errno));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
