/* SPDX-License-Identifier: BSD-2-Clause */
/* What a session gives to a thread that may block. Loop thread. */
#include <stdio.h>

#include <ndx/spi/container_of.h>
#include <ndx/spi/log.h>
#include <ndx/spi/system.h>
#include "session.h"

static void on_task(struct pool_task *task)
{
	struct ndx_session *s = container_of(task, struct ndx_session, driver.task);

	struct driver *d = &s->driver;

	__atomic_store_n(&d->began_ns, ndxp_now_ns(), __ATOMIC_RELAXED);
	if (d->io == NULL) {
		d->role->work(s);
	} else {
		d->io_status = d->io(s);
		(void)snprintf(d->io_text, sizeof(d->io_text), "%s",
		               d->io_status != NDX_OK ? ndx_last_error() : "");
	}
	ndxp_loop_post(d->engine->loop, &d->returned);
}

void driver_push(struct ndx_session *s)
{
	struct driver *d = &s->driver;

	d->phase = DRIVER_POOL;
	d->called_ns = ndxp_now_ns();
	d->called_round = s->dialogue.view.round;
	__atomic_store_n(&d->began_ns, 0, __ATOMIC_RELAXED);
	d->task.fn = on_task;
	d->role->push(s);
}

bool driver_call_here(struct ndx_session *s)
{
	struct driver *d = &s->driver;

	if (d->role->prompt == NULL || !d->role->prompt(s))
		return false;
	d->called_ns = ndxp_now_ns();
	d->role->work(s);
	plugin_note_prompt(s->attr.variant->plugin, ndxp_now_ns() - d->called_ns);
	return true;
}

enum driver_io driver_block(struct ndx_session *s, enum ndx_status (*io)(struct ndx_session *s))
{
	struct driver *d = &s->driver;

	if (!d->io_back) {
		d->io = io;
		d->io_phase = d->phase;
		driver_push(s);
		return IO_WAIT;
	}
	d->io_back = false;
	return d->io_status == NDX_OK ? IO_DONE : IO_LOST;
}
