/* SPDX-License-Identifier: BSD-2-Clause */
/* The device, port and addresses behind a URI; enumeration. */
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/hash.h>
#include <ndx/spi/log.h>
#include <ndx/spi/sockaddr.h>
#include "verbs_conn.h"

#define MAX_NUMBER 255 /* of a port, or of an entry of the GID table */

const struct ndx_spi_key verbs_keys[] = {
	{"port", "number of the device's port"},
	{"gid", "index into the port's GID table"},
	{NULL, NULL},
};

/* ---- options ---- */

static enum ndx_status parse_number(const struct ndx_spi_option *option, long least, long most,
                                    long *out)
{
	char *end;

	errno = 0;
	*out = strtol(option->value, &end, 10);
	if (errno != 0 || end == option->value || *end != '\0' || *out < least || *out > most)
		return fail(NDX_E_INVALID_CONFIG, 0, "%s: %s=%.64s is not a number in %ld..%ld",
		            option->origin != NULL ? option->origin : "options", option->key,
		            option->value, least, most);
	return NDX_OK;
}

enum ndx_status verbs_parse_options(const struct ndx_spi_open *how, struct verbs_options *out)
{
	long number = 0;

	memset(out, 0, sizeof(*out));
	out->gid = -1;
	if (strlen(how->device) >= sizeof(out->device))
		return fail(NDX_E_NOT_FOUND, 0, "verbs:%.64s: no such device", how->device);
	(void)snprintf(out->device, sizeof(out->device), "%s", how->device);
	for (size_t i = 0; i < how->option_count; i++) {
		const struct ndx_spi_option *option = &how->options[i];
		const bool is_port = strcmp(option->key, "port") == 0;
		const enum ndx_status st = parse_number(option, is_port, MAX_NUMBER, &number);

		if (st != NDX_OK)
			return st;
		if (is_port)
			out->port = (unsigned)number;
		else
			out->gid = (int)number;
	}
	return NDX_OK;
}

/* ---- devices ---- */

/* What the port lacks; NULL: nothing. */
static const char *port_lacks(struct ibv_context *context, unsigned port)
{
	struct ibv_port_attr attr;

	if (ibv_query_port(context, (uint8_t)port, &attr) != 0)
		return "has no such port";
	if (attr.state == IBV_PORT_ACTIVE)
		return NULL;
	return attr.link_layer == IBV_LINK_LAYER_ETHERNET
	               ? "is not active; ip link set dev INTERFACE up, and plug the cable in"
	               : "is not active; plug the cable in and start a subnet manager";
}

/* The first active port; 0: none. */
static unsigned find_port(struct ibv_context *context, const struct ibv_device_attr *attr)
{
	for (unsigned port = 1; port <= attr->phys_port_cnt; port++) {
		if (port_lacks(context, port) == NULL)
			return port;
	}
	return 0;
}

static enum ndx_status choose_port(struct verbs_options *options, struct ibv_context *context)
{
	const char *name = ibv_get_device_name(context->device);
	struct ibv_device_attr attr;
	const char *lacks;

	if (context->device->transport_type == IBV_TRANSPORT_IWARP)
		return fail(NDX_E_NOT_SUPPORTED, 0,
		            "verbs:%s is an iWARP device: its connections have no second phase, "
		            "and none was there to test with; use ofi:tcp",
		            name);
	if (ibv_query_device(context, &attr) != 0)
		return fail(NDX_E_DEVICE_NOT_READY, errno, "verbs:%s: ibv_query_device: %s", name,
		            strerror(errno));
	if (options->port == 0)
		options->port = find_port(context, &attr);
	lacks = options->port == 0 ? port_lacks(context, 1) : port_lacks(context, options->port);
	if (lacks != NULL)
		return fail(NDX_E_DEVICE_NOT_READY, 0, "verbs:%s port %u %s", name,
		            options->port == 0 ? 1 : options->port, lacks);
	return NDX_OK;
}

static enum ndx_status fail_no_device(const char *device, struct ibv_device **devices, int count)
{
	char names[128];
	size_t used = 0;

	names[0] = '\0';
	for (int i = 0; devices != NULL && i < count && used < sizeof(names); i++) {
		const int n = snprintf(names + used, sizeof(names) - used, "%s%s",
		                       used > 0 ? ", " : "", ibv_get_device_name(devices[i]));

		used += n > 0 ? (size_t)n : 0;
	}
	if (count == 0)
		return fail(
			NDX_E_NOT_FOUND, 0,
			"verbs%s%s: this host has no RDMA device; load the adapter's driver, or "
			"\"rdma link add rxe0 type rxe netdev INTERFACE\" for one in software",
			device[0] != '\0' ? ":" : "", device);
	return fail(NDX_E_NOT_FOUND, 0, "verbs: no RDMA device \"%s\"; there are: %s", device,
	            names);
}

static enum ndx_status open_one(struct verbs_options *options, struct ibv_device *device,
                                struct ibv_context **out)
{
	struct ibv_context *context = ibv_open_device(device);
	enum ndx_status st;

	if (context == NULL)
		return fail(NDX_E_DEVICE_NOT_READY, errno,
		            "verbs:%s: ibv_open_device: %s; may this user open the files in "
		            "/dev/infiniband?",
		            ibv_get_device_name(device), strerror(errno));
	st = choose_port(options, context);
	if (st != NDX_OK) {
		(void)ibv_close_device(context);
		return st;
	}
	(void)snprintf(options->device, sizeof(options->device), "%s", ibv_get_device_name(device));
	*out = context;
	return NDX_OK;
}

enum ndx_status verbs_device_open(struct verbs_options *options, struct ibv_context **out)
{
	int count = 0;
	struct ibv_device **devices = ibv_get_device_list(&count);
	enum ndx_status st = NDX_E_NOT_FOUND;
	bool tried = false;

	if (devices == NULL && errno != ENOSYS)
		return fail(NDX_E_DEVICE_NOT_READY, errno, "ibv_get_device_list: %s",
		            strerror(errno));
	for (int i = 0; devices != NULL && i < count && st != NDX_OK; i++) {
		if (options->device[0] != '\0' &&
		    strcmp(options->device, ibv_get_device_name(devices[i])) != 0)
			continue;
		tried = true;
		st = open_one(options, devices[i], out);
	}
	if (!tried)
		st = fail_no_device(options->device, devices, count);
	if (devices != NULL)
		ibv_free_device_list(devices);
	return st;
}

/* ---- addresses ---- */

static bool is_same_port(const struct rdma_cm_id *id, const char *device, unsigned port)
{
	return id->verbs != NULL && strcmp(ibv_get_device_name(id->verbs->device), device) == 0 &&
	       id->port_num == port;
}

bool verbs_serves(const struct verbs_adapter *adapter, const struct rdma_cm_id *id)
{
	return is_same_port(id, adapter->options.device, adapter->options.port);
}

static bool is_link_local(const struct sockaddr_storage *address)
{
	struct sockaddr_in6 v6;

	if (address->ss_family != AF_INET6)
		return false;
	memcpy(&v6, address, sizeof(v6));
	return IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr);
}

/* The address of an interface that is up. False: it has none that can be used. */
static bool usable_address(const struct ifaddrs *i, struct sockaddr_storage *out)
{
	if (i->ifa_addr == NULL || !(i->ifa_flags & IFF_UP) || (i->ifa_flags & IFF_LOOPBACK) ||
	    !ndxp_sockaddr_valid(i->ifa_addr, sizeof(struct sockaddr_in6)))
		return false;
	ndxp_sockaddr_copy(out, i->ifa_addr, sizeof(struct sockaddr_in6));
	ndxp_sockaddr_set_port(out, 0);
	return true;
}

/* Does rdma_cm serve the address at this port? Only a bind shows that. */
static bool is_of_port(struct rdma_event_channel *channel, struct sockaddr_storage *address,
                       const char *device, unsigned port)
{
	struct rdma_cm_id *id;
	bool is;

	if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) != 0)
		return false;
	is = rdma_bind_addr(id, (struct sockaddr *)address) == 0 && is_same_port(id, device, port);
	(void)rdma_destroy_id(id);
	return is;
}

struct search {
	struct rdma_event_channel *channel;
	struct ifaddrs *all;
	const char *device;
	unsigned port;
	struct sockaddr_storage only; /* AF_UNSPEC: all */
};

/* Link-local addresses come last. Returns the number of addresses and fills `list`. */
static size_t collect_addresses(const struct search *s, struct sockaddr_storage *list,
                                char *interface_name, size_t size)
{
	struct sockaddr_storage address;
	size_t count = 0;

	for (int pass = 0; pass < 2; pass++) {
		for (const struct ifaddrs *i = s->all; i != NULL; i = i->ifa_next) {
			if (!usable_address(i, &address) || is_link_local(&address) != (pass == 1))
				continue;
			if (s->only.ss_family != AF_UNSPEC &&
			    !ndxp_sockaddr_same_host(&s->only, &address))
				continue;
			if (!is_of_port(s->channel, &address, s->device, s->port))
				continue;
			if (interface_name != NULL && count == 0)
				(void)snprintf(interface_name, size, "%s", i->ifa_name);
			list[count++] = address;
		}
	}
	return count;
}

static bool has_devices(void)
{
	int count = 0;
	struct ibv_device **devices = ibv_get_device_list(&count);

	if (devices != NULL)
		ibv_free_device_list(devices);
	return count > 0;
}

/* librdmacm fails with ENODEV where the host has no RDMA device, or no module for one. */
enum ndx_status verbs_open_cm(const char *device, struct rdma_event_channel **out)
{
	int err;

	*out = rdma_create_event_channel();
	if (*out != NULL)
		return NDX_OK;
	err = errno;
	if (err == ENODEV && !has_devices())
		return fail_no_device(device, NULL, 0);
	return fail(
		err == EMFILE || err == ENFILE || err == ENOMEM ? NDX_E_INSUFFICIENT_RESOURCES
								: NDX_E_DEVICE_NOT_READY,
		err,
		"verbs%s%s: rdma_create_event_channel: %s; is there an RDMA device (ibv_devices), "
		"is rdma_ucm loaded, and may this user open /dev/infiniband/rdma_cm?",
		device[0] != '\0' ? ":" : "", device, strerror(err));
}

static enum ndx_status begin_search(struct search *s, struct sockaddr_storage **list)
{
	enum ndx_status st = verbs_open_cm("", &s->channel);
	size_t room = 0;

	if (st != NDX_OK)
		return st;
	if (getifaddrs(&s->all) != 0) {
		const int err = errno;

		rdma_destroy_event_channel(s->channel);
		return fail(NDX_E_INSUFFICIENT_RESOURCES, err, "getifaddrs: %s", strerror(err));
	}
	for (const struct ifaddrs *i = s->all; i != NULL; i = i->ifa_next)
		room++;
	*list = calloc(room + 1, sizeof(**list));
	if (*list == NULL) {
		freeifaddrs(s->all);
		rdma_destroy_event_channel(s->channel);
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a list of addresses");
	}
	return NDX_OK;
}

static void end_search(struct search *s)
{
	freeifaddrs(s->all);
	rdma_destroy_event_channel(s->channel);
}

/*
 * Does the GID that the options name stand for an address? On Ethernet each GID does; on InfiniBand
 * a GID stands for the port, whatever addresses IPoIB has.
 */
static enum ndx_status resolve_gid(const struct verbs_options *options, struct ibv_context *context,
                                   bool ethernet, struct sockaddr_storage *only)
{
	static const union ibv_gid unused;
	union ibv_gid gid;
	int err = 0;

	if (options->gid < 0)
		return NDX_OK;
	if (ibv_query_gid(context, (uint8_t)options->port, options->gid, &gid) != 0)
		err = errno;
	if (err != 0 || memcmp(&gid, &unused, sizeof(gid)) == 0)
		return fail(NDX_E_NOT_FOUND, err,
		            "verbs:%s port %u has no GID %d; those that there are: grep . "
		            "/sys/class/infiniband/%s/ports/%u/gids/*",
		            options->device, options->port, options->gid, options->device,
		            options->port);
	if (ethernet)
		verbs_address_of_gid(&gid, only);
	return NDX_OK;
}

/* Connections by numbers need no address, but a GID: one that the options name, or that of an
 * InfiniBand port. */
static enum ndx_status without_address(const struct verbs_options *options, bool ethernet)
{
	if (ethernet && options->gid < 0)
		return fail(NDX_E_DEVICE_NOT_READY, 0,
		            "verbs:%s port %u has no IP address; ip address add ... dev INTERFACE; "
		            "or name a GID with ?gid=N, for connections that are described by "
		            "numbers only",
		            options->device, options->port);
	log_warn(0,
	         "verbs:%s port %u has no IP address%s: connections that are described by numbers "
	         "are all that it can have; ip address add ... dev INTERFACE",
	         options->device, options->port,
	         options->gid >= 0 ? " that belongs to the GID" : "");
	return NDX_OK;
}

/* Search for the addresses of the port that the options name. */
static enum ndx_status select_port(struct search *s, const struct verbs_options *options,
                                   struct ibv_context *context, bool *ethernet)
{
	struct ibv_port_attr port;
	const int err = ibv_query_port(context, (uint8_t)options->port, &port);

	if (err != 0)
		return fail(NDX_E_DEVICE_NOT_READY, err, "verbs:%s port %u: ibv_query_port: %s",
		            options->device, options->port, strerror(err));
	*ethernet = port.link_layer == IBV_LINK_LAYER_ETHERNET;
	s->device = options->device;
	s->port = options->port;
	s->only = (struct sockaddr_storage){.ss_family = AF_UNSPEC};
	return resolve_gid(options, context, *ethernet, &s->only);
}

enum ndx_status verbs_find_addresses(const struct verbs_options *options,
                                     struct ibv_context *context, struct sockaddr_storage **list,
                                     size_t *count)
{
	struct sockaddr_storage *found = NULL;
	struct search s = {0};
	bool ethernet;
	enum ndx_status st = select_port(&s, options, context, &ethernet);

	if (st == NDX_OK)
		st = begin_search(&s, &found);
	if (st != NDX_OK)
		return st;
	*count = collect_addresses(&s, found, NULL, 0);
	end_search(&s);
	if (*count == 0)
		st = without_address(options, ethernet);
	if (st != NDX_OK) {
		free(found);
		return st;
	}
	*list = found;
	return NDX_OK;
}

/* ---- properties ---- */

static uint64_t adapter_id(const char *device, unsigned port)
{
	char text[96];

	(void)snprintf(text, sizeof(text), "verbs:%s/%u", device, port);
	return ndxp_hash_text(text);
}

void verbs_describe(const struct verbs_adapter *adapter, struct ndx_adapter_info *info)
{
	const struct verbs_options *options = &adapter->options;
	char gid[16];

	gid[0] = '\0';
	if (options->gid >= 0)
		(void)snprintf(gid, sizeof(gid), "&gid=%d", options->gid);
	(void)snprintf(info->uri, sizeof(info->uri), "verbs:%s?port=%u%s", options->device,
	               options->port, gid);
	(void)snprintf(info->device, sizeof(info->device), "%s", options->device);
	info->adapter_id = adapter_id(options->device, options->port);
	info->vendor_id = adapter->soft_roce ? 0 : adapter->attr.vendor_id;
	info->device_id = adapter->soft_roce ? 0 : adapter->attr.vendor_part_id;
}

/* What verbs_find_addresses() gives when the URI is opened. */
static enum ndx_status list_port(struct search *s, const struct verbs_options *options,
                                 struct ibv_context *context, struct sockaddr_storage *list,
                                 struct ndx_adapter_entry *entry)
{
	bool ethernet;
	const enum ndx_status st = select_port(s, options, context, &ethernet);

	(void)snprintf(entry->uri, sizeof(entry->uri), "verbs:%s?port=%u", options->device,
	               options->port);
	entry->adapter_id = adapter_id(options->device, options->port);
	if (st != NDX_OK)
		return st;
	entry->address_count =
		collect_addresses(s, list, entry->interface_name, sizeof(entry->interface_name));
	if (entry->address_count == 0) {
		(void)snprintf(entry->hint, sizeof(entry->hint),
		               "port %u has no IP address%s; ip address add ... dev INTERFACE",
		               options->port, options->gid >= 0 ? " that belongs to the GID" : "");
		return NDX_E_DEVICE_NOT_READY;
	}
	entry->addresses = list;
	entry->address = list[0];
	return NDX_OK;
}

static void list_device(struct search *s, const struct verbs_options *defaults,
                        struct ibv_device *device, struct sockaddr_storage *list,
                        ndx_spi_list_fn *each, void *arg)
{
	const char *name = ibv_get_device_name(device);
	struct verbs_options options = {.gid = defaults->gid};
	struct ndx_adapter_entry entry = {.hint = ""};
	struct ibv_context *context = NULL;

	(void)snprintf(entry.uri, sizeof(entry.uri), "verbs:%s", name);
	(void)snprintf(entry.device, sizeof(entry.device), "%s", name);
	entry.state = open_one(&options, device, &context);
	if (entry.state == NDX_OK)
		entry.state = list_port(s, &options, context, list, &entry);
	if (entry.state != NDX_OK && entry.hint[0] == '\0')
		(void)snprintf(entry.hint, sizeof(entry.hint), "%s", ndx_last_error());
	each(arg, &entry);
	s->device = NULL; /* it was in the options */
	if (context != NULL)
		(void)ibv_close_device(context);
}

static void list_nothing(const struct verbs_options *options, ndx_spi_list_fn *each, void *arg)
{
	struct ndx_adapter_entry entry = {.uri = "verbs"};

	ndxp_fail_hold(true); /* a list without devices is no failure */
	entry.state = fail_no_device(options->device, NULL, 0);
	ndxp_fail_hold(false);
	(void)snprintf(entry.hint, sizeof(entry.hint), "%s", ndx_last_error());
	each(arg, &entry);
}

/* One entry for each device, with its first active port; or one entry that says why there is
 * none. */
enum ndx_status verbs_list(const struct ndx_provider *self, const struct ndx_spi_open *defaults,
                           ndx_spi_list_fn *each, void *arg)
{
	struct verbs_options options;
	struct sockaddr_storage *list = NULL;
	struct search s = {0};
	int count = 0;
	struct ibv_device **devices;
	enum ndx_status st = verbs_parse_options(defaults, &options);

	(void)self;
	if (st != NDX_OK)
		return st;
	devices = ibv_get_device_list(&count);
	if (devices == NULL || count == 0) {
		list_nothing(&options, each, arg);
	} else {
		st = begin_search(&s, &list);
		for (int i = 0; st == NDX_OK && list != NULL && i < count; i++)
			list_device(&s, &options, devices[i], list, each, arg);
		if (st == NDX_OK) {
			end_search(&s);
			free(list);
		}
	}
	if (devices != NULL)
		ibv_free_device_list(devices);
	return st;
}
