/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The system's resolver, in place of the C library's for the whole program: names under .test are
 * ours, and one of them is never answered in time.
 *
 *   one.test     127.0.0.1
 *   two.test     127.0.0.1 and 127.0.0.2
 *   twice.test   127.0.0.1, two times
 *   half.test    192.0.2.1, which is no address of this host, and 127.0.0.1
 *   away.test    192.0.2.1
 *   both.test    0.0.0.0 and ::
 *   htob.test    :: and 0.0.0.0
 *   family.test  127.0.0.1; EAI_ADDRFAMILY if asked for with AI_ADDRCONFIG
 *   noname.test  the same with EAI_NONAME
 *   again.test   the same with EAI_AGAIN
 *   hangs.test   no answer before names_go(), then 127.0.0.1
 */
#ifndef FAKE_NAMES_H
#define FAKE_NAMES_H

#include <stdint.h>

struct names {
	uint32_t asked;    /* atomic, all: calls for names, numbers aside */
	uint32_t hanging;  /* for hangs.test, since names_reset() */
	uint32_t answered; /* of those */
};

extern struct names names;

/* hangs.test is not answered from now on; no thread may be waiting. */
void names_reset(void);
void names_go(void);

#endif
