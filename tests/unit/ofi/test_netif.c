/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of real network interfaces, through the public API. */
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <ndx/ndx.h>

#include "netif_host.h"

#define QUIET_MS 500
#define TOGGLES 2000

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
		if (!next(adapter, &event, NETIF_WAIT_MS))
			fail_msg("no event \"%s\"", text);
	}
	assert_int_equal(event.type, type);
	assert_int_equal(event.port, port);
}

/* No event comes whose text begins so. */
static void expect_none(struct ndx_adapter *adapter, const char *beginning)
{
	struct ndx_adapter_event event;

	while (next(adapter, &event, QUIET_MS)) {
		if (strncmp(event.text, beginning, strlen(beginning)) == 0)
			fail_msg("an event too many: %s", event.text);
	}
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
	netif_host_begin();
	adapter = open_adapter("ofi:tcp?iface=lo");
	netif_host_set_up("lo", false);
	expect(adapter, NDX_ADAPTER_EVENT_PORT_DOWN, 1, "interface lo is down");
	netif_host_set_up("lo", true);
	expect(adapter, NDX_ADAPTER_EVENT_PORT_UP, 1, "interface lo is up");
	ndx_adapter_close(adapter);
}

static void addresses_come_and_go(void **state)
{
	struct ndx_adapter *adapter;

	(void)state;
	netif_host_begin();
	adapter = open_adapter("ofi:tcp?iface=lo");
	netif_host_add_address("lo:1", "127.9.9.9");
	expect(adapter, NDX_ADAPTER_EVENT_ADDRESS_CHANGE, 1, "interface lo has other addresses");
	expect_none(adapter, "");
	netif_host_set_up("lo:1", false); /* removes the address */
	expect(adapter, NDX_ADAPTER_EVENT_ADDRESS_CHANGE, 1, "interface lo has other addresses");
	ndx_adapter_close(adapter);
}

/* A virtual cable whose other end goes down takes the carrier away. The interfaces of the adapter
 * are its ports; the other end may be one, with an address that the kernel gave it. */
static void a_cable_is_pulled_and_the_interface_removed(void **state)
{
	struct ndx_adapter *adapter;

	(void)state;
	netif_host_begin();
	if (!netif_host_ip("link add va type veth peer name vb") ||
	    !netif_host_ip("address add 192.0.2.1/24 dev va") || !netif_host_ip("link set vb up") ||
	    !netif_host_ip("link set va up"))
		skip();
	netif_host_await_carrier("va");
	adapter = open_adapter("ofi:tcp?trust=lan");
	assert_true(netif_host_ip("link set vb down"));
	expect(adapter, NDX_ADAPTER_EVENT_PORT_DOWN, 2, "interface va is down");
	assert_true(netif_host_ip("link set vb up"));
	expect(adapter, NDX_ADAPTER_EVENT_PORT_UP, 2, "interface va is up");
	assert_true(netif_host_ip("link del va"));
	expect(adapter, NDX_ADAPTER_EVENT_PORT_DOWN, 2, "interface va was removed");
	assert_true(netif_host_ip("link add va type veth peer name vb") &&
	            netif_host_ip("link set vb up") && netif_host_ip("link set va up"));
	expect(adapter, NDX_ADAPTER_EVENT_PORT_UP, 2, "interface va is up");
	ndx_adapter_close(adapter);
	assert_true(netif_host_ip("link del va"));
}

/* A label stands in place of the interface's name in getifaddrs(). */
static void a_label_hides_no_address(void **state)
{
	struct ndx_adapter *adapter;

	(void)state;
	netif_host_begin();
	adapter = open_adapter("ofi:tcp?iface=lo");
	if (!netif_host_ip("address add 127.8.8.8/8 dev lo label mgmt"))
		skip();
	expect(adapter, NDX_ADAPTER_EVENT_ADDRESS_CHANGE, 1, "interface lo has other addresses");
	assert_true(netif_host_ip("address del 127.8.8.8/8 dev lo"));
	expect(adapter, NDX_ADAPTER_EVENT_ADDRESS_CHANGE, 1, "interface lo has other addresses");
	expect_none(adapter, "");
	ndx_adapter_close(adapter);
}

/* Interfaces with one hardware address have one link-local address. */
static void an_equal_address_makes_no_port(void **state)
{
	struct ndx_adapter *adapter;

	(void)state;
	netif_host_begin();
	if (!netif_host_ip("link add va address 02:00:00:00:00:07 type veth peer name vb") ||
	    !netif_host_ip("link add vc address 02:00:00:00:00:07 type veth peer name vd"))
		skip();
	assert_true(netif_host_ip("link set vb up") && netif_host_ip("link set va up") &&
	            netif_host_ip("link set vd up") && netif_host_ip("link set vc up"));
	netif_host_await_carrier("va");
	netif_host_await_link_local("va");
	netif_host_await_link_local("vc");
	adapter = open_adapter("ofi:tcp?iface=va&trust=lan");
	assert_true(netif_host_ip("link set vd down"));
	expect_none(adapter, "interface vc");
	assert_true(netif_host_ip("link set vb down"));
	expect(adapter, NDX_ADAPTER_EVENT_PORT_DOWN, 1, "interface va is down");
	ndx_adapter_close(adapter);
	assert_true(netif_host_ip("link del va") && netif_host_ip("link del vc"));
}

/* The control thread is in here: nothing is read, and the kernel has to drop messages. */
static void toggle(struct ndx_overlapped *ov)
{
	for (int i = 0; i < TOGGLES; i++)
		netif_host_set_up("lo", i % 2 == 0);
	netif_host_set_up("lo", false);
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
	netif_host_begin();
	assert_int_equal(sem_init(&done, 0, 0), 0);
	adapter = open_adapter("ofi:tcp?iface=lo");
	assert_int_equal(ndx_adapter_get_event(adapter, &event, &ov), NDX_PENDING);
	netif_host_add_address("lo:1", "127.9.9.9");
	assert_int_equal(clock_gettime(CLOCK_REALTIME, &until), 0);
	until.tv_sec += NETIF_WAIT_MS / 1000;
	assert_int_equal(sem_timedwait(&done, &until), 0);
	while (next(adapter, &event, QUIET_MS)) {
		if (event.type != NDX_ADAPTER_EVENT_ADDRESS_CHANGE)
			last = event.type;
	}
	assert_int_equal(last, NDX_ADAPTER_EVENT_PORT_DOWN);
	ndx_adapter_close(adapter);
	netif_host_set_up("lo", true);
	assert_int_equal(sem_destroy(&done), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_port_goes_down_and_up),
		cmocka_unit_test(addresses_come_and_go),
		cmocka_unit_test(a_cable_is_pulled_and_the_interface_removed),
		cmocka_unit_test(a_label_hides_no_address),
		cmocka_unit_test(an_equal_address_makes_no_port),
		cmocka_unit_test(what_the_kernel_drops_is_looked_up),
	};

	netif_host_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
