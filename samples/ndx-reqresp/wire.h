/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages of ndx-reqresp. Every message has a header of fixed-width big-endian fields, and a
 * body of the same size both ways. The body of a request is a pattern made from seed and sequence
 * number. The body of the response is that of the request with every bit inverted, so only a peer
 * that has read the request can send it.
 */
#ifndef WIRE_H
#define WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Bytes of a header, and so the smallest message. */
#define WIRE_HEADER 40u

/** Private data that client and server exchange while connecting. */
#define WIRE_GREETING 12u

/** Write the request number `sequence` to `message`. */
void wire_make_request(uint8_t *message, uint32_t size, uint64_t seed, uint64_t sequence);

/** What is wrong with a request of `size` bytes; NULL if it is valid. */
const char *wire_check_request(const uint8_t *message, uint32_t size);

/** Write the response to a request that was checked. */
void wire_make_response(uint8_t *response, const uint8_t *request, uint32_t size);

/** What is wrong with the response of `got` bytes to such a request; NULL if it is valid. */
const char *wire_check_response(const uint8_t *message, uint32_t got, uint32_t size, uint64_t seed,
                                uint64_t sequence);

/** Write the size of messages that this side wants (client) or allows (server). */
void wire_make_greeting(uint8_t greeting[WIRE_GREETING], uint32_t size);

/** Parse a greeting; false if the peer is not ndx-reqresp or has another version. */
bool wire_read_greeting(const uint8_t *greeting, size_t length, uint32_t *size);

#endif
