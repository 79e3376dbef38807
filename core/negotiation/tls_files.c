/* SPDX-License-Identifier: BSD-2-Clause */
/* Certificates and keys from files. */
#include "tls_private.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <ndx/spi/log.h>
#include <ndx/spi/system.h>

#define FILE_MOST 1048576
#define NS_OF_S INT64_C(1000000000)
#define TICK_NS (NS_OF_S / 10) /* the times of a file go by ticks, of 1 to 10 ms */

void tls_forget(char *bytes, size_t length)
{
	OPENSSL_cleanse(bytes, length);
	free(bytes);
}

static enum ndx_status check_file(const struct tls_source *from, bool secret, const struct stat *is)
{
	if (!S_ISREG(is->st_mode))
		return fail(NDX_E_INVALID_CONFIG, 0, "%s: %.160s is no ordinary file", from->call,
		            from->path);
	if (secret && (is->st_mode & (S_IRWXG | S_IRWXO)) != 0)
		return fail(NDX_E_INVALID_CONFIG, 0,
		            "%s: %.160s is secret, and its mode %04o lets others open it; chmod "
		            "600",
		            from->call, from->path, (unsigned)(is->st_mode & 07777));
	if (is->st_size > FILE_MOST)
		return fail(NDX_E_INVALID_CONFIG, 0, "%s: %.160s is longer than %d bytes",
		            from->call, from->path, FILE_MOST);
	return NDX_OK;
}

/* Whether a change from now on might leave the time of the last change as it is. Some file systems
 * know whole seconds only. A time in the future says nothing. */
static bool is_fresh(const struct timespec *changed)
{
	const int64_t grain = changed->tv_nsec == 0 ? 2 * NS_OF_S : TICK_NS;
	struct timespec now = {0};

	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (now.tv_sec - changed->tv_sec > 2)
		return false;
	return (now.tv_sec - changed->tv_sec) * NS_OF_S + (now.tv_nsec - changed->tv_nsec) < grain;
}

static void take_stamp(struct tls_stamp *stamp, const struct stat *is)
{
	stamp->device = is->st_dev;
	stamp->inode = is->st_ino;
	stamp->size = is->st_size;
	stamp->modified = is->st_mtim;
	stamp->changed = is->st_ctim;
	stamp->fresh = is_fresh(&is->st_ctim);
}

/* The file may grow or shrink at the same time. -1 with errno. */
static ssize_t read_all(int fd, char *bytes, size_t room)
{
	size_t have = 0;

	while (have < room) {
		const ssize_t n = read(fd, bytes + have, room - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		have += (size_t)n;
	}
	return (ssize_t)have;
}

enum ndx_status tls_read_file(const struct tls_source *from, bool secret, char **bytes,
                              size_t *length)
{
	/* Not blocking, because a FIFO could keep the program at open(). */
	const int fd = open(from->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	enum ndx_status st;
	struct stat is;
	char *all;
	ssize_t n;

	if (fd < 0)
		return fail(errno == ENOENT ? NDX_E_NOT_FOUND : NDX_E_INVALID_CONFIG, errno,
		            "%s: %.160s cannot be opened", from->call, from->path);
	if (fstat(fd, &is) != 0)
		st = fail(NDX_E_INVALID_CONFIG, errno, "%s: %.160s", from->call, from->path);
	else
		st = check_file(from, secret, &is);
	if (st == NDX_OK)
		take_stamp(from->stamp, &is);
	if (st != NDX_OK)
		goto close_fd;
	all = calloc(1, (size_t)is.st_size + 1);
	if (all == NULL) {
		st = fail(NDX_E_NO_MEMORY, 0, "%s: out of memory", from->call);
		goto close_fd;
	}
	n = read_all(fd, all, (size_t)is.st_size);
	if (n < 0) {
		st = fail(NDX_E_INVALID_CONFIG, errno, "%s: %.160s cannot be read", from->call,
		          from->path);
		tls_forget(all, (size_t)is.st_size);
		goto close_fd;
	}
	*bytes = all;
	*length = (size_t)n;
close_fd:
	ndxp_fd_close(fd);
	return st;
}

/* ---- certificates ---- */

static enum ndx_status fail_here(const struct tls_source *from, const char *what)
{
	const char *cause = ERR_reason_error_string(ERR_peek_last_error());

	return fail(NDX_E_INVALID_CONFIG, 0, "%s: %.160s: %s%s%s", from->call, from->path, what,
	            cause != NULL ? ": " : "", cause != NULL ? cause : "");
}

typedef bool take_fn(struct tls_context *c, X509 *cert, unsigned number);

/* OpenSSL's own would ask at the terminal. */
static int no_passphrase(char *buffer, int room, int writes, void *arg)
{
	(void)buffer;
	(void)room;
	(void)writes;
	(void)arg;
	return -1;
}

/* Give each certificate of the file to `take`. */
static enum ndx_status read_certs(struct tls_context *c, const struct tls_source *from,
                                  take_fn *take)
{
	enum ndx_status st;
	unsigned count = 0;
	size_t length = 0;
	char *bytes = NULL;
	X509 *cert;
	BIO *in;

	st = tls_read_file(from, false, &bytes, &length);
	if (st != NDX_OK)
		return st;
	in = BIO_new_mem_buf(bytes, (int)length);
	while (st == NDX_OK && in != NULL &&
	       (cert = PEM_read_bio_X509(in, NULL, no_passphrase, NULL)) != NULL) {
		if (!take(c, cert, count++))
			st = fail_here(from, "a certificate is of no use");
		X509_free(cert);
	}
	/* The end of the file is the only failure that is none. */
	if (st == NDX_OK && in != NULL && count > 0 &&
	    ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
		st = fail_here(from, "a certificate cannot be read");
	else if (st == NDX_OK && count == 0)
		st = fail_here(from, "has no certificate in PEM");
	BIO_free(in);
	free(bytes);
	return st;
}

static bool take_ca(struct tls_context *c, X509 *cert, unsigned number)
{
	(void)number;
	return X509_STORE_add_cert(SSL_CTX_get_cert_store(c->ssl), cert) == 1;
}

static bool take_own(struct tls_context *c, X509 *cert, unsigned number)
{
	if (number == 0)
		return SSL_CTX_use_certificate(c->ssl, cert) == 1;
	/* that of a CA: see tls_choose_chain() */
	return X509_self_signed(cert, 0) == 1 || SSL_CTX_add1_chain_cert(c->ssl, cert) == 1;
}

/* Peers have the CA's own certificate: OpenSSL would send it in each handshake, and the peer read
 * it, which takes as long as a signature. If the own file names the certificates in between, these
 * are sent as they stand. Otherwise they may be in the CA file. */
void tls_choose_chain(struct tls_context *c)
{
	STACK_OF(X509) *named = NULL;

	(void)SSL_CTX_get0_chain_certs(c->ssl, &named);
	(void)ERR_set_mark();
	if (sk_X509_num(named) > 0 ||
	    SSL_CTX_build_cert_chain(c->ssl, SSL_BUILD_CHAIN_FLAG_NO_ROOT |
	                                             SSL_BUILD_CHAIN_FLAG_IGNORE_ERROR) != 0)
		(void)SSL_CTX_set_mode(c->ssl, SSL_MODE_NO_AUTO_CHAIN);
	(void)ERR_pop_to_mark();
}

const char *tls_date_fault(const struct tls_context *c)
{
	const X509 *cert = SSL_CTX_get0_certificate(c->ssl);

	if (X509_cmp_current_time(X509_get0_notAfter(cert)) <= 0)
		return "the certificate has expired";
	if (X509_cmp_current_time(X509_get0_notBefore(cert)) > 0)
		return "the certificate is not yet valid";
	return NULL;
}

static enum ndx_status check_dates(const struct tls_context *c, const struct tls_source *from)
{
	const char *fault = tls_date_fault(c);

	if (fault != NULL)
		return fail(NDX_E_INVALID_CONFIG, 0, "%s: %.160s: %s", from->call, from->path,
		            fault);
	return NDX_OK;
}

enum ndx_status tls_load_cas(struct tls_context *c, const char *call, const char *ca_file)
{
	const struct tls_source from = {call, ca_file, &c->stamps[TLS_FILE_CA]};

	c->has_ca = true;
	return read_certs(c, &from, take_ca);
}

/* ---- the key ---- */

static enum ndx_status load_key(struct tls_context *c, const struct tls_source *from)
{
	enum ndx_status st;
	EVP_PKEY *key;
	size_t length = 0;
	char *bytes = NULL;
	BIO *in;

	st = tls_read_file(from, true, &bytes, &length);
	if (st != NDX_OK)
		return st;
	in = BIO_new_mem_buf(bytes, (int)length);
	key = in != NULL ? PEM_read_bio_PrivateKey(in, NULL, no_passphrase, NULL) : NULL;
	if (key == NULL)
		st = fail_here(from, "has no key in PEM without passphrase");
	else if (SSL_CTX_use_PrivateKey(c->ssl, key) != 1 || SSL_CTX_check_private_key(c->ssl) != 1)
		st = fail_here(from, "the key does not match the certificate");
	EVP_PKEY_free(key);
	BIO_free(in);
	tls_forget(bytes, length);
	return st;
}

enum ndx_status tls_load_own(struct tls_context *c, const char *call, const char *cert_file,
                             const char *key_file)
{
	const struct tls_source cert = {call, cert_file, &c->stamps[TLS_FILE_CERT]};
	const struct tls_source key = {call, key_file, &c->stamps[TLS_FILE_KEY]};
	enum ndx_status st = read_certs(c, &cert, take_own);

	if (st == NDX_OK)
		st = load_key(c, &key);
	if (st == NDX_OK)
		st = check_dates(c, &cert);
	c->has_cert = st == NDX_OK;
	return st;
}
