"""Sends requests to a server, and again where that can do no harm.

A read is repeated when it was not answered or the server was busy. A change is repeated only where
it never left, or where the server itself says that it did nothing. What is sent piece by piece is
gone once the first piece was taken, and never sent again.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache, partial
from secrets import SystemRandom
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from mooring.errors import InvalidInputError, MissingExtraError
from mooring.http.address import show_address
from mooring.http.authorization import Authorization, Grant
from mooring.http.failures import Ask, Refusal, TokenAsk, describe, no_answer, unreadable

try:
    import httpx2
    import stamina
except ImportError as exc:
    _msg = (
        "what speaks to servers is missing: pip install 'mooring[iceberg]' for Iceberg catalogs,"
        " pip install 'mooring[remote]' for Lance REST servers"
    )
    raise MissingExtraError(_msg) from exc

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from mooring.errors import MooringError
    from mooring.http.failures import Dialect
    from mooring.http.reach import Reach

__all__ = ["Sender"]

_ATTEMPTS, _PATIENCE_S = 5, 60.0
_FIRST_WAIT_S, _LONGEST_WAIT_S, _JITTER_S = 0.1, 5.0, 0.3
_LONGEST_RETRY_AFTER_S = 30.0
# Many servers close what was idle for 5 s; a change sent at that moment has no known outcome.
_CONNECTIONS, _KEPT_S = 100, 4.0
_REJECTED = {401, 419}
_BUSY = {429, 503}
_BETWEEN_FAILED = {502, 504}
_NEVER_SENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
)
_NO_TLS = "WRONG_VERSION_NUMBER"  # how OpenSSL calls an answer without TLS
_CANNOT_BE_SENT = (httpx2.UnsupportedProtocol, httpx2.LocalProtocolError, httpx2.InvalidURL)
_RANDOM = SystemRandom()

# Without a handler, Python would print each of its warnings about a retry.
logging.getLogger("stamina").addHandler(logging.NullHandler())


A = TypeVar("A", bound=Ask)
B = TypeVar("B", bound=Ask)


class Sender(Generic[A]):
    """A connection to a server; safe for threads.

    Args:
        reach: How it is reached.
        grant: By what right.
        dialect: What its answers mean.

    Raises:
        InvalidInputError: a file of certificates cannot be used.
    """

    def __init__(self, reach: Reach, grant: Grant, dialect: Dialect[A]) -> None:
        self._address = reach.address
        self._hidden = reach.secrets
        self._dialect = dialect
        self._client = httpx2.Client(
            headers={"Accept": "application/json", "User-Agent": "mooring", **reach.headers},
            timeout=reach.timeout_s,
            limits=httpx2.Limits(max_connections=_CONNECTIONS, keepalive_expiry=_KEPT_S),
            verify=_trust(reach),
            follow_redirects=False,
        )
        self._authorization = Authorization(grant, self._post_form)

    @property
    def server(self) -> str:
        """The server's address, for messages."""
        return show_address(self._address)

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def follow(self, address: str, grant: Grant) -> None:
        """Do from now on as the server says: go where it says, with the right that it gives."""
        self._address = address
        if grant != self._authorization.grant:
            self._authorization = Authorization(grant, self._post_form)

    def send(self, ask: A) -> httpx2.Response:
        """Send a request and return the answer of success.

        Raises:
            MooringError: what else was answered means; see `failures`.
        """
        answer = self._exchange(ask)
        is_whole = not _is_stream(ask)
        if is_whole and answer.status_code in _REJECTED and self._renew(answer):
            answer = self._exchange(ask)
        return self._require_success(ask, answer, self._dialect)

    def fetch(self, ask: A) -> dict[str, Any]:
        """Send a request and return the object that was answered.

        Raises:
            UnreadableError: of a read, it is none.
            UnknownOutcomeError: of a change, it is none.
            MooringError: as for `send`.
        """
        return self.decode(ask, self.send(ask))

    def unreadable(self, ask: Ask, reason: str) -> MooringError:
        """Return the error of an answer of success that cannot be read."""
        return unreadable(ask, reason, self.server, self._dialect.server)

    def _renew(self, answer: httpx2.Response) -> bool:
        return self._authorization.renew(answer.request.headers.get("Authorization"))

    def _exchange(self, ask: A) -> httpx2.Response:
        """Send a request until it is answered, or there is no use in going on."""
        body = {"content": ask.body} if _is_stream(ask) else {"json": ask.body}
        timeout = {} if ask.timeout_s is None else {"timeout": ask.timeout_s}
        return self._repeat(
            ask,
            lambda: self._client.request(
                ask.method,
                f"{self._address}{ask.path}",
                headers={**ask.headers, **self._authorization.headers()},
                **body,  # type: ignore[arg-type]  # one of two arguments
                **timeout,  # type: ignore[arg-type]  # as above
            ),
            self._dialect.is_before_doing,
        )

    def _repeat(
        self,
        ask: Ask,
        send: Callable[[], httpx2.Response],
        is_before_doing: Callable[[Refusal], bool],
    ) -> httpx2.Response:
        try:
            for attempt in _attempts(ask):
                with attempt:
                    return _raise_passing(ask, send(), is_before_doing)
        except httpx2.HTTPStatusError as exc:
            return exc.response
        except (httpx2.RequestError, httpx2.InvalidURL) as exc:
            raise self._unanswered(ask, exc) from exc
        raise AssertionError  # the loop either returns or raises

    def _unanswered(self, ask: Ask, exc: Exception) -> MooringError:
        if isinstance(exc, _CANNOT_BE_SENT):
            return InvalidInputError(f"{describe(ask, self.server)} cannot be sent: {exc}")
        was_sent = not isinstance(exc, _NEVER_SENT)
        return no_answer(ask, _explain(exc), self.server, was_sent=was_sent)

    def _post_form(self, address: str, form: Mapping[str, str], /) -> dict[str, Any]:
        """Ask for a token."""
        ask = TokenAsk(f"a token of {show_address(address)}")
        answer = self._repeat(
            ask, lambda: self._client.post(address, data=dict(form)), ask.is_before_doing
        )
        return self.decode(ask, self._require_success(ask, answer, ask))

    def _require_success(
        self, ask: B, answer: httpx2.Response, dialect: Dialect[B]
    ) -> httpx2.Response:
        if answer.is_success:
            return answer
        refusal = Refusal.read(answer.status_code, answer.content)
        # A server that repeats a secret does not get it into messages.
        secrets = [*self._authorization.secrets, *self._hidden]
        raise dialect.refused(ask, refusal.hide(secrets), self.server)

    def decode(self, ask: Ask, answer: httpx2.Response) -> dict[str, Any]:
        """Return the object that was answered.

        Raises:
            UnreadableError: of a read, it is none.
            UnknownOutcomeError: of a change, it is none.
        """
        try:
            found = msgspec.json.decode(answer.content)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
            raise self.unreadable(ask, f"it is no JSON ({exc})") from exc
        if not isinstance(found, dict):
            raise self.unreadable(ask, "it is no JSON object")
        return found


def _is_stream(ask: Ask) -> bool:
    return isinstance(ask.body, Iterator)


def _attempts(ask: Ask) -> Iterator[AbstractContextManager[Any]]:
    yield from stamina.retry_context(
        on=partial(_may_repeat, ask),
        attempts=_ATTEMPTS,
        timeout=_PATIENCE_S,
        wait_initial=_FIRST_WAIT_S,
        wait_max=_LONGEST_WAIT_S,
        wait_jitter=_JITTER_S,
    )


def _raise_passing(
    ask: Ask, answer: httpx2.Response, is_before_doing: Callable[[Refusal], bool]
) -> httpx2.Response:
    """Raise for an answer after which the same may be sent again."""
    if _is_stream(ask):
        return answer
    status = answer.status_code
    is_between = not ask.changes and status in _BETWEEN_FAILED
    did_nothing = status in _BUSY and (
        not ask.changes or is_before_doing(Refusal.read(status, answer.content))
    )
    if is_between or did_nothing:
        answer.raise_for_status()
    return answer


def _may_repeat(ask: Ask, exc: Exception) -> bool | float:
    """Tell whether a request may be sent again, or after how many seconds."""
    if isinstance(exc, httpx2.HTTPStatusError):
        return _wait_of(exc.response)
    if _is_distrust(exc):
        return False
    if isinstance(exc, _NEVER_SENT):
        return True
    is_passing = isinstance(exc, httpx2.TransportError | httpx2.DecodingError)
    return is_passing and not ask.changes and not isinstance(exc, _CANNOT_BE_SENT)


def _wait_of(answer: httpx2.Response) -> bool | float:
    """Read how long the server wants to be left alone; too long is no use to wait for."""
    wait_s = _read_retry_after(answer.headers.get("Retry-After"))
    if wait_s is None:
        return True
    if wait_s > _LONGEST_RETRY_AFTER_S:
        return False
    return wait_s + _RANDOM.uniform(0, _JITTER_S)


def _read_retry_after(text: str | None) -> float | None:
    """Return a number of seconds, or those until a date."""
    if text is None:
        return None
    if text.strip().isdecimal():
        return float(text)
    try:
        until = parsedate_to_datetime(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return max(0.0, (until - datetime.now(tz=UTC)).total_seconds())


def _is_distrust(exc: BaseException | None) -> bool:
    """Whether a certificate is what a connection failed by: it is the same the next time."""
    while exc is not None:
        if isinstance(exc, ssl.SSLCertVerificationError):
            return True
        exc = exc.__cause__ or exc.__context__
    return False


def _explain(exc: Exception) -> str:
    if _is_distrust(exc):
        return f"its certificate is not trusted ({exc}); name its authority with ca_file"
    said = str(exc) or type(exc).__name__
    if _NO_TLS in said:
        return f"it speaks no TLS ({said}); write http:// if that is meant"
    if isinstance(exc, httpx2.RemoteProtocolError) and exc.request.url.scheme == "http":
        return f"{said.rstrip('.')} (as servers do that want https://)"
    return said


def _trust(reach: Reach) -> ssl.SSLContext:
    """Return whose certificates count, and which one is shown."""
    try:
        found = _authorities(reach)
        if reach.client_cert:
            found.load_cert_chain(reach.client_cert, reach.client_key)
    except OSError as exc:  # also what TLS says of a file's content
        files = [reach.ca_file, reach.client_cert, reach.client_key]
        named = ", ".join(one for one in files if one)
        msg = f"the certificates in {named} cannot be used ({exc}): PEM files are needed"
        raise InvalidInputError(msg) from exc
    return found


def _authorities(reach: Reach) -> ssl.SSLContext:
    if reach.verify and reach.ca_file:
        return ssl.create_default_context(cafile=reach.ca_file)
    if reach.verify and not reach.client_cert:
        return _system_authorities()
    return httpx2.create_ssl_context(verify=reach.verify)


@cache
def _system_authorities() -> ssl.SSLContext:
    """Return what most clients share: reading all of the authorities takes 40 ms."""
    return httpx2.create_ssl_context()
