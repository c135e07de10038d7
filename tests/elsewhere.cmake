# The test programs on other OpenCL implementations.
set(oclgrind "${CMAKE_CURRENT_SOURCE_DIR}/test_oclgrind.sh")
set(rusticl "${CMAKE_CURRENT_SOURCE_DIR}/test_rusticl.sh")
set(elsewhere oclgrind_args oclgrind_group_norm_exchange oclgrind_group_norm_pieces oclgrind_group_norm_pieces_backward
    oclgrind_norm_backward_teams oclgrind_norm_sweep oclgrind_softmax_exchange)
foreach(test IN ITEMS
    gelu group_norm group_norm_backward group_norm_configs group_norm_fp8 leads norm_backward_abreast norm_backward_args
    norm_backward_columns norm_backward_knobs norm_backward_sweep norm_fp8_tiles norm_knobs norm_slices norm_slices_knobs norm_weight_map
    quantize softmax)
    clnorm_add_test(oclgrind_${test} "${oclgrind}" $<TARGET_FILE:test_${test}>)
    list(APPEND elsewhere oclgrind_${test})
endforeach()
clnorm_add_test(oclgrind_args "${oclgrind}" $<TARGET_FILE:test_args> --uninitialized)
clnorm_add_test(oclgrind_norm_backward_teams "${oclgrind}" $<TARGET_FILE:test_norm_backward_teams> races)
clnorm_add_test(oclgrind_group_norm_exchange "${oclgrind}" $<TARGET_FILE:test_group_norm_exchange> races)
clnorm_add_test(oclgrind_group_norm_pieces "${oclgrind}" $<TARGET_FILE:test_group_norm_pieces> races)
clnorm_add_test(oclgrind_group_norm_pieces_backward "${oclgrind}" $<TARGET_FILE:test_group_norm_pieces_backward> races)
clnorm_add_test(oclgrind_softmax_exchange "${oclgrind}" $<TARGET_FILE:test_softmax_exchange> races)
clnorm_add_test(oclgrind_norm_sweep "${oclgrind}" $<TARGET_FILE:test_norm_sweep> --uninitialized)
foreach(test IN ITEMS
    group_norm group_norm_backward group_norm_configs norm_backward_teams norm_weight_map softmax_exchange)
    set_property(TEST oclgrind_${test} APPEND PROPERTY ENVIRONMENT CLNORM_TEST_QUICK=1) # minutes otherwise
endforeach()
foreach(test IN ITEMS
    buffers drivers enqueue events gelu group_norm_exchange group_norm_fp8 group_norm_pieces group_norm_pieces_backward
    l2_norm leads
    norm_backward_abreast norm_backward_columns norm_backward_knobs norm_backward_sweep norm_fp8_tiles norm_knobs norm_numerics norm_sweep
    softmax softmax_exchange)
    clnorm_add_test(rusticl_${test} "${rusticl}" $<TARGET_FILE:test_${test}>)
    set_property(TEST rusticl_${test} APPEND PROPERTY ENVIRONMENT CLNORM_TEST_QUICK=2)
    list(APPEND elsewhere rusticl_${test})
endforeach()
if(clnorm_has_tool)
    clnorm_add_test(rusticl_check "${rusticl}" $<TARGET_FILE:clnorm_program> check --every 21)
    list(APPEND elsewhere rusticl_check)
endif()
set(avx2 "${CMAKE_CURRENT_SOURCE_DIR}/test_avx2.sh")
foreach(test IN ITEMS
    fp8 gelu group_norm group_norm_backward group_norm_configs l2_norm norm_backward_fp8 norm_backward_numerics
    norm_backward_sweep norm_chunks norm_fp8_tiles norm_numerics norm_slices norm_sweep quantize softmax)
    clnorm_add_test(avx2_${test} "${avx2}" $<TARGET_FILE:test_${test}>)
    set_property(TEST avx2_${test} APPEND PROPERTY ENVIRONMENT CLNORM_TEST_QUICK=3)
    list(APPEND elsewhere avx2_${test})
endforeach()
if(clnorm_has_tool)
    clnorm_add_test(avx2_devices "${avx2}" $<TARGET_FILE:clnorm_program> devices)
    set_tests_properties(avx2_devices PROPERTIES PASS_REGULAR_EXPRESSION "pthread-haswell")
    clnorm_add_test(avx2_check "${avx2}" --cold $<TARGET_FILE:clnorm_program> check --every 14)
    set_tests_properties(avx2_check PROPERTIES FAIL_REGULAR_EXPRESSION "warnings? generated") # PoCL's compiler prints it
    list(APPEND elsewhere avx2_devices avx2_check)
endif()

# Intel's runtime, and PoCL 6 in Debian 13: tools/test.sh --all fetches them. Long sweeps run a part of their cases there.
set(intel "${CMAKE_CURRENT_SOURCE_DIR}/test_intel.sh" "${CMAKE_BINARY_DIR}/drivers/intel")
set(trixie "${CMAKE_CURRENT_SOURCE_DIR}/test_trixie.sh" "${CMAKE_BINARY_DIR}/drivers/trixie")
foreach(driver IN ITEMS intel trixie)
    set(programs args buffers cache drivers enqueue events extremes fp8 gelu group_norm group_norm_backward
        group_norm_configs group_norm_exchange group_norm_fp8 group_norm_outputs group_norm_pieces
        group_norm_pieces_backward l2_norm norm_backward_abreast norm_backward_args norm_backward_columns
        norm_backward_fp8 norm_backward_locked norm_backward_messages norm_backward_numerics
        norm_backward_rows norm_backward_sweep norm_chunks norm_fp8_tiles norm_large norm_mixed norm_numerics
        norm_slices norm_sweep one_call outer_args plan plan_store program quantize range rows_args softmax
        softmax_exchange)
    set(turn 1)
    if("${driver}" STREQUAL "trixie") # quoted: there is a variable of that name
        set(turn 2)
        list(APPEND programs norm_backward_teams norm_fp8 norm_fused norm_knobs norm_rope norm_weight_map)
    endif()
    foreach(test IN LISTS programs)
        clnorm_add_test(${driver}_${test} ${${driver}} $<TARGET_FILE:test_${test}>)
        set_property(TEST ${driver}_${test} APPEND PROPERTY ENVIRONMENT CLNORM_TEST_QUICK=${turn})
        list(APPEND elsewhere ${driver}_${test})
    endforeach()
    if(clnorm_has_tool)
        clnorm_add_test(${driver}_check ${${driver}} $<TARGET_FILE:clnorm_program> check --every 14)
        list(APPEND elsewhere ${driver}_check)
    endif()
endforeach()
set_tests_properties(${elsewhere} PROPERTIES SKIP_RETURN_CODE 77)
