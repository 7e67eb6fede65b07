#!/bin/sh
# Puts another image in use, with the options of the container `mahasiswa`: upgrade.sh IMAGE [FILE]
# With FILE, a back-up of the folder /backup, the list is exported to /backup first, and IMAGE restores FILE: to roll back.
# If anything fails, the container before runs on with its list.
set -eu
image=$1 file=${2:-} backup=
say() { echo "upgrade.sh: $*" >&2; }

# `mahasiswa doctor` in the container says when the service answers. The start may upgrade a long list, which takes minutes.
answers() {
  while [ "$(podman inspect --format '{{.State.Running}}' mahasiswa)" = true ]; do
    ! podman exec mahasiswa mahasiswa doctor 2>/dev/null | grep -q 'The service answers on port' || return 0
    sleep 1
  done
  return 1
}

# Runs a command with an image while the container stands, so no change comes between a back-up and its use.
stopped() { podman run --rm --volumes-from mahasiswa "$@"; }

put_back() {
  set +e
  trap '' HUP INT TERM
  say "$image does not run. $old is put back."
  if podman container exists mahasiswa-before; then
    podman rm --force mahasiswa >/dev/null 2>&1
    podman rename mahasiswa-before mahasiswa
  fi
  podman start mahasiswa >/dev/null
  # If the new image has changed the tables, the old one refuses them, and the list has no later change than the back-up.
  if [ "$file" ] || ! answers; then
    podman stop mahasiswa >/dev/null
    [ ! "$backup" ] || stopped "$old" restore "$backup"
    podman start mahasiswa >/dev/null
  fi
  answers && say "$old runs." || say "$old does not run either: podman logs mahasiswa"
  exit 1
}

old=$(podman inspect --format '{{.Image}}' mahasiswa)
# The words of the `podman run` that made the container, one a line. The last one is its image.
set --
while IFS= read -r word; do
  set -- "$@" "$word"
done <<END
$(podman inspect --format '{{range .Config.CreateCommand}}{{println .}}{{end}}' mahasiswa | sed '/^$/d' | sed '$d')
$image
END
podman image exists "$image" || { say "there is no image $image. $old runs on, and nothing was changed."; exit 1; }

trap 'exit 1' HUP INT TERM
trap put_back EXIT
podman stop mahasiswa >/dev/null
backup=$(stopped "$old" backup) && backup=${backup%%: *}
[ ! "$file" ] || stopped "$old" export "/backup/before-$(date +%s).csv"
[ ! "$file" ] || stopped "$image" restore "$file"
podman rename mahasiswa mahasiswa-before
"$@" >/dev/null
answers
trap - EXIT
podman rm mahasiswa-before >/dev/null
say "$image runs. To roll back: upgrade.sh $old $backup"
