"""Makes invented secrets and harmless look-alikes from the templates beside it, and counts what a redactor does.

Templates are lines of `kind <tab> text`. «…» marks what is watched: in the lists of secrets it must
not be left, in the lists of plain text it must be left unchanged. ⟨…⟩ is a field, filled from a seeded
generator: ⟨hex:32⟩ ⟨an:36⟩ and their like are random letters of an alphabet, ⟨pick:a|b⟩ is a choice.
Nothing made here was ever issued by anyone, and what is made is never written into the repository:
code hosts would refuse it, rightly.
"""

from __future__ import annotations

import base64
import json
import random
import re
import string
import textwrap
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from memory_core.domain import token

TEMPLATES = Path(__file__).parent / "templates"
LETTERS = string.ascii_letters
ALPHABETS = {
    "an": LETTERS + string.digits,
    "b32": string.ascii_uppercase + "234567",
    "b64": LETTERS + string.digits + "+/",
    "dig": "123456789",
    "hex": string.digits + "abcdef",
    "letters": LETTERS,
    "lowdig": string.ascii_lowercase + string.digits,
    "lw": string.ascii_lowercase,
    "sym": LETTERS + string.digits + "!@#%^&*(",
    "updig": string.ascii_uppercase + string.digits,
    "url": LETTERS + string.digits + "-_",
}
NOISE = (
    "Running 214 tests...",
    "INFO  worker ready pid=4121",
    "I'll check how the deploy script reads its settings.",
    "The build fails because the variable is unset in CI.",
    "src/app.py:88: note: see above",
    "Done in 3.42s.",
)
_FIELD = re.compile("⟨([^⟨⟩]*)⟩")
_MARK = re.compile("«([^«»]*)»", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Sample:
    kind: str
    text: str
    watched: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Score:
    total: int
    #: Kind → how many went wrong: a secret left, or a plain text changed.
    wrong: Counter[str]

    @property
    def share_right(self) -> float:
        return 1 - self.wrong.total() / self.total

    def __str__(self) -> str:
        return f"{self.total - self.wrong.total()}/{self.total} = {self.share_right:.4f}, wrong: {dict(self.wrong)}"


class Maker:
    """Fills templates; the same seed makes the same samples."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def core(self, per_kind: int) -> list[Sample]:
        """Named values in the usual places, and texts that hold a secret by themselves."""
        contexts = _lines("contexts.txt")
        samples: list[Sample] = []
        for line in _lines("named.txt"):
            kind, value, names = line.split("\t")
            for _ in range(per_kind):
                context = self._random.choice(contexts).replace("⟨n⟩", self._random.choice(names.split()))
                samples.append(self.sample(kind, context.replace("⟨v⟩", value), noise=True))
        return samples + self.listed("core.txt", per_kind, noise=True)

    def listed(self, file: str, per_template: int, *, noise: bool = False) -> list[Sample]:
        return [
            self.sample(*line.split("\t", 1), noise=noise)
            for line in _lines(file)
            for _ in range(per_template)
        ]

    def sample(self, kind: str, template: str, *, noise: bool = False) -> Sample:
        # Escapes of the template first, so that what a field makes is not touched.
        marked = self._fill(
            template.replace("\\\\", "\0").replace("\\n", "\n").replace("\\t", "\t").replace("\0", "\\")
        )
        text = _MARK.sub(r"\1", marked)
        watched = tuple(_MARK.findall(marked))
        if kind == "pem_in_json":
            watched = tuple(part for part in re.split(r"\\n", text) if len(part) > 40)[:3]
        if noise and not text.startswith(("{", " ")):
            text = f"{self._random.choice(NOISE)}\n{text}\n{self._random.choice(NOISE)}"
        return Sample(kind=kind, text=text, watched=watched)

    def _fill(self, template: str) -> str:
        while (field := _FIELD.search(template)) is not None:
            name, _, argument = field.group(1).partition(":")
            template = template[: field.start()] + self._field(name, argument) + template[field.end() :]
        return template

    def letters(self, alphabet: str, length: int) -> str:
        return "".join(self._random.choice(alphabet) for _ in range(length))

    def _field(self, name: str, argument: str) -> str:
        if name in ALPHABETS:
            return self.letters(ALPHABETS[name], int(argument))
        if name == "pick":
            choices = argument.replace("\\|", "\0").split("|")
            return self._random.choice(choices).replace("\0", "|")
        return self._makers()[name](argument)

    def _makers(self) -> dict[str, Callable[[str], str]]:
        return {
            "b64of": lambda text: base64.b64encode(text.encode()).decode(),
            "esc": lambda _: "\x1b",
            "host": lambda _: self._random.choice(
                ("db.internal.acme.test", "10.2.3.4", "localhost", "pg-1.acme.test")
            ),
            "json": lambda text: json.dumps(text, ensure_ascii=False),
            "jwt": lambda _: self._jwt(),
            "mdt": lambda _: token.mint(self._random.randbytes).text,
            "nil": lambda _: "",
            "pem": self._pem,
            "pw": lambda _: self._password(),
            "rawb64": lambda size: base64.b64encode(self._random.randbytes(int(size))).decode(),
            "repeat": lambda text: text.rpartition(":")[0] * int(text.rpartition(":")[2]),
            "upw": lambda _: self.letters(ALPHABETS["url"] + ".~", self._random.randint(12, 22)),
            "user": lambda _: self._random.choice(("app", "deploy", "svc_reports", "billing", "admin")),
            "uuid": lambda _: str(uuid.UUID(int=self._random.getrandbits(128), version=4)),
            "zw": lambda _: "\u200b",
        }

    def _password(self) -> str:
        """What people make up: letters, one sign, letters, a digit."""
        head = self.letters(ALPHABETS["an"], self._random.randint(5, 8))
        tail = self.letters(ALPHABETS["an"], self._random.randint(4, 7))
        return head + self._random.choice("!%^*_.") + tail + self._random.choice(string.digits)

    def _jwt(self) -> str:
        def part(value: object) -> str:
            return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

        claims = {"sub": self.letters(ALPHABETS["dig"], 10), "iss": "auth.acme.test", "role": "admin"}
        return f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{part(claims)}.{self.letters(ALPHABETS['url'], 43)}"

    def _pem(self, argument: str) -> str:
        label, _, size = argument.partition(":")
        body = textwrap.fill(base64.b64encode(self._random.randbytes(int(size))).decode(), 64)
        return f"-----BEGIN {label}-----\n{body}\n-----END {label}-----"


def leaks(secret: str, text: str) -> bool:
    """Whether the secret is left, or its last two thirds, or the middle of a long one."""
    length = len(secret)
    if secret in text or (length >= 18 and secret[length // 3 :] in text):
        return True
    return length >= 60 and secret[length // 2 - 12 : length // 2 + 12] in text


def score_secrets(samples: list[Sample], redact: Callable[[str], str]) -> Score:
    wrong = Counter(s.kind for s in samples if any(leaks(secret, redact(s.text)) for secret in s.watched))
    return Score(total=len(samples), wrong=wrong)


def score_plain(samples: list[Sample], redact: Callable[[str], str]) -> Score:
    wrong = Counter(s.kind for s in samples if any(part not in redact(s.text) for part in s.watched))
    return Score(total=len(samples), wrong=wrong)


def _lines(file: str) -> list[str]:
    lines = (TEMPLATES / file).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("# ")]
