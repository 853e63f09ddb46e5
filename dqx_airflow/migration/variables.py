"""What other tools fill in when they run: `${start}`, `{{ var("day") }}`."""

from __future__ import annotations

import re

VARIABLE = re.compile(r"\$\{[^}]*\}|\{\{.*?\}\}", re.DOTALL)
