"""Where settings come from, and profiles."""

import json
import stat

import pytest

from mooring.config import Layer, mask_uris, resolve


@pytest.mark.parametrize(
    "args",
    [
        ["-c", "lake", "-o", "json", "table", "list"],
        ["table", "-c", "lake", "-o", "json", "list"],
        ["table", "list", "-c", "lake", "-o", "json"],
        ["-o", "json", "table", "-c", "lake", "list"],
        ["-c", "elsewhere", "table", "-c", "lake", "list", "-o", "json"],
        ["ls", "lake", "-ojson"],
        ["--catalog=lake", "ls", "--output=json"],
    ],
)
def test_options_stand_before_or_after_the_verb(run, lake, args):
    result = run(*args)
    assert {"name": "flights"} in json.loads(result.stdout)


def test_flag_beats_environment_beats_profile(run, lake, monkeypatch):
    run("profile", "set", "default", lake)
    assert "flights" in run("ls").stdout
    monkeypatch.setenv("MOORING_CATALOG", "./from-environment")
    assert "from-environment" in run("ls").stderr
    assert "from-flag" in run("ls", "-c", "./from-flag").stderr


def test_output_comes_from_environment_and_profile(run, lake, monkeypatch, tmp_path):
    config = tmp_path / "config" / "config.toml"
    config.parent.mkdir()
    config.write_text(f'[profiles.default]\nuri = "{lake}"\noutput = "ndjson"\n')
    assert run("ls").stdout.startswith('{"name"')
    monkeypatch.setenv("MOORING_OUTPUT", "csv")
    assert run("ls").stdout.startswith("name\n")
    assert run("ls", "-o", "json").stdout.startswith("[")


def test_every_source_is_named(run, lake, monkeypatch):
    run("profile", "set", "work", lake, "--storage", "aws_region=eu", "--storage", "timeout=9s")
    monkeypatch.setenv("MOORING_STORAGE__AWS_REGION", "us")
    monkeypatch.setenv("MOORING_PROFILE", "work")
    rows = json.loads(run("doctor", "-o", "json", "--storage", "allow_http=true").stdout)
    found = {
        row["name"]: (row["value"], row["note"]) for row in rows if row["section"] == "setting"
    }
    assert found["catalog"] == (str(lake), "profile 'work'")
    assert found["profile"] == ("work", "environment")
    assert found["output"] == ("json", "flag")
    assert found["read_only"] == ("false", "default")
    assert found["user"] == ("tester", "environment")
    assert found["storage.aws_region"] == ("us", "environment")
    assert found["storage.timeout"] == ("9s", "profile 'work'")
    assert found["storage.allow_http"] == ("true", "flag")


def test_the_mode_comes_from_flag_before_environment(run, tree, monkeypatch):
    def mode(*args):
        rows = json.loads(run("doctor", tree, "-o", "json", *args).stdout)
        told = {row["name"]: (row["value"], row["note"]) for row in rows}
        return told["manifest_enabled"], told["dir_listing_enabled"], told["mode"][0]

    on = ("true", "default")
    assert mode() == (on, on, "compatibility")
    assert mode("--no-listing") == (on, ("false", "flag"), "manifest")
    monkeypatch.setenv("MOORING_MANIFEST_ENABLED", "false")
    assert mode() == (("false", "environment"), on, "plain directory")
    assert mode("--manifest") == (("true", "flag"), on, "compatibility")
    monkeypatch.setenv("MOORING_DIR_LISTING_ENABLED", "no")
    assert mode("--manifest")[2] == "manifest"
    assert mode("--manifest", "--listing")[2] == "compatibility"
    assert run("ls", tree).exit_code == 2


def test_the_mode_is_true_or_false(on, monkeypatch):
    monkeypatch.setenv("MOORING_MANIFEST_ENABLED", "maybe")
    result = on("ls")
    assert result.exit_code == 2
    assert "manifest_enabled (environment) is true or false, not 'maybe'" in result.stderr


def test_a_profile_keeps_the_mode(run, tree, monkeypatch):
    run("profile", "set", "flat", tree, "--no-manifest")
    run("profile", "set", "rows", tree, "--no-listing", "--manifest")
    listed = {row["name"]: row for row in json.loads(run("profile", "list", "-o", "json").stdout)}
    assert listed["flat"]["manifest_enabled"] is False
    assert listed["flat"]["dir_listing_enabled"] is None
    assert listed["rows"]["manifest_enabled"] is True
    assert listed["rows"]["dir_listing_enabled"] is False
    assert run("ls", "--profile", "flat").stdout == ""
    assert run("ls", "--profile", "rows").stdout == "ports\n"
    assert run("ls", "--profile", "flat", "--manifest").stdout == "ports\n"
    monkeypatch.setenv("MOORING_MANIFEST_ENABLED", "true")
    assert run("ls", "--profile", "flat").stdout == "ports\n"
    assert run("profile", "set", "flat", "--unset", "manifest_enabled").exit_code == 0


def test_the_mode_of_the_default_profile_stays_with_its_catalog(run, tree):
    run("profile", "set", "default", "s3://mine", "--no-manifest")
    assert run("ls", tree).stdout == "ports\n"
    assert run("ls", tree, "--profile", "default").stdout == ""


def test_author_is_recorded(on, monkeypatch):
    monkeypatch.setenv("MOORING_USER", "ada")
    on("table", "drop", "flights")
    assert json.loads(on("table", "history", "flights", "-o", "json").stdout)[-1]["by"] == "ada"


@pytest.mark.parametrize("value", ["true", "1", "yes"])
def test_read_only_by_environment_can_be_lifted(on, monkeypatch, value):
    monkeypatch.setenv("MOORING_READ_ONLY", value)
    assert on("table", "drop", "flights").exit_code == 5
    assert on("table", "drop", "flights", "--no-read-only").exit_code == 0


def test_the_credentials_of_the_default_profile_stay_with_its_catalog(run, lake):
    run("profile", "set", "default", "s3://mine", "--storage", "aws_secret_access_key=x")
    run("profile", "set", "default", "--read-only")
    assert run("ls", lake).exit_code == 0
    assert run("table", "drop", "flights", "-c", lake).exit_code == 0
    rows = run("doctor", lake, "-o", "json").stdout
    assert "aws_secret" not in rows
    assert run("table", "drop", "a$b", "-c", lake, "--profile", "default").exit_code == 5


def test_profile_file_is_private(run, tmp_path):
    config = tmp_path / "config" / "config.toml"
    run("profile", "set", "prod", "s3://bucket/lake", "--storage", "aws_secret_access_key=hunter2")
    assert stat.S_IMODE(config.stat().st_mode) == 0o600
    config.chmod(0o644)
    assert "chmod 600" in run("doctor").stdout
    run("profile", "set", "prod", "--user", "ada")
    assert stat.S_IMODE(config.stat().st_mode) == 0o600
    assert "hunter2" in config.read_text()
    assert [path.name for path in config.parent.iterdir()] == ["config.toml"]


def test_secrets_are_masked(run):
    for key in ("aws_secret_access_key", "aws_session_token", "azure_storage_sas_key", "Password"):
        run("profile", "set", "prod", "s3://u:hunter2@bucket", "--storage", f"{key}=hunter2")
    for form in ("table", "json", "ndjson", "csv"):
        shown = run("profile", "list", "-o", form).stdout
        assert "aws_session_token" in shown
        assert "hunter2" not in shown
        assert (
            "hunter2" not in run("doctor", "--profile", "prod", "--storage", "token=hunter2").stdout
        )


def test_a_profile_is_changed_by_parts(run):
    run("profile", "set", "p", "s3://b/x", "--storage", "aws_region=eu", "--storage", "timeout=9s")
    run("profile", "set", "p", "--unset", "timeout", "--read-only", "-o", "json")
    assert json.loads(run("profile", "list", "-o", "json").stdout) == [
        {
            "name": "p",
            "uri": "s3://b/x",
            "read_only": True,
            "manifest_enabled": None,
            "dir_listing_enabled": None,
            "output": None,
            "user": None,
            "storage": {"aws_region": "eu"},
            "spark_master": None,
            "spark_conf": {},
        }
    ]
    assert run("profile", "set", "p", "--unset", "timeout").exit_code == 2


def test_a_profile_keeps_an_absolute_path(run, lake, monkeypatch, tmp_path):
    run("profile", "set", "default", "lake")
    (tmp_path / "deeper").mkdir()
    monkeypatch.chdir(tmp_path / "deeper")
    assert "flights" in run("ls").stdout


def test_the_rest_of_the_file_stays(run, tmp_path):
    config = tmp_path / "config" / "config.toml"
    config.parent.mkdir()
    config.write_text(
        '# mine\n[profiles.one]\nuri = "s3://one"\n[profiles.one.storage]\naws_region = "eu"\n'
        '# about two\n[profiles."t.w o"]\nuri = "s3://two"  # here\n'
    )
    run("profile", "set", "one", "s3://uno")
    run("profile", "set", 'q"uo\\te', "s3://x", "--storage", 'odd key="\x7f"')
    text = config.read_text()
    assert "# mine" in text
    assert '# about two\n[profiles."t.w o"]\nuri = "s3://two"  # here\n' in text
    assert run("profile", "remove", "t.w o").exit_code == 0
    listed = {row["name"]: row for row in json.loads(run("profile", "list", "-o", "json").stdout)}
    assert set(listed) == {"one", 'q"uo\\te'}
    assert listed["one"]["storage"] == {"aws_region": "eu"}
    assert listed['q"uo\\te']["storage"] == {"odd key": '"\x7f"'}


def test_a_file_that_cannot_be_changed_safely_is_left_alone(run, tmp_path):
    config = tmp_path / "config" / "config.toml"
    config.parent.mkdir()
    text = '[profiles]\none.uri = "s3://one"\n'
    config.write_text(text)
    assert run("profile", "set", "one", "s3://uno").exit_code == 2
    assert config.read_text() == text


@pytest.mark.parametrize(
    "text", ["nonsense", '[profiles.x]\nurl = "s3://x"\n', "profiles = 1\n", "[profiles]\nx = 1\n"]
)
def test_a_broken_file_is_a_usage_error(run, tmp_path, text):
    config = tmp_path / "config" / "config.toml"
    config.parent.mkdir()
    config.write_text(text)
    result = run("profile", "list", "-o", "json")
    assert result.exit_code == 2
    assert str(config) in json.loads(result.stderr)["error"]["message"]


def test_a_profile_can_be_made_while_it_is_missing(run, monkeypatch):
    monkeypatch.setenv("MOORING_PROFILE", "new")
    assert run("ls").exit_code == 3
    assert run("profile", "set", "new", "s3://b").exit_code == 0


def test_user_and_password_of_a_uri_are_masked():
    assert mask_uris("at 's3://key:secret@bucket/a@b'") == "at 's3://****@bucket/a@b'"
    assert mask_uris("/plain/p@th") == "/plain/p@th"
    assert mask_uris("s3://bucket/x") == "s3://bucket/x"


def test_empty_variables_are_not_set(tmp_path):
    environ = {"MOORING_CATALOG": "", "MOORING_CONFIG": str(tmp_path / "none.toml")}
    config = resolve(Layer("flag"), environ)
    assert config.value("catalog") is None
    assert config.value("output") == "table"
