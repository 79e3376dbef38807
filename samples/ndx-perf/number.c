/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers of the command line, and names of what is measured. */
#include <string.h>

#include "perf.h"
#include "sample_number.h"

bool perf_number(const char *text, uint64_t least, uint64_t most, uint64_t *out)
{
	uint64_t number;

	if (!sample_number(text, &number) || number < least || number > most)
		return false;
	*out = number;
	return true;
}

bool perf_list(const char *text, uint32_t least, uint32_t most, struct perf_list *out)
{
	out->count = 0;
	for (;;) {
		const size_t length = strcspn(text, ",");
		char word[32];
		uint64_t number;

		if (length >= sizeof(word) || out->count == PERF_LIST)
			return false;
		memcpy(word, text, length);
		word[length] = '\0';
		if (!perf_number(word, least, most, &number))
			return false;
		out->values[out->count++] = (uint32_t)number;
		if (text[length] == '\0')
			return true;
		text += length + 1;
	}
}

const char *perf_op_name(enum perf_op op)
{
	static const char *const names[PERF_OPS] = {"send", "write", "write-imm", "read"};

	return op < PERF_OPS ? names[op] : "?";
}

const char *perf_kind_name(enum perf_kind kind)
{
	static const char *const names[PERF_KINDS] = {"latency", "bandwidth"};

	return kind < PERF_KINDS ? names[kind] : "?";
}
