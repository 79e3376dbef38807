/* SPDX-License-Identifier: BSD-2-Clause */
/* error.*: what is asked of no object at all. */
#include <ndx/negotiation_server.h>
#include <ndx/reassembly.h>
#include <ndx/session.h>

#include "cases.h"
#include "check.h"

static void connections(struct check *c)
{
	check_that(c, ndx_connector_get_disconnect_reason(NULL) == NDX_DISCONNECT_NONE,
	           "a connector that is NULL has a disconnect reason");
	check_that(c, ndx_connector_get_id(NULL) == 0, "a connector that is NULL has a number");
	check_that(c, ndx_mr_get_local_token(NULL) == 0 && ndx_mr_get_remote_token(NULL) == 0,
	           "a region that is NULL has a token");
	check_that(c, ndx_mw_get_remote_token(NULL) == 0, "a window that is NULL has a token");
	check_that(c, ndx_port_get_fd(NULL) == -1, "a port that is NULL has a descriptor");
	check_status(c, ndx_overlapped_status(NULL), NDX_E_INVALID_PARAMETER, "status of NULL");
	check_status(c, ndx_overlapped_wait(NULL, 0), NDX_E_INVALID_PARAMETER, "wait for NULL");
}

static void overlapped(struct check *c)
{
	struct ndx_overlapped ov;
	struct ndx_overlapped *taken = &ov;

	ndx_overlapped_init(NULL);
	ndx_overlapped_init(&ov);
	ndx_port_post(NULL, &ov);
	check_status(c, ndx_overlapped_status(&ov), NDX_OK, "status of what no port has taken");
	check_that(c, ndx_port_get(NULL, &taken, 1, NDX_INFINITE) == 0 && taken == &ov,
	           "a port that is NULL holds something");
}

static void captures(struct check *c)
{
	struct ndx_reassembly_stats stats = {.size = sizeof(stats), .segments = 1};

	ndx_reassembly_flush(NULL);
	ndx_reassembly_reset(NULL);
	check_that(c, ndx_reassembly_size(NULL) == 0, "a reassembly that is NULL has segments");
	check_status(c, ndx_reassembly_get_stats(NULL, &stats), NDX_E_INVALID_PARAMETER,
	             "counters of a reassembly that is NULL");
	check_that(c, stats.segments == 1, "counters were changed by a call that failed");
}

static void frames(struct check *c)
{
	struct ndx_receiver_cause cause = {.status = NDX_E_UNSUCCESSFUL};

	ndx_receiver_get_cause(NULL, &cause);
	check_that(c, cause.end == NDX_RECEIVER_END_NONE && cause.status == NDX_OK,
	           "a receiver that is NULL has ended by something");
	check_that(c, ndx_receiver_get_state(NULL) == NDX_RECEIVER_STOPPED,
	           "a receiver that is NULL has not stopped");
	check_that(c, !ndx_receiver_get_qp(NULL) && !ndx_receiver_get_adapter(NULL),
	           "a receiver that is NULL has objects");
	check_that(c, ndx_receiver_get_fd(NULL) == -1, "a receiver that is NULL has a descriptor");
	check_that(c,
	           !ndx_sender_get_qp(NULL) && !ndx_sender_get_adapter(NULL) &&
	                   !ndx_sender_get_connector(NULL),
	           "a sender that is NULL has objects");
}

static void sessions(struct check *c)
{
	struct ndx_negotiation_server_stats stats = {.size = sizeof(stats), .alive = 1};
	struct ndx_session_error error = {.size = sizeof(error), .round = 1};
	struct ndx_plugin_entry *entries = NULL;
	size_t count = 1;

	check_status(c, ndx_negotiation_server_get_stats(NULL, &stats), NDX_E_INVALID_PARAMETER,
	             "counters of a server that is NULL");
	check_status(c, ndx_negotiation_server_snapshot(NULL, NULL), NDX_E_INVALID_PARAMETER,
	             "snapshot of a server that is NULL");
	check_status(c, ndx_session_get_error(NULL, &error), NDX_E_INVALID_PARAMETER,
	             "error of a session that is NULL");
	check_that(c, stats.alive == 1 && error.round == 1,
	           "a structure was changed by a call that failed");
	check_that(c, ndx_session_get_state(NULL) == NDX_SESSION_FAILED,
	           "a session that is NULL has not failed");
	check_that(c, ndx_session_get_id(NULL) == 0 && !ndx_session_get_server(NULL),
	           "a session that is NULL has a number, or a server");
	check_status(c, ndx_session_get_history(NULL, NULL, &count, NULL), NDX_E_INVALID_PARAMETER,
	             "history of a session that is NULL");
	check_status(c, ndx_negotiation_list(NULL, &entries, &count), NDX_E_INVALID_PARAMETER,
	             "list of a framework that is NULL");
	check_that(c, count == 1 && !entries, "an output was changed by a call that failed");
	ndx_negotiation_list_free(NULL);
	check_status(c, ndx_session_get_agreement(NULL, NULL, NULL, NULL), NDX_E_INVALID_PARAMETER,
	             "agreement of a session that is NULL");
	check_that(c, ndx_variant_name(NULL)[0] == '\0' && ndx_variant_plugin_name(NULL)[0] == '\0',
	           "a variant that is NULL has a name");
	check_that(c, !ndx_variant_setting(NULL, "any"), "a variant that is NULL has a setting");
}

void case_error_getters_accept_null(struct check *c)
{
	connections(c);
	overlapped(c);
	frames(c);
	sessions(c);
	captures(c);
}
