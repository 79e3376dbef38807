/* SPDX-License-Identifier: BSD-2-Clause */
/* ndx-info: which adapters exist, what they can do, and what is missing for others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "info.h"
#include "sample_address.h"
#include "sample_options.h"
#include "sample_report.h"

#define WHO "ndx-info"

static const char about[] =
	"Shows the adapters of this host with their capabilities and limits. For what cannot be\n"
	"used it names the reason and the command that mends it. With URIs: only those.";

static const char details[] =
	"Exit status: 0 an adapter can be used (each, if URIs were given), 1 the library failed,\n"
	"2 command line, 3 no adapter can be used (or one of the URIs cannot).";

/* Open the adapter to query it; a failure goes to state and hint of its entry. */
static void ask(struct info_adapter *adapter)
{
	struct ndx_adapter *handle;
	enum ndx_status st;

	st = ndx_adapter_open(adapter->entry.uri, &handle);
	if (st != NDX_OK) {
		adapter->entry.state = st;
		snprintf(adapter->entry.hint, sizeof(adapter->entry.hint), "%s", ndx_last_error());
		return;
	}
	adapter->info.size = sizeof(adapter->info);
	st = ndx_adapter_query(handle, &adapter->info);
	if (st == NDX_OK) {
		memcpy(adapter->entry.provider, adapter->info.provider,
		       sizeof(adapter->entry.provider));
		memcpy(adapter->entry.device, adapter->info.device, sizeof(adapter->entry.device));
		free(adapter->addresses); /* those of the list */
		adapter->addresses = NULL;
		adapter->address_count = 0;
		st = sample_addresses_of(handle, &adapter->addresses, &adapter->address_count);
	}
	if (st == NDX_E_NOT_FOUND)
		st = NDX_OK; /* without an address; the output shows that */
	adapter->entry.state = st;
	ndx_adapter_close(handle);
}

static int gather_named(struct info_report *report, char **uris, size_t count)
{
	report->adapters = calloc(count, sizeof(*report->adapters));
	if (report->adapters == NULL)
		return sample_failed(WHO, NDX_E_NO_MEMORY, "gather");
	report->adapter_count = count;
	for (size_t i = 0; i < count; i++)
		snprintf(report->adapters[i].entry.uri, sizeof(report->adapters[i].entry.uri), "%s",
		         uris[i]);
	return SAMPLE_EXIT_OK;
}

/* An entry of the list, with copies of its addresses, which the list owns. False: out of memory. */
static bool take_entry(struct info_adapter *adapter, const struct ndx_adapter_entry *entry)
{
	const size_t count = entry->address_count;

	adapter->entry = *entry;
	adapter->entry.addresses = NULL;
	adapter->entry.address_count = 0;
	if (count == 0)
		return true;
	adapter->addresses = calloc(count, sizeof(*adapter->addresses));
	if (adapter->addresses == NULL)
		return false;
	memcpy(adapter->addresses, entry->addresses, count * sizeof(*adapter->addresses));
	adapter->address_count = count;
	return true;
}

static int gather_all(struct info_report *report)
{
	struct ndx_adapter_entry *entries;
	enum ndx_status st;
	size_t count;

	st = ndx_adapter_list(&entries, &count);
	if (st != NDX_OK)
		return sample_failed(WHO, st, "list the adapters");
	report->adapters = calloc(count > 0 ? count : 1, sizeof(*report->adapters));
	if (report->adapters == NULL) {
		ndx_adapter_list_free(entries);
		return sample_failed(WHO, NDX_E_NO_MEMORY, "list the adapters");
	}
	for (size_t i = 0; i < count && st == NDX_OK; i++) {
		report->adapter_count = i + 1;
		if (!take_entry(&report->adapters[i], &entries[i]))
			st = NDX_E_NO_MEMORY;
	}
	ndx_adapter_list_free(entries);
	return st == NDX_OK ? SAMPLE_EXIT_OK : sample_failed(WHO, st, "list the adapters");
}

/* Which adapter a program gets that names none. */
static void gather_choice(struct info_report *report)
{
	struct ndx_adapter_info info = {.size = sizeof(info)};
	struct ndx_adapter *adapter;

	report->variable = getenv("NDX_ADAPTER");
	report->config = getenv("NDX_CONFIG");
	if (ndx_adapter_open(NULL, &adapter) != NDX_OK) {
		snprintf(report->chosen_failure, sizeof(report->chosen_failure), "%s",
		         ndx_last_error());
		return;
	}
	if (ndx_adapter_query(adapter, &info) == NDX_OK)
		memcpy(report->chosen, info.uri, sizeof(report->chosen));
	ndx_adapter_close(adapter);
}

/* Is the requested adapter usable: each of the named ones, or any at all? */
static bool good_enough(const struct info_report *report, bool named)
{
	size_t usable = 0;

	for (size_t i = 0; i < report->adapter_count; i++)
		usable += report->adapters[i].entry.state == NDX_OK;
	return named ? usable == report->adapter_count : usable > 0;
}

static void drop(struct info_report *report)
{
	for (size_t i = 0; i < report->adapter_count; i++)
		free(report->adapters[i].addresses);
	free(report->adapters);
	free(report->findings);
}

int main(int argc, char **argv)
{
	bool json = false, brief = false, verbose = false;
	const char *root = "";
	const struct sample_option options[] = {
		{"--json", NULL, "for programs", .flag = &json},
		{"--brief", NULL, "one line for each adapter", .flag = &brief},
		{"--root", "FOLDER", "look for /sys and /dev below FOLDER", .text = &root},
		{"--verbose", NULL, "the library's log on stderr", .flag = &verbose},
	};
	const struct sample_program program = {
		.name = WHO,
		.synopsis = "[URI...] [options]",
		.about = about,
		.details = details,
		.options = options,
		.option_count = sizeof(options) / sizeof(options[0]),
		.max_operands = 64,
	};
	struct info_report report = {0};
	size_t operands;
	int rc;

	if (!sample_parse(&program, argc, argv, &operands, &rc))
		return rc;
	if (verbose)
		ndx_log_to_stderr(NDX_LOG_DEBUG);
	rc = operands > 0 ? gather_named(&report, argv + 1, operands) : gather_all(&report);
	if (rc != SAMPLE_EXIT_OK) {
		drop(&report);
		return rc;
	}
	for (size_t i = 0; i < report.adapter_count; i++) {
		if (report.adapters[i].entry.state == NDX_OK)
			ask(&report.adapters[i]);
	}
	gather_choice(&report);
	rc = good_enough(&report, operands > 0) ? SAMPLE_EXIT_OK : SAMPLE_EXIT_NO_ADAPTER;
	if (!info_inspect_host(root, &report))
		rc = sample_failed(WHO, NDX_E_NO_MEMORY, "look at the host");
	else if (!json)
		info_print_text(&report, brief);
	else if (!info_print_json(&report))
		rc = SAMPLE_EXIT_FAILED;
	drop(&report);
	return rc;
}
