/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages of ndx-reqresp. Every message has a header of fixed-width big-endian fields and a
 * body of the same size both ways. A request's body is a pattern made from seed and sequence
 * number; a response's body is the request's with every bit inverted, so it can only come from
 * somebody who read the request.
 */
#ifndef WIRE_H
#define WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Bytes of a header, and thus the smallest message. */
#define WIRE_HEADER 40u

/** What client and server tell each other while connecting, as private data. */
#define WIRE_GREETING 12u

/** Make the request number `sequence` in `message`. */
void wire_make_request(uint8_t *message, uint32_t size, uint64_t seed, uint64_t sequence);

/** What is wrong with a request of `size` bytes; NULL if nothing is. */
const char *wire_check_request(const uint8_t *message, uint32_t size);

/** Make the response to a request that was checked. */
void wire_make_response(uint8_t *response, const uint8_t *request, uint32_t size);

/** What is wrong with the response of `got` bytes to such a request; NULL if nothing is. */
const char *wire_check_response(const uint8_t *message, uint32_t got, uint32_t size, uint64_t seed,
                                uint64_t sequence);

/** The size of messages that one side wants (client) or allows (server). */
void wire_make_greeting(uint8_t greeting[WIRE_GREETING], uint32_t size);

/** Read a greeting; false if the peer is not ndx-reqresp or of another version. */
bool wire_read_greeting(const uint8_t *greeting, size_t length, uint32_t *size);

#endif
