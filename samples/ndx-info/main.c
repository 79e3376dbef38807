/* SPDX-License-Identifier: BSD-2-Clause */
/* ndx-info: which adapters exist, what they can do, and what is missing for others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "history.h"
#include "info.h"
#include "sample_address.h"
#include "sample_json.h"
#include "sample_number.h"
#include "sample_options.h"
#include "sample_report.h"

#define WHO "ndx-info"

static const char about[] =
	"Shows the adapters of this host with their capabilities and limits. For what cannot be\n"
	"used it names the reason and the command that mends it. With URIs: only those.\n"
	"  history FILE  shows the lives of the connections in a snapshot: every change of state\n"
	"                with its time and cause; both sides, if they are in the file or in\n"
	"                several. Those that ended badly come first.";

static const char examples[] = "The adapters of this host, a line each\n"
			       "  ndx-info --brief\n"
			       "One adapter with all its limits\n"
			       "  ndx-info 'ofi:tcp?iface=lo'\n"
			       "The URIs of all adapters that can be used\n"
			       "  ndx-info --json | jq -r '.adapters[] | select(.usable).uri'\n"
			       "How did the connections of a snapshot end?\n"
			       "  ndx-info history server.json\n"
			       "Both sides of one, from two hosts, as a picture\n"
			       "  ndx-info history client.json server.json --svg end.svg";

static const char details[] =
	"A snapshot is what ndx_adapter_snapshot() returns; ndx-reqresp --stats --json has one,\n"
	"too. \"-\" reads one from stdin. The times of two hosts are brought together by the\n"
	"messages in the histories, each of which arrives after it was sent.\n\n"
	"Exit status: 0 an adapter can be used (each, if URIs were given), or the history is\n"
	"shown; 1 the library failed, or a FILE is no snapshot; 2 command line; 3 no adapter can\n"
	"be used (or one of the URIs cannot).";

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

/* Some adapters are not chosen unless they are named: they open, but their state is no success. */
static void try_to_open(struct info_adapter *adapter)
{
	struct ndx_adapter *handle;

	if (adapter->entry.state != NDX_E_DEVICE_NOT_READY ||
	    ndx_adapter_open(adapter->entry.uri, &handle) != NDX_OK)
		return;
	adapter->opens = true;
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

	for (size_t i = 0; i < report->adapter_count; i++) {
		const struct ndx_adapter_entry *e = &report->adapters[i].entry;
		char text[512];

		usable += e->state == NDX_OK;
		if (e->state == NDX_OK || !named)
			continue;
		snprintf(text, sizeof(text), "%s: %s: %s", e->uri, ndx_status_name(e->state),
		         e->hint);
		sample_json_error(text);
	}
	return named ? usable == report->adapter_count : usable > 0;
}

static void drop(struct info_report *report)
{
	for (size_t i = 0; i < report->adapter_count; i++)
		free(report->adapters[i].addresses);
	free(report->adapters);
	free(report->findings);
}

/* Gather and print; `out` is for JSON, NULL: text. */
static int show(char **uris, size_t count, const char *root, bool brief, FILE *out)
{
	struct info_report report = {0};
	json_t *object = NULL;
	int rc = count > 0 ? gather_named(&report, uris, count) : gather_all(&report);

	if (rc != SAMPLE_EXIT_OK)
		goto end;
	for (size_t i = 0; i < report.adapter_count; i++) {
		if (report.adapters[i].entry.state == NDX_OK)
			ask(&report.adapters[i]);
		else
			try_to_open(&report.adapters[i]);
	}
	gather_choice(&report);
	rc = good_enough(&report, count > 0) ? SAMPLE_EXIT_OK : SAMPLE_EXIT_NO_ADAPTER;
	if (!info_inspect_host(root, &report))
		rc = sample_failed(WHO, NDX_E_NO_MEMORY, "look at the host");
	else if (out != NULL)
		object = info_make_json(&report);
	else if (brief)
		info_print_brief(&report);
	else
		info_print_text(&report);
end:
	drop(&report);
	return sample_end(WHO, sample_json_end(WHO, out, object, rc));
}

static const char history_word[] = "history";

/* Whether a word is `history` with a typing mistake; there is no adapter of such a name. */
static bool is_nearly_history(const char *word)
{
	const size_t length = strlen(word);

	return strchr(word, ':') == NULL &&
	       sample_distance_is_near(
		       sample_distance(word, length, history_word, strlen(history_word)), length);
}

/* False: the command line is wrong, which was explained. */
static bool check_history(const struct sample_program *program, const struct history_options *h,
                          const char *first, const char *json, bool others)
{
	const bool is_history = h->files != NULL;

	if (first != NULL && !is_history && is_nearly_history(first))
		(void)sample_usage(program, "%s: did you mean %s?", first, history_word);
	else if (!is_history && (h->svg != NULL || h->connector != 0))
		(void)sample_usage(program, "--svg and --connector are for %s", history_word);
	else if (is_history && h->count == 0)
		(void)sample_usage(program, "%s needs the FILE of a snapshot", history_word);
	else if (is_history && h->count > HISTORY_FILES)
		(void)sample_usage(program, "%s takes at most %u files", history_word,
		                   HISTORY_FILES);
	else if (is_history && others)
		(void)sample_usage(program, "--brief and --root are not for %s", history_word);
	else if (h->svg != NULL && json != NULL && strcmp(h->svg, "-") == 0 &&
	         strcmp(json, "-") == 0)
		(void)sample_usage(program, "--svg and --json cannot both go to stdout");
	else
		return true;
	return false;
}

int main(int argc, char **argv)
{
	const char *root = "", *json = NULL;
	bool brief = false, verbose = false;
	struct history_options history = {0};
	const struct sample_option options[] = {
		SAMPLE_ROW_JSON(json),
		{"--brief", NULL, "one line for each adapter", .flag = &brief},
		{"--root", "FOLDER", "look for /sys and /dev below FOLDER", .text = &root},
		{"--svg", "FILE", "history: a picture, to stdout or FILE", .text = &history.svg,
	         .value_optional = true, .value_may_follow = true},
		{"--connector", "ID", "history: only the connection with this connector",
	         .wide_number = &history.connector, .min = 1, .max = INT64_MAX},
		SAMPLE_ROW_VERBOSE(verbose),
	};
	const struct sample_program program = {
		.name = WHO,
		.synopsis = "[URI...] [options]\n"
			    "       ndx-info history FILE... [options]",
		.about = about,
		.details = details,
		.examples = examples,
		.options = options,
		.option_count = sizeof(options) / sizeof(options[0]),
		.max_operands = 64,
	};
	size_t operands;
	FILE *out;
	int rc;

	if (!sample_parse(&program, argc, argv, &operands, &rc))
		return rc;
	if (operands > 0 && strcmp(argv[1], history_word) == 0) {
		history.files = argv + 2;
		history.count = operands - 1;
	}
	if (!check_history(&program, &history, operands > 0 ? argv[1] : NULL, json,
	                   brief || root[0] != '\0'))
		return SAMPLE_EXIT_USAGE;
	if (verbose)
		ndx_log_to_stderr(NDX_LOG_DEBUG);
	rc = sample_json_open(WHO, json, &out);
	if (rc != SAMPLE_EXIT_OK)
		return rc;
	if (history.files != NULL)
		return history_run(&history, out);
	return show(argv + 1, operands, root, brief, out);
}
