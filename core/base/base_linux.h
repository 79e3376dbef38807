/* SPDX-License-Identifier: BSD-2-Clause */
/* Everything that is specific to Linux, behind names that another system could implement. */
#ifndef BASE_LINUX_H
#define BASE_LINUX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ndx/status.h>

#include "base_private.h"

/* Sleep while *word == value, at most until deadline_ns of base_now_ns(); UINT64_MAX: no limit. May
 * return early. */
void base_futex_wait(const uint32_t *word, uint32_t value, uint64_t deadline_ns);
/* Wake up to `count` sleepers. The memory may be freed already: `word` is not read. */
void base_futex_wake(uint32_t *word, int count);

/* The monotonic clock, in nanoseconds. */
uint64_t base_now_ns(void) NDX_PRIVATE(base_now_ns);

#define BASE_NS_PER_MS UINT64_C(1000000)

/* The time on that clock `ms` milliseconds from now; UINT64_MAX for NDX_INFINITE. */
uint64_t base_deadline(uint32_t ms) NDX_PRIVATE(base_deadline);
/* The duration in milliseconds, rounded up; at most UINT32_MAX - 1. */
uint32_t base_ms_of(uint64_t ns);
/* Milliseconds until a deadline, rounded up; 0 if the deadline has passed, NDX_INFINITE for
 * UINT64_MAX. */
uint32_t base_ms_until(uint64_t deadline_ns) NDX_PRIVATE(base_ms_until);
/* The same for poll(2): -1 for UINT64_MAX; otherwise at most `most`. */
int base_poll_ms_until(uint64_t deadline_ns, uint32_t most) NDX_PRIVATE(base_poll_ms_until);

/* close(2); does nothing for -1. Keeps errno. */
void base_fd_close(int fd) NDX_PRIVATE(base_fd_close);

/* Unpredictable bytes, for keys and cookies. */
enum ndx_status base_random(void *out, size_t len) NDX_PRIVATE(base_random);

/* Whether every user of this host has a distinct number here; false in a user namespace. */
bool base_users_have_numbers(void);

/* Check that the whole buffer can be read (`write`: written) without a fault. 0, or an errno.
 * Changes no byte. */
int base_memory_probe(void *buffer, size_t length, bool write);

/* The first descriptor of the process for which `match` returns true; -1 if there is none (errno is
 * 0) or if the descriptors cannot be listed (errno is set). Other threads may close the descriptor,
 * and reuse the number, at any time. */
int base_fd_find(bool (*match)(int fd, const void *arg), const void *arg);

/* A flag with a descriptor (eventfd) that is readable while the flag is set. -1 on failure, errno
 * set. */
int base_eventfd_create(void) NDX_PRIVATE(base_eventfd_create);
void base_eventfd_set(int fd) NDX_PRIVATE(base_eventfd_set);
void base_eventfd_clear(int fd) NDX_PRIVATE(base_eventfd_clear);

/* A set of descriptors to wait for; the set is a descriptor itself. */
struct base_poll_event {
	void *data;
	uint32_t events; /* EPOLLIN ... as poll(2) */
};

int base_poll_create(void) NDX_PRIVATE(base_poll_create);
/* once: deliver one event, then none until base_poll_rearm(). 0, or -1 with errno. */
int base_poll_add(int pollfd, int fd, uint32_t events, bool once, void *data)
	NDX_PRIVATE(base_poll_add);
int base_poll_rearm(int pollfd, int fd, uint32_t events, void *data);
void base_poll_remove(int pollfd, int fd) NDX_PRIVATE(base_poll_remove);
/* The number of events; 0 after a time-out (-1 ms: no limit). A signal does not end the wait. */
int base_poll_wait(int pollfd, struct base_poll_event *events, int max, int timeout_ms)
	NDX_PRIVATE(base_poll_wait);

/* A descriptor, for the calling thread, that lists the content of such a set; the set may belong to
 * another library. -1 on failure, errno set. */
int base_poll_look_open(int pollfd);
/* Call `each` for every descriptor in the set, with the inode of its file. False: the listing is
 * incomplete. */
bool base_poll_look(int look, void (*each)(void *arg, int fd, uint64_t inode), void *arg);

#endif
