/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: null-walk MAP...: every public call with NULL for each of its arguments returns: it
 * refuses the NULL, or has nothing to do. MAP: the list of what a library exports. Each call has a
 * process of its own.
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
		(void)call(0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
		_exit(0);
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
