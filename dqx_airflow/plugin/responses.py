"""The responses of the app: pages, messages, redirects to a page; and the store behind them."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import Response

from dqx_airflow.plugin.airflow import known_results
from dqx_airflow.plugin.render import render
from dqx_airflow.plugin.store import StoreClient, client_of


def html_page(template: str, **values: object) -> Response:
    """A page, such as `board.html`, with these values."""
    return Response(render(template, **values), media_type="text/html")


def notice(status: int, title: str, text: str) -> Response:
    """A page with only a message."""
    return Response(render("notice.html", title=title, text=text), status, media_type="text/html")


def back_to(address: str) -> Response:
    """After a form: redirects the browser to the page of the form.

    :param address: relative, as from `addresses.address`.
    """
    return Response(status_code=HTTPStatus.SEE_OTHER.value, headers={"Location": address})


def store_client() -> StoreClient:
    """The client of the results store configured for this server."""
    results = known_results()
    return client_of(results.root, results.storage_options) if results else client_of(None)
