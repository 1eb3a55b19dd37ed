"""Generates Python and TypeScript clients from a server's /openapi.json, checks them strictly, and streams.

    python3 tests/clients/generated/run.py BINARY

The generators, mypy and tsc are installed into target/generated-client and target/generated-typescript.
Where they cannot be installed it says so and exits with code 77.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
TOOLS = HERE.parents[2] / "target/generated-client"
NODE = HERE.parents[2] / "target/generated-typescript"
TYPESCRIPT = HERE / "typescript"
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


def install_typescript():
    """The program's folder with its packages, in the versions of the lock file."""
    NODE.mkdir(parents=True, exist_ok=True)
    for file in TYPESCRIPT.iterdir():
        shutil.copy(file, NODE)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    return shutil.which("npm") and subprocess.run(command, cwd=NODE, check=False).returncode == 0


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
    packages = NODE / "node_modules/.bin"
    subprocess.run([packages / "openapi-typescript", document, "-o", NODE / "schema.d.ts"], check=True)
    subprocess.run([packages / "tsc", "-p", NODE], check=True)


def streams(server, folder, key, chain):
    """What each client prints of a large wallet."""
    arguments = [server.url, key, server.wallets[chain, "large"], chain]
    commands = {"Python": [tool("python"), "stream.py"], "TypeScript": ["node", str(NODE / "dist/stream.js")]}
    for name, command in commands.items():
        options = {"cwd": folder, "capture_output": True, "text": True, "timeout": 300, "check": False}
        yield name, subprocess.run([*command, *arguments], **options)


def main():
    if not install() or not install_typescript():
        print("SKIPPED: generated clients: their generators cannot be installed", file=sys.stderr)
        raise SystemExit(SKIPPED)
    binary = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory(prefix="blotter-generated-") as name:
        folder = pathlib.Path(name)
        server = Server(binary, name)
        try:
            generate(server, folder)
            for chain in ("sol", "eth", "tron"):
                expected = server.rows(server.wallets[chain, "large"], chain)
                assert len(expected) >= TRADES, (chain, len(expected))
                for name, ran in streams(server, folder, server.key, chain):
                    assert ran.returncode == 0, ran.stderr
                    assert ran.stdout.splitlines() == expected, (name, chain)
                    print(f"generated {name} client, {chain}: {len(expected)} rows by stream and by pages")
            for name, refused in streams(server, folder, "blt_wrong", "eth"):
                assert refused.returncode == 1 and "INVALID_SESSION" in refused.stderr, (name, refused)
        finally:
            server.kill()


if __name__ == "__main__":
    main()
