#!/usr/bin/env bash
# From a fresh Debian 12 to a trained network: installs packages, builds Ringtail, draws images of
# cats and dogs, trains a small network on them, and measures it on images that it has not seen.
# Everything it makes is in build/release and demo/; running it again reuses what is there.
#
#   apps/quickstart.sh          (as root, or as a user who may use sudo)
set -euo pipefail
cd "$(dirname "$0")/.."

readonly train_images=4000 unseen_images=1000
readonly goal=0.95
ranks=2
[ "$(nproc)" -ge 2 ] || ranks=1
program=build/release/bin/dogs_vs_cats
started=$SECONDS

say() { printf '\n== %s (%d s)\n' "$*" $((SECONDS - started)); }

say "installing packages"
apps/install_packages.sh

say "building"
quiet=(--quiet)
[ -t 1 ] && quiet=()  # a terminal gets one line that counts what is built
cmake --preset release -Wno-dev >/dev/null
ninja -C build/release "${quiet[@]}" dogs_vs_cats ringtail_launch
"$program" --version

say "drawing $train_images images to train on and $unseen_images others to be tested with"
draw() {  # folder, number of images, seed
  if [ -d "$1/train" ]; then echo "$1 is there"; return; fi
  "$program" synthesize --out "$1" --images "$2" --seed "$3"
}
draw demo/images $train_images 1
draw demo/unseen $unseen_images 2

# Two ranks with half of the batch each: one machine as a cluster of two.
say "training on $ranks ranks (configs/quickstart.textproto)"
rm -rf demo/run
build/release/bin/ringtail_launch -n $ranks -- \
  "$program" train --config configs/quickstart.textproto --data demo/images --output demo/run \
  --set train.batch=$((64 / ranks)) --set optim.batch_scaling.reference_batch=64

say "evaluating on the unseen images"
result=$("$program" evaluate --checkpoint demo/run/final.safetensors --data demo/unseen --json)
accuracy=$(sed -n 's/.*"accuracy":\([0-9.e-]*\).*/\1/p' <<<"$result")
"$program" predict --checkpoint demo/run/final.safetensors --images demo/unseen/train/cat.{0,1}.jpg \
  demo/unseen/train/dog.{0,1}.jpg

say "done"
awk -v accuracy="$accuracy" -v images=$unseen_images -v goal=$goal 'BEGIN {
  printf "The network is right on %.1f %% of %d images that it has not seen.\n",
         100 * accuracy, images
  if (accuracy < goal) printf "That is less than the %.0f %% it should reach.\n", 100 * goal
  exit accuracy < goal
}'
cat <<TXT
It is in demo/run/final.safetensors, its training in demo/run/metrics.jsonl.
Next, train on real images (cat.0.jpg, dog.0.jpg, ... or folders Cat/ and Dog/):

  $program train --data FOLDER
TXT
