/* SPDX-License-Identifier: BSD-2-Clause */
/* Parsing and writing adapter URIs. */
#include "uri.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <ndx/spi/log.h>

#define GRAMMAR "write PROVIDER[:DEVICE][?KEY=VALUE[&KEY=VALUE]...]"

static const char name_first[] = "abcdefghijklmnopqrstuvwxyz";
static const char name_rest[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";

/* The state of the parser: messages quote the original, while `out` is cut into parts. */
struct parser {
	const char *text;
	const char *origin;
	struct uri *out;
};

static size_t position(const struct parser *p, const char *at)
{
	return (size_t)(at - p->out->text) + 1;
}

bool uri_name_valid(const char *name)
{
	const size_t len = strnlen(name, URI_NAME_MAX + 1);

	return len >= 1 && len <= URI_NAME_MAX && strspn(name, name_first) > 0 &&
	       strspn(name, name_rest) == len;
}

static int hex_digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char lower = (char)(c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c);
	const char *at = lower != '\0' ? strchr(digits, lower) : NULL;

	return at != NULL ? (int)(at - digits) : -1;
}

/* Decode in place. `at` points into out->text, so positions are those of the original. */
static enum ndx_status decode(const struct parser *p, char *at)
{
	char *to = at;

	for (char *from = at; *from != '\0'; from++) {
		char c = *from;

		if (c == '%') {
			const int high = hex_digit(from[1]);
			const int low = high < 0 ? -1 : hex_digit(from[2]);

			if (low < 0)
				return fail(
					NDX_E_INVALID_CONFIG, 0,
					"%s \"%s\": '%%' at position %zu is not followed by two "
					"hex digits; write %%25 for the character itself",
					p->origin, p->text, position(p, from));
			c = (char)(high * 16 + low);
			if ((unsigned char)c < ' ' || c == 0x7f)
				return fail(NDX_E_INVALID_CONFIG, 0,
				            "%s \"%s\": position %zu stands for a control "
				            "character, which no name has; leave it out",
				            p->origin, p->text, position(p, from));
			from += 2;
		}
		*to++ = c;
	}
	*to = '\0';
	return NDX_OK;
}

static enum ndx_status check_length(const char *text, const char *origin)
{
	const size_t len = strnlen(text, URI_MAX + 1);

	if (len > URI_MAX)
		return fail(NDX_E_INVALID_CONFIG, 0,
		            "%s \"%.40s...\" is longer than %d bytes; " GRAMMAR, origin, text,
		            URI_MAX);
	if (len == 0)
		return fail(NDX_E_INVALID_CONFIG, 0, "%s is empty; " GRAMMAR, origin);
	return NDX_OK;
}

/* Refuse spaces and control characters: most often a quoting mistake. */
static enum ndx_status check_characters(const struct parser *p)
{
	for (const char *at = p->out->text; *at != '\0'; at++) {
		if ((unsigned char)*at <= ' ' || *at == 0x7f)
			return fail(NDX_E_INVALID_CONFIG, 0,
			            "%s \"%s\": %s at position %zu; " GRAMMAR
			            ", a space in a value as %%20",
			            p->origin, p->text, *at == ' ' ? "space" : "control character",
			            position(p, at));
	}
	return NDX_OK;
}

static enum ndx_status check_key(const struct parser *p, const char *key)
{
	const size_t good = strspn(key, name_rest);

	if (key[0] == '\0')
		return fail(NDX_E_INVALID_CONFIG, 0,
		            "%s \"%s\": a key is missing at position %zu; " GRAMMAR, p->origin,
		            p->text, position(p, key));
	if (key[good] != '\0')
		return fail(
			NDX_E_INVALID_CONFIG, 0,
			"%s \"%s\": character '%c' at position %zu cannot be in a key; " GRAMMAR,
			p->origin, p->text, key[good], position(p, key + good));
	for (size_t i = 0; i < p->out->option_count; i++) {
		if (strcmp(p->out->options[i].key, key) == 0)
			return fail(NDX_E_INVALID_CONFIG, 0,
			            "%s \"%s\": key \"%s\" is there a second time at position %zu; "
			            "give it once",
			            p->origin, p->text, key, position(p, key));
	}
	return NDX_OK;
}

/* Parse one KEY=VALUE that ends with a NUL. */
static enum ndx_status parse_option(const struct parser *p, char *option)
{
	char *equals = strchr(option, '=');
	enum ndx_status st;

	if (equals != NULL)
		*equals = '\0';
	st = check_key(p, option);
	if (st != NDX_OK)
		return st;
	if (equals == NULL || equals[1] == '\0')
		return fail(NDX_E_INVALID_CONFIG, 0,
		            "%s \"%s\": key \"%s\" at position %zu has no value; write %s=VALUE",
		            p->origin, p->text, option, position(p, option), option);
	if (p->out->option_count == URI_OPTIONS_MAX)
		return fail(NDX_E_INVALID_CONFIG, 0,
		            "%s \"%s\": more than %d keys at position %zu; leave some out",
		            p->origin, p->text, URI_OPTIONS_MAX, position(p, option));
	st = decode(p, equals + 1);
	if (st != NDX_OK)
		return st;
	p->out->options[p->out->option_count].key = option;
	p->out->options[p->out->option_count].value = equals + 1;
	p->out->option_count++;
	return NDX_OK;
}

static enum ndx_status parse_options(const struct parser *p, char *query)
{
	char *next = query;

	while (next != NULL) {
		char *option = next;
		char *end = strchr(option, '&');
		enum ndx_status st;

		next = NULL;
		if (end != NULL) {
			*end = '\0';
			next = end + 1;
		}
		st = parse_option(p, option);
		if (st != NDX_OK)
			return st;
	}
	return NDX_OK;
}

/* Accept capitals: no provider has them, so the error will suggest the right name. */
static size_t count_name(const char *name)
{
	if (!isalpha((unsigned char)name[0]))
		return 0;
	return strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-");
}

void uri_join_keys(char *keys, const char *wrong)
{
	for (char *at = keys; (at = strpbrk(at, wrong)) != NULL; at++) {
		if (at[1 + strspn(at + 1, name_rest)] == '=')
			*at = '&';
	}
}

/* "ofi:tcp&iface=lo": `mark` points to the '&' of a key where no '?' was before. */
static enum ndx_status fail_first_key(const struct parser *p, const char *mark)
{
	char keys[URI_MAX + 1];

	(void)snprintf(keys, sizeof(keys), "%s", p->text + position(p, mark));
	uri_join_keys(keys, "?;,");
	return fail(NDX_E_INVALID_CONFIG, 0,
	            "%s \"%s\": '%c' at position %zu: the first key follows a '?'; write %.*s?%s",
	            p->origin, p->text, *mark, position(p, mark), (int)(position(p, mark) - 1),
	            p->text, keys);
}

static enum ndx_status parse_provider(const struct parser *p, const char *name)
{
	const size_t good = count_name(name);

	if (name[0] == '\0')
		return fail(NDX_E_INVALID_CONFIG, 0,
		            "%s \"%s\" does not start with the name of a provider; " GRAMMAR,
		            p->origin, p->text);
	if (name[good] == '&' || (name[good] == ';' && strchr(name + good, '=') != NULL))
		return fail_first_key(p, name + good);
	if (name[good] != '\0')
		return fail(NDX_E_INVALID_CONFIG, 0,
		            "%s \"%s\": character '%c' at position %zu cannot be in the name of a "
		            "provider; " GRAMMAR,
		            p->origin, p->text, name[good], position(p, name + good));
	if (good > URI_NAME_MAX)
		return fail(NDX_E_INVALID_CONFIG, 0,
		            "%s \"%s\": the name of the provider is longer than %d "
		            "characters; " GRAMMAR,
		            p->origin, p->text, URI_NAME_MAX);
	p->out->provider = name;
	return NDX_OK;
}

static enum ndx_status parse_device(const struct parser *p, char *device)
{
	const char *mark = strpbrk(device, "&;");
	enum ndx_status st;

	if (device[0] == '\0')
		return fail(NDX_E_INVALID_CONFIG, 0,
		            "%s \"%s\": no device after the ':' at position %zu; " GRAMMAR,
		            p->origin, p->text, position(p, device) - 1);
	if (mark != NULL && strchr(mark, '=') != NULL)
		return fail_first_key(p, mark);
	st = decode(p, device);
	if (st != NDX_OK)
		return st;
	if (strncmp(device, "//", 2) == 0)
		return fail(NDX_E_INVALID_CONFIG, 0,
		            "%s \"%s\": '//' at position %zu does not belong there; " GRAMMAR,
		            p->origin, p->text, position(p, device));
	p->out->device = device;
	return NDX_OK;
}

static enum ndx_status parse_parts(const struct parser *p)
{
	char *name = p->out->text;
	char *query = strchr(name, '?');
	char *device;
	enum ndx_status st;

	if (query != NULL)
		*query++ = '\0';
	device = strchr(name, ':');
	if (device != NULL)
		*device++ = '\0';
	st = parse_provider(p, name);
	if (st == NDX_OK && device != NULL)
		st = parse_device(p, device);
	if (st == NDX_OK && query != NULL)
		st = parse_options(p, query);
	return st;
}

/* Move a structure whose pointers point into itself. */
static void move(struct uri *to, const struct uri *from)
{
	memcpy(to->text, from->text, sizeof(to->text));
	to->provider = to->text + (from->provider - from->text);
	to->device = from->device[0] == '\0' ? "" : to->text + (from->device - from->text);
	to->option_count = from->option_count;
	for (size_t i = 0; i < from->option_count; i++) {
		to->options[i].key = to->text + (from->options[i].key - from->text);
		to->options[i].value = to->text + (from->options[i].value - from->text);
	}
}

enum ndx_status uri_parse(const char *text, const char *origin, struct uri *out)
{
	struct uri uri = {.device = ""};
	const struct parser p = {.text = text, .origin = origin, .out = &uri};
	enum ndx_status st = check_length(text, origin);

	if (st != NDX_OK)
		return st;
	memcpy(uri.text, text, strlen(text) + 1);
	st = check_characters(&p);
	if (st == NDX_OK)
		st = parse_parts(&p);
	if (st == NDX_OK)
		move(out, &uri);
	return st;
}

/* A text that is truncated to `size`, and its full length. */
struct writer {
	char *out;
	size_t size;
	size_t len;
};

static void put_char(struct writer *w, char c)
{
	if (w->len + 1 < w->size) {
		w->out[w->len] = c;
		w->out[w->len + 1] = '\0';
	}
	w->len++;
}

static void put_plain(struct writer *w, const char *text)
{
	while (*text != '\0')
		put_char(w, *text++);
}

/* `marks`: encoded, besides what is no printable ASCII. */
static void put_encoded(struct writer *w, const char *text, const char *marks)
{
	static const char digits[] = "0123456789ABCDEF";

	for (; *text != '\0'; text++) {
		const unsigned char c = (unsigned char)*text;

		if (c > ' ' && c < 0x7f && strchr(marks, c) == NULL) {
			put_char(w, *text);
		} else {
			put_char(w, '%');
			put_char(w, digits[c >> 4]);
			put_char(w, digits[c & 0xf]);
		}
	}
}

size_t uri_write(char *out, size_t size, const char *provider, const char *device,
                 const struct ndx_spi_option *options, size_t option_count)
{
	struct writer w = {.out = out, .size = size};

	if (size > 0)
		out[0] = '\0';
	put_plain(&w, provider);
	if (device[0] != '\0') {
		put_char(&w, ':');
		put_encoded(&w, device, "%?&;#\"");
	}
	for (size_t i = 0; i < option_count; i++) {
		put_char(&w, i == 0 ? '?' : '&');
		put_plain(&w, options[i].key);
		put_char(&w, '=');
		put_encoded(&w, options[i].value, "%?&#\"");
	}
	return w.len;
}
