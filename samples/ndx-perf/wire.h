/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What ndx-perf's client and server say to each other. All fields are fixed-width, big-endian.
 *
 * Each connection begins with a hello in its private data. The first connection of a client is its
 * control connection, which carries the frames below; those of a test are data connections, which
 * carry nothing but what is measured.
 *
 *   client: TEST          the parameters
 *   server: READY         with its memory, or REFUSED with a reason
 *   client: connects the data connections, then GO
 *   server: GOING         it is ready to answer
 *   client: STOP          its own requests have ended
 *   server: RESULT        its figures
 */
#ifndef PERF_WIRE_H
#define PERF_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_VERSION 1u
#define WIRE_HELLO 24u   /* bytes; fits into the private data of every provider */
#define WIRE_FRAME 256u  /* the longest frame */
#define WIRE_REASON 200u /* room for a reason, with its null byte */

enum perf_op { PERF_SEND, PERF_WRITE, PERF_WRITE_IMM, PERF_READ, PERF_OPS };
enum perf_kind { PERF_LATENCY, PERF_BANDWIDTH, PERF_KINDS };

/** What is measured. */
struct perf_test {
	enum perf_op op;
	enum perf_kind kind;
	bool both;        /**< the server sends, too */
	bool wait;        /**< sleep until there is a result */
	uint32_t size;    /**< of a message, in bytes */
	uint32_t depth;   /**< requests in flight, for each queue pair */
	uint32_t qps;     /**< queue pairs */
	uint32_t threads; /**< at each end */
	uint32_t seconds; /**< after which the client stops, rounded up */
};

/** Memory that the peer reads and writes. */
struct perf_target {
	uint64_t address;
	uint32_t token;
};

enum wire_hello { WIRE_CONTROL = 1, WIRE_DATA = 2 };

struct wire_hello_data {
	enum wire_hello kind;
	uint64_t session; /**< of a data connection: as the server said in READY */
	uint32_t index;   /**< ... which of the queue pairs it is */
};

enum wire_type {
	WIRE_TEST = 1,
	WIRE_READY,
	WIRE_REFUSED,
	WIRE_GO,
	WIRE_GOING,
	WIRE_STOP,
	WIRE_RESULT,
};

/** One frame; which members count depends on the type. */
struct wire_frame {
	enum wire_type type;
	struct perf_test test;     /**< TEST */
	struct perf_target target; /**< TEST, READY */
	uint64_t session;          /**< READY */
	char reason[WIRE_REASON];  /**< REFUSED; printable */
	uint64_t sent, received;   /**< RESULT: messages */
	uint64_t elapsed_ns;       /**< RESULT */
	uint64_t cpu_ns;           /**< RESULT: processor time of the server */
};

void wire_put_hello(uint8_t bytes[WIRE_HELLO], const struct wire_hello_data *hello);

/** What is wrong with a hello of `length` bytes; NULL if it is valid. Longer is legal: padding. */
const char *wire_get_hello(const uint8_t *bytes, size_t length, struct wire_hello_data *hello);

/** Returns the length of the frame. */
size_t wire_put_frame(uint8_t bytes[WIRE_FRAME], const struct wire_frame *frame);

/** False: not a frame of this version, or of another length than its type has. */
bool wire_get_frame(const uint8_t *bytes, size_t length, struct wire_frame *frame);

/** Copy text from a peer; what is not printable becomes '?'. */
void wire_copy_text(char *to, size_t room, const uint8_t *from, size_t length);

#endif
