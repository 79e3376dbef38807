/* SPDX-License-Identifier: BSD-2-Clause */
/* A program of a user, in C and in C++, for install.sh: a negotiation, and the text and the log
 * record of a failure, which are libndx's. */
#include <stdio.h>
#include <string.h>

#include <ndx/decls.h>
#include <ndx/log.h>
#include <ndx/negotiation.h>

/* libndx has a function of this name, which libndx-negotiation calls: not the program's. */
NDX_DECLS_BEGIN

void suggest_begin(void);

NDX_DECLS_END

static unsigned records;
static unsigned taken;

void suggest_begin(void)
{
	taken++;
}

static void count(void *context, const struct ndx_log_record *record)
{
	(void)context;
	(void)record;
	records++;
}

int main(void)
{
	struct ndx_negotiation *negotiation = NULL;
	struct ndx_variant *variant = NULL;

	ndx_log_set_sink(count, NULL, NDX_LOG_DEBUG);
	if (ndx_negotiation_create(&negotiation) != NDX_OK)
		return 1;
	if (ndx_negotiation_get_variant(negotiation, "nobody", "nothing", NULL, 0, &variant) ==
	    NDX_OK)
		return 1;
	printf("%s; records: %u, functions of the program taken: %u\n", ndx_last_error(), records,
	       taken);
	if (!strstr(ndx_last_error(), "nobody") || records == 0 || taken != 0)
		return 1;
	return ndx_negotiation_close(negotiation) == NDX_OK ? 0 : 1;
}
