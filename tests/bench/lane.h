/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lane is a connection between two ends of this process, over NDX or straight over what is below:
 * libfabric or ibverbs; or beside it, over plain sockets or UCX. All lanes do the same: the traffic
 * (traffic.c) is written once, and sees only what is declared here.
 */
#ifndef BENCH_LANE_H
#define BENCH_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define LANE_WINDOW 64u /* sends that may be under way on an end */
#define LANE_BATCH 16u  /* completions taken at once */

struct end;

/* Whatever fails ends the program with a message: there is nothing to measure then. */
struct end_ops {
	/* Post one receive. There is always room: the traffic posts as many as were taken. May
	 * count a message that had come before. */
	void (*receive)(struct end *end);
	/* Post one message; false: not now, poll first. */
	bool (*send)(struct end *end);
	/* Take what is there; counts in `sent` and `received`. */
	void (*poll)(struct end *end);
	/* Sleep until there may be something to take; may count, too. */
	void (*wait)(struct end *end);
};

struct end {
	const struct end_ops *ops;
	uint64_t sent; /* sends that have ended */
	uint64_t received;
};

struct lane {
	const char *name;
	struct end *ends[2];
	void (*close)(struct lane *lane);
};

struct lane_attr {
	const char *uris[2]; /* of both ends; may be the same */
	uint32_t size;       /* of every message, bytes */
	uint32_t depth;      /* receives posted on each end */
	bool write;          /* a message is a write into memory at which the receiver looks */
	bool wait;           /* the traffic sleeps; only UCX has to know before */
};

enum lane_stack { LANE_NOTHING, LANE_OFI, LANE_VERBS };

/* What adapters stand on. */
struct lane_below {
	enum lane_stack stack;
	char devices[2][64];             /* by their names there */
	struct sockaddr_storage address; /* the first of the second adapter */
	socklen_t len;
};

void lane_describe(const char *const uris[2], struct lane_below *below);

/* A write's number is in its last bytes. */
#define LANE_WRITE_LEAST sizeof(uint64_t)

struct lane *lane_open_ndx(const struct lane_attr *attr);

/* Is there a libfabric to compare with? */
bool lane_has_raw(void);
/* ... ibverbs? */
bool lane_has_verbs(void);
/* The same traffic straight on ibverbs, every request signalled. */
struct lane *lane_open_verbs(const struct lane_attr *attr, const struct lane_below *below);
/*
 * The same traffic straight on libfabric. same: with what NDX promises: a send ends when the peer
 * has the message (FI_DELIVERY_COMPLETE), and no message is sent that finds no receive (credits).
 * Otherwise as libfabric does it by default.
 */
struct lane *lane_open_raw(const struct lane_attr *attr, const char *device,
                           const struct sockaddr *address, socklen_t len, bool same);

/*
 * Lanes beside those above, for programs that could do with fewer promises. Both know messages
 * only, no writes.
 */
enum lane_beside { LANE_TCP, LANE_UCX, LANE_BESIDES };

/* Is there a UCX? */
bool lane_has_ucx(void);
/* Two sockets; a send ends when the kernel has taken its bytes. Messages are not empty. */
struct lane *lane_open_tcp(const struct lane_attr *attr, const struct sockaddr *address,
                           socklen_t len);
/* UCX's TCP over the interface that has the address; a send ends when UCX says so. */
struct lane *lane_open_ucx(const struct lane_attr *attr, const struct sockaddr *address);

/*
 * Memory for messages, written once; free() frees it. In huge pages, so that no lane has better
 * pages than another.
 */
char *lane_memory(size_t bytes);

/*
 * The kernel copies 1 MiB up to 1.8 times as fast to one address as to another 8 bytes further on,
 * and which one is fast depends on the headers, which differ from lane to lane. So the messages of
 * every lane begin at each multiple of 8 of a cache line in turn.
 */
#define LANE_LINE 64u

static inline char *lane_turn(char *first, unsigned *turn)
{
	*turn = (*turn + 8) % LANE_LINE;
	return first + *turn;
}

/* "ndx-perf-compare: what: why", exit. */
_Noreturn void lane_die(const char *what, const char *why);

#endif
