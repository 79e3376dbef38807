/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue of ndx_receiver_pull(). */
#include <poll.h>
#include <stdlib.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "base_loop.h"
#include "receiver.h"

enum ndx_status pull_open(struct pull *p, uint32_t room)
{
	p->ring = calloc(room, sizeof(const struct ndx_frame *));
	if (p->ring == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "no memory for a queue of %u frames", room);
	p->room = room;
	p->flag = ndxp_eventfd_create();
	if (p->flag < 0) {
		free(p->ring);
		p->ring = NULL;
		return fail(NDX_E_INSUFFICIENT_RESOURCES, 0, "no descriptor for a queue of frames");
	}
	return NDX_OK;
}

void pull_push(struct pull *p, const struct ndx_frame *const *frames, size_t count)
{
	ndxp_lock_acquire(&p->lock);
	for (size_t i = 0; i < count; i++)
		p->ring[(p->first + p->count + i) % p->room] = frames[i];
	if (p->count == 0)
		ndxp_eventfd_set(p->flag);
	p->count += (uint32_t)count;
	ndxp_lock_release(&p->lock);
}

void pull_end(struct pull *p, bool ended)
{
	if (p->ring == NULL)
		return;
	ndxp_lock_acquire(&p->lock);
	p->ended = ended;
	if (ended)
		ndxp_eventfd_set(p->flag);
	else if (p->count == 0)
		ndxp_eventfd_clear(p->flag);
	ndxp_lock_release(&p->lock);
}

static size_t take_frames(struct pull *p, const struct ndx_frame **frames, size_t count,
                          bool *ended)
{
	size_t n = 0;

	ndxp_lock_acquire(&p->lock);
	while (n < count && p->count > 0) {
		frames[n++] = p->ring[p->first];
		p->first = (p->first + 1) % p->room;
		p->count--;
	}
	*ended = p->ended;
	if (n > 0 && p->count == 0 && !p->ended)
		ndxp_eventfd_clear(p->flag);
	ndxp_lock_release(&p->lock);
	return n;
}

void pull_close(struct pull *p)
{
	const struct ndx_frame *frame;
	bool ended;

	if (p->ring == NULL)
		return;
	while (take_frames(p, &frame, 1, &ended) > 0)
		ndx_frame_release(frame);
	ndxp_fd_close(p->flag);
	free(p->ring);
	p->ring = NULL;
}

enum ndx_status ndx_receiver_pull(struct ndx_receiver *r, const struct ndx_frame **frames,
                                  size_t count, uint32_t timeout_ms, size_t *got)
{
	const uint64_t deadline = ndxp_deadline(timeout_ms);

	if (r == NULL || frames == NULL || count == 0 || got == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_receiver_pull: NULL argument, or count 0");
	*got = 0;
	if (r->pull.ring == NULL)
		return fail(NDX_E_INVALID_DEVICE_STATE, 0,
		            "ndx_receiver_pull: created without `pull` in its attributes");
	for (;;) {
		struct pollfd set = {.fd = r->pull.flag, .events = POLLIN};
		const uint64_t now = ndxp_now_ns();
		bool ended;

		*got = take_frames(&r->pull, frames, count, &ended);
		if (*got > 0)
			return NDX_OK;
		if (ended)
			return NDX_E_CANCELED;
		if (now >= deadline)
			return NDX_PENDING;
		if (base_loop_in_callback())
			return fail(NDX_E_WOULD_BLOCK, 0,
			            "ndx_receiver_pull: none is there, and this is a callback");
		(void)poll(&set, 1, ndxp_poll_ms_until(deadline, INT32_MAX));
	}
}

int ndx_receiver_get_fd(struct ndx_receiver *r)
{
	return r != NULL && r->pull.ring != NULL ? r->pull.flag : -1;
}
