/* SPDX-License-Identifier: BSD-2-Clause */
/* ndx-info: the data that it gathers, and the two formats of its output. */
#ifndef INFO_H
#define INFO_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ndx/ndx.h>

/** An adapter of the list, and the outcome of opening it. */
struct info_adapter {
	struct ndx_adapter_entry entry;     /* `state` and `hint` also say why opening failed */
	struct ndx_adapter_info info;       /* valid if entry.state is NDX_OK */
	struct sockaddr_storage *addresses; /* of an adapter that cannot be used: what is known */
	size_t address_count;
	bool opens; /* entry.state is no success, but the URI can be opened */
};

/** Severity of a finding about the host. */
enum info_severity { INFO_FINE, INFO_NOTE, INFO_WARNING };

/** A property of the host that adapters need, and the command that corrects it. */
struct info_finding {
	enum info_severity severity;
	char subject[32];
	char text[160];
	char remedy[200]; /* "" if nothing needs to be done */
};

/** The content of the output. */
struct info_report {
	const char *variable;      /* $NDX_ADAPTER; NULL if not set */
	const char *config;        /* $NDX_CONFIG */
	char chosen[128];          /* URI that ndx_adapter_open(NULL) opens; "" if it fails */
	char chosen_failure[1024]; /* why it fails */
	struct info_adapter *adapters;
	size_t adapter_count;
	struct info_finding *findings;
	size_t finding_count;
};

/** One number of struct ndx_adapter_info, with its name. */
struct info_limit {
	const char *name;
	size_t offset;
	size_t width; /* 4 or 8 bytes */
};
extern const struct info_limit info_limits[];
extern const size_t info_limit_count;
uint64_t info_limit_value(const struct ndx_adapter_info *info, const struct info_limit *limit);

/** Name of a severity, for example "note". */
const char *info_severity_name(enum info_severity severity);

/**
 * Inspect the host: locked memory, RDMA devices, their ports and device files.
 *
 * @param root  "" for this host, or a folder with a tree as below "/" (for tests)
 *
 * @return false if out of memory
 */
bool info_inspect_host(const char *root, struct info_report *report);

void info_print_text(const struct info_report *report);

/** One line for each adapter. */
void info_print_brief(const struct info_report *report);

/** The report as JSON; the caller owns it. */
json_t *info_make_json(const struct info_report *report);

#endif
