/* SPDX-License-Identifier: BSD-2-Clause */
/* The documented statuses of connectors and listeners. */
#include "nd_table.h"

#include <sys/socket.h>

static struct sockaddr *generic(struct sockaddr_storage *address)
{
	return (struct sockaddr *)address;
}

/* ---- Bind and Listen ---- */

static void nowhere(struct sockaddr_storage *address)
{
	struct sockaddr_in *in = (struct sockaddr_in *)address;

	memset(address, 0, sizeof(*address));
	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(0xc0000201); /* 192.0.2.1 */
	in->sin_port = htons(4711);
}

static HRESULT bind_used_port(struct nd_pair *p)
{
	struct sockaddr_storage address;
	ULONG length = sizeof(address);
	IND2Connector *other = nd_new_connector(&p->a);
	HRESULT status;

	length = nd_local_address(&address);
	assert_status(CALL(p->a.connector, Bind, generic(&address), length), ND_SUCCESS);
	assert_status(CALL(p->a.connector, GetLocalAddress, generic(&address), &length),
	              ND_SUCCESS);
	status = CALL(other, Bind, generic(&address), length);
	assert_int_equal(CALL(other, Release), 0);
	return status;
}

static HRESULT bind_foreign(struct nd_pair *p)
{
	struct sockaddr_storage address;

	nowhere(&address);
	return CALL(p->a.connector, Bind, generic(&address), sizeof(struct sockaddr_in));
}

static HRESULT bind_twice(struct nd_pair *p)
{
	struct sockaddr_storage address;
	const ULONG length = nd_local_address(&address);

	assert_status(CALL(p->a.connector, Bind, generic(&address), length), ND_SUCCESS);
	return CALL(p->a.connector, Bind, generic(&address), length);
}

static HRESULT bind_family(struct nd_pair *p)
{
	struct sockaddr_storage address;

	memset(&address, 0, sizeof(address));
	address.ss_family = AF_UNIX;
	return CALL(p->a.connector, Bind, generic(&address), sizeof(address));
}

static HRESULT bind_plain(struct nd_pair *p)
{
	struct sockaddr_storage address;
	const ULONG length = nd_local_address(&address);

	return CALL(p->a.connector, Bind, generic(&address), length);
}

static IND2Listener *new_listener(struct nd_side *s)
{
	IND2Listener *listener = NULL;

	assert_status(
		CALL(s->adapter, CreateListener, BY_ID(IID_IND2Listener), s->file, OUT(listener)),
		ND_SUCCESS);
	return listener;
}

/* The status of the listener's last call. */
static HRESULT ended(IND2Listener *listener, HRESULT status)
{
	assert_int_equal(CALL(listener, Release), 0);
	return status;
}

static HRESULT bound(IND2Listener *listener, int port)
{
	struct sockaddr_storage address;
	const ULONG length = nd_local_address(&address);

	((struct sockaddr_in *)&address)->sin_port = (in_port_t)port;
	return CALL(listener, Bind, generic(&address), length);
}

/* A listener may learn only when it begins to listen. */
static HRESULT listen_used_port(struct nd_pair *p)
{
	IND2Listener *listener = new_listener(&p->a);
	HRESULT status = bound(listener, ((struct sockaddr_in *)&p->address)->sin_port);

	if (status == ND_SUCCESS)
		status = CALL(listener, Listen, 0);
	return ended(listener, status);
}

static HRESULT listener_foreign(struct nd_pair *p)
{
	IND2Listener *listener = new_listener(&p->a);
	struct sockaddr_storage address;

	nowhere(&address);
	return ended(listener, CALL(listener, Bind, generic(&address), sizeof(struct sockaddr_in)));
}

static HRESULT listener_bind_twice(struct nd_pair *p)
{
	IND2Listener *listener = new_listener(&p->a);

	assert_status(bound(listener, 0), ND_SUCCESS);
	return ended(listener, bound(listener, 0));
}

static HRESULT listener_family(struct nd_pair *p)
{
	IND2Listener *listener = new_listener(&p->a);
	struct sockaddr_storage address;

	memset(&address, 0, sizeof(address));
	return ended(listener, CALL(listener, Bind, generic(&address), sizeof(address)));
}

static HRESULT listen_unbound(struct nd_pair *p)
{
	IND2Listener *listener = new_listener(&p->a);

	return ended(listener, CALL(listener, Listen, 0));
}

static HRESULT listen_twice(struct nd_pair *p)
{
	return CALL(p->listener, Listen, 0);
}

static HRESULT listen_plain(struct nd_pair *p)
{
	IND2Listener *listener = new_listener(&p->b);
	HRESULT status = bound(listener, 0);

	if (status == ND_SUCCESS)
		status = CALL(listener, Listen, 0);
	return ended(listener, status);
}

static HRESULT listener_address_early(struct nd_pair *p)
{
	IND2Listener *listener = new_listener(&p->a);
	struct sockaddr_storage address;
	ULONG length = sizeof(address);

	assert_status(bound(listener, 0), ND_SUCCESS);
	return ended(listener, CALL(listener, GetLocalAddress, generic(&address), &length));
}

static HRESULT listener_address_small(struct nd_pair *p)
{
	struct sockaddr_storage address;
	ULONG length = 1;
	HRESULT status;

	memset(&address, 0x5a, sizeof(address));
	status = CALL(p->listener, GetLocalAddress, generic(&address), &length);
	assert_int_equal(length, p->address_length);
	assert_int_equal(address.ss_family, 0x5a5a);
	return status;
}

static HRESULT listener_address_nowhere(struct nd_pair *p)
{
	return CALL(p->listener, GetLocalAddress, NULL, NULL);
}

static const struct nd_row bind_rows[] = {
	REAL("Connector.Bind", ND_SHARING_VIOLATION, bind_used_port),
	REAL("Connector.Bind", ND_INVALID_ADDRESS, bind_foreign),
	REAL("Connector.Bind", ND_ADDRESS_ALREADY_ASSOCIATED, bind_twice),
	REAL("Connector.Bind", ND_INVALID_PARAMETER, bind_family),
	FAULT("Connector.Bind", ND_ADDRESS_ALREADY_EXISTS, bind_plain, "conn_bind", 1,
              "ADDRESS_ALREADY_EXISTS"),
	FAULT("Connector.Bind", ND_TOO_MANY_ADDRESSES, bind_plain, "conn_bind", 1,
              "TOO_MANY_ADDRESSES"),
	FAULT("Connector.Bind", ND_DEVICE_REMOVED, bind_plain, "conn_bind", 1, "DEVICE_REMOVED"),
	BEYOND("Connector.Bind", ND_CANCELED, "the call does not end later"),
	REAL("Listener.Bind", ND_INVALID_ADDRESS, listener_foreign),
	REAL("Listener.Bind", ND_ADDRESS_ALREADY_ASSOCIATED, listener_bind_twice),
	REAL("Listener.Bind", ND_INVALID_PARAMETER, listener_family),
	FAULT("Listener.Bind", ND_INSUFFICIENT_RESOURCES, listen_plain, "listener_bind", 2,
              "INSUFFICIENT_RESOURCES"),
	FAULT("Listener.Bind", ND_TOO_MANY_ADDRESSES, listen_plain, "listener_bind", 2,
              "TOO_MANY_ADDRESSES"),
	REAL("Listener.Listen", ND_SHARING_VIOLATION, listen_used_port),
	REAL("Listener.Listen", ND_INVALID_DEVICE_STATE, listen_unbound),
	REAL("Listener.Listen", ND_INVALID_DEVICE_STATE, listen_twice),
	FAULT("Listener.Listen", ND_INSUFFICIENT_RESOURCES, listen_plain, "listener_listen", 2,
              "INSUFFICIENT_RESOURCES"),
	REAL("Listener.GetLocalAddress", ND_INVALID_DEVICE_STATE, listener_address_early),
	REAL("Listener.GetLocalAddress", ND_BUFFER_OVERFLOW, listener_address_small),
	REAL("Listener.GetLocalAddress", ND_INVALID_PARAMETER_2, listener_address_nowhere),
};

/* ---- GetConnectionRequest ---- */

static HRESULT request_cancelled(struct nd_pair *p)
{
	assert_status(CALL(p->listener, GetConnectionRequest, UNKNOWN(p->b.connector), &p->b.ov),
	              ND_PENDING);
	assert_status(CALL(p->listener, CancelOverlappedRequests), ND_SUCCESS);
	return nd_ov_end(&p->b.ov);
}

static HRESULT request_released(struct nd_pair *p)
{
	assert_status(CALL(p->listener, GetConnectionRequest, UNKNOWN(p->b.connector), &p->b.ov),
	              ND_PENDING);
	assert_int_equal(CALL(p->listener, Release), 0);
	p->listener = NULL;
	return nd_ov_end(&p->b.ov);
}

static HRESULT request_nowhere(struct nd_pair *p)
{
	return CALL(p->listener, GetConnectionRequest, NULL, &p->b.ov);
}

static HRESULT request_foreign(struct nd_pair *p)
{
	return CALL(p->listener, GetConnectionRequest, UNKNOWN(p->b.qp), &p->b.ov);
}

/* A's side has an adapter of its own. */
static HRESULT request_of_other_adapter(struct nd_pair *p)
{
	return CALL(p->listener, GetConnectionRequest, UNKNOWN(p->a.connector), &p->b.ov);
}

static HRESULT request_early(struct nd_pair *p)
{
	IND2Listener *listener = new_listener(&p->a);

	return ended(listener,
	             CALL(listener, GetConnectionRequest, UNKNOWN(p->a.connector), &p->a.ov));
}

static HRESULT request_again(struct nd_pair *p)
{
	nd_ask(p, NULL);
	return CALL(p->listener, GetConnectionRequest, UNKNOWN(p->b.connector), &p->b.ov);
}

#define REQUEST "Listener.GetConnectionRequest"

static const struct nd_row request_rows[] = {
	REAL(REQUEST, ND_CANCELED, request_cancelled),
	REAL(REQUEST, ND_CANCELED, request_released),
	REAL(REQUEST, ND_INVALID_PARAMETER_1, request_nowhere),
	REAL(REQUEST, ND_INVALID_PARAMETER_1, request_foreign),
	REAL(REQUEST, ND_INVALID_PARAMETER_1, request_of_other_adapter),
	REAL(REQUEST, ND_INVALID_DEVICE_STATE, request_early),
	REAL(REQUEST, ND_INVALID_DEVICE_STATE, request_again),
	BEYOND(REQUEST, ND_DEVICE_REMOVED, "provider `fault` removes no device"),
};

/* ---- Connect ---- */

static HRESULT dial(struct nd_pair *p, struct sockaddr_storage *to, const void *data, ULONG length)
{
	const HRESULT status = CALL(p->a.connector, Connect, UNKNOWN(p->a.qp), generic(to),
	                            sizeof(struct sockaddr_in), 0, 0, data, length, &p->a.ov);

	return status == ND_PENDING ? nd_ov_end(&p->a.ov) : status;
}

static HRESULT connect_long_data(struct nd_pair *p)
{
	static const char data[4096] = {0};

	return dial(p, &p->address, data, p->a.info.MaxCallerData + 1);
}

static HRESULT connect_null_data(struct nd_pair *p)
{
	return dial(p, &p->address, NULL, 1);
}

static HRESULT connect_again(struct nd_pair *p)
{
	nd_ask(p, NULL);
	return CALL(p->a.connector, Connect, UNKNOWN(p->a.qp), generic(&p->address),
	            p->address_length, 0, 0, NULL, 0, &p->b.ov);
}

static HRESULT connect_used_qp(struct nd_pair *p)
{
	nd_connect(p);
	nd_replace_connector(&p->b);
	return CALL(p->b.connector, Connect, UNKNOWN(p->b.qp), generic(&p->address),
	            p->address_length, 0, 0, NULL, 0, &p->b.ov);
}

static HRESULT connect_any(struct nd_pair *p)
{
	struct sockaddr_storage to;

	memset(&to, 0, sizeof(to));
	to.ss_family = AF_INET;
	((struct sockaddr_in *)&to)->sin_port = htons(1);
	return dial(p, &to, NULL, 0);
}

/* There is no listener any more. */
static HRESULT connect_nobody(struct nd_pair *p)
{
	assert_int_equal(CALL(p->listener, Release), 0);
	p->listener = NULL;
	return dial(p, &p->address, NULL, 0);
}

static HRESULT connect_rejected(struct nd_pair *p)
{
	nd_ask(p, NULL);
	assert_status(CALL(p->b.connector, Reject, NULL, 0), ND_SUCCESS);
	return nd_ov_end(&p->a.ov);
}

static HRESULT connect_cancelled(struct nd_pair *p)
{
	nd_ask(p, NULL);
	assert_status(CALL(p->a.connector, CancelOverlappedRequests), ND_SUCCESS);
	return nd_ov_end(&p->a.ov);
}

static HRESULT connect_no_qp(struct nd_pair *p)
{
	return CALL(p->a.connector, Connect, NULL, generic(&p->address), p->address_length, 0, 0,
	            NULL, 0, &p->a.ov);
}

static HRESULT connect_foreign_qp(struct nd_pair *p)
{
	return CALL(p->a.connector, Connect, UNKNOWN(p->a.cq), generic(&p->address),
	            p->address_length, 0, 0, NULL, 0, &p->a.ov);
}

static HRESULT connect_qp_of_other_adapter(struct nd_pair *p)
{
	return CALL(p->a.connector, Connect, UNKNOWN(p->b.qp), generic(&p->address),
	            p->address_length, 0, 0, NULL, 0, &p->a.ov);
}

static HRESULT connect_family(struct nd_pair *p)
{
	struct sockaddr_storage to;

	memset(&to, 0, sizeof(to));
	return dial(p, &to, NULL, 0);
}

static HRESULT connect_with_request(struct nd_pair *p)
{
	nd_ask(p, NULL);
	return CALL(p->b.connector, Connect, UNKNOWN(p->b.qp), generic(&p->address),
	            p->address_length, 0, 0, NULL, 0, &p->b.ov);
}

static HRESULT connect_plain(struct nd_pair *p)
{
	return dial(p, &p->address, NULL, 0);
}

static HRESULT complete_early(struct nd_pair *p)
{
	return CALL(p->a.connector, CompleteConnect, &p->a.ov);
}

static HRESULT complete_plain(struct nd_pair *p)
{
	HRESULT status;

	nd_ask(p, NULL);
	nd_answer(p, NULL);
	status = CALL(p->a.connector, CompleteConnect, &p->a.ov);
	return status == ND_PENDING ? nd_ov_end(&p->a.ov) : status;
}

#define CONNECT "Connector.Connect"
#define COMPLETE "Connector.CompleteConnect"
#define CONNECT_FAULT(status, what) FAULT(CONNECT, status, connect_plain, "conn_connect", 1, what)

static const struct nd_row connect_rows[] = {
	REAL(CONNECT, ND_INVALID_BUFFER_SIZE, connect_long_data),
	REAL(CONNECT, ND_ACCESS_VIOLATION, connect_null_data),
	REAL(CONNECT, ND_CONNECTION_ACTIVE, connect_again),
	REAL(CONNECT, ND_CONNECTION_ACTIVE, connect_used_qp),
	REAL(CONNECT, ND_BAD_NETWORK_NAME, connect_any),
	REAL(CONNECT, ND_CONNECTION_REFUSED, connect_nobody),
	REAL(CONNECT, ND_CONNECTION_REFUSED, connect_rejected),
	REAL(CONNECT, ND_CANCELED, connect_cancelled),
	REAL(CONNECT, ND_INVALID_PARAMETER_1, connect_no_qp),
	REAL(CONNECT, ND_INVALID_PARAMETER_1, connect_foreign_qp),
	REAL(CONNECT, ND_INVALID_PARAMETER_1, connect_qp_of_other_adapter),
	REAL(CONNECT, ND_INVALID_PARAMETER, connect_family),
	REAL(CONNECT, ND_INVALID_DEVICE_STATE, connect_with_request),
	CONNECT_FAULT(ND_NETWORK_UNREACHABLE, "NETWORK_UNREACHABLE"),
	CONNECT_FAULT(ND_HOST_UNREACHABLE, "HOST_UNREACHABLE"),
	CONNECT_FAULT(ND_IO_TIMEOUT, "IO_TIMEOUT"),
	CONNECT_FAULT(ND_DEVICE_REMOVED, "DEVICE_REMOVED"),
	REAL(COMPLETE, ND_CONNECTION_INVALID, complete_early),
	FAULT(COMPLETE, ND_IO_TIMEOUT, complete_plain, "conn_complete", 1, "IO_TIMEOUT"),
	FAULT(COMPLETE, ND_DEVICE_REMOVED, complete_plain, "conn_complete", 1, "DEVICE_REMOVED"),
};

static void binding(void **state)
{
	(void)state;
	nd_run_rows(ROWS(bind));
}

static void requests(void **state)
{
	(void)state;
	nd_run_rows(ROWS(request));
}

static void connecting(void **state)
{
	(void)state;
	nd_run_rows(ROWS(connect));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(binding),
		cmocka_unit_test(requests),
		cmocka_unit_test(connecting),
	};
	const int rc = nd_begin(argc, argv);

	return rc != 0 ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}
