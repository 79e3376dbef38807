/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ndx-send-wrong: ndx-send, whose sender does wrong: $SPOIL is "drop N" or "oversize N", for every
 * N-th frame. The linker puts this in place of ndx_sender_create().
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spoil.h"

/* Longer than any slot of the receiver in the tests. */
static const char frame[8192];

enum ndx_status __real_ndx_sender_create(const struct ndx_sender_attr *attr,
                                         struct ndx_sender **out);
enum ndx_status __wrap_ndx_sender_create(const struct ndx_sender_attr *attr,
                                         struct ndx_sender **out);

static void set_how(struct spoiler *spoiler)
{
	const char *text = getenv("SPOIL");
	const char *number = text != NULL ? strchr(text, ' ') : NULL;

	if (number != NULL)
		spoiler->every = (uint32_t)strtoul(number, NULL, 10);
	if (number == NULL || spoiler->every == 0) {
		fprintf(stderr, "ndx-send-wrong: $SPOIL is no \"drop N\" and no \"oversize N\"\n");
		exit(2);
	}
	spoiler->how = strncmp(text, "drop ", 5) == 0 ? SPOIL_DROP : SPOIL_OVERSIZE;
}

enum ndx_status __wrap_ndx_sender_create(const struct ndx_sender_attr *attr,
                                         struct ndx_sender **out)
{
	static struct spoiler spoiler;
	static struct ndx_mr *mr; /* as long as the process lives */
	enum ndx_status st = __real_ndx_sender_create(attr, out);

	if (st != NDX_OK)
		return st;
	set_how(&spoiler);
	st = ndx_mr_register_new(ndx_sender_get_adapter(*out), frame, sizeof(frame), 0, &mr);
	if (st != NDX_OK) {
		ndx_sender_close(*out);
		return st;
	}
	spoiler.oversize = (struct ndx_sge){frame, sizeof(frame), ndx_mr_get_local_token(mr)};
	spoil_qp(&spoiler, ndx_sender_get_qp(*out));
	return NDX_OK;
}
