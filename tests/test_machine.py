"""What a machine tells of its memory, from files laid out as Linux lays them."""

from tinyllm.machine import available_memory


def lay_out(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


MEMINFO = {"proc/meminfo": "MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable: 4000 kB\n"}
GROUP = {
    "sys/fs/cgroup/memory.max": "3000000\n",
    "sys/fs/cgroup/memory.current": "2500000\n",
    "sys/fs/cgroup/memory.stat": "anon 500000\nfile 2000000\ninactive_file 1900000\n",
}


def test_what_linux_has_free_is_available(tmp_path):
    assert available_memory(lay_out(tmp_path, MEMINFO)) == 4000 * 1024


def test_a_groups_limit_counts_and_what_it_can_drop_is_no_use(tmp_path):
    """Files that were read, a model's weights for instance, stay in memory until it is needed."""
    assert available_memory(lay_out(tmp_path, MEMINFO | GROUP)) == 3_000_000 - 600_000


def test_a_group_without_a_limit_changes_nothing(tmp_path):
    unlimited = MEMINFO | GROUP | {"sys/fs/cgroup/memory.max": "max\n"}
    assert available_memory(lay_out(tmp_path, unlimited)) == 4000 * 1024


def test_a_system_that_does_not_tell(tmp_path):
    assert available_memory(lay_out(tmp_path, {"proc/meminfo": "MemTotal: 1 kB\n"})) is None
