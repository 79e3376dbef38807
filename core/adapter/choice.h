/* SPDX-License-Identifier: BSD-2-Clause */
/* What the automatic choice tries: the places that providers claim by their ranks. */
#ifndef ADAPTER_CHOICE_H
#define ADAPTER_CHOICE_H

#include <stddef.h>
#include <stdint.h>

#include <ndx/status.h>

#include "uri.h"

#define CHOICE_MOST 64 /* places of all providers; those of lower rank are left out */

struct choice {
	int32_t rank;
	char uri[URI_MAX + 1];
};

/* Called for a provider that has no place: why. */
typedef void choice_without_fn(void *arg, const char *name, const char *reason);

/* Load every provider, and collect the places that they claim, best first. Returns how many. */
size_t choice_collect(struct choice list[CHOICE_MOST], choice_without_fn *without, void *arg);

#endif
