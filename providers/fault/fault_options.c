/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of the URI: fault:INNER[:DEVICE]?fault_KEY=VALUE&KEY=VALUE... */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/log.h>
#include "fault.h"

static const char prefix[] = "fault_";

static enum ndx_status bad_value(const struct ndx_spi_option *o, const char *wanted)
{
	return fail(NDX_E_INVALID_CONFIG, 0, "%s: key \"%s\" cannot be \"%.40s\"; it takes %s",
	            o->origin, o->key, o->value, wanted);
}

static enum ndx_status parse_number(const struct ndx_spi_option *o, uint64_t most, uint64_t *out)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(o->value, &end, 10);
	if (errno != 0 || *end != '\0' || o->value[0] < '0' || o->value[0] > '9' || value > most)
		return bad_value(o, "a number that is not too large");
	*out = value;
	return NDX_OK;
}

static enum ndx_status read_nth(const struct ndx_spi_option *o, struct fault_options *to)
{
	to->nth_named = true;
	return parse_number(o, UINT64_MAX, &to->nth);
}

static enum ndx_status read_times(const struct ndx_spi_option *o, struct fault_options *to)
{
	if (strcmp(o->value, "all") == 0) {
		to->times = UINT64_MAX;
		return NDX_OK;
	}
	return parse_number(o, UINT64_MAX, &to->times);
}

static enum ndx_status read_call(const struct ndx_spi_option *o, struct fault_options *to)
{
	to->only = fault_call_find(o->value);
	return to->only != FAULT_CALLS ? NDX_OK
	                               : bad_value(o, "the name of a call, as send, qp_create or "
	                                              "conn_connect; docs/fault.md lists them all");
}

/* "NO_MEMORY": the name in status.h without NDX_E_ */
static enum ndx_status read_status(const struct ndx_spi_option *o, struct fault_options *to)
{
	static const char head[] = "NDX_E_";

	for (int i = NDX_E_INVALID_PARAMETER; i >= NDX_E_ACCESS_DENIED; i--) {
		const char *name = ndx_status_name((enum ndx_status)i);

		if (strcmp(name + sizeof(head) - 1, o->value) == 0) {
			to->status = (enum ndx_status)i;
			return NDX_OK;
		}
	}
	return bad_value(o, "a status without NDX_E_, as NO_MEMORY");
}

static enum ndx_status read_seed(const struct ndx_spi_option *o, struct fault_options *to)
{
	return parse_number(o, UINT64_MAX, &to->seed);
}

#define DELAY_MAX_MS 10000u

static enum ndx_status read_delay(const struct ndx_spi_option *o, struct fault_options *to)
{
	uint64_t ms = 0;
	enum ndx_status st = parse_number(o, DELAY_MAX_MS, &ms);

	to->delay_ms = (uint32_t)ms;
	return st;
}

static enum ndx_status read_event_delay(const struct ndx_spi_option *o, struct fault_options *to)
{
	uint64_t ms = 0;
	enum ndx_status st = parse_number(o, DELAY_MAX_MS, &ms);

	to->event_delay_ms = (uint32_t)ms;
	return st;
}

static enum ndx_status read_drop(const struct ndx_spi_option *o, struct fault_options *to)
{
	return parse_number(o, UINT64_MAX, &to->drop);
}

static enum ndx_status read_event_drop(const struct ndx_spi_option *o, struct fault_options *to)
{
	return parse_number(o, UINT64_MAX, &to->event_drop);
}

static enum ndx_status read_reorder(const struct ndx_spi_option *o, struct fault_options *to)
{
	if (strcmp(o->value, "queues") == 0)
		to->reorder = FAULT_REORDER_QUEUES;
	else if (strcmp(o->value, "any") == 0)
		to->reorder = FAULT_REORDER_ANY;
	else
		return bad_value(o, "\"queues\" or \"any\"");
	return NDX_OK;
}

static const struct {
	const char *key;
	enum ndx_status (*read)(const struct ndx_spi_option *o, struct fault_options *to);
} own_keys[] = {
	{"fault_nth", read_nth},
	{"fault_times", read_times},
	{"fault_call", read_call},
	{"fault_status", read_status},
	{"fault_seed", read_seed},
	{"fault_delay", read_delay},
	{"fault_event_delay", read_event_delay},
	{"fault_drop", read_drop},
	{"fault_event_drop", read_event_drop},
	{"fault_reorder", read_reorder},
};

static enum ndx_status read_own(const struct ndx_spi_option *o, struct fault_options *to)
{
	for (size_t i = 0; i < sizeof(own_keys) / sizeof(own_keys[0]); i++) {
		if (strcmp(own_keys[i].key, o->key) == 0)
			return own_keys[i].read(o, to);
	}
	return fail(NDX_E_INVALID_CONFIG, 0, "%s: provider \"fault\" has no key \"%.64s\"",
	            o->origin, o->key);
}

static enum ndx_status check_inner(const struct ndx_spi_option *o,
                                   const struct ndx_provider *provider)
{
	for (const struct ndx_spi_key *k = provider->keys; k->name != NULL; k++) {
		if (strcmp(k->name, o->key) == 0 || strcmp(k->name, NDX_SPI_KEY_ANY) == 0)
			return NDX_OK;
	}
	return fail(NDX_E_INVALID_CONFIG, 0,
	            "%s: key \"%.64s\" is neither one of \"fault\" (they begin with %s) nor of "
	            "\"%s\"",
	            o->origin, o->key, prefix, provider->name);
}

/* "ofi:tcp" -> ofi, "tcp" */
static enum ndx_status open_inner(const char *device, struct fault_inner *inner,
                                  const char **inner_device)
{
	char name[sizeof(((struct ndx_adapter_info *)0)->provider)];
	const size_t len = strcspn(device, ":");
	enum ndx_status st = NDX_E_NOT_FOUND;

	*inner_device = device[len] == ':' ? device + len + 1 : "";
	(void)snprintf(name, sizeof(name), "%.*s", (int)len, device);
	if (len < sizeof(name) && strcmp(name, "fault") != 0)
		st = ndxp_binding.services->provider_open(name, &inner->provider, &inner->file);
	if (st == NDX_E_NOT_FOUND)
		(void)fail(st, 0,
		           "fault:%.64s: no such provider; write fault: and the URI of another "
		           "adapter, as fault:loop",
		           device);
	return st;
}

static void append_option(char text[FAULT_TEXT], const struct ndx_spi_option *o)
{
	const size_t used = strlen(text);

	(void)snprintf(text + used, FAULT_TEXT - used, "%s%s=%s", used > 0 ? "&" : "", o->key,
	               o->value);
}

/* How a call is to fail, but not which: a URI that asks for a fault and gets none would make a test
 * pass that has tested nothing. */
static enum ndx_status choose_call(const struct ndx_spi_open *how, struct fault_options *options)
{
	if (options->nth_named)
		return NDX_OK;
	if (options->only != FAULT_CALLS) {
		options->nth = 1;
		return NDX_OK;
	}
	for (size_t i = 0; i < how->option_count; i++) {
		const struct ndx_spi_option *o = &how->options[i];

		if (strcmp(o->key, "fault_times") == 0 || strcmp(o->key, "fault_status") == 0)
			return fail(
				NDX_E_INVALID_CONFIG, 0,
				"%s: key \"%s\" does not say which call fails; add fault_call=NAME "
				"or fault_nth=NUMBER",
				o->origin, o->key);
	}
	return NDX_OK;
}

enum ndx_status fault_options_read(const struct ndx_spi_open *how, struct fault_inner *provider,
                                   struct fault_options *options, char text[FAULT_TEXT],
                                   struct ndx_spi_open *inner, struct ndx_spi_option *room)
{
	struct fault_inner found = {0};
	enum ndx_status st = open_inner(how->device, &found, &inner->device);

	if (st != NDX_OK)
		return st;
	*options = (struct fault_options){.times = 1, .only = FAULT_CALLS};
	text[0] = '\0';
	inner->options = room;
	inner->option_count = 0;
	for (size_t i = 0; st == NDX_OK && i < how->option_count; i++) {
		const struct ndx_spi_option *o = &how->options[i];

		if (strncmp(o->key, prefix, sizeof(prefix) - 1) == 0) {
			st = read_own(o, options);
			append_option(text, o);
		} else {
			st = check_inner(o, found.provider);
			room[inner->option_count++] = *o;
		}
	}
	if (st == NDX_OK)
		st = choose_call(how, options);
	if (st != NDX_OK)
		ndxp_binding.services->provider_close(found.file);
	else
		*provider = found;
	return st;
}
