#!/bin/sh
# Puts another image in use, with the options of the container `mahasiswa`: upgrade.sh IMAGE [FILE]
# With FILE, a back-up of the folder /backup, the list is exported to /backup first, and IMAGE restores FILE: to roll back.
# If anything fails, the container before runs on with its list.
set -eu
image=$1 file=${2:-}
say() { echo "upgrade.sh: $*" >&2; }

# `mahasiswa doctor` in the container says when the service answers.
answers() {
  for _ in $(seq 60); do
    ! podman exec mahasiswa mahasiswa doctor 2>/dev/null | grep -q 'The service answers on port' || return 0
    [ "$(podman inspect --format '{{.State.Running}}' mahasiswa)" = true ] || return 1
    sleep 1
  done
  return 1
}

restore() { podman run --rm --volumes-from mahasiswa "$1" restore "$2"; }

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
    restore "$old" "$backup"
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

backup=$(podman exec mahasiswa mahasiswa backup) && backup=${backup%%: *}
[ ! "$file" ] || podman exec mahasiswa mahasiswa export "/backup/before-$(date +%s).csv"
trap 'exit 1' HUP INT TERM
trap put_back EXIT
podman stop mahasiswa >/dev/null
[ ! "$file" ] || restore "$image" "$file"
podman rename mahasiswa mahasiswa-before
"$@" >/dev/null
answers
trap - EXIT
podman rm mahasiswa-before >/dev/null
say "$image runs. To roll back: upgrade.sh $old $backup"
