"""A module that a batch brings along."""


def with_tax(amount: float) -> float:
    """Return an amount with a fifth on top."""
    return amount * 1.2
