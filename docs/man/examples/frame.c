/* SPDX-License-Identifier: BSD-2-Clause */
/* Examples of the manual pages: frames. */
#include <ndx/ndx.h>

/* A consumer that keeps every frame for another thread. */
bool example_keep(void *context, const struct ndx_frame *frame)
{
	const struct ndx_frame **kept = context;

	if (*kept != NULL)
		ndx_frame_release(*kept); /* its slot is posted again */
	*kept = ndx_frame_retain(frame);
	return true;
}

/* Drop all frames of a batch together. */
void example_drop(const struct ndx_frame *const *frames, size_t count)
{
	ndx_frame_release_list(frames, count);
}
