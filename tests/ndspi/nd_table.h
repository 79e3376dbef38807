/* SPDX-License-Identifier: BSD-2-Clause */
/* A table of statuses: each row is one documented status of one call, and how the status is
 * provoked. */
#ifndef ND_TABLE_H
#define ND_TABLE_H

#include "nd_op.h"

#ifdef __cplusplus
extern "C" {
#endif

struct nd_row {
	const char *call;
	const char *name; /* of the status */
	HRESULT status;
	/* What the call returned, or how it ended. The pair is not connected. NULL: out of reach */
	HRESULT (*provoke)(struct nd_pair *p);
	/* Options of provider `fault`, which makes the call fail; or why it is out of reach. */
	const char *note;
};

/* The provider itself returns the status. */
#define REAL(call, status, provoke)                  \
	{                                            \
		call, #status, status, provoke, NULL \
	}
/* The provider's call number `nth` of the kind `where` is made to fail. */
#define FAULT(call, status, provoke, where, nth, what)                               \
	{                                                                            \
		call, #status, status, provoke,                                      \
			"fault_call=" where "&fault_nth=" #nth "&fault_status=" what \
	}
#define BEYOND(call, status, why)                \
	{                                        \
		call, #status, status, NULL, why \
	}

#define ND_ADDRESS_ALREADY_ASSOCIATED ((HRESULT)0xC0000238)
#define ND_BAD_NETWORK_NAME ((HRESULT)0xC00000CC)

#define ROWS(name) name##_rows, sizeof(name##_rows) / sizeof(name##_rows[0])

/* Provoke all rows, each with a new pair, and print those that are out of reach. */
void nd_run_rows(const struct nd_row *rows, size_t count);

#ifdef __cplusplus
}
#endif

#endif
