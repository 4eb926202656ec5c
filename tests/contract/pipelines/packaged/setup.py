"""The package that goes with the pipeline."""

import setuptools

setuptools.setup(name="loudness", version="1.0", packages=["loudness"])
