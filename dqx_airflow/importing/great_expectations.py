"""Great Expectations: expectation suites of 0.x and 1.x as JSON, and checkpoints.

Expectations are translated as in contracts. A `row_condition` is a filter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from dqx_airflow.contracts.dialects.foreign import great_expectations, severity_of
from dqx_airflow.contracts.dialects.foreign.row_conditions import row_condition
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.importing import foreign_rule
from dqx_airflow.importing.foreign_rule import Claims, ForeignRule, column_text, finite, value_text

_OF_CONDITIONS = ("row_condition", "condition_parser")


def recognises(document: Any) -> bool:
    return isinstance(document, Mapping) and (
        isinstance(document.get("expectations"), list)
        or bool({"validations", "validation_definitions", "expectation_suite_name"} & set(document))
    )


def rules_of(
    document: Mapping[str, Any], request: foreign_rule.ImportRequest
) -> Iterator[ForeignRule]:
    """The expectations of a suite; for a checkpoint, the expectations of the suites that it runs.

    :raises NoCounterpartError: a suite of the checkpoint cannot be read.
    """
    if isinstance(document.get("expectations"), list):
        yield from _of_suite(document, request, request.dataset or _dataset_of(document))
        return
    for suite, dataset in _validations(document):
        path = f"expectations/{suite.replace('.', '/')}.json"
        source = request.read_beside(path) or request.read_beside(f"../{path}")
        if source is None:
            message = f"{path} not found next to it: import the expectation suites themselves"
            raise NoCounterpartError(message)
        yield from _of_suite(source, request, request.dataset or dataset or _dataset_of(source))


def _dataset_of(document: Mapping[str, Any]) -> str:
    """The dataset of a suite: the asset it was made for, or else the prefix of its name."""
    meta = document.get("meta")
    citations = meta.get("citations") if isinstance(meta, Mapping) else None
    for citation in citations if isinstance(citations, list) else []:
        if isinstance(citation, Mapping) and (asset := _asset(citation)):
            return asset
    name = str(document.get("name") or document.get("expectation_suite_name") or "data")
    return name.split(".", maxsplit=1)[0]


def _validations(document: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """The suites that a checkpoint runs, each with its data asset."""
    validations = document.get("validations") or document.get("validation_definitions") or []
    top = document.get("expectation_suite_name")
    if top and not validations:
        yield str(top), _asset(document)
    for validation in validations if isinstance(validations, list) else []:
        if not isinstance(validation, Mapping):
            continue
        suite = validation.get("expectation_suite_name") or top or validation.get("suite")
        suite = suite.get("name") if isinstance(suite, Mapping) else suite
        if not suite:
            message = (
                "it refers to validation definitions: import the expectation suites themselves"
            )
            raise NoCounterpartError(message)
        yield str(suite), _asset(validation) or _asset(document)


def _asset(owner: Mapping[str, Any]) -> str | None:
    batch = owner.get("batch_request")
    asset = batch.get("data_asset_name") if isinstance(batch, Mapping) else None
    return str(asset) if asset else None


def _of_suite(
    document: Mapping[str, Any], request: foreign_rule.ImportRequest, dataset: str
) -> Iterator[ForeignRule]:
    for index, expectation in enumerate(document["expectations"]):
        place = f"{request.file}: expectations[{index}]"
        if isinstance(expectation, Mapping):
            yield _rule(expectation, dataset, place)
        else:
            shown = foreign_rule.yaml_line(expectation)
            yield ForeignRule(dataset, place, shown, "this is not an expectation")


def _rule(expectation: Mapping[str, Any], dataset: str, place: str) -> ForeignRule:
    given = expectation.get("kwargs")
    arguments = dict(given) if isinstance(given, Mapping) else {}
    bare = {key: value for key, value in arguments.items() if key not in _OF_CONDITIONS}
    kind = great_expectations.snake_case(str(_kind(expectation)))
    if "table_row_count" in kind or "table_column" in kind:
        bare.pop("mostly", None)  # profilers write it, and nothing reads it
    is_parsed = bool(bare.pop("parse_strings_as_datetimes", None))
    where: str | None = None

    def meaning() -> foreign_rule.Meaning:
        nonlocal where
        where = row_condition(*map(arguments.get, _OF_CONDITIONS))
        claims = table_claims(kind, bare, dataset)
        return claims or great_expectations.translate({**expectation, "kwargs": bare}, None)

    translated = foreign_rule.meaning_or_reason(meaning)
    shown = f"{_kind(expectation)}({', '.join(f'{k}={v!r}' for k, v in arguments.items())})"
    severity = severity_of(expectation.get("severity"))
    difference = _PARSED if is_parsed else _difference(kind, arguments)
    rule = ForeignRule(dataset, place, shown, translated, severity=severity, where=where)
    return replace(rule, difference=difference)


_PARSED = "strings are compared as they are: only dates such as 2024-02-29 are parsed"


def _difference(kind: str, arguments: Mapping[str, Any]) -> str | None:
    """The reason why the verdicts of the two tools may differ; None if they do not."""
    if kind == "expect_column_quantile_values_to_be_between":
        return "between two values a quantile is interpolated here, and is one of them there"
    if kind != "expect_column_most_common_value_to_be_in_set":
        return None
    theirs = "one of them may be" if arguments.get("ties_okay") else "none may be"
    return f"of equally common values {theirs} in the set there; here all have to be in it"


def _kind(expectation: Mapping[str, Any]) -> object:
    return expectation.get("type") or expectation.get("expectation_type") or "expectation"


def table_claims(kind: str, arguments: Mapping[str, Any], dataset: str) -> Claims | None:
    """The claims of an expectation about a table; None for any other expectation.

    :raises NoCounterpartError: it has no counterpart, or an argument has none.
    """
    foreign_rule.refuse_listed("great-expectations", kind)
    match kind:
        case "expect_table_columns_to_match_set":
            columns = list(arguments.get("column_set") or ())
            if arguments.get("exact_match", True) is False:
                return Claims("columns", foreign_rule.columns_exist(columns))
            return Claims("columns", foreign_rule.only_columns(columns))
        case "expect_table_columns_to_match_ordered_list":
            listed = list(arguments.get("column_list") or ())
            return Claims("columns", foreign_rule.columns_in_order(listed))
        case "expect_column_to_exist" if arguments.get("column_index") is not None:
            position = finite(arguments["column_index"]) + 1
            text = f"column_position({column_text(arguments.get('column'))}) == {position}"
            return Claims("column_position", (text,))
        case "expect_table_row_count_to_equal_other_table":
            other = column_text(arguments.get("other_table_name"))
            counted = column_text(dataset)
            claim = f"num_rows(dataset {counted}) == num_rows(dataset {other})"
            return Claims("row_count", (claim,), others=(other,))
        case "expect_column_kl_divergence_to_be_less_than":
            return _divergence(arguments)
    return None


def _divergence(arguments: Mapping[str, Any]) -> Claims:
    """The claims that the Kullback-Leibler divergence of a column from a partition has a limit.

    It is the sum of `p * ln(p / q)` over the shares `p` of the rows and `q` of the partition, which
    are first divided by their sum. Where `q` is 0, there must be no rows.

    :raises NoCounterpartError: Great Expectations does not accept the arguments, or they claim
        nothing.
    """
    column = column_text(arguments.get("column"))
    partition = arguments.get("partition_object")
    if partition is None or arguments.get("threshold") is None:
        raise NoCounterpartError("without a partition_object and a threshold it limits nothing")
    tails = finite(arguments.get("tail_weight_holdout") or 0)
    inner = finite(arguments.get("internal_weight_holdout") or 0)
    weights = [*map(finite, partition["weights"])]
    ends = partition.get("tail_weights")
    total = _total_of_shares([*weights, *map(finite, ends or ())], tails, inner)
    if tails + inner >= 1 or (ends and tails):
        raise NoCounterpartError("its holdout leaves nothing, or there are tail_weights as well")
    others = ""
    if "bins" in partition:
        held = [weight * (1 - tails - inner) for weight in weights]
        held = [weight or inner / held.count(0) for weight in held]
        counted = _in_bins(column, partition["bins"], held, ends, tails)
    elif inner or len(weights) != len(partition["values"]):
        raise NoCounterpartError("it has no value for each weight, or values are held out")
    else:
        rows = (f"count_values({column}, {value_text(value)})" for value in partition["values"])
        counted = dict(zip(rows, weights, strict=True))
        unlisted = f"{column} not in {foreign_rule.list_text(partition['values'])}"
        if tails:
            others = _of_others(column, unlisted, tails, total)
        else:
            counted[f"num_rows(where {unlisted})"] = 0
    limit = value_text(finite(arguments["threshold"]))
    return _divergence_claims(column, counted, others, limit)


def _total_of_shares(weights: Sequence[float], tails: float, inner: float) -> float:
    """The sum of weights, which is about 1.

    :raises NoCounterpartError: it is not, or some weight is no share.
    """
    are_shares = all(0 <= weight <= 1 for weight in (*weights, tails, inner))
    if not are_shares or not math.isclose(math.fsum(weights), 1, rel_tol=1e-5):
        raise NoCounterpartError("its weights are not shares that add up to 1")
    return math.fsum(weights)


def _divergence_claims(
    column: str, counted: Mapping[str, float], others: str, limit: str
) -> Claims:
    """The claims of a limit of the divergence.

    :param counted: the weight of each number of rows, which is in DQL.
    :param others: the terms of the sum for values that are not in the partition.
    """
    total = math.fsum(counted.values())
    scale = 1 if math.isclose(total, 1) else total
    terms = " + ".join(
        f"coalesce({rows} * log({rows} / count({column}) / {value_text(weight / scale)}), 0)"
        for rows, weight in counted.items()
        if weight
    )
    empty = (f"{rows} == 0" for rows, weight in counted.items() if not weight)
    claim = f"({terms}{others}) / count({column}) <= {limit}"
    return Claims("divergence", (*empty, claim), column)


def _in_bins(
    column: str,
    bins: Sequence[float],
    weights: Sequence[float],
    ends: Sequence[float] | None,
    tails: float,
) -> dict[str, float]:
    """Maps the number of rows in each bin, as DQL, to its weight; also below and above the finite
    bins. The last bin includes its end.

    :raises NoCounterpartError: there are weights beyond all numbers, or the bins do not ascend.
    """
    starts = math.isfinite(bins[0])
    stops = math.isfinite(bins[-1])
    if len(bins) != len(weights) + 1 or any(one >= other for one, other in pairwise(bins)):
        raise NoCounterpartError("its bins are not the ascending ends of its weights")
    if (ends and not (starts and stops)) or (tails and not (starts or stops)):
        raise NoCounterpartError("there are weights beyond infinite bins")
    ranges = _ranges_of(column, bins)
    below, beyond = ends or _split_tails(tails, starts=starts, stops=stops)
    kept = [*weights]
    if starts:
        kept.insert(0, below)
    if stops:
        kept.append(beyond)
    return {f"num_rows(where {part})": weight for part, weight in zip(ranges, kept, strict=True)}


def _ranges_of(column: str, bins: Sequence[float]) -> list[str]:
    """The values below the first finite end of the bins, between two ends, and above the last, as
    predicates."""
    edges = [value_text(finite(edge)) for edge in bins if math.isfinite(edge)]
    ranges = [f"{column} >= {one} and {column} < {other}" for one, other in pairwise(edges)]
    last = ranges.pop()
    if math.isfinite(bins[-1]):
        last = last.replace(" < ", " <= ")
        above = f"{column} > {edges[-1]}"
    else:
        above = f"{column} >= {edges[-1]}"
    return [f"{column} < {edges[0]}", *ranges, last, above]


def _split_tails(tails: float, *, starts: bool, stops: bool) -> tuple[float, float]:
    """The weights below and above the bins; only finite bins leave something there."""
    share = tails / 2 if starts and stops else tails
    return share, share


def _of_others(column: str, unlisted: str, tails: float, total: float) -> str:
    """The terms of the sum for values that are not in the partition, as DQL. Unlisted values share
    `tails` equally, listed values have the rest. The sum of `n ln n` comes from the entropy."""
    kept = total * (1 - tails)
    rows, scale = f"num_rows(where {unlisted})", kept + tails
    listed = f"(count({column}) - {rows}) * min({rows}, 1)"
    parts = f"{rows} * unique_count({column}, where {unlisted}) / count({column})"
    return (
        f" + {listed} * {value_text(math.log(scale / kept))} + coalesce({rows} * "
        f"(log({parts} / {value_text(tails / scale)}) - entropy({column}, where {unlisted})), 0)"
    )
