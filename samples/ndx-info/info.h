/* SPDX-License-Identifier: BSD-2-Clause */
/* ndx-info: what it gathers, and the two ways of showing it. */
#ifndef INFO_H
#define INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ndx/ndx.h>

/** An adapter of the list, and what it said when it was opened. */
struct info_adapter {
	struct ndx_adapter_entry
		entry;                /* `state` and `hint` also tell why it could not be opened */
	struct ndx_adapter_info info; /* valid if entry.state is NDX_OK */
	struct sockaddr_storage *addresses;
	size_t address_count;
};

/** How much a finding about the host matters. */
enum info_severity { INFO_FINE, INFO_NOTE, INFO_WARNING };

/** Something about the host that adapters need, and the command that mends it. */
struct info_finding {
	enum info_severity severity;
	char subject[32];
	char text[160];
	char remedy[200]; /* "" if nothing is to be done */
};

/** Everything that is shown. */
struct info_report {
	const char *variable;      /* $NDX_ADAPTER, NULL if not set */
	const char *config;        /* $NDX_CONFIG */
	char chosen[128];          /* URI that ndx_adapter_open(NULL) opens; "" if it fails */
	char chosen_failure[1024]; /* why it fails */
	struct info_adapter *adapters;
	size_t adapter_count;
	struct info_finding *findings;
	size_t finding_count;
};

/** One number of struct ndx_adapter_info, by name. */
struct info_limit {
	const char *name;
	size_t offset;
	size_t width; /* 4 or 8 bytes */
};
extern const struct info_limit info_limits[];
extern const size_t info_limit_count;
uint64_t info_limit_value(const struct ndx_adapter_info *info, const struct info_limit *limit);

/** Name of a severity, "note". */
const char *info_severity_name(enum info_severity severity);

/**
 * Look at the host: locked memory, RDMA devices, their ports and device files.
 *
 * @param root  "" for this host, or a folder that holds a tree as below "/" (for the tests)
 *
 * @return false if out of memory
 */
bool info_inspect_host(const char *root, struct info_report *report);

void info_print_text(const struct info_report *report, bool brief);

/** false if it could not be written; says why. */
bool info_print_json(const struct info_report *report);

#endif
