#!/usr/bin/env bash
# Installs the Debian package into a Debian 12 that has nothing else, as on a new machine, and takes a newcomer's path
# there: own images to a network in a Python program. Everything is typed as the READMEs and the programs say it.
#
#   tests/package.sh && tests/package_in_chroot.sh [FOLDER]     FOLDER: kept, and taken the next time; else a temporary one
#
# 1. apt installs the package by its dependencies alone; ringtail, its man pages and completion are there
# 2. 600 images in five classes, whose folders have umlauts and blanks: train, evaluate, report, predict, export --onnx
# 3. the lines of Python that `export` has printed run on an image, and name its class
# 4. a compiler is installed, and a C program is built by find_package and by pkg-config
#
# Needs root, the package debootstrap, and a network with Debian's packages. Prints the seconds of each part.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "package_in_chroot.sh: $*" >&2
  exit 1
}

package=$(echo "$PWD"/build/release/package/ringtail_*.deb)
[ -f "$package" ] || fail "there is not one package in build/release/package; run tests/package.sh"
[ "$(id -u)" -eq 0 ] || fail "run this as root"
command -v debootstrap >/dev/null || fail "apt-get install debootstrap"

if [ "${IN_OWN_MOUNTS:-}" != yes ]; then  # what is mounted below ends with this process
  IN_OWN_MOUNTS=yes exec unshare --mount "$0" "$@"
fi
root=${1:-}
if [ -z "$root" ]; then
  root=$(mktemp -d)
  trap 'umount "$root/proc"; rm -rf "$root"' EXIT
fi
part() {
  echo "== $((SECONDS - since)) s: $*"
  since=$SECONDS
}
since=$SECONDS
if [ ! -e "$root/etc/debian_version" ]; then
  debootstrap --variant=minbase bookworm "$root" >"$root.log" 2>&1 || fail "debootstrap: $(tail -3 "$root.log")"
fi
mount -t proc proc "$root/proc"
cp /etc/resolv.conf "$root/etc/resolv.conf"
part "a Debian of $(du -sxm "$root" | cut -f1) MiB is in $root"

# A shell there, whose home is empty.
inside() { chroot "$root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 TERM=dumb \
  DEBIAN_FRONTEND=noninteractive bash -euo pipefail -c "$1"; }

rm -rf "$root/root" "$root"/tmp/*
mkdir -p "$root/root"
cp "$package" "$root/tmp/ringtail.deb"
inside 'apt-get update -qq && apt-get purge -y -qq ringtail >/dev/null 2>&1 || true
  apt-get install -y -qq --no-install-recommends /tmp/ringtail.deb >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; exit 1; }
  ringtail --version
  [ -s /usr/share/man/man1/ringtail-train.1.gz ] && [ -s /usr/share/bash-completion/completions/ringtail ]
  bash -n /usr/share/bash-completion/completions/ringtail'
part "the package is installed"

# Own images: not a part of the path. Cats and dogs are Ringtail's; the others are shapes.
inside 'apt-get install -y -qq --no-install-recommends python3-opencv >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; exit 1; }'
cp tests/draw_five_classes.py "$root/tmp"
inside 'ringtail synthesize --out /tmp/drawn --images 240 >/dev/null
  python3 /tmp/draw_five_classes.py /tmp/drawn "$HOME/Meine Bilder"
  find "$HOME/Meine Bilder" -name "*.jpg" | wc -l'
part "600 images are drawn"

path_began=$SECONDS
inside 'cd
  ringtail train --data "Meine Bilder" --output läufe/erster 2>&1'
part "train"
inside 'cd
  ringtail evaluate --checkpoint läufe/erster
  ringtail report läufe/erster
  ringtail predict --checkpoint läufe/erster "Meine Bilder"/*/1.jpg
  ringtail export --checkpoint läufe/erster --onnx "mein netz.onnx" | tee /tmp/export.txt'
part "evaluate, report, predict, export"
inside 'cd
  cp "Meine Bilder/rote Äpfel/1.jpg" image.jpg
  sed -n "/^Python:/,/^C++:/p" /tmp/export.txt | grep "^  " | sed "s/^  //" >classify.py
  python3 classify.py | tee /tmp/answer.txt
  python3 -c "import ast; p = ast.literal_eval(open(\"/tmp/answer.txt\").read()); assert max(p, key=p.get) == \"rote Äpfel\", p"'
part "Python and OpenCV; the newcomer needed $((SECONDS - path_began)) s in all"

inside 'apt-get install -y -qq --no-install-recommends cmake make gcc libc6-dev pkgconf >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; exit 1; }'
cp -r tests/apps/library/project "$root/root"
inside 'cd ~/project
  cmake -B build -S . >/dev/null && cmake --build build >/dev/null
  cc -o classify classify.c $(pkg-config --cflags --libs ringtail)
  build/classify ~/läufe/erster ~/image.jpg >by_cmake
  ./classify ~/läufe/erster ~/image.jpg >by_pkg_config
  cat by_cmake
  cmp by_cmake by_pkg_config'
part "a C program by find_package and by pkg-config"
inside 'apt-get purge -y -qq ringtail >/dev/null 2>&1
  [ ! -e /usr/bin/ringtail ] && [ ! -e /usr/lib/libringtail.so.0 ] && [ ! -e /usr/share/man/man1/ringtail.1.gz ]'
part "the package is removed; all is right"
