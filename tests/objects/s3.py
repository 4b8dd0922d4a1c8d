"""Reads stores in a bucket of S3, against moto's server: what is read is what the same folder gives, failures are named, and no
message has a key.

  tests/objects/s3.py GPUIMG
"""

import logging
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import boto3
from moto.server import ThreadedMotoServer

GPUIMG = sys.argv[1]
KEY, SECRET = "AKIDFORTESTS", "SECRETFORTESTS"
SAMPLE = Path(__file__).resolve().parents[2] / "samples/thermal.tif"
PLAIN = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}


def run(folder, *args, **variables):
    environment = PLAIN | {"GPUIMG_DEVICE": "cpu", "GPUIMG_REMOTE_TIMEOUT": "2"} | variables
    done = subprocess.run([GPUIMG, *args], cwd=folder, env=environment, capture_output=True, text=True)
    for printed in (done.stdout, done.stderr):
        assert SECRET not in printed and KEY not in printed, printed
    return done


def main():
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    s3 = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id=KEY, aws_secret_access_key=SECRET)
    s3.create_bucket(Bucket="images")
    here = {"AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    read = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)

        def done(*args):
            result = run(folder, *args, **here)
            assert result.returncode == 0 and not result.stderr, (args, result.stderr)
            return result.stdout

        for name, options in {"plain.zarr": [], "sharded.zarr": ["--zarr-shard", "512"]}.items():
            done("convert", str(SAMPLE), name, "--zarr-chunk", "128", *options)
            for file in (folder / name).rglob("*"):
                if file.is_file():
                    s3.upload_file(str(file), "images", f"some/place/{file.relative_to(folder)}")
            url = f"s3://images/some/place/{name}"
            for args in (["convert"], ["convert", "--level", "2"], ["crop", "200,300,100x50"], ["normalize"], ["preview", "--quiet"]):
                verb, *options = args
                words = [options.pop(0)] if verb == "crop" else []
                done(verb, *words, name, "here.tif", *options, "--overwrite")
                done(verb, *words, url, "there.tif", *options, "--overwrite")
                assert (folder / "here.tif").read_bytes() == (folder / "there.tif").read_bytes(), args
                read += 1
            line = done("info", url)
            assert line.startswith(f"{url}: Zarr, 640×512 grey, 16 bits"), line
        url = "s3://images/some/place/plain.zarr"
        failures = {
            "s3://images/other.zarr": "is not a Zarr store",
            "s3://none/a.zarr": "there is no such bucket: check its name, AWS_REGION and AWS_ENDPOINT_URL",
            f"s3://{KEY}:{SECRET}@images/a.zarr": "credentials are in the environment",
        }
        for address, words in failures.items():
            result = run(folder, "info", address, **here)
            assert result.returncode == 1 and words in result.stderr, result.stderr
        server.stop()
        result = run(folder, "info", url, **here)
        assert result.returncode == 1 and "cannot connect to the server" in result.stderr, result.stderr
        # The service that gives a machine its credentials is that server, which is gone.
        result = run(folder, "info", url, AWS_ENDPOINT_URL=endpoint, AWS_METADATA_ENDPOINT=endpoint)
        assert result.returncode == 1 and "there are no credentials in the environment" in result.stderr, result.stderr
    print(f"{read} reads of a bucket are those of the folder; {len(failures) + 2} failures are named")


main()
