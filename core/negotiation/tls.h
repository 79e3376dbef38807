/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS 1.3 over a socket that does not block. Everything that OpenSSL has to send goes into a buffer
 * of this file's, so that only the socket can make a sender wait. */
#ifndef NEGOTIATION_TLS_H
#define NEGOTIATION_TLS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ndx/negotiation.h>
#include <ndx/status.h>
#include <ndx/tls.h>

struct tls_context;
struct tls;

/* ---- tls_context.c: what the attributes say, for one end; any thread ---- */

/* Read and check the files. `call` names the caller in a failure. */
enum ndx_status tls_context_create(const struct ndx_tls_attr *attr, enum ndx_role role,
                                   const char *call, struct tls_context **out);
/* NULL is a no-op. The caller's channels do not use the context any more. */
void tls_context_put(struct tls_context *c);

/* ---- tls_share.c: one context for clients with the same attributes; any thread ---- */

struct tls_share {
	pthread_mutex_t lock;
	struct tls_context *latest; /* NULL: none; under `lock` */
};

void tls_share_init(struct tls_share *share);
void tls_share_fini(struct tls_share *share);
/* As tls_context_create() of a client, with the same failures. Nothing is read or made if the
 * latest context is of the same attributes, and its files have not changed since. */
enum ndx_status tls_share_take(struct tls_share *share, const struct ndx_tls_attr *attr,
                               const char *call, struct tls_context **out);

/* ---- tls.c: one channel; one thread at a time ---- */

/* Begin on a connected socket, which stays the caller's. `server`: a client's server, HOST:PORT.
 * The handshake takes place in the first calls of tls_receive() and tls_send(). NULL: no memory. */
struct tls *tls_begin(struct tls_context *c, int fd, const char *server);
/* Say that nothing more comes, if the socket takes that at once, and free. NULL is a no-op. */
void tls_end(struct tls *t);
/*
 * As base_socket_receive() and base_socket_send(). NDX_PENDING: wait for tls_events(). The channel
 * is lost with another status:
 *   NDX_E_CONNECTION_ABORTED the transport ended, with or without the peer's word
 *   NDX_E_CONNECTION_REFUSED one end does not admit the other, see tls_why()
 *   NDX_E_INVALID_CONFIG     the ends do not both speak TLS 1.3, see tls_why()
 */
enum ndx_status tls_receive(struct tls *t, void *data, size_t room, size_t *got);
enum ndx_status tls_send(struct tls *t, const uint8_t *bytes, size_t length, size_t *sent);
/* As tls_receive(), for bytes that are thrown away; also after a failure, when nothing that comes
 * is the peer's for certain. */
enum ndx_status tls_discard(struct tls *t, void *data, size_t room, size_t *got);
/* What to wait for: EPOLLIN, EPOLLOUT. */
uint32_t tls_events(const struct tls *t);
/* After NDX_PENDING: the socket may have more, and others are to have their turn before. No event
 * of the socket tells. */
bool tls_has_left(const struct tls *t);
/* Nothing more is sent: tell the peer. */
void tls_shut(struct tls *t);
/* The time for the handshake is over. From now on as after a failure. */
void tls_give_up(struct tls *t);

/* A key that the two ends of the channel have, and no other (RFC 8446, 7.5). After the handshake.
 */
#define TLS_EXPORTED 32u
bool tls_export(struct tls *t, uint8_t key[TLS_EXPORTED]);

/* ---- tls_identity.c: the peer; after the handshake ---- */

#define TLS_DIGEST 32u
#define TLS_NAME 96u

enum tls_proof {
	TLS_NOTHING, /* of a channel in plaintext */
	TLS_ANONYMOUS,
	TLS_BY_CERTIFICATE,
	TLS_BY_KEY,
};

struct tls_identity {
	enum tls_proof kind;
	uint8_t proof[TLS_DIGEST];     /* of the certificate, or of the key's identity */
	uint8_t principal[TLS_DIGEST]; /* of all names of the certificate, or the same */
	char name[TLS_NAME];           /* for people; printable */
};

/* False: no memory. */
bool tls_identify(const struct tls *t, struct tls_identity *out);
/* Whether they have proved the same: certificates are the same, not their names. */
bool tls_is_same(const struct tls_identity *a, const struct tls_identity *b);
/* Whether the peer's verified certificate has this name as a whole; whether the peer has the
 * pre-shared key of this identity. */
bool tls_has_name(const struct tls *t, const char *name);
bool tls_has_key(const struct tls *t, const char *identity);

/* ---- tls.c ---- */

bool tls_is_ready(const struct tls *t);
bool tls_has_failed(const struct tls *t);
/* Any thread, now and then: a server forgets the tickets that are too old. */
void tls_forget_old(struct tls_context *c);
/* Whether the certificates are those of an earlier handshake, by a ticket. */
bool tls_is_resumed(const struct tls *t);
/* Why the channel is lost; "": the transport ended. */
const char *tls_why(const struct tls *t);
/* The cipher and the peer's name, for the log. A `room` of TLS_TEXT suffices. */
#define TLS_TEXT 200u
const char *tls_describe(const struct tls *t, char *text, size_t room);

#endif
