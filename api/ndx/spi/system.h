/* SPDX-License-Identifier: BSD-2-Clause */
/* Everything that is specific to Linux, behind names that another system could implement. */
#ifndef NDX_SPI_SYSTEM_H
#define NDX_SPI_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ndx/status.h>

#include <ndx/spi/shared.h>

NDXP_DECLS_BEGIN

/* Sleep while *word == value, at most until deadline_ns of ndxp_now_ns(); UINT64_MAX: no limit. May
 * return early. */
void ndxp_futex_wait(const uint32_t *word, uint32_t value, uint64_t deadline_ns);
/* Wake up to `count` sleepers. The memory may be freed already: `word` is not read. */
void ndxp_futex_wake(uint32_t *word, int count);

/* The monotonic clock, in nanoseconds. */
uint64_t ndxp_now_ns(void) NDXP_SHARED;

#define NDXP_NS_PER_MS UINT64_C(1000000)

/* The time on that clock `ms` milliseconds from now; UINT64_MAX for NDX_INFINITE. */
uint64_t ndxp_deadline(uint32_t ms) NDXP_SHARED;
/* The duration in milliseconds, rounded up; at most UINT32_MAX - 1. */
uint32_t ndxp_ms_of(uint64_t ns);
/* Milliseconds until a deadline, rounded up; 0 if the deadline has passed, NDX_INFINITE for
 * UINT64_MAX. */
uint32_t ndxp_ms_until(uint64_t deadline_ns) NDXP_SHARED;
/* The same for poll(2): -1 for UINT64_MAX; otherwise at most `most`. */
int ndxp_poll_ms_until(uint64_t deadline_ns, uint32_t most) NDXP_SHARED;

/* close(2); does nothing for -1. Keeps errno. */
void ndxp_fd_close(int fd) NDXP_SHARED;

/* Unpredictable bytes, for keys and cookies. */
enum ndx_status ndxp_random(void *out, size_t len) NDXP_SHARED;

/* Whether every user of this host has a distinct number here; false in a user namespace. */
bool ndxp_users_have_numbers(void);

/* Check that the whole buffer can be read (`write`: written) without a fault. 0, or an errno.
 * Changes no byte. */
int ndxp_memory_probe(void *buffer, size_t length, bool write);

/* The first descriptor of the process for which `match` returns true; -1 if there is none (errno is
 * 0) or if the descriptors cannot be listed (errno is set). Other threads may close the descriptor,
 * and reuse the number, at any time. */
int ndxp_fd_find(bool (*match)(int fd, const void *arg), const void *arg);

/* A flag with a descriptor (eventfd) that is readable while the flag is set. -1 on failure, errno
 * set. */
int ndxp_eventfd_create(void) NDXP_SHARED;
void ndxp_eventfd_set(int fd) NDXP_SHARED;
void ndxp_eventfd_clear(int fd) NDXP_SHARED;

/* A set of descriptors to wait for; the set is a descriptor itself. */
struct ndxp_poll_event {
	void *data;
	uint32_t events; /* EPOLLIN ... as poll(2) */
};

int ndxp_poll_create(void) NDXP_SHARED;
/* once: deliver one event, then none until ndxp_poll_rearm(). 0, or -1 with errno. */
int ndxp_poll_add(int pollfd, int fd, uint32_t events, bool once, void *data) NDXP_SHARED;
int ndxp_poll_rearm(int pollfd, int fd, uint32_t events, void *data);
void ndxp_poll_remove(int pollfd, int fd) NDXP_SHARED;
/* The number of events; 0 after a time-out (-1 ms: no limit). A signal does not end the wait. */
int ndxp_poll_wait(int pollfd, struct ndxp_poll_event *events, int max, int timeout_ms) NDXP_SHARED;

/* A descriptor, for the calling thread, that lists the content of such a set; the set may belong to
 * another library. -1 on failure, errno set. */
int ndxp_poll_look_open(int pollfd);
/* Call `each` for every descriptor in the set, with the inode of its file. False: the listing is
 * incomplete. */
bool ndxp_poll_look(int look, void (*each)(void *arg, int fd, uint64_t inode), void *arg);

NDXP_DECLS_END

#endif
