/* SPDX-License-Identifier: BSD-2-Clause */
#include <ndx/receiver.h>

/* No default in either: -Wswitch-enum points here when a member is added. */
const char *ndx_receiver_state_name(enum ndx_receiver_state state)
{
	switch (state) {
	case NDX_RECEIVER_CREATED:
		return "created";
	case NDX_RECEIVER_CONNECTING:
		return "connecting";
	case NDX_RECEIVER_RUNNING:
		return "running";
	case NDX_RECEIVER_ENDED:
		return "ended";
	case NDX_RECEIVER_FAILED:
		return "failed";
	case NDX_RECEIVER_STOPPING:
		return "stopping";
	case NDX_RECEIVER_STOPPED:
		return "stopped";
	}
	return "?";
}

const char *ndx_receiver_end_name(enum ndx_receiver_end end)
{
	switch (end) {
	case NDX_RECEIVER_END_NONE:
		return "none";
	case NDX_RECEIVER_END_GOODBYE:
		return "goodbye";
	case NDX_RECEIVER_END_LOST:
		return "lost";
	case NDX_RECEIVER_END_REQUEST:
		return "request";
	case NDX_RECEIVER_END_IDLE:
		return "idle";
	case NDX_RECEIVER_END_PROBE:
		return "probe";
	case NDX_RECEIVER_END_STOPPED:
		return "stopped";
	case NDX_RECEIVER_END_UNKNOWN:
		return "unknown";
	}
	return "?";
}
