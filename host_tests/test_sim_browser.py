"""The virtual table's page in a real browser: rounds played by clicking, and by keyboard alone.

Leaves screenshots in build/screenshots. Nothing here is timed: what must come about is waited for.
"""

import re
import shutil

import pytest
from playwright.sync_api import expect, sync_playwright

import simrun

SHOTS = simrun.ROOT / "build" / "screenshots"
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-pings",
)


@pytest.fixture(scope="module")
def sim(tmp_path_factory):
    with simrun.SimRun(tmp_path_factory.mktemp("sim"), "--seed", "11") as running:
        yield running


@pytest.fixture(scope="module")
def browser():
    found = shutil.which("chromium")
    assert found, "these tests need chromium on PATH: apt-get install chromium"
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=found, args=list(QUIET))
        yield launched
        launched.close()


@pytest.fixture
def page(sim, browser, request):
    context = browser.new_context(viewport={"width": 1440, "height": 900}, locale="en-GB")
    context.set_default_timeout(20000)
    opened = context.new_page()
    wrong = []
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    opened.on("request", lambda call: wrong.append(call.url) if not ours(sim, call.url) else None)
    opened.goto(sim.url)
    phase(opened, re.compile(".+"))
    opened.evaluate("document.querySelector('#events').replaceChildren()")
    breaks(opened, "#renew")
    event(opened, "boot")
    phase(opened, "IDLE")
    number(opened, "#round", 0)
    yield opened
    SHOTS.mkdir(parents=True, exist_ok=True)
    opened.screenshot(path=SHOTS / (request.node.name.removeprefix("test_") + ".png"), full_page=True)
    context.close()
    assert wrong == []


def ours(sim, url):
    return url.startswith((sim.url, "data:", sim.url.replace("http", "ws")))


expect.set_options(timeout=20000)


def phase(page, name):
    expect(page.locator("body")).to_have_attribute("data-phase", name)


def number(page, where, value):
    expect(page.locator(where)).to_have_text(str(value))


def event(page, name, count=1):
    expect(page.locator("#events li[data-ev=%s]" % name)).to_have_count(count)


def chip(page, name, on=True):
    expect(page.locator("[data-chip=%s]" % name)).to_have_class("on" if on else "")


def move(page, *things):
    for thing in things:
        button = page.locator("[data-move=%s]" % thing)
        before = button.get_attribute("aria-pressed")
        button.click()
        expect(button).not_to_have_attribute("aria-pressed", before)


def press(page, key, then):
    """Hold a key down with the mouse until `then` has come about."""
    page.locator("[data-press=%s]" % key).hover()
    page.mouse.down()
    then()
    page.mouse.up()


def breaks(page, button):
    page.click("#openDrawer")
    page.click(button)
    page.click("#closeDrawer")


def cover_up(page):
    move(page, "cover", "latch_a", "latch_b")
    phase(page, "COVERED")


def shake(page):
    press(page, "start", lambda: expect(page.locator(".mark.status")).to_have_class(re.compile("amber")))
    phase(page, "BETTING")
    chip(page, "front_board")
    chip(page, "cover_lock")


def lift(page):
    press(page, "bell", lambda: phase(page, "CLOSED"))
    chip(page, "cover_lock", False)
    move(page, "latch_a", "latch_b", "cover")
    phase(page, "PAYOUT")


def announce(page):
    page.click("#announce")
    expect(page.locator(".cell.lit").first).to_be_visible()


def paid(page):
    press(page, "paid", lambda: phase(page, "IDLE"))
    expect(page.locator(".cell.lit")).to_have_count(0)


def dice_fall(page, how):
    breaks(page, "#force input[value=%s]" % how)


def test_a_whole_round_by_clicking(page):
    expect(page.locator("#bannerText")).to_contain_text("close both latches")
    dice_fall(page, "flat")
    cover_up(page)
    expect(page.locator("#seenWhy")).to_contain_text("nobody can see")
    shake(page)
    page.locator("[data-move=latch_a]").click()
    expect(page.locator("#toast")).to_contain_text("lock holds")
    lift(page)
    announce(page)
    chip(page, "cover_bar")
    for face, name in ((0, "1"), (1, "1"), (2, "1")):  # corrected by hand
        page.click("label[for=die%d-%s]" % (face, name))
    page.click("#sendResult")
    expect(page.locator("#won")).to_have_text(re.compile("Three fish.*Any triple"))
    assert "Three fish" in page.locator("#layout").get_attribute("aria-label")
    page.screenshot(path=shot("payout"))
    paid(page)
    number(page, "#round", 1)


def shot(name):
    SHOTS.mkdir(parents=True, exist_ok=True)
    return SHOTS / (name + ".png")


def test_a_void_round_is_repeated(page):
    dice_fall(page, "stacked")
    cover_up(page)
    shake(page)
    lift(page)
    expect(page.locator("#seenWhy")).to_contain_text("stacked")
    expect(page.locator("#announce")).to_be_disabled()
    press(page, "void", lambda: phase(page, "VOID"))
    chip(page, "cover_bar", False)
    dice_fall(page, "flat")
    cover_up(page)
    shake(page)
    number(page, "#round", 1)
    number(page, "#repeat", 1)
    lift(page)
    announce(page)
    paid(page)


def test_covering_before_payout_raises_the_alarm(page):
    dice_fall(page, "flat")
    cover_up(page)
    shake(page)
    lift(page)
    chip(page, "cover_bar")
    page.click("#cup .cover .lid")  # in the drawing, too
    chip(page, "alarm")
    event(page, "covered-unpaid")
    expect(page.locator("#bannerText")).to_contain_text("take the cover off")
    page.locator("[data-move=latch_a]").click()
    expect(page.locator("#toast")).to_contain_text("until payout is confirmed")
    page.screenshot(path=shot("covered-unpaid"))
    move(page, "cover")
    chip(page, "alarm", False)
    announce(page)
    paid(page)


def test_a_latch_opened_in_the_shake_stops_it(page):
    cover_up(page)
    page.click("#openDrawer")
    press(page, "start", lambda: expect(page.locator(".mark.status")).to_have_class(re.compile("amber")))
    page.click("[data-pry=latch_a]")
    page.click("#closeDrawer")
    phase(page, "FAULT")
    chip(page, "alarm")
    chip(page, "cover_lock")
    expect(page.locator("#bannerTitle")).to_contain_text("while the dice were being shaken")
    expect(page.locator("#bannerWay")).to_contain_text("service key on and off")
    expect(page.locator("#alerts")).to_contain_text("shaken")
    page.screenshot(path=shot("fault"))
    move(page, "service")
    move(page, "service")
    phase(page, "IDLE")
    event(page, "clear")


def test_a_power_cut_in_payout_forgets_nothing(page):
    dice_fall(page, "flat")
    cover_up(page)
    shake(page)
    lift(page)
    announce(page)
    chip(page, "cover_bar")
    breaks(page, "#power")
    expect(page.locator("#bannerTitle")).to_contain_text("no power")
    expect(page.locator(".cell.lit")).to_have_count(0)
    breaks(page, "#power")
    event(page, "recovered")
    phase(page, "PAYOUT")
    expect(page.locator(".cell.lit").first).to_be_visible()
    move(page, "cover")
    chip(page, "alarm")
    page.locator("[data-move=latch_b]").click()
    expect(page.locator("#toast")).to_contain_text("until payout is confirmed")
    move(page, "cover")
    paid(page)


def tab_to(page, selector):
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.evaluate("s => document.activeElement.matches(s)", selector):
            return
    raise AssertionError("the keyboard does not reach " + selector)


def test_a_round_by_keyboard_alone(page):
    breaks(page, "#force input[value=flat]")  # so that the dice can be announced; from here no mouse
    page.evaluate("document.activeElement.blur()")
    for thing in ("cover", "latch_a", "latch_b"):
        tab_to(page, "[data-move=%s]" % thing)
        page.keyboard.press("Enter")
        expect(page.locator("[data-move=%s]" % thing)).to_have_attribute("aria-pressed", "true")
    phase(page, "COVERED")
    tab_to(page, "[data-press=start]")
    page.keyboard.down("Space")
    expect(page.locator(".mark.status")).to_have_class(re.compile("amber"))
    page.keyboard.up("Space")
    phase(page, "BETTING")
    expect(page.locator("#say")).to_contain_text("Bets open")
    page.keyboard.down("b")  # and by its letter
    phase(page, "CLOSED")
    page.keyboard.up("b")
    chip(page, "cover_lock", False)
    page.keyboard.press("1")
    page.keyboard.press("2")
    expect(page.locator("[data-move=latch_b]")).to_have_attribute("aria-pressed", "false")
    page.keyboard.press("c")
    phase(page, "PAYOUT")
    tab_to(page, "#announce")
    page.keyboard.press("Enter")
    expect(page.locator(".cell.lit").first).to_be_visible()
    expect(page.locator("#say")).to_contain_text("Result")
    page.keyboard.down("p")
    phase(page, "IDLE")
    page.keyboard.up("p")


def test_a_key_let_go_with_ctrl_held_is_released(page):
    page.keyboard.down("p")
    expect(page.locator("[data-press=paid]")).to_have_class(re.compile("down"))
    event(page, "refused")
    page.keyboard.down("Control")
    page.keyboard.up("p")
    page.keyboard.up("Control")
    expect(page.locator("[data-press=paid]")).not_to_have_class(re.compile("down"))


def test_after_keys_and_shortcuts_a_click_without_a_hand_counts(page):
    bell = page.locator("[data-press=bell]")

    def click():  # as a screen reader does: no pointer goes down
        bell.evaluate("button => button.click()")

    page.keyboard.press("b")
    event(page, "refused", 1)
    expect(bell).not_to_have_class(re.compile("down"))
    click()
    event(page, "refused", 2)
    expect(bell).not_to_have_class(re.compile("down"))
    bell.focus()
    page.keyboard.press("Enter")
    event(page, "refused", 3)
    expect(bell).not_to_have_class(re.compile("down"))
    click()
    event(page, "refused", 4)


def test_the_shortest_click_is_one_press(page):
    bell = page.locator("[data-press=bell]")
    for count in (1, 2):
        bell.dispatch_event("pointerdown", {"button": 0, "pointerId": 1})
        bell.dispatch_event("pointerup", {"button": 0, "pointerId": 1})
        bell.evaluate("button => button.click()")
        event(page, "refused", count)
        expect(bell).not_to_have_class(re.compile("down"))
        page.wait_for_timeout(500)  # as a hand does: a key that is pressed again at once may be one press


def test_every_refusal_is_read_out(page):
    page.evaluate(
        """() => {
             window.read = [];
             new MutationObserver(list => {
               for (const change of list) for (const node of change.addedNodes) read.push(node.textContent);
             }).observe(document.querySelector("#say"), {childList: true});
           }"""
    )
    for count in (1, 2, 3):
        page.locator("[data-press=bell]").click()
        event(page, "refused", count)
        expect(page.locator("[data-press=bell]")).not_to_have_class(re.compile("down"))
        page.wait_for_timeout(500)
    words = page.evaluate("read")
    assert len(words) == 3 and len(set(words)) == 1 and "Bell" in words[0]


def test_a_table_that_goes_is_read_out_and_the_one_that_comes_has_its_own_keys(browser, tmp_path):
    context = browser.new_context(locale="en-GB")
    opened = context.new_page()
    with simrun.SimRun(tmp_path) as sim:
        opened.goto(sim.url)
        phase(opened, "IDLE")
        expect(opened.locator("[data-press=start]")).to_be_visible()
    alert = opened.locator("#alerts[role=alert]")
    expect(alert).to_contain_text("make sim")
    for works in ("[data-press=start]", "[data-move=cover]", "#sendResult", "#saveVcd"):
        assert not opened.evaluate(
            "at => (at = document.querySelector(at), at.focus(), at === document.activeElement)", works
        )
    opened.keyboard.press("c")
    expect(opened.locator("#toast")).to_contain_text("make sim")
    with simrun.SimRun(tmp_path, "--lever", "--port", str(sim.port)):
        expect(opened.locator("[data-press=lever]")).to_be_visible()
        phase(opened, "IDLE")
        expect(alert).to_have_text("")
        opened.locator("[data-move=cover]").focus()
        expect(opened.locator("[data-move=cover]")).to_be_focused()
        context.close()


def test_a_page_from_elsewhere_cannot_drive_it(sim, browser):
    context = browser.new_context()
    other = context.new_page()
    other.route("http://elsewhere.example/", lambda route: route.fulfill(body="<title>other</title>"))
    other.goto("http://elsewhere.example/")
    outcome = other.evaluate(
        """port => new Promise(done => {
             const socket = new WebSocket(`ws://127.0.0.1:${port}/socket`);
             socket.onopen = () => done("open");
             socket.onerror = () => done("refused");
           })""",
        sim.port,
    )
    assert outcome == "refused"
    read = other.evaluate("url => fetch(url).then(() => 'read', () => 'refused')", sim.url + "data.json")
    assert read == "refused"
    context.close()


def test_languages_themes_and_a_telephone(page):
    page.select_option("#language", "pt")
    expect(page.locator("[data-lamp=rooster] .name")).to_have_text("Galo")
    expect(page.locator("html")).to_have_attribute("lang", "pt-PT")
    page.reload()
    expect(page.locator("#bannerText")).to_contain_text("feche os dois fechos")  # remembered
    page.select_option("#language", "zh")
    expect(page.locator("[data-move=cover] b")).to_have_text("蓋")
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.locator("#layout")).to_have_attribute("viewBox", re.compile("^0 0 360"))
    for width in (390, 320):
        page.set_viewport_size({"width": width, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.set_viewport_size({"width": 390, "height": 844})
    page.screenshot(path=shot("telephone"))
    page.select_option("#language", "en")


def test_everything_that_can_be_worked_has_a_name(page):
    page.click("#openDrawer")
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, a, svg[role=img], summary")]
             .filter(n => !(n.getAttribute("aria-label") || n.textContent.trim() || n.labels?.length))
             .map(n => n.outerHTML)"""
    )
    assert nameless == []
    page.click("#closeDrawer")
    page.locator(".rulesSide summary").click()
    row = page.locator("#odds tr", has_text="Three roosters")
    expect(row).to_contain_text("150 : 1")


def test_the_time_line_is_saved(page):
    cover_up(page)
    with page.expect_download() as waiting:
        page.click("#saveVcd")
    text = waiting.value.path().read_text()
    assert waiting.value.suggested_filename.endswith(".vcd") and "$enddefinitions" in text
