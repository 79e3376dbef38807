/* SPDX-License-Identifier: BSD-2-Clause */
#include "limits.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sample_options.h"

#define LINE_MOST 1024
#define GRANTS_MOST 4096

/* ---- the file of grants ---- */

/** Whether the line says nothing. */
static bool is_empty(const char *line)
{
	line += strspn(line, " \t");
	return *line == '\0' || *line == '#';
}

/** "PLUGIN[/VARIANT] name|psk NAME"; the strings are in the line, which is kept. */
static bool understand(char *line, struct ndx_variant_grant *grant)
{
	char *who = line;
	char *what = strsep(&who, " \t");
	const char *kind;

	if (who != NULL)
		who += strspn(who, " \t");
	kind = who != NULL ? strsep(&who, " \t") : NULL;
	if (who != NULL)
		who += strspn(who, " \t");
	if (kind == NULL || who == NULL || *who == '\0')
		return false;
	*grant = (struct ndx_variant_grant){.plugin = strsep(&what, "/")};
	grant->variant = what;
	if (strcmp(kind, "name") == 0)
		grant->name = who;
	else if (strcmp(kind, "psk") == 0)
		grant->psk_identity = who;
	return grant->plugin[0] != '\0' && (what == NULL || *what != '\0') &&
	       (grant->name != NULL || grant->psk_identity != NULL);
}

static int refuse(const char *who, const char *file, unsigned line, const char *what)
{
	fprintf(stderr, "%s: %s: line %u: %s\n", who, file, line, what);
	return SAMPLE_EXIT_USAGE;
}

static int add(const char *who, const char *file, unsigned number, const char *line,
               struct limits_grants *grants)
{
	struct ndx_variant_grant *grant = &grants->list[grants->count];
	char *kept;

	if (grants->count == GRANTS_MOST)
		return refuse(who, file, number, "more than 4096 grants");
	kept = strdup(line);
	if (kept == NULL) {
		fprintf(stderr, "%s: out of memory\n", who);
		return SAMPLE_EXIT_FAILED;
	}
	if (!understand(kept, grant)) {
		free(kept);
		return refuse(who, file, number,
		              "say PLUGIN[/VARIANT] name NAME, or PLUGIN[/VARIANT] psk IDENTITY");
	}
	grants->count++; /* `plugin` is the begin of the line */
	return SAMPLE_EXIT_OK;
}

static int read_lines(const char *who, const char *file, FILE *from, struct limits_grants *grants)
{
	char line[LINE_MOST];
	int rc = SAMPLE_EXIT_OK;

	for (unsigned n = 1; rc == SAMPLE_EXIT_OK && fgets(line, sizeof(line), from) != NULL; n++) {
		const size_t length = strcspn(line, "\n");

		if (length == sizeof(line) - 1)
			return refuse(who, file, n, "too long");
		line[length] = '\0';
		if (!is_empty(line))
			rc = add(who, file, n, line + strspn(line, " \t"), grants);
	}
	if (rc == SAMPLE_EXIT_OK && ferror(from) != 0) {
		fprintf(stderr, "%s: %s: %s\n", who, file, strerror(errno));
		return SAMPLE_EXIT_FAILED;
	}
	if (rc == SAMPLE_EXIT_OK && grants->count == 0) {
		fprintf(stderr, "%s: %s: there is no grant in it\n", who, file);
		return SAMPLE_EXIT_USAGE;
	}
	return rc;
}

static int read_grants(const char *who, const char *file, struct limits_grants *grants)
{
	FILE *from = fopen(file, "re");
	int rc;

	if (from == NULL) {
		fprintf(stderr, "%s: %s: %s\n", who, file, strerror(errno));
		return SAMPLE_EXIT_FAILED;
	}
	grants->list = calloc(GRANTS_MOST, sizeof(*grants->list));
	if (grants->list == NULL) {
		fprintf(stderr, "%s: out of memory\n", who);
		rc = SAMPLE_EXIT_FAILED;
	} else {
		rc = read_lines(who, file, from, grants);
	}
	(void)fclose(from);
	return rc;
}

void limits_drop(struct limits_grants *grants)
{
	for (size_t i = 0; i < grants->count; i++)
		free((char *)(uintptr_t)grants->list[i].plugin);
	free(grants->list);
	*grants = (struct limits_grants){.list = NULL};
}

/* ---- all of them ---- */

static void set(uint32_t limit, uint32_t *to)
{
	if (limit != LIMIT_DEFAULT)
		*to = limit;
}

/** Of these 0 is the library's default. */
static void set_rate(uint32_t limit, uint32_t *to)
{
	if (limit != LIMIT_DEFAULT)
		*to = limit != 0 ? limit : NDX_NEGOTIATION_SERVER_NO_LIMIT;
}

int limits_take(const char *who, const struct limits *limits,
                struct ndx_negotiation_server_attr *attr, struct limits_grants *grants)
{
	const bool of_principals = limits->principal_sessions != LIMIT_DEFAULT ||
	                           limits->principal_queue_pairs != LIMIT_DEFAULT ||
	                           limits->principal_memory != 0 || limits->grants != NULL;
	int rc = SAMPLE_EXIT_OK;

	*grants = (struct limits_grants){.list = NULL};
	if (of_principals && attr->tls == NULL) {
		fprintf(stderr,
		        "%s: --principal-... and --grants need --tls-cert or --tls-psk: without "
		        "TLS no client is known\n",
		        who);
		return SAMPLE_EXIT_USAGE;
	}
	set(limits->sessions, &attr->max_sessions);
	set(limits->waiting, &attr->max_waiting_per_address);
	set(limits->hello_ms, &attr->hello_timeout_ms);
	set(limits->principal_sessions, &attr->max_sessions_per_principal);
	set(limits->principal_queue_pairs, &attr->max_queue_pairs_per_principal);
	attr->max_memory_per_principal = limits->principal_memory;
	set_rate(limits->handshakes, &attr->max_handshakes);
	set_rate(limits->address_handshakes, &attr->max_handshakes_per_address);
	if (limits->grants != NULL)
		rc = read_grants(who, limits->grants, grants);
	attr->grants = grants->list;
	attr->grant_count = grants->count;
	return rc;
}
