/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets from libpcap: classic files of either resolution, pcapng, both compressed by gzip, live
 * interfaces.
 */
#include <errno.h>
#include <fcntl.h>
#include <pcap/pcap.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decode.h"

#define READ_AHEAD (256 << 10)
#define SNAPSHOT 262144
#define POLL_MS 200

struct source {
	pcap_t *pcap;
	uint32_t link_type;
	bool nanoseconds;
	bool live;
	volatile bool stopped;
	const char *name; /* the caller's: a path, or an interface */
	char *buffer;     /* of the file */
};

/* For the handler of a signal: the descriptor that is read, and an empty file. */
static volatile sig_atomic_t reading = -1, nothing = -1, reads_stopped;

void source_stop_reads(void)
{
	const int error = errno;

	reads_stopped = 1;
	if (reading >= 0 && nothing >= 0)
		(void)dup2(nothing, reading);
	errno = error;
}

static void begin_reads(int fd)
{
	if (nothing < 0)
		nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
	reading = fd;
	if (reads_stopped)
		source_stop_reads();
}

/* Before the descriptor is closed: its number may become that of another file. */
static void end_reads(void)
{
	reading = -1;
}

/* Most data link types have the value of their link type; raw IP differs by operating system. */
static uint32_t link_type_of(pcap_t *pcap)
{
	int dlt = pcap_datalink(pcap);

	return dlt == DLT_RAW ? (uint32_t)NDX_LINK_RAW : (uint32_t)dlt;
}

static struct source *source_of(pcap_t *pcap, const char *name, bool live, char *buffer)
{
	struct source *source = calloc(1, sizeof(*source));

	if (source == NULL) {
		fprintf(stderr, "%s: out of memory\n", DECODE_WHO);
		pcap_close(pcap);
		free(buffer);
		return NULL;
	}
	source->pcap = pcap;
	source->name = name;
	source->buffer = buffer;
	source->live = live;
	source->link_type = link_type_of(pcap);
	source->nanoseconds = pcap_get_tstamp_precision(pcap) == PCAP_TSTAMP_PRECISION_NANO;
	return source;
}

struct source *source_open(const char *path)
{
	char why[PCAP_ERRBUF_SIZE];
	bool standard = strcmp(path, "-") == 0;
	FILE *file = standard ? stdin : fopen(path, "rb"), *plain;
	char *buffer;
	pcap_t *pcap;

	if (file == NULL) {
		fprintf(stderr, "%s: %s: ", DECODE_WHO, path);
		perror("");
		return NULL;
	}
	buffer = standard ? NULL : malloc(READ_AHEAD); /* stdin lives longer than the buffer */
	if (buffer != NULL)
		(void)setvbuf(file, buffer, _IOFBF, READ_AHEAD);
	begin_reads(fileno(file));
	plain = gzip_wrap(file, path);
	if (plain != file)
		end_reads(); /* a compressed file is no pipe: a read of it does not block */
	if (plain == NULL) {
		free(buffer);
		return NULL;
	}
	pcap = pcap_fopen_offline_with_tstamp_precision(plain, PCAP_TSTAMP_PRECISION_NANO, why);
	if (pcap == NULL) {
		end_reads();
		if (!reads_stopped)
			fprintf(stderr, "%s: %s: %s\n", DECODE_WHO, path, why);
		(void)fclose(plain);
		free(buffer);
		return NULL;
	}
	return source_of(pcap, path, false, buffer);
}

struct source *source_open_live(const char *interface)
{
	char why[PCAP_ERRBUF_SIZE] = "";
	pcap_t *pcap = pcap_create(interface, why);
	int rc;

	if (pcap == NULL) {
		fprintf(stderr, "%s: %s: %s\n", DECODE_WHO, interface, why);
		return NULL;
	}
	(void)pcap_set_snaplen(pcap, SNAPSHOT);
	(void)pcap_set_promisc(pcap, 1);
	(void)pcap_set_timeout(pcap, POLL_MS);
	(void)pcap_set_buffer_size(pcap, 16 << 20);
	(void)pcap_set_tstamp_precision(pcap, PCAP_TSTAMP_PRECISION_NANO);
	rc = pcap_activate(pcap);
	if (rc < 0) {
		const char *status = pcap_statustostr(rc), *more = pcap_geterr(pcap);
		const bool same = more[0] == '\0' || strcmp(status, more) == 0;

		fprintf(stderr, "%s: %s: %s%s%s%s\n", DECODE_WHO, interface, status,
		        same ? "" : " (", same ? "" : more, same ? "" : ")");
		pcap_close(pcap);
		return NULL;
	}
	return source_of(pcap, interface, true, NULL);
}

int source_next(struct source *source, struct ndx_packet *packet)
{
	struct pcap_pkthdr *head;
	const u_char *bytes;
	int rc;

	do {
		if (source->stopped)
			return 0;
		rc = pcap_next_ex(source->pcap, &head, &bytes);
	} while (rc == 0);
	if (rc == PCAP_ERROR_BREAK || source->stopped)
		return 0; /* a read that a signal interrupts may also fail */
	if (rc < 0) {
		fprintf(stderr, "%s: %s: %s\n", DECODE_WHO, source->name,
		        pcap_geterr(source->pcap));
		return -1;
	}
	packet->bytes = bytes;
	packet->captured = head->caplen;
	packet->original = head->len;
	packet->link_type = source->link_type;
	packet->time_ns = (uint64_t)head->ts.tv_sec * 1000000000 +
	                  (uint64_t)head->ts.tv_usec * (source->nanoseconds ? 1 : 1000);
	return 1;
}

void source_stop(struct source *source)
{
	source->stopped = true;
	pcap_breakloop(source->pcap);
}

void source_close(struct source *source)
{
	if (source == NULL)
		return;
	end_reads();
	pcap_close(source->pcap);
	free(source->buffer);
	free(source);
}
