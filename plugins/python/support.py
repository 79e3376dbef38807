# SPDX-License-Identifier: BSD-2-Clause
"""The module ndx_plugin for plugins in Python, and the helpers of their host.

The host adds log(level, text): level is "error", "warn", "info" or "debug".
"""
import inspect
import ipaddress
import traceback
import types


class PluginError(Exception):
    """The exchange fails. The peer gets the text and the kind of the error."""

    error = 4


class SerializationError(PluginError):
    """The own data do not fit the format."""

    error = 1


class PeerDataError(PluginError):
    """The peer's bytes are invalid, or ask for too much."""

    error = 2


class ResourceError(PluginError):
    """Out of memory, queue pairs, ..."""

    error = 3


class VendorError(PluginError):
    """The vendor's library or device failed; any other exception counts as this one."""

    error = 4


class ConfigurationError(PluginError):
    """The parameters contradict each other, or do not work on this machine."""

    error = 5


class Description(types.SimpleNamespace):
    """One end of a connection: struct ndx_peer_description. Fields that are not given are 0 or empty.

    kind is "none", "rendezvous" or "verbs-rc"; memory is (address, length, token), rkey the key of
    the memory for a device that does not run NDX; policy is bits of enum ndx_peer_policy; address is
    None or (text, port); cookie and gid are 16 bytes.
    """

    def __init__(self, **fields):
        super().__init__(
            kind="none", inbound_read_limit=0, outbound_read_limit=0, memory=(0, 0, 0),
            stack="", cookie=bytes(16), address=None, qpn=0, psn=0, mtu=0, lid=0,
            gid=bytes(16), rkey=0, mailbox_rkey=0, policy=0)
        for name, value in fields.items():
            if name not in self.__dict__:
                raise TypeError(f"a description has no {name}")
            setattr(self, name, value)


class Exchange(types.SimpleNamespace):
    """State of a session for its plugin: session, role, stage, round, room, settings, own, agreed; and
    peer, which the plugin sets to a Description in stage info."""


_KINDS = ("none", "rendezvous", "verbs-rc")
_TYPES = ("bool", "int", "string", "choice")


def _number(what, value, bits):
    value = int(value)
    if not 0 <= value < 1 << bits:
        raise ValueError(f"{what} is {value}, it has {bits} bits")
    return value


def _sixteen(what, value):
    value = bytes(value)
    if len(value) != 16:
        raise ValueError(f"{what} has {len(value)} bytes, it must have 16")
    return value


def _flatten(end):
    """A description as numbers and bytes, for the host."""
    family, port, packed = 0, 0, bytes(16)
    if end.address is not None:
        address = ipaddress.ip_address(end.address[0].partition("%")[0])
        family, port = address.version, _number("address: port", end.address[1], 16)
        packed = address.packed.ljust(16, b"\0")
    stack = end.stack.encode("ascii")
    if len(stack) > 15 or b"\0" in stack:
        raise ValueError("stack has more than 15 bytes, or a zero in it")
    if end.kind not in _KINDS:
        raise ValueError(f"kind is {end.kind!r}, it may be one of {', '.join(_KINDS)}")
    address, length, token = end.memory
    return (_KINDS.index(end.kind),
            _number("inbound_read_limit", end.inbound_read_limit, 32),
            _number("outbound_read_limit", end.outbound_read_limit, 32),
            _number("memory: address", address, 64), _number("memory: length", length, 64),
            _number("memory: token", token, 32), stack, _sixteen("cookie", end.cookie),
            family, port, packed, _number("qpn", end.qpn, 32), _number("psn", end.psn, 32),
            _number("mtu", end.mtu, 32), _number("lid", end.lid, 16),
            _sixteen("gid", end.gid), _number("rkey", end.rkey, 32),
            _number("mailbox_rkey", end.mailbox_rkey, 32), _number("policy", end.policy, 32))


def _unflatten(kind, inbound, outbound, address, length, token, stack, cookie, family, port, packed,
               qpn, psn, mtu, lid, gid, rkey, mailbox_rkey, policy):
    """The inverse of _flatten()."""
    where = None
    if family != 0:
        where = (str(ipaddress.ip_address(packed[:4] if family == 4 else packed)), port)
    return Description(
        kind=_KINDS[kind], inbound_read_limit=inbound, outbound_read_limit=outbound,
        memory=(address, length, token), stack=stack.decode("ascii"), cookie=cookie,
        address=where, qpn=qpn, psn=psn, mtu=mtu, lid=lid, gid=gid,
        rkey=rkey, mailbox_rkey=mailbox_rkey, policy=policy)


def _agreement(kind, mtu, client_reads, server_reads):
    return types.SimpleNamespace(kind=_KINDS[kind], mtu=mtu, client_reads=client_reads,
                                 server_reads=server_reads)


def _text(value):
    """A parameter's value as text for the framework."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _param(owner, given):
    given = dict(given)
    name = given.pop("name", None)
    if not isinstance(name, str):
        raise ConfigurationError(f"{owner}: a parameter has no name")
    kind = given.pop("type", None)
    if kind not in _TYPES:
        raise ConfigurationError(f"{owner}: parameter {name}: its type is none of "
                                 f"{', '.join(_TYPES)}")
    choices = given.pop("choices", None)
    if choices is not None and not isinstance(choices, str):
        choices = "|".join(choices)
    row = (name, _TYPES.index(kind), bool(given.pop("required", False)),
           int(given.pop("least", 0)), int(given.pop("most", 0)), choices,
           _text(given.pop("initial", None)), str(given.pop("help", "")))
    if given:
        raise ConfigurationError(f"{owner}: parameter {name} has unknown {', '.join(given)}")
    return row


def _need(owner, thing, names):
    for name in names:
        if not callable(getattr(thing, name, None)):
            raise ConfigurationError(f"{owner}: required function {name} is missing")


def _variant(cls):
    owner = f"class {cls.__name__}"
    name = getattr(cls, "name", None)
    if not isinstance(name, str):
        raise ConfigurationError(f"{owner}: its name is missing")
    _need(owner, cls, ("rdma_info_exchange", "rdma_ready_exchange"))
    params = [_param(owner, param) for param in getattr(cls, "params", ())]
    return (name, (cls.__doc__ or "").strip().partition("\n")[0],
            getattr(cls, "transport", "tcp"), cls, params,
            callable(getattr(cls, "rdma_done_exchange", None)),
            callable(getattr(cls, "reset", None)), callable(getattr(cls, "available", None)))


def _takes_settings(cls):
    """Whether the class has a parameter of that name; older plugins have not."""
    try:
        parameters = inspect.signature(cls).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.name == "settings" or p.kind is p.VAR_KEYWORD for p in parameters)


def _transport(cls):
    owner = f"class {cls.__name__}"
    name = getattr(cls, "name", None)
    if not isinstance(name, str):
        raise ConfigurationError(f"{owner}: its name is missing")
    _need(owner, cls, ("send", "receive", "cancel", "close"))
    return name, cls, _takes_settings(cls), callable(getattr(cls, "fileno", None))


def _tables(module):
    """The content of a module for the host, in plain tuples and lists."""
    name = getattr(module, "PLUGIN", None)
    if not isinstance(name, str):
        raise ConfigurationError("PLUGIN, its name, is missing")
    variants = [_variant(cls) for cls in getattr(module, "VARIANTS", ())]
    if not variants:
        raise ConfigurationError("VARIANTS, a list of classes, is missing or empty")
    return (name, str(getattr(module, "VERSION", "0")), str(getattr(module, "VENDOR", "unknown")),
            variants, [_transport(cls) for cls in getattr(module, "TRANSPORTS", ())])


def _load(path, guest):
    """Run a plugin's file, without importing or writing other files in its directory."""
    module = types.ModuleType("ndx_plugin_guest")
    module.__file__ = path
    module.__ndx_guest__ = guest
    with open(path, "rb") as file:
        exec(compile(file.read(), path, "exec"), module.__dict__)  # runs the plugin
    return module


def _why(kind, value, trace):
    """The traceback's last line, the kind of the error, and all lines of the traceback."""
    lines = "".join(traceback.format_exception(kind, value, trace)).rstrip().split("\n")
    error = 4
    if isinstance(value, PluginError):
        error = value.error
        last = str(value) or kind.__name__
    else:
        last = traceback.format_exception_only(kind, value)[-1].strip()
        if isinstance(value, MemoryError):
            error = 3
    return last.replace("\n", " "), error, lines


def _settings(rows):
    """Values of parameters by name, in Python's types."""
    made = {}
    for name, kind, given, number, text in rows:
        if not given:
            made[name] = None
        elif _TYPES[kind] == "bool":
            made[name] = number != 0
        elif _TYPES[kind] == "int":
            made[name] = number
        else:
            made[name] = text
    return made
