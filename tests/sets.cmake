# Which tests belong together, and about how long they take.

# Gives a test its labels and its time.
function(clnorm_put_in_sets test)
    foreach(set IN ITEMS quick loader threads)
        if("${test}" IN_LIST ${set}_tests)
            set_property(TEST ${test} APPEND PROPERTY LABELS ${set})
        endif()
    endforeach()
    foreach(seconds IN ITEMS 70 40 25)
        if("${test}" IN_LIST tests_of_${seconds}_seconds)
            set_tests_properties(${test} PROPERTIES COST ${seconds})
        endif()
    endforeach()
endfunction()

# Every test is in the full set, which tools/test.sh --all runs; a new one is in no other until it is named here.

# What tools/test.sh runs: about 450 seconds of one core with an empty driver cache. Left out: the sweeps of forced configs,
# of outer dimensions, of weights of several rows, of chunks, of fused, mixed, 8-bit and quantised norms, of the backward
# from y, and of its teams; L2 norm and norms of slices; group norm's forced configs and gradients; the tool's operations
# besides norms, its backwards, and its benchmarks; the example with MPI.
set(quick_tests
    consumer_cmake consumer_pkg_config example_cpp example_forward example_out_of_order example_select
    example_training_step example_two_devices install installed_tool readme_commands sample_is_its_generators
    sample_make symbols test_args test_buffers test_build_report test_cache test_cache_damage test_cache_folder
    test_cache_list test_check_cases test_config test_config_group test_config_group_parts test_config_text test_database
    test_database_choice test_device test_device_facts test_drivers test_element test_enqueue test_enqueue_calls
    test_events test_extremes test_fault test_fp8 test_gelu test_group_norm test_group_norm_args test_l2_norm_args
    test_manual test_model_choice test_norm_backward_args
    test_norm_backward_columns test_norm_backward_desc test_norm_backward_differences test_norm_backward_layout
    test_norm_backward_locked test_norm_backward_messages test_norm_backward_numerics test_norm_backward_rows
    test_norm_backward_sweep test_norm_large test_norm_numerics test_norm_sweep test_one_call test_operations
    test_outer_args test_output_file test_philox test_plan test_plan_store test_program test_program_disk
    test_quantize test_quantize_args test_range test_readme test_reference test_reference_backward
    test_reference_differences test_reference_error test_reference_format test_reference_row_error test_reference_rows
    test_reference_slices test_report test_row_operation test_rows_args test_safetensors test_select test_softmax test_stage
    test_status test_tensor_file test_tool test_tool_layout test_tool_rope test_tool_run test_tuning test_tuning_file
    test_tuning_path test_validate test_verify test_verify_backward tested_devices)

# What runs with the loader of Khronos: programs that list devices, and those that make and release objects of OpenCL in many
# ways. Kernels do not depend on the loader.
set(loader_tests
    example_cpp example_forward example_out_of_order example_select example_training_step example_two_devices
    test_buffers test_cache test_cache_folder test_device test_device_facts test_drivers test_enqueue test_enqueue_calls
    test_events test_exports test_fault test_one_call test_plan test_plan_store test_program test_program_disk test_select
    test_tool test_tool_layout test_tool_run)

# What runs under ThreadSanitizer, and the target that builds it.
set(threads_tests test_cache test_enqueue test_one_call test_plan test_plan_store test_program)
add_custom_target(threads_tests)
add_dependencies(threads_tests ${threads_tests})

# About how many seconds of one core the tests take that take more than 20 with an empty driver cache: two jobs end together
# when the long ones begin first.
set(tests_of_70_seconds
    avx2_group_norm_backward lint_clang_tidy_src lint_clang_tidy_tools lint_kernels rusticl_norm_fp8_tiles
    test_group_norm_backward test_group_norm_fp8 test_group_norm_outputs test_leads test_norm_backward_teams
    test_norm_backward_weight_map test_norm_fp8 test_norm_rope test_norm_rope_backward test_outer test_tool_bench
    test_tool_operations trixie_norm_rope)
set(tests_of_40_seconds
    avx2_group_norm example_mpi_norm intel_group_norm_fp8 lint_clang_tidy_tests oclgrind_norm_backward_teams
    oclgrind_norm_knobs rusticl_leads rusticl_norm_numerics test_group_norm test_group_norm_configs
    test_group_norm_exchange test_group_norm_pieces_backward test_norm_backward_fp8 test_norm_backward_fused
    test_norm_backward_knobs test_norm_fused test_norm_heads test_norm_mixed test_norm_slices test_norm_slices_knobs
    test_norm_weight_map test_tool trixie_norm_backward_teams)
set(tests_of_25_seconds
    avx2_norm_numerics avx2_norm_slices avx2_softmax consumer_subproject intel_group_norm intel_group_norm_backward
    intel_group_norm_exchange intel_group_norm_outputs intel_norm_numerics lint_cppcheck oclgrind_group_norm_exchange
    plain_build rusticl_group_norm_exchange rusticl_group_norm_fp8 rusticl_norm_sweep rusticl_softmax
    test_batch_invariant test_config test_gelu test_group_norm_pieces test_l2_norm test_norm_backward_abreast
    test_norm_backward_from_y test_norm_backward_sweep test_norm_chunks test_norm_knobs test_norm_numerics
    test_norm_quantized test_softmax test_tool_tune trixie_group_norm_backward trixie_group_norm_exchange
    trixie_norm_fp8 trixie_norm_mixed trixie_norm_slices)
