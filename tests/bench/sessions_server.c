/* SPDX-License-Identifier: BSD-2-Clause */
/* The server of ndx-sessions, and the plugin that both sides have. */
#include <malloc.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sessions.h"

#define ROUNDS 3u
#define MESSAGE 96u

/* ---- the plugin ---- */

static enum ndx_status info(void *session, const struct ndx_exchange *x, const void *peer,
                            size_t length, struct ndx_exchange_reply *reply)
{
	(void)session;
	if (x->round > 0 && (peer == NULL || length != MESSAGE))
		return NDX_E_REMOTE_ERROR;
	memset(reply->data, (int)x->round, MESSAGE);
	reply->length = MESSAGE;
	reply->completed = x->round + 1 == ROUNDS;
	return NDX_OK;
}

static enum ndx_status ready(void *session, const struct ndx_exchange *x, const void *peer,
                             size_t length, struct ndx_exchange_reply *reply)
{
	(void)session;
	(void)x;
	(void)peer;
	(void)length;
	reply->completed = true;
	return NDX_OK;
}

static const struct ndx_variant_ops ops = {.info = info, .ready = ready};
static const struct ndx_plugin_variant variant = {
	.name = SESSIONS_VARIANT, .help = "for measurements", .ops = &ops};

const struct ndx_plugin sessions_plugin = {.abi = NDX_PLUGIN_ABI,
                                           .size = sizeof(struct ndx_plugin),
                                           .name = SESSIONS_PLUGIN,
                                           .version = "1",
                                           .vendor = "NDX",
                                           .flags = NDX_PLUGIN_PROMPT,
                                           .list = &variant,
                                           .count = 1};

/* ---- the process ---- */

static uint64_t resident(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long long total = 0;
	unsigned long long pages = 0;

	if (file == NULL)
		return 0;
	if (fscanf(file, "%llu %llu", &total, &pages) != 2) /* NOLINT(cert-err34-c) */
		pages = 0;
	(void)fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void write_all(int fd, const void *data, size_t length)
{
	if (write(fd, data, length) != (ssize_t)length)
		sessions_die("pipe", "the other process is gone");
}

static void read_all(int fd, void *data, size_t length)
{
	if (read(fd, data, length) != (ssize_t)length)
		sessions_die("pipe", "the other process is gone");
}

static _Noreturn void serve(int from, int to, unsigned most, const struct ndx_tls_attr *tls)
{
	struct ndx_negotiation_server_attr attr;
	struct ndx_negotiation_server *server = NULL;
	struct ndx_negotiation *negotiation = NULL;
	struct ndx_variant *v = NULL;
	struct sockaddr_in at;
	socklen_t length = sizeof(at);
	char command;

	ndx_negotiation_server_attr_init(&attr);
	sessions_variant(&negotiation, &v);
	attr.address = "127.0.0.1:0";
	attr.variants = &v;
	attr.variant_count = 1;
	attr.max_sessions = most;
	attr.tls = tls;
	attr.max_waiting_per_address = 0;    /* all clients have one address, ... */
	attr.max_sessions_per_principal = 0; /* ... and one key */
	attr.max_handshakes_per_address = NDX_NEGOTIATION_SERVER_NO_LIMIT;
	attr.max_handshakes = NDX_NEGOTIATION_SERVER_NO_LIMIT;
	if (ndx_negotiation_server_create(&attr, &server) != NDX_OK)
		sessions_die("server", ndx_last_error());
	(void)ndx_negotiation_server_get_address(server, (struct sockaddr *)&at, &length);
	write_all(to, &at.sin_port, sizeof(at.sin_port));
	while (read(from, &command, 1) == 1) {
		const struct mallinfo2 heap = mallinfo2();
		struct sessions_report report;
		struct timespec cpu;

		memset(&report, 0, sizeof(report));
		report.stats.size = sizeof(report.stats);
		(void)ndx_negotiation_server_get_stats(server, &report.stats);
		report.resident = resident();
		report.heap = heap.uordblks + heap.hblkhd;
		(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
		report.cpu_ns = (uint64_t)cpu.tv_sec * 1000000000u + (uint64_t)cpu.tv_nsec;
		write_all(to, &report, sizeof(report));
	}
	ndx_negotiation_server_close(server);
	ndx_variant_close(v);
	_exit(ndx_negotiation_close(negotiation) == NDX_OK ? 0 : 1);
}

struct sessions_server sessions_server_start(unsigned most, const struct ndx_tls_attr *tls)
{
	struct sessions_server server = {.pid = -1};
	uint16_t port;
	int down[2];
	int up[2];

	if (pipe(down) != 0 || pipe(up) != 0)
		sessions_die("pipe", "no descriptor");
	server.pid = fork();
	if (server.pid < 0)
		sessions_die("fork", "no process");
	if (server.pid == 0) {
		(void)close(down[1]);
		(void)close(up[0]);
		serve(down[0], up[1], most, tls);
	}
	(void)close(down[0]);
	(void)close(up[1]);
	server.to = down[1];
	server.from = up[0];
	read_all(server.from, &port, sizeof(port));
	server.port = ntohs(port);
	return server;
}

struct sessions_report sessions_server_ask(const struct sessions_server *server)
{
	struct sessions_report report;

	write_all(server->to, "?", 1);
	read_all(server->from, &report, sizeof(report));
	return report;
}

void sessions_server_stop(struct sessions_server *server)
{
	int status = 0;

	(void)close(server->to);
	(void)close(server->from);
	if (waitpid(server->pid, &status, 0) != server->pid || status != 0)
		sessions_die("server", "it did not end well");
}
