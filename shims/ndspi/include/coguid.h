/* SPDX-License-Identifier: BSD-2-Clause */
/** @file Of the identifiers of COM itself, programs for NetworkDirect use those in <unknwn.h>. */
#ifndef NDX_COGUID_H
#define NDX_COGUID_H

#include "unknwn.h"

#endif
