/* SPDX-License-Identifier: BSD-2-Clause */
#include "builtin.h"

const struct ndx_provider *const ndx_builtin[] = {
#ifdef NDX_PROVIDER_LOOP
	&ndx_provider_loop,
#endif
#if defined(NDX_PROVIDER_OFI) && defined(NDX_MODULES_INSIDE)
	&ndx_provider_ofi,
#endif
#ifdef NDX_PROVIDER_FAULT
	&ndx_provider_fault,
#endif
#if defined(NDX_PROVIDER_VERBS) && defined(NDX_MODULES_INSIDE)
	&ndx_provider_verbs,
#endif
	NULL,
};
