"""A YAML document in fewer bytes, for CloudFormation, which counts them: text → text."""

import re
from functools import cache
from typing import Final

import yaml

#: The comment at the beginning, which stays.
_TOP: Final = re.compile(r"(?:#[^\n]*\n)*")
#: The faster one where it is there; both find the same.
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: Longer than any line.
_WIDTH: Final = 1 << 30


@cache
def packed(text: str) -> str:
    """The same document, each part on one line unless it holds a literal block; of the comments, the first stays."""
    top = _TOP.match(text)
    node = yaml.compose(text, _LOADER)
    if node is not None:
        _flow(node)
    body = yaml.serialize(node, Dumper=yaml.SafeDumper, allow_unicode=True, width=_WIDTH)
    return f"{top.group() if top else ''}{body}"


def _flow(node: yaml.Node) -> bool:
    """Write the node on one line if it may be; returns that."""
    if isinstance(node, yaml.ScalarNode):
        is_literal = node.style == "|"
        node.style = "|" if is_literal else None
        return not is_literal
    parts = [part for pair in node.value for part in (pair if isinstance(pair, tuple) else (pair,))]
    flows = [_flow(part) for part in parts]
    if isinstance(node, yaml.CollectionNode):
        node.flow_style = all(flows)
    return all(flows)
