"""The classes that the JVM of a typical gate loads, in the order of their first use.

    python tools/jvm/gate_classes.py

writes them to `dqx_airflow/engine/session/gate_classes.txt.gz`, with the installed Spark; a nightly
test compares. The list takes a Spark that runs a gate, which a build of the wheel does not have: so
it is committed, compressed because no one reads it.
"""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from dqx_airflow.cli.jvm_archive import typical_request
from dqx_airflow.engine.session import launch
from dqx_airflow.engine.session.java import java_environment
from dqx_airflow.values.json_form import to_arguments

CLASS_LIST = Path(launch.__file__).with_name(launch.CLASS_LIST)

_LOADED = re.compile(r"\[class,load *\] (\S+) source: \S+\.jar\b")
_MADE_AT_RUN_TIME = re.compile(r"0x|\$\$Lambda")
# The first class that the JVM needs when Python has come up and calls it.
_PYTHON_IS_UP = "py4j.ClientServerConnection"

# A gate whose JVM is not warmed up.
_JOB = """
import sys
from dqx_airflow.engine.job import main
sys.exit(main(sys.argv[1:]))
"""


def loaded_classes(folder: Path) -> list[str]:
    """The classes that a gate loads after Python has come up; it writes to an empty folder."""
    program = folder / "job.py"
    log = folder / "classes.log"
    program.write_text(_JOB, encoding="utf-8")
    submit = str(Path(sys.executable).with_name("spark-submit"))
    python = f"spark.pyspark.driver.python={sys.executable}"
    request = to_arguments(typical_request(folder))
    subprocess.run(  # noqa: S603 (our own job, no shell)
        [submit, "--master", "local[2]", "--conf", python, str(program), *request],
        env={
            **os.environ,
            **java_environment(),
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "OPENLINEAGE_DISABLED": "true",
            # No quick options: to verify a class, which they may leave out, a JVM loads others.
            "SPARK_SUBMIT_OPTS": f"-Xlog:class+load:file={log}:tags",
        },
        stdin=subprocess.DEVNULL,
        check=True,
    )
    loaded = _LOADED.findall(log.read_text(encoding="utf-8"))
    needed = loaded[loaded.index(_PYTHON_IS_UP) + 1 :]
    return [name for name in dict.fromkeys(needed) if not _MADE_AT_RUN_TIME.search(name)]


def main() -> None:
    """Writes the list. The same classes give the same bytes."""
    with TemporaryDirectory() as folder:
        names = loaded_classes(Path(folder))
    text = "\n".join(names) + "\n"
    CLASS_LIST.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(f"{CLASS_LIST}: {len(names)} classes")


if __name__ == "__main__":
    main()
