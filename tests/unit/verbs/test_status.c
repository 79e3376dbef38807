/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "verbs.h"

static const struct {
	int err;
	enum ndx_status status;
} expected[] = {
	{EADDRINUSE, NDX_E_SHARING_VIOLATION},  {EADDRNOTAVAIL, NDX_E_INVALID_ADDRESS},
	{EACCES, NDX_E_ACCESS_DENIED},          {ECONNREFUSED, NDX_E_CONNECTION_REFUSED},
	{ETIMEDOUT, NDX_E_IO_TIMEOUT},          {ENETUNREACH, NDX_E_NETWORK_UNREACHABLE},
	{ENETDOWN, NDX_E_NETWORK_UNREACHABLE},  {EHOSTUNREACH, NDX_E_HOST_UNREACHABLE},
	{EHOSTDOWN, NDX_E_HOST_UNREACHABLE},    {EMFILE, NDX_E_INSUFFICIENT_RESOURCES},
	{ENFILE, NDX_E_INSUFFICIENT_RESOURCES}, {ENOBUFS, NDX_E_INSUFFICIENT_RESOURCES},
	{ENOSPC, NDX_E_INSUFFICIENT_RESOURCES}, {EPROTO, NDX_E_UNSUCCESSFUL},
	{ENODEV, NDX_E_INVALID_ADDRESS},        {ENOMEM, NDX_E_INSUFFICIENT_RESOURCES},
	{EFAULT, NDX_E_ACCESS_VIOLATION},       {EIO, NDX_E_DEVICE_REMOVED},
};

static void every_errno_has_its_status(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		assert_int_equal(verbs_status_of(expected[i].err), expected[i].status);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_errno_has_its_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
