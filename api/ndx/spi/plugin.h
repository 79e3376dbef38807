/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * What a vendor plugin owes the negotiation framework, and what it may count on.
 *
 * A plugin knows one way of exchanging what two queue pairs need to know of each other: the bytes,
 * and what they mean. It opens no connection and keeps no thread: a session hands it the peer's
 * bytes and takes its answer to the peer. A plugin offers variants: dialects with parameters of
 * their own.
 *
 * A plugin in a file of its own exports one constant, `ndx_plugin`, and nothing else; its `abi` is
 * compared before anything in it is called. The same table may be registered by hand
 * (ndx_negotiation_register()). A plugin in another language is run by a plugin that can
 * (struct ndx_plugin_guests).
 *
 * Threads. Calls for one session come one at a time, on any thread; calls for different sessions at
 * the same time, unless NDX_PLUGIN_ONE_AT_A_TIME. A call may take as long as it likes; it holds up
 * its own session only, until that runs out of time. `initialize`, `finalize` and `variants` come
 * one at a time, and never beside another call.
 *
 * Everything handed to a plugin is valid for the duration of the call unless said otherwise.
 *
 * The interface may change until version 1.0.
 */
#ifndef NDX_SPI_PLUGIN_H
#define NDX_SPI_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ndx/description.h>
#include <ndx/log.h>
#include <ndx/status.h>

#define NDX_PLUGIN_ABI 1u

/** Longest name of a plugin, a variant or a parameter: lower-case letters, digits, '-' and '_'. */
#define NDX_PLUGIN_NAME_MAX 31u

/** What a plugin's failure was; says what the session does about it, and what the peer is told. */
enum ndx_plugin_error {
	NDX_PLUGIN_OK = 0,
	NDX_PLUGIN_SERIALIZATION = 1, /**< the own data cannot be put into bytes */
	NDX_PLUGIN_PEER_DATA = 2,     /**< the peer's bytes make no sense, or ask for too much */
	NDX_PLUGIN_RESOURCES = 3,     /**< out of memory, queue pairs, ... */
	NDX_PLUGIN_VENDOR = 4,        /**< the vendor's library or device failed */
	NDX_PLUGIN_CONFIGURATION = 5, /**< these parameters do not go together, or not here */
};

/** The stages of a session, in their order. */
enum ndx_stage {
	NDX_STAGE_INFO = 0,     /**< who we are: queue pair, memory, limits */
	NDX_STAGE_VALIDATE = 1, /**< the framework's own: connects and proves the path */
	NDX_STAGE_READY = 2,    /**< both sides can take data from here on */
	NDX_STAGE_DONE = 3,     /**< optional: the transfers are over; not the disconnect */
};

/** Type of a parameter. */
enum ndx_param_type {
	NDX_PARAM_BOOL,   /**< "true" or "false" */
	NDX_PARAM_INT,    /**< decimal or 0x..., from `least` to `most` */
	NDX_PARAM_STRING, /**< `least` to `most` bytes */
	NDX_PARAM_CHOICE, /**< one of `choices` */
};

/** One parameter that a variant takes. */
struct ndx_plugin_param {
	const char *name;
	enum ndx_param_type type;
	bool required; /**< must be given; then `initial` is NULL */
	int64_t least;
	int64_t most;
	const char *choices; /**< NDX_PARAM_CHOICE: "rc|uc"; else NULL */
	const char *initial; /**< taken if it is not given; NULL: there is none */
	const char *help;    /**< one line for people */
};

/** A parameter's value, checked. `text` is always there, in the caller's spelling. */
struct ndx_plugin_value {
	const struct ndx_plugin_param *param;
	bool given;     /**< false: neither given nor initial; the rest is 0 and "" */
	int64_t number; /**< BOOL: 0 or 1; INT; CHOICE: index of the choice */
	const char *text;
};

/** What a session tells the plugin; constant for the session but for what is said. */
struct ndx_exchange {
	uint64_t session; /**< id, for log lines */
	enum ndx_role role;
	enum ndx_stage stage; /**< of this call */
	uint32_t round;       /**< of this call, from 0 in each stage */
	/** The own end, as the provider describes it; kind NONE where the plugin has its own. */
	const struct ndx_peer_description *own;
	/** The peer's end: filled by the plugin in stage info, looked at when that has ended. */
	struct ndx_peer_description *peer;
	/** Settled so far: the common subset; filled by the framework when stage info has ended. */
	const struct ndx_agreement *agreed;
};

/** A plugin's answer. The framework zeroes it but for `data` and `room`. */
struct ndx_exchange_reply {
	uint8_t *data; /**< for the peer's plugin: write at most `room` bytes here */
	size_t room;
	size_t length;  /**< bytes written; 0 sends an empty message */
	bool completed; /**< this side has all it wants of the stage; what was written is still sent
	                 */
	enum ndx_plugin_error error; /**< if the call fails: what it was */
	char text[160]; /**< if the call fails: for people, one line; goes to the peer, too */
};

/** Services of the framework, one for each plugin; valid from `initialize` to `finalize`. Any
 * thread. */
struct ndx_plugin_host {
	uint32_t abi;     /**< NDX_PLUGIN_ABI of the framework */
	const char *name; /**< the plugin's, under which it logs */
	/** A line for the log, which the framework marks with the plugin's name. */
	void (*log)(const struct ndx_plugin_host *host, enum ndx_log_level level, const char *text);
};

struct ndx_plugin_variant;

/**
 * What a variant does. `must`: never NULL.
 *
 * An exchange call gets the peer's latest bytes, or NULL in the first round of a stage (both sides
 * start at once), and answers. It is called again with what the peer answered, until it says
 * completed. A stage ends when both sides have completed. A side that still wants an answer when
 * the other has completed fails: the peer finished early.
 */
struct ndx_variant_ops {
	/** may: can this variant run on this machine? If not, write why, one line. */
	enum ndx_status (*available)(void *plugin, const struct ndx_plugin_variant *variant,
	                             char *why, size_t room);
	/**
	 * may: an instance with these parameters, in the order of the schema, all checked. They
	 * live as long as the instance. Without it the instance is the plugin's state. Failure:
	 * write why.
	 */
	enum ndx_status (*create)(void *plugin, const struct ndx_plugin_variant *variant,
	                          const struct ndx_plugin_value *values, void **instance, char *why,
	                          size_t room);
	void (*destroy)(void *instance); /**< with create; no session of it is left */
	/** may: state of one session. Without it the session's state is the instance. */
	enum ndx_status (*begin)(void *instance, const struct ndx_exchange *exchange,
	                         void **session, struct ndx_exchange_reply *reply);
	void (*end)(void *session); /**< with begin; also after a failure */

	/** must */
	enum ndx_status (*info)(void *session, const struct ndx_exchange *exchange,
	                        const void *peer, size_t peer_length,
	                        struct ndx_exchange_reply *reply);
	/** must */
	enum ndx_status (*ready)(void *session, const struct ndx_exchange *exchange,
	                         const void *peer, size_t peer_length,
	                         struct ndx_exchange_reply *reply);
	/** may: without it stage done is one empty message each way */
	enum ndx_status (*done)(void *session, const struct ndx_exchange *exchange,
	                        const void *peer, size_t peer_length,
	                        struct ndx_exchange_reply *reply);
	/** may: the transport broke and came back: forget what happened in this stage. Without it a
	 * session does not survive its transport. */
	enum ndx_status (*reset)(void *session, enum ndx_stage stage);
};

/** One dialect of a plugin. */
struct ndx_plugin_variant {
	const char *name;
	const char *help;                      /**< one line for people */
	const struct ndx_plugin_param *params; /**< ends with a NULL name; NULL: none */
	const char *transport; /**< "tcp", or the name of a transport of this plugin; NULL: tcp */
	const struct ndx_variant_ops *ops;
	void *state; /**< the plugin's own; a variant's ops find it in `variant` */
};

/** One end of a connected transport; the transport's own. */
struct ndx_plugin_channel;

/**
 * A way of carrying a session's frames that the plugin brings along (a register bus, a message
 * queue). Like a stream of bytes: in order, nothing lost, nothing doubled.
 */
struct ndx_plugin_transport {
	const char *name;
	/** must: reach @p address, which only the transport understands, within @p timeout_ms. */
	enum ndx_status (*connect)(void *plugin, const char *address, uint32_t timeout_ms,
	                           struct ndx_plugin_channel **channel, char *why, size_t room);
	/** must: write all of it, or fail. */
	enum ndx_status (*send)(struct ndx_plugin_channel *channel, const void *data, size_t length,
	                        uint32_t timeout_ms);
	/** must: 1 to @p room bytes; NDX_E_IO_TIMEOUT; NDX_E_CONNECTION_ABORTED at its end. */
	enum ndx_status (*receive)(struct ndx_plugin_channel *channel, void *data, size_t room,
	                           size_t *length, uint32_t timeout_ms);
	/** must: from another thread: send and receive return NDX_E_CANCELED, now and from now on.
	 */
	void (*cancel)(struct ndx_plugin_channel *channel);
	/** must */
	void (*close)(struct ndx_plugin_channel *channel);
};

struct ndx_plugin;

/**
 * A plugin that runs others, which are no machine code: NAME is in a file ndx-plugin-NAME.SUFFIX.
 * The first such file makes the framework look for ndx-host-SUFFIX.so, in the file's directory and
 * in all others, which is a plugin with this table. It cannot go while one of its guests is there.
 */
struct ndx_plugin_guests {
	const char *suffix; /**< "py" */
	/** must: make a plugin's table of a file that nobody else may write to. @p guest is what
	 * its `initialize` finds in *state. Failure: write why. Any thread. */
	enum ndx_status (*open)(void *plugin, const char *path, const struct ndx_plugin **table,
	                        void **guest, char *why, size_t room);
	/** must: nothing of it is alive any more; behind its `finalize` */
	void (*close)(void *plugin, const struct ndx_plugin *table, void *guest);
};

/** Needs its calls one at a time, over all of its sessions. */
#define NDX_PLUGIN_ONE_AT_A_TIME 0x1u
/** Behind its transports are devices that have nothing but a queue pair to speak by: nobody is
 * there to say or answer goodbyes of connections without a connection manager (NDX_NO_CHANNEL). */
#define NDX_PLUGIN_DEVICE 0x2u

/** A plugin. Constant as long as it is registered. */
struct ndx_plugin {
	uint32_t abi;  /**< NDX_PLUGIN_ABI it was built with; read before anything else */
	uint32_t size; /**< sizeof(struct ndx_plugin) it was built with */
	const char *name;
	const char *version; /**< for people */
	const char *vendor;  /**< for people */
	uint32_t flags;      /**< NDX_PLUGIN_... */
	/** may: once, when it is registered. Failure: write why. */
	enum ndx_status (*initialize)(const struct ndx_plugin_host *host, void **state, char *why,
	                              size_t room);
	void (*finalize)(void *state); /**< may: nothing of it is alive any more */
	/** Static variants; or NULL and a function, which is asked once, after `initialize`. */
	const struct ndx_plugin_variant *list;
	size_t count;
	size_t (*variants)(void *state, const struct ndx_plugin_variant **list);
	const struct ndx_plugin_transport *transports; /**< ends with a NULL name; NULL: none */
	/** may: it runs other plugins, and then need not have variants of its own */
	const struct ndx_plugin_guests *guests;
};

NDX_DECLS_BEGIN

/** What a plugin in a file of its own exports; nothing else. */
extern const struct ndx_plugin ndx_plugin;

NDX_DECLS_END

#endif
