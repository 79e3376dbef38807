/* SPDX-License-Identifier: BSD-2-Clause */
#include <ndx/spi/system.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <ndx/spi/lock.h>

#define NS_PER_S 1000000000ull

static long futex(const uint32_t *word, int op, uint32_t value, const struct timespec *until)
{
	return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, until, NULL,
	               FUTEX_BITSET_MATCH_ANY);
}

void ndxp_futex_wait(const uint32_t *word, uint32_t value, uint64_t deadline_ns)
{
	struct timespec until = {(time_t)(deadline_ns / NS_PER_S), (long)(deadline_ns % NS_PER_S)};

	(void)futex(word, FUTEX_WAIT_BITSET, value, deadline_ns == UINT64_MAX ? NULL : &until);
}

void ndxp_futex_wake(uint32_t *word, int count)
{
	(void)futex(word, FUTEX_WAKE, (uint32_t)count, NULL);
}

void ndxp_lock_slow(struct ndxp_lock *lock)
{
	/* Critical sections are short: most likely the holder is about to release the lock. */
	for (int i = 0; i < 100; i++) {
		if (__atomic_load_n(&lock->word, __ATOMIC_RELAXED) == 0 && ndxp_lock_try(lock))
			return;
	}
	while (__atomic_exchange_n(&lock->word, 2, __ATOMIC_ACQUIRE) != 0)
		ndxp_futex_wait(&lock->word, 2, UINT64_MAX);
}

void ndxp_lock_wake(struct ndxp_lock *lock)
{
	ndxp_futex_wake(&lock->word, 1);
}

uint64_t ndxp_now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t ndxp_deadline(uint32_t ms)
{
	return ms == UINT32_MAX ? UINT64_MAX : ndxp_now_ns() + ms * NDXP_NS_PER_MS;
}

uint32_t ndxp_ms_of(uint64_t ns)
{
	const uint64_t ms = ns / NDXP_NS_PER_MS + (ns % NDXP_NS_PER_MS != 0);

	return ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX - 1;
}

uint32_t ndxp_ms_until(uint64_t deadline_ns)
{
	const uint64_t now = ndxp_now_ns();

	if (deadline_ns == UINT64_MAX)
		return UINT32_MAX;
	return deadline_ns > now ? ndxp_ms_of(deadline_ns - now) : 0;
}

int ndxp_poll_ms_until(uint64_t deadline_ns, uint32_t most)
{
	const uint32_t ms = ndxp_ms_until(deadline_ns);

	if (ms == UINT32_MAX)
		return -1;
	return (int)(ms < most ? ms : most);
}

void ndxp_fd_close(int fd)
{
	int saved_errno = errno;

	if (fd >= 0)
		(void)close(fd);
	errno = saved_errno;
}

enum ndx_status ndxp_random(void *out, size_t len)
{
	unsigned char *p = out;

	while (len > 0) {
		ssize_t n = getrandom(p, len, 0);

		if (n < 0 && errno != EINTR)
			return NDX_E_INSUFFICIENT_RESOURCES;
		if (n > 0) {
			p += n;
			len -= (size_t)n;
		}
	}
	return NDX_OK;
}

bool ndxp_users_have_numbers(void)
{
	const int fd = open("/proc/thread-self/uid_map", O_RDONLY | O_CLOEXEC);
	unsigned long map[3]; /* first number inside, first number outside, count */
	char text[128];
	char *at = text;
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	ndxp_fd_close(fd);
	text[n > 0 ? n : 0] = '\0';
	for (size_t i = 0; i < 3; i++)
		map[i] = strtoul(at, &at, 10);
	return map[0] == 0 && map[1] == 0 && map[2] == UINT32_MAX;
}

/*
 * Fault the pages in, as a device driver does to pin memory: this checks mapping and rights in one
 * call and changes no byte. (Reading and writing through a pipe, or process_vm_writev(), would
 * overwrite what other threads write at the same time, and may be forbidden; /proc/self/maps takes
 * milliseconds to read.) Before Linux 5.14 the probe only finds memory that is not mapped.
 */
int ndxp_memory_probe(void *buffer, size_t length, bool write)
{
	int advice = write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t before = (uintptr_t)buffer % page;
	char *start = (char *)buffer - before;
	size_t room = UINTPTR_MAX - (uintptr_t)buffer;

	if (room < page || length > room - page)
		return EFAULT;
	length = (before + length + page - 1) / page * page;
	/* A call for zero pages shows whether the kernel knows the advice. */
	if (madvise(start, 0, advice) == 0)
		return madvise(start, length, advice) == 0 ? 0 : errno;
	return msync(start, length, MS_ASYNC) == 0 || errno != ENOMEM ? 0 : ENOMEM;
}

int ndxp_fd_find(bool (*match)(int fd, const void *arg), const void *arg)
{
	DIR *all = opendir("/proc/self/fd");
	struct dirent *entry;
	int found = -1;

	if (all == NULL)
		return -1;
	while (found < 0 && (entry = readdir(all)) != NULL) {
		char *end_of;
		const long fd = strtol(entry->d_name, &end_of, 10);

		if (end_of != entry->d_name && *end_of == '\0' && match((int)fd, arg))
			found = (int)fd;
	}
	(void)closedir(all);
	errno = 0;
	return found;
}

int ndxp_eventfd_create(void)
{
	return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

void ndxp_eventfd_set(int fd)
{
	uint64_t one = 1;
	ssize_t n = write(fd, &one, sizeof(one)); /* EAGAIN: set already */

	(void)n;
}

void ndxp_eventfd_clear(int fd)
{
	uint64_t count;
	ssize_t n = read(fd, &count, sizeof(count)); /* EAGAIN: clear already */

	(void)n;
}

int ndxp_poll_create(void)
{
	return epoll_create1(EPOLL_CLOEXEC);
}

int ndxp_poll_add(int pollfd, int fd, uint32_t events, bool once, void *data)
{
	struct epoll_event ev = {.events = events | (once ? (uint32_t)EPOLLONESHOT : 0u),
	                         .data.ptr = data};

	return epoll_ctl(pollfd, EPOLL_CTL_ADD, fd, &ev);
}

int ndxp_poll_rearm(int pollfd, int fd, uint32_t events, void *data)
{
	struct epoll_event ev = {.events = events | (uint32_t)EPOLLONESHOT, .data.ptr = data};

	return epoll_ctl(pollfd, EPOLL_CTL_MOD, fd, &ev);
}

void ndxp_poll_remove(int pollfd, int fd)
{
	(void)epoll_ctl(pollfd, EPOLL_CTL_DEL, fd, NULL);
}

int ndxp_poll_wait(int pollfd, struct ndxp_poll_event *events, int max, int timeout_ms)
{
	struct epoll_event got[16];
	int n;

	if (max > 16)
		max = 16;
	n = epoll_wait(pollfd, got, max, timeout_ms);
	for (int i = 0; i < n; i++) {
		events[i].data = got[i].data.ptr;
		events[i].events = got[i].events;
	}
	return n < 0 ? 0 : n;
}

int ndxp_poll_look_open(int pollfd)
{
	char path[64];

	/* Not /proc/self, which is unusable after the process's first thread has ended. */
	(void)snprintf(path, sizeof(path), "/proc/thread-self/fdinfo/%d", pollfd);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* The kernel prints a line for each descriptor: "tfd:  19 events: 19 data: 7ff8740017e0  pos:0
 * ino:e9961 sdev:9". */
static void look_at_line(char *line, void (*each)(void *arg, int fd, uint64_t inode), void *arg)
{
	const char *inode = strstr(line, "ino:");

	if (strncmp(line, "tfd:", 4) == 0 && inode != NULL)
		each(arg, (int)strtol(line + 4, NULL, 10), strtoull(inode + 4, NULL, 16));
}

bool ndxp_poll_look(int look, void (*each)(void *arg, int fd, uint64_t inode), void *arg)
{
	char text[4096];
	size_t held = 0; /* bytes of an incomplete line at the start of the buffer */
	off_t at = 0;
	ssize_t n;

	while ((n = pread(look, text + held, sizeof(text) - 1 - held, at)) > 0) {
		char *line = text;
		char *end;

		at += n;
		held += (size_t)n;
		text[held] = '\0';
		for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
			*end = '\0';
			look_at_line(line, each, arg);
		}
		held -= (size_t)(line - text);
		memmove(text, line, held);
		if (held == sizeof(text) - 1)
			return false;
	}
	return n == 0;
}
