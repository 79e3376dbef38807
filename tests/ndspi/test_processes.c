/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The orders in which two processes connect, give up and end. Each case starts this program once
 * more as the passive end, which prints a line when the active end may go on, and whose status says
 * whether it has seen what it should.
 */
#include "nd_op.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 64 };

struct passive {
	const char *name;
	void (*run)(struct nd_pair *p);
};

static void print_word(const char *word)
{
	printf("%s\n", word);
	(void)fflush(stdout);
}

/* ---- the passive end; an assertion that fails ends the process with a status ---- */

static void get_request(struct nd_pair *p)
{
	assert_status(nd_end(&p->b, CALL(p->listener, GetConnectionRequest, UNKNOWN(p->b.connector),
	                                 &p->b.ov)),
	              ND_SUCCESS);
}

static HRESULT start_accept(struct nd_pair *p)
{
	return CALL(p->b.connector, Accept, UNKNOWN(p->b.qp), 4, 4, "yes", 3, &p->b.ov);
}

static void passive_rejects(struct nd_pair *p)
{
	get_request(p);
	assert_status(CALL(p->b.connector, Reject, "no", 2), ND_SUCCESS);
}

static void passive_is_refused(struct nd_pair *p)
{
	get_request(p);
	assert_status(nd_end(&p->b, start_accept(p)), ND_CONNECTION_REFUSED);
}

static void passive_is_left(struct nd_pair *p)
{
	char line[16];

	get_request(p);
	print_word("request");
	/* until the active end has given up, and closes the pipe's other half */
	while (fgets(line, sizeof(line), stdin) != NULL)
		continue;
	assert_status(nd_end(&p->b, start_accept(p)), ND_CONNECTION_ABORTED);
}

static void passive_gives_up(struct nd_pair *p)
{
	HRESULT started;

	get_request(p);
	started = start_accept(p);
	assert_status(started, ND_PENDING);
	assert_status(CALL(p->b.connector, CancelOverlappedRequests), ND_SUCCESS);
	assert_status(nd_end(&p->b, started), ND_CANCELED);
	print_word("cancelled");
}

static void accept_and_arm(struct nd_pair *p, OVERLAPPED *ended)
{
	get_request(p);
	nd_receive(&p->b, 1, 0, SIZE);
	assert_status(nd_end(&p->b, start_accept(p)), ND_SUCCESS);
	memset(ended, 0, sizeof(*ended));
	assert_status(CALL(p->b.connector, NotifyDisconnect, ended), ND_PENDING);
}

/* It never calls Disconnect. */
static void passive_watches(struct nd_pair *p)
{
	OVERLAPPED ended;

	accept_and_arm(p, &ended);
	assert_status(CALL(p->b.connector, GetOverlappedResult, &ended, TRUE), ND_SUCCESS);
	nd_expect(&p->b, Nd2RequestTypeReceive, 1, ND_CANCELED);
}

static void passive_disconnects_too(struct nd_pair *p)
{
	OVERLAPPED ended;

	accept_and_arm(p, &ended);
	assert_status(nd_end(&p->b, CALL(p->b.connector, Disconnect, &p->b.ov)), ND_SUCCESS);
	nd_expect(&p->b, Nd2RequestTypeReceive, 1, ND_CANCELED);
}

static void passive_dies(struct nd_pair *p)
{
	OVERLAPPED ended;

	accept_and_arm(p, &ended);
	_exit(0);
}

static void passive_listens_no_more(struct nd_pair *p)
{
	assert_int_equal(CALL(p->listener, Release), 0);
	p->listener = NULL;
	print_word("closed");
}

static struct passive passives[] = {
	{"rejects", passive_rejects}, {"is_refused", passive_is_refused},
	{"is_left", passive_is_left}, {"gives_up", passive_gives_up},
	{"watches", passive_watches}, {"disconnects_too", passive_disconnects_too},
	{"dies", passive_dies},       {"listens_no_more", passive_listens_no_more},
};

static struct nd_pair other; /* of the passive process */

static void run_passive(void **state)
{
	const struct passive *which = (const struct passive *)*state;
	const struct sockaddr *address = (const struct sockaddr *)&other.address;

	memset(&other, 0, sizeof(other));
	nd_make_side(&other.b);
	nd_listen(&other);
	printf("port %u\n", ntohs(((const struct sockaddr_in *)(const void *)address)->sin_port));
	(void)fflush(stdout);
	which->run(&other);
	if (other.listener != NULL)
		assert_int_equal(CALL(other.listener, Release), 0);
	nd_drop_side(&other.b);
}

/* ---- the active end ---- */

struct pair_of_processes {
	struct nd_pair p; /* without the passive side */
	FILE *from;       /* what the passive end prints */
	int to;           /* its standard input; closed: go on */
	pid_t pid;
};

static char own_name[256];

/* The next line that begins so; cmocka prints lines of its own. */
static void await_line(struct pair_of_processes *x, const char *begin, char *line, int size)
{
	do {
		if (fgets(line, size, x->from) == NULL)
			fail_msg("the other process has ended before \"%s\"", begin);
	} while (strncmp(line, begin, strlen(begin)) != 0);
}

static void start(struct pair_of_processes *x, const char *name)
{
	char line[128];
	int out[2];
	int in[2];

	memset(x, 0, sizeof(*x));
	assert_int_equal(pipe(out), 0);
	assert_int_equal(pipe(in), 0);
	x->pid = fork();
	assert_true(x->pid >= 0);
	if (x->pid == 0) {
		(void)dup2(out[1], STDOUT_FILENO);
		(void)dup2(in[0], STDIN_FILENO);
		(void)close(in[1]);
		(void)execl(own_name, own_name, nd_adapter(), name, (char *)NULL);
		_exit(127);
	}
	(void)close(out[1]);
	(void)close(in[0]);
	x->to = in[1];
	x->from = fdopen(out[0], "r");
	assert_non_null(x->from);
	nd_make_side(&x->p.a);
	x->p.address_length = nd_local_address(&x->p.address);
	await_line(x, "port ", line, sizeof(line));
	((struct sockaddr_in *)&x->p.address)->sin_port =
		htons((uint16_t)strtoul(line + strlen("port "), NULL, 10));
}

/* The other process has seen what it should. */
static void finish(struct pair_of_processes *x)
{
	char line[256];
	int status = -1;

	if (x->to >= 0)
		(void)close(x->to);
	while (fgets(line, sizeof(line), x->from) != NULL)
		continue;
	(void)fclose(x->from);
	assert_int_equal(waitpid(x->pid, &status, 0), x->pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	nd_drop_side(&x->p.a);
}

static HRESULT start_connect(struct pair_of_processes *x)
{
	struct nd_side *a = &x->p.a;

	return CALL(a->connector, Connect, UNKNOWN(a->qp), (struct sockaddr *)&x->p.address,
	            x->p.address_length, 4, 4, "hello", 5, &a->ov);
}

static void connect_to(struct pair_of_processes *x)
{
	struct nd_side *a = &x->p.a;

	assert_status(nd_end(a, start_connect(x)), ND_SUCCESS);
	assert_status(nd_end(a, CALL(a->connector, CompleteConnect, &a->ov)), ND_SUCCESS);
}

static void a_rejection_arrives(void **state)
{
	struct pair_of_processes x;
	char data[8];
	ULONG length = sizeof(data);

	(void)state;
	start(&x, "rejects");
	assert_status(nd_end(&x.p.a, start_connect(&x)), ND_CONNECTION_REFUSED);
	assert_status(CALL(x.p.a.connector, GetPrivateData, data, &length), ND_SUCCESS);
	assert_int_equal(length, 2);
	assert_memory_equal(data, "no", 2);
	finish(&x);
}

static void the_active_end_rejects(void **state)
{
	struct pair_of_processes x;

	(void)state;
	start(&x, "is_refused");
	assert_status(nd_end(&x.p.a, start_connect(&x)), ND_SUCCESS);
	assert_status(CALL(x.p.a.connector, Reject, NULL, 0), ND_SUCCESS);
	finish(&x);
}

static void the_active_end_goes_after_the_answer(void **state)
{
	struct pair_of_processes x;

	(void)state;
	start(&x, "is_refused");
	assert_status(nd_end(&x.p.a, start_connect(&x)), ND_SUCCESS);
	assert_int_equal(CALL(x.p.a.connector, Release), 0);
	x.p.a.connector = NULL;
	finish(&x);
}

/* No answer comes: the call is pending until it is cancelled. */
static void the_active_end_cancels_before_the_answer(void **state)
{
	struct pair_of_processes x;
	HRESULT started;
	char line[128];

	(void)state;
	start(&x, "is_left");
	started = start_connect(&x);
	assert_status(started, ND_PENDING);
	await_line(&x, "request", line, sizeof(line));
	assert_status(CALL(x.p.a.connector, GetOverlappedResult, &x.p.a.ov, FALSE), ND_PENDING);
	assert_status(CALL(x.p.a.connector, CancelOverlappedRequests), ND_SUCCESS);
	assert_status(CALL(x.p.a.connector, GetOverlappedResult, &x.p.a.ov, FALSE), ND_CANCELED);
	(void)close(x.to);
	x.to = -1;
	finish(&x);
}

static void the_passive_end_cancels_its_accept(void **state)
{
	struct pair_of_processes x;
	struct nd_side *a = &x.p.a;
	char line[128];
	HRESULT status;

	(void)state;
	start(&x, "gives_up");
	status = nd_end(a, start_connect(&x));
	await_line(&x, "cancelled", line, sizeof(line));
	/* the answer may have gone before the cancel */
	if (status == ND_SUCCESS)
		status = nd_end(a, CALL(a->connector, CompleteConnect, &a->ov));
	assert_true(status == ND_CONNECTION_ABORTED || status == ND_CONNECTION_REFUSED);
	finish(&x);
}

static void a_disconnect_needs_no_call_of_the_peer(void **state)
{
	struct pair_of_processes x;

	(void)state;
	start(&x, "watches");
	connect_to(&x);
	assert_status(nd_end(&x.p.a, CALL(x.p.a.connector, Disconnect, &x.p.a.ov)), ND_SUCCESS);
	finish(&x);
}

static void both_disconnect(void **state)
{
	struct pair_of_processes x;

	(void)state;
	start(&x, "disconnects_too");
	connect_to(&x);
	assert_status(nd_end(&x.p.a, CALL(x.p.a.connector, Disconnect, &x.p.a.ov)), ND_SUCCESS);
	finish(&x);
}

static void a_peer_that_dies_is_noticed(void **state)
{
	struct pair_of_processes x;
	OVERLAPPED ended;

	(void)state;
	start(&x, "dies");
	nd_receive(&x.p.a, 5, 0, SIZE);
	connect_to(&x);
	memset(&ended, 0, sizeof(ended));
	assert_status(CALL(x.p.a.connector, NotifyDisconnect, &ended), ND_PENDING);
	assert_status(CALL(x.p.a.connector, GetOverlappedResult, &ended, TRUE), ND_SUCCESS);
	nd_expect(&x.p.a, Nd2RequestTypeReceive, 5, ND_CANCELED);
	finish(&x);
}

static void no_listener_is_a_refusal(void **state)
{
	struct pair_of_processes x;
	char line[128];

	(void)state;
	start(&x, "listens_no_more");
	await_line(&x, "closed", line, sizeof(line));
	assert_status(nd_end(&x.p.a, start_connect(&x)), ND_CONNECTION_REFUSED);
	finish(&x);
}

static int passive_main(const char *name)
{
	for (size_t i = 0; i < sizeof(passives) / sizeof(passives[0]); i++) {
		const struct CMUnitTest tests[] = {
			cmocka_unit_test_prestate(run_passive, &passives[i]),
		};

		if (strcmp(name, passives[i].name) == 0)
			return cmocka_run_group_tests(tests, NULL, NULL);
	}
	return 2;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rejection_arrives),
		cmocka_unit_test(the_active_end_rejects),
		cmocka_unit_test(the_active_end_goes_after_the_answer),
		cmocka_unit_test(the_active_end_cancels_before_the_answer),
		cmocka_unit_test(the_passive_end_cancels_its_accept),
		cmocka_unit_test(a_disconnect_needs_no_call_of_the_peer),
		cmocka_unit_test(both_disconnect),
		cmocka_unit_test(a_peer_that_dies_is_noticed),
		cmocka_unit_test(no_listener_is_a_refusal),
	};
	const int rc = nd_begin(argc, argv);

	if (rc != 0)
		return rc;
	if (argc > 2)
		return passive_main(argv[2]);
	if (strcmp(argv[1], "loop") == 0) {
		printf("skip: loop connects the two ends of one process\n");
		return 77;
	}
	(void)snprintf(own_name, sizeof(own_name), "%s", argv[0]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
