"""CPU quota of Linux control groups, such as those of a container."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath


def cpu_quota(
    memberships: Path = Path("/proc/self/cgroup"), mount: Path = Path("/sys/fs/cgroup")
) -> float | None:
    """Smallest CPU quota, in cores, of the process's control groups and their parents; None without a limit.

    Args:
        memberships: File with the control groups of the process.
        mount: Mount point of the control group file system.
    """
    try:
        lines = memberships.read_text().splitlines()
    except OSError:  # not Linux
        return None
    quotas = [quota for line in lines for quota in _quotas(line, mount)]
    return min(quotas, default=None)


def _quotas(line: str, mount: Path) -> Iterator[float]:
    """Quotas of the groups in a line such as "0::/a/b" (version 2) or "4:cpu,cpuacct:/a/b" (version 1)."""
    _, _, rest = line.partition(":")
    controllers, _, path = rest.partition(":")
    if controllers and "cpu" not in controllers.split(","):
        return
    for root in (mount / controllers, mount / "cpu") if controllers else (mount,):
        group = PurePosixPath(path)
        for folder in (group, *group.parents):
            quota = _quota(root / str(folder).lstrip("/"))
            if quota is not None:
                yield quota


def _quota(folder: Path) -> float | None:
    """Quota of one group: "max 100000" or "150000 100000" in cpu.max, or two files, where -1 is no limit."""
    for names in (["cpu.max"], ["cpu.cfs_quota_us", "cpu.cfs_period_us"]):
        try:
            time, period = " ".join((folder / name).read_text() for name in names).split()
            return int(time) / int(period) if int(time) > 0 and int(period) > 0 else None
        except (OSError, ValueError):  # missing file, or "max"
            continue
    return None
