"""Is this value a secret? Placeholders, references, identifiers, hashes of files and words are not."""

from __future__ import annotations

import re

from memory_core.redaction.lazy import lazy_pattern


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PLACEHOLDER_WORDS = _words(
    "password passwd passphrase pass pwd secret token apikey api_key key credentials username user "
    "login changeme change_me change-me changeit todo tbd fixme none null nil undefined true false "
    "yes no on off string str int bool boolean number bytes object required optional empty redacted "
    "masked hidden removed example sample dummy placeholder foo bar baz foobar test secretvalue "
    "notset unset default value env bearer basic oauth jwt header cookie query body text any void "
    "self this input output"
)
_PLACEHOLDER_PARTS = (
    "your-", "your_", "yourap", "yourse", "yourtok", "<your", "my-api", "replace", "insert-", "insert_", "-here",
    "_here", "changeme", "change-me", "change_me", "placeholder", "redacted", "fill-in", "fill_in", "dummy-", "dummy_",
    "goes-here", "todo:",
)  # fmt: skip
_REFERENCE_STARTS = (
    "$",
    "<",
    "{{",
    "{%",
    "%(",
    "%s",
    "%{",
    "!vault",
    "!ref",
    "!sub",
    "!secret",
    "!env",
    "@{",
    "op://",
    "ENC[",
    "vault:",
    "env:",
    "arn:",
    "file:",
    "ref+",
)
_MASK = frozenset("*xX•.…-#_")
_URL = lazy_pattern(r"[a-z][a-z0-9+.-]{1,20}://", re.ASCII)
_UUID = lazy_pattern(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE
)
_CALL = lazy_pattern(
    r"([A-Za-z_][A-Za-z_0-9]{0,40}(?:(?:\.|->|::)[A-Za-z_][A-Za-z_0-9]{0,40}){0,8})[(\[](?:.{0,400}?([)\]]))?",
    re.ASCII,
)
_CHAIN = lazy_pattern(r"[A-Za-z_$][A-Za-z0-9_$]{0,40}(?:(?:\.|->|::)[A-Za-z0-9_$]{1,40}){0,8}", re.ASCII)
#: A call whose quoted argument ended the value: `os.environ[`, `b64encode(f`.
_OPEN_CALL = lazy_pattern(
    r"[A-Za-z_$][A-Za-z0-9_$]{0,40}(?:(?:\.|->|::)[A-Za-z0-9_$]{1,40}){0,8}[(\[][bfru]{0,2}", re.ASCII
)
_DOTTED = lazy_pattern(
    r"[A-Za-z_][A-Za-z_]{0,40}[0-9]{0,2}(?:(?:\.|->|::)[A-Za-z_][A-Za-z_]{0,60}[0-9]{0,2}){1,8}", re.ASCII
)
_IDENTIFIER = lazy_pattern(r"[A-Za-z0-9_.:/\\@ ~+-]+", re.ASCII)
_WORD = lazy_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", re.ASCII)
_NUMBER = lazy_pattern(r"[0-9]+", re.ASCII)
_CONSONANTS = lazy_pattern(r"[b-df-hj-np-tv-xzB-DF-HJ-NP-TV-XZ]{6}")
_NAME_SEPARATOR = lazy_pattern(r"[:/ ]")
_NAME_WORDS = lazy_pattern(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])")
_SEPARATOR = lazy_pattern(r"[^A-Za-z]+")
_VOWEL = lazy_pattern(r"[aeiouyAEIOUY]")
_PATH = lazy_pattern(r"(?:~|\.{1,2}|[A-Za-z]:)?[/\\](?:[\w.@+-]{1,80}[/\\]){0,20}[\w.@+-]{0,80}", re.ASCII)
_NEXT_PAIR = lazy_pattern(rb"[,;&|]{1,2}[A-Za-z_][A-Za-z0-9_.\-]{0,40}=|&&|\|\|")
_CODE_HEAD = lazy_pattern(rb"[A-Za-z_$][A-Za-z0-9_$.]{0,80}[,;)}\]]")
_SECRET_NAME = lazy_pattern(
    r"(?:pass(?:wor[dt]|wd|phrase|code)?|pwd|pw|psk|secret|token|key|credentials?|_pat|_auth|jwt|dsn)$",
    re.IGNORECASE,
)
_SECRET_ENDINGS = tuple(
    _words(
        "word passwort pass wd pw phrase code psk secret token key credential credentials _pat _auth jwt dsn"
    )
)
_NAME_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-/: "

_NOT_KEYS = _words(
    "primary foreign public cache partition sort index idempotency registry composite unique hash "
    "object map dict row column shortcut hot arrow routing group natural surrogate dedup query "
    "storage_path react list item meta state session_state config settings setting feature message "
    "i18n translation locale up down left right enter shift ctrl alt escape tab sort_by order "
    "publishable site by a the this that"
)
_KEY_NAMES = _words(
    "api apikey access secret private auth account encryption signing master shared role app "
    "application client service session deploy license licence storage admin server root rest webhook "
    "hmac aes jwt cookie decrypt decryption host age age_secret subscription ssh tls ssl consumer "
    "integration ingest write"
)


_GLUED = ("api", "access", "secret", "private", "auth", "account", "encryption", "signing", "storage")


def is_blank_token(value: bytes) -> bool:
    """A vendor's prefix with a mask or a sample behind it: `ghp_xxxx…`, `AKIA…EXAMPLE`."""
    text = value.decode("utf-8", "replace")
    if text.endswith("EXAMPLE") or "..." in text:
        return True
    tail = text[-16:]
    return len(set(tail)) <= 2 or is_placeholder(value)


def is_placeholder(value: bytes) -> bool:
    """Masks, `changeme`, `<your key>`, `${VAR}`, `{password}`, `os.environ[…]`."""
    text = value.decode("utf-8", "replace").strip()
    lowered = text.lower()
    if text.startswith("AKIA") and text.endswith("EXAMPLE"):
        return True
    if len(text) < 2 or lowered in _PLACEHOLDER_WORDS or lowered.startswith(_REFERENCE_STARTS):
        return True
    if (text[0] == "{" and "}" in text) or (text[0] == "%" and text[-1] == "%"):
        return True
    if text.startswith(("[REDACTED:", "(")) or (text[0] == "[" and text[-1] == "]"):
        return True
    if set(text) <= _MASK or "***" in text or "..." in text or "…" in text or "xxxxx" in lowered:
        return True
    return any(part in lowered for part in _PLACEHOLDER_PARTS)


def is_reference(text: str) -> bool:
    """Code that fetches a value, a path, a URL without a password: not the value itself."""
    if _URL.match(text.lower()) or (_DOTTED.fullmatch(text) and is_wordish(text)):
        return True
    if _OPEN_CALL.fullmatch(text):
        return True
    call = _CALL.match(text)
    if call is not None:
        name = call.group(1)
        # Without its closing bracket a call is only told from random text by its words.
        if _is_chain(name) if call.group(2) else is_wordish(name):
            return True
    return (
        len(text) < 256 and ("/" in text or "\\" in text) and bool(_PATH.fullmatch(text)) and is_wordish(text)
    )


def _is_chain(text: str) -> bool:
    """Names joined by dots, as in front of a call or an index; minified ones too."""
    return (
        len(text) < 60
        and _CHAIN.fullmatch(text) is not None
        and ((text.isascii() and not _NUMBER.search(text)) or is_wordish(text))
    )


def is_wordish(text: str) -> bool:
    """Reads like an identifier or a phrase: words of some length, joined by the usual signs, few numbers.

    Random base-62 text changes its case and kind every one or two characters; words do not.
    """
    if len(text) > 200 or not _IDENTIFIER.fullmatch(text):
        return False
    words: list[str] = _WORD.findall(text)
    numbers = _NUMBER.findall(text)
    letters = sum(map(len, words))
    if not words or letters < 3 * len(words) or len(numbers) > 2 or sum(map(len, numbers)) * 3 > letters:
        return False
    if any(
        len(chunk) >= 16 and len(chunk) < 4 * len(_WORD.findall(chunk)) for chunk in _SEPARATOR.split(text)
    ):
        return False
    return all(len(word) < 4 or (_VOWEL.search(word) and not _CONSONANTS.search(word)) for word in words)


def is_strong(value: bytes) -> bool:
    """Looks generated: long enough, letters and digits mixed, no identifier, no UUID."""
    text = value.decode("utf-8", "replace")
    if len(text) < 8 or is_placeholder(value) or is_reference(text) or _UUID.fullmatch(text):
        return False
    has_digit = any(char.isdigit() for char in text)
    has_letter = any(char.isalpha() for char in text)
    if has_digit and has_letter:
        return not is_wordish(text)
    if has_letter and len(text) >= 16:
        return not is_wordish(text) and len(set(text)) >= 10
    return False


def name_before(data: bytes, start: int, end: int) -> str | None:
    """The whole name whose last word was matched; None when it is no name of a secret.

    `start` and `end` delimit the keyword and what follows it up to the value.
    """
    before = data[max(0, start - 48) : start]
    head = before[len(before.rstrip(_NAME_BYTES)) :].decode()
    keyword = data[start:end].decode("utf-8", "replace").rstrip(" \t=:>\"'`]\\")
    spaced = head.rsplit(": ", 1)[-1]
    if (head[-1:] == ":" and head[-2:-1].isalnum()) or "arn:" in head:
        return None
    name = _NAME_SEPARATOR.split(spaced)[-1] + keyword
    if " " in spaced and name.lower() == keyword.lower():
        name = spaced.rstrip(" ").split(" ")[-1] + " " + keyword if spaced.endswith(" ") else name
    lowered = keyword.lower()
    last = head[-1:]
    if (
        lowered in ("pass", "pwd", "pw", "psk", "jwt", "dsn", "pat")
        and last.isalpha()
        and not (last.islower() and keyword[0].isupper())
    ):
        return None  # the end of another word: compass, bypass
    if lowered.split("_")[0] == "key" and not _is_key_name(head):
        return None
    return name


def _is_key_name(head: str) -> bool:
    """Whether `<head>key` names a secret: `api_key`, `ENCRYPTION_KEY`, but not `primary_key` or a bare `key`."""
    words = [word.lower() for word in _NAME_WORDS.split(head) if word]
    if not words or words[-1] in _NOT_KEYS:
        return False
    if words[-1] in _KEY_NAMES or words[-1].endswith(_GLUED):
        return True
    return head.endswith("_") and head.rsplit(" ", 1)[-1].isupper()


def is_assigned_secret(name: str, value: bytes, *, quoted: bool) -> bool:
    """Whether `value` behind `name` is a secret. Passwords may be short, tokens may not be words."""
    if is_placeholder(value) or (_CODE_HEAD.match(value) and not quoted):
        return False
    text = value.decode("utf-8", "replace")
    if (not quoted and is_reference(text)) or (quoted and _CALL.fullmatch(text)):
        return False
    if quoted and (_URL.match(text.lower()) or (_DOTTED.fullmatch(text) and is_wordish(text))):
        return False
    if _is_password_name(name.lower()):
        return _is_password(name, text, quoted=quoted)
    if len(text) < 8 or " " in text.strip():
        return False
    has_digit = any(char.isdigit() for char in text)
    if has_digit and any(char.isalpha() for char in text):
        return not is_wordish(text) and not is_reference(text)
    if has_digit:
        return len(text) >= 12 and "." not in text and name.isupper()
    return len(text) >= 16 and not is_wordish(text) and len(set(text)) >= 8


def _is_password_name(lowered: str) -> bool:
    return "pass" in lowered or lowered.endswith(("pwd", "pw", "psk")) or "pwd_" in lowered


def _is_password(name: str, text: str, *, quoted: bool) -> bool:
    if len(text) < 4 or text.strip().lower() == name.strip().lower():
        return False
    if quoted and " " in text:
        return False  # a label or a message, far more often than a passphrase
    has_digit = any(char.isdigit() for char in text)
    has_letter = any(char.isalpha() for char in text)
    has_symbol = any(not char.isalnum() for char in text)
    if has_digit and (has_letter or has_symbol):
        return len(text) >= 6
    if has_digit:
        return len(text) >= 6
    if has_symbol:
        return len(text) >= 6 and not is_wordish(text)
    if len(text) >= 10 and not is_wordish(text):
        return True
    return len(text) >= 6 and (name.isupper() or quoted) and not (text[0].isupper() and text[1:].islower())


def is_secret_name(name: str) -> bool:
    """Whether a JSON key names a secret."""
    if not name.lower().endswith(_SECRET_ENDINGS):
        return False
    found = _SECRET_NAME.search(name)
    return (
        found is not None
        and name_before(name.encode("utf-8", "replace"), found.start(), len(name)) is not None
    )


def is_secret_number(name: str, number: float) -> bool:
    """A PIN or a password of digits, sent as a number."""
    lowered = name.lower()
    return (
        not isinstance(number, bool) and lowered.endswith(("password", "passcode", "pin")) and number >= 1000
    )


def cut_at_next_pair(value: bytes) -> int:
    """How much of a bare value comes before the next `name=` of the same line."""
    found = _NEXT_PAIR.search(value)
    return found.start() if found else len(value)
