"""Earlier measurements that a gate compares with: records, their files, their folder."""

from gelu_verify.baseline.folder import Folder
from gelu_verify.baseline.key import Key, device_class
from gelu_verify.baseline.record import Baseline, Measurement, Provenance

__all__ = ["Baseline", "Folder", "Key", "Measurement", "Provenance", "device_class"]
