"""Generates a Python client from a server's /openapi.json, checks it strictly, and streams with it.

    python3 tests/clients/generated/run.py BINARY

The generator and mypy are installed into target/generated-client. Where they cannot be installed it
says so and exits with code 77.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
TOOLS = HERE.parents[2] / "target/generated-client"
SKIPPED = 77

sys.path.insert(0, str(HERE.parent))
from run import Server, TRADES  # noqa: E402


def tool(name):
    return str(TOOLS / "bin" / name)


def install():
    """Whether the tools are there, in the versions that are asked for."""
    asked = (HERE / "requirements.txt").read_text()
    stamp = TOOLS / "requirements.txt"
    if stamp.is_file() and stamp.read_text() == asked:
        return True
    shutil.rmtree(TOOLS, ignore_errors=True)
    pip = [tool("pip"), "install", "--quiet", "--disable-pip-version-check", "-r", str(HERE / "requirements.txt")]
    for command in ([sys.executable, "-m", "venv", str(TOOLS)], pip):
        if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode != 0:
            return False
    stamp.write_text(asked)
    return True


def generate(server, folder):
    """The client of the document that the server gives, and the program that uses it."""
    document = folder / "openapi.json"
    with urllib.request.urlopen(f"{server.url}/openapi.json", timeout=60) as answer:
        document.write_bytes(answer.read())
    options = ["--path", str(document), "--output-path", str(folder / "blotter_api"), "--meta", "none"]
    config = ["--config", str(HERE / "generator.yaml"), "--fail-on-warning"]
    subprocess.run([tool("openapi-python-client"), "generate", *options, *config], check=True)
    shutil.copy(HERE / "stream.py", folder)
    subprocess.run([tool("mypy"), "--strict", "blotter_api", "stream.py"], cwd=folder, check=True)


def stream(server, folder, key, chain):
    wallet = server.wallets[chain, "large"]
    command = [tool("python"), "stream.py", server.url, key, wallet, chain]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


def main():
    if not install():
        print("SKIPPED: a generated Python client: its generator cannot be installed", file=sys.stderr)
        raise SystemExit(SKIPPED)
    binary = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory(prefix="blotter-generated-") as name:
        folder = pathlib.Path(name)
        server = Server(binary, name)
        try:
            generate(server, folder)
            for chain in ("sol", "eth", "tron"):
                ran = stream(server, folder, server.key, chain)
                assert ran.returncode == 0, ran.stderr
                expected = server.rows(server.wallets[chain, "large"], chain)
                assert len(expected) >= TRADES, (chain, len(expected))
                assert ran.stdout.splitlines() == expected, chain
                print(f"generated client, {chain}: {len(expected)} rows by stream and by pages")
            refused = stream(server, folder, "blt_wrong", "eth")
            assert refused.returncode == 1 and "INVALID_SESSION" in refused.stderr, refused
        finally:
            server.kill()


if __name__ == "__main__":
    main()
