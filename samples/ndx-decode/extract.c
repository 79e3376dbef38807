/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages as files. */
#include <inttypes.h>
#include <limits.h>

#include "decode.h"

bool extract_write(const char *folder, uint64_t number, const struct ndx_reassembly_event *event)
{
	char path[PATH_MAX];
	FILE *file;
	bool good = true;
	int length = snprintf(path, sizeof(path), "%s/%08" PRIu64 "-%08" PRIx32 "-%s.xdr", folder,
	                      number, event->rpc.xid, event_name(event->type));

	if (length < 0 || (size_t)length >= sizeof(path)) {
		fprintf(stderr, "%s: %s: the name is too long\n", DECODE_WHO, folder);
		return false;
	}
	file = fopen(path, "wb");
	if (file == NULL) {
		fprintf(stderr, "%s: %s: ", DECODE_WHO, path);
		perror("");
		return false;
	}
	for (size_t i = 0; i < event->rpc.piece_count && good; i++)
		good = fwrite(event->rpc.pieces[i].bytes, 1, event->rpc.pieces[i].length, file) ==
		       event->rpc.pieces[i].length;
	if (fclose(file) != 0)
		good = false;
	if (!good)
		fprintf(stderr, "%s: %s cannot be written\n", DECODE_WHO, path);
	return good;
}
