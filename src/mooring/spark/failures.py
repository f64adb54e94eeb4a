"""What goes wrong in Spark, told in one line.

Spark wraps a failure in stack traces of Java, and those in others. What counts is the line that
names the cause: the last one of the traceback of Python, or the first of Java.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mooring import errors
from mooring.errors import (
    InvalidInputError,
    MissingExtraError,
    MooringError,
    ServiceUnavailableError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["telling_failures", "translate"]

_OURS = re.compile(r"(?:.*: )?mooring\.errors\.(\w+): (.*)")
_MISSING = re.compile(r"ModuleNotFoundError: No module named '(mooring|lance|pyarrow|pandas)\b")
# How Spark begins a report, before it comes to the cause.
_ABORTED = re.compile(
    r"Job aborted due to stage failure: Task \d+ in stage [\d.]+ failed (\d+) times"
)
_WHERE = re.compile(r"Lost task [^:]*?\(TID \d+\) \((\S+) executor (\w+)\)")
_FRAME = re.compile(r"\s*(at |\.\.\. \d+ more|Driver stacktrace:|JVM stacktrace:)")
_CLASS = re.compile(r"^(?:[a-z_]\w*\.)+([A-Z][\w$]*): ")
# All that is told where nobody answered a call.
_CALL = re.compile(r"An error occurred while calling [\w.:]+$")
_CRASHED = "Python worker exited unexpectedly"
_LONGEST = 500


@contextmanager
def telling_failures() -> Iterator[None]:
    """Raise failures of Spark as ours.

    Raises:
        MooringError: Spark failed; the cause holds all that it said.
    """
    try:
        yield
    except MooringError:
        raise
    except Exception as exc:
        if _comes_of_interrupt(exc):
            raise KeyboardInterrupt from exc
        told = translate(exc)
        if told is None:
            raise
        raise told from exc


def _comes_of_interrupt(exc: Exception) -> bool:
    """Whether Ctrl-C is behind a failure.

    It reaches the workers, too, and sometimes their answer is here first. It ends Java as well:
    where PySpark calls that once more on its way out, the interrupt is what that failure is
    raised in.
    """
    if "KeyboardInterrupt" in str(exc):
        return True
    behind = exc.__context__
    while behind is not None and not isinstance(behind, KeyboardInterrupt):
        behind = behind.__context__
    return behind is not None


def translate(exc: Exception) -> MooringError | None:
    """Say what a failure of Spark means; None where it is not one of Spark's."""
    module = type(exc).__module__.partition(".")[0]
    if module == "pyspark":
        return _from_pyspark(exc)
    if module == "py4j":
        return _from_java(exc)
    if module == "grpc":
        return ServiceUnavailableError(f"the server of Spark Connect failed: {_cause(str(exc))}")
    if isinstance(exc, ConnectionError) and _is_gateway_gone(exc):
        return _java_ended(exc)
    return None


def _from_pyspark(exc: Exception) -> MooringError:
    from pyspark.errors import (
        AnalysisException,
        ParseException,
        PySparkImportError,
        PythonException,
    )

    text = str(exc)
    if isinstance(exc, PySparkImportError):
        return _missing_package(text)
    if isinstance(exc, PythonException) or "Traceback (most recent call last)" in text:
        return _from_text(text)
    if isinstance(exc, AnalysisException | ParseException):
        return InvalidInputError(f"Spark does not understand this: {_cause(text)}")
    if "JAVA_GATEWAY_EXITED" in text:
        return UnsupportedError("Java ended before Spark began")
    return _from_text(text)


def _from_java(exc: Exception) -> MooringError:
    from py4j.protocol import (  # type: ignore[import-untyped]
        Py4JJavaError,
        Py4JNetworkError,
    )

    if isinstance(exc, Py4JNetworkError):
        return _java_ended(exc)
    if isinstance(exc, Py4JJavaError):
        return _from_text(str(exc.java_exception.toString()) + _causes(exc.java_exception))
    if _CALL.search(str(exc)):
        return _java_ended(exc)
    return _from_text(str(exc))


def _from_text(text: str) -> MooringError:
    ours = _ours(text)
    if ours is not None:
        return ours
    missing = _MISSING.search(text)
    if missing is not None:
        return UnsupportedError(
            f"the Python of Spark's workers has no {missing[1]}{_place(text)}: install"
            " 'mooring[spark]' there, at the version that is used here, and name that Python"
            " with PYSPARK_PYTHON or --conf spark.pyspark.python=..."
        )
    times = _ABORTED.search(text)
    tried = f" in each of {times[1]} tries" if times and int(times[1]) > 1 else ""
    cause = _cause(text)
    if _CRASHED in text:
        cause = "its Python ended all of a sudden; it may have run out of memory"
    return MooringError(f"a task of Spark failed{tried}{_place(text)}: {cause}")


def _ours(text: str) -> MooringError | None:
    """Find an error of ours that a worker raised, for it to be raised here as what it is."""
    for line in reversed(text.splitlines()):
        found = _OURS.fullmatch(line.strip())
        kind = getattr(errors, found[1], None) if found else None
        if found and isinstance(kind, type) and issubclass(kind, MooringError):
            return kind(found[2])
    return None


def _place(text: str) -> str:
    found = _WHERE.search(text)
    return "" if found is None or found[2] == "driver" else f" on {found[1]}"


def _cause(text: str) -> str:
    """Return the line that names the cause."""
    lines = text.splitlines()
    traces = [at for at, line in enumerate(lines) if "Traceback (most recent call last)" in line]
    if traces:
        line = _end_of_traceback(lines[traces[-1] + 1 :])
    else:
        caused = [
            line.strip().removeprefix("Caused by: ") for line in lines if "Caused by: " in line
        ]
        plain = [line.strip() for line in lines if line.strip() and not _FRAME.match(line)]
        line = caused[-1] if caused else (plain[0] if plain else "it does not say why")
        line = re.sub(r"^.*most recent failure: Lost task [^:]*\): ", "", line)
    line = _CLASS.sub(r"\1: ", line)
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."


def _end_of_traceback(lines: list[str]) -> str:
    """Return the last line of a traceback: what follows is indented, or of Java."""
    said = []
    for line in lines:
        if _FRAME.match(line):
            break
        if line.strip() and not line.startswith(" "):
            said.append(line.strip())
    # A message of several lines begins with the class of the error.
    named = [line for line in said if re.match(r"[\w.]+(Error|Exception|Interrupt|Exit)\b", line)]
    return (named or said or ["it does not say why"])[-1]


def _causes(exception: object) -> str:
    """Write the causes that an exception of Java has."""
    said = ""
    for _ in range(20):  # a chain may be a ring
        exception = exception.getCause()  # type: ignore[attr-defined]  # of py4j
        if exception is None:
            return said
        said += f"\nCaused by: {exception.toString()}"  # type: ignore[attr-defined]  # of py4j
    return said


def _missing_package(text: str) -> MissingExtraError:
    if any(name in text for name in ("grpc", "googleapis", "zstandard", "protobuf")):
        return MissingExtraError(
            "Spark Connect needs packages that are not installed: pip install 'pyspark[connect]'"
        )
    return MissingExtraError(f"Spark lacks a package: {_cause(text)}; pip install 'mooring[spark]'")


def _is_gateway_gone(exc: Exception) -> bool:
    """Whether it was raised on the way to Java, not by something else with a socket."""
    import traceback

    return any("py4j" in frame.filename for frame in traceback.extract_tb(exc.__traceback__))


def _java_ended(exc: Exception) -> ServiceUnavailableError:
    return ServiceUnavailableError(
        f"the Java of Spark has ended ({_cause(str(exc))}): it may have run out of memory, which"
        " --conf spark.driver.memory=4g gives more of"
    )
