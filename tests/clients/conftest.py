"""What the tests of the server share: the program to start, and where the tests' own modules are."""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from serving import Server  # noqa: E402


@pytest.fixture(scope="session")
def millrace():
    return os.environ["MILLRACE_PROGRAM"]


@pytest.fixture(scope="module")
def plain(millrace):
    """The small model as it is."""
    with Server(millrace) as server:
        yield server


@pytest.fixture
def scripted(millrace):
    """scripted(LINES...): a server whose model says these lines, as in serving.Server."""
    started = []

    def start(*script, **options):
        started.append(Server(millrace, script=script, **options))
        return started[-1]

    yield start
    for server in started:
        server.stop()
