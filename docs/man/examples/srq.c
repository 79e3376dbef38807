/* SPDX-License-Identifier: BSD-2-Clause */
/* Examples of the manual pages: shared receive queues. */
#include <stdio.h>

#include <ndx/ndx.h>

/* A queue of 64 receives that says when fewer than 16 are left. */
enum ndx_status example_srq(struct ndx_adapter *adapter, struct ndx_overlapped *low,
                            struct ndx_srq **out)
{
	struct ndx_srq_attr attr;
	uint16_t group;
	uint64_t affinity;
	enum ndx_status st;

	ndx_srq_attr_init(&attr);
	attr.depth = 64;
	attr.threshold = 16;
	st = ndx_srq_create(adapter, &attr, out);
	if (st != NDX_OK)
		return st; /* NDX_E_NOT_SUPPORTED: give each queue pair receives of its own */
	if (ndx_srq_get_notify_affinity(*out, &group, &affinity) == NDX_OK)
		printf("events go to 0x%llx\n", (unsigned long long)affinity);
	return ndx_srq_notify(*out, low); /* NDX_PENDING until the number falls below 16 */
}

/* Post receives, one by itself and two together. */
enum ndx_status example_srq_receives(struct ndx_srq *srq, struct ndx_sge *in)
{
	const struct ndx_receive list[] = {
		{.context = &in[1], .sge = &in[1], .sge_count = 1},
		{.context = &in[2], .sge = &in[2], .sge_count = 1},
	};
	size_t posted;
	enum ndx_status st = ndx_srq_receive(srq, &in[0], &in[0], 1);

	return st == NDX_OK ? ndx_srq_receive_list(srq, list, 2, &posted) : st;
}

/* Twice as many receives; then give up the notification, and close the queue. */
void example_srq_end(struct ndx_srq *srq)
{
	if (ndx_srq_modify(srq, 128, 32) != NDX_OK)
		fprintf(stderr, "%s\n", ndx_last_error());
	(void)ndx_srq_cancel(srq);
	ndx_srq_close(srq);
}

/* What a binding for another language calls. */
enum ndx_status example_srq_sizes(struct ndx_srq *srq, struct ndx_srq_attr *attr, size_t attr_size,
                                  const struct ndx_receive *list, size_t receive_size)
{
	size_t posted;

	ndx_srq_attr_init_sized(attr, attr_size);
	return ndx_srq_receive_list_sized(srq, list, receive_size, 1, &posted);
}
