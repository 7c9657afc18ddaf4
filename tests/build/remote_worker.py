"""A worker for remote execution: takes actions from a server over its bots interface and runs them here.

python remote_worker.py ADDRESS ID, with the Python that has BuildGrid, of which only the messages of the
protocols are used: Remote Execution API v2, Remote Workers API v1test2. An action sees a folder of its own
with its inputs, and its own environment only; it runs one at a time, without a sandbox: for tests.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import grpc
from buildgrid._protos.build.bazel.remote.execution.v2 import remote_execution_pb2 as reapi
from buildgrid._protos.build.bazel.remote.execution.v2 import remote_execution_pb2_grpc as services
from buildgrid._protos.google.devtools.remoteworkers.v1test2 import bots_pb2 as bots
from buildgrid._protos.google.devtools.remoteworkers.v1test2.bots_pb2_grpc import BotsStub

BATCH = 3 << 20
"""Bytes of a message, below gRPC's limit of 4 MiB."""
POLL = 10
"""Seconds that the server may keep a worker waiting for an action."""


class Store:
    """The content store of the server: what is read is checked, what is there is not sent again."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._stub = services.ContentAddressableStorageStub(channel)
        self._blobs: dict[str, bytes] = {}

    def read(self, digests: list[reapi.Digest]) -> list[bytes]:
        missing = [
            d for d in {d.hash: d for d in digests}.values() if d.hash not in self._blobs and d.size_bytes
        ]
        while missing:
            batch, size = [], 0
            while missing and (not batch or size + missing[-1].size_bytes <= BATCH):
                batch.append(missing.pop())
                size += batch[-1].size_bytes
            answer = self._stub.BatchReadBlobs(reapi.BatchReadBlobsRequest(digests=batch))
            for response in answer.responses:
                assert not response.status.code, response.status.message
                assert hashlib.sha256(response.data).hexdigest() == response.digest.hash
                self._blobs[response.digest.hash] = response.data
        return [self._blobs[d.hash] if d.size_bytes else b"" for d in digests]

    def write(self, blobs: list[bytes]) -> list[reapi.Digest]:
        digests = [reapi.Digest(hash=hashlib.sha256(b).hexdigest(), size_bytes=len(b)) for b in blobs]
        for digest, data in zip(digests, blobs, strict=True):
            request = reapi.BatchUpdateBlobsRequest()
            request.requests.add(digest=digest, data=data)
            for response in self._stub.BatchUpdateBlobs(request).responses:
                assert not response.status.code, response.status.message
        return digests

    def place(self, digest: reapi.Digest, folder: Path) -> None:
        """Inputs of an action: a directory, read level by level."""
        level = [(digest, folder)]
        while level:
            found = [
                (reapi.Directory.FromString(data), path)
                for data, (_, path) in zip(self.read([d for d, _ in level]), level, strict=True)
            ]
            files = [(f, path / f.name) for directory, path in found for f in directory.files]
            for directory, path in found:
                path.mkdir(parents=True, exist_ok=True)
                for link in directory.symlinks:
                    (path / link.name).symlink_to(link.target)
            for (file, path), data in zip(files, self.read([f.digest for f, _ in files]), strict=True):
                path.write_bytes(data)
                path.chmod(0o755 if file.is_executable else 0o644)
            level = [(d.digest, path / d.name) for directory, path in found for d in directory.directories]


def execute(store: Store, action: reapi.Action) -> reapi.ActionResult:
    """Run one action in a folder that is removed afterwards."""
    command = reapi.Command.FromString(store.read([action.command_digest])[0])
    with tempfile.TemporaryDirectory() as root:
        store.place(action.input_root_digest, Path(root))
        work = Path(root, command.working_directory)
        work.mkdir(parents=True, exist_ok=True)
        wanted = [*command.output_paths] or [*command.output_files, *command.output_directories]
        for path in wanted:
            (work / path).parent.mkdir(parents=True, exist_ok=True)
        for path in command.output_directories:
            (work / path).mkdir(parents=True, exist_ok=True)
        environment = {v.name: v.value for v in command.environment_variables}
        done = subprocess.run(
            [*command.arguments], cwd=work, env=environment, capture_output=True, check=False
        )
        result = reapi.ActionResult(exit_code=done.returncode)
        result.stdout_digest.CopyFrom(store.write([done.stdout])[0])
        result.stderr_digest.CopyFrom(store.write([done.stderr])[0])
        for path in wanted:
            place = work / path
            if place.is_dir():
                tree = reapi.Tree(root=_directory(store, place, children := []), children=children)
                (digest,) = store.write([tree.SerializeToString(deterministic=True)])
                result.output_directories.add(path=path, tree_digest=digest)
            elif place.exists():
                (digest,) = store.write([place.read_bytes()])
                result.output_files.add(path=path, digest=digest, is_executable=os.access(place, os.X_OK))
        return result


def _directory(store: Store, folder: Path, children: list[reapi.Directory]) -> reapi.Directory:
    made = reapi.Directory()
    for entry in sorted(folder.iterdir()):
        if entry.is_dir():
            child = _directory(store, entry, children)
            children.append(child)
            (digest,) = store.write([child.SerializeToString(deterministic=True)])
            made.directories.add(name=entry.name, digest=digest)
        else:
            (digest,) = store.write([entry.read_bytes()])
            made.files.add(name=entry.name, digest=digest, is_executable=os.access(entry, os.X_OK))
    return made


def main(address: str, name: str) -> None:
    channel = grpc.insecure_channel(address)
    store, stub = Store(channel), BotsStub(channel)
    session = bots.BotSession(bot_id=name, status=bots.OK)
    session.worker.devices.add(handle=name)
    session = stub.CreateBotSession(
        bots.CreateBotSessionRequest(parent="", bot_session=session), timeout=POLL
    )
    while True:
        for lease in session.leases:
            if lease.state == bots.PENDING:
                lease.state = bots.ACTIVE
            elif lease.state == bots.ACTIVE:
                action = reapi.Action()
                if not lease.payload.Unpack(action):
                    digest = reapi.Digest()
                    assert lease.payload.Unpack(digest)
                    action = reapi.Action.FromString(store.read([digest])[0])
                lease.result.Pack(execute(store, action))
                lease.state = bots.COMPLETED
        request = bots.UpdateBotSessionRequest(name=session.name, bot_session=session)
        session = stub.UpdateBotSession(request, timeout=POLL)


if __name__ == "__main__":
    main(*sys.argv[1:])
