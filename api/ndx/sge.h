/* SPDX-License-Identifier: BSD-2-Clause */
/** @file Scatter/gather entries. (ND2_SGE) */
#ifndef NDX_SGE_H
#define NDX_SGE_H

#include <stdint.h>

/**
 * A piece of local memory. The array may live on the stack: a post consumes it. The memory belongs
 * to the request until its result was taken (until the post returned, with NDX_OP_INLINE).
 */
struct ndx_sge {
	void *buffer;
	uint32_t length; /**< bytes; 0 is legal */
	uint32_t token;  /**< ndx_mr_get_local_token(); ignored with NDX_OP_INLINE */
};

#endif
