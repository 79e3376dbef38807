/* SPDX-License-Identifier: BSD-2-Clause */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

bool child_start(struct child *child, char **argv)
{
	posix_spawn_file_actions_t actions;
	int in[2];
	int out[2];
	int error;

	child->pid = 0;
	if (pipe2(in, O_CLOEXEC) < 0)
		return false;
	if (pipe2(out, O_CLOEXEC) < 0) {
		(void)close(in[0]);
		(void)close(in[1]);
		return false;
	}
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
	(void)posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
	error = posix_spawn(&child->pid, "/proc/self/exe", &actions, NULL, argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)close(in[0]);
	(void)close(out[1]);
	child->to = in[1];
	child->from = out[0];
	if (error == 0)
		return true;
	child_forget(child);
	errno = error;
	return false;
}

int child_read(const struct child *child, int ms)
{
	struct pollfd input = {.fd = child->from, .events = POLLIN};
	char byte = 0;

	if (poll(&input, 1, ms) != 1)
		return CHILD_SILENT;
	return read(child->from, &byte, 1) == 1 ? byte : CHILD_ENDED;
}

void child_write(int what)
{
	char byte = (char)what;

	while (write(STDOUT_FILENO, &byte, 1) < 0 && errno == EINTR)
		continue;
}

bool child_stop(const struct child *child)
{
	int status = 0;

	(void)kill(child->pid, SIGSTOP);
	return waitpid(child->pid, &status, WUNTRACED) == child->pid && WIFSTOPPED(status);
}

void child_forget(struct child *child)
{
	(void)close(child->to);
	(void)close(child->from);
	child->pid = 0;
}

void child_kill(struct child *child)
{
	if (child->pid <= 0)
		return;
	(void)kill(child->pid, SIGKILL);
	(void)waitpid(child->pid, NULL, 0);
	child_forget(child);
}
