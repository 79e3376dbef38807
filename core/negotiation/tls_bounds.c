/* SPDX-License-Identifier: BSD-2-Clause */
/* What both ends may keep of a session of TLS, and for how long. */
#include "tls_private.h"

#include <time.h>

#include <ndx/spi/system.h>

#define CERTS_MOST 8u         /* of the peer, beside its own, ... */
#define CERT_BYTES_MOST 16384 /* ... with the own, in bytes; a peer sends what it likes */

bool tls_is_young(const struct tls_context *c, const SSL_SESSION *session, uint64_t since_ns)
{
	const int64_t age = (int64_t)time(NULL) - SSL_SESSION_get_time(session);

	return age >= 0 && age < c->ticket_s &&
	       ndxp_now_ns() - since_ns < c->ticket_s * UINT64_C(1000000000);
}

bool tls_is_small(const SSL_SESSION *session, const STACK_OF(X509) * chain)
{
	const X509 *own = SSL_SESSION_get0_peer((SSL_SESSION *)(uintptr_t)session);
	int bytes = own != NULL ? i2d_X509(own, NULL) : 0;

	for (int i = 0; i < sk_X509_num(chain) && bytes <= CERT_BYTES_MOST; i++)
		bytes += i2d_X509(sk_X509_value(chain, i), NULL);
	return sk_X509_num(chain) <= (int)CERTS_MOST && bytes <= CERT_BYTES_MOST;
}

bool tls_are_valid(const STACK_OF(X509) * chain)
{
	bool valid = true;

	for (int i = 0; valid && i < sk_X509_num(chain); i++) {
		const X509 *cert = sk_X509_value(chain, i);

		valid = X509_cmp_current_time(X509_get0_notAfter(cert)) > 0 &&
		        X509_cmp_current_time(X509_get0_notBefore(cert)) < 0;
	}
	return valid;
}
