/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One register over SLAC's register protocol, version 3 (SRPv3): words of 32 bits, little-endian.
 *
 * request   version and opcode, id, address (64 bits), bytes - 1; a write's value behind them
 * response  the same five words, the value, and a word that is 0 if all went well
 *
 * No state, no I/O. Over a stream the messages follow each other: their lengths are known.
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
	uint32_t value; /* a write's */
};

/* What a response is to a request. */
enum srp_verdict {
	SRP_ANSWER,  /* of this request, and all went well */
	SRP_REFUSED, /* of this request, and it tells of a failure; the next one may go well */
	SRP_OTHER,   /* of another request: one that was given up */
	SRP_WRONG,   /* no answer to any request of ours: nobody knows where the next one begins */
};

/* Returns how many bytes were written. */
size_t srp_request_write(uint8_t bytes[SRP_WRITE_BYTES], const struct srp_request *request);

/* How many bytes a request has whose first SRP_READ_BYTES are these; 0: it is none of ours. */
size_t srp_request_length(const uint8_t bytes[SRP_READ_BYTES]);
/* The whole of it; its length was looked at. */
void srp_request_parse(const uint8_t *bytes, struct srp_request *out);

/* `status` is the last word: 0, or what went wrong on the device's own bus. */
void srp_response_write(uint8_t bytes[SRP_RESPONSE_BYTES], const struct srp_request *request,
                        uint32_t value, uint32_t status);

/* SRP_REFUSED, SRP_WRONG: *why says in what; *value is untouched unless SRP_ANSWER. */
enum srp_verdict srp_response_parse(const uint8_t bytes[SRP_RESPONSE_BYTES],
                                    const struct srp_request *request, uint32_t *value,
                                    const char **why);

#endif
