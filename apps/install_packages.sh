#!/usr/bin/env bash
# Installs the Debian 12 packages that Ringtail needs; does nothing where they are all there.
#
#   apps/install_packages.sh             to build and run
#   apps/install_packages.sh --tests     to run all tests, too
#   apps/install_packages.sh --package   to make a Debian package and check it, too
#
# Run it as root, or as a user who may use sudo.
set -euo pipefail

build=(g++ cmake ninja-build ccache
       libdnnl-dev libtbb-dev libopencv-dev libjpeg-dev libtiff-dev
       libprotobuf-dev protobuf-compiler libgrpc++-dev protobuf-compiler-grpc libssl-dev
       libfmt-dev libspdlog-dev nlohmann-json3-dev libcli11-dev
       libgtest-dev libgmock-dev)
tests=(clang clang-format clang-tidy libclang-rt-14-dev libomp-dev lld llvm strace git python3
       openmpi-bin libopenmpi-dev pkgconf binutils)
packaging=(dpkg-dev lintian pkgconf python3)

packages=("${build[@]}")
case "${1:-}" in
  --tests) packages+=("${tests[@]}") ;;
  --package) packages+=("${packaging[@]}") ;;
esac

missing=()
for package in "${packages[@]}"; do
  dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed ||
    missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || {
    echo "missing packages: ${missing[*]}; run this as root, or install sudo" >&2
    exit 1
  }
  as_root=(sudo)
fi
echo "installing ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
