/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A provider in a file of its own, for tests of finding, checking and loading one. It has two
 * devices, "one" and "two", and opens neither. What else it does is said by
 *   FAKE_NAME, FAKE_ABI, FAKE_DEVICE, FAKE_HOLE, FAKE_RANK, FAKE_SYMBOL   when it is built, and
 *   $FAKE_LIST = ok | down | none | fail             when it is asked for its devices (down),
 *   $FAKE_ADDRESSES = 192.0.2.1 ...                  the addresses of its devices, at most 8
 * (none). It counts in $FAKE_OPENED how often it was asked to open a device.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/provider.h>

#ifndef FAKE_NAME
#define FAKE_NAME "fake"
#endif
#ifndef FAKE_ABI
#define FAKE_ABI NDX_SPI_ABI
#endif
#ifndef FAKE_DEVICE
#define FAKE_DEVICE "" /* the one with a rank */
#endif
#ifndef FAKE_RANK
#define FAKE_RANK 150 /* between those of ofi:verbs and ofi:tcp */
#endif
#ifndef FAKE_SYMBOL
#define FAKE_SYMBOL ndx_provider
#endif

#define ADDRESSES_MAX 8u

static size_t find_addresses(struct sockaddr_storage list[ADDRESSES_MAX])
{
	const char *from = getenv("FAKE_ADDRESSES");
	size_t count = 0;

	while (from != NULL && *from != '\0' && count < ADDRESSES_MAX) {
		struct sockaddr_in in = {.sin_family = AF_INET};
		const size_t len = strcspn(from, " ");
		char text[INET_ADDRSTRLEN];

		(void)snprintf(text, sizeof(text), "%.*s", (int)len, from);
		if (inet_pton(AF_INET, text, &in.sin_addr) == 1)
			memcpy(&list[count++], &in, sizeof(in));
		from += len + strspn(from + len, " ");
	}
	return count;
}

static void list_device(ndx_spi_list_fn *each, void *arg, const char *device, enum ndx_status state)
{
	struct sockaddr_storage addresses[ADDRESSES_MAX] = {{.ss_family = AF_UNSPEC}};
	struct ndx_adapter_entry entry = {.state = state};

	entry.addresses = addresses;
	entry.address_count = find_addresses(addresses);
	(void)snprintf(entry.uri, sizeof(entry.uri), FAKE_NAME ":%s?gid=1", device);
	(void)snprintf(entry.device, sizeof(entry.device), "%s", device);
	if (state != NDX_OK)
		(void)snprintf(entry.hint, sizeof(entry.hint), "port of %s is down", device);
	each(arg, &entry);
}

/* A provider gets its own keys only. */
static bool has_foreign_key(const struct ndx_spi_open *how)
{
	for (size_t i = 0; i < how->option_count; i++) {
		if (strcmp(how->options[i].key, "gid") != 0 &&
		    strcmp(how->options[i].key, "trust") != 0)
			return true;
	}
	return false;
}

static enum ndx_status fake_list(const struct ndx_provider *self,
                                 const struct ndx_spi_open *defaults, ndx_spi_list_fn *each,
                                 void *arg)
{
	const char *how = getenv("FAKE_LIST");

	(void)self;
	if (has_foreign_key(defaults))
		return NDX_E_INVALID_CONFIG;
	if (how == NULL)
		how = "down";
	if (strcmp(how, "fail") == 0)
		return NDX_E_INTERNAL_ERROR;
	if (strcmp(how, "none") == 0)
		return NDX_OK;
	list_device(each, arg, "one", NDX_E_DEVICE_NOT_READY);
	list_device(each, arg, "two", strcmp(how, "ok") == 0 ? NDX_OK : NDX_E_DEVICE_NOT_READY);
	return NDX_OK;
}

static enum ndx_status fake_open(const struct ndx_spi_adapter *head, const struct ndx_spi_open *how,
                                 struct ndx_spi_adapter **out)
{
	const char *opened = getenv("FAKE_OPENED");
	char count[24];

	(void)head;
	(void)out;
	(void)snprintf(count, sizeof(count), "%ld",
	               opened != NULL ? strtol(opened, NULL, 10) + 1 : 1L);
	(void)setenv("FAKE_OPENED", count, 1);
	return has_foreign_key(how) ? NDX_E_INVALID_CONFIG : NDX_E_DEVICE_NOT_READY;
}

/* What belongs to an open adapter is never called; one function of the right size stands for all.
 */
static void never(void)
{
}

#define NEVER(member) .member = (__typeof__(((struct ndx_provider_ops *)0)->member))never

/* clang-format off */
static const struct ndx_provider_ops ops = {
	.list = fake_list,
	.adapter_open = fake_open,
	NEVER(adapter_close), NEVER(adapter_query), NEVER(adapter_addresses),
	NEVER(cq_create), NEVER(cq_destroy), NEVER(cq_notify), NEVER(cq_cancel), NEVER(cq_get_fd),
	NEVER(mr_create), NEVER(mr_destroy), NEVER(mr_register), NEVER(mr_deregister),
	NEVER(qp_create), NEVER(qp_destroy), NEVER(qp_cancel),
	NEVER(conn_create), NEVER(conn_destroy), NEVER(conn_bind), NEVER(conn_connect),
	NEVER(conn_complete), NEVER(conn_take), NEVER(conn_accept), NEVER(conn_reject),
	NEVER(conn_abandon), NEVER(conn_drain), NEVER(conn_cancel_initiator),
	NEVER(conn_send_disc), NEVER(conn_finish), NEVER(conn_abort), NEVER(conn_detach),
	NEVER(listener_create), NEVER(listener_destroy), NEVER(listener_bind),
	NEVER(listener_listen),
#ifndef FAKE_HOLE
	NEVER(request_refuse),
#endif
};
/* clang-format on */

static const struct ndx_spi_key keys[] = {
	{"gid", "index of an address"}, {"trust", "lan|none"}, {NULL, NULL}};

static const struct ndx_spi_rank ranks[] = {{FAKE_DEVICE, FAKE_RANK}, {NULL, 0}};

extern const struct ndx_provider FAKE_SYMBOL;
__attribute__((visibility("default"))) const struct ndx_provider FAKE_SYMBOL = {
	.abi = FAKE_ABI,
	.size = sizeof(struct ndx_provider),
	.name = FAKE_NAME,
	.ops = &ops,
	.ops_size = sizeof(ops),
	.keys = keys,
	.devices = "one, two",
	.ranks = ranks,
};
