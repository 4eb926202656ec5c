"""The pure core: decides where and how an accelerated job runs. Standard library only; no clock, network or files."""
