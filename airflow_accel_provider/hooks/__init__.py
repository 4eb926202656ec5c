"""The only code that talks to Google."""
