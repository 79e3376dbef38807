/* SPDX-License-Identifier: BSD-2-Clause */
/* The providers inside libndx: all that core may use of them. The white-box tests have those of the
 * modules inside, too. */
#ifndef PROVIDERS_BUILTIN_H
#define PROVIDERS_BUILTIN_H

#include <ndx/spi/provider.h>

/* Ends with NULL. */
extern const struct ndx_provider *const ndx_builtin[];

#ifdef NDX_PROVIDER_LOOP
extern const struct ndx_provider ndx_provider_loop;
#endif
#ifdef NDX_PROVIDER_OFI
extern const struct ndx_provider ndx_provider_ofi;
#endif
#ifdef NDX_PROVIDER_FAULT
extern const struct ndx_provider ndx_provider_fault;
#endif
#ifdef NDX_PROVIDER_VERBS
extern const struct ndx_provider ndx_provider_verbs;
#endif

#endif
