/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: null-walk MAP...: every public call with NULL for each of its arguments returns: it
 * refuses the NULL, or has nothing to do. A refusal replaces the text of the failure before. MAP:
 * the list of what a library exports. Each call has a process of its own.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ndx/ndx.h>

#define MOST_SECONDS 20u

/* No call has more arguments, and none is a floating-point number. A function ignores the arguments
 * that it does not have. */
typedef uintptr_t any_call(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                           uintptr_t, uintptr_t, uintptr_t, uintptr_t);

static any_call *find(const char *name)
{
	void *symbol = dlsym(RTLD_DEFAULT, name);
	any_call *call;

	memcpy(&call, &symbol, sizeof(call));
	return call;
}

/* Calls of the data path set no text; two return a descriptor. Those of libndx-reassembly, which
 * needs no other library, have no texts either. */
static const char *const textless[] = {
	"ndx_qp_send",     "ndx_qp_send_immediate",  "ndx_qp_receive",     "ndx_qp_read",
	"ndx_qp_write",    "ndx_qp_write_immediate", "ndx_qp_bind",        "ndx_qp_invalidate",
	"ndx_srq_receive", "ndx_port_get_fd",        "ndx_receiver_get_fd"};

static int sets_text(const char *name)
{
	if (strncmp(name, "ndx_reassembly_", 15) == 0 || strncmp(name, "ndx_rdma_", 9) == 0)
		return 0;
	for (size_t i = 0; i < sizeof(textless) / sizeof(textless[0]); i++) {
		if (strcmp(textless[i], name) == 0)
			return 0;
	}
	return 1;
}

/* The exit code of the child. */
static int call_with_null(const char *name, any_call *call)
{
	struct ndx_adapter *none;
	char before[512];
	int result;

	(void)ndx_adapter_open("none", &none);
	(void)snprintf(before, sizeof(before), "%s", ndx_last_error());
	result = (int)call(0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	if (result > NDX_OK || result < NDX_E_ACCESS_DENIED || result == NDX_OK || !sets_text(name))
		return 0;
	if (strcmp(before, ndx_last_error()) != 0)
		return 0;
	fprintf(stderr, "%s with NULL: %s, with the text of another failure\n", name,
	        ndx_status_name((enum ndx_status)result));
	return 1;
}

static int wait_for(pid_t child)
{
	int how = -1;

	return waitpid(child, &how, 0) == child ? how : -1;
}

static int returns(const char *name)
{
	any_call *call = find(name);
	pid_t child;
	int how;

	if (!call) {
		fprintf(stderr, "%s is in no library\n", name);
		return 0;
	}
	(void)fflush(NULL);
	child = fork();
	if (child == 0) {
		(void)alarm(MOST_SECONDS);
		_exit(call_with_null(name, call));
	}
	how = child < 0 ? -1 : wait_for(child);
	if (how == 0)
		return 1;
	if (how > 0 && WIFSIGNALED(how))
		fprintf(stderr, "%s with NULL: %s\n", name, strsignal(WTERMSIG(how)));
	else
		fprintf(stderr, "%s with NULL: ended with %d\n", name, how);
	return 0;
}

/* Every call of the list; how many there are is added to `calls`. The number of failures. */
static unsigned walk(const char *path, unsigned *calls)
{
	FILE *map = fopen(path, "r");
	char line[256];
	char name[128];
	unsigned failed = 0;
	unsigned before = *calls;

	if (!map) {
		perror(path);
		return 1;
	}
	while (fgets(line, sizeof(line), map)) {
		if (sscanf(line, " ndx_%119[a-z0-9_];", name) != 1)
			continue;
		(void)snprintf(line, sizeof(line), "ndx_%s", name);
		failed += !returns(line);
		(*calls)++;
	}
	(void)fclose(map);
	if (*calls > before)
		return failed;
	fprintf(stderr, "%s lists no call\n", path);
	return 1;
}

int main(int argc, char **argv)
{
	unsigned calls = 0;
	unsigned failed = 0;

	for (int i = 1; i < argc; i++)
		failed += walk(argv[i], &calls);
	printf("ndx %s: %u calls, %u failures\n", ndx_version(), calls, failed);
	return failed == 0 && calls > 0 ? 0 : 1;
}
