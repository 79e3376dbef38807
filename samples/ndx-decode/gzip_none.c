/* SPDX-License-Identifier: BSD-2-Clause */
/* Replaces gzip.c in builds without zlib. */
#include "decode.h"

#define MAGIC 0x1f

FILE *gzip_wrap(FILE *file, const char *path)
{
	int first = fgetc(file);

	if (first != EOF)
		(void)ungetc(first, file);
	if (first != MAGIC)
		return file;
	fprintf(stderr,
	        "%s: %s is compressed and this was built without zlib: zcat FILE | %s -; or "
	        "apt-get install zlib1g-dev and build again\n",
	        DECODE_WHO, path, DECODE_WHO);
	(void)fclose(file);
	return NULL;
}
