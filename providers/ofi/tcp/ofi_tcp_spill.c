/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Room for what a receive cannot take. When a message is longer than its receive, libfabric to 1.18
 * shuts the connection down before NDX can tell the peer why, and later versions drop the message's
 * data. So every receive that NDX gives to libfabric ends in this room: the message arrives, NDX
 * finds its length, and the connection can still carry the reason.
 *
 * The room is as long as the longest message, but has little memory: the same pages are mapped
 * again and again. All connections of the process write there, and nothing reads.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <ndx/spi/lock.h>
#include <ndx/spi/log.h>
#include "ofi_tcp.h"

#define ROOM ((size_t)OFI_MAX_TRANSFER)
#define CHUNK ((size_t)2 << 20) /* 512 mappings of this size; the usual limit is 65,530 */

_Static_assert(OFI_MAX_TRANSFER % CHUNK == 0, "the chunks fill the room");

/* 0, or an errno. */
static int map_chunks(int fd, char *room)
{
	for (size_t at = 0; at < ROOM; at += CHUNK) {
		if (mmap(room + at, CHUNK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
		    MAP_FAILED)
			return errno;
	}
	return 0;
}

/* 0, or an errno. The pages are allocated here: without memory a later write would be a SIGBUS. */
static int fill_room(char *room)
{
	const int fd = memfd_create("ndx-spill", MFD_CLOEXEC);
	int err;

	if (fd < 0)
		return errno;
	err = posix_fallocate(fd, 0, (off_t)CHUNK);
	if (err == 0)
		err = map_chunks(fd, room);
	(void)close(fd);
	return err;
}

/* NULL: there is no room. */
static void *make_room(void)
{
	char *room =
		mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int err = errno;

	if (room != MAP_FAILED) {
		err = fill_room(room);
		if (err == 0) {
			(void)madvise(room, ROOM, MADV_DONTDUMP);
			return room;
		}
		(void)munmap(room, ROOM);
	}
	log_warn(err, "ofi:tcp: no address space for messages that are too long for their receive: "
	              "their senders will not get the reason");
	return NULL;
}

struct iovec ofi_tcp_spill(void)
{
	static struct ndxp_lock lock;
	static void *room; /* until the process ends */
	struct iovec spill = {0};

	ndxp_lock_acquire(&lock);
	if (room == NULL)
		room = make_room();
	if (room != NULL)
		spill = (struct iovec){.iov_base = room, .iov_len = ROOM};
	ndxp_lock_release(&lock);
	return spill;
}
