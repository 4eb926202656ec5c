"""Makes words loud."""


def loud(word: str) -> str:
    """Return a word, louder."""
    return f"{word.upper()}!!"
