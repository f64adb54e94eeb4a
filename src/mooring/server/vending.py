"""Credentials of the store for clients: short-lived, and good for one table.

The server has a role of its own taken on for a client, limited by a policy to the table's files: to
read them, or to change them, too, where the client may. What is handed out ends by itself, and is
handed out again until shortly before. The server's own credentials are nobody else's.

What else clients are told of a store is what is known to be harmless: see `harmless_options`.

Spec: lance-rest-openapi, "DescribeTableResponse"; iceberg-rest-openapi, "StorageCredential".
"""

from __future__ import annotations

import json
import re
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mooring.clock import SystemClock
from mooring.config import is_secret
from mooring.errors import InvalidInputError, MissingExtraError, ServiceUnavailableError
from mooring.identifiers import quote
from mooring.tables.api import EXPIRES_AT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.clock import Clock

__all__ = ["Vended", "VendingSettings", "Vendor", "harmless_options", "policy_for"]

_ROLE = re.compile(r"arn:(?P<partition>aws[a-z-]*):iam::\d{12}:role/[\w+=,.@/-]{1,512}")
_SHORTEST_S, _LONGEST_S = 900, 43_200
_SPARE_MS = 300_000
_MOST_KEPT = 4096
_TIMEOUT_S = 10
_READ = ["s3:GetObject", "s3:GetObjectVersion"]
_WRITE = [
    "s3:PutObject",
    "s3:DeleteObject",
    "s3:AbortMultipartUpload",
    "s3:ListMultipartUploadParts",
]
# By these Lance takes the server's own key, which takes on the role.
_OWN: Mapping[str, str] = {
    "aws_access_key_id": "aws_access_key_id",
    "access_key_id": "aws_access_key_id",
    "aws_secret_access_key": "aws_secret_access_key",
    "secret_access_key": "aws_secret_access_key",
    "aws_session_token": "aws_session_token",
    "aws_token": "aws_session_token",
    "session_token": "aws_session_token",
    "token": "aws_session_token",
}
_REGIONS = ("aws_region", "region", "aws_default_region")
# What tells nothing but where a store is and how it is spoken to; whatever is not here stays here.
_HARMLESS = frozenset(
    {
        "account_name",
        "allow_http",
        "aws_allow_http",
        "aws_default_region",
        "aws_endpoint",
        "aws_endpoint_url",
        "aws_region",
        "aws_request_payer",
        "aws_s3_express",
        "aws_unsigned_payload",
        "aws_virtual_hosted_style_request",
        "azure_endpoint",
        "azure_storage_account_name",
        "azure_storage_endpoint",
        "azure_storage_use_emulator",
        "azure_use_fabric_endpoint",
        "client_max_retries",
        "connect_timeout",
        "default_region",
        "download_retry_count",
        "endpoint",
        "endpoint_url",
        "google_base_url",
        "region",
        "request_payer",
        "request_timeout",
        "s3_express",
        "timeout",
        "unsigned_payload",
        "use_fabric_endpoint",
        "virtual_hosted_style_request",
    }
)


@dataclass(frozen=True, slots=True)
class VendingSettings:
    """How clients get credentials of the store.

    Attributes:
        role: Which role is taken on for them.
        duration_s: How long credentials are good for.
        sts_endpoint: Who is asked, where that is not Amazon.
    """

    role: str
    duration_s: int = 3600
    sts_endpoint: str | None = None

    def check(self) -> None:
        """Refuse what Amazon would.

        Raises:
            InvalidInputError: it would.
        """
        if not _ROLE.fullmatch(self.role):
            msg = (
                f"{quote(self.role)} is no role: one is written arn:aws:iam::123456789012:role/NAME"
            )
            raise InvalidInputError(msg)
        if not _SHORTEST_S <= self.duration_s <= _LONGEST_S:
            msg = f"credentials are good for {_SHORTEST_S} to {_LONGEST_S} s, not {self.duration_s}"
            raise InvalidInputError(msg)

    @property
    def partition(self) -> str:
        """Which of Amazon's worlds the role is in."""
        return self.role.split(":")[1]


@dataclass(frozen=True, slots=True)
class Vended:
    """Credentials for a table, as Lance names them.

    Attributes:
        options: Also says when they end.
        ends_at_ms: When they end.
    """

    options: Mapping[str, str] = field(repr=False)
    ends_at_ms: int


class Vendor:
    """Gives clients credentials; many threads may ask."""

    def __init__(self, settings: VendingSettings, clock: Clock | None = None) -> None:
        """Take on a role for clients.

        Raises:
            InvalidInputError: the settings make no sense.
            MissingExtraError: what asks Amazon is not installed.
        """
        settings.check()
        _require_boto()
        self._settings = settings
        self._clock = clock or SystemClock()
        self._kept: OrderedDict[tuple[str, str, bool], Vended] = OrderedDict()
        self._clients: dict[tuple[tuple[str, str], ...], Any] = {}
        self._lock = threading.Lock()

    def vend(
        self, location: str, options: Mapping[str, str], *, subject: str | None, writes: bool
    ) -> Vended | None:
        """Return credentials for a table; None where its store has none of this kind.

        Args:
            location: Where the table lies.
            options: How the server itself reaches it.
            subject: Who gets them: Amazon's own log tells it, too.
            writes: Whether they may change it.

        Raises:
            ServiceUnavailableError: the role cannot be taken on.
        """
        place = _place(location)
        if place is None:
            return None
        who = _session_name(subject)
        key = (location, who, writes)
        with self._lock:
            kept = self._kept.get(key)
        if kept is not None and kept.ends_at_ms - self._spare_ms > self._clock.now_ms():
            return kept
        policy = policy_for(*place, partition=self._settings.partition, writes=writes)
        fresh = self._ask(policy, options, who)
        with self._lock:
            self._kept[key] = fresh
            self._kept.move_to_end(key)
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return fresh

    @property
    def _spare_ms(self) -> int:
        """How long before their end credentials are no longer handed out."""
        return min(_SPARE_MS, self._settings.duration_s * 1000 // 3)

    def _ask(self, policy: str, options: Mapping[str, str], who: str) -> Vended:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            answer = self._client(options).assume_role(
                RoleArn=self._settings.role,
                RoleSessionName=who,
                Policy=policy,
                DurationSeconds=self._settings.duration_s,
            )
        except (BotoCoreError, ClientError) as exc:
            msg = f"credentials of the store are not to be had: {exc}"
            raise ServiceUnavailableError(msg) from exc
        found = answer["Credentials"]
        ends_at_ms = int(found["Expiration"].timestamp() * 1000)
        return Vended(
            {
                "aws_access_key_id": found["AccessKeyId"],
                "aws_secret_access_key": found["SecretAccessKey"],
                "aws_session_token": found["SessionToken"],
                EXPIRES_AT: str(ends_at_ms),
            },
            ends_at_ms,
        )

    def _client(self, options: Mapping[str, str]) -> Any:  # noqa: ANN401  # made at run time
        """Return what asks Amazon as the server itself: by its options, or as the machine may."""
        lowered = {key.lower(): value for key, value in options.items()}
        own = {_OWN[key]: value for key, value in lowered.items() if key in _OWN}
        region = next((lowered[key] for key in _REGIONS if key in lowered), None)
        key = tuple(sorted({**own, "region": region or ""}.items()))
        with self._lock:
            if key not in self._clients:
                self._clients[key] = self._connect(own, region)
            return self._clients[key]

    def _connect(self, own: Mapping[str, str], region: str | None) -> Any:  # noqa: ANN401  # made at run time
        import boto3
        from botocore.config import Config

        return boto3.session.Session().client(
            "sts",
            region_name=region or "us-east-1",
            endpoint_url=self._settings.sts_endpoint,
            config=Config(connect_timeout=_TIMEOUT_S, read_timeout=_TIMEOUT_S),
            **own,
        )


def policy_for(bucket: str, prefix: str, *, partition: str, writes: bool) -> str:
    """Return what limits credentials to a table's files."""
    bucket_arn = f"arn:{partition}:s3:::{_literal(bucket)}"
    below = _literal(prefix)
    statements = [
        {
            "Effect": "Allow",
            "Action": [*_READ, *(_WRITE if writes else ())],
            "Resource": f"{bucket_arn}/{below}/*",
        },
        {
            "Effect": "Allow",
            "Action": "s3:ListBucket",
            "Resource": bucket_arn,
            "Condition": {"StringLike": {"s3:prefix": [below, f"{below}/*"]}},
        },
        {
            # Files that the store encrypts: only by way of the store, and only what the role may.
            "Effect": "Allow",
            "Action": ["kms:Decrypt", *(["kms:GenerateDataKey"] if writes else [])],
            "Resource": "*",
            "Condition": {"StringLike": {"kms:ViaService": "s3.*.amazonaws.com*"}},
        },
    ]
    return json.dumps({"Version": "2012-10-17", "Statement": statements}, separators=(",", ":"))


def harmless_options(options: Mapping[str, str]) -> dict[str, str]:
    """Leave out of a store's options all that is not known to be harmless."""
    return {
        key: value
        for key, value in options.items()
        if key.lower() in _HARMLESS and not is_secret(key) and not _holds_user(value)
    }


def _holds_user(value: str) -> bool:
    return "://" in value and "@" in value


def _literal(text: str) -> str:
    """Write a text so that a policy takes none of it for a pattern or a variable."""
    return re.sub(r"[*?$]", lambda match: f"${{{match[0]}}}", text)


def _place(location: str) -> tuple[str, str] | None:
    """Return bucket and prefix of a table in S3; None for any other, and for a whole bucket."""
    parts = urlsplit(location, allow_fragments=False)
    _, _, rest = location.partition("://")
    bucket, _, prefix = rest.partition("/")
    prefix = prefix.strip("/")
    is_s3 = parts.scheme in {"s3", "s3a", "s3n"} and "@" not in bucket
    return (bucket, prefix) if is_s3 and bucket and prefix else None


def _session_name(subject: str | None) -> str:
    kept = re.sub(r"[^\w+=,.@-]", "-", subject or "anybody", flags=re.ASCII)
    return f"mooring-{kept}"[:64]


def _require_boto() -> None:
    try:
        import boto3  # noqa: F401  # looked for before it is needed
    except ModuleNotFoundError as exc:
        msg = f"to hand out credentials, package '{exc.name}' is needed: pip install 'mooring[aws]'"
        raise MissingExtraError(msg) from exc
