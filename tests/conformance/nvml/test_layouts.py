"""The structures that the fake fills are those of the bindings: the same size, member by member at the same place."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import pynvml
import pytest

from xpulse.testing.nvml import building, compiler

OURS_AND_THEIRS = {
    "pci_info": "nvmlPciInfo_t",
    "pci_info_ext": "nvmlPciInfoExt_v1_t",
    "memory_v1": "c_nvmlMemory_t",
    "memory_v2": "c_nvmlMemory_v2_t",
    "utilization": "c_nvmlUtilization_t",
    "temperature_v1": "c_nvmlTemperature_v1_t",
    "margin_v1": "c_nvmlMarginTemperature_v1_t",
    "fan_speed_v1": "c_nvmlFanSpeedInfo_t",
    "violation_time": "c_nvmlViolationTime_t",
    "sram_status_v1": "c_nvmlEccSramErrorStatus_v1_t",
    "remap_histogram": "c_nvmlRowRemapperHistogramValues",
    "remapped_v2": "c_nvmlRemappedRowsInfo_v2_t",
    "repair_v1": "c_nvmlRepairStatus_t",
    "unrepairable_v1": "c_nvmlUnrepairableMemory_v1_t",
    "versioned_uint": "c_nvmlDeviceAddressingMode_t",
    "pdi_v1": "c_nvmlPdi_t",
    "c2c_mode_v1": "c_nvmlC2cModeInfo_v1_t",
    "field_value": "c_nvmlFieldValue_t",
    "fabric_v1": "c_nvmlGpuFabricInfo_t",
    "fabric_v2": "c_nvmlGpuFabricInfo_v2_t",
    "fabric_v3": "c_nvmlGpuFabricInfo_v3_t",
    "platform_v2": "c_nvmlPlatformInfo_v2_t",
    "gpm_support": "c_nvmlGpmSupport_t",
    "gpm_metric": "c_nvmlGpmMetric_t",
    "gpm_metrics": "c_nvmlGpmMetricsGet_t",
    "process_info": "c_nvmlProcessInfo_v3_t",
    "process_detail_v1": "c_nvmlProcessDetail_v1_t",
    "process_details_v1": "c_nvmlProcessDetailList_v1_t",
    "process_sample": "c_nvmlProcessUtilizationSample_t",
    "process_use_v1": "c_nvmlProcessUtilizationInfo_v1_t",
    "process_uses_v1": "c_nvmlProcessesUtilizationInfo_v1_t",
    "attributes_v2": "c_nvmlDeviceAttributes",
    "event_data": "c_nvmlEventData_t",
    "license_expiry": "c_nvmlVgpuLicenseExpiry_t",
    "license_info": "c_nvmlVgpuLicenseInfo_t",
    "licensable_feature_v4": "c_nvmlGridLicensableFeature_v4_t",
    "licensable_features_v4": "c_nvmlGridLicensableFeatures_v4_t",
    "vgpu_use_v1": "c_nvmlVgpuInstanceUtilizationInfo_v1_t",
    "vgpu_uses_v1": "c_nvmlVgpuInstancesUtilizationInfo_v1_t",
}
SOURCES = Path(building.__file__).with_name("library")


def offsets(structure: type[ctypes.Structure]) -> list[int]:
    return [getattr(structure, field[0]).offset for field in structure._fields_]


def test_every_structure_has_a_counterpart() -> None:
    asserted = re.findall(r"^LAYOUT\((\w+), ", (SOURCES / "layouts.c").read_text(), re.MULTILINE)
    assert sorted(asserted) == sorted(OURS_AND_THEIRS)


def test_sizes_and_places_are_those_of_the_bindings(tmp_path: Path) -> None:
    """A program of the same C prints where each member is, in the order of the declaration."""
    found = compiler()
    if found is None:
        pytest.skip("no C compiler")
    text = (SOURCES / "layouts.c").read_text()
    lines = []
    for name in OURS_AND_THEIRS:
        body = re.search(rf"typedef struct {{([^{{}}]*(?:{{[^{{}}]*}}[^{{}}]*)*)}} {name};", text)
        assert body, name
        flat = re.sub(r"union {[^}]*}", "union", body[1])
        members = [re.sub(r"[\s*]|\[\d+\]", "", part.split()[-1]) for line in flat.split(";") if line.strip() for part in line.split(",")]
        places = "".join(f'printf(" %zu", offsetof({name}, {member}));' for member in members)
        lines.append(f'printf("{name} %zu", sizeof({name})); {places} printf("\\n");')
    program = tmp_path / "layouts.c"
    headers = "".join(f"#include <{name}.h>\n" for name in ("stdbool", "stddef", "stdio"))
    types = "typedef int ret;\ntypedef unsigned int uint;\ntypedef unsigned long long ull;\n"
    program.write_text(f'{headers}{types}#include "{SOURCES / "layouts.c"}"\nint main(void) {{ {" ".join(lines)} return 0; }}\n')
    subprocess.run([found, str(program), "-o", str(tmp_path / "layouts")], check=True)
    printed = subprocess.run([str(tmp_path / "layouts")], capture_output=True, text=True, check=True).stdout
    ours = {name: [int(n) for n in numbers] for name, *numbers in map(str.split, printed.splitlines())}
    theirs = {name: getattr(pynvml, other) for name, other in OURS_AND_THEIRS.items()}
    assert {name: ours[name][0] for name in ours} == {name: ctypes.sizeof(structure) for name, structure in theirs.items()}
    metric_info = ["gpm_metric"]  # its last member is a structure of three pointers in the bindings
    for name, structure in theirs.items():
        if name not in metric_info:
            assert ours[name][1:] == offsets(structure), name
