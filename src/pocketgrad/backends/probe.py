"""Asks one OpenCL driver what it has, in a process that may crash or hang: run as a script.

Usage: probe.py FOLDER LIBRARY. Prints one JSON object per stage, so that the parent knows how far a
driver came. Imports nothing of the package: it must start fast and work from any place.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from typing import Any

ENTRIES = ("clIcdGetPlatformIDsKHR", "clGetExtensionFunctionAddress")
KERNEL = """
__kernel void probe(__global const float *a, __global float *out) {
  int i = get_global_id(0);
  out[i] = fma(a[i], 2.0f, 1.0f);
}
"""
N = 64


def _say(channel: int, **fields: Any) -> None:
    os.write(channel, (json.dumps(fields) + "\n").encode())


def _load(library: str) -> str:
    """Why the loader would refuse ``library``; it skips such a file without a word."""
    try:
        handle = ctypes.CDLL(library)
    except OSError as error:
        return str(error)
    if not any(hasattr(handle, entry) for entry in ENTRIES):
        return f"it is a library, but not an OpenCL driver (no {ENTRIES[0]} in it)"
    return ""


def _number(device: Any, name: str) -> int:
    import pyopencl as cl  # only after the loader is prepared

    try:
        return int(getattr(device, name))
    except (cl.Error, AttributeError):  # an optional query this driver does not answer
        return 0


def _describe(platform: Any, device: Any, index: int, library: str) -> dict[str, Any]:
    import pyopencl as cl

    kinds = {"cpu": cl.device_type.CPU, "gpu": cl.device_type.GPU}
    kinds["accelerator"] = cl.device_type.ACCELERATOR
    extensions = sorted(device.extensions.split())
    return {
        "ident": "",
        "library": library,
        "platform": platform.name.strip(),
        "platform_version": platform.version.strip(),
        "name": device.name.strip(),
        "index": index,
        "vendor": device.vendor.strip(),
        "kind": next((k for k, bit in kinds.items() if device.type & bit), "other"),
        "driver": device.driver_version.strip(),
        "compute_units": device.max_compute_units,
        "max_work_group": device.max_work_group_size,
        "local_mem_nbytes": device.local_mem_size,
        "global_mem_nbytes": device.global_mem_size,
        "max_alloc_nbytes": device.max_mem_alloc_size,
        "base_align_nbytes": device.mem_base_addr_align // 8,
        "opencl_c": device.opencl_c_version.strip(),
        "fp16": "cl_khr_fp16" in extensions,
        "fp64": "cl_khr_fp64" in extensions or _number(device, "double_fp_config") != 0,
        "unified_memory": bool(_number(device, "host_unified_memory")),
        "vector_width_float": _number(device, "native_vector_width_float"),
        "vector_width_half": _number(device, "native_vector_width_half"),
        "max_clock_mhz": _number(device, "max_clock_frequency"),
        "extensions": extensions,
        "unusable": _objection(platform, device),
    }


def _objection(platform: Any, device: Any) -> str:
    """What is known to be wrong with a device before anything runs on it."""
    if "fpga" in platform.name.lower():
        return "an FPGA emulator: correct but very slow, ignored"
    if not device.available:
        return "the driver says it is not available"
    if not device.compiler_available:
        return "its driver has no compiler"
    version = platform.version.split()[1] if len(platform.version.split()) > 1 else "unknown"
    if tuple(int(part) for part in version.split(".") if part.isdigit()) < (1, 2):
        return f"OpenCL {version}; at least 1.2 is needed"
    return ""


def _try(device: Any) -> str:
    """Build and run one kernel; what went wrong, or ''."""
    import numpy as np
    import pyopencl as cl

    try:
        context = cl.Context([device])
        queue = cl.CommandQueue(context)
        kernel = cl.Kernel(cl.Program(context, KERNEL).build(), "probe")
        a = np.arange(N, dtype=np.float32)
        out = np.full(N, np.nan, dtype=np.float32)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        buffers = [cl.Buffer(context, flags, hostbuf=array) for array in (a, out)]
        kernel(queue, (N,), None, *buffers)
        cl.enqueue_copy(queue, out, buffers[1])
        queue.finish()
    except cl.Error as error:
        text = " ".join(str(error).split())
        return f"cannot build and run a kernel: {text[:300]}"
    return "" if np.array_equal(out, a * 2 + 1) else "a first kernel computed wrong numbers"


def main(folder: str, library: str) -> None:
    """Go through the stages, saying each before it is entered."""
    channel = os.dup(1)  # drivers print to stdout at will; what they say goes to stderr
    os.dup2(2, 1)
    os.environ["OCL_ICD_VENDORS"] = folder
    os.environ["PYOPENCL_NO_CACHE"] = "1"
    _say(channel, stage="load")
    refusal = _load(library)
    if refusal:
        _say(channel, stage="load", refusal=refusal)
        return
    import pyopencl as cl

    _say(channel, stage="devices")
    try:
        platforms = cl.get_platforms()
        pairs = [(p, d, i) for p in platforms for i, d in enumerate(p.get_devices())]
        devices = [_describe(p, d, i, library) for p, d, i in pairs]
    except cl.Error as error:
        _say(channel, stage="devices", refusal=" ".join(str(error).split()))
        return
    _say(channel, stage="build", devices=devices)
    for fields, (_, device, _) in zip(devices, pairs, strict=True):
        fields["unusable"] = fields["unusable"] or _try(device)
    _say(channel, stage="done", devices=devices)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
    sys.stderr.flush()
    os._exit(0)  # a driver that falls over while unloading has answered all the same
