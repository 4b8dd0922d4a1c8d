#!/usr/bin/env python3
"""Checks the descriptions of gpuimg for other package managers and workflow systems:

* packaging/galaxy/*.xml are what generate.py writes and follow Galaxy's schema; Galaxy's linter finds nothing; the command of each, filled in
  as Galaxy does for the tool's own test and for all options left out, writes an image.
* packaging/conda/recipe.yaml can be rendered for both processors, and has the version of Cargo.toml.
* packaging/nf-core: the scripts and stubs of the module, filled in as Nextflow does, write the files that the process and meta.yml list.

    packaging/recipes.py GPUIMG      with a Python that has galaxy-tool-util, CT3 and py-rattler-build
"""

import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import tomllib
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
GALAXY = ROOT / "packaging/galaxy"
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["package"]["version"]


def wrong(sentence):
    sys.exit(f"WRONG: {sentence}")


def name_of(field):
    """The variable of a field; Galaxy derives that of an option from the option."""
    return field.get("name") or field.get("argument").lstrip("-").replace("-", "_")


def lint(path):
    """Galaxy's own linter, with its schema."""
    from galaxy.tool_util.lint import LintContext, LintLevel, lint_tool_source_with
    from galaxy.tool_util.parser import get_tool_source

    context = LintContext(level=LintLevel.SILENT)
    lint_tool_source_with(context, get_tool_source(str(path)))
    faults = [str(message) for message in [*context.error_messages, *context.warn_messages]]
    if faults:
        wrong(f"{path.name}: {'; '.join(faults)}")


def run_command(path, gpuimg, given):
    """Runs the command of a tool on its test's image, with the parameters in `given` and the others as in an empty form."""
    from Cheetah.Template import Template

    tool = ElementTree.parse(path)
    values = {"format": "tiff"}
    for field in tool.iterfind("inputs/param"):
        values.setdefault(name_of(field), "")
    values |= given
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        values |= {"input": str(folder / "in.tif"), "output": str(folder / "result.dat")}
        shutil.copy(GALAXY / "test-data" / tool.find("tests/test/param[@name='input']").get("value"), values["input"])
        command = str(Template(tool.find("command").text, searchList=[values])).replace("gpuimg ", f"'{gpuimg}' ")
        # Galaxy joins the lines of a command.
        done = subprocess.run(["bash", "-c", " ".join(command.split("\n"))], cwd=folder, capture_output=True, text=True)
        if done.returncode or Path(values["output"]).read_bytes()[:4] != b"II*\0":
            wrong(f"{path.name} with {given}: {command}: {done.stderr}")


def galaxy(gpuimg):
    subprocess.run([GALAXY / "generate.py", "--check", gpuimg], check=True)
    tools = sorted(GALAXY.glob("*.xml"))
    for path in tools:
        lint(path)
        tool = ElementTree.parse(path)
        test = {field.get("name"): field.get("value") for field in tool.iterfind("tests/test/param") if field.get("name") != "input"}
        fields = list(tool.iterfind("inputs/param"))
        is_required = {name_of(field): field.find("validator") is not None or field.get("optional") == "false" for field in fields}
        required = {name: value for name, value in test.items() if is_required[name]}
        run_command(path, gpuimg, test)
        run_command(path, gpuimg, required)
        for field in fields:
            if field.get("type") == "boolean":
                run_command(path, gpuimg, {**required, name_of(field): field.get("truevalue")})
    print(f"Galaxy: {len(tools)} tools are up to date, Galaxy's linter finds nothing, and their commands work")


def conda():
    from rattler_build import PlatformConfig, RenderConfig, Stage0Recipe, VariantConfig

    recipe = Stage0Recipe.from_file(str(ROOT / "packaging/conda/recipe.yaml"))
    # What conda-forge pins.
    pins = {"c_compiler": ["gcc"], "rust_compiler": ["rust"], "c_stdlib": ["sysroot"], "c_stdlib_version": ["2.17"]}
    for platform in ("linux-64", "linux-aarch64"):
        machine = PlatformConfig(target_platform=platform, build_platform=platform, host_platform=platform)
        (rendered,) = recipe.render(VariantConfig(pins), RenderConfig(machine))
        package = rendered.recipe.package
        if (package.name, str(package.version)) != ("gpuimg", VERSION):
            wrong(f"packaging/conda/recipe.yaml is of {package.name} {package.version}, not of gpuimg {VERSION}")
    print("conda: the recipe can be rendered for linux-64 and linux-aarch64")


def nf_core(gpuimg):
    import yaml

    module = ROOT / "packaging/nf-core/gpuimg/normalize"
    environment = yaml.safe_load((module / "environment.yml").read_text())
    if environment["dependencies"] != [f"conda-forge::gpuimg={VERSION}"]:
        wrong(f"{module}/environment.yml is not for gpuimg {VERSION}")
    # What Nextflow fills in, and the backslash before what is meant for the shell.
    values = {"args": "--clip 0.1:99.9", "prefix": "bright", "image": "in.tif", "task.cpus": "2", "task.process": "GPUIMG_NORMALIZE"}
    listed = yaml.safe_load((module / "meta.yml").read_text())["output"]
    patterns = [name.replace("${prefix}", values["prefix"]) for name in (*listed["image"][0][1], *listed["versions"][0])]
    text = (module / "main.nf").read_text()
    for kind, script in re.findall(r'(script|stub):\n.*?"""\n(.*?)"""', text, re.S):
        script = re.sub(r"(?<!\\)\$\{([\w.]+)\}", lambda match: values[match[1]], textwrap.dedent(script)).replace("\\$", "$")
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            (folder / "gpuimg").symlink_to(gpuimg)
            shutil.copy(GALAXY / "test-data/thermal.tif", folder / "in.tif")
            done = subprocess.run(["bash", "-ue", "-c", f'PATH="$PWD:$PATH"\n{script}'], cwd=folder, capture_output=True, text=True)
            if done.returncode or not all((folder / name).exists() for name in patterns):
                wrong(f"nf-core: the {kind} of GPUIMG_NORMALIZE: {done.stderr}")
            if yaml.safe_load((folder / "versions.yml").read_text()) != {"GPUIMG_NORMALIZE": {"gpuimg": VERSION}}:
                wrong(f"nf-core: versions.yml of the {kind} is {(folder / 'versions.yml').read_text()}")
    print("nf-core: the script and the stub of the module write their files")


def main():
    (gpuimg,) = sys.argv[1:]
    gpuimg = str(Path(gpuimg).resolve())
    conda()
    galaxy(gpuimg)
    nf_core(gpuimg)


if __name__ == "__main__":
    main()
