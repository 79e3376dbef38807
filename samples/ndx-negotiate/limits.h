/* SPDX-License-Identifier: BSD-2-Clause */
/* How much of a server of ndx-negotiate one client may have, from its command line. */
#ifndef LIMITS_H
#define LIMITS_H

#include <stddef.h>
#include <stdint.h>

#include <ndx/negotiation_server.h>

/** A limit that the command line does not give: the library's. */
#define LIMIT_DEFAULT UINT32_MAX
#define LIMIT_MOST (UINT32_MAX - 1)

/** What the options of LIMIT_OPTIONS() say; 0: no limit. Begin with LIMITS_INITIALIZER. */
struct limits {
	uint32_t sessions;
	uint32_t waiting;
	uint32_t hello_ms;
	uint32_t handshakes;
	uint32_t address_handshakes;
	uint32_t principal_sessions;
	uint32_t principal_queue_pairs;
	uint64_t principal_memory;
	const char *grants; /* a file */
};
#define LIMITS_INITIALIZER                                                                      \
	{                                                                                       \
		.sessions = LIMIT_DEFAULT, .waiting = LIMIT_DEFAULT, .hello_ms = LIMIT_DEFAULT, \
		.handshakes = LIMIT_DEFAULT, .address_handshakes = LIMIT_DEFAULT,               \
		.principal_sessions = LIMIT_DEFAULT, .principal_queue_pairs = LIMIT_DEFAULT     \
	}

/** Rows of a table of struct sample_option. */
#define LIMIT_OPTIONS(limits)                                                                     \
	{"--max-sessions",                                                                        \
	 "N",                                                                                     \
	 "server: sessions at a time (4096)",                                                     \
	 .number = &(limits).sessions,                                                            \
	 .min = 1,                                                                                \
	 .max = LIMIT_MOST},                                                                      \
		{"--max-waiting", "N",                                                            \
	         "server: connections of an address before hello, 0: any (2048)",                 \
	         .number = &(limits).waiting, .max = LIMIT_MOST},                                 \
		{"--hello-timeout",                                                               \
	         "MS",                                                                            \
	         "server: from a connection to its hello (5000)",                                 \
	         .number = &(limits).hello_ms,                                                    \
	         .min = 1,                                                                        \
	         .max = 1u << 30},                                                                \
		{"--max-handshakes", "N", "server: connections a second, 0: any (with TLS 1024)", \
	         .number = &(limits).handshakes, .max = LIMIT_MOST},                              \
		{"--address-handshakes", "N", "server: the same, of an address (with TLS 256)",   \
	         .number = &(limits).address_handshakes, .max = LIMIT_MOST},                      \
		{"--principal-sessions", "N", "server: of a principal at a time, 0: any (1024)",  \
	         .number = &(limits).principal_sessions, .max = LIMIT_MOST},                      \
		{"--principal-queue-pairs", "N", "server: the same, of its queue pairs (1024)",   \
	         .number = &(limits).principal_queue_pairs, .max = LIMIT_MOST},                   \
		{"--principal-memory", "BYTES",                                                   \
	         "server: the same, of memory that it may reach (0)",                             \
	         .wide_number = &(limits).principal_memory},                                      \
	{                                                                                         \
		"--grants", "FILE", "server: who may use which variant (all may use all)",        \
			.text = &(limits).grants                                                  \
	}

/** The grants of the file, while the server is created. */
struct limits_grants {
	struct ndx_variant_grant *list; /* NULL: no file */
	size_t count;
};

/**
 * Put the limits into the attributes, of which `tls` is set. Returns an enum sample_exit; an error
 * was explained. Afterwards limits_drop(), in any case.
 */
int limits_take(const char *who, const struct limits *limits,
                struct ndx_negotiation_server_attr *attr, struct limits_grants *grants);
void limits_drop(struct limits_grants *grants);

#endif
