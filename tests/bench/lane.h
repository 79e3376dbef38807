/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lane is a connection between two ends of this process, over NDX or straight over what is below:
 * libfabric or ibverbs. All lanes do the same: the traffic (traffic.c) is written once, and sees
 * only what is declared here.
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
	/* Post one receive. There is always room: the traffic posts as many as were taken. */
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

/* "ndx-perf: what: why", exit. */
_Noreturn void lane_die(const char *what, const char *why);

#endif
