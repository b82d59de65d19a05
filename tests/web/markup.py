"""What a browser would make of an answer: its elements with their attributes, and what may not be among them."""

from __future__ import annotations

from html.parser import HTMLParser

#: Elements that run, load, or change how the rest is read.
ACTIVE = {
    "script", "iframe", "object", "embed", "svg", "math", "style", "base", "video", "audio", "source", "template",
    "noscript", "frame", "frameset", "applet", "marquee", "portal",
}  # fmt: skip
_ADDRESSES = {
    "href",
    "src",
    "action",
    "formaction",
    "data",
    "srcset",
    "poster",
    "ping",
    "background",
    "xlink:href",
}


class Elements(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.text += data

    def addresses(self) -> list[str]:
        return [value for _, attrs in self.found for name, value in attrs.items() if name in _ADDRESSES]


def dangers(html: str) -> list[str]:
    """Why the answer could do something; nothing when it is text, structure and links."""
    elements = Elements(html)
    found = [f"<{tag}>" for tag, _ in elements.found if tag in ACTIVE]
    found += [
        f"{tag} {name}"
        for tag, attrs in elements.found
        for name in attrs
        if name.startswith("on") or name in ("style", "srcdoc", "http-equiv")
    ]
    for address in elements.addresses():
        plain = "".join(address.split()).lower()
        scheme = plain.partition(":")[0] if ":" in plain.split("/")[0].split("?")[0].split("#")[0] else ""
        if scheme not in ("", "http", "https", "mailto"):
            found.append(address)
    return found
