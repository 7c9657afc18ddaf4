"""Exported networks for the tests of package managers: the digits, with a program that says what it finds."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from cmake_project import ROOT

DIGITS = ROOT / "examples/digits"
SAID = "10 of 10 digits are right"
LOOP = """
    int right = 0;
    for (int i = 0; i < DIGITS_IMAGES; i++) {
        static float image[64];
        static float probabilities[10];
        for (int pixel = 0; pixel < 64; pixel++) {
            image[pixel] = (float)digits_images[i][pixel] / 16.0f;
        }
        const digits_inputs inputs = {image};
        const digits_outputs outputs = {probabilities};
        int best = 0;
        if (digits_run(&inputs, &outputs) != 0) {
            break;
        }
        for (int digit = 1; digit < 10; digit++) {
            best = probabilities[digit] > probabilities[best] ? digit : best;
        }
        right += best == digits_labels[i];
    }
"""
PROGRAM = f"""#include <stdio.h>
#include "digits.h"
#include "images.h"

int main(void)
{{{LOOP}
    printf("%d of %d digits are right\\n", right, DIGITS_IMAGES);
    return right == DIGITS_IMAGES ? 0 : 1;
}}
"""


def exported(folder: Path, *options: str, target: str = "c") -> Path:
    """The unpacked archive of the digits, as folder/digits."""
    archive = folder / "digits.zip"
    folder.mkdir(parents=True, exist_ok=True)
    command = [
        sys.executable,
        ROOT / "compiler/aot_model",
        "export",
        DIGITS / "digits.onnx",
        "-o",
        archive,
        f"--target={target}",
        *options,
    ]
    subprocess.run(command, check=True, timeout=60)
    with zipfile.ZipFile(archive) as content:
        content.extractall(folder)
    return folder / "digits"
