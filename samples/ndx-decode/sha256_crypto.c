/* SPDX-License-Identifier: BSD-2-Clause */
/* SHA-256 by libcrypto, which knows what the processor can do. */
#include <openssl/evp.h>

#include "decode.h"

struct sha256; /* an EVP_MD_CTX */

static EVP_MD_CTX *context(struct sha256 *hash)
{
	return (EVP_MD_CTX *)(void *)hash;
}

struct sha256 *sha256_create(void)
{
	return (struct sha256 *)(void *)EVP_MD_CTX_new();
}

void sha256_begin(struct sha256 *hash)
{
	(void)EVP_DigestInit_ex(context(hash), EVP_sha256(), NULL);
}

void sha256_add(struct sha256 *hash, const void *bytes, size_t length)
{
	(void)EVP_DigestUpdate(context(hash), bytes, length);
}

void sha256_end(struct sha256 *hash, uint8_t out[32])
{
	(void)EVP_DigestFinal_ex(context(hash), out, NULL);
}

void sha256_free(struct sha256 *hash)
{
	EVP_MD_CTX_free(context(hash));
}
