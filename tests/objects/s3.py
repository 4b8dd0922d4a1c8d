"""Reads and writes stores in a bucket of S3, against moto's server: what is read is what the same folder gives, what is written has
the bytes of the same folder, no reader finds a store that is not complete, failures are named, and no message has a key.

  tests/objects/s3.py GPUIMG
"""

import contextlib
import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import boto3
from moto.s3.models import S3Backend
from moto.server import ThreadedMotoServer

GPUIMG = sys.argv[1]
KEY, SECRET = "AKIDFORTESTS", "SECRETFORTESTS"
SAMPLE = Path(__file__).resolve().parents[2] / "samples/thermal.tif"
PLAIN = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
MARK = ".gpuimg-unfinished"


class Bucket:
    """The bucket `images`, and a folder with what is compared with it."""

    def __init__(self, endpoint, folder):
        keys = {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET}
        self.s3 = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **keys)
        self.s3.create_bucket(Bucket="images")
        self.folder = folder
        self.here = {"AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}

    def done(self, *args):
        result = run(self.folder, *args, **self.here)
        assert result.returncode == 0 and not result.stderr, (args, result.stderr)
        return result.stdout

    def fails(self, args, code, *words):
        result = run(self.folder, *args, **self.here)
        assert result.returncode == code, (args, result)
        for word in words:
            assert word in result.stderr, (word, result.stderr)

    def objects(self, name):
        """The bytes of all objects below a name."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket="images", Prefix=f"{name}/")
        keys = [entry["Key"] for page in pages for entry in page.get("Contents", [])]
        read = lambda key: self.s3.get_object(Bucket="images", Key=key)["Body"].read()
        return {key[len(name) + 1 :]: read(key) for key in keys}

    def put(self, key, text=b"x"):
        self.s3.put_object(Bucket="images", Key=key, Body=text)

    def files(self, name):
        """The bytes of all files below a folder."""
        folder = self.folder / name
        files = [file for file in folder.rglob("*") if file.is_file()]
        return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def run(folder, *args, **variables):
    environment = PLAIN | {"GPUIMG_DEVICE": "cpu", "GPUIMG_REMOTE_TIMEOUT": "2"} | variables
    done = subprocess.run([GPUIMG, *args], cwd=folder, env=environment, capture_output=True, text=True)
    for printed in (done.stdout, done.stderr):
        assert SECRET not in printed and KEY not in printed, printed
    return done


@contextlib.contextmanager
def broken(method, fails=lambda number: True, wait=0.0):
    """A server whose `method` waits before each call, and fails for some by their number, which begins with 1."""
    real = getattr(S3Backend, method)
    calls = []

    def call(self, *args, **options):
        calls.append(args)
        time.sleep(wait)
        if fails(len(calls)):
            raise RuntimeError("this server is broken")
        return real(self, *args, **options)

    setattr(S3Backend, method, call)
    try:
        yield calls
    finally:
        setattr(S3Backend, method, real)


def reads(bucket):
    """Stores that were copied to the bucket, and what cannot be read."""
    read = 0
    for name, options in {"plain.zarr": [], "sharded.zarr": ["--zarr-shard", "512"]}.items():
        bucket.done("convert", str(SAMPLE), name, "--zarr-chunk", "128", *options)
        for file, text in bucket.files(name).items():
            bucket.put(f"some/place/{name}/{file}", text)
        url = f"s3://images/some/place/{name}"
        for args in (["convert"], ["convert", "--level", "2"], ["crop", "200,300,100x50"], ["normalize"], ["preview", "--quiet"]):
            verb, *options = args
            words = [options.pop(0)] if verb == "crop" else []
            bucket.done(verb, *words, name, "here.tif", *options, "--overwrite")
            bucket.done(verb, *words, url, "there.tif", *options, "--overwrite")
            assert (bucket.folder / "here.tif").read_bytes() == (bucket.folder / "there.tif").read_bytes(), args
            read += 1
        line = bucket.done("info", url)
        assert line.startswith(f"{url}: Zarr, 640×512 grey, 16 bits"), line
    bucket.fails(["info", "s3://images/other.zarr"], 1, "is not a Zarr store")
    bucket.fails(["info", "s3://none/a.zarr"], 1, "there is no such bucket: check its name, AWS_REGION and AWS_ENDPOINT_URL")
    bucket.fails(["info", f"s3://{KEY}:{SECRET}@images/a.zarr"], 1, "credentials are in the environment")
    print(f"{read} reads of a bucket are those of the folder; 3 failures are named")


def writes(bucket):
    """Every object is the file that the same command writes."""
    sample = str(SAMPLE)
    bucket.done("convert", "--stack", sample, sample, sample, "stack.tif")
    source = "s3://images/some/place/plain.zarr"
    commands = [
        ["convert", "stack.tif", "OUT", "--zarr-chunk", "100"],
        ["convert", "stack.tif", "OUT", "--zarr-chunk", "64", "--zarr-shard", "256", "--low-memory"],
        # Objects of 18 MB are sent in several parts.
        ["convert", "stack.tif", "OUT", "--zarr-chunk", "3000", "--zarr", "none"],
        ["normalize", "plain.zarr", "OUT", "--zarr-levels", "1"],
        ["normalize", source, "OUT", "--report", "report.jsonl"],
        ["rotate", "90", source, "OUT", "--stats=json", "--quiet"],
        ["convert", "--stack", sample, sample, "OUT"],
        ["project", "mean", "stack.tif", "OUT"],
        ["combine", sample, sample, sample, "OUT"],
        ["run", "flip horizontal + normalize", "stack.tif", "OUT"],
    ]
    bucket.put("out/0.zarr2/a")
    for number, command in enumerate(commands):
        name = f"out/{number}.zarr"
        (bucket.folder / "out").mkdir(exist_ok=True)
        for place in (name, f"s3://images/{name}"):
            words = [place if word == "OUT" else word for word in command]
            result = run(bucket.folder, *words, "--overwrite", **bucket.here)
            assert result.returncode == 0, (words, result.stderr)
        written, expected = bucket.objects(name), bucket.files(name)
        assert written == expected and "zarr.json" in expected, (command, written.keys() ^ expected.keys())
    for file in bucket.folder.glob("report.jsonl*"):
        assert SECRET not in file.read_text() and "s3://images/out/4.zarr" in file.read_text()
    assert not (bucket.folder / "s3:").exists()
    print(f"{len(commands)} stores in a bucket have the bytes of folders")


def replaced(bucket):
    """Only stores are replaced, with everything in them, and with `--overwrite`."""
    url, sample = "s3://images/a.zarr", str(SAMPLE)
    convert = ["convert", sample, url, "--zarr-chunk"]
    bucket.done("convert", sample, "a.zarr", "--zarr-chunk", "300")
    bucket.done(*convert, "32")
    old = bucket.objects("a.zarr")
    bucket.fails([*convert, "300"], 1, f"cannot write {url}: it already exists (use --overwrite to replace it)")
    bucket.fails(["project", "mean", sample, url], 1, "it already exists")
    assert "replaces a file" in bucket.done(*convert, "300", "--overwrite", "--dry-run")
    assert bucket.objects("a.zarr") == old
    for key in ("a.zarr.txt", "a.zarr2/zarr.json"):
        bucket.put(key)
    bucket.done(*convert, "300", "--overwrite")
    assert bucket.objects("a.zarr") == bucket.files("a.zarr")
    assert bucket.objects("a.zarr2") == {"zarr.json": b"x"}
    # The input is not removed before it is read.
    for output in (url, "s3://images/a.zarr/0/b.zarr"):
        bucket.fails(["normalize", url, output, "--overwrite"], 2, f"the result would overwrite {url}, an input")
        bucket.fails(["project", "mean", url, output, "--overwrite"], 2, f"the projection would overwrite {url}, an input")
    bucket.put("other.zarr/data/1")
    for options in ([], ["--overwrite"]):
        bucket.fails(["convert", sample, "s3://images/other.zarr", *options], 1, "so it is not a Zarr store and is not replaced")
    assert bucket.objects("other.zarr") == {"data/1": b"x"}
    # An image that cannot be written does not touch the old store.
    bucket.fails(["convert", "none.tif", url, "--overwrite"], 1, "none.tif")
    assert bucket.objects("a.zarr") == bucket.files("a.zarr")


def failures(bucket):
    """Whatever happens, there is no description of a store that is not complete, and what is left is recognised."""
    sample, url = str(SAMPLE), "s3://images/b.zarr"
    convert = ["convert", sample, url, "--zarr-chunk", "64"]
    bucket.done("convert", sample, "b.zarr", "--zarr-chunk", "64")
    bucket.fails(["convert", sample, "s3://none/a.zarr"], 1, "there is no such bucket")
    server = "the server failed (500), after 5 retries: try again later"
    # What fails once is sent again.
    with broken("put_object", lambda number: number % 3 == 0):
        bucket.done(*convert)
    assert bucket.objects("b.zarr") == bucket.files("b.zarr")
    bucket.s3.delete_objects(Bucket="images", Delete={"Objects": [{"Key": f"b.zarr/{name}"} for name in bucket.files("b.zarr")]})
    for after in (0, 1, 5, 30):
        with broken("put_object", lambda number: number > after):
            bucket.fails(convert, 1, f"cannot write {url}: ", server)
        assert bucket.objects("b.zarr") == {}, after
    with broken("put_object", lambda number: number > 20), broken("delete_object"):
        bucket.fails(convert, 1, "/c/0/", server, f"cannot delete what was written of {url}")
    left = bucket.objects("b.zarr")
    assert MARK in left and len(left) > 5 and "zarr.json" not in left, left.keys()
    unfinished = "another run writes a store there, or was stopped before it was complete (use --overwrite to replace it)"
    bucket.fails(convert, 1, f"cannot write {url}: {unfinished}")
    assert bucket.objects("b.zarr") == left
    bucket.done(*convert, "--overwrite")
    assert bucket.objects("b.zarr") == bucket.files("b.zarr")
    # Before an old store is replaced, and while it is.
    with broken("put_object"):
        bucket.fails([*convert, "--overwrite"], 1, f"{MARK}: {server}")
    assert bucket.objects("b.zarr") == bucket.files("b.zarr")
    with broken("put_object", lambda number: number > 10):
        bucket.fails([*convert, "--overwrite"], 1, server)
    assert bucket.objects("b.zarr") == {}
    for end in (signal.SIGINT, signal.SIGKILL):
        with broken("put_object", lambda number: False, wait=0.2) as calls:
            environment = PLAIN | {"GPUIMG_DEVICE": "cpu"} | bucket.here
            process = subprocess.Popen([GPUIMG, *convert, "--overwrite"], cwd=bucket.folder, env=environment, stderr=subprocess.PIPE, text=True)
            while len(calls) < 20:
                time.sleep(0.02)
            process.send_signal(end)
            told = process.communicate()[1]
            if end == signal.SIGINT:
                assert f"{url} is unfinished: write it again with --overwrite, or delete its objects" in told, told
            time.sleep(1)
        left = bucket.objects("b.zarr")
        assert MARK in left and "zarr.json" not in left, left.keys()
        bucket.fails(convert, 1, unfinished)
    bucket.done(*convert, "--overwrite")
    assert bucket.objects("b.zarr") == bucket.files("b.zarr")
    with broken("delete_object"):
        bucket.fails([*convert[:2], "s3://images/c.zarr", *convert[3:]], 1, f"it is complete, but cannot delete {MARK}")
    assert bucket.objects("c.zarr").keys() == bucket.files("b.zarr").keys() | {MARK}
    bucket.done("info", "s3://images/c.zarr")


def main():
    for name in ("werkzeug", "moto", "flask", "moto.server", "moto.moto_server.werkzeug_app"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    with tempfile.TemporaryDirectory() as folder:
        bucket = Bucket(endpoint, Path(folder))
        reads(bucket)
        writes(bucket)
        replaced(bucket)
        failures(bucket)
        server.stop()
        url = "s3://images/some/place/plain.zarr"
        bucket.fails(["info", url], 1, "cannot connect to the server")
        bucket.fails(["convert", str(SAMPLE), url], 1, f"cannot write {url}: ", "cannot connect to the server")
        # The service that gives a machine its credentials is that server, which is gone.
        bucket.here = {"AWS_ENDPOINT_URL": endpoint, "AWS_METADATA_ENDPOINT": endpoint}
        bucket.fails(["info", url], 1, "there are no credentials in the environment")
    print("stores that are not complete have no description; failures are named")


main()
