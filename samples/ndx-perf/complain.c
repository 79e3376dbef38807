/* SPDX-License-Identifier: BSD-2-Clause */
#include "complain.h"

#include <stdio.h>
#include <string.h>

#include "sample_json.h"

#define WHO "ndx-perf client"

void complain(const char *text)
{
	fprintf(stderr, WHO ": %s\n", text);
	sample_json_error(text);
}

void complain_of_rest(struct complaints *complaints)
{
	if (complaints->repeated > 0)
		fprintf(stderr, WHO ": and so %u more test%s\n", complaints->repeated,
		        complaints->repeated == 1 ? "" : "s");
	complaints->repeated = 0;
}

void complain_of_test(struct complaints *complaints, const char *error)
{
	if (complaints->told[0] != '\0' && strcmp(error, complaints->told) == 0) {
		complaints->repeated++;
		return;
	}
	complain_of_rest(complaints);
	snprintf(complaints->told, sizeof(complaints->told), "%s", error);
	complain(error);
}
