/* SPDX-License-Identifier: BSD-2-Clause */
/* Heaps over malloc(), and pages over mmap(). */
#include "winrt.h"

#include <pthread.h>
#include <sys/mman.h>

namespace
{

/* ---- heaps ---- */

struct Heap;

/* What is before each block of a heap. */
struct Block {
	Heap *heap;
	size_t bytes;
	Block *next; /* of a heap that can be destroyed */
	Block *previous;
};
static_assert(sizeof(Block) % 16 == 0, "a block is aligned as malloc() aligns");

struct Heap {
	pthread_mutex_t lock;
	Block *first;
	Heap *next;
};

Heap process_heap = {PTHREAD_MUTEX_INITIALIZER, nullptr, nullptr};

/* The heaps besides that of the process, so that other handles are not taken for one. */
pthread_mutex_t heaps_lock = PTHREAD_MUTEX_INITIALIZER;
Heap *heaps;

Heap *heap_of(HANDLE handle)
{
	Heap *heap;

	if (handle == &process_heap)
		return &process_heap;
	(void)pthread_mutex_lock(&heaps_lock);
	heap = heaps;
	while (heap != nullptr && heap != handle)
		heap = heap->next;
	(void)pthread_mutex_unlock(&heaps_lock);
	if (heap == nullptr)
		SetLastError(ERROR_INVALID_HANDLE);
	return heap;
}

bool take_from_list(Heap *heap)
{
	Heap **link = &heaps;

	(void)pthread_mutex_lock(&heaps_lock);
	while (*link != nullptr && *link != heap)
		link = &(*link)->next;
	heap = *link;
	if (heap != nullptr)
		*link = heap->next;
	(void)pthread_mutex_unlock(&heaps_lock);
	return heap != nullptr;
}

Block *block_of(Heap *heap, const void *memory)
{
	Block *block = static_cast<Block *>(const_cast<void *>(memory));

	if (block != nullptr && block[-1].heap == heap)
		return &block[-1];
	SetLastError(ERROR_INVALID_PARAMETER);
	return nullptr;
}

void link(Heap *heap, Block *block)
{
	if (heap == &process_heap)
		return;
	(void)pthread_mutex_lock(&heap->lock);
	block->next = heap->first;
	if (block->next != nullptr)
		block->next->previous = block;
	heap->first = block;
	(void)pthread_mutex_unlock(&heap->lock);
}

void unlink(Heap *heap, Block *block)
{
	if (heap == &process_heap)
		return;
	(void)pthread_mutex_lock(&heap->lock);
	if (block->next != nullptr)
		block->next->previous = block->previous;
	if (block->previous != nullptr)
		block->previous->next = block->next;
	else
		heap->first = block->next;
	(void)pthread_mutex_unlock(&heap->lock);
}

void discard(Block *block)
{
	block->heap = nullptr; /* a second HeapFree() is likely to be noticed */
	free(block);
}

} // namespace

HANDLE GetProcessHeap()
{
	return &process_heap;
}

HANDLE HeapCreate(DWORD, SIZE_T, SIZE_T)
{
	Heap *heap = static_cast<Heap *>(calloc(1, sizeof(*heap)));

	if (heap == nullptr || pthread_mutex_init(&heap->lock, nullptr) != 0) {
		free(heap);
		return winrt_null(ERROR_NOT_ENOUGH_MEMORY);
	}
	(void)pthread_mutex_lock(&heaps_lock);
	heap->next = heaps;
	heaps = heap;
	(void)pthread_mutex_unlock(&heaps_lock);
	return heap;
}

BOOL HeapDestroy(HANDLE handle)
{
	Heap *heap = static_cast<Heap *>(handle);

	if (!take_from_list(heap))
		return winrt_fail(ERROR_INVALID_HANDLE);
	while (heap->first != nullptr) {
		Block *block = heap->first;

		heap->first = block->next;
		discard(block);
	}
	(void)pthread_mutex_destroy(&heap->lock);
	free(heap);
	return TRUE;
}

LPVOID HeapAlloc(HANDLE handle, DWORD flags, SIZE_T bytes)
{
	Heap *heap = heap_of(handle);
	Block *block;

	if (heap == nullptr)
		return nullptr;
	if (bytes > PTRDIFF_MAX - sizeof(*block))
		return winrt_null(ERROR_NOT_ENOUGH_MEMORY);
	block = static_cast<Block *>((flags & HEAP_ZERO_MEMORY) != 0
	                                     ? calloc(1, sizeof(*block) + bytes)
	                                     : malloc(sizeof(*block) + bytes));
	if (block == nullptr)
		return winrt_null(ERROR_NOT_ENOUGH_MEMORY);
	*block = {heap, bytes, nullptr, nullptr};
	link(heap, block);
	return block + 1;
}

LPVOID HeapReAlloc(HANDLE handle, DWORD flags, LPVOID memory, SIZE_T bytes)
{
	Heap *heap = heap_of(handle);
	Block *block = heap == nullptr ? nullptr : block_of(heap, memory);
	void *fresh;

	if (block == nullptr)
		return nullptr;
	if (bytes <= block->bytes) {
		block->bytes = bytes;
		return memory;
	}
	if ((flags & HEAP_REALLOC_IN_PLACE_ONLY) != 0)
		return winrt_null(ERROR_NOT_ENOUGH_MEMORY);
	fresh = HeapAlloc(handle, flags, bytes);
	if (fresh == nullptr)
		return nullptr;
	memcpy(fresh, memory, block->bytes);
	unlink(heap, block);
	discard(block);
	return fresh;
}

BOOL HeapFree(HANDLE handle, DWORD, LPVOID memory)
{
	Heap *heap = heap_of(handle);
	Block *block;

	if (heap == nullptr)
		return FALSE;
	if (memory == nullptr)
		return TRUE;
	block = block_of(heap, memory);
	if (block == nullptr)
		return FALSE;
	unlink(heap, block);
	discard(block);
	return TRUE;
}

SIZE_T HeapSize(HANDLE handle, DWORD, LPCVOID memory)
{
	Heap *heap = heap_of(handle);
	const Block *block = heap == nullptr ? nullptr : block_of(heap, memory);

	return block == nullptr ? static_cast<SIZE_T>(-1) : block->bytes;
}

void *_aligned_malloc(size_t bytes, size_t alignment)
{
	void *block = nullptr;
	int error;

	if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
		errno = EINVAL;
		return nullptr;
	}
	/* posix_memalign() wants a pointer's size at least. */
	if (alignment < sizeof(void *))
		alignment = sizeof(void *);
	error = posix_memalign(&block, alignment, bytes);
	if (error == 0)
		return block;
	errno = error;
	return nullptr;
}

void _aligned_free(void *block)
{
	free(block);
}

/* ---- pages ---- */

namespace
{

/* What VirtualAlloc() has reserved: mmap() does not remember it. */
struct Region {
	char *address;
	size_t bytes;
	Region *next;
};

pthread_mutex_t regions_lock = PTHREAD_MUTEX_INITIALIZER;
Region *regions;

size_t page_size()
{
	return static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

/* What mprotect() says for a PAGE_ value; -1: there is no such value. */
int rights_of(DWORD protection)
{
	switch (protection) {
	case PAGE_NOACCESS:
		return PROT_NONE;
	case PAGE_READONLY:
		return PROT_READ;
	case PAGE_READWRITE:
		return PROT_READ | PROT_WRITE;
	case PAGE_EXECUTE:
		return PROT_EXEC;
	case PAGE_EXECUTE_READ:
		return PROT_READ | PROT_EXEC;
	case PAGE_EXECUTE_READWRITE:
		return PROT_READ | PROT_WRITE | PROT_EXEC;
	default:
		return -1;
	}
}

/* The region that has all of these bytes; the lock is held. */
Region *region_of(const char *address, size_t bytes)
{
	for (Region *region = regions; region != nullptr; region = region->next) {
		const size_t offset = static_cast<size_t>(address - region->address);

		if (address >= region->address && offset < region->bytes &&
		    bytes <= region->bytes - offset)
			return region;
	}
	return nullptr;
}

void *reserve(char *address, size_t bytes, int rights)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	Region *region = static_cast<Region *>(malloc(sizeof(*region)));
	void *pages = MAP_FAILED;

	if (region != nullptr)
		pages = mmap(address, bytes, rights,
		             flags | (address == nullptr ? 0 : MAP_FIXED_NOREPLACE), -1, 0);
	if (pages == MAP_FAILED) {
		free(region);
		return winrt_null(address == nullptr ? ERROR_NOT_ENOUGH_MEMORY
		                                     : ERROR_INVALID_ADDRESS);
	}
	(void)pthread_mutex_lock(&regions_lock);
	*region = {static_cast<char *>(pages), bytes, regions};
	regions = region;
	(void)pthread_mutex_unlock(&regions_lock);
	return pages;
}

/* Give pages of a region other rights; empty: and zeroes instead of their contents. */
bool change(char *address, size_t bytes, int rights, bool empty)
{
	DWORD error = ERROR_SUCCESS;

	(void)pthread_mutex_lock(&regions_lock);
	if (region_of(address, bytes) == nullptr)
		error = ERROR_INVALID_ADDRESS;
	else if (mprotect(address, bytes, rights) != 0 ||
	         (empty && madvise(address, bytes, MADV_DONTNEED) != 0))
		error = ERROR_NOT_ENOUGH_MEMORY;
	(void)pthread_mutex_unlock(&regions_lock);
	return error == ERROR_SUCCESS || winrt_fail(error) != FALSE;
}

bool release(const char *address)
{
	Region **link = &regions;
	Region *region;

	(void)pthread_mutex_lock(&regions_lock);
	while (*link != nullptr && (*link)->address != address)
		link = &(*link)->next;
	region = *link;
	if (region != nullptr) {
		*link = region->next;
		(void)munmap(region->address, region->bytes);
	}
	(void)pthread_mutex_unlock(&regions_lock);
	free(region);
	return region != nullptr || winrt_fail(ERROR_INVALID_ADDRESS) != FALSE;
}

/* All pages that hold one of the bytes. */
void round_to_pages(char **address, size_t *bytes)
{
	const size_t page = page_size();
	const size_t excess = reinterpret_cast<uintptr_t>(*address) % page;

	*address -= excess;
	*bytes = (*bytes + excess + page - 1) / page * page;
}

} // namespace

LPVOID VirtualAlloc(LPVOID address, SIZE_T bytes, DWORD type, DWORD protection)
{
	const int rights = rights_of(protection);
	char *begin = static_cast<char *>(address);

	if (rights < 0 || bytes == 0 || type == 0 || (type & ~(MEM_COMMIT | MEM_RESERVE)) != 0)
		return winrt_null(ERROR_INVALID_PARAMETER);
	if (bytes > PTRDIFF_MAX - 2 * page_size())
		return winrt_null(ERROR_NOT_ENOUGH_MEMORY);
	round_to_pages(&begin, &bytes);
	if (address == nullptr || (type & MEM_RESERVE) != 0)
		return reserve(begin, bytes, (type & MEM_COMMIT) != 0 ? rights : PROT_NONE);
	return change(begin, bytes, rights, false) ? begin : nullptr;
}

BOOL VirtualFree(LPVOID address, SIZE_T bytes, DWORD type)
{
	char *begin = static_cast<char *>(address);

	if (address == nullptr || (type != MEM_RELEASE && type != MEM_DECOMMIT) ||
	    (type == MEM_RELEASE) != (bytes == 0) || bytes > PTRDIFF_MAX - 2 * page_size())
		return winrt_fail(ERROR_INVALID_PARAMETER);
	if (type == MEM_RELEASE)
		return release(begin) ? TRUE : FALSE;
	round_to_pages(&begin, &bytes);
	return change(begin, bytes, PROT_NONE, true) ? TRUE : FALSE;
}
