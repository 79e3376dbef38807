/* SPDX-License-Identifier: BSD-2-Clause */
#include "sample_tls.h"

#include <stdio.h>
#include <string.h>

#include "sample_options.h"

static bool find_verify(const char *word, enum ndx_tls_verify *verify)
{
	static const char *const words[] = {
		[NDX_TLS_VERIFY_REQUIRED] = "required",
		[NDX_TLS_VERIFY_OPTIONAL] = "optional",
		[NDX_TLS_VERIFY_NONE] = "none",
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(word, words[i]) != 0)
			continue;
		*verify = (enum ndx_tls_verify)i;
		return true;
	}
	return false;
}

/* "a,b" as a list. */
static bool cut(struct sample_tls_choice *choice, const char *names)
{
	char *rest = choice->text;

	if (strlen(names) >= sizeof(choice->text))
		return false;
	(void)snprintf(choice->text, sizeof(choice->text), "%s", names);
	while (rest != NULL) {
		if (choice->count == SAMPLE_TLS_NAMES_MOST)
			return false;
		choice->names[choice->count++] = strsep(&rest, ",");
	}
	return true;
}

static int refuse(const char *program, const char *what)
{
	fprintf(stderr, "%s: %s\n", program, what);
	return SAMPLE_EXIT_USAGE;
}

bool sample_tls_given(const struct sample_tls *tls)
{
	return tls->cert != NULL || tls->key != NULL || tls->ca != NULL || tls->psk != NULL ||
	       tls->verify != NULL || tls->name != NULL || tls->no_resumption ||
	       tls->allow_plaintext;
}

int sample_tls_choose(const char *program, const struct sample_tls *tls, bool server,
                      struct sample_tls_choice *choice)
{
	struct ndx_tls_attr *attr = &choice->own;

	memset(choice, 0, sizeof(*choice));
	if (tls->cert == NULL && tls->key == NULL && tls->ca == NULL && tls->psk == NULL) {
		if (tls->verify == NULL && tls->name == NULL && !tls->no_resumption)
			return SAMPLE_EXIT_OK;
		return refuse(program, "--tls-verify, --tls-name and --tls-no-resumption need "
		                       "--tls-ca, --tls-cert or --tls-psk");
	}
	ndx_tls_attr_init(attr);
	attr->cert_file = tls->cert;
	attr->key_file = tls->key;
	attr->ca_file = tls->ca;
	attr->psk_file = tls->psk;
	attr->no_resumption = tls->no_resumption;
	if (tls->verify != NULL && !find_verify(tls->verify, &attr->verify))
		return refuse(program, "--tls-verify is required, optional or none");
	if (tls->name != NULL && !server)
		attr->server_name = tls->name;
	if (tls->name != NULL && server) {
		if (!cut(choice, tls->name))
			return refuse(program, "--tls-name: more than 16 names");
		attr->peer_names = choice->names;
		attr->peer_name_count = choice->count;
	}
	choice->attr = attr;
	return SAMPLE_EXIT_OK;
}
