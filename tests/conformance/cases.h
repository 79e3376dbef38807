/* SPDX-License-Identifier: BSD-2-Clause */
/* Declares every case of cases.def. */
#ifndef CASES_H
#define CASES_H

struct check;

#define NDX_CASE(group, promise, lines, needs, flags) \
	void case_##group##_##promise(struct check *c);
#include "cases.def"
#undef NDX_CASE

#endif
