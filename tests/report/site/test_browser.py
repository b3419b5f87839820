"""The site as a person meets it, in a real browser."""

import json
import re
import shutil

import pytest

from tests.report.site.conftest import MARKUP

ROWS = "#results tbody tr:visible"


@pytest.fixture
def visit(browser, site):
    """Open a page; at the end nothing may have been complained of, or asked of any host."""
    contexts, wrong = [], []

    def open_page(name, width=1280, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: wrong.append(said.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda box: (wrong.append(box.message), box.dismiss()))
        page.on("requestfailed", lambda request: wrong.append(request.url))
        page.on(
            "request",
            lambda asked: (
                wrong.append(asked.url) if not asked.url.startswith(("file:", "data:")) else None
            ),
        )
        page.goto(f"{site.as_uri()}/{name}")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


def drawn(page, key):
    """Scroll to a figure and return it once it is drawn."""
    place = page.locator(f"#figure-{key} .plot")
    place.scroll_into_view_if_needed()
    page.wait_for_selector(f"#figure-{key} .plot .main-svg", timeout=20000)
    return place


def test_rows_are_filtered_by_text_and_choice_and_shown_again(visit):
    page = visit("index.html")
    every = page.locator(ROWS).count()
    assert every == 3 + 4 + 4
    page.fill("input[name=text]", "torch-geglu bf16")
    assert page.locator(ROWS).count() == 1
    assert page.inner_text("#shown") == f"1 of {every} shown"
    page.fill("input[name=text]", "")
    page.select_option("select[name=operator]", "gelu")
    page.select_option("select[name=format]", "fp32")
    assert page.locator(f"{ROWS} th").all_inner_texts() == ["torch-erf", "torch-tanh"]
    page.click("text=Show all")
    page.wait_for_function(
        f"document.querySelectorAll('#results tbody tr:not([hidden])').length === {every}"
    )


def test_rows_are_sorted_by_number_from_the_largest_when_a_heading_is_pressed(visit):
    page = visit("index.html")
    button = page.locator("#results thead button", has_text=re.compile("^tail$"))
    button.focus()
    page.keyboard.press("Enter")
    column = button.evaluate("b => b.closest('th').cellIndex")
    values = [
        float(v)
        for v in page.eval_on_selector_all(
            "#results tbody tr", f"rows => rows.map(r => r.cells[{column}].dataset.value)"
        )
    ]
    assert len(set(values)) > 5
    assert values == sorted(values, reverse=True)
    assert button.evaluate("b => b.closest('th').getAttribute('aria-sort')") == "descending"
    button.click()
    assert button.evaluate("b => b.closest('th').getAttribute('aria-sort')") == "ascending"
    assert page.locator("#results [aria-sort]").count() == 1


def test_trainings_are_filtered_and_sorted_and_lead_to_their_curves(visit):
    page = visit("training.html")
    assert page.locator(ROWS).count() == 2
    page.click("thead button:has-text('largest difference')")
    assert "saturated" in page.locator(f"{ROWS} th").first.inner_text()
    page.select_option("select[name=operator]", "geglu")
    assert page.inner_text("#shown") == "1 of 2 shown"
    page.click("text=triton-geglu")
    assert page.inner_text("p.verdict .status") == "equivalent"
    for key in ("losses", "differences", "gradients"):
        drawn(page, key)


def test_names_with_markup_show_as_text_everywhere(visit):
    index = visit("index.html")
    assert index.locator("#results th a", has_text="onerror").inner_text() == MARKUP
    page = visit(index.locator("#results th a", has_text="onerror").get_attribute("href"))
    assert page.inner_text("h1") == MARKUP
    assert page.locator("img").count() == 0
    assert page.locator("main b").count() == 0
    compare = visit("compare.html")
    (number,) = [
        n
        for n in range(compare.locator("section").count())
        if compare.locator("section h2").nth(n).inner_text() == "gelu, bf16"
    ]
    place = drawn(compare, f"regions-{number}")
    assert MARKUP in place.locator(".legendtext").all_text_contents()[0]
    assert compare.locator("img").count() == 0
    broken = visit(index.locator("#results th a", has_text="broken").get_attribute("href"))
    assert broken.locator("a[href^='javascript']").count() == 0
    assert "javascript:alert(3)" in broken.inner_text(".findings")
    assert MARKUP in broken.inner_text("#provenance + dl")


def test_a_figure_has_a_mark_for_each_figure_of_the_record(visit):
    page = visit("kernels/torch-erf.gelu.erf.fp32.cpu-avx2.html")
    spec = json.loads(page.locator("#spec-histogram").text_content())
    bars = drawn(page, "histogram").locator(".bars .point path")
    assert bars.count() == len(spec["data"][0]["x"]) == 161
    columns = drawn(page, "binades").locator(".bars .point path")
    assert columns.count() == 82
    band = drawn(page, "error")
    assert band.locator(".fills path").count() == 1
    points = json.loads(page.locator("#spec-error").text_content())["data"][3]["x"]
    assert band.locator(".points path.point").count() == len(points) > 5
    assert band.locator(".shapelayer path").count() == 4


def test_a_fused_kernel_has_its_cases_terms_and_batches(visit):
    page = visit("kernels/torch-geglu.geglu.erf.bf16.cpu-avx2.html")
    ladder = json.loads(page.locator("#spec-ladder").text_content())["data"]
    shown = drawn(page, "ladder").locator(".points path.point").count()
    marks = sum(len(trace["x"]) for trace in ladder if trace["mode"] == "markers")
    assert shown == marks > 100
    assert page.locator("[aria-labelledby=batches] tbody tr").count() == 6
    assert drawn(page, "terms").locator(".bars .point path").count() >= 3


def test_a_command_is_copied_when_its_button_is_pressed(visit):
    page = visit("kernels/torch-erf.gelu.erf.fp32.cpu-avx2.html",
                 permissions=["clipboard-read", "clipboard-write"])  # fmt: skip
    command = page.locator(".command code").first.inner_text()
    assert command.startswith("gelu-verify check torch-erf")
    # The button says so for two seconds only: what it said is kept.
    page.evaluate("""() => {
      const button = document.querySelector(".copy");
      window.said = [];
      new MutationObserver(() => said.push(button.textContent)).observe(button, {childList: true});
    }""")
    page.locator(".copy").first.click()
    page.wait_for_function("said.includes('Copied')")
    assert page.evaluate("navigator.clipboard.readText()") == command


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_pages_fit_their_width_and_follow_the_color_scheme(visit, width, scheme):
    fused = "kernels/torch-geglu.geglu.erf.bf16.cpu-avx2.html"
    trained = "trainings/triton-geglu.geglu.erf.fp32.cpu.digits-gated.html"
    for name in ("index.html", "compare.html", "training.html", fused, trained):
        page = visit(name, width, color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") is (scheme == "light")


def test_figures_are_printed_in_light_colors_all_of_them(visit):
    page = visit("kernels/torch-geglu.geglu.erf.bf16.cpu-avx2.html", color_scheme="dark")
    drawn(page, "error")
    ink = "() => getComputedStyle(document.querySelector('#figure-error .xtick text')).fill"
    on_screen = page.evaluate(ink)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.wait_for_function(f"({ink})() === 'rgb(28, 33, 38)'")
    count = page.locator(".plot").count()
    page.wait_for_function(f"document.querySelectorAll('.plot .main-svg').length >= {count}")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.wait_for_function(f"({ink})() === '{on_screen}'")
    assert on_screen != "rgb(28, 33, 38)"


def test_a_page_is_read_and_printed_without_the_plotting_library(browser, site, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(site, copy)
    (copy / "assets" / "plotly.min.js").unlink()
    page = browser.new_page()
    page.goto(f"{copy.as_uri()}/kernels/torch-geglu.geglu.erf.bf16.cpu-avx2.html")
    page.wait_for_selector(".plot.failed")
    assert "is missing" in page.locator(".plot").first.inner_text()
    page.emulate_media(media="print")
    assert not page.locator("header.site").is_visible()
    page.close()
