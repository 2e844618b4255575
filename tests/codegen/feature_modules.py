"""Generate the modules of `features/*.json`, and import what was generated."""

from pathlib import Path
from types import ModuleType

from codegen.plan import ModulePlan, plan_modules
from codegen.spec import parse_message

FEATURES = Path(__file__).parent / "features"


def plan_feature(name: str) -> ModulePlan:
    """Plan the module of one feature file."""
    spec = parse_message((FEATURES / f"{name}.json").read_text(), f"{name}.json")
    [plan] = plan_modules([(spec, f"features/{name}.json")])
    return plan


def render_feature(name: str) -> str:
    """Return the text of the module of one feature file."""
    from codegen.write import open_templates, render_module

    return render_module(open_templates(), plan_feature(name))


def import_feature(name: str) -> ModuleType:
    """Run the generated text as a module."""
    module = ModuleType(f"features_{name}")
    exec(compile(render_feature(name), f"{name}.py", "exec"), module.__dict__)
    return module
