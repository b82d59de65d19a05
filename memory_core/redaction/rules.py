"""The one rule file that client and server share: what a secret looks like.

Patterns are written in the common subset of Python's `re` and RE2 (no look-around, no back-references)
and are matched against UTF-8 bytes. Every open quantifier stands on one character class at the end of
its pattern, so that a match never fails after a long run; all others are bounded. That keeps `re`
linear as well. Standard library only; a pattern is compiled when its anchor is first seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from memory_core.redaction import values

#: Offsets into the bytes that were scanned.
Span = tuple[int, int]
#: (text, where the pattern matched, where its first group did, or (-1, -1)) → the secrets in it.
Take = Callable[[bytes, Span, Span], Iterable[Span]]


class Rule:
    """One kind of secret: cheap anchors decide whether the pattern is run at all."""

    __slots__ = ("anchors", "fold", "kind", "pattern", "take")

    def __init__(self, kind: str, anchors: str, pattern: str, take: Take, *, fold: bool = False) -> None:
        self.kind = kind
        #: One of these must occur in the text. Separated by blanks.
        self.anchors = tuple(anchor.encode() for anchor in anchors.split(" "))
        self.pattern = pattern.encode()
        self.take = take
        #: Match against the text in lower case; anchors and pattern are lower case then.
        self.fold = fold


def whole(data: bytes, found: Span, _inner: Span) -> Iterable[Span]:
    """The whole match, unless it continues a longer word."""
    if _is_bounded(data, found[0]) and not values.is_blank_token(data[found[0] : found[1]]):
        yield found[0], found[1]


def group(_data: bytes, _found: Span, inner: Span) -> Iterable[Span]:
    """The first group, whatever it holds."""
    yield inner[0], inner[1]


def strong_group(data: bytes, _found: Span, inner: Span) -> Iterable[Span]:
    """The first group, if it looks like a made-up value and not like a word or a reference."""
    if values.is_strong(data[inner[0] : inner[1]]):
        yield inner[0], inner[1]


def _is_bounded(data: bytes, start: int) -> bool:
    """Whether a token may begin here: not inside a word. `\\n` and `%3A` in front are escapes, not words."""
    before = data[max(0, start - 3) : start]
    if not before or not (before[-1:].isalnum() or before[-1:] == b"_"):
        return True
    return before[-2:] in (b"\\n", b"\\t", b"\\r") or before[:1] == b"%"


# --- vendor tokens: (kind, anchors, pattern) ----------------------------------------------------

_SHAPES: tuple[tuple[str, str, str], ...] = (
    ("memoryd_token", "mdt_", r"mdt_[0-9a-z]{8}_[A-Za-z0-9_-]{20,}"),
    ("anthropic_key", "sk-ant-", r"sk-ant-[a-z0-9]{2,12}-[A-Za-z0-9_-]{20,}"),
    ("openai_key", "sk-", r"sk-(?:(?:proj|svcacct|admin|or-v1|lf|None|service)-)?[A-Za-z0-9_-]{20,}"),
    ("github_token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{20,}"),
    ("github_token", "github_pat_", r"github_pat_[A-Za-z0-9_]{20,}"),
    (
        "gitlab_token",
        "glpat- glrt- gldt- glptt- glsoat- glft- glimt- glagent- glcbt- gloas- glffct- glwt-",
        r"gl(?:pat|rt|dt|ptt|soat|ft|imt|agent|cbt|oas|ffct|wt)-[A-Za-z0-9_.-]{18,}",
    ),
    (
        "slack_token",
        "xoxb- xoxp- xoxa- xoxo- xoxr- xoxs- xoxe xoxc- xoxd-",
        r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9%-]{10,}",
    ),
    ("slack_token", "xapp-", r"xapp-[0-9A-Za-z-]{10,}"),
    ("stripe_key", "sk_live_ rk_live_ sk_test_ rk_test_", r"[sr]k_(?:live|test)_[0-9A-Za-z]{16,}"),
    ("webhook_secret", "whsec_", r"whsec_[A-Za-z0-9+/=]{16,}"),
    ("aws_access_key", "AKIA ASIA ABIA ACCA", r"A(?:KI|SI|BI|CC)A[A-Z2-7]{16}"),
    ("aws_bedrock_key", "ABSK", r"ABSK[A-Za-z0-9+/=]{40,}"),
    ("aws_session_token", "IQoJb3JpZ2lu", r"IQoJb3JpZ2lu[A-Za-z0-9+/=%]{60,}"),
    ("google_key", "AIza", r"AIza[A-Za-z0-9_-]{30,}"),
    ("google_oauth", "GOCSPX-", r"GOCSPX-[A-Za-z0-9_-]{20,}"),
    ("google_oauth", "ya29.", r"ya29\.[A-Za-z0-9_.-]{30,}"),
    ("azure_secret", "Q~", r"[A-Za-z0-9_.~-]{3}[0-9]Q~[A-Za-z0-9_.~-]{31,}"),
    ("huggingface_token", "hf_ api_org_", r"(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    ("xai_key", "xai-", r"xai-[A-Za-z0-9]{40,}"),
    ("groq_key", "gsk_", r"gsk_[A-Za-z0-9]{30,}"),
    ("perplexity_key", "pplx-", r"pplx-[A-Za-z0-9]{30,}"),
    ("replicate_key", "r8_", r"r8_[A-Za-z0-9]{30,}"),
    ("nvidia_key", "nvapi-", r"nvapi-[A-Za-z0-9_-]{30,}"),
    ("langsmith_key", "lsv2_", r"lsv2_[a-z]{2}_[0-9a-f]{32}[0-9a-f_]{0,16}"),
    ("npm_token", "npm_", r"npm_[A-Za-z0-9]{30,}"),
    ("pypi_token", "pypi-", r"pypi-[A-Za-z0-9_-]{40,}"),
    ("rubygems_key", "rubygems_", r"rubygems_[0-9a-f]{32,}"),
    ("docker_token", "dckr_pat_ dckr_oat_", r"dckr_[po]at_[A-Za-z0-9_-]{20,}"),
    ("telegram_token", ":AA", r"(?:bot)?[0-9]{8,10}:AA[A-Za-z0-9_-]{32,34}"),
    ("discord_token", ".", r"[MNO][A-Za-z0-9]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}"),
    ("sendgrid_key", "SG.", r"SG\.[A-Za-z0-9_-]{16,40}\.[A-Za-z0-9_-]{30,}"),
    ("twilio_key", "SK", r"SK[0-9a-f]{32}"),
    ("mailgun_key", "key-", r"key-[0-9a-f]{32}"),
    ("mailchimp_key", "-us", r"[0-9a-f]{32}-us[0-9]{1,2}"),
    ("digitalocean_token", "dop_v1_ doo_v1_ dor_v1_", r"do[por]_v1_[0-9a-f]{40,}"),
    ("heroku_key", "HRKU-", r"HRKU-[A-Za-z0-9_-]{30,}"),
    ("vault_token", "hvs. hvb. hvr.", r"hv[sbr]\.[A-Za-z0-9_-]{20,}"),
    ("terraform_token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}"),
    ("databricks_token", "dapi", r"dapi[0-9a-f]{32}"),
    ("sentry_token", "sntryu_ sntrys_", r"sntry[us]_[A-Za-z0-9+/=_-]{40,}"),
    ("grafana_token", "glsa_ glc_", r"gl(?:sa|c)_[A-Za-z0-9+/=_]{30,}"),
    ("newrelic_key", "NRAK- NRII- NRJS-", r"NR(?:AK|II|JS)-[A-Za-z0-9_-]{19,}"),
    ("shopify_token", "shpat_ shpss_ shpca_ shppa_", r"shp(?:at|ss|ca|pa)_[0-9a-fA-F]{32,}"),
    ("square_token", "EAAA sq0", r"(?:EAAA|sq0[a-z]{3}-)[A-Za-z0-9_-]{22,}"),
    ("notion_token", "ntn_", r"ntn_[A-Za-z0-9]{40,}"),
    ("linear_key", "lin_api_ lin_oauth_", r"lin_(?:api|oauth)_[A-Za-z0-9]{30,}"),
    ("atlassian_token", "ATATT3 ATCTT3", r"AT[AC]TT3[A-Za-z0-9_=-]{60,}"),
    ("supabase_token", "sbp_ sb_secret_", r"(?:sbp|sb_secret)_[A-Za-z0-9_-]{30,}"),
    ("onepassword_token", "ops_eyJ", r"ops_eyJ[A-Za-z0-9+/=_-]{60,}"),
    ("pulumi_token", "pul-", r"pul-[0-9a-f]{40}"),
    ("age_key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{40,}"),
    ("tailscale_key", "tskey-", r"tskey-[a-z]{2,12}-[A-Za-z0-9-]{20,}"),
    ("figma_token", "figd_", r"figd_[A-Za-z0-9_-]{30,}"),
    ("postman_key", "PMAK-", r"PMAK-[A-Za-z0-9-]{40,}"),
    ("fly_token", "fm2_ FlyV1", r"(?:FlyV1 )?fm[12][ar]?_[A-Za-z0-9+/=]{60,}"),
)

# --- shapes in which a place says that a secret stands here -------------------------------------

#: What may stand between a name and its value: quotes, a closing bracket, `=`, `:`, `:=` or `=>`.
_ASSIGN = r"(?:\\{0,3}[\"'`\]]){0,3}[ \t]{0,8}(?::=|=>|=|:[ \t]{0,2}(?:&(?:'static )?)?(?:string|str|any|bytes)(?:[ \t]?\|[ \t]?none)?[ \t]{0,2}=|:)[ \t]{0,8}"

_NAMES = (
    r"(?:pass(?:wor[dt]|wd|phrase|code)?|pwd|pw|psk|secret|token|key|credentials?|_pat|_auth|jwt|dsn)"
    r"(?:_(?:base|prod|production|dev|test|staging|live|old|new|value|sid|[0-9]{1,2}))?"
)

#: A query parameter or connection-string part that is a signature.
_SIGNATURES = r"[?&;](?:sig|signature|x-amz-signature|x-goog-signature|hmac|auth)=([a-z0-9%+/=_-]{20,})"

CONTEXT: tuple[Rule, ...] = (
    Rule(
        "private_key",
        "-----BEGIN",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----",
        values.pem_block,
    ),
    Rule("private_key", "Private-Lines:", r"Private-Lines: [0-9]{1,3}", values.putty_block),
    Rule("jwt", "eyJ", r"eyJ[A-Za-z0-9_-]{6,}[.][A-Za-z0-9_.-]{16,}", values.jwt),
    Rule("url_password", "://", r"://[^\s/:@\"'<>]{0,64}:([^\s/\"'<>]{1,256})@", values.url_password),
    Rule("signature", "sig= signature= hmac= auth=", _SIGNATURES, group, fold=True),
    Rule(
        "webhook_url",
        "hooks.slack.com/ discord.com/api/webhooks/ discordapp.com/api/webhooks/ webhook.office.com/",
        r"(?:hooks\.slack\.com/[a-z]{6,12}|discord(?:app)?\.com/api/webhooks|webhook\.office\.com/webhookb2)/([a-z0-9/_@-]{24,})",
        group,
        fold=True,
    ),
    Rule(
        "authorization",
        "authorization",
        r"authorization"
        + _ASSIGN
        + r"[\\\"'`]{0,4}(?:(?:bearer|basic|token|digest|bot|apikey|negotiate|splunk)[ \t]{1,4})?([a-z0-9._~+/=:-]{8,})",
        strong_group,
        fold=True,
    ),
    Rule("bearer", "bearer", r"bearer[ \t]{1,4}([a-z0-9._~+/=-]{12,})", strong_group, fold=True),
    Rule("cookie", "cookie", r"cookie2?" + _ASSIGN + r"([^\n]+)", values.cookies, fold=True),
    Rule(
        "cookie",
        "sess .sid= curl --cookie",
        r"(?:sess(?:ion)?[a-z_-]{0,8}|\.sid|-b ['\"]?[a-z0-9_.-]{1,40}|--cookie[= ]['\"]?[a-z0-9_.-]{1,40})=([a-z0-9%._~+/=-]{16,})",
        strong_group,
        fold=True,
    ),
    Rule(
        "flag",
        "--",
        r"--(?:[a-z]{2,16}-){0,2}(?:password|passwd|pass|passphrase|token|secret|key|api-?key)(?:=|[ \t]{1,4})",
        values.flag_value,
        fold=True,
    ),
    Rule(
        "password",
        "storepass keypass",
        r"-(?:src|dest)?(?:store|key)pass[ \t]{1,4}",
        values.argument,
        fold=True,
    ),
    Rule("password", "unlock-keychain", r"unlock-keychain[ \t]{1,4}-p[ \t]{1,4}", values.argument, fold=True),
    Rule("password", "sshpass", r"sshpass[ \t]{1,4}-p[ \t]{0,4}", values.argument, fold=True),
    Rule(
        "password",
        "mysql mariadb",
        r"(?:mysql|mariadb)[a-z]{0,8}[ \t][^\n|;]{0,120}?[ \t]-p",
        values.argument,
        fold=True,
    ),
    Rule("password", "redis-cli", r"redis-cli[ \t][^\n|;]{0,120}?-a[ \t]{1,4}", values.argument, fold=True),
    Rule("password", "login", r"login[ \t][^\n|;]{0,120}?-p[ \t]{1,4}", values.argument, fold=True),
    Rule(
        "password",
        "ldap mongo zip openssl sqlcmd",
        r"(?:ldap[a-z]{3,8}|mongo(?:sh|dump|export|restore)?|zip|openssl|sqlcmd)[ \t][^\n|;]{0,160}?[ \t]-(?:w|p|k|passin pass:|passout pass:)[ \t]{0,4}",
        values.argument,
        fold=True,
    ),
    Rule(
        "password",
        "htpasswd",
        r"htpasswd[ \t]{1,4}-[a-z]{0,6}b[a-z]{0,6}[ \t]{1,4}[^\s]{1,100}[ \t]{1,4}[^\s]{1,64}[ \t]{1,4}",
        values.argument,
        fold=True,
    ),
    Rule(
        "password",
        "curl wget http",
        r"(?:curl|http|wget)[ \t][^\n|;]{0,400}?(?:-u|--user|--proxy-user|-a)(?:=|[ \t]{1,4})",
        values.user_and_password,
        fold=True,
    ),
    Rule(
        "secret",
        "pass pwd pw psk secret token key credential _pat _auth jwt dsn",
        _NAMES + _ASSIGN,
        values.assigned,
        fold=True,
    ),
    Rule(
        "secret",
        "pass pwd secret token key",
        _NAMES + r"[\"']?>[ \t]{0,4}",
        values.element,
        fold=True,
    ),
    Rule(
        "secret",
        "pass pwd secret token key",
        _NAMES + r"[\"'`][ \t]{0,4}(?:,|to)[ \t]{0,24}[\"'`]",
        values.second_argument,
        fold=True,
    ),
    Rule(
        "secret",
        "secret token key",
        r"(?:secret|token|key)(?:[ \t]{1,4}(?:for|of|to)(?:[ \t]{1,4}[a-z0-9_.'-]{1,24}){1,4})?(?:[ \t]{1,4}(?:is|was|to))?[ \t]{1,4}[\"'`]?[a-z0-9_+/=.~-]{16,}",
        values.spoken_token,
        fold=True,
    ),
)

RULES: tuple[Rule, ...] = (
    tuple(Rule(kind, anchors, pattern, whole) for kind, anchors, pattern in _SHAPES) + CONTEXT
)


def compile_with_re(rule: Rule) -> re.Pattern[bytes]:
    return re.compile(rule.pattern)
