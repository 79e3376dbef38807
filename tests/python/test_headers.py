# SPDX-License-Identifier: BSD-2-Clause
"""Every public function is used by the module, or stands here with the reason why not."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# What Python has by other means, or does not need.
BY_NAME_OF_AN_ENUM = "a member of an enum of ndx/_enums.py has its name"
BY_STEPS = "made of the overlapped steps, so that Ctrl-C and close() end the wait"
BY_CONSTRUCTOR = "the object of Python is bound and open when its constructor returns"
BY_OPERATION = "operations of Python are initialised by hand, and their objects cancel them"
BY_NUMA = "the module takes no affinity, so there is none to ask for"
BY_STREAM = "descriptions by hand are for receivers and senders; sessions connect bare queue pairs"

UNUSED = {
    BY_NAME_OF_AN_ENUM: """
        ndx_capability_name ndx_disconnect_reason_name ndx_error_layer_name ndx_history_kind_name
        ndx_log_level_name ndx_managed_event_name ndx_managed_state_name ndx_mr_state_name
        ndx_plugin_error_name ndx_qp_state_name ndx_receiver_end_name
        ndx_receiver_state_name ndx_session_state_name ndx_stage_name ndx_status_name
    """,
    BY_STEPS: """
        ndx_accept ndx_accept_from ndx_connect_to ndx_disconnect ndx_get_request
        ndx_receiver_accept ndx_receiver_connect ndx_sender_accept ndx_sender_connect
        ndx_session_add_queue_pairs ndx_session_connect ndx_session_execute ndx_session_run
    """,
    BY_CONSTRUCTOR: """
        ndx_cq_create_depth ndx_listener_bind ndx_listener_create ndx_listener_listen
        ndx_mr_create ndx_mr_deregister ndx_mr_register
    """,
    BY_OPERATION: """
        ndx_cq_cancel ndx_mr_cancel ndx_overlapped_init ndx_port_create_sink ndx_port_post
    """,
    BY_NUMA: "ndx_cq_get_notify_affinity ndx_srq_get_notify_affinity",
    BY_STREAM: """
        ndx_connector_connect_peer ndx_connector_describe ndx_connector_set_oob_stream
    """,
    "numbers() and complete_connection() have the numbers on the wire": """
        ndx_rkey_of_token ndx_token_of_rkey
    """,
    "a registration of Python shows in the region itself; a closed one has no state": """
        ndx_mr_query
    """,
    "memory of a device: no object with a buffer is made of a dma-buf": "ndx_mr_register_dmabuf",
    "plugins register by their directory; those in Python by the plugin that hosts them": """
        ndx_negotiation_register
    """,
    "a request is posted by a call of its own, which makes the record of what it keeps": """
        ndx_qp_post_list ndx_qp_post_list_sized ndx_qp_receive_list ndx_qp_receive_list_sized
        ndx_srq_receive_list ndx_srq_receive_list_sized
    """,
    "a new object is as good; `segments` of stats()": """
        ndx_reassembly_reset ndx_reassembly_size
    """,
    "a receiver of Python has a thread of the library of its own": """
        ndx_receive_loop_attr_init ndx_receive_loop_attr_init_sized ndx_receive_loop_close
        ndx_receive_loop_create
    """,
    "the object of Python holds its adapter; the sender has taken the connector": """
        ndx_receiver_get_adapter ndx_sender_get_adapter ndx_sender_get_connector
    """,
    "send() copies the data; the sender's buffer is not lent to Python": """
        ndx_sender_acquire ndx_sender_post
    """,
    "snapshot() of the adapter has these figures as JSON": """
        ndx_adapter_get_stats ndx_connector_get_history ndx_connector_get_id ndx_cq_get_stats
        ndx_disconnect_outcome_name ndx_qp_get_stats
    """,
    "set_log() has the records; $NDX_LOG writes them to stderr": "ndx_log_to_stderr",
}


def without_comments(text: str) -> str:
    """C source, or a map of symbols, as the compiler or linker reads it."""
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)


def public() -> set[str]:
    """The functions that the libraries export, and those that the headers define."""
    names: set[str] = set()
    for path in (ROOT / "core").rglob("*.map"):
        if path.name != "private.map":
            names |= set(re.findall(r"^\s+(ndx_\w+);", without_comments(path.read_text()), re.M))
    for path in (ROOT / "api" / "ndx").glob("*.h"):
        text = without_comments(path.read_text())
        names |= set(re.findall(r"^static inline [\w\s*]*?\b(ndx_\w+)\(", text, re.M))
    return {name for name in names if not name.startswith("ndx_private_")}


def used() -> set[str]:
    """What the extension calls; X_init() is a call of X_init_sized()."""
    names: set[str] = set()
    for path in (ROOT / "shims" / "python" / "src").glob("*.c"):
        names |= set(re.findall(r"\bndx_\w+", without_comments(path.read_text())))
    return names | {f"{name}_sized" for name in names if name.endswith("_init")}


def test_every_public_function_is_used_or_has_a_reason() -> None:
    reasons = [name for names in UNUSED.values() for name in names.split()]
    functions, calls = public(), used()
    assert len(functions) > 230 and len(calls & functions) > 120, "the search finds too little"
    assert sorted(functions - calls - set(reasons)) == [], "neither used nor listed with a reason"
    assert sorted(set(reasons) & calls) == [], "used, but listed"
    assert sorted(set(reasons) - functions) == [], "listed, but there is no such function"
    assert len(reasons) == len(set(reasons)), "listed twice"
