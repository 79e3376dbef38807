/* SPDX-License-Identifier: BSD-2-Clause */
/* Plugins written in Python. */
#include "ends.h"

#include <pthread.h>
#include <unistd.h>

#include "closed_port.h"

#define HOST TEST_PLUGINS "/ndx-host-py.so"
#define SAMPLE(name) TEST_SOURCE "/plugins/python/samples/ndx-plugin-" name ".py"
#define ODD(name) TEST_SOURCE "/tests/fakes/python/ndx-plugin-" name ".py"

enum { THREADS = 4, EACH = 20 };

static bool interpreter_is_there(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	bool found = false;

	assert_non_null(f);
	while (!found && fgets(line, sizeof(line), f) != NULL)
		found = strstr(line, "libpython") != NULL;
	(void)fclose(f);
	return found;
}

static struct ndx_negotiation *framework(const char *path)
{
	struct ndx_negotiation *n;

	assert_int_equal(ndx_negotiation_create(&n), NDX_OK);
	if (path != NULL && ndx_negotiation_load(n, path) != NDX_OK)
		fail_msg("%s", ndx_last_error());
	return n;
}

static struct ndx_variant *variant(struct ndx_negotiation *n, const char *plugin, const char *name,
                                   const char *key, const char *value)
{
	const struct ndx_setting setting = {key, value};
	struct ndx_variant *v = NULL;

	if (ndx_negotiation_get_variant(n, plugin, name, &setting, key != NULL, &v) != NDX_OK)
		fail_msg("%s", ndx_last_error());
	return v;
}

static void forget(struct ndx_negotiation *n, struct ndx_variant *v)
{
	ndx_variant_close(v);
	assert_int_equal(ndx_negotiation_close(n), NDX_OK);
}

/* The first of all tests: none has run yet. */
static void it_is_loaded_when_it_is_needed(void **state)
{
	struct ndx_negotiation *n = framework(NULL);

	(void)state;
	assert_int_equal(ndx_negotiation_discover(n, TEST_PLUGINS, NULL), NDX_OK);
	assert_false(interpreter_is_there());
	assert_int_equal(ndx_negotiation_load(n, SAMPLE("gateway")), NDX_OK);
	assert_true(interpreter_is_there());
	assert_int_equal(ndx_negotiation_unregister(n, "python"), NDX_E_DEVICE_BUSY);
	says("plugin \"python\" runs 1 others");
	assert_int_equal(ndx_negotiation_unregister(n, "gateway"), NDX_OK);
	assert_int_equal(ndx_negotiation_unregister(n, "python"), NDX_OK);
	/* And once more, after all of it was gone. */
	assert_int_equal(ndx_negotiation_load(n, SAMPLE("gateway")), NDX_OK);
	assert_int_equal(ndx_negotiation_close(n), NDX_OK);
}

/* ---- three rounds between two languages ---- */

struct heard {
	uint32_t rings; /* atomic, as the next */
	uint32_t lines;
	const char *line;
};

static void on_record(void *arg, const struct ndx_log_record *record)
{
	struct heard *heard = arg;

	if (strstr(record->text, "8 slots of 512 bytes with \"") != NULL)
		(void)__atomic_add_fetch(&heard->rings, 1, __ATOMIC_SEQ_CST);
	if (heard->line != NULL && strstr(record->text, heard->line) != NULL)
		(void)__atomic_add_fetch(&heard->lines, 1, __ATOMIC_SEQ_CST);
}

static struct ndx_variant *example(struct ndx_negotiation *n, const char *slots, const char *size)
{
	const struct ndx_setting settings[] = {
		{"slots", slots}, {"slot-size", size}, {"label", "x"}};
	struct ndx_variant *v;

	assert_int_equal(ndx_negotiation_get_variant(n, "example", "three-round", settings, 3, &v),
	                 NDX_OK);
	return v;
}

static void three_rounds(const char *client, const char *server, const char *uri)
{
	struct ndx_negotiation *a = framework(client);
	struct ndx_negotiation *b = framework(server);
	struct ndx_variant *left = example(a, "100", "512");
	struct ndx_variant *right = example(b, "8", "9000");
	struct rendezvous m = {.reads = {3, 4, 5, 2}, .memory = {0x5000, 0x100, 77}};
	struct heard heard = {0};

	if (uri != NULL && (!end_open(&m.client, uri) || !end_open(&m.server, uri)))
		skip();
	ndx_log_set_sink(on_record, &heard, NDX_LOG_INFO);
	rendezvous_run(&m, left, right);
	ndx_log_set_sink(NULL, NULL, NDX_LOG_ERROR);
	if (m.status != NDX_OK)
		fail_msg("%s", m.error.text);
	assert_int_equal(heard.rings, 2);
	assert_int_equal(m.rounds, 4);
	if (uri != NULL) {
		assert_memory_equal(&m.agreed[0], &m.agreed[1], sizeof(m.agreed[0]));
		assert_int_equal(m.agreed[0].client_reads, 4);
		assert_int_equal(m.peer[0].memory.address, 0x5000);
		assert_int_equal(m.peer[0].memory.token, 77);
		end_close(&m.client);
		end_close(&m.server);
	}
	forget(a, left);
	forget(b, right);
}

static void python_and_c_complete_three_rounds(void **state)
{
	static const char *const python = SAMPLE("example");
	static const char *const c = TEST_PLUGINS "/ndx-plugin-example.so";

	(void)state;
	three_rounds(python, c, NULL);
	three_rounds(c, python, NULL);
	three_rounds(python, c, "loop");
	three_rounds(c, python, "ofi:tcp?iface=lo");
	three_rounds(python, python, "loop");
}

/* ---- what goes wrong ---- */

static void files_are_refused_with_a_reason(void **state)
{
	static const struct {
		const char *path;
		enum ndx_status status;
		const char *text;
	} files[] = {
		{ODD("hole"), NDX_E_INVALID_CONFIG,
	         "class Half: required function rdma_ready_exchange is missing"},
		{ODD("nameless"), NDX_E_INVALID_CONFIG, "PLUGIN, its name, is missing"},
		{ODD("broken"), NDX_E_INVALID_CONFIG,
	         "ModuleNotFoundError: No module named 'a_module_that_nobody_has'"},
		{ODD("schema"), NDX_E_INVALID_CONFIG,
	         "class Only: parameter size: its type is none of bool, int, string, choice"},
		{ODD("again"), NDX_E_DEVICE_BUSY, "the name is taken by the plugin of"},
		{"/nowhere/ndx-plugin-x.py", NDX_E_DEVICE_NOT_READY, "cannot be resolved"},
	};
	struct ndx_negotiation *n = framework(ODD("odd"));
	struct ndx_variant *v;

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		assert_int_equal(ndx_negotiation_load(n, files[i].path), files[i].status);
		says(files[i].text);
	}
	assert_int_equal(ndx_negotiation_get_variant(n, "odd", "absent", NULL, 0, &v),
	                 NDX_E_NOT_SUPPORTED);
	says("no card in slot 3");
	assert_int_equal(ndx_negotiation_get_variant(n, "odd", "unwritable", NULL, 0, &v),
	                 NDX_E_NOT_SUPPORTED);
	says("UnicodeEncodeError: 'utf-8' codec can't encode");
	forget(n, variant(n, "odd", "good", NULL, NULL));
}

static void settings_arrive_in_pythons_types(void **state)
{
	const struct ndx_setting wrong = {"mode", "fast"};
	struct ndx_negotiation *n = framework(ODD("odd"));
	struct ndx_variant *v;

	(void)state;
	assert_int_equal(ndx_negotiation_get_variant(n, "odd", "picky", &wrong, 1, &v),
	                 NDX_E_INVALID_CONFIG);
	says("ValueError: these will not do: {'flag': True, 'mode': 'fast', 'text': None}");
	forget(n, variant(n, "odd", "picky", NULL, NULL));
}

struct odd {
	const char *name;
	enum ndx_plugin_error error;
	enum ndx_stage stage;
	const char *text;
};

static void exceptions_are_the_plugins_errors(void **state)
{
	static const struct odd odd[] = {
		{"raises", NDX_PLUGIN_VENDOR, NDX_STAGE_INFO, "KeyError: 'nothing'"},
		{"raises-later", NDX_PLUGIN_PEER_DATA, NDX_STAGE_READY,
	         "the peer is not to be trusted"},
		{"raises-at-once", NDX_PLUGIN_RESOURCES, NDX_STAGE_INFO,
	         "MemoryError: no room for it"},
		{"too-long", NDX_PLUGIN_SERIALIZATION, NDX_STAGE_INFO,
	         "it returned 65537 bytes, 65536 are allowed"},
		{"no-tuple", NDX_PLUGIN_VENDOR, NDX_STAGE_INFO,
	         "TypeError: it returned b'hello', not (data, completed)"},
		{"no-bytes", NDX_PLUGIN_VENDOR, NDX_STAGE_INFO, "TypeError: a bytes-like object"},
		{"bad-peer", NDX_PLUGIN_VENDOR, NDX_STAGE_INFO,
	         "ValueError: qpn is 4294967296, it has 32 bits"},
		{"endless", NDX_PLUGIN_OK, NDX_STAGE_INFO, "more rounds than allowed"},
	};
	struct ndx_negotiation *n = framework(ODD("odd"));
	struct heard heard = {.line = "ndx-plugin-odd.py\", line"};

	(void)state;
	ndx_log_set_sink(on_record, &heard, NDX_LOG_WARN);
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		struct ndx_variant *v = variant(n, "odd", odd[i].name, NULL, NULL);
		struct rendezvous m = {.reads = {1, 1, 1, 1}};

		rendezvous_run(&m, v, v);
		assert_true(m.status != NDX_OK);
		assert_int_equal(m.error.stage, odd[i].stage);
		assert_int_equal(m.error.plugin_error, odd[i].error);
		if (strstr(m.error.text, odd[i].text) == NULL)
			fail_msg("%s: \"%s\"", odd[i].name, m.error.text);
		ndx_variant_close(v);
	}
	ndx_log_set_sink(NULL, NULL, NDX_LOG_ERROR);
	assert_true(heard.lines >= 3); /* and where it happened */
	assert_int_equal(ndx_negotiation_close(n), NDX_OK);
}

/* ---- threads ---- */

struct crowd {
	struct ndx_variant *variant;
	const char *address;
	uint32_t failures; /* atomic */
};

static struct ndx_session *session(struct ndx_variant *v, const char *const *address)
{
	struct ndx_session_attr attr;
	struct ndx_session *s;

	ndx_session_attr_init(&attr);
	attr.variant = v;
	attr.servers = address;
	attr.server_count = 1;
	attr.attempts = 1;
	assert_int_equal(ndx_session_create(&attr, &s), NDX_OK);
	return s;
}

static void *run_crowd(void *arg)
{
	struct crowd *crowd = arg;

	for (int i = 0; i < EACH; i++) {
		struct ndx_session *s = session(crowd->variant, &crowd->address);

		if (ndx_session_run(s) != NDX_OK)
			(void)__atomic_add_fetch(&crowd->failures, 1, __ATOMIC_SEQ_CST);
		ndx_session_close(s);
	}
	return NULL;
}

/* More stuck calls than threads of the pool; each waits in Python. */
static void a_call_that_waits_delays_no_other_session(void **state)
{
	struct ndx_negotiation *n = framework(ODD("odd"));
	struct ndx_variant *variants[2] = {variant(n, "odd", "good", NULL, NULL), NULL};
	struct heard heard = {.line = "variant \"waits\" has not returned"};
	struct crowd crowd = {.variant = variants[0]};
	struct ndx_session *held[3];
	struct listening server;
	pthread_t threads[THREADS];
	char number[16];
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	(void)snprintf(number, sizeof(number), "%d", fds[0]);
	variants[1] = variant(n, "odd", "waits", "fd", number);
	ndx_log_set_sink(on_record, &heard, NDX_LOG_WARN);
	listening_begin(&server, variants, 2, 50);
	crowd.address = server.address;
	for (int i = 0; i < 3; i++) {
		held[i] = session(variants[1], &crowd.address);
		assert_int_equal(ndx_session_connect(held[i]), NDX_OK);
	}
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, run_crowd, &crowd), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(crowd.failures, 0);
	while (__atomic_load_n(&heard.lines, __ATOMIC_SEQ_CST) < 3)
		;
	assert_int_equal(write(fds[1], "0123456789", 10), 10);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ndx_session_execute(held[i], NDX_STAGE_INFO), NDX_OK);
		ndx_session_close(held[i]);
	}
	listening_end(&server);
	ndx_log_set_sink(NULL, NULL, NDX_LOG_ERROR);
	(void)close(fds[0]);
	(void)close(fds[1]);
	ndx_variant_close(variants[0]);
	forget(n, variants[1]);
}

/* ---- transports ---- */

static void a_transport_carries_a_session(void **state)
{
	struct ndx_negotiation *n = framework(SAMPLE("gateway"));
	struct ndx_variant *v = variant(n, "gateway", "json", NULL, NULL);
	struct listening server;
	struct gateway gateway;
	char through[128];
	char gone[CLOSED_PORT_TEXT];
	const char *address = through;
	const int fd = closed_port(gone);
	struct ndx_session *s;

	(void)state;
	listening_begin(&server, &v, 1, 5000);
	gateway_begin(&gateway, &server, true);
	(void)snprintf(through, sizeof(through), "%s/%s", gateway.address, server.address);
	s = session(v, &address);
	if (ndx_session_run(s) != NDX_OK)
		fail_msg("%s", ndx_last_error());
	assert_int_equal(ndx_session_execute(s, NDX_STAGE_DONE), NDX_OK);
	ndx_session_close(s);
	gateway_end(&gateway);
	assert_true(gateway.asked);
	/* Without one in between. */
	address = server.address;
	s = session(v, &address);
	assert_int_equal(ndx_session_run(s), NDX_OK);
	ndx_session_close(s);
	listening_end(&server);
	/* No server listens at the address. */
	address = gone;
	s = session(v, &address);
	assert_int_equal(ndx_session_connect(s), NDX_E_CONNECTION_REFUSED);
	says("transport \"gateway\"");
	ndx_session_close(s);
	(void)close(fd);
	forget(n, v);
}

/* As plugins were before: no settings, no descriptor. */
static void an_older_transport_carries_a_session(void **state)
{
	struct ndx_negotiation *n = framework(ODD("plain"));
	struct ndx_variant *v = variant(n, "plain", "nothing", NULL, NULL);
	struct listening server;
	const char *address = server.address;
	struct ndx_session *s;

	(void)state;
	listening_begin(&server, &v, 1, 5000);
	s = session(v, &address);
	if (ndx_session_run(s) != NDX_OK)
		fail_msg("%s", ndx_last_error());
	assert_int_equal(ndx_session_execute(s, NDX_STAGE_DONE), NDX_OK);
	ndx_session_close(s);
	listening_end(&server);
	forget(n, v);
}

static void a_gateway_that_refuses_is_quoted(void **state)
{
	struct ndx_negotiation *n = framework(SAMPLE("gateway"));
	struct ndx_variant *v = variant(n, "gateway", "json", NULL, NULL);
	struct gateway gateway;
	char through[128];
	const char *address = through;
	struct ndx_session *s;

	(void)state;
	gateway_begin(&gateway, NULL, true);
	(void)snprintf(through, sizeof(through), "%s/127.0.0.1:1", gateway.address);
	s = session(v, &address);
	assert_int_equal(ndx_session_connect(s), NDX_E_CONNECTION_REFUSED);
	says("the gateway says: HTTP/1.1 403 no");
	ndx_session_close(s);
	gateway_end(&gateway);
	address = "no port here";
	s = session(v, &address);
	assert_int_equal(ndx_session_connect(s), NDX_E_INVALID_ADDRESS);
	says("ValueError: 'no port here' is not HOST:PORT");
	ndx_session_close(s);
	forget(n, v);
}

static void *run_session(void *arg)
{
	return (void *)(intptr_t)ndx_session_run(arg);
}

static void a_cancel_ends_a_wait_in_python(void **state)
{
	struct ndx_negotiation *n = framework(SAMPLE("gateway"));
	struct ndx_variant *v = variant(n, "gateway", "json", NULL, NULL);
	struct gateway gateway;
	const char *address = gateway.address;
	struct ndx_session *s;
	pthread_t thread;
	void *status;

	(void)state;
	/* It is asked for nothing, and says nothing: the session waits for a welcome. */
	gateway_begin(&gateway, NULL, false);
	s = session(v, &address);
	assert_int_equal(pthread_create(&thread, NULL, run_session, s), 0);
	gateway_wait(&gateway);
	ndx_session_cancel(s);
	assert_int_equal(pthread_join(thread, &status), 0);
	assert_int_equal((intptr_t)status, NDX_E_CANCELED);
	ndx_session_close(s);
	gateway_end(&gateway);
	forget(n, v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_loaded_when_it_is_needed),
		cmocka_unit_test(python_and_c_complete_three_rounds),
		cmocka_unit_test(files_are_refused_with_a_reason),
		cmocka_unit_test(settings_arrive_in_pythons_types),
		cmocka_unit_test(exceptions_are_the_plugins_errors),
		cmocka_unit_test(a_call_that_waits_delays_no_other_session),
		cmocka_unit_test(a_transport_carries_a_session),
		cmocka_unit_test(an_older_transport_carries_a_session),
		cmocka_unit_test(a_gateway_that_refuses_is_quoted),
		cmocka_unit_test(a_cancel_ends_a_wait_in_python),
	};

	if (access(HOST, F_OK) != 0) {
		(void)fprintf(stderr, "skip: %s was not built: no python3-dev\n", HOST);
		return 77;
	}
	(void)setenv("NDX_PLUGIN_PATH", TEST_PLUGINS, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
