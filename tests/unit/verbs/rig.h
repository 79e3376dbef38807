/* SPDX-License-Identifier: BSD-2-Clause */
/* A queue pair of the verbs provider that is up, on a fake device. */
#ifndef RIG_H
#define RIG_H

#include "fake_verbs.h"
#include "verbs_mailbox.h"
#include "verbs_srq.h"

struct rig {
	struct fake_device device;
	struct verbs_adapter adapter;
	struct ndx_host host;
	struct verbs_conn conn;
	struct ndx_spi_cq *cq;
	struct ndx_spi_qp *qp;
	uint32_t reports; /* bits of enum ndx_spi_report */
	unsigned event_count;
	struct ndx_adapter_event event; /* the latest event of the adapter */
	const char *cause;
	char memory[64];
};

/* rig_open() creates an adapter, its event loop and a completion queue; rig_connect() creates a
 * queue pair that is connected. */
void rig_open(struct rig *rig);
void rig_connect(struct rig *rig, uint32_t depth, struct ndx_spi_srq *srq);
void rig_close(struct rig *rig);

static inline struct verbs_qp *rig_qp(const struct rig *rig)
{
	return verbs_qp_of(rig->qp);
}
static inline struct ibv_qp *rig_native(const struct rig *rig)
{
	return rig_qp(rig)->native;
}

enum ndx_status rig_send(struct rig *rig, uintptr_t context, uint32_t flags);
enum ndx_status rig_receive(struct rig *rig, uintptr_t context);
/* Take the next result's context and status. False: the queue has no result. */
bool rig_next(struct rig *rig, uintptr_t *context, enum ndx_status *status);
/* The test fails if the next result is a different one, or if the queue has no result. */
void rig_expect(struct rig *rig, uintptr_t context, enum ndx_status status);
void rig_expect_none(struct rig *rig);

#endif
