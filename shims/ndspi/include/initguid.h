/* SPDX-License-Identifier: BSD-2-Clause */
/** @file From here on DEFINE_GUID defines the identifier instead of declaring it. */
#ifndef NDX_INITGUID_H
#define NDX_INITGUID_H

#ifndef INITGUID
#define INITGUID
#endif

#endif

#include "guiddef.h"
