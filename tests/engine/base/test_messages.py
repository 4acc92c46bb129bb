"""A message is English as a string, records what it was made of, and is translated where it is shown."""

import copy
import json
import re

import pytest

from engine.base.language import LONGEST_VALUE, Message, recorded_message, tr, with_messages
from engine.runs.files import json_line
from engine.runs.records import Checks, Status, VerdictRecord
from tests.catalogue import messages
from tui_transformer import languages

PAUSED = "{name} is paused: press space to continue"
STEP = "{name}: {state} at step {step:,}"


def read_back(record):
    return type(record).read(json.loads(json_line(record.dump())))


def test_a_message_is_its_english_in_every_language() -> None:
    languages.use("zh")
    message = Message(STEP, name="demo", state=Message("stopped"), step=1200)
    assert message == "demo: stopped at step 1,200" and json.dumps(message) == '"demo: stopped at step 1,200"'
    assert tr(message) != message and "demo" in tr(message) and "1,200" in tr(message) and "stopped" not in tr(message)
    assert tr(copy.deepcopy(message)) == tr(message)


def test_values_may_come_later() -> None:
    languages.use("zh")
    assert tr(Message(PAUSED), name="demo") == tr(PAUSED, name="demo")


def test_a_message_of_a_message_is_that_message_and_takes_more_values() -> None:
    languages.use("zh")
    message = Message("{name} is not here", name="{demo}")
    assert Message(message) is message and str(message) == "{demo} is not here"
    assert tr(Message(Message(PAUSED), name="demo")) == tr(PAUSED, name="demo")


def test_a_context_tells_two_meanings_of_one_english_text_apart() -> None:
    heading = Message.in_context("heading", "seed")
    assert heading == "seed" == tr(heading) and Message.in_context("nowhere", "{n} seed", n=2) == "2 seed"
    languages.use("zh")
    assert tr(heading) == "种子" and tr("seed") == "随机种子" == tr(Message("seed"))
    assert tr(Message.in_context("nowhere", "no context for {n}", n=2)) == "no context for 2"
    assert tr(copy.deepcopy(heading)) == tr(Message(heading)) == "种子"


def test_a_counted_message_counts_in_every_language() -> None:
    one, two = (Message.counted("{n} run", "{n} runs", n) for n in (1, 2))
    assert (one, two) == ("1 run", "2 runs")
    languages.use("zh")
    assert "runs" not in tr(two) and "2" in tr(two)


def test_a_counted_message_is_read_back_and_may_get_more_values() -> None:
    languages.use("zh")
    message = Message.counted("{n} run", "{n} runs", 2)
    assert tr(read_back(Status.create(reason=message)).reason) == tr(message) != message
    assert message.format(other=1) == message and tr(message.format(other=1)) == tr(message)


def test_a_text_beside_the_messages_of_others_is_cleaned_too() -> None:
    found = {"template": PAUSED, "values": {"name": "x"}}
    status = Status.read({"reason": "\x1b[31mred", "messages": {"another text": found}})
    assert status.reason == "[31mred"


def test_a_record_has_the_english_and_the_message() -> None:
    reason = Message(STEP, name="demo", state=Message("stopped"), step=1200)
    record = read_back(Status.create(state="paused", reason=reason))
    assert record.reason == reason and tr(record.reason) == reason
    languages.use("zh")
    assert record.reason == reason and tr(record.reason) == tr(reason) != reason
    assert tr(read_back(record).reason) == tr(reason)  # written again by a resumed run
    checks = read_back(Checks.create(verdicts=(VerdictRecord.create(check="leak", why=reason),)))
    assert tr(checks.verdicts[0].why) == tr(reason)


def test_a_text_without_values_needs_no_message_beside_it() -> None:
    line = json_line(Status.create(reason=Message("its process is gone")).dump())
    assert "messages" not in line
    languages.use("zh")
    assert tr(Status.read(json.loads(line)).reason) == tr("its process is gone") != "its process is gone"


def test_earlier_runs_recorded_only_the_english() -> None:
    languages.use("zh")
    assert tr(Status.read({"reason": "demo is paused: press space to continue"}).reason) == tr(PAUSED, name="demo")


DEEP = {"template": PAUSED, "values": {"name": "x"}}
for _ in range(50):
    DEEP = {"template": PAUSED, "values": {"name": DEEP}}


@pytest.mark.parametrize(
    "found",
    [
        {"template": "{name.__class__.__mro__}", "values": {"name": "x"}},
        {"template": "{name[0]} is paused: press space to continue", "values": {"name": "x"}},
        {"template": "a template of somebody else: {name}", "values": {"name": "x"}},
        {"template": PAUSED, "values": {}},
        {"template": PAUSED, "values": {"other": "x"}},
        {"template": STEP, "values": {"name": "x", "state": "y", "step": "no number"}},
        {"template": PAUSED, "values": ["name"]},
        {"template": 7, "values": {"name": "x"}},
        {"template": PAUSED, "plural": PAUSED, "values": {"name": "x"}},
        "demo",
    ],
)
def test_a_hostile_message_shows_the_recorded_text(found) -> None:
    languages.use("zh")
    assert tr(recorded_message("what was recorded", {"what was recorded": found})) == "what was recorded"
    assert tr(recorded_message("what was recorded", [found])) == "what was recorded"


def test_values_from_a_file_are_cleaned_and_cut() -> None:
    languages.use("zh")
    found = {"template": PAUSED, "values": {"name": "\x1b[31m" + "n" * 10_000_000}}
    assert len(tr(recorded_message("x", {"x": found}))) < LONGEST_VALUE + 100
    assert "\x1b" not in tr(recorded_message("x\x1b", {"x\x1b": found}))
    assert len(tr(recorded_message("x", {"x": DEEP}))) < 1000
    assert len(json_line(with_messages({"reason": Message(PAUSED, name="n" * 10_000)}))) < 25_000


def test_no_message_of_the_program_reaches_into_its_values() -> None:
    texts = [text for _, found in messages() for text in ([found] if isinstance(found, str) else found)]
    assert not [text for text in texts if re.search(r"\{\w+[.\[]", text)]
