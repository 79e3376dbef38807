/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS of the sessions of a program, from its command line; and the leave to do without. */
#ifndef SAMPLE_TLS_H
#define SAMPLE_TLS_H

#include <stdbool.h>
#include <stddef.h>

#include <ndx/tls.h>

/** What the options of SAMPLE_TLS_OPTIONS() say. */
struct sample_tls {
	const char *cert; /* files in PEM */
	const char *key;
	const char *ca;
	const char *psk;    /* file of "identity:key" */
	const char *verify; /* a word; NULL: required */
	const char *name;   /* client: the server's; server: the clients', separated by ',' */
	bool no_resumption;
	bool allow_plaintext;
};

/** Rows of a table of struct sample_option. */
#define SAMPLE_TLS_OPTIONS(tls)                                                                    \
	{"--tls-cert", "FILE", "own certificate in PEM: sessions speak TLS 1.3 only",              \
	 .text = &(tls).cert},                                                                     \
		{"--tls-key", "FILE", "its key in PEM; nobody else may read the file",             \
	         .text = &(tls).key},                                                              \
		{"--tls-ca", "FILE", "CAs in PEM, of which the peer's certificate must be",        \
	         .text = &(tls).ca},                                                               \
		{"--tls-psk", "FILE", "pre-shared keys, a line \"identity:hexadecimal key\" each", \
	         .text = &(tls).psk},                                                              \
		{"--tls-verify", "required|optional|none", "the peer's certificate (required)",    \
	         .text = &(tls).verify},                                                           \
		{"--tls-name", "NAME",                                                             \
	         "client: the server's (its host); server: NAME,... of clients (any)",             \
	         .text = &(tls).name},                                                             \
		{"--tls-no-resumption", NULL,                                                      \
	         "a whole handshake for each connection, see ndx/tls.h",                           \
	         .flag = &(tls).no_resumption},                                                    \
	{                                                                                          \
		"--allow-plaintext", NULL,                                                         \
			"negotiate without TLS with other hosts: all on the way get the keys",     \
			.flag = &(tls).allow_plaintext                                             \
	}

/** What they mean for one end. */
#define SAMPLE_TLS_NAMES_MOST 16
struct sample_tls_choice {
	const struct ndx_tls_attr *attr; /* NULL: plaintext */
	struct ndx_tls_attr own;
	char text[1024];
	const char *names[SAMPLE_TLS_NAMES_MOST];
	size_t count;
};

/**
 * Keep @p choice until the session or server is created. Returns an enum sample_exit; an error was
 * explained.
 */
int sample_tls_choose(const char *program, const struct sample_tls *tls, bool server,
                      struct sample_tls_choice *choice);

/** Whether one of the options was given. */
bool sample_tls_given(const struct sample_tls *tls);

#endif
