/* SPDX-License-Identifier: BSD-2-Clause */
/* The framework's plugins: how they get in, what is known of them, who holds them. */
#ifndef NEGOTIATION_PLUGINS_H
#define NEGOTIATION_PLUGINS_H

#include <pthread.h>
#include <stdbool.h>

#include <ndx/negotiation.h>

#include "base_list.h"
#include "resolver.h"

#define PLUGIN_TEXT 320u
#define PLUGIN_VARIANTS_MAX 64u

struct plugin_variant {
	const struct ndx_plugin_variant *table;
	bool available;
	char text[PLUGIN_TEXT]; /* why it is not */
};

struct plugin {
	struct base_list node;
	struct ndx_negotiation *negotiation;
	struct ndx_plugin_host host;
	const struct ndx_plugin *table; /* NULL: it failed before that could be trusted */
	char name[NDX_PLUGIN_NAME_MAX + 1];
	char *origin;
	void *dl;              /* NULL: registered by hand, or a guest */
	struct plugin *runner; /* NULL: it is machine code */
	void *guest;           /* what it is to its runner */
	void *state;           /* the plugin's own */
	enum ndx_plugin_state status;
	char text[PLUGIN_TEXT]; /* why it failed */
	struct plugin_variant *variants;
	size_t count;
	unsigned instances;   /* under the framework's lock, as the next */
	unsigned guests;      /* that it runs */
	pthread_mutex_t turn; /* held during its calls if NDX_PLUGIN_ONE_AT_A_TIME */
};

struct ndx_negotiation {
	pthread_mutex_t lock;
	/* One registration at a time: held while a plugin's own functions run, unlike the lock. */
	pthread_mutex_t registering;
	struct base_list plugins; /* in order of registration, failed ones too */
	uint64_t last_session;    /* atomic: its number */
	struct resolver resolver;
};

struct ndx_variant {
	struct plugin *plugin;
	const struct ndx_plugin_variant *table;
	struct ndx_plugin_value *values;
	size_t count;
	void *instance;
	unsigned refs; /* atomic: the handle and every session */
};

/* Before and behind every call into a plugin but those of its registration. */
void plugin_enter(struct plugin *plugin);
void plugin_leave(struct plugin *plugin);

/* Sessions keep their variant. */
void variant_get(struct ndx_variant *variant);
void variant_put(struct ndx_variant *variant);

/* The variant's transport table; NULL: the built-in tcp. */
const struct ndx_plugin_transport *variant_transport(const struct ndx_variant *variant);

/* plugins_check.c: the rules for a table. NDX_E_ABI_MISMATCH or NDX_E_INVALID_CONFIG: `why`. */
enum ndx_status plugin_check_abi(const struct ndx_plugin *table, char why[PLUGIN_TEXT]);
enum ndx_status plugin_check_table(const struct ndx_plugin *table, char why[PLUGIN_TEXT]);
enum ndx_status plugin_check_variants(const struct ndx_plugin *table,
                                      const struct ndx_plugin_variant *list, size_t count,
                                      char why[PLUGIN_TEXT]);

/* Where a table comes from; what has to be let go behind it. */
struct plugin_source {
	const char *origin;  /* file, or "registered" */
	void *dl;            /* of a file with machine code */
	struct plugin *host; /* of any other, with one of its `guests` */
	void *guest;
};

/* plugins.c: the same as ndx_negotiation_register(). Takes what is in `source` on success. */
enum ndx_status plugins_register(struct ndx_negotiation *n, const struct ndx_plugin *table,
                                 const struct plugin_source *source);
/* Who runs files of that suffix; NULL: nobody. Counts a guest, which plugins_drop_guest() undoes.
 */
struct plugin *plugins_find_host(struct ndx_negotiation *n, const char *suffix);
void plugins_drop_guest(struct plugin *host);

/* discover.c: load a plugin of that name from the directories, if it is there. */
void plugins_try_to_load(struct ndx_negotiation *n, const char *name);
struct suggest;
/* discover.c: whatever has a file in the directories, and was not offered yet. */
void plugins_offer_files(struct suggest *s);
/* discover.c: where plugins are looked for, and what to type. Returns `text`. */
#define PLUGINS_WHERE 256u
const char *plugins_where(const char *name, char text[PLUGINS_WHERE]);
/* A file that did not even get that far is listed with what ndx_last_error() says. */
void plugins_note_failed(struct ndx_negotiation *n, const char *name, const char *origin);

#endif
