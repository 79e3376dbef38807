/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of software RoCE for the whole device: hw_counters of its port, in sysfs. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <ndx/spi/system.h>
#include "verbs.h"

static const char *const counters[VERBS_COUNTERS] = {
	[VERBS_PACKETS] = "rcvd_pkts",
	[VERBS_NOT_READY] = "rcvd_rnr_err",
};

uint64_t verbs_counters_read(const struct verbs_adapter *adapter, enum verbs_counter which)
{
	char text[32];
	ssize_t n;

	if (adapter->counter_fds[which] < 0)
		return 0;
	n = pread(adapter->counter_fds[which], text, sizeof(text) - 1, 0);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	return strtoull(text, NULL, 10);
}

void verbs_counters_open(struct verbs_adapter *adapter)
{
	char path[160];

	for (size_t i = 0; adapter->soft_roce && i < VERBS_COUNTERS; i++) {
		(void)snprintf(path, sizeof(path),
		               "/sys/class/infiniband/%s/ports/%u/hw_counters/%s",
		               adapter->options.device, adapter->options.port, counters[i]);
		adapter->counter_fds[i] = open(path, O_RDONLY | O_CLOEXEC);
	}
}

void verbs_counters_close(struct verbs_adapter *adapter)
{
	for (size_t i = 0; i < VERBS_COUNTERS; i++)
		ndxp_fd_close(adapter->counter_fds[i]);
}
