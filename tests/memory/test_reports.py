"""Public reports and disputes about the bytes of a cache, with the right answers and links."""

import pytest

from tinyllm.memory.conformance import answers, report_checks, reports

REPORTS = answers("reports")


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report["id"])
def test_the_right_answer(report):
    (check,) = report_checks(report)
    assert check.ours == check.right


def test_every_report_is_shown() -> None:
    assert len(list(reports())) == len(REPORTS) >= 16
