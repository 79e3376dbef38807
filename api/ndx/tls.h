/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * TLS for the control channel of negotiated sessions.
 *
 * A session and a server that have these attributes speak TLS 1.3, and nothing else, on the
 * built-in TCP transport. A certificate or a pre-shared key proves the identity of each end. TLS
 * protects what the sessions say to each other, not the data of the queue pair.
 *
 * These calls are in libndx-negotiation (pkg-config ndx-negotiation).
 */
#ifndef NDX_TLS_H
#define NDX_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ndx/decls.h>

NDX_DECLS_BEGIN

/** What the peer has to prove. A pre-shared key that both ends have counts as a certificate. */
enum ndx_tls_verify {
	/** A certificate of one of the CAs of `ca_file`, or the pre-shared key. The default. */
	NDX_TLS_VERIFY_REQUIRED = 0,
	/**
	 * At a server: a client without certificate is admitted, a client with a wrong one is not.
	 * At a client as NDX_TLS_VERIFY_REQUIRED.
	 */
	NDX_TLS_VERIFY_OPTIONAL = 1,
	/** Nothing. A client then talks to any server, so encryption keeps out listeners only. */
	NDX_TLS_VERIFY_NONE = 2,
};

/**
 * TLS of a session or of a server. Call ndx_tls_attr_init() first. The files are read when the
 * session or the server is created, and never again. Nothing of the structure is used after that.
 * A session uses what an earlier one of the same variant has read if the attributes are the same,
 * and no file has changed since; the variant keeps that until the next change, or its end.
 */
struct ndx_tls_attr {
	size_t size; /**< set by ndx_tls_attr_init() */
	/**
	 * The own certificate in PEM, followed by the certificates between it and the CA; NULL:
	 * none. A server needs a certificate or a pre-shared key.
	 */
	const char *cert_file;
	/**
	 * The key of `cert_file` in PEM, without passphrase. Refused if the file's group or others
	 * have any access to it.
	 */
	const char *key_file;
	/** Certificates in PEM of the CAs whose certificates the peer may have; NULL: none. */
	const char *ca_file;
	/**
	 * Pre-shared keys, a line "identity:key" each, the key as 32 to 128 hexadecimal digits
	 * (16 to 64 bytes); lines that begin with '#' are comments. This is the format of GnuTLS's
	 * psktool. A client's file has one key, a server's at most 1024. Refused if the file's
	 * group or others have any access to it. NULL: none.
	 */
	const char *psk_file;
	enum ndx_tls_verify verify;
	uint32_t reserved; /**< 0 */
	/**
	 * Of a client: the name, or address in numbers, that the server's certificate must have as
	 * subject alternative name. NULL: the host of the server's address.
	 */
	const char *server_name;
	/**
	 * Of a server: a client's certificate must have one of these as subject alternative name:
	 * DNS name, address in numbers, e-mail address, or URI. Names are whole: a wildcard in a
	 * certificate matches none. A client with a pre-shared key, and with
	 * NDX_TLS_VERIFY_OPTIONAL one without a certificate, is admitted without a name.
	 * `peer_name_count` 0: any name.
	 */
	const char *const *peer_names;
	size_t peer_name_count;
	/**
	 * Make a whole handshake for each transport. Otherwise a session that proves itself by a
	 * certificate may resume the handshake of an earlier one of its variant with the same
	 * server (RFC 8446, 2.2), by a ticket that is at most 300 s old. The server checks the
	 * dates and names of the client's certificate anew for each ticket; one that it does not
	 * take leads to a whole handshake. Both ends have to allow it. No ticket is given for a
	 * pre-shared key, nor to a client without certificate, nor by a server with
	 * NDX_TLS_VERIFY_NONE. A client that has pre-shared keys does not resume.
	 */
	bool no_resumption;
};

/** `size` of struct ndx_tls_attr in the version that introduced it; the smallest accepted. */
#define NDX_TLS_ATTR_SIZE_0_1 NDX_SIZE_UP_TO(struct ndx_tls_attr, peer_name_count)

/** As ndx_tls_attr_init(), of a structure of @p size bytes; for other languages. */
void ndx_tls_attr_init_sized(struct ndx_tls_attr *attr, size_t size);

/** Set `size` and the defaults. NULL is a no-op. */
static inline void ndx_tls_attr_init(struct ndx_tls_attr *attr)
{
	ndx_tls_attr_init_sized(attr, sizeof(*attr));
}

NDX_DECLS_END

#endif
