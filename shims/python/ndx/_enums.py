# SPDX-License-Identifier: BSD-2-Clause
"""The enums of the library, with the names and numbers of its headers."""

from __future__ import annotations

from enum import IntEnum, IntFlag


class Status(IntEnum):
    """Outcome of a call or request: 0 is success, 1 is "not yet", negative is failure."""

    OK = 0
    PENDING = 1
    INVALID_PARAMETER = -1
    INVALID_BUFFER_SIZE = -2
    BUFFER_OVERFLOW = -3
    DATA_OVERRUN = -4
    NO_MORE_ENTRIES = -5
    ACCESS_VIOLATION = -6
    INVALID_DEVICE_REQUEST = -7
    INVALID_DEVICE_STATE = -8
    DEVICE_BUSY = -9
    NOT_SUPPORTED = -10
    WOULD_BLOCK = -11
    NOT_FOUND = -12
    INVALID_CONFIG = -13
    ABI_MISMATCH = -14
    INVALID_ADDRESS = -15
    SHARING_VIOLATION = -16
    ADDRESS_ALREADY_EXISTS = -17
    ADDRESS_ALREADY_ASSOCIATED = -18
    TOO_MANY_ADDRESSES = -19
    BAD_NETWORK_NAME = -20
    NETWORK_UNREACHABLE = -21
    HOST_UNREACHABLE = -22
    CONNECTION_REFUSED = -23
    CONNECTION_INVALID = -24
    CONNECTION_ACTIVE = -25
    CONNECTION_ABORTED = -26
    IO_TIMEOUT = -27
    CANCELED = -28
    REMOTE_ERROR = -29
    NO_MEMORY = -30
    INSUFFICIENT_RESOURCES = -31
    DEVICE_NOT_READY = -32
    DEVICE_REMOVED = -33
    INTERNAL_ERROR = -34
    UNSUCCESSFUL = -35
    ACCESS_DENIED = -36


class Capability(IntFlag):
    """Optional abilities of an adapter."""

    IN_ORDER_DMA = 1 << 0
    LOOPBACK = 1 << 1
    CQ_RESIZE = 1 << 2
    NOTIFY_SOLICITED = 1 << 3
    NOTIFY_AFFINITY = 1 << 4
    INTERRUPT_MODERATION = 1 << 5
    MEMORY_WINDOW = 1 << 6
    SRQ = 1 << 7
    SEND_IMMEDIATE = 1 << 8
    WRITE_IMMEDIATE = 1 << 9
    REMOTE_ACCESS_STATUS = 1 << 10
    DISCONNECT_REASON = 1 << 11
    RNR_TIMER = 1 << 12
    EVENTS = 1 << 13
    DMABUF = 1 << 14


class Access(IntFlag):
    """Rights of a memory region. Local reads are always allowed."""

    LOCAL_READ = 0
    LOCAL_WRITE = 0x1
    REMOTE_READ = 0x2
    REMOTE_WRITE = 0x5
    READ_SINK = 0x8


class RequestType(IntEnum):
    """What a result is the result of."""

    RECEIVE = 0
    SEND = 1
    BIND = 2
    INVALIDATE = 3
    READ = 4
    WRITE = 5


class DisconnectReason(IntEnum):
    """How a connection ended."""

    NONE = 0
    GRACEFUL = 1
    ABORTED = 2
    UNKNOWN = 3


class QueuePairState(IntEnum):
    """Where a queue pair is in its life."""

    UNCONNECTED = 0
    CONNECTING = 1
    CONNECTED = 2
    DISCONNECTING = 3
    DISCONNECTED = 4


class Role(IntEnum):
    """The two ends of a connection that is made by descriptions."""

    CLIENT = 0
    SERVER = 1


class ReceiverState(IntEnum):
    """State of a receiver."""

    CREATED = 0
    CONNECTING = 1
    RUNNING = 2
    ENDED = 3
    FAILED = 4
    STOPPING = 5
    STOPPED = 6


class ReceiverEnd(IntEnum):
    """Why a receiver does not run."""

    NONE = 0
    GOODBYE = 1
    LOST = 2
    REQUEST = 3
    IDLE = 4
    PROBE = 5
    STOPPED = 6
    UNKNOWN = 7


class ReceiverMode(IntEnum):
    """How the peer sends frames."""

    SEND = 0
    WRITE = 1


class Stage(IntEnum):
    """Stages of a negotiated session, in order."""

    INFO = 0
    VALIDATE = 1
    READY = 2
    DONE = 3


class ErrorLayer(IntEnum):
    """The layer of a session that failed."""

    NONE = 0
    TRANSPORT = 1
    PLUGIN = 2
    FRAMEWORK = 3
    PROVIDER = 4


class SessionState(IntEnum):
    """State of a session."""

    CREATED = 0
    CONNECTING = 1
    CONNECTED = 2
    EXCHANGING = 3
    FAILED = 4
    CLOSED = 5


class HistoryKind(IntEnum):
    """Kind of an entry of a session's history."""

    CONNECT = 0
    BACKOFF = 1
    CALL = 2
    SENT = 3
    RECEIVED = 4
    STAGE = 5
    PROOF = 6
    VERDICT = 7
    HELLO = 8
    TLS = 9
    ADD = 10
    LOST = 11


class PluginErrorKind(IntEnum):
    """Kind of a plugin's failure."""

    OK = 0
    SERIALIZATION = 1
    PEER_DATA = 2
    RESOURCES = 3
    VENDOR = 4
    CONFIGURATION = 5


class LinkType(IntEnum):
    """What a captured packet begins with; the numbers of capture files."""

    ETHERNET = 1
    RAW = 101
    SLL = 113
    ERF = 197
    IPV4 = 228
    IPV6 = 229
    INFINIBAND = 247
    SLL2 = 276


class LogLevel(IntEnum):
    """Importance of a log record. A level includes the levels before it."""

    ERROR = 0
    WARN = 1
    INFO = 2
    DEBUG = 3


class AdapterEventType(IntEnum):
    """What has happened to an adapter."""

    PORT_DOWN = 1
    PORT_UP = 2
    ADDRESS_CHANGE = 3
    SUBNET_CHANGE = 4
    DEVICE_REMOVED = 5


class OperationKind(IntEnum):
    """Kind of an RDMA operation that Reassembly.feed_operation() takes."""

    SEND = 1
    WRITE = 2
    READ = 3


class Transport(IntEnum):
    """Transport of a captured connection."""

    ROCE_V2 = 1
    ROCE_V1 = 2
    INFINIBAND = 3
    IWARP = 4


class ChunkKind(IntEnum):
    """Purpose of a chunk of an RPC message."""

    READ = 1
    WRITE = 2
    REPLY = 3


class HoleKind(IntEnum):
    """What a hole is a part of."""

    READ = 1
    WRITE = 2
    REPLY = 3
    SEND = 4
    STREAM = 5


class OrphanKind(IntEnum):
    """Something whose counterpart is missing in the capture."""

    DATA = 1
    RESPONSE = 2
    FRAGMENT = 3
    REPLY = 4
    IP_FRAGMENT = 5


class EvictionReason(IntEnum):
    """Why something incomplete was given up."""

    AGE = 1
    BYTES = 2
    SEGMENTS = 3
    CONNECTIONS = 4
    FRAGMENTS = 5


class EventType(IntEnum):
    """Kind of an event of a reassembly."""

    CONNECTION = 1
    SEND = 2
    CALL = 3
    REPLY = 4
    ERROR = 5
    HOLE = 6
    DUPLICATE = 7
    ORPHAN = 8
    EVICTION = 9
    BAD_CRC = 10


class ManagedState(IntEnum):
    """State of a session of a manager."""

    QUEUED = 0
    CONNECTING = 1
    UP = 2
    WAITING = 3
    OVER = 4


class ManagedEventKind(IntEnum):
    """What has happened to a session of a manager."""

    NONE = 0
    UP = 1
    DOWN = 2
    FAILED = 3
    GAVE_UP = 4
    CANCELED = 5
    ENDED = 6


class TlsVerify(IntEnum):
    """What the peer of a TLS connection has to prove."""

    REQUIRED = 0
    OPTIONAL = 1
    NONE = 2
