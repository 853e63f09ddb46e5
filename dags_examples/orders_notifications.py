"""A gate that notifies: one email when it stops the pipeline, another when it only warns.

gate -> publish

The emails are sent over the connection `smtp_default`. Any other Airflow notifier works the same:
`notify_with` calls a function that makes the notifier from the notification.
"""

from __future__ import annotations

import os
from datetime import datetime

from airflow.providers.smtp.notifications.smtp import SmtpNotifier
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG

from dqx_airflow.operators import DqlGateOperator, GateNotification, notify_with

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


def email_to(addresses: str) -> object:
    """A callback that sends an email to these addresses."""

    def email(notification: GateNotification) -> SmtpNotifier:
        return SmtpNotifier(to=addresses, subject=notification.text, html_content=notification.html)

    return notify_with(email)


with DAG(
    "orders_notifications",
    description="A gate that sends emails about failures and about warnings.",
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
        on_failure_callback=email_to("on-call@example.com"),
        on_warning_callback=email_to("data-team@example.com"),
    )
    gate >> EmptyOperator(task_id="publish")
