/* SPDX-License-Identifier: BSD-2-Clause */
/* ndx-info history on what the library writes, and on damaged copies of that. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <ndx/ndx.h>

#include "history.h"

#define MUTATIONS 4000

/* Two ends on one adapter, which one of them ends by a flush. */
struct pair {
	struct ndx_adapter *adapter;
	struct ndx_listener *listener;
	struct ndx_cq *cq;
	struct ndx_qp *qps[2];
	struct ndx_connector *connectors[2];
};

static void start_connect(struct pair *p, struct ndx_overlapped *ov)
{
	struct sockaddr_in there = {.sin_family = AF_INET};
	socklen_t length = sizeof(there);

	assert_int_equal(
		ndx_listener_get_local_address(p->listener, (struct sockaddr *)&there, &length),
		NDX_OK);
	assert_int_equal(ndx_connector_create(p->adapter, NULL, &p->connectors[0]), NDX_OK);
	ndx_overlapped_init(ov);
	assert_int_equal(ndx_connector_connect(p->connectors[0], p->qps[0],
	                                       (struct sockaddr *)&there, length, NULL, ov),
	                 NDX_PENDING);
}

static void connect_pair(struct pair *p)
{
	struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct ndx_overlapped connect, request, accept;
	struct ndx_qp_attr attr;

	assert_int_equal(ndx_adapter_open("loop", &p->adapter), NDX_OK);
	assert_int_equal(
		ndx_listen_on(p->adapter, (struct sockaddr *)&here, sizeof(here), 0, &p->listener),
		NDX_OK);
	assert_int_equal(ndx_cq_create_depth(p->adapter, 4, &p->cq), NDX_OK);
	ndx_qp_attr_init(&attr);
	attr.receive_cq = attr.initiator_cq = p->cq;
	for (int i = 0; i < 2; i++)
		assert_int_equal(ndx_qp_create(p->adapter, &attr, &p->qps[i]), NDX_OK);
	assert_int_equal(ndx_connector_create(p->adapter, NULL, &p->connectors[1]), NDX_OK);
	ndx_overlapped_init(&request);
	assert_int_equal(
		ndx_listener_get_connection_request(p->listener, p->connectors[1], &request),
		NDX_PENDING);
	start_connect(p, &connect);
	assert_int_equal(ndx_overlapped_wait(&request, 5000), NDX_OK);
	ndx_overlapped_init(&accept);
	assert_int_equal(ndx_connector_accept(p->connectors[1], p->qps[1], NULL, &accept),
	                 NDX_PENDING);
	assert_int_equal(ndx_overlapped_wait(&connect, 5000), NDX_OK);
	ndx_overlapped_init(&connect);
	(void)ndx_connector_complete_connect(p->connectors[0], &connect);
	assert_int_equal(ndx_overlapped_wait(&connect, 5000), NDX_OK);
	assert_int_equal(ndx_overlapped_wait(&accept, 5000), NDX_OK);
}

static void close_pair(struct pair *p)
{
	for (int i = 0; i < 2; i++) {
		ndx_connector_close(p->connectors[i]);
		ndx_qp_close(p->qps[i]);
	}
	ndx_cq_close(p->cq);
	ndx_listener_close(p->listener);
	ndx_adapter_close(p->adapter);
}

/* A snapshot of both sides after a flush of the active one; the caller frees it. */
static char *make_snapshot(void)
{
	struct pair p = {0};
	struct ndx_overlapped ended;
	char *json = NULL;

	connect_pair(&p);
	ndx_overlapped_init(&ended);
	assert_int_equal(ndx_connector_notify_disconnect(p.connectors[1], &ended), NDX_PENDING);
	assert_int_equal(ndx_qp_flush(p.qps[0]), NDX_OK);
	(void)ndx_overlapped_wait(&ended, 5000);
	assert_int_equal(ndx_adapter_snapshot(p.adapter, &json), NDX_OK);
	close_pair(&p);
	return json;
}

static void both_sides_of_a_snapshot_become_one_connection(void **state)
{
	char *json = make_snapshot(), why[512] = "";
	struct history h = {0};
	struct history_life life;
	size_t messages = 0;

	(void)state;
	assert_true(history_read(&h, "live", json, strlen(json), why, sizeof(why)));
	assert_int_equal(h.count, 2);
	assert_int_equal(history_next(&h, 0, &life), 1);
	assert_non_null(life.sides[0]);
	assert_non_null(life.sides[1]);
	assert_false(life.sides[0]->passive);
	assert_int_equal(life.clock, HISTORY_ONE_CLOCK);
	assert_true(life.count >= 10);
	assert_true(life.fatal < life.count);
	assert_string_equal(life.rows[life.fatal].entry->event, "FLUSH");
	assert_int_equal(life.rows[life.fatal].side, 0);
	for (size_t i = 0; i < life.count; i++) {
		assert_true(life.rows[i].gap_ns >= 0);
		assert_true(life.rows[i].from == SIZE_MAX ||
		            life.rows[life.rows[i].from].side != life.rows[i].side);
		messages += life.rows[i].from != SIZE_MAX;
	}
	assert_int_equal(messages, 3); /* request, answer, completion */
	history_life_drop(&life);
	assert_int_equal(history_next(&h, 0, &life), 0);
	history_drop(&h);
	free(json);
}

/* A generator of its own: the same damage in every run. */
static uint32_t draw_number(uint32_t *seed, uint32_t below)
{
	*seed = *seed * UINT32_C(1664525) + UINT32_C(1013904223);
	return (uint32_t)((uint64_t)*seed * below >> 32);
}

/* Change, remove or double bytes behind `begin`. Returns the length. */
static size_t damage(char *text, size_t length, size_t begin, uint32_t *seed)
{
	const uint32_t room = (uint32_t)(length - begin);
	size_t at = begin + draw_number(seed, room), some = 1 + draw_number(seed, 24);

	if (some > length - at)
		some = length - at;
	switch (draw_number(seed, 4)) {
	case 0:
		text[at] = (char)draw_number(seed, 256);
		return length;
	case 1:
		memmove(text + at, text + at + some, length - at - some);
		return length - some;
	case 2: /* a digit more or less, which often leaves JSON */
		while (at < length && (text[at] < '0' || text[at] > '9'))
			at++;
		if (at < length)
			text[at] = (char)('0' + draw_number(seed, 10));
		return length;
	default:
		memmove(text + begin + draw_number(seed, room - (uint32_t)some), text + at, some);
		return length;
	}
}

static void show_all(struct history *h, FILE *out)
{
	struct history_life lives[HISTORY_SHOWN];
	size_t count = 0;

	while (count < HISTORY_SHOWN && history_next(h, 0, &lives[count]) == 1) {
		history_print(out, &lives[count], count == 0);
		count++;
	}
	if (count > 0)
		history_draw(out, lives, count);
	while (count > 0)
		history_life_drop(&lives[--count]);
}

static void damaged_snapshots_are_shown_or_refused_with_a_reason(void **state)
{
	char *json = make_snapshot(), *copy = malloc(strlen(json) + 1), why[512];
	const char *list = strstr(json, "\"connectors\": [");
	const size_t begin = list != NULL ? (size_t)(list - json) : 0;
	FILE *out = fopen("/dev/null", "w");
	unsigned refused = 0;
	uint32_t seed = 20;

	(void)state;
	assert_non_null(list);
	assert_non_null(out);
	assert_non_null(copy);
	for (unsigned i = 0; i < MUTATIONS; i++) {
		struct history h = {0};
		size_t length = strlen(json);

		memcpy(copy, json, length + 1);
		for (uint32_t n = 1 + draw_number(&seed, 3); n > 0; n--)
			length = damage(copy, length, begin, &seed);
		why[0] = '\0';
		if (!history_read(&h, "damaged", copy, length, why, sizeof(why))) {
			assert_true(strncmp(why, "damaged: ", 9) == 0 && strlen(why) > 15);
			refused++;
		}
		show_all(&h, out);
		history_drop(&h);
	}
	(void)fclose(out);
	assert_true(refused > MUTATIONS / 10 && refused < MUTATIONS * 9 / 10);
	free(copy);
	free(json);
}

static void text_is_folded_without_losing_a_word(void **state)
{
	const char *text = "one twothreefour fivesixseveneightnine", *line, *rest = text;
	char joined[64] = "";
	size_t length, lines = 0;

	(void)state;
	while ((length = history_fold(&rest, 10, &line)) > 0) {
		assert_true(length <= 10);
		strncat(joined, line, length);
		lines++;
	}
	assert_int_equal(lines, 5);
	for (const char *c = text, *j = joined; *c != '\0'; c++) {
		if (*c == ' ')
			continue;
		while (*j == ' ')
			j++;
		assert_int_equal(*c, *j);
		j++;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_sides_of_a_snapshot_become_one_connection),
		cmocka_unit_test(damaged_snapshots_are_shown_or_refused_with_a_reason),
		cmocka_unit_test(text_is_folded_without_losing_a_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
