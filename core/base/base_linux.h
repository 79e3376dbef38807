/* SPDX-License-Identifier: BSD-2-Clause */
/* Everything that only Linux has, behind names that another system could fill. */
#ifndef BASE_LINUX_H
#define BASE_LINUX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ndx/status.h>

/* Sleep while *word == value, at most until deadline_ns of base_now_ns(); UINT64_MAX: no limit.
 * May return early. */
void base_futex_wait(const uint32_t *word, uint32_t value, uint64_t deadline_ns);
/* Wake up to `count` sleepers. The memory may be gone already: nothing is read through `word`. */
void base_futex_wake(uint32_t *word, int count);

/* Monotonic clock, nanoseconds. */
uint64_t base_now_ns(void);

/* That clock's value `ms` milliseconds from now; UINT64_MAX for NDX_INFINITE. */
uint64_t base_deadline(uint32_t ms);

/* close(2); harmless on -1. Keeps errno. */
void base_fd_close(int fd);

/* Unpredictable bytes, for keys and cookies. */
enum ndx_status base_random(void *out, size_t len);

/* Has every user of this host a number of its own here? Not in a user namespace. */
bool base_users_have_numbers(void);

/* Can all of it be read, and written if so asked, without a fault? 0, or the errno that says no.
 * Changes no byte. */
int base_memory_probe(void *buffer, size_t length, bool write);

/* The first descriptor of the process for which `match` is true; -1 if there is none (errno is 0)
 * or they cannot be listed (errno says why). Other threads may close it, and its number be given to
 * something else, at any time. */
int base_fd_find(bool (*match)(int fd, const void *arg), const void *arg);

/* A flag with a descriptor that is readable while it is up. -1 on failure, errno set. */
int base_flag_create(void);
void base_flag_raise(int fd);
void base_flag_lower(int fd);

/* A set of descriptors to wait for; itself a descriptor. */
struct base_poll_event {
	void *data;
	uint32_t events; /* EPOLLIN ... as poll(2) */
};

int base_poll_create(void);
/* once: deliver one event, then stay silent until base_poll_rearm(). 0, or -1 with errno. */
int base_poll_add(int pollfd, int fd, uint32_t events, bool once, void *data);
int base_poll_rearm(int pollfd, int fd, uint32_t events, void *data);
void base_poll_remove(int pollfd, int fd);
/* Number of events, 0 when time was over (-1 ms: no limit). Never fails on a signal. */
int base_poll_wait(int pollfd, struct base_poll_event *events, int max, int timeout_ms);

/* A descriptor to look into such a set by, also one of somebody else's; for the calling thread.
 * -1 on failure, errno set. */
int base_poll_look_open(int pollfd);
/* Each descriptor in the set, with the inode of its file. False: it cannot be read to the end. */
bool base_poll_look(int look, void (*each)(void *arg, int fd, uint64_t inode), void *arg);

#endif
