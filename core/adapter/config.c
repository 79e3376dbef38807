/* SPDX-License-Identifier: BSD-2-Clause */
/* Finding, reading and checking the INI file. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ndx/spi/log.h>
#include "loader.h"
#include "registry.h"
#include "suggest.h"
#include "uri.h"

#define SYSTEM_FILE "/etc/ndx.ini"
#define HOME_FILE ".config/ndx.ini"

static const char own_section[] = "ndx";
static const char own_key[] = "adapter";

/* ini.h reads lines through next_line() and passes entries to add_entry_of_line(). Neither reports
 * an error: ini.h reports the first mistake, of an earlier line, only at the end. */
struct reader {
	const char *name;
	const char *at;
	const char *end;
	unsigned line;   /* of the latest line */
	size_t line_max; /* bytes of a line that ini.h accepts */
	bool unreadable; /* the latest line, `at`, is one that next_line() refused */
	bool no_memory;
	size_t room;
	struct config config;
};

void config_free(struct config *config)
{
	for (size_t i = 0; i < config->count; i++) {
		free(config->entries[i].section);
		free(config->entries[i].key);
		free(config->entries[i].value);
		free(config->entries[i].origin);
	}
	free(config->entries);
	config->entries = NULL;
	config->count = 0;
}

static const struct config_entry *find(const struct config *config, const char *section,
                                       const char *key)
{
	for (size_t i = 0; i < config->count; i++) {
		if (strcmp(config->entries[i].section, section) == 0 &&
		    strcmp(config->entries[i].key, key) == 0)
			return &config->entries[i];
	}
	return NULL;
}

const struct config_entry *config_adapter(const struct config *config)
{
	return find(config, own_section, own_key);
}

static void offer(void *arg, const char *name)
{
	suggest_offer(arg, name, NULL);
}

static enum ndx_status fail_section(const char *origin, const char *section)
{
	const struct ndx_provider *provider;
	struct suggest s;
	char text[SUGGEST_TEXT];

	suggest_begin(&s, section);
	suggest_offer(&s, own_section, NULL);
	for (size_t i = 0; (provider = registry_get(i)) != NULL; i++)
		suggest_offer(&s, provider->name, NULL);
	loader_each(offer, &s);
	return fail(NDX_E_INVALID_CONFIG, 0, "%s: no section \"[%s]\"; %s", origin, section,
	            suggest_text(&s, text));
}

/* The keys of a provider that is not built in are checked when the provider is chosen. */
static enum ndx_status check_place(const char *origin, const char *section, const char *key)
{
	const struct ndx_provider *provider = registry_find(section);
	struct suggest s;
	char text[SUGGEST_TEXT];

	if (section[0] == '\0')
		return fail(NDX_E_INVALID_CONFIG, 0,
		            "%s: key \"%s\" stands before any section; put [%s] above it", origin,
		            key, own_section);
	if (provider != NULL)
		return registry_check_key(provider, key, origin);
	if (strcmp(section, own_section) != 0)
		return registry_is_module(section) || loader_exists(section)
		               ? NDX_OK
		               : fail_section(origin, section);
	if (strcmp(key, own_key) == 0)
		return NDX_OK;
	suggest_begin(&s, key);
	suggest_offer(&s, own_key, "an adapter URI");
	return fail(NDX_E_INVALID_CONFIG, 0, "%s: section [%s] has no key \"%s\"; %s", origin,
	            section, key, suggest_text(&s, text));
}

static enum ndx_status check_text(const char *origin, const char *key, const char *value)
{
	if (key[0] == '\0')
		return fail(
			NDX_E_INVALID_CONFIG, 0,
			"%s: no key in front of the '='; write KEY = VALUE or take the line out",
			origin);
	if (value[0] == '\0')
		return fail(NDX_E_INVALID_CONFIG, 0,
		            "%s: key \"%s\" has no value; write %s = VALUE or take the line out",
		            origin, key, key);
	return NDX_OK;
}

/* The checks that need all lines. */
static enum ndx_status check_entries(const struct config *config)
{
	enum ndx_status st = NDX_OK;

	for (size_t i = 0; st == NDX_OK && i < config->count; i++) {
		const struct config_entry *e = &config->entries[i];
		const struct config_entry *first = find(config, e->section, e->key);

		st = check_text(e->origin, e->key, e->value);
		if (st == NDX_OK)
			st = check_place(e->origin, e->section, e->key);
		if (st == NDX_OK && first != e)
			st = fail(NDX_E_INVALID_CONFIG, 0,
			          "%s: key \"%s\" of section [%s] is already in %s; take one out",
			          e->origin, e->key, e->section, first->origin);
	}
	return st;
}

static bool make_room(struct reader *r)
{
	const size_t room = r->room == 0 ? 8 : r->room * 2;
	struct config_entry *entries;

	if (r->config.count < r->room)
		return true;
	entries = reallocarray(r->config.entries, room, sizeof(*entries));
	if (entries == NULL)
		return false;
	r->config.entries = entries;
	r->room = room;
	return true;
}

static bool add(struct reader *r, const char *section, const char *key, const char *value)
{
	char origin[PATH_MAX + 16];
	struct config_entry *entry;

	if (!make_room(r))
		return false;
	(void)snprintf(origin, sizeof(origin), "%s:%u", r->name, r->line);
	entry = &r->config.entries[r->config.count++];
	entry->section = strdup(section);
	entry->key = strdup(key);
	entry->value = strdup(value);
	entry->origin = strdup(origin);
	return entry->section != NULL && entry->key != NULL && entry->value != NULL &&
	       entry->origin != NULL;
}

/* ini_handler: not 0 is success */
static int add_entry_of_line(void *arg, const char *section, const char *key, const char *value)
{
	struct reader *r = arg;

	if (!r->no_memory)
		r->no_memory = !add(r, section, key, value);
	return !r->no_memory;
}

static size_t line_length(const struct reader *r)
{
	const char *newline = memchr(r->at, '\n', (size_t)(r->end - r->at));

	return (size_t)((newline != NULL ? newline : r->end) - r->at);
}

/* The first byte that does not belong into a text; `len` if there is none. */
static size_t find_no_text(const char *line, size_t len)
{
	size_t i = 0;

	while (i < len && ((unsigned char)line[i] >= ' ' || line[i] == '\t' || line[i] == '\r') &&
	       line[i] != 0x7f)
		i++;
	return i;
}

/* ini_reader: one line into `buffer`, like fgets(). Leading blanks are dropped, because ini.h takes
 * an indented line for the continuation of the value above. */
static char *next_line(char *buffer, int size, void *arg)
{
	struct reader *r = arg;
	size_t len;

	if (r->unreadable || r->no_memory || r->at == r->end || size < 2)
		return NULL;
	r->line++;
	r->line_max = (size_t)size - 2; /* one byte is for the newline that fgets() leaves there */
	len = line_length(r);
	r->unreadable = len > r->line_max || find_no_text(r->at, len) < len;
	if (r->unreadable)
		return NULL;
	while (len > 0 && (*r->at == ' ' || *r->at == '\t')) {
		r->at++;
		len--;
	}
	memcpy(buffer, r->at, len);
	buffer[len] = '\0';
	r->at += len;
	if (r->at != r->end)
		r->at++;
	return buffer;
}

static enum ndx_status fail_line(const struct reader *r)
{
	const size_t len = line_length(r);
	const size_t column = find_no_text(r->at, len);

	if (column < len)
		return fail(NDX_E_INVALID_CONFIG, 0,
		            "%s:%u: byte 0x%02x at column %zu; this is not a text file", r->name,
		            r->line, (unsigned)(unsigned char)r->at[column], column + 1);
	return fail(NDX_E_INVALID_CONFIG, 0,
	            "%s:%u: line of %zu bytes, at most %zu are read; shorten it", r->name, r->line,
	            len, r->line_max);
}

static enum ndx_status read_entries(struct reader *r)
{
	const int line = ini_parse_stream(next_line, r, add_entry_of_line, r);

	if (r->no_memory || line < 0)
		return fail(NDX_E_NO_MEMORY, 0, "%s: out of memory", r->name);
	if (line > 0)
		return fail(NDX_E_INVALID_CONFIG, 0,
		            "%s:%d: neither \"[section]\" nor \"key = value\" nor a comment",
		            r->name, line);
	if (r->unreadable)
		return fail_line(r);
	return check_entries(&r->config);
}

enum ndx_status config_parse(const char *name, const char *text, size_t len, struct config *out)
{
	struct reader r = {.name = name, .at = text, .end = text + len};
	const enum ndx_status st = read_entries(&r);

	if (st != NDX_OK) {
		config_free(&r.config);
		return st;
	}
	*out = r.config;
	return NDX_OK;
}

/* Read up to CONFIG_SIZE_MAX bytes and one more, which shows that the file is too long. */
static enum ndx_status read_all(int fd, const char *path, char *text, size_t *len)
{
	size_t have = 0;
	ssize_t got = 1;

	while (got > 0 && have <= CONFIG_SIZE_MAX) {
		got = read(fd, text + have, CONFIG_SIZE_MAX + 1 - have);
		if (got < 0 && errno == EINTR)
			got = 1;
		else if (got > 0)
			have += (size_t)got;
	}
	if (got < 0)
		return fail(NDX_E_INVALID_CONFIG, errno, "%s cannot be read", path);
	if (have > CONFIG_SIZE_MAX)
		return fail(NDX_E_INVALID_CONFIG, 0,
		            "%s is longer than %d bytes; is it the right file?", path,
		            CONFIG_SIZE_MAX);
	*len = have;
	return NDX_OK;
}

static enum ndx_status read_file(int fd, const char *path, struct config *out)
{
	struct stat st;
	char *text;
	size_t len = 0;
	enum ndx_status status;

	/* /dev/null is a way to name an empty configuration. */
	if (fstat(fd, &st) != 0 || (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode)))
		return fail(NDX_E_INVALID_CONFIG, 0,
		            "%s is not a regular file; name an INI file or take it away", path);
	text = malloc(CONFIG_SIZE_MAX + 1);
	if (text == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "%s: out of memory", path);
	status = read_all(fd, path, text, &len);
	if (status == NDX_OK)
		status = config_parse(path, text, len, out);
	free(text);
	return status;
}

/* NDX_E_NOT_FOUND is not a failure here: there is no such file. */
static enum ndx_status load_from(const char *path, struct config *out)
{
	enum ndx_status st;
	/* O_NONBLOCK, so that opening a FIFO does not block. */
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return NDX_E_NOT_FOUND;
	if (fd < 0 && (errno == EMFILE || errno == ENFILE))
		return fail(NDX_E_INSUFFICIENT_RESOURCES, errno,
		            "no descriptor to read %s with; see ulimit -n", path);
	if (fd < 0)
		return fail(NDX_E_INVALID_CONFIG, errno,
		            "%s cannot be opened; mend its rights or take it away", path);
	st = read_file(fd, path, out);
	(void)close(fd);
	return st;
}

static enum ndx_status load_named(struct config *out)
{
	const char *path = secure_getenv("NDX_CONFIG");
	enum ndx_status st;

	if (path == NULL || path[0] == '\0')
		return NDX_E_NOT_FOUND;
	st = load_from(path, out);
	if (st == NDX_E_NOT_FOUND)
		return fail(NDX_E_INVALID_CONFIG, ENOENT,
		            "$NDX_CONFIG names %s, which does not exist; name a file that does, or "
		            "/dev/null for none",
		            path);
	return st;
}

static enum ndx_status load_home(struct config *out)
{
	const char *home = secure_getenv("HOME");
	char path[PATH_MAX];
	int len;

	if (home == NULL || home[0] != '/')
		return NDX_E_NOT_FOUND;
	len = snprintf(path, sizeof(path), "%s/" HOME_FILE, home);
	if (len < 0 || (size_t)len >= sizeof(path))
		return NDX_E_NOT_FOUND;
	/* The home of another user, as after a change of user: its settings are not for this
	 * process. */
	if (access(path, F_OK) != 0)
		return NDX_E_NOT_FOUND;
	return load_from(path, out);
}

enum ndx_status config_load(struct config *out)
{
	enum ndx_status st = load_named(out);

	if (st == NDX_E_NOT_FOUND)
		st = load_home(out);
	if (st == NDX_E_NOT_FOUND)
		st = load_from(SYSTEM_FILE, out);
	if (st == NDX_E_NOT_FOUND) {
		*out = (struct config){0};
		st = NDX_OK;
	}
	return st;
}
