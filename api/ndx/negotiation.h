/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Negotiation: connecting queue pairs of peers that exchange their descriptions out of band.
 *
 *     framework -> plugins -> variants            what is said (ndx/spi/plugin.h)
 *               -> sessions, server -> transport  to whom, and in which order
 *
 * A client: ndx_negotiation_create(), _load() or _discover(), _get_variant(), ndx_session_create(),
 * ndx_session_run(); then the transfers; ndx_session_execute(NDX_STAGE_DONE) if wanted; disconnect
 * by the connector as ever; ndx_session_close(). docs/negotiation-protocol.md has what goes over
 * the wire.
 *
 * Objects may be closed in any order but for the framework, which is closed last.
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

/** Where a plugin stands; a plugin that failed stays listed with its reason. */
enum ndx_plugin_state {
	NDX_PLUGIN_READY,  /**< its variants can be had */
	NDX_PLUGIN_FAILED, /**< refused, or its initialize failed; `text` says why */
};

/** One variant, as ndx_negotiation_list() tells of it. Valid during the call. */
struct ndx_plugin_entry {
	const char *plugin;
	const char *version;
	const char *vendor;
	const char *origin; /**< file, or "registered" */
	enum ndx_plugin_state state;
	const char *text;    /**< why it failed, or why the variant is not available; else "" */
	const char *variant; /**< NULL: the plugin failed, or only runs others */
	const char *help;
	bool available;                        /**< the variant can run here */
	const struct ndx_plugin_param *params; /**< ends with a NULL name; NULL: none */
};

/** Tells of one variant, or of one plugin that failed. */
typedef void ndx_plugin_list_fn(void *arg, const struct ndx_plugin_entry *entry);

/** One parameter of a variant, as text. */
struct ndx_setting {
	const char *name;
	const char *value;
};

/**
 * Create a framework. It knows no plugin yet.
 *
 * @param[out] out  untouched on failure; release with ndx_negotiation_close()
 *
 * @retval NDX_E_INVALID_PARAMETER NULL
 * @retval NDX_E_NO_MEMORY         out of memory
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_negotiation_create(struct ndx_negotiation **out);

/**
 * Release. Plugins are finalized and unloaded. NULL is a no-op.
 *
 * @retval NDX_E_DEVICE_BUSY variants or sessions are alive; nothing was done, the text counts them
 *
 * Thread safety: not beside another call on the same framework. Blocks: in the plugins' finalize,
 * and while the system still looks for a name that a session has given up (at most the time-outs
 * of its resolver).
 */
enum ndx_status ndx_negotiation_close(struct ndx_negotiation *negotiation);

/**
 * Register a plugin by hand: check its table, initialize it, ask which variants are available.
 *
 * @param plugin  must outlive the registration
 *
 * @retval NDX_E_INVALID_PARAMETER        NULL argument
 * @retval NDX_E_ABI_MISMATCH             built against another interface; the text has both numbers
 * @retval NDX_E_INVALID_CONFIG           the table breaks a rule: no variant, a required function
 *                                        missing, a name twice or malformed, a schema that
 *                                        contradicts itself; the text names it
 * @retval NDX_E_DEVICE_BUSY              a plugin of this name is registered; the text says where
 *                                        that comes from
 * @retval NDX_E_NO_MEMORY                out of memory
 * @return otherwise what the plugin's initialize returned
 *
 * Whatever fails, the other plugins stay as they are. Thread safety: any thread. Blocks: in the
 * plugin's functions.
 */
enum ndx_status ndx_negotiation_register(struct ndx_negotiation *negotiation,
                                         const struct ndx_plugin *plugin);

/**
 * Load a plugin from a file and register it. A file NAME.SUFFIX whose suffix is not "so" is run by
 * the plugin of ndx-host-SUFFIX.so, which is loaded if it is not there yet: from the file's
 * directory, else from those of ndx_negotiation_discover().
 *
 * @param path  absolute; the file and its directory must not be writable by others
 *
 * @retval NDX_E_INVALID_PARAMETER NULL, or @p path is not absolute
 * @retval NDX_E_DEVICE_NOT_READY  it may not or cannot be loaded; the text says why
 * @return otherwise as ndx_negotiation_register()
 */
enum ndx_status ndx_negotiation_load(struct ndx_negotiation *negotiation, const char *path);

/**
 * Load every ndx-plugin-NAME.so, and other suffix that something runs, of a directory, in the order
 * of the names. What fails is logged and
 * listed with its reason; the others are loaded all the same.
 *
 * @param directory  absolute; NULL: those of $NDX_PLUGIN_PATH (absolute, separated by ':'; ignored
 *                   in set-user-id programs), then the one that was compiled in
 * @param[out] count how many were registered; may be NULL
 *
 * @retval NDX_E_NOT_FOUND no such directory (only where @p directory was given)
 */
enum ndx_status ndx_negotiation_discover(struct ndx_negotiation *negotiation, const char *directory,
                                         size_t *count);

/**
 * Forget a plugin: finalize and unload it.
 *
 * @retval NDX_E_NOT_FOUND   no such plugin; the text lists what there is
 * @retval NDX_E_DEVICE_BUSY variants of it are alive; nothing was done
 */
enum ndx_status ndx_negotiation_unregister(struct ndx_negotiation *negotiation, const char *name);

/** Tell of every variant there is, in the order of registration. The framework's lock is held:
 * @p each must not call back. */
void ndx_negotiation_list(struct ndx_negotiation *negotiation, ndx_plugin_list_fn *each, void *arg);

/**
 * Get an instance of a variant with the parameters given. A plugin that is not registered is looked
 * for in the directories of ndx_negotiation_discover(NULL), and loaded.
 *
 * @param plugin, variant  by name
 * @param settings         parameters; those not given take their initial value
 * @param[out] out         untouched on failure; release with ndx_variant_close()
 *
 * @retval NDX_E_NOT_FOUND       no such plugin or variant; the text lists what there is and
 * suggests
 * @retval NDX_E_NOT_SUPPORTED   the variant is not available here; the text says why, and which are
 * @retval NDX_E_INVALID_CONFIG  a parameter is unknown, missing, given twice or out of range; the
 *                               text names it and what it may be
 * @retval NDX_E_NO_MEMORY       out of memory
 * @return otherwise what the plugin returned; the text has its reason
 *
 * Thread safety: any thread. Blocks: in the plugin's create.
 */
enum ndx_status ndx_negotiation_get_variant(struct ndx_negotiation *negotiation, const char *plugin,
                                            const char *variant, const struct ndx_setting *settings,
                                            size_t count, struct ndx_variant **out);

/** Release an instance. Sessions of it keep what they need. NULL is a no-op. Any thread. */
void ndx_variant_close(struct ndx_variant *variant);

/** Name of the plugin of an instance; valid as long as that is. Any thread. */
const char *ndx_variant_plugin_name(const struct ndx_variant *variant);

/** Name of the variant of an instance; valid as long as that is. Any thread. */
const char *ndx_variant_name(const struct ndx_variant *variant);

/**
 * Value of a parameter, as text: as given, or its initial one.
 *
 * @return NULL if the variant has no such parameter; "" if it has no value
 */
const char *ndx_variant_setting(const struct ndx_variant *variant, const char *name);

NDX_DECLS_END

#endif
