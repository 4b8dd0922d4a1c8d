#!/usr/bin/env python3
"""Checks samples/kubernetes without a cluster: the manifests against Kubernetes' own schemas, what they say
about safety, and what they do: run.sh is run with a kubectl that carries the Jobs out on this machine.

    tests/kubernetes.py [GPUIMG]

The schemas are those of PyPI's kubernetes-validate, in an environment below target/; where it cannot be
installed, the test says loudly that it is skipped.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent.parent
SAMPLES = HERE / "samples" / "kubernetes"
CACHE = HERE / "target" / "kubernetes-venv"
PYTHON = CACHE / "bin" / "python"
PACKAGES = ["kubernetes-validate==1.37.0", "pyyaml==6.0.3"]
# The oldest in which all fields are switched on, and the newest of the package.
VERSIONS = ["1.29", "1.37"]
TRIES = 2


def documents(text):
    import yaml

    return [document for document in yaml.safe_load_all(text) if document]


def check_schema(document, name):
    import kubernetes_validate

    for version in VERSIONS:
        kubernetes_validate.validate(document, version, strict=True)
    return f"{document['kind']} of {name}"


def check_safety(document, claims):
    """The rules of the Pod Security Standards' level "restricted", and that the parts agree."""
    spec = document["spec"]
    pod = spec["template"]["spec"]
    security = pod["securityContext"]
    assert security["runAsNonRoot"] is True and security["runAsUser"] >= 1000
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    (container,) = pod["containers"]
    own = container["securityContext"]
    assert own["allowPrivilegeEscalation"] is False and own["readOnlyRootFilesystem"] is True
    assert own["capabilities"] == {"drop": ["ALL"]}
    assert "memory" in container["resources"]["limits"]
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}
    for volume in pod["volumes"]:
        claim = volume.get("persistentVolumeClaim")
        assert claim is None or "ReadWriteMany" in claims[claim["claimName"]]
    if document["kind"] == "Deployment":
        labels = spec["template"]["metadata"]["labels"]
        assert spec["selector"]["matchLabels"].items() <= labels.items()
        assert "--watch" in container["args"] and pod["terminationGracePeriodSeconds"] >= 30
        return
    assert pod["restartPolicy"] == "Never"
    if spec.get("completionMode") == "Indexed":
        values = {variable["name"]: variable.get("value") for variable in container["env"]}
        assert values["JOB_COMPLETIONS"] == str(spec["completions"])
        tries = spec["backoffLimitPerIndex"] + 1
    else:
        tries = spec["backoffLimit"] + 1
    assert tries >= TRIES, "a pod that was lost is not tried again"


def check_manifests():
    checked, jobs, deployments, claims = [], [], [], {}
    for path in sorted(SAMPLES.glob("*.yaml")):
        for document in documents(path.read_text()):
            checked.append(check_schema(document, path.name))
            if document["kind"] == "Job":
                jobs.append(document)
            elif document["kind"] == "Deployment":
                deployments.append(document)
            else:
                claims[document["metadata"]["name"]] = document["spec"]["accessModes"]
    assert len(jobs) == 3 and len(deployments) == 1 and len(claims) == 1, checked
    for document in jobs + deployments:
        check_safety(document, claims)
    # A checker that takes anything would have passed all this.
    import kubernetes_validate

    wrong = jobs[0] | {"spec": jobs[0]["spec"] | {"completion": 8}}
    try:
        check_schema(wrong, "a misspelt field")
    except kubernetes_validate.ValidationError:
        print(f"Kubernetes: {len(checked)} manifests are valid in {' and '.join(VERSIONS)}: {', '.join(checked)}")
    else:
        raise AssertionError("a misspelt field is taken")


def kubectl(arguments):
    """As much of kubectl as run.sh uses. A Job's pods run one after the other, here, with $DATA as /data.

    The first try of $LOST (as gpuimg-count/1) ends as if its node had been lost, after its work; all tries
    of $DEAD end so before it.
    """
    import yaml

    state = pathlib.Path(os.environ["STATE"])
    verb, *rest = arguments
    if verb == "create":
        assert rest[:2] == ["configmap", "gpuimg-run"] and "--dry-run=client" in rest
        (pair,) = [word for word in rest if word.startswith("--from-literal=")]
        key, value = pair.removeprefix("--from-literal=").split("=", 1)
        about = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": rest[1]}, "data": {key: value}}
        print(yaml.safe_dump(about))
    elif verb == "apply":
        source = rest[rest.index("-f") + 1]
        for document in documents(sys.stdin.read() if source == "-" else pathlib.Path(source).read_text()):
            check_schema(document, source)
            path = state / f"{document['kind']}-{document['metadata']['name']}"
            assert document["kind"] == "ConfigMap" or not path.exists(), "a Job cannot be applied anew"
            path.write_text(json.dumps(document.get("data") or run_job(document, state)))
    elif verb == "delete":
        assert "--cascade=foreground" in rest, "its pods may go on"
        (state / f"Job-{rest[1]}").unlink(missing_ok=True)
    elif verb == "get":
        print(json.loads((state / f"Job-{rest[1]}").read_text()), end="")
    else:
        raise SystemExit(f"kubectl {verb}?")


def run_job(job, state):
    """How the Job ends: its last condition."""
    name, spec = job["metadata"]["name"], job["spec"]
    indexed = spec.get("completionMode") == "Indexed"
    tries = 1 + spec["backoffLimitPerIndex" if indexed else "backoffLimit"]
    hopeless = [
        code
        for rule in spec["podFailurePolicy"]["rules"]
        if rule["action"].startswith("Fail")
        for code in rule["onExitCodes"]["values"]
    ]
    codes = []
    for index in range(spec["completions"] if indexed else 1):
        for number in range(tries):
            code = run_pod(job, index if indexed else None, number, state)
            if code == 0 or code in hopeless:
                break
        codes.append(code)
    print(f"{name}: {codes}", file=sys.stderr)
    return "Failed" if any(codes) else "SuccessCriteriaMet Complete"


def run_pod(job, index, number, state):
    (container,) = job["spec"]["template"]["spec"]["containers"]
    variables = {} if index is None else {"JOB_COMPLETION_INDEX": str(index)}
    for variable in container["env"]:
        if "value" in variable:
            variables[variable["name"]] = variable["value"]
        else:
            wanted = variable["valueFrom"]["configMapKeyRef"]
            about = json.loads((state / f"ConfigMap-{wanted['name']}").read_text())
            variables[variable["name"]] = about[wanted["key"]]
    pod = f"{job['metadata']['name']}/{index}"
    if os.environ.get("DEAD") == pod:
        return 137
    arguments = [re.sub(r"\$\((\w+)\)", lambda found: variables[found[1]], word) for word in container["args"]]
    arguments = [re.sub("^/data", os.environ["DATA"], word) for word in arguments]
    run = subprocess.run([os.environ["GPUIMG"], *arguments], env=os.environ | variables, capture_output=True, text=True)
    print(f"{pod}: {run.stderr}", file=sys.stderr)
    return 137 if number == 0 and os.environ.get("LOST") == pod else run.returncode


def images(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*.pgm")}


def check_watch(gpuimg):
    """The Deployment's command does what its comment says, and ends in order."""
    (deployment,) = documents((SAMPLES / "watch.yaml").read_text())
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    with tempfile.TemporaryDirectory() as data:
        root = pathlib.Path(data)
        (root / "in").mkdir()
        arguments = [re.sub("^/data", data, word) for word in container["args"]]
        pod = subprocess.Popen([gpuimg, *arguments], stderr=subprocess.PIPE, text=True)
        assert "watching" in pod.stderr.readline()
        (root / "in/a.pgm").write_bytes(b"P5 2 1 65535\n\0\1\0\2")
        patience = time.monotonic() + 60
        while not (root / "out/a.pgm").exists() and time.monotonic() < patience:
            time.sleep(0.1)
        pod.terminate()
        assert pod.wait(timeout=60) == 0, pod.stderr.read()
        assert (root / "out/a.pgm").read_bytes().endswith(b"\0\0\xff\xff")
    print("Kubernetes: the Deployment normalizes an image that comes, and ends in order")


def check_run(gpuimg):
    with tempfile.TemporaryDirectory() as temporary:
        root = pathlib.Path(temporary)
        for folder in ["bin", "data/in", "state"]:
            (root / folder).mkdir(parents=True)
        for i in range(30):
            samples = (i * 1000 + 37 * k for k in range(48))
            data = b"".join(sample.to_bytes(2, "big") for sample in samples)
            (root / f"data/in/{i}.pgm").write_bytes(b"P5 8 6 65535\n" + data)
        program = root / "bin" / "kubectl"
        program.write_text(f'#!/bin/sh\nexec "{PYTHON}" "{__file__}" kubectl "$@"\n')
        program.chmod(0o755)
        base = os.environ | {
            "PATH": f"{root / 'bin'}:{os.environ['PATH']}",
            "DATA": str(root / "data"),
            "STATE": str(root / "state"),
            "GPUIMG": str(gpuimg),
            "POLL": "0.1",
        }
        out = root / "data" / "out"

        def run(wanted, **more):
            told = subprocess.run([SAMPLES / "run.sh"], env=base | more, capture_output=True, text=True, timeout=120)
            assert told.returncode == wanted, f"{told.returncode} instead of {wanted}: {told.stderr}"
            return told.stderr

        def alone():
            made = root / "alone"
            subprocess.run(["rm", "-rf", made])
            subprocess.run([gpuimg, "normalize", "-q", "--across", "--exclude", "bad.pgm", root / "data/in", made], check=True)
            return images(made)

        run(1, DEAD="gpuimg-count/3")
        assert not out.exists() or not images(out), "normalized although a part is missing"
        for step in ["count/2", "merge/None", "normalize/5"]:
            run(0, LOST=f"gpuimg-{step}")
            assert images(out) == alone(), step
            subprocess.run(["rm", "-rf", *out.glob("*.pgm")])
        (root / "data/in/29.pgm").unlink()
        (root / "data/in/bad.pgm").write_bytes(b"P5 8 6 65535\nshort")
        assert "bad.pgm" in run(1)
        assert len(images(out)) == 29 and images(out) == alone(), "a bad image, and a smaller set than before"
    print("Kubernetes: count, merge and normalize with pods lost, a bad image, a second set: one machine's bytes")


def main():
    if sys.argv[1:2] == ["kubectl"]:
        kubectl(sys.argv[2:])
        return
    if pathlib.Path(sys.executable) != PYTHON:
        make = [sys.executable, "-m", "venv", CACHE]
        made = PYTHON.exists() or subprocess.run(make).returncode == 0
        if not made or subprocess.run([PYTHON, "-m", "pip", "install", "--quiet", *PACKAGES]).returncode != 0:
            print("SKIPPED the Kubernetes manifests: kubernetes-validate cannot be installed", file=sys.stderr)
            return
        sys.exit(subprocess.run([PYTHON, __file__, *sys.argv[1:]]).returncode)
    check_manifests()
    gpuimg = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else HERE / "target/release/gpuimg").resolve()
    check_watch(gpuimg)
    check_run(gpuimg)


if __name__ == "__main__":
    main()
