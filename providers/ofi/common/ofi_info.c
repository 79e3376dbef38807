/* SPDX-License-Identifier: BSD-2-Clause */
/* From a URI to addresses and libfabric's description of an endpoint; enumeration. */
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base_log.h"
#include "base_sockaddr.h"
#include "ofi.h"

static const struct ofi_flavour *const flavours[] = {&ofi_tcp, &ofi_verbs};

#define FLAVOURS (sizeof(flavours) / sizeof(flavours[0]))

const struct ndx_spi_key ofi_keys[] = {
	{"iface", "network interface"}, {"addr", "local IP address"},  {"trust", "lan|none"},
	{"peers", "user|any"},          {"cq", "auto|private|shared"}, {NULL, NULL},
};

/* ---- options ---- */

static const char *origin_of(const struct ndx_spi_option *option)
{
	return option->origin != NULL ? option->origin : "options";
}

static enum ndx_status parse_address(const struct ndx_spi_option *option,
                                     struct sockaddr_storage *out)
{
	const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found;

	if (getaddrinfo(option->value, NULL, &hints, &found) != 0)
		return fail(NDX_E_INVALID_CONFIG, 0,
		            "%s: addr=%.64s is no IPv4 or IPv6 address in numbers",
		            origin_of(option), option->value);
	base_sockaddr_copy(out, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	base_sockaddr_set_port(out, 0);
	return NDX_OK;
}

/* Which of the words is it? */
static enum ndx_status parse_word(const struct ndx_spi_option *option, const char *const *words,
                                  size_t count, const char *all, size_t *out)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(option->value, words[i]) == 0) {
			*out = i;
			return NDX_OK;
		}
	}
	return fail(NDX_E_INVALID_CONFIG, 0, "%s: %s=%.64s is not one of %s", origin_of(option),
	            option->key, option->value, all);
}

static enum ndx_status parse_option(const struct ndx_spi_option *option, struct ofi_options *out)
{
	static const char *const trust[] = {"none", "lan"};
	static const char *const peers[] = {"user", "any"};
	static const char *const cq[] = {"auto", "private", "shared"};
	size_t which = 0;
	enum ndx_status st = NDX_OK;

	if (strcmp(option->key, "iface") == 0) {
		if (strlen(option->value) >= sizeof(out->iface))
			return fail(NDX_E_NOT_FOUND, 0, "%s: no network interface \"%.64s\"",
			            origin_of(option), option->value);
		(void)snprintf(out->iface, sizeof(out->iface), "%s", option->value);
	} else if (strcmp(option->key, "addr") == 0) {
		st = parse_address(option, &out->address);
	} else if (strcmp(option->key, "trust") == 0) {
		st = parse_word(option, trust, 2, "none, lan", &which);
		out->lan = which == 1;
	} else if (strcmp(option->key, "peers") == 0) {
		st = parse_word(option, peers, 2, "user, any", &which);
		out->any_user = which == 1;
		out->peers_named = true;
	} else {
		st = parse_word(option, cq, 3, "auto, private, shared", &which);
		out->cq = (enum ofi_cq_choice)which;
	}
	return st;
}

enum ndx_status ofi_parse_options(const struct ndx_spi_open *how, struct ofi_options *out)
{
	const char *device = how->device[0] != '\0' ? how->device : flavours[0]->device;
	enum ndx_status st;

	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < FLAVOURS; i++) {
		if (strcmp(flavours[i]->device, device) == 0)
			out->flavour = flavours[i];
	}
	if (out->flavour == NULL)
		return fail(
			NDX_E_NOT_FOUND, 0,
			"ofi:%.32s: libfabric has no such provider for us; there are: tcp, verbs",
			device);
	for (size_t i = 0; i < how->option_count; i++) {
		st = parse_option(&how->options[i], out);
		if (st != NDX_OK)
			return st;
	}
	/* Who trusts all hosts of a network trusts the users of this one. */
	if (!out->peers_named)
		out->any_user = out->lan;
	return NDX_OK;
}

/* ---- addresses ---- */

static bool is_wanted(const struct ofi_options *options, const struct ifaddrs *i,
                      const struct sockaddr_storage *address)
{
	if (options->iface[0] != '\0' && strcmp(i->ifa_name, options->iface) != 0)
		return false;
	if (options->address.ss_family != AF_UNSPEC)
		return base_sockaddr_same_host(&options->address, address);
	/* Unless it is asked for by name, nothing beyond this host without trust. */
	return options->iface[0] != '\0' || options->lan || !options->flavour->needs_trust ||
	       base_sockaddr_is_loopback(address);
}

/* An address that can be used: *out, and true. */
bool ofi_usable_address(const struct ifaddrs *i, struct sockaddr_storage *out)
{
	if (i->ifa_addr == NULL || !(i->ifa_flags & IFF_UP) ||
	    !base_sockaddr_valid(i->ifa_addr, sizeof(struct sockaddr_in6)))
		return false;
	base_sockaddr_copy(out, i->ifa_addr, sizeof(struct sockaddr_in6));
	return true;
}

/* Names of interfaces, for a message. */
static void name_interfaces(const struct ifaddrs *all, char *text, size_t size)
{
	size_t used = 0;
	const char *last = "";

	text[0] = '\0';
	for (const struct ifaddrs *i = all; i != NULL && used < size; i = i->ifa_next) {
		int n;

		/* One entry per interface comes first, those with addresses follow. */
		if (i->ifa_addr == NULL || i->ifa_addr->sa_family != AF_PACKET ||
		    strcmp(last, i->ifa_name) == 0)
			continue;
		last = i->ifa_name;
		n = snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "", i->ifa_name);
		used += n > 0 ? (size_t)n : 0;
	}
}

static enum ndx_status fail_addresses(const struct ofi_options *options, const struct ifaddrs *all)
{
	char text[BASE_SOCKADDR_TEXT];
	char names[160];

	name_interfaces(all, names, sizeof(names));
	if (options->address.ss_family != AF_UNSPEC)
		return fail(NDX_E_NOT_FOUND, 0, "ofi: no interface that is up has address %s",
		            base_sockaddr_text(&options->address, text));
	if (options->iface[0] != '\0' && if_nametoindex(options->iface) == 0)
		return fail(NDX_E_NOT_FOUND, 0, "ofi: no network interface \"%s\"; there are: %s",
		            options->iface, names);
	return fail(NDX_E_DEVICE_NOT_READY, 0,
	            "ofi: interface \"%s\" is down or has no address; ip link set dev %s up, ip "
	            "address add ... dev %s",
	            options->iface, options->iface[0] != '\0' ? options->iface : "lo",
	            options->iface[0] != '\0' ? options->iface : "lo");
}

enum ndx_status ofi_find_addresses(const struct ofi_options *options,
                                   struct sockaddr_storage **list, size_t *count)
{
	struct sockaddr_storage *found;
	struct sockaddr_storage address;
	struct ifaddrs *all;
	size_t room = 0;
	size_t n = 0;
	enum ndx_status st = NDX_OK;

	if (getifaddrs(&all) != 0)
		return fail(NDX_E_INSUFFICIENT_RESOURCES, errno, "getifaddrs");
	for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next)
		room++;
	found = calloc(room + 1, sizeof(*found));
	if (found == NULL) {
		st = fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a list of addresses");
		goto free_all;
	}
	for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next) {
		if (ofi_usable_address(i, &address) && is_wanted(options, i, &address))
			found[n++] = address;
	}
	if (n == 0) {
		st = fail_addresses(options, all);
		free(found);
		goto free_all;
	}
	*list = found;
	*count = n;
free_all:
	freeifaddrs(all);
	return st;
}

/* ---- libfabric's description ---- */

/*
 * Its cache of regions ignores rights, and a region that is closed stays open (ofi:verbs).
 * libfabric reads the environment once, when it is asked first, whatever for; there is no other way
 * to tell.
 */
static void turn_off_cache(void)
{
	(void)setenv("FI_MR_CACHE_MAX_COUNT", "0", 0);
}

static struct fi_info *make_hints(const struct ofi_flavour *flavour)
{
	struct fi_info *hints = fi_allocinfo();

	if (hints == NULL)
		return NULL;
	hints->caps = FI_MSG | FI_RMA;
	hints->ep_attr->type = FI_EP_MSG;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	flavour->hint(hints);
	hints->fabric_attr->prov_name = strdup(flavour->device);
	if (hints->fabric_attr->prov_name == NULL) {
		fi_freeinfo(hints);
		return NULL;
	}
	return hints;
}

static enum ndx_status fail_getinfo(const struct ofi_flavour *flavour, int err, const char *node)
{
	const char *filter = secure_getenv("FI_PROVIDER");

	if (err != FI_ENODATA)
		return fail(ofi_status_of(err), err, "fi_getinfo for %s at %s: %s", flavour->device,
		            node, fi_strerror(err));
	return fail(NDX_E_DEVICE_NOT_READY, err,
	            "libfabric %u.%u has no provider \"%s\" for %s%s%s; apt install libfabric1, or "
	            "unset FI_PROVIDER",
	            FI_MAJOR(fi_version()), FI_MINOR(fi_version()), flavour->device, node,
	            filter != NULL ? "; FI_PROVIDER is " : "", filter != NULL ? filter : "");
}

enum ndx_status ofi_get_info(const struct ofi_flavour *flavour,
                             const struct sockaddr_storage *address, struct fi_info **out)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	char node[NI_MAXHOST];
	struct fi_info *hints;
	struct fi_info *found = NULL;
	int err;

	if (FI_VERSION_LT(fi_version(), OFI_API))
		return fail(NDX_E_DEVICE_NOT_READY, 0,
		            "libfabric %u.%u is older than 1.17; upgrade libfabric1",
		            FI_MAJOR(fi_version()), FI_MINOR(fi_version()));
	if (getnameinfo((const struct sockaddr *)address, base_sockaddr_len(address), node,
	                sizeof(node), NULL, 0, NI_NUMERICHOST) != 0)
		return fail(NDX_E_INVALID_ADDRESS, 0, "a local address cannot be written down");
	hints = make_hints(flavour);
	if (hints == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory to ask libfabric");
	(void)pthread_once(&once, turn_off_cache);
	err = -fi_getinfo(OFI_API, node, "0", FI_SOURCE | FI_NUMERICHOST, hints, &found);
	fi_freeinfo(hints);
	if (err != 0)
		return fail_getinfo(flavour, err, node);
	if (found->tx_attr->iov_limit < OFI_MAX_IOV || found->rx_attr->iov_limit < OFI_MAX_IOV ||
	    !flavour->accept_info(found)) {
		fi_freeinfo(found);
		return fail(NDX_E_DEVICE_NOT_READY, 0,
		            "libfabric %u.%u: provider %s grants less than we need; report it",
		            FI_MAJOR(fi_version()), FI_MINOR(fi_version()), flavour->device);
	}
	*out = found;
	return NDX_OK;
}

/* NULL with *failed false: there is nothing to copy. */
static void *dup_address(const struct sockaddr_storage *address, size_t *len, bool *failed)
{
	void *copy;

	*len = 0;
	if (address == NULL)
		return NULL;
	*len = base_sockaddr_len(address);
	copy = malloc(*len);
	if (copy == NULL)
		*failed = true;
	else
		memcpy(copy, address, *len);
	return copy;
}

struct fi_info *ofi_dup_info(const struct fi_info *info, const struct sockaddr_storage *source,
                             const struct sockaddr_storage *destination)
{
	struct fi_info *copy = fi_dupinfo(info);
	const struct sockaddr_storage *any = source != NULL ? source : destination;
	bool failed = false;

	if (copy == NULL)
		return NULL;
	free(copy->src_addr);
	free(copy->dest_addr);
	copy->src_addr = dup_address(source, &copy->src_addrlen, &failed);
	copy->dest_addr = dup_address(destination, &copy->dest_addrlen, &failed);
	copy->addr_format =
		any != NULL && any->ss_family == AF_INET6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
	if (failed) {
		fi_freeinfo(copy);
		return NULL;
	}
	return copy;
}

/* ---- enumeration ---- */

/* FNV-1a: the same at every open, and different for different devices. */
static uint64_t hash_text(const char *text)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (; *text != '\0'; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return hash;
}

uint64_t ofi_adapter_id(const char *device, const char *where)
{
	char text[BASE_SOCKADDR_TEXT + 48];

	(void)snprintf(text, sizeof(text), "ofi:%s/%s", device, where);
	return hash_text(text);
}

void ofi_describe(const struct ofi_options *options, struct ndx_adapter_info *info)
{
	static const char *const cq[] = {[OFI_CQ_AUTO] = "",
	                                 [OFI_CQ_PRIVATE] = "&cq=private",
	                                 [OFI_CQ_SHARED] = "&cq=shared"};
	const bool is_address = options->address.ss_family != AF_UNSPEC;
	char where[64]; /* an address with its scope, or an interface */
	char rest[112];

	(void)snprintf(where, sizeof(where), "%s", options->iface);
	/* Without the brackets and the port that base_sockaddr_text() adds. */
	if (is_address)
		(void)getnameinfo((const struct sockaddr *)&options->address,
		                  base_sockaddr_len(&options->address), where, sizeof(where), NULL,
		                  0, NI_NUMERICHOST);
	(void)snprintf(rest, sizeof(rest), "%s%s%s%s%s",
	               is_address      ? "&addr="
	               : where[0] != 0 ? "&iface="
	                               : "",
	               where, options->lan ? "&trust=lan" : "",
	               !options->peers_named ? ""
	               : options->any_user   ? "&peers=any"
	                                     : "&peers=user",
	               cq[options->cq]);
	if (rest[0] == '&')
		rest[0] = '?';
	(void)snprintf(info->uri, sizeof(info->uri), "ofi:%s%s", options->flavour->device, rest);
	(void)snprintf(info->device, sizeof(info->device), "%s", options->flavour->device);
	info->adapter_id = ofi_adapter_id(options->flavour->device, where);
}

enum ndx_status ofi_list(const struct ndx_provider *self, const struct ndx_spi_open *defaults,
                         ndx_spi_list_fn *each, void *arg)
{
	struct ofi_options options;
	enum ndx_status st = ofi_parse_options(defaults, &options);

	(void)self;
	for (size_t i = 0; st == NDX_OK && i < FLAVOURS; i++)
		st = flavours[i]->list(&options, each, arg);
	return st;
}

/* ---- status ---- */

static const struct {
	int err;
	enum ndx_status status;
} statuses[] = {
	{EADDRINUSE, NDX_E_SHARING_VIOLATION},
	{EADDRNOTAVAIL, NDX_E_INVALID_ADDRESS},
	{EACCES, NDX_E_INVALID_ADDRESS}, /* a port below 1024 */
	{ECONNREFUSED, NDX_E_CONNECTION_REFUSED},
	{ETIMEDOUT, NDX_E_IO_TIMEOUT},
	{ENETUNREACH, NDX_E_NETWORK_UNREACHABLE},
	{ENETDOWN, NDX_E_NETWORK_UNREACHABLE},
	{EHOSTUNREACH, NDX_E_HOST_UNREACHABLE},
	{EHOSTDOWN, NDX_E_HOST_UNREACHABLE},
	{ENOMEM, NDX_E_NO_MEMORY},
	{EMFILE, NDX_E_INSUFFICIENT_RESOURCES},
	{ENFILE, NDX_E_INSUFFICIENT_RESOURCES},
	{ENOBUFS, NDX_E_INSUFFICIENT_RESOURCES},
	{ENOSPC, NDX_E_INSUFFICIENT_RESOURCES},
	{FI_ENODATA, NDX_E_DEVICE_NOT_READY},
};

enum ndx_status ofi_status_of(int err)
{
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		if (statuses[i].err == err)
			return statuses[i].status;
	}
	return NDX_E_UNSUCCESSFUL;
}

enum ndx_status ofi_request_status(int err)
{
	switch (err) {
	case 0:
		return NDX_OK;
	case ENOTCONN:
	case ECANCELED:
	case ECONNRESET:
	case EPIPE:
	case ESHUTDOWN:
		return NDX_E_CANCELED;
	case FI_ETRUNC:
		return NDX_E_BUFFER_OVERFLOW;
	case EFAULT:
	case EACCES:
		return NDX_E_ACCESS_VIOLATION;
	case EMSGSIZE:
		return NDX_E_DATA_OVERRUN;
	case EREMOTEIO:
		return NDX_E_REMOTE_ERROR;
	case ETIMEDOUT:
		return NDX_E_IO_TIMEOUT;
	default:
		return NDX_E_INTERNAL_ERROR;
	}
}
