/* SPDX-License-Identifier: BSD-2-Clause */
/* What the C part and the C++ part of test_both call of each other. */
#ifndef BOTH_H
#define BOTH_H

#include "nd_op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- C++ (both_object.cpp) ---- */

/* An object of a C++ class. `alive` counts such objects. */
IND2Overlapped *both_new_object(int *alive);
/* An object of a C++ class that passes all but its count of references to `inner`. */
IND2CompletionQueue *both_new_wrapper(IND2CompletionQueue *inner, int *alive);
/* Call all of an object that has one reference; expect these statuses. */
void both_use_in_cxx(IND2Overlapped *object, HRESULT cancelled, HRESULT result);
/* A message from A to B, and its results. */
void both_pass_in_cxx(struct nd_pair *p);

/* ---- C (test_both.c) ---- */

/* The same in C. */
void both_use_in_c(IND2Overlapped *object, HRESULT cancelled, HRESULT result);

#ifdef __cplusplus
}
#endif

#endif
