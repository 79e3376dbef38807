/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: cookbook-log [URI]
 * A sink writes the library's records as lines of JSON, as a collector of logs wants them. A sink
 * is called by any thread, at any time, under the library's locks: so it writes, and does nothing
 * else.
 */
#include "cookbook.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* Room for the longest record, each of its bytes written as six. */
#define LINE 8192

static size_t put_text(char *line, size_t at, const char *text)
{
	for (; *text != '\0' && at + 8 < LINE; text++) {
		const unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\' || c < ' ')
			at += (size_t)snprintf(line + at, LINE - at, "\\u%04x", c);
		else
			line[at++] = (char)c;
	}
	return at;
}

static void write_record(void *arg, const struct ndx_log_record *record)
{
	const int fd = *(const int *)arg;
	struct timespec now;
	char line[LINE + 128];
	size_t at;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	at = (size_t)snprintf(line, 128,
	                      "{\"time\":%lld.%06ld,\"level\":\"%s\",\"native\":%d,\"text\":\"",
	                      (long long)now.tv_sec, now.tv_nsec / 1000,
	                      ndx_log_level_name(record->level), record->native);
	at = put_text(line, at, record->text);
	line[at++] = '"';
	line[at++] = '}';
	line[at++] = '\n';
	(void)!write(fd, line, at); /* one write(): records of two threads do not mix */
}

int main(int argc, char **argv)
{
	static int fd = STDOUT_FILENO;
	struct pair pair;

	/* before the first other call: later calls may have threads that log */
	ndx_log_set_sink(write_record, &fd, NDX_LOG_DEBUG);
	pair_open(&pair, adapter_of(argc, argv));
	pair_connect(&pair, NULL, 0);
	must(ndx_qp_flush(pair.server.qp), "abort"); /* something worth a record */
	check(ndx_disconnect(pair.client.connector, WAIT_MS) == NDX_E_CONNECTION_ABORTED,
	      "the client should have seen the abort");
	ndx_connector_close(pair.client.connector);
	pair.client.connector = NULL;
	pair_close(&pair);
	ndx_log_set_sink(NULL, NULL, NDX_LOG_ERROR); /* `fd` may go now */
	return 0;
}
