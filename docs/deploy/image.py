#!/usr/bin/env python3
"""Writes a container image from scratch as one archive: `docs/deploy/image.py FILE VERSION COMMIT EPOCH TARGET=PROGRAM…`.

The archive is an OCI layout, with the list of `docker load` next to it for the first program. One image for each
program: the program, a user, a folder for data; nothing else, no shell. The same input gives the same bytes.
"""
import gzip, hashlib, io, json, sys, tarfile, time

USER = 10001
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
MANIFEST, INDEX = "application/vnd.oci.image.manifest.v1+json", "application/vnd.oci.image.index.v1+json"
CONFIG, LAYER = "application/vnd.oci.image.config.v1+json", "application/vnd.oci.image.layer.v1.tar+gzip"
SECOND = 1_000_000_000


def entry(tar, name, epoch, data=None, mode=0o755, owner=0):
    info = tarfile.TarInfo(name)
    info.type = tarfile.REGTYPE if data is not None else tarfile.DIRTYPE
    info.size, info.mode, info.mtime, info.uid, info.gid = len(data or b""), mode, epoch, owner, owner
    tar.addfile(info, io.BytesIO(data) if data is not None else None)


def layer(program, epoch):
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.GNU_FORMAT) as tar:
        entry(tar, "data", epoch, mode=0o700, owner=USER)
        entry(tar, "etc", epoch)
        entry(tar, "etc/passwd", epoch, f"blotter:x:{USER}:{USER}::/data:/blotter\n".encode(), 0o644)
        entry(tar, "etc/group", epoch, f"blotter:x:{USER}:\n".encode(), 0o644)
        entry(tar, "blotter", epoch, open(program, "rb").read())
        entry(tar, "tmp", epoch, mode=0o1777)
    return plain.getvalue()


def config(architecture, version, commit, epoch, plain):
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch))
    return {
        "created": created, "architecture": architecture, "os": "linux",
        "config": {
            "User": f"{USER}:{USER}", "ExposedPorts": {"8080/tcp": {}}, "Volumes": {"/data": {}}, "WorkingDir": "/data",
            "Entrypoint": ["/blotter"],
            # Nothing outside a container reaches its loopback: publish the port to where you want it.
            "Cmd": ["serve", "--data-dir", "/data", "--listen", "0.0.0.0:8080"],
            "StopSignal": "SIGTERM",
            # By the socket in the data folder: neither a port nor a key.
            "Healthcheck": {"Test": ["CMD", "/blotter", "admin", "status", "--data-dir", "/data"],
                            "Interval": 10 * SECOND, "Timeout": 5 * SECOND, "StartPeriod": 30 * SECOND, "Retries": 3},
            "Labels": {"org.opencontainers.image.title": "blotter", "org.opencontainers.image.version": version,
                       "org.opencontainers.image.revision": commit, "org.opencontainers.image.licenses": "MIT OR Apache-2.0"},
        },
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(plain).hexdigest()]},
        "history": [{"created": created, "created_by": "docs/deploy/image.py"}],
    }


class Layout:
    def __init__(self):
        self.blobs = {}

    def add(self, data, kind, **more):
        if not isinstance(data, bytes):
            data = json.dumps(data, sort_keys=True).encode()
        name = hashlib.sha256(data).hexdigest()
        self.blobs[name] = data
        return {"mediaType": kind, "digest": f"sha256:{name}", "size": len(data), **more}


def main():
    out, version, commit, epoch, *programs = sys.argv[1:]
    epoch, layout, manifests, loads, name = int(epoch), Layout(), [], [], f"blotter:{version}"
    for one in programs:
        target, program = one.split("=", 1)
        architecture = ARCHITECTURES[target.split("-")[0]]
        plain = layer(program, epoch)
        content = layout.add(gzip.compress(plain, 9, mtime=0), LAYER)
        settings = layout.add(config(architecture, version, commit, epoch, plain), CONFIG)
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": settings, "layers": [content]}
        manifests.append(layout.add(manifest, MANIFEST, platform={"architecture": architecture, "os": "linux"}))
        path = "blobs/sha256/{}".format
        blob = lambda part: path(part["digest"].removeprefix("sha256:"))
        loads.append({"Config": blob(settings), "RepoTags": [name], "Layers": [blob(content)]})
    named = {"org.opencontainers.image.ref.name": name, "io.containerd.image.name": f"docker.io/library/{name}"}
    index = layout.add({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests}, INDEX, annotations=named)
    with tarfile.open(out, "w", format=tarfile.GNU_FORMAT) as tar:
        entry(tar, "oci-layout", epoch, b'{"imageLayoutVersion":"1.0.0"}', 0o644)
        entry(tar, "index.json", epoch, json.dumps({"schemaVersion": 2, "manifests": [index]}).encode(), 0o644)
        entry(tar, "manifest.json", epoch, json.dumps(loads[:1]).encode(), 0o644)
        entry(tar, "blobs", epoch)
        entry(tar, "blobs/sha256", epoch)
        for name, data in sorted(layout.blobs.items()):
            entry(tar, f"blobs/sha256/{name}", epoch, data, 0o644)


if __name__ == "__main__":
    main()
