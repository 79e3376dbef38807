/* SPDX-License-Identifier: BSD-2-Clause */
/* The report as text. */
#include <inttypes.h>
#include <stdio.h>

#include "info.h"
#include "sample_address.h"

static void print_addresses(const struct info_adapter *adapter)
{
	printf("  addresses    ");
	for (size_t i = 0; i < adapter->address_count; i++) {
		struct sample_address address = sample_address_from(&adapter->addresses[i]);
		char text[SAMPLE_ADDRESS_TEXT];

		printf("%s%s", i > 0 ? ", " : "",
		       sample_address_host(&address, text, sizeof(text)));
	}
	putchar('\n');
}

static void print_capabilities(uint64_t capabilities)
{
	bool any = false;

	printf("  capabilities ");
	for (unsigned i = 0; i < 31; i++) {
		const char *name = ndx_capability_name((enum ndx_capability)(1 << i));

		if (name == NULL || (capabilities & (1u << i)) == 0)
			continue;
		printf("%s%s", any ? ", " : "", name);
		any = true;
	}
	puts(any ? "" : "none");
}

static const char *state_of(const struct info_adapter *adapter)
{
	if (adapter->entry.state == NDX_OK)
		return "usable";
	return adapter->opens ? "usable by this URI only" : ndx_status_name(adapter->entry.state);
}

static void print_line(const struct info_adapter *adapter)
{
	const char *hint = adapter->entry.hint;

	printf("%-28s %s%s%s\n", adapter->entry.uri, state_of(adapter), hint[0] != '\0' ? ": " : "",
	       hint);
}

static void print_adapter(const struct info_adapter *adapter)
{
	const struct ndx_adapter_entry *e = &adapter->entry;

	printf("%-28s %s\n", e->uri, state_of(adapter));
	if (e->hint[0] != '\0')
		printf("  %s\n", e->hint);
	if (e->state != NDX_OK && adapter->address_count > 0)
		print_addresses(adapter);
	if (e->state != NDX_OK)
		return;
	printf("  provider     %s, device %s", e->provider, e->device[0] != '\0' ? e->device : "-");
	printf(e->interface_name[0] != '\0' ? ", interface %s\n" : "\n", e->interface_name);
	print_addresses(adapter);
	print_capabilities(adapter->info.capabilities);
	for (size_t i = 0; i < info_limit_count; i++)
		printf("  %-31s %" PRIu64 "\n", info_limits[i].name,
		       info_limit_value(&adapter->info, &info_limits[i]));
	putchar('\n');
}

static void print_choice(const struct info_report *report)
{
	if (report->variable != NULL)
		printf("NDX_ADAPTER is %s\n", report->variable);
	if (report->config != NULL)
		printf("NDX_CONFIG is %s\n", report->config);
	if (report->chosen[0] != '\0')
		printf("A program that names no adapter gets %s\n\n", report->chosen);
	else
		printf("A program that names no adapter gets none: %s\n\n", report->chosen_failure);
}

static void print_finding(const struct info_finding *finding)
{
	printf("  %-16s %s%s%s\n", finding->subject,
	       finding->severity == INFO_FINE ? "" : info_severity_name(finding->severity),
	       finding->severity == INFO_FINE ? "" : ": ", finding->text);
	if (finding->remedy[0] != '\0')
		printf("  %-16s try: %s\n", "", finding->remedy);
}

void info_print_brief(const struct info_report *report)
{
	if (report->adapter_count == 0)
		puts("No adapters: this build has no provider that finds one.");
	for (size_t i = 0; i < report->adapter_count; i++)
		print_line(&report->adapters[i]);
}

void info_print_text(const struct info_report *report)
{
	printf("NDX %s\n", ndx_version());
	print_choice(report);
	if (report->adapter_count == 0)
		puts("No adapters: this build has no provider that finds one.");
	for (size_t i = 0; i < report->adapter_count; i++)
		print_adapter(&report->adapters[i]);
	puts("Host");
	for (size_t i = 0; i < report->finding_count; i++)
		print_finding(&report->findings[i]);
}
