/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys and certificates in memory. */
#include "tls_papers.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"

enum { DAY_S = 86400, SUBJECT_MOST = 31, NAME_MOST = 63, RAW_MOST = 127 };

struct authority {
	EVP_PKEY *key;
	X509 *cert;
};

/* What all inputs share; made for the first one. */
static struct {
	struct authority ca;
	struct authority other;
	EVP_PKEY *key; /* of every leaf */
} shared;

/* ---- files ---- */

const char *papers_file(const char *text, size_t length, int *fd)
{
	static char paths[4][32];
	static unsigned turn;
	char *path = paths[turn++ % 4];

	*fd = memfd_create("paper", MFD_CLOEXEC);
	FUZZ_HOLDS(*fd >= 0 && fchmod(*fd, 0600) == 0);
	FUZZ_HOLDS(write(*fd, text, length) == (ssize_t)length);
	(void)snprintf(path, sizeof(paths[0]), "/proc/self/fd/%d", *fd);
	return path;
}

static const char *file_of(BIO *pem, int *fd)
{
	char *text;
	const long length = BIO_get_mem_data(pem, &text);
	const char *path = papers_file(text, (size_t)length, fd);

	BIO_free(pem);
	return path;
}

static const char *cert_file(X509 *cert, int *fd)
{
	BIO *pem = BIO_new(BIO_s_mem());

	FUZZ_HOLDS(PEM_write_bio_X509(pem, cert) == 1);
	return file_of(pem, fd);
}

static const char *key_file(EVP_PKEY *key, int *fd)
{
	BIO *pem = BIO_new(BIO_s_mem());

	FUZZ_HOLDS(PEM_write_bio_PrivateKey(pem, key, NULL, NULL, 0, NULL, NULL) == 1);
	return file_of(pem, fd);
}

/* ---- certificates ---- */

static X509 *blank(EVP_PKEY *key, const X509 *issuer, int to_days)
{
	static long serial;
	X509 *cert = X509_new();

	FUZZ_HOLDS(X509_set_version(cert, 2) == 1);
	FUZZ_HOLDS(ASN1_INTEGER_set(X509_get_serialNumber(cert), ++serial) == 1);
	FUZZ_HOLDS(X509_gmtime_adj(X509_getm_notBefore(cert), -30L * DAY_S) != NULL);
	FUZZ_HOLDS(X509_gmtime_adj(X509_getm_notAfter(cert), (long)to_days * DAY_S) != NULL);
	FUZZ_HOLDS(X509_set_pubkey(cert, key) == 1);
	if (issuer != NULL)
		FUZZ_HOLDS(X509_set_issuer_name(cert, X509_get_subject_name(issuer)) == 1);
	return cert;
}

static bool add_subject(X509 *cert, int type, const void *bytes, int length)
{
	return X509_NAME_add_entry_by_NID(X509_get_subject_name(cert), NID_commonName, type, bytes,
	                                  length, -1, 0) == 1;
}

static void extend(X509 *cert, int nid, const char *value)
{
	X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, nid, value);

	FUZZ_HOLDS(e != NULL && X509_add_ext(cert, e, -1) == 1);
	X509_EXTENSION_free(e);
}

static void make_authority(struct authority *a, const char *name)
{
	a->key = EVP_EC_gen("P-256");
	a->cert = blank(a->key, NULL, 30);
	FUZZ_HOLDS(add_subject(a->cert, MBSTRING_ASC, name, -1));
	FUZZ_HOLDS(X509_set_issuer_name(a->cert, X509_get_subject_name(a->cert)) == 1);
	extend(a->cert, NID_basic_constraints, "critical,CA:TRUE");
	FUZZ_HOLDS(X509_sign(a->cert, a->key, EVP_sha256()) > 0);
}

static void make_shared(void)
{
	if (shared.key != NULL)
		return;
	make_authority(&shared.ca, "ca");
	make_authority(&shared.other, "other");
	shared.key = EVP_EC_gen("P-256");
	FUZZ_HOLDS(shared.key != NULL);
}

X509 *papers_usual(enum paper paper)
{
	static X509 *made[PAPERS];
	const struct authority *by;

	if (made[paper] != NULL)
		return made[paper];
	make_shared();
	by = paper == PAPER_ALIEN ? &shared.other : &shared.ca;
	made[paper] = blank(shared.key, by->cert, paper == PAPER_OLD ? -1 : 30);
	FUZZ_HOLDS(add_subject(made[paper], MBSTRING_ASC, "usual", -1));
	extend(made[paper], NID_subject_alt_name, "DNS:" PAPER_DNS ",IP:127.0.0.1");
	FUZZ_HOLDS(X509_sign(made[paper], by->key, EVP_sha256()) > 0);
	return made[paper];
}

/* ---- contexts ---- */

static struct tls_context *make_context(struct ndx_tls_attr *attr, enum ndx_role role, bool bare)
{
	struct tls_context *context;
	int fds[3] = {-1, -1, -1};

	make_shared();
	attr->ca_file = cert_file(shared.ca.cert, &fds[0]);
	if (!bare) {
		attr->cert_file = cert_file(papers_usual(PAPER_GOOD), &fds[1]);
		attr->key_file = key_file(shared.key, &fds[2]);
	}
	FUZZ_HOLDS(tls_context_create(attr, role, "fuzz", &context) == NDX_OK);
	for (int i = 0; i < 3; i++)
		if (fds[i] >= 0)
			(void)close(fds[i]);
	return context;
}

struct tls_context *papers_client(bool bare)
{
	static struct tls_context *made[2];
	struct ndx_tls_attr attr;

	if (made[bare] == NULL) {
		ndx_tls_attr_init(&attr);
		made[bare] = make_context(&attr, NDX_ROLE_CLIENT, bare);
	}
	return made[bare];
}

struct tls_context *papers_server(enum demand demand)
{
	static const char *const names[] = {PAPER_DNS, PAPER_URI, PAPER_EMAIL, PAPER_IP};
	static struct tls_context *made[DEMANDS];
	struct ndx_tls_attr attr;

	if (made[demand] == NULL) {
		ndx_tls_attr_init(&attr);
		if (demand == DEMAND_NAMED) {
			attr.verify = NDX_TLS_VERIFY_OPTIONAL;
			attr.peer_names = names;
			attr.peer_name_count = sizeof(names) / sizeof(names[0]);
		}
		made[demand] = make_context(&attr, NDX_ROLE_SERVER, false);
	}
	return made[demand];
}

/* ---- of the input ---- */

static size_t take_bytes(uint8_t (*take)(void), uint8_t *bytes, size_t most)
{
	const size_t length = take() % (most + 1);

	for (size_t i = 0; i < length; i++)
		bytes[i] = take();
	return length;
}

static bool is_text(const uint8_t *bytes, size_t length, const char *text)
{
	return length == strlen(text) && strncasecmp((const char *)bytes, text, length) == 0;
}

static GENERAL_NAME *take_name(uint8_t (*take)(void), bool *named, bool *here)
{
	static const uint8_t demanded[] = {10, 9, 8, 7};
	static const uint8_t own[] = {127, 0, 0, 1};
	static const int types[] = {GEN_DNS, GEN_URI, GEN_EMAIL, GEN_IPADD};
	const int type = types[take() % 4];
	uint8_t bytes[NAME_MOST];
	const size_t length = take_bytes(take, bytes, sizeof(bytes));
	ASN1_STRING *value = type == GEN_IPADD ? ASN1_OCTET_STRING_new() : ASN1_IA5STRING_new();
	GENERAL_NAME *name = GENERAL_NAME_new();

	FUZZ_HOLDS(ASN1_STRING_set(value, bytes, (int)length) == 1);
	GENERAL_NAME_set0_value(name, type, value);
	if (type == GEN_DNS) {
		*named = *named || is_text(bytes, length, PAPER_DNS);
	} else if (type == GEN_URI) {
		*named = *named || is_text(bytes, length, PAPER_URI);
	} else if (type == GEN_EMAIL) {
		*named = *named || is_text(bytes, length, PAPER_EMAIL);
	} else if (length == 4) {
		*named = *named || memcmp(bytes, demanded, 4) == 0;
		*here = *here || memcmp(bytes, own, 4) == 0;
	}
	return name;
}

static void add_names(X509 *cert, uint8_t (*take)(void), unsigned count, bool *named, bool *here)
{
	GENERAL_NAMES *names = GENERAL_NAMES_new();

	for (unsigned i = 0; i < count; i++)
		FUZZ_HOLDS(sk_GENERAL_NAME_push(names, take_name(take, named, here)) > 0);
	FUZZ_HOLDS(X509_add1_ext_i2d(cert, NID_subject_alt_name, names, 0, X509V3_ADD_DEFAULT) ==
	           1);
	GENERAL_NAMES_free(names);
}

/* As it is, whether or not it can be read: what is in it may be anything. */
static void add_raw(X509 *cert, uint8_t (*take)(void), bool *named, bool *here)
{
	ASN1_OCTET_STRING *value = ASN1_OCTET_STRING_new();
	uint8_t bytes[RAW_MOST];
	const size_t length = take_bytes(take, bytes, sizeof(bytes));
	X509_EXTENSION *e;

	FUZZ_HOLDS(ASN1_STRING_set(value, bytes, (int)length) == 1);
	e = X509_EXTENSION_create_by_NID(NULL, NID_subject_alt_name, 0, value);
	FUZZ_HOLDS(e != NULL && X509_add_ext(cert, e, -1) == 1);
	X509_EXTENSION_free(e);
	ASN1_OCTET_STRING_free(value);
	*named = true;
	*here = true;
}

X509 *papers_made(uint8_t (*take)(void), bool *named, bool *here)
{
	static const int types[] = {V_ASN1_UTF8STRING, V_ASN1_PRINTABLESTRING, V_ASN1_T61STRING,
	                            V_ASN1_BMPSTRING};
	uint8_t subject[SUBJECT_MOST];
	const int type = types[take() % 4];
	const size_t length = take_bytes(take, subject, sizeof(subject));
	const unsigned names = take() % 5;
	X509 *cert;

	make_shared();
	*named = false;
	*here = false;
	cert = blank(shared.key, shared.ca.cert, 30);
	if (length > 0 && !add_subject(cert, type, subject, (int)length))
		goto refused;
	if (names == 4)
		add_raw(cert, take, named, here);
	else if (names > 0)
		add_names(cert, take, names, named, here);
	if (X509_sign(cert, shared.ca.key, EVP_sha256()) > 0)
		return cert;
refused:
	X509_free(cert);
	ERR_clear_error();
	return NULL;
}
