"""Vended credentials in Lance's words."""

from __future__ import annotations

import pytest

from mooring.iceberg.credentials import storage_options

LOCATION = "s3://lake/ns/t"


def vended(prefix: str, key: str, **others: str) -> dict[str, object]:
    return {"prefix": prefix, "config": {"s3.access-key-id": key, **others}}


def test_s3_credentials():
    config = {
        "s3.access-key-id": "key",
        "s3.secret-access-key": "secret",
        "s3.session-token": "session",
        "s3.session-token-expires-at-ms": "1700000000000",
        "s3.endpoint": "http://127.0.0.1:9000",
        "s3.path-style-access": "true",
        "client.region": "eu-north-1",
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
    }
    assert storage_options(LOCATION, config) == {
        "aws_access_key_id": "key",
        "aws_secret_access_key": "secret",
        "aws_session_token": "session",
        "expires_at_millis": "1700000000000",
        "aws_endpoint": "http://127.0.0.1:9000",
        "allow_http": "true",
        "aws_virtual_hosted_style_request": "false",
        "aws_region": "eu-north-1",
    }


def test_a_region_of_s3_counts_more_than_that_of_all_clients():
    config = {"s3.region": "a", "client.region": "b"}
    assert storage_options(LOCATION, config) == {"aws_region": "a"}


def test_an_encrypted_endpoint_needs_no_leave():
    assert storage_options(LOCATION, {"s3.endpoint": "https://s3"}) == {
        "aws_endpoint": "https://s3"
    }


def test_the_longest_prefix_of_the_location_counts():
    found = [
        vended("s3", "all"),
        vended("s3://lake/ns/t", "table"),
        vended("s3://lake/ns", "namespace"),
        vended("s3://lake/ns/t/data", "deeper"),
        vended("s3://other/very/long/prefix", "other"),
    ]
    options = storage_options(LOCATION, {"s3.access-key-id": "config"}, found)
    assert options == {"aws_access_key_id": "table"}


def test_the_configuration_counts_where_no_prefix_matches():
    found = [vended("s3://other", "other"), vended("gs://lake", "other")]
    options = storage_options(LOCATION, {"s3.access-key-id": "config"}, found)
    assert options == {"aws_access_key_id": "config"}


def test_a_key_of_one_and_a_token_of_another_are_not_mixed():
    config = {
        "s3.access-key-id": "old",
        "s3.secret-access-key": "old",
        "s3.session-token": "old",
        "s3.session-token-expires-at-ms": "1",
        "client.region": "r",
        "s3.endpoint": "https://s3",
    }
    found = [vended("s3://lake", "new", **{"s3.secret-access-key": "new"})]
    assert storage_options(LOCATION, config, found) == {
        "aws_access_key_id": "new",
        "aws_secret_access_key": "new",
        "aws_region": "r",
        "aws_endpoint": "https://s3",
    }


@pytest.mark.parametrize("location", ["s3a://lake/ns/t", "S3://lake/ns/t", "s3n://lake/ns/t"])
def test_hadoops_names_of_s3_are_names_of_s3(location):
    assert storage_options(location, {}, [vended("s3://lake", "k")]) == {"aws_access_key_id": "k"}


def test_google_credentials():
    config = {
        "gcs.oauth2.token": "token",
        "gcs.oauth2.token-expires-at": "17",
        "gcs.project-id": "p",
    }
    assert storage_options("gs://lake/t", config) == {
        "google_storage_token": "token",
        "expires_at_millis": "17",
    }
    assert storage_options("gs://lake/t", {"gcs.no-auth": "true"}) == {
        "google_skip_signature": "true"
    }


@pytest.mark.parametrize("host", ["acc", "acc.dfs.core.windows.net", "acc.blob.core.windows.net"])
def test_a_shared_access_signature_of_the_locations_account(host):
    config = {
        f"adls.sas-token.{host}": "sas",
        f"adls.sas-token-expires-at-ms.{host}": "17",
        "adls.sas-token.other.dfs.core.windows.net": "of another",
    }
    options = storage_options("abfss://c@acc.dfs.core.windows.net/t", config)
    assert options == {
        "azure_storage_account_name": "acc",
        "azure_storage_sas_token": "sas",
        "expires_at_millis": "17",
    }


def test_keys_of_an_azure_account():
    config = {"adls.account-name": "acc", "adls.account-key": "key"}
    expected = {"azure_storage_account_name": "acc", "azure_storage_account_key": "key"}
    assert storage_options("az://c/t", config) == expected
    shared = {
        "adls.auth.shared-key.account.name": "acc",
        "adls.auth.shared-key.account.key": "key",
    }
    assert storage_options("abfs://c@acc.dfs.core.windows.net/t", shared) == expected


@pytest.mark.parametrize("location", ["file:///lake/t", "/lake/t", "memory://t", "hdfs://n/t"])
def test_storage_of_another_kind_gets_nothing(location):
    config = {"s3.access-key-id": "key", "client.region": "r"}
    assert storage_options(location, config, [vended("", "k")]) == {}


@pytest.mark.parametrize("location", [LOCATION, "gs://lake/t", "abfss://c@a.dfs.core/t"])
def test_a_catalog_that_says_nothing_adds_nothing(location):
    assert storage_options(location, {}) == {}
    assert storage_options(location, {"s3.access-key-id": ""}, [{}]) == {}
