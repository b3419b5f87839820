"""What is trained: one file a source of data, one list of tasks; users add theirs by name."""

from __future__ import annotations

from gelu_verify.convergence.tasks import digits, python_text
from gelu_verify.convergence.tasks.task import Data, Task
from gelu_verify.errors import UsageError, unknown_name
from gelu_verify.kernels import loading

__all__ = ["TASKS", "Data", "Task", "find"]

TASKS: dict[str, Task] = {task.name: task for task in (*digits.TASKS, *python_text.TASKS)}


def find(name: str) -> Task:
    """Return a task by name, or the Task that ``module:name`` or ``path/to/file.py:name`` is."""
    if ":" not in name:
        if name not in TASKS:
            raise unknown_name("task", name, TASKS)
        return TASKS[name]
    source, _, attribute = name.rpartition(":")
    found = getattr(loading.module(source), attribute, None)
    if not isinstance(found, Task):
        raise UsageError(
            f"task {name}: got {type(found).__name__}, "
            "expected a gelu_verify.convergence.tasks.Task. Check the name."
        )
    return found
