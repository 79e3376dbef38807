/* SPDX-License-Identifier: BSD-2-Clause */
/* The MAC that binds queue pairs to a channel of TLS. */
#include "binding.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>

#include <ndx/spi/byteorder.h>

/* A MAC of one of several queue pairs is none of a single queue pair. */
static const char purpose[] = "ndx validate 1";
static const char purpose_of_many[sizeof(purpose)] = "ndx validate 2";
/* Nor is that of one that was added later the MAC of one that was there from the start. */
static const char purpose_of_added[sizeof(purpose)] = "ndx validate 3";

#define PAYLOAD_MOST 4096u
#define INPUT_MOST (sizeof(purpose) + 2 + 2 + 4 + (size_t)2 * BINDING_DIGEST + PAYLOAD_MOST)

void binding_begin(struct binding *b)
{
	memset(b->said, 0, sizeof(b->said));
	b->broken = false;
}

void binding_add(struct binding *b, enum ndx_role from, const void *message, size_t length)
{
	uint8_t *digest = b->said[from == NDX_ROLE_SERVER];
	EVP_MD_CTX *ctx;
	uint8_t size[4];

	if (!b->bound)
		return;
	ndxp_put_be32(size, (uint32_t)length);
	ctx = EVP_MD_CTX_new();
	if (ctx == NULL || EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) != 1 ||
	    EVP_DigestUpdate(ctx, digest, BINDING_DIGEST) != 1 ||
	    EVP_DigestUpdate(ctx, size, sizeof(size)) != 1 ||
	    EVP_DigestUpdate(ctx, message, length) != 1 ||
	    EVP_DigestFinal_ex(ctx, digest, NULL) != 1)
		b->broken = true;
	EVP_MD_CTX_free(ctx);
}

static const char *purpose_for(const struct binding *b)
{
	if (!b->one_of_many)
		return purpose;
	return b->batch > 0 ? purpose_of_added : purpose_of_many;
}

/* Of a frame's flags and `length` bytes of its payload. */
static bool compute(const struct binding *b, enum ndx_role from, const struct frame *f,
                    const uint8_t *payload, uint8_t mac[FRAME_MAC_SIZE])
{
	uint8_t input[INPUT_MOST];
	size_t used = sizeof(purpose); /* with its null byte */
	size_t length = 0;

	if (b->broken || f->length > PAYLOAD_MOST)
		return false;
	memcpy(input, purpose_for(b), sizeof(purpose));
	input[used++] = from == NDX_ROLE_SERVER;
	input[used++] = f->flags;
	if (b->one_of_many) {
		ndxp_put_be16(input + used, b->queue_pair);
		used += 2;
	}
	if (b->one_of_many && b->batch > 0) {
		ndxp_put_be32(input + used, b->batch);
		used += 4;
	}
	memcpy(input + used, b->said, sizeof(b->said));
	used += sizeof(b->said);
	memcpy(input + used, payload, f->length);
	used += f->length;
	return EVP_Q_mac(NULL, "HMAC", NULL, "SHA2-256", NULL, b->key, sizeof(b->key), input, used,
	                 mac, FRAME_MAC_SIZE, &length) != NULL &&
	       length == FRAME_MAC_SIZE;
}

bool binding_seal(const struct binding *b, enum ndx_role from, struct frame *f, uint8_t *payload)
{
	if (!b->bound)
		return true;
	f->flags |= FRAME_BOUND;
	if (!compute(b, from, f, payload, payload + f->length))
		return false;
	f->length += FRAME_MAC_SIZE;
	return true;
}

const char *binding_find_fault(const struct binding *b, enum ndx_role from, const struct frame *f)
{
	const bool has_mac = (f->flags & FRAME_BOUND) != 0;
	struct frame without = *f;
	uint8_t right[FRAME_MAC_SIZE];

	if (!b->bound)
		return has_mac ? "the peer binds its queue pair to a channel of TLS, and this "
		                 "channel is in plaintext"
		               : NULL;
	if (!has_mac || f->length < FRAME_MAC_SIZE)
		return "the peer does not bind its queue pair to the channel of TLS: its VALIDATE "
		       "has no MAC";
	without.length -= FRAME_MAC_SIZE;
	if (compute(b, from, &without, f->payload, right) &&
	    CRYPTO_memcmp(right, f->payload + without.length, sizeof(right)) == 0)
		return NULL;
	return "the peer's queue pair is not bound to this channel of TLS: its VALIDATE has a "
	       "wrong "
	       "MAC";
}

void binding_forget(struct binding *b)
{
	OPENSSL_cleanse(b->key, sizeof(b->key));
	b->bound = false;
}
