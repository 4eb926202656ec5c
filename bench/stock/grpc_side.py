"""The few gRPC methods that the stock operators call, told as REST."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

Call = Callable[..., Awaitable[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A request as REST has it."""

    verb: str
    path: str
    query: str = ""
    body: bytes = b""


def get_job(request: Any) -> Told:
    """Tell of a look at a Dataflow job."""
    path = f"/v1b3/projects/{request.project_id}/locations/{request.location}/jobs/{request.job_id}"
    return Told(verb="GET", path=path)


def create_batch(request: Any) -> Told:
    """Tell of a new batch."""
    from google.protobuf.json_format import MessageToDict

    said = {"batchId": request.batch_id, "requestId": request.request_id}
    query = "&".join(f"{name}={value}" for name, value in said.items() if value)
    body = json.dumps(MessageToDict(request.batch)).encode()
    return Told(verb="POST", path=f"/v1/{located(request.parent)}/batches", query=query, body=body)


def get_batch(request: Any) -> Told:
    """Tell of a look at a batch."""
    return Told(verb="GET", path=f"/v1/{located(request.name)}")


def get_operation(request: Any) -> Told:
    """Tell of a look at the making of a batch."""
    return Told(verb="GET", path=f"/v1/{request.name}")


def cancel_operation(request: Any) -> Told:
    """Tell of a wish to end a batch."""
    return Told(verb="POST", path=f"/v1/{request.name}:cancel", body=b"{}")


def located(name: str) -> str:
    """Return a name as REST has it: the stock hooks say regions where it says locations."""
    return name.replace("/regions/", "/locations/")


async def serve(call: Call, address: str) -> Any:
    """Start a server on an address; it answers with what ``call`` does."""
    import grpc
    from google.cloud import dataflow_v1beta3 as dataflow
    from google.cloud import dataproc_v1 as dataproc
    from google.longrunning import operations_pb2
    from google.protobuf import empty_pb2
    from google.protobuf.json_format import Parse

    codes = {code.name: code for code in grpc.StatusCode} | {"CANCELLED": grpc.StatusCode.CANCELLED}

    def method(tell: Callable[[Any], Told], asked: Any, answered: Any) -> Any:
        async def handle(request: Any, context: Any) -> Any:
            told = tell(request)
            said = await call(
                told.verb, told.path, query=told.query, body=told.body, **{"content-type": "application/json"}
            )
            if said.status >= 400:
                error: Mapping[str, Any] = json.loads(said.body)["error"]
                code = codes.get(error.get("status", ""), grpc.StatusCode.UNKNOWN)
                await context.abort(code, error.get("message", ""))
            return Parse(said.body or b"{}", answered(), ignore_unknown_fields=True)

        return grpc.unary_unary_rpc_method_handler(
            handle, request_deserializer=asked.FromString, response_serializer=lambda answer: answer.SerializeToString()
        )

    services = {
        "google.dataflow.v1beta3.JobsV1Beta3": {
            "GetJob": method(get_job, dataflow.GetJobRequest.pb(), dataflow.Job.pb()),
        },
        "google.cloud.dataproc.v1.BatchController": {
            "CreateBatch": method(create_batch, dataproc.CreateBatchRequest.pb(), operations_pb2.Operation),
            "GetBatch": method(get_batch, dataproc.GetBatchRequest.pb(), dataproc.Batch.pb()),
        },
        "google.longrunning.Operations": {
            "GetOperation": method(get_operation, operations_pb2.GetOperationRequest, operations_pb2.Operation),
            "CancelOperation": method(cancel_operation, operations_pb2.CancelOperationRequest, empty_pb2.Empty),
        },
    }
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(
        tuple(grpc.method_handlers_generic_handler(name, methods) for name, methods in services.items())
    )
    server.add_insecure_port(address)
    await server.start()
    return server
