/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Interface between a vendor plugin and the negotiation framework: duties and guarantees.
 *
 * A plugin implements one format in which two ends exchange what their queue pairs need to know of
 * each other. It opens no connection and has no thread: a session passes it the peer's bytes, and
 * sends its answer to the peer. A plugin offers variants: dialects of the format, with parameters
 * of their own.
 *
 * A plugin in a file of its own exports one constant, `ndx_plugin`, and nothing else. The framework
 * compares its `abi` before it calls anything in the plugin. A program may register the same table
 * directly (ndx_negotiation_register()). A plugin in another language is run by a host plugin
 * (struct ndx_plugin_guests).
 *
 * Threads. Calls for one session come one at a time, on any thread. Calls for different sessions
 * come concurrently, unless the plugin sets NDX_PLUGIN_ONE_AT_A_TIME. A call may take any time; it
 * delays only its own session, until that session times out. `initialize`, `finalize` and
 * `variants` come one at a time, and never concurrently with another call.
 *
 * Arguments of a call are valid during the call, unless their comment says otherwise.
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

/** Kind of a plugin's failure. It decides what the session does, and the peer is told. */
enum ndx_plugin_error {
	NDX_PLUGIN_OK = 0,
	NDX_PLUGIN_SERIALIZATION = 1, /**< the own data do not fit the format */
	NDX_PLUGIN_PEER_DATA = 2,     /**< the peer's bytes are invalid, or ask for too much */
	NDX_PLUGIN_RESOURCES = 3,     /**< out of memory, queue pairs, ... */
	NDX_PLUGIN_VENDOR = 4,        /**< the vendor's library or device failed */
	/** The parameters contradict each other, or do not work on this machine. */
	NDX_PLUGIN_CONFIGURATION = 5,
};

/** The stages of a session, in order. */
enum ndx_stage {
	NDX_STAGE_INFO = 0,     /**< describe both ends: queue pair, memory, limits */
	NDX_STAGE_VALIDATE = 1, /**< without the plugin: connect, and verify the path */
	NDX_STAGE_READY = 2,    /**< from its end on both sides can take data */
	NDX_STAGE_DONE = 3,     /**< optional: the transfers are over; not the disconnect */
};

/** Type of a parameter. */
enum ndx_param_type {
	NDX_PARAM_BOOL,   /**< "true" or "false" */
	NDX_PARAM_INT,    /**< decimal or 0x..., `least` to `most` */
	NDX_PARAM_STRING, /**< `least` to `most` bytes */
	NDX_PARAM_CHOICE, /**< one of `choices` */
};

/** One parameter of a variant. */
struct ndx_plugin_param {
	const char *name;
	enum ndx_param_type type;
	bool required; /**< must be given; then `initial` is NULL */
	int64_t least;
	int64_t most;
	const char *choices; /**< NDX_PARAM_CHOICE: "rc|uc"; else NULL */
	const char *initial; /**< value if the parameter is not given; NULL: none */
	const char *help;    /**< one line for the user */
};

/**
 * A checked value of a parameter. `text` is never NULL, and is spelled as the caller spelled it.
 */
struct ndx_plugin_value {
	const struct ndx_plugin_param *param;
	/** False: neither given nor initial; the other members are 0 and "". */
	bool given;
	int64_t number; /**< BOOL: 0 or 1; INT; CHOICE: index of the choice */
	const char *text;
};

/**
 * State of a session for the plugin. Only stage, round, the peer's description and the agreement
 * change during a session.
 */
struct ndx_exchange {
	uint64_t session; /**< number of the session, for log lines */
	enum ndx_role role;
	enum ndx_stage stage; /**< stage of this call */
	uint32_t round;       /**< round of this call; each stage starts with 0 */
	/**
	 * The own end, as the provider describes it; kind NONE if the session has no queue pair of
	 * NDX.
	 */
	const struct ndx_peer_description *own;
	/**
	 * The peer's end. The plugin fills it in stage info; the framework checks it when that
	 * stage has ended.
	 */
	struct ndx_peer_description *peer;
	/** What both ends support. The framework fills it when stage info has ended. */
	const struct ndx_agreement *agreed;
	/**
	 * The index of the queue pair in its session, and those that are connected together with
	 * it: `queue_pair_count` of them, from `first_queue_pair` on. 0, 0 and 1 in a session of
	 * one queue pair. Queue pairs that were added later (NDX_PLUGIN_ADDS) have a first one
	 * other than 0.
	 */
	uint32_t queue_pair;
	uint32_t first_queue_pair;
	uint32_t queue_pair_count;
};

/** A plugin's answer. The framework zeroes all members except `data` and `room`. */
struct ndx_exchange_reply {
	uint8_t *data; /**< answer for the peer's plugin, at most `room` bytes */
	size_t room;
	size_t length; /**< bytes written; 0 sends an empty message */
	/** This side needs no further message in this stage. The answer is sent all the same. */
	bool completed;
	/**
	 * In any call of stage info: do not prove the path in stage validate. Where the provider
	 * can, the two ends write into each other's mailboxes (docs/negotiation-protocol.md); a
	 * device that cannot take such writes needs this.
	 */
	bool no_proof;
	enum ndx_plugin_error error; /**< if the call fails: kind of the failure */
	char text[160]; /**< if the call fails: one readable line; the peer gets it, too */
};

/**
 * Services of the framework, one instance for each plugin; valid from `initialize` to `finalize`.
 * Any thread.
 */
struct ndx_plugin_host {
	uint32_t abi;     /**< NDX_PLUGIN_ABI of the framework */
	const char *name; /**< name of the plugin, used in its log lines */
	/** Write a line to the log; the framework adds the plugin's name. */
	void (*log)(const struct ndx_plugin_host *host, enum ndx_log_level level, const char *text);
};

struct ndx_plugin_variant;

/**
 * Functions of a variant. `must`: never NULL.
 *
 * A function of a stage gets the peer's latest bytes and answers. In the first round of a stage it
 * gets NULL, because both sides start at once. It is called again with each answer of the peer
 * until it sets `completed`. A stage ends when both sides have completed. If one side still needs a
 * message when the other side has completed, the stage fails, because no message will come.
 */
struct ndx_variant_ops {
	/**
	 * may: can this variant run on this machine? If not, write the reason to @p why, one line.
	 */
	enum ndx_status (*available)(void *plugin, const struct ndx_plugin_variant *variant,
	                             char *why, size_t room);
	/**
	 * may: create an instance with these parameters, which are checked and in the order of the
	 * schema. They are valid as long as the instance. Without this function, the plugin's state
	 * is the instance. On failure, write the reason to @p why.
	 */
	enum ndx_status (*create)(void *plugin, const struct ndx_plugin_variant *variant,
	                          const struct ndx_plugin_value *values, void **instance, char *why,
	                          size_t room);
	void (*destroy)(void *instance); /**< with create; no session of the instance is left */
	/**
	 * may: create the state of one session. Without this function, the instance is the
	 * session's state.
	 */
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
	/** may: without this function, stage done is one empty message each way */
	enum ndx_status (*done)(void *session, const struct ndx_exchange *exchange,
	                        const void *peer, size_t peer_length,
	                        struct ndx_exchange_reply *reply);
	/**
	 * may: the transport broke and was connected again; discard the state of this stage.
	 * Without this function, a session ends with its transport. With it, the framework calls
	 * it only if the stage has to begin anew: at another server, over TLS, and with a peer that
	 * cannot send lost messages again.
	 */
	enum ndx_status (*reset)(void *session, enum ndx_stage stage);
};

/** One dialect of a plugin. */
struct ndx_plugin_variant {
	const char *name;
	const char *help;                      /**< one line for the user */
	const struct ndx_plugin_param *params; /**< ends with a NULL name; NULL: none */
	/** "tcp", or the name of a transport of this plugin; NULL: "tcp". */
	const char *transport;
	const struct ndx_variant_ops *ops;
	void *state; /**< the plugin's; its functions find it in `variant` */
};

/** One end of a connected transport; defined by the transport. */
struct ndx_plugin_stream;

/**
 * A transport of the plugin for a session's frames, for example a register bus or a message queue.
 * It is a byte stream: in order, without loss, without duplicates.
 *
 * Calls on one stream come one at a time, except `cancel`. They come on threads that may block. The
 * stream stays open until the session has ended, and longer if the session's connection has no
 * connection manager: then the stream carries the goodbyes of the connection, and its end aborts
 * the connection. To be able to send at any time, the framework calls `receive` with short
 * time-outs, 0 to 100 ms, again and again. A plugin with NDX_PLUGIN_DEVICE has no goodbyes: its
 * `receive` is called when an answer is due, with the time that is left for that.
 */
struct ndx_plugin_transport {
	const char *name;
	/**
	 * must: connect to @p address, which only the transport interprets, within @p timeout_ms.
	 * A call that takes longer is not waited for: the stream is closed when it returns.
	 */
	enum ndx_status (*connect)(void *plugin, const char *address, uint32_t timeout_ms,
	                           struct ndx_plugin_stream **stream, char *why, size_t room);
	/** must: write all bytes, or fail. */
	enum ndx_status (*send)(struct ndx_plugin_stream *stream, const void *data, size_t length,
	                        uint32_t timeout_ms);
	/**
	 * must: receive 1 to @p room bytes. NDX_E_IO_TIMEOUT: none came within @p timeout_ms, and a
	 * later call goes on; NDX_E_CONNECTION_ABORTED: end of the stream.
	 */
	enum ndx_status (*receive)(struct ndx_plugin_stream *stream, void *data, size_t room,
	                           size_t *length, uint32_t timeout_ms);
	/**
	 * must: called by another thread: send and receive in progress and all later ones return
	 * NDX_E_CANCELED.
	 */
	void (*cancel)(struct ndx_plugin_stream *stream);
	/** must */
	void (*close)(struct ndx_plugin_stream *stream);
};

/** What a transport gets to connect: more than the arguments of `connect`. */
struct ndx_plugin_dial {
	size_t size;         /**< sizeof(struct ndx_plugin_dial) of the framework's build */
	void *plugin;        /**< the plugin's state */
	const char *address; /**< of the server; only the transport interprets it */
	uint32_t timeout_ms;
	uint32_t reserved; /**< 0 */
	/** Which of the plugin's transports; this is the entry of `transports`. */
	const struct ndx_plugin_transport *transport;
	const struct ndx_plugin_variant *variant;
	/**
	 * The session's settings of the variant, in the order of its schema: an address of a proxy,
	 * a name and a password. NULL if the variant has no parameters. Valid during the call.
	 */
	const struct ndx_plugin_value *values;
	void *instance; /**< of the variant, as its `create` made it */
};

/** What a transport can do in addition to struct ndx_plugin_transport. Constant. */
struct ndx_plugin_transport_more {
	size_t size;      /**< sizeof(struct ndx_plugin_transport_more) of the plugin's build */
	const char *name; /**< of one of the plugin's `transports` */
	/** may: called in place of `connect`, with the same duties. */
	enum ndx_status (*dial)(const struct ndx_plugin_dial *dial,
	                        struct ndx_plugin_stream **stream, char *why, size_t room);
	/**
	 * may: a descriptor that is readable (poll(), epoll) while the peer's bytes, or the end of
	 * the stream, can be received; -1: none. Called once, after the transport has connected.
	 * The framework duplicates the descriptor and only waits for it, so that a session without
	 * traffic occupies no thread.
	 */
	int (*descriptor)(struct ndx_plugin_stream *stream);
};

/** `size` of struct ndx_plugin_transport_more when it came; the smallest that is accepted. */
#define NDX_PLUGIN_TRANSPORT_MORE_SIZE_0_1 \
	NDX_SIZE_UP_TO(struct ndx_plugin_transport_more, descriptor)

struct ndx_plugin;

/**
 * A host plugin: it runs plugins that are not machine code, from files ndx-plugin-NAME.SUFFIX. For
 * the first such file the framework searches the file's directory, and then all plugin directories,
 * for ndx-host-SUFFIX.so, which exports a plugin with this table. The host cannot be unregistered
 * while one of its guests is registered.
 */
struct ndx_plugin_guests {
	const char *suffix; /**< "py" */
	/**
	 * must: create a plugin table from a file to which no other user can write. The guest's
	 * `initialize` finds @p guest in *state. On failure, write the reason to @p why. Any
	 * thread.
	 */
	enum ndx_status (*open)(void *plugin, const char *path, const struct ndx_plugin **table,
	                        void **guest, char *why, size_t room);
	/** must: release the guest. Called after its `finalize`; none of its objects is left. */
	void (*close)(void *plugin, const struct ndx_plugin *table, void *guest);
};

/** The framework must call this plugin for one session at a time. */
#define NDX_PLUGIN_ONE_AT_A_TIME 0x1u
/**
 * The peers behind the plugin's transports are devices with nothing but a queue pair. They neither
 * send nor answer a goodbye on a connection without a connection manager (NDX_NO_OOB_STREAM).
 */
#define NDX_PLUGIN_DEVICE 0x2u
/**
 * A session of the plugin's variants may have several queue pairs. `begin`, the functions of the
 * stages and `end` are then called for each queue pair as for a session of its own, one call at a
 * time; the number of the session is the same. Without this flag such sessions are refused.
 */
#define NDX_PLUGIN_MANY 0x4u
/**
 * With NDX_PLUGIN_MANY: queue pairs may also be added to a session that has come to the end of
 * stage ready, and be removed from it. `begin`, and the functions of the stages info and ready, are
 * then called for these while the state of the earlier ones exists; `end` is called for a queue
 * pair when it is removed. Without this flag, at either end, nothing is added or removed.
 */
#define NDX_PLUGIN_ADDS 0x8u
/**
 * `begin`, the functions of the stages and `end` do not block: no waiting for a lock that is held
 * for long, for a file or a socket; they return within microseconds. The framework may call them
 * on the thread that serves all sessions, which saves handing each call to another thread and
 * back. A call of a stage that takes 100 ms is logged, and the plugin loses the privilege. No
 * effect with NDX_PLUGIN_ONE_AT_A_TIME.
 */
#define NDX_PLUGIN_PROMPT 0x10u

/** A plugin. Constant as long as it is registered. */
struct ndx_plugin {
	uint32_t abi; /**< NDX_PLUGIN_ABI of the plugin's build; read before all else */
	/**
	 * sizeof(struct ndx_plugin) of the plugin's build. Members that the plugin does not have
	 * yet count as 0; a plugin with a member that the framework does not have yet is refused
	 * unless the member is 0.
	 */
	uint32_t size;
	const char *name;
	const char *version; /**< for the user */
	const char *vendor;  /**< for the user */
	uint32_t flags;      /**< NDX_PLUGIN_... */
	/** may: called once, at registration. On failure, write the reason to @p why. */
	enum ndx_status (*initialize)(const struct ndx_plugin_host *host, void **state, char *why,
	                              size_t room);
	void (*finalize)(void *state); /**< may: none of its objects is left */
	/** The variants; or NULL and a function, which is called once after `initialize`. */
	const struct ndx_plugin_variant *list;
	size_t count;
	size_t (*variants)(void *state, const struct ndx_plugin_variant **list);
	const struct ndx_plugin_transport *transports; /**< ends with a NULL name; NULL: none */
	/** may: the plugin runs other plugins; then it need not have variants */
	const struct ndx_plugin_guests *guests;
	/** What its transports can do in addition; ends with a NULL pointer. NULL: nothing. */
	const struct ndx_plugin_transport_more *const *more;
};

/** `size` of struct ndx_plugin in version 0.1; the smallest that is accepted. */
#define NDX_PLUGIN_SIZE_0_1 NDX_SIZE_UP_TO(struct ndx_plugin, guests)

NDX_DECLS_BEGIN

/** The only export of a plugin in a file of its own. */
extern const struct ndx_plugin ndx_plugin;

NDX_DECLS_END

#endif
