/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Unix socket of a server. Of two servers that find a stale socket, the later one would remove
 * the new socket of the earlier one. So a server holds a lock of the folder from its look at the
 * path until its own socket listens.
 */
#include "control_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sample_options.h"

#define BACKLOG 16
#define LOCK_TRIES 100 /* of 20 ms */

bool control_address(const char *who, const char *path, struct sockaddr_un *at)
{
	const size_t length = strlen(path);

	*at = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (length > 0 && length < sizeof(at->sun_path)) {
		memcpy(at->sun_path, path, length + 1);
		return true;
	}
	fprintf(stderr, "%s: the path of a control socket has 1 to %zu bytes, not %zu\n", who,
	        sizeof(at->sun_path) - 1, length);
	return false;
}

static int refuse(const char *who, const char *path, const char *why)
{
	fprintf(stderr, "%s: no control socket at %s: %s\n", who, path, why);
	return SAMPLE_EXIT_FAILED;
}

/** Open and lock the folder of the socket; -1: explained. */
static int lock_folder(const char *who, const struct sockaddr_un *at)
{
	const struct timespec moment = {.tv_nsec = 20000000L};
	char folder[sizeof(at->sun_path)];
	char *slash;
	int fd;

	memcpy(folder, at->sun_path, sizeof(folder));
	slash = strrchr(folder, '/');
	if (slash == NULL)
		(void)snprintf(folder, sizeof(folder), ".");
	else
		slash[slash == folder ? 1 : 0] = '\0';
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		fprintf(stderr, "%s: no control socket at %s: the folder %s: %s\n", who,
		        at->sun_path, folder, strerror(errno));
		return -1;
	}
	for (int i = 0; i < LOCK_TRIES; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return fd;
		if (errno != EWOULDBLOCK && errno != EINTR)
			break;
		(void)nanosleep(&moment, NULL);
	}
	fprintf(stderr, "%s: no control socket at %s: the folder %s cannot be locked: %s\n", who,
	        at->sun_path, folder, strerror(errno));
	(void)close(fd);
	return -1;
}

/** The path exists. Remove the file if it is a socket without a listener. */
static int replace_stale(const char *who, const struct sockaddr_un *at)
{
	struct stat file;
	int error;
	int fd;

	if (lstat(at->sun_path, &file) != 0)
		return refuse(who, at->sun_path, strerror(errno));
	if (!S_ISSOCK(file.st_mode))
		return refuse(who, at->sun_path, "there is a file that is no socket; it stays");
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return refuse(who, at->sun_path, strerror(errno));
	error = connect(fd, (const struct sockaddr *)at, sizeof(*at)) == 0 ? 0 : errno;
	(void)close(fd);
	if (error == 0 || error == EAGAIN)
		return refuse(who, at->sun_path, "it is in use: another program listens there");
	if (error != ECONNREFUSED)
		return refuse(who, at->sun_path, strerror(error));
	if (unlink(at->sun_path) != 0)
		return refuse(who, at->sun_path, strerror(errno));
	return SAMPLE_EXIT_OK;
}

static int listen_at(const char *who, struct control_socket *s)
{
	const struct sockaddr *at = (const struct sockaddr *)&s->at;
	struct stat file;
	int rc;

	/* The file gets the mode of the socket, from its first moment on. */
	if (fchmod(s->fd, S_IRUSR | S_IWUSR) != 0)
		return refuse(who, s->at.sun_path, strerror(errno));
	if (bind(s->fd, at, sizeof(s->at)) != 0) {
		if (errno != EADDRINUSE)
			return refuse(who, s->at.sun_path, strerror(errno));
		rc = replace_stale(who, &s->at);
		if (rc != SAMPLE_EXIT_OK)
			return rc;
		if (bind(s->fd, at, sizeof(s->at)) != 0)
			return refuse(who, s->at.sun_path, strerror(errno));
	}
	if (listen(s->fd, BACKLOG) != 0 || lstat(s->at.sun_path, &file) != 0) {
		rc = refuse(who, s->at.sun_path, strerror(errno));
		(void)unlink(s->at.sun_path);
		return rc;
	}
	s->dev = file.st_dev;
	s->ino = file.st_ino;
	return SAMPLE_EXIT_OK;
}

int control_socket_open(const char *who, const char *path, struct control_socket *out)
{
	int rc = SAMPLE_EXIT_FAILED;
	int folder;

	if (!control_address(who, path, &out->at))
		return SAMPLE_EXIT_USAGE;
	out->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (out->fd < 0)
		return refuse(who, path, strerror(errno));
	folder = lock_folder(who, &out->at);
	if (folder >= 0) {
		rc = listen_at(who, out);
		(void)close(folder);
	}
	if (rc != SAMPLE_EXIT_OK)
		(void)close(out->fd);
	return rc;
}

void control_socket_close(struct control_socket *s)
{
	struct stat file;

	/* Remove the file first: then no client finds a socket without a listener. */
	if (lstat(s->at.sun_path, &file) == 0 && file.st_dev == s->dev && file.st_ino == s->ino)
		(void)unlink(s->at.sun_path);
	(void)close(s->fd);
}
