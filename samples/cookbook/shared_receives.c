/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: cookbook-shared-receives [URI]
 * Many clients, one shared receive queue: the memory of the receives goes by how much comes at a
 * time, not by the number of connections. Where the adapter has none, each queue pair gets receives
 * of its own; the rest of the program is the same.
 */
#include "cookbook.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define CLIENTS 4
#define SLOTS 16 /* of the shared queue, or of each queue pair without one */
#define SIZE 64

struct server {
	struct pair pair;
	struct ndx_srq *srq; /* NULL: the adapter has none */
	struct ndx_mr *mr;
	char *memory;
};

/* A result carries the receive's context and the queue pair's, never the queue's. */
static void post(struct server *s, struct ndx_qp *qp, char *slot)
{
	struct ndx_sge sge = {slot, SIZE, ndx_mr_get_local_token(s->mr)};

	must(s->srq != NULL ? ndx_srq_receive(s->srq, slot, &sge, 1)
	                    : ndx_qp_receive(qp, slot, &sge, 1),
	     "post a receive");
}

static void prepare(struct server *s)
{
	const size_t bytes = (size_t)CLIENTS * SLOTS * SIZE;
	struct ndx_srq_attr attr;
	enum ndx_status st;

	ndx_srq_attr_init(&attr);
	attr.depth = SLOTS;
	st = ndx_srq_create(s->pair.adapter, &attr, &s->srq);
	check(st == NDX_OK || st == NDX_E_NOT_SUPPORTED, "create a shared receive queue");
	s->memory = calloc(1, bytes);
	check(s->memory != NULL, "no memory");
	must(ndx_mr_register_new(s->pair.adapter, s->memory, bytes, NDX_MR_ALLOW_LOCAL_WRITE,
	                         &s->mr),
	     "register memory");
	for (size_t i = 0; s->srq != NULL && i < SLOTS; i++)
		post(s, NULL, s->memory + i * SIZE);
	printf("%s\n", s->srq != NULL ? "one shared receive queue" : "a queue for each client");
}

int main(int argc, char **argv)
{
	struct ndx_connector *connectors[CLIENTS];
	struct end ends[CLIENTS] = {0};
	int counts[CLIENTS] = {0};
	struct server s = {0};
	pthread_t threads[CLIENTS];

	pair_open(&s.pair, adapter_of(argc, argv));
	prepare(&s);
	for (int i = 0; i < CLIENTS; i++)
		check(pthread_create(&threads[i], NULL, be_a_client, &s.pair) == 0, "no thread");
	for (int i = 0; i < CLIENTS; i++) {
		struct ndx_qp_attr attr;

		ends[i] = (struct end){.adapter = s.pair.adapter, .cq = s.pair.server.cq};
		ndx_qp_attr_init(&attr);
		attr.srq = s.srq;
		attr.receive_depth = SLOTS;
		attr.context = &ends[i];
		end_new_qp(&ends[i], &attr);
		for (size_t k = 0; s.srq == NULL && k < SLOTS; k++)
			post(&s, ends[i].qp, s.memory + ((size_t)i * SLOTS + k) * SIZE);
		must(ndx_accept_from(s.pair.adapter, s.pair.listener, ends[i].qp, NULL, 0, WAIT_MS,
		                     &connectors[i]),
		     "accept");
	}
	for (int left = CLIENTS * CLIENT_MESSAGES; left > 0;) {
		struct ndx_result result;
		size_t got;

		must(ndx_cq_wait_results(s.pair.server.cq, &result, 1, WAIT_MS, &got), "wait");
		if (result.status == NDX_E_CANCELED)
			continue; /* a receive that was left when its client went */
		struct end *end = result.queue_pair_context;

		must_result(&result, connectors[end - ends]);
		counts[end - ends]++;
		left--;
		post(&s, end->qp, result.request_context);
	}
	for (int i = 0; i < CLIENTS; i++) {
		(void)pthread_join(threads[i], NULL);
		check(counts[i] == CLIENT_MESSAGES, "a message is missing");
		ndx_connector_close(connectors[i]);
		ndx_qp_close(ends[i].qp);
	}
	printf("%d messages of each of %d clients\n", CLIENT_MESSAGES, CLIENTS);
	ndx_srq_close(s.srq);
	ndx_mr_close(s.mr);
	free(s.memory);
	pair_close(&s.pair);
	return 0;
}
