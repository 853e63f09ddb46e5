"""The formats that are recognised and not read: ODCS 2, and data products of other standards.

Only keys of their own tell them from other files: a key that many formats have counts together with
others, and a list by the form of its items.
"""

from __future__ import annotations

import re

from dqx_airflow.contracts.document import Mapping

_ODCS_2 = re.compile(r"2(\.\d+){0,2}\b")

_ANY_VERSION = re.compile(r"\d")
_OTHER_VERSION_KEYS = ("standardVersion", "templateVersion")
"""Where documents of ODCS 2 have its version, if `apiVersion` is of their organization."""

_OF_ODCS_2 = {
    "datasetDomain",
    "quantumName",
    "userConsumptionMode",
    "datasetProject",
    "datasetKind",
    "slaDefaultColumn",
    "productDl",
    "productSlackChannel",
    "productFeedbackUrl",
}
"""Keys that only ODCS 2 has."""

_MOSTLY_OF_ODCS_2 = {
    "datasetName",
    "driverVersion",
    "schedulerAppName",
    "sourcePlatform",
    "sourceSystem",
    "templateName",
    "templateVersion",
}
"""Keys of ODCS 2 that hardly any other format has: one of them is a sign beside another key."""

_ALSO_IN_ODCS_2 = {"dataset", "driver", "stakeholders", "systemInstance", "tables", "uuid"}
"""Keys of ODCS 2 that many formats have: three are a sign, or one in a `DataContract`."""

_KINDS_OF_ODCS_2 = ("DataContract", "virtualDataset", "managedDataset")

_OF_TABLES = {"dataGranularity", "physicalName", "priorTableName"}
"""Keys of a table of ODCS 2, which has its name at `table`."""

_OF_COLUMNS = {
    "businessName",
    "clsLevel",
    "clusterStatus",
    "criticalDataElementStatus",
    "encryptedColumnName",
    "isNullable",
    "isPrimary",
    "isPrimaryKey",
    "isUnique",
    "logicalType",
    "partitionStatus",
    "physicalType",
    "transformDescription",
    "transformLogic",
    "transformSourceTables",
}
"""Keys of a column of ODCS 2, which has its name at `column`."""

_OF_RULES = {"code", "templateName", "toolName", "toolRuleName", "scheduleCronExpression"}
"""Keys of a rule of ODCS 2: two of them are a sign."""

_OPEN_PRODUCTS = "the Open Data Product Specification"

_OF_OPEN_PRODUCTS = {
    "SLA",
    "dataAccess",
    "dataHolder",
    "dataOps",
    "dataQuality",
    "paymentGateways",
    "pricingPlans",
    "productStrategy",
    "recommendedDataProducts",
}
"""Parts of an open data product: one of them below `product` is a sign, or two at the top."""

_OF_LANGUAGES = {"status", "type", "valueProposition", "visibility"}
"""Keys of its texts in a language, beside `name`: two of them are a sign."""


def older_odcs_version(root: Mapping) -> str | None:
    """The version of a document of ODCS 2, which has other keys than 3; None for others."""
    written = _version_at(root, "apiVersion")
    is_older = _ODCS_2.match(written) is not None
    if _ANY_VERSION.match(written) and not is_older:
        return None
    if _has_keys_of_odcs_2(root):
        versions = [written, *(_version_at(root, key) for key in _OTHER_VERSION_KEYS)]
        older = [version for version in versions if _ODCS_2.match(version)]
        return older[0] if older else "2"
    # Other tools have an `apiVersion: v2`, such as Helm, or one of another kind of file.
    kind = root.text("kind")
    is_named = kind in _KINDS_OF_ODCS_2 or (kind is None and "." in written)
    return written if is_older and is_named else None


def _version_at(root: Mapping, key: str) -> str:
    return (root.text(key) or "").strip().lower().removeprefix("v")


def _has_keys_of_odcs_2(root: Mapping) -> bool:
    keys = set(root.entries)
    kind = root.text("kind")
    if not _OF_ODCS_2.isdisjoint(keys) or kind in ("virtualDataset", "managedDataset"):
        return True
    mostly = _MOSTLY_OF_ODCS_2 & keys
    also = _ALSO_IN_ODCS_2 & keys
    count = len(mostly) + len(also) + (root.text("type") == "tables")
    if (mostly and count > 1) or count > 2 or (count and kind == "DataContract"):
        return True
    tables = [table for key in ("dataset", "tables") for table in _items(root, key)]
    if any(_is_table(table) for table in tables):
        return True
    if any(_is_column(column) for column in _items(root, "columns")):
        return True
    return _has_rules(root)


def _is_table(node: Mapping) -> bool:
    if node.text("table") is None:
        return False
    columns = _items(node, "columns")
    has_columns = any(column.text("column") is not None for column in columns)
    return has_columns or _has_rules(node) or not _OF_TABLES.isdisjoint(node.entries)


def _is_column(node: Mapping) -> bool:
    return node.text("column") is not None and not _OF_COLUMNS.isdisjoint(node.entries)


def _has_rules(node: Mapping) -> bool:
    return any(len(_OF_RULES & set(rule.entries)) > 1 for rule in _items(node, "quality"))


def standard_of_products(root: Mapping) -> str | None:
    """The standard of a document about a data product; None for others."""
    if "dataProductDescriptor" in root.entries:
        return "the Data Product Descriptor Specification"
    if "dataProductSpecification" in root.entries:
        return "the Data Product Specification"
    if _is_open_product(root):
        return _OPEN_PRODUCTS
    kind = (root.text("kind") or root.text("type") or "").lower().replace("_", "")
    has_owner = "dataProductOwner" in root.entries
    if "components" in root.entries and (kind == "dataproduct" or has_owner):
        return "Witboost"
    if _items(root, "inputPorts") or _items(root, "outputPorts"):
        return "the Open Data Product Standard"
    if kind == "dataproduct" or has_owner:
        return "another standard"
    return None


def _is_open_product(root: Mapping) -> bool:
    schema = (root.text("schema") or root.text("$schema") or "").lower()
    if "opendataproducts.org" in schema or "open-data-product-initiative" in schema:
        return True
    product = root.get("product")
    node = product if isinstance(product, Mapping) else root
    needed = 1 if isinstance(product, Mapping) else 2
    if "productID" in node.entries or len(_OF_OPEN_PRODUCTS & set(node.entries)) >= needed:
        return True
    details = node.get("details")
    return _has_languages(node) or (isinstance(details, Mapping) and _has_languages(details))


def _has_languages(node: Mapping) -> bool:
    """Whether a mapping has the texts of an open data product by their languages."""
    for key in node.entries:
        texts = node.get(key)
        if not isinstance(texts, Mapping):
            continue
        has_name = "name" in texts.entries and len(_OF_LANGUAGES & set(texts.entries)) > 1
        if "productID" in texts.entries or has_name:
            return True
    return False


def _items(node: Mapping, key: str) -> list[Mapping]:
    """The mappings in the list at a key."""
    return [item for item in node.items(key) if isinstance(item, Mapping)]
