"""On an emulated Cortex-M4: pools in linker sections with spilling, parameters in a region of flash that are
replaced, layers by ticks.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from test_parameters import retrained

from aot_model.cli import main
from aot_model.emit.metadata import metadata_of
from aot_model.emit.view import Options
from aot_model.installation import include_dir
from aot_model.memory import Pool
from aot_model.pipeline import Compiled, Request, compile_model, write
from onnx_models import save, small_cnn
from qemu import BOARDS, available, build, build_and_run, run

pytestmark = pytest.mark.skipif(
    not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed"
)
X = np.random.default_rng(1).normal(size=(1, 2, 6, 6)).astype(np.float32)


def expected(path: Path) -> np.ndarray:
    found: np.ndarray = onnxruntime.InferenceSession(str(path)).run(None, {"x": X})[0]
    return found


def numbers(values: np.ndarray) -> str:
    return ", ".join(f"{v:.9e}f" for v in values.ravel())


def made(folder: Path, library: Options, **more: object) -> Compiled:
    compiled = compile_model(
        Request(save(small_cnn(), folder / "m.onnx"), "m", "cortex-m4", library=library, **more)
    )  # type: ignore[arg-type]
    write(compiled, folder)
    return compiled


FLAGS = ["-O2", f"-I{include_dir()}"]

PAINTED = """#include <stdio.h>
#include <string.h>
#include "m.h"
static const float x[72] = { %s };
extern uint8_t dtcm_begin[], dtcm_end[], sram_begin[], sram_end[], ext_begin[], ext_end[];
static unsigned used(const uint8_t *from, const uint8_t *to)
{
    while (to > from && to[-1] == 0xA5u) { --to; }
    return (unsigned)(to - from);
}
int main(void)
{
    static float y[5];
    const m_inputs in = { x };
    const m_outputs out = { y };
    memset(dtcm_begin, 0xA5, (size_t)(dtcm_end - dtcm_begin));
    memset(sram_begin, 0xA5, (size_t)(sram_end - sram_begin));
    memset(ext_begin, 0xA5, (size_t)(ext_end - ext_begin));
    if (m_run(&in, &out) != 0) { return 1; }
    printf("%%u %%u %%u", used(dtcm_begin, dtcm_end), used(sram_begin, sram_end), used(ext_begin, ext_end));
    for (int k = 0; k < 5; ++k) { printf(" %%ld", (long)(y[k] * 1e6f)); }
    return 0;
}
"""

# Three memories apart from each other and from the rest of the RAM, each with room that must not be touched.
REGIONS = """
SECTIONS {
    .dtcm 0x20300000 (NOLOAD) : { dtcm_begin = .; KEEP(*(.bss.m_dtcm)) . += 64; dtcm_end = .; }
    .sram 0x20310000 (NOLOAD) : { sram_begin = .; KEEP(*(.bss.m_sram)) . += 64; sram_end = .; }
    .ext 0x21000000 (NOLOAD) : { ext_begin = .; KEEP(*(.bss.m_ext)) . += 64; ext_end = .; }
}
INSERT BEFORE .bss;
"""


def test_three_pools_in_memories_of_their_own(tmp_path: Path) -> None:
    """Painted memory shows the bytes that the header says, in each of the three regions, and nothing
    beyond.
    """
    sections = {name: f".bss.m_{name}" for name in ("dtcm", "sram", "ext")}
    compiled = made(
        tmp_path, Options(sections=sections), pools=(Pool("dtcm", 320, 32), Pool("sram", 640), Pool("ext"))
    )
    sizes = [p.size for p in compiled.view.pools]
    assert all(sizes), "the plan spills into all three"
    (tmp_path / "main.c").write_text(PAINTED % numbers(X))
    (tmp_path / "regions.ld").write_text(REGIONS)
    printed = build_and_run(BOARDS["m4"], ["main.c", "m.c"], tmp_path, [*FLAGS, "-Wl,-T,regions.ld"]).split()
    assert list(map(int, printed[:3])) == sizes
    np.testing.assert_allclose(
        np.array(printed[3:], float) * 1e-6, expected(tmp_path / "m.onnx")[0], atol=2e-6
    )


PARTITION = """#include <stdio.h>
#include "m.h"
/* The partition is a region of flash of its own: the linker knows its address, not its content. */
extern const uint8_t partition[];
static const float x[72] = { %s };
int main(void)
{
    static float y[5];
    const m_inputs in = { x };
    const m_outputs out = { y };
    if (m_run(&in, &out) != AOT_MODEL_ERROR_PARAMETERS) { return 1; }
    if (m_set_params(partition + 4, 65536u) != AOT_MODEL_ERROR_ALIGNMENT) { return 2; }
    printf("%%d", (int)m_set_params(partition, 65536u));
    if (m_run(&in, &out) != 0) { return 0; }
    for (int k = 0; k < 5; ++k) { printf(" %%ld", (long)(y[k] * 1e6f)); }
    return 0;
}
"""


def _replaced(folder: Path, params: bytes) -> list[int]:
    """The status of m_set_params() and the outputs, with other bytes in the partition of the same
    firmware.
    """
    (folder / "new.params").write_bytes(params)
    command = ["arm-none-eabi-objcopy", "--update-section", ".partition=new.params", "board.elf", "new.elf"]
    subprocess.run(command, cwd=folder, check=True)
    return list(map(int, run(BOARDS["m4"], folder / "new.elf").split()))


def test_parameters_are_replaced_without_building(tmp_path: Path) -> None:
    """The firmware stays as it is: the right parameters, those of a retrained model, and those that are
    refused.
    """
    made(tmp_path, Options(params="external"))
    right = (tmp_path / "m.params").read_bytes()
    (tmp_path / "main.c").write_text(PARTITION % numbers(X))
    (tmp_path / "partition.s").write_text(
        f'.section .partition,"a"\n.global partition\n.balign 64\npartition: .space {len(right)}, 0xff\n'
    )
    (tmp_path / "partition.ld").write_text(
        "SECTIONS { .partition 0x00300000 : { KEEP(*(.partition)) } } INSERT AFTER .text;\n"
    )
    elf = build(BOARDS["m4"], ["main.c", "m.c", "partition.s"], tmp_path, [*FLAGS, "-Wl,-T,partition.ld"])
    assert run(BOARDS["m4"], elf) == "-3", "an erased partition is no parameters"
    new = save(retrained(), tmp_path / "new.onnx")
    assert (
        main(
            ["params", str(new), "-o", str(tmp_path / "retrained.params"), "--for", str(tmp_path / "m.json")]
        )
        == 0
    )
    for params, model in ((right, tmp_path / "m.onnx"), ((tmp_path / "retrained.params").read_bytes(), new)):
        status, *outputs = _replaced(tmp_path, params)
        assert status == 0
        np.testing.assert_allclose(np.array(outputs) * 1e-6, expected(model)[0], atol=2e-6)
    flipped = right[:200] + bytes([right[200] ^ 1]) + right[201:]
    other = compile_model(
        Request(
            save(retrained("wider"), tmp_path / "wide.onnx"),
            "m",
            "cortex-m4",
            library=Options(params="external"),
        )
    ).binaries["m.params"]
    version = right[:8] + b"\2" + right[9:]
    for wrong in (flipped, other[: len(right)], version, right[:-4] + b"\xff" * 4, b"\xff" * len(right)):
        assert _replaced(tmp_path, wrong) == [-3]


PROFILED = """#include <stdio.h>
#include "m.h"
uint32_t ticks(void);
static const float x[72] = { %s };
int main(void)
{
    static float y[5];
    const m_inputs in = { x };
    const m_outputs out = { y };
    uint32_t begin, whole;
    m_ticks = ticks;
    begin = ticks();
    for (int run = 0; run < 50; ++run) { if (m_run(&in, &out) != 0) { return 1; } }
    whole = ticks() - begin;
    printf("%%lu", (unsigned long)whole);
    for (unsigned k = 0; k < M_PROFILE_SIZE; ++k) { printf(" %%lu", (unsigned long)m_profile[k]); }
    return 0;
}
"""


def test_layers_by_instructions(tmp_path: Path) -> None:
    """The layers' ticks add up to those of the runs but for the calls between them; the convolutions take
    most.
    """
    compiled = made(tmp_path, Options(profile=True))
    (tmp_path / "main.c").write_text(PROFILED % numbers(X))
    whole, *layers = map(int, build_and_run(BOARDS["m4"], ["main.c", "m.c"], tmp_path, FLAGS).split())
    assert len(layers) == len(metadata_of(compiled.view).layers)
    assert 0.9 * whole < sum(layers) <= whole
    busiest = metadata_of(compiled.view).layers[layers.index(max(layers))]
    assert busiest.macs == max(layer.macs for layer in metadata_of(compiled.view).layers)
