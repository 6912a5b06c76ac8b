"""A virtual table (tools/sim) in a process of its own, for tests and for the picture in the README."""

import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
KEY = bytes(range(32))
QUICK = {"table": "test", "key": KEY.hex(), "bolt_ms": 200, "pulse_ms": 100, "gap_ms": 450, "settle_ms": 300}


def children(pid):
    """Return the ids of the processes that this one's main thread has started and that live."""
    return pathlib.Path("/proc/%d/task/%d/children" % (pid, pid)).read_text().split()


class SimRun:
    """`with SimRun(folder) as sim:` – sim.url, .port, .pty, .pid. The end must be clean, or it raises."""

    def __init__(self, folder, *arguments, settings=None):
        file = pathlib.Path(folder) / "sim-settings.json"
        file.write_text(json.dumps(settings or QUICK))
        self._command = [sys.executable, str(ROOT / "tools" / "sim"), "--port", "0", "--settings", str(file)]
        self._command += arguments

    def __enter__(self):
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        out = self._process.stdout
        lines = [out.readline() for _ in range(4)]
        self.said = "".join(lines)
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", lines[0])
        if found is None:
            self._process.wait(10)
            raise RuntimeError("the sim did not start: " + self.said + out.read())
        self.url = found[0]
        self.port = int(found[1])
        self.pty = lines[1].split()[1]
        self.pid = self._process.pid
        return self

    def __exit__(self, *error):
        self._process.send_signal(2)
        try:
            rest = self._process.communicate(timeout=20)[0]
        except subprocess.TimeoutExpired:
            self._process.kill()
            rest = self._process.communicate()[0] + "it had to be killed"
        if error[0] is None and (self._process.returncode != 0 or rest):
            raise RuntimeError("the sim ended with %s: %s" % (self._process.returncode, rest))
