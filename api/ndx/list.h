/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Requests and receives for the calls that post several with one call: ndx_qp_post_list(),
 * ndx_qp_receive_list() and ndx_srq_receive_list(). (ibv_post_send() and ibv_post_recv() with a
 * list of work requests.)
 *
 * A list is an array. Rules for all three calls:
 *   - The result is that of the single calls, in the order of the array: each entry has its own
 *     context, flags and result. Entries that other threads post may come in between.
 *   - The first entry that is refused ends the call. The entries before it are posted, the entries
 *     from it on are not; `*posted` is the number of those that are posted, and so the index of the
 *     refused one. The call returns the status that the single call returns, and ndx_last_error()
 *     names the index. Nothing is logged.
 *   - A list may have any length, as long as the queue has slots. 0 entries: NDX_OK.
 *   - The arrays of entries and SGEs are read during the call only.
 *
 * The structures may get members at their end in a later version. They have no member `size`,
 * because the size is that of an entry of the array, the same for all: the inline calls pass
 * sizeof() of the program's structure. An entry's members that the library does not know must be 0.
 */
#ifndef NDX_LIST_H
#define NDX_LIST_H

#include <stddef.h>
#include <stdint.h>

#include <ndx/decls.h>
#include <ndx/sge.h>

/** What a request of a list does. 0 is no request. Binds and invalidates are posted singly. */
enum ndx_post {
	NDX_POST_SEND = 1,            /**< as ndx_qp_send() */
	NDX_POST_SEND_IMMEDIATE = 2,  /**< as ndx_qp_send_immediate() */
	NDX_POST_READ = 3,            /**< as ndx_qp_read() */
	NDX_POST_WRITE = 4,           /**< as ndx_qp_write() */
	NDX_POST_WRITE_IMMEDIATE = 5, /**< as ndx_qp_write_immediate() */
};

/** A request of a list for ndx_qp_post_list(). The members are the parameters of the single call;
 * one that the single call does not have is ignored. */
struct ndx_request {
	void *context;
	const struct ndx_sge *sge; /**< may be NULL if `sge_count` is 0 */
	size_t sge_count;
	uint64_t remote_address;
	uint32_t remote_token;
	uint32_t immediate;
	uint32_t flags; /**< OR of enum ndx_op_flag */
	enum ndx_post type;
};

/** `size` of an entry in version 0.1; the smallest that is accepted. */
#define NDX_REQUEST_SIZE_0_1 NDX_SIZE_UP_TO(struct ndx_request, type)

/** A receive of a list for ndx_qp_receive_list() and ndx_srq_receive_list(). */
struct ndx_receive {
	void *context;
	const struct ndx_sge *sge; /**< may be NULL if `sge_count` is 0 */
	size_t sge_count;
};

/** `size` of an entry in version 0.1; the smallest that is accepted. */
#define NDX_RECEIVE_SIZE_0_1 NDX_SIZE_UP_TO(struct ndx_receive, sge_count)

#endif
