/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libfabric's cache of regions, turned off. The cache ignores access rights, and keeps a region
 * open that was closed. It needs a monitor of the process's memory, and libfabric lets a program
 * bring a monitor of its own. A monitor that does not start leaves libfabric without a cache.
 */
#include <pthread.h>

#include <rdma/fi_ext.h>

#include <ndx/spi/log.h>
#include "ofi.h"
#include "ofi_verbs.h"

static int monitor_start(struct fid_mem_monitor *monitor)
{
	(void)monitor;
	return -FI_ENOSYS;
}

/* The rest is for a monitor that has started. */
static void monitor_stop(struct fid_mem_monitor *monitor)
{
	(void)monitor;
}

static int monitor_subscribe(struct fid_mem_monitor *monitor, const void *address, size_t length)
{
	(void)monitor;
	(void)address;
	(void)length;
	return -FI_ENOSYS;
}

static void monitor_unsubscribe(struct fid_mem_monitor *monitor, const void *address, size_t length)
{
	(void)monitor;
	(void)address;
	(void)length;
}

static bool monitor_is_valid(struct fid_mem_monitor *monitor, const void *address, size_t length)
{
	(void)monitor;
	(void)address;
	(void)length;
	return false;
}

static int monitor_close(struct fid *fid)
{
	(void)fid;
	return 0;
}

/* libfabric keeps pointers to these, and to the cache, until the process ends. */
static struct fi_ops monitor_fid_ops = {.size = sizeof(monitor_fid_ops), .close = monitor_close};
static struct fi_ops_mem_monitor monitor_ops = {.size = sizeof(monitor_ops),
                                                .start = monitor_start,
                                                .stop = monitor_stop,
                                                .subscribe = monitor_subscribe,
                                                .unsubscribe = monitor_unsubscribe,
                                                .valid = monitor_is_valid};
static struct fid_mem_monitor monitor = {
	.fid = {.fclass = FI_CLASS_MEM_MONITOR, .ops = &monitor_fid_ops},
	.export_ops = &monitor_ops,
};
static struct fid *cache;

/* If this fails, the check of the adapter finds the cache on. */
static void bring_monitor(void)
{
	int err = -fi_open(OFI_API, "mr_cache", NULL, 0, 0, &cache, NULL);

	if (err == 0)
		err = -fi_import_fid(cache, &monitor.fid, 0);
	if (err != 0)
		log_info("libfabric's cache of regions cannot be turned off: %s", fi_strerror(err));
}

void ofi_verbs_turn_off_cache(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, bring_monitor);
}
