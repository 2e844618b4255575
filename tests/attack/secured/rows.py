"""The table of attacks on a secured node."""

from tests.attack.attacks import Attack
from tests.attack.secured import before_login, key_sets, logins, nodes, rights
from tests.attack.secured.before_login import BEGUN

__all__ = ["SECURED_ATTACKS"]

_CLOSE = ("close",)
_FAILED = ("58",)
_HANDSHAKES_BYTES = BEGUN * (64 << 10)
"""OpenSSL's state of each, which the allocator keeps for the next."""
_CLUSTER = ("31",)

SECURED_ATTACKS: tuple[Attack, ...] = (
    Attack("S01", "5,000 frames begun", before_login.begun_frames, _CLOSE, "handshake_timeout"),
    Attack("S02", "lengths before a login", before_login.bad_lengths, _CLOSE, "frame"),
    Attack("S03", "counts before a login", before_login.bad_counts, _CLOSE, "reason="),
    Attack("S04a", "other speech", before_login.other_speech, _CLOSE, "not_logged_in"),
    Attack(
        "S04b",
        "a record behind a failed login",
        before_login.pipelined_behind_a_failure,
        _CLOSE,
        "authentication_failed",
    ),
    Attack("S05a", "ApiVersions twice", before_login.versions_twice, _CLOSE, "not_logged_in"),
    Attack("S05b", "ApiVersions v50 for ever", before_login.versions_for_ever, _CLOSE),
    Attack(
        "S06a",
        "5,000 TLS handshakes begun",
        before_login.begun_handshakes,
        _CLOSE,
        grows_bytes=_HANDSHAKES_BYTES,
    ),
    Attack("S06b", "a login a byte a second", before_login.drip, _CLOSE, "handshake_timeout"),
    Attack("S07", "old TLS, open suites", before_login.tls_versions, _CLOSE, "tls"),
    Attack("S08", "TLS to plain, plain to TLS", before_login.wrong_protocol, _CLOSE),
    Attack("S09", "bad certificates", before_login.certificates, _CLOSE, "tls"),
    Attack("S10", "subjects like a super user's", before_login.subjects, _CLOSE),
    Attack("S12", "a controller of another host", nodes.false_controller, ("refused",)),
    Attack("S13", "foreign mechanisms", before_login.foreign_mechanisms, ("33",), "not enabled"),
    Attack("S15", "messages of PLAIN", logins.plain_messages, _FAILED, "authentication_failed"),
    Attack("S15b", "half a mebibyte", logins.long_password, _CLOSE, "frame_too_large_before_login"),
    Attack("S16", "names alike", logins.names_alike, _FAILED, "authentication_failed"),
    Attack("S17", "a hundred guesses at once", logins.guesses, _FAILED, "authentication_failed"),
    Attack("S18", "who is a user", logins.unknown_users, _FAILED),
    Attack("S19", "SCRAM heard before", logins.replay, _FAILED),
    Attack("S20", "SCRAM nonces", logins.nonces, _FAILED),
    Attack("S21", "SCRAM headers", logins.headers, _FAILED),
    Attack("S22", "SCRAM proofs", logins.proofs, _FAILED),
    Attack("S23", "credentials", logins.credentials, ("-1+93",)),
    Attack("S24", "tokens and passwords mixed", logins.token_for_password, _FAILED),
    Attack("S25", "web tokens", logins.web_tokens, _FAILED),
    Attack(
        "S25b", "a mebibyte of token", logins.long_token, _CLOSE, "frame_too_large_before_login"
    ),
    Attack("S26a", "bad key servers", key_sets.bad_answers, ("refused",), "key_set_failed"),
    Attack("S26b", "unknown keys", key_sets.unknown_keys, _FAILED),
    Attack("S27a", "another user at once", logins.another_user, _FAILED),
    Attack("S27b", "another mechanism at once", logins.another_mechanism, _CLOSE),
    Attack("S27c", "behind the session's end", logins.after_the_end, _CLOSE, "session_expired"),
    Attack("S27d", "a hundred logins in a row", logins.renewals, ("held",)),
    Attack("S28", "a right that goes", rights.rights_that_go, ("29",)),
    Attack("S29", "replica ids", rights.replica_ids, ("29",)),
    Attack("S30", "another user's fetch session", rights.foreign_session, ("70",)),
    Attack("S31a", "what brokers ask", rights.cluster_actions, _CLUSTER),
    Attack("S31b", "others' entries", rights.stranger_reads_entries, _CLUSTER),
    Attack("S31c", "entries for oneself", rights.entries_by_strangers, _CLUSTER),
    Attack("S32", "envelopes", rights.envelopes, _CLOSE),
    Attack("S34", "around the broker", nodes.straight_to_the_controller, ("alike",)),
    Attack("S35", "settings as an oracle", rights.settings_as_oracle, _CLUSTER),
    Attack("S36", "names that exist", rights.existing_names, ("alike",)),
    Attack("S37", "literal stars", rights.literal_stars, ("29+30",)),
    Attack("S38", "denials", rights.denials, ("29 0 31",)),
    Attack("S40", "names by id", rights.hidden_names, ("hidden",)),
    Attack("S41", "secrets", rights.secrets, ("hidden",)),
    Attack(
        "S42", "delegation tokens", logins.delegation_tokens, ("64 64 63 62 62", "64 64 63 62 66")
    ),
    Attack("S43", "providers and classes", rights.providers, ("refused",)),
    Attack("S44", "20,000 client ids", rights.client_ids, ("held",)),
    Attack("S45", "produce without acks, denied", rights.without_acknowledgement, _CLOSE),
    Attack("S46", "a flood of one listener", before_login.flood_of_one_listener, ("held",)),
    Attack("S47", "a bomb in telemetry", rights.telemetry_bomb, ("refused",)),
    Attack("S48", "lines of a forged log", before_login.forged_line, ("escaped",)),
)
