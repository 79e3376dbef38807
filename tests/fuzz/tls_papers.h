/* SPDX-License-Identifier: BSD-2-Clause */
/* Certificates for the fuzz target of TLS, made in memory: those of the usual kinds once, and one
 * whose names are of the input. */
#ifndef TEST_FUZZ_TLS_PAPERS_H
#define TEST_FUZZ_TLS_PAPERS_H

#include <stdbool.h>
#include <stdint.h>

#include <openssl/x509.h>

#include "tls.h"

enum paper {
	PAPER_GOOD,  /* for PAPER_DNS and 127.0.0.1, by the CA that both ends know */
	PAPER_ALIEN, /* the same by another CA */
	PAPER_OLD,   /* expired */
	PAPERS,
};

/* Of a client. */
enum demand {
	DEMAND_ANY,   /* a certificate, whatever its names */
	DEMAND_NAMED, /* a certificate with one of these names, or none */
	DEMANDS,
};
#define PAPER_DNS "fu.z.example"
#define PAPER_URI "urn:fuzz"
#define PAPER_EMAIL "fuzz@mail.example"
#define PAPER_IP "10.9.8.7"

/* A file that is only in memory, for as long as `fd` is open; the path is for the next call. */
const char *papers_file(const char *text, size_t length, int *fd);

/* Lasts, as the contexts do. */
X509 *papers_usual(enum paper paper);

/* Of PAPER_GOOD, which a channel may replace; `bare`: of no certificate. */
struct tls_context *papers_client(bool bare);
struct tls_context *papers_server(enum demand demand);

/*
 * A certificate by the CA for the key of the contexts, whose subject and alternative names are made
 * of the bytes that `take` gives. `named`: it may have one of the names that DEMAND_NAMED demands;
 * `here`: it may be for 127.0.0.1. NULL: OpenSSL does not take such a name.
 */
X509 *papers_made(uint8_t (*take)(void), bool *named, bool *here);

#endif
