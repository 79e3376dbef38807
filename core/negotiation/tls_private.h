/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of TLS share; the only header that includes OpenSSL's. */
#ifndef NEGOTIATION_TLS_PRIVATE_H
#define NEGOTIATION_TLS_PRIVATE_H

#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
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

#define TLS_EXPECTED 256u

/* Which server a session of TLS is with. A session is never offered to another. */
struct tls_server {
	struct sockaddr_storage address; /* zeroes behind it */
	char name[TLS_EXPECTED];         /* that its certificate has */
};

/* A session of TLS that a client may resume. */
struct tls_kept {
	struct tls_server of;
	SSL_SESSION *session;   /* NULL: an empty place */
	STACK_OF(X509) * chain; /* the server's verified certificates, with the CA's */
	uint64_t number;        /* in the order in which they came */
	uint64_t since_ns;
};
#define TLS_KEPT_MOST 16u

/* A session of TLS for which a server has given a ticket. */
struct tls_given {
	SSL_SESSION *session;   /* NULL: an empty place */
	STACK_OF(X509) * chain; /* the client's verified certificates, with the CA's */
	uint64_t since_ns;
};
#define TLS_GIVEN_MOST 4096u

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
	uint32_t updates_most;       /* of the peer's keys, in a period */
	uint32_t tickets_most;       /* of a server, in a period */
	uint32_t ticket_s;           /* lifetime of a ticket */
	bool resumes;                /* a server gives tickets, a client offers them */
	pthread_mutex_t resume_lock; /* of the rest, which are of sessions of TLS */
	uint64_t kept_number;        /* client */
	struct tls_kept kept[TLS_KEPT_MOST];
	uint64_t given_next; /* server: places are filled in turn, from `given_oldest` on */
	uint64_t given_oldest;
	struct tls_given *given; /* TLS_GIVEN_MOST; NULL: no resumption */
	bool no_resumption;      /* of the attributes */
	bool has_cert;
	bool has_ca;
	struct tls_stamp stamps[TLS_FILES];
	char *paths[TLS_FILES]; /* of a context that is shared; NULL: no such file */
};

/* How often something came in the present period. */
struct tls_pace {
	uint32_t count;
	uint64_t since_ns;
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
	const char *restless;      /* what the peer does too often; NULL: nothing */
	struct tls_pace updates;   /* of its keys */
	struct tls_pace tickets;   /* that a server has given */
	unsigned looked_up;        /* tickets of the client */
	uint64_t offered;          /* the number of the session of TLS; 0: none */
	bool no_such_key;          /* the client's pre-shared key is not among the server's */
	int error;
	unsigned reads; /* of the socket that are left to the current call */
	bool left;      /* it had no read left */
	enum ndx_status status;
	/* What OpenSSL has sent and the socket has not taken: */
	uint8_t *out;
	size_t out_room;
	size_t out_length;
	size_t out_sent;
	char expected[TLS_EXPECTED];         /* the server's name; "": not checked */
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
/* Whether the certificate has a name that this end expects of its peer. */
bool tls_is_for(X509 *cert, const struct tls *t);

/* tls_identity.c: whether the peer has proved its identity by a pre-shared key of a file. */
bool tls_is_by_key(const struct tls *t);

/* tls_updates.c */
void tls_limit_updates(struct tls_context *c);

/* tls_resume.c */
/* After the files: whether there is resumption depends on them. False: no memory. */
bool tls_let_resume(struct tls_context *c);
void tls_forget_given(struct tls_context *c);

/* tls_bounds.c */
/* Whether a session of TLS has not reached its lifetime, by either clock: that of the system may be
 * set back. */
bool tls_is_young(const struct tls_context *c, const SSL_SESSION *session, uint64_t since_ns);
/* Whether the peer's certificates are so few and short that a session of TLS may keep them. */
bool tls_is_small(const SSL_SESSION *session, const STACK_OF(X509) * chain);
/* Whether certificates that were verified earlier are still within their dates. */
bool tls_are_valid(const STACK_OF(X509) * chain);

/* tls_kept.c: at a client; any thread */
void tls_keep_sessions(struct tls_context *c);
void tls_forget_sessions(struct tls_context *c);
/* Before the handshake: offer the session that is kept of this server, if there is one. */
void tls_offer(struct tls *t);
/* After the handshake, or its failure: a session that the server did not take is forgotten. */
void tls_end_offer(struct tls *t);

/* tls_text.c: the latest failure of OpenSSL as `status` and `why`. */
void tls_explain(struct tls *t, int error);
/* Copy, with '?' for what is not printable. */
void tls_copy_text(char *out, size_t room, const char *text, size_t length);

#endif
