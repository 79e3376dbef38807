/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of TLS share; the only header that includes OpenSSL's. */
#ifndef NEGOTIATION_TLS_PRIVATE_H
#define NEGOTIATION_TLS_PRIVATE_H

#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <sys/types.h>
#include <time.h>

#include "tls.h"

#define TLS_IDENTITY_MAX 128u
#define TLS_KEY_LEAST 16u
#define TLS_KEY_MAX 64u
#define TLS_WHY 256u

/* A pre-shared key. */
struct tls_key {
	char identity[TLS_IDENTITY_MAX + 1];
	uint8_t bytes[TLS_KEY_MAX];
	size_t length;
};

enum tls_file {
	TLS_FILE_CERT,
	TLS_FILE_KEY,
	TLS_FILE_CA,
	TLS_FILE_PSK,
	TLS_FILES,
};

/* What a file was when it was opened to be read. */
struct tls_stamp {
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec modified;
	struct timespec changed;
	bool fresh; /* changed a moment before: another change might leave the same times */
};

struct tls_context {
	unsigned refs; /* atomic */
	enum ndx_role role;
	enum ndx_tls_verify verify;
	SSL_CTX *ssl;
	BIO_METHOD *bio;
	struct tls_key *keys;
	size_t key_count;
	char *server_name; /* NULL: the host of the server's address */
	char **names;      /* that a client may have; NULL: any */
	size_t name_count;
	uint32_t updates_most; /* of the peer's keys, in a period */
	bool has_cert;
	bool has_ca;
	struct tls_stamp stamps[TLS_FILES];
	char *paths[TLS_FILES]; /* of a context that is shared; NULL: no such file */
};

struct tls {
	struct tls_context *context;
	SSL *ssl;
	int fd;
	uint32_t events;
	bool ready;
	bool failed;               /* OpenSSL can do nothing more with the channel */
	bool plaintext;            /* ... because the peer speaks plaintext */
	bool closed;               /* the peer has said that nothing more comes */
	bool ended;                /* the socket has ended, with `error` */
	bool shut;                 /* this end has said that nothing more comes */
	bool began;                /* the peer's first byte has come, ... */
	uint8_t first;             /* ... and was this one */
	uint32_t asked;            /* identities of pre-shared keys that the client has offered */
	const struct tls_key *key; /* the one that is, or would be, used */
	bool restless;             /* the peer changes its keys too often: */
	uint32_t updates;          /* so often since ... */
	uint64_t updates_since_ns;
	bool no_such_key; /* the client's pre-shared key is not among the server's */
	int error;
	unsigned reads; /* of the socket that are left to the current call */
	bool left;      /* it had no read left */
	enum ndx_status status;
	/* What OpenSSL has sent and the socket has not taken: */
	uint8_t *out;
	size_t out_room;
	size_t out_length;
	size_t out_sent;
	char expected[256];                  /* the server's name; "": not checked */
	char identity[TLS_IDENTITY_MAX + 1]; /* of the pre-shared key; printable; "": none */
	char fault[TLS_WHY - 8];             /* of the peer's certificate */
	char why[TLS_WHY];
};

/* tls_bio.c: the socket as OpenSSL sees it. NULL: no memory. */
BIO_METHOD *tls_bio_method(void);
/* Give the socket what waits for it. */
enum ndx_status tls_flush(struct tls *t);

/* tls_context.c */
/* Check the attributes, and copy them to `own` as this library knows them. */
enum ndx_status tls_take_attr(const struct ndx_tls_attr *attr, enum ndx_role role, const char *call,
                              struct ndx_tls_attr *own);
enum ndx_status tls_context_make(const struct ndx_tls_attr *own, enum ndx_role role,
                                 const char *call, struct tls_context **out);
/* A client that does not verify is warned for each session. */
void tls_warn(const struct tls_context *c, const char *call);

/* tls_files.c. Each: a failure names the call, the file and the cause. */
struct tls_source {
	const char *call;
	const char *path;
	struct tls_stamp *stamp;
};
enum ndx_status tls_load_own(struct tls_context *c, const char *call, const char *cert_file,
                             const char *key_file);
/* What is sent with the own certificate; after both files. */
void tls_choose_chain(struct tls_context *c);
enum ndx_status tls_load_cas(struct tls_context *c, const char *call, const char *ca_file);
/* The whole file with a null byte behind it; `secret`: refuse a file that others may open. Give it
 * back with tls_forget(). */
enum ndx_status tls_read_file(const struct tls_source *from, bool secret, char **bytes,
                              size_t *length);
void tls_forget(char *bytes, size_t length);
/* NULL: the own certificate is valid now; otherwise what is wrong. */
const char *tls_date_fault(const struct tls_context *c);

/* tls_psk.c */
enum ndx_status tls_load_keys(struct tls_context *c, const char *call, const char *psk_file);
void tls_forget_keys(struct tls_context *c);

/* tls_verify.c */
void tls_demand(struct tls_context *c);
/* Whether the certificate has a name; `more`: flags for names of hosts. */
bool tls_match_name(X509 *cert, const char *name, unsigned more);

/* tls_updates.c */
void tls_limit_updates(struct tls_context *c);

/* tls_text.c: the latest failure of OpenSSL as `status` and `why`. */
void tls_explain(struct tls *t, int error);
/* Copy, with '?' for what is not printable. */
void tls_copy_text(char *out, size_t room, const char *text, size_t length);

#endif
