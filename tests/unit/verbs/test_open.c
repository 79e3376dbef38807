/* SPDX-License-Identifier: BSD-2-Clause */
/* Adapters of ports that have no IP address or several, or that lack the GID of the option. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base_loop.h"
#include "builtin.h"
#include "fake_verbs.h"
#include "verbs.h"

#define GIDS 2 /* the first entry of the GID table has a value, the second is empty */

static struct {
	struct fake_device device;
	struct ibv_device name;
	bool has_address;
	bool has_more;         /* a link-local address before that one, and another one behind it */
	bool not_there;        /* the host has no device */
	int no_channel;        /* librdmacm opens no channel, with this errno; 0: it does */
	unsigned open_objects; /* open contexts, channels, domains, address lists */
} port;

/* ---- libibverbs: device, port and GID table ---- */

struct ibv_device **ibv_get_device_list(int *num_devices)
{
	static struct ibv_device *list[2];

	list[0] = port.not_there ? NULL : &port.name;
	*num_devices = port.not_there ? 0 : 1;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	(void)list;
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	port.device.context.device = device;
	port.device.context.async_fd = eventfd(0, 0);
	port.open_objects++;
	return &port.device.context;
}

int ibv_close_device(struct ibv_context *context)
{
	port.open_objects--;
	return close(context->async_fd);
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	(void)context;
	*attr = (struct ibv_device_attr){.phys_port_cnt = 1,
	                                 .max_sge = 4,
	                                 .max_cqe = 4096,
	                                 .max_qp_wr = 256,
	                                 .max_mr_size = UINT64_C(1) << 30};
	return 0;
}

int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid)
{
	(void)context;
	(void)port_num;
	if (index >= GIDS) {
		errno = EINVAL;
		return -1;
	}
	memset(gid, 0, sizeof(*gid));
	if (index == 0)
		gid->raw[0] = 0xfe;
	return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	(void)context;
	port.open_objects++;
	return &port.device.pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	(void)pd;
	port.open_objects--;
	return 0;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct ibv_comp_channel *channel = calloc(1, sizeof(*channel));

	assert_non_null(channel);
	channel->context = context;
	channel->fd = eventfd(0, 0);
	port.open_objects++;
	return channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	const int err = close(channel->fd);

	free(channel);
	port.open_objects--;
	return err;
}

/* ---- librdmacm and the addresses of the host ---- */

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct rdma_event_channel *channel;

	if (port.no_channel != 0) {
		errno = port.no_channel;
		return NULL;
	}
	channel = calloc(1, sizeof(*channel));
	assert_non_null(channel);
	channel->fd = eventfd(0, 0);
	port.open_objects++;
	return channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	(void)close(channel->fd);
	free(channel);
	port.open_objects--;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
                   enum rdma_port_space ps)
{
	(void)channel;
	(void)context;
	(void)ps;
	*id = calloc(1, sizeof(**id));
	assert_non_null(*id);
	port.open_objects++;
	return 0;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *address)
{
	(void)address;
	id->verbs = &port.device.context;
	id->port_num = 1;
	return 0;
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	free(id);
	port.open_objects--;
	return 0;
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): reserved there */
int getifaddrs(struct ifaddrs **list)
{
	static struct sockaddr_in address = {.sin_family = AF_INET};
	static char name[] = "ib0";
	static struct ifaddrs one = {.ifa_name = name,
	                             .ifa_flags = IFF_UP,
	                             .ifa_addr = (struct sockaddr *)(void *)&address};

	static struct sockaddr_in second = {.sin_family = AF_INET};
	static struct sockaddr_in6 local = {.sin6_family = AF_INET6, .sin6_scope_id = 2};
	static struct ifaddrs other = {.ifa_name = name,
	                               .ifa_flags = IFF_UP,
	                               .ifa_addr = (struct sockaddr *)(void *)&second};
	static struct ifaddrs link = {.ifa_name = name,
	                              .ifa_flags = IFF_UP,
	                              .ifa_addr = (struct sockaddr *)(void *)&local};

	address.sin_addr.s_addr = htonl(0x0a090001);
	second.sin_addr.s_addr = htonl(0x0a090002);
	local.sin6_addr.s6_addr[0] = 0xfe;
	local.sin6_addr.s6_addr[1] = 0x80;
	link.ifa_next = &one;
	one.ifa_next = port.has_more ? &other : NULL;
	*list = !port.has_address ? NULL : port.has_more ? &link : &one;
	port.open_objects++;
	return 0;
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): reserved there */
void freeifaddrs(struct ifaddrs *list)
{
	(void)list;
	port.open_objects--;
}

/* ---- the cases ---- */

static void setup(uint8_t link_layer, bool has_address)
{
	memset(&port, 0, sizeof(port));
	fake_open(&port.device);
	(void)strcpy(port.name.name, "fake0");
	port.device.port.max_msg_sz = UINT32_C(1) << 30;
	port.device.port.gid_tbl_len = GIDS;
	port.device.port.link_layer = link_layer;
	port.has_address = has_address;
}

static void nothing(void *arg)
{
	(void)arg;
}

struct opened {
	struct ndx_host host;
	struct ndx_spi_adapter head;
	struct ndx_spi_adapter *adapter;
};

static void close_adapter(void *arg)
{
	const struct opened *opened = arg;

	ndx_provider_verbs.ops->adapter_close(opened->adapter);
}

static struct sockaddr_storage opened_addresses[4];

/* Open an adapter, count its addresses, close it. No object may stay open. */
static enum ndx_status open_and_close(const char *gid, size_t *addresses)
{
	const struct ndx_spi_option option = {.key = "gid", .value = gid};
	const struct ndx_spi_open spec = {
		.device = "fake0", .options = &option, .option_count = gid != NULL ? 1 : 0};
	struct opened opened = {.adapter = NULL};
	enum ndx_status st;

	opened.head.host = &opened.host;
	assert_int_equal(base_loop_create("open", &opened.head.loop), NDX_OK);
	st = ndx_provider_verbs.ops->adapter_open(&opened.head, &spec, &opened.adapter);
	if (st == NDX_OK) {
		*addresses = ndx_provider_verbs.ops->adapter_addresses(opened.adapter,
		                                                       opened_addresses, 4);
		ndxp_loop_call(opened.head.loop, close_adapter, &opened);
	}
	base_loop_destroy(opened.head.loop, nothing, NULL);
	assert_int_equal(port.open_objects, 0);
	return st;
}

static void a_port_without_address_fails_with_the_remedy(void **state)
{
	size_t count = 0;

	(void)state;
	setup(IBV_LINK_LAYER_ETHERNET, false);
	assert_int_equal(open_and_close(NULL, &count), NDX_E_DEVICE_NOT_READY);
	assert_non_null(strstr(ndx_last_error(), "ip address add"));
	assert_non_null(strstr(ndx_last_error(), "?gid=N"));
}

static void a_host_without_rdma_is_not_out_of_resources(void **state)
{
	static const struct {
		int err;
		enum ndx_status status;
	} cases[] = {{ENODEV, NDX_E_DEVICE_NOT_READY},
	             {EACCES, NDX_E_DEVICE_NOT_READY},
	             {EMFILE, NDX_E_INSUFFICIENT_RESOURCES}};
	size_t count = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		setup(IBV_LINK_LAYER_ETHERNET, true);
		port.no_channel = cases[i].err;
		assert_int_equal(open_and_close(NULL, &count), cases[i].status);
		assert_non_null(strstr(ndx_last_error(), "verbs:"));
		assert_non_null(strstr(ndx_last_error(), "rdma_ucm"));
	}
	port.no_channel = ENODEV;
	port.not_there = true;
	assert_int_equal(open_and_close(NULL, &count), NDX_E_NOT_FOUND);
	assert_non_null(strstr(ndx_last_error(), "verbs:"));
	assert_non_null(strstr(ndx_last_error(), ": this host has no RDMA device; load"));
	port.not_there = false;
	port.no_channel = 0;
}

static void a_gid_that_is_not_there_is_refused(void **state)
{
	static const char *const gids[] = {"1", "200"};
	size_t count = 0;

	(void)state;
	for (int layer = IBV_LINK_LAYER_INFINIBAND; layer <= IBV_LINK_LAYER_ETHERNET; layer++) {
		for (size_t i = 0; i < sizeof(gids) / sizeof(gids[0]); i++) {
			setup((uint8_t)layer, true);
			assert_int_equal(open_and_close(gids[i], &count), NDX_E_NOT_FOUND);
			assert_non_null(strstr(ndx_last_error(), "/ports/1/gids/"));
		}
	}
}

static void an_adapter_may_have_no_address(void **state)
{
	size_t count = 1;

	(void)state;
	setup(IBV_LINK_LAYER_INFINIBAND, false);
	assert_int_equal(open_and_close(NULL, &count), NDX_OK);
	assert_int_equal(count, 0);
	count = 1;
	assert_int_equal(open_and_close("0", &count), NDX_OK);
	assert_int_equal(count, 0);
	setup(IBV_LINK_LAYER_ETHERNET, true); /* the address does not belong to the GID */
	count = 1;
	assert_int_equal(open_and_close("0", &count), NDX_OK);
	assert_int_equal(count, 0);
}

/* A GID of InfiniBand names the port, so the option selects no address. */
static void a_gid_of_infiniband_leaves_the_addresses(void **state)
{
	size_t count = 0;

	(void)state;
	setup(IBV_LINK_LAYER_INFINIBAND, true);
	assert_int_equal(open_and_close("0", &count), NDX_OK);
	assert_int_equal(count, 1);
}

/* ---- the list ---- */

#define ADDRESSES 4u

struct kept {
	struct ndx_adapter_entry entry;
	struct sockaddr_storage addresses[ADDRESSES];
	unsigned entries;
};

/* ndx_spi_list_fn */
static void keep_entry(void *arg, const struct ndx_adapter_entry *entry)
{
	struct kept *kept = arg;

	assert_true(entry->address_count <= ADDRESSES);
	kept->entry = *entry;
	if (entry->address_count > 0)
		memcpy(kept->addresses, entry->addresses,
		       entry->address_count * sizeof(kept->addresses[0]));
	kept->entries++;
}

/* The one entry of the list, with the GID of the INI file if there is one. */
static struct kept list_it(const char *gid)
{
	const struct ndx_spi_option option = {.key = "gid", .value = gid};
	const struct ndx_spi_open defaults = {
		.device = "", .options = &option, .option_count = gid != NULL ? 1 : 0};
	struct kept kept = {.entries = 0};

	assert_int_equal(
		ndx_provider_verbs.ops->list(&ndx_provider_verbs, &defaults, keep_entry, &kept),
		NDX_OK);
	assert_int_equal(kept.entries, 1);
	assert_int_equal(port.open_objects, 0);
	assert_string_equal(kept.entry.device, "fake0");
	return kept;
}

static void the_list_has_the_addresses_of_the_open_adapter(void **state)
{
	struct kept kept;
	size_t count = 0;

	(void)state;
	setup(IBV_LINK_LAYER_ETHERNET, true);
	port.has_more = true;
	assert_int_equal(open_and_close(NULL, &count), NDX_OK);
	assert_int_equal(count, 3);
	kept = list_it(NULL);
	assert_int_equal(kept.entry.state, NDX_OK);
	assert_string_equal(kept.entry.uri, "verbs:fake0?port=1");
	assert_string_equal(kept.entry.interface_name, "ib0");
	assert_int_equal(kept.entry.address_count, 3);
	assert_memory_equal(kept.addresses, opened_addresses, 3 * sizeof(kept.addresses[0]));
	assert_memory_equal(&kept.entry.address, kept.addresses, sizeof(kept.entry.address));
	assert_int_equal(kept.addresses[2].ss_family, AF_INET6); /* link-local ones are last */
}

static void what_the_list_cannot_use_has_no_address(void **state)
{
	struct kept kept;

	(void)state;
	setup(IBV_LINK_LAYER_ETHERNET, false);
	kept = list_it(NULL);
	assert_int_equal(kept.entry.state, NDX_E_DEVICE_NOT_READY);
	assert_string_equal(kept.entry.hint,
	                    "port 1 has no IP address; ip address add ... dev INTERFACE");
	assert_int_equal(kept.entry.address_count, 0);
	assert_null(kept.entry.addresses);
	assert_int_equal(kept.entry.address.ss_family, AF_UNSPEC);
}

static void the_gid_of_the_configuration_counts(void **state)
{
	struct kept kept;

	(void)state;
	setup(IBV_LINK_LAYER_ETHERNET, true);
	kept = list_it("0");
	assert_int_equal(kept.entry.state, NDX_E_DEVICE_NOT_READY);
	assert_non_null(strstr(kept.entry.hint, "that belongs to the GID"));
	assert_int_equal(kept.entry.address_count, 0);
	kept = list_it("1");
	assert_int_equal(kept.entry.state, NDX_E_NOT_FOUND);
	assert_non_null(strstr(kept.entry.hint, "has no GID 1"));
	setup(IBV_LINK_LAYER_INFINIBAND, true); /* there a GID stands for the port */
	kept = list_it("0");
	assert_int_equal(kept.entry.state, NDX_OK);
	assert_int_equal(kept.entry.address_count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_list_has_the_addresses_of_the_open_adapter),
		cmocka_unit_test(what_the_list_cannot_use_has_no_address),
		cmocka_unit_test(the_gid_of_the_configuration_counts),
		cmocka_unit_test(a_port_without_address_fails_with_the_remedy),
		cmocka_unit_test(a_host_without_rdma_is_not_out_of_resources),
		cmocka_unit_test(a_gid_that_is_not_there_is_refused),
		cmocka_unit_test(an_adapter_may_have_no_address),
		cmocka_unit_test(a_gid_of_infiniband_leaves_the_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
