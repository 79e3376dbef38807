/* SPDX-License-Identifier: BSD-2-Clause */
/* The report as JSON, for programs. */
#include <jansson.h>
#include <stdio.h>

#include "info.h"
#include "sample_address.h"

/* json_string() refuses text that is not UTF-8; a device name or a variable may be such a text. */
static json_t *string_of(const char *text)
{
	json_t *string;

	if (text == NULL)
		return json_null();
	string = json_string(text);
	return string != NULL ? string : json_string("(not UTF-8)");
}

static json_t *addresses_of(const struct info_adapter *adapter)
{
	json_t *list = json_array();

	for (size_t i = 0; i < adapter->address_count; i++) {
		struct sample_address address = sample_address_from(&adapter->addresses[i]);
		char text[SAMPLE_ADDRESS_TEXT];

		json_array_append_new(list,
		                      string_of(sample_address_host(&address, text, sizeof(text))));
	}
	return list;
}

static json_t *capabilities_of(const struct ndx_adapter_info *info)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < 31; i++) {
		const char *name = ndx_capability_name((enum ndx_capability)(1 << i));

		if (name != NULL && (info->capabilities & (1u << i)) != 0)
			json_array_append_new(list, string_of(name));
	}
	return list;
}

/* JSON parsers may round large integers, so larger values are written as strings, all 64 bits. */
static json_t *number_of(uint64_t value)
{
	char text[24];

	if (value <= (UINT64_C(1) << 53))
		return json_integer((json_int_t)value);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return json_string(text);
}

static json_t *adapter_of(const struct info_adapter *adapter)
{
	const struct ndx_adapter_entry *e = &adapter->entry;
	json_t *object = json_object(), *limits = json_object();

	json_object_set_new(object, "uri", string_of(e->uri));
	json_object_set_new(object, "provider", string_of(e->provider));
	json_object_set_new(object, "device", string_of(e->device));
	json_object_set_new(object, "interface", string_of(e->interface_name));
	json_object_set_new(object, "state", string_of(ndx_status_name(e->state)));
	json_object_set_new(object, "usable", json_boolean(e->state == NDX_OK));
	json_object_set_new(object, "usable_by_name",
	                    json_boolean(e->state == NDX_OK || adapter->opens));
	json_object_set_new(object, "hint", string_of(e->hint));
	json_object_set_new(object, "addresses", addresses_of(adapter));
	if (e->state == NDX_OK) {
		json_object_set_new(object, "adapter_id", number_of(adapter->info.adapter_id));
		json_object_set_new(object, "vendor_id", number_of(adapter->info.vendor_id));
		json_object_set_new(object, "device_id", number_of(adapter->info.device_id));
		json_object_set_new(object, "capabilities", capabilities_of(&adapter->info));
		for (size_t i = 0; i < info_limit_count; i++)
			json_object_set_new(
				limits, info_limits[i].name,
				number_of(info_limit_value(&adapter->info, &info_limits[i])));
		json_object_set(object, "limits", limits);
	}
	json_decref(limits);
	return object;
}

static json_t *finding_of(const struct info_finding *finding)
{
	json_t *object = json_object();

	json_object_set_new(object, "subject", string_of(finding->subject));
	json_object_set_new(object, "severity", string_of(info_severity_name(finding->severity)));
	json_object_set_new(object, "text", string_of(finding->text));
	json_object_set_new(object, "remedy", string_of(finding->remedy));
	return object;
}

json_t *info_make_json(const struct info_report *report)
{
	json_t *root = json_object(), *adapters = json_array(), *host = json_array();

	for (size_t i = 0; i < report->adapter_count; i++)
		json_array_append_new(adapters, adapter_of(&report->adapters[i]));
	for (size_t i = 0; i < report->finding_count; i++)
		json_array_append_new(host, finding_of(&report->findings[i]));
	json_object_set_new(root, "version", string_of(ndx_version()));
	json_object_set_new(root, "NDX_ADAPTER", string_of(report->variable));
	json_object_set_new(root, "NDX_CONFIG", string_of(report->config));
	json_object_set_new(root, "default",
	                    string_of(report->chosen[0] != '\0' ? report->chosen : NULL));
	json_object_set_new(root, "default_failure",
	                    string_of(report->chosen[0] != '\0' ? NULL : report->chosen_failure));
	json_object_set_new(root, "adapters", adapters);
	json_object_set_new(root, "host", host);
	return root;
}
