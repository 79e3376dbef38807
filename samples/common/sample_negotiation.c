/* SPDX-License-Identifier: BSD-2-Clause */
#include "sample_negotiation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/ndx.h>

#include "sample_options.h"
#include "sample_report.h"

#define SETTINGS_MOST 32

/* Split "a=1,b=2" into pairs, in place; false: malformed. */
static bool cut(char *text, struct ndx_setting *list, size_t *count)
{
	char *rest = text;

	*count = 0;
	while (rest != NULL && *rest != '\0') {
		char *pair = strsep(&rest, ",");
		char *value = strchr(pair, '=');

		if (value == NULL || *count == SETTINGS_MOST)
			return false;
		*value = '\0';
		list[(*count)++] = (struct ndx_setting){.name = pair, .value = value + 1};
	}
	return true;
}

/* Is the plugin missing, as opposed to its variant? */
static bool lacks_plugin(const struct sample_negotiation *n, const char *name)
{
	struct ndx_plugin_entry *list = NULL;
	size_t count = 0;
	bool found = false;

	if (ndx_negotiation_list(n->negotiation, &list, &count) != NDX_OK)
		return false;
	for (size_t i = 0; i < count; i++)
		found = found || strcmp(list[i].plugin, name) == 0;
	ndx_negotiation_list_free(list);
	return !found;
}

static int get_variant(struct sample_negotiation *n, const char *program, char *name,
                       char *settings, const char *option)
{
	struct ndx_setting list[SETTINGS_MOST];
	char *slash = strchr(name, '/');
	enum ndx_status st;
	bool lacking;
	size_t count;

	if (slash == NULL) {
		fprintf(stderr, "%s: %s: say PLUGIN/VARIANT\n", program, name);
		return SAMPLE_EXIT_USAGE;
	}
	if (!cut(settings, list, &count)) {
		fprintf(stderr, "%s: settings are NAME=VALUE,NAME=VALUE, %d at most\n", program,
		        SETTINGS_MOST);
		return SAMPLE_EXIT_USAGE;
	}
	*slash = '\0';
	st = ndx_negotiation_get_variant(n->negotiation, name, slash + 1, list, count, &n->variant);
	if (st == NDX_OK)
		return SAMPLE_EXIT_OK;
	lacking = option != NULL && st == NDX_E_NOT_FOUND && lacks_plugin(n, name);
	*slash = '/';
	(void)sample_failed(program, st, "get variant %s", name);
	if (lacking)
		fprintf(stderr, "  or say %s DIRECTORY\n", option);
	return SAMPLE_EXIT_FAILED;
}

int sample_negotiation_open(struct sample_negotiation *n, const char *program, const char *variant,
                            const char *settings, const char *plugins, const char *option)
{
	char *name = strdup(variant);
	char *values = strdup(settings != NULL ? settings : "");
	enum ndx_status st = NDX_E_NO_MEMORY;
	int rc = SAMPLE_EXIT_FAILED;

	memset(n, 0, sizeof(*n));
	if (name != NULL && values != NULL)
		st = ndx_negotiation_create(&n->negotiation);
	if (st == NDX_OK && plugins != NULL)
		st = ndx_negotiation_discover(n->negotiation, plugins, NULL);
	if (st != NDX_OK)
		rc = sample_failed(program, st, "look for plugins");
	else
		rc = get_variant(n, program, name, values, option);
	free(name);
	free(values);
	if (rc != SAMPLE_EXIT_OK)
		sample_negotiation_close(n);
	return rc;
}

void sample_negotiation_close(struct sample_negotiation *n)
{
	ndx_variant_close(n->variant);
	if (n->negotiation != NULL)
		(void)ndx_negotiation_close(n->negotiation);
	memset(n, 0, sizeof(*n));
}

/* The kind of the adapter's descriptions decides. */
enum ndx_status sample_variant_of(struct ndx_adapter *adapter, const char **variant)
{
	struct ndx_connector *connector = NULL;
	struct ndx_peer_description own;
	struct ndx_qp_attr attr;
	struct ndx_qp *qp = NULL;
	struct ndx_cq *cq = NULL;
	enum ndx_status st = ndx_cq_create_depth(adapter, 4, &cq);

	ndx_qp_attr_init(&attr);
	attr.receive_cq = cq;
	attr.initiator_cq = cq;
	attr.receive_depth = 2;
	attr.initiator_depth = 2;
	if (st == NDX_OK)
		st = ndx_qp_create(adapter, &attr, &qp);
	if (st == NDX_OK)
		st = ndx_connector_create(adapter, NULL, &connector);
	if (st == NDX_OK)
		st = ndx_connector_describe(connector, qp, NDX_ROLE_CLIENT, 1, 1, &own);
	if (st == NDX_OK)
		*variant =
			own.kind == NDX_DESCRIPTION_VERBS_RC ? "roce/verbs-rc" : "roce/fabric-msg";
	ndx_connector_close(connector);
	ndx_qp_close(qp);
	ndx_cq_close(cq);
	return st;
}

/* By the beginning: an entry is recorded when what it tells of has ended, so a wait comes late. */
static void sort_history(struct ndx_history_entry *list, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		const struct ndx_history_entry entry = list[i];
		size_t at = i;

		for (; at > 0 && list[at - 1].at_us > entry.at_us; at--)
			list[at] = list[at - 1];
		list[at] = entry;
	}
}

static void show_history(FILE *to, const char *program, const struct ndx_session *session)
{
	struct ndx_history_entry list[256];
	char line[160];
	size_t count = sizeof(list) / sizeof(list[0]);

	if (ndx_session_get_history(session, list, &count, NULL) != NDX_OK)
		return;
	sort_history(list, count);
	for (size_t i = 0; i < count; i++)
		fprintf(to, "%s: %s\n", program,
		        ndx_history_entry_text(&list[i], line, sizeof(line)));
}

void sample_session_history(const char *program, const struct ndx_session *session)
{
	show_history(stdout, program, session);
}

void sample_session_failed(const char *program, struct ndx_session *session)
{
	struct ndx_session_error error = {.size = sizeof(error)};

	(void)ndx_session_get_error(session, &error);
	fprintf(stderr, "%s: session %llu: %s: layer %s, stage %s, round %u: %s\n", program,
	        (unsigned long long)ndx_session_get_id(session), ndx_status_name(error.status),
	        ndx_error_layer_name(error.layer), ndx_stage_name(error.stage), error.round,
	        error.text);
	show_history(stderr, program, session);
}
