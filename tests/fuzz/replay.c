/* SPDX-License-Identifier: BSD-2-Clause */
/* usage: fuzz_X FILE... Runs a fuzz target over a corpus, where there is no libFuzzer. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INPUT_MAX ((size_t)1 << 20)

/* The memory is as large as the input, so that a sanitizer sees the first byte too many. */
static int run(const uint8_t *data, size_t size)
{
	uint8_t *input = malloc(size > 0 ? size : 1);

	if (input == NULL)
		return -1;
	memcpy(input, data, size);
	(void)LLVMFuzzerTestOneInput(input, size);
	free(input);
	return 0;
}

/* The input, then all its beginnings: where a text may end is where parsers go wrong. */
static int replay(const char *path, uint8_t *bytes)
{
	FILE *f = fopen(path, "rbe");
	size_t size;

	if (f == NULL) {
		perror(path);
		return -1;
	}
	size = fread(bytes, 1, INPUT_MAX, f);
	(void)fclose(f);
	for (size_t len = size < 512 ? 0 : size; len <= size; len++) {
		if (run(bytes, len) != 0)
			return -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	uint8_t *bytes = malloc(INPUT_MAX);
	int failed = 0;

	if (bytes == NULL || argc < 2) {
		(void)fprintf(stderr, "usage: %s FILE...\n", argv[0]);
		free(bytes);
		return 2;
	}
	for (int i = 1; i < argc; i++)
		failed |= replay(argv[i], bytes) != 0;
	free(bytes);
	printf("%d inputs and their beginnings\n", argc - 1);
	return failed;
}
