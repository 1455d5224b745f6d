"""The OpenAPI document against the server, by `schemathesis`: what the document allows is answered as it says, what it
forbids is refused, and nothing ends in a 5xx."""

import hypothesis
import pytest
import schemathesis
from serving import PATIENCE_S, Server

CHECKS = [schemathesis.checks.not_a_server_error, schemathesis.checks.status_code_conformance,
          schemathesis.checks.content_type_conformance, schemathesis.checks.response_schema_conformance]


@pytest.fixture(scope="module")
def document(millrace):
    # A context of a few hundred tokens: what is drawn may ask for as many as it likes.
    with Server(millrace, "-c", "256") as server:
        if server.ask("/openapi.json")[0] == 404:
            pytest.skip("the server has no OpenAPI document yet")
        yield schemathesis.openapi.from_url(f"{server.url}/openapi.json")


SETTINGS = hypothesis.settings(max_examples=12, deadline=None, derandomize=True, database=None,
                               suppress_health_check=list(hypothesis.HealthCheck))


@pytest.mark.parametrize("mode", schemathesis.GenerationMode, ids=lambda mode: mode.value)
def test_the_document_holds(document, mode):
    """With what it allows, and with what it does not."""
    operations = [result.ok() for result in document.get_all_operations()]
    assert len(operations) > 8
    failures = []
    for operation in operations:
        @SETTINGS
        @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
        def holds(case):
            reply = case.call(timeout=PATIENCE_S)
            # The document has a stream's body as one text, and schemathesis looks at each event.
            is_stream = reply.headers.get("content-type", [""])[0].startswith("text/event-stream")
            case.validate_response(reply, checks=CHECKS[:-1] if is_stream else CHECKS)

        try:
            holds()
        except hypothesis.errors.Unsatisfiable:
            assert not operation.body  # without one, it may take nothing that could be wrong
        except (Exception, BaseExceptionGroup) as failure:  # all of them are told at once
            failures.append(f"{operation.label}: {failure}")
    assert not failures, "\n\n".join(failures)
