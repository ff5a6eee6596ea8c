"""Quantities written for people: bytes, seconds, counts and rates, on pages and in reports."""


def format_bytes(count: float) -> str:
    """Bytes in binary units (always named) with three figures: 96 B, 12.0 KiB, 1.50 MiB."""
    if count < 1024:
        return f"{count:.0f} B"
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        count /= 1024
        if count < 1024 or unit == "TiB":
            break
    digits = 2 if count < 10 else 1 if count < 100 else 0
    return f"{count:.{digits}f} {unit}"


def format_seconds(seconds: float) -> str:
    """A duration with three figures: 85 µs, 0.52 ms, 1.25 s."""
    for factor, unit in ((1e6, "µs"), (1e3, "ms")):
        if seconds * factor < 1000 and (unit == "ms" or seconds * factor < 100):
            value = seconds * factor
            digits = 0 if unit == "µs" or value >= 100 else 1 if value >= 10 else 2
            return f"{value:.{digits}f} {unit}"
    return f"{seconds:.2f} s"


def format_count(value: float) -> str:
    """A whole number with thousands separated."""
    return f"{value:,.0f}"


def format_rate(tokens_per_second: float) -> str:
    """Tokens a second, rounded to what a timing is worth (three figures)."""
    if tokens_per_second >= 1000:
        return f"{round(tokens_per_second, 3 - len(str(int(tokens_per_second)))):,.0f}"
    return f"{tokens_per_second:.3g}"
