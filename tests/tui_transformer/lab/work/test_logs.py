from tui_transformer.lab.work.logs import last_line, last_log_line


def test_the_last_line_says_why() -> None:
    words = "tui-transformer: warning: x\n\ntui-transformer: one training step does not fit on cpu\n"
    assert last_line(words) == "one training step does not fit on cpu"
    assert last_line("\n \n") == ""


def test_a_log_that_is_empty_or_gone_says_so(tmp_path) -> None:
    log = tmp_path / "log.txt"
    assert last_log_line(log) == "its log cannot be read"
    log.write_bytes(b"\n")
    assert last_log_line(log) == "its log is empty"
    log.write_bytes(b"begins\ntui-transformer: no such \xff\n\n")
    assert last_log_line(log) == "no such \ufffd"
