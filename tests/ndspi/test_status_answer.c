/* SPDX-License-Identifier: BSD-2-Clause */
/* The documented statuses of connectors that have a request, and of those that are connected. */
#include "nd_table.h"

static struct sockaddr *generic(struct sockaddr_storage *address)
{
	return (struct sockaddr *)address;
}

/* ---- Accept and Reject ---- */

static HRESULT accept_with(struct nd_pair *p, const void *data, ULONG length)
{
	return CALL(p->b.connector, Accept, UNKNOWN(p->b.qp), 0, 0, data, length, &p->b.ov);
}

/* How the accept ended, at once or later. */
static HRESULT accepted(struct nd_pair *p)
{
	const HRESULT status = accept_with(p, NULL, 0);

	return status == ND_PENDING ? nd_ov_end(&p->b.ov) : status;
}

static HRESULT accept_no_qp(struct nd_pair *p)
{
	nd_ask(p, NULL);
	return CALL(p->b.connector, Accept, NULL, 0, 0, NULL, 0, &p->b.ov);
}

static HRESULT accept_foreign_qp(struct nd_pair *p)
{
	nd_ask(p, NULL);
	return CALL(p->b.connector, Accept, UNKNOWN(p->b.connector), 0, 0, NULL, 0, &p->b.ov);
}

static HRESULT accept_qp_of_other_adapter(struct nd_pair *p)
{
	nd_ask(p, NULL);
	return CALL(p->b.connector, Accept, UNKNOWN(p->a.qp), 0, 0, NULL, 0, &p->b.ov);
}

static HRESULT accept_early(struct nd_pair *p)
{
	return accept_with(p, NULL, 0);
}

static HRESULT accept_twice(struct nd_pair *p)
{
	nd_ask(p, NULL);
	nd_answer(p, NULL);
	return CALL(p->b.connector, Accept, UNKNOWN(p->b.qp), 0, 0, NULL, 0, &p->a.ov);
}

static HRESULT accept_long_data(struct nd_pair *p)
{
	static const char data[4096] = {0};

	nd_ask(p, NULL);
	return accept_with(p, data, p->b.info.MaxCalleeData + 1);
}

static HRESULT accept_null_data(struct nd_pair *p)
{
	nd_ask(p, NULL);
	return accept_with(p, NULL, 1);
}

static HRESULT accept_cancelled(struct nd_pair *p)
{
	nd_ask(p, NULL);
	nd_answer(p, NULL);
	assert_status(CALL(p->b.connector, CancelOverlappedRequests), ND_SUCCESS);
	return nd_ov_end(&p->b.ov);
}

/* The active side gives up before it has the answer. */
static HRESULT accept_abandoned(struct nd_pair *p)
{
	nd_ask(p, NULL);
	assert_int_equal(CALL(p->a.connector, Release), 0);
	p->a.connector = NULL;
	return accepted(p);
}

/* The active side has the answer, and refuses. */
static HRESULT accept_refused(struct nd_pair *p)
{
	nd_ask(p, NULL);
	nd_answer(p, NULL);
	assert_status(CALL(p->a.connector, Reject, NULL, 0), ND_SUCCESS);
	return nd_ov_end(&p->b.ov);
}

static HRESULT accept_failed(struct nd_pair *p)
{
	nd_ask(p, NULL);
	return accepted(p);
}

static HRESULT reject_early(struct nd_pair *p)
{
	return CALL(p->b.connector, Reject, NULL, 0);
}

static HRESULT reject_long_data(struct nd_pair *p)
{
	static const char data[4096] = {0};

	nd_ask(p, NULL);
	return CALL(p->b.connector, Reject, data, p->b.info.MaxCalleeData + 1);
}

static HRESULT reject_null_data(struct nd_pair *p)
{
	nd_ask(p, NULL);
	return CALL(p->b.connector, Reject, NULL, 1);
}

static HRESULT reject_failed(struct nd_pair *p)
{
	nd_ask(p, NULL);
	return CALL(p->b.connector, Reject, NULL, 0);
}

#define ACCEPT "Connector.Accept"
#define REJECT "Connector.Reject"

static const struct nd_row answer_rows[] = {
	REAL(ACCEPT, ND_INVALID_PARAMETER_1, accept_no_qp),
	REAL(ACCEPT, ND_INVALID_PARAMETER_1, accept_foreign_qp),
	REAL(ACCEPT, ND_INVALID_PARAMETER_1, accept_qp_of_other_adapter),
	REAL(ACCEPT, ND_CONNECTION_INVALID, accept_early),
	REAL(ACCEPT, ND_CONNECTION_ACTIVE, accept_twice),
	REAL(ACCEPT, ND_INVALID_BUFFER_SIZE, accept_long_data),
	REAL(ACCEPT, ND_ACCESS_VIOLATION, accept_null_data),
	REAL(ACCEPT, ND_CANCELED, accept_cancelled),
	REAL(ACCEPT, ND_CONNECTION_ABORTED, accept_abandoned),
	REAL(ACCEPT, ND_CONNECTION_REFUSED, accept_refused),
	FAULT(ACCEPT, ND_IO_TIMEOUT, accept_failed, "conn_accept", 1, "IO_TIMEOUT"),
	FAULT(ACCEPT, ND_DEVICE_REMOVED, accept_failed, "conn_accept", 1, "DEVICE_REMOVED"),
	REAL(REJECT, ND_CONNECTION_INVALID, reject_early),
	REAL(REJECT, ND_INVALID_BUFFER_SIZE, reject_long_data),
	REAL(REJECT, ND_ACCESS_VIOLATION, reject_null_data),
	FAULT(REJECT, ND_CONNECTION_ABORTED, reject_failed, "conn_reject", 1, "CONNECTION_ABORTED"),
	BEYOND(REJECT, ND_PENDING, "the call has no OVERLAPPED"),
	FAULT(REJECT, ND_DEVICE_REMOVED, reject_failed, "conn_reject", 1, "DEVICE_REMOVED"),
};

/* ---- what a connector tells ---- */

static HRESULT limits_early(struct nd_pair *p)
{
	ULONG inbound, outbound;

	return CALL(p->a.connector, GetReadLimits, &inbound, &outbound);
}

static HRESULT data_early(struct nd_pair *p)
{
	char data[8];
	ULONG length = sizeof(data);

	return CALL(p->a.connector, GetPrivateData, data, &length);
}

static HRESULT data_nowhere(struct nd_pair *p)
{
	nd_ask(p, NULL);
	return CALL(p->b.connector, GetPrivateData, NULL, NULL);
}

/* What fits is copied. */
static HRESULT data_small(struct nd_pair *p)
{
	const struct nd_offer offer = {0, 0, "abcdef", 6};
	char data[8] = "-------";
	ULONG length = 4;
	HRESULT status;

	nd_ask(p, &offer);
	status = CALL(p->b.connector, GetPrivateData, data, &length);
	assert_int_equal(length, 6);
	assert_string_equal(data, "abcd---");
	return status;
}

static HRESULT local_early(struct nd_pair *p)
{
	struct sockaddr_storage address;
	ULONG length = sizeof(address);

	return CALL(p->a.connector, GetLocalAddress, generic(&address), &length);
}

static HRESULT local_small(struct nd_pair *p)
{
	struct sockaddr_storage address;
	ULONG length = 1;
	HRESULT status;

	memset(&address, 0x5a, sizeof(address));
	nd_ask(p, NULL);
	status = CALL(p->b.connector, GetLocalAddress, generic(&address), &length);
	assert_int_equal(address.ss_family, 0x5a5a);
	assert_int_equal(length, p->address_length);
	return status;
}

static HRESULT local_nowhere(struct nd_pair *p)
{
	return CALL(p->a.connector, GetLocalAddress, NULL, NULL);
}

static HRESULT peer_early(struct nd_pair *p)
{
	struct sockaddr_storage address;
	ULONG length = sizeof(address);

	return CALL(p->a.connector, GetPeerAddress, generic(&address), &length);
}

static HRESULT peer_small(struct nd_pair *p)
{
	struct sockaddr_storage address;
	ULONG length = 1;
	HRESULT status;

	memset(&address, 0x5a, sizeof(address));
	nd_ask(p, NULL);
	status = CALL(p->b.connector, GetPeerAddress, generic(&address), &length);
	assert_int_equal(address.ss_family, 0x5a5a);
	assert_int_equal(length, p->address_length);
	return status;
}

static HRESULT peer_nowhere(struct nd_pair *p)
{
	return CALL(p->a.connector, GetPeerAddress, NULL, NULL);
}

static const struct nd_row query_rows[] = {
	REAL("Connector.GetReadLimits", ND_CONNECTION_INVALID, limits_early),
	BEYOND("Connector.GetReadLimits", ND_UNSUCCESSFUL, "NDX knows the limits or not"),
	REAL("Connector.GetPrivateData", ND_CONNECTION_INVALID, data_early),
	REAL("Connector.GetPrivateData", ND_INVALID_PARAMETER_2, data_nowhere),
	REAL("Connector.GetPrivateData", ND_BUFFER_OVERFLOW, data_small),
	BEYOND("Connector.GetPrivateData", ND_UNSUCCESSFUL, "NDX has the data or not"),
	REAL("Connector.GetLocalAddress", ND_CONNECTION_INVALID, local_early),
	REAL("Connector.GetLocalAddress", ND_BUFFER_OVERFLOW, local_small),
	REAL("Connector.GetLocalAddress", ND_INVALID_PARAMETER_2, local_nowhere),
	REAL("Connector.GetPeerAddress", ND_CONNECTION_INVALID, peer_early),
	REAL("Connector.GetPeerAddress", ND_BUFFER_OVERFLOW, peer_small),
	REAL("Connector.GetPeerAddress", ND_INVALID_PARAMETER_2, peer_nowhere),
};

/* ---- Disconnect ---- */

static HRESULT notify_early(struct nd_pair *p)
{
	return CALL(p->a.connector, NotifyDisconnect, &p->a.ov);
}

static HRESULT notify_cancelled(struct nd_pair *p)
{
	nd_connect(p);
	assert_status(CALL(p->a.connector, NotifyDisconnect, &p->a.ov), ND_PENDING);
	assert_status(CALL(p->a.connector, CancelOverlappedRequests), ND_SUCCESS);
	return nd_ov_end(&p->a.ov);
}

static HRESULT disconnect_early(struct nd_pair *p)
{
	return CALL(p->a.connector, Disconnect, &p->a.ov);
}

static HRESULT disconnect_half(struct nd_pair *p)
{
	nd_ask(p, NULL);
	nd_answer(p, NULL);
	return CALL(p->a.connector, Disconnect, &p->a.ov);
}

/* The disconnect waits for a send for which no receive is posted. */
static HRESULT disconnect_cancelled(struct nd_pair *p)
{
	nd_connect(p);
	nd_send(&p->a, 1, 0, 8, 0);
	assert_status(CALL(p->a.connector, Disconnect, &p->a.ov), ND_PENDING);
	assert_status(CALL(p->a.connector, CancelOverlappedRequests), ND_SUCCESS);
	return nd_ov_end(&p->a.ov);
}

#define NOTIFY "Connector.NotifyDisconnect"
#define DISCONNECT "Connector.Disconnect"

static const struct nd_row end_rows[] = {
	REAL(NOTIFY, ND_CONNECTION_INVALID, notify_early),
	REAL(NOTIFY, ND_CANCELED, notify_cancelled),
	REAL(DISCONNECT, ND_CONNECTION_INVALID, disconnect_early),
	REAL(DISCONNECT, ND_CONNECTION_INVALID, disconnect_half),
	REAL(DISCONNECT, ND_CANCELED, disconnect_cancelled),
	BEYOND(DISCONNECT, ND_DEVICE_REMOVED, "provider `fault` removes no device"),
};

static void answers(void **state)
{
	(void)state;
	nd_run_rows(ROWS(answer));
}

static void queries(void **state)
{
	(void)state;
	nd_run_rows(ROWS(query));
}

static void ends(void **state)
{
	(void)state;
	nd_run_rows(ROWS(end));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers),
		cmocka_unit_test(queries),
		cmocka_unit_test(ends),
	};
	const int rc = nd_begin(argc, argv);

	return rc != 0 ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}
