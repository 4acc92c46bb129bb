"""What a JSON schema says of a value, in words."""

import re
from collections.abc import Mapping
from typing import Any, TypeGuard

from reference.markup import Html, code, inline_html, link

ENDLESS = 10**12  # a bound from here on is no limit that a reader meets


def describe_type(schema: Mapping[str, Any]) -> Html:
    """`whole number, 1 to 1,000`; a table of the same page becomes a link."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return link(inline_html(name), name)
    if "enum" in schema:
        return ", ".join(code(value) for value in schema["enum"])
    if "const" in schema:
        return code(schema["const"])
    if "anyOf" in schema or "oneOf" in schema:
        each = schema.get("anyOf") or schema["oneOf"]
        return " or ".join(dict.fromkeys(describe_type(one) for one in each if one.get("type") != "null"))
    if "allOf" in schema:
        return describe_type(schema["allOf"][0])
    match schema.get("type"):
        case "integer":
            return "whole number" + _bounds(schema)
        case "number":
            return "number" + _bounds(schema)
        case "boolean":
            return f"{code('true')} or {code('false')}"
        case "string":
            return "text"
        case "array":
            if "prefixItems" in schema:
                each = schema["prefixItems"]
                return f"list of {len(each)} {_plural(describe_type(each[0]))}"
            return f"list of {_plural(describe_type(schema['items']))}" if schema.get("items") else "list"
        case "object":
            below = schema.get("additionalProperties")
            return f"object of {_plural(describe_type(below))}" if isinstance(below, Mapping) and below else "object"
    return "any value"


def is_nullable(schema: Mapping[str, Any]) -> bool:
    return any(one.get("type") == "null" for one in schema.get("anyOf", ()))


def _bounds(schema: Mapping[str, Any]) -> Html:
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if _is_limit(low) and _is_limit(high):
        return f", {format_number(low)} to {format_number(high)}"
    signs = (("≥", low), (">", above), ("≤", high), ("<", below))
    said = " and ".join(inline_html(f"{sign} {format_number(bound)}") for sign, bound in signs if _is_limit(bound))
    return f", {said}" if said else ""


def _is_limit(bound: float | None) -> TypeGuard[float]:
    return bound is not None and abs(bound) < ENDLESS


def format_number(bound: float) -> str:
    return f"{bound:,.0f}" if bound == int(bound) else f"{bound:g}"


def _plural(said: Html) -> Html:
    return re.sub(r"^(whole number|number|text|list|object)", r"\1s", said)
