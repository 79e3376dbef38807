/* SPDX-License-Identifier: BSD-2-Clause */
/* Event queues for connection management: one of the adapter, and one of each listener. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include <ndx/spi/log.h>
#include "ofi.h"

#define IDLE_MAX 64     /* empty wake-ups in a row before the queue is throttled */
#define THROTTLE_MS 10u /* period of the reads of a throttled queue */
#define DRAIN 8192      /* more than a listener's socket keeps waiting */
#define ROUNDS 64       /* reads in a row before other events get their turn */

union eq_buffer {
	struct fi_eq_cm_entry entry;
	uint8_t room[sizeof(struct fi_eq_cm_entry) + OFI_CM_SIZE];
};

static bool read_error(struct ofi_eq *eq)
{
	uint8_t data[OFI_CM_SIZE];
	struct fi_eq_err_entry err = {.err_data = data, .err_data_size = sizeof(data)};
	struct ofi_cm_event event = {0};

	if (fi_eq_readerr(eq->eq, &err, 0) < 0)
		return false;
	event.fid = err.fid;
	event.err = err.err > 0 ? err.err : EIO;
	event.native = err.prov_errno;
	event.data = err.err_data;
	event.len =
		err.err_data != NULL && err.err_data_size <= sizeof(data) ? err.err_data_size : 0;
	eq->event(eq->owner, &event);
	return true;
}

/* Read one event and pass it on; false if there is none. */
static bool read_one(struct ofi_eq *eq)
{
	union eq_buffer buffer;
	struct ofi_cm_event event = {0};
	ssize_t n;

	/* libfabric to 2.5 takes errno for the outcome of a short receive: with an old EAGAIN in
	 * errno it waits without end, on a descriptor that stays readable. */
	errno = 0;
	n = fi_eq_read(eq->eq, &event.what, &buffer, sizeof(buffer), 0);
	if (n == -FI_EAVAIL)
		return read_error(eq);
	if (n < (ssize_t)sizeof(buffer.entry))
		return false;
	event.fid = buffer.entry.fid;
	event.info = event.what == FI_CONNREQ ? buffer.entry.info : NULL;
	event.data = buffer.room + sizeof(buffer.entry);
	event.len = (size_t)n - sizeof(buffer.entry);
	eq->event(eq->owner, &event);
	return true;
}

/* May a wait begin? Nothing keeps the descriptor readable then. */
static bool may_wait(struct ofi_eq *eq)
{
	struct fid *fids[1] = {&eq->eq->fid};

	return fi_trywait(eq->adapter->fabric, fids, 1) == 0;
}

/* The read found no event: did it consume one without a report? */
static bool has_more(const struct ofi_eq *eq)
{
	struct pollfd in = {.fd = eq->watch.fd, .events = POLLIN};

	return eq->adapter->backend->skips_events && poll(&in, 1, 0) > 0;
}

static void log_throttled(const struct ofi_eq *eq)
{
	const char *device = eq->adapter->backend->device;
	const int none = ofi_no_descriptor();

	if (none != 0) {
		/* libfabric keeps the failure of accept() to itself, and tries again */
		log_warn(none,
		         "%s: no connection is accepted at the moment: %s; see ulimit -n; the "
		         "peers that wait go on when a descriptor is free",
		         device, strerror(none));
		return;
	}
	log_warn(0,
	         "%s: libfabric's event queue keeps waking the control thread without an event; "
	         "reading it every %u ms for now; see ulimit -n, and which hosts connect to the "
	         "listening ports",
	         device, THROTTLE_MS);
}

static void read_events(struct ofi_eq *eq)
{
	bool any = false;
	bool quiet = false;
	int skipped = 0;

	for (int rounds = 0; !quiet && rounds < ROUNDS; rounds++) {
		if (read_one(eq))
			any = true;
		else if (has_more(eq))
			skipped++;
		else
			quiet = may_wait(eq);
	}
	any = any || (skipped > 0 && skipped < ROUNDS);
	if (eq->looked != NULL && eq->looked(eq->owner))
		any = true;
	eq->idle = any ? 0 : eq->idle + 1;
	if (any && !quiet) {
		/* Other events get their turn. The descriptor does not report the events that are
		 * left: it has reported them already. */
		eq->more = true;
		ndxp_timer_set(eq->adapter->spi.loop, &eq->retry, 0);
		return;
	}
	if (eq->idle < IDLE_MAX) {
		eq->throttled = false;
		ndxp_watch_rearm(eq->adapter->spi.loop, &eq->watch, POLLIN);
		return;
	}
	/* A socket that stays readable, or no free descriptor for a connection that waits: no
	 * reason to use up a processor. */
	if (!eq->throttled)
		log_throttled(eq);
	eq->throttled = true;
	ndxp_timer_set(eq->adapter->spi.loop, &eq->retry, THROTTLE_MS);
}

static void on_readable(void *arg, uint32_t events)
{
	(void)events;
	read_events(arg);
}

static void on_retry(void *arg)
{
	struct ofi_eq *eq = arg;

	/* one more empty read keeps the queue throttled */
	if (!eq->more)
		eq->idle = IDLE_MAX - 1;
	eq->more = false;
	read_events(eq);
}

enum ndx_status ofi_eq_open(struct ofi_eq *eq, struct ofi_adapter *adapter)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_FD};
	enum ndx_status st;
	int err;

	eq->adapter = adapter;
	err = -fi_eq_open(adapter->fabric, &attr, &eq->eq, NULL);
	if (err != 0)
		return fail(ofi_status_of(err), err, "fi_eq_open: %s; see ulimit -n",
		            fi_strerror(err));
	err = -fi_control(&eq->eq->fid, FI_GETWAIT, &eq->watch.fd);
	if (err != 0) {
		st = fail(NDX_E_INTERNAL_ERROR, err, "fi_control(FI_GETWAIT): %s",
		          fi_strerror(err));
		goto close_eq;
	}
	eq->watch.fn = on_readable;
	eq->watch.arg = eq;
	eq->retry = (struct ndxp_timer){.fn = on_retry, .arg = eq};
	(void)may_wait(eq);
	st = ndxp_watch_add(adapter->spi.loop, &eq->watch, POLLIN, true);
	if (st != NDX_OK)
		goto close_eq;
	return NDX_OK;

close_eq:
	(void)fi_close(&eq->eq->fid);
	eq->eq = NULL;
	return st;
}

void ofi_eq_read_all(struct ofi_eq *eq)
{
	for (int i = 0; i < DRAIN && (read_one(eq) || has_more(eq)); i++) {
		/* read_one() does the work */
	}
}

void ofi_eq_close(struct ofi_eq *eq)
{
	if (eq->eq == NULL)
		return;
	ndxp_watch_remove(eq->adapter->spi.loop, &eq->watch);
	ndxp_timer_cancel(eq->adapter->spi.loop, &eq->retry);
	(void)fi_close(&eq->eq->fid);
	eq->eq = NULL;
}
