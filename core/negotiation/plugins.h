/* SPDX-License-Identifier: BSD-2-Clause */
/* The plugins of a framework: registration, description, references. */
#ifndef NEGOTIATION_PLUGINS_H
#define NEGOTIATION_PLUGINS_H

#include <pthread.h>
#include <stdbool.h>

#include <ndx/negotiation.h>

#include <ndx/spi/list.h>
#include "engine.h"
#include "resolver.h"
#include "tls.h"

#define PLUGIN_TEXT 320u
#define PLUGIN_VARIANTS_MAX 64u

struct plugin_variant {
	const struct ndx_plugin_variant *table;
	bool available;
	char text[PLUGIN_TEXT]; /* why the variant is not available */
};

struct plugin {
	struct ndxp_list node;
	struct ndx_negotiation *negotiation;
	struct ndx_plugin_host host;
	/* NULL: the plugin failed before its table could be trusted; else `own`. */
	const struct ndx_plugin *table;
	struct ndx_plugin own;          /* the plugin's table, as this library knows it */
	const struct ndx_plugin *given; /* the plugin's table; for its runner */
	char name[NDX_PLUGIN_NAME_MAX + 1];
	char *origin;
	void *dl;              /* NULL: registered by a call, or a guest */
	struct plugin *runner; /* the plugin that runs this guest; NULL: machine code */
	void *guest;           /* the runner's handle of this guest */
	void *state;           /* of the plugin */
	enum ndx_plugin_state status;
	char text[PLUGIN_TEXT]; /* why the plugin failed */
	struct plugin_variant *variants;
	size_t count;
	unsigned instances;   /* under the framework's lock, like the next */
	unsigned guests;      /* plugins that this plugin runs */
	pthread_mutex_t turn; /* held during its calls if NDX_PLUGIN_ONE_AT_A_TIME */
	uint32_t dawdled;     /* atomic: NDX_PLUGIN_PROMPT has turned out to be wrong */
};

struct ndx_negotiation {
	pthread_mutex_t lock;
	/* Serialises registrations: held while a plugin's functions run, unlike `lock`. */
	pthread_mutex_t registering;
	struct ndxp_list plugins; /* in order of registration, failed plugins too */
	uint64_t last_session;    /* atomic: the number of the latest session */
	struct resolver resolver;
	uint32_t plaintext_said; /* atomic: the log has the risk of a session in plaintext */
	struct engine *engine;   /* of its sessions; NULL before the first; under `lock` */
};

struct ndx_variant {
	struct plugin *plugin;
	const struct ndx_plugin_variant *table;
	struct ndx_plugin_value *values;
	size_t count;
	void *instance;
	unsigned refs;        /* atomic: the handle and every session */
	struct tls_share tls; /* of its sessions */
};

/* The engine of the framework's sessions, with a reference for the caller. */
enum ndx_status plugins_engine(struct ndx_negotiation *n, struct engine **out);

/* Before and after every call into a plugin, except during its registration. */
void plugin_enter(struct plugin *plugin);
void plugin_leave(struct plugin *plugin);
/* Whether the calls of its sessions may be made on the loop thread; how long one has taken there.
 */
bool plugin_is_prompt(const struct plugin *plugin);
void plugin_note_prompt(struct plugin *plugin, uint64_t took_ns);

/* Sessions hold their variant. */
void variant_get(struct ndx_variant *variant);
void variant_put(struct ndx_variant *variant);

/* The variant's transport table; NULL: the built-in tcp. */
const struct ndx_plugin_transport *variant_transport(const struct ndx_variant *variant);
/* What that transport can do in addition, as far as plugin and library know; else zeros. */
void variant_transport_more(const struct ndx_variant *variant,
                            struct ndx_plugin_transport_more *more);

/* plugins_check.c: the rules for a table. NDX_E_ABI_MISMATCH or NDX_E_INVALID_CONFIG: `why`.
 * plugin_take_table() copies the part of a table that this library knows, the rest is 0. */
enum ndx_status plugin_take_table(const struct ndx_plugin *table, struct ndx_plugin *own,
                                  char why[PLUGIN_TEXT]);
enum ndx_status plugin_check_table(const struct ndx_plugin *table, char why[PLUGIN_TEXT]);
enum ndx_status plugin_check_variants(const struct ndx_plugin *table,
                                      const struct ndx_plugin_variant *list, size_t count,
                                      char why[PLUGIN_TEXT]);

/* The origin of a table, and what to release after the table. */
struct plugin_source {
	const char *origin; /* file, or "registered" */
	void *dl;           /* the handle of a file with machine code */
	struct plugin
		*host; /* the plugin that runs any other file, with one of its `guests` counted */
	void *guest;
};

/* plugins.c: like ndx_negotiation_register(). Owns the content of `source` on success. */
enum ndx_status plugins_register(struct ndx_negotiation *n, const struct ndx_plugin *table,
                                 const struct plugin_source *source);
/* The plugin that runs files with that suffix; NULL: none. Counts a guest; plugins_drop_guest()
 * undoes that. */
struct plugin *plugins_find_host(struct ndx_negotiation *n, const char *suffix);
void plugins_drop_guest(struct plugin *host);

/* discover.c: load the plugin of that name from the directories, if there is one. */
void plugins_try_to_load(struct ndx_negotiation *n, const char *name);
struct suggest;
/* discover.c: offer all plugins that have a file in the directories and were not offered yet. */
void plugins_offer_files(struct suggest *s);
/* discover.c: the directories that were searched, and how to add one. Returns `text`. */
#define PLUGINS_WHERE 256u
const char *plugins_where(const char *name, char text[PLUGINS_WHERE]);
/* List a file that could not be loaded as a failed plugin, with ndx_last_error(). */
void plugins_note_failed(struct ndx_negotiation *n, const char *name, const char *origin);

#endif
