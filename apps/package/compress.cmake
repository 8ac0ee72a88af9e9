# Run by CPack when everything is in its folder and before that becomes a package.
file(GLOB documents ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr/share/man/man*/*.[1-9]
     ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr/share/doc/*/changelog)
execute_process(COMMAND gzip -9 --no-name ${documents} COMMAND_ERROR_IS_FATAL ANY)
