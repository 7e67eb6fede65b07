"""Escapes texts for HTML."""

from markupsafe import Markup, escape


def escaped(value: object) -> Markup:
    """Escape a text for an element or a quoted attribute. A bare CR would become LF in an HTML parser."""
    return Markup(str(escape(value)).replace("\r", "&#13;"))  # noqa: S704 - escaped in this very call
