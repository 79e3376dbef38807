/* SPDX-License-Identifier: BSD-2-Clause */
/* What the other files are linked with: the identifiers, and a function of the C++ runtime. */
#include "initguid.h"

#include "mana_ndspi.h"
#include "ndsupport.h"

/* Called instead of a pure virtual function, which cannot happen: the C++ runtime has it, and this
 * library does without. */
extern "C" __attribute__((visibility("hidden"))) void __cxa_pure_virtual(void)
{
	__builtin_trap();
}
