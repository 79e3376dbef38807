/* SPDX-License-Identifier: BSD-2-Clause */
/* The lives of connections in a terminal of 80 columns, and the texts that the picture has, too. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "history.h"

#define LEFT 33 /* columns before the text of a transition */
#define WIDTH 80

char *history_clean(const char *text, char *out, size_t room)
{
	size_t n = 0;

	for (; *text != '\0' && n + 1 < room; text++) {
		const unsigned char c = (unsigned char)*text;

		if (c >= ' ' && c <= '~')
			out[n++] = *text;
		else if ((c & 0xc0) != 0x80) /* one ? for a character of several bytes */
			out[n++] = '?';
	}
	out[n] = '\0';
	return out;
}

char *history_name(const struct history_side *side, char *out, size_t room)
{
	const int length = snprintf(out, room, "connector#%" PRIu64, side->id);

	if (side->qp != 0 && length > 0 && (size_t)length < room)
		(void)snprintf(out + length, room - (size_t)length, " qp#%" PRIu64, side->qp);
	return out;
}

char *history_transition(const struct history_entry *entry, char *out, size_t room)
{
	char from[24], event[24], to[24];

	(void)snprintf(out, room, "%s + %s -> %s", history_clean(entry->from, from, sizeof(from)),
	               history_clean(entry->event, event, sizeof(event)),
	               history_clean(entry->to, to, sizeof(to)));
	return out;
}

char *history_cause(const struct history_entry *entry, char *out, size_t room)
{
	char status[48], cause[400];

	(void)snprintf(
		out, room, "%s%s%s",
		entry->status != NULL ? history_clean(entry->status, status, sizeof(status)) : "",
		entry->status != NULL && entry->cause != NULL ? ": " : "",
		entry->cause != NULL ? history_clean(entry->cause, cause, sizeof(cause)) : "");
	return out;
}

char *history_duration(int64_t ns, char *out, size_t room)
{
	const double s = (double)ns / 1e9;

	if (ns < 10000)
		(void)snprintf(out, room, "%.3f us", s * 1e6);
	else if (s < 10)
		(void)snprintf(out, room, "%.3f ms", s * 1e3);
	else if (s < 600)
		(void)snprintf(out, room, "%.3f s", s);
	else if (s < 36000)
		(void)snprintf(out, room, "%.1f min", s / 60);
	else
		(void)snprintf(out, room, "%.1f h", s / 3600);
	return out;
}

char *history_remark(const struct history_life *life, char *out, size_t room)
{
	char shift[32], doubt[32];

	(void)history_duration(llabs(life->shift_ns), shift, sizeof(shift));
	(void)history_duration(life->doubt_ns, doubt, sizeof(doubt));
	out[0] = '\0';
	switch (life->clock) {
	case HISTORY_ONE_CLOCK:
		break;
	case HISTORY_ALIGNED:
		(void)snprintf(out, room,
		               "The passive side's clock was set %s by %s, so that each message "
		               "arrives after it was sent; that may be wrong by %s.",
		               life->shift_ns > 0 ? "back" : "forward", shift, doubt);
		break;
	case HISTORY_TWO_CLOCKS:
		(void)snprintf(out, room,
		               "The two sides have different clocks, and too few messages are in "
		               "the histories: times of different sides cannot be compared.");
		break;
	case HISTORY_CONTRADICTED:
		(void)snprintf(out, room,
		               "The two sides' times contradict each other by %s: are the files of "
		               "one connection?",
		               doubt);
		break;
	}
	for (unsigned s = 0; s < 2; s++) {
		const struct history_side *side = life->sides[s];
		const size_t used = strlen(out);

		if (side != NULL && side->sorted)
			(void)snprintf(out + used, room - used,
			               "%sThe %s side's times are not in order in the file; they "
			               "were sorted.",
			               used > 0 ? " " : "", s == 0 ? "active" : "passive");
	}
	return out;
}

size_t history_fold(const char **text, size_t width, const char **line)
{
	size_t length = strlen(*text), end;

	*line = *text;
	if (length <= width) {
		*text += length;
		return length;
	}
	end = width;
	while (end > width / 2 && (*text)[end] != ' ')
		end--;
	if ((*text)[end] != ' ')
		end = width; /* one long word */
	*text += end;
	while (**text == ' ')
		(*text)++;
	return end;
}

static void print_folded(FILE *out, const char *text, int left)
{
	const char *line;
	size_t length;

	while ((length = history_fold(&text, (size_t)(WIDTH - left), &line)) > 0)
		fprintf(out, "%*s%.*s\n", left, "", (int)length, line);
}

static void print_side(FILE *out, const struct history_side *side)
{
	char name[64], file[64], local[64], peer[64], state[32], reason[32];

	fprintf(out, "  %-7s  %s, %s -> %s\n", side->passive ? "passive" : "active",
	        history_name(side, name, sizeof(name)),
	        side->local != NULL ? history_clean(side->local, local, sizeof(local)) : "?",
	        side->peer != NULL ? history_clean(side->peer, peer, sizeof(peer)) : "?");
	fprintf(out, "           %s",
	        side->state != NULL ? history_clean(side->state, state, sizeof(state))
	                            : "failed, and closed");
	if (side->reason != NULL)
		fprintf(out, ", end: %s", history_clean(side->reason, reason, sizeof(reason)));
	fprintf(out, "; in %s\n", history_clean(side->file, file, sizeof(file)));
	if (side->dropped > 0)
		fprintf(out,
		        "           %" PRIu64 " transitions before these are not in the file\n",
		        side->dropped);
}

/* What is between two rows in a column: before the connection ':', established '|', over ' '. */
static char lane(const char *state)
{
	if (state == NULL)
		return ' ';
	if (strcmp(state, "UP") == 0)
		return '|';
	if (strncmp(state, "CLOSED_", 7) == 0 || strcmp(state, "FAILED") == 0)
		return ' ';
	return ':';
}

static void print_rows(FILE *out, const struct history_life *life)
{
	const bool both = life->sides[0] != NULL && life->sides[1] != NULL;
	const char *states[2] = {NULL, NULL};
	char text[512], gap[32];

	fprintf(out, "%14s %11s  %s\n", "time (ms)", "later by",
	        both                     ? "A P  (active, passive)"
	        : life->sides[0] != NULL ? "A    (active)"
	                                 : "P    (passive)");
	for (size_t i = 0; i < life->count; i++) {
		const struct history_row *row = &life->rows[i];
		char marks[2];

		for (unsigned s = 0; s < 2; s++)
			marks[s] = lane(states[s]);
		marks[row->side] = history_is_bad(row->entry) ? 'X' : 'o';
		states[row->side] = row->entry->to;
		gap[0] = '\0';
		if (i > 0)
			(void)history_duration(row->gap_ns, gap, sizeof(gap));
		fprintf(out, "%14.3f %11s  ", (double)row->at_ns / 1e6, gap);
		if (both)
			fprintf(out, "%c %c  ", marks[0], marks[1]);
		else
			fprintf(out, "%c    ", marks[row->side]);
		fprintf(out, "%s\n", history_transition(row->entry, text, sizeof(text)));
		if (history_cause(row->entry, text, sizeof(text))[0] != '\0')
			print_folded(out, text, LEFT);
	}
}

static void print_verdict(FILE *out, const struct history_life *life)
{
	const struct history_entry *entry;
	const char *meaning;
	char state[24], event[24], text[400];

	if (life->fatal == SIZE_MAX)
		return;
	entry = life->rows[life->fatal].entry;
	meaning = history_meaning(entry);
	(void)snprintf(text, sizeof(text), "Ended badly at the %s side, in state %s, by %s%s%s.",
	               life->rows[life->fatal].side == 0 ? "active" : "passive",
	               history_clean(entry->from, state, sizeof(state)),
	               history_clean(entry->event, event, sizeof(event)),
	               meaning[0] != '\0' ? ": " : "", meaning);
	print_folded(out, text, 2);
}

void history_print(FILE *out, const struct history_life *life, bool first)
{
	char remark[512];

	fprintf(out, "%sConnection\n", first ? "" : "\n");
	for (unsigned s = 0; s < 2; s++) {
		if (life->sides[s] != NULL)
			print_side(out, life->sides[s]);
	}
	print_verdict(out, life);
	if (history_remark(life, remark, sizeof(remark))[0] != '\0')
		print_folded(out, remark, 2);
	print_rows(out, life);
}
