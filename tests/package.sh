#!/usr/bin/env bash
# Makes the Debian package and checks it: lintian finds no error, it has what it should have, and from a folder that it was
# unpacked to, the program trains, and programs in C and Python use the library.
#
#   tests/package.sh        afterwards: apt install ./build/release/package/ringtail_*.deb
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "package.sh: $*" >&2
  exit 1
}

apps/install_packages.sh --package
cmake --preset release -DRINGTAIL_WERROR=ON -Wno-dev >/dev/null
ninja -C build/release --quiet programs
rm -rf build/release/package/*.deb build/release/package/_CPack_Packages
cpack --config build/release/CPackConfig.cmake >/dev/null
package=$(echo build/release/package/ringtail_*.deb)
[ -f "$package" ] || fail "there is not one package: $package"
dpkg-deb --field "$package" Package Version Depends
# Packages of this folder are of no distribution, and root may unpack them.
lintian --allow-root --fail-on error "$package" || fail "lintian found errors"

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
dpkg-deb --extract "$package" "$root"
for file in bin/ringtail bin/dogs_vs_cats bin/ringtail_launch lib/libringtail.so.0 include/ringtail.h \
  share/man/man1/ringtail-train.1.gz share/man/man3/ringtail.3.gz share/bash-completion/completions/ringtail share/doc/ringtail/copyright; do
  [ -e "$root/usr/$file" ] || fail "there is no /usr/$file in $package"
done
grep -q "No licence has been chosen" "$root/usr/share/doc/ringtail/copyright" || fail "the copyright file says something else"
! dpkg-deb --contents "$package" | grep -v ' root/root ' || fail "the files above belong to others than root"

# As an installed package, but for the place.
export PATH=$root/usr/bin:$PATH LD_LIBRARY_PATH=$root/usr/lib PKG_CONFIG_PATH=$root/usr/lib/pkgconfig XDG_CACHE_HOME=$root/cache
cd "$root"
ringtail synthesize --out drawn --images 64 >/dev/null
ringtail train --config quickstart --data drawn --output run --set train.epochs=1 --set train.batch=16 >/dev/null 2>&1 ||
  fail "ringtail train failed"
ringtail predict --checkpoint run --images drawn/train/cat.0.jpg 2>/dev/null
cp "$OLDPWD"/tests/apps/library/project/classify.c .
cc -o classify classify.c $(pkg-config --cflags --libs ringtail)
./classify run drawn/train/cat.0.jpg
awk '/^    import ctypes/ { on = 1 } on && !/^    / { exit } on { print substr($0, 5) }' \
  "$OLDPWD"/apps/library/README.md >classify.py
python3 classify.py run drawn/train/cat.0.jpg
echo "package.sh: $package, $(stat -c %s "$OLDPWD/$package") bytes, is right"
