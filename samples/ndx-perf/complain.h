/* SPDX-License-Identifier: BSD-2-Clause */
/* What the client prints about tests that fail. */
#ifndef PERF_COMPLAIN_H
#define PERF_COMPLAIN_H

#include "perf.h"

/** The last error of a test that was printed, and the tests after it that failed alike. Zero it. */
struct complaints {
	char told[PERF_ERROR];
	unsigned repeated;
};

/** Say why something failed, also in the JSON. */
void complain(const char *text);

/** Say why a test failed; of several in turn that fail alike, once. */
void complain_of_test(struct complaints *complaints, const char *error);

/** Say how many more tests failed with the error that was printed last. */
void complain_of_rest(struct complaints *complaints);

#endif
