/* SPDX-License-Identifier: BSD-2-Clause */
/* SHA-256 by libcrypto, which uses the processor's instructions for it. */
#include <openssl/evp.h>
#include <stdlib.h>

#include "decode.h"

struct sha256 {
	EVP_MD *kind; /* fetched once: a fetch for each message costs more than the hash */
	EVP_MD_CTX *context;
};

struct sha256 *sha256_create(void)
{
	struct sha256 *hash = calloc(1, sizeof(*hash));

	if (hash == NULL)
		return NULL;
	hash->kind = EVP_MD_fetch(NULL, "SHA256", NULL);
	hash->context = EVP_MD_CTX_new();
	if (hash->kind == NULL || hash->context == NULL) {
		sha256_free(hash);
		return NULL;
	}
	return hash;
}

void sha256_begin(struct sha256 *hash)
{
	(void)EVP_DigestInit_ex(hash->context, hash->kind, NULL);
}

void sha256_add(struct sha256 *hash, const void *bytes, size_t length)
{
	(void)EVP_DigestUpdate(hash->context, bytes, length);
}

void sha256_end(struct sha256 *hash, uint8_t out[32])
{
	(void)EVP_DigestFinal_ex(hash->context, out, NULL);
}

void sha256_free(struct sha256 *hash)
{
	EVP_MD_CTX_free(hash->context);
	EVP_MD_free(hash->kind);
	free(hash);
}
