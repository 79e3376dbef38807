/* SPDX-License-Identifier: BSD-2-Clause */
#include "nursery.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { START = 'S', WAIT = 'W' };

static bool get(int fd, void *data, size_t size)
{
	ssize_t got;

	do {
		got = read(fd, data, size);
	} while (got < 0 && errno == EINTR);
	return got == (ssize_t)size;
}

static bool write_all(int fd, const void *data, size_t size)
{
	return send(fd, data, size, MSG_NOSIGNAL) == (ssize_t)size;
}

/* The nursery's own life. */
__attribute__((noreturn)) static void serve(int fd, nursery_main *life, void *arg)
{
	pid_t child = -1;
	int32_t answer;
	int status;
	char command;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Ctrl-C reaches all processes; the first tells its results, and these die with that one.
	 */
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGTERM, SIG_IGN);
	while (get(fd, &command, 1)) {
		if (command == START) {
			child = fork();
			if (child == 0) {
				(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
				(void)close(fd);
				life(arg);
				_exit(0);
			}
			answer = (int32_t)child;
		} else {
			status = -1;
			while (waitpid(child, &status, WUNTRACED) < 0 && errno == EINTR)
				continue;
			answer = (int32_t)status;
		}
		if (!write_all(fd, &answer, sizeof(answer)))
			break;
	}
	_exit(0);
}

bool nursery_open(struct nursery *nursery, nursery_main *life, void *arg)
{
	int fds[2];

	nursery->fd = -1;
	nursery->child = 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
		return false;
	nursery->pid = fork();
	if (nursery->pid == 0) {
		(void)close(fds[0]);
		serve(fds[1], life, arg);
	}
	(void)close(fds[1]);
	if (nursery->pid < 0)
		(void)close(fds[0]);
	else
		nursery->fd = fds[0];
	return nursery->fd >= 0;
}

void nursery_close(struct nursery *nursery)
{
	if (nursery->fd < 0)
		return;
	(void)close(nursery->fd);
	nursery->fd = -1;
	while (waitpid(nursery->pid, NULL, 0) < 0 && errno == EINTR)
		continue;
}

bool nursery_start(struct nursery *nursery)
{
	const char command = START;
	int32_t pid = -1;

	if (!write_all(nursery->fd, &command, 1) || !get(nursery->fd, &pid, sizeof(pid)) ||
	    pid <= 0)
		return false;
	nursery->child = pid;
	return true;
}

void nursery_signal(const struct nursery *nursery, int signal_number)
{
	if (nursery->child > 0)
		(void)kill(nursery->child, signal_number);
}

int nursery_wait(struct nursery *nursery)
{
	const char command = WAIT;
	int32_t status = -1;

	if (!write_all(nursery->fd, &command, 1) || !get(nursery->fd, &status, sizeof(status)))
		status = -1;
	if (status == -1 || !WIFSTOPPED(status))
		nursery->child = 0;
	return status;
}
