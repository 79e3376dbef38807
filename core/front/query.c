/* SPDX-License-Identifier: BSD-2-Clause */
/* Entry points that read the state of queue pairs and regions. */
#include <ndx/query.h>

#include <string.h>

#include <ndx/spi/log.h>
#include "base_struct.h"
#include "connection.h"
#include "region.h"

const char *ndx_qp_state_name(enum ndx_qp_state state)
{
	switch (state) {
	case NDX_QP_UNCONNECTED:
		return "unconnected";
	case NDX_QP_CONNECTING:
		return "connecting";
	case NDX_QP_CONNECTED:
		return "connected";
	case NDX_QP_DISCONNECTING:
		return "disconnecting";
	case NDX_QP_DISCONNECTED:
		return "disconnected";
	}
	return "?";
}

const char *ndx_mr_state_name(enum ndx_mr_state state)
{
	switch (state) {
	case NDX_MR_NOT_REGISTERED:
		return "not registered";
	case NDX_MR_REGISTERING:
		return "registering";
	case NDX_MR_REGISTERED:
		return "registered";
	case NDX_MR_DEREGISTERING:
		return "deregistering";
	}
	return "?";
}

enum ndx_status ndx_qp_query(struct ndx_qp *qp, struct ndx_qp_attr *attr, struct ndx_qp_info *info)
{
	static const struct base_struct attr_layout = BASE_STRUCT(
		struct ndx_qp_attr, NDX_QP_ATTR_SIZE_0_1, "set `size` to sizeof(*attr)");
	static const struct base_struct info_layout = BASE_STRUCT(
		struct ndx_qp_info, NDX_QP_INFO_SIZE_0_1, "set `size` to sizeof(*info)");
	struct ndx_qp_attr grant = {0};
	struct ndx_qp_info now;
	enum ndx_status st = NDX_OK;
	size_t granted;

	if (qp == NULL || (attr == NULL && info == NULL))
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_qp_query: NULL argument");
	/* a refused structure leaves the other one alone */
	if (info != NULL)
		st = base_struct_check_size(&info_layout, "ndx_qp_query", info->size);
	if (st == NDX_OK && attr != NULL) {
		/* an older provider's is shorter */
		granted = spi_qp(qp)->attr.size;
		memcpy(&grant, &spi_qp(qp)->attr,
		       granted < sizeof(grant) ? granted : sizeof(grant));
		st = base_struct_out(&attr_layout, "ndx_qp_query", attr, attr->size, &grant);
	}
	if (st != NDX_OK || info == NULL)
		return st;
	adapter_lock(spi_qp(qp)->object.adapter);
	qp_query(spi_qp(qp), &now);
	adapter_unlock(spi_qp(qp)->object.adapter);
	return base_struct_out(&info_layout, "ndx_qp_query", info, info->size, &now);
}

enum ndx_status ndx_mr_query(struct ndx_mr *mr, struct ndx_mr_info *info)
{
	static const struct base_struct layout = BASE_STRUCT(
		struct ndx_mr_info, NDX_MR_INFO_SIZE_0_1, "set `size` to sizeof(*info)");
	struct ndx_spi_mr *region = (struct ndx_spi_mr *)(void *)mr;
	struct ndx_mr_info now;

	if (mr == NULL || info == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_mr_query: NULL argument");
	adapter_lock(region->object.adapter);
	region_query(region, &now);
	adapter_unlock(region->object.adapter);
	now.id = region->object.id;
	now.adapter = region->object.adapter;
	now.local_token = ndx_mr_get_local_token(mr);
	now.remote_token = ndx_mr_get_remote_token(mr);
	return base_struct_out(&layout, "ndx_mr_query", info, info->size, &now);
}
