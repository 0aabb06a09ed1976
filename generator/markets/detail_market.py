"""The market object of a detail: what a list shows of a market, and the rest of its row. Pure."""

from collections.abc import Mapping
from math import inf
from typing import Any, Final, TypeAlias

from generator.api import contract, resources
from generator.markets import row_validation

DetailMarket: TypeAlias = contract.PublicMarketDetailMarket

#: The columns of `markets` that it needs, besides those of the extended variant.
COLUMNS: Final = ("id", "description", "pool_yes", "pool_no", "trading_pause_reason")


def of_item(
    item: contract.PublicMarketListItem, fx: contract.FxFamilyMember | None, row: Mapping[str, Any]
) -> DetailMarket:
    """Complete a validated market with COLUMNS of its row, which were validated with it; validate them again if odd."""
    try:
        values = {
            **vars(item),
            "description": _text(row, "description"),
            "pool_yes": _amount(row["pool_yes"]),
            "pool_no": _amount(row["pool_no"]),
            "trading_pause_reason": row_validation.pause_reason(_text(row, "trading_pause_reason")),
            "fx_family_member": fx,
            "creation_source": _text(row, "creation_source"),
            "sponsor": _text(row, "sponsor"),
        }
    except ValueError:
        return row_validation.MarketRow.model_validate({**dict(item), **row, "fx_family_member": fx})
    return resources.of_valid(DetailMarket, values)


def _text(row: Mapping[str, Any], name: str) -> str | None:
    value = row.get(name)
    if value is not None and not row_validation.is_publishable(name, row_validation.text(value)):
        raise ValueError("not publishable")
    return value


def _amount(value: Any) -> float:
    found = row_validation.number(value)
    if not 0 <= found < inf:
        raise ValueError("not an amount")
    return found
