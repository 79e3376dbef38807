/* SPDX-License-Identifier: BSD-2-Clause */
#include "control_thread.h"

#include <string.h>

#include "base_cpus.h"
#include <ndx/spi/log.h>
#include "base_loop.h"

#define NAME_MAX_LENGTH 15 /* of a thread, by the kernel */

static const char key_name[] = "thread";
static const char key_cpus[] = "cpus";

const struct ndx_spi_key control_thread_keys[] = {
	{.name = key_name, .values = "name of the control thread"},
	{.name = key_cpus, .values = "its processors: 2-3,8"},
	{.name = NULL},
};

bool control_thread_has_key(const char *key)
{
	for (const struct ndx_spi_key *k = control_thread_keys; k->name != NULL; k++) {
		if (strcmp(k->name, key) == 0)
			return true;
	}
	return false;
}

static const struct ndx_spi_option *find_option(const struct ndx_spi_option *options, size_t count,
                                                const char *key)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(options[i].key, key) == 0)
			return &options[i];
	}
	return NULL;
}

static enum ndx_status check_name(const struct ndx_spi_option *o)
{
	const size_t len = strlen(o->value);

	if (len <= NAME_MAX_LENGTH)
		return NDX_OK;
	return fail(NDX_E_INVALID_CONFIG, 0,
	            "%s: key \"%s\" cannot be \"%.64s\": the name of a thread has at most %d bytes",
	            o->origin, o->key, o->value, NAME_MAX_LENGTH);
}

static enum ndx_status read_cpus(const struct ndx_spi_option *o, cpu_set_t *out)
{
	if (base_cpus_parse(o->value, out))
		return NDX_OK;
	return fail(NDX_E_INVALID_CONFIG, 0,
	            "%s: key \"%s\" cannot be \"%.64s\"; write numbers below %d and ranges of them "
	            "that ascend, as 2-3,8",
	            o->origin, o->key, o->value, CPU_SETSIZE);
}

/* The kernel has given the thread only some of these processors, or none. */
static enum ndx_status fail_cpus(const struct ndx_spi_option *o, const cpu_set_t *wanted,
                                 const cpu_set_t *given)
{
	char text[BASE_CPUS_TEXT];
	cpu_set_t online;

	if (base_cpus_online(&online) && base_cpus_first_outside(wanted, &online) >= 0)
		return fail(NDX_E_INVALID_CONFIG, 0,
		            "%s: key \"%s\" cannot be \"%.64s\": processor %d does not exist or is "
		            "offline; this host has %s",
		            o->origin, o->key, o->value, base_cpus_first_outside(wanted, &online),
		            base_cpus_write(&online, text));
	return fail(
		NDX_E_INVALID_CONFIG, 0,
		"%s: key \"%s\" cannot be \"%.64s\": this process may not use processor %d; ask "
		"for others, or change the process's cpuset",
		o->origin, o->key, o->value, base_cpus_first_outside(wanted, given));
}

/* Only the kernel knows what the process may use, so start the thread and look where it runs. */
static enum ndx_status start_bound(const char *name, const struct ndx_spi_option *o,
                                   struct ndx_loop **out)
{
	struct ndx_loop *loop;
	cpu_set_t wanted;
	cpu_set_t given;
	enum ndx_status st = read_cpus(o, &wanted);

	if (st != NDX_OK)
		return st;
	st = base_loop_create_bound(name, &wanted, &given, &loop);
	if (st == NDX_E_INVALID_PARAMETER)
		return fail_cpus(o, &wanted, &given);
	if (st != NDX_OK)
		return st;
	if (base_cpus_first_outside(&wanted, &given) >= 0) {
		base_loop_destroy(loop, NULL, NULL);
		return fail_cpus(o, &wanted, &given);
	}
	*out = loop;
	return NDX_OK;
}

enum ndx_status control_thread_start(const struct ndx_spi_option *options, size_t count,
                                     struct ndx_loop **out)
{
	const struct ndx_spi_option *named = find_option(options, count, key_name);
	const struct ndx_spi_option *bound = find_option(options, count, key_cpus);
	const char *name = named != NULL ? named->value : "ndx-ctl";

	if (named != NULL) {
		const enum ndx_status st = check_name(named);

		if (st != NDX_OK)
			return st;
	}
	return bound != NULL ? start_bound(name, bound, out) : base_loop_create(name, out);
}
