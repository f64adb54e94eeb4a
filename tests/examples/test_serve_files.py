"""The files for whoever operates a server are read as their programs read them.

No container engine is asked: what compose and Containerfiles may hold is checked as far as they
hold it. The unit of systemd is checked by systemd itself where it is there.
"""

import configparser
import json
import re
import shlex
import shutil
import subprocess

import pytest
import yaml

from mooring.server.metrics import Metrics
from tests.cli.terminal import MOORING
from tests.examples.test_scripts import EXAMPLES
from tests.program import PROGRAM

SERVE = EXAMPLES / "serve"
PORT = "8765"
INSTRUCTIONS = {
    "CMD",
    "COPY",
    "ENTRYPOINT",
    "ENV",
    "EXPOSE",
    "FROM",
    "HEALTHCHECK",
    "RUN",
    "STOPSIGNAL",
    "USER",
}
SERVICE = {
    "build": dict,
    "cap_drop": list,
    "command": list,
    "depends_on": list,
    "environment": dict,
    "image": str,
    "ports": list,
    "read_only": bool,
    "restart": str,
    "secrets": list,
    "security_opt": list,
    "stop_grace_period": str,
    "tmpfs": list,
    "volumes": list,
}


def _yaml(name):
    return yaml.safe_load((SERVE / name).read_text(encoding="utf-8"))


def _understands(words):
    """Let the program read a command line of "mooring serve" without running it."""
    program, verb, *options = words
    assert (program.rpartition("/")[2], verb) == ("mooring", "serve")
    return PROGRAM.commands["serve"].make_context("serve", options).params


def _instructions():
    """Return the instructions of the Containerfile, continued lines joined."""
    text = (SERVE / "Containerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [line.split(maxsplit=1) for line in joined.splitlines() if line]


def _words(name):
    (found,) = [rest for instruction, rest in _instructions() if instruction == name]
    return json.loads(found)


# -- the container -------------------------------------------------------------------------------


def test_the_containerfile_is_well_formed():
    found = _instructions()
    assert {instruction for instruction, _ in found} <= INSTRUCTIONS
    assert found[0][0] == "FROM"
    stages = [rest.split()[-1] for name, rest in found if name == "FROM" and " AS " in rest]
    for name, rest in found:
        if name == "COPY":
            assert re.match(r"--from=(\w+) ", rest)[1] in stages
    assert ["EXPOSE", PORT] in found
    (health,) = [rest for name, rest in found if name == "HEALTHCHECK"]
    options, _, command = health.partition("CMD ")
    assert all(
        re.fullmatch(r"--(interval|timeout|start-period)=\d+s", one) for one in options.split()
    )
    python, flag, code = json.loads(command)
    assert (python, flag) == ("python", "-c")
    compile(code, "healthcheck", "exec")
    assert f":{PORT}/health/ready" in code


def test_the_program_understands_what_the_container_starts():
    given = _understands([*_words("ENTRYPOINT"), *_words("CMD")])
    assert given["credentials"] is not None
    assert given["host"] == "0.0.0.0"  # noqa: S104  # what a container serves at
    assert str(given["port"]) == PORT


# -- compose -------------------------------------------------------------------------------------


def test_compose_has_what_it_may_have():
    book = _yaml("compose.yaml")
    assert set(book) == {"services", "secrets"}
    for service in book["services"].values():
        assert {key: type(value) for key, value in service.items()} == {
            key: SERVICE[key] for key in service
        }
        assert ("build" in service) != ("image" in service)
        assert set(service.get("secrets", ())) <= set(book["secrets"])
        assert set(service.get("depends_on", ())) <= set(book["services"])
        for port in service["ports"]:
            assert re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port)
    for secret in book["secrets"].values():
        assert set(secret) == {"file"}


def test_files_that_compose_names_are_there():
    book = _yaml("compose.yaml")["services"]
    build = book["mooring"]["build"]
    assert (SERVE / build["context"] / build["dockerfile"]).is_file()
    for volume in book["prometheus"]["volumes"]:
        here, _, options = volume.split(":")
        assert (SERVE / here).is_file()
        assert options == "ro"


def test_the_program_understands_what_compose_starts():
    service = _yaml("compose.yaml")["services"]["mooring"]
    given = _understands([*_words("ENTRYPOINT"), *service["command"]])
    secret = str(given["credentials"]).removeprefix("/run/secrets/")
    assert secret in service["secrets"]
    grace_s = int(service["stop_grace_period"].removesuffix("s"))
    assert grace_s > given["drain"] + given["grace"]
    assert service["ports"] == [f"127.0.0.1:{PORT}:{PORT}"]


# -- systemd -------------------------------------------------------------------------------------


def test_the_program_understands_what_systemd_starts():
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str
    text = (SERVE / "mooring.service").read_text(encoding="utf-8")
    unit.read_string(text.replace("\\\n", ""))
    assert unit.sections() == ["Unit", "Service", "Install"]
    given = _understands(shlex.split(unit["Service"]["ExecStart"]))
    credential = unit["Service"]["LoadCredential"].partition(":")[0]
    assert str(given["credentials"]) == f"${{CREDENTIALS_DIRECTORY}}/{credential}"
    assert int(unit["Service"]["TimeoutStopSec"]) > given["drain"] + given["grace"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_systemd_takes_the_unit(tmp_path):
    """It wants the program to be there, so that this machine's takes its place."""
    text = (SERVE / "mooring.service").read_text(encoding="utf-8")
    unit = tmp_path / "mooring.service"
    unit.write_text(text.replace("/opt/mooring/bin/mooring", MOORING))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


# -- Prometheus ----------------------------------------------------------------------------------


def test_prometheus_reads_rules_and_a_server_that_are_there():
    book = _yaml("prometheus.yml")
    assert set(book) == {"global", "rule_files", "scrape_configs"}
    assert all((SERVE / name).is_file() for name in book["rule_files"])
    (job,) = book["scrape_configs"]
    services = _yaml("compose.yaml")["services"]
    (target,) = job["static_configs"][0]["targets"]
    name, _, port = target.partition(":")
    assert name in services
    assert port == PORT
    secret = job["authorization"]["credentials_file"].removeprefix("/run/secrets/")
    assert secret in services["prometheus"]["secrets"]


def test_alerts_ask_for_metrics_and_labels_that_the_server_has():
    labels = {
        name: set(getattr(collector, "_labelnames", ()))
        for collector, names in Metrics()._registry._collector_to_names.items()
        for name in names
    }
    (group,) = _yaml("alerts.yml")["groups"]
    for rule in group["rules"]:
        assert {"alert", "expr", "for", "annotations"} == set(rule)
        assert re.fullmatch(r"\d+[mhd]", rule["for"])
        assert rule["expr"].count("(") == rule["expr"].count(")")
        asked = re.findall(r"\b(mooring_\w+)(?:\{([^}]*)\})?", rule["expr"])
        assert asked
        for name, conditions in asked:
            assert name in labels
            assert set(re.findall(r"(\w+)=", conditions)) <= labels[name]
            by = re.search(r"by \(([^)]*)\)", rule["expr"])
            assert (
                {one.strip() for one in by[1].split(",")} - {"le"} <= labels[name] if by else True
            )
