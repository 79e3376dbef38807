/* SPDX-License-Identifier: BSD-2-Clause */
#include "ofi_wire.h"

#include "base_byteorder.h"

void ofi_grant_encode(const struct ofi_grant *grant, uint8_t out[OFI_GRANT_SIZE])
{
	base_put_be32(out, grant->token);
	base_put_be32(out + 4, grant->rights);
	base_put_be64(out + 8, grant->start);
	base_put_be64(out + 16, grant->length);
}

const char *ofi_grant_decode(const uint8_t data[OFI_GRANT_SIZE], struct ofi_grant *grant)
{
	const uint32_t rights = base_get_be32(data + 4);

	if (rights & ~(uint32_t)(OFI_GRANT_READ | OFI_GRANT_WRITE))
		return "an answer with unknown rights";
	grant->token = base_get_be32(data);
	grant->rights = rights;
	grant->start = base_get_be64(data + 8);
	grant->length = base_get_be64(data + 16);
	return NULL;
}

const char *ofi_word_check_data(const struct ofi_word *word)
{
	if (word->type != OFI_WORD_DATA)
		return "a message without its control data";
	if (word->flags & ~(OFI_WORD_SOLICITED | OFI_WORD_IMMEDIATE | OFI_WORD_IS_WRITE))
		return "a message with unknown flags";
	if ((word->flags & OFI_WORD_IS_WRITE) && !(word->flags & OFI_WORD_IMMEDIATE))
		return "a report of a write without immediate data";
	if (!(word->flags & OFI_WORD_IMMEDIATE) && word->value != 0)
		return "a message with immediate data and without the flag for it";
	return NULL;
}

const char *ofi_word_check_control(const struct ofi_word *word)
{
	if (word->flags != 0)
		return "a control message with unknown flags";
	switch (word->type) {
	case OFI_WORD_CREDIT:
		return word->count > 0 ? NULL : "a control message with 0 credits";
	case OFI_WORD_REJECT:
		return word->count <= OFI_CM_PRIVATE ? NULL : "a refusal that is too long";
	case OFI_WORD_WRITTEN:
	case OFI_WORD_WRITTEN_HIGH:
		return NULL;
	case OFI_WORD_SYNC:
		return word->count <= OFI_TOKENS_MAX || word->count == OFI_TOKENS_ALL
		               ? NULL
		               : "more tokens than the control region holds";
	case OFI_WORD_READY:
	case OFI_WORD_DISC:
	case OFI_WORD_PING:
	case OFI_WORD_PONG:
	case OFI_WORD_SYNCED:
	case OFI_WORD_ASK:
	case OFI_WORD_ANSWER:
		return word->count == 0 ? NULL : "a control message with a count that has to be 0";
	default:
		return "a control message of unknown type";
	}
}
