"""Posts a message of the Open Observability Results Standard to whoever receives it."""

from __future__ import annotations

import re
import time
from typing import Any

from dqx_airflow.errors import DqxError, RequestError

_ADDRESS = re.compile(r"https?://(?:[^/?#]*@)?(?P<host>[^/?#@]+)")
_PATIENCE_S = 15
_WAITS_S = (0.0, 1.0, 3.0)
"""The seconds before each of the attempts to send a message."""

_TRY_AGAIN = frozenset({408, 429, 500, 502, 503, 504})
_HINTS = {3: "give the address that it redirects to", 4: "see the address and DQX_RESULTS_TOKEN"}


def send_message(message: dict[str, Any], url: str, token: str | None = None) -> None:
    """Posts a message as JSON, again if the server is busy or cannot be reached: receivers
    recognise a message that arrives twice by its id. Errors contain only the host of the URL, since
    the rest may be a secret.

    :param token: for `Authorization: Bearer`; by default the credentials in `.netrc`.
    :raises RequestError: the server refuses the message, or the address is invalid.
    :raises DqxError: the server failed, or was not reached.
    """
    import requests

    def authorize(request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {token}"
        return request

    address = _ADDRESS.match(url)
    failed = f"{address['host'] if address else 'the server'} did not take the message"
    problem = ""
    for wait_s in _WAITS_S:
        time.sleep(wait_s)
        try:
            with requests.post(
                url,
                json=message,
                auth=authorize if token else None,
                timeout=_PATIENCE_S,
                allow_redirects=False,
                stream=True,
            ) as answer:
                status = answer.status_code
        except requests.exceptions.SSLError:
            raise DqxError(f"{failed}: its certificate is not trusted") from None
        except requests.Timeout:
            problem = f"no response within {_PATIENCE_S} s"
        except requests.ConnectionError:
            problem = "no connection"
        except (requests.RequestException, ValueError):
            hint = "give --url https://HOST/PATH, and a token without spaces"
            raise RequestError(f"{failed}: the address or the token is invalid", hint) from None
        else:
            if status < 300:
                return
            problem = f"it answered {status}"
            if status not in _TRY_AGAIN:
                raise RequestError(f"{failed}: {problem}", _HINTS.get(status // 100, ""))
    raise DqxError(f"{failed} in {len(_WAITS_S)} attempts: {problem}")
