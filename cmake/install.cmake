# `cmake --install` installs the libraries, the headers, and the files by which CMake and pkg-config find them. Each file
# belongs to one of the components library, development and tool, which become packages.

install(TARGETS clnorm clnorm_static EXPORT clnormTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development)
install(DIRECTORY include/clnorm DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/clnorm)
configure_package_config_file(cmake/clnormConfig.cmake.in clnormConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(clnormConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT clnormTargets NAMESPACE clnorm:: DESTINATION ${package_dir} COMPONENT development)
install(FILES "${PROJECT_BINARY_DIR}/clnormConfig.cmake" "${PROJECT_BINARY_DIR}/clnormConfigVersion.cmake"
    DESTINATION ${package_dir} COMPONENT development)

# Folders in a .pc file are relative to the file, so that an installed tree can be moved.
set(pc_dir "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig")
file(RELATIVE_PATH pc_to_prefix "${pc_dir}" "${CMAKE_INSTALL_PREFIX}")
file(RELATIVE_PATH pc_to_include "${pc_dir}" "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
# A program calls OpenCL too, and not every OpenCL has a .pc file: without one, ours name the files that the build found.
if(PkgConfig_FOUND)
    pkg_check_modules(OPENCL_PC QUIET OpenCL)
endif()
if(OPENCL_PC_FOUND)
    set(pc_requires ", OpenCL")
else()
    get_filename_component(opencl_dir "${OpenCL_LIBRARY}" DIRECTORY)
    set(pc_cflags " -I${OpenCL_INCLUDE_DIR}")
    set(pc_libs " -L${opencl_dir} -lOpenCL")
endif()
foreach(name clnorm clnorm-shared)
    configure_file(cmake/${name}.pc.in ${name}.pc @ONLY)
    install(FILES "${PROJECT_BINARY_DIR}/${name}.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endforeach()
