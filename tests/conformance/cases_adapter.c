/* SPDX-License-Identifier: BSD-2-Clause */
/* adapter.*: finding, opening and asking adapters. */
#include <string.h>

#include "cases.h"
#include "traffic.h"

void case_adapter_query_fills_no_more_than_its_size(struct check *c)
{
	struct ndx_adapter *adapter = c->world->places[0].adapter;
	struct {
		struct ndx_adapter_info info;
		uint8_t beyond[64];
	} room;

	memset(&room, 0xee, sizeof(room));
	room.info.size = sizeof(room.info);
	check_status(c, ndx_adapter_query(adapter, &room.info), NDX_OK, "query");
	bytes_are(c, room.beyond, sizeof(room.beyond), 0xee, "beyond the size");
	memset(&room, 0xee, sizeof(room));
	room.info.size = sizeof(room.info.size);
	check_status(c, ndx_adapter_query(adapter, &room.info), NDX_E_INVALID_PARAMETER,
	             "query with the size of the size");
	bytes_are(c, (const uint8_t *)room.info.uri, sizeof(room) - sizeof(room.info.size), 0xee,
	          "info of a failed query");
}
