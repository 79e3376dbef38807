/* SPDX-License-Identifier: BSD-2-Clause */
/* adapter.*: finding, opening and asking adapters. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "cases.h"
#include "traffic.h"

enum { THREADS = 8, OPENS = 5, TEXT_MAX = 400 };

static bool texts_equal(const struct ndx_adapter_info *one, const struct ndx_adapter_info *other)
{
	return strcmp(one->uri, other->uri) == 0 && strcmp(one->provider, other->provider) == 0 &&
	       strcmp(one->device, other->device) == 0;
}

static bool numbers_equal(const struct ndx_adapter_info *one, const struct ndx_adapter_info *other)
{
	return one->adapter_id == other->adapter_id && one->vendor_id == other->vendor_id &&
	       one->device_id == other->device_id && one->capabilities == other->capabilities &&
	       one->max_registration_size == other->max_registration_size &&
	       one->max_window_size == other->max_window_size &&
	       one->max_initiator_sge == other->max_initiator_sge &&
	       one->max_receive_sge == other->max_receive_sge &&
	       one->max_read_sge == other->max_read_sge &&
	       one->max_transfer_length == other->max_transfer_length &&
	       one->max_inline_data_size == other->max_inline_data_size &&
	       one->inline_request_threshold == other->inline_request_threshold &&
	       one->large_request_threshold == other->large_request_threshold &&
	       one->max_inbound_read_limit == other->max_inbound_read_limit &&
	       one->max_outbound_read_limit == other->max_outbound_read_limit &&
	       one->max_receive_queue_depth == other->max_receive_queue_depth &&
	       one->max_initiator_queue_depth == other->max_initiator_queue_depth &&
	       one->max_shared_receive_queue_depth == other->max_shared_receive_queue_depth &&
	       one->max_completion_queue_depth == other->max_completion_queue_depth &&
	       one->max_caller_data == other->max_caller_data &&
	       one->max_callee_data == other->max_callee_data;
}

/* Open it once more: it is the adapter that the place knows. */
static bool opens_as(struct check *c, const char *uri, const struct place *place)
{
	struct ndx_adapter_info info = {.size = sizeof(info)};
	struct ndx_adapter *adapter = NULL;

	if (check_over(c) || !check_status(c, ndx_adapter_open(uri, &adapter), NDX_OK, "open"))
		return false;
	check_status(c, ndx_adapter_query(adapter, &info), NDX_OK, "query");
	check_that(c, info.size == sizeof(info), "query changed the size to %zu", info.size);
	check_that(c, texts_equal(&info, &place->info), "'%s' opens %s, not %s", uri, info.uri,
	           place->info.uri);
	check_that(c, numbers_equal(&info, &place->info), "'%s' has other limits this time", uri);
	ndx_adapter_close(adapter);
	return !check_over(c);
}

void case_adapter_query_fills_no_more_than_its_size(struct check *c)
{
	struct ndx_adapter *adapter = c->world->places[0].adapter;
	struct {
		struct ndx_adapter_info info;
		uint8_t beyond[64];
	} room;

	memset(&room, 0xee, sizeof(room));
	room.info.size = sizeof(room.info);
	check_status(c, ndx_adapter_query(adapter, &room.info), NDX_OK, "query");
	bytes_are(c, room.beyond, sizeof(room.beyond), 0xee, "beyond the size");
	memset(&room, 0xee, sizeof(room));
	room.info.size = sizeof(room.info.size);
	check_status(c, ndx_adapter_query(adapter, &room.info), NDX_E_INVALID_PARAMETER,
	             "query with the size of the size");
	bytes_are(c, (const uint8_t *)room.info.uri, sizeof(room) - sizeof(room.info.size), 0xee,
	          "info of a failed query");
	check_status(c, ndx_adapter_query(adapter, NULL), NDX_E_INVALID_PARAMETER, "query of NULL");
}

void case_adapter_limits_and_capabilities_agree(struct check *c)
{
	const struct ndx_adapter_info *info = &c->world->places[0].info;

	check_that(c, info->uri[0] != '\0' && info->provider[0] != '\0', "it has no name");
	check_that(c, info->max_receive_queue_depth == info->max_initiator_queue_depth,
	           "receive and initiator depth differ: %u, %u", info->max_receive_queue_depth,
	           info->max_initiator_queue_depth);
	check_that(c, info->max_receive_queue_depth >= 64 && info->max_completion_queue_depth >= 64,
	           "less than the default depth of 64");
	check_that(c, info->inline_request_threshold <= info->max_inline_data_size,
	           "inline is worth it up to %u, but possible up to %u",
	           info->inline_request_threshold, info->max_inline_data_size);
	check_that(c, info->max_read_sge > 0 && info->max_read_sge <= info->max_initiator_sge,
	           "%u SGEs of a read, %u of others", info->max_read_sge, info->max_initiator_sge);
	check_that(c, info->max_receive_sge > 0 && info->max_transfer_length > 0, "a limit is 0");
	check_that(c, info->max_caller_data >= 40 && info->max_callee_data >= 36,
	           "programs need 40 and 36 bytes of private data, there are %u and %u",
	           info->max_caller_data, info->max_callee_data);
	check_that(c,
	           ((info->capabilities & NDX_CAP_SRQ) != 0) ==
	                   (info->max_shared_receive_queue_depth > 0),
	           "the capability SRQ and its depth contradict each other");
	check_that(c,
	           ((info->capabilities & NDX_CAP_MEMORY_WINDOW) != 0) ==
	                   (info->max_window_size > 0),
	           "the capability of windows and their size contradict each other");
	for (unsigned bit = 0; bit < 31; bit++) {
		enum ndx_capability one = (enum ndx_capability)(1 << bit);

		if (info->capabilities & (UINT64_C(1) << bit))
			check_that(c, ndx_capability_name(one) != NULL,
			           "bit %u of the capabilities has no name", bit);
	}
}

void case_adapter_addresses_are_counted_first(struct check *c)
{
	const struct place *place = &c->world->places[0];
	struct sockaddr_storage list[WORLD_ADDRESSES + 1];
	size_t count = 0;

	check_status(c, ndx_adapter_query_addresses(place->adapter, NULL, &count),
	             NDX_E_BUFFER_OVERFLOW, "query_addresses without room");
	check_no_room(c, "query_addresses", place->address_count, 0);
	check_that(c, count == place->address_count, "%zu addresses, then %zu",
	           place->address_count, count);
	memset(list, 0xee, sizeof(list));
	count = place->address_count - 1;
	check_status(c, ndx_adapter_query_addresses(place->adapter, list, &count),
	             NDX_E_BUFFER_OVERFLOW, "query_addresses with room for one too few");
	check_no_room(c, "query_addresses", place->address_count, place->address_count - 1);
	check_that(c, count == place->address_count, "it takes room for %zu, it says %zu",
	           place->address_count, count);
	bytes_are(c, (const uint8_t *)list, sizeof(list), 0xee, "list that is too small");
	count = WORLD_ADDRESSES + 1;
	check_status(c, ndx_adapter_query_addresses(place->adapter, list, &count), NDX_OK,
	             "query_addresses");
	check_that(c, count == place->address_count, "%zu addresses, then %zu",
	           place->address_count, count);
	bytes_are(c, (const uint8_t *)&list[place->address_count], sizeof(list[0]), 0xee,
	          "list beyond its end");
	for (size_t i = 0; i < place->address_count && i < count; i++) {
		check_that(c, list[i].ss_family == AF_INET || list[i].ss_family == AF_INET6,
		           "address %zu is of family %d", i, (int)list[i].ss_family);
		check_that(c, address_port(&list[i]) == 0, "address %zu has a port", i);
		check_that(c, address_equal(&list[i], &place->addresses[i]),
		           "address %zu is another one now", i);
	}
}

void case_adapter_opens_again_by_its_own_uri(struct check *c)
{
	for (size_t i = 0; i < 2; i++)
		opens_as(c, c->world->places[i].info.uri, &c->world->places[i]);
}

/* The choice is `chosen`, as it was written. */
static void default_is(struct check *c, const char *chosen)
{
	char uri[256] = "?";
	size_t size = 1;

	check_status(c, ndx_adapter_default(uri, &size), NDX_E_BUFFER_OVERFLOW,
	             "adapter_default with room for 1 byte");
	check_no_room(c, "adapter_default", strlen(chosen) + 1, 1);
	check_that(c, strcmp(uri, "?") == 0, "the output of a failed call was touched");
	check_that(c, size == strlen(chosen) + 1, "it takes %zu bytes, not %zu", strlen(chosen) + 1,
	           size);
	check_status(c, check_over(c) ? NDX_OK : ndx_adapter_default(uri, &size), NDX_OK,
	             "adapter_default");
	check_that(c, strcmp(uri, chosen) == 0, "the default is %s, not %s", uri, chosen);
}

void case_adapter_null_is_what_the_environment_says(struct check *c)
{
	const char *before = getenv("NDX_ADAPTER");
	char *kept = before ? strdup(before) : NULL;
	size_t none = 0;

	(void)setenv("NDX_ADAPTER", c->world->places[0].uri, 1);
	opens_as(c, NULL, &c->world->places[0]);
	default_is(c, c->world->places[0].uri);
	(void)setenv("NDX_ADAPTER", "auto", 1);
	check_status(c, ndx_adapter_default(NULL, &none), NDX_E_NOT_FOUND,
	             "adapter_default of the automatic choice");
	if (kept)
		(void)setenv("NDX_ADAPTER", kept, 1);
	else
		(void)unsetenv("NDX_ADAPTER");
	free(kept);
}

static void *open_often(void *arg)
{
	struct check *c = arg;

	for (unsigned i = 0; i < OPENS; i++)
		opens_as(c, c->world->places[0].uri, &c->world->places[0]);
	return NULL;
}

void case_adapter_many_opens_from_many_threads_agree(struct check *c)
{
	pthread_t threads[THREADS];
	unsigned started = 0;

	open_often(c);
	while (started < THREADS &&
	       check_that(c, pthread_create(&threads[started], NULL, open_often, c) == 0,
	                  "no thread"))
		started++;
	for (unsigned i = 0; i < started; i++)
		(void)pthread_join(threads[i], NULL);
}

void case_adapter_two_opens_reach_each_other(struct check *c)
{
	struct ndx_adapter *own[2] = {NULL, NULL};
	struct side_attr attr[2];
	struct pair *p;

	for (size_t i = 0; i < 2; i++) {
		side_attr_init(&attr[i]);
		check_status(c, ndx_adapter_open(c->world->places[i].uri, &own[i]), NDX_OK, "open");
		attr[i].adapter = own[i];
	}
	p = check_over(c) ? NULL : pair_up_with(c, &attr[0], &attr[1]);
	if (p)
		(void)(message_passes(&p->a, &p->b, 1000) && message_passes(&p->b, &p->a, 1000) &&
		       pair_disconnect(p));
	pair_close_all(c);
	ndx_adapter_close(own[0]);
	ndx_adapter_close(own[1]);
}

/* ---- finding ---- */

static void entry_is_sound(struct check *c, const struct ndx_adapter_entry *entry)
{
	check_that(c, entry->uri[0] != '\0' && entry->provider[0] != '\0', "an entry has no name");
	check_that(c, (entry->state == NDX_OK) == (entry->hint[0] == '\0'),
	           "%s: %s, and the hint is \"%s\"", entry->uri, ndx_status_name(entry->state),
	           entry->hint);
	check_that(c,
	           (entry->addresses == NULL) == (entry->address_count == 0) &&
	                   (entry->address.ss_family == AF_UNSPEC) == (entry->address_count == 0),
	           "%s: %zu addresses, and the first is of family %d", entry->uri,
	           entry->address_count, (int)entry->address.ss_family);
	for (size_t i = 0; i < entry->address_count && !check_over(c); i++)
		check_that(c, address_port(&entry->addresses[i]) == 0, "%s: address %zu has a port",
		           entry->uri, i);
	check_that(c,
	           check_over(c) || entry->address_count == 0 ||
	                   address_equal(&entry->addresses[0], &entry->address),
	           "%s: `address` is not the first of its addresses", entry->uri);
}

static bool adapter_has(struct check *c, const char *uri, const struct sockaddr_storage *address)
{
	struct sockaddr_storage list[WORLD_ADDRESSES];
	struct ndx_adapter *adapter = NULL;
	size_t count = WORLD_ADDRESSES;
	bool found = false;

	if (check_over(c) || !check_status(c, ndx_adapter_open(uri, &adapter), NDX_OK, uri))
		return false;
	check_status(c, ndx_adapter_query_addresses(adapter, list, &count), NDX_OK,
	             "query_addresses");
	for (size_t i = 0; i < count && !check_over(c); i++)
		found |= address_equal(&list[i], address);
	ndx_adapter_close(adapter);
	return found;
}

/* It opens, and is what the list calls it. */
static void opens_as_listed(struct check *c, const struct ndx_adapter_entry *entry)
{
	struct ndx_adapter_info info = {.size = sizeof(info)};
	struct ndx_adapter *adapter = NULL;

	if (check_over(c) ||
	    !check_status(c, ndx_adapter_open(entry->uri, &adapter), NDX_OK, entry->uri))
		return;
	check_status(c, ndx_adapter_query(adapter, &info), NDX_OK, "query");
	check_that(c,
	           info.adapter_id == entry->adapter_id &&
	                   strcmp(info.provider, entry->provider) == 0,
	           "%s opens an adapter of another number or provider", entry->uri);
	ndx_adapter_close(adapter);
}

/*
 * Every usable entry opens. The adapter under test may stand for several devices, which the list
 * has one by one: for each of its addresses there is an entry of its provider that has it. That one
 * may ask for a word in the URI, and carries it.
 */
void case_adapter_list_has_it(struct check *c)
{
	const struct place *place = &c->world->places[0];
	struct ndx_adapter_entry *entries = NULL;
	size_t count = 0;

	if (!check_status(c, ndx_adapter_list(&entries, &count), NDX_OK, "adapter_list"))
		return;
	for (size_t i = 0; i < count; i++) {
		entry_is_sound(c, &entries[i]);
		if (entries[i].state == NDX_OK)
			opens_as_listed(c, &entries[i]);
	}
	for (size_t a = 0; a < place->address_count && !check_over(c); a++) {
		bool found = false;

		for (size_t i = 0; i < count && !found; i++)
			found = strcmp(entries[i].provider, place->info.provider) == 0 &&
			        (entries[i].state == NDX_OK ||
			         entries[i].state == NDX_E_DEVICE_NOT_READY) &&
			        adapter_has(c, entries[i].uri, &place->addresses[a]);
		check_that(c, found, "of the %zu adapters of the list none has address %zu of %s",
		           count, a, place->info.uri);
	}
	ndx_adapter_list_free(entries);
	ndx_adapter_list_free(NULL);
}

/* Whether the open adapter has the addresses of the entry in their order. */
static bool has_listed(struct check *c, struct ndx_adapter *adapter,
                       const struct ndx_adapter_entry *entry)
{
	size_t count = entry->address_count;
	struct sockaddr_storage *list = calloc(count + 1, sizeof(*list));
	bool equal = check_that(c, list != NULL, "out of memory") &&
	             ndx_adapter_query_addresses(adapter, list, &count) == NDX_OK &&
	             count == entry->address_count;

	for (size_t i = 0; equal && i < count; i++)
		equal = address_equal(&list[i], &entry->addresses[i]);
	free(list);
	return equal;
}

/* Compare the list with the adapters of the provider that open. NULL: each has its addresses. */
static const char *other_addresses(struct check *c, const struct ndx_adapter_entry *entries,
                                   size_t count)
{
	const char *wrong = NULL;

	for (size_t i = 0; i < count && wrong == NULL && !check_over(c); i++) {
		struct ndx_adapter *adapter = NULL;

		entry_is_sound(c, &entries[i]);
		if (strcmp(entries[i].provider, c->world->places[0].info.provider) != 0)
			continue;
		/* one that asks for a word carries that word, and opens */
		if (ndx_adapter_open(entries[i].uri, &adapter) != NDX_OK)
			continue;
		if (!has_listed(c, adapter, &entries[i]) &&
		    (entries[i].state == NDX_OK || entries[i].address_count > 0))
			wrong = entries[i].uri;
		ndx_adapter_close(adapter);
	}
	return wrong;
}

/* An interface may gain or lose an address between the list and the opening, but not each time. */
void case_adapter_list_has_the_addresses_of_the_open_adapter(struct check *c)
{
	char wrong[128] = "?";

	for (unsigned attempt = 0; attempt < 3 && wrong[0] != '\0' && !check_over(c); attempt++) {
		struct ndx_adapter_entry *entries = NULL;
		const char *uri;
		size_t count = 0;

		if (!check_status(c, ndx_adapter_list(&entries, &count), NDX_OK, "adapter_list"))
			return;
		uri = other_addresses(c, entries, count);
		(void)snprintf(wrong, sizeof(wrong), "%s", uri != NULL ? uri : "");
		ndx_adapter_list_free(entries);
	}
	check_that(c, check_over(c) || wrong[0] == '\0',
	           "%s has other addresses in the list than when it is open", wrong);
}

/* An address whose adapter wants a word that only the URI under test says: its text names it. */
static bool resolve_asks_for_a_word(struct check *c, const struct sockaddr_storage *address)
{
	struct ndx_adapter_entry *entries = NULL;
	size_t count = 0;
	char said[TEXT_MAX * 2];
	bool asks = false;

	(void)snprintf(said, sizeof(said), "%s", ndx_last_error());
	if (!check_status(c, ndx_adapter_list(&entries, &count), NDX_OK, "adapter_list"))
		return false;
	for (size_t i = 0; i < count && !asks; i++)
		asks = entries[i].state == NDX_E_DEVICE_NOT_READY &&
		       strstr(said, entries[i].uri) != NULL &&
		       adapter_has(c, entries[i].uri, address);
	ndx_adapter_list_free(entries);
	return asks;
}

static void resolves_to_it(struct check *c, const struct sockaddr_storage *own)
{
	struct sockaddr_storage address = *own;
	const struct sockaddr *remote = address_of_const(&address);
	struct sockaddr_storage local;
	enum ndx_status status;
	char uri[128];
	char little[2] = "?";
	size_t size = sizeof(uri);
	size_t wanted;

	address_set_port(&address, 7); /* must not matter */
	status = ndx_resolve(remote, address_length(&address), uri, &size, &local);
	if (status == NDX_E_INVALID_ADDRESS && resolve_asks_for_a_word(c, own))
		return;
	check_status(c, status, NDX_OK, "resolve");
	check_that(c, address_equal(&local, own),
	           "the local address of a local address is another one");
	check_that(c, adapter_has(c, uri, own), "%s was resolved, but does not have the address",
	           uri);
	check_that(c, size == strlen(uri) + 1, "%s has %zu bytes, not %zu", uri, strlen(uri) + 1,
	           size);
	wanted = size;
	size = sizeof(uri);
	check_status(c, ndx_resolve(remote, address_length(&address), uri, &size, NULL), NDX_OK,
	             "resolve without a place for the local address");
	size = sizeof(little);
	check_status(c, ndx_resolve(remote, address_length(&address), little, &size, NULL),
	             NDX_E_BUFFER_OVERFLOW, "resolve with room for 2 characters");
	check_no_room(c, "resolve", wanted, sizeof(little));
	check_that(c, size == wanted, "it takes %zu bytes, not %zu", wanted, size);
	check_that(c, strcmp(little, "?") == 0, "the output of a failed call was touched");
}

void case_adapter_resolve_of_its_own_address_finds_it(struct check *c)
{
	const struct place *place = &c->world->places[0];

	for (size_t i = 0; i < place->address_count && !check_over(c); i++)
		resolves_to_it(c, &place->addresses[i]);
}

void case_adapter_resolve_of_no_address_is_refused(struct check *c)
{
	struct sockaddr_un unix_address = {.sun_family = AF_UNIX, .sun_path = "/nowhere"};
	struct sockaddr_storage nowhere = {.ss_family = AF_INET};
	char uri[128] = "?";
	size_t size = sizeof(uri);

	check_status(c,
	             ndx_resolve((const struct sockaddr *)&unix_address, sizeof(unix_address), uri,
	                         &size, NULL),
	             NDX_E_INVALID_PARAMETER, "resolve of a local socket's address");
	check_status(c, ndx_resolve(address_of_const(&nowhere), 3, uri, &size, NULL),
	             NDX_E_INVALID_PARAMETER, "resolve of 3 bytes");
	check_status(c, ndx_resolve(NULL, 0, uri, &size, NULL), NDX_E_INVALID_PARAMETER,
	             "resolve of NULL");
	check_that(c, strcmp(uri, "?") == 0, "the output of a failed call was touched");
}

/* ---- names that are wrong ---- */

static void open_fails(struct check *c, const char *uri, enum ndx_status want, const char *word)
{
	struct ndx_adapter *untouched = c->world->places[0].adapter;
	struct ndx_adapter *adapter = untouched;

	check_status(c, ndx_adapter_open(uri, &adapter), want, uri);
	check_that(c, adapter == untouched, "open of '%s' failed and touched its output", uri);
	check_that(c, strstr(ndx_last_error(), word) != NULL,
	           "open of '%s' failed, but the text does not name %s: \"%s\"", uri, word,
	           ndx_last_error());
}

void case_adapter_errors_name_what_is_wrong_with_a_uri(struct check *c)
{
	const struct place *place = &c->world->places[0];
	const char *provider = place->info.provider;
	char with_key[TEXT_MAX];
	char twice[TEXT_MAX];
	char no_value[TEXT_MAX];
	char too_long[TEXT_MAX];
	char mark = strchr(place->info.uri, '?') ? '&' : '?';

	(void)snprintf(with_key, sizeof(with_key), "%s%cnosuchkey=1", place->info.uri, mark);
	(void)snprintf(twice, sizeof(twice), "%s?nosuchkey=1&nosuchkey=2", provider);
	(void)snprintf(no_value, sizeof(no_value), "%s?nosuchkey", provider);
	memset(too_long, 'x', sizeof(too_long));
	too_long[sizeof(too_long) - 1] = '\0';
	open_fails(c, with_key, NDX_E_INVALID_CONFIG, "nosuchkey");
	open_fails(c, twice, NDX_E_INVALID_CONFIG, "nosuchkey");
	open_fails(c, no_value, NDX_E_INVALID_CONFIG, "nosuchkey");
	open_fails(c, too_long, NDX_E_INVALID_CONFIG, "xxxx");
	open_fails(c, "nosuchprovider", NDX_E_NOT_FOUND, "nosuchprovider");
	open_fails(c, "nosuchprovider:thing?key=1", NDX_E_NOT_FOUND, "nosuchprovider");
	open_fails(c, "", NDX_E_INVALID_CONFIG, "empty");
	open_fails(c, "white space", NDX_E_INVALID_CONFIG, "space");
	open_fails(c, "%zz:nothing", NDX_E_INVALID_CONFIG, "%zz");
	check_status(c, ndx_adapter_open(place->uri, NULL), NDX_E_INVALID_PARAMETER,
	             "open without a place for the adapter");
}

void case_adapter_device_that_is_not_there_is_named(struct check *c)
{
	/* Longer than the names of devices are: also where any name will do. */
	static const char device[] = "nosuchdevicenosuchdevicenosuchdevicenosuchdevicenosuchdevice"
				     "nosuchdevicenosuchdevicenosuchdevicenosuchdevice";
	char uri[TEXT_MAX];

	(void)snprintf(uri, sizeof(uri), "%s:%s", c->world->places[0].info.provider, device);
	open_fails(c, uri, NDX_E_NOT_FOUND, "nosuchdevice");
}
