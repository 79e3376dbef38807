/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ndx/helpers.h>

#include "ofi.h"

static const struct {
	int err;
	enum ndx_status status;
} expected[] = {
	{EADDRINUSE, NDX_E_SHARING_VIOLATION},
	{EADDRNOTAVAIL, NDX_E_INVALID_ADDRESS},
	{EACCES, NDX_E_ACCESS_DENIED},
	{ECONNREFUSED, NDX_E_CONNECTION_REFUSED},
	{ETIMEDOUT, NDX_E_IO_TIMEOUT},
	{ENETUNREACH, NDX_E_NETWORK_UNREACHABLE},
	{ENETDOWN, NDX_E_NETWORK_UNREACHABLE},
	{EHOSTUNREACH, NDX_E_HOST_UNREACHABLE},
	{EHOSTDOWN, NDX_E_HOST_UNREACHABLE},
	{EMFILE, NDX_E_INSUFFICIENT_RESOURCES},
	{ENFILE, NDX_E_INSUFFICIENT_RESOURCES},
	{ENOBUFS, NDX_E_INSUFFICIENT_RESOURCES},
	{ENOSPC, NDX_E_INSUFFICIENT_RESOURCES},
	{EPROTO, NDX_E_UNSUCCESSFUL},
	{ENOMEM, NDX_E_NO_MEMORY},
	{FI_ENODATA, NDX_E_DEVICE_NOT_READY},
	{ENODEV, NDX_E_UNSUCCESSFUL},
	{EFAULT, NDX_E_UNSUCCESSFUL},
};

static void every_errno_has_its_status(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		assert_int_equal(ofi_status_of(expected[i].err), expected[i].status);
}

/* Rights belong to a thread, and its threads inherit them. */
static void set_right_to_small_ports(uint32_t effective)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[2];

	assert_int_equal(syscall(SYS_capget, &head, sets), 0);
	sets[0].effective &= ~(1u << CAP_NET_BIND_SERVICE);
	sets[0].effective |= sets[0].permitted & effective;
	assert_int_equal(syscall(SYS_capset, &head, sets), 0);
}

static void a_port_that_needs_rights_is_denied(void **state)
{
	const struct sockaddr_in small = {.sin_family = AF_INET,
	                                  .sin_port = htons(79),
	                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct ndx_connector *connector;
	struct ndx_listener *listener;
	struct ndx_adapter *adapter;
	enum ndx_status st, bound;
	char text[16] = "", heard[256];
	long from;
	FILE *f = fopen("/proc/sys/net/ipv4/ip_unprivileged_port_start", "re");

	(void)state;
	if (f != NULL && fgets(text, sizeof(text), f) == NULL)
		text[0] = '\0';
	if (f != NULL)
		(void)fclose(f);
	from = strtol(text, NULL, 10);
	if (from <= 79) {
		print_message("every port is free for every process here\n");
		skip();
	}
	set_right_to_small_ports(0);
	assert_int_equal(ndx_adapter_open("ofi:tcp?iface=lo", &adapter), NDX_OK);
	st = ndx_listen_on(adapter, (const struct sockaddr *)&small, sizeof(small), 0, &listener);
	(void)snprintf(heard, sizeof(heard), "%s", ndx_last_error());
	assert_int_equal(ndx_connector_create(adapter, NULL, &connector), NDX_OK);
	bound = ndx_connector_bind(connector, (const struct sockaddr *)&small, sizeof(small));
	set_right_to_small_ports(1u << CAP_NET_BIND_SERVICE);
	assert_int_equal(st, NDX_E_ACCESS_DENIED);
	assert_non_null(strstr(heard, "127.0.0.1:79: Permission denied"));
	assert_non_null(strstr(heard, "CAP_NET_BIND_SERVICE"));
	assert_int_equal(bound, NDX_E_ACCESS_DENIED);
	assert_non_null(strstr(ndx_last_error(), "127.0.0.1:79: Permission denied"));
	assert_non_null(strstr(ndx_last_error(), "CAP_NET_BIND_SERVICE"));
	ndx_connector_close(connector);
	ndx_adapter_close(adapter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_errno_has_its_status),
		cmocka_unit_test(a_port_that_needs_rights_is_denied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
