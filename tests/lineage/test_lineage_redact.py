from __future__ import annotations

import pytest

from dqx_airflow.values.redact import redact, secrets_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://user:pw@host:5000/a", "http://***@host:5000/a"),
        ("http://user:p@ss@host/a", "http://***@host/a"),
        ("to https://token@host failed", "to https://***@host failed"),
        ("/api?x=1&api_key=abc&y=2", "/api?x=1&api_key=***&y=2"),
        ("https://host/x?sig=abc", "https://host/x?sig=***"),
        ('{"apiKey": "abc def", "url": "u"}', '{"apiKey": ***, "url": "u"}'),
        ("sasl.password=abc,b=1", "sasl.password=***,b=1"),
        ("Authorization: Bearer abc.def-123", "Authorization: Bearer ***"),
        (
            "abfss://box@account.dfs.core.windows.net/a",
            "abfss://box@account.dfs.core.windows.net/a",
        ),
        ("nothing to hide at http://host:80/a?b=c", "nothing to hide at http://host:80/a?b=c"),
        ("no scheme: //user:pw@host/a", "no scheme: //***@host/a"),
        ("mail to a@b.com", "mail to a@b.com"),
    ],
)
def test_secrets_are_hidden_and_the_rest_stays(text: str, expected: str) -> None:
    assert redact(text) == expected


def test_the_secrets_of_a_configuration_are_found_by_their_keys() -> None:
    config = {
        "type": "http",
        "url": "http://user:pass%40word@host",
        "auth": {"type": "oauth2", "clientSecret": "abcd1", "tokenEndpoint": "http://auth"},
        "custom_headers": {"X-Api-Key": "abcd2", "Accept": "text/plain"},
        "transports": [{"config": {"sasl.password": "abcd3"}}],
    }
    found = secrets_of(config)
    assert {"pass%40word", "pass@word", "abcd1", "abcd2", "abcd3"} <= found
    assert not {"http", "oauth2", "http://auth", "text/plain"} & found
