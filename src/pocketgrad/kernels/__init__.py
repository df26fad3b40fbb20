"""All kernel families, special before general; the first that matches a step computes it."""

from __future__ import annotations

from collections.abc import Collection

from pocketgrad.base.errors import DeviceError
from pocketgrad.kernels.conv import ConvKernel
from pocketgrad.kernels.conv_grad import ConvGradWeightKernel
from pocketgrad.kernels.conv_last import ConvLastKernel
from pocketgrad.kernels.conv_last_grad import ConvLastGradWeight
from pocketgrad.kernels.depthwise import Depthwise, DepthwiseGradWeight
from pocketgrad.kernels.embed import GatherGradKernel, GatherKernel, TakeGradKernel, TakeKernel
from pocketgrad.kernels.loops import Loops
from pocketgrad.kernels.matmul import MatMulKernel
from pocketgrad.kernels.matmul_panel import MatMulPanelKernel
from pocketgrad.kernels.pool import PoolForward, PoolGrad
from pocketgrad.kernels.pool_last import PoolLastForward, PoolLastGrad
from pocketgrad.kernels.resize import ResizeKernel
from pocketgrad.kernels.spec import Config, DeviceInfo, Kernel
from pocketgrad.kernels.tiling import index_type
from pocketgrad.kernels.winograd import WinogradForward, WinogradGradInput
from pocketgrad.kernels.winograd_grad import WinogradGradWeight
from pocketgrad.plan.plan import Step

ALL: tuple[Kernel, ...] = (
    MatMulPanelKernel(),
    MatMulKernel(),
    Depthwise(),
    DepthwiseGradWeight(),
    WinogradForward(),
    WinogradGradInput(),
    WinogradGradWeight(),
    ConvLastKernel(),
    ConvKernel(),
    ConvLastGradWeight(),
    ConvGradWeightKernel(),
    PoolLastForward(),
    PoolLastGrad(),
    PoolForward(),
    PoolGrad(),
    TakeKernel(),
    TakeGradKernel(),
    GatherKernel(),
    GatherGradKernel(),
    ResizeKernel(),
    Loops(),
)


def able(step: Step) -> list[str]:
    """The families that can compute a step on some device, the preferred first."""
    return [kernel.name for kernel in ALL if kernel.matches(step)]


def select(
    step: Step, device: DeviceInfo, excluded: Collection[str] = (), strict: bool = False
) -> tuple[Kernel, Config]:
    """The family and configuration for a step, none of the ``excluded`` families and only exact
    ones if ``strict``; DeviceError naming the step where none matches."""
    able = [kernel for kernel in ALL if kernel.matches(step) and (kernel.exact or not strict)]
    able = [kernel for kernel in able if kernel.pays(step, device)]
    far = index_type(*step.reads.values(), *step.writes.values()) == "long"
    for kernel in able:
        config = kernel.defaults(step, device)
        legal = kernel.name not in excluded and (kernel.far or not far)
        if legal and kernel.pays(step, device) and kernel.fits(step, config, device):
            return kernel, config
    values = [*step.reads, *step.writes]
    types = ", ".join(str(v.type) for v in values)
    barred = [kernel.name for kernel in able if kernel.name in excluded]
    why = f": {' and '.join(barred)} computed wrongly on it in its self-check" if barred else ""
    if far and able and not barred:
        raise DeviceError(
            f"{step.name} on {types} needs element numbers beyond 2^30, which the "
            f"{able[0].name} kernel does not have; use a smaller batch"
        )
    raise DeviceError(
        f"no kernel for {step.name} on {types}{why}; device {device.name} cannot run this model, "
        "the reference backend can (device='reference')"
    )
