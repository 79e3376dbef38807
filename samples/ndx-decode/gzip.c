/* SPDX-License-Identifier: BSD-2-Clause */
/* Compressed files: zlib behind a stream; it passes uncompressed files through. */
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "decode.h"

#define MAGIC_0 0x1f
#define BUFFER (256 << 10)

static ssize_t read_some(void *cookie, char *buffer, size_t size)
{
	return gzread(cookie, buffer, size > BUFFER ? BUFFER : (unsigned)size);
}

static int close_it(void *cookie)
{
	return gzclose(cookie) == Z_OK ? 0 : -1;
}

/*
 * Checks one byte only, because only one byte can be put back and a pipe cannot be rewound. So a
 * file without compression does not go through zlib.
 */
FILE *gzip_wrap(FILE *file, const char *path)
{
	static const cookie_io_functions_t calls = {.read = read_some, .close = close_it};
	int first = fgetc(file), fd;
	FILE *plain;
	gzFile gz;

	if (first != EOF)
		(void)ungetc(first, file);
	if (first != MAGIC_0)
		return file;
	if (fseek(file, 0, SEEK_SET) != 0) {
		fprintf(stderr, "%s: %s: a compressed file cannot come from a pipe: use zcat\n",
		        DECODE_WHO, path);
		(void)fclose(file);
		return NULL;
	}
	fd = dup(fileno(file));
	(void)fclose(file);
	(void)lseek(fd, 0, SEEK_SET);
	gz = fd < 0 ? NULL : gzdopen(fd, "rb");
	if (gz == NULL) {
		fprintf(stderr, "%s: %s: cannot be uncompressed\n", DECODE_WHO, path);
		return NULL;
	}
	(void)gzbuffer(gz, BUFFER);
	plain = fopencookie(gz, "rb", calls);
	if (plain == NULL) {
		fprintf(stderr, "%s: %s: out of memory\n", DECODE_WHO, path);
		(void)gzclose(gz);
	}
	return plain;
}
