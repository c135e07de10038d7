# Tests of the exported symbols, the installation, projects that use it, and a build with few packages.

set(symbol_version "")
if(CLNORM_LINKER_HAS_VERSION_SCRIPTS)
    set(symbol_version "CLNORM_${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")
endif()
clnorm_add_test(symbols "${CMAKE_CURRENT_SOURCE_DIR}/check_symbols.sh" "${CMAKE_NM}"
    "${PROJECT_SOURCE_DIR}/include/clnorm" $<TARGET_FILE:clnorm> $<TARGET_FILE:clnorm_static> "${symbol_version}")

# The consumer project, against an installation, and with clnorm as a subproject.
set(consumer "${CMAKE_CURRENT_SOURCE_DIR}/consumer")
if(CLNORM_INSTALL)
    set(installed "${CMAKE_CURRENT_BINARY_DIR}/installed")
    clnorm_add_test(install "${CMAKE_COMMAND}" --install "${PROJECT_BINARY_DIR}" --prefix "${installed}")
    clnorm_add_test(consumer_cmake "${CMAKE_CTEST_COMMAND}"
        --build-and-test "${consumer}" "${CMAKE_CURRENT_BINARY_DIR}/consumer"
        --build-generator "${CMAKE_GENERATOR}"
        --build-options "-DCMAKE_PREFIX_PATH=${installed}" "-DCMAKE_C_COMPILER=${CMAKE_C_COMPILER}"
            "-DCONSUMER_VERSION=${PROJECT_VERSION}"
        --test-command "${CMAKE_CTEST_COMMAND}" --output-on-failure)
    clnorm_add_test(consumer_pkg_config "${consumer}/pkg_config.sh"
        "${CMAKE_C_COMPILER}" "${installed}/${CMAKE_INSTALL_LIBDIR}" "${CMAKE_CURRENT_BINARY_DIR}/consumer_pkg_config")
    clnorm_add_test(examples_installed "${CMAKE_CTEST_COMMAND}"
        --build-and-test "${PROJECT_SOURCE_DIR}/examples" "${CMAKE_CURRENT_BINARY_DIR}/examples_installed"
        --build-generator "${CMAKE_GENERATOR}"
        --build-options "-DCMAKE_PREFIX_PATH=${installed}" "-DCMAKE_C_COMPILER=${CMAKE_C_COMPILER}"
        --test-command "${CMAKE_CTEST_COMMAND}" --output-on-failure)
    set(installed_tests consumer_cmake consumer_pkg_config examples_installed)
    if(clnorm_has_tool)
        clnorm_add_test(installed_tool "${installed}/${CMAKE_INSTALL_BINDIR}/clnorm" --version)
        set_tests_properties(installed_tool PROPERTIES PASS_REGULAR_EXPRESSION "^clnorm ${PROJECT_VERSION}\n$")
        list(APPEND installed_tests installed_tool)
    endif()
    set_tests_properties(install PROPERTIES FIXTURES_SETUP installed)
    set_tests_properties(${installed_tests} PROPERTIES FIXTURES_REQUIRED installed)
endif()
clnorm_add_test(consumer_subproject "${consumer}/subproject.sh" "${CMAKE_COMMAND}" "${CMAKE_C_COMPILER}"
    "${PROJECT_SOURCE_DIR}" "${CMAKE_CURRENT_BINARY_DIR}/consumer_subproject")
clnorm_add_test(plain_build "${CMAKE_CURRENT_SOURCE_DIR}/plain_build.sh" "${CMAKE_COMMAND}" "${CMAKE_C_COMPILER}"
    "${PROJECT_SOURCE_DIR}" "${CMAKE_CURRENT_BINARY_DIR}/plain_build")
