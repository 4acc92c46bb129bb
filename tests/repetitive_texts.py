"""Texts that repeat themselves as honest texts do: simple Chinese sentences, a log, code."""

import random
from pathlib import Path

import engine

WHO = ("我", "你", "他", "妈妈", "老师", "小明", "我的朋友", "那个孩子")
WHEN = ("今天", "昨天", "每天早上", "晚上", "星期天", "")
DO = ("吃", "买", "看", "喜欢", "想要", "没有看见")
WHAT = ("苹果", "一本书", "米饭", "电影", "红色的花", "那只猫", "牛奶", "一辆新车")
LEVELS, PARTS = ("INFO", "INFO", "INFO", "DEBUG", "WARNING"), ("scheduler", "worker-1", "worker-2", "http", "cache")
EVENTS = (
    "request finished with status 200 in {n} ms; connection kept alive for the next request of the same client",
    "heartbeat received; all replicas of the partition are in sync and no rebalancing is needed at the moment",
    "cache miss for key user:{n}, the value was read from the primary database and stored for 300 seconds",
    "retrying job {n} after a timeout of the upstream service; the job is put back to the end of the queue",
)


def chinese(characters: int = 94_000) -> str:
    """Sentences of one pattern and few words."""
    draw = random.Random(1)
    lines: list[str] = []
    while sum(map(len, lines)) < characters:
        lines.append(f"{draw.choice(WHEN)}{draw.choice(WHO)}{draw.choice(DO)}{draw.choice(WHAT)}。\n")
    return "".join(lines)[:characters]


def log(lines: int = 1_500) -> str:
    """A service's log: long lines that differ in little more than their time."""
    draw = random.Random(2)
    rows, second = [], 0
    for _ in range(lines):
        second += draw.randint(0, 5)
        time = f"2026-03-{1 + second // 86_400:02}T{second // 3_600 % 24:02}:{second // 60 % 60:02}:{second % 60:02}Z"
        event = draw.choice(EVENTS).format(n=draw.randint(1, 9_999))
        rows.append(f"{time} {draw.choice(LEVELS):<7} {draw.choice(PARTS)}: {event}\n")
    return "".join(rows)


def code() -> str:
    """Python as people write it: the engine's own source."""
    return "".join(path.read_text(encoding="utf-8") for path in sorted(Path(engine.__file__).parent.rglob("*.py")))
