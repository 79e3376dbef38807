/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program whose structures have another size than the library's. With GROW_APPENDED each has a
 * member more, `appended`; else each is as in version 0.1.
 */
#ifndef GROW_H
#define GROW_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/ndx.h>

#define GROW_FILL UINT64_C(0xeeeeeeeeeeeeeeee)

static inline void must_be(enum ndx_status got, enum ndx_status want, const char *what)
{
	if (got == want)
		return;
	fprintf(stderr, "%s: %s instead of %s; last error: %s\n", what, ndx_status_name(got),
	        ndx_status_name(want), ndx_last_error());
	exit(1);
}

static inline void must(enum ndx_status got, const char *what)
{
	must_be(got, NDX_OK, what);
}

static inline void must_hold(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	exit(1);
}

/* The library refused the member that it does not know, and says so. */
static inline void must_name_member(enum ndx_status got, enum ndx_status want, const char *what)
{
	must_be(got, want, what);
	if (strstr(ndx_last_error(), "is not 0: the program sets a member that came later"))
		return;
	fprintf(stderr, "%s: the text does not name the member: %s\n", what, ndx_last_error());
	exit(1);
}

#ifdef GROW_APPENDED
/* `call` is refused while the member that the library does not know is not 0. */
#define REFUSED(attr, want, call)                        \
	do {                                             \
		(attr).appended = 1;                     \
		must_name_member((call), (want), #call); \
		(attr).appended = 0;                     \
	} while (0)
/* Before a call fills `out`, and after it. */
#define PREPARE(out) ((out).size = sizeof(out), (out).appended = GROW_FILL)
#define LEFT_ALONE(out)                                                                        \
	must_hold((out).appended == GROW_FILL && (out).size == sizeof(out) - sizeof(uint64_t), \
	          #out ": the library wrote the member that it does not know, or the wrong size")
#else
#define REFUSED(attr, want, call) ((void)(attr))
#define PREPARE(out) ((out).size = sizeof(out))
#define LEFT_ALONE(out) must_hold((out).size <= sizeof(out), #out ": filled beyond its size")
#endif

/* attributes.c: the objects that need no connection. */
void grow_attributes(struct ndx_adapter *adapter);

#endif
