"""The target of an accelerator, in one file: copy it and put your own device in.

TinyNPU computes layers of floats from a command that it reads: convolutions of channels-last images, dense
layers, both with a bias and an optional rectifier, and maximum pooling. Its driver is tiny_npu.h. What it
does not compute is left to the processor. See docs/targets.md of aot-model, which explains each part.

    aot-model compile digits.onnx -o out --target tiny-npu,cortex-m4 --target-plugin tiny_npu.py
    aot-model check digits.onnx --target tiny-npu,host --target-plugin tiny_npu.py
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from aot_model.plugin import (
    Argument,
    Attribute,
    Claim,
    Device,
    DType,
    Match,
    Offload,
    Pattern,
    Region,
    RegionSite,
    Scratch,
    Target,
    Value,
    constant,
    new_constant,
    op,
    value,
    written,
)  # fmt: skip

# --- 1. Which parts of a model it takes ---------------------------------------------------------------------

FLOATS = value("x", dtype=DType.FLOAT32)
"""What is read, and named x in a match."""


def layer(product: Pattern) -> Pattern:
    """A product with its bias, and a rectifier where there is one."""
    biased = op("Add", product, constant("bias", rank=1), name="sum")
    return biased.optional(lambda p: op("Relu", p, name="relu"))


CONVOLUTION = layer(op("Convolution", FLOATS, constant("weights"), name="conv", group=1, dilations=(1, 1)))
DENSE = layer(
    op("MatMul", value("x", dtype=DType.FLOAT32, rank=2), constant("weights", rank=2), name="product")
)
MAXIMUM = op("Pool", FLOATS, name="pool", mode="max", pads=(0, 0, 0, 0), dilations=(1, 1), ceil_mode=0)


def convolution_fits(match: Match, target: Target) -> str | None:
    """Why the device does not compute a convolution; None when it does."""
    if match.value("x").type.rank != 4 or match.value("x").shape[0] != 1:
        return f"it is not one image but {match.value('x').type}"
    out_channels, height, width, in_channels = match.value("weights").shape
    if max(height, width) > 5:
        return f"its window of {height} x {width} is larger than 5 x 5"
    if max(in_channels, out_channels) > target.option("channels"):
        return (
            f"{max(in_channels, out_channels)} channels are more than the device's "
            f"{target.option('channels')}"
        )
    if match.value("bias").shape != (out_channels,):
        return "its bias is not one number for each channel"
    return None


def dense_fits(match: Match, target: Target) -> str | None:
    """The device multiplies one row at a time."""
    return None if match.value("x").shape[0] == 1 else f"it has {match.value('x').shape[0]} rows"


def one_image(match: Match, target: Target) -> str | None:
    """The device has no notion of a batch."""
    return None if match.value("x").shape[0] == 1 else f"it has {match.value('x').shape[0]} images"


# --- 2. Constants in the order in which it reads them -------------------------------------------------------


def pack(region: Region) -> Mapping[Value, Value | None]:
    """Weights of convolutions by tap, then input channel, then output channel."""
    packed: dict[Value, Value | None] = {}
    for match in region.matches:
        if match.pattern == "convolution":
            weights = match.value("weights")
            assert weights.data is not None
            packed[weights] = new_constant(
                f"{weights.name}_taps", np.ascontiguousarray(weights.data.transpose(1, 2, 3, 0))
            )
    return packed


# --- 3. The C of its layers ---------------------------------------------------------------------------------

COMMAND = """\
    static const tiny_npu_command command = {{ {fields} }};

    return tiny_npu_execute(npu, &command, x, {weights}, {bias}, y, {line});"""


def text(
    kind: str,
    x: tuple[int, ...],
    y: tuple[int, ...],
    window: tuple[int, ...],
    relu: bool,
    names: tuple[str, str, str],
) -> str:
    """C of a function that has the device compute one layer. x, y: extents (height, width, channels)."""
    fields = ", ".join([f"TINY_NPU_{kind}", *map(str, (*x, *y, *window)), "1" if relu else "0"])
    weights, bias, line = names
    return COMMAND.format(fields=fields, weights=weights, bias=bias, line=line)


def lower(region: Region, build: RegionSite) -> None:
    """One function for each layer of a region."""
    for match in region.matches:
        x, y = match.value("x"), match.result.outputs[0]
        arguments = [Argument("x", x)]
        if match.pattern != "maximum":
            arguments += [Argument("weights", match.value("weights")), Argument("bias", match.value("bias"))]
        if match.pattern == "convolution":
            _, height, width, channels = match.value("weights").shape
            top, left, *_ = match.attribute("conv", "pads") or (0, 0)
            window = (height, width, *match.attribute("conv", "strides"), top, left)
            # The device gathers the pixels of a window in fast memory: scratch, which is planned with
            # everything else.
            arguments.append(Argument("line", Scratch("line", 4 * height * width * channels, 16, "float")))
            body = text(
                "CONVOLUTION",
                x.shape[1:],
                y.shape[1:],
                window,
                match.has("relu"),
                ("weights", "bias", "line"),
            )
        elif match.pattern == "dense":
            body = text(
                "DENSE",
                (1, 1, x.shape[1]),
                (1, 1, y.shape[1]),
                (1, 1, 1, 1, 0, 0),
                match.has("relu"),
                ("weights", "bias", "NULL"),
            )
        else:
            window = (*match.attribute("pool", "kernel"), *match.attribute("pool", "strides"), 0, 0)
            body = text("MAXIMUM", x.shape[1:], y.shape[1:], window, False, ("NULL", "NULL", "NULL"))
        build.call(
            match.pattern, body, [*arguments, written("y", y)], match=match, fails=True, note="on TinyNPU"
        )


# --- 4. The target ------------------------------------------------------------------------------------------

TINY_NPU = Target(
    "tiny-npu",
    "TinyNPU, an accelerator for small networks of floats",
    attributes={"channels": Attribute(64, "most channels of a layer")},
    offload=Offload(
        patterns=(
            Claim("convolution", CONVOLUTION, convolution_fits),
            Claim("dense", DENSE, dense_fits),
            Claim("maximum", MAXIMUM, one_image),
        ),
        lower=lower,
        update_constants=pack,
        # tiny_npu_activate(), _open(), _close() and _deactivate(), with what the program hands to
        # <model>_run().
        device=Device(
            "npu",
            "tiny_npu.h",
            "tiny_npu",
            activate="tiny_npu_activate",
            open="tiny_npu_open",
            close="tiny_npu_close",
            deactivate="tiny_npu_deactivate",
        ),
    ),
)

TARGETS = [TINY_NPU]
