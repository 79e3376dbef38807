/* SPDX-License-Identifier: BSD-2-Clause */
/* Certificates, a server with TLS, what the log says, and a proxy in the way. */
#ifndef TEST_TLS_RIG_H
#define TEST_TLS_RIG_H

#include "scripted.h"

#include <netinet/in.h>

#include <ndx/negotiation_server.h>

/* A directory with two CAs ("ca", "alien"), certificates and keys. Made once for a program. */
struct papers {
	char dir[64];
};

struct leaf {
	const char *file; /* DIR/file.pem, DIR/file.key */
	const char *ca;
	const char *subject;
	const char *names; /* "DNS:...,IP:..."; as OpenSSL writes subject alternative names */
	int from_days;     /* from now */
	int to_days;
};

int papers_make(void **state);
int papers_remove(void **state);
void papers_leaf(const struct leaf *leaf);
/* One that others are signed by. */
void papers_middle(const struct leaf *middle);
/* The same name and key, signed by itself. */
void papers_root(const char *file, const char *of);
/* DIR/name; good for the next few calls. */
const char *paper(const char *name);
void paper_write(const char *name, const char *text, unsigned mode);
/* Until no session takes them for files that have only just changed. */
void papers_age(void);
/* A file of the text of two. */
void paper_join(const char *name, const char *one, const char *two);

/* Of a client with the certificate "client", of a server with "server"; both demand the other's. */
struct ndx_tls_attr tls_client(void);
struct ndx_tls_attr tls_server(void);

struct host {
	struct ndx_negotiation_server *server;
	struct sockaddr_in at;
	char address[32];
};

/* For `tls` NULL: plaintext. */
void host_attr(const struct rig *r, const struct ndx_tls_attr *tls, uint32_t hello_ms,
               struct ndx_negotiation_server_attr *attr);
void host_begin(struct host *h, const struct ndx_negotiation_server_attr *attr);
/* Both. */
void host_open(struct host *h, const struct rig *r, const struct ndx_tls_attr *tls,
               uint32_t hello_ms);
void host_close(struct host *h);
void host_stats(const struct host *h, struct ndx_negotiation_server_stats *stats);
/* Until no client is left. */
void host_await_empty(const struct host *h);
/* A connected socket, with time-outs. */
int host_join(const struct host *h);
/* The same from an address of the loopback. */
int host_join_from(const struct host *h, uint32_t address);
/* The server closes the socket, whatever comes before that; then so does this. */
void host_has_closed(int fd);

struct ndx_session *tls_session(struct rig *r, const char *address, const struct ndx_tls_attr *tls,
                                uint32_t connect_ms);

/* Sessions of several threads at the same time. */
#define CROWD_MOST 8
struct crowd {
	const struct rig *rig;
	const struct host *host;
	const struct ndx_tls_attr *tls;
	unsigned threads;  /* at most CROWD_MOST */
	unsigned sessions; /* of each thread, one after the other */
	unsigned passed;   /* atomic */
	pthread_t handles[CROWD_MOST];
};

void crowd_start(struct crowd *c);
/* All sessions have ended well. */
void crowd_end(struct crowd *c);

/* The log from here on. */
void log_begin(void);
/* Wait for a record with both. */
void log_says(const char *one, const char *two);
/* How many records have this so far. */
unsigned log_count(const char *text);
void log_end(void);

/* Between client and server. */
struct proxy {
	pthread_t thread;
	int fd;
	int stop;
	char address[32];
	struct sockaddr_in to;
	bool by_byte;            /* each byte alone */
	uint32_t cut;            /* atomic: 1: end the connection, and set this to 0 */
	uint8_t recorded[16384]; /* what has gone to the server; after proxy_stop() */
	size_t recorded_length;
	uint32_t spoiled; /* atomic: 1: change a bit of the next bytes to the server, set to 0 */
};

void proxy_start(struct proxy *p, const struct host *to, bool by_byte);
void proxy_stop(struct proxy *p);

#endif
