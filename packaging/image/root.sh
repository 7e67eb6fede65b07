#!/bin/sh
# Makes the root folder of the container image from Debian packages, the lock and a wheel.
# Usage, as root: packaging/image/root.sh FOLDER WHEEL
set -eu

root=$1
wheel=$2
python=${PYTHON:-python3}
repository=$(dirname "$0")/../..

# Keep what Python needs, and the licences. There is no shell and no package manager.
kept='./lib ./lib64 ./usr/bin/python3 ./usr/bin/python3.11 ./usr/lib/python3.11 ./usr/lib/*-linux-gnu
  ./usr/share/doc/*/copyright'

mkdir -p "$root"
# "extract" runs no script of any package. If mmdebstrap cannot write, it sends SIGHUP to its process group. So it gets a
# group of its own, and cat takes what follows the end of the archive, which tar does not read.
setsid --wait mmdebstrap --quiet --variant=extract --include="python3-minimal libpython3.11-stdlib" bookworm - |
  (set -f; tar --extract --directory "$root" --wildcards --exclude './dev/*' $kept; cat >/dev/null)

"$python" -m pip install --quiet --disable-pip-version-check --no-compile --target "$root/usr/lib/python3/dist-packages" \
  --python-version 3.11 --implementation cp --only-binary=:all: --require-hashes -r "$repository/requirements.txt"
"$python" -m pip install --quiet --disable-pip-version-check --no-compile --target "$root/usr/lib/python3/dist-packages" \
  --no-deps --no-index "$wheel"
rm -r "$root/usr/lib/python3/dist-packages/bin"
printf '#!/usr/bin/python3 -P\nfrom mahasiswa.__main__ import main\n\nmain()\n' >"$root/usr/bin/mahasiswa"
chmod 755 "$root/usr/bin/mahasiswa"
# The root is read-only later, so Python cannot keep compiled files at the first start.
chroot "$root" /usr/bin/python3 -m compileall -q --invalidation-mode unchecked-hash /usr/lib/python3 /usr/lib/python3.11

install -d "$root/etc"
install -d -m 1777 "$root/tmp"
install -d -m 700 -o 10001 -g 10001 "$root/data" "$root/backup"
echo 'mahasiswa:x:10001:10001::/data:/usr/sbin/nologin' >>"$root/etc/passwd"
echo 'mahasiswa:x:10001:' >>"$root/etc/group"
