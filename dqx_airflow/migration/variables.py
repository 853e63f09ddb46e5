"""Variables that other tools replace at run time: `${start}`, `{{ var("day") }}`."""

from __future__ import annotations

import re

VARIABLE = re.compile(r"\$\{[^}]*\}|\{\{.*?\}\}", re.DOTALL)
