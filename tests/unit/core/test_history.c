/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is told of a connection: its history, the log records that go with it, the counters of the
 * control path. On the in-process provider.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#undef fail /* cmocka's; <ndx/spi/log.h> has another */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <ndx/ndx.h>

#include <ndx/spi/log.h>
#include "connection.h"
#include "pair.h"

#define DRAIN_MS 50u
#define RECORDS 256
#define RECORD_TEXT 640

/* What the log said. */
static struct {
	pthread_mutex_t lock;
	size_t count;
	struct {
		enum ndx_log_level level;
		char text[RECORD_TEXT];
	} records[RECORDS];
} book = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void keep_record(void *arg, const struct ndx_log_record *record)
{
	(void)arg;
	(void)pthread_mutex_lock(&book.lock);
	if (book.count < RECORDS) {
		book.records[book.count].level = record->level;
		(void)snprintf(book.records[book.count].text, RECORD_TEXT, "%s", record->text);
		book.count++;
	}
	(void)pthread_mutex_unlock(&book.lock);
}

/* How many records of a level have all of both parts. */
static size_t said(enum ndx_log_level level, const char *part, const char *other)
{
	size_t count = 0;

	(void)pthread_mutex_lock(&book.lock);
	for (size_t i = 0; i < book.count; i++)
		count += book.records[i].level == level &&
		         strstr(book.records[i].text, part) != NULL &&
		         strstr(book.records[i].text, other) != NULL;
	(void)pthread_mutex_unlock(&book.lock);
	return count;
}

/* Both ends on one adapter. */
struct rig {
	struct ndx_adapter *adapter;
	struct ndx_listener *listener;
	struct sockaddr_in address;
	struct end active;
	struct end passive;
};

static int set_up(void **state)
{
	static struct rig rig;
	struct rig *r = &rig;

	memset(r, 0, sizeof(*r));
	*state = r;
	book.count = 0;
	ndx_log_set_sink(keep_record, NULL, NDX_LOG_DEBUG);
	if (ndx_adapter_open("loop", &r->adapter) != NDX_OK)
		return -1;
	r->listener = pair_listen(r->adapter, 0, &r->address);
	pair_make_end(r->adapter, DRAIN_MS, &r->active);
	pair_make_end(r->adapter, DRAIN_MS, &r->passive);
	return 0;
}

static int tear_down(void **state)
{
	struct rig *r = *state;

	pair_drop_end(&r->active);
	pair_drop_end(&r->passive);
	ndx_listener_close(r->listener);
	ndx_adapter_close(r->adapter);
	ndx_log_set_sink(NULL, NULL, NDX_LOG_ERROR);
	return 0;
}

static enum ndx_status begin_connect(struct rig *r)
{
	return pair_connect(&r->active, &r->address);
}

static void ends_with(struct end *e, enum ndx_status status)
{
	assert_int_equal(ndx_overlapped_wait(&e->ov, PATIENCE_MS), status);
}

static void connect_ends(struct rig *r)
{
	struct end *a = &r->active;
	struct end *p = &r->passive;

	assert_int_equal(ndx_listener_get_connection_request(r->listener, p->connector, &p->ov),
	                 NDX_PENDING);
	assert_int_equal(begin_connect(r), NDX_PENDING);
	ends_with(p, NDX_OK);
	assert_int_equal(ndx_connector_accept(p->connector, p->qp, NULL, &p->ov), NDX_PENDING);
	ends_with(a, NDX_OK);
	assert_int_equal(ndx_connector_complete_connect(a->connector, &a->ov), NDX_PENDING);
	ends_with(a, NDX_OK);
	ends_with(p, NDX_OK);
}

static void disconnect_ends(struct rig *r)
{
	assert_int_equal(ndx_disconnect(r->active.connector, PATIENCE_MS), NDX_OK);
	assert_int_equal(ndx_disconnect(r->passive.connector, PATIENCE_MS), NDX_OK);
}

/* The history says this, and times never go back. */
static void history_is(struct end *e, const char *const (*steps)[3], size_t count)
{
	struct ndx_transition list[NDX_HISTORY_MAX];
	size_t n = NDX_HISTORY_MAX;
	uint64_t total;

	assert_int_equal(ndx_connector_get_history(e->connector, list, &n, &total), NDX_OK);
	assert_int_equal(n, count);
	assert_int_equal(total, count);
	for (size_t i = 0; i < count; i++) {
		assert_string_equal(list[i].from, steps[i][0]);
		assert_string_equal(list[i].event, steps[i][1]);
		assert_string_equal(list[i].to, steps[i][2]);
		if (i > 0)
			assert_true(list[i].time_ns >= list[i - 1].time_ns);
	}
}

static void each_change_of_state_is_remembered_and_logged_once(void **state)
{
	static const char *const active[][3] = {
		{"NEW", "CONNECT", "CONNECTING"},
		{"CONNECTING", "ANSWER", "CONNECT_RESPONSE"},
		{"CONNECT_RESPONSE", "COMPLETE", "COMPLETING"},
		{"COMPLETING", "ESTABLISHED", "UP"},
		{"UP", "DISCONNECT", "DRAIN"},
	};
	static const char *const passive[][3] = {
		{"NEW", "GET_REQUEST", "AWAIT_REQUEST"},
		{"AWAIT_REQUEST", "REQUEST", "HAVE_REQUEST"},
		{"HAVE_REQUEST", "ACCEPT", "ACCEPTING"},
		{"ACCEPTING", "ESTABLISHED", "UP"},
	};
	struct rig *r = *state;
	struct ndx_transition list[NDX_HISTORY_MAX];
	size_t count = NDX_HISTORY_MAX;
	char step[64];

	connect_ends(r);
	history_is(&r->active, active, 4);
	history_is(&r->passive, passive, 4);
	disconnect_ends(r);
	assert_int_equal(ndx_connector_get_history(r->active.connector, list, &count, NULL),
	                 NDX_OK);
	assert_true(count > 5);
	assert_string_equal(list[4].event, active[4][1]);
	assert_string_equal(list[count - 1].to, "CLOSED_OK");
	for (size_t i = 0; i < count; i++) {
		(void)snprintf(step, sizeof(step), ": %s + %s -> %s", list[i].from, list[i].event,
		               list[i].to);
		assert_int_equal(said(NDX_LOG_DEBUG, r->active.name, step), 1);
	}
	assert_int_equal(said(NDX_LOG_DEBUG, r->active.name, " -> "), count);
	assert_int_equal(said(NDX_LOG_INFO, r->active.name, ": connected"), 1);
	assert_int_equal(said(NDX_LOG_INFO, r->active.name, ": disconnected in "), 1);
	assert_int_equal(said(NDX_LOG_ERROR, "", ""), 0);
}

static void abort_is_logged_once_with_its_cause_and_the_history(void **state)
{
	struct rig *r = *state;
	struct ndx_transition list[NDX_HISTORY_MAX];
	size_t count = NDX_HISTORY_MAX;

	connect_ends(r);
	assert_int_equal(ndx_qp_flush(r->active.qp), NDX_OK);
	assert_int_equal(ndx_disconnect(r->passive.connector, PATIENCE_MS),
	                 NDX_E_CONNECTION_ABORTED);
	assert_int_equal(said(NDX_LOG_ERROR, r->active.name, "flushed or closed by its own side"),
	                 1);
	assert_int_equal(said(NDX_LOG_ERROR, r->active.name, "qp#1 "), 1);
	assert_int_equal(said(NDX_LOG_ERROR, r->passive.name, ": aborted"), 1);
	assert_int_equal(said(NDX_LOG_ERROR, "", ""), 2);
	assert_int_equal(ndx_connector_get_history(r->active.connector, list, &count, NULL),
	                 NDX_OK);
	assert_int_equal(said(NDX_LOG_INFO, r->active.name, "history "), count);
	assert_string_equal(list[count - 1].to, "CLOSED_BAD");
	assert_int_equal(list[count - 2].status, NDX_E_CONNECTION_ABORTED);
	assert_string_equal(list[count - 2].cause, "flushed or closed by its own side");
}

static void only_the_latest_transitions_are_kept(void **state)
{
	struct rig *r = *state;
	struct ndx_transition list[NDX_HISTORY_MAX];
	struct ndx_transition last;
	size_t count = NDX_HISTORY_MAX;
	size_t one = 1;
	size_t none = 0;
	uint64_t total;

	for (int i = 0; i < NDX_HISTORY_MAX; i++) {
		assert_int_equal(begin_connect(r), NDX_PENDING);
		assert_int_equal(ndx_connector_cancel(r->active.connector), NDX_OK);
		ends_with(&r->active, NDX_E_CANCELED);
	}
	assert_int_equal(ndx_connector_get_history(r->active.connector, list, &count, &total),
	                 NDX_OK);
	assert_int_equal(count, NDX_HISTORY_MAX);
	assert_int_equal(total, 2 * NDX_HISTORY_MAX);
	assert_string_equal(list[0].event, "CONNECT");
	assert_string_equal(list[count - 1].event, "CANCEL");
	assert_int_equal(list[count - 1].status, NDX_E_CANCELED);
	assert_null(list[count - 1].reserved[0]);
	assert_null(list[count - 1].reserved[3]);
	assert_int_equal(ndx_connector_get_history(r->active.connector, &last, &one, NULL), NDX_OK);
	assert_int_equal(one, 1);
	assert_int_equal(last.time_ns, list[count - 1].time_ns);
	assert_int_equal(ndx_connector_get_history(r->active.connector, NULL, &none, &total),
	                 NDX_OK);
	assert_int_equal(none, 0);
	assert_int_equal(ndx_connector_get_history(r->active.connector, NULL, &one, NULL),
	                 NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_connector_get_history(NULL, NULL, &none, NULL),
	                 NDX_E_INVALID_PARAMETER);
}

static enum ndx_status refuse_to_connect(struct ndx_spi_conn *conn, const struct sockaddr *to,
                                         socklen_t len, const struct ndx_spi_params *params)
{
	(void)conn;
	(void)to;
	(void)len;
	(void)params;
	return ndxp_fail(NDX_E_HOST_UNREACHABLE, __func__, 113, "the cable is out");
}

/* The provider's words are in the one record that also says whose attempt it was. */
static void attempt_that_fails_at_once_is_logged_once(void **state)
{
	struct rig *r = *state;
	const struct ndx_provider_ops *ops = r->adapter->ops;
	struct ndx_provider_ops bad = *ops;

	bad.conn_connect = refuse_to_connect;
	r->adapter->ops = &bad;
	assert_int_equal(begin_connect(r), NDX_PENDING);
	ends_with(&r->active, NDX_E_HOST_UNREACHABLE);
	r->adapter->ops = ops;
	assert_int_equal(said(NDX_LOG_ERROR, r->active.name,
	                      "connecting failed: NDX_E_HOST_UNREACHABLE: the cable is out"),
	                 1);
	assert_int_equal(said(NDX_LOG_ERROR, "", ""), 1);
	/* what fails later in that thread is logged as ever */
	connect_ends(r);
	assert_int_equal(ndx_listener_listen(r->listener, 0), NDX_E_INVALID_DEVICE_STATE);
	assert_int_equal(said(NDX_LOG_ERROR, "", ""), 2);
}

static void make_words(char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		text[i] = i % 8 == 7 ? ' ' : 'w';
	text[length] = '\0';
}

/* What becomes of 399 characters: 31 words of 7, and 30 spaces. */
static void make_cut_words(char kept[256])
{
	make_words(kept, 247);
	strcat(kept, "..."); /* NOLINT(clang-analyzer-security.insecureAPI.strcpy): it has room */
}

static enum ndx_status refuse_in_many_words(struct ndx_spi_conn *conn, const struct sockaddr *to,
                                            socklen_t len, const struct ndx_spi_params *params)
{
	char text[400];

	(void)conn;
	(void)to;
	(void)len;
	(void)params;
	make_words(text, sizeof(text) - 1);
	return ndxp_fail(NDX_E_HOST_UNREACHABLE, __func__, 0, "%s", text);
}

static void what_a_provider_says_at_once_is_cut_in_the_history_only(void **state)
{
	struct rig *r = *state;
	const struct ndx_provider_ops *ops = r->adapter->ops;
	struct ndx_provider_ops bad = *ops;
	struct ndx_transition list[NDX_HISTORY_MAX];
	size_t count = NDX_HISTORY_MAX;
	char kept[256];
	char whole[400];

	bad.conn_connect = refuse_in_many_words;
	r->adapter->ops = &bad;
	assert_int_equal(begin_connect(r), NDX_PENDING);
	ends_with(&r->active, NDX_E_HOST_UNREACHABLE);
	r->adapter->ops = ops;
	assert_int_equal(ndx_connector_get_history(r->active.connector, list, &count, NULL),
	                 NDX_OK);
	make_cut_words(kept);
	assert_string_equal(list[count - 1].cause, kept);
	make_words(whole, 330);
	assert_int_equal(said(NDX_LOG_ERROR, r->active.name, whole), 1);
}

static void cause_that_comes_ahead_of_a_failure_is_told_with_it(void **state)
{
	struct rig *r = *state;
	char text[512];
	size_t length = sizeof(text);

	assert_int_equal(begin_connect(r), NDX_PENDING);
	adapter_lock(r->adapter);
	core_host.report(r->active.connector->native, 0, 5, "the peer speaks Latin");
	core_host.connected(r->active.connector->native, NDX_E_CONNECTION_ABORTED, 5, NULL);
	adapter_unlock(r->adapter);
	ends_with(&r->active, NDX_E_CONNECTION_ABORTED);
	assert_int_equal(said(NDX_LOG_ERROR, r->active.name,
	                      "NDX_E_CONNECTION_ABORTED: the peer speaks Latin (5: "),
	                 1);
	/* the record is the text that the connector keeps, with the native code once */
	assert_int_equal(ndx_connector_get_error_text(r->active.connector, text, &length), NDX_OK);
	assert_non_null(strstr(text, "(5: Input/output error)"));
	assert_int_equal(said(NDX_LOG_ERROR, text, ""), 1);
	assert_int_equal(said(NDX_LOG_ERROR, "error) (5:", ""), 0);
	assert_int_equal(said(NDX_LOG_ERROR, "", ""), 1);
}

/* What a provider says of an attempt that it ends. */
static void end_with_cause(struct rig *r, const char *cause)
{
	assert_int_equal(begin_connect(r), NDX_PENDING);
	adapter_lock(r->adapter);
	core_host.report(r->active.connector->native, 0, 5, cause);
	core_host.connected(r->active.connector->native, NDX_E_CONNECTION_ABORTED, 5, NULL);
	adapter_unlock(r->adapter);
	ends_with(&r->active, NDX_E_CONNECTION_ABORTED);
}

/* The peer refuses the attempt with so many bytes; the text of the connector. */
static void refuse_with(struct rig *r, const char *data, size_t data_length, char text[512])
{
	struct ndx_spi_params params = {.private_data_len = data_length};
	size_t length = 512;

	memcpy(params.private_data, data, data_length);
	assert_int_equal(begin_connect(r), NDX_PENDING);
	adapter_lock(r->adapter);
	/* the control thread may not have begun the attempt */
	assert_int_equal(conn_inbox_ready(r->active.connector), NDX_OK);
	core_host.report(r->active.connector->native, 0, 5, "the peer refused");
	core_host.connected(r->active.connector->native, NDX_E_CONNECTION_REFUSED, 5, &params);
	adapter_unlock(r->adapter);
	ends_with(&r->active, NDX_E_CONNECTION_REFUSED);
	assert_int_equal(ndx_connector_get_error_text(r->active.connector, text, &length), NDX_OK);
}

static void words_of_a_refusal_are_told(void **state)
{
	struct rig *r = *state;
	char text[512];

	refuse_with(r, "full house", 10, text);
	assert_non_null(strstr(text, ": the peer refused; the peer says: full house (5: "));
	assert_int_equal(said(NDX_LOG_ERROR, text, ""), 1);
}

static void data_of_a_refusal_that_are_no_words_are_not_told(void **state)
{
	struct rig *r = *state;
	char text[512];

	refuse_with(r, "\033[2Jgone", 8, text); /* would clear the terminal of a reader */
	assert_non_null(strstr(text, ": the peer refused; it sent 8 bytes of private data (5: "));
	assert_null(strstr(text, "gone"));
	assert_int_equal(said(NDX_LOG_ERROR, "gone", ""), 0);
}

static void a_long_cause_is_told_whole(void **state)
{
	struct rig *r = *state;
	struct ndx_transition list[NDX_HISTORY_MAX];
	size_t count = NDX_HISTORY_MAX;
	char cause[256];

	make_words(cause, 255);
	end_with_cause(r, cause);
	assert_int_equal(ndx_connector_get_history(r->active.connector, list, &count, NULL),
	                 NDX_OK);
	assert_string_equal(list[count - 1].cause, cause);
	assert_int_equal(said(NDX_LOG_ERROR, r->active.name, cause), 1);
}

static void a_cause_that_is_too_long_is_cut_after_a_word(void **state)
{
	struct rig *r = *state;
	struct ndx_transition list[NDX_HISTORY_MAX];
	size_t count = NDX_HISTORY_MAX;
	char cause[400];
	char kept[256];

	make_words(cause, sizeof(cause) - 1);
	end_with_cause(r, cause);
	assert_int_equal(ndx_connector_get_history(r->active.connector, list, &count, NULL),
	                 NDX_OK);
	make_cut_words(kept);
	assert_string_equal(list[count - 1].cause, kept);
}

/* What a refused attempt had to say is not said of the connection that came up after it. */
static void cause_does_not_outlive_its_attempt(void **state)
{
	struct rig *r = *state;

	assert_int_equal(begin_connect(r), NDX_PENDING);
	adapter_lock(r->adapter);
	core_host.report(r->active.connector->native, 0, 5, "old news");
	core_host.connected(r->active.connector->native, NDX_E_CONNECTION_REFUSED, 5, NULL);
	adapter_unlock(r->adapter);
	ends_with(&r->active, NDX_E_CONNECTION_REFUSED);
	ndx_listener_close(r->listener); /* it still holds that request */
	assert_int_equal(ndx_listen_on(r->adapter, (const struct sockaddr *)&r->address,
	                               sizeof(r->address), 0, &r->listener),
	                 NDX_OK);
	connect_ends(r);
	assert_int_equal(ndx_qp_flush(r->active.qp), NDX_OK);
	assert_int_equal(said(NDX_LOG_ERROR, "aborted", "old news"), 0);
	assert_int_equal(said(NDX_LOG_ERROR, r->active.name,
	                      "aborted: NDX_E_CONNECTION_ABORTED: flushed or closed by its own "
	                      "side"),
	                 1);
}

static void outcomes_are_counted(void **state)
{
	struct rig *r = *state;
	struct ndx_adapter_stats s = {.size = sizeof(s)};
	struct end idle;

	connect_ends(r);
	pair_make_end(r->adapter, DRAIN_MS, &idle);
	assert_int_equal(pair_connect(&idle, &r->address), NDX_PENDING);
	assert_int_equal(ndx_connector_cancel(idle.connector), NDX_OK);
	pair_drop_end(&idle);
	assert_int_equal(ndx_adapter_get_stats(r->adapter, &s), NDX_OK);
	assert_int_equal(s.established, 2);
	assert_int_equal(s.connects[0], 1);
	assert_int_equal(s.connects[-NDX_E_CANCELED], 1);
	assert_int_equal(s.accepts[0], 1);
	assert_int_equal(s.disconnects[NDX_OUTCOME_GRACEFUL].count, 0);
	disconnect_ends(r);
	assert_int_equal(ndx_adapter_get_stats(r->adapter, &s), NDX_OK);
	assert_int_equal(s.established, 0);
	assert_int_equal(s.disconnects[NDX_OUTCOME_GRACEFUL].count, 2);
	assert_true(s.disconnects[NDX_OUTCOME_GRACEFUL].min_ns <=
	            s.disconnects[NDX_OUTCOME_GRACEFUL].max_ns);
	assert_int_equal(s.connectors.now, 2);
	assert_int_equal(s.connectors.ever, 3);
	assert_int_equal(s.qps.now, 2);
	assert_int_equal(s.cqs.now, 2);
	assert_int_equal(s.listeners.now, 1);
	assert_int_equal(s.mrs.ever, 0);
}

/* An attempt that was given up keeps no other out; one that waits does. */
static void abandoned_request_makes_room_in_the_backlog(void **state)
{
	struct rig *r = *state;
	struct ndx_adapter_stats s = {.size = sizeof(s)};
	struct end third;

	ndx_listener_close(r->listener);
	assert_int_equal(ndx_listen_on(r->adapter, (const struct sockaddr *)&r->address,
	                               sizeof(r->address), 1, &r->listener),
	                 NDX_OK);
	assert_int_equal(begin_connect(r), NDX_PENDING);
	assert_int_equal(ndx_connector_cancel(r->active.connector), NDX_OK);
	assert_int_equal(begin_connect(r), NDX_PENDING);
	pair_make_end(r->adapter, DRAIN_MS, &third);
	assert_int_equal(pair_connect(&third, &r->address), NDX_PENDING);
	ends_with(&third, NDX_E_CONNECTION_REFUSED);
	assert_int_equal(ndx_overlapped_status(&r->active.ov), NDX_PENDING);
	assert_int_equal(ndx_adapter_get_stats(r->adapter, &s), NDX_OK);
	assert_int_equal(s.requests, 3);
	assert_int_equal(s.requests_refused, 2);
	assert_int_equal(ndx_connector_cancel(r->active.connector), NDX_OK);
	pair_drop_end(&third);
}

static void providers_need_not_count(void **state)
{
	struct rig *r = *state;
	const struct ndx_provider_ops *ops = r->adapter->ops;
	struct ndx_provider_ops mute = *ops;
	struct ndx_adapter_stats all = {.size = sizeof(all)};
	struct ndx_qp_stats qp = {.size = sizeof(qp)};
	struct ndx_cq_stats cq = {.size = sizeof(cq)};

	mute.qp_get_stats = NULL;
	mute.cq_get_stats = NULL;
	mute.get_counters = NULL;
	r->adapter->ops = &mute;
	assert_int_equal(ndx_qp_get_stats(r->active.qp, &qp), NDX_E_NOT_SUPPORTED);
	assert_int_equal(ndx_cq_get_stats(r->active.cq, &cq), NDX_E_NOT_SUPPORTED);
	assert_int_equal(ndx_adapter_get_stats(r->adapter, &all), NDX_OK);
	assert_int_equal(all.qps.now, 2);
	r->adapter->ops = ops;
	qp.size--;
	assert_int_equal(ndx_qp_get_stats(r->active.qp, &qp), NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_cq_get_stats(r->active.cq, NULL), NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_adapter_get_stats(NULL, &all), NDX_E_INVALID_PARAMETER);
}

static void durations_fall_into_buckets_of_doubling_width(void **state)
{
	struct ndx_duration_stats s = {0};

	(void)state;
	stats_add_duration(&s, 1999);
	stats_add_duration(&s, 2000);
	stats_add_duration(&s, 3999);
	stats_add_duration(&s, 4000);
	stats_add_duration(&s, UINT64_C(3600) * 1000000000);
	assert_int_equal(s.log2_us[0], 1);
	assert_int_equal(s.log2_us[1], 2);
	assert_int_equal(s.log2_us[2], 1);
	assert_int_equal(s.log2_us[NDX_STATS_BUCKETS - 1], 1);
	assert_int_equal(s.count, 5);
	assert_int_equal(s.min_ns, 1999);
	assert_int_equal(s.max_ns, UINT64_C(3600) * 1000000000);
}

static void outcomes_have_names(void **state)
{
	(void)state;
	for (int i = 0; i < NDX_OUTCOMES; i++)
		assert_string_not_equal(ndx_disconnect_outcome_name((enum ndx_disconnect_outcome)i),
		                        "?");
	assert_string_equal(ndx_disconnect_outcome_name((enum ndx_disconnect_outcome)NDX_OUTCOMES),
	                    "?");
	/* every status has its place in the arrays */
	assert_true(-NDX_E_ACCESS_DENIED < NDX_STATS_STATUSES);
}

#define WITH_RIG(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_RIG(each_change_of_state_is_remembered_and_logged_once),
		WITH_RIG(abort_is_logged_once_with_its_cause_and_the_history),
		WITH_RIG(only_the_latest_transitions_are_kept),
		WITH_RIG(attempt_that_fails_at_once_is_logged_once),
		WITH_RIG(what_a_provider_says_at_once_is_cut_in_the_history_only),
		WITH_RIG(cause_that_comes_ahead_of_a_failure_is_told_with_it),
		WITH_RIG(words_of_a_refusal_are_told),
		WITH_RIG(data_of_a_refusal_that_are_no_words_are_not_told),
		WITH_RIG(a_long_cause_is_told_whole),
		WITH_RIG(a_cause_that_is_too_long_is_cut_after_a_word),
		WITH_RIG(cause_does_not_outlive_its_attempt),
		WITH_RIG(outcomes_are_counted),
		WITH_RIG(abandoned_request_makes_room_in_the_backlog),
		WITH_RIG(providers_need_not_count),
		cmocka_unit_test(durations_fall_into_buckets_of_doubling_width),
		cmocka_unit_test(outcomes_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
