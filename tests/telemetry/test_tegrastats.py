"""Lines that tegrastats printed on five boards and five releases."""

from __future__ import annotations

import pytest

from pocketgrad.base.errors import DataError
from pocketgrad.telemetry.tegrastats import parse

TX2 = (
    "RAM 696/7854MB (lfb 1675x4MB) CPU [12%@345,off,off,3%@345,0%@345,1%@345] EMC_FREQ 1%@665 "
    "GR3D_FREQ 37%@140 APE 150 MTS fg 0% bg 1% BCPU@30C MCPU@30C GPU@28C PLL@30C Tboard@26C "
    "Tdiode@27C PMIC@100C thermal@29.2C VDD_IN 1383/1383 VDD_CPU 153/191 VDD_GPU 76/76 "
    "VDD_SOC 384/384 VDD_WIFI 364/335 VDD_DDR 192/201"
)
XAVIER = (
    "RAM 408/15823MB (lfb 3702x4MB) SWAP 0/7911MB (cached 0MB) CPU [1%@2265,0%@2265] "
    "EMC_FREQ 0%@2133 GR3D_FREQ 0%@1377 APE 150 MTS fg 0% bg 0% AO@26.5C GPU@28C Tdiode@31.25C "
    "CPU@28C thermal@27.45C GPU 1155/1155 CPU 385/385 SOC 2502/2502 CV 0/0 VDDRQ 192/192 "
    "SYS5V 2692/2692"
)
ORIN = (
    "07-25-2026 09:08:28 RAM 20642/62817MB (lfb 1x2MB) CPU [23%@2201,10%@2201] EMC_FREQ 3%@3199 "
    "GR3D_FREQ 12%@[1300,1300] NVENC0 off NVDEC0 off VIC off OFA off NVDLA0 off PVA0_FREQ off "
    "APE 174 cpu@52.968C/52.968C gpu@47.625C/47.625C CV0@-256C VDD_GPU_SOC "
    "5139mW/5139mW/5139mW VDD_CPU_CV 3268mW/3268mW/3268mW NC 0mW/0mW VIN_SYS_5V0 5500mW/5400mW"
)
NANO = (
    "RAM 331/3964MB (lfb 758x4MB) SWAP 0/1982MB (cached 0MB) IRAM 0/252kB(lfb 252kB) "
    "CPU [5%,0%,0%,0%]@102 EMC_FREQ 3%@204 GR3D_FREQ 0%@76 APE 25 PLL@20.5C CPU@23.5C "
    "POM_5V_IN 933/933 POM_5V_GPU 0/0 POM_5V_CPU 84/105"
)


def test_a_tx2_with_denver_off() -> None:
    line = parse(TX2)
    assert line.memory_nbytes["RAM"] == (696 * 2**20, 7854 * 2**20)
    assert line.core_share == {0: 12, 3: 3, 4: 0, 5: 1}
    assert line.core_hz[0] == 345e6
    assert line.engine_share == {"EMC": 1, "GR3D": 37}
    assert line.engine_hz["GR3D"] == (140e6,)
    assert line.translation_share == (0.0, 1.0)
    assert line.celsius["thermal"] == 29.2
    # The first number is now, the second the mean since tegrastats was started.
    assert line.watt == {
        "VDD_IN": 1.383,
        "VDD_CPU": 0.153,
        "VDD_GPU": 0.076,
        "VDD_SOC": 0.384,
        "VDD_WIFI": 0.364,
        "VDD_DDR": 0.192,
    }


def test_on_xavier_one_word_is_rail_temperature_and_load() -> None:
    line = parse(XAVIER)
    assert (line.watt["GPU"], line.celsius["GPU"], line.engine_share["GR3D"]) == (1.155, 28, 0)
    assert (line.watt["CPU"], line.celsius["CPU"], line.core_share[0]) == (0.385, 28, 1)
    assert line.watt["CV"] == 0.0
    assert sum(line.watt.values()) == pytest.approx(6.926)


def test_a_new_release_with_units_clusters_and_a_wall_clock() -> None:
    line = parse(ORIN)
    assert line.engine_hz["GR3D"] == (1300e6, 1300e6)
    assert line.engine_share == {"EMC": 3, "GR3D": 12}
    assert line.watt == {"VDD_GPU_SOC": 5.139, "VDD_CPU_CV": 3.268, "VIN_SYS_5V0": 5.5}
    assert line.celsius == {"cpu": 52.968, "gpu": 47.625}, "-256 °C is a sensor that is off"


def test_the_old_form_with_one_clock_for_all_cores() -> None:
    line = parse(NANO)
    assert line.core_share == {0: 5, 1: 0, 2: 0, 3: 0}
    assert set(line.core_hz.values()) == {102e6}
    assert line.memory_nbytes["IRAM"] == (0, 252 * 1024)
    assert line.watt["POM_5V_GPU"] == 0.0


@pytest.mark.parametrize("line", ["", "hello", "tegrastats: permission denied", "CPU [1%@2]"])
def test_what_is_no_line_of_it_is_refused(line: str) -> None:
    with pytest.raises(DataError, match="no line of tegrastats"):
        parse(line)
