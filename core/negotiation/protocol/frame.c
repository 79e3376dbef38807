/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames between two sessions: parse, write. */
#include "frame.h"

#include <string.h>

#include <ndx/spi/byteorder.h>
#include <ndx/spi/provider.h>

bool frame_name_valid(const char *name)
{
	size_t i;

	for (i = 0; name[i] != '\0'; i++) {
		const char c = name[i];
		const bool letter = c >= 'a' && c <= 'z';
		const bool other = (c >= '0' && c <= '9') || c == '-' || c == '_';

		if (i >= NDX_PLUGIN_NAME_MAX || !(letter || (other && i > 0)))
			return false;
	}
	return i > 0;
}

const char *frame_type_name(enum frame_type type)
{
	static const char *const names[] = {
		[FRAME_HELLO] = "hello",     [FRAME_WELCOME] = "welcome",
		[FRAME_DATA] = "data",       [FRAME_VALIDATE] = "validate",
		[FRAME_ERROR] = "error",     [FRAME_SESSION_END] = "session end",
		[FRAME_GOODBYE] = "goodbye", [FRAME_ALIVE] = "alive",
		[FRAME_PROOF] = "proof",     [FRAME_ADD] = "add",
		[FRAME_ABANDON] = "abandon", [FRAME_REMOVE] = "remove",
	};
	const size_t i = (size_t)type;

	return i < sizeof(names) / sizeof(names[0]) && names[i] != NULL ? names[i] : "?";
}

const char *frame_stage_name(enum ndx_stage stage)
{
	static const char *const names[] = {"info", "validate", "ready", "done"};
	const size_t i = (size_t)stage;

	return i < sizeof(names) / sizeof(names[0]) ? names[i] : "?";
}

/* Whether a type may have the number of a queue pair. */
static bool may_be_numbered(uint8_t type)
{
	return type == FRAME_HELLO || type == FRAME_DATA || type == FRAME_VALIDATE ||
	       type == FRAME_ERROR || type == FRAME_GOODBYE || type == FRAME_ALIVE ||
	       type == FRAME_PROOF;
}

/* Whether a type may have these flags and this stage. */
static bool fits(uint8_t type, uint8_t stage, uint8_t flags, const char **why)
{
	static const uint8_t allowed[] = {
		[FRAME_HELLO] = FRAME_RESUMED | FRAME_REPLAYS,
		[FRAME_WELCOME] = FRAME_RESUMED | FRAME_REPLAYS,
		[FRAME_DATA] = FRAME_COMPLETED,
		[FRAME_VALIDATE] = FRAME_PROVES | FRAME_BOUND,
		[FRAME_GOODBYE] = FRAME_ABORTED,
		[FRAME_PROOF] = FRAME_UNCONNECTED,
		[FRAME_REMOVE] = 0,
	};

	if (type < FRAME_HELLO || type > FRAME_REMOVE)
		*why = "unknown type of frame";
	else if (stage > NDX_STAGE_DONE)
		*why = "unknown stage";
	else if ((flags & ~allowed[type]) != 0)
		*why = "unknown flag";
	else
		return true;
	return false;
}

static const char *unknown_version(uint8_t version)
{
	static const char *const texts[] = {
		"version 0 of the protocol; versions 1 and 2 are known here",
		NULL,
		NULL,
		"version 3 of the protocol; versions 1 and 2 are known here",
		"version 4 of the protocol; versions 1 and 2 are known here",
	};
	const size_t i = version;

	return i < sizeof(texts) / sizeof(texts[0])
	               ? texts[i]
	               : "version 5 or later of the protocol; versions 1 and 2 are known here";
}

/* Bytes 12 to 15. */
static bool take_number(const uint8_t *bytes, struct frame *frame, const char **why)
{
	const uint16_t number = ndxp_get_be16(bytes + 12);

	frame->numbered = bytes[4] == FRAME_VERSION_NUMBERED;
	frame->queue_pair = number;
	if (ndxp_get_be16(bytes + 14) != 0 || (number != 0 && !frame->numbered))
		*why = "reserved bytes are not zero";
	else if (frame->numbered && !may_be_numbered(bytes[5]))
		*why = "a type of frame that is of no queue pair has the number of one";
	else if (number != 0 && bytes[5] == FRAME_HELLO)
		*why = "a hello with the number of a queue pair";
	else
		return true;
	return false;
}

enum frame_verdict frame_parse(const uint8_t *bytes, size_t length, uint32_t most,
                               struct frame *frame, size_t *used, const char **why)
{
	uint8_t magic[4];
	uint32_t payload;

	/* Check the first bytes as they arrive: a foreign protocol differs in the first byte. */
	ndxp_put_be32(magic, FRAME_MAGIC);
	if (memcmp(bytes, magic, length < sizeof(magic) ? length : sizeof(magic)) != 0) {
		*why = "not a frame: the peer speaks another protocol";
		return FRAME_BAD;
	}
	if (length > 4 && bytes[4] != FRAME_VERSION && bytes[4] != FRAME_VERSION_NUMBERED) {
		*why = unknown_version(bytes[4]);
		return FRAME_BAD;
	}
	*used = FRAME_HEADER;
	if (length < FRAME_HEADER)
		return FRAME_MORE;
	if (!fits(bytes[5], bytes[6], bytes[7], why))
		return FRAME_BAD;
	payload = ndxp_get_be32(bytes + 16);
	if (!take_number(bytes, frame, why))
		return FRAME_BAD;
	if (payload > most || payload > FRAME_PAYLOAD_MAX) {
		*why = "payload longer than the limit";
		return FRAME_BAD;
	}
	*used = FRAME_HEADER + (size_t)payload;
	if (length < *used)
		return FRAME_MORE;
	frame->type = (enum frame_type)bytes[5];
	frame->stage = (enum ndx_stage)bytes[6];
	frame->flags = bytes[7];
	frame->round = ndxp_get_be32(bytes + 8);
	frame->payload = bytes + FRAME_HEADER;
	frame->length = payload;
	return FRAME_WHOLE;
}

void frame_write_header(uint8_t out[FRAME_HEADER], const struct frame *frame)
{
	ndxp_put_be32(out, FRAME_MAGIC);
	out[4] = frame->numbered ? FRAME_VERSION_NUMBERED : FRAME_VERSION;
	out[5] = (uint8_t)frame->type;
	out[6] = (uint8_t)frame->stage;
	out[7] = frame->flags;
	ndxp_put_be32(out + 8, frame->round);
	ndxp_put_be16(out + 12, frame->numbered ? frame->queue_pair : 0);
	ndxp_put_be16(out + 14, 0);
	ndxp_put_be32(out + 16, frame->length);
}

/* Parse a name in a field of fixed size: NUL-terminated within the field, the rest zero. */
static bool take_name(const uint8_t *field, char out[NDX_PLUGIN_NAME_MAX + 1])
{
	size_t length;

	memcpy(out, field, NDX_PLUGIN_NAME_MAX + 1);
	length = strnlen(out, NDX_PLUGIN_NAME_MAX + 1);
	if (length > NDX_PLUGIN_NAME_MAX || !frame_name_valid(out))
		return false;
	for (size_t i = length; i <= NDX_PLUGIN_NAME_MAX; i++)
		if (out[i] != '\0')
			return false;
	return true;
}

static bool has_length(const struct frame *f, uint32_t length, const char **why)
{
	if (f->length == length)
		return true;
	*why = "payload of the wrong length";
	return false;
}

bool frame_parse_hello(const struct frame *f, struct frame_hello *out, const char **why)
{
	const uint8_t *p = f->payload;

	if (!has_length(f, f->numbered ? FRAME_HELLO_SIZE_MAX : FRAME_HELLO_SIZE, why))
		return false;
	memcpy(out->session, p, 16);
	out->max_message = ndxp_get_be32(p + 16);
	out->queue_pairs = f->numbered ? ndxp_get_be32(p + FRAME_HELLO_SIZE) : 1;
	if (f->numbered && (out->queue_pairs < 2 || out->queue_pairs > FRAME_QUEUE_PAIRS_MAX)) {
		*why = "a number of queue pairs that is not 2 to 1024";
		return false;
	}
	if (take_name(p + 20, out->plugin) &&
	    take_name(p + 20 + NDX_PLUGIN_NAME_MAX + 1, out->variant))
		return true;
	*why = "malformed name of a plugin or variant";
	return false;
}

bool frame_parse_welcome(const struct frame *f, struct frame_welcome *out, const char **why)
{
	if (!has_length(f, FRAME_WELCOME_SIZE, why))
		return false;
	out->max_message = ndxp_get_be32(f->payload);
	out->stage_timeout_ms = ndxp_get_be32(f->payload + 4);
	out->session_timeout_ms = ndxp_get_be32(f->payload + 8);
	return true;
}

bool frame_parse_error(const struct frame *f, struct frame_error *out, const char **why)
{
	uint32_t length;

	if (f->length < 8 || f->length > FRAME_ERROR_SIZE_MAX) {
		*why = "payload of the wrong length";
		return false;
	}
	length = f->length - 8;
	out->layer = f->payload[0];
	out->plugin_error = f->payload[1];
	out->status = (int32_t)ndxp_get_be32(f->payload + 4);
	for (uint32_t i = 0; i < length; i++) {
		const uint8_t c = f->payload[8 + i];

		/* Replace other bytes: the text goes to logs and terminals. */
		if (c >= 0x20 && c < 0x7f)
			memcpy(&out->text[i], &c, 1);
		else
			out->text[i] = '?';
	}
	out->text[length] = '\0';
	return true;
}

bool frame_parse_validate(const struct frame *f, struct frame_validate *out, const char **why)
{
	const uint32_t mac = (f->flags & FRAME_BOUND) != 0 ? FRAME_MAC_SIZE : 0;

	if (!has_length(f, FRAME_VALIDATE_SIZE + mac, why))
		return false;
	out->agreed.kind = ndxp_get_be32(f->payload);
	out->agreed.mtu = ndxp_get_be32(f->payload + 4);
	out->agreed.client_reads = ndxp_get_be32(f->payload + 8);
	out->agreed.server_reads = ndxp_get_be32(f->payload + 12);
	memcpy(out->own, f->payload + 16, sizeof(out->own));
	memcpy(out->peer, f->payload + 32, sizeof(out->peer));
	return true;
}

bool frame_parse_proof(const struct frame *f, struct frame_proof *out, const char **why)
{
	if (!has_length(f, FRAME_PROOF_SIZE, why))
		return false;
	*why = "a proof of the path with unknown values";
	if (f->payload[0] > NDX_PROVED_WHOLE || f->payload[1] > NDX_PROVED_REFUSED ||
	    f->payload[2] > 1 || f->payload[3] != 0)
		return false;
	out->written = f->payload[0];
	out->seen = f->payload[1];
	out->denied = f->payload[2] != 0;
	return true;
}

uint32_t frame_write_hello(uint8_t *out, const struct frame_hello *hello)
{
	memset(out, 0, FRAME_HELLO_SIZE);
	memcpy(out, hello->session, 16);
	ndxp_put_be32(out + 16, hello->max_message);
	memcpy(out + 20, hello->plugin, strnlen(hello->plugin, NDX_PLUGIN_NAME_MAX));
	memcpy(out + 20 + NDX_PLUGIN_NAME_MAX + 1, hello->variant,
	       strnlen(hello->variant, NDX_PLUGIN_NAME_MAX));
	if (hello->queue_pairs < 2)
		return FRAME_HELLO_SIZE;
	ndxp_put_be32(out + FRAME_HELLO_SIZE, hello->queue_pairs);
	return FRAME_HELLO_SIZE_MAX;
}

uint32_t frame_write_welcome(uint8_t out[FRAME_WELCOME_SIZE], const struct frame_welcome *welcome)
{
	ndxp_put_be32(out, welcome->max_message);
	ndxp_put_be32(out + 4, welcome->stage_timeout_ms);
	ndxp_put_be32(out + 8, welcome->session_timeout_ms);
	return FRAME_WELCOME_SIZE;
}

uint32_t frame_write_error(uint8_t out[FRAME_ERROR_SIZE_MAX], const struct frame_error *error)
{
	const uint32_t length = (uint32_t)strnlen(error->text, FRAME_ERROR_TEXT);

	out[0] = error->layer;
	out[1] = error->plugin_error;
	out[2] = out[3] = 0;
	ndxp_put_be32(out + 4, (uint32_t)error->status);
	memcpy(out + 8, error->text, length);
	return 8 + length;
}

uint32_t frame_write_validate(uint8_t out[FRAME_VALIDATE_SIZE], const struct frame_validate *v)
{
	ndxp_put_be32(out, v->agreed.kind);
	ndxp_put_be32(out + 4, v->agreed.mtu);
	ndxp_put_be32(out + 8, v->agreed.client_reads);
	ndxp_put_be32(out + 12, v->agreed.server_reads);
	memcpy(out + 16, v->own, sizeof(v->own));
	memcpy(out + 32, v->peer, sizeof(v->peer));
	return FRAME_VALIDATE_SIZE;
}

uint32_t frame_write_proof(uint8_t out[FRAME_PROOF_SIZE], const struct frame_proof *proof)
{
	out[0] = proof->written;
	out[1] = proof->seen;
	out[2] = proof->denied ? 1 : 0;
	out[3] = 0;
	return FRAME_PROOF_SIZE;
}
