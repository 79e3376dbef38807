/* SPDX-License-Identifier: BSD-2-Clause */
/** @file Scatter/gather entries. (ND2_SGE) */
#ifndef NDX_SGE_H
#define NDX_SGE_H

#include <stdint.h>

/**
 * A piece of local memory. An array of SGEs may live on the stack, because a post reads it during
 * the call. The memory that an SGE names belongs to the request until the result has been taken;
 * with NDX_OP_INLINE until the post has returned.
 */
struct ndx_sge {
	/**
	 * Sends and writes read the memory; receives and reads write to it, and fail unless the
	 * region of `token` allows that.
	 */
	const void *buffer;
	uint32_t length; /**< bytes; 0 is legal */
	uint32_t token;  /**< ndx_mr_get_local_token(); ignored with NDX_OP_INLINE */
};

#endif
