"""Python imports this file at its start, because the tests put its folder into PYTHONPATH."""

import watch_interpreter

watch_interpreter.watch_workers()
