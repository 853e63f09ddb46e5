"""A gate that tells people: a mail where it stops the pipeline, and one where it only warns.

gate -> publish

The mails go through the connection `smtp_default`. Any other notifier takes its place: it is made
with the text of the notice when there is one to send.
"""

from __future__ import annotations

import os
from datetime import datetime

from airflow.providers.smtp.notifications.smtp import SmtpNotifier
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG

from dqx_airflow.operators import DqlGateOperator, GateNotice, notify_with

LAKE = os.environ.get("ORDERS_LAKE", "/data/lake")
SUITE = """\
suite "Orders" {
    check "Completeness" on orders {
        assert null_count(customer_id) == 0
            name "orders.customer_id.present"
            severity P0
        assert null_count(phone) / num_rows() < 5%
            name "orders.phone.known"
            severity P2
    }
}
"""


def mail_to(people: str) -> object:
    """A callback that mails them."""

    def mail(notice: GateNotice) -> SmtpNotifier:
        return SmtpNotifier(to=people, subject=notice.text, html_content=notice.html)

    return notify_with(mail)


with DAG(
    "orders_notices",
    description="A gate that sends mails, about failures and about warnings.",
    start_date=datetime(2026, 1, 1),
    schedule=None,
    catchup=False,
    tags=["dqx", "example"],
):
    gate = DqlGateOperator(
        task_id="gate",
        suite=SUITE,
        datasets={"orders": {"path": f"{LAKE}/orders", "date_column": "ordered_on"}},
        date="{{ ds }}",
        on_failure_callback=mail_to("on-call@example.com"),
        on_warning=mail_to("data-team@example.com"),
    )
    gate >> EmptyOperator(task_id="publish")
