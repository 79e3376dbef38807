/* SPDX-License-Identifier: BSD-2-Clause */
/** @file _beginthreadex(), which windows.h has. */
#include "windows.h"
