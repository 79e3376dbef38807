/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Access to one register with SLAC's register protocol, version 3 (SRPv3): words of 32 bits,
 * little-endian.
 *
 *   request   version and opcode, id, address (64 bits), bytes - 1; for a write also the value
 *   response  the same five words, the value, and a status word, 0 for success
 *
 * No state, no I/O. In a stream the messages follow each other; their length is known.
 */
#ifndef SURF_SRP_H
#define SURF_SRP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SRP_READ_BYTES 20u
#define SRP_WRITE_BYTES 24u
#define SRP_RESPONSE_BYTES 28u

struct srp_request {
	bool write;
	uint32_t id;
	uint32_t address;
	uint32_t value; /* for a write */
};

/* How a response relates to a request. */
enum srp_verdict {
	SRP_ANSWER,  /* to this request; success */
	SRP_REFUSED, /* to this request; a failure, the next request may succeed */
	SRP_OTHER,   /* to another request, which was given up */
	SRP_WRONG,   /* to none of our requests: the start of the next response is unknown */
};

/* Returns the number of bytes written. */
size_t srp_request_write(uint8_t bytes[SRP_WRITE_BYTES], const struct srp_request *request);

/* Length of the request that begins with these SRP_READ_BYTES; 0: not a valid request. */
size_t srp_request_length(const uint8_t bytes[SRP_READ_BYTES]);
/* Parse a complete request; the caller has checked its length. */
void srp_request_parse(const uint8_t *bytes, struct srp_request *out);

/* `status` is the last word: 0, or the error of the device's own bus. */
void srp_response_write(uint8_t bytes[SRP_RESPONSE_BYTES], const struct srp_request *request,
                        uint32_t value, uint32_t status);

/* SRP_REFUSED, SRP_WRONG: *why has the details. *value is untouched unless SRP_ANSWER. */
enum srp_verdict srp_response_parse(const uint8_t bytes[SRP_RESPONSE_BYTES],
                                    const struct srp_request *request, uint32_t *value,
                                    const char **why);

#endif
