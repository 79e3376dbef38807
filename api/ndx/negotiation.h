/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Negotiation: connect queue pairs of peers that exchange their descriptions out of band.
 *
 *     framework -> plugins -> variants            what is exchanged (ndx/spi/plugin.h)
 *               -> sessions, server -> transport  with which peer, and in which order
 *
 * A client calls ndx_negotiation_create(), _load() or _discover(), _get_variant(),
 * ndx_session_create() and ndx_session_run(). Then it transfers data, may call
 * ndx_session_execute(NDX_STAGE_DONE), disconnects by the connector, and calls ndx_session_close().
 * docs/negotiation-protocol.md describes the messages on the wire.
 *
 * Objects may be closed in any order, except that the framework is closed last.
 *
 * These calls are in libndx-negotiation (pkg-config ndx-negotiation).
 */
#ifndef NDX_NEGOTIATION_H
#define NDX_NEGOTIATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ndx/decls.h>
#include <ndx/description.h>
#include <ndx/spi/plugin.h>
#include <ndx/status.h>

NDX_DECLS_BEGIN

struct ndx_negotiation; /* opaque: the framework */
struct ndx_variant;     /* opaque */

/** State of a plugin. A plugin that failed stays in the list, with the reason. */
enum ndx_plugin_state {
	NDX_PLUGIN_READY,  /**< its variants are available */
	NDX_PLUGIN_FAILED, /**< refused, or its initialize failed; `text` says why */
};

/** One variant in the list of ndx_negotiation_list(), or one plugin that failed. */
struct ndx_plugin_entry {
	const char *plugin;
	const char *version;
	const char *vendor;
	const char *origin; /**< path of the file, or "registered" */
	enum ndx_plugin_state state;
	/** Why the plugin failed, or why the variant is not available; else "". */
	const char *text;
	const char *variant; /**< NULL: the plugin failed, or only runs other plugins */
	const char *help;
	bool available;                        /**< the variant can run on this machine */
	const struct ndx_plugin_param *params; /**< ends with a NULL name; NULL: none */
	void *reserved[4];                     /**< NULL; room for later members */
};

/** One parameter of a variant as text. */
struct ndx_setting {
	const char *name;
	const char *value;
};

/**
 * Create a framework without plugins.
 *
 * @param[out] out  untouched on failure; release it with ndx_negotiation_close()
 *
 * @retval NDX_E_INVALID_PARAMETER NULL argument
 * @retval NDX_E_NO_MEMORY         out of memory
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_negotiation_create(struct ndx_negotiation **out);

/**
 * Release a framework: finalize and unload its plugins. NULL is a no-op.
 *
 * @retval NDX_E_DEVICE_BUSY variants or sessions still exist; nothing was done, ndx_last_error()
 *                           has their number
 *
 * Thread safety: not beside another call on the same framework. Blocks: in the plugins' finalize,
 * and while the system still resolves a name for a session that no longer waits for it (at most the
 * time-outs of the resolver).
 *
 * NDX_OK does not mean that the framework's thread of sessions has ended: closed sessions whose
 * connection has no connection manager keep the thread until the connection has ended.
 */
enum ndx_status ndx_negotiation_close(struct ndx_negotiation *negotiation);

/**
 * Register a plugin table: check it, initialize the plugin, and query which variants are available.
 *
 * @param plugin  must outlive the registration
 *
 * @retval NDX_E_INVALID_PARAMETER NULL argument
 * @retval NDX_E_ABI_MISMATCH      built against another version of the plugin interface;
 *                                 ndx_last_error() has both version numbers
 * @retval NDX_E_INVALID_CONFIG    the table breaks a rule: no variant, a required function missing,
 *                                 a name used twice or malformed, or a schema that contradicts
 *                                 itself; ndx_last_error() says which
 * @retval NDX_E_DEVICE_BUSY       a plugin of this name is registered already; ndx_last_error() has
 *                                 its origin
 * @retval NDX_E_NO_MEMORY         out of memory
 * @return otherwise the status that the plugin's initialize returned
 *
 * A failure does not affect other plugins.
 *
 * Thread safety: any thread. Blocks: in the plugin's functions.
 */
enum ndx_status ndx_negotiation_register(struct ndx_negotiation *negotiation,
                                         const struct ndx_plugin *plugin);

/**
 * Load a plugin from a file and register it. If the suffix of the file name is not "so", the plugin
 * of ndx-host-SUFFIX.so runs the file. The framework loads that plugin if needed: from the file's
 * directory, else from the directories of ndx_negotiation_discover().
 *
 * @param path  absolute; other users must not have write permission for the file and its directory
 *
 * @retval NDX_E_INVALID_PARAMETER NULL argument, or @p path is not absolute
 * @retval NDX_E_DEVICE_NOT_READY  the file may not be loaded, or loading failed; ndx_last_error()
 *                                 says why
 * @return otherwise as ndx_negotiation_register()
 */
enum ndx_status ndx_negotiation_load(struct ndx_negotiation *negotiation, const char *path);

/**
 * Load the plugins of a directory: every ndx-plugin-NAME.so and every ndx-plugin-NAME.SUFFIX that a
 * host plugin runs, in the order of their names. Failures are logged and listed with the reason;
 * the other plugins are loaded all the same.
 *
 * @param directory   absolute; NULL: the directories of $NDX_PLUGIN_PATH (absolute, separated by
 *                    ':'; ignored in set-user-id programs), then the folder ndx beside libndx.so
 * @param[out] count  number of registered plugins; may be NULL
 *
 * @retval NDX_E_NOT_FOUND there is no such directory; only if @p directory was given
 */
enum ndx_status ndx_negotiation_discover(struct ndx_negotiation *negotiation, const char *directory,
                                         size_t *count);

/**
 * Unregister a plugin: finalize and unload it.
 *
 * @retval NDX_E_NOT_FOUND   no such plugin; ndx_last_error() lists those that exist
 * @retval NDX_E_DEVICE_BUSY variants of the plugin still exist; nothing was done
 */
enum ndx_status ndx_negotiation_unregister(struct ndx_negotiation *negotiation, const char *name);

/**
 * List every variant, and every plugin that failed, in the order of registration. The list is a
 * copy: its texts stay valid when plugins are unregistered or unloaded.
 *
 * @param[out] entries  array of @p count entries; release it with ndx_negotiation_list_free()
 * @param[out] count    number of entries; 0 is possible
 *
 * @retval NDX_E_INVALID_PARAMETER NULL argument
 * @retval NDX_E_NO_MEMORY         out of memory; the outputs are untouched
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_negotiation_list(struct ndx_negotiation *negotiation,
                                     struct ndx_plugin_entry **entries, size_t *count);

/** Release the list of ndx_negotiation_list(). NULL is a no-op. */
void ndx_negotiation_list_free(struct ndx_plugin_entry *entries);

/**
 * Create an instance of a variant with the given parameters. If the plugin is not registered, the
 * framework searches the directories of ndx_negotiation_discover(NULL) for it, and loads it.
 *
 * @param plugin, variant  names
 * @param settings         parameters; a parameter that is not given has its initial value
 * @param[out] out         untouched on failure; release it with ndx_variant_close()
 *
 * @retval NDX_E_NOT_FOUND      no such plugin or variant; ndx_last_error() lists those that exist
 *                              and suggests one
 * @retval NDX_E_NOT_SUPPORTED  the variant is not available on this machine; ndx_last_error() says
 *                              why, and which variants are
 * @retval NDX_E_INVALID_CONFIG a parameter is unknown, missing, given twice or out of range;
 *                              ndx_last_error() names it and its legal values
 * @retval NDX_E_NO_MEMORY      out of memory
 * @return otherwise the status that the plugin returned; ndx_last_error() has its reason
 *
 * Thread safety: any thread. Blocks: in the plugin's create.
 */
enum ndx_status ndx_negotiation_get_variant(struct ndx_negotiation *negotiation, const char *plugin,
                                            const char *variant, const struct ndx_setting *settings,
                                            size_t count, struct ndx_variant **out);

/** Release an instance. Its sessions keep what they need of it. NULL is a no-op. Any thread. */
void ndx_variant_close(struct ndx_variant *variant);

/** Name of the plugin of an instance; valid as long as the instance. Any thread. */
const char *ndx_variant_plugin_name(const struct ndx_variant *variant);

/** Name of the variant of an instance; valid as long as the instance. Any thread. */
const char *ndx_variant_name(const struct ndx_variant *variant);

/**
 * Value of a parameter as text: as given, or its initial value.
 *
 * @return NULL if the variant has no such parameter; "" if the parameter has no value
 */
const char *ndx_variant_setting(const struct ndx_variant *variant, const char *name);

NDX_DECLS_END

#endif
