/* SPDX-License-Identifier: BSD-2-Clause */
/* Copying bytes into memory in order. */
#include <string.h>

#include "loop.h"

/* May alias any type of the application's. */
typedef uint64_t __attribute__((may_alias)) loop_word;

struct cursor {
	const struct ndx_sge *sge;
	uint32_t done; /* bytes of *sge that are copied */
};

/* The next contiguous memory, of at most `*len` bytes. */
static uint8_t *piece(struct cursor *c, uint32_t *len)
{
	while (c->done == c->sge->length) {
		c->sge++;
		c->done = 0;
	}
	if (*len > c->sge->length - c->done)
		*len = c->sge->length - c->done;
	return (uint8_t *)ndxp_sge_memory(c->sge) + c->done;
}

/*
 * memcpy() may store the last bytes first. The adapter promises NDX_CAP_IN_ORDER_DMA, and programs
 * poll the last byte of a write. Hence ascending stores, each a release, so that no later store
 * overtakes an earlier one.
 */
static void copy_in_order(uint8_t *to, const uint8_t *from, uint32_t len)
{
	uint64_t word;

	for (; len > 0 && (uintptr_t)to % sizeof(word) != 0; len--)
		__atomic_store_n(to++, *from++, __ATOMIC_RELEASE);
	for (; len >= sizeof(word); len -= (uint32_t)sizeof(word)) {
		memcpy(&word, from, sizeof(word));
		__atomic_store_n((loop_word *)(void *)to, word, __ATOMIC_RELEASE);
		to += sizeof(word);
		from += sizeof(word);
	}
	for (; len > 0; len--)
		__atomic_store_n(to++, *from++, __ATOMIC_RELEASE);
}

void loop_memory_move(const struct ndx_sge *to, const struct ndx_sge *from, uint32_t bytes)
{
	struct cursor target = {to, 0};
	struct cursor source = {from, 0};

	while (bytes > 0) {
		uint32_t len = bytes;
		const uint8_t *src = piece(&source, &len);
		uint8_t *dst = piece(&target, &len);

		copy_in_order(dst, src, len);
		source.done += len;
		target.done += len;
		bytes -= len;
	}
}
