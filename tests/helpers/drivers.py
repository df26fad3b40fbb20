"""Made-up devices, surveys and broken driver libraries."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
from pathlib import Path

import pytest

from pocketgrad.backends.runtimes import DeviceReport, RuntimeReport, Survey, name_devices

DEVICE = DeviceReport(
    ident="",
    library="/lib/x.so",
    platform="Portable Computing Language",
    platform_version="OpenCL 3.0 PoCL 3.1",
    name="pthread-core",
    index=0,
    vendor="SomeVendor",
    kind="cpu",
    driver="3.1",
    compute_units=2,
    max_work_group=4096,
    local_mem_nbytes=1 << 20,
    global_mem_nbytes=1 << 32,
    max_alloc_nbytes=1 << 31,
    base_align_nbytes=128,
    opencl_c="OpenCL C 1.2",
    fp16=False,
    fp64=True,
    unified_memory=True,
    vector_width_float=16,
    vector_width_half=0,
    max_clock_mhz=2000,
    extensions=("cl_khr_fp64",),
)
POCL = DEVICE
INTEL = dataclasses.replace(
    DEVICE, platform="Intel(R) OpenCL", name="AMD EPYC", vendor="Intel(R) Corporation"
)
FPGA = dataclasses.replace(
    INTEL, platform="Intel(R) FPGA Emulation Platform", unusable="an FPGA emulator, ignored"
)
NVIDIA = dataclasses.replace(
    DEVICE,
    platform="NVIDIA CUDA",
    name="GeForce GTX",
    vendor="NVIDIA Corporation",
    kind="gpu",
    unified_memory=False,
)
ADRENO = dataclasses.replace(
    DEVICE, platform="QUALCOMM Snapdragon(TM)", name="Adreno 650", vendor="QUALCOMM", kind="gpu"
)


def survey_of(*devices: DeviceReport) -> Survey:
    """A survey with one driver per device."""
    runtimes = (
        RuntimeReport(f"/lib/{i}.so", f"/etc/{i}.icd", "ok", "done", devices=(device,))
        for i, device in enumerate(devices)
    )
    return Survey(name_devices(tuple(runtimes)))


ENTRY = """
int clIcdGetPlatformIDsKHR(unsigned n, void **platforms, unsigned *count) { %s }
int clGetPlatformInfo(void *p, unsigned name, unsigned long n, void *out, void *nout) { return 0; }
void *clGetExtensionFunctionAddress(const char *name) { return 0; }
"""
SOURCES = {
    "aborts at load": "void abort(void); __attribute__((constructor)) void f(void) { abort(); }",
    "hangs at load": "int pause(void);"
    "__attribute__((constructor)) void f(void) { for (;;) pause(); }",
    "no driver": "int nothing_of_opencl(void) { return 0; }",
    "no platforms": ENTRY % "if (count) *count = 0; return -1001;",
    "crashes when asked": ENTRY % "return *(volatile int *)0;",
    "hangs when asked": "int pause(void);" + ENTRY % "for (;;) pause(); return 0;",
}


def library(kind: str, folder: Path) -> Path:
    """A shared library that misbehaves as `SOURCES` says; skips where there is no C compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler to make a broken driver with")
    source, built = folder / f"{kind}.c", folder / f"lib {kind}.so"
    source.write_text(SOURCES[kind])
    command = [compiler, "-w", "-shared", "-fPIC", "-o", str(built), str(source)]
    subprocess.run(command, check=True)
    return built
