"""The blocks of the README that tools fill in: what stands between a begin and an end mark."""


def enter(readme: str, begin: str, end: str, block: str) -> str:
    """Return the README's text with `block` between the marks. Raises ValueError where it has not both."""
    before, found, rest = readme.partition(begin)
    _, also, after = rest.partition(end)
    if not found or not also:
        raise ValueError(f"no block {begin}")
    return f"{before}{begin}\n{block}\n{end}{after}"
