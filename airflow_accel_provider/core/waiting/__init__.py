"""Waiting for something to become true in Google's cloud: the question, what was read, and what that answers.

A question is a value of plain fields that can be stored and asked again by another process. Hooks read its facts; the
answer is decided here, so that every way of waiting ends with the same value or the same words.
"""
