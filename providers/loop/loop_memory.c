/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory as a device sees it: may it be touched, and how bytes arrive. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "loop.h"

/* Aliases whatever the application keeps there. */
typedef uint64_t __attribute__((may_alias)) loop_word;

struct cursor {
	const struct ndx_sge *sge;
	uint32_t done; /* bytes of *sge */
};

/* The next piece of contiguous memory, `*len` bytes at most. */
static uint8_t *piece(struct cursor *c, uint32_t *len)
{
	while (c->done == c->sge->length) {
		c->sge++;
		c->done = 0;
	}
	if (*len > c->sge->length - c->done)
		*len = c->sge->length - c->done;
	return (uint8_t *)c->sge->buffer + c->done;
}

/*
 * memcpy may store the last bytes first. The adapter promises NDX_CAP_IN_ORDER_DMA, and programs
 * watch the last byte of a write: hence ascending stores that no later one overtakes.
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

/*
 * Faulting the pages in, as a real device's driver does to pin them, answers for mapping and rights
 * at once, without changing a byte that another thread may be writing. (Reading or writing through
 * a pipe or process_vm_writev would, or may be forbidden; /proc/self/maps takes milliseconds to
 * read.) Before Linux 5.14 only what is not mapped is found.
 */
int loop_memory_probe(void *buffer, size_t length, bool write)
{
	int advice = write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t before = (uintptr_t)buffer % page;
	uint8_t *start = (uint8_t *)buffer - before;

	if (length > UINTPTR_MAX - page - (uintptr_t)start - before)
		return EFAULT;
	length = (before + length + page - 1) / page * page;
	/* of no pages: is the advice known? */
	if (madvise(start, 0, advice) == 0)
		return madvise(start, length, advice) == 0 ? 0 : errno;
	return msync(start, length, MS_ASYNC) == 0 || errno != ENOMEM ? 0 : ENOMEM;
}
