"""What items hold is shown, and never run."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from stratal import InputError
from stratal.study.web.content import DISPLAY_FORMATS, Display, markdown, media_file, safe_html, save_display

ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)><a xlink:href='javascript:alert(1)'>x</a></svg>",
    "<a href='javascript:alert(1)'>x</a>",
    "<a href='JaVaScRiPt&colon;alert(1)'>x</a>",
    "<a href='data:text/html,<script>alert(1)</script>'>x</a>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
    "<form id=root action=//evil.example><input name=x autofocus onfocus=alert(1)>",
    "<style>body{background:url(//evil.example)}</style>",
    "<p style='position:fixed' class=bar id=root>x</p>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<base href=//evil.example><link rel=stylesheet href=//evil.example>",
    "<details open ontoggle=alert(1)>x</details>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'></noscript>",
    "[x](javascript:alert(1))",
    "![x](http://evil.example/pixel.png)",
    "<!--><script>alert(1)</script>-->",
]
FORBIDDEN = {
    *("script", "img", "svg", "iframe", "style", "form", "input", "meta", "base", "link", "object", "embed"),
    *("math", "template", "button", "video"),
}
ATTRIBUTES = {
    *("dir", "lang", "title", "href", "rel", "target", "colspan", "rowspan", "scope", "start", "data-role"),
    "tabindex",
}
FRAME = {("class", name) for name in ("text", "prose", "json", "chat", "turn", "role", "nothing")}


class Reader(HTMLParser):
    """Lists what of a piece of HTML could run, load or restyle."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found += [tag] if tag in FORBIDDEN else []
        for name, value in attrs:
            kept = name in ATTRIBUTES or (name, value) in FRAME
            schemes = ("http://", "https://", "mailto:")
            if not kept or (name == "href" and ":" in value and not value.startswith(schemes)):
                self.found.append((name, value))

    def handle_comment(self, data):
        self.found.append(data)


def runs(text):
    return Reader(text).found


@pytest.fixture
def look(tmp_path):
    (tmp_path / "cat.png").write_bytes(b"x")
    (tmp_path / "dog.wav").write_bytes(b"x")
    return Display(media=tmp_path, address=lambda path: f"media/{path}")


def showing(look, value, kind="auto"):
    return replace(look, formats={"x": kind}).show("x", value)["html"]


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("kind", [kind for kind in DISPLAY_FORMATS if kind not in ("image", "audio")])
def test_nothing_of_an_item_runs(look, attack, kind):
    for value in (attack, [{"role": attack, "content": attack}], {attack: [attack]}, [attack]):
        assert runs(showing(look, value, kind)) == []
    for medium in ("image", "audio"):
        assert runs(showing(look, attack, medium)) == []


@given(st.text(alphabet="<>/=\"'&;: abonerxjsciptlhdf#\n`*[]()!", max_size=80))
def test_no_text_gets_through_the_sanitiser(text):
    for html in (safe_html(text), markdown(text)):
        assert runs(html) == []


def test_these_tests_see_what_runs():
    assert runs("<b onclick=x>") == [("onclick", "x")]
    assert runs('<a href="javascript:x">') == [("href", "javascript:x")]
    assert runs("<svg>") == ["svg"]


def test_links_open_apart_and_say_nothing_of_the_page():
    html = safe_html('<a href="https://example.org">x</a>')

    assert 'rel="noopener noreferrer nofollow"' in html
    assert 'target="_blank"' in html


def test_images_audio_chats_and_json_are_seen_by_themselves(look):
    assert showing(look, "cat.png") == '<img src="media/cat.png" alt="x">'
    assert showing(look, "dog.wav").startswith('<audio src="media/dog.wav"')
    assert showing(look, "none.png") == '<div class="text" dir="auto">none.png</div>'
    assert 'class="chat"' in showing(look, '[{"role": "user", "content": "hi"}]')
    assert 'class="json"' in showing(look, '{"a": 1}')
    assert 'class="text"' in showing(look, "{not json}")
    assert "This image file was not found" in showing(look, "none.png", "image")


def test_markdown_in_the_turns_of_a_chat(look):
    turns = [{"role": "user", "content": [{"type": "text", "text": "**b**"}, {"type": "tool", "n": 1}]}]

    assert "<strong>b</strong>" in showing(look, turns, "markdown")
    assert "&quot;tool&quot;" in showing(look, turns)
    assert "<strong>" not in showing(look, turns)


def test_what_is_missing_is_said(look):
    assert showing(look, None) == showing(look, "") == '<p class="nothing">(nothing)</p>'
    assert showing(look, 0) == '<div class="text" dir="auto">0</div>'
    assert showing(look, [{"role": "a", "content": None}]).count("text") == 1


def test_pictures_elsewhere_are_shown_only_where_that_is_allowed(look):
    link = "https://example.org/cat.png?size=2"
    allowed = replace(look, https=True)

    assert "<img" not in showing(look, link)
    assert "on another server" in showing(look, link, "image")
    assert f'<img src="{link}"' in showing(allowed, link)
    assert "<img" not in showing(allowed, "http://example.org/cat.png", "image")
    assert "&quot;onerror" in showing(allowed, 'https://e.org/"onerror="a.png', "image")
    assert f'<img src="{link}"' in showing(allowed, f"![cat]({link})", "markdown")
    assert "src" not in showing(allowed, "![cat](http://example.org/cat.png)", "markdown")
    assert "<img" not in showing(look, f"![cat]({link})", "markdown")
    assert "data:" not in showing(allowed, '<img src="data:image/png;base64,AAAA">', "html")


@pytest.mark.parametrize(
    "path", ["../cat.png", "/etc/x.png", "a\\b.png", "a\0.png", "a\n.png", "x" * 600 + ".png", "."]
)
def test_only_files_below_the_folder_are_media(tmp_path, path):
    assert media_file(tmp_path, path) is None


def test_formats_are_checked(study):
    with pytest.raises(InputError, match="markdown"):
        save_display(study, {"answer": "markdwon"})
