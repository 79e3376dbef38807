/* SPDX-License-Identifier: BSD-2-Clause */
/* A program of a user, in C and in C++, for install.sh: a receiver that is refused, and the text
 * and the log record of the failure, which are libndx's. */
#include <stdio.h>
#include <string.h>

#include <ndx/log.h>
#include <ndx/receiver.h>

static unsigned records;

static void count(void *context, const struct ndx_log_record *record)
{
	(void)context;
	(void)record;
	records++;
}

int main(void)
{
	struct ndx_receiver *receiver = NULL;
	struct ndx_receiver_attr attr;

	ndx_log_set_sink(count, NULL, NDX_LOG_DEBUG);
	ndx_receiver_attr_init(&attr);
	attr.slot_size = 0;
	if (ndx_receiver_create(&attr, &receiver) != NDX_E_INVALID_PARAMETER)
		return 1;
	printf("%s; records: %u\n", ndx_last_error(), records);
	return strstr(ndx_last_error(), "slot") && records > 0 ? 0 : 1;
}
