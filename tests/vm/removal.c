/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: device-removal DEVICE ADDRESS
 *
 * In the guest: `rdma link delete DEVICE` while the device has a connection with itself. Every
 * operation in flight must complete, and when everything is closed the kernel must have released
 * the device, although the process lives on. Exit status 0: all of this holds.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <ndx/ndx.h>

extern char **environ;

enum { SIDES = 2, TOLD_MS = 10000, GONE_MS = 20000, STEP_MS = 20, DEPTH = 4, MESSAGE = 64 };

struct side {
	struct ndx_adapter *adapter;
	struct ndx_cq *cq;
	struct ndx_mr *mr;
	struct ndx_qp *qp;
	struct ndx_connector *connector;
	struct ndx_overlapped notify;
	struct ndx_overlapped on_cq;
	struct ndx_overlapped on_event;
	struct ndx_adapter_event event;
	char memory[MESSAGE];
};

struct passive {
	struct side *side;
	struct ndx_listener *listener;
	enum ndx_status status;
};

static int wrong;

static void must(enum ndx_status status, const char *what)
{
	if (status == NDX_OK)
		return;
	(void)fprintf(stderr, "%s: %s: %s\n", what, ndx_status_name(status), ndx_last_error());
	exit(2);
}

static void expect(enum ndx_status got, enum ndx_status want, const char *what)
{
	(void)printf("%s: %s\n", what, ndx_status_name(got));
	if (got == want)
		return;
	(void)printf("wrong: not %s\n", ndx_status_name(want));
	wrong = 1;
}

static void log_to_stdout(void *arg, const struct ndx_log_record *record)
{
	(void)arg;
	(void)printf("%s: %s\n", ndx_log_level_name(record->level), record->text);
}

static void open_side(struct side *s, const char *uri)
{
	struct ndx_qp_attr attr;
	struct ndx_sge sge = {s->memory, MESSAGE, 0};

	must(ndx_adapter_open(uri, &s->adapter), uri);
	must(ndx_cq_create_depth(s->adapter, DEPTH, &s->cq), "completion queue");
	must(ndx_mr_register_new(s->adapter, s->memory, MESSAGE, NDX_MR_ALLOW_LOCAL_WRITE, &s->mr),
	     "memory");
	ndx_qp_attr_init(&attr);
	attr.receive_cq = attr.initiator_cq = s->cq;
	must(ndx_qp_create(s->adapter, &attr, &s->qp), "queue pair");
	sge.token = ndx_mr_get_local_token(s->mr);
	must(ndx_qp_receive(s->qp, NULL, &sge, 1), "receive");
}

static void *accept_one(void *arg)
{
	struct passive *p = arg;

	p->status = ndx_accept_from(p->side->adapter, p->listener, p->side->qp, NULL, 0, TOLD_MS,
	                            &p->side->connector);
	return NULL;
}

static void connect_sides(struct side *sides, struct ndx_listener *listener,
                          const struct sockaddr_in *address)
{
	struct passive passive = {.side = &sides[1], .listener = listener};
	pthread_t thread;

	if (pthread_create(&thread, NULL, accept_one, &passive) != 0)
		exit(2);
	must(ndx_connect_to(sides[0].adapter, sides[0].qp, (const struct sockaddr *)address,
	                    sizeof(*address), NULL, 0, TOLD_MS, &sides[0].connector),
	     "connect");
	(void)pthread_join(thread, NULL);
	must(passive.status, "accept");
}

static void wait_for_bad_news(struct side *s)
{
	ndx_overlapped_init(&s->notify);
	ndx_overlapped_init(&s->on_cq);
	expect(ndx_connector_notify_disconnect(s->connector, &s->notify), NDX_PENDING,
	       "ask for the end");
	expect(ndx_cq_notify(s->cq, NDX_CQ_NOTIFY_ERRORS, &s->on_cq), NDX_PENDING,
	       "ask for errors");
	ndx_overlapped_init(&s->on_event);
	s->event.size = sizeof(s->event);
	expect(ndx_adapter_get_event(s->adapter, &s->event, &s->on_event), NDX_PENDING,
	       "ask for events");
}

static void is_told(struct side *s)
{
	struct ndx_result result = {.status = NDX_PENDING};
	struct ndx_cq *cq;

	expect(ndx_overlapped_wait(&s->notify, TOLD_MS), NDX_OK, "notify_disconnect");
	if (s->notify.information != NDX_DISCONNECT_ABORTED) {
		(void)puts("wrong: the end is not called aborted");
		wrong = 1;
	}
	expect(ndx_overlapped_wait(&s->on_cq, TOLD_MS), NDX_E_DEVICE_REMOVED,
	       "notification of the completion queue");
	expect(ndx_overlapped_wait(&s->on_event, TOLD_MS), NDX_OK, "event of the adapter");
	(void)printf("event: %s, %s\n", ndx_adapter_event_name(s->event.type), s->event.text);
	if (s->event.type != NDX_ADAPTER_EVENT_DEVICE_REMOVED) {
		(void)puts("wrong: not the removal");
		wrong = 1;
	}
	expect(ndx_cq_create_depth(s->adapter, DEPTH, &cq), NDX_E_DEVICE_REMOVED,
	       "another completion queue");
	expect(ndx_disconnect(s->connector, TOLD_MS), NDX_E_CONNECTION_ABORTED, "disconnect");
	(void)ndx_cq_get_results(s->cq, &result, 1);
	expect(result.status, NDX_E_CANCELED, "receive");
}

static void close_side(struct side *s)
{
	ndx_connector_close(s->connector);
	ndx_qp_close(s->qp);
	ndx_mr_close(s->mr);
	ndx_cq_close(s->cq);
	ndx_adapter_close(s->adapter);
}

static pid_t begin_to_delete(char *device)
{
	char rdma[] = "rdma";
	char link[] = "link";
	char verb[] = "delete";
	char *argv[] = {rdma, link, verb, device, NULL};
	pid_t pid = 0;

	if (posix_spawnp(&pid, rdma, NULL, NULL, argv, environ) != 0)
		exit(2);
	return pid;
}

/* Where in the kernel the process waits, if it does. */
static void print_stack(pid_t pid)
{
	char path[64];
	char line[256];
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/stack", (int)pid);
	file = fopen(path, "r");
	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		(void)printf("    %s", line);
	if (file != NULL)
		(void)fclose(file);
}

static void is_gone(pid_t pid)
{
	int status = -1;
	int waited = 0;
	pid_t ended = 0;

	while (ended == 0 && waited < GONE_MS) {
		ended = waitpid(pid, &status, WNOHANG);
		if (ended == 0)
			(void)poll(NULL, 0, STEP_MS);
		waited += STEP_MS;
	}
	if (ended == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		(void)printf("the device is gone after %d ms\n", waited);
		return;
	}
	(void)printf("wrong: the kernel does not let go of the device (%d):\n", status);
	print_stack(pid);
	wrong = 1;
}

int main(int argc, char **argv)
{
	static struct side sides[SIDES];
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t length = sizeof(address);
	struct ndx_overlapped request;
	struct ndx_connector *next;
	struct ndx_listener *listener;
	char uri[64];
	pid_t pid;

	if (argc != 3 || inet_pton(AF_INET, argv[2], &address.sin_addr) != 1)
		return 2;
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	ndx_log_set_sink(log_to_stdout, NULL, NDX_LOG_WARN);
	(void)snprintf(uri, sizeof(uri), "verbs:%s", argv[1]);
	for (unsigned i = 0; i < SIDES; i++)
		open_side(&sides[i], uri);
	must(ndx_listen_on(sides[1].adapter, (struct sockaddr *)&address, length, 0, &listener),
	     "listen");
	must(ndx_listener_get_local_address(listener, (struct sockaddr *)&address, &length),
	     "port");
	connect_sides(sides, listener, &address);
	must(ndx_connector_create(sides[1].adapter, NULL, &next), "connector");
	ndx_overlapped_init(&request);
	expect(ndx_listener_get_connection_request(listener, next, &request), NDX_PENDING,
	       "wait for another");
	for (unsigned i = 0; i < SIDES; i++)
		wait_for_bad_news(&sides[i]);
	pid = begin_to_delete(argv[1]);
	for (unsigned i = 0; i < SIDES; i++)
		is_told(&sides[i]);
	expect(ndx_overlapped_wait(&request, TOLD_MS), NDX_E_DEVICE_REMOVED, "the other");
	(void)printf("meanwhile:\n");
	print_stack(pid);
	ndx_connector_close(next);
	ndx_listener_close(listener);
	for (unsigned i = 0; i < SIDES; i++)
		close_side(&sides[i]);
	is_gone(pid);
	return wrong;
}
