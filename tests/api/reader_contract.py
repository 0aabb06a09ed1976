"""What the OpenAPI document promises to readers, by place, and which changes of it would break their programs. Pure.

A place is named as in the changelog: `Schema.property`, `operation`, `operation.parameter`, `operation.status` or
`operation.status.header`. What it promises is JSON without prose and examples, so that a release can be kept in a file.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from generator.api.changelog import NOTICE, WITHOUT_NOTICE, ChangelogEntry

Json = dict[str, Any]
Promises = Mapping[str, Json]

_PROSE: Final = ("description", "examples", "example")
#: Of a parameter: bounds that must not be lowered, and those that must not be raised.
_UPPER: Final = ("maximum", "maxLength", "maxItems")
_LOWER: Final = ("minimum", "minLength", "minItems")


class Break(NamedTuple):
    """A change that would break programs: its place, and what happened there."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


# ── what is promised ──────────────────────────────────────────────────────────────────────────────────────────────


def promises(document: Json) -> dict[str, Json]:
    """Everything that the document promises, by place."""
    return {**dict(_of_schemas(document)), **dict(_of_operations(document))}


def _of_schemas(document: Json) -> Iterator[tuple[str, Json]]:
    for name, schema in document["components"]["schemas"].items():
        if "properties" in schema:
            yield name, {"in": "schema", "closed": schema.get("additionalProperties") is False}
            for key, value in schema["properties"].items():
                is_required = key in schema.get("required", ())
                yield f"{name}.{key}", {"in": "answer", "required": is_required, **_bare(value, document)}


def _of_operations(document: Json) -> Iterator[tuple[str, Json]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method == "servers":
                continue
            name = operation["operationId"]
            yield name, {"in": "paths", "request": f"{method.upper()} {path}"}
            for given in operation.get("parameters", ()):
                facts = {"in": given["in"], "required": given["required"], **_bare(given["schema"], document)}
                yield f"{name}.{given['name']}", facts
            for status, answer in operation["responses"].items():
                yield from _of_answer(f"{name}.{status}", _found(answer, document), document)


def _of_answer(place: str, answer: Json, document: Json) -> Iterator[tuple[str, Json]]:
    content = {kind: _bare(media["schema"], document) for kind, media in answer["content"].items()}
    yield place, {"in": "statuses", "content": content}
    for name, header in answer.get("headers", {}).items():
        is_required = header.get("required", False)
        yield f"{place}.{name}", {"in": "answer", "required": is_required, **_bare(header["schema"], document)}


def _found(part: Json, document: Json) -> Json:
    """The part, or what it refers to."""
    if "$ref" not in part:
        return part
    _, *steps = part["$ref"].split("/")
    for step in steps:
        document = document[step]
    return document


def _bare(schema: Json, document: Json) -> Json:
    """The schema without prose; enumerations stand where they are used, and `null` says that a value may be null."""
    if "$ref" in schema and "properties" not in (found := _found(schema, document)):
        return _bare({**found, **{key: value for key, value in schema.items() if key != "$ref"}}, document)
    if "anyOf" in schema:
        choices = [choice for choice in schema["anyOf"] if choice != {"type": "null"}]
        if len(choices) == 1 < len(schema["anyOf"]):
            rest = {key: value for key, value in schema.items() if key != "anyOf"}
            return {**_bare({**choices[0], **rest}, document), "null": True}
    bare = {key: value for key, value in schema.items() if key not in _PROSE}
    return {
        key: _bare(value, document) if key in ("items", "additionalProperties") and isinstance(value, dict) else value
        for key, value in bare.items()
    }


# ── what would break programs ─────────────────────────────────────────────────────────────────────────────────────


def breaks(old: Promises, new: Promises) -> list[Break]:
    """Every change from the old promises to the new ones that would break a program written for the old ones."""
    found = [Break(where, "was removed") for where in old if where not in new and not _is_within(where, old, new)]
    for where in new:
        if where in old:
            found += [Break(where, what) for what in _changes(old[where], new[where])]
        elif what := _addition(where, old, new):
            found.append(Break(where, what))
    return sorted(found)


def _parent(where: str) -> str:
    return where.rpartition(".")[0]


def _is_within(where: str, old: Promises, new: Promises) -> bool:
    """Whether the place went with the one that it is in."""
    return _parent(where) in old and _parent(where) not in new


def _addition(where: str, old: Promises, new: Promises) -> str | None:
    """How a new place would break a program; None if it would not."""
    parent, facts = old.get(_parent(where)), new[where]
    if parent is None:
        return None
    if facts["in"] == "answer":
        return "was added to an object that has no other properties" if parent.get("closed") else None
    if facts["in"] == "statuses":
        return "is a new status"
    return "is a new parameter that must be given" if facts["required"] else None


def _changes(old: Json, new: Json) -> Iterator[str]:
    if old["in"] != new["in"]:
        yield f"moved from {old['in']} to {new['in']}"
    elif old["in"] == "schema":
        if old["closed"] and not new["closed"]:
            yield "may have further properties"
    elif old["in"] in ("answer", "paths", "statuses"):
        yield from _changes_of_answer(old, new)
    else:
        yield from _changes_of_parameter(old, new)


def _changes_of_answer(old: Json, new: Json) -> Iterator[str]:
    """How a reader may find what was not promised. A bound that moves either way is a change to tell."""
    if old.get("required") and not new.get("required"):
        yield "may be absent"
    if new.get("null") and not old.get("null"):
        yield "may be null"
    if "enum" in old and (added := _missing(old, new)):
        yield f"has new values: {added}"
    yield from _others(old, new, {"required", "null", "enum"})


def _changes_of_parameter(old: Json, new: Json) -> Iterator[str]:
    """How a request that was accepted may be refused, or mean something else."""
    if new["required"] and not old["required"]:
        yield "must be given"
    if "enum" in new and (gone := _missing(new, old)):
        yield f"no longer takes {gone}"
    for bounds, sign, done in ((_UPPER, 1, "lowered"), (_LOWER, -1, "raised")):
        for name in bounds:
            if name in new and sign * new[name] < sign * old.get(name, sign * float("inf")):
                yield f"{name} was {done} from {_shown(old.get(name))} to {_shown(new[name])}"
    yield from _others(old, new, {"required", "enum", *_UPPER, *_LOWER})


def _missing(named: Json, other: Json) -> str:
    """The values that the other has and the named ones lack."""
    return ", ".join(sorted({*other.get("enum", ("any other",))} - {*named["enum"]}))


def _others(old: Json, new: Json, apart: set[str]) -> Iterator[str]:
    for key in sorted((old.keys() | new.keys()) - apart):
        if old.get(key) != new.get(key):
            yield f"{key} changed from {_shown(old.get(key))} to {_shown(new.get(key))}"


def _shown(value: object) -> str:
    return "none" if value is None else str(value)


# ── what the changelog says of it ─────────────────────────────────────────────────────────────────────────────────


def complaints(found: Iterable[Break], entries: Sequence[ChangelogEntry], accepted: int) -> list[str]:
    """What the changelog lacks, of whose entries, newest first, the last ones are `accepted` already.

    These tell of earlier changes, so they name none of the breaks that are found.
    """
    recent, earlier = entries[: len(entries) - accepted], entries[len(entries) - accepted :]
    return [f"{one}. {_remedy(one.where)}" for one in found if not _is_told(one.where, recent, earlier)]


def _is_told(where: str, recent: Iterable[ChangelogEntry], earlier: Iterable[ChangelogEntry]) -> bool:
    return any(
        where in entry.where
        and (entry.text.startswith(WITHOUT_NOTICE) or any(day <= entry.date for day in _announced(where, earlier)))
        for entry in recent
        if entry.kind != "announced"
    )


def _announced(where: str, earlier: Iterable[ChangelogEntry]) -> list[str]:
    """From when on a change of a place was announced, by entries that readers have seen; each serves one change."""
    days, done = list[str](), ""
    for entry in earlier:
        if where not in entry.where:
            continue
        if entry.effective is None:
            done = max(done, entry.date)
        elif entry.effective > done:  # or it took place with an entry after that day
            days.append(entry.effective)
    return days


def _remedy(where: str) -> str:
    return (
        f"Put an entry that names {where} first in generator/api/changelog.json. It needs an earlier one, announced "
        f"{NOTICE.days} days ahead, whose `effective` has come; only if it mends a harm may its text begin with "
        f"{WITHOUT_NOTICE!r} instead"
    )
