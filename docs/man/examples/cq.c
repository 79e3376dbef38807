/* SPDX-License-Identifier: BSD-2-Clause */
/* Examples of the manual pages: completion queues. */
#include <poll.h>
#include <stdio.h>

#include <ndx/ndx.h>

/* A queue of 256 results with the defaults. */
enum ndx_status example_cq(struct ndx_adapter *adapter, struct ndx_cq **out)
{
	return ndx_cq_create_depth(adapter, 256, out);
}

/* A queue whose completion events go to processor 3. */
enum ndx_status example_cq_affinity(struct ndx_adapter *adapter, struct ndx_cq **out)
{
	struct ndx_cq_attr attr;
	uint16_t group;
	uint64_t affinity;
	enum ndx_status st;

	ndx_cq_attr_init(&attr);
	attr.depth = 256;
	attr.affinity = 1 << 3;
	st = ndx_cq_create(adapter, &attr, out);
	if (st == NDX_OK && ndx_cq_get_notify_affinity(*out, &group, &affinity) == NDX_OK)
		printf("events go to 0x%llx\n", (unsigned long long)affinity);
	return st;
}

/* Wait for a result, at most a second. */
enum ndx_status example_wait(struct ndx_cq *cq, struct ndx_result *result)
{
	size_t got;
	enum ndx_status st = ndx_cq_wait_results(cq, result, 1, 1000, &got);

	if (st == NDX_PENDING)
		fprintf(stderr, "nothing in a second\n");
	return st == NDX_OK ? result->status : st;
}

/* Take all results; then arm the queue and sleep in poll(), which may watch other files, too. */
enum ndx_status example_sleep(struct ndx_cq *cq)
{
	struct ndx_result results[16];
	struct pollfd file = {.events = POLLIN};
	size_t got;
	enum ndx_status st = ndx_cq_get_fd(cq, &file.fd);

	while (st == NDX_OK) {
		while ((got = ndx_cq_get_results(cq, results, 16)) > 0)
			for (size_t i = 0; i < got; i++)
				printf("%s\n", ndx_status_name(results[i].status));
		st = ndx_cq_notify(cq, NDX_CQ_NOTIFY_ANY, NULL); /* fires at once if one came */
		if (st == NDX_OK && poll(&file, 1, 1000) <= 0)
			return NDX_PENDING;
	}
	return st;
}

/* Give up a notification that another thread waits for; make the queue longer; close it. */
void example_cq_end(struct ndx_cq *cq)
{
	(void)ndx_cq_cancel(cq);
	if (ndx_cq_resize(cq, 512) != NDX_OK)
		fprintf(stderr, "%s\n", ndx_last_error());
	ndx_cq_close(cq);
}

/* What a binding for another language calls. */
void example_cq_sizes(struct ndx_cq_attr *attr, size_t size)
{
	ndx_cq_attr_init_sized(attr, size);
}
