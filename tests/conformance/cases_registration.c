/* SPDX-License-Identifier: BSD-2-Clause */
/* registration.*: registering memory and ending it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>

#include "cases.h"
#include "traffic.h"

enum {
	AGAIN = 1000,
	TOKENS = 10000,
	CHANCE = 3, /* tokens of these that may be equal where all 32 bits are drawn by lot */
	REGIONS = 64,
	THREADS = 4,
	HUGE_PAGE = 2 * 1024 * 1024,
	EVERY_RIGHT = NDX_MR_ALLOW_REMOTE_WRITE | NDX_MR_ALLOW_REMOTE_READ | NDX_MR_RDMA_READ_SINK,
};

static struct ndx_mr *new_region(struct check *c)
{
	struct ndx_mr *mr = NULL;

	if (!check_over(c))
		check_status(c, ndx_mr_create(c->world->places[0].adapter, &mr), NDX_OK,
		             "mr_create");
	return mr;
}

static bool registers(struct check *c, struct ndx_mr *mr, void *buffer, size_t length,
                      uint32_t flags)
{
	struct ndx_overlapped ov;

	ndx_overlapped_init(&ov);
	return !check_over(c) && check_async(c, ndx_mr_register(mr, buffer, length, flags, &ov),
	                                     &ov, NDX_OK, "register");
}

static bool deregisters(struct check *c, struct ndx_mr *mr)
{
	struct ndx_overlapped ov;

	ndx_overlapped_init(&ov);
	return !check_over(c) &&
	       check_async(c, ndx_mr_deregister(mr, &ov), &ov, NDX_OK, "deregister");
}

/* Refused at once, or after a while; it has no tokens afterwards. */
static void is_refused(struct check *c, struct ndx_mr *mr, void *buffer, size_t length,
                       uint32_t flags, enum ndx_status want, const char *what)
{
	struct ndx_overlapped ov;

	if (check_over(c))
		return;
	ndx_overlapped_init(&ov);
	check_outcome(c, ndx_mr_register(mr, buffer, length, flags, &ov), &ov, want, what);
	check_that(c, ndx_mr_get_local_token(mr) == 0 && ndx_mr_get_remote_token(mr) == 0,
	           "%s: refused, but there are tokens", what);
}

void case_registration_register_and_deregister(struct check *c)
{
	struct ndx_mr *mr = new_region(c);
	uint8_t memory[256];

	if (!mr)
		return;
	check_that(c, ndx_mr_get_local_token(mr) == 0 && ndx_mr_get_remote_token(mr) == 0,
	           "a new region has tokens");
	registers(c, mr, memory, sizeof(memory), NDX_MR_ALLOW_REMOTE_WRITE);
	check_that(c, ndx_mr_get_local_token(mr) != 0 && ndx_mr_get_remote_token(mr) != 0,
	           "a registered region lacks a token");
	deregisters(c, mr);
	check_that(c, ndx_mr_get_local_token(mr) == 0 && ndx_mr_get_remote_token(mr) == 0,
	           "a deregistered region has tokens");
	ndx_mr_close(mr);
}

/* Without the capability the call refuses whatever it gets, and the region stays as it was. With it
 * the arguments are checked before the device sees them. */
void case_registration_of_a_dmabuf_is_refused(struct check *c)
{
	const struct place *place = &c->world->places[0];
	const bool can = (place->info.capabilities & NDX_CAP_DMABUF) != 0;
	const enum ndx_status no = can ? NDX_E_INVALID_PARAMETER : NDX_E_NOT_SUPPORTED;
	struct ndx_overlapped ov = {0};
	struct ndx_mr *mr = NULL;

	if (!check_status(c, ndx_mr_create(place->adapter, &mr), NDX_OK, "create"))
		return;
	check_status(c, ndx_mr_register_dmabuf(NULL, 0, 0, 4096, 0, 0, &ov),
	             NDX_E_INVALID_PARAMETER, "without a region");
	check_status(c, ndx_mr_register_dmabuf(mr, -1, 0, 4096, 4096, 0, &ov), no,
	             "without a descriptor");
	check_status(c, ndx_mr_register_dmabuf(mr, 0, UINT64_MAX - 4095, 4097, 4096, 0, &ov), no,
	             "with an offset that overflows");
	check_status(c, ndx_mr_register_dmabuf(mr, 0, 4096, 4097, UINT64_MAX - 4095, 0, &ov), no,
	             "with an address that overflows");
	check_status(c, ndx_mr_register_dmabuf(mr, 0, 0, 4096, 4096, 0x80, &ov), no,
	             "with an unknown flag");
	check_status(c, ndx_mr_register_dmabuf(mr, 0, 0, 0, 4096, 0, &ov),
	             can ? NDX_E_INVALID_BUFFER_SIZE : NDX_E_NOT_SUPPORTED, "of nothing");
	check_that(c, ndx_overlapped_status(&ov) == NDX_OK, "a refused operation is in flight");
	check_that(c, ndx_mr_get_local_token(mr) == 0, "a refused registration has a token");
	ndx_mr_close(mr);
}

void case_registration_twice_is_refused(struct check *c)
{
	struct ndx_mr *mr = new_region(c);
	struct ndx_overlapped ov;
	uint8_t memory[2][256];
	uint32_t token;

	if (!mr)
		return;
	ndx_overlapped_init(&ov);
	check_status(c, ndx_mr_deregister(mr, &ov), NDX_E_INVALID_DEVICE_STATE,
	             "deregister of a new region");
	registers(c, mr, memory[0], sizeof(memory[0]), 0);
	token = ndx_mr_get_local_token(mr);
	check_status(c, ndx_mr_register(mr, memory[1], sizeof(memory[1]), 0, &ov),
	             NDX_E_INVALID_DEVICE_STATE, "second register");
	check_that(c, ndx_mr_get_local_token(mr) == token, "a refused register changed the token");
	deregisters(c, mr);
	check_status(c, ndx_mr_deregister(mr, &ov), NDX_E_INVALID_DEVICE_STATE,
	             "second deregister");
	registers(c, mr, memory[1], sizeof(memory[1]), 0);
	ndx_mr_close(mr);
}

void case_registration_again_and_again(struct check *c)
{
	static const uint32_t rights[] = {0, NDX_MR_ALLOW_LOCAL_WRITE, NDX_MR_ALLOW_REMOTE_READ,
	                                  EVERY_RIGHT};
	struct ndx_mr *mr = new_region(c);
	uint8_t memory[4096];

	for (size_t i = 0; mr && i < AGAIN && !check_over(c); i++) {
		registers(c, mr, memory + i % 64, sizeof(memory) - i, rights[i % 4]);
		check_that(c, ndx_mr_get_local_token(mr) != 0 && ndx_mr_get_remote_token(mr) != 0,
		           "registration %zu lacks a token", i);
		deregisters(c, mr);
	}
	ndx_mr_close(mr);
}

static int compare_tokens(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a;
	const uint32_t y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* What still names a region that has gone opens no other. */
void case_registration_tokens_do_not_come_back(struct check *c)
{
	uint32_t *tokens = calloc(TOKENS, sizeof(*tokens));
	struct ndx_mr *mr = new_region(c);
	uint8_t memory[64];
	size_t equal = 0;

	check_that(c, tokens != NULL, "no memory for the tokens");
	for (size_t i = 0; mr && tokens && i < TOKENS && !check_over(c); i++) {
		registers(c, mr, memory, sizeof(memory), NDX_MR_ALLOW_LOCAL_WRITE);
		tokens[i] = ndx_mr_get_local_token(mr);
		deregisters(c, mr);
	}
	if (tokens && !check_over(c)) {
		qsort(tokens, TOKENS, sizeof(*tokens), compare_tokens);
		for (size_t i = 1; i < TOKENS; i++)
			equal += tokens[i] == tokens[i - 1];
		check_that(c, equal <= CHANCE, "%zu of %d local tokens came back", equal, TOKENS);
	}
	ndx_mr_close(mr);
	free(tokens);
}

void case_registration_bad_arguments_are_refused(struct check *c)
{
	const struct ndx_adapter_info *info = &c->world->places[0].info;
	struct ndx_mr *mr = new_region(c);
	struct ndx_mr *none = (struct ndx_mr *)c;
	struct ndx_mr *out = none;
	struct ndx_overlapped ov;
	uint8_t memory[256];

	if (!mr)
		return;
	ndx_overlapped_init(&ov);
	is_refused(c, mr, memory, 0, 0, NDX_E_INVALID_BUFFER_SIZE, "register of 0 bytes");
	is_refused(c, mr, NULL, 64, 0, NDX_E_INVALID_PARAMETER, "register of NULL");
	is_refused(c, mr, NULL, 0, 0, NDX_E_INVALID_PARAMETER, "register of nothing at NULL");
	is_refused(c, mr, memory, 64, 0x10, NDX_E_INVALID_PARAMETER, "register with flag 0x10");
	is_refused(c, mr, memory, 64, 0x80000000u, NDX_E_INVALID_PARAMETER,
	           "register with flag 0x80000000");
	if (info->max_registration_size < SIZE_MAX)
		is_refused(c, mr, memory, (size_t)info->max_registration_size + 1, 0,
		           NDX_E_INVALID_PARAMETER, "register beyond the limit");
	is_refused(c, mr, memory, SIZE_MAX, 0, NDX_E_INVALID_PARAMETER, "register of all there is");
	check_status(c, ndx_mr_register(NULL, memory, 64, 0, &ov), NDX_E_INVALID_PARAMETER,
	             "register of no region");
	check_status(c, ndx_mr_deregister(NULL, &ov), NDX_E_INVALID_PARAMETER,
	             "deregister of no region");
	check_status(c, ndx_mr_create(c->world->places[0].adapter, NULL), NDX_E_INVALID_PARAMETER,
	             "mr_create without a place for it");
	check_status(c, ndx_mr_create(NULL, &out), NDX_E_INVALID_PARAMETER,
	             "mr_create without an adapter");
	check_status(c, ndx_mr_register_new(c->world->places[0].adapter, memory, 0, 0, &out),
	             NDX_E_INVALID_BUFFER_SIZE, "register_new of 0 bytes");
	check_that(c, out == none, "the output of a failed call was touched");
	registers(c, mr, memory, sizeof(memory), 0);
	ndx_mr_close(mr);
}

void case_registration_remote_write_needs_local_write(struct check *c)
{
	const uint32_t alone = NDX_MR_ALLOW_REMOTE_WRITE & ~(uint32_t)NDX_MR_ALLOW_LOCAL_WRITE;
	struct side_attr attr[2];
	struct ndx_mr *mr = new_region(c);
	struct pair *p;
	uint8_t memory[64];

	if (mr)
		is_refused(c, mr, memory, sizeof(memory), alone, NDX_E_INVALID_PARAMETER,
		           "register for remote write only");
	ndx_mr_close(mr);
	/* the flag of that name contains both */
	side_attr_init(&attr[0]);
	side_attr_init(&attr[1]);
	attr[1].access = NDX_MR_ALLOW_REMOTE_WRITE;
	p = check_over(c) ? NULL : pair_up_with(c, &attr[0], &attr[1]);
	if (!p)
		return;
	message_passes(&p->a, &p->b, 64);
	write_ok(&p->a, 1, 0, 64, &p->b, 128, 0);
	expect(&p->a, NDX_REQUEST_WRITE, 1, NDX_OK);
}

void case_registration_changes_no_byte(struct check *c)
{
	struct ndx_mr *mr = new_region(c);
	uint8_t *memory = malloc(3 * 4096);

	if (!mr || !memory) {
		check_fail(c, "no memory");
	} else {
		pattern_fill(memory, 3 * 4096, 5);
		registers(c, mr, memory, 3 * 4096, EVERY_RIGHT);
		pattern_there(c, memory, 3 * 4096, 5, "registered memory");
		deregisters(c, mr);
		pattern_there(c, memory, 3 * 4096, 5, "deregistered memory");
	}
	ndx_mr_close(mr);
	free(memory);
}

/* ---- memory that is not there, or not for writing ---- */

static uint8_t *map_pages(struct check *c, size_t pages, int protection)
{
	void *at = mmap(NULL, pages * (size_t)sysconf(_SC_PAGESIZE), protection,
	                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (!check_that(c, at != MAP_FAILED, "mmap failed"))
		return NULL;
	return at;
}

void case_registration_memory_that_is_not_mapped_is_refused(struct check *c)
{
	const enum ndx_status want = NDX_E_ACCESS_VIOLATION;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct ndx_mr *mr = new_region(c);
	uint8_t *at = map_pages(c, 5, PROT_READ | PROT_WRITE);

	/* A hole that no other mmap() can fill: it is there, but without any right. */
	if (!mr || !at ||
	    !check_that(c, mprotect(at + 2 * page, page, PROT_NONE) == 0, "mprotect failed"))
		return;
	is_refused(c, mr, at + 2 * page, page, 0, want, "register of a hole");
	is_refused(c, mr, at + 2 * page + 100, 10, 0, want, "register of part of a hole");
	is_refused(c, mr, at, 5 * page, EVERY_RIGHT, want, "register across a hole");
	is_refused(c, mr, at + page, page + 1, 0, want, "register one byte into a hole");
	is_refused(c, mr, at + 3 * page - 1, 2, NDX_MR_ALLOW_LOCAL_WRITE, want,
	           "register from one byte in a hole on");
	is_refused(c, mr, (void *)(UINTPTR_MAX - 10), 100, 0, want, "register across the end");
	registers(c, mr, at, 2 * page, EVERY_RIGHT); /* just up to the hole */
	deregisters(c, mr);
	registers(c, mr, at + 3 * page, 2 * page, EVERY_RIGHT);
	ndx_mr_close(mr);
	(void)munmap(at, 5 * page);
}

void case_registration_memory_without_the_right_is_refused(struct check *c)
{
	const enum ndx_status want = NDX_E_ACCESS_VIOLATION;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct ndx_mr *mr = new_region(c);
	uint8_t *at = map_pages(c, 3, PROT_READ | PROT_WRITE);

	if (!mr || !at)
		return;
	if (!check_that(c,
	                mprotect(at + page, page, PROT_READ) == 0 &&
	                        mprotect(at + 2 * page, page, PROT_NONE) == 0,
	                "mprotect failed"))
		return;
	is_refused(c, mr, at, 2 * page, NDX_MR_ALLOW_LOCAL_WRITE, want,
	           "local write to read-only memory");
	is_refused(c, mr, at + page, page, NDX_MR_ALLOW_REMOTE_WRITE, want,
	           "remote write to read-only memory");
	is_refused(c, mr, at + page, page, NDX_MR_RDMA_READ_SINK, want,
	           "reads into read-only memory");
	is_refused(c, mr, at + page, 2 * page, 0, want, "register of memory without any right");
	registers(c, mr, at, 2 * page, NDX_MR_ALLOW_REMOTE_READ);
	deregisters(c, mr);
	registers(c, mr, at, page, EVERY_RIGHT);
	ndx_mr_close(mr);
	(void)munmap(at, 3 * page);
}

/* ---- what can be registered is of use ---- */

/* A region of A's own over `at`, and a message from it to B. */
static void sends_from(struct pair *p, struct ndx_mr *mr, uint8_t *at, size_t length)
{
	struct ndx_sge one = {
		.buffer = at, .length = (uint32_t)length, .token = ndx_mr_get_local_token(mr)};

	receive_ok(&p->b, 1, 0, length);
	check_status(p->c, ndx_qp_send(p->a.qp, tag(&p->a, 2), &one, 1, 0), NDX_OK, "send");
	expect(&p->a, NDX_REQUEST_SEND, 2, NDX_OK);
	expect_received(&p->b, 1, length);
	if (!check_over(p->c))
		check_that(p->c, memcmp(p->b.buf, at, length) == 0,
		           "%zu bytes from a region at %u into its page came wrong", length,
		           (unsigned)((uintptr_t)at % 4096));
}

/* B reads and, if it may, writes the region. */
static void is_reached(struct pair *p, struct ndx_mr *mr, uint8_t *at, size_t length, bool writes)
{
	struct ndx_sge one = sge(&p->b, 0, length);
	uint64_t address = (uint64_t)(uintptr_t)at;
	uint32_t token = ndx_mr_get_remote_token(mr);
	uint64_t key = check_random(p->c);

	check_status(p->c, ndx_qp_read(p->b.qp, tag(&p->b, 3), &one, 1, address, token, 0), NDX_OK,
	             "read");
	expect(&p->b, NDX_REQUEST_READ, 3, NDX_OK);
	if (!check_over(p->c))
		check_that(p->c, memcmp(p->b.buf, at, length) == 0, "a read brought wrong bytes");
	if (!writes)
		return;
	pattern_fill(p->b.buf, length, key);
	check_status(p->c, ndx_qp_write(p->b.qp, tag(&p->b, 4), &one, 1, address, token, 0), NDX_OK,
	             "write");
	expect(&p->b, NDX_REQUEST_WRITE, 4, NDX_OK);
	if (!check_over(p->c))
		pattern_there(p->c, at, length, key, "written region");
}

void case_registration_read_only_memory_can_be_sent_and_read(struct check *c)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct ndx_mr *mr = new_region(c);
	struct pair *p = mr ? pair_up(c, NULL) : NULL;
	uint8_t *at = map_pages(c, 1, PROT_READ | PROT_WRITE);

	if (p && at) {
		pattern_fill(at, page, 9);
		check_that(c, mprotect(at, page, PROT_READ) == 0, "mprotect failed");
		registers(c, mr, at, page, NDX_MR_ALLOW_REMOTE_READ);
		sends_from(p, mr, at, page);
		is_reached(p, mr, at, page, false);
	}
	pair_close_all(c);
	ndx_mr_close(mr);
	if (at)
		(void)munmap(at, page);
}

void case_registration_any_alignment_and_length(struct check *c)
{
	static const size_t lengths[] = {1, 2, 7, 63, 4095, 4097, 8191};
	struct ndx_mr *mr = new_region(c);
	struct pair *p = mr ? pair_up(c, NULL) : NULL;
	uint8_t *memory = p ? malloc(16384) : NULL;

	for (size_t i = 0; memory && i < 24 && !check_over(c); i++) {
		size_t length = lengths[i % 7];
		uint8_t *at = memory + 4096 - 11 + i;

		pattern_fill(memory, 16384, i);
		registers(c, mr, at, length, EVERY_RIGHT);
		sends_from(p, mr, at, length);
		is_reached(p, mr, at, length, true);
		deregisters(c, mr);
	}
	pair_close_all(c);
	ndx_mr_close(mr);
	free(memory);
}

void case_registration_regions_may_overlap(struct check *c)
{
	struct ndx_mr *mr[REGIONS] = {NULL};
	struct pair *p = pair_up(c, NULL);
	uint8_t memory[4096];

	if (!p)
		return;
	pattern_fill(memory, sizeof(memory), 3);
	for (size_t i = 0; i < REGIONS && !check_over(c); i++) {
		check_status(c,
		             ndx_mr_register_new(p->a.adapter, memory + i, sizeof(memory) - 2 * i,
		                                 EVERY_RIGHT, &mr[i]),
		             NDX_OK, "mr_register_new");
		for (size_t j = 0; j < i && !check_over(c); j++)
			check_that(c,
			           ndx_mr_get_local_token(mr[i]) != ndx_mr_get_local_token(mr[j]) &&
			                   ndx_mr_get_remote_token(mr[i]) !=
			                           ndx_mr_get_remote_token(mr[j]),
			           "two regions have the same token");
	}
	/* each by its own tokens, also when others have gone */
	for (size_t i = 0; i < REGIONS && !check_over(c); i++) {
		sends_from(p, mr[i], memory + i, sizeof(memory) - 2 * i);
		is_reached(p, mr[i], memory + i, sizeof(memory) - 2 * i, true);
		ndx_mr_close(mr[i]);
		mr[i] = NULL;
	}
	pair_close_all(c);
	for (size_t i = 0; i < REGIONS; i++)
		ndx_mr_close(mr[i]);
}

void case_registration_huge_pages(struct check *c)
{
	struct ndx_sge list[2];
	struct pair *p;
	struct ndx_mr *mr = NULL;
	uint8_t *at = mmap(NULL, 2 * (size_t)HUGE_PAGE, PROT_READ | PROT_WRITE,
	                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	if (at == MAP_FAILED) {
		check_skip(c, "no huge pages; echo 4 > /proc/sys/vm/nr_hugepages");
		return;
	}
	p = pair_up(c, NULL);
	if (p)
		check_status(c,
		             ndx_mr_register_new(p->a.adapter, at, 2 * (size_t)HUGE_PAGE,
		                                 EVERY_RIGHT, &mr),
		             NDX_OK, "register of huge pages");
	if (mr) {
		pattern_fill(at, 2 * (size_t)HUGE_PAGE, 4);
		is_reached(p, mr, at + HUGE_PAGE - 1000, 2000, true);
		/* two pieces, one of them across the pages */
		list[0] = (struct ndx_sge){at + HUGE_PAGE - 100, 200, ndx_mr_get_local_token(mr)};
		list[1] = (struct ndx_sge){at, 100, ndx_mr_get_local_token(mr)};
		receive_ok(&p->b, 1, 0, 300);
		check_status(c, ndx_qp_send(p->a.qp, tag(&p->a, 2), list, 2, 0), NDX_OK, "send");
		expect(&p->a, NDX_REQUEST_SEND, 2, NDX_OK);
		expect_received(&p->b, 1, 300);
		if (!check_over(c))
			check_that(c,
			           memcmp(p->b.buf, list[0].buffer, 200) == 0 &&
			                   memcmp(p->b.buf + 200, at, 100) == 0,
			           "pieces of huge pages came wrong");
	}
	pair_close_all(c);
	ndx_mr_close(mr);
	(void)munmap(at, 2 * (size_t)HUGE_PAGE);
}

/* ---- threads ---- */

struct contender {
	pthread_t thread;
	struct check *c;
	struct ndx_mr *mr;
	uint8_t *memory;
	unsigned won;
};

/* Registers and, if it was the one, deregisters. */
static void *contend(void *arg)
{
	struct contender *t = arg;
	struct ndx_overlapped ov;

	ndx_overlapped_init(&ov);
	for (unsigned i = 0; i < AGAIN && !check_over(t->c); i++) {
		enum ndx_status got =
			check_result_of(t->c, ndx_mr_register(t->mr, t->memory, 256, 0, &ov), &ov);

		if (got == NDX_E_INVALID_DEVICE_STATE || got == NDX_E_DEVICE_BUSY)
			continue;
		check_status(t->c, got, NDX_OK, "register from many threads");
		t->won++;
		/* others may be at it, but only this one may succeed */
		do
			got = check_result_of(t->c, ndx_mr_deregister(t->mr, &ov), &ov);
		while (got == NDX_E_DEVICE_BUSY && !check_over(t->c));
		check_status(t->c, got, NDX_OK, "deregister by who registered");
	}
	return NULL;
}

void case_registration_threads_contend_for_one_region(struct check *c)
{
	struct contender all[THREADS];
	struct ndx_mr *mr = new_region(c);
	uint8_t memory[256];
	unsigned started = 0;
	unsigned won = 0;

	for (; mr && started < THREADS; started++) {
		all[started] = (struct contender){.c = c, .mr = mr, .memory = memory};
		if (!check_that(
			    c,
			    pthread_create(&all[started].thread, NULL, contend, &all[started]) == 0,
			    "no thread"))
			break;
	}
	for (unsigned i = 0; i < started; i++) {
		(void)pthread_join(all[i].thread, NULL);
		won += all[i].won;
	}
	check_that(c, won > 0, "nobody could register");
	ndx_mr_close(mr);
}
