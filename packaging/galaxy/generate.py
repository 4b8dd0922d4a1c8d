#!/usr/bin/env python3
"""Writes the tools for Galaxy in this folder, one for each verb that makes an image of an image, from `gpuimg --json-usage`.

    packaging/galaxy/generate.py [--check] GPUIMG      with --check, fails if they are not up to date
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

HERE = Path(__file__).resolve().parent

# The verbs, with the operands of their tests and options that change what is written.
VERBS = {
    "normalize": [("clip", "0.1:99.9")],
    "preview": [("fit", "64")],
    "convert": [("depth", "8")],
    "crop": [("region", "10,20,100x50")],
    "rotate": [("angle", "90")],
    "flip": [("axis", "horizontal")],
    "transpose": [],
    "debayer": [("pattern", "RGGB")],
}
# The groups of options that change an image; those about many files, devices and diagnostics are Galaxy's business.
GROUPS = ("Range", "Output", None)
# Options that name other files or folders, or that Galaxy decides itself.
LEFT_OUT = {"across", "follow", "format", "name", "output", "overwrite", "partial", "range-from", "scope", "split", "stack", "sync"}
# Formats that gpuimg writes, by their names in Galaxy, with their names in gpuimg.
FORMATS = {"tiff": "tiff", "png": "png", "jpg": "jpeg", "fits": "fits", "npy": "npy"}
INPUTS = "tiff,ome.tiff,png,jpg,fits,dcm,nii1,nii2,nrrd,npy,pgm,ppm,bmp,gif"

TOOL = """\
<tool id="gpuimg_{verb}" name="gpuimg {verb}" version="{version}+galaxy0" profile="23.0" license="MIT">
    <!-- Written by packaging/galaxy/generate.py. -->
    <description>{about}</description>
    <requirements>
        <requirement type="package" version="{version}">gpuimg</requirement>
    </requirements>
    <version_command>gpuimg --version</version_command>
    <command detect_errors="exit_code"><![CDATA[
        RAYON_NUM_THREADS="\\${{GALAXY_SLOTS:-1}}" gpuimg {verb}
{options}
        --no-progress --format '$format'
        -- {operands}'$input' output
        && mv output '$output'
    ]]></command>
    <inputs>
        <param name="input" type="data" format="{inputs}" label="Image"/>
{parameters}
        <param name="format" type="select" label="Output format">
{formats}
        </param>
    </inputs>
    <outputs>
        <data name="output" format="tiff" label="${{tool.name}} on ${{on_string}}">
            <change_format>
{changes}
            </change_format>
        </data>
    </outputs>
    <tests>
        <test expect_num_outputs="1">
            <param name="input" value="thermal.tif" ftype="tiff"/>
{values}
            <output name="output" ftype="tiff">
                <assert_contents>
                    <has_size min="100"/>
                </assert_contents>
            </output>
        </test>
    </tests>
    <help><![CDATA[
{about}.

Reads every format that ``gpuimg formats`` lists. The result is the same on every machine, with and without a GPU.
    ]]></help>
    <citations>
        <citation type="bibtex">@misc{{gpuimg, title = {{gpuimg {version}}}, author = {{the gpuimg developers}}}}</citation>
    </citations>
</tool>
"""


def spaced(depth, lines):
    return "\n".join(" " * depth + line for line in lines)


def variable(argument):
    return argument["name"].replace("-", "_")


def parameter(argument):
    """The form's field of an argument."""
    # Galaxy derives the name of the variable from the option.
    shared = f"name={quoteattr(variable(argument))}" if argument["positional"] else f"argument={quoteattr('--' + argument['name'])}"
    label = f"label={quoteattr(argument['help'])}"
    if argument["value"] is None:
        return [f'<param {shared} type="boolean" truevalue="--{argument["name"]}" falsevalue="" checked="false" {label}/>']
    if argument["choices"]:
        options = [f"    <option value={quoteattr(word)}>{escape(word)}</option>" for word in argument["choices"]]
        optional = str(not argument["required"]).lower()
        return [f'<param {shared} type="select" optional="{optional}" {label}>', *options, "</param>"]
    expected = f"help={quoteattr('Expected: ' + argument['value'])}"
    if argument["required"]:
        return [
            f'<param {shared} type="text" {label} {expected}>',
            '    <validator type="empty_field"/>',
            "</param>",
        ]
    return [f'<param {shared} type="text" optional="true" {label} {expected}/>']


def option(argument):
    """The line of Cheetah that types an option."""
    name = variable(argument)
    if argument["value"] is None:
        return f"${name}"
    return f"#if str(${name}) not in ('', 'None')# --{argument['name']}='${name}' #end if#"


def tool(verb, version):
    def is_shown(argument):
        is_files = argument["positional"] and argument["name"] in ("paths", "inputs")
        return argument["group"] in GROUPS and argument["name"] not in LEFT_OUT and not is_files

    shown = [argument for argument in verb["arguments"] if is_shown(argument)]
    operands = [argument for argument in shown if argument["positional"]]
    options = [argument for argument in shown if not argument["positional"]]
    return TOOL.format(
        verb=verb["verb"],
        version=version,
        about=escape(verb["about"]),
        options=spaced(8, map(option, options)),
        operands="".join(f"'${variable(operand)}' " for operand in operands),
        inputs=INPUTS,
        parameters=spaced(8, (line for argument in shown for line in parameter(argument))),
        formats=spaced(12, (f'<option value="{ours}">{theirs}</option>' for theirs, ours in FORMATS.items())),
        changes=spaced(16, (f'<when input="format" value="{ours}" format="{theirs}"/>' for theirs, ours in FORMATS.items())),
        values=spaced(12, (f'<param name="{name}" value="{value}"/>' for name, value in VERBS[verb["verb"]])),
    )


def main():
    check, (gpuimg,) = "--check" in sys.argv, [word for word in sys.argv[1:] if word != "--check"]

    def ask(option):
        return subprocess.run([gpuimg, option], capture_output=True, text=True, check=True).stdout

    version = ask("--version").split()[1]
    verbs = {verb["verb"]: verb for verb in map(json.loads, ask("--json-usage").splitlines())}
    for name in VERBS:
        path, text = HERE / f"gpuimg_{name}.xml", re.sub(r"\n\s*\n(?=\s*<|        --)", "\n", tool(verbs[name], version))
        if not check:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            sys.exit(f"WRONG: {path} is not what packaging/galaxy/generate.py writes")


if __name__ == "__main__":
    main()
