# The build id: what tells two builds of Ringtail apart, with the same version number or not.
#
#   cmake -DSOURCE=<repository> -DTOOLS=<text> -DOUTPUT=<file.cc> -P build_id.cmake
#
# A hash of the names and contents of all files that programs are made from, and of TOOLS: compiler,
# its version and flags, as ranks have to come to the same bits. Neither time, folder nor git are
# in it, so that builds of the same files on two machines agree. OUTPUT is written only if it changes.
file(GLOB_RECURSE files RELATIVE ${SOURCE}
  ${SOURCE}/core/*.cc ${SOURCE}/core/*.h ${SOURCE}/layers/*.cc ${SOURCE}/layers/*.h
  ${SOURCE}/optim/*.cc ${SOURCE}/optim/*.h ${SOURCE}/data/*.cc ${SOURCE}/data/*.h
  ${SOURCE}/dist/*.cc ${SOURCE}/dist/*.h ${SOURCE}/apps/*.cc ${SOURCE}/apps/*.h
  ${SOURCE}/layers/*.proto ${SOURCE}/optim/*.proto ${SOURCE}/data/*.proto ${SOURCE}/dist/*.proto
  ${SOURCE}/apps/*.proto ${SOURCE}/apps/*.in)
list(SORT files)
set(text "${TOOLS}\n")
foreach(file CMakeLists.txt ${files})
  file(SHA256 ${SOURCE}/${file} hash)
  string(APPEND text "${file} ${hash}\n")
endforeach()
string(SHA256 id "${text}")
string(SUBSTRING ${id} 0 12 id)
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
// Made by apps/build_id.cmake.
#include "apps/version.h"

namespace ringtail {

const char kBuildId[] = "@id@";

}  // namespace ringtail
]])
