/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of cases. */
#include <stdlib.h>

#include <ndx/ndx.h>

#include "cases.h"
#include "registry.h"

#define NDX_CASE(group, promise, lines, needs, flags) \
	{#group "." #promise, lines, needs, flags, case_##group##_##promise},
const struct conf_case conf_cases[] = {
#include "cases.def"
};
#undef NDX_CASE

const size_t conf_case_count = sizeof(conf_cases) / sizeof(conf_cases[0]);

bool conf_case_covers(const struct conf_case *one, unsigned line)
{
	const char *at = one->lines;
	char *end;

	while (*at != '\0') {
		if (strtoul(at, &end, 10) == line)
			return true;
		if (end == at)
			return false;
		at = end;
	}
	return false;
}
