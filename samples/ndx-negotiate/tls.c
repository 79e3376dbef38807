/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS of ndx-negotiate's sessions, from the command line. */
#include <stdio.h>
#include <string.h>

#include "negotiate.h"
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
static bool cut(struct tls_choice *choice, const char *names)
{
	char *rest = choice->text;

	if (strlen(names) >= sizeof(choice->text))
		return false;
	(void)snprintf(choice->text, sizeof(choice->text), "%s", names);
	while (rest != NULL) {
		if (choice->count == TLS_NAMES_MOST)
			return false;
		choice->names[choice->count++] = strsep(&rest, ",");
	}
	return true;
}

int tls_choose(const struct negotiate_options *o, bool server, struct tls_choice *choice)
{
	struct ndx_tls_attr *attr = &choice->own;

	memset(choice, 0, sizeof(*choice));
	if (o->tls_cert == NULL && o->tls_key == NULL && o->tls_ca == NULL && o->tls_psk == NULL) {
		if (o->tls_verify == NULL && o->tls_name == NULL)
			return SAMPLE_EXIT_OK;
		fprintf(stderr, "ndx-negotiate: --tls-verify and --tls-name need --tls-ca, "
		                "--tls-cert or --tls-psk\n");
		return SAMPLE_EXIT_USAGE;
	}
	ndx_tls_attr_init(attr);
	attr->cert_file = o->tls_cert;
	attr->key_file = o->tls_key;
	attr->ca_file = o->tls_ca;
	attr->psk_file = o->tls_psk;
	if (o->tls_verify != NULL && !find_verify(o->tls_verify, &attr->verify)) {
		fprintf(stderr,
		        "ndx-negotiate: --tls-verify is required, optional or none, "
		        "not \"%s\"\n",
		        o->tls_verify);
		return SAMPLE_EXIT_USAGE;
	}
	if (o->tls_name != NULL && !server)
		attr->server_name = o->tls_name;
	if (o->tls_name != NULL && server) {
		if (!cut(choice, o->tls_name)) {
			fprintf(stderr, "ndx-negotiate: --tls-name: more than %d names\n",
			        TLS_NAMES_MOST);
			return SAMPLE_EXIT_USAGE;
		}
		attr->peer_names = choice->names;
		attr->peer_name_count = choice->count;
	}
	choice->attr = attr;
	return SAMPLE_EXIT_OK;
}
