/* SPDX-License-Identifier: BSD-2-Clause */
/** @file Part of winsock2.h. */
#include "winsock2.h"
