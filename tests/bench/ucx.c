/* SPDX-License-Identifier: BSD-2-Clause */
#include "ucx.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>

#include "lane.h"

#define LIBRARY "libucp.so.0"

struct call {
	const char *name;
	size_t offset; /* in struct ucx_calls */
};

static const struct call all[] = {
	{"ucp_config_read", offsetof(struct ucx_calls, config_read)},
	{"ucp_config_modify", offsetof(struct ucx_calls, config_modify)},
	{"ucp_config_release", offsetof(struct ucx_calls, config_release)},
	{"ucp_init_version", offsetof(struct ucx_calls, init_version)},
	{"ucp_cleanup", offsetof(struct ucx_calls, cleanup)},
	{"ucp_worker_create", offsetof(struct ucx_calls, worker_create)},
	{"ucp_worker_destroy", offsetof(struct ucx_calls, worker_destroy)},
	{"ucp_worker_get_address", offsetof(struct ucx_calls, worker_get_address)},
	{"ucp_worker_release_address", offsetof(struct ucx_calls, worker_release_address)},
	{"ucp_worker_get_efd", offsetof(struct ucx_calls, worker_get_efd)},
	{"ucp_worker_arm", offsetof(struct ucx_calls, worker_arm)},
	{"ucp_worker_progress", offsetof(struct ucx_calls, worker_progress)},
	{"ucp_ep_create", offsetof(struct ucx_calls, ep_create)},
	{"ucp_ep_flush_nbx", offsetof(struct ucx_calls, ep_flush_nbx)},
	{"ucp_ep_close_nbx", offsetof(struct ucx_calls, ep_close_nbx)},
	{"ucp_tag_send_nbx", offsetof(struct ucx_calls, tag_send_nbx)},
	{"ucp_tag_recv_nbx", offsetof(struct ucx_calls, tag_recv_nbx)},
	{"ucp_request_check_status", offsetof(struct ucx_calls, request_check_status)},
	{"ucp_request_cancel", offsetof(struct ucx_calls, request_cancel)},
	{"ucp_request_free", offsetof(struct ucx_calls, request_free)},
	{"ucs_status_string", offsetof(struct ucx_calls, status_string)},
};

/* UCX reads these when it is loaded. What the user has set stays. */
static void set_defaults(void)
{
	/* The standard output is for rows. */
	(void)setenv("UCX_LOG_FILE", "stderr", 0);
	/* Signals stay with the program, or with a sanitizer. */
	(void)setenv("UCX_HANDLE_ERRORS", "none", 0);
	/* UCX replaces mmap() and the like in the C library, for memory that a device knows: TCP
	 * has none, the other lanes would be measured with it, and TSan's runtime breaks. */
	(void)setenv("UCX_MEM_EVENTS", "n", 0);
}

void ucx_load(struct ucx_calls *calls)
{
	set_defaults();
	/* UCX is not made to be unloaded: it leaves hooks and threads' data behind. */
	calls->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (calls->library == NULL)
		lane_die("ucx", dlerror());
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		void **const call = (void **)(void *)((char *)calls + all[i].offset);

		*call = dlsym(calls->library, all[i].name);
		if (*call == NULL)
			lane_die("ucx", dlerror());
	}
}

void ucx_unload(struct ucx_calls *calls)
{
	(void)dlclose(calls->library);
}
