/* SPDX-License-Identifier: BSD-2-Clause */
/* adapter.*: structures of programs that are older or newer than the library (<ndx/decls.h>). */
#include <string.h>

#include "cases.h"
#include "traffic.h"

enum { BEYOND = 24, FILL = 0xee };

void case_adapter_older_and_newer_programs_query_it(struct check *c)
{
	struct ndx_adapter *adapter = c->world->places[0].adapter;
	const struct ndx_adapter_info *known = &c->world->places[0].info;
	const size_t sizes[] = {NDX_ADAPTER_INFO_SIZE_0_1, sizeof(struct ndx_adapter_info),
	                        sizeof(struct ndx_adapter_info) + BEYOND};
	struct {
		struct ndx_adapter_info info;
		uint8_t beyond[BEYOND];
	} room;
	const uint8_t *bytes = (const uint8_t *)&room;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && !check_over(c); i++) {
		const size_t filled = sizes[i] < sizeof(room.info) ? sizes[i] : sizeof(room.info);

		memset(&room, FILL, sizeof(room));
		room.info.size = sizes[i];
		check_status(c, ndx_adapter_query(adapter, &room.info), NDX_OK, "query");
		check_that(c, room.info.size == filled, "size %zu: filled %zu, not %zu", sizes[i],
		           room.info.size, filled);
		check_that(c, room.info.max_callee_data == known->max_callee_data,
		           "size %zu: the last member is not filled", sizes[i]);
		bytes_are(c, bytes + filled, sizeof(room) - filled, FILL, "beyond what was filled");
	}
	memset(&room, FILL, sizeof(room));
	room.info.size = NDX_ADAPTER_INFO_SIZE_0_1 - 1;
	check_status(c, ndx_adapter_query(adapter, &room.info), NDX_E_INVALID_PARAMETER,
	             "query with a size below the first");
	bytes_are(c, bytes + sizeof(size_t), sizeof(room) - sizeof(size_t), FILL,
	          "info of a refused query");
}

/* The attributes of a program that has members which the library may not know. */
struct newer {
	struct ndx_connector_attr attr;
	uint8_t beyond[BEYOND];
};

static void refused(struct check *c, const struct newer *newer, const char *what)
{
	struct ndx_adapter *adapter = c->world->places[0].adapter;
	struct ndx_connector *connector = NULL;

	check_status(c, ndx_connector_create(adapter, &newer->attr, &connector),
	             NDX_E_INVALID_PARAMETER, what);
	check_that(c, connector == NULL, "%s: the output was touched", what);
	check_that(c, strstr(ndx_last_error(), "struct ndx_connector_attr has size ") != NULL,
	           "%s: the text does not name the structure: \"%s\"", what, ndx_last_error());
}

static void accepted(struct check *c, const struct newer *newer, const char *what)
{
	struct ndx_adapter *adapter = c->world->places[0].adapter;
	struct ndx_connector *connector = NULL;

	check_status(c, ndx_connector_create(adapter, &newer->attr, &connector), NDX_OK, what);
	ndx_connector_close(connector);
}

void case_adapter_older_and_newer_programs_create_objects(struct check *c)
{
	struct newer newer;

	/* The initialisation of a newer program covers what the library does not know. */
	memset(&newer, FILL, sizeof(newer));
	ndx_connector_attr_init_sized(&newer.attr, sizeof(newer));
	check_that(c, newer.attr.size == sizeof(newer), "init does not set the size");
	bytes_are(c, newer.beyond, BEYOND, 0, "beyond, after init");
	accepted(c, &newer, "longer, and nothing set there");
	for (size_t at = 0; at < BEYOND && !check_over(c); at++) {
		newer.beyond[at] = 1;
		refused(c, &newer, "longer, and a byte set there");
		newer.beyond[at] = 0;
	}

	/* The initialisation of an older program stays within its structure. */
	memset(&newer, FILL, sizeof(newer));
	ndx_connector_attr_init_sized(&newer.attr, NDX_CONNECTOR_ATTR_SIZE_0_1);
	bytes_are(c, (const uint8_t *)&newer + NDX_CONNECTOR_ATTR_SIZE_0_1,
	          sizeof(newer) - NDX_CONNECTOR_ATTR_SIZE_0_1, FILL, "beyond the first size");
	accepted(c, &newer, "of the first size");
	newer.attr.size = NDX_CONNECTOR_ATTR_SIZE_0_1 - 1;
	refused(c, &newer, "below the first size");
	newer.attr.size = 0;
	refused(c, &newer, "size 0");
	newer.attr.size = SIZE_MAX / 2;
	refused(c, &newer, "a size that was never set");
}
