/* SPDX-License-Identifier: BSD-2-Clause */
/* One source as C and as C++: how a method is called, and how an identifier is passed. */
#ifndef ND_CALL_H
#define ND_CALL_H

#include <ndsupport.h>
#include <mana_ndspi.h>

#ifdef __cplusplus
#define CALL(object, method, ...) (object)->method(__VA_ARGS__)
#define BY_ID(iid) iid
#else
#define CALL(object, method, ...) ((object)->lpVtbl->method((object), ##__VA_ARGS__))
#define BY_ID(iid) &iid
#endif
#define UNKNOWN(object) ((IUnknown *)(object))
#define OUT(object) ((void **)&(object))

#endif
