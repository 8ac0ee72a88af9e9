# A Debian package of what `cmake --install` installs: `cpack --config build/release/CPackConfig.cmake`, or
# tests/package.sh, which checks it, too. Included by the top CMakeLists.txt.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME ringtail)
set(CPACK_PACKAGE_CONTACT "Ringtail maintainers <maintainers@ringtail.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "train convolutional networks on CPUs")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "Ringtail trains convolutional networks that classify images, on CPUs, on one
machine or on many. It reads images and a network written as a short text
file, and produces a trained network, a log of every step and predictions.
.
The package has the program ringtail, a launcher for several ranks, and
libringtail.so with its C header, for programs that classify images.")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/package)
# Which packages have the libraries that ours need; what others need for ours, and that ldconfig is to see it, by a
# trigger. (CPack adds scripts that call ldconfig, too.)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
configure_file(apps/package/shlibs.in package/shlibs @ONLY)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_BINARY_DIR}/package/shlibs ${CMAKE_SOURCE_DIR}/apps/package/triggers)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
# What Debian's policy compresses.
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/apps/package/compress.cmake)

# The day of the last commit, so that a package of the same sources has the same bytes.
execute_process(COMMAND git log -1 --format=%cD WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
                OUTPUT_VARIABLE CHANGELOG_DATE OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT CHANGELOG_DATE)  # sources without their history
  string(TIMESTAMP CHANGELOG_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)
endif()
configure_file(apps/package/changelog.in package/changelog @ONLY)
install(FILES ${CMAKE_SOURCE_DIR}/apps/package/copyright ${CMAKE_BINARY_DIR}/package/changelog
        DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/ringtail)
include(CPack)
