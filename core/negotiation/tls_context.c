/* SPDX-License-Identifier: BSD-2-Clause */
/* What the TLS attributes of a session or server say. */
#include "tls_private.h"

#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/log.h>
#include "base_struct.h"

#define NAMES_MOST 1024u
#define NAME_MAX_LENGTH 255u

static const struct base_struct attr_layout =
	BASE_STRUCT(struct ndx_tls_attr, NDX_TLS_ATTR_SIZE_0_1, "call ndx_tls_attr_init() first");

static const struct ndx_tls_attr attr_defaults = {.verify = NDX_TLS_VERIFY_REQUIRED};

void ndx_tls_attr_init_sized(struct ndx_tls_attr *attr, size_t size)
{
	base_struct_init(&attr_layout, attr, size, &attr_defaults);
}

static const char *find_own_fault(const struct ndx_tls_attr *a, enum ndx_role role)
{
	if ((a->cert_file == NULL) != (a->key_file == NULL))
		return "cert_file and key_file go together, one is missing";
	if (role == NDX_ROLE_SERVER && a->cert_file == NULL && a->psk_file == NULL)
		return "a server needs cert_file and key_file, or psk_file";
	if (a->reserved != 0)
		return "reserved is not 0";
	return NULL;
}

static const char *find_peer_fault(const struct ndx_tls_attr *a, enum ndx_role role)
{
	if ((unsigned)a->verify > NDX_TLS_VERIFY_NONE)
		return "verify is not of enum ndx_tls_verify";
	if (a->verify == NDX_TLS_VERIFY_REQUIRED && a->ca_file == NULL && a->psk_file == NULL)
		return "verify demands a certificate, and there is neither ca_file nor psk_file to "
		       "check the peer by";
	if (a->verify == NDX_TLS_VERIFY_OPTIONAL && a->ca_file == NULL)
		return "verify is optional, and there is no ca_file to check certificates by";
	if ((a->peer_names == NULL) != (a->peer_name_count == 0) || a->peer_name_count > NAMES_MOST)
		return "peer_names and peer_name_count, at most 1024, go together";
	if (a->peer_name_count > 0 && (a->ca_file == NULL || a->verify == NDX_TLS_VERIFY_NONE))
		return "peer_names are names of certificates, which are not verified here; set "
		       "ca_file and verify";
	if (a->peer_name_count > 0 && role == NDX_ROLE_CLIENT)
		return "peer_names are a server's; a client has server_name";
	if (a->server_name != NULL && role == NDX_ROLE_SERVER)
		return "server_name is a client's; a server has peer_names";
	if (a->server_name != NULL &&
	    (a->server_name[0] == '\0' || strlen(a->server_name) > NAME_MAX_LENGTH))
		return "server_name has not 1 to 255 bytes";
	return NULL;
}

static const char *find_name_fault(const struct ndx_tls_attr *a)
{
	for (size_t i = 0; i < a->peer_name_count; i++) {
		if (a->peer_names[i] == NULL || a->peer_names[i][0] == '\0')
			return "one of peer_names is empty";
		if (a->peer_names[i][0] == '.')
			return "one of peer_names begins with a dot; give whole names";
	}
	if (a->server_name != NULL && a->server_name[0] == '.')
		return "server_name begins with a dot";
	return NULL;
}

/* ---- */

void tls_context_put(struct tls_context *c)
{
	if (c == NULL || __atomic_sub_fetch(&c->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	tls_forget_keys(c);
	tls_forget_sessions(c);
	tls_forget_given(c);
	(void)pthread_mutex_destroy(&c->resume_lock);
	for (size_t i = 0; i < c->name_count; i++)
		free(c->names[i]);
	free(c->names);
	free(c->server_name);
	for (unsigned i = 0; i < TLS_FILES; i++)
		free(c->paths[i]);
	SSL_CTX_free(c->ssl);
	BIO_meth_free(c->bio);
	free(c);
}

static bool copy_names(struct tls_context *c, const struct ndx_tls_attr *a)
{
	if (a->server_name != NULL) {
		c->server_name = strdup(a->server_name);
		if (c->server_name == NULL)
			return false;
	}
	if (a->peer_name_count == 0)
		return true;
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers */
	c->names = calloc(a->peer_name_count, sizeof(*c->names));
	if (c->names == NULL)
		return false;
	for (size_t i = 0; i < a->peer_name_count; i++) {
		c->names[i] = strdup(a->peer_names[i]);
		if (c->names[i] == NULL)
			return false;
		c->name_count++;
	}
	return true;
}

/* TLS 1.3 only, without early data, so nothing to replay; tickets are tls_let_resume()'s. */
static bool restrict_protocol(SSL_CTX *ssl, enum ndx_role role)
{
	static const unsigned char purpose[] = "ndx session";

	SSL_CTX_set_options(ssl,
	                    SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_clear_options(ssl, SSL_OP_IGNORE_UNEXPECTED_EOF);
	(void)SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
	(void)SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
	                                    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
	                                    SSL_MODE_AUTO_RETRY);
	SSL_CTX_set_read_ahead(ssl, 1);
	return SSL_CTX_set_min_proto_version(ssl, TLS1_3_VERSION) == 1 &&
	       SSL_CTX_set_max_proto_version(ssl, TLS1_3_VERSION) == 1 &&
	       SSL_CTX_set_num_tickets(ssl, 0) == 1 && SSL_CTX_set_max_early_data(ssl, 0) == 1 &&
	       /* A server that verifies its clients needs it for their pre-shared keys. */
	       (role == NDX_ROLE_CLIENT ||
	        SSL_CTX_set_session_id_context(ssl, purpose, sizeof(purpose) - 1) == 1);
}

static enum ndx_status load(struct tls_context *c, const struct ndx_tls_attr *a, const char *call)
{
	enum ndx_status st = NDX_OK;

	if (a->cert_file != NULL)
		st = tls_load_own(c, call, a->cert_file, a->key_file);
	if (st == NDX_OK && a->ca_file != NULL)
		st = tls_load_cas(c, call, a->ca_file);
	if (st == NDX_OK && c->has_cert)
		tls_choose_chain(c);
	if (st == NDX_OK && a->psk_file != NULL)
		st = tls_load_keys(c, call, a->psk_file);
	if (st == NDX_OK && !copy_names(c, a))
		st = fail(NDX_E_NO_MEMORY, 0, "%s: out of memory", call);
	return st;
}

void tls_warn(const struct tls_context *c, const char *call)
{
	if (c->role == NDX_ROLE_CLIENT && c->verify == NDX_TLS_VERIFY_NONE)
		log_warn(0,
		         "%s: TLS with any server, whoever it is: set ca_file and "
		         "NDX_TLS_VERIFY_REQUIRED",
		         call);
}

static enum ndx_status create(const struct ndx_tls_attr *a, enum ndx_role role, const char *call,
                              struct tls_context **out)
{
	struct tls_context *c = calloc(1, sizeof(*c));
	enum ndx_status st;

	if (c == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "%s: out of memory", call);
	c->refs = 1;
	c->role = role;
	(void)pthread_mutex_init(&c->resume_lock, NULL);
	c->no_resumption = a->no_resumption;
	c->verify = a->verify;
	if (role == NDX_ROLE_CLIENT && a->verify == NDX_TLS_VERIFY_OPTIONAL)
		c->verify = NDX_TLS_VERIFY_REQUIRED;
	c->bio = tls_bio_method();
	c->ssl = SSL_CTX_new(TLS_method());
	if (c->bio == NULL || c->ssl == NULL || !restrict_protocol(c->ssl, role)) {
		st = fail(NDX_E_INTERNAL_ERROR, 0, "%s: OpenSSL does not start: %s", call,
		          ERR_peek_error() != 0 ? ERR_reason_error_string(ERR_peek_error()) : "");
		goto free_context;
	}
	tls_demand(c);
	tls_limit_updates(c);
	st = load(c, a, call);
	if (st != NDX_OK)
		goto free_context;
	if (!tls_let_resume(c)) {
		st = fail(NDX_E_NO_MEMORY, 0, "%s: out of memory", call);
		goto free_context;
	}
	tls_warn(c, call);
	*out = c;
	return NDX_OK;
free_context:
	tls_context_put(c);
	return st;
}

enum ndx_status tls_take_attr(const struct ndx_tls_attr *attr, enum ndx_role role, const char *call,
                              struct ndx_tls_attr *own)
{
	enum ndx_status st;
	const char *fault;

	*own = attr_defaults;
	st = base_struct_in(&attr_layout, call, own, attr, attr->size);
	if (st != NDX_OK)
		return st;
	fault = find_own_fault(own, role);
	if (fault == NULL)
		fault = find_peer_fault(own, role);
	if (fault == NULL)
		fault = find_name_fault(own);
	if (fault != NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "%s: TLS: %s", call, fault);
	return NDX_OK;
}

enum ndx_status tls_context_make(const struct ndx_tls_attr *own, enum ndx_role role,
                                 const char *call, struct tls_context **out)
{
	enum ndx_status st;

	(void)OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL); /* a server may outlive main() */
	(void)ERR_set_mark();
	st = create(own, role, call, out);
	(void)ERR_pop_to_mark();
	return st;
}

enum ndx_status tls_context_create(const struct ndx_tls_attr *attr, enum ndx_role role,
                                   const char *call, struct tls_context **out)
{
	struct ndx_tls_attr own;
	enum ndx_status st = tls_take_attr(attr, role, call, &own);

	return st == NDX_OK ? tls_context_make(&own, role, call, out) : st;
}
