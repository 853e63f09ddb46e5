"""`dql label`: labels verdicts, by whether there was a real issue."""

from __future__ import annotations

import getpass
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from dqx_airflow.cli.results_root import storage_options
from dqx_airflow.cli.tuning.call import (
    CheckOption,
    GateOption,
    MapIndexOption,
    ReasonOption,
    ResultsOption,
    SuiteArgument,
    results_root,
    suite_name,
)
from dqx_airflow.errors import RequestError


def label(
    suite: SuiteArgument,
    *,
    on: Annotated[
        datetime | None,
        typer.Option("--date", formats=["%Y-%m-%d"], help="The date of the data."),
    ] = None,
    assertion: Annotated[
        str | None, typer.Option("--assertion", help="The name of the assertion.")
    ] = None,
    false_positive: Annotated[
        bool, typer.Option("--false-positive", help="The assertion failed, but the data was fine.")
    ] = False,
    true_positive: Annotated[
        bool, typer.Option("--true-positive", help="The assertion failed because of a real issue.")
    ] = False,
    missed: Annotated[
        bool, typer.Option("--missed", help="The assertion passed, but there was an issue.")
    ] = False,
    true_negative: Annotated[
        bool, typer.Option("--true-negative", help="The assertion passed, and the data was fine.")
    ] = False,
    reason: ReasonOption = None,
    check: CheckOption = None,
    from_csv: Annotated[
        Path | None,
        typer.Option(
            "--from-csv",
            help="Set many labels at once from a CSV file with the columns date, assertion "
            "and label, and optionally check, map_index and reason. `dql alerts --format csv` "
            "writes one to fill in.",
        ),
    ] = None,
    author: Annotated[
        str | None,
        typer.Option("--author", help="The author of the label; default: the current user."),
    ] = None,
    gate: GateOption = None,
    map_index: MapIndexOption = None,
    results: ResultsOption = None,
) -> None:
    """Label a failure as a false alarm, or a pass as a missed issue. The last label counts."""
    from dqx_airflow.cli.tuning.label_file import read_new_labels
    from dqx_airflow.results.alerts import LabelKind, NewLabel, labels_for
    from dqx_airflow.results.labels import write_labels

    root = results_root(suite, results)
    kind_options = {
        LabelKind.FALSE_POSITIVE: false_positive,
        LabelKind.TRUE_POSITIVE: true_positive,
        LabelKind.MISSED: missed,
        LabelKind.TRUE_NEGATIVE: true_negative,
    }
    kinds = [kind for kind, is_given in kind_options.items() if is_given]
    if from_csv is not None:
        if kinds or assertion or on or map_index is not None:
            raise RequestError(
                "--from-csv cannot be combined with other labels", "remove the other options"
            )
        new_labels = read_new_labels(from_csv)
    elif len(kinds) != 1 or assertion is None or on is None:
        raise RequestError(
            "the label or the verdict is missing",
            "give --date, --assertion, and one of --false-positive, --true-positive, "
            "--missed and --true-negative; or --from-csv FILE",
        )
    else:
        new_labels = [NewLabel(on.date(), assertion, kinds[0], reason, check, map_index)]
    labels, problems = labels_for(
        root,
        suite_name(suite),
        new_labels,
        author or getpass.getuser(),
        gate=gate,
        storage_options=storage_options(),
    )
    if problems:
        raise RequestError("no label was set:\n  " + "\n  ".join(problems))
    written = write_labels(root, labels, storage_options=storage_options())
    unchanged = len(labels) - len(written)
    summary = f"{len(written)} labelled"
    typer.echo(f"{summary}, {unchanged} already had the label" if unchanged else summary)
