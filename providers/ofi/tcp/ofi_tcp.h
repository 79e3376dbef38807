/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests and messages of libfabric's tcp provider (ofi_tcp_data.c). */
#ifndef OFI_OFI_TCP_H
#define OFI_OFI_TCP_H

#include "ofi.h"

/* Members of the table in ofi_backend.h. */
int ofi_tcp_submit(struct ofi_qp *qp, struct ofi_tx *tx);
int ofi_tcp_send_credits(struct ofi_qp *qp, uint32_t fresh);
int ofi_tcp_send_want(struct ofi_qp *qp, uint16_t count);
uint16_t ofi_tcp_count_sent(const struct ofi_qp *qp);
void ofi_tcp_received(struct ofi_qp *qp, struct ofi_rx *rx, const struct fi_cq_data_entry *e);
void ofi_tcp_received_shared(struct ofi_qp *qp, struct ofi_rx *rx,
                             const struct fi_cq_data_entry *e);
int ofi_tcp_error_of(const struct fi_cq_err_entry *e);

#endif
