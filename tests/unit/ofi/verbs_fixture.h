/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NDX_TESTS_UNIT_OFI_VERBS_FIXTURE_H
#define NDX_TESTS_UNIT_OFI_VERBS_FIXTURE_H

/*
 * An established connection over libfabric's verbs provider, without libfabric: the test decides
 * what the native completion queue returns. The stack delivers each control message at once; a test
 * writes what the peer writes.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>

#include "ofi_verbs.h"

#define FIXTURE_REQUESTS 16u

struct fixture {
	struct ofi_adapter adapter;
	struct ofi_ncq ncq;
	struct ofi_conn conn;
	struct ofi_link
		*link; /* freed by the product, or by fixture_destroy() if it is not closed */
	struct fid_ep ep;
	struct fid_mr control;
	struct fid_cq native;
	struct ofi_cq *cq;
	struct ofi_qp *qp;
	void *done[FIXTURE_REQUESTS]; /* contexts of the requests that have completed */
	unsigned delivered;
	unsigned reads;   /* of the native queue */
	unsigned peeks;   /* reads of the peer's memory */
	unsigned next;    /* index in `done` of the next one to be read */
	uint64_t goodbye; /* as the peer has it */
	uint32_t reports; /* all bits that were reported to the core */
	enum ndx_status status;
	bool shut;                        /* fi_shutdown() of the endpoint was called */
	bool closed;                      /* fi_close() of the endpoint was called */
	int error;                        /* of the next completion, once; 0: success */
	bool refusing;                    /* the device takes no write */
	bool unanswered;                  /* the peer answers no write */
	unsigned posted;                  /* receives that the device has taken */
	void *receives[FIXTURE_REQUESTS]; /* ... and their contexts */
	unsigned room;                    /* for receives */
	unsigned sent;                    /* messages */
	unsigned told;                    /* writes with immediate data, ... */
	uint64_t data;                    /* ... and the data of the latest */
	uint64_t announced;               /* number of this end's receives, as the peer has it */
};

int fixture_create(void **state);
/* Replace the queue pair by one with a shared receive queue. */
void fixture_share(struct fixture *f, struct ndx_spi_srq **srq);
int fixture_destroy(void **state);

/* Call `fn` with the fixture on the control thread, and wait until it has returned. */
void fixture_call(struct fixture *f, ndxp_loop_fn *fn);
/* Wait until something is reported, and until the timer that reports has returned. */
void fixture_await_report(struct fixture *f);

/* A write that the device has. */
struct ofi_tx *fixture_post_write(struct fixture *f);
/* The number of results in the completion queue: 0 or 1, with the result's status. */
size_t fixture_take_result(struct fixture *f, enum ndx_status *status);

/* For fixture_call(). */
void fixture_do_nothing(void *arg);
void fixture_read_completions(void *arg);
/* rdma_cm reports that the peer has disconnected. */
void fixture_disconnect(void *arg);

#endif
