#!/bin/sh
# Builds the container image without a registry: FOLDER/mahasiswa-VERSION.oci.tar, for `podman load`, and (not run) `docker load`.
# Usage, as root: packaging/image/build.sh WHEEL FOLDER
set -eu

wheel=$1
folder=$2
here=$(dirname "$0")
version=$(basename "$wheel" | cut -d- -f2)
work=$(mktemp -d)
# A storage of its own: the build does not depend on the computer's container settings and leaves nothing in its storage.
buildah() { command buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs "$@"; }
trap 'buildah umount --all >/dev/null; rm -rf "$work"' EXIT

container=$(buildah from scratch)
"$here/root.sh" "$(buildah mount "$container")" "$wheel" # `buildah copy` would make everything root's
buildah config --user 10001:10001 --workingdir /data --volume /data --volume /backup --port 3000 \
  --env HOST=0.0.0.0 --env PORT=3000 --env DATABASE_URL=sqlite:////data/mahasiswa.db --env BACKUP_DIR=/backup --env PYTHONUTF8=1 \
  --env "MAHASISWA_COMMAND=podman exec -i mahasiswa mahasiswa" \
  --entrypoint '["/usr/bin/mahasiswa"]' --cmd '' \
  --label org.opencontainers.image.title=mahasiswa --label "org.opencontainers.image.version=$version" \
  --label org.opencontainers.image.licenses=MIT "$container"
buildah commit --quiet "$container" mahasiswa >/dev/null
buildah push --quiet mahasiswa "oci-archive:$folder/mahasiswa-$version.oci.tar:mahasiswa:$version"
