/* SPDX-License-Identifier: BSD-2-Clause */
/* Plugins that misbehave, what others notice of it, and what is told of it afterwards. */
#include "says.h"

#include <arpa/inet.h>
#include <jansson.h>
#include <poll.h>

#include <ndx/log.h>
#include <ndx/negotiation_server.h>

#include <ndx/spi/system.h>

enum { OTHERS = 40, STUCK = 6, MESSAGE = 1024 };

static int stuck_fd = -1; /* a flag: stuck calls return when it is up */

static enum ndx_status talk(void *session, const struct ndx_exchange *x, const void *peer,
                            size_t peer_length, struct ndx_exchange_reply *reply)
{
	(void)session;
	(void)peer;
	(void)peer_length;
	reply->length = 4;
	memcpy(reply->data, "talk", 4);
	reply->completed = x->round == 2;
	return NDX_OK;
}

static enum ndx_status for_ever(void *session, const struct ndx_exchange *x, const void *peer,
                                size_t peer_length, struct ndx_exchange_reply *reply)
{
	(void)talk(session, x, peer, peer_length, reply);
	reply->completed = false;
	return NDX_OK;
}

static enum ndx_status one_too_many(void *session, const struct ndx_exchange *x, const void *peer,
                                    size_t peer_length, struct ndx_exchange_reply *reply)
{
	(void)talk(session, x, peer, peer_length, reply);
	reply->length = reply->room + 1;
	return NDX_OK;
}

static enum ndx_status far_too_many(void *session, const struct ndx_exchange *x, const void *peer,
                                    size_t peer_length, struct ndx_exchange_reply *reply)
{
	(void)talk(session, x, peer, peer_length, reply);
	reply->length = SIZE_MAX;
	return NDX_OK;
}

static enum ndx_status lost(void *session, const struct ndx_exchange *x, const void *peer,
                            size_t peer_length, struct ndx_exchange_reply *reply)
{
	(void)session;
	(void)x;
	(void)peer;
	(void)peer_length;
	(void)snprintf(reply->text, sizeof(reply->text), "this cannot be");
	return NDX_E_INTERNAL_ERROR;
}

/* The server's only: a client would hold up its own test. */
static enum ndx_status stuck(void *session, const struct ndx_exchange *x, const void *peer,
                             size_t peer_length, struct ndx_exchange_reply *reply)
{
	struct pollfd flag = {.fd = stuck_fd, .events = POLLIN};

	if (x->role == NDX_ROLE_SERVER)
		(void)poll(&flag, 1, -1);
	return talk(session, x, peer, peer_length, reply);
}

static const struct ndx_variant_ops ops[] = {
	{.info = talk, .ready = talk},         {.info = for_ever, .ready = talk},
	{.info = one_too_many, .ready = talk}, {.info = far_too_many, .ready = talk},
	{.info = lost, .ready = talk},         {.info = stuck, .ready = talk},
};
enum { GOOD, FOR_EVER, ONE_TOO_MANY, FAR_TOO_MANY, LOST, STUCK_CALL, VARIANTS };
static const struct ndx_plugin_variant list[VARIANTS] = {
	{.name = "good", .help = "", .ops = &ops[GOOD]},
	{.name = "for-ever", .help = "", .ops = &ops[FOR_EVER]},
	{.name = "one-too-many", .help = "", .ops = &ops[ONE_TOO_MANY]},
	{.name = "far-too-many", .help = "", .ops = &ops[FAR_TOO_MANY]},
	{.name = "lost", .help = "", .ops = &ops[LOST]},
	{.name = "stuck", .help = "", .ops = &ops[STUCK_CALL]},
};
static const struct ndx_plugin plugin = {.abi = NDX_PLUGIN_ABI,
                                         .size = sizeof(plugin),
                                         .name = "test",
                                         .version = "1",
                                         .vendor = "us",
                                         .list = list,
                                         .count = VARIANTS};

/* ---- the rig ---- */

struct rig {
	struct ndx_negotiation *negotiation;
	struct ndx_variant *variants[VARIANTS];
	struct ndx_negotiation_server *server;
	const char *wanted; /* in the log, ... */
	uint32_t heard;     /* ... so often; atomic */
	char address[32];
};

static void on_record(void *arg, const struct ndx_log_record *record)
{
	struct rig *r = arg;

	if (r->wanted != NULL && strstr(record->text, r->wanted) != NULL)
		(void)__atomic_add_fetch(&r->heard, 1, __ATOMIC_SEQ_CST);
}

static int set_up(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));
	struct ndx_negotiation_server_attr attr;
	struct sockaddr_in at;
	socklen_t length = sizeof(at);

	assert_non_null(r);
	stuck_fd = ndxp_eventfd_create();
	ndx_log_set_sink(on_record, r, NDX_LOG_WARN);
	assert_int_equal(ndx_negotiation_create(&r->negotiation), NDX_OK);
	assert_int_equal(ndx_negotiation_register(r->negotiation, &plugin), NDX_OK);
	for (int i = 0; i < VARIANTS; i++)
		assert_int_equal(ndx_negotiation_get_variant(r->negotiation, "test", list[i].name,
		                                             NULL, 0, &r->variants[i]),
		                 NDX_OK);
	ndx_negotiation_server_attr_init(&attr);
	attr.address = "127.0.0.1:0";
	attr.variants = r->variants;
	attr.variant_count = VARIANTS;
	attr.max_message = MESSAGE;
	attr.max_rounds = 8;
	attr.plugin_warn_ms = 50;
	assert_int_equal(ndx_negotiation_server_create(&attr, &r->server), NDX_OK);
	assert_int_equal(
		ndx_negotiation_server_get_address(r->server, (struct sockaddr *)&at, &length),
		NDX_OK);
	(void)snprintf(r->address, sizeof(r->address), "127.0.0.1:%u", ntohs(at.sin_port));
	*state = r;
	return 0;
}

static int end(void **state)
{
	struct rig *r = *state;

	ndxp_eventfd_set(stuck_fd);
	ndx_negotiation_server_close(r->server);
	for (int i = 0; i < VARIANTS; i++)
		ndx_variant_close(r->variants[i]);
	assert_int_equal(ndx_negotiation_close(r->negotiation), NDX_OK);
	ndx_log_set_sink(NULL, NULL, NDX_LOG_ERROR);
	ndxp_fd_close(stuck_fd);
	free(r);
	return 0;
}

static struct ndx_session *session(struct rig *r, int variant)
{
	const char *address = r->address;
	struct ndx_session_attr attr;
	struct ndx_session *s;

	ndx_session_attr_init(&attr);
	attr.variant = r->variants[variant];
	attr.servers = &address;
	attr.server_count = 1;
	attr.attempts = 1;
	attr.max_message = MESSAGE;
	attr.max_rounds = 8;
	attr.max_history = 64;
	assert_int_equal(ndx_session_create(&attr, &s), NDX_OK);
	return s;
}

static void others_are_served(struct rig *r)
{
	for (int i = 0; i < OTHERS; i++) {
		struct ndx_session *s = session(r, GOOD);

		if (ndx_session_run(s) != NDX_OK)
			fail_msg("%s", ndx_last_error());
		ndx_session_close(s);
	}
}

static void fails(struct rig *r, int variant, enum ndx_error_layer layer, const char *text)
{
	struct ndx_session *s = session(r, variant);
	struct ndx_session_error error;

	assert_true(ndx_session_run(s) != NDX_OK);
	error.size = sizeof(error);
	assert_int_equal(ndx_session_get_error(s, &error), NDX_OK);
	assert_int_equal(error.layer, layer);
	assert_int_equal(error.stage, NDX_STAGE_INFO);
	if (strstr(error.text, text) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", error.text, text);
	ndx_session_close(s);
}

static void what_never_completes_is_ended(void **state)
{
	fails(*state, FOR_EVER, NDX_LAYER_FRAMEWORK, "more rounds than allowed");
	others_are_served(*state);
}

static void lengths_out_of_range_end_their_session(void **state)
{
	fails(*state, ONE_TOO_MANY, NDX_LAYER_PLUGIN, "returned 1025 bytes, 1024 are allowed");
	fails(*state, FAR_TOO_MANY, NDX_LAYER_PLUGIN,
	      "returned 18446744073709551615 bytes, 1024 are allowed");
	others_are_served(*state);
}

/* More of them than the pool has threads; each is named, and others come through. */
static void stuck_calls_are_named(void **state)
{
	struct rig *r = *state;
	struct ndx_session *held[STUCK];

	r->wanted = "plugin \"test\", variant \"stuck\" has not returned from stage info for 50 ms";
	for (int i = 0; i < STUCK; i++) {
		held[i] = session(r, STUCK_CALL);
		assert_int_equal(ndx_session_connect(held[i]), NDX_OK);
	}
	others_are_served(r);
	while (__atomic_load_n(&r->heard, __ATOMIC_SEQ_CST) < STUCK)
		(void)poll(NULL, 0, 1);
	others_are_served(r);
	/* Once for each call, however long it takes. */
	assert_int_equal(__atomic_load_n(&r->heard, __ATOMIC_SEQ_CST), STUCK);
	ndxp_eventfd_set(stuck_fd);
	for (int i = 0; i < STUCK; i++) {
		assert_int_equal(ndx_session_execute(held[i], NDX_STAGE_INFO), NDX_OK);
		ndx_session_close(held[i]);
	}
}

static void the_unexpected_leaves_a_backtrace(void **state)
{
	struct rig *r = *state;

	r->wanted = "unexpected failure: #";
	fails(r, LOST, NDX_LAYER_PLUGIN, "this cannot be");
	assert_true(__atomic_load_n(&r->heard, __ATOMIC_SEQ_CST) > 3);
}

/* ---- what is told afterwards ---- */

static json_t *snapshot(const struct ndx_session *s)
{
	char *text = NULL;
	json_error_t error;
	json_t *root;

	assert_int_equal(ndx_session_snapshot(s, &text), NDX_OK);
	root = json_loads(text, 0, &error);
	if (root == NULL)
		fail_msg("%s: %s", error.text, text);
	free(text);
	return root;
}

static const char *string(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));

	assert_non_null(value);
	return value;
}

/* Too little room: the latest entries, and `total` says how many there were. */
static void the_latest_that_fit(struct ndx_session *s, const struct ndx_history_entry *entries,
                                size_t all)
{
	struct ndx_history_entry two[2];
	uint64_t total = 0;
	size_t count = 2;
	size_t none = 0;

	assert_int_equal(ndx_session_get_history(s, two, &count, &total), NDX_OK);
	assert_int_equal(count, 2);
	assert_int_equal(total, all);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(two[i].at_us, entries[all - 2 + i].at_us);
		assert_int_equal(two[i].kind, entries[all - 2 + i].kind);
	}
	total = 0;
	assert_int_equal(ndx_session_get_history(s, NULL, &none, &total), NDX_OK);
	assert_int_equal(none, 0);
	assert_int_equal(total, all);
	assert_int_equal(ndx_session_get_history(s, NULL, &count, NULL), NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_session_get_history(s, two, NULL, NULL), NDX_E_INVALID_PARAMETER);
}

static void a_session_tells_its_history(void **state)
{
	struct rig *r = *state;
	struct ndx_session *s = session(r, GOOD);
	struct ndx_history_entry entries[64];
	json_t *root = snapshot(s);
	const json_t *history;
	char line[160];
	size_t count = 64;
	uint64_t total = 0;

	assert_string_equal(string(root, "state"), "created");
	assert_true(json_is_null(json_object_get(root, "error")));
	assert_true(json_is_null(json_object_get(root, "agreed")));
	assert_int_equal(json_array_size(json_object_get(root, "history")), 0);
	json_decref(root);
	assert_int_equal(ndx_session_run(s), NDX_OK);
	root = snapshot(s);
	assert_string_equal(string(root, "state"), "connected");
	assert_string_equal(string(root, "plugin"), "test");
	assert_string_equal(string(root, "variant"), "good");
	assert_string_equal(string(root, "server"), r->address);
	assert_true(json_is_object(json_object_get(root, "agreed")));
	history = json_object_get(root, "history");
	assert_int_equal(ndx_session_get_history(s, entries, &count, &total), NDX_OK);
	assert_int_equal(json_array_size(history), count);
	assert_int_equal(total, count);
	for (size_t i = 0; i < count; i++) {
		const json_t *e = json_array_get(history, i);

		assert_string_equal(string(e, "what"), ndx_history_kind_name(entries[i].kind));
		assert_int_equal(json_integer_value(json_object_get(e, "bytes")), entries[i].bytes);
		assert_int_equal(json_integer_value(json_object_get(e, "bytes_in")),
		                 entries[i].bytes_in);
		assert_ptr_equal(ndx_history_entry_text(&entries[i], line, sizeof(line)), line);
		assert_non_null(strstr(line, " ms"));
		assert_null(entries[i].reserved[0]);
		assert_null(entries[i].reserved[3]);
	}
	assert_non_null(strstr(ndx_history_entry_text(&entries[0], line, sizeof(line)),
	                       "ms  hello, 84 bytes out, 12 in, "));
	assert_non_null(strstr(ndx_history_entry_text(&entries[1], line, sizeof(line)),
	                       "ms  connect 127.0.0.1:"));
	assert_non_null(strstr(ndx_history_entry_text(&entries[2], line, sizeof(line)),
	                       "ms  info 0: call info, 0 bytes in, 4 out, "));
	json_decref(root);
	the_latest_that_fit(s, entries, count);
	ndx_session_close(s);
	assert_int_equal(ndx_session_snapshot(NULL, NULL), NDX_E_INVALID_PARAMETER);
}

static void a_session_tells_why_it_failed(void **state)
{
	struct rig *r = *state;
	struct ndx_session *s = session(r, LOST);
	const json_t *error;
	json_t *root;

	assert_true(ndx_session_run(s) != NDX_OK);
	root = snapshot(s);
	error = json_object_get(root, "error");
	assert_string_equal(string(root, "state"), "failed");
	assert_string_equal(string(error, "layer"), "plugin");
	assert_string_equal(string(error, "plugin_error"), "vendor");
	assert_string_equal(string(error, "stage"), "info");
	assert_non_null(strstr(string(error, "text"), "this cannot be"));
	json_decref(root);
	ndx_session_close(s);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, end)
	const struct CMUnitTest tests[] = {
		T(what_never_completes_is_ended), T(lengths_out_of_range_end_their_session),
		T(stuck_calls_are_named),         T(the_unexpected_leaves_a_backtrace),
		T(a_session_tells_its_history),   T(a_session_tells_why_it_failed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
