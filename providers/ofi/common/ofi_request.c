/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests to connect: their parameters, and how to refuse one. */
#include <string.h>

#include "ofi.h"

void ofi_params_of(const struct ofi_cm *cm, struct ndx_spi_params *params)
{
	params->inbound_read_limit = cm->inbound_read_limit;
	params->outbound_read_limit = cm->outbound_read_limit;
	params->private_data_len = cm->private_len;
	memcpy(params->private_data, cm->private_data, cm->private_len);
}

void ofi_refuse(struct ofi_adapter *adapter, struct fi_info *info, const void *data, size_t len)
{
	struct ofi_cm cm = {.kind = OFI_CM_REJECT, .private_len = len};
	uint8_t bytes[OFI_CM_SIZE];

	if (len > 0)
		memcpy(cm.private_data, data, len);
	(void)fi_reject(adapter->refuser, info->handle, bytes,
	                adapter->backend->cm_encode(&cm, bytes));
	fi_freeinfo(info);
}
