/* SPDX-License-Identifier: BSD-2-Clause */
/* Examples of the manual pages: TLS of a negotiation. */
#include <ndx/ndx.h>

/* Both ends have certificates of one authority. The attributes must live as long as `tls`. */
void example_tls(struct ndx_session_attr *session, struct ndx_tls_attr *tls)
{
	ndx_tls_attr_init(tls);
	tls->cert_file = "own.pem";
	tls->key_file = "own.key";
	tls->ca_file = "ca.pem";
	session->tls = tls;
}

/* What a binding for another language calls. */
void example_tls_sizes(struct ndx_tls_attr *attr, size_t size)
{
	ndx_tls_attr_init_sized(attr, size);
}
