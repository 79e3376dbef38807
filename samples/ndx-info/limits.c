/* SPDX-License-Identifier: BSD-2-Clause */
/* The numbers of struct ndx_adapter_info as a table, for both output formats. */
#include <string.h>

#include "info.h"

#define LIMIT(member)                                                     \
	{                                                                 \
#member, offsetof(struct ndx_adapter_info, member),       \
			sizeof(((struct ndx_adapter_info *)NULL)->member) \
	}

const struct info_limit info_limits[] = {
	LIMIT(max_registration_size),
	LIMIT(max_window_size),
	LIMIT(max_initiator_sge),
	LIMIT(max_receive_sge),
	LIMIT(max_read_sge),
	LIMIT(max_transfer_length),
	LIMIT(max_inline_data_size),
	LIMIT(inline_request_threshold),
	LIMIT(large_request_threshold),
	LIMIT(max_inbound_read_limit),
	LIMIT(max_outbound_read_limit),
	LIMIT(max_receive_queue_depth),
	LIMIT(max_initiator_queue_depth),
	LIMIT(max_shared_receive_queue_depth),
	LIMIT(max_completion_queue_depth),
	LIMIT(max_caller_data),
	LIMIT(max_callee_data),
};
const size_t info_limit_count = sizeof(info_limits) / sizeof(info_limits[0]);

uint64_t info_limit_value(const struct ndx_adapter_info *info, const struct info_limit *limit)
{
	const char *at = (const char *)info + limit->offset;
	uint64_t wide;
	uint32_t narrow;

	if (limit->width == sizeof(wide)) {
		memcpy(&wide, at, sizeof(wide));
		return wide;
	}
	memcpy(&narrow, at, sizeof(narrow));
	return narrow;
}
