"""Parameters that somebody else made: what is checked when they are opened, and the caller's own judgement
before.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import struct
import subprocess
import zlib
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from aot_model.cli import main
from aot_model.emit.view import Options
from aot_model.host.program import SANITIZE, STRICT
from aot_model.installation import include_dir
from aot_model.pipeline import Request, compile_model, write
from onnx_models import model, save, small_cnn, tensor

EXTERNAL = Options(params="external")

# HMAC-SHA256 (RFC 2104, FIPS 180-4) as a caller would bring it along; prints what becomes of each file that
# it is given.
MAIN = r"""#include <stdio.h>
#include <string.h>
#include "cnn.h"

static const uint32_t K[64] = { %s };
typedef struct { uint32_t h[8]; uint8_t block[64]; uint32_t used; uint64_t bytes; } sha;

static uint32_t turn(uint32_t x, int n) { return x >> n | x << (32 - n); }

static void mix(sha *s)
{
    uint32_t w[64], v[8];
    for (int k = 0; k < 16; ++k) {
        w[k] = (uint32_t)s->block[4 * k] << 24 | (uint32_t)s->block[4 * k + 1] << 16 | (uint32_t)s->block[4 * k + 2] << 8 | s->block[4 * k + 3];
    }
    for (int k = 16; k < 64; ++k) {
        const uint32_t a = w[k - 15], b = w[k - 2];
        w[k] = w[k - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[k - 7] + (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
    }
    memcpy(v, s->h, sizeof v);
    for (int k = 0; k < 64; ++k) {
        const uint32_t t = v[7] + (turn(v[4], 6) ^ turn(v[4], 11) ^ turn(v[4], 25)) + ((v[4] & v[5]) ^ (~v[4] & v[6])) + K[k] + w[k];
        const uint32_t u = (turn(v[0], 2) ^ turn(v[0], 13) ^ turn(v[0], 22)) + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof v[0]);
        v[4] += t;
        v[0] = t + u;
    }
    for (int k = 0; k < 8; ++k) { s->h[k] += v[k]; }
    s->used = 0;
}

static void add(sha *s, const uint8_t *data, uint32_t bytes)
{
    s->bytes += bytes;
    for (uint32_t k = 0; k < bytes; ++k) {
        s->block[s->used++] = data[k];
        if (s->used == 64u) { mix(s); }
    }
}

static void begin(sha *s)
{
    static const uint32_t h[8] = { 0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au, 0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u };
    memset(s, 0, sizeof *s);
    memcpy(s->h, h, sizeof h);
}

static void end(sha *s, uint8_t *digest)
{
    const uint64_t bits = s->bytes * 8u;
    uint8_t last = 0x80;
    add(s, &last, 1);
    for (last = 0; s->used != 56u;) { add(s, &last, 1); }
    for (int k = 7; k >= 0; --k) { last = (uint8_t)(bits >> 8 * k); add(s, &last, 1); }
    for (int k = 0; k < 32; ++k) { digest[k] = (uint8_t)(s->h[k / 4] >> 8 * (3 - k %% 4)); }
}

typedef struct { uint8_t key[64]; uint8_t mac[32]; int asked; } judge;

static int32_t right_key(const void *parameters, uint32_t bytes, void *context)
{
    judge *const j = (judge *)context;
    uint8_t pad[64], digest[32], wrong = 0;
    sha s;
    j->asked += 1;
    begin(&s);
    for (int k = 0; k < 64; ++k) { pad[k] = j->key[k] ^ 0x36; }
    add(&s, pad, 64);
    add(&s, (const uint8_t *)parameters, bytes);
    end(&s, digest);
    begin(&s);
    for (int k = 0; k < 64; ++k) { pad[k] = j->key[k] ^ 0x5c; }
    add(&s, pad, 64);
    add(&s, digest, 32);
    end(&s, digest);
    for (int k = 0; k < 32; ++k) { wrong = (uint8_t)(wrong | (digest[k] ^ j->mac[k])); } /* all of it, whatever differs */
    return wrong;
}

static _Alignas(64) uint8_t file[CNN_PARAMS_SIZE + 33u];
static float x[72], y[5];
int main(int argc, char **argv)
{
    const cnn_inputs inputs = { x };
    const cnn_outputs outputs = { y };
    judge j = { "the key of the factory", { 0 }, 0 };
    for (int k = 1; k < argc; ++k) {
        FILE *const f = fopen(argv[k], "rb");
        const uint32_t size = (uint32_t)fread(file, 1, sizeof file, f);
        fclose(f);
        if (size >= 32u) { memcpy(j.mac, file + size - 32u, 32); } /* behind the parameters */
        j.asked = 0;
        printf("%%d ", (int)cnn_set_verified_params(file, size - 32u, right_key, &j));
        printf("%%d %%d\n", j.asked, (int)cnn_run(&inputs, &outputs));
    }
    return cnn_set_verified_params(NULL, 0u, right_key, &j) == AOT_MODEL_ERROR_NULL ? 0 : 1;
}
"""  # noqa: E501


def round_constants() -> str:
    """The first 32 bits of the fractions of the cube roots of the first 64 primes, in whole numbers."""
    primes = [p for p in range(2, 312) if all(p % q for q in range(2, p))]

    def root(n: int) -> int:
        low, high = 0, 1 << 60
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if middle**3 <= n else (low, middle - 1)
        return low

    return ", ".join(f"{root(p << 96) & 0xFFFFFFFF:#x}u" for p in primes)


def with_crc(data: bytearray) -> bytes:
    data[60:64] = struct.pack("<I", zlib.crc32(bytes(data[64:]), zlib.crc32(bytes(data[:60]))))
    return bytes(data)


def test_a_key_check_by_the_caller(tmp_path: Path) -> None:
    write(
        compile_model(Request(save(small_cnn(), tmp_path / "cnn.onnx"), "cnn", "c", library=EXTERNAL)),
        tmp_path,
    )
    (tmp_path / "main.c").write_text(MAIN % round_constants())
    right = (tmp_path / "cnn.params").read_bytes()
    key = b"the key of the factory"
    forged = bytearray(right)
    forged[200] ^= 1
    files = {
        "right": right + hmac.digest(key, right, hashlib.sha256),
        "other_key": right + hmac.digest(b"another", right, hashlib.sha256),
        "forged": with_crc(forged) + hmac.digest(key, right, hashlib.sha256),
        "no_mac": right + bytes(32),
        "short": right[:-1] + hmac.digest(key, right[:-1], hashlib.sha256),
        "damaged": bytes(forged) + hmac.digest(key, bytes(forged), hashlib.sha256),
    }
    files["damaged"] = (
        right[:-1]
        + bytes([right[-1] ^ 1])
        + hmac.digest(key, right[:-1] + bytes([right[-1] ^ 1]), hashlib.sha256)
    )
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    subprocess.run(
        [
            "cc",
            "-std=c11",
            *STRICT[1:],
            *SANITIZE,
            f"-I{include_dir()}",
            "main.c",
            "cnn.c",
            "-lm",
            "-o",
            "main",
        ],
        cwd=tmp_path,
        check=True,
    )
    done = subprocess.run(["./main", *files], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # status, times asked, status of a run after it
    found = dict(zip(files, done.stdout.splitlines(), strict=True))
    assert found == {
        "right": "0 1 0",
        "other_key": "-3 1 -3",
        "forged": "-3 1 -3",
        "no_mac": "-3 1 -3",
        "short": "-3 0 -3",
        "damaged": "-3 1 -3",
    }


# --- a model that was trained again -------------------------------------------------------------------------


def quantised(seed: int, low: int = -100) -> onnx.ModelProto:
    """A quantised convolution and its weights, biases and scales by channel."""
    rng = np.random.default_rng(seed)
    constants = {
        "xs": np.asarray(0.05, np.float32),
        "xz": np.asarray(3, np.int8),
        "w": rng.integers(low, 100, (6, 4, 3, 3)).astype(np.int8),
        "b": rng.integers(-2000, 2000, 6).astype(np.int32),
        "ws": rng.uniform(0.01, 0.011, 6).astype(np.float32),
        "wz": np.zeros(6, np.int8),
        "ys": np.asarray(0.8, np.float32),
        "yz": np.asarray(-5, np.int8),
    }
    node = helper.make_node("QLinearConv", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"], ["y"])
    return model(
        [node],
        [tensor("x", [1, 4, 5, 5], TensorProto.INT8)],
        [tensor("y", None, TensorProto.INT8)],
        constants,
    )


def gathered(rows: list[int]) -> onnx.ModelProto:
    return model(
        [helper.make_node("Gather", ["x", "i"], ["y"])],
        [tensor("x", [9, 3])],
        [tensor("y", [len(rows), 3])],
        {"i": np.asarray(rows, np.int64)},
    )


def made_for(tmp_path: Path, library: onnx.ModelProto, new: onnx.ModelProto) -> int:
    write(compile_model(Request(save(library, tmp_path / "m.onnx"), "m", "c", library=EXTERNAL)), tmp_path)
    return main(
        [
            "params",
            str(save(new, tmp_path / "new.onnx")),
            "-o",
            str(tmp_path / "new.params"),
            "--for",
            str(tmp_path / "m.json"),
        ]
    )


def test_other_weights_biases_and_factors_are_parameters(tmp_path: Path) -> None:
    assert made_for(tmp_path, quantised(1), quantised(2)) == 0
    assert (tmp_path / "new.params").read_bytes() != (tmp_path / "m.params").read_bytes()


def test_what_the_code_does_not_expect_is_refused_when_it_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert made_for(tmp_path, gathered([1, 4, 2, 2]), gathered([2, 3, 1, 4])) == 0
    capsys.readouterr()
    assert made_for(tmp_path, gathered([1, 4, 2, 2]), gathered([2, 8, 1, 4])) == 1
    error = capsys.readouterr().err
    assert "E303" in error and "from 1 to 4" in error


def test_checks_are_in_the_metadata_and_cost_nothing_in_linked_libraries(tmp_path: Path) -> None:
    path = save(gathered([1, 4, 2, 2]), tmp_path / "m.onnx")
    external = compile_model(Request(path, "m", "c", library=EXTERNAL)).texts
    assert json.loads(external["m.json"])["parameters"]["checks"] == [[0, "int64", 0, 4, 1, 1, 4, 0]]
    assert "m_parameter_checks" in external["m.c"]
    linked = compile_model(Request(path, "m", "c")).texts
    assert "parameter" not in linked["m.c"]
